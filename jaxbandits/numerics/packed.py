"""Symmetric d x d matrices as d (d + 1) / 2 numbers, in one layout: the upper triangle by rows.

Two kinds of functions use it:

* Linear bandits update a packed matrix at every play. There it is a list of d (d + 1) / 2 scalars, because
  under vmap each scalar is then one contiguous array over the lanes and a step fuses into a few loops. A
  "scalar" may also be an array of any one shape, such as lanes; everything is elementwise.
* `pack` and `unpack` treat one array [..., d (d + 1) / 2], with entries off the diagonal times sqrt(2), so that
  norms are kept.

Inverses and factors of matrices [d, d] are in `numerics.linear_algebra`.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics.fusion import lanes_last, materialize, materialize_all
from jaxbandits.numerics.linear_algebra import inverse_cholesky, sweep_inverse
from jaxbandits.numerics.sums import added, fixed_sum
from jaxbandits.typing import Array, Float, Tensor

Entries: TypeAlias = Sequence[Any]
"""d (d + 1) / 2 numbers, or arrays of one shape: the upper triangle of a symmetric matrix by rows."""

Solve: TypeAlias = Callable[[Entries], list]

MAX_UNROLLED_DIM = 8  # the largest d whose inverse is written out: 540 operations; compile time grows with d^3


# ---- the layout


def pairs(dim: int) -> list[tuple[int, int]]:
    """Positions (i, j), i <= j, of the upper triangle by rows."""
    return [(i, j) for i in range(dim) for j in range(i, dim)]


def triangle(dim: int) -> dict[tuple[int, int], int]:
    """Place of each entry (i, j), in either order, of a symmetric matrix kept as its upper triangle by rows."""
    place = {pair: k for k, pair in enumerate(pairs(dim))}
    return {**place, **{(j, i): k for (i, j), k in place.items()}}


def full(packed: Entries, dim: int) -> Float[Array, "d d ..."]:
    """The matrix [d, d], or [d, d, ...] of arrays, from its upper triangle by rows."""
    place = triangle(dim)
    stacked = jnp.stack([packed[place[i, j]] for i in range(dim) for j in range(dim)])
    return stacked.reshape(dim, dim, *stacked.shape[1:])


@cache
def _indices(dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the packed entries, and the place [d, d] of each entry of the matrix."""
    # 32 bits: JAX remembers a NumPy array by identity, and int64 is int32 to it or not by the precision of the day
    rows, columns = np.array(pairs(dim), np.int32).T.copy()
    place = np.zeros((dim, dim), np.int32)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return rows, columns, place


def pack(matrix: Tensor) -> Float[Array, "... n"]:
    """Symmetric matrices as vectors of the same norm.

    The upper triangle row by row, entries off the diagonal times sqrt(2), also called svec. The Euclidean norm
    of the result is the Frobenius norm of the matrix, so that a geometric median of such vectors is one of
    matrices.

    Parameters
    ----------
    matrix : array of shape [..., d, d]
        Symmetric matrices, d >= 1. The lower triangle is not read.

    Returns
    -------
    Array of shape [..., d (d + 1) / 2]
        The packed matrices, in the dtype of `matrix`.

    Raises
    ------
    ValueError
        For other shapes.

    References
    ----------
    docs/formulas/byzantine.md#packing

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> pack(jnp.array([[1.0, 3.0], [3.0, 2.0]])).round(4).tolist()
    [1.0, 4.242599964141846, 2.0]
    """
    matrix = jnp.asarray(matrix)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ValueError(f"matrix has shape {matrix.shape}; it must be [..., d, d] with d >= 1")
    rows, columns, _ = _indices(matrix.shape[-1])
    scale = np.where(rows == columns, 1, math.sqrt(2))
    return matrix[..., rows, columns] * jnp.asarray(scale, matrix.dtype).reshape((1,) * (matrix.ndim - 2) + scale.shape)


