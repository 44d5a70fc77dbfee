"""A stretch of windows as a kernel: a thread plays one lane from segment to segment, its numbers in registers.

A *single* window makes one play, and is told how many were made before. A *full* one makes up to `slots` plays and is
told how many; a *counted* one ends where the algorithm says, and is told after which play at the latest.

The arguments of a kernel are pointers: what all lanes share, leaves of the case, leaves of the lanes, and the results,
which are the lanes again. Leaves lie in memory as XLA has them, [S, M, ...] or [S, ...] where points share them; each
is read once before the plays and written once after them. Rows of checkpoints are written as they are reached.
Axes: [P] plays of a window, [C] checkpoints.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from jaxbandits import recorder, simulator
from jaxbandits.kernels import launch
from jaxbandits.kernels.arrays import Array, single
from jaxbandits.kernels.emitter import Carried, Emitter, lend_arrays, read_only
from jaxbandits.kernels.launch import PlayForm
from jaxbandits.kernels.schedule import Fitted, fit_kernel, write_kernel
from jaxbandits.kernels.source import CARRIED, INPUT, RESULT, pointers
from jaxbandits.kernels.text import Assign, Name, text_of
from jaxbandits.protocol import Case
from jaxbandits.recorder import Record, Window
from jaxbandits.simulator import WindowKind
from jaxbandits.spans import Segment
from jaxbandits.window import Lane, Parts, offer

# What the first argument of a kernel holds, int32 each.
LIMITS = ("lanes", "points", "checkpoints", "before", "left", "length", "row", "windows")
FIRST_PARAMETERS = [INPUT.format(*each) for each in (("int", "limits"), ("int", "times"), ("unsigned", "seeds"))]
LARGEST_TABLE = 32  # elements of an array of the case that are read into registers; more stay where they lie
LONGEST_WINDOW = 8  # plays of a counted window, which may be shorter
SEED, NUMBER = jax.ShapeDtypeStruct((), np.uint32), jax.ShapeDtypeStruct((), np.int32)


# ---- windows, traced: what a play does, and which numbers it is told


class Traced(NamedTuple):
    """A window of one lane, traced.

    Its operands: numbers of the case, seed, lane, and numbers that say which plays. It gives the lane, and what its
    totals at checkpoints follow from.
    """

    kind: Literal["single", "full", "counted"]
    step: ClosedJaxpr
    case: Any  # shapes of the numbers of a case
    lane: Any  # shapes of a lane, without its rows at the checkpoints
    rows: Any  # shapes of these
    slots: int = 1
    # Of windows of several plays. numbers of the record before the window, what `step` gives beside the lane, a
    # checkpoint -> what is written there
    totals: Any = None
    # Of counted windows. numbers of the case, lane, the last play -> whether a lane has plays to make
    moves: Any = None
    # a window ends at the latest so many checkpoints after the next one; None: at the last play
    ahead: int | None = None
    split: int = 1  # so many windows are played where the span has one
    rest: Callable[[Case, Lane, Any], Lane] | None = None  # counts what remains of lanes at rest

    def checkpoint_values(self, record: Record) -> list[Any]:
        """What is written at a checkpoint of the totals that lanes have now: pulls, and the two parts of regret."""
        pulls_at, regret_at = self.rows
        return [*([] if isinstance(pulls_at, tuple) else [record.pulls]), *(record.regret if regret_at else ())]


def checkpoint_rows(lane: Lane) -> tuple[Any, Any]:
    """What is written at checkpoints only: pulls and regret."""
    return lane.record.pulls_at, lane.record.regret_at


def with_rows(lane: Lane, pulls_at: Any = (), regret_at: Any = ()) -> Lane:
    """A lane with other rows at the checkpoints, or without."""
    return lane._replace(record=lane.record._replace(pulls_at=pulls_at, regret_at=regret_at))


def single_window(parts: Parts, case: Case, lane: Lane) -> Traced:
    """Trace a window of one play. case, lane: shapes of one lane."""
    rowless = with_rows(lane)

    def play(case: Case, seed: Any, lane: Lane, before: Any) -> Lane:
        lane, window = offer(parts, case, seed, 1, lane, before, None)
        pulls, regret = recorder.add(lane.record, window, None)
        return lane._replace(record=lane.record._replace(pulls=pulls, regret=regret))

    step = read_only(jax.make_jaxpr(play)(case, SEED, rowless, NUMBER))
    return Traced("single", step, case, rowless, checkpoint_rows(lane))


def longer_window(parts: Parts, case: Case, lane: Lane, kind: WindowKind, slots: int) -> Traced:
    """Trace a window of `slots` plays, at most those of the span. case, lane: shapes of one lane."""
    rowless, (_, full, whole), counts = with_rows(lane), kind, recorder.counts(lane.record)
    one_arm = not full and parts.program.hints.one_arm and counts  # all totals follow from the plays of one arm

    # `resting` asks whether there are rows, and does not read them
    known_by_counts = partial(with_rows, pulls_at=None if counts else ())

    def play(case: Case, seed: Any, lane: Lane, *which: Any) -> tuple[Lane, Window]:
        if full:
            return offer(parts, case, seed, slots, lane, *which)
        [stop] = which
        arm = simulator.resting(parts, case, known_by_counts(lane))
        stop = stop if arm is None else jnp.where(arm >= 0, lane.plays, stop)
        after, window = offer(parts, case, seed, slots, lane, lane.plays, stop - lane.plays)
        return after._replace(plays=lane.plays + window.used), window

    def play_and_record(case: Case, seed: Any, lane: Lane, *which: Any) -> tuple[Lane, Window]:
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
        return traced.checkpoint_values(record._replace(pulls=pulls, regret=regret))

    def moves(case: Case, lane: Lane, horizon: Any) -> Any:
        return simulator.moves(parts, case, known_by_counts(lane), horizon)

    numbers = [NUMBER, NUMBER] if full else [NUMBER]
    step, (_, window) = jax.make_jaxpr(play_and_record, return_shape=True)(case, SEED, rowless, *numbers)
    traced = Traced("full" if full else "counted", read_only(step), case, rowless, checkpoint_rows(lane), slots)
    before = rowless.record.pulls, rowless.record.regret
    traced = traced._replace(totals=read_only(jax.make_jaxpr(totals)(before, window, NUMBER)))
    if full:
        return traced
    inside = recorder.CHECKPOINTS_INSIDE - 1 if one_arm else 0
    asked, rest = read_only(jax.make_jaxpr(moves)(case, rowless, NUMBER)), partial(simulator.count_rest, parts)
    return traced._replace(moves=asked, ahead=None if whole else inside, split=-(-kind[0] // slots), rest=rest)


# ---- their text


Shared = tuple[Sequence[int], Sequence[int]]  # leaves of the case and of lanes that have no axis of points


def write_stretch(run: Emitter, traced: Traced, shared: Shared = ((), ())) -> list[str]:
    """Write the program of one lane, and give the kernel's arguments."""
    return Stretch(run, traced, shared).write_program()


