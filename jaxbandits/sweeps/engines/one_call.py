"""One call: the lanes of some cells on some seeds, played to their horizon in segments."""

import operator
import threading
import time
from collections.abc import Callable, Iterator
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
from jaxbandits.sweeps.compilation.compiled import Compiled, compiled
from jaxbandits.sweeps.compilation.regret_program import compiled_regret
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.sweeps.engines.calls import Call
from jaxbandits.sweeps.engines.contract_faults import found_in
from jaxbandits.sweeps.engines.keeping import Outcome
from jaxbandits.sweeps.plan import Plan, host_case, stacked
from jaxbandits.sweeps.storage.store import BegunCall
from jaxbandits.validation import same
from jaxbandits.window import Parts

SEGMENT_SECONDS = 0.5  # between two looks at progress and interruption
FIRST_SEGMENT = 256  # windows of a call's first segment, before its speed is known
_compiling = threading.Lock()


class Interrupted(Exception):
    """A worker was asked to stop."""


class Progress(NamedTuple):
    """Plays of a call since the last time it was told, over all lanes."""

    group: int
    plays: int
    seconds: float = 0.0  # they took; 0 where it is not known
    restored: bool = False  # an earlier run made them


def play_call(
    call: Call,
    plan: Plan,
    device: jax.Device,
    *,
    stopped: Callable[[], bool] = lambda: False,
    report: Callable[[Progress], None] = lambda played: None,
    keep: Callable[..., None] | None = None,
    begun: tuple[BegunCall, list[np.ndarray[Any, Any]]] | None = None,
    shared: "Callable[[int, tuple[int, ...], jax.Device], Programs] | None" = None,
) -> Outcome:
    """Play one call to its horizon in segments of about half a second.

    Before each segment `stopped` is asked; where it says yes, `Interrupted` is raised. `report` is told what was played
    since the last time. `keep(span, window, leaves)` is offered the lanes after each segment, to save them now and
    then. begun: where the call was saved earlier, and the arrays of its lanes. `shared(group, cells, device)` gives
    what the calls of these cells have in common, where it is kept between calls. Where a device cannot run one of the
    kernels, the call is played anew without.
    """
    with settings_of(plan.dtype, device):
        programs = (shared or partial(programs_of_calls, plan))(call.group, call.cells, device)
        player = Player(call, plan, device, programs)
        progress, kernels = _Reporter(report, call, int(plan.groups[call.group].times[-1])), programs.run.kernels
        try:
            return _played(call, plan, player, progress, stopped, keep, begun)
        except jax.errors.JaxRuntimeError as error:
            if not kernels or not programs.run.without_kernels(device, error):
                raise
        return _played(call, plan, player, progress, stopped, keep, begun)


def _played(
    call: Call,
    plan: Plan,
    player: "Player",
    progress: "_Reporter",
    stopped: Callable[[], bool],
    keep: Callable[..., None] | None,
    begun: tuple[BegunCall, list[np.ndarray[Any, Any]]] | None,
) -> Outcome:
    """`play_call` from its beginning, or from where it was saved."""
    group, lane = plan.groups[call.group], player.begin()
    first_span = first_window = start = 0
    here = [(x.shape, x.dtype) for x in jax.tree.leaves(lane)]
    if begun is not None and here == [(x.shape, x.dtype) for x in begun[1]]:  # otherwise another release saved it
        first_span, first_window = begun[0].span, begun[0].window
        lane = player.restored(lane, begun[1])
        progress.restored(lane)
    for number, span in enumerate(group.schedule):
        if number >= first_span:
            done = first_window if number == first_span else 0
            lane = _play_span(player, number, lane, start, done, progress, stopped, keep)
            if span.close:
                lane = player.close(lane)
        start = next_start(span, start, progress.horizon)
    if (short := int(np.asarray(lane.plays).min())) < progress.horizon:
        label = plan.cells[call.cells[0]].label
        raise RuntimeError(
            f"{label!r} stopped after {short} of {progress.horizon} plays: its schedule offers too few windows"
        )
    diagnostics, record = player.finish(lane)[1] if player.diagnosed else {}, lane.record
    progress.finished()
    regret = regret_of(record, group.parts, plan, call)
    pulls = None if isinstance(record.pulls, tuple) else np.array(record.pulls)[: call.seeds]
    return Outcome(
        cells=call.cells, first=call.first, regret=regret, pulls=pulls,
        diagnostics={name: np.asarray(x)[: call.seeds] for name, x in diagnostics.items()},
        faults=found_in(call.cells, call.first, lane.faults, regret, pulls, group.times),
    )  # fmt: skip


