"""What a sweep will cost, said before it runs: the size from the plan, the time from a glance at every program."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from jaxbandits.sweeps.engines.calls import Machine, Task, task_bytes, total_bytes, weight
from jaxbandits.sweeps.engines.local import Interrupted, run_task
from jaxbandits.sweeps.plan import Plan

OPENING = 16  # windows that compile; up to eight times as many are timed
LONG_WINDOWS = 1024  # a schedule shorter than this is over before a glance at it is


def announce(job, tasks: list[Task], machine: Machine) -> None:
    """Print the size and the memory, then the time once every program is compiled and has been looked at."""
    plan: Plan = job.plan
    lanes = sum(task.seeds * len(task.cells) for task in tasks)
    whole = len(plan.cells) * len(plan.seeds)
    plays = sum(weight(task, plan) for task in tasks)
    some = f"{lanes:,} lanes" if lanes == whole else f"{lanes:,} of {whole:,} lanes"
    if job.store is not None and lanes < job.lanes:
        say(f"{job.lanes - lanes:,} lanes from the store")
    say(
        f"{some} to compute: {len(plan.cells):,} cells x {len(plan.seeds):,} seeds, "
        f"{len({t.group for t in tasks})} programs, {plays:.2g} plays"
    )
    largest = max(task_bytes(t, plan, job.shapes) for t in tasks)
    flight = f"{size(largest * machine.workers)} for calls in flight"
    where = "in memory" if job.directory is None else f"in {job.directory}"
    say(f"memory: {flight}; results: {size(total_bytes(plan, job.shapes))} {where}")
    seconds = glance(plan, tasks, machine) if machine.devices else None  # a cluster's devices are not here
    if seconds is not None:
        say(f"time: about {duration(seconds)} on {machine.workers} {unit(machine)}, programs compiled")


def glance(plan: Plan, tasks: list[Task], machine: Machine) -> float | None:
    """Seconds of the tasks, from two short segments of every program that is long enough; None where none is."""
    first: dict[int, Task] = {}
    for task in tasks:
        first.setdefault(task.group, task)
    long = [t for t in first.values() if sum(s.repeats for s in plan.groups[t.group].schedule) > LONG_WINDOWS]
    if not long:
        return None
    devices = machine.devices

    def look(i: int) -> tuple[float, float]:
        """Seconds to compile, and seconds a play of a kept lane."""
        began, looks = time.perf_counter(), list[tuple[float, int]]()
        played = 0

        def report(plays, restored=False):
            nonlocal played
            played += plays

        def stopped():
            looks.append((time.perf_counter(), played))
            return len(looks) == 3  # the first segment compiles, the second is timed

        try:
            run_task(long[i], plan, devices[i % len(devices)], stopped=stopped, report=report, opening=OPENING)
        except Interrupted:
            pass
        except Exception:  # the run itself will say what is wrong, and keep what is not
            return 0.0, 0.0
        if len(looks) < 3 or looks[2][1] == looks[1][1]:
            return time.perf_counter() - began, 0.0
        return looks[1][0] - began, (looks[2][0] - looks[1][0]) / (looks[2][1] - looks[1][1])

    with ThreadPoolExecutor(machine.workers) as pool:
        compiled = list(pool.map(look, range(len(long))))
        timed = list(pool.map(look, range(len(long))))  # again: a thread that compiles disturbs another's clock
    each = {t.group: (a[0], b[1]) for t, a, b in zip(long, compiled, timed, strict=True)}
    compiling = sum(one for one, _ in each.values()) / len(each) * (len(first) - len(each))  # the others, alike
    work = sum(weight(t, plan) * each[t.group][1] for t in tasks if t.group in each)
    return (work + compiling) / min(machine.workers, len(tasks))


def size(number: float) -> str:
    """Bytes as text."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def duration(seconds: float) -> str:
    """Seconds as text."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def unit(machine: Machine) -> str:
    """What a worker is."""
    one = "core" if machine.platform == "cpu" else machine.platform.upper()
    return one if machine.workers == 1 else f"{one}s"


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)
