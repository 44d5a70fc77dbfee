"""Rules that make one statistic of N agents' (Byzantine-robust federated linear bandits, sections 3 and 6 of the specification).

The public `estimators` take these numbers from the host, here they are data. A rule sees points [N, p]: vectors, or symmetric matrices packed so that their norm is the Frobenius norm. Axes: [N] agents, [p] coordinates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.estimators.weiszfeld import warm_median, warm_start
from jaxbandits.numerics import argmin, count, fixed_sum, one_hot


class Crowd(NamedTuple):
    """What a rule may know of the agents."""

    num_attacked: Any  # [] N_1, believed
    num_groups: Any  # [] P >= 1
    group: Any  # [N] int32 in [0, P), () where no rule asks


class Rule(NamedTuple):
    """One way to aggregate."""

    begin: Callable  # num_agents, length, dtype -> memory
    aggregate: Callable  # points [N, p], memory, Crowd -> value [p], memory
    iterative: bool = False  # it depends on `iterations`
    grouped: bool = False  # it reads `Crowd.group`


def _no_memory(num_agents, length, dtype):
    return ()


def whole(number):
    """A number of agents as int32, whatever type the parameters came in."""
    return jnp.asarray(number).astype(jnp.int32)


def mean(points, memory, crowd):
    """The mean over all agents: one attacker moves it anywhere."""
    return fixed_sum(points, axis=0) / points.shape[0], memory


def geometric_median(iterations: int) -> Rule:
    """argmin of the mean distance, by Weiszfeld iterations from the last weights or the last value."""

    def aggregate(points, memory, crowd):
        memory = warm_median(points, memory, iterations)
        return memory.value, memory

    return Rule(warm_start, aggregate, iterative=True)


def median_of_means(iterations: int) -> Rule:
    """The geometric median of the means of P random groups of agents, sizes within one of each other; P = 1: the mean."""

    def rows(num_agents):  # 3 N_1 is at most 3 floor(N / 4 + 1/2)
        return max(1, min(num_agents, 3 * ((num_agents + 2) // 4)))

    def begin(num_agents, length, dtype):
        return warm_start(rows(num_agents), length, dtype)

    def aggregate(points, memory, crowd):
        row = jnp.arange(rows(points.shape[0]), dtype=jnp.int32)
        member = crowd.group == row[:, None]
        size = count(member)
        total = fixed_sum(jnp.where(member[:, :, None], points, 0), axis=1)
        means = total / jnp.maximum(size, 1).astype(points.dtype)[:, None]
        weights = jnp.where(size > 0, memory.weights, 0)  # P is data: at first rows without a group have weight
        memory = memory._replace(weights=weights / fixed_sum(weights))
        memory = warm_median(means, memory, iterations, present=size > 0)
        return memory.value, memory

    return Rule(begin, aggregate, iterative=True, grouped=True)


def middle(points, drop):
    """Coordinate by coordinate the mean without the `drop` smallest and largest of [N, p]."""
    n = points.shape[0]
    place = jnp.arange(n, dtype=jnp.int32)[:, None]
    kept = jnp.where((place >= drop) & (place < n - drop), jnp.sort(points, axis=0), 0)
    return fixed_sum(kept, axis=0) / jnp.asarray(n - 2 * drop, points.dtype)


def trimmed_mean(points, memory, crowd):
    """Without the N_1 smallest and largest of each coordinate (Yin et al. 2018); the median where nothing would be left."""
    return middle(points, jnp.minimum(whole(crowd.num_attacked), (points.shape[0] - 1) // 2)), memory


def coordinate_median(points, memory, crowd):
    """The median of each coordinate, of an even number the mean of the middle two (Yin et al. 2018)."""
    return middle(points, (points.shape[0] - 1) // 2), memory


def krum(points, memory, crowd):
    """The point with the least sum of squared distances to its max(1, N - N_1 - 2) nearest others (Blanchard et al. 2017).

    Ties go to the lowest agent. With N_1 >= (N - 2) / 2 colluders have as many neighbours as honest agents, and are chosen.
    """
    n = points.shape[0]
    squared = fixed_sum((points[:, None] - points[None]) ** 2)
    others = jnp.sort(jnp.where(jnp.eye(n, dtype=bool), jnp.inf, squared), axis=1)
    near = jnp.arange(n, dtype=jnp.int32) < jnp.maximum(1, n - 2 - whole(crowd.num_attacked))
    chosen = one_hot(argmin(fixed_sum(jnp.where(near, others, 0))), n)
    return fixed_sum(jnp.where(chosen[:, None], points, 0), axis=0), memory


def _plain(aggregate) -> Callable:
    return lambda iterations: Rule(_no_memory, aggregate)


RULES = {
    "geometric_median": geometric_median,
    "median_of_means": median_of_means,
    "mean": _plain(mean),
    "coordinate_median": _plain(coordinate_median),
    "krum": _plain(krum),
    "trimmed_mean": _plain(trimmed_mean),
}
