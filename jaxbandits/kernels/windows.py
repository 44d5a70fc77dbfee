"""Windows of several plays as one kernel. All plays of a window are written out, and it may hold several checkpoints.

Axes: [P] plays of a window, [B] lanes of a block, [C] checkpoints.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr

from jaxbandits import recorder
from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.control_rules import Packed
from jaxbandits.kernels.elements import Elements, held_apart, single
from jaxbandits.kernels.stretch import Inside, over_blocks, record_totals, write
from jaxbandits.kernels.traced_window import (
    OneWindow,
    element_shapes,
    packed_lane,
    played,
    read_only,
    without_rows,
    written_out,
)
from jaxbandits.protocol import Case
from jaxbandits.recorder import Window
from jaxbandits.spans import plays_of_window
from jaxbandits.window import Lane, Parts, offer

LATER = np.int32(2**31 - 1)  # the time of a checkpoint after the last


class Windows(NamedTuple):
    """A window of several plays of one lane, traced."""

    one: OneWindow  # gives the lane, and then what its totals at checkpoints follow from
    # numbers of the record before the window, what `one` gives beside the lane, a checkpoint -> what is written there
    totals: ClosedJaxpr
    slots: int


class Limits(NamedTuple):
    """Which windows are played, int32 each: `spans.Segment` and the last play."""

    before: Any
    left: Any
    length: Any
    row: Any
    windows: Any
    horizon: Any


def traced_windows(
    play: Callable[..., tuple[Lane, Window]], case: Case, lane: Lane, numbers: int, slots: int, one_arm: bool
) -> Windows:
    """Trace a window and its totals at a checkpoint.

    Parameters
    ----------
    play : function
        Given case, seed, lane and numbers that say which plays are made, the lane after and what the window produced.
    case, lane : Case, Lane
        Shapes of one lane.
    numbers : int
        How many numbers `play` takes beside the lane.
    slots : int
        Plays of a window.
    one_arm : bool
        Whether a window plays one arm, from whose plays alone all totals follow.
    """
    rowless = without_rows(lane)

    def shown(case: Case, seed: Any, lane: Lane, *which: Any) -> tuple[Lane, Window]:
        after, window = play(case, seed, lane, *which)
        pulls, regret = recorder.add(lane.record, window, window.play)
        after = after._replace(record=lane.record._replace(pulls=pulls, regret=regret))
        unread: Any = ()
        return after, window._replace(action=unread, reward=unread, message=unread, released=unread)

    def totals(before: Any, window: Window, time: Any) -> list[Any]:
        record = rowless.record._replace(pulls=before[0], regret=before[1])
        if one_arm:
            plays = jnp.clip(time - (window.t[0] - 1), 0, window.used)
            arms = jnp.arange(record.pulls.shape[0], dtype=window.arm.dtype)
            pulls, regret = record.pulls + plays * (arms == window.arm[0]).astype(jnp.int32), record.regret
        else:
            pulls, regret = recorder.add(record, window, window.play & (window.t <= time))
        return record_totals(lane, rowless._replace(record=record._replace(pulls=pulls, regret=regret)))

    seed, number = jax.ShapeDtypeStruct((), np.uint32), jax.ShapeDtypeStruct((), np.int32)
    given = case, seed, rowless, *[number] * numbers
    traced, (_, window) = jax.make_jaxpr(shown, return_shape=True)(*given)
    before = rowless.record.pulls, rowless.record.regret
    one = OneWindow(read_only(traced), rowless, case)
    return Windows(one, read_only(jax.make_jaxpr(totals)(before, window, number)), slots)


def full_windows(parts: Parts, case: Case, lane: Lane, slots: int) -> Windows:
    """Trace a window of a full span. It is told how many plays were made before, and how many it makes at most."""

    def play(case: Case, seed: Any, lane: Lane, before: Any, limit: Any) -> tuple[Lane, Window]:
        return offer(parts, case, seed, slots, lane, before, limit)

    return traced_windows(play, case, lane, 2, slots, one_arm=False)


def as_lane(one: OneWindow, arrays: Sequence[Any]) -> Lane:
    """The arrays of a lane by name."""
    lane: Lane = jax.tree.unflatten(jax.tree.structure(one.lane), arrays)
    return lane


class Played(NamedTuple):
    """A window that was played, on elements."""

    lane: Lane
    before: list[Elements]  # the totals of the record before
    shown: list[Elements]  # what its totals at checkpoints follow from


def play_window(
    windows: Windows, step: ClosedJaxpr, run: Apart, inside: Inside, flat: list[Any], which: Sequence[Any]
) -> Played:
    """Play a window. step: the window, written out. which: the numbers that say which plays."""
    packed = packed_lane(windows.one, run)
    found = played(step, inside.case, inside.seed, flat, which)
    record = as_lane(windows.one, packed.arrays(flat)).record
    others = Packed(
        [held_apart(np.zeros(run.held(x.shape), x.dtype)) for x in windows.one.traced.out_avals[len(packed.shapes) :]]
    )
    return Played(
        as_lane(windows.one, packed.arrays(found[: len(flat)])), jax.tree.leaves((record.pulls, record.regret)),
        others.arrays(found[len(flat) :]),
    )  # fmt: skip


def totals_at(windows: Windows, run: Apart, played: Played, time: Any) -> list[Elements]:
    """What is written of a window at a checkpoint."""
    with run.scope():
        return run.closed(windows.totals, [*played.before, *played.shown, single(time)])


def advance(
    windows: Windows, case: Case, seeds: Any, lane: Lane, times: Any, limits: Limits, *,
    block: int, interpret: bool = False,
) -> Lane:  # fmt: skip
    """The lanes after windows of a full span.

    limits: which windows are played. The others are as `stretch.over_blocks` takes them.
    """
    slots, last_row = windows.slots, times.shape[0] - 1

    def plays(inside: Inside, flat: list[Any]) -> list[Any]:
        limit, time, run = (
            Limits(*(inside.limits[i] for i in range(len(Limits._fields)))),
            inside.times,
            Apart(block, long=windows.one.long),
        )
        step = written_out(windows.one, block)

        def time_of(row: Any) -> Any:
            return jnp.where(row <= last_row, time[jnp.minimum(row, last_row)], LATER)

        def one_window(_: Any, carry: Any) -> Any:
            flat, row, before, left = carry
            made = plays_of_window(left, slots, before, limit.horizon)
            with run.scope():
                window = play_window(windows, step, run, inside, flat, (before, made))

                def at_checkpoint(carry: Any) -> Any:
                    write(inside, carry[1], totals_at(windows, run, window, carry[0]))
                    return time_of(carry[1] + 1), carry[1] + 1

                reached = before + made
                _, row = lax.while_loop(lambda carry: carry[0] <= reached, at_checkpoint, (time_of(row), row))
                after = packed_lane(windows.one, run).flat(
                    jax.tree.leaves(window.lane), element_shapes(windows.one, run)
                )
            return after, row, reached, jnp.where(left > slots, left - slots, limit.length)

        start = flat, limit.row, limit.before, limit.left
        flat, row, before, _ = lax.fori_loop(0, limit.windows, one_window, start)
        packed = packed_lane(windows.one, run)
        after = as_lane(windows.one, packed.arrays(flat))._replace(plays=single(before), next=single(row))
        return packed.flat(jax.tree.leaves(after), element_shapes(windows.one, run))

    return over_blocks(windows.one, case, seeds, lane, times, limits, plays, block=block, interpret=interpret)
