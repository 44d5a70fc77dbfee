"""The geometric median of group means."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.estimators.geometric_median import geometric_median
from jaxbandits.numerics import count, fixed_sum
from jaxbandits.typing import Array, Float, Int, Matrix, Vector
from jaxbandits.validation import integer


def middle(ordered: Float[Array, "..."], number: Any, axis: int = -1) -> Float[Array, "..."]:
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


def median_of_means(points: Matrix, groups: Vector, num_groups: int) -> Float[Array, " p"]:
    """The geometric median of the means of groups of points: on a line, p = 1, the median.

    Parameters
    ----------
    points : array [N, p]
        Points, N at least 1. Infinities and NaN count as 0.
    groups : array [N]
        The group of each point, integers in [0, num_groups). A group without points has no mean and is left out.
    num_groups : int
        How many groups there are, at least 1. A number on the host.

    Returns
    -------
    array [p]
        The median; of an even number of means on a line the mean of the middle two.

    Raises
    ------
    ValueError
        If `points` and `groups` have other shapes or `num_groups` is below 1.

    Notes
    -----
    Sums run in a fixed order.

    References
    ----------
    `docs/formulas/byzantine.md#median-of-means`; for p = 1 Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 2
    (recalled, not read again).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> points = jnp.array([[1.0], [3.0], [1e9], [4.0], [6.0]])
    >>> median_of_means(points, jnp.array([0, 0, 1, 2, 2]), 3).tolist()
    [5.0]
    """
    points, groups = jnp.asarray(points), jnp.asarray(groups)
    num_groups = integer("num_groups", num_groups, 1)
    points = points if jnp.issubdtype(points.dtype, jnp.floating) else points.astype(jnp.float32)
    if points.ndim != 2 or points.shape[0] == 0 or groups.shape != points.shape[:1]:
        raise ValueError(f"points has shape {points.shape}, groups {groups.shape}; they must be [N, p] and [N], N >= 1")
    return _middle_of_groups(jnp.where(jnp.isfinite(points), points, 0), groups, num_groups)


@partial(jax.jit, static_argnums=2)
def _middle_of_groups(points, groups, num_groups):
    # one group after the other: memory does not grow with their number
    means, sizes = jax.lax.map(
        lambda group: group_mean(points, groups, group), jnp.arange(num_groups, dtype=groups.dtype)
    )
    if points.shape[1] > 1:
        return geometric_median(means, weights=sizes > 0).value
    ordered = jnp.sort(jnp.where(sizes[:, None] > 0, means, jnp.inf), axis=0)
    return middle(ordered.T, count(sizes > 0))
