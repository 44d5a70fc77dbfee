"""The local engine: calls over the cores or accelerators of this machine.

On a CPU one thread a core runs whole calls on one device: XLA releases the interpreter, the executions do not share
anything, and JAX needs no restart (measured: 1.9x on two cores, as much as two devices under shard_map). Where JAX has
several devices, one thread feeds each.
"""

import itertools
import os
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.sweeps.engines.calls import Machine, Task, default_memory
from jaxbandits.sweeps.engines.compiled import compiled
from jaxbandits.sweeps.engines.contract_faults import Fault, broken_cells, found_in
from jaxbandits.sweeps.engines.unfinished_lanes import saved
from jaxbandits.sweeps.plan import Plan, host_case, stacked
from jaxbandits.window import Parts

SEGMENT_SECONDS = 0.5  # between two looks at progress and interruption
OPENING = 256  # windows of a call's first segment, before its speed is known
_cores: int | None = None
_making = threading.Lock()


def cores(n: int | None = None) -> int:
    """How many calls `sweep` runs at a time on a CPU from now on (None: ask). Default: one for every core this process may use.

    XLA may keep a further core busy inside a call, without gaining much: pin the process to bound what it takes.

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


class Chunk(NamedTuple):
    """What a call gives back, on the host."""

    cells: tuple[int, ...]
    first: int
    regret: Any  # [S, M, C] float64; None where a worker has written the chunk and only its faults are left
    pulls: Any  # [S, M, K] int32 | None
    diagnostics: dict  # name -> [S, M]
    faults: tuple[Fault, ...] = ()

    def sound(self) -> list[tuple[int, int]]:
        """(position in the arrays, cell) of the cells that may be kept."""
        broken = broken_cells(self.faults)
        return [(m, c) for m, c in enumerate(self.cells) if c not in broken]

    def of(self, m: int) -> dict:
        """One cell's arrays under the names of the store, seeds first."""
        arrays = {"regret": self.regret[:, m]}
        if self.pulls is not None:
            arrays["pulls"] = self.pulls[:, m]
        return arrays | {f"diagnostic.{name}": x[:, m] for name, x in self.diagnostics.items()}


class Interrupted(Exception):
    """A worker was asked to stop."""


def pick_devices(devices) -> list:
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


