"""What the estimators of one sample share: their inputs, and a root finder."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import jax
import jax.numpy as jnp
from annotated_doc import Doc

from jaxbandits.declared import LATER, Axes
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
Roots: TypeAlias = Float[Array, "..."]


def floats(x: Any) -> Float[Array, "..."]:
    """Numbers as floats: as they are, or integers and booleans in float32."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.float32)


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


def decreasing_root(
    function: Callable[[Roots], tuple[Roots, Roots]],
    start: Roots,
    low: Roots,
    high: Roots,
    scale: Any,
    wanted: Any = True,
) -> Roots:
    """Roots in [low, high] of decreasing functions, by Newton steps.

    Where a step would leave the bracket it is halved instead.
    `function` takes theta [...] and returns the values and the slopes of their negatives. Several roots are sought
    together; those that are not `wanted` stay at `start`. Roots are exact to four units in the last place of
    `|theta|` + scale.
    """
    eps = 4 * jnp.finfo(start.dtype).eps

    def pending(carry):
        return jnp.any(carry[3]) & (carry[4] < 200)

    def improve(carry):
        theta, low, high, todo, step = carry
        value, slope = function(theta)
        low, high = jnp.where(value > 0, theta, low), jnp.where(value < 0, theta, high)
        move = value / jnp.maximum(slope, jnp.finfo(slope.dtype).tiny)
        near = (jnp.abs(move) <= eps * (jnp.abs(theta) + scale)) | (high - low <= eps * (jnp.abs(theta) + scale))
        moved = theta + move
        inside = (moved > low) & (moved < high)
        moved = jnp.where(inside, moved, jnp.where(near, jnp.clip(moved, low, high), low / 2 + high / 2))
        return jnp.where(todo, moved, theta), low, high, todo & ~near, step + 1

    todo = jnp.broadcast_to(jnp.asarray(wanted), start.shape)
    start = jnp.where(todo, jnp.clip(start, low, high), start)
    return jax.lax.while_loop(pending, improve, (start, low, high, todo, jnp.int32(0)))[0]
