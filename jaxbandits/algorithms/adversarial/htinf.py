"""HTINF (Huang, Dai and Huang 2022, Algorithm 1): follow the regularised leader with Tsallis entropy and a skipping rule.

For losses of either sign whose tail_index-th absolute moment is at most tail_scale^tail_index: the paper's base for Laplace noise
(Asi, Raman and Talwar 2025, Corollary 3.2).
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.learners import tsallis
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number

SMALLEST = 1e-12  # below what a uniform of 32 bits can draw: keeps a loss over a weight finite


class Params(NamedTuple):
    tail_scale: Any  # sigma


class State(NamedTuple):
    estimate: Any  # [K] estimated losses, the smallest 0
    updates: Any  # int32
    skips: Any  # int32


def skip_share(tail_index: float) -> float:
    """Theta_alpha of the skipping threshold; 1 - 2^(-1/3) at tail_index 2 (Huang et al. 2022, Algorithm 1)."""
    first = 1 - 2 ** (-(tail_index - 1) / (2 * tail_index - 1))
    second = math.exp(-0.5) if tail_index == 2.0 else (2 - 2 / tail_index) ** (1 / (2 - tail_index))
    return min(first, second)


@cache
def program(num_arms: int, tail_index: float) -> Program:
    share = skip_share(tail_index)

    def scale(
        params, state
    ):  # s_t = sigma t^(1/alpha), t the coming update: the same for the weights and the threshold
        t = (state.updates + 1).astype(state.estimate.dtype)
        return params.tail_scale * (jnp.sqrt(t) if tail_index == 2.0 else t ** (1 / tail_index))

    def init(params, draws):
        return State(jnp.zeros(num_arms, draws.dtype), jnp.int32(0), jnp.int32(0))

    def act(params, state, draws, t, context):
        gaps = state.estimate * materialize(1 / scale(params, state))
        action, weight = tsallis.draw(gaps, draws.uniform(t[0]), tail_index)
        return jnp.full(t.shape, action), None, (action, jnp.maximum(weight, SMALLEST))

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))

    def update(params, state, draws, t, note, message, used):
        action, weight = note
        root = jnp.sqrt(weight) if tail_index == 2.0 else weight ** (1 / tail_index)
        keep = jnp.abs(message.total) <= share * scale(params, state) * root
        estimate = state.estimate.at[action].add(materialize(jnp.where(keep, message.total / weight, 0)))
        skips = state.skips + (~keep).astype(jnp.int32)
        return State(estimate - materialize(jnp.min(estimate)), state.updates + 1, skips), ()

    def diagnose(params, state):
        return {"skips": state.skips}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def htinf(*, num_arms, horizon, tail_scale=None, tail_index=2.0) -> Algorithm:
    """HTINF on losses 1 - reward (a non-finite reward counts as loss 1).

    tail_scale > 0: sigma, None is sqrt(6), which covers a loss in [0, 1] plus Laplace noise of scale up to 1;
    use sqrt(2 + 4 lam^2) for larger noise lam. tail_index in (1, 2] [static]: alpha. Step size 1 / (sigma t^(1/alpha)); an update
    whose |loss| exceeds Theta s_t x^(1/alpha) is skipped and still advances t. Diagnostic: `skips`.
    Source: Huang et al. 2022, Algorithm 1.

    >>> import jaxbandits as jb
    >>> jb.algorithms.htinf(num_arms=3, horizon=100).version
    ('htinf', 1, (3, 2.0))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    tail_index = number("tail_index", tail_index, 1.0, 2.0, open_low=True)
    tail_scale = math.sqrt(6) if tail_scale is None else number("tail_scale", tail_scale, 0.0, open_low=True)
    return Algorithm(
        program(num_arms, tail_index),
        (Span(1, horizon),),
        Params(tail_scale),
        Guarantee(),
        ("htinf", 1, (num_arms, tail_index)),
        {},
        rewards=Rewards(),
    )
