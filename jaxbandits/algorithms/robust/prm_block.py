"""One arm's block of pulls, seen window by window, and the private robust mean that it ends in.

The mean is that of Wu, Zhou, Tao and Wang 2023, Algorithm 2 (raw moments) or 3 (central moments):
`docs/formulas/private_robust_mab.md#private-robust-mean`. No single pull is stored. Raw moments need the running
sum of what truncation leaves. Central moments need the counts of the bins in the first half of the block, then a
sum around the fullest bin.
Axes: [P] plays of a window, [B] bins offered (static; `Bins.num_bins` of them are in use).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.estimators.cut_means import bin_index
from jaxbandits.numerics import argmax, cond_any, materialize
from jaxbandits.random import Draws, to_laplace
from jaxbandits.typing import Array, Bool, DType, Float, Int, Numeric

Plays = Int[Array, ""]  # how many plays, or the number of one


class Bins(NamedTuple):
    """The histogram's bins: numbers, which may be traced."""

    num_bins: Numeric
    first_edge: Numeric
    width: Numeric


class BlockConstants(NamedTuple):
    """The numbers that measure a block of a given number of pulls. They may be traced."""

    clip: Numeric  # M: values farther from the centre are rejected
    ceiling: Numeric  # a power of two, at least twice M: a window may have 256 plays
    noise_scale: Numeric  # Laplace scale of the mean
    count_scale: Numeric  # Laplace scale of a bin's share


class RewardBlock(NamedTuple):
    """A block that is being played."""

    position: Int[Array, ""]  # pulls made so far
    sum: integer_sums.Sum  # of x - J over the rewards that truncation leaves
    counts: Array | tuple[()]  # int32 [B]; () with raw moments
    left_edge: Float[Array, ""]  # J; 0 with raw moments


def empty_block(bins: int, dtype: DType) -> RewardBlock:
    """A block before its first pull. `bins` is 0 with raw moments."""
    zero = jnp.zeros((), dtype)
    return RewardBlock(jnp.int32(0), integer_sums.nothing(dtype), jnp.zeros(bins, jnp.int32) if bins else (), zero)


def plays_left(block: RewardBlock, pulls: Int[Array, ""], bins: int) -> Int[Array, ""]:
    """Pulls until the block ends or, with central moments, its first half. A window must not reach beyond that."""
    if not bins:
        return pulls - block.position
    half = pulls // 2
    return jnp.where(block.position < half, half, pulls) - block.position


def extend_block(
    block: RewardBlock,
    pulls: Int[Array, ""],
    used: Array,
    value: Float[Array, " P"],
    play: Array,
    constants: BlockConstants,
    bins: int,
    histogram: Bins,
    scale: Any,
    draws: Draws,
    t: Int[Array, ""],
) -> tuple[RewardBlock, Bool[Array, ""]]:
    """The block after the `used` plays of a window, and whether all its `pulls` are made.

    `t` is the last of these plays, `scale` is `mechanism_scale`. `play` [P] is bool; where rewards come as counts
    it is int32 and says how often each value was paid. Draws: one Laplace variable for each bin, at position j, at
    the last play of the first half.
    """
    fresh = block.position == 0
    position = block.position + used
    first_half = position <= pulls // 2 if bins else jnp.array(False)
    total = integer_sums.Sum(*(jnp.where(fresh, 0, x) for x in block.sum))
    distance = value - block.left_edge if bins else value
    single = play.dtype == bool
    counted = (play if single else play > 0) & ~first_half
    inside = counted & (jnp.abs(distance) <= constants.clip)
    truncated = jnp.where(inside, distance, 0)  # not a product, as inf times 0 is NaN
    total = integer_sums.add_rewards(total, truncated, constants.ceiling, None if single else play)
    counts, left_edge = block.counts, block.left_edge
    if bins:
        early = first_half & play if single else jnp.where(first_half, play, 0)
        counts = cond_any(first_half, _count_bins, counts, value, early, fresh, histogram)
        half_done = (position == pulls // 2) & (used > 0)
        share_scale = materialize(scale * constants.count_scale)
        stream = draws.child("bins")
        left_edge = cond_any(
            half_done, _search_bins, left_edge, half_done, counts, pulls // 2, share_scale, histogram, stream, t
        )
    full = (position == pulls) & (used > 0)
    return RewardBlock(jnp.where(full, 0, position), total, counts, left_edge), full


def _count_bins(counts: Array, value: Array, play: Array, fresh: Array, histogram: Bins) -> Array:
    """Counts of the bins after a window of the first half."""
    index, inside = bin_index(value, histogram.first_edge, histogram.width, histogram.num_bins)
    return jnp.where(fresh, 0, counts).at[index].add(jnp.where(inside, play.astype(jnp.int32), 0))


def _search_bins(
    left_edge: Array, half_done: Array, counts: Array, n: Array, share_scale: Any, histogram: Bins, draws: Draws, t: Any
) -> Array:
    """J where the first half has just ended: the left edge of the bin of largest noisy share."""
    dtype, position = left_edge.dtype, jnp.arange(counts.shape[0], dtype=jnp.int32)
    noise = to_laplace(draws.at(t, position), draws.dtype)
    share = counts.astype(dtype) / n.astype(dtype) + materialize(share_scale * noise)
    best = argmax(jnp.where(position < histogram.num_bins, share, -jnp.inf))
    return jnp.where(half_done, histogram.first_edge + materialize(best.astype(dtype) * histogram.width), left_edge)


def estimate_mean(
    block: RewardBlock, pulls: Plays, constants: BlockConstants, bins: int, scale: Any, draws: Draws, t: Plays
) -> Float[Array, ""]:
    """The private mean of a full block. Draws: `mean`, one Laplace variable at the block's last play t."""
    dtype = block.left_edge.dtype
    n = (pulls // 2 if bins else pulls).astype(dtype)
    noise = materialize(scale * constants.noise_scale * draws.child("mean").laplace(t))
    mean = materialize(integer_sums.sum_as_float(block.sum, constants.ceiling, dtype) / n) + noise
    return block.left_edge + mean if bins else mean
