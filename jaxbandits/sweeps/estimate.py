"""What a sweep costs, printed: its size before it runs, that of compiling before it begins, its time once it plays."""

import contextlib
import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from jaxbandits.formatting import duration, size
from jaxbandits.sweeps.compilation.compiled import compile_cost
from jaxbandits.sweeps.engines.calls import Call, Machine, bytes_of_call, total_bytes, weight
from jaxbandits.sweeps.engines.one_call import Progress
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.plan import Plan

if TYPE_CHECKING:
    from jaxbandits.sweeps.execution import Prepared

BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt} plays [{elapsed}{postfix}]"
ASK_SHARE = 0.05  # asking what remains of many calls takes at most this share of the time
SAY_AFTER = 5.0  # seconds after the last program is compiled until the time is said


def announcement(sweep: "Prepared", stored: int, begun: int, calls: list[Call], machine: Machine) -> list[str]:
    """The size and the memory, in lines. stored, begun: lanes of it that are in the store, all or in part."""
    plan = sweep.plan
    lanes = sum(call.seeds * len(call.cells) for call in calls)
    plays = sum(weight(call, plan) for call in calls)
    some = f"{lanes:,} runs" if lanes == sweep.lanes else f"{lanes:,} of {sweep.lanes:,} runs"
    lines = [f"{stored:,} runs from the store"] if stored else []
    some += f" ({begun:,} of them go on from where they stood)" if begun else ""
    settings = f"{len(plan.cells):,} settings x {len(plan.seeds):,} seeds"
    programs = f"{len({t.group for t in calls})} programs in {len(calls):,} calls"
    lines.append(f"{some} to compute: {settings}, {programs}, {plays:.2g} plays")
    largest = max(bytes_of_call(t, plan) for t in calls)
    flight = f"{size(largest * machine.workers * machine.at_once)} for calls in flight"
    where = "in memory" if sweep.directory is None else f"in {sweep.directory}"
    lines.append(f"memory: {flight}; results: {size(total_bytes(plan))} {where}")
    seconds, memory = compile_cost(operations_of(calls, plan))
    if machine.platform == "cpu" and seconds > 1:
        cost = f"{duration(seconds)} and {size(memory)}"
        lines.append(f"compiling: at most about {cost} (less if it was compiled before)")
    return lines


def operations_of(calls: list[Call], plan: Plan) -> int:
    """How many operations all programs of calls have, about. Calls of one group and shape share their programs."""
    programs = set[tuple[Any, ...]]()
    for call in calls:
        for span in plan.groups[call.group].schedule:
            programs.add((call.group, len(call.cells), call.lanes, span.slots, span.full, span.whole))
    return sum(plan.groups[group].shape.operations for group, *_ in programs)


class Log:
    """A stream for words about a run, such as stderr. What it does not take is left out: no word ends a run."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._heard = stream, False
        with contextlib.suppress(Exception):
            for each in filter(None, (stream, sys.stdout)):
                each.flush()
            self._heard = True

    def __eq__(self, other: object) -> bool:
        """Whether it is the other stream: `tqdm.write` looks for bars to clear by it, and flushes what it finds."""
        return self._heard and self._stream is getattr(other, "_stream", other)

    def __hash__(self) -> int:
        return id(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write what can be written."""
        with contextlib.suppress(Exception):  # closed, full, without a reader, a window that is gone
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is held back, if that can be."""
        with contextlib.suppress(Exception):
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether someone sees it at once."""
        with contextlib.suppress(Exception):
            return bool(self._stream.isatty())
        return False


