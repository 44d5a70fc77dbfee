"""Symmetric d x d matrices and vectors of d features, in the layout that is fastest for their d.

Linear bandits update a matrix at every play. Up to `MAX_UNROLLED_DIM` features its d (d + 1) / 2 entries are scalars
apart, the upper triangle by rows, and a vector is a list of d scalars: under vmap each is then one contiguous array
over the lanes, and a step fuses into a few loops. A "scalar" may also be an array of any one shape, such as lanes or
arms; everything is elementwise. Written out like that, compile time grows with d^2 or d^3, and a play waits for
memory. Above, a matrix is an array [..., d, d] and a vector [..., d], with the features last. `apart` gives features
their layout, and the functions here read it off what they are given: one program text serves both.

Every sum is in a fixed order. The two layouts agree to rounding.

`pack` and `unpack` treat one array [..., d (d + 1) / 2], with entries off the diagonal times sqrt(2), so that norms
are kept. Inverses and factors of matrices [d, d] of other code are in `numerics.linear_algebra`.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics.fusion import lanes_first, materialize, materialize_all
from jaxbandits.numerics.sums import added, contraction, dot, matvec, product
from jaxbandits.typing import Array, Float, Tensor

Entries: TypeAlias = Sequence[Any]
"""Numbers, or arrays of one shape: d of a vector, or d (d + 1) / 2, the upper triangle of a matrix by rows."""

# Entries apart, or an array with the features in its last axis, or its last two
Vector: TypeAlias = Any
Symmetric: TypeAlias = Any

Solve: TypeAlias = Callable[[Entries], list]

MAX_UNROLLED_DIM = 8  # the largest d that is written out: an inverse has 540 operations
BLOCK = 4  # pivots that are eliminated together where a matrix is an array
VECTOR = 8  # columns of an elimination are filled up to multiples of it: of others XLA computes the rest one by one


# ---- the layout


def apart(x: Float[Array, "... d"]) -> Vector:
    """Vectors in the layout of their d: each feature apart, or the array as it is."""
    return tuple(x[..., j] for j in range(x.shape[-1])) if x.shape[-1] <= MAX_UNROLLED_DIM else x


def stacked(x: Vector) -> Float[Array, "... d"]:
    """Vectors as one array."""
    return jnp.stack(x, -1) if isinstance(x, list | tuple) else x


def each(function: Callable[..., Any], x: Vector, *others: Vector) -> Vector:
    """A function of one feature, for every feature."""
    if isinstance(x, list | tuple):
        return tuple(function(*entries) for entries in zip(x, *others, strict=True))
    return jax.vmap(function, -1, -1)(x, *others)


def settled(x: Vector) -> Vector:
    """The vector, computed once (`numerics.materialize`)."""
    return tuple(materialize_all(x)) if isinstance(x, list | tuple) else materialize(x)


def scaled_identity(dim: int, scale: Array) -> Symmetric:
    """The identity matrix times a number."""
    if dim > MAX_UNROLLED_DIM:
        return scale * jnp.eye(dim, dtype=scale.dtype)
    zero = jnp.zeros_like(scale)
    return tuple(scale if i == j else zero for i, j in pairs(dim))


def zero_vector(dim: int, dtype: Any) -> Vector:
    """A vector of zeros."""
    return (jnp.zeros((), dtype),) * dim if dim <= MAX_UNROLLED_DIM else jnp.zeros(dim, dtype)


def number_of_entries(dim: int) -> int:
    """Numbers of a symmetric matrix and a vector."""
    return dim * (dim + 1) // 2 + dim


def folded(matrix: Symmetric, vector: Vector) -> Float[Array, "... n"]:
    """The numbers of a matrix, by the rows of its upper triangle, and of a vector."""
    if isinstance(matrix, list | tuple):
        return jnp.stack([*matrix, *vector], -1)
    rows, columns, _ = _indices(matrix.shape[-1])
    return jnp.concatenate([matrix[..., rows, columns], vector], -1)


def unfolded(numbers: Any, dim: int) -> tuple[Symmetric, Vector]:
    """The matrix and the vector of `folded` numbers, which are an array, or apart already."""
    if isinstance(numbers, list | tuple):
        return tuple(numbers[:-dim]), tuple(numbers[-dim:])
    if dim > MAX_UNROLLED_DIM:
        return materialize(numbers.at[..., _indices(dim)[2]].get(mode="promise_in_bounds")), numbers[..., -dim:]
    return unfolded([numbers[..., k] for k in range(numbers.shape[-1])], dim)


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


def inner(x: Vector, y: Vector) -> Any:
    """<x, y>, feature by feature; arrays are of shapes that broadcast."""
    if isinstance(x, list | tuple):
        return sum(x[j] * y[j] for j in range(len(x)))
    return dot(x, y)


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


def symmetric_product(matrix: Symmetric, x: Vector) -> Vector:
    """P x: of an array x [..., d], one for every vector."""
    if isinstance(x, list | tuple):
        d, place = len(x), triangle(len(x))
        return [sum(matrix[place[i, j]] * x[j] for j in range(d)) for i in range(d)]
    if x.shape[-1] <= MAX_UNROLLED_DIM:
        return matvec(matrix, x)
    if x.ndim == 1:
        return materialize(contraction(matrix, x[:, None], axis=0))
    return materialize(product(x.reshape(-1, x.shape[-1]), matrix)).reshape(x.shape)


def outer(x: Vector) -> Symmetric:
    """x x^T."""
    if isinstance(x, list | tuple):
        return tuple(x[i] * x[j] for i, j in pairs(len(x)))
    return x[..., :, None] * x[..., None, :]


def rank_one(inverse: Symmetric, theta: Vector, rest: Any, x: Vector, y: Any) -> tuple[Any, Any, Any]:
    """(P, theta) of least squares after one more play (x, y), and what rounding left out of both.

    By Sherman and Morrison. rest: () where what rounding leaves out is not kept (`numerics.left_out`).
    """
    if not isinstance(x, list | tuple):
        return weighted_rank_one(inverse, theta, rest, x, y)[:3]
    v = symmetric_product(inverse, x)
    shrink = materialize(1 / (1 + inner(x, v)))
    error = (y - inner(x, theta)) * shrink
    new = tuple(-(v[i] * v[j] * shrink) for i, j in pairs(len(x))), tuple(step * error for step in v)
    (inverse, theta), rest = added((inverse, theta), rest, new)
    return inverse, theta, rest


def weighted_rank_one(
    inverse: Float[Array, "d d"], theta: Float[Array, " d"], rest: Any, x: Float[Array, " d"], y: Any, weight: Any = ()
) -> tuple[Any, Any, Any, Any]:
    """`rank_one` of arrays, of a play that has a weight w; (): 1.

    Last come P x before the play, w / (1 + w x' P x), and the play's error times that.
    """
    v = materialize(symmetric_product(inverse, x))
    shrink = 1 / (1 + dot(x, v)) if isinstance(weight, tuple) else weight / (1 + weight * dot(x, v))
    error = y - dot(x, theta)
    shrink, error = materialize_all([shrink, error * shrink])
    (inverse, theta), rest = added((inverse, theta), rest, (-(v[:, None] * v[None, :] * shrink), v * error))
    return inverse, theta, rest, (v, shrink, error)


def ridge_estimate(gram: Symmetric, vector: Vector, ridge: Any) -> tuple[Symmetric, Vector]:
    """(P, theta) from V and u: P = (V + ridge I)^-1, theta = P u."""
    dim = len(vector)
    if not isinstance(vector, list | tuple):
        inverse = materialize(symmetric_inverse(gram + scaled_identity(dim, ridge), dim))
        return inverse, materialize(symmetric_product(inverse, vector))
    shifted = [v + ridge if i == j else v for v, (i, j) in zip(gram, pairs(dim), strict=True)]
    inverse = symmetric_inverse(shifted, dim)
    # materialized together: one by one each of the scalars would compute the whole inverse again
    stored = materialize_all([*inverse, *symmetric_product(inverse, vector)])
    return tuple(stored[:-dim]), tuple(stored[-dim:])


def ridge_scores(gram: Symmetric, vector: Vector, ridge: Any, x: Vector) -> tuple[Any, Any]:
    """<x, theta> and x' P x of `ridge_estimate`, of vectors x: of few in an array without an inverse."""
    if isinstance(vector, list | tuple):
        inverse, theta = ridge_estimate(gram, vector, ridge)
        return inner(x, theta), quadratic_form(inverse, x)
    flat = x.reshape(-1, x.shape[-1])
    found = _scores_by_blocks(gram + scaled_identity(len(vector), ridge), vector, flat)
    return found[0].reshape(x.shape[:-1]), found[1].reshape(x.shape[:-1])


@lanes_first
def _scores_by_blocks(
    matrix: Float[Array, "... d d"], vector: Float[Array, "... d"], x: Float[Array, "... m d"]
) -> tuple[Float[Array, "... m"], Float[Array, "... m"]]:
    """u' A^-1 x and x' A^-1 x, from L^-1 u and L^-1 x, where A = L D L'. Pivots as in `symmetric_inverse`."""
    arms = x.shape[-2]
    floor = _pivot_floor(jnp.max(jnp.abs(jnp.diagonal(matrix, axis1=-2, axis2=-1)), axis=-1, keepdims=True))
    beside = jnp.swapaxes(jnp.concatenate([vector[..., None, :], x], axis=-2), -1, -2)
    strips, reciprocals = _eliminated(matrix, beside, lambda pivot: 1 / _off_zero(pivot, floor), 4)
    halves = jnp.concatenate([strip[..., -arms - 1 :] for strip in strips], axis=-2)
    scaled = halves * materialize(jnp.concatenate(reciprocals, axis=-1))[..., None]
    scores, squares = contraction(scaled, halves[..., :1], axis=-2), contraction(scaled, halves, axis=-2)
    return scores[..., 1:], squares[..., 1:]


# ---- elimination of matrices that are arrays


# docs/decisions.md#strips
def _eliminated(
    matrix: Float[Array, "... d d"], beside: Float[Array, "... d m"], reciprocal: Callable[[Any], Any], pieces: int
) -> tuple[list[Float[Array, "... q n"]], list[Float[Array, "... q"]]]:
    """D L' with L^-1 B beside it, and what stands for 1 / D, of symmetric A = L D L' with columns B beside it.

    In `pieces` strips of rows, each from its diagonal on: only the upper half of A is computed. A loop eliminates the
    rows of one strip, `BLOCK` at once, from itself and from those below. More strips compute less and take longer to
    compile. reciprocal: of a pivot; 0 leaves it out. The first axes are lanes, written out: under vmap every slice
    would be a gather.
    """
    lead, dim = matrix.shape[:-2], matrix.shape[-1]
    more, empty = -dim % BLOCK, -beside.shape[-1] % VECTOR
    size = dim + more
    matrix = jnp.pad(matrix, [(0, 0)] * len(lead) + [(0, more)] * 2)
    matrix = matrix + jnp.broadcast_to(jnp.asarray(np.diag(np.arange(size) >= dim), matrix.dtype), matrix.shape)
    beside = jnp.pad(beside, [(0, 0)] * len(lead) + [(0, more), (empty, 0)])
    ends = sorted({size // BLOCK * piece // pieces * BLOCK for piece in range(pieces + 1)})
    rows = list(itertools.pairwise(ends))
    strips = [jnp.concatenate([matrix[..., i:j, i:], beside[..., i:j, :]], axis=-1) for i, j in rows]
    done, reciprocals = [], []
    for first, (begin, end) in enumerate(rows):
        numbers = np.arange(end - begin, dtype=np.int32)

        def eliminate(k, carry, begin=begin, rows=rows[first:], numbers=numbers):
            strips, found = carry
            at = k * BLOCK
            corner = lax.dynamic_slice(strips[0], (0,) * len(lead) + (at, at), (*lead, BLOCK, BLOCK))
            low, scale = _unit_factor({(i, j): corner[..., i, j, None] for i, j in pairs(BLOCK)}, reciprocal)
            panel: list = []
            for j, row in enumerate(_block_of_rows(strips[0], at)):
                panel.append(_less(row, ((low[j, i], panel[i]) for i in range(j))))
            panel = materialize_all(panel)
            scaled = [row * r for row, r in zip(panel, scale, strict=True)]
            # of its own strip the rows above a pivot are done
            masked = [jnp.where(numbers > at + n, x[..., : len(numbers)], 0) for n, x in enumerate(scaled)]
            shares = [masked, *([x[..., i - begin : j - begin] for x in scaled] for i, j in rows[1:])]
            left = []
            for strip, share, (i, _) in zip(strips, shares, rows, strict=True):
                known = (x[..., None] * row[..., None, i - begin :] for x, row in zip(share, panel, strict=True))
                left.append(strip - reduce(operator.add, known))
            return left, lax.dynamic_update_slice_in_dim(found, jnp.concatenate(scale, axis=-1), at, axis=-1)

        start = strips, jnp.zeros((*lead, len(numbers)), matrix.dtype)
        (panels, *strips), found = lax.fori_loop(0, len(numbers) // BLOCK, eliminate, start)
        done.append(panels)
        reciprocals.append(found)
    return done, reciprocals


def _block_of_rows(a: Float[Array, "... n m"], first: Any) -> list[Float[Array, "... m"]]:
    """`BLOCK` rows, each a slice: of one slice that is read several times XLA makes no vectors."""
    return [lax.dynamic_index_in_dim(a, first + j, axis=-2, keepdims=False) for j in range(BLOCK)]


def _unit_factor(
    a: dict[tuple[int, int], Any], reciprocal: Callable[[Any], Any]
) -> tuple[dict[tuple[int, int], Any], list]:
    """L below its diagonal of ones, and what stands for 1 / D, of entries (i, j), i <= j, of L D L', written out."""
    low: dict = {}
    reciprocals = []
    for k in range(BLOCK):
        reciprocals.append(reciprocal(a[k, k]))
        for i in range(k + 1, BLOCK):
            low[i, k] = a[k, i] * reciprocals[k]
        for i, j in pairs(BLOCK):
            if i > k:
                a[i, j] = a[i, j] - low[i, k] * a[k, j]
    stored = materialize_all([*reciprocals, *low.values()])
    return dict(zip(low, stored[BLOCK:], strict=True)), stored[:BLOCK]


# ---- inverses


def _off_zero(pivot: Any, floor: Any) -> Any:
    """A pivot, moved to the floor where it vanishes."""
    return jnp.where(jnp.abs(pivot) < floor, jnp.where(pivot < 0, -floor, floor), pivot)


def _pivot_floor(top: Any) -> Any:
    """What a vanishing pivot is moved to, of a matrix with this largest diagonal entry."""
    return jnp.maximum(top * jnp.finfo(top.dtype).eps, jnp.sqrt(jnp.finfo(top.dtype).tiny))


def symmetric_inverse(matrix: Symmetric, dim: int) -> Symmetric:
    """Inverse of a symmetric matrix that need not be definite, finite for finite entries.

    `linear_algebra.sweep_inverse` does the same for definite matrices [d, d], and
    `linear_algebra.floored_inverse` for matrices whose eigenvalues are raised first.

    Symmetric sweeps without a choice of pivots. One that vanishes to rounding is moved off zero by the rounding
    error of the largest diagonal entry; in noisy statistics that has probability zero, and a change of this
    size is there already.
    """
    if not isinstance(matrix, list | tuple):
        return _inverse_by_blocks(matrix)
    a = {pair: jnp.asarray(entry) for pair, entry in zip(pairs(dim), matrix, strict=True)}
    top = reduce(jnp.maximum, (jnp.abs(a[k, k]) for k in range(dim)))
    return [-a[pair] for pair in _swept(a, dim, _pivot_floor(top))]


def _swept(a: dict[tuple[int, int], Any], dim: int, floor: Any) -> dict[tuple[int, int], Any]:
    """The entries (i, j), i <= j, of minus the inverse, written out."""

    def at(i, j):
        return min(i, j), max(i, j)

    for k in range(dim):
        reciprocal = 1 / _off_zero(a[k, k], floor)
        row = {j: a[at(k, j)] * reciprocal for j in range(dim) if j != k}
        for i, j in pairs(dim):
            if k not in (i, j):
                a[i, j] = a[i, j] - row[i] * a[at(k, j)]
        for j, value in row.items():
            a[at(k, j)] = value
        a[k, k] = -reciprocal
    return a


def _padded(matrix: Float[Array, "d d"]) -> Float[Array, "n n"]:
    """A matrix and an identity beside it, as many rows as fill blocks."""
    dim = len(matrix)
    wide = -(-dim // BLOCK) * BLOCK
    return jnp.pad(matrix, (0, wide - dim)) + jnp.asarray(np.diag(np.arange(wide) >= dim), matrix.dtype)


def _inverse_by_blocks(matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The same sweeps, of `BLOCK` pivots at once: the matrix is read and written once for all of them."""
    dim = matrix.shape[0]
    floor = _pivot_floor(jnp.max(jnp.abs(jnp.diagonal(matrix))))

    def sweep(k, a):
        first = k * BLOCK
        rows = jnp.stack(materialize_all(_block_of_rows(a, first)))
        pivots = lax.dynamic_slice(a, (first, first), (BLOCK, BLOCK))
        swept = _swept({(i, j): pivots[i, j] for i, j in pairs(BLOCK)}, BLOCK, floor)
        corner = full(materialize_all([swept[pair] for pair in pairs(BLOCK)]), BLOCK)
        scaled = materialize(-product(corner, rows))
        a = a - product(rows.T, scaled)
        a = lax.dynamic_update_slice_in_dim(a, scaled, first, axis=0)
        a = lax.dynamic_update_slice_in_dim(a, scaled.T, first, axis=1)
        return lax.dynamic_update_slice(a, corner, (first, first))

    a = _padded(matrix)
    return -lax.fori_loop(0, len(a) // BLOCK, sweep, a)[:dim, :dim]


# ---- Cholesky factors


def _factor(packed: Entries, dim: int, reciprocal_root: Callable[[Any], Any]) -> tuple[dict, list, list]:
    """Cholesky's elimination, written out: L below its diagonal {(i, j): entry}, pivots, and 1 / sqrt of each."""
    place = triangle(dim)
    low: dict = {}
    pivots: list = []
    scale: list = []
    for j in range(dim):
        pivots.append(_less(packed[place[j, j]], ((low[j, k], low[j, k]) for k in range(j))))
        scale.append(reciprocal_root(pivots[j]))
        for i in range(j + 1, dim):
            low[i, j] = _less(packed[place[i, j]], ((low[i, k], low[j, k]) for k in range(j))) * scale[j]
    return low, pivots, scale


def _less(value: Any, products: Iterable[tuple[Any, Any]]) -> Any:
    """A number less products, one after the other."""
    return reduce(lambda left, pair: left - pair[0] * pair[1], products, value)


def _root_or_zero(pivot: Any) -> Any:
    """1 / sqrt(pivot), 0 where the pivot is not above 0."""
    return jnp.where(pivot > 0, lax.rsqrt(jnp.where(pivot > 0, pivot, 1)), 0)


def cholesky(matrix: Symmetric, dim: int) -> Any:
    """C' of C C' = a symmetric matrix: [d, d], or its upper triangle by rows. Columns of C of pivots not above 0 are 0.

    For products C z with a matrix that noise may have made indefinite. To solve with a definite one,
    `cholesky_solver`.
    """
    if not isinstance(matrix, list | tuple):
        return _cholesky_by_blocks(matrix)
    low, pivots, scale = _factor(matrix, dim, _root_or_zero)
    return materialize_all([pivots[i] * scale[i] if i == j else low[j, i] for i, j in pairs(dim)])


@lanes_first
def _cholesky_by_blocks(matrix: Float[Array, "... d d"]) -> Float[Array, "... d d"]:
    """C' of `cholesky`, from L D L'."""
    dim = matrix.shape[-1]
    strips, reciprocals = _eliminated(
        matrix, matrix[..., :0], lambda pivot: jnp.where(pivot > 0, 1 / jnp.where(pivot > 0, pivot, 1), 0), 2
    )
    found = jnp.zeros((*matrix.shape[:-2], *strips[0].shape[-1:] * 2), matrix.dtype)
    end = 0
    for strip, scale in zip(strips, reciprocals, strict=True):
        rows = jnp.triu(strip * jnp.sqrt(scale)[..., None])
        found = lax.dynamic_update_slice(found, rows, (0,) * (matrix.ndim - 2) + (end, end))
        end += strip.shape[-2]
    return found[..., :dim, :dim]


def lower_product(factor: Any, x: Vector) -> Vector:
    """C x, C as `cholesky` gives it."""
    if not isinstance(x, list | tuple):
        return product(x.reshape(-1, x.shape[-1]), factor).reshape(x.shape)
    dim, entry = len(x), dict(zip(pairs(len(x)), factor, strict=True))
    return [sum(entry[j, i] * x[j] for j in range(i + 1)) for i in range(dim)]


def cholesky_solver(packed: Entries, dim: int) -> tuple[Solve, Solve]:
    """The functions r -> L^-1 r and w -> L^-T w of lists, where L L' is a packed positive definite matrix.

    One after the other they solve with the matrix. Its entries are arrays of lanes.
    """
    low, _, scale = _factor(packed, dim, lambda pivot: 1 / jnp.sqrt(pivot))

    def forward(r):
        w: list = []
        for i in range(dim):
            w.append(_less(r[i], ((low[i, k], w[k]) for k in range(i))) * scale[i])
        return w

    def backward(w):
        x: list = [None] * dim
        for i in reversed(range(dim)):
            x[i] = _less(w[i], ((low[k, i], x[k]) for k in range(i + 1, dim))) * scale[i]
        return x

    return forward, backward
