"""Symmetric matrices as vectors of the same norm, so that a geometric median of vectors is one of matrices."""

import math
from functools import cache

import jax.numpy as jnp
import numpy as np


@cache
def _layout(dim: int):
    # 32 bits: JAX remembers a NumPy array by identity, and int64 is int32 to it or not by the precision of the day
    rows, columns = (index.astype(np.int32) for index in np.triu_indices(dim))
    place = np.zeros((dim, dim), np.int32)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return rows, columns, place


def pack(matrix):
    """svec: the upper triangle of symmetric matrices row by row, entries off the diagonal times sqrt(2).

    matrix: [..., d, d] -> [..., d (d + 1) / 2]; the lower triangle is not read. The Euclidean norm of the result is the Frobenius
    norm of the matrix. Raises ValueError for other shapes.

    >>> import jax.numpy as jnp
    >>> pack(jnp.array([[1.0, 3.0], [3.0, 2.0]])).round(4).tolist()
    [1.0, 4.242599964141846, 2.0]
    """
    matrix = jnp.asarray(matrix)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ValueError(f"matrix has shape {matrix.shape}; it must be [..., d, d] with d >= 1")
    rows, columns, _ = _layout(matrix.shape[-1])
    scale = np.where(rows == columns, 1, math.sqrt(2))
    return matrix[..., rows, columns] * jnp.asarray(scale, matrix.dtype)


def unpack(packed):
    """The symmetric matrices [..., d, d] of packed [..., d (d + 1) / 2]; see `pack`. Raises ValueError for other lengths.

    >>> import jax.numpy as jnp
    >>> unpack(pack(jnp.eye(3))).tolist() == jnp.eye(3).tolist()
    True
    """
    packed = jnp.asarray(packed)
    length = packed.shape[-1] if packed.ndim else 0
    dim = (math.isqrt(8 * length + 1) - 1) // 2
    if length == 0 or dim * (dim + 1) // 2 != length:
        raise ValueError(f"packed has shape {packed.shape}; its last axis must be d (d + 1) / 2 long: 1, 3, 6, 10, ...")
    place = _layout(dim)[2]
    scale = np.where(np.eye(dim, dtype=bool), 1, math.sqrt(0.5))
    return packed[..., place] * jnp.asarray(scale, packed.dtype)
