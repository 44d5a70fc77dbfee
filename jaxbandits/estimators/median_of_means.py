"""The geometric median of group means."""

from functools import partial

import jax
import jax.numpy as jnp

from jaxbandits.estimators.geometric_median import geometric_median
from jaxbandits.numerics import count, fixed_sum
from jaxbandits.validation import integer


def middle(ordered, number):
    """Median [...] of the first `number` entries of rows in rising order [..., n]: the mean of the middle two of an even number."""
    low = jnp.take(ordered, (number - 1) // 2, axis=-1)
    high = jnp.take(ordered, number // 2, axis=-1)
    return low / 2 + high / 2


def median_of_means(points, groups, num_groups):
    """The geometric median of the groups' means: on a line, p = 1, the median.

    points: [N, p]; infinities and NaN count as 0. groups: [N] integers in [0, num_groups), the group of each point; a group without
    points has no mean and is left out. num_groups >= 1, a host number. Returns [p]; of an even number of means on a line the middle
    two are averaged. Raises ValueError for other shapes. Sums run in a fixed order.
    Source: specification of Byzantine-robust federated bandits, section 3; p = 1: Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 2
    (recalled, not re-read).

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
    def mean(group):
        mine = groups == group
        size = count(mine)
        return fixed_sum(jnp.where(mine[:, None], points, 0), axis=0) / jnp.maximum(size, 1).astype(points.dtype), size

    means, sizes = jax.lax.map(mean, jnp.arange(num_groups, dtype=groups.dtype))
    if points.shape[1] > 1:
        return geometric_median(means, weights=sizes > 0).value
    ordered = jnp.sort(jnp.where(sizes[:, None] > 0, means, jnp.inf), axis=0)
    return middle(ordered.T, count(sizes > 0))
