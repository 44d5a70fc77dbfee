"""Symmetric d x d matrices and vectors of d features, in the layout that is fastest for their d.

Linear bandits update a matrix at every play. Up to `MAX_UNROLLED_DIM` features its d (d + 1) / 2 entries are scalars
apart, the upper triangle by rows, and a vector is a list of d scalars: under vmap each is then one contiguous array
over the lanes, and a step fuses into a few loops. A "scalar" may also be an array of any one shape, such as lanes or
arms; everything is elementwise. Written out like that, compile time grows with d^2 or d^3, and a play waits for
memory. Above, a matrix is an array [..., d, d] and a vector [..., d], with the features last. `split_features` gives
features their layout, and the functions here read it off what they are given: one program text serves both.

Every sum is in a fixed order. The two layouts agree to rounding.

`pack` and `unpack` treat one array [..., d (d + 1) / 2], with entries off the diagonal times sqrt(2), so that norms
are kept. Inverses and factors are in `numerics.eliminations`, least squares in `numerics.least_squares`.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics.fusion import materialize, materialize_all
from jaxbandits.numerics.sums import contraction, dot, floats, inner_products, matvec, product
from jaxbandits.typing import Array, DType, Float, Tensor
from jaxbandits.validation import declare

Entries: TypeAlias = Sequence[Any]
"""Numbers, or arrays of one shape: d of a vector, or d (d + 1) / 2, the upper triangle of a matrix by rows."""

# Entries apart, or an array with the features in its last axis, or its last two
Vector: TypeAlias = Array | list[Array] | tuple[Array, ...]
Symmetric: TypeAlias = Vector

MAX_UNROLLED_DIM = 8  # the largest d that is written out: an inverse has 540 operations


# ---- the layout


def split_features(x: Float[Array, "... d"]) -> tuple[Array, ...] | Array:
    """Vectors in the layout of their d: each feature apart, or the array as it is."""
    return tuple(x[..., j] for j in range(x.shape[-1])) if x.shape[-1] <= MAX_UNROLLED_DIM else x


def stack_features(x: Vector) -> Float[Array, "... d"]:
    """Vectors as one array."""
    return jnp.stack(x, -1) if isinstance(x, list | tuple) else x


def map_features(function: Callable[..., Any], x: Vector, *others: Vector) -> tuple[Array, ...] | Array:
    """A function of one feature, for every feature."""
    if isinstance(x, list | tuple):
        return tuple(function(*entries) for entries in zip(x, *others, strict=True))
    return jax.vmap(function, -1, -1)(x, *others)


def materialize_vector(x: Vector) -> Vector:
    """The vector, computed once (`numerics.materialize`)."""
    return tuple(materialize_all(x)) if isinstance(x, list | tuple) else materialize(x)


def identity_times(dim: int, scale: Array) -> Symmetric:
    """The identity matrix times a number."""
    if dim > MAX_UNROLLED_DIM:
        return scale * jnp.eye(dim, dtype=scale.dtype)
    zero = jnp.zeros_like(scale)
    return tuple(scale if i == j else zero for i, j in pairs(dim))


def zero_vector(dim: int, dtype: DType) -> Vector:
    """A vector of zeros."""
    return (jnp.zeros((), dtype),) * dim if dim <= MAX_UNROLLED_DIM else jnp.zeros(dim, dtype)


def number_of_entries(dim: int) -> int:
    """Numbers of a symmetric matrix and a vector."""
    return dim * (dim + 1) // 2 + dim


def join_matrix_vector(matrix: Symmetric, vector: Any) -> Float[Array, "... n"]:
    """The numbers of a matrix, by the rows of its upper triangle, and of a vector."""
    if isinstance(matrix, list | tuple):
        return jnp.stack([*matrix, *vector], -1)
    rows, columns, _ = _indices(matrix.shape[-1])
    return jnp.concatenate([matrix[..., rows, columns], vector], -1)


def split_matrix_vector(numbers: Vector, dim: int) -> tuple[Any, Any]:
    """The matrix and the vector that `join_matrix_vector` joined, which are an array, or apart already."""
    if isinstance(numbers, list | tuple):
        return tuple(numbers[:-dim]), tuple(numbers[-dim:])
    if dim > MAX_UNROLLED_DIM:
        return materialize(numbers.at[..., _indices(dim)[2]].get(mode="promise_in_bounds")), numbers[..., -dim:]
    return split_matrix_vector([numbers[..., k] for k in range(numbers.shape[-1])], dim)


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


@declare(check=False)
def pack(matrix: Tensor) -> Float[Array, "... n"]:
    """Symmetric matrices as vectors of the same norm.

    The upper triangle row by row, entries off the diagonal times sqrt(2), also called svec. The Euclidean norm
    of the result is the Frobenius norm of the matrix, so that a geometric median of such vectors is one of
    matrices.

    Args:
        matrix (array of shape [..., d, d]): Symmetric matrices, d >= 1. The lower triangle is not read.

    Returns:
        Array of shape [..., d (d + 1) / 2]: The packed matrices, in the dtype of `matrix`; integers in float32.

    Raises:
        ValueError: For other shapes.

    References:
        docs/formulas/byzantine.md#packing

    >>> import jax.numpy as jnp
    >>> pack(jnp.array([[1.0, 3.0], [3.0, 2.0]])).round(4).tolist()
    [1.0, 4.242599964141846, 2.0]
    """
    matrix = floats(matrix)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ValueError(f"matrix has shape {matrix.shape}; it must be [..., d, d] with d >= 1")
    rows, columns, _ = _indices(matrix.shape[-1])
    scale = np.where(rows == columns, 1, math.sqrt(2))
    return matrix[..., rows, columns] * jnp.asarray(scale, matrix.dtype).reshape((1,) * (matrix.ndim - 2) + scale.shape)


@declare(check=False)
def unpack(packed: Tensor) -> Float[Array, "... d d"]:
    """The symmetric matrices of vectors that `pack` made.

    Args:
        packed (array of shape [..., d (d + 1) / 2]): The upper triangle row by row, entries off the diagonal times
            sqrt(2).

    Returns:
        Array of shape [..., d, d]: The matrices, in the dtype of `packed`; integers in float32.

    Raises:
        ValueError: Where the last axis is not d (d + 1) / 2 long for any d >= 1.

    References:
        docs/formulas/byzantine.md#packing

    >>> import jax.numpy as jnp
    >>> unpack(pack(jnp.eye(3))).tolist() == jnp.eye(3).tolist()
    True
    """
    packed = floats(packed)
    length = packed.shape[-1] if packed.ndim else 0
    dim = (math.isqrt(8 * length + 1) - 1) // 2
    if length == 0 or dim * (dim + 1) // 2 != length:
        raise ValueError(f"packed has shape {packed.shape}; its last axis must be d (d + 1) / 2 long: 1, 3, 6, 10, ...")
    place = _indices(dim)[2]
    scale = np.where(np.eye(dim, dtype=bool), 1, math.sqrt(0.5))
    return packed[..., place] * lax.broadcast_to_rank(jnp.asarray(scale, packed.dtype), packed.ndim + 1)


# ---- products


def inner(x: Vector, y: Any) -> Any:
    """<x, y>, feature by feature; arrays are of shapes that broadcast."""
    if isinstance(x, list | tuple):
        return sum(x[j] * y[j] for j in range(len(x)))
    return dot(x, y)


def inners(*pairs: tuple[Any, Any]) -> Any:
    """<x, y> of each pair; of arrays all in one sum, which compiles in the time of one, and stored."""
    if isinstance(pairs[0][0], list | tuple):
        return [inner(x, y) for x, y in pairs]
    return materialize(inner_products(*pairs))


def quadratic_form(matrix: Symmetric, x: Vector) -> Any:
    """x^T P x of vectors x. P may be an array [d, d] in either layout of x."""
    if not isinstance(x, list | tuple):
        return dot(x, symmetric_product(matrix, x))
    d, total, place = len(x), 0.0, triangle(len(x))
    packed = matrix if isinstance(matrix, list | tuple) else [matrix[i, j] for i, j in pairs(d)]
    for i in range(d):
        row = packed[place[i, i]] * x[i]
        for j in range(i + 1, d):
            row = row + 2 * packed[place[i, j]] * x[j]
        total = total + row * x[i]
    return total


def symmetric_product(matrix: Any, x: Vector) -> Any:
    """P x: of an array x [..., d], one for every vector."""
    if isinstance(x, list | tuple):
        d, place = len(x), triangle(len(x))
        return [sum(matrix[place[i, j]] * x[j] for j in range(d)) for i in range(d)]
    if x.shape[-1] <= MAX_UNROLLED_DIM:
        return matvec(matrix, x)
    if x.ndim == 1:
        return materialize(contraction(matrix, x[:, None], axis=0))
    return materialize(product(x.reshape(-1, x.shape[-1]), matrix)).reshape(x.shape)


def block_products(matrices: Float[Array, "k d d"], x: Float[Array, "... d"]) -> Float[Array, "k d"]:
    """P_k x_k of symmetric matrices, row after row; x: [k, d], or [1, d] for all."""

    def add_row(j, total):
        rows, entries = (lax.dynamic_slice_in_dim(each, j, 1, axis=1) for each in (matrices, x))
        return total + rows[:, 0] * entries

    return lax.fori_loop(0, x.shape[-1], add_row, jnp.zeros(matrices.shape[:2], x.dtype))


def multiply_transposed(matrix: Entries, x: Vector) -> tuple[Any, ...]:
    """P' x, with the entries of a general matrix P apart, by rows."""
    d = len(x)
    return tuple(sum(matrix[i * d + j] * x[i] for i in range(d)) for j in range(d))


def outer(x: Vector) -> Symmetric:
    """x x^T."""
    if isinstance(x, list | tuple):
        return tuple(x[i] * x[j] for i, j in pairs(len(x)))
    return x[..., :, None] * x[..., None, :]


def lower_product(factor: Any, x: Vector) -> Vector:
    """C x, C as `cholesky` gives it."""
    if not isinstance(x, list | tuple):
        return product(x.reshape(-1, x.shape[-1]), factor).reshape(x.shape)
    dim, entry = len(x), dict(zip(pairs(len(x)), factor, strict=True))
    return [sum(entry[j, i] * x[j] for j in range(i + 1)) for i in range(dim)]
