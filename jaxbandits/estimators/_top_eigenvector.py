"""The top eigenvector of the covariance of X_j = u_{a_j} r_j, by repeated squaring, for many lanes at once (spec robust_linear 6).

Up to `DOT` features everything is elementwise on [d, d, L]: the last axis, the lane, fills the vector registers for any d. From there
on a matrix of every lane no longer fits the cache and matrices lie lane by lane, [L, d, d], for the library's matrix product.
"""

import jax.numpy as jnp
from jax import lax

from jaxbandits.estimators._lanes import total
from jaxbandits.numerics import settle

SQUARINGS = 16  # at most: 2^16 steps of the power method
PAIR = 1e-6  # squaring stops once the other eigenvalues hold this share of the power's trace
DOT = 13


def top_eigenvector(weights, directions, mean):
    """Unit vector v [d, L] of the largest eigenvalue of sum_a weights_a u_a u_a' - mean mean'; 0 for a zero matrix.

    weights: [K, L]; directions u: [K, d, L]; mean: [d, L]. The library's matrix product is used from `DOT` features on.
    """
    return (_by_lane if directions.shape[1] >= DOT else _elementwise)(weights, directions, mean)


def _elementwise(weights, directions, mean):
    d, lanes = mean.shape
    tiny = jnp.finfo(mean.dtype).tiny

    def scaled(matrix, size):
        return matrix / jnp.maximum(settle(size), tiny)

    def square(power):
        """power^2 / its trace, and that trace: the sum of squares of a symmetric matrix."""
        size = settle(total(total(power * power)))
        found = power[:, 0, None] * power[0, None]
        for k in range(1, d):
            found = found + power[:, k, None] * power[k, None]
        return found * settle(1 / jnp.maximum(size, tiny)), size

    matrix = _second(weights, directions) - mean[:, None] * mean[None, :]
    power = _repeated(square, scaled(matrix, total(_diagonal(matrix))), lambda done: done, lanes)
    column = settle(jnp.argmax(_diagonal(power), axis=0).astype(jnp.int32))
    v = settle(total(jnp.where(jnp.arange(d, dtype=jnp.int32)[:, None, None] == column, power, 0)))
    return v / settle(jnp.sqrt(jnp.maximum(total(v * v), tiny)))


def _by_lane(weights, directions, mean):
    lanes = mean.shape[1]
    tiny = jnp.finfo(mean.dtype).tiny

    def trace(matrix):
        return settle(total(jnp.diagonal(matrix, axis1=1, axis2=2).T))

    def scaled(matrix, size):
        return matrix * (1 / jnp.maximum(size, tiny))[:, None, None]

    def square(power):
        found = _product(power, power)
        size = trace(found)
        return scaled(found, size), size

    u = jnp.moveaxis(directions, -1, 0)
    matrix = _product((u * weights.T[:, :, None]).swapaxes(1, 2), u) - mean.T[:, :, None] * mean.T[:, None, :]
    power = _repeated(square, scaled(matrix, trace(matrix)), lambda done: done[:, None, None], lanes)
    column = jnp.argmax(jnp.diagonal(power, axis1=1, axis2=2), axis=1)
    v = jnp.take_along_axis(power, column[:, None, None], axis=1)[:, 0].T
    return v / settle(jnp.sqrt(jnp.maximum(total(v * v), tiny)))


def _repeated(square, power, over, lanes):
    """Squares until every lane's power has rank one. A lane that is done stays: how long others take must not show in its bits."""

    def twice(carry):  # the loop copies what it carries
        step, power, done = carry
        new, size = square(square(power)[0])
        return step + 2, jnp.where(over(done), power, new), done | (size >= 1 - PAIR) | (size <= 0)

    def pending(carry):
        return (carry[0] < SQUARINGS) & ~jnp.all(carry[2])

    return lax.while_loop(pending, twice, (jnp.int32(0), power, jnp.zeros(lanes, bool)))[1]


def _product(x, y):
    """[L, m, k] times [L, k, n]."""
    return lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)


def _diagonal(x):
    """[d, d, L] -> [d, L]."""
    d = x.shape[0]
    return x.reshape(d * d, -1)[:: d + 1]


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
