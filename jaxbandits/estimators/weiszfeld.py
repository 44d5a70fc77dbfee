"""Smoothed Weiszfeld iterations: the kernel of every geometric median here.

`pulls` and `step` are one iteration. Three functions repeat it: `warm_median` (federated rules, a fixed number
of steps from the last median), `plain_median` (many points, no certificate) and `geometric_median` (its own
file, with a certificate).

Axes: [N] points, [p] coordinates, [...] any number of lanes, which lie in the last axes: a vector register then
holds one number of eight problems, and sums over N and p are plain elementwise additions in a fixed order.

References: Pillutla, Kakade and Harchaoui 2019 (RFA); `docs/formulas/byzantine.md#weiszfeld` and
`docs/formulas/byzantine.md#starting-point`.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import count, fixed_sum, materialize
from jaxbandits.numerics.device_forms import lane_kernel
from jaxbandits.typing import Array, Bool, Float

SMOOTHING = 1e-4  # nu_s, in units of the median distance: smaller distances count as this much


class Warm(NamedTuple):
    """A median and the weights that gave it: the two starts of the next one."""

    weights: Float[Array, " N"]  # sum 1
    value: Float[Array, " p"]


def distances(points: Float[Array, "N p ..."], z: Float[Array, "p ..."]) -> Float[Array, "N ..."]:
    """||z - z_i||."""
    away = points - z[None]
    return jnp.sqrt(fixed_sum(away * away, axis=1))


def weighted_mean(points: Float[Array, "N p ..."], weights: Float[Array, "N ..."]) -> Float[Array, "p ..."]:
    """Sum of weights times points, for weights of sum 1."""
    return fixed_sum(points * weights[:, None], axis=0)


def pulls(
    points: Float[Array, "N p ..."], weights: Float[Array, "N ..."], z: Float[Array, "p ..."], smoothing: Any
) -> Float[Array, "N ..."]:
    """How strongly each point pulls the next iterate: its weight over its distance from z, at least `smoothing`."""
    least = smoothing[None] if jnp.ndim(smoothing) else smoothing
    return weights / jnp.maximum(least, distances(points, z))


def step(
    points: Float[Array, "N p ..."],
    weights: Float[Array, "N ..."],
    z: Float[Array, "p ..."],
    smoothing: Any,
    least_total: float = 0.0,
) -> Float[Array, "p ..."]:
    """One iteration from z.

    least_total: the sum of pulls counts as at least this, against 0 / 0 where no point has a weight.
    """
    pull = pulls(points, weights, z, smoothing)
    total = materialize(fixed_sum(pull, axis=0))
    return weighted_mean(points, pull) / (jnp.maximum(total, least_total) if least_total else total)[None]


def plain_median(
    points: Float[Array, "N p"], present: Bool[Array, " N"], *, iterations: int = 50, smoothing: float = 1e-8
) -> Float[Array, " p"]:
    """The geometric median of the present points by plain iterations from their mean; 0 where there is none.

    O(N p) an iteration. The certificate of `geometric_median` costs O(N^2), too much for thousands of points.
    smoothing: smaller distances count as this much.
    """
    weights, least_total = present.astype(points.dtype), float(jnp.finfo(points.dtype).tiny)
    mean = weighted_mean(points, weights) / jnp.maximum(fixed_sum(weights), least_total)
    return lax.fori_loop(0, iterations, lambda _, z: step(points, weights, z, smoothing, least_total), mean)


def middle_distance(d: Float[Array, "N ..."], present: Bool[Array, "N ..."]) -> Float[Array, "..."]:
    """The median of the present distances over the first axis: of an even number the mean of the middle two."""
    n, number = d.shape[0], jnp.maximum(count(present, axis=0), 1)
    d = jnp.where(present, d, jnp.inf)
    index = jnp.arange(n).reshape(n, *(1,) * (d.ndim - 1))
    before = (d[None] < d[:, None]) | ((d[None] == d[:, None]) & (index[None] < index[:, None]))
    rank = count(before, axis=1)  # distinct: ties go by index
    low = jnp.min(jnp.where(rank == ((number - 1) // 2)[None], d, jnp.inf), axis=0)
    high = jnp.min(jnp.where(rank == (number // 2)[None], d, jnp.inf), axis=0)
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

        # with weights of size `smoothing` a pull is at most 1: with 1 / tiny the sum would overflow
        equal = jnp.where(present, smoothing, 0)

        def next_pair(carry, _):
            pull = pulls(points, equal, carry[0], smoothing)
            weights = pull / fixed_sum(pull, axis=0)[None]
            return (weighted_mean(points, weights), weights), None

        return lax.scan(next_pair, (z, weights), length=iterations)[0]

    return lane_kernel(solve)


def warm_start(num_points: int, dim: int, dtype: Any, present: Bool[Array, " N"] | None = None) -> Warm:
    """What comes before the first median: equal weights of the present points, value 0."""
    weights = jnp.ones(num_points, dtype) if present is None else present.astype(dtype)
    return Warm(weights / fixed_sum(weights), jnp.zeros(dim, dtype))


def warm_median(
    points: Float[Array, "N p"], last: Warm, iterations: int = 8, *, present: Bool[Array, " N"] | None = None
) -> Warm:
    """The geometric median from a warm start, by a fixed number of Weiszfeld iterations without sorting. For step code.

    Points are finite, of norms below 1e18 in float32 (clamp messages first). present: which of them count, at least
    one; the last weights of the others must be 0 (give `warm_start` the same `present`), and nothing reads them then.

    There are two starts: the mean of the new points by the last weights, and the last value. The one with the
    smaller sum of distances is used, the first on a tie. 1e-4 of the median distance from it smooths all
    iterations. Equal points give that point. Everything is elementwise: `vmap` and `jit` as you like.
    """
    if points.shape[0] == 1:  # nothing to iterate; a compiler that cancels a / a here would square the smallest float
        return Warm(jnp.ones(1, points.dtype), points[0])
    present = jnp.ones(points.shape[0], bool) if present is None else present
    value, weights = _warm(iterations)(points, present, last.weights, last.value)
    return Warm(weights, value)
