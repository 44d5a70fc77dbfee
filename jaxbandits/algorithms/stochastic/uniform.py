"""Uniform play: every arm with probability 1/K, whatever was seen. The baseline below which no learner should fall."""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.declared import Horizon, NumArms
from jaxbandits.learners.observed_loss import encode_loss
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.validation import factory


class Params(NamedTuple):
    """Uniform play has no numbers."""


@cache
def program(num_arms: int) -> Program:
    """The functions of uniform play."""

    def init(params, draws):
        return ()

    def act(params, state, draws, t, context):
        action = (draws.uniform(t[0]) * num_arms).astype(jnp.int32)
        return jnp.full(t.shape, jnp.minimum(action, num_arms - 1)), None, ()

    def update(params, state, draws, t, note, message, used):
        return state, ()

    return Program(init, act, encode_loss, update)


@factory(plays_on="arms")
def uniform(*, num_arms: NumArms, horizon: Horizon) -> Algorithm:
    """Play every arm with probability 1 / K, whatever was seen: the baseline that a learner should beat.

    Returns:
        Its actions depend on no reward. It declares no privacy guarantee, since its clients send their losses.

    >>> jb.algorithms.uniform(num_arms=3, horizon=100).params
    Params()
    """
    return Algorithm(program(num_arms), (Span(1, horizon),), Params(), rewards=Rewards())
