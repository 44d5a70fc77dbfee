"""Rules that make one statistic of N agents' statistics (`docs/formulas/byzantine.md#aggregation-rules`).

The arithmetic is that of `jaxbandits.estimators`, which take the number of attackers and of groups from the
host: here both are data. A rule sees points [N, p]: vectors, or symmetric matrices packed so that their norm is
the Frobenius norm. Axes: [N] agents, [p] coordinates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.estimators.geometric_median import warm_median, warm_start
from jaxbandits.estimators.middle_points import group_mean, krum_scores, median_of_coordinates
from jaxbandits.estimators.trimmed_mean import middle_mean
from jaxbandits.numerics import argmin, fixed_sum, one_hot
from jaxbandits.typing import Array, Float, Int, Numeric


class Crowd(NamedTuple):
    """What a rule may know of the agents."""

    num_attacked: Numeric  # N_1, the believed number of attackers: a number
    num_groups: Numeric  # P >= 1: a number
    group: Array | tuple[()]  # int32 [N], the group of each agent in [0, P); () where no rule asks


class Rule(NamedTuple):
    """One way to aggregate."""

    aggregate: Callable[..., Any]  # points [N, p], memory, Crowd -> value [p], memory
    begin: Callable[..., Any] = lambda num_agents, length, dtype: ()  # the memory
    iterative: bool = False  # whether it depends on `iterations`
    grouped: bool = False  # whether it reads `Crowd.group`


def whole(number: Numeric) -> Int[Array, ""]:
    """A number of agents as int32, whatever type the parameters came in."""
    return jnp.asarray(number).astype(jnp.int32)


def mean(points: Float[Array, "N p"], memory: Any, crowd: Crowd) -> tuple[Float[Array, " p"], Any]:
    """The mean over all agents: one attacker moves it anywhere."""
    return fixed_sum(points, axis=0) / points.shape[0], memory


def geometric_median(iterations: int) -> Rule:
    """argmin of the mean distance, by Weiszfeld iterations from the last weights or the last value."""

    def aggregate(points, memory, crowd):
        memory = warm_median(points, memory, iterations)
        return memory.value, memory

    return Rule(aggregate, warm_start, iterative=True)


def median_of_means(iterations: int) -> Rule:
    """The geometric median of the means of P random groups of agents, of sizes within one of each other.

    With P = 1 this is the mean.
    """

    def most_groups(num_agents):  # 3 N_1 is at most 3 floor(N / 4 + 1/2)
        return max(1, min(num_agents, 3 * ((num_agents + 2) // 4)))

    def begin(num_agents, length, dtype):
        return warm_start(most_groups(num_agents), length, dtype)

    def aggregate(points, memory, crowd):
        groups = jnp.arange(most_groups(points.shape[0]), dtype=jnp.int32)
        means, sizes = jax.vmap(group_mean, (None, None, 0))(points, crowd.group, groups)
        weights = jnp.where(sizes > 0, memory.weights, 0)  # P is data: at first rows without a group have weight
        memory = memory._replace(weights=weights / fixed_sum(weights))
        memory = warm_median(means, memory, iterations, present=sizes > 0)
        return memory.value, memory

    return Rule(aggregate, begin, iterative=True, grouped=True)


def trimmed_mean(points: Float[Array, "N p"], memory: Any, crowd: Crowd) -> tuple[Float[Array, " p"], Any]:
    """The mean without the N_1 smallest and largest of each coordinate (Yin et al. 2018).

    The median where nothing would be left.
    """
    num_agents = points.shape[0]
    drop = jnp.minimum(whole(crowd.num_attacked), (num_agents - 1) // 2)
    return middle_mean(jnp.sort(points, axis=0), drop, num_agents - drop, axis=0), memory


def coordinate_median(points: Float[Array, "N p"], memory: Any, crowd: Crowd) -> tuple[Float[Array, " p"], Any]:
    """The median of each coordinate, of an even number the mean of the middle two (Yin et al. 2018)."""
    return median_of_coordinates(points), memory


def krum(points: Float[Array, "N p"], memory: Any, crowd: Crowd) -> tuple[Float[Array, " p"], Any]:
    """The point that is closest to its max(1, N - N_1 - 2) nearest others (Blanchard et al. 2017).

    Ties go to the lowest agent. With N_1 >= (N - 1) / 2, two at least, colluders at one place have no other nearest
    neighbours than each other, and are chosen.
    """
    num_agents = points.shape[0]
    squares = fixed_sum((points[:, None] - points[None]) ** 2)
    neighbours = jnp.maximum(1, num_agents - 2 - whole(crowd.num_attacked))
    scores = krum_scores(squares, jnp.eye(num_agents, dtype=bool), neighbours)
    chosen = one_hot(argmin(scores), num_agents)
    return fixed_sum(jnp.where(chosen[:, None], points, 0), axis=0), memory


AGGREGATION_RULES: dict[str, Callable[[int], Rule]] = {
    "geometric_median": geometric_median,
    "median_of_means": median_of_means,
    "mean": lambda iterations: Rule(mean),
    "coordinate_median": lambda iterations: Rule(coordinate_median),
    "krum": lambda iterations: Rule(krum),
    "trimmed_mean": lambda iterations: Rule(trimmed_mean),
}
