"""Laplace noise on running sums by numbers of an odd base with negative digits, for pure privacy.

Andersson, Pagh, Steiner and Torkamani 2025 (arXiv 2408.07021), built from its idea: [0, t) is a signed sum of blocks.
"""

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits.mechanisms.counters.form import Form
from jaxbandits.numerics import fixed_sum
from jaxbandits.typing import Array

ARITIES = range(3, 64, 2)
SEARCHED_RELEASES = 1 << 20  # up to so many releases all are looked at to choose the base


def height(releases: int, arity: int) -> int:
    """The least h with (k^h - 1) / 2 >= n: how many blocks a message lies in."""
    h = 1
    while (arity**h - 1) // 2 < releases:
        h += 1
    return h


def digit_sum(t: Array | np.ndarray[Any, Any], arity: int, h: int) -> np.ndarray:
    """The sum of the digits' sizes of t [...]."""
    shifted = np.asarray(t, np.int64) + (arity**h - 1) // 2
    return sum(np.abs(shifted // arity**level % arity - (arity - 1) // 2) for level in range(h))


@cache
def best_arity(releases: int, error: str) -> int:
    """The base of the least largest, or root mean square, noise at equal privacy; the smallest of equals."""

    def noise_of_arity(arity):
        h = height(releases, arity)
        if releases <= SEARCHED_RELEASES:
            sums = digit_sum(np.arange(1, releases + 1), arity, h)
            worst = sums.max() if error == "max" else sums.mean()
        else:
            worst = h * (arity - 1) / 2 if error == "max" else h * (arity**2 - 1) / (4 * arity)
        return h * np.sqrt(worst)

    return min(ARITIES, key=lambda arity: (round(float(noise_of_arity(arity)), 12), arity))


@cache
def k_ary_functions(arity: int, h: int) -> tuple[Any, Any, Any]:
    """begin, move and noise: for every level the positive and the negative blocks of its digit."""
    half = (arity - 1) // 2
    power = arity ** np.arange(h)
    offset = (arity**h - 1) // 2

    def digits(t):
        return (t + offset) // jnp.asarray(power, jnp.int32)

    def begin(shape, dtype):
        return jnp.zeros((h, 2, half, *shape), dtype)

    def move(params, state, draws, t, shape):
        block = digits(t)
        digit = block % arity - half
        fresh = (block != digits(t - 1)) & (digit >= 1)
        place = jnp.arange(1, half + 1, dtype=jnp.int32)[None] == digit[:, None]
        where = (fresh[:, None] & place).reshape((h, 1, half) + (1,) * len(shape))
        return jnp.where(where, draws.laplace(t, (h, 2, *shape))[:, :, None], state)

    def noise(params, state, t):
        digit = digits(t) % arity - half
        number = jnp.arange(1, half + 1, dtype=jnp.int32)[None]
        added, taken = (number <= side[:, None] for side in (digit, -digit))
        signs = jnp.stack([added.astype(state.dtype), -taken.astype(state.dtype)], axis=1)
        weight = signs.reshape((h * 2 * half,) + (1,) * (state.ndim - 3))
        return fixed_sum(weight * state.reshape((h * 2 * half, *state.shape[3:])), axis=0)

    return begin, move, noise


def k_ary(releases: int, error: str, arity: int | None, participations: int, separation: int) -> Form:
    """The form with the given base, or the best one."""
    arity = best_arity(releases, error) if arity is None else arity
    h = height(releases, arity)
    if arity**h + releases >= 2**31:
        raise ValueError(f"arity = {arity}, horizon = {releases} counts beyond 2^31: give a smaller arity or horizon")
    functions, norm = k_ary_functions(arity, h), float(h * min(participations, -(-releases // separation)))
    size = h * (arity - 1)
    return Form((), *functions, lambda t: np.sqrt(2 * digit_sum(t, arity, h)), column_norm=norm, size=size)
