"""How lanes lie in memory before and after a kernel: rows of numbers, one number a lane.

Axes: [S] seeds, [M] points, [B] lanes of a block, [r] rows, [n] the axis that is not held apart, filled up.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.traced_window import OneWindow, lies_along


class Rows(NamedTuple):
    """Where the elements of some arrays lie in arrays [rows, lanes], one a type.

    Arrays of the axis that is not held apart lie in arrays [rows, lanes, n], one a type too.
    """

    kinds: list[tuple[Any, bool]]  # of the arrays: type, whether they have a last axis [n]
    places: list[tuple[int, int]]  # of each element: which array, which row


def stored_as(dtype: Any) -> Any:
    """The type in which numbers of a type lie in memory: truth values as int32."""
    return np.dtype(np.int32) if np.dtype(dtype).kind == "b" else np.dtype(dtype)


def kind_of(one: OneWindow, x: Any) -> tuple[Any, bool]:
    """In which of the arrays of rows an array of one lane lies."""
    return stored_as(x.dtype), lies_along(one, x.shape)


def rows_of(one: OneWindow) -> Rows:
    """The places of the elements of a lane."""
    run, leaves = Apart(1, long=one.long), jax.tree.leaves(one.lane)
    kinds = list(dict.fromkeys(kind_of(one, x) for x in leaves))
    taken, places = [0] * len(kinds), []
    for x in leaves:
        number = kinds.index(kind_of(one, x))
        for _ in range(int(np.prod(run.held(x.shape)))):
            places.append((number, taken[number]))
            taken[number] += 1
    return Rows(kinds, places)


def rows_last(one: OneWindow, x: Any, shape: Sequence[int], begin: int) -> Any:
    """An array [..., *shape] with `begin` first axes as rows [..., r], or [..., r, n]."""
    if one.long is not None and lies_along(one, shape):
        return one.long.last(x, begin)
    return x.reshape(*x.shape[:begin], -1)


def gathered(one: OneWindow, rows: Rows, tree: Any) -> list[Any]:
    """Leaves [S, M, ...] as arrays [M, rows, S] or [M, rows, S, n]."""
    found: list[list[Any]] = [[] for _ in rows.kinds]
    for x, shape in zip(jax.tree.leaves(tree), jax.tree.leaves(one.lane), strict=True):
        kind = kind_of(one, shape)
        each = rows_last(one, x, shape.shape, 2).astype(kind[0])
        found[rows.kinds.index(kind)].append(jnp.moveaxis(each, 0, 2))
    return [jnp.concatenate(each, axis=1) for each in found]


def spread(one: OneWindow, rows: Rows, arrays: Sequence[Any]) -> Any:
    """The tree of leaves [S, M, ...] that `gathered` was given."""
    run, taken, leaves = Apart(1, long=one.long), [0] * len(rows.kinds), []
    for x in jax.tree.leaves(one.lane):
        number, size = rows.kinds.index(kind_of(one, x)), int(np.prod(run.held(x.shape)))
        some = jnp.moveaxis(arrays[number][:, taken[number] : taken[number] + size], 2, 0)
        leaves.append(back_from(one, some, x.shape).astype(x.dtype))
        taken[number] += size
    return jax.tree.unflatten(jax.tree.structure(one.lane), leaves)


def back_from(one: OneWindow, rows: Any, shape: Sequence[int]) -> Any:
    """The array [..., *shape] of which `rows_last` made rows."""
    if one.long is not None and lies_along(one, shape):
        return one.long.back(rows, shape)
    return rows.reshape(*rows.shape[:-1], *shape)


# ---- inside of a kernel

# Compilers follow every single load and store through the whole kernel: with 178 of them `jdp_linucb` took 28 s of
# one core to compile, and read at once 3 to 6.
FEW_ROWS = 16  # so many rows are read and written one by one; of more, so many at once as a power of two is
MOST_ROWS = 64  # that are read or written at once: they pass through memory that threads share


def at_once(rows: int, block: int) -> int:
    """How many of some rows are read or written at once. Compilers refuse it for blocks of one lane."""
    return 1 if rows <= FEW_ROWS or block == 1 else min(MOST_ROWS, 1 << (rows - 1).bit_length())


def filled_up(x: Any, block: int) -> Any:
    """Rows [M, rows, S, ...] with further ones, so that they can be read as many at once."""
    return jnp.pad(x, ((0, 0), (0, -x.shape[1] % at_once(x.shape[1], block)), *((0, 0),) * (x.ndim - 2)))


# docs/decisions.md#rows-at-once
def read_rows(ref: Any, block: int) -> list[Any]:
    """The rows of a reference [1, rows, B], each [B], or of one [1, rows, B, n], each [B, n]."""
    size = at_once(ref.shape[1], block)
    if size == 1:
        return [ref[0, at] for at in range(ref.shape[1])]
    parts = [lax.split(ref[0, at : at + size, :], (1,) * size, axis=0) for at in range(0, ref.shape[1], size)]
    return [x.reshape(block) for part in parts for x in part]


def write_rows(ref: Any, rows: list[Any]) -> None:
    """Write rows into a reference that `read_rows` reads; what it is filled up with does not matter."""
    size = at_once(*ref.shape[1:3])
    rows = rows + rows[:1] * (ref.shape[1] - len(rows))
    for at in range(0, len(rows), size):
        if size == 1:
            ref[0, at] = rows[at]
        else:
            ref[0, at : at + size, :] = _side_by_side(rows[at : at + size]).T


def _side_by_side(columns: list[Any]) -> Any:
    """Columns [B], as many as a power of two is, as an array [B, n]: those of even and of odd places take turns."""
    if len(columns) == 1:
        return columns[0][:, None]
    pair = [_side_by_side(columns[first::2])[..., None] for first in (0, 1)]
    return lax.concatenate(pair, 2).reshape(-1, len(columns))
