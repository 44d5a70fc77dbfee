"""Programs of the catalogue as a sweep lays them out, and how close the lanes of two forms are."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxbandits.catalogue import SmallSweep
from jaxbandits.checking.subject import Subject
from jaxbandits.kernels import engine
from jaxbandits.sweeps.plan import Plan, host_case, stacked

ULPS = 8  # where sums are rounded in another way: units in the last place of the largest number of a lane


def plan_of(example: SmallSweep) -> Plan:
    """The sweep of one case."""
    return Subject(
        example.algorithm, example.environment, example.reward_adversary, example.message_adversary,
        horizon=example.horizon,
    ).plan  # fmt: skip


def choices(example: SmallSweep) -> Iterator[tuple[tuple[int, bool, bool], engine.Choice]]:
    """What every kind of window of a case runs as on a GPU."""
    laid_out = plan_of(example)
    group = laid_out.groups[0]
    case: Any = stacked([host_case(laid_out.cells[0])], laid_out.dtype)[0]
    for kind in dict.fromkeys((span.slots, span.full, span.whole) for span in group.schedule if span.repeats):
        yield kind, engine.choice(group.parts, case, len(group.times), kind)


def near(ours: Any, wanted: Any, ulps: int = ULPS) -> Any:
    """In which lanes [S] arrays [S, M, ...] are the same, but for a few units in the last place."""
    rest = tuple(range(1, wanted.ndim))
    if wanted.dtype.kind != "f":
        return np.all(ours == wanted, rest)
    # at least 1: what a sum leaves behind is compared as a part of it
    largest = np.max(np.abs(wanted), rest, keepdims=True, initial=1, where=np.isfinite(wanted))
    units = ulps * np.spacing(np.broadcast_to(largest, wanted.shape))
    return np.all(np.isclose(ours, wanted, rtol=0, atol=units, equal_nan=True), rest)
