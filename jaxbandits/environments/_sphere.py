"""Directions uniform on the unit sphere from counter blocks, for environments that draw many of them a play."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import materialize, materialize_all
from jaxbandits.numerics.sums import feature_sum
from jaxbandits.random import to_uniform
from jaxbandits.typing import Array, Float, UInt32


def on_circle(bits: UInt32[Array, "..."], dtype: type[Any]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Both coordinates of a point uniform on the unit circle, from a uint32 word.

    The low 30 bits give the angle from the nearest axis, the two others the axis. In float32 sine and cosine are
    Taylor series within 4e-7, without branches.
    """
    angle = (bits << np.uint32(2)).astype(jnp.int32).astype(dtype) * dtype(math.pi / 4 * 2.0**-31)
    if dtype == jnp.float64:
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
    else:
        square = -angle * angle
        sine = angle * (1 + square * (1 / 6 + square * (1 / 120 + square * (1 / 5040))))
        cosine = 1 + square * (1 / 2 + square * (1 / 24 + square * (1 / 720 + square * (1 / 40320))))
    across = (bits & np.uint32(1 << 31)) != 0
    cosine = jnp.where((bits & np.uint32(1 << 30)) != 0, -cosine, cosine)
    return jnp.where(across, sine, cosine), jnp.where(across, cosine, sine)


def direction(words: Callable[[int], tuple[Array, Array]], dim: int, dtype: type[Any]) -> list[Array]:
    """`dim` components of directions uniform on the unit sphere of R^dim.

    words(k): both words of every direction's counter block k.

    Up to four dimensions a direction takes one counter block and no logarithm: in two a point of the circle; in three
    Archimedes' theorem; in four two circles whose squared radii are u and 1 - u, u uniform (21 bits for each circle,
    22 for u). Above, both words of a block give two coordinates of a Gaussian vector by the method of Box and Muller,
    from an exponential for their squared length and an angle. An inverse error function for each coordinate would be
    most of the cost of a step.
    """
    if dim > 4:
        x, squares = _half_variance(words, dim, dtype)
        inverse = jax.lax.rsqrt(squares)
        return [z * inverse for z in x]
    low, high = words(0)
    if dim == 1:
        return [jnp.where(low >> np.uint32(31) == 0, -1, 1).astype(dtype)]
    if dim == 2:
        return list(on_circle(low, dtype))
    if dim == 3:
        height = 2 * to_uniform(low, dtype) - 1
        radius = jnp.sqrt(1 - height * height)
        return [radius * z for z in on_circle(high, dtype)] + [height]
    # the low 11 bits of both words are the 22 of u
    share = to_uniform((low << np.uint32(21)) | ((high & np.uint32(2047)) << np.uint32(10)), dtype)
    inner, outer = jnp.sqrt(share), jnp.sqrt(1 - share)
    first, second = on_circle(low & ~np.uint32(2047), dtype), on_circle(high & ~np.uint32(2047), dtype)
    return [inner * z for z in first] + [outer * z for z in second]


def gaussian(words: Callable[[int], tuple[Array, Array]], dim: int, dtype: type[Any]) -> list[Array]:
    """`dim` independent standard normal components, by the method of Box and Muller.

    words(k): both words of every vector's counter block k.
    """
    return [math.sqrt(2) * z for z in _half_variance(words, dim, dtype)[0]]


def many_features(length: Array, angle: Array, dim: int, dtype: type[Any], unit: bool) -> Float[Array, "... dim"]:
    """Directions, or independent normal components of many dimensions, as one array: first all cosines, then all sines.

    length, angle: the words [..., blocks] of every vector's counter blocks, used as `direction` and `gaussian` do.
    """
    square = -jnp.log(to_uniform(length, dtype))
    cosine, sine = on_circle(angle, dtype)
    radius = jnp.sqrt(square)
    blocks = length.shape[-1]
    if 2 * blocks > dim:
        square = jnp.where(np.arange(blocks) == blocks - 1, square * cosine * cosine, square)
    cosine, sine, square = materialize_all([radius * cosine, radius * sine, square])
    scale = materialize(jax.lax.rsqrt(feature_sum(square))[..., None] if unit else jnp.asarray(math.sqrt(2), dtype))
    return jnp.concatenate([cosine, sine[..., : dim - blocks]], -1) * scale


def _half_variance(words, dim: int, dtype) -> tuple[list, Any]:
    """Normal components of variance 1/2, and their squared norm."""
    x: list = []
    squares: Any = 0.0  # from the exponentials, within 1e-6: from the coordinates it takes half as long again
    for pair in range((dim + 1) // 2):
        length, angle = words(pair)
        square = -jnp.log(to_uniform(length, dtype))
        cosine, sine = on_circle(angle, dtype)
        radius = jnp.sqrt(square)
        both = 2 * pair + 1 < dim
        x += [radius * cosine, radius * sine] if both else [radius * cosine]
        squares = squares + (square if both else square * cosine * cosine)
    return x, squares
