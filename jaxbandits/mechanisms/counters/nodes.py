"""Binary trees of noise: Chan, Shi and Song 2011, Dwork et al. 2010, and Honaker's refinement (2015)."""

import math
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.mechanisms.counters.blt import column, sum_rows
from jaxbandits.mechanisms.counters.form import Form, rows_of_zeros
from jaxbandits.mechanisms.tree import tree as binary_tree
from jaxbandits.typing import Array

# Above so many releases the exact column norm of Honaker's noise would take too long, and a bound is used.
EXACT_RELEASES = 1 << 20


def bits_of(t: Array, levels: int) -> np.ndarray:
    """Which bits of t [...] are set [..., levels]."""
    return (np.asarray(t, np.int64)[..., None] >> np.arange(levels)) & 1


def joint_norm(releases: int, participations: int, separation: int) -> float:
    """A bound on what a unit of several messages contributes: the norm over all noisy nodes."""
    messages, squared = min(participations, -(-releases // separation)), 0
    for level in range(releases.bit_length()):
        inside = min(messages, -(-(2**level) // separation))
        squared += messages // inside * inside**2 + (messages % inside) ** 2
    return math.sqrt(squared)


@cache
def tree_functions(levels: int) -> tuple[Any, Any, Any]:
    """begin, move and noise of the binary tree, those of `mechanisms.tree`."""

    def begin(shape, dtype):
        return binary_tree(2**levels - 1, shape).init(dtype)

    def move(params, state, draws, t, shape):
        return binary_tree(2**levels - 1, shape).release(state, t, draws.normal(t, shape))[0]

    def noise(params, state, t):
        return binary_tree(2**levels - 1, state.shape[1:]).noise(state, t)

    return begin, move, noise


def tree_form(releases: int, participations: int, separation: int) -> Form:
    """The binary tree: the noise of t is that of popcount(t) nodes."""
    levels = releases.bit_length()
    functions, norm = tree_functions(max(levels, 1)), joint_norm(releases, participations, separation)
    return Form((), *functions, lambda t: np.sqrt(bits_of(t, levels).sum(-1)), column_norm=norm, size=levels)


@cache
def honaker_functions(levels: int) -> tuple[Any, Any, Any]:
    """begin, move and noise of Honaker's estimates of the nodes, with one draw a message.

    Only left nodes enter a sum, so the right ones, which no release needs, are integrated out.
    """
    level = np.arange(levels)
    shrink = 1 / (2 - 0.5**level)
    fresh_scale = np.sqrt((4 - 0.25**level) / 3)

    def move(params, state, draws, t, shape):
        closed = lax.population_count((t & -t) - 1)
        numbers = jnp.arange(levels, dtype=jnp.int32)
        share = jnp.where(numbers < closed, jnp.exp2((numbers - closed).astype(state.dtype)), 0)
        scale = jnp.asarray(fresh_scale, state.dtype)[closed]
        return state.at[closed].set(sum_rows(column(share, state) * state) + scale * draws.normal(t, shape))

    def noise(params, state, t):
        numbers = jnp.arange(levels, dtype=jnp.int32)
        share = jnp.where((t >> numbers) & 1 == 1, jnp.asarray(shrink, state.dtype), 0)
        return sum_rows(column(share, state) * state)

    return rows_of_zeros(levels), move, noise


def honaker_norm(releases: int) -> float:
    """The largest norm of a column, exact up to `EXACT_RELEASES` releases: what all sums tell of one message."""
    if releases > EXACT_RELEASES:
        return math.sqrt(releases.bit_length())
    q = np.arange(releases)
    squared = np.zeros(releases)
    highest_zero = np.full(releases, -1)  # of the bits below the level
    for level in range(releases.bit_length()):
        zero = (q >> level) & 1 == 0
        closes = zero & (((q >> level) + 1) << level <= releases)
        seen = np.where(highest_zero >= 0, 2 - 2.0 ** (highest_zero + 1 - level), 2 - 2.0**-level)
        squared += np.where(closes, seen**2 * 3 / (4 - 4.0**-level), 0)
        highest_zero = np.where(zero, level, highest_zero)
    return math.sqrt(float(squared.max()))


def honaker(releases: int, participations: int, separation: int) -> Form:
    """The binary tree whose nodes are estimated from all noise below them."""
    levels = releases.bit_length()
    single = min(participations, -(-releases // separation)) == 1
    variance = 1 / (2 - 0.5 ** np.arange(levels))
    norm = honaker_norm(releases) if single else joint_norm(releases, participations, separation)
    functions = honaker_functions(max(levels, 1))
    return Form((), *functions, lambda t: np.sqrt(bits_of(t, levels) @ variance), column_norm=norm, size=levels)
