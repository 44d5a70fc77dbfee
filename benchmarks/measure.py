"""How the benchmarks measure."""

import time


def best_of(rounds: int, *functions) -> list[float]:
    """Least CPU seconds of each function, run in turns: other processes on the machine are not counted."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, seconds, strict=True):
            began = time.process_time()
            function()
            found.append(time.process_time() - began)
    return [min(found) for found in seconds]