class Stretch:
    """Writes the program of one lane."""

    def __init__(self, run: Emitter, traced: Traced, shared: Shared) -> None:
        self.run, self.traced, (self.shared_case, self.shared_lane) = run, traced, shared
        for k, name in enumerate(LIMITS):
            run.add_statement(f"const int {name} = limits[{k}];")
        run.add_statement("const int horizon = times[checkpoints - 1];")
        self.seed = single(run.let("seeds[lane]", np.uint32))
        self.case = [self._of_case(k, x) for k, x in enumerate(jax.tree.leaves(traced.case))]

    def _of_case(self, k: int, x: Any) -> Array:
        place = f"case{k}" if k in self.shared_case else f"(case{k} + (size_t)point * {x.size})"
        view = self.run.view(f"{place}[{{}}]", x.shape, x.dtype)
        return view if x.size > LARGEST_TABLE else self.run.apart(view)

    def write_program(self) -> list[str]:
        """The whole program. Gives the kernel's arguments."""
        run, (case, lane, rows) = self.run, map(jax.tree.leaves, (self.traced.case, self.traced.lane, self.traced.rows))
        views = (run.view(self._memory_place("in", k, x), x.shape, x.dtype) for k, x in enumerate(lane))
        self.state = Carried(run, lane, list(map(run.hold_by_size, views)))
        ended = {"single": self._single, "full": self._full, "counted": self._write_counted}[self.traced.kind]()
        for k, x in enumerate(jax.tree.leaves(ended)):
            run.give(self._memory_place("out", k, x), x, stays=True)
        return [
            *FIRST_PARAMETERS, *pointers(INPUT, "case", case), *pointers(CARRIED, "in", lane),
            *pointers(CARRIED, "before", rows), *pointers(RESULT, "out", lane), *pointers(RESULT, "at", rows),
        ]  # fmt: skip

    def _memory_place(self, name: str, k: int, x: Array) -> str:
        lane = "(size_t)lane" if k in self.shared_lane else "((size_t)lane * points + point)"
        return f"({name}{k} + {lane} * {x.size})[{{}}]"

    def _as_lane(self, arrays: Sequence[Array]) -> Any:
        return jax.tree.unflatten(jax.tree.structure(self.traced.lane), arrays)

    def _write_totals(self, row: Name, totals: Sequence[Array]) -> None:
        for k, x in enumerate(totals):
            place = f"(at{k} + (((size_t)lane * points + point) * checkpoints + {row}) * {x.size})[{{}}]"
            self.run.give(place, x, stays=True)
        self.run.add_statement(Assign(row, f"{row} + 1"))

    def _counter(self, name: str) -> Name:
        return self.run.variable(Name(name, np.int32), np.int32)

    def _single(self) -> Lane:
        run, done, row = self.run, self._counter("before"), self._counter("row")
        run.add_statement("const int last = before + windows < horizon ? before + windows : horizon;")
        with run.block("ONCE for (;;)"):
            run.add_statement(f"const int end = {row} < checkpoints && times[{row}] < last ? times[{row}] : last;")
            with run.block(f"ONCE for (; {done} < end; )"):
                operands = [*self.case, self.seed, *self.state.arrays, single(done)]
                self.state.assign_arrays(run.write_function(self.traced.step, operands))
                run.add_statement(Assign(done, f"{done} + 1"))
            run.add_statement(f"if ({row} == checkpoints || times[{row}] > last) break;")
            self._write_totals(row, self.traced.checkpoint_values(self._as_lane(lend_arrays(self.state.arrays)).record))
        return self._as_lane(self.state.arrays)._replace(plays=single(done), next=single(row))

    def _window(self, which: list[Any], done: Any, row: Name) -> list[Array]:
        """The lane after a window. The rows of the checkpoints are written up to a play."""
        run, record = self.run, self._as_lane(self.state.arrays).record
        before = jax.tree.leaves((record.pulls, record.regret))
        lane = [x if all(x is not each for each in before) else lend_arrays([x])[0] for x in self.state.arrays]
        found = run.write_function(self.traced.step, [*self.case, self.seed, *lane, *map(single, which)])
        found, before = list(map(run.compute_once, found)), lend_arrays(before)
        after, shown = found[: len(lane)], found[len(lane) :]
        done = self._as_lane(after).plays[()] if done is None else done
        with run.block(f"ONCE for (; {row} < checkpoints && times[{row}] <= {text_of(done)}; )"):
            time = single(run.let(f"times[{row}]", np.int32))
            self._write_totals(row, run.write_function(self.traced.totals, [*before, *shown, time]))
        return after

    def _full(self) -> Lane:
        run, slots = self.run, self.traced.slots
        done, row, left = map(self._counter, ("before", "row", "left"))
        with run.block("ONCE for (int window = 0; window < windows; ++window)"):
            most = run.let(f"{left} < {slots} ? ({left} < 0 ? 0 : {left}) : {slots}", np.int32)
            rest = run.let(f"horizon > {done} ? horizon - {done} : 0", np.int32)
            made = run.op("min", most, rest)
            reached = run.op("add", done, made)
            self.state.assign_arrays(self._window([done, made], reached, row))
            run.add_statement(Assign(done, text_of(reached)))
            run.add_statement(Assign(left, f"{left} > {slots} ? {left} - {slots} : length"))
        return self._as_lane(self.state.arrays)._replace(plays=single(done), next=single(row))

    def _write_counted(self) -> Lane:
        run, traced = self.run, self.traced
        row, horizon = self._as_lane(self.state.arrays).next[()], single(Name("horizon", np.int32))
        with run.block(f"ONCE for (int window = windows * {traced.split}; window > 0; --window)"):
            [moves] = run.write_function(traced.moves, [*self.case, *lend_arrays(self.state.arrays), horizon])
            run.add_statement(f"if (!{text_of(moves.at(()))}) break;")
            stop = horizon[()]
            if traced.ahead is not None:
                place = f"{row} + {traced.ahead} < checkpoints ? {row} + {traced.ahead} : checkpoints - 1"
                stop = run.let(f"times[{place}]", np.int32)
            lane = self._as_lane(self._window([stop], None, row))
            self.state.assign_arrays(jax.tree.leaves(lane._replace(next=single(row))))
        return self._as_lane(self.state.arrays)


