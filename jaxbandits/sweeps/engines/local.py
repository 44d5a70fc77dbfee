"""The local engine: calls over the cores or accelerators of this machine.

On a CPU one thread a core runs whole calls on one device: XLA releases the interpreter, the executions do not share
anything, and JAX needs no restart (measured: 1.9x on two cores, as much as two devices under shard_map). Where JAX has
several devices, one thread feeds each. An accelerator is fed by two: while the results of one call are copied, added up
and written, it plays the other.
"""

import atexit
import contextlib
import itertools
import math
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed, wait
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

import jax
import numpy as np

from jaxbandits.sweeps.compilation.caller import Caller
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.sweeps.engines import one_call
from jaxbandits.sweeps.engines.calls import Call, Machine, bytes_of_call, default_memory
from jaxbandits.sweeps.engines.one_call import Outcome, Player, Programs, Progress, play_call
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.storage.store import Store
from jaxbandits.validation import declare, integer, scalar_of

CALLS_OF_AN_ACCELERATOR = 2
QUOTAS = ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # files of control groups, in version 2 and 1
LAST_SECONDS = 3.0  # for calls to reach the end of their segment
STOPPING = "stopping after what is being compiled; Ctrl-C again stops now"
Ticket = TypeVar("Ticket")  # of a call under way
_cores: int | None = None
_left_alone: list[threading.Thread] = []


@declare(check=False)
def cores(n: int | None = None) -> int:
    """Set or ask how many calls `sweep` runs at a time on a CPU.

    Args:
        n (int, optional): How many from now on, at least 1. The default, None: change nothing.

    Returns:
        int: How many. Unless set, one for every core that this process may use, a container's quota included.

    Raises:
        ValueError: `n` is no positive integer.

    Note:
        XLA may keep a further core busy inside a call, without gaining much: pin the process to bound what it takes.

    >>> import jaxbandits as jb
    >>> jb.cores() >= 1
    True
    """
    global _cores
    if n is not None:
        _cores = integer("n", n, 1, remedy="give a positive number of cores")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _cores or int(min(available, quota_of_cores()))


def quota_of_cores() -> float:
    """How many cores the control groups of this process allow, rounded up; infinity where they say nothing."""
    least = math.inf
    for group, files in itertools.product(control_groups("cpu"), QUOTAS):
        with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
            quota, period = map(int, " ".join((group / file).read_text() for file in files).split())
            least = min(least, math.ceil(quota / period) if quota > 0 else math.inf)
    return least


