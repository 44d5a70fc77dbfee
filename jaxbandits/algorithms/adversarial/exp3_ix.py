"""EXP3-IX (Neu 2015): exponential weights with implicit exploration; not private."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.learners.exponential import reweigh
from jaxbandits.numerics import inverse_cdf, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    learning_rate: Any
    mixing: Any  # the implicit exploration added to the played arm's probability


@cache
def program(num_arms: int) -> Program:
    # state [K]: normalised weights
    def init(params, draws):
        return jnp.full(num_arms, 1 / num_arms, draws.dtype)

    def act(params, weights, draws, t, context):
        action = materialize(inverse_cdf(weights, draws.uniform(t[0])))
        return jnp.full(t.shape, action), None, (action, weights[action])

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))

    def update(params, weights, draws, t, note, message, used):
        action, weight = note
        step = -params.learning_rate * message.total / (weight + params.mixing)
        return reweigh(weights, action, weight, step), ()

    return Program(init, act, encode, update)


@factory
def exp3_ix(*, num_arms, horizon, learning_rate=None, mixing=None, feedback_scale=0.0) -> Algorithm:
    """EXP3-IX on losses 1 - reward (a non-finite reward counts as loss 1): estimates loss / (p + mixing).

    learning_rate > 0: None is sqrt(2 log K / (K T)). mixing > 0: None is learning_rate / 2. feedback_scale must be 0: no tuning
    for noisy losses is known; use `exp3` or `htinf`. Source: Neu 2015, Theorem 1.

    >>> import jaxbandits as jb
    >>> jb.algorithms.exp3_ix(num_arms=3, horizon=100).version
    ('exp3_ix', 1, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    number("feedback_scale", feedback_scale, 0.0, 0.0, remedy="no tuning for noisy losses is known; use exp3 or htinf")
    if learning_rate is None:
        learning_rate = math.sqrt(2 * math.log(num_arms) / (num_arms * horizon))
    learning_rate = number("learning_rate", learning_rate, 0.0, open_low=True)
    mixing = learning_rate / 2 if mixing is None else number("mixing", mixing, 0.0, open_low=True)
    params = Params(learning_rate, mixing)
    return Algorithm(
        program(num_arms),
        (Span(1, horizon),),
        params,
        Guarantee(),
        ("exp3_ix", 1, (num_arms,)),
        {},
        rewards=Rewards(0.0, 1.0),
    )
