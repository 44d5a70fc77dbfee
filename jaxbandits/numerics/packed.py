"""Symmetric d x d matrices as d (d + 1) / 2 scalars, the upper triangle by rows: what linear bandits do with them at every play.

Scalars, because under vmap each is then one contiguous array over the lanes, and a step fuses into a few loops.
"""

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics.fusion import lanes_last, materialize, materialize_all
from jaxbandits.numerics.linear_algebra import sweep_inverse

UNROLLED = 8  # largest d whose inverse is written out: 540 operations; compile time grows with d^3


def triangle(d: int) -> dict:
    """Place of each entry (i, j), in either order, of a symmetric matrix kept as its upper triangle by rows."""
    place = {(i, j): i * d - i * (i - 1) // 2 + j - i for i in range(d) for j in range(i, d)}
    return {**place, **{(j, i): k for (i, j), k in place.items()}}


def pairs(dim: int) -> list:
    """Positions (i, j), i <= j, of the upper triangle by rows."""
    return [(i, j) for i in range(dim) for j in range(i, dim)]


def quadratic_form(inverse, x):
    """x^T P x from P's upper triangle by rows; x a list of d arrays of one shape."""
    d, k, total = len(x), 0, 0.0
    for i in range(d):
        row = inverse[k] * x[i]
        for j in range(i + 1, d):
            row = row + 2 * inverse[k + j - i] * x[j]
        total = total + row * x[i]
        k += d - i
    return total


def symmetric_product(inverse, x):
    """P x from P's upper triangle by rows: a list of d."""
    d, place = len(x), triangle(len(x))
    return [sum(inverse[place[i, j]] * x[j] for j in range(d)) for i in range(d)]


def full(packed, dim: int):
    """[d, d] from the upper triangle by rows."""
    place = triangle(dim)
    return jnp.stack([packed[place[i, j]] for i in range(dim) for j in range(dim)]).reshape(dim, dim)


def rank_one(inverse, theta, x, y) -> tuple[tuple, tuple]:
    """(P, theta), P packed, of least squares after one more play (x, y): Sherman and Morrison."""
    v = symmetric_product(inverse, x)
    shrink = materialize(1 / (1 + sum(a * b for a, b in zip(x, v, strict=True))))
    error = (y - sum(a * b for a, b in zip(x, theta, strict=True))) * shrink
    moved = tuple(p - v[i] * v[j] * shrink for p, (i, j) in zip(inverse, pairs(len(x)), strict=True))
    return moved, tuple(old + step * error for old, step in zip(theta, v, strict=True))


def outer(x) -> list:
    """x x^T, packed."""
    return [x[i] * x[j] for i, j in pairs(len(x))]


def symmetric_inverse(packed, dim: int) -> list:
    """Inverse of a packed symmetric matrix that need not be definite: packed, finite for finite entries.

    Symmetric sweeps without a choice of pivots. One that vanishes to rounding is moved off zero by the rounding error of the largest
    diagonal entry; in noisy statistics that has probability zero, and a change of this size is there already.
    """
    if dim > UNROLLED:
        found = sweep_inverse(full(packed, dim))[0]
        found = jnp.where(jnp.isfinite(found), found, 0)
        return [found[pair] for pair in pairs(dim)]
    a = {pair: jnp.asarray(entry) for pair, entry in zip(pairs(dim), packed, strict=True)}

    def at(i, j):
        return min(i, j), max(i, j)

    top = jnp.abs(a[0, 0])
    for k in range(1, dim):
        top = jnp.maximum(top, jnp.abs(a[k, k]))
    floor = jnp.maximum(top * jnp.finfo(top.dtype).eps, jnp.sqrt(jnp.finfo(top.dtype).tiny))
    for k in range(dim):
        pivot = a[k, k]
        pivot = jnp.where(jnp.abs(pivot) < floor, jnp.where(pivot < 0, -floor, floor), pivot)
        reciprocal = 1 / pivot
        row = {j: a[at(k, j)] * reciprocal for j in range(dim) if j != k}
        for i, j in pairs(dim):
            if k not in (i, j):
                a[i, j] = a[i, j] - row[i] * a[at(k, j)]
        for j, value in row.items():
            a[at(k, j)] = value
        a[k, k] = -reciprocal
    return [-a[pair] for pair in pairs(dim)]


def cholesky(packed, dim: int) -> list:
    """The lower triangle, by columns, of C with C C' = a packed symmetric matrix; columns of pivots not above 0 are 0."""
    if dim > UNROLLED:
        factor = _cholesky_loop(full(packed, dim))
        return [factor[j, i] for i, j in pairs(dim)]
    a, columns = dict(zip(pairs(dim), packed, strict=True)), []
    for k in range(dim):
        pivot = a[k, k]
        inverse = jnp.where(pivot > 0, lax.rsqrt(jnp.where(pivot > 0, pivot, 1)), 0)
        column = [a[k, i] * inverse for i in range(k, dim)]
        for i in range(k + 1, dim):
            for j in range(i, dim):
                a[i, j] = a[i, j] - column[i - k] * column[j - k]
        columns += column
    return materialize_all(columns)


@lanes_last
def _cholesky_loop(matrix):
    dim = matrix.shape[0]
    row = jnp.arange(dim, dtype=jnp.int32).reshape(dim, *(1,) * (matrix.ndim - 2))

    def eliminate(k, carry):
        a, factor = carry
        pivot = a[k, k]
        inverse = jnp.where(pivot > 0, lax.rsqrt(jnp.where(pivot > 0, pivot, 1)), 0)
        column = jnp.where(row >= k, a[:, k] * inverse[None], 0)
        return a - column[:, None] * column[None, :], factor.at[:, k].set(column)

    return lax.fori_loop(0, dim, eliminate, (matrix, jnp.zeros_like(matrix)))[1]


def lower_product(factor, x) -> list:
    """C x, C as `cholesky` gives it and x a list of d arrays."""
    dim, entry = len(x), dict(zip(pairs(len(x)), factor, strict=True))
    return [sum(entry[j, i] * x[j] for j in range(i + 1)) for i in range(dim)]


def ridge_estimate(gram, vector, ridge):
    """(P, theta) with P = (V + ridge I)^-1 packed and theta = P u, from V packed and u, lists of scalars: two tuples."""
    dim = len(vector)
    shifted = [v + ridge if i == j else v for v, (i, j) in zip(gram, pairs(dim), strict=True)]
    inverse = symmetric_inverse(shifted, dim)
    # settled together: one by one each of the scalars would compute the whole inverse again
    settled = materialize_all([*inverse, *symmetric_product(inverse, vector)])
    return tuple(settled[:-dim]), tuple(settled[-dim:])
