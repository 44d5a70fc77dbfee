"""A stretch of plays as one kernel: lanes, their record and the play's counters stay in registers.

One thread plays one lane from checkpoint to checkpoint; where there are many arms, a warp does. A block holds lanes of
one point, so that parameters are numbers that the whole block shares. Nothing crosses from lane to lane.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr

from jaxbandits import recorder
from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.control_rules import Packed
from jaxbandits.kernels.elements import Elements, held_apart, listed, single
from jaxbandits.kernels.long_axis import LongAxis
from jaxbandits.kernels.order import few_alive
from jaxbandits.protocol import Case
from jaxbandits.window import Lane, Parts, offer


class OneWindow(NamedTuple):
    """A window of one lane, traced. Its operands: numbers of the case, seed, lane, and numbers that say which plays.

    Of a window of one play, that is how many plays were made before. It gives the lane, and what else is asked for.
    """

    traced: ClosedJaxpr
    lane: Any  # shapes of a lane, without its rows at the checkpoints
    case: Any  # shapes of the numbers of a case
    apart: bool = False  # whether the numbers that say which plays differ between lanes
    long: LongAxis | None = None  # the axis that is not held apart


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
    return OneWindow(read_only(traced), lane, case)


def packed_lane(one: OneWindow, run: Apart) -> Packed:
    """How the elements of a lane lie in a flat list."""
    return Packed([held_apart(np.zeros(run.held(x.shape), x.dtype)) for x in jax.tree.leaves(one.lane)])


def element_shapes(one: OneWindow, run: Apart) -> list[tuple[int, ...]]:
    """The shapes of the elements of a lane."""
    return run.element_shapes(x.shape for x in jax.tree.leaves(one.lane))


def written_out(one: OneWindow, lanes: int) -> ClosedJaxpr:
    """A window on a block of lanes with every element held apart, in an order that keeps few numbers alive.

    Its operands are the elements of the lane, seeds [B], the numbers that say which plays, and the elements of the
    case. It gives the elements of the lane, and then the others that are asked for.
    """
    run = Apart(lanes, long=one.long)
    if one.long is not None and not all(one.long.fits(x.shape) for x in one.traced.in_avals):
        raise run.unsupported(f"an array with two axes of {one.long.length}")
    packed, numbers = packed_lane(one, run), jax.tree.leaves(one.case)
    which, shapes = len(one.traced.in_avals) - len(numbers) - 1 - len(packed.shapes), element_shapes(one, run)

    def play(flat: list[Any], seed: Any, which: list[Any], case: list[list[Any]]) -> list[Any]:
        values = [listed(each).reshape(run.held(x.shape)) for each, x in zip(case, numbers, strict=True)]
        arrays = run.closed(one.traced, [*values, single(seed), *packed.arrays(flat), *map(single, which)])
        lane, others = arrays[: len(packed.shapes)], arrays[len(packed.shapes) :]
        return [*packed.flat(lane, shapes), *(x for array in others for x in array.reshape(-1))]

    traced = jax.make_jaxpr(play)(
        list(map(jax.ShapeDtypeStruct, shapes, packed.dtypes)),
        jax.ShapeDtypeStruct(run.block, np.uint32),
        [jax.ShapeDtypeStruct(run.block if one.apart else (), np.int32)] * which,
        [[shared_number(one, x)] * int(np.prod(run.held(x.shape))) for x in numbers],
    )
    return ClosedJaxpr(few_alive(read_only(traced).jaxpr), traced.consts)


def lies_along(one: OneWindow, shape: Sequence[int]) -> bool:
    """Whether an array of one lane has the axis that is not held apart."""
    return one.long is not None and one.long.length in shape


def shared_number(one: OneWindow, x: Any) -> jax.ShapeDtypeStruct:
    """The shape of an element of an array of a case, which all lanes of a block share."""
    return jax.ShapeDtypeStruct((1, one.long.padded) if one.long and lies_along(one, x.shape) else (), x.dtype)


def read_only(traced: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function without what nothing reads."""
    read, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), instantiate=True)
    return ClosedJaxpr(read, traced.consts)


