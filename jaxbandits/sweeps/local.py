"""The local engine: chunks of lanes over the cores or accelerators of this machine.

On a CPU one thread a core runs whole chunks on one device: XLA releases the interpreter, the executions do not share
anything, and JAX needs no restart (measured: 1.9x on two cores, as much as two devices under shard_map). Where JAX has
several devices, one thread feeds each.
"""

import contextlib
import itertools
import os
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.simulator import Parts
from jaxbandits.sweeps.compiled import compiled, lane_bytes
from jaxbandits.sweeps.plan import Group, Plan, host_case, stacked

LEAST_LANES = 8  # results are promised equal for chunks of at least this many lanes
CPU_LANES = 2048
CACHE_BYTES = 512 * 1024  # half of a core's second-level cache
SEGMENT_SECONDS = 0.5  # between two looks at progress and interruption
MOST_POINTS = 64
_cores: int | None = None
_making = threading.Lock()


def cores(n: int | None = None) -> int:
    """How many CPU cores `sweep` uses from now on (None: ask). Default: all this process may run on.

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


class Task(NamedTuple):
    """One call: some cells of a group on one stretch of seeds."""

    group: int
    cells: tuple[int, ...]
    first: int  # first seed
    lanes: int  # seeds computed, padded
    seeds: int  # seeds kept


class Chunk(NamedTuple):
    """What a task gives back, on the host."""

    cells: tuple[int, ...]
    first: int
    regret: Any  # [S, M, C] float64
    pulls: Any  # [S, M, K] int32 | None
    diagnostics: dict  # name -> [S, M]


class Interrupted(Exception):
    """A worker was asked to stop."""


def pick_devices(devices) -> list:
    """The devices to use: all local ones of the default backend, a count, or the given ones."""
    known = jax.local_devices()
    if devices is None:
        return known
    if isinstance(devices, int):
        if not 1 <= devices <= len(known):
            raise ValueError(f"devices = {devices} but JAX has {len(known)} here: lower it, or set JAX_NUM_CPU_DEVICES")
        return known[:devices]
    return list(devices)


def chunk_shape(group: Group, plan: Plan, memory: int | None, workers: int, platform: str) -> tuple[int, int]:
    """Seeds and points of one call: to the cache on a CPU, to memory on an accelerator."""
    first = plan.cells[group.cells[0]]
    case, _ = stacked([host_case(first)], plan.dtype)
    slots = max(span.slots for span in group.schedule)
    state, record, context, counted = lane_bytes(group.parts, case, len(group.times), slots)
    if counted and "means" not in first.environment.facts:
        raise ValueError(
            "the environment counts pulls and gives no regret: put the arms' means into its facts, facts['means']"
        )
    points = min(len(group.cells), MOST_POINTS)
    budget = (memory or _default_memory(platform)) // workers
    # the record is held on the device, then on the host as counts and as float64 regret
    lane = state + 2 * record + 8 * len(group.times)

    def fits(seeds, points):
        return seeds * (points * lane + 2 * context) <= budget

    while points > 1 and not fits(LEAST_LANES, points):
        points = (points + 1) // 2
    if not fits(LEAST_LANES, points):
        need = LEAST_LANES * (lane + 2 * context) * workers
        raise ValueError(
            f"memory = {memory or _default_memory(platform)} bytes cannot hold {LEAST_LANES} lanes of "
            f"{first.label!r}, which need {need}: raise memory or use fewer checkpoints"
        )
    seeds = LEAST_LANES
    while fits(2 * seeds, points) and seeds < 2**20:
        in_cache = 2 * seeds * (points * state + context) <= CACHE_BYTES and 2 * seeds * points <= CPU_LANES
        if platform == "cpu" and not in_cache:
            break
        seeds *= 2
    while seeds > LEAST_LANES and seeds >= 2 * len(plan.seeds):
        seeds //= 2
    return seeds, points


def _default_memory(platform: str) -> int:
    if platform != "cpu":
        stats = jax.local_devices()[0].memory_stats() or {}
        return int(stats.get("bytes_limit", 8 << 30) // 4)
    return 1 << 30


def tasks_of(plan: Plan, memory: int | None, workers: int, platform: str) -> list[Task]:
    """Every call of the sweep. Seed blocks have canonical boundaries, counted from seed 0."""
    shapes = [chunk_shape(group, plan, memory, workers, platform) for group in plan.groups]

    def calls(seeds, points, group):
        blocks = (plan.seeds.stop - 1) // seeds - plan.seeds.start // seeds + 1
        return blocks * -(-len(group.cells) // points)

    # few calls leave cores idle: halve the largest chunks until every worker has two
    while sum(calls(*shape, g) for shape, g in zip(shapes, plan.groups, strict=True)) < 2 * workers:
        largest = max(range(len(shapes)), key=lambda i: shapes[i][0])
        if workers == 1 or shapes[largest][0] < 16 * LEAST_LANES:
            break
        shapes[largest] = (shapes[largest][0] // 2, shapes[largest][1])
    tasks = []
    for g, (group, (seeds, points)) in enumerate(zip(plan.groups, shapes, strict=True)):
        for at in range(0, len(group.cells), points):
            cells = tuple(group.cells[at : at + points])
            first = plan.seeds.start // seeds * seeds
            while first < plan.seeds.stop:
                low, high = max(first, plan.seeds.start), min(first + seeds, plan.seeds.stop)
                tasks.append(Task(g, cells, low, seeds, high - low))
                first += seeds
    return tasks


def run_task(task: Task, plan: Plan, device, stopped, report) -> Chunk:
    """Play one chunk to its horizon in segments of about half a second."""
    group = plan.groups[task.group]
    with _precision(plan.dtype), jax.default_device(device):
        host, marks = stacked([host_case(plan.cells[c]) for c in task.cells], plan.dtype)
        leaves, treedef = jax.tree.flatten(marks)
        with _making:  # two threads would make it twice
            run = compiled(group.parts, tuple(leaves), treedef, len(task.cells), len(group.times))
        case = jax.device_put(host, device)
        seeds = jax.device_put(np.arange(task.first, task.first + task.lanes, dtype=np.uint32), device)
        times = jax.device_put(group.times.astype(np.int32), device)
        horizon = int(group.times[-1])
        share = task.lanes * len(task.cells)
        lane = run("begin", device, case, seeds)
        start = reported = 0
        for span in group.schedule:
            length = span.length or span.slots
            windows = span.repeats * -(-length // span.slots) if span.full else span.repeats + len(times)
            played = -1
            # a span the algorithm ends itself is looked at once its own windows are offered: the rest is slack
            for first, number in segments(windows, 256 if span.full else min(256, span.repeats + 8)):
                if stopped():
                    raise Interrupted
                numbers = [np.int32(x) for x in (start, length, first, number)]
                kind = (span.slots, span.full, span.whole)
                lane = run("advance", device, case, seeds, lane, times, *numbers, kind=kind)
                plays = np.asarray(lane.plays)
                done = int(plays.sum(dtype=np.int64)) // plays.size
                report((done - reported) * share)
                reported = done
                total = int(plays.sum(dtype=np.int64))
                if total == played or int(plays.min()) >= horizon:  # nobody moved, or everybody is done
                    break
                played = total
            if span.close:
                lane = run("close", device, case, seeds, lane)
            start = min(start + span.repeats * length, horizon) if span.full else start
        record, diagnostics = run("finish", device, case, lane)
        report((horizon - reported) * share)
        return Chunk(
            task.cells, task.first, regret_of(record, group.parts, plan, task),
            None if isinstance(record.pulls, tuple) else np.array(record.pulls)[: task.seeds],
            {name: np.asarray(x)[: task.seeds] for name, x in diagnostics.items()},
        )  # fmt: skip


def segments(windows: int, begin: int):
    """(first, number) pairs that cover the windows, each aimed at SEGMENT_SECONDS once the speed is known."""
    first, number = 0, min(windows, begin)
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


@contextlib.contextmanager
def _precision(dtype: str):
    with jax.enable_x64(dtype == "float64"):
        yield


def _fitting(plan: Plan, memory: int | None, workers: int, platform: str) -> tuple[int, list[Task]]:
    """As many workers as the memory feeds."""
    while True:
        try:
            return workers, tasks_of(plan, memory, workers, platform)
        except ValueError:
            if workers == 1:
                raise
            workers //= 2


def run_local(plan: Plan, *, devices, memory: int | None, sink, report) -> None:
    """Run every task; `sink(chunk)` is called in the calling thread as chunks finish."""
    chosen = pick_devices(devices)
    platform = chosen[0].platform
    workers = len(chosen) if len(chosen) > 1 or platform != "cpu" else cores()
    with _precision(plan.dtype):
        workers, tasks = _fitting(plan, memory, workers, platform)
    stop = threading.Event()
    free = list(chosen) if len(chosen) > 1 else chosen * workers
    lock = threading.Lock()

    def work(task: Task) -> Chunk:
        with lock:
            device = free.pop()
        try:
            return run_task(task, plan, device, stop.is_set, report)
        finally:
            with lock:
                free.append(device)

    with ThreadPoolExecutor(workers) as pool:
        waiting, pending = iter(tasks), set[Future]()
        try:
            while True:
                for task in itertools.islice(waiting, 2 * workers - len(pending)):  # flat memory: few chunks in flight
                    pending.add(pool.submit(work, task))
                if not pending:
                    return
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    sink(future.result())
        except BaseException:
            stop.set()
            raise
