"""Programs of the catalogue as a sweep lays them out, played by kernels and by the scan, and how close the two are."""

import shutil
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from jaxbandits import catalogue
from jaxbandits.catalogue import SmallSweep
from jaxbandits.checking.subject import Subject
from jaxbandits.kernels import plays
from jaxbandits.kernels.arrays import LARGEST
from jaxbandits.kernels.over_lanes import by_kernel, write_lane
from jaxbandits.kernels.schedule import Fitted, write_kernel
from jaxbandits.protocol import Span
from jaxbandits.spans import next_start, segment, windows_offered
from jaxbandits.sweeps.compilation.compiled import functions_of_group
from jaxbandits.sweeps.plan import Plan, host_case, stack_cases

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")
ULPS = 8  # where sums are rounded in another way: units in the last place of the largest number of a lane
SEEDS = 128


def plan_of(example: SmallSweep) -> Plan:
    """The sweep of one case."""
    return Subject(*example[:4], horizon=example.horizon).plan


@cache
def _going_round(num_arms: int, ahead: Any) -> Any:
    def act(params: Any, state: Any, draws: Any, t: Any, context: Any) -> Any:
        return (t + (0 if ahead is None else ahead(draws, t))) % num_arms, None, ()

    return catalogue.case("uniform")[0].program._replace(act=act)


def in_turn(slots: int = 1, repeats: int | None = None, ahead: Any = None, **span: Any) -> Any:
    """A user's own algorithm: it goes round the arms, in windows of some plays. ahead: arms that it jumps over."""

    def make(*, num_arms: int, horizon: int) -> Any:
        schedule = (Span(slots, repeats or -(-horizon // slots), **span),)
        algorithm, _ = catalogue.case("uniform")
        return algorithm._replace(program=_going_round(num_arms, ahead), schedule=schedule, config={})

    return make


def kernel_of(function: Any, *args: Any, largest: int = LARGEST, **options: Any) -> Fitted:
    """The kernel of a function of one lane, whose arrays are held apart up to a size."""
    return write_kernel("lanes", write_lane, jax.make_jaxpr(function)(*args), largest, **options)


def both(largest: int, *cases: Any) -> list[Any]:
    """What every (function, arrays [LANES, ...]) gives, as one kernel and under vmap."""
    given = [x for _, *arrays in cases for x in arrays]

    def every(*arrays: Any) -> list[Any]:
        left = iter(arrays)
        return [function(*(next(left) for _ in own)) for function, *own in cases]

    one = kernel_of(every, *(x[0] for x in given), largest=largest)
    last = [np.moveaxis(x, 0, -1) for x in given]
    ours = jax.jit(lambda *arrays: by_kernel(one, arrays, "cc"))(*last)
    wanted = jax.jit(jax.vmap(every))(*given)
    ours = jax.tree.unflatten(jax.tree.structure(wanted), [np.moveaxis(np.asarray(x), -1, 0) for x in ours])
    return list(zip(ours, wanted, strict=True))


def near(ours: Any, wanted: Any, ulps: int = ULPS) -> Any:
    """In which lanes [S] arrays [S, M, ...] are the same, but for a few units in the last place."""
    rest = tuple(range(1, wanted.ndim))
    if wanted.dtype.kind != "f":
        return np.all(ours == wanted, rest)
    # at least 1: what a sum leaves behind is compared as a part of it
    largest = np.max(np.abs(wanted), rest, keepdims=True, initial=1, where=np.isfinite(wanted))
    units = ulps * np.spacing(np.broadcast_to(largest, wanted.shape))
    return np.all(np.isclose(ours, wanted, rtol=0, atol=units, equal_nan=True), rest)


def assert_near(ours: Any, wanted: Any, ulps: int = ULPS) -> None:
    """All leaves [L, ...] are the same, but for a few units in the last place."""
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        assert near(a, b, ulps).all()


def records(lane: Any, reached: Any) -> list[Any]:
    """What is recorded of lanes at checkpoints that are reached: a lane writes over the others later."""
    at, high_and_low = jax.tree.leaves(lane.record.pulls_at), lane.record.regret_at
    if high_and_low:
        at.append(sum(map(np.float64, high_and_low)).astype(high_and_low[0].dtype))
    rows = [x * reached.reshape(*reached.shape, *(1,) * (x.ndim - reached.ndim)) for x in at]
    return [lane.plays, np.minimum(lane.next, reached.shape[-1]), *jax.tree.leaves(lane.record.pulls), *rows]


class Both(NamedTuple):
    """Lanes [S, M, ...] after windows of a span."""

    ours: Any  # by a kernel
    wanted: Any  # by the scan over windows of as many plays
    actions: Any  # [S] whether a lane's record is the same: pulls and plays equal, regret near


class Played:
    """The lanes of a case, span after span."""

    def __init__(self, laid_out: Plan, cells: tuple[int, ...] = (0,), seeds: int = SEEDS) -> None:
        self.group = laid_out.groups[0]
        host, marks = stack_cases([host_case(laid_out.cells[c]) for c in cells], laid_out.dtype)
        marked, treedef = jax.tree.flatten(marks)
        self.marks, self.device = tuple(marked), jax.devices()[0]
        self.run = functions_of_group(self.group.parts, self.marks, treedef, len(cells), len(self.group.times))
        times = self.group.times.astype(np.int32)
        self.case, self.times = jax.device_put((host, times), self.device)
        self.seeds = np.arange(seeds, dtype=np.uint32)
        self.kernels: dict[Any, Any] = {}
        # what every kind of window runs as on a GPU
        spans = {(span.slots, span.full, span.whole): span for span in self.group.schedule if span.repeats}
        self.choices = {kind: self.run.fit_kernel(kind, self.case) for kind in spans}

    def scanned(self, span: Span, slots: int, seeds: Any, lane: Any, where: Any) -> Any:
        """The lanes after windows of `slots` plays, as a CPU plays them."""
        kind = slots, span.full, span.whole
        return self.run("advance", self.device, self.case, seeds, lane, self.times, where, kind=kind)

    def by_kernel(self, choice: Fitted, seeds: Any, lane: Any, where: Any) -> Any:
        """The lanes by a kernel."""
        key = id(choice.traced)
        if key not in self.kernels:
            made = partial(plays.advance_by_kernel, choice, self.marks, self.case, times=self.times, form="cc")
            self.kernels[key] = jax.jit(lambda seeds, lane, where: made(seeds, lane, segment=where))
        return jax.tree.map(np.asarray, self.kernels[key](seeds, lane, where))

    def spans(self, first: int = 0) -> Iterator[Both]:
        """Of every span the lanes after its first windows, then after the others by both."""
        lane, start = self.run("begin", self.device, self.case, self.seeds), 0
        for span in self.group.schedule:
            if span.repeats:
                choice = self.choices[span.slots, span.full, span.whole]
                assert not choice.reason
                slots = choice.traced.slots
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
