"""Instruments: unit vectors in the place of the first factor of x x' and x y, aimed at what is known least.

Formulas: `docs/formulas/ldp_contextual.md#instrument`. Axes: [d] features.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp

from jaxbandits.declared import LATER, Axes, Doc
from jaxbandits.estimators._inputs import of_axes
from jaxbandits.numerics import floats, packed, safe_norm
from jaxbandits.numerics.eliminations import general_inverse, solve_transposed
from jaxbandits.numerics.packed import Vector, map_features, multiply_transposed, split_features, stack_features
from jaxbandits.typing import Array, Float, Matrix
from jaxbandits.typing import Vector as Numbers
from jaxbandits.validation import declare


class Instrument(NamedTuple):
    """Where a user aims, and how little is known there."""

    direction: Float[Array, " d"]  # of norm 1, or 0
    width: Float[Array, ""]


def unit_vector(side: Vector) -> tuple[Vector, Array]:
    """u / |u|, 0 where u is 0 or not finite, and |u|."""
    size = safe_norm(stack_features(side))
    good = jnp.isfinite(size) & (size > 0)
    shrink = jnp.where(size > 2.0**100, 2.0**-64, 1.0).astype(size.dtype)  # else its reciprocal may count as 0
    scale = jnp.where(good, 1 / jnp.where(good, size * shrink, 1), 0)
    return map_features(lambda x: jnp.where(good, x, 0) * shrink * scale, side), size


@declare(source="Ours: `docs/formulas/ldp_contextual.md#instrument`.")
def instrument(
    matrix: Annotated[Matrix, LATER, Axes(2, "array of shape [d, d]"), Doc("J, which need not be symmetric.")],
    feature: Annotated[Numbers, LATER, Axes(1, "array of shape [d]"), Doc("x, with d >= 1.")],
) -> Instrument:
    """The unit vector psi along J'^-1 x, and its length `|J'^-1 x|`.

    Of all unit vectors it is the one that, put in the place of the first x of x x', most shrinks how little J knows of
    x: `|J'^-1 x|` = w becomes w / (1 + w) when psi x' is added to J.

    Returns:
        Instrument: `direction` [d] and `width`. The direction is 0 where the length is 0 or not finite.

    Raises:
        ValueError: If a shape is wrong.

    Note:
        By elimination with row pivoting. A pivot of exactly 0 counts as the smallest normal number. It works under jit
        and vmap; leading axes need vmap.

    >>> import jax.numpy as jnp
    >>> found = instrument(jnp.array([[2.0, 0.0], [0.0, 8.0]]), jnp.array([0.0, 1.0]))
    >>> found.direction.tolist(), float(found.width)
    ([0.0, 1.0], 0.125)
    """
    known, x = of_axes("matrix", matrix, "[d, d]", " with d >= 1"), of_axes("feature", feature, "[d]", " with d >= 1")
    dim = len(x)
    if known.shape != (dim, dim):
        raise ValueError(f"matrix has shape {known.shape}; it must be [d, d] for a feature of d = {dim} numbers")
    known = floats(known)
    x = x.astype(known.dtype)
    if dim > packed.MAX_UNROLLED_DIM:
        side: Vector = solve_transposed(known, x[None])[0]
    else:
        side = multiply_transposed(general_inverse(tuple(known.reshape(-1)), dim), split_features(x))
    direction, width = unit_vector(side)
    return Instrument(stack_features(direction), width)