def this_machine(devices, memory: int | None) -> Machine:
    """The devices of this process, and the memory each worker may use."""
    chosen = pick_devices(devices)
    platform = chosen[0].platform
    workers = len(chosen) if len(chosen) > 1 or platform != "cpu" else cores()
    return Machine(chosen, workers, platform, (memory or default_memory(platform)) // workers)


def run_task(
    task: Task,
    plan: Plan,
    device,
    *,
    stopped=lambda: False,
    report=lambda plays, restored=False: None,
    keep=None,
    begun=None,
    opening=OPENING,
) -> Chunk:
    """Play one call to its horizon in segments of about half a second.

    stopped() is asked before each: then `Interrupted` is raised. report(plays) is told what was played since; with restored=True,
    what the saved lanes had played.
    keep(span, window, leaves()) is offered the lanes, to save them now and then; begun: (Begun, leaves) saved earlier.
    opening: windows of the first segment, which may have to compile.
    """
    group = plan.groups[task.group]
    with jax.enable_x64(plan.dtype == "float64"), jax.default_device(device):
        host, marks = stacked([host_case(plan.cells[c]) for c in task.cells], plan.dtype)
        leaves, treedef = jax.tree.flatten(marks)
        with _making:  # two threads would make it twice
            run = compiled(group.parts, tuple(leaves), treedef, len(task.cells), len(group.times))
        case = jax.device_put(host, device)
        seeds = jax.device_put(np.arange(task.first, task.first + task.lanes, dtype=np.uint32), device)
        times = jax.device_put(group.times.astype(np.int32), device)
        horizon = int(group.times[-1])
        share = task.seeds * len(task.cells)
        lane = run("begin", device, case, seeds)
        start = reported = 0
        at = (0, 0)  # span and window to begin with
        if begun is not None and _alike(lane, begun[1]):  # else another release saved it
            at = (begun[0].span, begun[0].window)
            lane = jax.device_put(jax.tree.unflatten(jax.tree.structure(lane), begun[1]), device)
            reported = int(np.asarray(lane.plays).mean(dtype=np.float64))
            report(reported * share, restored=True)
        for number, span in enumerate(group.schedule):
            length = span.length or span.slots
            cuts = 0 if span.whole else len(times)
            windows = span.repeats * -(-length // span.slots) if span.full else span.repeats + cuts
            played, still = -1, None
            past = number < at[0]
            done = windows if past else at[1] if number == at[0] else 0
            # a span the algorithm ends itself is looked at once its own windows are offered: the rest is slack
            for first, count in segments(windows, opening if span.full else min(opening, span.repeats + 8), done):
                if stopped():
                    if keep is not None:
                        keep(
                            number, first, lambda lane=lane: jax.tree.leaves(jax.tree.map(np.asarray, lane)), last=True
                        )
                    raise Interrupted
                numbers = [np.int32(x) for x in (start, length, first, count)]
                kind = (span.slots, span.full, span.whole)
                lane = run("advance", device, case, seeds, lane, times, *numbers, kind=kind)
                plays = np.asarray(lane.plays)
                total = int(plays.sum(dtype=np.int64))
                report((total // plays.size - reported) * share)
                reported = total // plays.size
                if int(plays.min()) >= horizon:
                    break
                if (
                    total == played
                ):  # nobody played: the span is over, unless the algorithm is at work between two plays
                    state = jax.tree.map(np.asarray, lane.algorithm)
                    if still is not None and all(map(_same, jax.tree.leaves(state), jax.tree.leaves(still))):
                        break
                    still = state
                else:
                    played, still = total, None
                if keep is not None:
                    keep(number, first + count, lambda lane=lane: jax.tree.leaves(jax.tree.map(np.asarray, lane)))
            if span.close and not past:
                lane = run("close", device, case, seeds, lane)
            start = min(start + span.repeats * length, horizon) if span.full else start
        if (short := int(np.asarray(lane.plays).min())) < horizon:
            label = plan.cells[task.cells[0]].label
            raise RuntimeError(
                f"{label!r} stopped after {short} of {horizon} plays: its schedule offers too few windows"
            )
        record, diagnostics = run("finish", device, case, lane)
        report((horizon - reported) * share)
        regret = regret_of(record, group.parts, plan, task)
        pulls = None if isinstance(record.pulls, tuple) else np.array(record.pulls)[: task.seeds]
        return Chunk(
            cells=task.cells, first=task.first, regret=regret, pulls=pulls,
            diagnostics={name: np.asarray(x)[: task.seeds] for name, x in diagnostics.items()},
            faults=found_in(task.cells, task.first, lane.faults, regret, pulls, group.times),
        )  # fmt: skip


def _same(a, b) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _alike(lane, leaves: list) -> bool:
    here = jax.tree.leaves(lane)
    return [(x.shape, x.dtype) for x in here] == [(x.shape, x.dtype) for x in leaves]


def segments(windows: int, begin: int, done: int = 0) -> Iterator[tuple[int, int]]:
    """(first, number) pairs that cover the windows from `done`, each aimed at SEGMENT_SECONDS once the speed is known."""
    first, number = done, min(windows - done, begin)
    while first < windows:
        began = time.perf_counter()
        yield first, number
        first += number
        seconds = max(time.perf_counter() - began, 1e-6)
        grown = number * min(8.0, SEGMENT_SECONDS / seconds)
        number = max(1, min(windows - first, int(grown)))


def regret_of(record, parts: Parts, plan: Plan, task: Task) -> np.ndarray:
    """[S, M, C] float64 regret on the host: exact from counts where losses do not change, else compensated sums."""
    group = plan.groups[task.group]
    if record.regret_at:
        high, low = (np.asarray(x)[: task.seeds].astype(np.float64) for x in record.regret_at)
        regret = high + low
    else:
        counts = np.asarray(record.pulls_at)[: task.seeds]  # [S, M, C, K]
        regret = np.zeros(counts.shape[:-1])
        for m, c in enumerate(task.cells):
            means = np.asarray(plan.cells[c].environment.facts["means"], dtype=np.float64)
            for arm, gap in enumerate(means.max() - means):  # a fixed order: the same bits whatever the chunk
                if gap != 0:
                    regret[:, m] += counts[:, m, :, arm] * gap
    baseline = parts.world.baseline
    if baseline is not None:
        environments = [plan.cells[c].environment.params for c in task.cells]
        # seeds outside: cells share what a seed's baseline needs
        for s in range(task.seeds if parts.world.seeded else 1):
            rows, best = slice(s, s + 1) if parts.world.seeded else slice(None), {}
            for m, params in enumerate(environments):
                if id(params) not in best:
                    best[id(params)] = baseline(params, task.first + s, group.times)
                regret[rows, m] -= best[id(params)]
    return regret


def described(error: BaseException) -> tuple[str, str]:
    """An error in one line, and its whole traceback."""
    return f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))


class Local:
    """The engine of this machine."""

    def __init__(self, devices, memory: int | None):
        self.machine = this_machine(devices, memory)

    def run(self, plan: Plan, tasks: list[Task], machine: Machine, *, keys, store, block, sink, report, failed) -> None:
        """Run every task; `sink(task, chunk)` is called in the calling thread as calls finish.

        failed(task, reason, traceback) is told of a Python error and the others go on; None: it is raised. When the calling thread
        is interrupted, calls stop at their next segment and finished ones are still sunk.
        """
        stop, lock = threading.Event(), threading.Lock()
        free = list(machine.devices) if len(machine.devices) > 1 else machine.devices * machine.workers

        def work(task: Task) -> Chunk:
            with lock:
                device = free.pop()
            try:
                kept: dict = {} if store is None else saved(store, task, keys)
                return run_task(task, plan, device, stopped=stop.is_set, report=report, **kept)
            finally:
                with lock:
                    free.append(device)

        with ThreadPoolExecutor(machine.workers) as pool:
            waiting, pending = iter(tasks), dict[Future, Task]()
            try:
                while True:
                    # flat memory: few calls in flight
                    for task in itertools.islice(waiting, 2 * machine.workers - len(pending)):
                        pending[pool.submit(work, task)] = task
                    if not pending:
                        return
                    for future in wait(pending, return_when=FIRST_COMPLETED).done:
                        task, error = pending[future], future.exception()
                        if error is None:
                            sink(task, future.result())
                            del pending[future]  # not before: an interrupted sink is tried again
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
