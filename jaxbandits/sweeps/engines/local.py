"""The local engine: calls over the cores or accelerators of this machine.

On a CPU one thread a core runs whole calls on one device: XLA releases the interpreter, the executions do not share
anything, and JAX needs no restart (measured: 1.9x on two cores, as much as two devices under shard_map). Where JAX has
several devices, one thread feeds each. An accelerator is fed by two: while the results of one call are copied, added up
and written, it plays the other.
"""

import atexit
import contextlib
import itertools
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, as_completed, wait
from functools import lru_cache, partial
from typing import Any, NamedTuple, Self

import jax

from jaxbandits.declared import with_sections
from jaxbandits.sweeps.compilation.caller import Caller
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.sweeps.engines.calls import Call, Machine, bytes_of_call, default_memory
from jaxbandits.sweeps.engines.one_call import (
    Outcome,
    Player,
    Programs,
    Progress,
    play_call,
    programs_of_calls,
    resume_arguments,
    time_first_segments,
)
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.storage.store import Store

CALLS_OF_AN_ACCELERATOR = 2
LAST_SECONDS = 3.0  # for calls to reach the end of their segment
STOPPING = "stopping after what is being compiled; Ctrl-C again stops now"
_cores: int | None = None
_left_alone: list[threading.Thread] = []


