"""The largest eigenvalue and its eigenvector for many small matrices at once, written out elementwise with the lanes last.

Householder's reduction to a tridiagonal matrix, Laguerre's iteration from above for its largest eigenvalue, a twisted factorisation
for the vector: d^3 multiply-adds where ten squarings of the matrix take 10 d^3, and as exact as float32 allows where the next
eigenvalue is close, which it is for whitened data. No library is called, so the bits do not depend on the number of lanes.

`settle` stands where XLA would otherwise compute a sum of d terms anew in every one of the d^2 elements that use it.
"""

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import settle

LAGUERRE = 8  # steps; the third is within float32 as a rule, close eigenvalues cost a few more


def total(x):
    """Sum over the first axis in a fixed order: sixteen at a time, left to right."""
    while x.shape[0] > 32:
        x = jnp.pad(x, ((0, -x.shape[0] % 16),) + ((0, 0),) * (x.ndim - 1))
        x = x.reshape(-1, 16, *x.shape[1:])
        x = settle(_left_to_right(x.swapaxes(0, 1)))
    return _left_to_right(x)


def _left_to_right(x):
    result = x[0]
    for i in range(1, x.shape[0]):
        result = result + x[i]
    return result


def _at(x, i):
    return lax.dynamic_index_in_dim(x, i, 0, keepdims=False)


def _put(x, row, i):
    return lax.dynamic_update_index_in_dim(x, row, i, 0)


def _times(matrix, vector):
    """Symmetric [d, d, L] times [d, L]."""
    result = matrix[0] * vector[0]
    for j in range(1, vector.shape[0]):
        result = result + matrix[j] * vector[j]
    return result


def tridiagonal(matrix):
    """Diagonal [d, L], off-diagonal [d, L] (the last is 0) and reflections v [d, d, L], I - v v' each, of symmetric [d, d, L]."""
    d, _, lanes = matrix.shape
    place = jnp.arange(d, dtype=jnp.int32)[:, None]

    def reflect(k, carry):
        a, diagonal, beside, reflections = carry
        row = _at(a, k)
        x = settle(jnp.where(place > k, row, 0))
        squared = settle(total(x * x))
        first = _at(x, jnp.minimum(k + 1, d - 1))
        length = jnp.sqrt(squared)
        length = jnp.where(first > 0, -length, length)
        half = squared - length * first  # half of the reflected vector's square: both terms have one sign
        scale = jnp.where(half > 0, 1 / jnp.sqrt(jnp.where(half > 0, half, 1)), 0)
        v = settle(jnp.where(place == k + 1, x - length, x) * scale)
        p = settle(jnp.where(place > k, _times(a, v), 0))
        w = settle(p - settle(total(p * v) / 2) * v)
        a = a - v[:, None] * w[None] - w[:, None] * v[None]
        return a, _put(diagonal, _at(row, k), k), _put(beside, length, k), _put(reflections, v, k)

    zero = jnp.zeros((d, lanes), matrix.dtype)
    return lax.fori_loop(0, d, reflect, (matrix, zero, zero, jnp.zeros_like(matrix)))[1:]


def _largest(diagonal, squared, start):
    """A number just above the largest eigenvalue [L] of a tridiagonal matrix, from one above it."""
    d = diagonal.shape[0]

    def step(_, carry):
        x, above = carry
        # pivots of x - T, all positive above the spectrum; p'/p and p''/p of its polynomial from their derivatives
        q = x - diagonal[0]
        inverse, positive = 1 / q, q > 0
        first, second = jnp.ones_like(x), jnp.zeros_like(x)
        s1, s2 = inverse, inverse * inverse
        for i in range(1, d):
            b, slope = squared[i - 1] * inverse, first * inverse
            second = b * (second * inverse - 2 * slope * slope)
            first = 1 + b * slope
            q = (x - diagonal[i]) - b
            positive = positive & (q > 0)
            inverse = 1 / q
            slope = first * inverse
            s1, s2 = s1 + slope, s2 + slope * slope - second * inverse
        move = d / (s1 + jnp.sqrt(jnp.maximum((d - 1) * (d * s2 - s1 * s1), 0)))
        # rounding may carry a step below the eigenvalue: halfway back then
        return jnp.where(positive, x - move, (x + above) / 2), jnp.where(positive, x, above)

    return lax.fori_loop(0, LAGUERRE, step, (start, start))[1]


