"""What is left to compute, cut into calls that fit the caches and the memory.

Work is a list of intervals of seeds for every cell. `seeds_of_shard` says which of it this process is to compute,
`without` takes away what is finished, `calls_of` cuts the rest into calls. Nothing here changes a result, only who
computes it and when.
"""

import heapq
import itertools
import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.contract import naming
from jaxbandits.kernels.source import BLOCK
from jaxbandits.strangers import STAND_IN
from jaxbandits.sweeps.compilation.compiled import LaneShape, lane_shape
from jaxbandits.sweeps.part_checks import examination, fields
from jaxbandits.sweeps.plan import Group, Plan
from jaxbandits.sweeps.storage.store import BegunCall

LEAST_LANES = 16  # a vector of float32: the lanes of a call that do not fill one are rounded another way
CPU_LANES = 2048
SHARED_LANES = 512  # of calls that are cut for other cores, at least: EXP3 takes 1.25 times as long as with 2,048
CALLS_A_CORE = 8  # so many calls of any length keep all cores busy to the end
CPU_SLOTS = 2**15  # where a call waits for its slowest lane: plays a step, enough to fill the vector units
CACHE_BYTES = 512 * 1024  # half of a core's second-level cache
# Points of a call on a CPU. More would share draws a little further, in calls of fewer seeds and so in more files.
MAX_POINTS = 16
STRANGER_PLAYS, MAX_STRANGER_SEEDS = 200_000, 64  # of a call of foreign learners, at most
ACCELERATOR_LANES = 2**18  # of a call: enough to fill a card, and it plays one while the results of others arrive
Interval = tuple[int, int]
Wanted = list[list[Interval]]  # seeds of every cell
Company = tuple[int, tuple[int, ...]]  # a group and those of its cells that may share calls


class Machine(NamedTuple):
    """Where calls run, each within `memory` bytes: every worker has `at_once` of them under way."""

    devices: list[jax.Device]
    workers: int
    platform: str
    memory: int
    at_once: int = 1


class Call(NamedTuple):
    """One call: some cells of a group on one stretch of seeds."""

    group: int
    cells: tuple[int, ...]
    first: int  # first seed
    lanes: int  # seeds computed, padded
    seeds: int  # seeds of the result
    keys: tuple[str, ...] = ()  # of its cells, for a store


