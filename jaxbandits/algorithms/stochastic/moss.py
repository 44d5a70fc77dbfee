"""MOSS (Audibert and Bubeck 2009), recalled from memory and not re-read: the minimax optimal strategy for a known horizon."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.arm_rows import rows_before_play
from jaxbandits.numerics import argmax, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    bonus_scale: Any
    log_share: Any  # ln(T / K)


@cache
def program(num_arms: int) -> Program:
    # state [K, 3]: index, mean reward, pulls. An index moves with its own arm's plays only: one row is computed a play
    def init(params, draws):
        return rows_before_play(num_arms, draws.dtype)

    def act(params, state, draws, t, context):
        action = argmax(state[:, 0])
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = jnp.where(jnp.isfinite(message), message, 0)  # a corrupted report too
        _, mean, pulls = state[note]
        pulls = materialize(pulls + 1)
        inverse = materialize(1 / pulls)
        mean = materialize(mean + (message - mean) * inverse)
        bonus = jnp.sqrt(jnp.maximum(params.log_share - jnp.log(pulls), 0) * inverse)
        return state.at[note].set(jnp.stack([materialize(mean + params.bonus_scale * bonus), mean, pulls])), ()

    return Program(init, act, encode, update)


@factory
def moss(*, num_arms, horizon, bonus_scale=1.0) -> Algorithm:
    """Play the arm of largest mean + bonus_scale sqrt(max(ln(T / (K N)), 0) / N); ties go to the lowest index.

    Every arm is played once first, in index order. Non-finite rewards count as 0. num_arms >= 2 [static]; bonus_scale >= 0
    (1: rewards in [0, 1]). Raises ValueError outside.
    Source: Audibert and Bubeck 2009, section 2, as named in the specification of private and robust bandits, section 12;
    recalled from memory, not re-read.

    >>> import jaxbandits as jb
    >>> round(jb.algorithms.moss(num_arms=5, horizon=1000).params.log_share, 4)
    5.2983
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    params = Params(number("bonus_scale", bonus_scale, 0.0), math.log(horizon / num_arms))
    return Algorithm(
        program(num_arms), (Span(1, horizon),), params, Guarantee(), ("moss", 1, (num_arms,)), {}, rewards=Rewards()
    )