def _vector(diagonal, beside, squared, value):
    """Unit eigenvector [d, L] of a tridiagonal matrix; value just above the largest eigenvalue, so that no pivot is zero."""
    d = diagonal.shape[0]
    shifted = diagonal - value

    def pivots(i, carry):
        down, up, downs, ups = carry
        j = d - 1 - i
        down = _at(shifted, i) - jnp.where(i > 0, _at(squared, jnp.maximum(i - 1, 0)), 0) / down
        up = _at(shifted, j) - jnp.where(i > 0, _at(squared, j), 0) / up
        return down, up, _put(downs, down, i), _put(ups, up, j)

    one, zeros = jnp.ones_like(value), jnp.zeros_like(diagonal)
    _, _, downs, ups = lax.fori_loop(0, d, pivots, (one, one, zeros, zeros))
    twist = settle(jnp.argmin(jnp.abs(downs + ups - shifted), axis=0).astype(jnp.int32))
    back = settle(-beside / downs)
    ahead = settle(-jnp.concatenate([beside[:1], beside[:-1]]) / ups)

    def walk(i, carry):
        low, high, lows, highs = carry
        j = d - 1 - i
        low = jnp.where(j == twist, 1, jnp.where(j < twist, _at(back, j) * low, 0))
        high = jnp.where(i == twist, 1, jnp.where(i > twist, _at(ahead, i) * high, 0))
        return low, high, _put(lows, low, j), _put(highs, high, i)

    nothing = jnp.zeros_like(value)
    _, _, lows, highs = lax.fori_loop(0, d, walk, (nothing, nothing, zeros, zeros))
    z = jnp.where(jnp.arange(d, dtype=jnp.int32)[:, None] <= twist, lows, highs)
    z = settle(z / settle(jnp.sqrt(total(z * z))))

    # one step of inverse iteration with the same pivots: the share of the next eigenvector is squared
    def forward(i, carry):
        c, cs = carry
        c = _at(z, i) + _at(ahead_down, i) * c
        return c, _put(cs, c, i)

    def backward(i, carry):
        y, ys = carry
        j = d - 1 - i
        y = _at(solved, j) + _at(back, j) * y
        return y, _put(ys, y, j)

    ahead_down = settle(jnp.concatenate([jnp.zeros_like(back[:1]), back[:-1]]))
    _, forwards = lax.fori_loop(0, d, forward, (nothing, zeros))
    solved = settle(forwards / downs)
    _, z = lax.fori_loop(0, d, backward, (nothing, zeros))
    z = z / settle(jnp.max(jnp.abs(z), axis=0))
    return z / settle(jnp.sqrt(total(z * z)))


def top_eigenpair(matrix):
    """Largest eigenvalue [L] and a unit eigenvector [d, L] of positive semi-definite matrices [d, d, L]."""
    d, wanted = max(4, matrix.shape[0]), matrix.shape[0]
    matrix = jnp.pad(matrix, ((0, d - wanted), (0, d - wanted), (0, 0)))  # zeros change neither; loops of two steps crash XLA
    trace = settle(total(jnp.stack([matrix[i, i] for i in range(d)])))
    diagonal, beside, reflections = tridiagonal(matrix / jnp.maximum(trace, jnp.finfo(matrix.dtype).tiny))
    squared, reach = beside * beside, jnp.abs(beside)
    circles = diagonal + reach + jnp.concatenate([jnp.zeros_like(reach[:1]), reach[:-1]])  # Gershgorin's
    value = _largest(diagonal, squared, settle(jnp.max(circles, axis=0) + 1e-5))

    def turn(k, z):
        v = _at(reflections, d - 1 - k)
        return z - settle(total(v * z)) * v

    vector = settle(lax.fori_loop(0, d, turn, _vector(diagonal, beside, squared, value)))
    return total(vector * settle(_times(matrix, vector))), vector[:wanted]
