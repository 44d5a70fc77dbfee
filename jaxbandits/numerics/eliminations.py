"""Inverses and Cholesky factors of symmetric matrices in the layouts of `packed`, and solutions with general ones.

Of entries apart all is written out. Of an array `PIVOT_BLOCK` pivots are eliminated together, in a loop. Those of
matrices [d, d] of other code are in `numerics.linear_algebra`, with a table of what is where.
"""

import itertools
import operator
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics.choice import argmax, one_hot, pick
from jaxbandits.numerics.fusion import lanes_first, materialize, materialize_all
from jaxbandits.numerics.packed import Entries, Symmetric, full, pairs, triangle
from jaxbandits.numerics.sums import product
from jaxbandits.typing import Array, Float

Solve: TypeAlias = Callable[[Entries], list]

PIVOT_BLOCK = 4  # pivots that are eliminated together where a matrix is an array
VECTOR = 8  # columns of an elimination are filled up to multiples of it: of others XLA computes the rest one by one


# ---- of matrices that are arrays


# docs/decisions.md#strips
def eliminate_symmetric(
    matrix: Float[Array, "... d d"], beside: Float[Array, "... d m"], reciprocal: Callable[[Any], Any], pieces: int
) -> tuple[list[Float[Array, "... q n"]], list[Float[Array, "... q"]]]:
    """D L' with L^-1 B beside it, and what stands for 1 / D, of symmetric A = L D L' with columns B beside it.

    In `pieces` strips of rows, each from its diagonal on: only the upper half of A is computed. A loop eliminates the
    rows of one strip, `PIVOT_BLOCK` at once, from itself and from those below. More strips compute less and take longer
    to compile. reciprocal: of a pivot; 0 leaves it out. The first axes are lanes, written out: under vmap every slice
    would be a gather.
    """
    lead, dim = matrix.shape[:-2], matrix.shape[-1]
    more, empty = -dim % PIVOT_BLOCK, -beside.shape[-1] % VECTOR
    size = dim + more
    matrix = jnp.pad(matrix, [(0, 0)] * len(lead) + [(0, more)] * 2)
    matrix = matrix + jnp.broadcast_to(jnp.asarray(np.diag(np.arange(size) >= dim), matrix.dtype), matrix.shape)
    beside = jnp.pad(beside, [(0, 0)] * len(lead) + [(0, more), (empty, 0)])
    ends = sorted({size // PIVOT_BLOCK * piece // pieces * PIVOT_BLOCK for piece in range(pieces + 1)})
    rows = list(itertools.pairwise(ends))
    strips = [jnp.concatenate([matrix[..., i:j, i:], beside[..., i:j, :]], axis=-1) for i, j in rows]
    done, reciprocals = [], []
    for first, (begin, end) in enumerate(rows):
        numbers = np.arange(end - begin, dtype=np.int32)

        def eliminate_block(k, carry, begin=begin, rows=rows[first:], numbers=numbers):
            strips, found = carry
            at = k * PIVOT_BLOCK
            corner = lax.dynamic_slice(strips[0], (0,) * len(lead) + (at, at), (*lead, PIVOT_BLOCK, PIVOT_BLOCK))
            low, scale = _unit_factor({(i, j): corner[..., i, j, None] for i, j in pairs(PIVOT_BLOCK)}, reciprocal)
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
        (panels, *strips), found = lax.fori_loop(0, len(numbers) // PIVOT_BLOCK, eliminate_block, start)
        done.append(panels)
        reciprocals.append(found)
    return done, reciprocals


def _block_of_rows(a: Float[Array, "... n m"], first: int | Array) -> list[Float[Array, "... m"]]:
    """`PIVOT_BLOCK` rows, each a slice: of one slice that is read several times XLA makes no vectors."""
    return [lax.dynamic_index_in_dim(a, first + j, axis=-2, keepdims=False) for j in range(PIVOT_BLOCK)]


def _unit_factor(a: dict[tuple[int, int], Any], reciprocal: Callable[[Any], Any]) -> tuple[dict, list]:
    """L below its diagonal of ones, and what stands for 1 / D, of entries (i, j), i <= j, of L D L', written out."""
    low: dict = {}
    reciprocals = []
    for k in range(PIVOT_BLOCK):
        reciprocals.append(reciprocal(a[k, k]))
        for i in range(k + 1, PIVOT_BLOCK):
            low[i, k] = a[k, i] * reciprocals[k]
        for i, j in pairs(PIVOT_BLOCK):
            if i > k:
                a[i, j] = a[i, j] - low[i, k] * a[k, j]
    stored = materialize_all([*reciprocals, *low.values()])
    return dict(zip(low, stored[PIVOT_BLOCK:], strict=True)), stored[:PIVOT_BLOCK]


# ---- inverses


def off_zero(pivot: Array, floor: Array) -> Array:
    """A pivot, moved to the floor where it vanishes."""
    return jnp.where(jnp.abs(pivot) < floor, jnp.where(pivot < 0, -floor, floor), pivot)


def pivot_floor(top: Array) -> Array:
    """What a vanishing pivot is moved to, of a matrix with this largest diagonal entry."""
    return jnp.maximum(top * jnp.finfo(top.dtype).eps, jnp.sqrt(jnp.finfo(top.dtype).tiny))


def symmetric_inverse(matrix: Symmetric, dim: int) -> Any:
    """Inverse of a symmetric matrix that need not be definite, finite for finite entries.

    `linear_algebra.sweep_inverse` does the same for definite matrices [d, d], and
    `linear_algebra.inverse_above_floor` for matrices whose eigenvalues are raised first.

    Symmetric sweeps without a choice of pivots. One that vanishes to rounding is moved off zero by the rounding
    error of the largest diagonal entry; in noisy statistics that has probability zero, and a change of this
    size is there already.
    """
    if not isinstance(matrix, list | tuple):
        return _inverse_by_blocks(matrix)
    a = {pair: jnp.asarray(entry) for pair, entry in zip(pairs(dim), matrix, strict=True)}
    top = reduce(jnp.maximum, (jnp.abs(a[k, k]) for k in range(dim)))
    return [-a[pair] for pair in _swept(a, dim, pivot_floor(top))]


def _swept(a: dict[tuple[int, int], Any], dim: int, floor: Array) -> dict[tuple[int, int], Any]:
    """The entries (i, j), i <= j, of minus the inverse, written out."""

    def upper_place(i, j):
        return min(i, j), max(i, j)

    for k in range(dim):
        reciprocal = 1 / off_zero(a[k, k], floor)
        row = {j: a[upper_place(k, j)] * reciprocal for j in range(dim) if j != k}
        for i, j in pairs(dim):
            if k not in (i, j):
                a[i, j] = a[i, j] - row[i] * a[upper_place(k, j)]
        for j, value in row.items():
            a[upper_place(k, j)] = value
        a[k, k] = -reciprocal
    return a


def _pad_to_blocks(matrix: Float[Array, "d d"]) -> Float[Array, "n n"]:
    """A matrix and an identity beside it, as many rows as fill blocks."""
    dim = len(matrix)
    wide = -(-dim // PIVOT_BLOCK) * PIVOT_BLOCK
    return jnp.pad(matrix, (0, wide - dim)) + jnp.asarray(np.diag(np.arange(wide) >= dim), matrix.dtype)


def _inverse_by_blocks(matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The same sweeps, of `PIVOT_BLOCK` pivots at once: the matrix is read and written once for all of them."""
    dim = matrix.shape[0]
    floor = pivot_floor(jnp.max(jnp.abs(jnp.diagonal(matrix))))

    def sweep_block(k, a):
        first = k * PIVOT_BLOCK
        rows = jnp.stack(materialize_all(_block_of_rows(a, first)))
        pivots = lax.dynamic_slice(a, (first, first), (PIVOT_BLOCK, PIVOT_BLOCK))
        swept = _swept({(i, j): pivots[i, j] for i, j in pairs(PIVOT_BLOCK)}, PIVOT_BLOCK, floor)
        corner = full(materialize_all([swept[pair] for pair in pairs(PIVOT_BLOCK)]), PIVOT_BLOCK)
        scaled = materialize(-product(corner, rows))
        a = a - product(rows.T, scaled)
        a = lax.dynamic_update_slice_in_dim(a, scaled, first, axis=0)
        a = lax.dynamic_update_slice_in_dim(a, scaled.T, first, axis=1)
        return lax.dynamic_update_slice(a, corner, (first, first))

    a = _pad_to_blocks(matrix)
    return -lax.fori_loop(0, len(a) // PIVOT_BLOCK, sweep_block, a)[:dim, :dim]


# ---- of general matrices


def off_null(pivot: Array) -> Array:
    """A pivot, the smallest normal number where it is 0."""
    return jnp.where(pivot == 0, jnp.finfo(pivot.dtype).tiny, pivot)


def general_inverse(matrix: Entries, dim: int) -> tuple[Array, ...]:
    """The inverse of a general matrix, d^2 entries by rows, written out.

    By Gauss and Jordan in place, with the largest entry of a column as its pivot. Rows are exchanged by selections,
    which are undone on the columns of the inverse: an identity beside the matrix would make it twice as large.
    """
    rows = [list(matrix[i * dim : (i + 1) * dim]) for i in range(dim)]
    exchanges = []
    for k in range(dim):
        for i in range(k + 1, dim):
            larger = jnp.abs(rows[i][k]) > jnp.abs(rows[k][k])
            rows[k], rows[i] = _exchange_where(larger, rows[k], rows[i])
            exchanges.append((k, i, larger))
        rows = _materialize_rows(rows)
        reciprocal = 1 / off_null(rows[k][k])
        pivot = [reciprocal if j == k else x * reciprocal for j, x in enumerate(rows[k])]
        for i in range(dim):
            if i != k:
                share, rows[i][k] = rows[i][k], jnp.zeros_like(rows[i][k])
                rows[i] = [x - share * y for x, y in zip(rows[i], pivot, strict=True)]
        rows = _materialize_rows([pivot if i == k else row for i, row in enumerate(rows)])
    columns = [list(column) for column in zip(*rows, strict=True)]
    for k, i, larger in reversed(exchanges):
        columns[k], columns[i] = _exchange_where(larger, columns[k], columns[i])
    columns = _materialize_rows(columns)
    return tuple(columns[j][i] for i in range(dim) for j in range(dim))


def _exchange_where(wanted: Array, one: list, other: list) -> tuple[list, list]:
    """Two lists, each in the place of the other where that is wanted."""
    first = [jnp.where(wanted, y, x) for x, y in zip(one, other, strict=True)]
    return first, [jnp.where(wanted, x, y) for x, y in zip(one, other, strict=True)]


def _materialize_rows(rows: list[list]) -> list[list]:
    """Rows of numbers, all computed once."""
    stored, dim = materialize_all(list(itertools.chain(*rows))), len(rows)
    return [stored[i * dim : (i + 1) * dim] for i in range(dim)]


@lanes_first
def solve_transposed(matrix: Float[Array, "... d d"], x: Float[Array, "... m d"]) -> Float[Array, "... m d"]:
    """A'^-1 x of vectors x, where A is a general matrix: `PIVOT_BLOCK` pivots are eliminated at once, in a loop.

    By Gauss and Jordan with the vectors beside A'. A row with the largest entry of a column is its pivot; it stays
    where it is, and rows are put in order at the end.
    """
    lead, dim, number = matrix.shape[:-2], matrix.shape[-1], x.shape[-2]
    more = -dim % PIVOT_BLOCK
    size, nothing = dim + more, [(0, 0)] * len(lead)
    matrix = jnp.pad(matrix, [*nothing, (0, more), (0, more)])
    matrix = matrix + jnp.broadcast_to(jnp.asarray(np.diag(np.arange(size) >= dim), matrix.dtype), matrix.shape)
    x = jnp.pad(x, [*nothing, (0, -number % VECTOR), (0, more)])
    a = jnp.swapaxes(jnp.concatenate([matrix, x], axis=-2), -1, -2)
    start = a, jnp.ones((*lead, size), bool), jnp.zeros((*lead, size), jnp.int32)
    a, _, places = lax.fori_loop(0, size // PIVOT_BLOCK, _eliminate_block, start)
    a = a[..., size:]
    found = jnp.take_along_axis(a, places[..., None], axis=-2)
    return jnp.swapaxes(found, -1, -2)[..., :number, :dim]


def _eliminate_block(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Block k of pivots, from the equations, which rows have no pivot yet, and the rows of the pivots so far."""
    a, free, places = carry
    first = k * PIVOT_BLOCK
    panel = [lax.dynamic_index_in_dim(a, first + j, axis=-1, keepdims=False) for j in range(PIVOT_BLOCK)]
    panel = columns = materialize_all(panel)
    chosen, masks, left = [], [], free
    for j in range(PIVOT_BLOCK):
        chosen.append(argmax(jnp.where(left, jnp.abs(columns[j]), -1)))
        masks.append(one_hot(chosen[j], left.shape[-1]))
        left = left & ~masks[j]
        values = [pick(column, chosen[j]) for column in columns]
        scaled = columns[j] / off_null(values[j])[..., None]
        columns = [column - scaled * value[..., None] for column, value in zip(columns, values, strict=True)]
    rows = [jnp.take_along_axis(a, place[..., None, None], axis=-2)[..., 0, :] for place in chosen]
    corner = materialize_all([pick(column, place) for place in chosen for column in panel])
    inverse = iter(general_inverse(corner, PIVOT_BLOCK))
    rows = materialize_all([reduce(operator.add, (next(inverse)[..., None] * row for row in rows)) for _ in chosen])
    used = free & ~left
    a = jnp.where(used[..., None], 0, a)
    for mask, column, row in zip(masks, panel, rows, strict=True):
        a = a - jnp.where(used, jnp.where(mask, -1, 0), column)[..., None] * row[..., None, :]
    return a, left, lax.dynamic_update_slice_in_dim(places, jnp.stack(chosen, axis=-1), first, axis=-1)


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


def _less(value: Array, products: Iterable[tuple[Any, Any]]) -> Array:
    """A number less products, one after the other."""
    return reduce(lambda left, pair: left - pair[0] * pair[1], products, value)


def _root_or_zero(pivot: Array) -> Array:
    """1 / sqrt(pivot), 0 where the pivot is not above 0."""
    return jnp.where(pivot > 0, lax.rsqrt(jnp.where(pivot > 0, pivot, 1)), 0)


def cholesky(matrix: Symmetric, dim: int) -> Symmetric:
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
    strips, reciprocals = eliminate_symmetric(
        matrix, matrix[..., :0], lambda pivot: jnp.where(pivot > 0, 1 / jnp.where(pivot > 0, pivot, 1), 0), 2
    )
    found = jnp.zeros((*matrix.shape[:-2], *strips[0].shape[-1:] * 2), matrix.dtype)
    end = 0
    for strip, scale in zip(strips, reciprocals, strict=True):
        rows = jnp.triu(strip * jnp.sqrt(scale)[..., None])
        found = lax.dynamic_update_slice(found, rows, (0,) * (matrix.ndim - 2) + (end, end))
        end += strip.shape[-2]
    return found[..., :dim, :dim]


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
