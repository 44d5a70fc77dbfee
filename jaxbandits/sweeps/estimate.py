"""What a sweep costs, printed: its size before it runs, its time once programs are compiled and some plays are made."""

import sys
from typing import TYPE_CHECKING

from jaxbandits.sweeps.engines.calls import Machine, Task, task_bytes, total_bytes, weight
from jaxbandits.sweeps.engines.one_call import Played
from jaxbandits.sweeps.plan import Plan

if TYPE_CHECKING:
    from jaxbandits.sweeps.execution import Job

LOOK = 5.0  # seconds after the last program is compiled until the time is said


def announce(job: "Job", tasks: list[Task], machine: Machine) -> None:
    """Print the size and the memory."""
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
    flight = f"{size(largest * machine.workers * machine.at_once)} for calls in flight"
    where = "in memory" if job.directory is None else f"in {job.directory}"
    say(f"memory: {flight}; results: {size(total_bytes(plan, job.shapes))} {where}")


class Left:
    """The seconds that a run still takes, from the speeds of the segments that were played."""

    def __init__(self, plan: Plan, tasks: list[Task]) -> None:
        self.plays: dict[int, int] = {}  # of every group, not yet made
        for task in tasks:
            self.plays[task.group] = self.plays.get(task.group, 0) + weight(task, plan)
        self.timed: dict[int, tuple[int, float]] = {}  # plays of every group that were timed, and their seconds

    def note(self, played: Played) -> None:
        """Count what was played."""
        self.plays[played.group] -= played.plays
        if played.seconds:
            plays, seconds = self.timed.get(played.group, (0, 0.0))
            self.timed[played.group] = plays + played.plays, seconds + played.seconds

    def seconds(self) -> float | None:
        """For one worker. A group that has not been timed is taken to be as fast as the others. None: not known yet."""
        speeds = {group: seconds / plays for group, (plays, seconds) in self.timed.items() if plays}
        if not speeds:
            return None
        usual = sum(speeds.values()) / len(speeds)
        return sum(plays * speeds.get(group, usual) for group, plays in self.plays.items())


def say_time(left: Left, calls: int, machine: Machine) -> None:
    """Print about how long the rest takes."""
    seconds = left.seconds()
    if seconds is not None:
        at_once = min(machine.workers, calls)
        say(f"time: about {duration(seconds / at_once)} more on {machine.workers} {unit(machine)}")


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