@with_sections
def cores(n: int | None = None) -> int:
    """Set or ask how many calls `sweep` runs at a time on a CPU.

    n (int, optional): How many from now on, at least 1. The default, None: change nothing.

    Returns (int): How many. Unless set, one for every core that this process may use.

    Raises: `n` is no positive integer.

    Notes: XLA may keep a further core busy inside a call, without gaining much: pin the process to bound what it takes.

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


def this_machine(devices: int | Sequence[jax.Device] | None, memory: int | None) -> Machine:
    """The devices to use (all local ones, a count of them, or the given ones), and the memory of each worker."""
    chosen = known = jax.local_devices()
    if isinstance(devices, int) and not isinstance(devices, bool):
        if not 1 <= devices <= len(known):
            raise ValueError(f"devices = {devices} but JAX has {len(known)} here: lower it, or set JAX_NUM_CPU_DEVICES")
        chosen = known[:devices]
    elif devices is not None:
        if not isinstance(devices, list | tuple) or not devices or not all(isinstance(d, jax.Device) for d in devices):
            raise ValueError(
                f"devices = {devices!r} must be a count or a list of JAX devices, such as jax.local_devices()[:2]"
            )
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


class Local:
    """The engine of this machine."""

    def __init__(self, devices: int | Sequence[jax.Device] | None, memory: int | None) -> None:
        self.machine = this_machine(devices, memory)

    def run(self, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        """Run every call that remains.

        Programs are traced in the calling thread and compiled in threads of their own, while others play already. When
        the calling thread is interrupted, calls stop at their next segment, and those that are finished are still kept.
        What is being compiled cannot be stopped: a second interrupt leaves it alone.
        """
        store, sink, failed, say, report, compiling, compiles = orders
        stop, threads = threading.Event(), machine.workers * machine.at_once
        kept, laying_out = lru_cache(maxsize=2 * threads)(partial(programs_of_calls, plan)), threading.Lock()
        free: queue.SimpleQueue[jax.Device] = queue.SimpleQueue()
        tastes: queue.SimpleQueue[Call] = queue.SimpleQueue()  # a call of every group that is compiled
        for device in machine.devices * (machine.at_once if len(machine.devices) > 1 else threads):
            free.put(device)

        def programs_for(call: Call, device: jax.Device) -> Programs:
            with laying_out:  # otherwise two threads would stack the same numbers
                return kept(call.group, call.cells, device)

        def work(begun: list[Call]) -> Outcome:
            device = free.get()
            try:
                begun.append(call := remaining.take())
                known: Mapping[str, Any] = {} if store is None else resume_arguments(store, call)
                asked = partial(should_stop, call, device)
                return play_call(call, plan, device, programs_for(call, device), stopped=asked, report=report, **known)
            finally:
                free.put(device)

        def should_stop(call: Call, device: jax.Device) -> bool:
            """Whether a call is to stop. It is asked between two segments, the time for a taste of another group."""
            with contextlib.suppress(queue.Empty):
                other = tastes.get_nowait()
                fits = bytes_of_call(call, plan) + bytes_of_call(other, plan) <= machine.memory
                remaining.note_taste(other.group, taste(other, device) if fits else None)
            return stop.is_set()

        def taste(call: Call, device: jax.Device) -> float | None:
            with contextlib.suppress(Exception):  # a call of the group will meet it again
                most = remaining.worth_a_taste(call.group)
                return (
                    time_first_segments(call, plan, device, programs_for(call, device), most, stop.is_set)
                    if most
                    else None
                )
            return None

        # docs/decisions.md#threads
        caller, devices = Caller(compiles), list(dict.fromkeys(machine.devices))
        with Workers(1) as compiler, Workers(threads) as pool:
            compiled = compiler.submit(_compile, plan, remaining.calls, devices, programs_for, caller, stop, compiling)
            compiled.add_done_callback(lambda _: list(map(tastes.put, remaining.note_compiled())))
            # the futures of calls, each with the call once it has begun
            waiting, pending = iter(remaining.calls), dict[Future[Outcome], list[Call]]()
            try:
                while True:
                    # few calls are in flight, so that memory does not grow with their number
                    for _ in itertools.islice(waiting, 2 * threads - len(pending)):
                        begun = list[Call]()
                        future = pool.submit(caller.run_in_worker, work, begun)
                        pending[future] = begun
                        future.add_done_callback(caller.post)
                    if not pending:
                        return
                    future = caller.next_event()
                    error, (call,) = future.exception(), pending[future]
                    remaining.note_end(call)
                    if error is None:
                        sink(call, future.result())
                        del pending[future]  # not before: a sink that was interrupted is called again below
                        continue
                    del pending[future]
                    if failed is None or not isinstance(error, Exception):
                        raise error
                    failed(call, *error_and_traceback(error))
            except BaseException as error:
                stop.set()
                caller.stop_answering()  # otherwise calls would wait for it
                for future in pending:
                    future.cancel()
                if isinstance(error, KeyboardInterrupt):
                    if not compiled.done():
                        say(STOPPING)
                    try:
                        for future in wait(pending).done:
                            if not future.cancelled() and future.exception() is None:
                                sink(pending[future][0], future.result())
                        wait([compiled])
                    except KeyboardInterrupt:
                        wait(pending, LAST_SECONDS)  # a thread that plays while the process ends would abort it
                        compiler.abandon()
                        pool.abandon()
                        raise
                raise
            finally:
                stop.set()
                caller.stop_answering()


def _compile(
    plan: Plan,
    calls: Sequence[Call],
    devices: Sequence[jax.Device],
    shared: Callable[[Call, jax.Device], Programs],
    caller: Caller,
    over: threading.Event,
    tell: Callable[[int, int], None],
) -> None:
    """Compile `begin` of all calls, which says what their lanes hold, then the rest, calls of small lanes first."""
    first: dict[Any, Call] = {}  # calls of one group and shape share their programs
    for call in calls:
        first.setdefault((call.group, len(call.cells), call.lanes), call)

    def on(device: jax.Device, function: Callable[[], Any]) -> Any:
        """What a function gives on a device. None: the run is over, or it failed, which a call will meet again."""
        if not over.is_set():
            with contextlib.suppress(Exception), settings_of(plan.dtype, device):
                return function()
        return None

    def compile_begin(call: Call, device: jax.Device) -> Any:
        programs = shared(call, device)
        program = programs.run, device, plan.groups[call.group].schedule, call.lanes
        if program[1:] in programs.run.ready:
            return None
        player = Player(call, plan, device, programs, programs.run.program)
        return program, player, player.begin().out_info

    with Workers(cores()) as pool:
        both = list(itertools.product(first.values(), devices))
        starts = [
            pool.submit(caller.run_in_worker, on, device, partial(compile_begin, call, device)) for call, device in both
        ]
        begins, rest = set[Any](), dict[Any, tuple[int, Callable[[], Any]]]()
        for program, player, lane in filter(None, (start.result() for start in starts)):
            begins.add(program)
            size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(lane.algorithm)) // program[-1]
            for name, compilation in player.others(lane).items():
                rest.setdefault((*program, name), (size, partial(caller.run_in_worker, on, player.device, compilation)))
        of = len(begins) + len(rest)
        tell(len(begins), of)
        compiling = [pool.submit(compilation) for _, compilation in sorted(rest.values(), key=lambda x: x[0])]
        for done, _ in enumerate(as_completed(compiling), len(begins) + 1):
            tell(done, of)
        if all(future.result() is not None for future in compiling):
            for run, *about in begins:
                run.ready.add(tuple(about))


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
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None]
        self._tasks = queue.SimpleQueue()

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
