"""Programs of the catalogue as a sweep lays them out."""

from collections.abc import Iterator
from typing import Any

from jaxbandits.catalogue import Example
from jaxbandits.checking.subject import Subject
from jaxbandits.kernels import engine
from jaxbandits.sweeps.plan import Plan, host_case, stacked


def plan_of(example: Example) -> Plan:
    """The sweep of one case."""
    return Subject(
        example.algorithm, example.environment, example.reward_adversary, example.message_adversary,
        horizon=example.horizon,
    ).plan  # fmt: skip


def choices(example: Example) -> Iterator[tuple[tuple[int, bool, bool], engine.Choice]]:
    """What every kind of window of a case runs as on a GPU."""
    laid_out = plan_of(example)
    group = laid_out.groups[0]
    case: Any = stacked([host_case(laid_out.cells[0])], laid_out.dtype)[0]
    for kind in dict.fromkeys((span.slots, span.full, span.whole) for span in group.schedule if span.repeats):
        yield kind, engine.choice(group.parts, case, len(group.times), kind)
