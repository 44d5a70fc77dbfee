"""Uniform play: every arm with probability 1/K, whatever was seen. The baseline below which no learner should fall."""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.learners.observed_loss import observed_loss
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer


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

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(observed_loss(reward[0]))

    def update(params, state, draws, t, note, message, used):
        return state, ()

    return Program(init, act, encode, update)


@factory
def uniform(*, num_arms: int, horizon: int) -> Algorithm:
    """Play every arm with probability 1 / K, whatever was seen: the baseline that a learner should beat.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in from the sweep.

    Returns
    -------
    Algorithm
        Its actions depend on no reward. It declares no privacy guarantee, since its clients send their losses.

    Raises
    ------
    ValueError
        For an argument outside its range.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.uniform(num_arms=3, horizon=100).version
    ('uniform', 1, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    return Algorithm(
        program=program(num_arms),
        schedule=(Span(1, horizon),),
        params=Params(),
        guarantee=Guarantee(),
        version=("uniform", 1, (num_arms,)),
        config={},
        rewards=Rewards(),
    )
