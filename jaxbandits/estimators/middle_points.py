"""The middle of points: medians of means of random groups, medians of coordinates, and Krum's point."""

from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp

from jaxbandits.declared import Doc, Ge
from jaxbandits.estimators._inputs import Points, cloud, finite, of_axes
from jaxbandits.estimators.geometric_median import geometric_median
from jaxbandits.numerics import argmin, count, fixed_sum, floats, pick
from jaxbandits.typing import Array, Bool, Float, Int, Numeric, Vector
from jaxbandits.validation import declare, integer


def middle(ordered: Float[Array, "..."], number: Numeric, axis: int = -1) -> Float[Array, "..."]:
    """Median of the first `number` entries along one axis, which are in rising order.

    Of an even number it is the mean of the middle two. number: an int, or data.
    """
    if isinstance(number, int):
        low, high = (jax.lax.index_in_dim(ordered, i, axis, keepdims=False) for i in ((number - 1) // 2, number // 2))
    else:
        low = jnp.take(ordered, (number - 1) // 2, axis=axis)
        high = jnp.take(ordered, number // 2, axis=axis)
    return low / 2 + high / 2


def group_mean(
    points: Float[Array, "N p"], groups: Int[Array, " N"], group: Int[Array, ""]
) -> tuple[Float[Array, " p"], Int[Array, ""]]:
    """The mean of one group of points and how many it has: 0 and 0 for an empty group."""
    members = groups == group
    size = count(members)
    total = fixed_sum(jnp.where(members[:, None], points, 0), axis=0)
    return total / jnp.maximum(size, 1).astype(points.dtype), size


@declare(
    source="`docs/formulas/byzantine.md#median-of-means`; for p = 1 Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 2 "
    "(recalled, not read again)."
)
def median_of_means(
    points: Points, groups: Vector, num_groups: Annotated[int, Ge(1)]
) -> Annotated[Float[Array, " p"], Doc("The median; of an even number of means on a line the mean of the middle two.")]:
    """The geometric median of the means of groups of points: on a line, p = 1, the median.

    Args:
        groups (array of shape [N]): The group of each point, integers in [0, num_groups). A group without points has no
            mean and is left out.
        num_groups: How many groups there are. A number on the host.

    Raises:
        ValueError: If `points` and `groups` have other shapes or `num_groups` is below 1.

    Note:
        Sums run in a fixed order.

    >>> import jax.numpy as jnp
    >>> points = jnp.array([[1.0], [3.0], [1e9], [4.0], [6.0]])
    >>> median_of_means(points, jnp.array([0, 0, 1, 2, 2]), 3).tolist()
    [5.0]
    """
    points, groups = floats(points), jnp.asarray(groups)
    if points.ndim != 2 or points.shape[0] == 0 or groups.shape != points.shape[:1]:
        raise ValueError(f"points has shape {points.shape}, groups {groups.shape}; they must be [N, p] and [N], N >= 1")
    return _middle_of_groups(finite(points), groups, num_groups)


@partial(jax.jit, static_argnums=2)
def _middle_of_groups(points, groups, num_groups):
    # one group after the other: memory does not grow with their number
    numbers = jnp.arange(num_groups, dtype=groups.dtype)
    means, sizes = jax.lax.map(lambda group: group_mean(points, groups, group), numbers)
    if points.shape[1] > 1:
        return geometric_median(means, weights=sizes > 0).value
    ordered = jnp.sort(jnp.where(sizes[:, None] > 0, means, jnp.inf), axis=0)
    return middle(ordered.T, count(sizes > 0))


@declare(source="`docs/formulas/byzantine.md#median-of-means`.")
def random_groups(uniforms: Vector, num_groups: int) -> Int[Array, " N"]:
    """The group of each of N points, every split into groups of nearly equal sizes being equally likely.

    Args:
        uniforms (array of shape [N]): Independent uniform variables, which decide. The caller draws them: nothing is
            drawn here.
        num_groups: Number of groups, from 1 to N. A host number.

    Returns:
        int32 array of shape [N]: The point with the r-th smallest uniform, r counted from 0, is in group r mod
            num_groups. Sizes differ by at most one.

    Raises:
        ValueError: If `uniforms` has another shape, or `num_groups` lies outside its range.

    Note:
        Of equal uniforms that of lower index counts as smaller.

    >>> import jax.numpy as jnp
    >>> random_groups(jnp.array([0.9, 0.1, 0.5, 0.3, 0.7]), 2).tolist()
    [0, 0, 0, 1, 1]
    """
    drawn = of_axes("uniforms", uniforms, "[N]", " with N >= 1")
    most = drawn.shape[0]
    return groups_of(drawn, integer("num_groups", num_groups, 1, most, remedy="a group has at least one point"))


def groups_of(uniforms: Float[Array, " N"], num_groups: Numeric) -> Int[Array, " N"]:
    """`random_groups` without checks, where the int32 number of groups may be traced."""
    index = jnp.arange(len(uniforms), dtype=jnp.int32)
    row, column = (uniforms[None], index[None]), (uniforms[:, None], index[:, None])
    before = (row[0] < column[0]) | ((row[0] == column[0]) & (row[1] < column[1]))
    return count(before) % num_groups


@declare(source="Yin et al. 2018, Definition 1; `docs/formulas/byzantine.md#aggregation-rules`.")
def coordinate_median(
    points: Points,
) -> Annotated[Float[Array, " p"], Doc("Of an even number of points the mean of the middle two.")]:
    """The median of every coordinate.

    Raises:
        ValueError: If `points` has another shape.

    >>> import jax.numpy as jnp
    >>> coordinate_median(jnp.array([[0.0, 5.0], [1.0, 4.0], [1e30, -1e30]])).tolist()
    [1.0, 4.0]
    """
    return _jitted(finite(cloud(points)))


def median_of_coordinates(points: Float[Array, "N p"]) -> Float[Array, " p"]:
    """`coordinate_median` of finite points, for step code."""
    return middle(jnp.sort(points, axis=0), points.shape[0], axis=0)


_jitted = jax.jit(median_of_coordinates)


@declare(source="Blanchard et al. 2017, section 4; `docs/formulas/byzantine.md#aggregation-rules`.")
def krum(
    points: Points, num_attacked: int
) -> Annotated[Float[Array, " p"], Doc("One of the points; the one of lowest index on ties.")]:
    """The point whose nearest neighbours are closest to it.

    Its score is the sum of squared distances to its max(1, N - num_attacked - 2) nearest other points.

    Args:
        points: Points, within 1e15 of each other in float32. Entries that are not finite count as 0. A single point is
            returned.
        num_attacked: How many points are believed to be attacked, in [0, N). A number on the host.

    Raises:
        ValueError: If `points` has another shape or `num_attacked` is out of range.

    Note:
        It is promised for fewer than (N - 2) / 2 attackers. From (N - 1) / 2 on, two at least, attackers at one place
        are each other's nearest neighbours and are picked. That is the rule.

    >>> import jax.numpy as jnp
    >>> krum(jnp.array([[0.0], [0.2], [0.3], [9.0], [8.0]]), 2).tolist()
    [0.20000000298023224]
    """
    points = cloud(points)
    attacked = integer("num_attacked", num_attacked, 0, points.shape[0] - 1, remedy="one of the points must be honest")
    return _most_central(finite(points), attacked)


def krum_scores(squares: Float[Array, "... N"], own: Bool[Array, "... N"], neighbours: Numeric) -> Float[Array, "..."]:
    """The sum of the `neighbours` least squared distances, a point's own left out. A lower score is better.

    neighbours: how many, as an int or as data; at most N - 1, and at most N where N is 1.
    """
    ordered = jnp.sort(jnp.where(own, jnp.inf, squares), axis=-1)
    if isinstance(neighbours, int):
        return fixed_sum(ordered[..., :neighbours])
    near = jnp.arange(ordered.shape[-1], dtype=jnp.int32) < neighbours
    return fixed_sum(jnp.where(near, ordered, 0))


@partial(jax.jit, static_argnums=1)
def _most_central(points, attacked):
    n = points.shape[0]
    if n == 1:
        return points[0]
    neighbours = min(max(1, n - attacked - 2), n - 1)

    def score_of_point(i):
        away = points - points[i][None]
        return krum_scores(fixed_sum(away * away), jnp.arange(n) == i, neighbours)

    # one point after the other: N^2 p numbers never lie side by side
    scores = jax.lax.map(score_of_point, jnp.arange(n))
    return pick(points.T, jnp.broadcast_to(argmin(scores), points.shape[1]))