def unpack(packed: Tensor) -> Float[Array, "... d d"]:
    """The symmetric matrices of vectors that `pack` made.

    Parameters
    ----------
    packed : array of shape [..., d (d + 1) / 2]
        The upper triangle row by row, entries off the diagonal times sqrt(2).

    Returns
    -------
    Array of shape [..., d, d]
        The matrices, in the dtype of `packed`.

    Raises
    ------
    ValueError
        Where the last axis is not d (d + 1) / 2 long for any d >= 1.

    References
    ----------
    docs/formulas/byzantine.md#packing

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> unpack(pack(jnp.eye(3))).tolist() == jnp.eye(3).tolist()
    True
    """
    packed = jnp.asarray(packed)
    length = packed.shape[-1] if packed.ndim else 0
    dim = (math.isqrt(8 * length + 1) - 1) // 2
    if length == 0 or dim * (dim + 1) // 2 != length:
        raise ValueError(f"packed has shape {packed.shape}; its last axis must be d (d + 1) / 2 long: 1, 3, 6, 10, ...")
    place = _indices(dim)[2]
    scale = np.where(np.eye(dim, dtype=bool), 1, math.sqrt(0.5))
    return packed[..., place] * lax.broadcast_to_rank(jnp.asarray(scale, packed.dtype), packed.ndim + 1)


# ---- products and least squares


def quadratic_form(inverse: Entries, x: Entries) -> Any:
    """x^T P x from P's upper triangle by rows; x a list of d arrays of one shape."""
    d, k, total = len(x), 0, 0.0
    for i in range(d):
        row = inverse[k] * x[i]
        for j in range(i + 1, d):
            row = row + 2 * inverse[k + j - i] * x[j]
        total = total + row * x[i]
        k += d - i
    return total


def symmetric_product(inverse: Entries, x: Entries) -> list:
    """P x from P's upper triangle by rows: a list of d."""
    d, place = len(x), triangle(len(x))
    return [sum(inverse[place[i, j]] * x[j] for j in range(d)) for i in range(d)]


def outer(x: Entries) -> list:
    """x x^T, packed."""
    return [x[i] * x[j] for i, j in pairs(len(x))]


def rank_one(inverse: Entries, theta: Entries, rest: Any, x: Entries, y: Any) -> tuple[Any, Any, Any]:
    """(P, theta), P packed, of least squares after one more play (x, y), and what rounding left out of both.

    By Sherman and Morrison. rest: () where what rounding leaves out is not kept (`numerics.left_out`).
    """
    v = symmetric_product(inverse, x)
    shrink = materialize(1 / (1 + sum(a * b for a, b in zip(x, v, strict=True))))
    error = (y - sum(a * b for a, b in zip(x, theta, strict=True))) * shrink
    new = tuple(-(v[i] * v[j] * shrink) for i, j in pairs(len(x))), tuple(step * error for step in v)
    (inverse, theta), rest = added((inverse, theta), rest, new)
    return inverse, theta, rest


def ridge_estimate(gram: Entries, vector: Entries, ridge: Any) -> tuple[tuple, tuple]:
    """(P, theta) from V packed and u, lists of scalars: P = (V + ridge I)^-1 packed, theta = P u."""
    dim = len(vector)
    shifted = [v + ridge if i == j else v for v, (i, j) in zip(gram, pairs(dim), strict=True)]
    inverse = symmetric_inverse(shifted, dim)
    # materialized together: one by one each of the scalars would compute the whole inverse again
    stored = materialize_all([*inverse, *symmetric_product(inverse, vector)])
    return tuple(stored[:-dim]), tuple(stored[-dim:])


# ---- inverses


def symmetric_inverse(packed: Entries, dim: int) -> list:
    """Inverse of a packed symmetric matrix that need not be definite: packed, finite for finite entries.

    `linear_algebra.sweep_inverse` does the same for definite matrices [d, d], and
    `linear_algebra.floored_inverse` for matrices whose eigenvalues are raised first.

    Symmetric sweeps without a choice of pivots. One that vanishes to rounding is moved off zero by the rounding
    error of the largest diagonal entry; in noisy statistics that has probability zero, and a change of this
    size is there already.
    """
    if dim > MAX_UNROLLED_DIM:
        inverse = sweep_inverse(full(packed, dim))[0]
        inverse = jnp.where(jnp.isfinite(inverse), inverse, 0)
        return [inverse[pair] for pair in pairs(dim)]
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