class Programs(NamedTuple):
    """What the calls of some cells have in common: their compiled functions, and numbers on the device."""

    run: Compiled
    case: Any
    times: Any  # [C] int32


def programs_of_calls(plan: Plan, number: int, cells: tuple[int, ...], device: jax.Device) -> Programs:
    """What the calls of some cells of a group have in common. Short calls notice the time that it takes."""
    group = plan.groups[number]
    host, marks = stacked([host_case(plan.cells[c]) for c in cells], plan.dtype)
    leaves, treedef = jax.tree.flatten(marks)
    with _compiling:  # two threads would compile the same functions
        run = compiled(group.parts, tuple(leaves), treedef, len(cells), len(group.times))
    return Programs(run, *jax.device_put((host, group.times.astype(np.int32)), device))


class Player:
    """The compiled functions of a call, with the numbers that they are given, on its device.

    `ask` takes the place of running a function, such as to compile it for these numbers.
    """

    def __init__(self, call: Call, plan: Plan, device: jax.Device, shared: Programs) -> None:
        group = plan.groups[call.group]
        self.schedule, self.device, self.diagnosed = group.schedule, device, simulator.diagnoses(group.parts)
        self.run, self.case, self.times = shared
        self.checkpoints = group.times
        # a NumPy array: compiled functions take it faster than `jax.device_put` does
        self.seeds = np.arange(call.first, call.first + call.lanes, dtype=np.uint32)

    def begin(self, ask: Any = None) -> Any:
        return (ask or self.run)("begin", self.device, self.case, self.seeds)

    def advance(self, lane: Any, number: int, start: int, first: int, count: int, ask: Any = None) -> Any:
        """Play `count` windows of a span from the one numbered `first`."""
        span = self.schedule[number]
        where, kind = segment(span, start, first, count, self.checkpoints), (span.slots, span.full, span.whole)
        return (ask or self.run)("advance", self.device, self.case, self.seeds, lane, self.times, where, kind=kind)

    def close(self, lane: Any, ask: Any = None) -> Any:
        return (ask or self.run)("close", self.device, self.case, self.seeds, lane)

    def finish(self, lane: Any, ask: Any = None) -> Any:
        lane = lane._replace(record=Record((), (), (), ()))  # otherwise all of it would be copied
        return (ask or self.run)("finish", self.device, self.case, lane)

    def others(self, lane: Any, ask: Any) -> dict[Any, Callable[[], Any]]:
        """What has to be asked for beside `begin`, by name. lane: shapes."""
        compilations: dict[Any, Callable[[], Any]] = {}
        for number, span in enumerate(self.schedule):
            kind = (span.slots, span.full, span.whole)
            compilations.setdefault(kind, partial(self.advance, lane, number, 0, 0, 1, ask))
            if span.close:
                compilations["close"] = partial(self.close, lane, ask)
        if self.diagnosed:
            compilations["finish"] = partial(self.finish, lane, ask)
        return compilations

    def restored(self, lane: Any, leaves: list[np.ndarray[Any, Any]]) -> Any:
        """The lanes that were saved, in the form of these."""
        return jax.device_put(jax.tree.unflatten(jax.tree.structure(lane), leaves), self.device)


