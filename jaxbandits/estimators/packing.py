"""Symmetric matrices as vectors of the same norm, so that a geometric median of vectors is one of matrices."""

import math
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits.typing import Array, Float, Tensor


@cache
def _layout(dim: int) -> tuple[Any, Any, Any]:
    # In 32 bits: JAX remembers a NumPy array by identity, and whether it takes int64 as int32 depends on its setting.
    rows, columns = (index.astype(np.int32) for index in np.triu_indices(dim))
    place = np.zeros((dim, dim), np.int32)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return rows, columns, place


def pack(matrix: Tensor) -> Float[Array, "... p"]:
    """Symmetric matrices as vectors: the upper triangle row by row, entries off the diagonal times sqrt(2).

    Parameters
    ----------
    matrix : array of shape [..., d, d]
        Symmetric matrices; the lower triangle is not read.

    Returns
    -------
    array of shape [..., d (d + 1) / 2]
        The Euclidean norm of a vector is the Frobenius norm of its matrix.

    Raises
    ------
    ValueError
        If the last two axes are not those of a square matrix.

    References
    ----------
    `docs/formulas/byzantine.md#packing`, where the map is called svec.

    Examples
    --------
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


def unpack(packed: Tensor) -> Float[Array, "... d d"]:
    """The symmetric matrices of packed vectors: the inverse of `pack`.

    Parameters
    ----------
    packed : array of shape [..., d (d + 1) / 2]
        Vectors as `pack` returns them.

    Returns
    -------
    array of shape [..., d, d]
        Symmetric matrices.

    Raises
    ------
    ValueError
        If the last axis has another length.

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
    place = _layout(dim)[2]
    scale = np.where(np.eye(dim, dtype=bool), 1, math.sqrt(0.5))
    return packed[..., place] * jnp.asarray(scale, packed.dtype)
