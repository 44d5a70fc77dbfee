"""One call: the lanes of some cells on some seeds, played to their horizon in segments, and what is kept of them."""

import contextlib
import operator
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits import simulator
from jaxbandits.contract import runs_own_code
from jaxbandits.recorder import Record
from jaxbandits.regret import gaps_of, regret_of_counts
from jaxbandits.spans import next_start, segment, windows_offered
from jaxbandits.sweeps.compilation.caller import in_caller
from jaxbandits.sweeps.compilation.compiled import Compiled, functions_of_group
from jaxbandits.sweeps.compilation.regret_program import program_of, regret_on_device, saves_time
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.sweeps.engines.calls import Call, blocks
from jaxbandits.sweeps.engines.contract_faults import Fault, cells_in_breach, find_faults
from jaxbandits.sweeps.engines.to_host import send_to_host
from jaxbandits.sweeps.plan import Plan, host_case, stack_cases
from jaxbandits.sweeps.storage.store import BegunCall, Store
from jaxbandits.typing import Array
from jaxbandits.validation import same
from jaxbandits.window import Lane, Parts

SEGMENT_SECONDS = 0.5  # between two looks at progress and interruption
FIRST_SEGMENT = 256  # windows of a call's first segment, before its speed is known
TASTE_SECONDS = 0.05  # of the last segment of a taste: many times what it waits for other threads
TASTE_WINDOWS = 8  # of its first one
# docs/decisions.md#saved-lanes
KEEP_SECONDS = 60.0  # between two saves of a running call, or longer:
KEEP_SHARE = 0.05  # saving takes at most this share of the time
_compiling = threading.Lock()


class Interrupted(Exception):
    """A worker was asked to stop."""


class Progress(NamedTuple):
    """Plays of a call since the last time it was told, over all lanes."""

    call: Call
    plays: int
    seconds: float = 0.0  # they took; 0 where it is not known
    restored: bool = False  # an earlier run made them


class Outcome(NamedTuple):
    """What a call gives back, on the host."""

    # [S, M, C] float64; None where a worker has written the chunk and only its faults are left
    regret: Any
    pulls: np.ndarray[Any, Any] | None  # [S, M, K] int32 | None
    diagnostics: dict[str, Any]  # name -> [S, M]
    faults: tuple[Fault, ...] = ()

    def sound(self, call: Call) -> Iterator[tuple[int, dict[str, Any]]]:
        """The positions in a call of the cells that may be kept, with their arrays."""
        broken = cells_in_breach(self.faults) if self.faults else ()
        for m, cell in enumerate(call.cells):
            if cell not in broken:
                yield m, self.arrays_of_cell(m)

    def arrays_of_cell(self, m: int) -> dict[str, Any]:
        """One cell's arrays under the names of the store, seeds first."""
        arrays = {"regret": self.regret[:, m]}
        if self.pulls is not None:
            arrays["pulls"] = self.pulls[:, m]
        for name, x in self.diagnostics.items():
            arrays[f"diagnostic.{name}"] = x[:, m]
        return arrays


def play_call(
    call: Call, plan: Plan, device: jax.Device, programs: "Programs | None" = None, *,
    begun: tuple[BegunCall, list[np.ndarray[Any, Any]]] | None = None, **asked: Any,
) -> Outcome:  # fmt: skip
    """Play one call to its horizon in segments of about half a second.

    programs: what the calls of these cells have in common, where it is kept between calls. begun: where the call was
    saved earlier, and the arrays of its lanes. asked: who is asked and told between segments, see `Player`. Where a
    device cannot run one of the kernels, the call is played anew without.
    """
    with settings_of(plan.dtype, device):
        programs = programs or programs_of_calls(plan, call.group, call.cells, device)
        player, kernels = Player(call, plan, device, programs, **asked), programs.run.kernels
        try:
            return player.play(begun)
        except jax.errors.JaxRuntimeError as error:
            if not kernels or not programs.run.without_kernels(device, error):
                raise
        return player.play(begun)


