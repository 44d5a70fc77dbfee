"""What a sweep will cost, printed before it runs: its size from the plan, its time from a trial of every program."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from jaxbandits.sweeps.engines.calls import Machine, Task, task_bytes, total_bytes, weight
from jaxbandits.sweeps.engines.local import Interrupted, run_task
from jaxbandits.sweeps.plan import Plan

if TYPE_CHECKING:
    from jaxbandits.sweeps.execution import Job

FIRST_WINDOWS = 16  # windows of the segment that compiles; up to eight times as many are timed
LONG_WINDOWS = 1024  # a schedule of fewer windows is over before a trial of it is


def announce(job: "Job", tasks: list[Task], machine: Machine) -> None:
    """Print the size and the memory, then the time once every program is compiled and tried."""
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
        """Seconds to compile, and seconds for a play of a lane of the result."""
        began, looks = time.perf_counter(), list[tuple[float, int]]()
        played = 0

        def report(plays: int, restored: bool = False) -> None:
            nonlocal played
            played += plays

        def stopped() -> bool:
            looks.append((time.perf_counter(), played))
            return len(looks) == 3  # the first segment compiles, the second is timed

        try:
            run_task(long[i], plan, devices[i % len(devices)], stopped=stopped, report=report, opening=FIRST_WINDOWS)
        except Interrupted:
            pass
        except Exception:  # the run itself will raise it, after it has stored what does not fail
            return 0.0, 0.0
        if len(looks) < 3 or looks[2][1] == looks[1][1]:
            return time.perf_counter() - began, 0.0
        return looks[1][0] - began, (looks[2][0] - looks[1][0]) / (looks[2][1] - looks[1][1])

    with ThreadPoolExecutor(machine.workers) as pool:
        compiled = list(pool.map(look, range(len(long))))
        timed = list(pool.map(look, range(len(long))))  # again: a thread that compiles disturbs another's clock
    speeds = {t.group: (a[0], b[1]) for t, a, b in zip(long, compiled, timed, strict=True)}
    # programs that were not tried are taken to compile as long as the others
    compiling = sum(seconds for seconds, _ in speeds.values()) / len(speeds) * (len(first) - len(speeds))
    work = sum(weight(t, plan) * speeds[t.group][1] for t in tasks if t.group in speeds)
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
    """The word for the machine's workers, such as `cores`."""
    one = "core" if machine.platform == "cpu" else machine.platform.upper()
    return one if machine.workers == 1 else f"{one}s"


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)
