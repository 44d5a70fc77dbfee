"""Rules that make one statistic of N agents' (Byzantine-robust federated linear bandits, sections 3 and 6 of the specification).

A rule sees points [N, p]: vectors, or symmetric matrices packed so that their norm is the Frobenius norm. Numbers of attackers
and groups are data. Axes: [N] agents, [p] coordinates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.estimators.weiszfeld import warm_median, warm_start
from jaxbandits.numerics import fixed_sum

MOST_GROUPS = 3 / 4  # of the agents: 3 N_1 for a quarter of them


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


def groups_of(uniforms, num_groups):
    """Group [N] of each agent at random, sizes within one of each other: its rank among uniforms [N], modulo P."""
    index = jnp.arange(len(uniforms), dtype=jnp.int32)
    before = (uniforms < uniforms[:, None]) | ((uniforms == uniforms[:, None]) & (index < index[:, None]))
    rank = jnp.sum(before, axis=1, dtype=jnp.int32)
    return rank % jnp.asarray(num_groups).astype(jnp.int32)


def mean(points, memory, crowd):
    """The mean over all agents: one attacker moves it anywhere."""
    return fixed_sum(points, axis=0) / points.shape[0], memory


def geometric_median(iterations: int) -> Rule:
    """argmin of the mean distance, by Weiszfeld iterations from the last weights or the last value."""

    def aggregate(points, memory, crowd):
        memory = warm_median(points, memory, iterations)
        return memory.value, memory

    return Rule(warm_start, aggregate, iterative=True)


def trimmed_mean(points, memory, crowd):
    """Coordinate by coordinate the mean without the N_1 smallest and largest; the median where nothing would be left."""
    n = points.shape[0]
    drop = jnp.minimum(jnp.asarray(crowd.num_attacked).astype(jnp.int32), (n - 1) // 2)
    place = jnp.arange(n, dtype=jnp.int32)[:, None]
    kept = jnp.where((place >= drop) & (place < n - drop), jnp.sort(points, axis=0), 0)
    return fixed_sum(kept, axis=0) / (n - 2 * drop).astype(points.dtype), memory


def _plain(aggregate) -> Callable:
    return lambda iterations: Rule(_no_memory, aggregate)


RULES = {
    "geometric_median": geometric_median,
    "mean": _plain(mean),
    "trimmed_mean": _plain(trimmed_mean),
}
