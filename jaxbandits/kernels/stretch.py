"""A stretch of plays as one kernel: lanes, their record and the play's counters stay in registers.

One thread plays one lane from checkpoint to checkpoint; where there are many arms, a warp does. A block holds lanes of
one point, so that parameters are numbers that the whole block shares. Nothing crosses from lane to lane.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.elements import Elements, listed
from jaxbandits.kernels.lane_rows import (
    back_from,
    filled_up,
    gathered,
    read_rows,
    rows_last,
    rows_of,
    spread,
    write_rows,
)
from jaxbandits.kernels.traced_window import OneWindow, element_shapes, packed_lane, played, without_rows, written_out
from jaxbandits.protocol import Case
from jaxbandits.window import Lane


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
