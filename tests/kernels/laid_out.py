"""Programs of the catalogue as a sweep lays them out, played by kernels and by the scan, and how close the two are."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.catalogue import SmallSweep
from jaxbandits.checking.subject import Subject
from jaxbandits.kernels import by_cc, engine
from jaxbandits.protocol import Span
from jaxbandits.spans import next_start, segment, windows_offered
from jaxbandits.sweeps.compilation.compiled import compiled
from jaxbandits.sweeps.plan import Plan, host_case, stacked

needs_cc = pytest.mark.skipif(by_cc.compiler() is None, reason="there is no C compiler (cc)")
ULPS = 8  # where sums are rounded in another way: units in the last place of the largest number of a lane
SEEDS = 128


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


def records(lane: Any, reached: Any) -> list[Any]:
    """What is recorded of lanes at checkpoints that are reached: a lane writes over the others later."""
    high_and_low, dtype = lane.record.regret_at, lane.record.regret_at[0].dtype if lane.record.regret_at else None
    at = [
        *jax.tree.leaves(lane.record.pulls_at),
        *([sum(map(np.float64, high_and_low)).astype(dtype)] if dtype else []),
    ]
    rows = [x * reached.reshape(*reached.shape, *(1,) * (x.ndim - 3)) for x in at]
    return [lane.plays, np.minimum(lane.next, reached.shape[-1]), *jax.tree.leaves(lane.record.pulls), *rows]


class Both(NamedTuple):
    """Lanes [S, M, ...] after windows of a span."""

    ours: Any  # by a kernel
    wanted: Any  # by the scan over windows of as many plays
    actions: Any  # [S] whether a lane's record is the same: pulls and plays equal, regret near


class Played:
    """The lanes of a case, span after span."""

    def __init__(self, laid_out: Plan, cells: tuple[int, ...] = (0,), seeds: int = SEEDS) -> None:
        self.laid_out, self.group, self.cells = laid_out, laid_out.groups[0], cells
        host, marks = stacked([host_case(laid_out.cells[c]) for c in cells], laid_out.dtype)
        marked, treedef = jax.tree.flatten(marks)
        self.marks, self.device = tuple(marked), jax.devices()[0]
        self.run = compiled(self.group.parts, self.marks, treedef, len(cells), len(self.group.times))
        times = self.group.times.astype(np.int32)
        self.case, self.times = jax.device_put((host, times), self.device)
        self.seeds = np.arange(seeds, dtype=np.uint32)
        self.kernels: dict[Any, Any] = {}

    def choice(self, span: Span) -> engine.Choice:
        """What windows of a span run as."""
        case, kind = host_case(self.laid_out.cells[self.cells[0]]), (span.slots, span.full, span.whole)
        return engine.choice(self.group.parts, case, len(self.group.times), kind)

    def scanned(self, span: Span, slots: int, seeds: Any, lane: Any, where: Any) -> Any:
        """The lanes after windows of `slots` plays, as a CPU plays them."""
        kind = slots, span.full, span.whole
        return self.run("advance", self.device, self.case, seeds, lane, self.times, where, kind=kind)

    def by_kernel(self, choice: engine.Choice, seeds: Any, lane: Any, where: Any) -> Any:
        """The lanes by a kernel."""
        key = id(choice.window)
        if key not in self.kernels:
            self.kernels[key] = jax.jit(partial(self._advance, choice))
        return jax.tree.map(np.asarray, self.kernels[key](seeds, lane, where))

    def _advance(self, choice: engine.Choice, seeds: Any, lane: Any, where: Any) -> Any:
        return engine.advance(choice, self.marks, self.case, jnp.asarray(seeds), lane, self.times, where, "cc")

    def spans(self, first: int = 0) -> Iterator[Both]:
        """Of every span the lanes after its first windows, then after the others by both."""
        lane, start = self.run("begin", self.device, self.case, self.seeds), 0
        for span in self.group.schedule:
            if span.repeats:
                choice = self.choice(span)
                assert not choice.reason
                slots = choice.window.slots
                split = 1 if span.full else -(-span.slots // slots)
                offered = windows_offered(span, len(self.group.times))
                if first:
                    where = segment(span, start, 0, first * split, self.group.times)
                    lane = self.scanned(span, slots, self.seeds, lane, where)
                where = segment(span, start, first, offered - first, self.group.times)
                kept = jax.tree.map(np.array, lane)  # `advance` takes over the memory of its lanes
                ours = self.by_kernel(choice, self.seeds, kept, where)
                turned = self.by_kernel(choice, self.seeds[::-1], jax.tree.map(lambda x: x[::-1], kept), where)
                jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[::-1], b, "another neighbour"), turned, ours)
                lane = self.scanned(span, slots, self.seeds, lane, where._replace(windows=where.windows * split))
                wanted = jax.tree.map(np.asarray, lane)
                reached = np.arange(len(self.group.times)) < wanted.next[..., None]
                pairs = zip(records(ours, reached), records(wanted, reached), strict=True)
                yield Both(ours, wanted, np.all([near(a, b) for a, b in pairs], 0))
                start = next_start(span, start, int(self.group.times[-1]))
            if span.close:
                lane = self.run("close", self.device, self.case, self.seeds, lane)
