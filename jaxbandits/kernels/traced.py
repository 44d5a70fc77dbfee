"""Windows of one lane, traced: what a play does, and which numbers it is told.

A *single* window makes one play, and is told how many were made before. A *full* one makes up to `slots` plays and is
told how many; a *counted* one ends where the algorithm says, and is told after which play at the latest.
Axes: [P] plays of a window, [C] checkpoints.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr
from jax.interpreters.partial_eval import dce_jaxpr

from jaxbandits import recorder, simulator
from jaxbandits.protocol import Case
from jaxbandits.recorder import Window
from jaxbandits.window import Lane, Parts, offer


class Traced(NamedTuple):
    """A window of one lane, traced.

    Its operands: numbers of the case, seed, lane, and numbers that say which plays. It gives the lane, and what its
    totals at checkpoints follow from.
    """

    kind: Literal["single", "full", "counted"]
    step: ClosedJaxpr
    lane: Any  # shapes of a lane, without its rows at the checkpoints
    case: Any  # shapes of the numbers of a case
    slots: int = 1
    # Of windows of several plays. numbers of the record before the window, what `step` gives beside the lane, a
    # checkpoint -> what is written there
    totals: Any = None
    # Of counted windows. numbers of the case, lane, the last play -> whether a lane has plays to make
    moves: Any = None
    ahead: int | None = (
        None  # a window ends at the latest so many checkpoints after the next one; None: at the last play
    )
    split: int = 1  # so many windows are played where the span has one
    rest: Callable[[Case, Lane, Any], Lane] | None = None  # counts what remains of lanes at rest


def without_rows(lane: Lane) -> Lane:
    """A lane without what is written at checkpoints only."""
    return lane._replace(record=lane.record._replace(pulls_at=(), regret_at=()))


def read_only(traced: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function without what nothing reads."""
    read, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), instantiate=True)
    return ClosedJaxpr(read, traced.consts)


def record_totals(lane: Lane, now: Lane) -> list[Any]:
    """What is written at a checkpoint of the totals that lanes have now: pulls, and the two parts of regret.

    lane: a lane with its rows at the checkpoints.
    """
    record = lane.record
    pulls = [] if isinstance(record.pulls_at, tuple) else [now.record.pulls]
    return [*pulls, *(now.record.regret if record.regret_at else ())]


SEED, NUMBER = jax.ShapeDtypeStruct((), np.uint32), jax.ShapeDtypeStruct((), np.int32)


def single_window(parts: Parts, case: Case, lane: Lane) -> Traced:
    """Trace a window of one play. case, lane: shapes of one lane."""
    rowless = without_rows(lane)

    def play(case: Case, seed: Any, lane: Lane, before: Any) -> Lane:
        lane, window = offer(parts, case, seed, 1, lane, before, None)
        pulls, regret = recorder.add(lane.record, window, None)
        return lane._replace(record=lane.record._replace(pulls=pulls, regret=regret))

    return Traced("single", read_only(jax.make_jaxpr(play)(case, SEED, rowless, NUMBER)), rowless, case)


def _several(
    kind: Literal["full", "counted"], play: Callable[..., tuple[Lane, Window]], case: Case, lane: Lane, numbers: int,
    slots: int, one_arm: bool,
) -> Traced:  # fmt: skip
    """Trace a window and its totals at a checkpoint.

    play: given case, seed, lane and so many numbers that say which plays are made, the lane after and what the window
    produced. one_arm: whether a window plays one arm, from whose plays alone all totals follow.
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

    step, (_, window) = jax.make_jaxpr(shown, return_shape=True)(case, SEED, rowless, *[NUMBER] * numbers)
    before = rowless.record.pulls, rowless.record.regret
    written = read_only(jax.make_jaxpr(totals)(before, window, NUMBER))
    return Traced(kind, read_only(step), rowless, case, slots, written)


def full_window(parts: Parts, case: Case, lane: Lane, slots: int) -> Traced:
    """Trace a window of a full span. It is told how many plays were made before, and how many it makes at most."""

    def play(case: Case, seed: Any, lane: Lane, before: Any, limit: Any) -> tuple[Lane, Window]:
        return offer(parts, case, seed, slots, lane, before, limit)

    return _several("full", play, case, lane, 2, slots, one_arm=False)


def counted_window(parts: Parts, case: Case, lane: Lane, kind: tuple[int, bool, bool], slots: int) -> Traced:
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

    traced = _several("counted", play, case, lane, 1, slots, one_arm)
    inside = recorder.CHECKPOINTS_INSIDE - 1 if one_arm else 0
    return traced._replace(
        moves=read_only(jax.make_jaxpr(moving)(case, traced.lane, NUMBER)), ahead=None if kind[2] else inside,
        split=-(-kind[0] // slots), rest=partial(simulator.count_rest, parts),
    )  # fmt: skip
