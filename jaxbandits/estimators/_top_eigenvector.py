"""The top eigenvector of the covariance of X_j = u_{a_j} r_j, by repeated squaring, for many lanes at once (spec robust_linear 6).

Below `DOT` features everything is elementwise on [d, d, lanes]: the last axis, the lane, fills the vector registers for any d. From
there on matrices lie lane by lane for the library's matrix product. Lanes are taken in tiles whose matrices fit the first-level cache
and which stop squaring by themselves.
"""

import jax.numpy as jnp
from jax import lax

from jaxbandits.estimators._lanes import total
from jaxbandits.numerics import count, materialize, materialize_all

SQUARINGS = 16  # at most: 2^16 steps of the power method
DOT = 13
TILE = 8192  # entries of a tile's matrices


def top_eigenvector(weights, directions, mean, wanted):
    """Unit vector v [d, L] of the largest eigenvalue of sum_a weights_a u_a u_a' - mean mean'; 0 for a zero matrix.

    weights: [K, L]; directions u: [K, d, L]; mean: [d, L]; wanted: [L] bool, elsewhere v is any finite vector.
    L is a multiple of eight. The library's matrix product is used from `DOT` features on.
    """
    d, lanes = mean.shape
    if d >= DOT:
        return _by_lane(weights, jnp.moveaxis(directions, -1, 0), mean, wanted)
    size = lanes & -lanes  # the largest power of two that divides L
    while size > 8 and size * d * d > TILE:
        size //= 2
    if size == lanes:
        return _elementwise(weights, directions, mean, wanted)

    def tile(i, v):
        own = [lax.dynamic_slice_in_dim(x, i * size, size, -1) for x in (weights, directions, mean, wanted)]
        return lax.dynamic_update_slice_in_dim(v, _elementwise(*own), i * size, -1)

    return lax.fori_loop(0, lanes // size, tile, jnp.zeros_like(mean))


def _elementwise(weights, directions, mean, wanted):
    d = mean.shape[0]
    tiny = jnp.finfo(mean.dtype).tiny

    def square(x):
        found = x[:, 0, None] * x[0, None]
        for k in range(1, d):
            found = found + x[:, k, None] * x[k, None]
        return found

    matrix = _second(weights, directions) - mean[:, None] * mean[None, :]
    power = _repeated(square, _trace, lambda x: x, matrix, jnp.max(jnp.abs(matrix), (0, 1)), wanted)
    column = materialize(jnp.argmax(_diagonal(power), axis=0).astype(jnp.int32))
    v = materialize(total(jnp.where(jnp.arange(d, dtype=jnp.int32)[:, None, None] == column, power, 0)))
    return v / materialize(jnp.sqrt(jnp.maximum(total(v * v), tiny)))


def _by_lane(weights, directions, mean, wanted):
    """directions: [L, K, d]. Eight lanes at a time, of those that are wanted."""
    tiny = jnp.finfo(mean.dtype).tiny
    weights, mean = weights.T, mean.T

    def trace(x):
        return total(jnp.diagonal(x, axis1=1, axis2=2).T)

    def over(x):
        return x[:, None, None]

    def tile(i, v):
        lane = lax.dynamic_slice_in_dim(order, i * 8, 8)
        u, w, centre = directions[lane], weights[lane], mean[lane]
        matrix = _product((u * w[:, :, None]).swapaxes(1, 2), u) - centre[:, :, None] * centre[:, None, :]
        largest = jnp.max(jnp.abs(matrix), (1, 2))
        power = _repeated(lambda x: _product(x, x), trace, over, matrix, largest, wanted[lane])
        column = jnp.argmax(jnp.diagonal(power, axis1=1, axis2=2), axis=1)
        return v.at[lane].set(jnp.take_along_axis(power, column[:, None, None], axis=1)[:, 0], unique_indices=True)

    order = jnp.argsort(~wanted, stable=True).astype(jnp.int32)
    v = lax.fori_loop(0, (count(wanted) + 7) // 8, tile, jnp.zeros_like(mean)).T
    return v / materialize(jnp.sqrt(jnp.maximum(total(v * v), tiny)))


def _repeated(square, trace, over, matrix, largest, wanted):
    """Squares until every lane's power has rank one. A lane that is done stays: how long others take must not show in its bits.

    largest: [L] absolute value of an entry, since rounding may leave a matrix of nearly nothing a trace below 0; over: puts [L] over matrices.
    """
    tiny = jnp.finfo(matrix.dtype).tiny
    # 1 - 2 x, where x is the share of the other eigenvalues in the trace before the last squaring, which makes it x^2
    pure = 1 - 2 * float(jnp.finfo(matrix.dtype).eps) ** 0.5

    def twice(carry):  # two at a time: the loop copies what it carries
        step, power, done = carry
        second = square(power)
        fourth = square(second)
        size, before = trace(fourth), trace(second)
        inverse, purity = materialize_all([1 / jnp.maximum(size, tiny), size / jnp.maximum(before * before, tiny)])
        return step + 2, jnp.where(over(done), power, fourth * over(inverse)), done | (purity >= pure)

    def pending(carry):
        return (carry[0] < SQUARINGS) & ~jnp.all(carry[2])

    inverse = materialize(1 / jnp.maximum(largest, tiny))
    return lax.while_loop(pending, twice, (jnp.int32(0), matrix * over(inverse), ~(wanted & (largest > 0))))[1]


def _product(x, y):
    """[L, m, k] times [L, k, n]."""
    return lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)


def _diagonal(x):
    """[d, d, L] -> [d, L]."""
    d = x.shape[0]
    return x.reshape(d * d, -1)[:: d + 1]


def _trace(x):
    return total(_diagonal(x))


def _second(weights, directions):
    """sum_a weights_a u_a u_a' [d, d, L], eight arms at a time so that nothing of size K d^2 is made."""
    num_arms, d, lanes = directions.shape
    blocks = -(-num_arms // 8)
    pad = blocks * 8 - num_arms
    u = jnp.pad(directions, ((0, pad), (0, 0), (0, 0))).reshape(blocks, 8, d, lanes)
    w = jnp.pad(weights, ((0, pad), (0, 0))).reshape(blocks, 8, lanes)

    def add(b, found):
        x, y = u[b], w[b][:, None] * u[b]
        for a in range(8):
            found = found + x[a][:, None] * y[a][None]
        return found

    return lax.fori_loop(0, blocks, add, jnp.zeros((d, d, lanes), u.dtype))
