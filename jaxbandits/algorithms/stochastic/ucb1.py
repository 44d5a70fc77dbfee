"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002): play the arm of largest mean + sqrt(2 log t / N)."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.arm_rows import rows_before_play, with_reward
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    bonus_scale: Any


@cache
def program(num_arms: int) -> Program:
    # state [K, 3]: the rows of `arm_rows`
    def init(params, draws):
        return rows_before_play(num_arms, draws.dtype)

    def act(params, state, draws, t, context):
        bonus = params.bonus_scale * jnp.sqrt(2 * jnp.log(t[0].astype(draws.dtype)))
        action = argmax(state[:, 0] + bonus * state[:, 1])
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = jnp.where(jnp.isfinite(message), message, 0)  # here, where corrupted reports pass too
        return with_reward(state, note, message), ()

    return Program(init, act, encode, update)


@factory
def ucb1(*, num_arms, horizon, bonus_scale=1.0) -> Algorithm:
    """UCB1 with t the index of the coming play; ties go to the lowest index. Non-finite rewards count as 0.

    num_arms >= 2 [static]; bonus_scale >= 0 multiplies the bonus (1: rewards in [0, 1]).
    Source: Auer et al. 2002, Figure 1.

    >>> import jaxbandits as jb
    >>> jb.algorithms.ucb1(num_arms=3, horizon=100).version[0]
    'ucb1'
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    params = Params(number("bonus_scale", bonus_scale, 0.0))
    return Algorithm(
        program(num_arms), (Span(1, horizon),), params, Guarantee(), ("ucb1", 1, (num_arms,)), {}, rewards=Rewards()
    )
