"""LinUCB (Abbasi-Yadkori, Pal and Szepesvari 2011, OFUL's closed form), the non-private comparator of
"Improved rate for locally differentially private linear bandits" (spec ldp_contextual 7).
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.numerics import argmax, settle
from jaxbandits.protocol import Algorithm, Guarantee, Program, Span
from jaxbandits.validation import choice, factory, integer, number

TIE = 1e-5  # indices within this share of the largest are tied: unit-norm arms all tie at t = 1, up to rounding


class Params(NamedTuple):
    """Width of play t: radius_scale (base + slope sqrt(offset + log(1 + growth t)))."""

    radius_scale: Any
    ridge: Any
    base: Any
    slope: Any
    offset: Any
    growth: Any


class State(NamedTuple):
    inverse: Any  # d (d + 1) / 2 scalars: (V + ridge I)^-1, upper triangle by rows
    theta: Any  # d scalars


def quadratic_form(inverse, x):
    """x^T P x from P's upper triangle by rows; x a list of d arrays of one shape."""
    d, k, total = len(x), 0, 0.0
    for i in range(d):
        row = inverse[k] * x[i]
        for j in range(i + 1, d):
            row = row + 2 * inverse[k + j - i] * x[j]
        total = total + row * x[i]
        k += d - i
    return total


def symmetric_product(inverse, x):
    """P x from P's upper triangle by rows: a list of d."""
    d = len(x)
    position = {(i, j): i * d - i * (i - 1) // 2 + j - i for i in range(d) for j in range(i, d)}
    return [sum(inverse[position[min(i, j), max(i, j)]] * x[j] for j in range(d)) for i in range(d)]


@cache
def program(num_arms: int, dim: int) -> Program:
    pairs = [(i, j) for i in range(dim) for j in range(i, dim)]

    def init(params, draws):
        one, zero = 1 / jnp.asarray(params.ridge, draws.dtype), jnp.zeros((), draws.dtype)
        return State(tuple(one if i == j else zero for i, j in pairs), (zero,) * dim)

    def act(params, state, draws, t, context):
        # one contiguous array a feature, made once a seed and shared by all parameter points: eight points cost 1.6 times
        # one (2.5 without), and one point costs no more
        x = [settle(context[0, :, j]) for j in range(dim)]
        time = t[0].astype(draws.dtype)
        width = params.radius_scale * (
            params.base + params.slope * jnp.sqrt(params.offset + jnp.log1p(params.growth * time))
        )
        score = sum(x[j] * state.theta[j] for j in range(dim))
        index = score + width * jnp.sqrt(jnp.maximum(quadratic_form(state.inverse, x), 0))
        action = settle(argmax(index, TIE))
        return jnp.full(t.shape, action), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return context[0, action[0]], jnp.where(jnp.isfinite(reward[0]), reward[0], 0)

    def update(params, state, draws, t, note, message, used):
        feature, reward = message
        x = [feature[j] for j in range(dim)]
        v = symmetric_product(state.inverse, x)
        shrink = settle(1 / (1 + sum(x[j] * v[j] for j in range(dim))))
        error = (reward - sum(x[j] * state.theta[j] for j in range(dim))) * shrink
        inverse = tuple(p - v[i] * v[j] * shrink for p, (i, j) in zip(state.inverse, pairs, strict=True))
        return State(inverse, tuple(state.theta[j] + v[j] * error for j in range(dim))), ()

    return Program(init, act, encode, update)


@factory
def linucb(*, num_arms, dim, horizon, preset="reference", radius_scale=1.0, feature_norm=1.0) -> Algorithm:
    """Play argmax <x, theta> + w_t sqrt(x' P x), P = (sum x x' + ridge I)^-1, theta = P sum x r.

    Ties go to the lowest arm within 1e-5 of the largest index, relatively: at t = 1 unit-norm arms differ by rounding only.
    Contexts are decision sets [A, d]. Non-finite rewards count as 0. P is updated by Sherman and Morrison.

    num_arms >= 2, dim >= 1 [static]; radius_scale >= 0 multiplies the width; feature_norm > 0: the largest norm L of a
    feature. preset "reference": ridge 1e-4, w = sqrt(d) + R sqrt(d log(T (1 + T L^2))) for every t, as in the published code
    of Chowdhury and Zhou; "theory": ridge 1, w_t = 1 + R sqrt(d log((1 + t L^2) T)). R = 1/2. Raises ValueError outside.
    Source: specification of locally private linear bandits, section 7.

    >>> import jaxbandits as jb
    >>> alg = jb.algorithms.linucb(num_arms=100, dim=5, horizon=20_000, radius_scale=0.1)
    >>> alg.params.ridge
    0.0001
    """
    num_arms, dim = integer("num_arms", num_arms, 2), integer("dim", dim, 1)
    horizon = integer("horizon", horizon, 1)
    preset = choice("preset", preset, ("reference", "theory"))
    scale = number("radius_scale", radius_scale, 0.0)
    norm = number("feature_norm", feature_norm, 0.0, open_low=True)
    slope = 0.5 * math.sqrt(dim)
    if preset == "reference":
        params = Params(scale, 1e-4, math.sqrt(dim), slope, math.log(horizon * (1 + horizon * norm**2)), 0.0)
    else:
        params = Params(scale, 1.0, 1.0, slope, math.log(horizon), norm**2)
    schedule = (Span(1, horizon),)
    return Algorithm(program(num_arms, dim), schedule, params, Guarantee(), ("linucb", 1, (num_arms, dim)), {})
