"""The top eigenvector of the covariance of X_j = u_{a_j} r_j, by repeated squaring, for many lanes at once.

See `docs/formulas/robust_linear.md#top-eigenvector`. Below `MIN_DIM_OF_PRODUCT` features everything is elementwise on
[d, d, L]: the last axis, the lane, fills the vector registers for any d. From there on matrices lie lane by lane, for
the library's matrix product. Lanes are taken in tiles whose matrices fit the first-level cache, and each tile stops
squaring by itself.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from jaxbandits.estimators._lanes import sum_by_halves
from jaxbandits.numerics import count, materialize, materialize_all
from jaxbandits.typing import Array, Bool, Float

MAX_SQUARINGS = 16  # as many as 2^16 steps of the power method
MIN_DIM_OF_PRODUCT = 13  # from this dimension on the library's matrix product is used
TILE_ENTRIES = 8192  # numbers in the matrices of a tile of lanes


def top_eigenvector(
    weights: Float[Array, "K L"],
    directions: Float[Array, "K d L"],
    mean: Float[Array, "d L"],
    wanted: Bool[Array, " L"],
    *,
    tiles: bool = True,
) -> Float[Array, "d L"]:
    """Unit vector v of the largest eigenvalue of sum_a weights_a u_a u_a' - mean mean', with u = `directions`.

    v is 0 for a zero matrix. Where a lane is not `wanted`, v is any finite vector. L is a multiple of eight. tiles:
    whether lanes are taken in tiles one after another, for the cache of a CPU; else all at once, elementwise.
    """
    d, lanes = mean.shape
    if not tiles:
        return _elementwise(weights, directions, mean, wanted)
    if d >= MIN_DIM_OF_PRODUCT:
        return _by_lane(weights, jnp.moveaxis(directions, -1, 0), mean, wanted)
    size = lanes & -lanes  # the largest power of two that divides L
    while size > 8 and size * d * d > TILE_ENTRIES:
        size //= 2
    if size == lanes:
        return _elementwise(weights, directions, mean, wanted)

    def tile(i, v):
        of_tile = [lax.dynamic_slice_in_dim(x, i * size, size, -1) for x in (weights, directions, mean, wanted)]
        return lax.dynamic_update_slice_in_dim(v, _elementwise(*of_tile), i * size, -1)

    return lax.fori_loop(0, lanes // size, tile, jnp.zeros_like(mean))


def _elementwise(weights: Array, directions: Array, mean: Array, wanted: Array) -> Float[Array, "d L"]:
    """`top_eigenvector` without tiles and without matrix products."""
    d = mean.shape[0]

    def square(x):
        result = x[:, 0, None] * x[0, None]
        for k in range(1, d):
            result = result + x[:, k, None] * x[k, None]
        return result

    matrix = _second(weights, directions) - mean[:, None] * mean[None, :]
    largest = jnp.max(jnp.abs(matrix), (0, 1))
    power = _square_until_pure(
        square, lambda x: sum_by_halves(_diagonal(x)), lambda x: x[None, None], matrix, largest, wanted
    )
    tiny = jnp.finfo(power.dtype).tiny
    column = materialize(jnp.argmax(_diagonal(power), axis=0).astype(jnp.int32))
    chosen = jnp.arange(d, dtype=jnp.int32)[:, None, None] == column[None, None]
    v = materialize(sum_by_halves(jnp.where(chosen, power, 0)))
    return v / materialize(jnp.sqrt(jnp.maximum(sum_by_halves(v * v), tiny)))[None]


def _by_lane(weights: Array, directions: Float[Array, "L K d"], mean: Array, wanted: Array) -> Float[Array, "d L"]:
    """`top_eigenvector` for many features: eight lanes at a time, of those that are wanted."""
    tiny = jnp.finfo(mean.dtype).tiny
    weights, mean = weights.T, mean.T

    def trace(x):
        return sum_by_halves(jnp.diagonal(x, axis1=1, axis2=2).T)

    def as_matrices(x):
        return x[:, None, None]

    def tile(i, v):
        lane = lax.dynamic_slice_in_dim(order, i * 8, 8)
        u, w, centre = directions[lane], weights[lane], mean[lane]
        matrix = _product((u * w[:, :, None]).swapaxes(1, 2), u) - centre[:, :, None] * centre[:, None, :]
        largest = jnp.max(jnp.abs(matrix), (1, 2))
        power = _square_until_pure(lambda x: _product(x, x), trace, as_matrices, matrix, largest, wanted[lane])
        column = jnp.argmax(jnp.diagonal(power, axis1=1, axis2=2), axis=1)
        return v.at[lane].set(jnp.take_along_axis(power, column[:, None, None], axis=1)[:, 0], unique_indices=True)

    order = jnp.argsort(~wanted, stable=True).astype(jnp.int32)
    v = lax.fori_loop(0, (count(wanted) + 7) // 8, tile, jnp.zeros_like(mean)).T
    return v / materialize(jnp.sqrt(jnp.maximum(sum_by_halves(v * v), tiny)))[None]


def _square_until_pure(
    square: Callable, trace: Callable, over: Callable, matrix: Array, largest: Array, wanted: Bool[Array, " L"]
) -> Array:
    """Powers of the matrices, squared until those of all lanes have rank one.

    A lane that is done keeps its power: how long others take must not show in its bits. `largest` is the largest
    absolute value of an entry; the trace would not do, as rounding may leave a matrix of nearly nothing a trace
    below 0. `as_matrices` gives numbers [L] the axes of matrices.
    """
    tiny = jnp.finfo(matrix.dtype).tiny
    # Let x be the share of the other eigenvalues in the trace before the last squaring, which makes it x^2.
    # The purity is then 1 - 2 x, and x^2 may be eps.
    pure = 1 - 2 * float(jnp.finfo(matrix.dtype).eps) ** 0.5

    def twice(carry):
        # Two squarings at a time, since the loop copies what it carries.
        step, power, done = carry
        second = square(power)
        fourth = square(second)
        size, before = trace(fourth), trace(second)
        inverse, purity = materialize_all([1 / jnp.maximum(size, tiny), size / jnp.maximum(before * before, tiny)])
        return step + 2, jnp.where(over(done), power, fourth * over(inverse)), done | (purity >= pure)

    def some_impure(carry):
        return (carry[0] < MAX_SQUARINGS) & ~jnp.all(carry[2])

    inverse = materialize(1 / jnp.maximum(largest, tiny))
    return lax.while_loop(some_impure, twice, (jnp.int32(0), matrix * over(inverse), ~(wanted & (largest > 0))))[1]


def _product(x: Float[Array, "L m k"], y: Float[Array, "L k n"]) -> Float[Array, "L m n"]:
    """The matrix products of all lanes."""
    return lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)


def _diagonal(x: Float[Array, "d d L"]) -> Float[Array, "d L"]:
    """The diagonals of all lanes."""
    d = x.shape[0]
    return x.reshape(d * d, -1)[:: d + 1]


def _second(weights: Array, directions: Array) -> Float[Array, "d d L"]:
    """The moments sum_a weights_a u_a u_a', eight arms at a time so that no array of size K d^2 is formed."""
    num_arms, d, lanes = directions.shape
    pad = -num_arms % 8
    u = jnp.pad(directions, ((0, pad), (0, 0), (0, 0))).reshape(-1, 8, d, lanes)
    w = jnp.pad(weights, ((0, pad), (0, 0))).reshape(-1, 8, lanes)

    def add(b, moment):
        x, y = u[b], w[b][:, None] * u[b]
        for a in range(8):
            moment = moment + x[a][:, None] * y[a][None]
        return moment

    return lax.fori_loop(0, len(u), add, jnp.zeros((d, d, lanes), u.dtype))
