"""Histories of single lanes, as `jb.simulate(..., history=True)` has them, at half its price: nothing is recorded.

`jb.simulate` compiles every window twice, once for the history and once for regret and pulls at checkpoints.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from uncompiled import uncompiled

from jaxbandits import simulator
from jaxbandits.sweeps.engines import one_lane
from jaxbandits.sweeps.plan import Cell, host_case, stack_cases
from jaxbandits.sweeps.simulate import history_of_windows


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
    case, _ = stack_cases([host_case(cell)], dtype)
    with jax.enable_x64(dtype == "float64"):
        times = np.asarray(checkpoints or [horizon], np.int32)
        begun = _begin(parts)(case, np.uint32(seed))
        spans = list(one_lane.watch_lane(parts, algorithm.schedule, case, np.uint32(seed), times, begun))
        lane, windows = spans[-1][0], [jax.tree.map(np.asarray, seen) for _, seen in spans]
        diagnostics = uncompiled(parts.program.diagnose)(case.algorithm, lane.algorithm)
    return Watched(history_of_windows(windows, False), jax.tree.map(np.asarray, lane.algorithm), diagnostics)


@functools.cache
def _begin(parts):
    return uncompiled(lambda case, seed: simulator.begin(parts, case, seed, 1))


def silent(algorithm):
    """Without the noise of its mechanism."""
    return algorithm._replace(params=algorithm.params._replace(mechanism_scale=0.0))