def played(step: ClosedJaxpr, case: Sequence[Elements], seed: Any, lane: list[Any], which: Sequence[Any]) -> list[Any]:
    """What a window gives that is `written_out`: the elements of its lane, then the others."""
    numbers = [x for array in case for x in array.reshape(-1)]
    found: list[Any] = jaxpr_as_fun(step)(*lane, seed, *which, *numbers)
    return found


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

    bounds: which plays are made. The others are as `over_blocks` takes them.
    """

    def plays(inside: Inside, flat: list[Any]) -> list[Any]:
        limit, time, step = inside.limits, inside.times, written_out(one, block)

        # Always 0, which no compiler knows: a play that is plainly counted would get a register for each of its sums.
        nothing = limit[2] >> jnp.int32(31)

        def play(before: Any, flat: list[Any]) -> list[Any]:
            return played(step, inside.case, inside.seed, flat, [before ^ nothing])

        def up_to(k: Any, flat: list[Any]) -> list[Any]:
            begun = jnp.where(k > 0, time[jnp.maximum(k - 1, 0)], 0)
            flat = lax.fori_loop(jnp.maximum(limit[0], begun), jnp.minimum(limit[1], time[k]), play, flat)
            arrays = packed_lane(one, Apart(block, long=one.long)).arrays(flat)
            write(inside, k, record_totals(lane, jax.tree.unflatten(jax.tree.structure(one.lane), arrays)))
            return flat

        return lax.fori_loop(limit[2], limit[2] + limit[3], up_to, flat)

    return over_blocks(one, case, seeds, lane, times, bounds, plays, block=block, interpret=interpret)


class Inside(NamedTuple):
    """What a block of threads reads and writes beside the numbers of its lanes."""

    limits: Any  # a reference: the numbers that say what is played, int32, the same for all lanes
    times: Any  # a reference: the checkpoints
    seed: Any  # [B]
    case: list[Elements]
    tables: list[Any]  # references [1, C, r, B] or [1, C, r, B, n]: what is written at checkpoints


def write(inside: Inside, row: Any, totals: Sequence[Elements]) -> None:
    """Write the totals at a checkpoint, the same one for all lanes."""
    for table, total in zip(inside.tables, totals, strict=True):
        for i, element in enumerate(total.reshape(-1)):
            table[0, row, i] = jnp.broadcast_to(element, table.shape[3:]) if table.ndim > 4 else element.reshape(-1)


def over_blocks(
    one: OneWindow, case: Case, seeds: Any, lane: Lane, times: Any, limits: Sequence[Any],
    plays: Callable[[Inside, list[Any]], list[Any]], *, block: int, interpret: bool = False,
) -> Lane:  # fmt: skip
    """The lanes after plays that are made in one kernel.

    Parameters
    ----------
    one : OneWindow
        The shapes of a lane and of the numbers of a case.
    case : Case
        Numbers of the points: [M, ...], or [1, ...] where they are the same for all.
    seeds : array
        Seeds [S], a multiple of `block`.
    lane : Lane
        The lanes before, [S, M, ...].
    times : array
        The checkpoints [C], int32.
    limits : sequence of numbers
        What says which plays are made, int32 each.
    plays : function
        Given what a block reads and the elements of its lanes, the elements after.
    block : int
        Lanes that one block of threads plays.
    interpret : bool
        Whether the kernel is interpreted, on any platform. Default: False.

    Returns
    -------
    Lane
        The lanes after, [S, M, ...].
    """
    rows, points = rows_of(one), lane.plays.shape[1]
    numbers = [
        rows_last(one, x, shape.shape, 1)
        for x, shape in zip(jax.tree.leaves(case), jax.tree.leaves(one.case), strict=True)
    ]
    states = [filled_up(x, block) for x in gathered(one, rows, without_rows(lane))]
    written = jax.tree.leaves((lane.record.pulls_at, lane.record.regret_at))
    tables = [jnp.moveaxis(rows_last(one, x, x.shape[3:], 3), 0, 3) for x in written]  # [M, C, r, S] or [M, C, r, S, n]
    shared = jnp.stack([jnp.asarray(x, jnp.int32) for x in limits])
    inputs = [shared, times, seeds, *numbers, *states, *tables]

    def kernel(*refs: Any) -> None:
        ins, outs = refs[: len(inputs)], refs[len(inputs) :]
        of_case, of_state = ins[3 : 3 + len(numbers)], ins[3 + len(numbers) : 3 + len(numbers) + len(states)]
        run = Apart(block, long=one.long)
        values = [
            listed([ref[0, i] if ref.ndim == 2 else ref[0, i, :][None] for i in range(ref.shape[1])]).reshape(
                run.held(x.shape)
            )
            for ref, x in zip(of_case, jax.tree.leaves(one.case), strict=True)
        ]
        begun = [read_rows(ref, block) for ref in of_state]
        flat = [
            begun[number][at].reshape(shape).astype(dtype)
            for (number, at), shape, dtype in zip(
                rows.places, element_shapes(one, run), packed_lane(one, run).dtypes, strict=True
            )
        ]
        seed = ins[2][...].reshape(run.block)
        flat = plays(Inside(ins[0], ins[1], seed, values, list(outs[len(states) :])), flat)
        ended: list[list[Any]] = [[] for _ in rows.kinds]
        for (number, _), element in zip(rows.places, flat, strict=True):
            dtype, along = rows.kinds[number]
            ended[number].append(element.reshape(*element.shape[:1], *element.shape[1:] * along).astype(dtype))
        for ref, elements in zip(outs[: len(ended)], ended, strict=True):
            write_rows(ref, elements)

    def whole(x: Any) -> pl.BlockSpec:
        return pl.BlockSpec(x.shape, lambda m, s: (0,) * x.ndim)

    def of_point(x: Any) -> pl.BlockSpec:
        return pl.BlockSpec((1, *x.shape[1:]), lambda m, s: (m if x.shape[0] > 1 else 0, *(0,) * (x.ndim - 1)))

    def of_lanes(x: Any, lanes: int) -> pl.BlockSpec:
        shape = (1, *x.shape[1:lanes], block, *x.shape[lanes + 1 :])
        return pl.BlockSpec(shape, lambda m, s: (m, *(0,) * (lanes - 1), s, *(0,) * (x.ndim - lanes - 1)))

    carried = [*states, *tables]
    blocks = [*(of_lanes(x, 2) for x in states), *(of_lanes(x, 3) for x in tables)]
    warps = max(1, block // 32) if one.long is None else block
    after = pl.pallas_call(
        kernel,
        grid=(points, seeds.shape[0] // block),
        in_specs=[
            whole(shared), whole(times), pl.BlockSpec((block,), lambda m, s: (s,)), *map(of_point, numbers),
            *blocks,
        ],
        out_specs=blocks,
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in carried],
        input_output_aliases={len(inputs) - len(carried) + i: i for i in range(len(carried))},
        compiler_params=None if interpret else triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
    )(*inputs)  # fmt: skip
    small = spread(one, rows, after[: len(states)])
    columns = [
        back_from(one, jnp.moveaxis(x, 3, 0), old.shape[3:])
        for x, old in zip(after[len(states) :], written, strict=True)
    ]
    at = jax.tree.unflatten(jax.tree.structure((lane.record.pulls_at, lane.record.regret_at)), columns)
    return small._replace(record=small.record._replace(pulls_at=at[0], regret_at=at[1]))


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


def record_columns(lane: Lane) -> list[bool]:
    """Which of the totals of a record are written at checkpoints: pulls, and the two parts of regret."""
    record = lane.record
    return [not isinstance(record.pulls_at, tuple)] * (not isinstance(record.pulls, tuple)) + [
        bool(record.regret_at)
    ] * (2 if record.regret else 0)


def record_totals(lane: Lane, now: Lane) -> list[Any]:
    """What is written at a checkpoint of the totals that lanes have now: pulls, and the two parts of regret.

    lane: lanes with their rows at the checkpoints.
    """
    totals = [*([] if isinstance(now.record.pulls, tuple) else [now.record.pulls]), *now.record.regret]
    return [x for written, x in zip(record_columns(lane), totals, strict=True) if written]
