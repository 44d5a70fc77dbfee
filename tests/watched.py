"""Histories of single lanes, as `jb.simulate(..., history=True)` has them, at half its price: nothing is recorded.

`jb.simulate` compiles every window twice, once for the history and once for regret and pulls at checkpoints.
"""

import functools
import importlib
from typing import Any, NamedTuple

import jax
import numpy as np
from uncompiled import uncompiled

from jaxbandits import simulator, spans
from jaxbandits.sweeps.plan import Cell, host_case, stacked

simulate = importlib.import_module("jaxbandits.sweeps.simulate")  # the package exports the function


class Watched(NamedTuple):
    """One lane: every play, and what the algorithm knows and says at the horizon."""

    history: Any
    state: Any
    diagnostics: dict[str, Any]


def watched(
    algorithm, environment, seed=0, dtype="float64", reward_adversary=None, message_adversary=None, checkpoints=None
):
    """A lane of an algorithm. Algorithms of one program, horizon and kind of environment share a compiled one.

    checkpoints: times at which windows end, for algorithms that decide how long their windows are.
    """
    horizon = algorithm.config["horizon"]
    parts = simulator.parts_of(algorithm, environment, reward_adversary, message_adversary, dtype)
    cell = Cell("", algorithm, environment, reward_adversary, message_adversary, horizon, ())
    case, _ = stacked([host_case(cell)], dtype)
    with jax.enable_x64(dtype == "float64"):
        times = np.asarray(checkpoints or [horizon], np.int32)
        lane, windows, start = _begin(parts)(case, np.uint32(seed)), [], 0
        for span in algorithm.schedule:
            kind, number = (span.slots, span.full, span.whole), spans.windows_offered(span, len(times))
            where = times, np.int32(start), np.int32(spans.batch_length(span))
            lane, seen = simulate.watch_windows(parts, kind, number, case, np.uint32(seed), lane, *where)
            lane = simulate.close_span(parts, case, np.uint32(seed), lane) if span.close else lane
            windows, start = [*windows, jax.tree.map(np.asarray, seen)], spans.next_start(span, start, horizon)
        diagnostics = uncompiled(parts.program.diagnose)(case.algorithm, lane.algorithm)
    return Watched(simulate.flattened(windows, False), jax.tree.map(np.asarray, lane.algorithm), diagnostics)


@functools.cache
def _begin(parts):
    return uncompiled(lambda case, seed: simulator.begin(parts, case, seed, 1))


def silent(algorithm):
    """Without the noise of its mechanism."""
    return algorithm._replace(params=algorithm.params._replace(mechanism_scale=0.0))
