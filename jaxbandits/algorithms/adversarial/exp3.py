"""EXP3 with explicit mixing (Auer, Cesa-Bianchi, Freund and Schapire 2002, in losses; Asi, Raman and Talwar 2025, Algorithm 3)."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import theory
from jaxbandits.learners.exponential import reweigh
from jaxbandits.numerics import UNROLL, fixed_sum, inverse_cdf, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    learning_rate: Any
    mixing: Any


def _encode(params, note, draws, t, context, action, reward, play):
    return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))


def _unmixed(num_arms: int) -> Program:
    # state [K]: normalised weights, one exp a play. Their range is 1e37: an arm below it is never drawn, and comes
    # back when the others have fallen by a factor 1e37.
    def init(params, draws):
        return jnp.full(num_arms, 1 / num_arms, draws.dtype)

    def act(params, weights, draws, t, context):
        action = materialize(inverse_cdf(weights, draws.uniform(t[0])))
        return jnp.full(t.shape, action), None, (action, weights[action])

    def update(params, weights, draws, t, note, message, used):
        action, weight = note
        return reweigh(weights, action, weight, -params.learning_rate * message.total / weight), ()

    return Program(init, act, _encode, update)


def _mixed(num_arms: int) -> Program:
    # state [K]: log weights, the largest 0. Mixing draws every arm, so a weight may sink without limit and must come back.
    def init(params, draws):
        return jnp.zeros(num_arms, draws.dtype)

    def act(params, logs, draws, t, context):
        weights = jnp.exp(logs)
        total = materialize(fixed_sum(weights))
        floor = params.mixing / num_arms
        shares = (1 - params.mixing) * weights + floor * total
        action = materialize(inverse_cdf(shares, draws.uniform(t[0]) * total))
        return jnp.full(t.shape, action), None, (action, (1 - params.mixing) * jnp.exp(logs[action]) / total + floor)

    def update(params, logs, draws, t, note, message, used):
        action, p = note
        logs = logs.at[action].set(materialize(logs[action] - params.learning_rate * message.total / p))
        return logs - materialize(_largest(logs)), ()

    return Program(init, act, _encode, update)


def _largest(x):
    if x.shape[-1] > UNROLL:
        return jnp.max(x)
    top = x[0]
    for i in range(1, x.shape[-1]):
        top = jnp.maximum(top, x[i])
    return top


@cache
def program(num_arms: int, mixed: bool) -> Program:
    """EXP3's functions. `mixed` False: mixing is 0 and the weights are kept normalised, which is nearly twice as fast."""
    return _mixed(num_arms) if mixed else _unmixed(num_arms)


@factory
def exp3(*, num_arms, horizon, learning_rate=None, mixing=None, feedback_scale=0.0) -> Algorithm:
    """EXP3 on losses 1 - reward (a non-finite reward counts as loss 1): P = (1 - mixing) softmax + mixing / K.

    learning_rate > 0, mixing in [0, 1]; zero mixing is a program of its own. None with feedback_scale 0: sqrt(2 log K / (K T)) and 0.
    None with feedback_scale > 0, the scale of the Laplace noise on the losses: `theory.exp3_noisy_tuning` over `horizon`
    updates, ValueError where its mixing exceeds 1. Source: Asi, Raman and Talwar 2025, Algorithm 3.

    >>> import jaxbandits as jb
    >>> jb.algorithms.exp3(num_arms=3, horizon=100).version
    ('exp3', 1, (3, False))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    feedback_scale = number("feedback_scale", feedback_scale, 0.0)
    if mixing is not None:
        mixing = number("mixing", mixing, 0.0, 1.0)
    if learning_rate is not None:
        learning_rate = number("learning_rate", learning_rate, 0.0, open_low=True)
    tuning = {}
    if feedback_scale == 0:
        tuning = {"learning_rate": math.sqrt(2 * math.log(num_arms) / (num_arms * horizon)), "mixing": 0.0}
    elif learning_rate is None or mixing is None:
        tuning = theory.exp3_noisy_tuning(num_arms, horizon, feedback_scale, mixing=mixing)
    rate = tuning["learning_rate"] if learning_rate is None else learning_rate
    params = Params(rate, tuning["mixing"] if mixing is None else mixing)
    mixed = params.mixing > 0
    return Algorithm(
        program(num_arms, mixed),
        (Span(1, horizon),),
        params,
        Guarantee(),
        ("exp3", 1, (num_arms, mixed)),
        {},
        rewards=Rewards(0.0, 1.0),
    )
