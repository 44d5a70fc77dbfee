"""Windows whose length the algorithm decides as one kernel: every lane is at a play of its own.

Axes: [B] lanes of a block, [C] checkpoints.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.pallas import triton
from jax.extend.core import ClosedJaxpr

from jaxbandits import recorder, simulator
from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.elements import Elements, single
from jaxbandits.kernels.stretch import Inside, over_blocks
from jaxbandits.kernels.traced_window import element_shapes, packed_lane, read_only, written_out
from jaxbandits.kernels.windows import LATER, Windows, as_lane, play_window, totals_at, traced_windows
from jaxbandits.protocol import Case
from jaxbandits.recorder import Window
from jaxbandits.window import Lane, Parts, offer


class Counted(NamedTuple):
    """A counted window of one lane, traced."""

    windows: Windows  # it is told after which play it ends at the latest
    moves: ClosedJaxpr  # numbers of the case, lane, the last play -> whether a lane has plays to make
    ahead: int | None  # a window ends at the latest so many checkpoints after the next one; None: at the last play
    split: int  # so many windows are played where the span has one
    rest: Callable[[Case, Lane, Any], Lane]  # counts what remains of lanes at rest


def counted_windows(parts: Parts, case: Case, lane: Lane, kind: tuple[int, bool, bool], slots: int) -> Counted:
    """Trace a counted window of `slots` plays, at most those of the span. case, lane: shapes of one lane."""
    counts = recorder.counts(lane.record)
    one_arm = parts.program.hints.one_arm and counts

    def known_by_counts(lane: Lane) -> Lane:  # `resting` asks whether there are rows, and does not read them
        return lane._replace(record=lane.record._replace(pulls_at=None if counts else ()))

    def play(case: Case, seed: Any, lane: Lane, stop: Any) -> tuple[Lane, Window]:
        arm = simulator.resting(parts, case, known_by_counts(lane))
        stop = stop if arm is None else jnp.where(arm >= 0, lane.plays, stop)
        after, window = offer(parts, case, seed, slots, lane, lane.plays, stop - lane.plays)
        return after._replace(plays=lane.plays + window.used), window

    def moving(case: Case, lane: Lane, horizon: Any) -> Any:
        return simulator.moves(parts, case, known_by_counts(lane), horizon)

    windows = traced_windows(play, case, lane, 1, slots, one_arm)
    one = windows.one._replace(apart=True)
    moves = jax.make_jaxpr(moving)(case, one.lane, jax.ShapeDtypeStruct((), np.int32))
    inside = recorder.CHECKPOINTS_INSIDE - 1 if one_arm else 0
    return Counted(
        windows=windows._replace(one=one), moves=read_only(moves), ahead=None if kind[2] else inside,
        split=-(-kind[0] // slots), rest=partial(simulator.count_rest, parts),
    )  # fmt: skip


def write_apart(inside: Inside, rows: Any, here: Any, totals: Sequence[Elements]) -> None:
    """Write the totals at checkpoints, in each lane that is at one at a row of its own. rows, here: [B]."""
    block = rows.shape[0]
    rows, here, lanes = rows.reshape(block), here.reshape(block), jnp.arange(block)
    for table, total in zip(inside.tables, totals, strict=True):
        for i, element in enumerate(total.reshape(-1)):
            if table.ndim == 4:
                triton.store(table.at[0, rows, i, lanes], jnp.broadcast_to(element.reshape(-1), (block,)), mask=here)
                continue
            shape = block, table.shape[4]
            at = rows[:, None], i, lanes[:, None], jnp.arange(shape[1])[None]
            triton.store(
                table.at[(0, *at)], jnp.broadcast_to(element, shape), mask=jnp.broadcast_to(here[:, None], shape)
            )


def advance(
    counted: Counted, case: Case, seeds: Any, lane: Lane, times: Any, windows: Any, *,
    block: int, interpret: bool = False,
) -> Lane:  # fmt: skip
    """The lanes after windows of a span that is not full.

    windows: how many the span has, int32; a block stops when none of its lanes has a play to make. The others are as
    `stretch.over_blocks` takes them.
    """
    one, last_row = counted.windows.one, times.shape[0] - 1

    def any_lane(condition: Any) -> Any:
        return jnp.max(condition.astype(jnp.int32)) > 0

    def plays(inside: Inside, flat: list[Any]) -> list[Any]:
        limit, time, run = inside.limits[0], inside.times, Apart(block, long=one.long)
        horizon, step = time[last_row], written_out(one, block)

        def time_of(rows: Any) -> Any:
            return jnp.where(rows <= last_row, time[jnp.minimum(rows, last_row)], LATER)

        def goes_on(carry: Any) -> Any:
            with run.scope():
                given = [*inside.case, *packed_lane(one, run).arrays(carry[:-1]), single(horizon)]
                [moves] = run.closed(counted.moves, given)
                return (carry[-1] > 0) & any_lane(jnp.broadcast_to(moves[()], run.block))

        def one_window(carry: Any) -> Any:
            row = as_lane(one, packed_lane(one, run).arrays(carry[:-1])).next[()]
            stop = jnp.full(run.block, horizon)
            if counted.ahead is not None:
                stop = time[jnp.minimum(row + counted.ahead, last_row)]
            with run.scope():
                window = play_window(counted.windows, step, run, inside, carry[:-1], (stop,))
                done = window.lane.plays[()]

                def at_checkpoint(carry: Any) -> Any:
                    here = carry[0] <= done
                    write_apart(inside, carry[1], here, totals_at(counted.windows, run, window, carry[0]))
                    rows = carry[1] + here.astype(jnp.int32)
                    return time_of(rows), rows

                _, row = lax.while_loop(lambda carry: any_lane(carry[0] <= done), at_checkpoint, (time_of(row), row))
                arrays = jax.tree.leaves(window.lane._replace(next=single(row)))
                return [*packed_lane(one, run).flat(arrays, element_shapes(one, run)), carry[-1] - 1]

        return lax.while_loop(goes_on, one_window, [*flat, limit])[:-1]

    limits = [windows * counted.split]
    return over_blocks(one, case, seeds, lane, times, limits, plays, block=block, interpret=interpret)
