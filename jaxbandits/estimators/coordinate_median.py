"""The coordinatewise median (Yin, Chen, Ramchandran and Bartlett 2018)."""

import jax
import jax.numpy as jnp

from jaxbandits.estimators._inputs import cloud
from jaxbandits.estimators.median_of_means import middle
from jaxbandits.typing import Array, Float, Matrix


def coordinate_median(points: Matrix) -> Float[Array, " p"]:
    """The median of every coordinate.

    Parameters
    ----------
    points : array [N, p]
        Points, N and p at least 1. Infinities and NaN count as 0.

    Returns
    -------
    array [p]
        Of an even number of points the mean of the middle two.

    Raises
    ------
    ValueError
        If `points` has another shape.

    References
    ----------
    Yin et al. 2018, Definition 1; `docs/formulas/byzantine.md#aggregation-rules`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> coordinate_median(jnp.array([[0.0, 5.0], [1.0, 4.0], [1e30, -1e30]])).tolist()
    [1.0, 4.0]
    """
    points = cloud(points)
    return _jitted(jnp.where(jnp.isfinite(points), points, 0))


def median_of_coordinates(points: Float[Array, "N p"]) -> Float[Array, " p"]:
    """`coordinate_median` of finite points, for step code."""
    return middle(jnp.sort(points, axis=0), points.shape[0], axis=0)


_jitted = jax.jit(median_of_coordinates)