class Meter:
    """The bar of a sweep, which threads tell what is compiled and played, and its time, which is said once."""

    def __init__(self, plan: Plan, remaining: Remaining, machine: Machine, lines: list[str]) -> None:
        self.remaining, self.machine = remaining, machine
        self.lock, self.compiled = threading.Lock(), math.inf  # when the last program was compiled
        self.next = 0.0  # when the remaining time is asked for again
        self.operations, self.programs = 0, (-1, 0)  # of what is compiled, and how many are, of how many
        self.lanes = f"{sum(call.seeds * len(call.cells) for call in remaining.calls):,} runs"
        self.total = sum(weight(call, plan) for call in remaining.calls)
        seen = Log(sys.stderr).isatty()  # a log keeps the last bar, with the time that all took
        self.bar = progress_bar(
            lines, total=self.total, unit="play", unit_scale=True, leave=not seen, desc=self.lanes,
            mininterval=0.1 if seen else 30, bar_format=BAR_FORMAT,
        )  # fmt: skip

    def report(self, played: Progress) -> None:
        """Count what was played."""
        with self.lock:
            plays, bar = min(played.plays, self.total - self.bar.n), self.bar
            if played.restored and not bar.disable:  # by an earlier run: they do not count for the rate
                bar.initial += plays
                bar.last_print_n += plays
                bar.n += plays
            else:
                bar.update(plays)
            self.remaining.note_plays(played)
            began = time.monotonic()
            if began < self.next:
                return
            seconds = self.remaining.seconds_left()
            self.next = time.monotonic() + (time.monotonic() - began) / ASK_SHARE
            if seconds is not None:  # of what was played: compiling is in no speed
                more = duration(seconds)
                bar.set_postfix_str(f"about {more} more", refresh=False)
                if time.monotonic() - self.compiled > SAY_AFTER:
                    one, workers = self.machine.platform.upper().replace("CPU", "core"), self.machine.workers
                    self.print_above_bar(f"time: about {more} more on {workers} {one}{'s' * (workers > 1)}")
                    self.compiled = math.inf  # said once

    def print_above_bar(self, text: str) -> None:
        """Print a line above the bar, or in an output of a notebook with it."""
        if hasattr(self.bar, "lines"):
            self.bar.lines.append(text)
            self.bar.refresh()
        else:
            self.bar.clear()
            print_progress(text)

    def compiling(self, done: int, of: int) -> None:
        """Note how many programs are compiled, and of how many."""
        with self.lock:
            self.programs = done, of
            self._describe()
            if done == of:
                self.compiled = time.monotonic()

    def compiles(self, operations: int) -> None:
        """Note a program that is compiled next. One that takes long is said above the bar."""
        with self.lock:
            self.operations += operations
            seconds, memory = compile_cost(operations)
            if seconds > SAY_AFTER:
                cost = f"about {duration(seconds)} and {size(memory)}"
                self.print_above_bar(f"compiling {operations:,} operations: {cost}")
            self._describe()

    def _describe(self) -> None:
        done, of = self.programs
        text = self.lanes
        if done < of:
            seconds, memory = compile_cost(self.operations)
            text += f", compiling {done} of {of}" if of else ", compiling"
            text += f" (all about {duration(seconds)} and {size(memory)})" if self.operations else ""
        # a log gets no line for it, and a bar that TQDM_DISABLE turned off has no interval
        self.bar.set_description_str(text, refresh=getattr(self.bar, "mininterval", 1) < 1)


def progress_bar(lines: list[str], **settings: object) -> Any:
    """The lines of the announcement and a bar: of a terminal below them, or both together in an output of a notebook.

    settings: those of tqdm.
    """
    if in_notebook():
        from jaxbandits.sweeps.notebook_bar import NotebookBar

        return NotebookBar(lines, **settings)
    from tqdm import tqdm

    for line in lines:
        print_progress(line)
    return tqdm(file=Log(sys.stderr), dynamic_ncols=True, **settings)  # as wide as the terminal


def print_progress(text: str) -> None:
    """Print a line of progress: on stderr, which notebooks show as an error, so there on stdout."""
    stream = sys.stdout if in_notebook() else sys.stderr
    if stream is not None:  # a process may begin with its streams closed
        print(text, file=Log(stream), flush=True)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this process: Jupyter's, or Colab's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")