# ---- what runs so, and how it fits among the programs of a sweep


def choose_kernel(parts: Parts, case: Case, checkpoints: int, kind: WindowKind) -> Fitted:
    """What a span's windows run as.

    case: numbers of one point, or their shapes. kind: (slots, full, whole), as `simulator.advance` takes it.
    """
    leaves, treedef = jax.tree.flatten(jax.tree.map(jax.typeof, case))
    return _choice(parts, tuple(leaves), treedef, checkpoints, kind, jnp.result_type(float))


@lru_cache(maxsize=256)
def _choice(parts: Parts, leaves: Any, treedef: Any, checkpoints: int, kind: WindowKind, precision: Any) -> Fitted:
    slots, full, whole = kind
    case = jax.tree.unflatten(treedef, leaves)
    lane = jax.eval_shape(lambda case, seed: simulator.begin(parts, case, seed, checkpoints), case, SEED)
    if full and slots == 1:
        return fit_kernel("stretch", write_stretch, single_window(parts, case, lane))
    # Checkpoints may cut counted windows anywhere, so that a span of shorter ones is the same: the longest whose arrays
    # are held apart, or else single plays.
    several = slots if full or whole else min(slots, LONGEST_WINDOW)
    while True:
        found = fit_kernel("stretch", write_stretch, longer_window(parts, case, lane, kind, several))
        if full or whole or several == 1 or found.reason or found.form == "written out":
            return found
        several = -(-several // 2)


def advance_by_kernel(
    fit: Fitted, marks: Sequence[int], case: Case, seeds: Any, lane: Lane, times: Any, segment: Segment, form: PlayForm
) -> Lane:
    """The lanes [S, M, ...] after a segment of a span, of one point [S, ...].

    marks: of each leaf of the case, below 0 where its numbers are the same for all points. The state of the environment
    is [S, ...] where points share it.
    """
    window: Traced = fit.traced
    lanes = seeds.shape[0], lane.plays.shape[1] if lane.plays.ndim > 1 else 1
    carried, treedef = jax.tree.flatten((with_rows(lane), checkpoint_rows(lane)))
    own = jax.tree.leaves((window.lane, window.rows))
    shared_case = [k for k, mark in enumerate(marks) if mark < 0]
    pairs = zip(carried, own, strict=True)
    shared_lane = [k for k, (x, one) in enumerate(pairs) if x.ndim < one.ndim + lane.plays.ndim]
    write = partial(write_stretch, shared=(shared_case, shared_lane))
    source = write_kernel("stretch", write, window, fit.largest).source
    limits = jnp.stack([jnp.asarray(x, jnp.int32) for x in (*lanes, times.shape[0], *segment)])
    given = [limits, times, seeds, *jax.tree.leaves(case)]
    outs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in carried]
    # What points share has other memory for its result: it may be written by one point while another reads it.
    aliases = {len(given) + k: k for k in range(len(carried)) if k not in shared_lane}
    after, at = jax.tree.unflatten(treedef, launch.call_kernel(source, lanes, [*given, *carried], outs, aliases, form))
    after = with_rows(after, *at)
    if window.rest is None:
        return after
    axes = jax.tree.unflatten(jax.tree.structure(case), [None if mark < 0 else mark for mark in marks])
    of_points = window.rest if lane.plays.ndim == 1 else jax.vmap(window.rest, (axes, 0, None))
    return jax.vmap(of_points, (None, 0, None))(case, after, times)