def seeds_of_shard(plan: Plan, shard: tuple[int, int] | None = None, cells: Container[int] | None = None) -> Wanted:
    """The seeds of every cell that shard (i, n) of the sweep computes, the cells in `cells` alone. None: all.

    Seeds are cut into equal stretches, and the cells of a stretch are dealt to `n / stretches` shards. Of the divisors
    of n that one is the number of stretches whose largest shard is the smallest.
    """
    seeds = plan.seeds
    if shard is None:
        return [[(seeds.start, seeds.stop)] if cells is None or c in cells else [] for c in range(len(plan.cells))]
    i, n = shard
    plays = {c: int(group.times[-1]) for group in plan.groups for c in group.cells if cells is None or c in cells}

    def load_of_largest_shard(stretches: int) -> int:
        padded = -(-len(seeds) // (stretches * LEAST_LANES)) * LEAST_LANES
        return padded * max(sum(plays[c] for c in share) for share in _deal_cells(plays, n // stretches))

    # docs/decisions.md#shards
    stretches = min((d for d in range(n, 0, -1) if n % d == 0), key=load_of_largest_shard)
    stretch, share = i % stretches, set(_deal_cells(plays, n // stretches)[i // stretches])
    low, high = (seeds.start + len(seeds) * (stretch + k) // stretches for k in (0, 1))
    return [[(low, high)] if c in share and low < high else [] for c in range(len(plan.cells))]


def _deal_cells(plays: Mapping[int, int], shares: int) -> list[list[int]]:
    """Cells in shares of about equal plays: the longest first, each to the share that has least.

    Cells of one group follow each other, so that every share gets as many of each, whatever a play of theirs costs.
    """
    dealt, load = [list[int]() for _ in range(shares)], [(0, k) for k in range(shares)]
    for cell in sorted(plays, key=lambda c: -plays[c]):
        total, k = heapq.heappop(load)
        dealt[k].append(cell)
        heapq.heappush(load, (total + plays[cell], k))
    return dealt


def without(intervals: list[Interval], finished: Sequence[tuple[Any, ...]]) -> list[Interval]:
    """The parts of the intervals that no finished one covers, such as a chunk: what begins with (first, stop)."""
    out: list[Interval] = []
    for low, high in intervals:
        for a, b, *_ in sorted(finished):
            if low < a < high:
                out.append((low, a))
            low = max(low, b) if a < high else low
        if low < high:
            out.append((low, high))
    return out


def first_cells(keys: Sequence[str]) -> dict[str, int]:
    """The cell of every key: of one that stands under two labels, the first."""
    return {key: c for c, key in reversed(list(enumerate(keys)))}


def calls_to_resume(
    begun: Iterable[BegunCall], plan: Plan, keys: Sequence[str], wanted: Wanted, machine: Machine
) -> list[Call]:
    """Calls that an interrupted run had begun, where they fit and are wanted: they leave `wanted`."""
    position, calls = first_cells(keys), list[Call]()
    home = {c: g for g, group in enumerate(plan.groups) for c in group.cells}
    for saved in begun:
        cells = tuple(position.get(key, -1) for key in saved.keys)
        group, *others = {home.get(c) for c in cells}
        span = (saved.first, saved.first + saved.seeds)
        if group is None or others or saved.lanes % LEAST_LANES or any(without([span], wanted[c]) for c in cells):
            continue
        call = Call(group, cells, saved.first, saved.lanes, saved.seeds, saved.keys)
        if bytes_of_call(call, plan) <= machine.memory:  # otherwise it may be what the last run died of
            calls.append(call)
            for c in cells:
                wanted[c] = without(wanted[c], [span])
    return calls


def calls_of(plan: Plan, wanted: Wanted, machine: Machine) -> list[Call]:
    """Calls that cover the wanted seeds.

    On a CPU, stretches end at multiples of their length, counted from seed 0; an accelerator is not to play more seeds
    than it must, so that there the first of them begins with the first seed.
    """
    on_cpu = machine.platform == "cpu"
    sizes: dict[Company, tuple[int, int]] = {}  # of the calls of a group's cells: seeds and points
    for g, cells in _companies(plan, on_cpu):
        longest = max((high - low for c in cells for low, high in wanted[c]), default=0)
        if longest:
            sizes[g, cells] = call_shape(plan.groups[g], cells, plan, longest, machine)

    def halve(company: Company) -> None:
        seeds, points = sizes[company]
        sizes[company] = next_multiple(seeds // 2, LEAST_LANES), points

    # one group may take longer than all others: of few, each is cut for all cores
    if on_cpu and len(sizes) < CALLS_A_CORE * machine.workers:
        for one in list(sizes):
            while sizes[one][0] >= 2 * SHARED_LANES and len(_cut(wanted, {one: sizes[one]}, on_cpu)) < machine.workers:
                halve(one)
    # few calls leave cores idle: halve the largest until every worker has two
    calls = _cut(wanted, sizes, on_cpu)
    while len(calls) < 2 * machine.workers and machine.workers > 1:
        largest = max(sizes, key=lambda company: sizes[company][0], default=None)
        if largest is None or sizes[largest][0] < 8 * LEAST_LANES:
            break
        halve(largest)
        calls = _cut(wanted, sizes, on_cpu)
    return calls


def next_multiple(lanes: int, block: int) -> int:
    """The next multiple of a number of lanes."""
    return -(-lanes // block) * block


# docs/decisions.md#one-length-a-call
def _companies(plan: Plan, on_cpu: bool) -> list[Company]:
    """Groups with those of their cells that may share calls: on a CPU those whose batches have one length."""
    found = list[Company]()
    for g, group in enumerate(plan.groups):
        alike: dict[Any, list[int]] = {}
        for c in group.cells:
            alike.setdefault(plan.cells[c].algorithm.schedule if on_cpu else (), []).append(c)
        found += zip(itertools.repeat(g), map(tuple, alike.values()))
    return found


def _cut(wanted: Wanted, sizes: Mapping[Company, tuple[int, int]], on_cpu: bool) -> list[Call]:
    calls = list[Call]()
    for (g, company), (seeds, points) in sizes.items():
        together: dict[Interval, list[int]] = {}  # cells that want the same stretch run in one call
        for c in company:
            for low, high in wanted[c]:
                while low < high:
                    stop = min(high, (low // seeds + 1) * seeds if on_cpu else low + seeds)
                    together.setdefault((low, stop), []).append(c)
                    low = stop
        for (low, high), cells in sorted(together.items()):
            for at in range(0, len(cells), points):
                calls.append(Call(g, tuple(cells[at : at + points]), low, seeds, high - low))
    return calls


def call_bytes(shape: LaneShape, seeds: int, points: int, checkpoints: int) -> int:
    """Memory of one call.

    The record is held on the device, then on the host as counts and as float64 regret. While windows are played,
    compiled code holds up to as much again as a lane carries, and its record where that is laid out for a kernel.
    """
    lane = 2 * shape.state + 2 * shape.record + 8 * checkpoints
    return seeds * (points * lane + 2 * shape.context)


def bytes_of_call(call: Call, plan: Plan) -> int:
    """Memory of a given call."""
    group = plan.groups[call.group]
    return call_bytes(group.shape, call.lanes, len(call.cells), len(group.times))


def check_parts(plan: Plan) -> None:
    """Raise ValueError with its label where a user's part breaks the protocol; warn where that is doubtful."""
    with jax.enable_x64(plan.dtype == "float64"):
        doubts = list(examination.doubts_of_builders(plan.cells))
        for group in plan.groups:
            doubts += examination.doubts_of(plan.cells[group.cells[0]], group.parts, group.case)
        examination.warn(doubts, stacklevel=5)


def add_lane_shapes(plan: Plan) -> Plan:
    """A plan whose groups know the sizes of one of their lanes."""
    groups = []
    for group in plan.groups:
        first, slots = plan.cells[group.cells[0]], max(map(operator.attrgetter("slots"), group.schedule))
        leaves, treedef = jax.tree.flatten(group.case)
        with jax.enable_x64(plan.dtype == "float64"), naming(first.label):
            shape = lane_shape(group.parts, tuple(map(jax.typeof, leaves)), treedef, len(group.times), slots)
        if shape.diagnostics:
            check_diagnostics(first.label, shape.diagnostics, plan)
        if shape.counted:
            fields.check_means(first.environment)
        groups.append(group._replace(shape=shape))
    return plan._replace(groups=groups)


def check_diagnostics(label: str, names: Iterable[str], plan: Plan) -> None:
    """Raise ValueError where an algorithm's diagnostic has the name of an axis."""
    for name in names:
        if any(name in (axis.name, *axis.keys) for axis in plan.axes):
            raise ValueError(f"{label}: diagnose gives {name!r}, which this sweep varies: call it otherwise")


def call_shape(group: Group, cells: Sequence[int], plan: Plan, longest: int, machine: Machine) -> tuple[int, int]:
    """Seeds and points of one call of cells: as many as fit the cache on a CPU, or the memory of an accelerator."""
    shape, checkpoints = group.shape, len(group.times)
    if group.parts.program is STAND_IN:  # in Python: a few seconds each, ten a core, which end about together
        few = STRANGER_PLAYS // int(group.times[-1])
        return max(1, min(few, MAX_STRANGER_SEEDS, -(-longest // (10 * machine.workers)))), 1
    # windows whose plays the algorithm counts share no draws between points, which are done at different times
    shared = any(span.full and span.repeats for span in group.schedule)
    on_cpu = machine.platform == "cpu"
    # docs/decisions.md#one-point-a-call
    points = min(len(cells), MAX_POINTS if shared else 1) if on_cpu else 1

    def fits(seeds: int, points: int) -> bool:
        return call_bytes(shape, seeds, points, checkpoints) <= machine.memory

    while points > 1 and not fits(LEAST_LANES, points):
        points = (points + 1) // 2
    if not fits(LEAST_LANES, points):
        # on a cluster each call has a memory of its own
        at_once = machine.workers * machine.at_once if machine.devices else 1
        need = call_bytes(shape, LEAST_LANES, 1, checkpoints) * at_once
        lanes = f"{LEAST_LANES} lanes of {plan.cells[cells[0]].label!r}, which need {need}"
        what = f"memory = {machine.memory * at_once} bytes cannot hold {lanes}"
        raise ValueError(f"{what}: raise memory or use fewer checkpoints")
    if not on_cpu:
        return _accelerator_shape(len(cells), longest, machine.workers, fits)
    seeds = LEAST_LANES
    drawn = 1 if group.parts.program.hints.tally else shape.slots
    max_lanes = CPU_LANES if shared else min(CPU_LANES, CPU_SLOTS // drawn)
    while fits(2 * seeds, points) and 2 * seeds * points <= max_lanes:
        if 2 * seeds * (points * (shape.state - shape.kept) + shape.context) > CACHE_BYTES:
            break
        seeds *= 2
    while seeds > LEAST_LANES and seeds >= 2 * longest:
        seeds //= 2
    if not shared:  # padding costs as much as other lanes: calls of equal size need least
        seeds = _even(longest, seeds, LEAST_LANES)
    return seeds, points


def _even(longest: int, most: int, block: int) -> int:
    """Seeds of equal calls that cover the longest stretch, none with more than some."""
    return next_multiple(-(-longest // -(-longest // most)), block)


# docs/decisions.md#few-large-calls
def _accelerator_shape(cells: int, longest: int, workers: int, fits: Callable[[int, int], bool]) -> tuple[int, int]:
    """Seeds and points of one call that fill an accelerator, or its memory: all seeds first, then points."""
    most = min(next_multiple(longest, BLOCK), ACCELERATOR_LANES)
    while most > LEAST_LANES and not fits(most, 1):
        most = next_multiple(most // 2, BLOCK if most > BLOCK else LEAST_LANES)
    seeds = _even(longest, most, BLOCK if min(longest, most) >= BLOCK else LEAST_LANES)
    points = min(cells, ACCELERATOR_LANES // seeds)
    while points > 1 and not fits(seeds, points):
        points -= 1
    calls = -(-cells // points)
    if workers > 1:  # two calls for every device, where there are enough points
        calls = max(calls, min(cells, -(-2 * workers // -(-longest // seeds))))
    return seeds, -(-cells // calls)


def default_memory(platform: str) -> int:
    """Bytes for the calls of one machine: a quarter of an accelerator's memory, one GiB on a CPU."""
    if platform != "cpu":
        stats = jax.local_devices()[0].memory_stats() or {}
        return int(stats.get("bytes_limit", 8 << 30) // 4)
    return 1 << 30


def fitting(plan: Plan, wanted: Wanted, machine: Machine) -> tuple[Machine, list[Call]]:
    """The machine with as many calls at a time as the memory is enough for, and the calls."""
    while True:
        try:
            return machine, calls_of(plan, wanted, machine)
        except ValueError:
            if machine.at_once > 1:
                machine = machine._replace(at_once=1, memory=machine.memory * machine.at_once)
                continue
            if machine.workers == 1 or not machine.devices:
                raise
            workers = machine.workers // 2
            machine = machine._replace(workers=workers, memory=machine.memory * machine.workers // workers)


def weight(call: Call, plan: Plan) -> int:
    """Plays of a call, over all lanes of its result."""
    return int(plan.groups[call.group].times[-1]) * len(call.cells) * call.seeds


def blocks(first: int, stop: int, block: int) -> list[Interval]:
    """A stretch of seeds cut at the boundaries of files."""
    return list(itertools.pairwise([first, *range((first // block + 1) * block, stop, block), stop]))


def total_bytes(plan: Plan) -> int:
    """Size of the whole result."""
    times = len(np.unique(np.concatenate(list(plan.times.values()))))
    lanes, seeded = np.empty(len(plan.cells), np.int64), False
    for group in plan.groups:
        seeded |= group.parts.world.seeded  # `best_reward` of every seed
        lanes[group.cells] = 8 * (times + len(group.shape.diagnostics)) + 4 * (group.shape.arms or 0)
    return len(plan.seeds) * (int(lanes[list(plan.places.values())].sum()) + 8 * times * seeded)