# ---- Cholesky factors


def _factor(packed: Entries, dim: int, reciprocal_root: Callable[[Any], Any]) -> tuple[dict, list, list]:
    """Cholesky's elimination, written out: L below its diagonal {(i, j): entry}, pivots, and 1 / sqrt of each."""
    place = triangle(dim)
    low: dict = {}
    pivots: list = []
    scale: list = []
    for j in range(dim):
        pivot = packed[place[j, j]]
        for k in range(j):
            pivot = pivot - low[j, k] * low[j, k]
        pivots.append(pivot)
        scale.append(reciprocal_root(pivot))
        for i in range(j + 1, dim):
            entry = packed[place[i, j]]
            for k in range(j):
                entry = entry - low[i, k] * low[j, k]
            low[i, j] = entry * scale[j]
    return low, pivots, scale


def _root_or_zero(pivot: Any) -> Any:
    """1 / sqrt(pivot), 0 where the pivot is not above 0."""
    return jnp.where(pivot > 0, lax.rsqrt(jnp.where(pivot > 0, pivot, 1)), 0)


def cholesky(packed: Entries, dim: int) -> list:
    """The lower triangle, by columns, of C with C C' = a packed symmetric matrix; columns of pivots not above 0 are 0.

    For products C z with a matrix that noise may have made indefinite. To solve with a definite one,
    `cholesky_solver`.
    """
    if dim > MAX_UNROLLED_DIM:
        factor = _cholesky_loop(full(packed, dim))
        return [factor[j, i] for i, j in pairs(dim)]
    low, pivots, scale = _factor(packed, dim, _root_or_zero)
    return materialize_all([pivots[i] * scale[i] if i == j else low[j, i] for i, j in pairs(dim)])


@lanes_last
def _cholesky_loop(matrix):
    dim = matrix.shape[0]
    row = jnp.arange(dim, dtype=jnp.int32).reshape(dim, *(1,) * (matrix.ndim - 2))

    def eliminate(k, carry):
        a, factor = carry
        column = jnp.where(row >= k, a[:, k] * _root_or_zero(a[k, k])[None], 0)
        return a - column[:, None] * column[None, :], factor.at[:, k].set(column)

    return lax.fori_loop(0, dim, eliminate, (matrix, jnp.zeros_like(matrix)))[1]


def lower_product(factor: Entries, x: Entries) -> list:
    """C x, C as `cholesky` gives it and x a list of d arrays."""
    dim, entry = len(x), dict(zip(pairs(len(x)), factor, strict=True))
    return [sum(entry[j, i] * x[j] for j in range(i + 1)) for i in range(dim)]


def cholesky_solver(packed: Entries, dim: int) -> tuple[Solve, Solve]:
    """The functions r -> L^-1 r and w -> L^-T w of lists, where L L' is a packed positive definite matrix.

    One after the other they solve with the matrix. Its entries are arrays of lanes. Above `MAX_UNROLLED_DIM` by
    `linear_algebra.inverse_cholesky`.
    """
    if dim > MAX_UNROLLED_DIM:
        matrices = jnp.moveaxis(full(packed, dim), -1, 0)
        inverse = jnp.moveaxis(jax.vmap(inverse_cholesky)(matrices), 0, -1)
        return (
            lambda r: list(fixed_sum(inverse * jnp.stack(r)[None], axis=1)),
            lambda w: list(fixed_sum(inverse * jnp.stack(w)[:, None], axis=0)),
        )
    low, _, scale = _factor(packed, dim, lambda pivot: 1 / jnp.sqrt(pivot))

    def forward(r):
        w: list = []
        for i in range(dim):
            value = r[i]
            for k in range(i):
                value = value - low[i, k] * w[k]
            w.append(value * scale[i])
        return w

    def backward(w):
        x: list = [None] * dim
        for i in reversed(range(dim)):
            value = w[i]
            for k in range(i + 1, dim):
                value = value - low[k, i] * x[k]
            x[i] = value * scale[i]
        return x

    return forward, backward
