"""Uniform play: every arm with probability 1/K, whatever was seen. The baseline below which no learner should fall."""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer


class Params(NamedTuple):
    pass


@cache
def program(num_arms: int) -> Program:
    def init(params, draws):
        return ()

    def act(params, state, draws, t, context):
        action = (draws.uniform(t[0]) * num_arms).astype(jnp.int32)
        return jnp.full(t.shape, jnp.minimum(action, num_arms - 1)), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))

    def update(params, state, draws, t, note, message, used):
        return state, ()

    return Program(init, act, encode, update)


@factory
def uniform(*, num_arms, horizon) -> Algorithm:
    """Uniform play over num_arms >= 2 arms [static].

    >>> import jaxbandits as jb
    >>> jb.algorithms.uniform(num_arms=3, horizon=100).version
    ('uniform', 1, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    return Algorithm(
        program(num_arms),
        (Span(1, horizon),),
        Params(),
        Guarantee(),
        ("uniform", 1, (num_arms,)),
        {},
        rewards=Rewards(),
    )
