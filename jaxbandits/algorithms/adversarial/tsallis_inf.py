"""Tsallis-INF (Zimmert and Seldin 2021), alpha = 1/2, importance-weighted losses: not private."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.learners import tsallis
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number

SMALLEST = 1e-12  # below what a uniform of 32 bits can draw: keeps a loss over a weight finite


class Params(NamedTuple):
    learning_rate: Any
    mixing: Any


class State(NamedTuple):
    estimate: Any  # [K] estimated losses, the smallest 0
    updates: Any  # int32


@cache
def program(num_arms: int) -> Program:
    def init(params, draws):
        return State(jnp.zeros(num_arms, draws.dtype), jnp.int32(0))

    def act(params, state, draws, t, context):
        step = params.learning_rate / jnp.sqrt((state.updates + 1).astype(draws.dtype))
        action, weight = tsallis.draw(state.estimate * materialize(step), draws.uniform(t[0]), mixing=params.mixing)
        return jnp.full(t.shape, action), None, (action, jnp.maximum(weight, SMALLEST))

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))

    def update(params, state, draws, t, note, message, used):
        action, weight = note
        estimate = state.estimate.at[action].add(materialize(message.total / weight))
        return State(estimate - materialize(jnp.min(estimate)), state.updates + 1), ()

    return Program(init, act, encode, update)


@factory
def tsallis_inf(*, num_arms, horizon, learning_rate=None, mixing=None, feedback_scale=0.0) -> Algorithm:
    """Tsallis-INF on losses 1 - reward (a non-finite reward counts as loss 1): HTINF's solver with sigma 1 and no skip.

    learning_rate > 0: the step size is learning_rate / sqrt(t) (None: 1, which is 2 / sqrt(t) in the authors' scaling).
    mixing in [0, 1]: share of uniform exploration (None: 0). feedback_scale must be 0: no tuning for noisy losses is known;
    use `htinf`. Source: Zimmert and Seldin 2021, Algorithm 1.

    >>> import jaxbandits as jb
    >>> jb.algorithms.tsallis_inf(num_arms=3, horizon=100).version
    ('tsallis_inf', 1, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    number("feedback_scale", feedback_scale, 0.0, 0.0, remedy="no tuning for noisy losses is known; use htinf")
    learning_rate = 1.0 if learning_rate is None else number("learning_rate", learning_rate, 0.0, open_low=True)
    mixing = 0.0 if mixing is None else number("mixing", mixing, 0.0, 1.0)
    params = Params(learning_rate, mixing)
    return Algorithm(
        program(num_arms),
        (Span(1, horizon),),
        params,
        Guarantee(),
        ("tsallis_inf", 1, (num_arms,)),
        {},
        rewards=Rewards(0.0, 1.0),
    )
