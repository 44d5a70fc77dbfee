"""What estimators are given, checked and as floats."""

from typing import Annotated, Any

import jax.numpy as jnp

from jaxbandits.declared import LATER, Axes, Doc
from jaxbandits.numerics import floats
from jaxbandits.typing import Array, Float, Matrix, Vector

Sample = Annotated[
    Vector,
    LATER,
    Axes(1, "array of shape [n]"),
    Doc("The values, at least one, in any order; infinities and NaN count as 0."),
]
Points = Annotated[
    Matrix, LATER, Axes(2, "array of shape [N, p]"), Doc("Points, N and p at least 1. Infinities and NaN count as 0.")
]


def finite(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The same array with 0 in the place of infinities and NaN."""
    return jnp.where(jnp.isfinite(x), x, 0)


def of_axes(name: str, x: Any, axes: str, sizes: str) -> Array:
    """An array of as many axes as `axes` names, none of them empty; sizes: the message's words for that."""
    x = jnp.asarray(x)
    if x.ndim != axes.count(",") + 1 or 0 in x.shape:
        raise ValueError(f"{name} has shape {x.shape}; it must be {axes}{sizes}: use vmap for leading axes")
    return x


def sample(x: Vector) -> Float[Array, " n"]:
    """A sample [n] of at least one value, as floats; infinities and NaN count as 0."""
    return finite(floats(of_axes("x", x, "[n]", " with n >= 1")))


def cloud(points: Matrix) -> Float[Array, "N p"]:
    """Points [N, p] as floats; N and p are at least 1."""
    return floats(of_axes("points", points, "[N, p]", ", N and p at least 1"))
