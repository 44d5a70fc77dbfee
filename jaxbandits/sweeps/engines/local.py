"""The local engine: calls over the cores or accelerators of this machine.

On a CPU one thread a core runs whole calls on one device: XLA releases the interpreter, the executions do not share
anything, and JAX needs no restart (measured: 1.9x on two cores, as much as two devices under shard_map). Where JAX has
several devices, one thread feeds each.
"""

import contextlib
import itertools
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits import simulator
from jaxbandits.recorder import Record
from jaxbandits.regret import gaps_of, regret_of_counts
from jaxbandits.spans import next_start, segment, windows_offered
from jaxbandits.sweeps.compilation.compiled import Compiled, compiled
from jaxbandits.sweeps.compilation.regret_program import compiled_regret
from jaxbandits.sweeps.engines.calls import Keys, Machine, Task, default_memory
from jaxbandits.sweeps.engines.chunk import Chunk
from jaxbandits.sweeps.engines.contract_faults import found_in
from jaxbandits.sweeps.engines.keeping import saved
from jaxbandits.sweeps.plan import Plan, host_case, stacked
from jaxbandits.sweeps.storage.store import Begun, Store
from jaxbandits.window import Parts

SEGMENT_SECONDS = 0.5  # between two looks at progress and interruption
FIRST_SEGMENT = 256  # windows of a call's first segment, before its speed is known
_cores: int | None = None
_compiling = threading.Lock()


def cores(n: int | None = None) -> int:
    """Set or ask how many calls `sweep` runs at a time on a CPU.

    Parameters
    ----------
    n : int, optional
        How many from now on, at least 1. The default, None: change nothing.

    Returns
    -------
    int
        How many. Unless set, one for every core that this process may use.

    Raises
    ------
    ValueError
        `n` is no positive integer.

    Notes
    -----
    XLA may keep a further core busy inside a call, without gaining much: pin the process to bound what it takes.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.cores() >= 1
    True
    """
    global _cores
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n is not None:
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"cores({n!r}): give a positive number of cores")
        _cores = n
    return _cores or available


class Interrupted(Exception):
    """A worker was asked to stop."""


def pick_devices(devices: int | Sequence[jax.Device] | None) -> list[jax.Device]:
    """The devices to use: all local ones of the default backend, a count, or the given ones."""
    known = jax.local_devices()
    if devices is None:
        return known
    if isinstance(devices, int) and not isinstance(devices, bool):
        if not 1 <= devices <= len(known):
            raise ValueError(f"devices = {devices} but JAX has {len(known)} here: lower it, or set JAX_NUM_CPU_DEVICES")
        return known[:devices]
    if not isinstance(devices, list | tuple) or not devices or not all(isinstance(d, jax.Device) for d in devices):
        raise ValueError(
            f"devices = {devices!r} must be a count or a list of JAX devices, such as jax.local_devices()[:2]"
        )
    return list(devices)