def time_first_segments(
    call: Call, plan: Plan, device: jax.Device, programs: "Programs", most: int, stopped: Callable[[], bool]
) -> float | None:
    """Seconds a play, by the first segments of a call, which are thrown away; None where nothing was timed.

    They end once `most` plays were made or a segment took TASTE_SECONDS.
    """
    plays, seconds = [0], [0.0]

    def note_segment(played: Progress) -> None:
        plays.append(played.plays)
        seconds.append(played.seconds)

    def enough() -> bool:
        return stopped() or sum(plays) > most or seconds[-1] > TASTE_SECONDS

    with contextlib.suppress(Interrupted):
        Player(call, plan, device, programs, None, enough, note_segment, first_segment=TASTE_WINDOWS).play(None)
    return min((took / made for made, took in zip(plays, seconds, strict=True) if made and took), default=None)


class Programs(NamedTuple):
    """What the calls of some cells have in common: their compiled functions, and numbers on the device."""

    run: Compiled
    case: Any
    times: Array  # [C] int32


def programs_of_calls(plan: Plan, number: int, cells: tuple[int, ...], device: jax.Device) -> Programs:
    """What the calls of some cells of a group have in common. Short calls notice the time that it takes."""
    group = plan.groups[number]
    host, marks = stack_cases([host_case(plan.cells[c]) for c in cells], plan.dtype)
    leaves, treedef = jax.tree.flatten(marks)
    with _compiling:  # two threads would compile the same functions
        run = functions_of_group(group.parts, tuple(leaves), treedef, len(cells), len(group.times))
    with settings_of(plan.dtype, device):
        return Programs(run, *jax.device_put((host, group.times.astype(np.int32)), device))


