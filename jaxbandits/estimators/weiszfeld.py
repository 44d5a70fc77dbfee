"""Smoothed Weiszfeld iterations, the lanes in the last axes: the kernel of every geometric median here.

Axes: [N] points, [p] coordinates, [...] any number of lanes. Under vmap the batch axis goes last, so that a vector register holds
one number of eight problems; sums over N and p are then plain elementwise additions in a fixed order.
Source: Pillutla, Kakade and Harchaoui 2019 (RFA); specification of Byzantine-robust federated bandits, sections 3 and 7.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import count, fixed_sum, lanes_last

SMOOTHING = 1e-4  # nu_s, in median distances: below it a distance counts as it


class Warm(NamedTuple):
    """A median and the weights that gave it: the two starts of the next one."""

    weights: Any  # [N] sum 1
    value: Any  # [p]


def distances(points, z):
    """||z - z_i||: points [N, p, ...], z [p, ...] -> [N, ...]."""
    away = points - z
    return jnp.sqrt(fixed_sum(away * away, axis=1))


def weighted_mean(points, weights):
    """Sum of weights [N, ...] times points [N, p, ...] -> [p, ...]."""
    return fixed_sum(points * weights[:, None], axis=0)


def middle_distance(d, present):
    """The median over the first axis of the present ones of d [N, ...], without sorting: of an even number the mean of the middle two."""
    n, number = d.shape[0], jnp.maximum(count(present, axis=0), 1)
    d = jnp.where(present, d, jnp.inf)
    index = jnp.arange(n).reshape(n, *(1,) * (d.ndim - 1))
    before = (d[None] < d[:, None]) | ((d[None] == d[:, None]) & (index[None] < index[:, None]))
    rank = count(before, axis=1)  # distinct: ties go by index
    low = jnp.min(jnp.where(rank == (number - 1) // 2, d, jnp.inf), axis=0)
    high = jnp.min(jnp.where(rank == number // 2, d, jnp.inf), axis=0)
    return low / 2 + high / 2


@cache
def _warm(iterations: int):
    def solve(points, present, weights, value):
        def sum_of(d):
            return fixed_sum(jnp.where(present, d, 0), axis=0)

        ahead = weighted_mean(points, weights)
        from_weights, from_value = distances(points, ahead), distances(points, value)
        better = sum_of(from_weights) <= sum_of(from_value)
        z = jnp.where(better, ahead, value)
        smoothing = SMOOTHING * middle_distance(jnp.where(better, from_weights, from_value), present)
        smoothing = jnp.maximum(smoothing, jnp.finfo(points.dtype).tiny)

        def step(carry, _):
            z, _ = carry
            pull = smoothing / jnp.maximum(
                smoothing, distances(points, z)
            )  # at most 1: 1 / tiny would overflow in the sum
            pull = jnp.where(present, pull, 0)
            weights = pull / fixed_sum(pull, axis=0)
            return (weighted_mean(points, weights), weights), None

        return lax.scan(step, (z, weights), length=iterations)[0]

    return lanes_last(solve)


def warm_start(num_points: int, dim: int, dtype, present=None) -> Warm:
    """Before the first median: equal weights of the present points [N], value 0."""
    present = jnp.ones(num_points, dtype) if present is None else present.astype(dtype)
    return Warm(present / fixed_sum(present), jnp.zeros(dim, dtype))


def warm_median(points, last: Warm, iterations: int = 8, *, present=None) -> Warm:
    """Geometric median of points [N, p] from a warm start: a fixed number of Weiszfeld iterations, no sorting. For step code.

    Two starts, the mean of the new points by the last weights and the last value; the one with the smaller sum of distances is kept
    (the first on a tie), and 1e-4 of the median distance from it smooths all iterations. points: finite, norms below 1e18 in float32 (clamp messages
    first). Elementwise throughout; vmap and jit as you like. All points equal: that point. iterations >= 1, static.
    present: [N] bool, None: all; at least one. Points that are not present are finite and read by nothing, provided their last weights are 0
    (give `warm_start` the same).
    """
    if points.shape[0] == 1:  # nothing to iterate; a compiler that cancels a / a here would square the smallest float
        return Warm(jnp.ones(1, points.dtype), points[0])
    present = jnp.ones(points.shape[0], bool) if present is None else present
    return Warm(*reversed(_warm(iterations)(points, present, last.weights, last.value)))