def this_machine(devices: int | Sequence[jax.Device] | None, memory: int | None) -> Machine:
    """The devices of this process, and the memory each worker may use."""
    chosen = pick_devices(devices)
    platform = chosen[0].platform
    workers = len(chosen) if len(chosen) > 1 or platform != "cpu" else cores()
    return Machine(chosen, workers, platform, (memory or default_memory(platform)) // workers)


class Played(NamedTuple):
    """Plays of a call since the last time it was told, over all lanes."""

    group: int
    plays: int
    seconds: float = 0.0  # they took; 0 where it is not known
    restored: bool = False  # an earlier run made them


def run_task(
    task: Task,
    plan: Plan,
    device: jax.Device,
    *,
    stopped: Callable[[], bool] = lambda: False,
    report: Callable[[Played], None] = lambda played: None,
    keep: Callable[..., None] | None = None,
    begun: tuple[Begun, list[np.ndarray[Any, Any]]] | None = None,
    shared: "Callable[[int, tuple[int, ...], jax.Device], Shared] | None" = None,
) -> Chunk:
    """Play one call to its horizon in segments of about half a second.

    Parameters
    ----------
    task : Task
        The call.
    plan : Plan
        The sweep that it belongs to.
    device : jax.Device
        Where it is computed.
    stopped : callable
        Asked before each segment; where it says yes, `Interrupted` is raised.
    report : callable
        It is told what was played since the last time.
    keep : callable, optional
        `keep(span, window, leaves)` is offered the lanes after each segment, to save them now and then.
    begun : tuple, optional
        Where the call was saved earlier, and the arrays of its lanes.
    shared : callable, optional
        `shared(group, cells, device)` gives what the calls of these cells have in common, where it is kept between
        calls.

    Returns
    -------
    Chunk
        What its lanes give, on the host.
    """
    group = plan.groups[task.group]
    with jax.enable_x64(plan.dtype == "float64"), jax.default_device(device):
        call = _Call(task, plan, device, (shared or partial(shared_by_calls, plan))(task.group, task.cells, device))
        lane = call.begin()
        progress = _Progress(report, task, int(group.times[-1]))
        first_span = first_window = start = 0
        if begun is not None and _alike(lane, begun[1]):  # otherwise another release saved it
            first_span, first_window = begun[0].span, begun[0].window
            lane = call.restored(lane, begun[1])
            progress.restored(lane)
        for number, span in enumerate(group.schedule):
            if number >= first_span:
                done = first_window if number == first_span else 0
                lane = _play_span(call, number, lane, start, done, progress, stopped, keep)
                if span.close:
                    lane = call.close(lane)
            start = next_start(span, start, progress.horizon)
        if (short := int(np.asarray(lane.plays).min())) < progress.horizon:
            label = plan.cells[task.cells[0]].label
            raise RuntimeError(
                f"{label!r} stopped after {short} of {progress.horizon} plays: its schedule offers too few windows"
            )
        diagnostics, record = call.diagnostics(lane), lane.record
        progress.finished()
        regret = regret_of(record, group.parts, plan, task)
        pulls = None if isinstance(record.pulls, tuple) else np.array(record.pulls)[: task.seeds]
        return Chunk(
            cells=task.cells, first=task.first, regret=regret, pulls=pulls,
            diagnostics={name: np.asarray(x)[: task.seeds] for name, x in diagnostics.items()},
            faults=found_in(task.cells, task.first, lane.faults, regret, pulls, group.times),
        )  # fmt: skip


class Shared(NamedTuple):
    """What the calls of some cells have in common: their compiled functions, and numbers on the device."""

    run: Compiled
    case: Any
    times: Any  # [C] int32


def shared_by_calls(plan: Plan, number: int, cells: tuple[int, ...], device: jax.Device) -> Shared:
    """What the calls of some cells of a group have in common. Short calls notice the time that it takes."""
    group = plan.groups[number]
    host, marks = stacked([host_case(plan.cells[c]) for c in cells], plan.dtype)
    leaves, treedef = jax.tree.flatten(marks)
    with _compiling:  # two threads would compile the same functions
        run = compiled(group.parts, tuple(leaves), treedef, len(cells), len(group.times))
    return Shared(run, *jax.device_put((host, group.times.astype(np.int32)), device))


class _Call:
    """The compiled functions of a call, with the numbers that they are given, on its device."""

    def __init__(self, task: Task, plan: Plan, device: jax.Device, shared: Shared) -> None:
        group = plan.groups[task.group]
        self.schedule, self.device, self.diagnosed = group.schedule, device, simulator.diagnoses(group.parts)
        self.run, self.case, self.times = shared
        self.checkpoints = group.times
        # a NumPy array: compiled functions take it faster than `jax.device_put` does
        self.seeds = np.arange(task.first, task.first + task.lanes, dtype=np.uint32)

    def compile_begin(self) -> Any:
        """Compile `begin`. Returns the shapes of the lanes that it gives."""
        return self.run.program("begin", self.device, self.case, self.seeds).out_info

    def others(self, lane: Any) -> dict[Any, Callable[[], Any]]:
        """What else has to be compiled, by name. lane: shapes."""
        jobs: dict[Any, Callable[[], Any]] = {}
        for span in self.schedule:
            kind = (span.slots, span.full, span.whole)
            where = segment(span, 0, 0, 1, self.checkpoints)
            given = ("advance", self.device, self.case, self.seeds, lane, self.times, where)
            jobs.setdefault(kind, partial(self.run.program, *given, kind=kind))
            if span.close:
                jobs["close"] = partial(self.run.program, "close", self.device, self.case, self.seeds, lane)
        if self.diagnosed:
            without = lane._replace(record=Record((), (), (), ()))
            jobs["finish"] = partial(self.run.program, "finish", self.device, self.case, without)
        return jobs

    def begin(self) -> Any:
        return self.run("begin", self.device, self.case, self.seeds)

    def advance(self, lane: Any, number: int, start: int, first: int, count: int) -> Any:
        """Play `count` windows of a span from the one numbered `first`."""
        span = self.schedule[number]
        where = segment(span, start, first, count, self.checkpoints)
        kind = (span.slots, span.full, span.whole)
        return self.run("advance", self.device, self.case, self.seeds, lane, self.times, where, kind=kind)

    def close(self, lane: Any) -> Any:
        return self.run("close", self.device, self.case, self.seeds, lane)

    def diagnostics(self, lane: Any) -> dict[str, Any]:
        if not self.diagnosed:
            return {}
        lane = lane._replace(record=Record((), (), (), ()))  # otherwise all of it would be copied
        return self.run("finish", self.device, self.case, lane)[1]

    def restored(self, lane: Any, leaves: list[np.ndarray[Any, Any]]) -> Any:
        """The lanes that were saved, in the form of these."""
        return jax.device_put(jax.tree.unflatten(jax.tree.structure(lane), leaves), self.device)


class _Progress:
    """Tells how many plays were made. Lanes may be at different plays: their mean counts, rounded down."""

    def __init__(self, report: Callable[[Played], None], task: Task, horizon: int) -> None:
        self.report, self.horizon, self.group = report, horizon, task.group
        self.lanes, self.told = task.seeds * len(task.cells), 0
        self.since: float | None = None  # the end of the segment before; None in the first, which may be compiled

    def restored(self, lane: Any) -> None:
        self.told = int(np.asarray(lane.plays).mean(dtype=np.float64))
        self.report(Played(self.group, self.told * self.lanes, restored=True))

    def tell(self, plays: np.ndarray[Any, Any]) -> None:
        now = time.perf_counter()
        mean = int(plays.sum(dtype=np.int64)) // plays.size
        seconds = 0.0 if self.since is None else now - self.since
        self.report(Played(self.group, (mean - self.told) * self.lanes, seconds))
        self.told, self.since = mean, now

    def finished(self) -> None:
        self.report(Played(self.group, (self.horizon - self.told) * self.lanes))


class _SpanEnd:
    """Whether a span that the algorithm ends by itself is over.

    A segment without a play is no proof: the algorithm may be working between two plays, and then its state changes.
    The span is over once a segment neither plays nor changes the state.
    """

    def __init__(self) -> None:
        self.plays: int = -1
        self.state: Any = None

    def reached(self, lane: Any, plays: int) -> bool:
        if plays != self.plays:
            self.plays, self.state = plays, None
            return False
        before, self.state = self.state, _on_host(lane.algorithm)
        return before is not None and all(map(_same, self.state, before))


def _play_span(
    call: _Call,
    number: int,
    lane: Any,
    start: int,
    done: int,
    progress: _Progress,
    stopped: Callable[[], bool],
    keep: Callable[..., None] | None,
) -> Any:
    """The lanes after a span of which `done` windows are done."""
    span, end = call.schedule[number], _SpanEnd()
    windows = windows_offered(span, len(call.times))
    # the windows for checkpoints that cut others come last and often are not needed: the first segment ends before them
    first_segment = FIRST_SEGMENT if span.full else min(FIRST_SEGMENT, span.repeats + 8)
    for first, count in segments(windows, first_segment, done):
        if stopped():
            if keep is not None:
                keep(number, first, lambda lane=lane: _on_host(lane), last=True)
            raise Interrupted
        lane = call.advance(lane, number, start, first, count)
        plays = np.asarray(lane.plays)
        progress.tell(plays)
        if int(plays.min()) >= progress.horizon or end.reached(lane, int(plays.sum(dtype=np.int64))):
            return lane
        if keep is not None:
            keep(number, first + count, lambda lane=lane: _on_host(lane))
    return lane


def _on_host(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def _same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _alike(lane: Any, leaves: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether saved arrays have the shapes and types of the lanes."""
    here = jax.tree.leaves(lane)
    return [(x.shape, x.dtype) for x in here] == [(x.shape, x.dtype) for x in leaves]


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


@contextlib.contextmanager
def _compiled_ahead(
    plan: Plan, tasks: Sequence[Task], devices: Sequence[jax.Device], tell: Callable[[int, int], None]
) -> Iterator[None]:
    """Compile the programs of the tasks in threads of their own, while what is inside the block plays."""
    over = threading.Event()
    thread = threading.Thread(target=_compile, args=(plan, tasks, devices, over.is_set, tell))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _compile(
    plan: Plan,
    tasks: Sequence[Task],
    devices: Sequence[jax.Device],
    stopped: Callable[[], bool],
    tell: Callable[[int, int], None],
) -> None:
    """Compile all programs of the tasks, those of small lanes first: they compile fast, and their calls can play.

    An error is left to the call that meets it again.
    """
    first: dict[Any, Task] = {}  # calls of one group and shape share their programs
    for task in tasks:
        first.setdefault((task.group, len(task.cells), task.lanes), task)

    def inside(function: Callable[[], Any]) -> Any:
        if stopped():
            return None
        with contextlib.suppress(Exception), jax.enable_x64(plan.dtype == "float64"):
            return function()
        return None

    with ThreadPoolExecutor(cores()) as pool:

        def opened(task: Task, device: jax.Device) -> Any:
            call = _Call(task, plan, device, shared_by_calls(plan, task.group, task.cells, device))
            return call, call.compile_begin()

        begun = [
            x
            for x in pool.map(inside, [partial(opened, *both) for both in itertools.product(first.values(), devices)])
            if x is not None
        ]
        jobs: dict[Any, tuple[int, Callable[[], Any]]] = {}
        for call, lane in begun:
            size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(lane.algorithm)) // len(call.seeds)
            for name, job in call.others(lane).items():
                jobs.setdefault((id(call.run), call.device, len(call.seeds), name), (size, job))
        programs = len({(id(call.run), call.device, len(call.seeds)) for call, _ in begun})
        done, of = programs, programs + len(jobs)
        tell(done, of)
        waiting = [pool.submit(inside, job) for _, job in sorted(jobs.values(), key=lambda pair: pair[0])]
        for _ in as_completed(waiting):
            done += 1
            tell(done, of)


def regret_of(record: Record, parts: Parts, plan: Plan, task: Task) -> np.ndarray[Any, Any]:
    """Regret [S, M, C] in float64 on the host: exact from counts where losses do not change, else compensated sums."""
    group = plan.groups[task.group]
    if record.regret_at:
        high, low = (np.asarray(x)[: task.seeds] for x in record.regret_at)
        regret = np.add(high, low, dtype=np.float64)
    else:
        regret = _counted_regret(record.pulls_at, plan, task)
    baseline = parts.world.baseline
    if baseline is not None:
        regret = np.require(regret, requirements="W")
        environments = [plan.cells[c].environment.params for c in task.cells]
        # the loop over seeds is the outer one: cells share what a seed's baseline needs
        for s in range(task.seeds if parts.world.seeded else 1):
            rows, best = slice(s, s + 1) if parts.world.seeded else slice(None), {}
            for m, params in enumerate(environments):
                if id(params) not in best:
                    best[id(params)] = baseline(params, task.first + s, group.times)
                regret[rows, m] -= best[id(params)]
    return regret


def _counted_regret(pulls_at: Any, plan: Plan, task: Task) -> np.ndarray[Any, Any]:
    """Regret from counts [S, M, C, K]: in compiled code where that saves time, with the same bits."""
    means = [plan.cells[c].environment.facts["means"] for c in task.cells]
    gaps = np.stack([gaps_of(mean) for mean in means])
    total = len(plan.groups[task.group].cells) * len(plan.seeds) * pulls_at.shape[2] * pulls_at.shape[3]
    regret = compiled_regret(pulls_at, gaps, total)
    if regret is not None:
        return regret[: task.seeds]
    counts = np.asarray(pulls_at)[: task.seeds]
    return np.stack([regret_of_counts(counts[:, m], mean) for m, mean in enumerate(means)], axis=1)


def described(error: BaseException) -> tuple[str, str]:
    """An error in one line, and its whole traceback."""
    return f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))


class Local:
    """The engine of this machine."""

    def __init__(self, devices: int | Sequence[jax.Device] | None, memory: int | None) -> None:
        self.machine = this_machine(devices, memory)

    def run(
        self,
        plan: Plan,
        tasks: list[Task],
        machine: Machine,
        *,
        keys: Keys,
        store: Store | None,
        block: int,
        sink: Callable[[Task, Chunk], None],
        report: Callable[[Played], None],
        compiling: Callable[[int, int], None],
        failed: Callable[[Task, str, str], None] | None,
    ) -> None:
        """Run every task.

        Programs are compiled in threads of their own while others play already: `compiling(done, of)` is told.

        `sink(task, chunk)` is called in the calling thread as calls finish. `failed(task, reason, traceback)` is told
        of a Python error while the others go on; where it is None the error is raised. When the calling thread is
        interrupted, calls stop at their next segment, and `sink` is still given those that are finished. block: seeds
        of a file.
        """
        stop, lock = threading.Event(), threading.Lock()
        shared = lru_cache(maxsize=2 * machine.workers)(partial(shared_by_calls, plan))
        free = list(machine.devices) if len(machine.devices) > 1 else machine.devices * machine.workers

        def work(task: Task) -> Chunk:
            with lock:
                device = free.pop()
            try:
                resumed: Mapping[str, Any] = {} if store is None else saved(store, task, keys)
                return run_task(task, plan, device, stopped=stop.is_set, report=report, shared=shared, **resumed)
            finally:
                with lock:
                    free.append(device)

        ahead = _compiled_ahead(plan, tasks, list(dict.fromkeys(free)), compiling)
        with ahead, ThreadPoolExecutor(machine.workers) as pool:
            waiting, pending = iter(tasks), dict[Future[Chunk], Task]()
            try:
                while True:
                    # few calls are in flight, so that memory does not grow with their number
                    for task in itertools.islice(waiting, 2 * machine.workers - len(pending)):
                        pending[pool.submit(work, task)] = task
                    if not pending:
                        return
                    for future in wait(pending, return_when=FIRST_COMPLETED).done:
                        task, error = pending[future], future.exception()
                        if error is None:
                            sink(task, future.result())
                            del pending[future]  # not before: a sink that was interrupted is called again below
                            continue
                        del pending[future]
                        if failed is None or not isinstance(error, Exception):
                            raise error
                        failed(task, *described(error))
            except BaseException as error:
                stop.set()
                for future in pending:
                    future.cancel()
                if isinstance(error, KeyboardInterrupt):
                    for future in wait(pending).done:
                        if not future.cancelled() and future.exception() is None:
                            sink(pending[future], future.result())
                raise
