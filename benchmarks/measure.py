"""How the benchmarks measure."""

import os
import time

try:
    import numba
except ImportError:  # `peers.py` runs without it
    numba = None

import jaxbandits as jb


def one_core() -> None:
    """This process on one core with one thread: before anything is computed."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    several_cores(1)


def several_cores(number: int) -> None:
    """Both sides on `number` cores: before anything is computed."""
    jb.cores(number)
    if numba is not None:
        numba.set_num_threads(number)


def best_of(rounds: int, *functions) -> list[float]:
    """Least CPU seconds of each function, run in turns: other processes on the machine are not counted."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, seconds, strict=True):
            began = time.process_time()
            function()
            found.append(time.process_time() - began)
    return [min(found) for found in seconds]