@dataclass(eq=False)
class Player:
    """The compiled functions of a call, with the numbers that they are given, on its device.

    run: takes the place of running a function, such as to compile it for these numbers. Before each segment `stopped`
    is asked; where it says yes, `Interrupted` is raised. `report` is told what was played since the last time.
    `keep(span, window, leaves)` is offered the lanes after each segment, to save them now and then.
    """

    call: Call
    plan: Plan
    device: jax.Device
    programs: Programs
    run: Any = None
    stopped: Callable[[], bool] = lambda: False
    report: Callable[[Progress], None] = lambda played: None
    keep: Callable[..., None] | None = None
    first_segment: int = 0  # its windows; 0: FIRST_SEGMENT

    def __post_init__(self) -> None:
        run, self.case, self.times = self.programs
        self.run = self.run or run
        self.group = self.plan.groups[self.call.group]
        self.horizon, self.diagnosed = int(self.group.times[-1]), simulator.diagnoses(self.group.parts)
        # a NumPy array: compiled functions take it faster than `jax.device_put` does
        self.seeds = np.arange(self.call.first, self.call.first + self.call.lanes, dtype=np.uint32)
        self.told = 0  # plays of a lane that `report` knows of
        self.since: float | None = None  # the end of the segment before; None in the first, which may be compiled

    def begin(self) -> Any:
        return self.run("begin", self.device, self.case, self.seeds)

    def advance(self, lane: Lane, number: int, start: int, first: int, count: int) -> Any:
        """Play `count` windows of a span from the one numbered `first`."""
        span = self.group.schedule[number]
        where = segment(span, start, first, count, self.group.times)
        return self.run("advance", self.device, self.case, self.seeds, lane, self.times, where, kind=span.kind)

    def close(self, lane: Lane) -> Any:
        return self.run("close", self.device, self.case, self.seeds, lane)

    def finish(self, lane: Lane) -> Any:
        lane = lane._replace(record=Record((), (), (), ()))  # otherwise all of it would be copied
        return self.run("finish", self.device, self.case, lane)

    def others(self, lane: Lane) -> dict[Any, Callable[[], Any]]:
        """What has to be run beside `begin`, by name. lane: shapes."""
        functions: dict[Any, Callable[[], Any]] = {}
        for number, span in enumerate(self.group.schedule):
            functions.setdefault(span.kind, partial(self.advance, lane, number, 0, 0, 1))
            if span.close:
                functions["close"] = partial(self.close, lane)
        if self.diagnosed:
            functions["finish"] = partial(self.finish, lane)
        shape = getattr(lane.record.pulls_at, "shape", None)
        if shape and saves_time(shape, len(self.group.cells) * len(self.plan.seeds), self.device):
            functions["regret"] = partial(program_of, shape, self.device)
        return functions

    def play(self, begun: tuple[BegunCall, list[np.ndarray[Any, Any]]] | None) -> Outcome:
        """Play the call from its beginning, or from where it was saved."""
        call, lane, first_span, first_window, start = self.call, self.begin(), 0, 0, 0
        leaves, structure = jax.tree.flatten(lane)
        # of other shapes, another release saved it
        if begun is not None and [(x.shape, x.dtype) for x in leaves] == [(x.shape, x.dtype) for x in begun[1]]:
            first_span, first_window = begun[0].span, begun[0].window
            lane = jax.device_put(jax.tree.unflatten(structure, begun[1]), self.device)
            self._tell(int(np.mean(lane.plays)), restored=True)
        for number, span in enumerate(self.group.schedule):
            if number >= first_span:
                lane = self._play_span(number, lane, start, first_window if number == first_span else 0)
                lane = self.close(lane) if span.close else lane
            start = next_start(span, start, self.horizon)
        if (short := int(np.asarray(lane.plays).min())) < self.horizon:
            label = self.plan.cells[call.cells[0]].label
            why = "its schedule offers too few windows"
            raise RuntimeError(f"{label!r} stopped after {short} of {self.horizon} plays: {why}")
        diagnostics, record = self.finish(lane)[1] if self.diagnosed else {}, lane.record
        means, costs, parts = None, None, self.group.parts
        if not record.regret_at:
            means = np.stack([self.plan.cells[c].environment.facts["means"] for c in call.cells])
            costs = regret_on_device(record.pulls_at, gaps_of(means), len(self.group.cells) * len(self.plan.seeds))
        record = record._replace(regret=(), pulls_at=() if costs is not None else record.pulls_at)
        arrive = send_to_host((costs, record, diagnostics, lane.faults), self.device)
        self._tell(self.horizon)
        costs, *rest = arrive()
        record, diagnostics, watched = of_call(rest, call)
        regret = regret_of(record, costs, means, parts, self.plan, call)
        finite = means is not None and parts.world.baseline is None  # as counts and gaps are
        pulls = None if isinstance(record.pulls, tuple) else record.pulls
        faults = find_faults(call.cells, call.first, watched, regret, pulls, self.group.times, finite=finite)
        return Outcome(regret, pulls, diagnostics, faults)

    def _play_span(self, number: int, lane: Lane, start: int, done: int) -> Any:
        """The lanes after a span of which `done` windows are done.

        A segment without a play does not show that the algorithm has ended the span: it may be working between two
        plays, and then its state changes. The span is over once a segment neither plays nor changes the state.
        """
        span, before, state = self.group.schedule[number], -1, None
        windows = windows_offered(span, len(self.times))
        # the windows for checkpoints that cut others come last and often are not needed: the first segment ends before
        begin = self.first_segment or FIRST_SEGMENT
        begin = begin if span.full else min(begin, span.repeats + 8)
        for first, count in segments(windows, begin, done):
            if self.stopped():
                if self.keep is not None:
                    self.keep(number, first, partial(_on_host, lane), last=True)
                raise Interrupted
            self.since = self.since and time.perf_counter()  # without what was done between segments
            lane = self.advance(lane, number, start, first, count)
            plays, now = np.asarray(lane.plays), time.perf_counter()
            played = int(plays.sum(dtype=np.int64))
            self._tell(played // plays.size, 0.0 if self.since is None else now - self.since)
            self.since = now
            if int(plays.min()) >= self.horizon:
                return lane
            last, before = before, played
            earlier, state = state, None if before != last else _on_host(lane.algorithm)
            if state is not None and earlier is not None and all(map(same, state, earlier)):
                return lane
            if self.keep is not None:
                self.keep(number, first + count, partial(_on_host, lane))
        return lane

    def _tell(self, plays: int, seconds: float = 0.0, restored: bool = False) -> None:
        """Report the plays that lanes have made, in the mean. A call that is played anew tells nothing twice."""
        new, self.told = max(plays - self.told, 0), max(plays, self.told)
        self.report(Progress(self.call, new * self.call.seeds * len(self.call.cells), seconds, restored))


def of_call(tree: object, call: Call) -> Any:
    """What lanes hold, [S, M, ...] on the host, of the call's seeds."""

    def on_host(x: Any) -> np.ndarray[Any, Any]:
        x = np.asarray(x)[: call.seeds]
        return x if len(call.cells) > 1 else x[:, None]

    return jax.tree.map(on_host, tree)


def _on_host(tree: object) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def segments(windows: int, begin: int, done: int = 0) -> Iterator[tuple[int, int]]:
    """Pairs (first, number) from window `done` on, of about SEGMENT_SECONDS once the speed is known."""
    first, number = done, min(windows - done, begin)
    while first < windows:
        began = time.perf_counter()
        yield first, number
        first += number
        seconds = max(time.perf_counter() - began, 1e-6)
        number = max(1, min(windows - first, int(number * min(8.0, SEGMENT_SECONDS / seconds))))


def regret_of(record: Record, costs: Any, means: Any, parts: Parts, plan: Plan, call: Call) -> np.ndarray[Any, Any]:
    """Regret [S, M, C] in float64: from counts, exactly, where losses do not change, else from compensated sums.

    means: of the arms of each cell, with counts. costs: what these cost, where compiled code has added it up with the
    same bits.
    """
    if means is None:
        regret = np.add(*record.regret_at, dtype=np.float64)
    else:
        regret = regret_of_counts(record.pulls_at, means[:, None]) if costs is None else costs[: call.seeds]
    baseline = parts.world.baseline
    if baseline is not None:
        # a user's function runs in the thread that called, those of this package where they are needed
        asked = in_caller if runs_own_code(baseline) else operator.call
        regret = np.require(regret, requirements="W")
        environments = [plan.cells[c].environment.params for c in call.cells]
        # the loop over seeds is the outer one: cells share what a seed's baseline needs
        for s in range(call.seeds if parts.world.seeded else 1):
            rows, best = slice(s, s + 1) if parts.world.seeded else slice(None), {}
            for m, params in enumerate(environments):
                if id(params) not in best:
                    best[id(params)] = asked(partial(baseline, params, call.first + s, plan.groups[call.group].times))
                regret[rows, m] -= best[id(params)]
    return regret


# ---- what the store gets: finished calls, and the lanes of running ones for the next run


class Keeper:
    """Saves the lanes of one running call in the store, seldom enough to cost little."""

    def __init__(self, store: Store, call: Call) -> None:
        self.store, self.call = store, call
        self.saved, self.every = time.perf_counter(), KEEP_SECONDS

    def __call__(self, span: int, window: int, leaves: Callable[[], list[Any]], last: bool = False) -> None:
        """Save if it is time. last: there is no later chance; save if more than a few seconds of work would be lost."""
        began = time.perf_counter()
        if began - self.saved < (min(3.0, self.every) if last else self.every):
            return
        try:
            call = self.call
            self.store.keep_begun(BegunCall(call.keys, call.first, call.lanes, call.seeds, span, window), leaves())
        except OSError as error:  # a full disk: finished chunks are smaller and may still fit
            warnings.warn(f"cannot keep a call on its way: {error}", RuntimeWarning, stacklevel=2)
        self.saved = time.perf_counter()
        self.every = max(KEEP_SECONDS, (self.saved - began) / KEEP_SHARE)


def resume_arguments(store: Store, call: Call) -> dict[str, Any]:
    """What a call needs to go on from where it was saved, and to be saved again."""
    return {"keep": Keeper(store, call), "begun": store.read_begun(call)}


def keep_outcome(store: Store, call: Call, outcome: Outcome) -> None:
    """Write a finished call as files, one for a cell and block of seeds; nothing of cells that broke the contract."""
    for m, arrays in outcome.sound(call):
        for low, high in blocks(call.first, call.first + call.seeds, store.block):
            at = slice(low - call.first, high - call.first)
            store.write(call.keys[m], low, {name: x[at] for name, x in arrays.items()})
    store.forget_begun(call)
