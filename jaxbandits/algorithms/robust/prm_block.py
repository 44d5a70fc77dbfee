"""One arm's block of pulls, seen window by window, and the private robust mean it ends in (Wu et al. 2023, Algorithms 2 and 3).

Shared by the algorithms that pull an arm many times before they look. Nothing per pull is kept: raw moments need the running
sum of what truncation leaves, central ones the counts of the bins (first half of the block), then a sum around the fullest one.
Axes: [P] plays of a window, [B] bins offered (static; `Bins.num_bins` of them are there).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.estimators.histogram_mean import bin_index
from jaxbandits.numerics import argmax, cond_any, materialize
from jaxbandits.random import to_laplace


class Bins(NamedTuple):
    """The histogram, data."""

    num_bins: Any
    first_edge: Any
    width: Any


class Constants(NamedTuple):
    """What a block of a given number of pulls is measured with."""

    clip: Any  # M
    ceiling: Any  # a power of two, at least twice M: a window may have 256 plays
    noise_scale: Any  # of the mean
    count_scale: Any  # of a bin's share


class Block(NamedTuple):
    position: Any  # [] int32: pulls done
    sum: integer_sums.Sum  # of kept x - J
    counts: Any  # [B] int32, () with raw moments
    left_edge: Any  # [] J, 0 with raw moments


def empty(bins: int, dtype) -> Block:
    """Before the first pull. bins 0: raw moments."""
    zero = jnp.zeros((), dtype)
    return Block(jnp.int32(0), integer_sums.nothing(dtype), jnp.zeros(bins, jnp.int32) if bins else (), zero)


def left(block: Block, pulls, bins: int):
    """Pulls until the block ends or, with central moments, its first half: a window must not reach beyond."""
    if not bins:
        return pulls - block.position
    half = pulls // 2
    return jnp.where(block.position < half, half, pulls) - block.position


def extended(block: Block, pulls, used, value, play, constants: Constants, bins: int, histogram: Bins, scale, draws, t):
    """The block after the `used` plays of a window, and whether it is full (its `pulls` done). t: the last of these plays.

    value [P]; play [P] bool, or int32 where each value was paid that often; scale: `mechanism_scale`. Draws: one Laplace a bin, position j, at the last play of the first half.
    """
    fresh = block.position == 0
    position = block.position + used
    first_half = position <= pulls // 2 if bins else jnp.array(False)
    total = integer_sums.Sum(*(jnp.where(fresh, 0, x) for x in block.sum))
    distance = value - block.left_edge if bins else value
    single = play.dtype == bool
    counted = (play if single else play > 0) & ~first_half
    kept = jnp.where(counted & (jnp.abs(distance) <= constants.clip), distance, 0)  # not a product: inf times 0 is NaN
    total = integer_sums.added(total, kept, constants.ceiling, None if single else play)
    counts, left_edge = block.counts, block.left_edge
    if bins:
        counts = cond_any(
            first_half,
            _counted,
            counts,
            value,
            first_half & play if single else jnp.where(first_half, play, 0),
            fresh,
            histogram,
        )
        found = (position == pulls // 2) & (used > 0)
        share_scale = materialize(scale * constants.count_scale)
        stream = draws.child("bins")
        left_edge = cond_any(found, _searched, left_edge, found, counts, pulls // 2, share_scale, histogram, stream, t)
    full = (position == pulls) & (used > 0)
    return Block(jnp.where(full, 0, position), total, counts, left_edge), full


def _counted(counts, value, play, fresh, histogram):
    """Counts of the bins after a window of the first half."""
    index, inside = bin_index(value, histogram.first_edge, histogram.width, histogram.num_bins)
    return jnp.where(fresh, 0, counts).at[index].add(jnp.where(inside, play.astype(jnp.int32), 0))


def _searched(left_edge, found, counts, n, share_scale, histogram, draws, t):
    """J where the first half has just ended: the left edge of the bin of largest noisy share."""
    dtype, position = left_edge.dtype, jnp.arange(counts.shape[0], dtype=jnp.int32)
    noise = to_laplace(draws.at(t, position), draws.dtype)
    share = counts.astype(dtype) / n.astype(dtype) + materialize(share_scale * noise)
    best = argmax(jnp.where(position < histogram.num_bins, share, -jnp.inf))
    return jnp.where(found, histogram.first_edge + materialize(best.astype(dtype) * histogram.width), left_edge)


def estimate(block: Block, pulls, constants: Constants, bins: int, scale, draws, t):
    """The private mean of a full block. Draws: `mean`, one Laplace at its last play t."""
    dtype = block.left_edge.dtype
    n = (pulls // 2 if bins else pulls).astype(dtype)
    noise = materialize(scale * constants.noise_scale * draws.child("mean").laplace(t))
    mean = materialize(integer_sums.value(block.sum, constants.ceiling, dtype) / n) + noise
    return block.left_edge + mean if bins else mean
