"""The geometric median of group means."""

from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_doc import Doc
from annotated_types import Ge

from jaxbandits.estimators._inputs import Points, finite, floats
from jaxbandits.estimators.geometric_median import geometric_median
from jaxbandits.numerics import count, fixed_sum
from jaxbandits.typing import Array, Float, Int, Vector
from jaxbandits.validation import checked


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


@checked(
    source="`docs/formulas/byzantine.md#median-of-means`; for p = 1 Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 2 "
    "(recalled, not read again)."
)
def median_of_means(
    points: Annotated[Points, Doc("Points, N at least 1. Infinities and NaN count as 0.")],
    groups: Vector,
    num_groups: Annotated[int, Ge(1), Doc("How many groups there are. A number on the host.")],
) -> Annotated[Float[Array, " p"], Doc("The median; of an even number of means on a line the mean of the middle two.")]:
    """The geometric median of the means of groups of points: on a line, p = 1, the median.

    Parameters
    ----------
    groups : array of shape [N]
        The group of each point, integers in [0, num_groups). A group without points has no mean and is left out.

    Raises
    ------
    ValueError
        If `points` and `groups` have other shapes or `num_groups` is below 1.

    Notes
    -----
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
    means, sizes = jax.lax.map(
        lambda group: group_mean(points, groups, group), jnp.arange(num_groups, dtype=groups.dtype)
    )
    if points.shape[1] > 1:
        return geometric_median(means, weights=sizes > 0).value
    ordered = jnp.sort(jnp.where(sizes[:, None] > 0, means, jnp.inf), axis=0)
    return middle(ordered.T, count(sizes > 0))
