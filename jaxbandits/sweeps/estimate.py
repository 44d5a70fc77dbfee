"""What a sweep costs, printed: its size before it runs, its time once programs are compiled and some plays are made."""

import sys
from typing import TYPE_CHECKING, Any

from jaxbandits.formatting import duration, size
from jaxbandits.sweeps.engines.calls import Call, Machine, bytes_of_call, total_bytes, weight
from jaxbandits.sweeps.engines.one_call import Progress
from jaxbandits.sweeps.plan import Plan

if TYPE_CHECKING:
    from jaxbandits.sweeps.execution import CheckedSweep

LOOK = 5.0  # seconds after the last program is compiled until the time is said


def announcement(job: "CheckedSweep", calls: list[Call], machine: Machine) -> list[str]:
    """The size and the memory, in lines."""
    plan: Plan = job.plan
    lanes = sum(call.seeds * len(call.cells) for call in calls)
    whole = len(plan.cells) * len(plan.seeds)
    plays = sum(weight(call, plan) for call in calls)
    some = f"{lanes:,} lanes" if lanes == whole else f"{lanes:,} of {whole:,} lanes"
    lines = []
    if job.store is not None and lanes < job.lanes:
        lines.append(f"{job.lanes - lanes:,} lanes from the store")
    lines.append(
        f"{some} to compute: {len(plan.cells):,} cells x {len(plan.seeds):,} seeds, "
        f"{len({t.group for t in calls})} programs, {plays:.2g} plays"
    )
    largest = max(bytes_of_call(t, plan, job.shapes) for t in calls)
    flight = f"{size(largest * machine.workers * machine.at_once)} for calls in flight"
    where = "in memory" if job.directory is None else f"in {job.directory}"
    return [*lines, f"memory: {flight}; results: {size(total_bytes(plan, job.shapes))} {where}"]


def progress_bar(lines: list[str], **settings: Any) -> Any:
    """The lines of the announcement and a bar: of a terminal below them, or both together in an output of a notebook.

    settings: those of tqdm.
    """
    if in_notebook():
        from jaxbandits.sweeps.notebook_bar import NotebookBar

        return NotebookBar(lines, **settings)
    from tqdm import tqdm

    for line in lines:
        say(line)
    return tqdm(**settings)


# docs/decisions.md#measured-time
class Left:
    """The seconds that a run still takes, from the speeds of the segments that were played."""

    def __init__(self, plan: Plan, calls: list[Call]) -> None:
        self.plays: dict[int, int] = {}  # of every group, not yet made
        for call in calls:
            self.plays[call.group] = self.plays.get(call.group, 0) + weight(call, plan)
        self.timed: dict[int, tuple[int, float]] = {}  # plays of every group that were timed, and their seconds

    def note(self, played: Progress) -> None:
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


def say_time(left: Left, calls: int, machine: Machine, bar: Any) -> None:
    """Print about how long the rest takes, above the bar."""
    seconds = left.seconds()
    if seconds is not None:
        at_once = min(machine.workers, calls)
        text = f"time: about {duration(seconds / at_once)} more on {machine.workers} {unit(machine)}"
        if hasattr(bar, "lines"):
            bar.lines.append(text)
        else:
            bar.clear()
            say(text)


def unit(machine: Machine) -> str:
    """The word for the machine's workers, such as `cores`."""
    one = "core" if machine.platform == "cpu" else machine.platform.upper()
    return one if machine.workers == 1 else f"{one}s"


def say(text: str) -> None:
    """Print a line of progress: on stderr, which notebooks show as an error, so there on stdout."""
    stream = sys.stdout if in_notebook() else sys.stderr
    if stream is not None:  # a process may begin with its streams closed
        print(text, file=stream, flush=True)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this process: Jupyter's, or Colab's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")
