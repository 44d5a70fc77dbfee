"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002): play the arm of largest mean + sqrt(2 log t / N)."""

from functools import cache
from typing import NamedTuple

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


@cache
def program(num_arms: int) -> Program:
    """UCB1's functions. The index is in `act`: mean + bonus_scale sqrt(2 ln t / N)."""

    def init(params, draws):
        return arm_means.no_plays(num_arms, draws.dtype)

    def act(params, state, draws, t, context):
        bonus = params.bonus_scale * jnp.sqrt(2 * jnp.log(t[0].astype(draws.dtype)))
        index = columns.map_arms(lambda mean, root: mean + bonus * root, state.mean, state.inverse_root)
        action = materialize(columns.argmax(index))
        return jnp.full(t.shape, action), None, action

    def update(params, state, draws, t, note, message, used):
        return arm_means.with_reward(state, note, finite(message))[0], ()

    return Program(init, act, encode_reward, update)


@factory(
    plays_on="arms", source="Auer, Cesa-Bianchi and Fischer 2002, Figure 1; `docs/formulas/private_robust_mab.md#ucb1`."
)
def ucb1(*, num_arms: NumArms, horizon: Horizon, bonus_scale: NonNegative = 1.0) -> Algorithm:
    """Play the arm of largest index mean + sqrt(2 ln t / N), N its pulls: an optimistic estimate of its mean.

    Every arm is played once first, in index order. t is the index of the coming play.

    Args:
        bonus_scale: Multiplies the bonus; 1 is for rewards in [0, 1].

    Note:
        Ties go to the lowest index. A non-finite reward counts as 0.

    >>> jb.algorithms.ucb1(num_arms=3, horizon=100).params
    Params(bonus_scale=1.0)
    """
    return Algorithm(program(num_arms), (Span(1, horizon),), Params(bonus_scale), rewards=Rewards())