class _Reporter:
    """Tells how many plays were made. Lanes may be at different plays: their mean counts, rounded down."""

    def __init__(self, report: Callable[[Progress], None], call: Call, horizon: int) -> None:
        self.report, self.horizon, self.group = report, horizon, call.group
        self.lanes, self.told = call.seeds * len(call.cells), 0
        self.since: float | None = None  # the end of the segment before; None in the first, which may be compiled

    def restored(self, lane: Any) -> None:
        made, before = int(np.asarray(lane.plays).mean(dtype=np.float64)), self.told
        self.told = max(made, before)  # a call that is played anew tells nothing twice
        self.report(Progress(self.group, (self.told - before) * self.lanes, restored=True))

    def tell(self, plays: np.ndarray[Any, Any]) -> None:
        now = time.perf_counter()
        mean = max(self.told, int(plays.sum(dtype=np.int64)) // plays.size)
        seconds = 0.0 if self.since is None else now - self.since
        self.report(Progress(self.group, (mean - self.told) * self.lanes, seconds))
        self.told, self.since = mean, now

    def finished(self) -> None:
        self.report(Progress(self.group, (self.horizon - self.told) * self.lanes))


def _play_span(
    player: Player,
    number: int,
    lane: Any,
    start: int,
    done: int,
    progress: _Reporter,
    stopped: Callable[[], bool],
    keep: Callable[..., None] | None,
) -> Any:
    """The lanes after a span of which `done` windows are done.

    A segment without a play does not show that the algorithm has ended the span: it may be working between two plays,
    and then its state changes. The span is over once a segment neither plays nor changes the state.
    """
    span, before, state = player.schedule[number], -1, None
    windows = windows_offered(span, len(player.times))
    # the windows for checkpoints that cut others come last and often are not needed: the first segment ends before them
    first_segment = FIRST_SEGMENT if span.full else min(FIRST_SEGMENT, span.repeats + 8)
    for first, count in segments(windows, first_segment, done):
        if stopped():
            if keep is not None:
                keep(number, first, lambda lane=lane: _on_host(lane), last=True)
            raise Interrupted
        lane = player.advance(lane, number, start, first, count)
        plays = np.asarray(lane.plays)
        progress.tell(plays)
        if int(plays.min()) >= progress.horizon:
            return lane
        last, before = before, int(plays.sum(dtype=np.int64))
        earlier, state = state, None if before != last else _on_host(lane.algorithm)
        if state is not None and earlier is not None and all(map(same, state, earlier)):
            return lane
        if keep is not None:
            keep(number, first + count, lambda lane=lane: _on_host(lane))
    return lane


def _on_host(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def segments(windows: int, begin: int, done: int = 0) -> Iterator[tuple[int, int]]:
    """Pairs (first, number) that cover the windows from `done` on.

    Each takes about SEGMENT_SECONDS, once the speed is known.
    """
    first, number = done, min(windows - done, begin)
    while first < windows:
        began = time.perf_counter()
        yield first, number
        first += number
        seconds = max(time.perf_counter() - began, 1e-6)
        grown = number * min(8.0, SEGMENT_SECONDS / seconds)
        number = max(1, min(windows - first, int(grown)))


def regret_of(record: Record, parts: Parts, plan: Plan, call: Call) -> np.ndarray[Any, Any]:
    """Regret [S, M, C] in float64 on the host: exact from counts where losses do not change, else compensated sums."""
    group = plan.groups[call.group]
    if record.regret_at:
        high, low = (np.asarray(x)[: call.seeds] for x in record.regret_at)
        regret = np.add(high, low, dtype=np.float64)
    else:  # in compiled code where that saves time, with the same bits
        means = [plan.cells[c].environment.facts["means"] for c in call.cells]
        total = len(group.cells) * len(plan.seeds) * record.pulls_at.shape[2] * record.pulls_at.shape[3]
        costs = compiled_regret(record.pulls_at, np.stack([gaps_of(mean) for mean in means]), total)
        if costs is None:
            counts = np.asarray(record.pulls_at)[: call.seeds]
            costs = np.stack([regret_of_counts(counts[:, m], mean) for m, mean in enumerate(means)], axis=1)
        regret = costs[: call.seeds]
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
                    best[id(params)] = asked(partial(baseline, params, call.first + s, group.times))
                regret[rows, m] -= best[id(params)]
    return regret
