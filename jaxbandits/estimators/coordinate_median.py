"""The coordinatewise median (Yin, Chen, Ramchandran and Bartlett 2018)."""

from typing import Annotated

import jax
import jax.numpy as jnp
from annotated_doc import Doc

from jaxbandits.estimators._inputs import Points, cloud, finite
from jaxbandits.estimators.median_of_means import middle
from jaxbandits.typing import Array, Float
from jaxbandits.validation import checked


@checked(source="Yin et al. 2018, Definition 1; `docs/formulas/byzantine.md#aggregation-rules`.")
def coordinate_median(
    points: Annotated[Points, Doc("Points, N and p at least 1. Infinities and NaN count as 0.")],
) -> Annotated[Float[Array, " p"], Doc("Of an even number of points the mean of the middle two.")]:
    """The median of every coordinate.

    Raises
    ------
    ValueError
        If `points` has another shape.

    >>> import jax.numpy as jnp
    >>> coordinate_median(jnp.array([[0.0, 5.0], [1.0, 4.0], [1e30, -1e30]])).tolist()
    [1.0, 4.0]
    """
    return _jitted(finite(cloud(points)))


def median_of_coordinates(points: Float[Array, "N p"]) -> Float[Array, " p"]:
    """`coordinate_median` of finite points, for step code."""
    return middle(jnp.sort(points, axis=0), points.shape[0], axis=0)


_jitted = jax.jit(median_of_coordinates)