def control_groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of all above it, in version 2 and in version 1 of a controller.

    Of a container that sees none but its own it is the root.
    """
    root = Path("/sys/fs/cgroup")
    yield from (root, root / controller)
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            if not controllers or controller in controllers.split(","):
                own = (root / controller if controllers else root) / place.lstrip("/")
                yield from (group for group in (own, *own.parents) if group.is_relative_to(root) and group != root)


def this_machine(devices: int | Sequence[jax.Device] | None, memory: int | None) -> Machine:
    """The devices to use (all local ones, a count of them, or the given ones), and the memory of each worker."""
    chosen, devices = (known := jax.local_devices()), scalar_of("devices", devices)
    if isinstance(devices, int | np.integer) and not isinstance(devices, bool):
        if not 1 <= devices <= len(known):
            raise ValueError(f"devices = {devices} but JAX has {len(known)} here: lower it, or set JAX_NUM_CPU_DEVICES")
        chosen = known[:devices]
    elif devices is not None:
        if not isinstance(devices, list | tuple) or not devices or not all(isinstance(d, jax.Device) for d in devices):
            wanted = "a count or a list of JAX devices, such as jax.local_devices()[:2]"
            raise ValueError(f"devices = {devices!r} must be {wanted}")
        chosen = list(devices)
    platform = chosen[0].platform
    workers = len(chosen) if len(chosen) > 1 or platform != "cpu" else cores()
    at_once = 1 if platform == "cpu" else CALLS_OF_AN_ACCELERATOR
    return Machine(chosen, workers, platform, (memory or default_memory(platform)) // (workers * at_once), at_once)


def error_and_traceback(error: BaseException) -> tuple[str, str]:
    """An error in one line, and its whole traceback."""
    return f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))


class Orders(NamedTuple):
    """What a sweep tells an engine beside its calls."""

    store: Store | None
    sink: Callable[[Call, Outcome], None]  # called in the calling thread as calls finish
    # told the call, reason and traceback of a Python error while the others go on; None: it is raised
    failed: Callable[[Call, str, str], None] | None
    say: Callable[[str], None]  # prints a line
    report: Callable[[Progress], None] = lambda played: None
    compiling: Callable[[int, int], None] = lambda done, of: None  # how many programs are compiled, and of how many
    compiles: Callable[[int], None] = lambda operations: None  # the size of a program that is compiled next


class Failed(NamedTuple):
    """Why a call gave nothing."""

    error: BaseException
    told: tuple[str, str] | None = None  # `error_and_traceback`, where another process did that


class EngineRun(Generic[Ticket]):
    """The calls of one run, a few of which are under way. A kind of engine says how each step is done."""

    slots: Callable[[], int]  # how many calls can run at a time
    submit: Callable[[], None]  # has one more call under way
    wait: Callable[[], Iterable[Ticket]]  # for calls that are over
    result: Callable[[Ticket], Outcome | Failed]  # of a call that is over
    keep: Callable[[Call, Outcome], None]
    interrupt: Callable[[], None]  # ends the calls that are finished
    stop: Callable[[], None]  # what is under way
    interrupted = False

    def __init__(self, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        self.plan, self.remaining, self.machine, self.orders = plan, remaining, machine, orders
        self.pending = dict[Ticket, list[Call]]()  # what is under way, each with its call once that has begun

    def play(self) -> None:
        """Run every call that remains. When this thread is interrupted, calls that are finished are still kept."""
        waiting = iter(self.remaining.calls)
        try:
            while True:
                # few calls are in flight, so that memory does not grow with their number
                most = self.slots() + self.slots() // self.machine.at_once
                for _ in itertools.islice(waiting, max(most - len(self.pending), 0)):
                    self.submit()
                if not self.pending:
                    return
                for ticket in self.wait():
                    self.end(ticket)
        except KeyboardInterrupt:
            self.interrupted = True
            self.interrupt()
            raise
        finally:
            self.stop()

    def end(self, ticket: Ticket) -> None:
        """Keep what a call gave, or tell why it gave nothing, unless the run was interrupted."""
        result, (call,), failed = self.result(ticket), self.pending[ticket], self.orders.failed
        self.remaining.note_end(call)
        if isinstance(result, Outcome):
            self.keep(call, result)
        elif not self.interrupted:
            if failed is None or not isinstance(result.error, Exception):
                raise result.error
            failed(call, *(result.told or error_and_traceback(result.error)))
        del self.pending[ticket]  # not before: a sink that was interrupted is called again


class Local:
    """The engine of this machine."""

    def __init__(self, devices: int | Sequence[jax.Device] | None, memory: int | None) -> None:
        self.machine = this_machine(devices, memory)

    def run(self, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        """Run every call that remains."""
        LocalRun(plan, remaining, machine, orders).play()


class LocalRun(EngineRun[Future[Outcome]]):
    """A run on this machine.

    Programs are traced in the calling thread and compiled in threads of their own, while others play already. When
    the calling thread is interrupted, calls stop at their next segment. What is being compiled cannot be stopped: a
    second interrupt leaves it alone.
    """

    def __init__(self, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        super().__init__(plan, remaining, machine, orders)
        self.keep, self.caller = orders.sink, Caller(orders.compiles)
        self.stopping, self.laying_out = threading.Event(), threading.Lock()
        threads = machine.workers * machine.at_once
        self.slots = partial(int, threads)
        self.compiler, self.pool = Workers(1), Workers(threads)
        self.programs = lru_cache(maxsize=2 * threads)(partial(one_call.programs_of_calls, plan))
        self.tastes = queue.SimpleQueue[Call]()  # a call of every group that is compiled
        self.free = queue.SimpleQueue[jax.Device]()
        for device in machine.devices * (machine.at_once if len(machine.devices) > 1 else threads):
            self.free.put(device)

    def play(self) -> None:
        # docs/decisions.md#threads
        with self.compiler, self.pool:
            self.compiled, remaining, tastes = self.compiler.submit(_compile, self), self.remaining, self.tastes
            self.compiled.add_done_callback(lambda _: list(map(tastes.put, remaining.note_compiled())))
            super().play()

    def submit(self) -> None:
        begun = list[Call]()
        future = self.pool.submit(self.caller.run_in_worker, self.work, begun)
        self.pending[future] = begun
        future.add_done_callback(self.caller.post)

    def wait(self) -> list[Future[Outcome]]:
        return [self.caller.next_event()]

    def result(self, ticket: Future[Outcome]) -> Outcome | Failed:
        error = ticket.exception()
        return ticket.result() if error is None else Failed(error)

    def interrupt(self) -> None:
        self.stop()
        if not self.compiled.done():
            self.orders.say(STOPPING)
        try:
            for future in wait(self.pending).done:
                if not future.cancelled():
                    self.end(future)
            wait([self.compiled])
        except KeyboardInterrupt:
            wait(self.pending, LAST_SECONDS)  # a thread that plays while the process ends would abort it
            self.compiler.abandon()
            self.pool.abandon()
            raise

    def stop(self) -> None:
        self.stopping.set()
        self.caller.stop_answering()  # otherwise calls would wait for it
        for future in self.pending:
            future.cancel()

    # ---- in other threads

    def programs_on(self, call: Call, device: jax.Device) -> Programs:
        with self.laying_out:  # otherwise two threads would stack the same numbers
            return self.programs(call.group, call.cells, device)

    def work(self, begun: list[Call]) -> Outcome:
        """Play the call that is next on a device that is free."""
        device, orders = self.free.get(), self.orders
        try:
            begun.append(call := self.remaining.take())
            known = {} if orders.store is None else one_call.resume_arguments(orders.store, call)
            programs, stopped = self.programs_on(call, device), partial(self.must_stop, call, device)
            return play_call(call, self.plan, device, programs, stopped=stopped, report=orders.report, **known)
        finally:
            self.free.put(device)

    def must_stop(self, call: Call, device: jax.Device) -> bool:
        """Whether a call is to stop. It is asked between two segments, the time for a taste of another group."""
        with contextlib.suppress(queue.Empty):
            other, seconds = self.tastes.get_nowait(), None
            fits = bytes_of_call(call, self.plan) + bytes_of_call(other, self.plan) <= self.machine.memory
            if fits and (most := self.remaining.worth_a_taste(other.group)):
                with contextlib.suppress(Exception):  # a call of the group will meet it again
                    programs = self.programs_on(other, device)
                    stop = self.stopping.is_set
                    seconds = one_call.time_first_segments(other, self.plan, device, programs, most, stop)
            self.remaining.note_taste(other.group, seconds)
        return self.stopping.is_set()


def _compile(run: LocalRun) -> None:
    """Compile `begin` of all calls, which says what their lanes hold, then the rest, calls of small lanes first."""
    plan, caller = run.plan, run.caller
    first: dict[Any, Call] = {}  # calls of one group and shape share their programs
    for call in run.remaining.calls:
        first.setdefault((call.group, len(call.cells), call.lanes), call)

    def on(device: jax.Device, function: Callable[[], Any]) -> Any:
        """What a function gives on a device. None: the run is over, or it failed, which a call will meet again."""
        if not run.stopping.is_set():
            with contextlib.suppress(Exception), settings_of(plan.dtype, device):
                return function()
        return None

    def compile_begin(call: Call, device: jax.Device) -> Any:
        programs = run.programs_on(call, device)
        program = programs.run, device, plan.groups[call.group].schedule, call.lanes
        if program[1:] in programs.run.ready:
            return None
        player = Player(call, plan, device, programs, programs.run.program)
        return program, player, player.begin().out_info

    with Workers(cores()) as pool:
        both = list(itertools.product(first.values(), dict.fromkeys(run.machine.devices)))
        work = caller.run_in_worker
        starts = [pool.submit(work, on, device, partial(compile_begin, call, device)) for call, device in both]
        begins, rest = set[Any](), dict[Any, tuple[int, Callable[[], Any]]]()
        for program, player, lane in filter(None, (start.result() for start in starts)):
            begins.add(program)
            size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(lane.algorithm)) // program[-1]
            for name, compilation in player.others(lane).items():
                rest.setdefault((*program, name), (size, partial(work, on, player.device, compilation)))
        of = len(begins) + len(rest)
        run.orders.compiling(len(begins), of)
        compiling = [pool.submit(compilation) for _, compilation in sorted(rest.values(), key=lambda x: x[0])]
        for done, _ in enumerate(as_completed(compiling), len(begins) + 1):
            run.orders.compiling(done, of)
        if all(future.result() is not None for future in compiling):
            for function, *about in begins:
                function.ready.add(tuple(about))


# ---- threads for which a process that was interrupted twice does not wait, as it does for those of an executor


@atexit.register
def _end() -> None:
    """End the process where threads that were left alone still run: they would abort it on their way back to Python."""
    if any(thread.is_alive() for thread in _left_alone):
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(130)  # as after SIGINT


class Workers:
    """Some daemon threads that run functions in the order in which they are given.

    Leaving the context waits for them, unless they were left alone (`abandon`).

    >>> with Workers(2) as workers:
    ...     futures = [workers.submit(pow, 2, n) for n in range(4)]
    >>> [future.result() for future in futures]
    [1, 2, 4, 8]
    """

    def __init__(self, number: int) -> None:
        self._number, self._threads, self._left = number, list[threading.Thread](), False
        self._tasks = queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None]()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have `function(*arguments)` run by a thread."""
        future: Future[Any] = Future()
        self._tasks.put((future, function, arguments))
        if len(self._threads) < self._number:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()
        return future

    def abandon(self) -> None:
        """Wait for nothing any more."""
        self._left = True
        _left_alone.extend(self._threads)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function, arguments = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except BaseException as error:
                    future.set_exception(error)
            del task, future, function, arguments  # otherwise they would live until the next task comes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _thread in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            if not self._left:
                thread.join()
