"""A stretch of plays as one kernel: lanes, their record and the play's counters stay in registers.

One thread plays one lane from checkpoint to checkpoint. A block holds lanes of one point, so that parameters are
numbers that the whole block shares. Nothing crosses from lane to lane.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.extend.core import ClosedJaxpr
from jax.interpreters.partial_eval import dce_jaxpr

from jaxbandits import recorder
from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.control_rules import Packed
from jaxbandits.kernels.elements import Elements, held_apart, listed, single
from jaxbandits.protocol import Case
from jaxbandits.window import Lane, Parts, offer


class OneWindow(NamedTuple):
    """A window of one play of one lane, traced. Its operands: numbers of the case, seed, lane, plays made before."""

    traced: ClosedJaxpr
    lane: Any  # shapes of a lane, without its rows at the checkpoints
    case: Any  # shapes of the numbers of a case


def without_rows(lane: Lane) -> Lane:
    """A lane without what is written at checkpoints only."""
    return lane._replace(record=lane.record._replace(pulls_at=(), regret_at=()))


def one_window(parts: Parts, case: Case, lane: Lane) -> OneWindow:
    """Trace a window of one play. case, lane: shapes of one lane."""
    lane = without_rows(lane)

    def play(case: Case, seed: Any, lane: Lane, before: Any) -> Lane:
        lane, window = offer(parts, case, seed, 1, lane, before, None)
        pulls, regret = recorder.add(lane.record, window, None)
        return lane._replace(record=lane.record._replace(pulls=pulls, regret=regret))

    seed, before = jax.ShapeDtypeStruct((), np.uint32), jax.ShapeDtypeStruct((), np.int32)
    traced = jax.make_jaxpr(play)(case, seed, lane, before)
    read, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), instantiate=True)  # without what nothing reads
    return OneWindow(ClosedJaxpr(read, traced.consts), lane, case)


def packed_lane(one: OneWindow, run: Apart) -> Packed:
    """How the elements of a lane lie in a flat list."""
    return Packed([held_apart(np.zeros(x.shape, x.dtype)) for x in jax.tree.leaves(one.lane)], run.block)


def played(one: OneWindow, run: Apart, case: Sequence[Elements], seed: Any, lane: list[Any], before: Any) -> list[Any]:
    """The elements of a lane after one more window, each [B]."""
    packed = packed_lane(one, run)
    arrays = run.closed(one.traced, [*case, single(seed), *packed.arrays(lane), single(before)])
    return packed.flat(arrays, [True] * len(lane))


class Rows(NamedTuple):
    """Where the elements of some arrays lie in one array [rows, lanes] a type."""

    dtypes: list[Any]  # of the arrays [rows, lanes]
    places: list[tuple[int, int]]  # of each element: which array, which row


def stored_as(dtype: Any) -> Any:
    """The type in which numbers of a type lie in memory: truth values as int32."""
    return np.dtype(np.int32) if np.dtype(dtype).kind == "b" else np.dtype(dtype)


def rows_of(shapes: Any) -> Rows:
    """The places of the elements of a tree of shapes."""
    dtypes: list[Any] = []
    taken: list[int] = []
    places = []
    for x in jax.tree.leaves(shapes):
        if stored_as(x.dtype) not in dtypes:
            dtypes.append(stored_as(x.dtype))
            taken.append(0)
        number = dtypes.index(stored_as(x.dtype))
        for _ in range(int(np.prod(x.shape))):
            places.append((number, taken[number]))
            taken[number] += 1
    return Rows(dtypes, places)


def gathered(rows: Rows, tree: Any) -> list[Any]:
    """Leaves [S, M, ...] as one array [M, rows, S] a type."""
    found: list[list[Any]] = [[] for _ in rows.dtypes]
    for x in jax.tree.leaves(tree):
        dtype = stored_as(x.dtype)
        found[rows.dtypes.index(dtype)].append(jnp.moveaxis(x.reshape(*x.shape[:2], -1), 0, -1).astype(dtype))
    return [jnp.concatenate(each, axis=1) for each in found]


def spread(rows: Rows, arrays: Sequence[Any], shapes: Any) -> Any:
    """The tree of leaves [S, M, ...] that `gathered` was given."""
    taken, leaves = [0] * len(rows.dtypes), []
    for x in jax.tree.leaves(shapes):
        number, size = rows.dtypes.index(stored_as(x.dtype)), int(np.prod(x.shape))
        some = arrays[number][:, taken[number] : taken[number] + size]
        leaves.append(jnp.moveaxis(some, -1, 0).reshape(some.shape[-1], some.shape[0], *x.shape).astype(x.dtype))
        taken[number] += size
    return jax.tree.unflatten(jax.tree.structure(shapes), leaves)


# ---- the kernel


class Bounds(NamedTuple):
    """Which plays a stretch makes, int32 each."""

    low: Any  # plays made before
    high: Any  # plays made after
    row: Any  # the first checkpoint after `low`
    rows: Any  # the checkpoints that are written


def advance(
    one: OneWindow, case: Case, seeds: Any, lane: Lane, times: Any, bounds: Bounds, *,
    block: int, interpret: bool = False,
) -> Lane:  # fmt: skip
    """The lanes after a stretch of windows of one play each. `plays` and `next` stay as they are.

    Parameters
    ----------
    one : OneWindow
        What a window of one play does.
    case : Case
        Numbers of the points: [M, ...], or [1, ...] where they are the same for all.
    seeds : array
        Seeds [S], a multiple of `block`.
    lane : Lane
        The lanes before, [S, M, ...].
    times : array
        The checkpoints [C], int32.
    bounds : Bounds
        Which plays are made.
    block : int
        Lanes that one block of threads plays.
    interpret : bool
        Whether the kernel is interpreted, on any platform. Default: False.

    Returns
    -------
    Lane
        The lanes after, [S, M, ...].
    """
    rows, points = rows_of(one.lane), lane.plays.shape[1]
    numbers = [x.reshape(x.shape[0], -1) for x in jax.tree.leaves(case)]
    states = gathered(rows, without_rows(lane))
    written = jax.tree.leaves((lane.record.pulls_at, lane.record.regret_at))
    tables = [jnp.moveaxis(x.reshape(*x.shape[:3], -1), 0, -1) for x in written]  # [M, C, n, S]
    limits = jnp.stack([jnp.asarray(x, jnp.int32) for x in bounds])
    inputs = [limits, times, seeds, *numbers, *states, *tables]

    def kernel(*refs: Any) -> None:
        ins, outs = refs[: len(inputs)], refs[len(inputs) :]
        limit, time, seed = ins[0], ins[1], ins[2][...]
        of_case, of_state = ins[3 : 3 + len(numbers)], ins[3 + len(numbers) : 3 + len(numbers) + len(states)]
        state_outs, table_outs = outs[: len(states)], outs[len(states) :]
        shapes = [x.shape for x in jax.tree.leaves(one.case)]
        values = [
            listed([ref[0, i] for i in range(int(np.prod(shape)))]).reshape(shape)
            for ref, shape in zip(of_case, shapes, strict=True)
        ]

        def play(before: Any, flat: list[Any]) -> list[Any]:
            return played(one, Apart(block), values, seed, flat, before)

        def up_to(k: Any, flat: list[Any]) -> list[Any]:
            begun = jnp.where(k > 0, time[jnp.maximum(k - 1, 0)], 0)
            flat = lax.fori_loop(jnp.maximum(limit[0], begun), jnp.minimum(limit[1], time[k]), play, flat)
            arrays = packed_lane(one, Apart(block)).arrays(flat)
            now = jax.tree.unflatten(jax.tree.structure(one.lane), arrays)
            totals = [x for column, x in zip(record_columns(lane), record_totals(now), strict=True) if column]
            for table, total in zip(table_outs, totals, strict=True):
                for i, element in enumerate(total.reshape(-1)):
                    table[0, k, i, :] = element
            return flat

        types = packed_lane(one, Apart(block)).dtypes
        flat = [
            of_state[number][0, at, :].astype(dtype) for (number, at), dtype in zip(rows.places, types, strict=True)
        ]
        flat = lax.fori_loop(limit[2], limit[2] + limit[3], up_to, flat)
        for (number, at), element in zip(rows.places, flat, strict=True):
            state_outs[number][0, at, :] = element.astype(rows.dtypes[number])

    def whole(x: Any) -> pl.BlockSpec:
        return pl.BlockSpec(x.shape, lambda m, s: (0,) * x.ndim)

    def of_point(x: Any) -> pl.BlockSpec:
        return pl.BlockSpec((1, *x.shape[1:]), lambda m, s: (m if x.shape[0] > 1 else 0, 0))

    def of_lanes(x: Any) -> pl.BlockSpec:
        return pl.BlockSpec((1, *x.shape[1:-1], block), lambda m, s: (m, *(0,) * (x.ndim - 2), s))

    carried = [*states, *tables]
    after = pl.pallas_call(
        kernel,
        grid=(points, seeds.shape[0] // block),
        in_specs=[
            whole(limits), whole(times), pl.BlockSpec((block,), lambda m, s: (s,)), *map(of_point, numbers),
            *map(of_lanes, carried),
        ],
        out_specs=list(map(of_lanes, carried)),
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in carried],
        input_output_aliases={len(inputs) - len(carried) + i: i for i in range(len(carried))},
        compiler_params=None if interpret else triton.CompilerParams(num_warps=max(1, block // 32), num_stages=1),
        interpret=interpret,
    )(*inputs)  # fmt: skip
    small = spread(rows, after[: len(states)], one.lane)
    columns = [jnp.moveaxis(x, -1, 0).reshape(old.shape) for x, old in zip(after[len(states) :], written, strict=True)]
    at = jax.tree.unflatten(jax.tree.structure((lane.record.pulls_at, lane.record.regret_at)), columns)
    return small._replace(record=small.record._replace(pulls_at=at[0], regret_at=at[1]))


def record_columns(lane: Lane) -> list[bool]:
    """Which of the totals of a record are written at checkpoints: pulls, and the two parts of regret."""
    record = lane.record
    return [not isinstance(record.pulls_at, tuple)] * (not isinstance(record.pulls, tuple)) + [
        bool(record.regret_at)
    ] * (2 if record.regret else 0)


def record_totals(lane: Lane) -> list[Any]:
    """The totals of a record: pulls, and the two parts of regret."""
    return [*([] if isinstance(lane.record.pulls, tuple) else [lane.record.pulls]), *lane.record.regret]
