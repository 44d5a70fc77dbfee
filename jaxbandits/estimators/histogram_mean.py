"""A mean found in two folds: the fullest bin, then a truncated mean around it (Wu et al. 2023, Algorithm 3, without its noise)."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.estimators.truncated_mean import truncated_mean
from jaxbandits.numerics import argmax
from jaxbandits.validation import integer, number


class HistogramMean(NamedTuple):
    """The estimate and the bin it was searched around."""

    estimate: Any  # []
    left_edge: Any  # [] J: left end of the fullest bin


def bin_index(rewards, first_edge, width, num_bins):
    """Bin [...] int32 of each reward, bins [first_edge + j width, + width), and whether it has one (not inf, not NaN)."""
    place = (rewards - first_edge) / width
    inside = (place >= 0) & (place < jnp.asarray(num_bins).astype(place.dtype))
    return jnp.where(inside, place, 0).astype(jnp.int32), inside  # filtered before the cast, which inf would wreck


def histogram_mean(rewards, clip, mean_bound, bin_width, *, guard_bins=0) -> HistogramMean:
    """Find the fullest bin with the first half of the rewards; mean of the second half, truncated around its left edge.

    rewards: [2n] in the order they came, any values (an odd last one is dropped). clip: largest |x - J| kept. mean_bound: D,
    the bins cover [-D, D); bin_width: r, both host numbers, r <= D; guard_bins: extra bins each side. Values outside all bins,
    infinities and NaN have no bin; ties go to the lowest. Changing one reward moves the shares of the bins by at most 2/n in L1.
    Raises ValueError for other bounds or fewer than two rewards. Source: Wu et al. 2023, Algorithm 3.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([5.1, 5.2, -9.0, 5.0, 6.0, jnp.inf])
    >>> [float(v) for v in histogram_mean(x, 4.0, 8.0, 2.0)]
    [5.0, 4.0]
    """
    rewards = jnp.asarray(rewards)
    width = number("bin_width", bin_width, 0.0, open_low=True)
    bound = number("mean_bound", mean_bound, width, remedy="the bins cover [-mean_bound, mean_bound)")
    guard = integer("guard_bins", guard_bins, 0)
    half = rewards.shape[-1] // 2
    if half == 0:
        raise ValueError(f"rewards has shape {rewards.shape}: the two folds need at least two rewards")
    num_bins, first_edge = math.ceil(2 * bound / width - 1e-12) + 2 * guard, -bound - guard * width
    index, inside = bin_index(rewards[:half], first_edge, width, num_bins)
    counts = jnp.zeros(num_bins, jnp.int32).at[index].add(inside.astype(jnp.int32))
    left = first_edge + argmax(counts).astype(rewards.dtype) * width
    return HistogramMean(left + truncated_mean(rewards[half : 2 * half] - left, clip), left)
