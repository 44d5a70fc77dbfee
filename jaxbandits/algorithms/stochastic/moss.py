"""MOSS (Audibert and Bubeck 2009), recalled from memory and not re-read: minimax optimal for a known horizon."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import arm_means
from jaxbandits.algorithms.stochastic.plain_reports import encode_reward, finite
from jaxbandits.declared import Horizon, NonNegative, NumArms
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    bonus_scale: Numeric
    log_share: Numeric  # ln(T / K)


class State(NamedTuple):
    means: arm_means.Means
    index: Any  # it changes with its own arm's plays only, so that a play computes one


@cache
def program(num_arms: int) -> Program:
    """MOSS's functions."""

    def init(params, draws):
        index = columns.full_for_single_writes(num_arms, arm_means.UNPLAYED, draws.dtype)
        return State(arm_means.no_plays(num_arms, draws.dtype), index)

    def act(params, state, draws, t, context):
        action = materialize(columns.argmax(state.index))
        return jnp.full(t.shape, action), None, action

    def update(params, state, draws, t, note, message, used):
        means, mean, root = arm_means.with_reward(state.means, note, finite(message))
        bonus = jnp.sqrt(jnp.maximum(params.log_share + 2 * jnp.log(root), 0)) * root
        index = materialize(mean + params.bonus_scale * bonus)
        return State(means, columns.replace_entry(state.index, note, index)), ()

    return Program(init, act, encode_reward, update)


@factory(
    plays_on="arms",
    source="""Audibert and Bubeck 2009, section 2, recalled from memory and not re-read;
        `docs/formulas/private_robust_mab.md#moss`.""",
)
def moss(*, num_arms: NumArms, horizon: Horizon, bonus_scale: NonNegative = 1.0) -> Algorithm:
    """Play the arm of largest index mean + sqrt(max(ln(T / (K N)), 0) / N): optimism for a known number of plays.

    N is the arm's number of pulls. Every arm is played once first, in index order.

    Args:
        bonus_scale: Multiplies the square root in the index; 1 is for rewards in [0, 1].

    Note:
        Ties go to the lowest index. A non-finite reward counts as 0.

    >>> round(jb.algorithms.moss(num_arms=5, horizon=1000).params.log_share, 4)
    5.2983
    """
    params = Params(bonus_scale, log_share=math.log(horizon / num_arms))
    return Algorithm(program(num_arms), (Span(1, horizon),), params, rewards=Rewards())
