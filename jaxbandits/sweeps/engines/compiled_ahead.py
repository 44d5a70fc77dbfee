"""Programs are compiled in threads of their own, while calls whose programs are there already play."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

import jax

from jaxbandits.sweeps.compilation.caller import Caller
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.sweeps.engines.calls import Call
from jaxbandits.sweeps.engines.one_call import Player, programs_of_calls
from jaxbandits.sweeps.plan import Plan


@contextlib.contextmanager
def compiled_ahead(
    plan: Plan,
    calls: Sequence[Call],
    devices: Sequence[jax.Device],
    threads: int,
    caller: Caller,
    tell: Callable[[int, int], None],
) -> Iterator[None]:
    """Compile the programs of the calls in threads of their own, while what is inside the block plays.

    The caller traces them: while one is compiled, the next one is traced. `tell(done, of)` is called with the number of
    programs that are compiled, and of all. An error is left to the call that meets it again.
    """
    over = threading.Event()

    def on(device: jax.Device, function: Callable[[], Any]) -> Any:
        """What a function gives on a device. None: it failed, or the block is left."""
        if not over.is_set():
            with contextlib.suppress(Exception), settings_of(plan.dtype, device):
                return function()
        return None

    thread = threading.Thread(target=_compile, args=(plan, calls, devices, threads, caller, on, tell))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _compile(
    plan: Plan,
    calls: Sequence[Call],
    devices: Sequence[jax.Device],
    threads: int,
    caller: Caller,
    on: Callable[[jax.Device, Callable[[], Any]], Any],
    tell: Callable[[int, int], None],
) -> None:
    """Compile `begin` of all calls, which says what their lanes hold, then the rest, calls of small lanes first."""
    first: dict[Any, Call] = {}  # calls of one group and shape share their programs
    for call in calls:
        first.setdefault((call.group, len(call.cells), call.lanes), call)

    def begun(call: Call, device: jax.Device) -> Any:
        player = Player(call, plan, device, programs_of_calls(plan, call.group, call.cells, device))
        return player, player.compile_begin()

    with ThreadPoolExecutor(threads) as pool:
        both = list(itertools.product(first.values(), devices))
        starts = [pool.submit(caller.run_in_worker, on, device, partial(begun, call, device)) for call, device in both]
        begins, rest = set[Any](), dict[Any, tuple[int, Callable[[], Any]]]()
        for player, lane in filter(None, (start.result() for start in starts)):
            program = player.run, player.device, len(player.seeds)
            begins.add(program)
            size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(lane.algorithm)) // len(player.seeds)
            for name, compilation in player.others(lane).items():
                rest.setdefault((*program, name), (size, partial(caller.run_in_worker, on, player.device, compilation)))
        done, of = len(begins), len(begins) + len(rest)
        tell(done, of)
        for _ in as_completed(
            [pool.submit(compilation) for _, compilation in sorted(rest.values(), key=lambda x: x[0])]
        ):
            done += 1
            tell(done, of)
