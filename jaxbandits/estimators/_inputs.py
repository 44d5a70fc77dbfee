"""What the estimators of one sample share: their inputs, and a root finder."""

from collections.abc import Callable
from numbers import Real
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.typing import Array, Float, Matrix, Vector
from jaxbandits.validation import number

Roots: TypeAlias = Float[Array, "..."]


def sample(x: Vector) -> Float[Array, " n"]:
    """A sample [n] of at least one value, as floats; infinities and NaN count as 0."""
    x = jnp.asarray(x)
    if x.ndim != 1 or x.shape[0] == 0:
        raise ValueError(f"x has shape {x.shape}; it must be [n] with n >= 1: use vmap for leading axes")
    x = x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.float32)
    return jnp.where(jnp.isfinite(x), x, 0)


def cloud(points: Matrix) -> Float[Array, "N p"]:
    """Points [N, p] as floats; N and p are at least 1."""
    points = jnp.asarray(points)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(
            f"points has shape {points.shape}; it must be [N, p], N and p at least 1: use vmap for leading axes"
        )
    return points if jnp.issubdtype(points.dtype, jnp.floating) else points.astype(jnp.float32)


def checked(
    name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False, remedy: str = ""
) -> Any:
    """A number in [low, high) or (low, high). Traced values pass, since their range cannot be seen."""
    if isinstance(value, Real | np.generic):
        return number(name, value, low, high, open_low=open_low, open_high=True, remedy=remedy)
    return value


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
