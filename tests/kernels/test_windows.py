"""Windows of several plays and windows that the algorithm counts, as interpreted kernels, against a CPU's plays."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from laid_out import near, plan_of

from jaxbandits import algorithms as a
from jaxbandits import catalogue
from jaxbandits import environments as e
from jaxbandits.catalogue import SmallSweep
from jaxbandits.kernels import engine
from jaxbandits.protocol import Span
from jaxbandits.spans import next_start, segment, windows_offered
from jaxbandits.sweeps.compilation.compiled import compiled
from jaxbandits.sweeps.plan import host_case, stacked

SEEDS = 32
# with the numbers that the first case of a run converts one by one
pytestmark = pytest.mark.compiles(30)


class Played:
    """The lanes of a case, span after span, by kernels and as a CPU plays windows of the same number of plays."""

    def __init__(self, example):
        self.laid_out = plan_of(example)
        self.group = self.laid_out.groups[0]
        host, marks = stacked([host_case(self.laid_out.cells[0])], self.laid_out.dtype)
        marked, treedef = jax.tree.flatten(marks)
        self.marks, self.device = tuple(marked), jax.devices()[0]
        self.run = compiled(self.group.parts, self.marks, treedef, 1, len(self.group.times))
        times = self.group.times.astype(np.int32)
        self.case, self.times = jax.device_put((host, times), self.device)
        self.seeds = np.arange(SEEDS, dtype=np.uint32)

    def chosen(self, span):
        """What windows of a span are a kernel of."""
        case, kind = host_case(self.laid_out.cells[0]), (span.slots, span.full, span.whole)
        choice = engine.choice(self.group.parts, case, len(self.group.times), kind)
        assert not choice.reason
        return choice.window

    def by_cpu(self, span, slots, lane, where):
        """The lanes after windows of `slots` plays."""
        kind = slots, span.full, span.whole
        return self.run("advance", self.device, self.case, self.seeds, lane, self.times, where, kind=kind)

    def spans(self, first=0):
        """Of every span the lanes after its first windows, then after the others: by a kernel, and by a CPU."""
        lane, start = self.run("begin", self.device, self.case, self.seeds), 0
        kernels = {}
        for span in self.group.schedule:
            if span.repeats:
                window = self.chosen(span)
                slots = engine.plays_of(window)
                split = 1 if span.full else -(-span.slots // slots)
                offered = windows_offered(span, len(self.group.times))
                if first:
                    lane = self.by_cpu(span, slots, lane, segment(span, start, 0, first * split, self.group.times))
                where = segment(span, start, first, offered - first, self.group.times)
                kept = jax.tree.map(np.array, lane)  # `advance` takes over the memory of its lanes
                if window not in kernels:
                    kernels[window] = jax.jit(partial(self.by_kernel, window))
                ours = kernels[window](kept, where)
                lane = self.by_cpu(span, slots, lane, where._replace(windows=where.windows * split))
                yield jax.tree.map(np.asarray, (ours, lane))
                start = next_start(span, start, int(self.group.times[-1]))
            if span.close:
                lane = self.run("close", self.device, self.case, self.seeds, lane)

    def by_kernel(self, window, lane, where):
        return engine.advance(
            window, self.marks, self.case, jnp.asarray(self.seeds), lane, self.times, where, interpret=True
        )


def same(ours, wanted, equal=np.testing.assert_array_equal):
    """Lanes are the same, but for rows of checkpoints that a lane did not reach: what is there is written over."""
    reached = np.arange(wanted.record.pulls_at.shape[2]) < wanted.next[..., None]

    def rows(lane):
        return lane._replace(record=lane.record._replace(pulls_at=lane.record.pulls_at * reached[..., None]))

    jax.tree.map(equal, rows(ours), rows(wanted))


def in_turn(slots, length, repeats, **hints):
    """A user's own algorithm: it goes round the arms, in batches of some plays."""

    def make(*, num_arms, horizon):
        algorithm, _ = catalogue.case("uniform")
        program = algorithm.program._replace(act=lambda params, state, draws, t, context: (t % num_arms, None, ()))
        return algorithm._replace(program=program, schedule=(Span(slots, repeats, length=length, **hints),), config={})

    return make


def test_full_windows_hold_several_checkpoints():
    """Windows of three plays in batches of seven, the last of them shorter, and checkpoints anywhere in them."""
    played = Played(SmallSweep(in_turn(3, 7, 14), catalogue.arms))
    [(ours, wanted)] = played.spans(first=4)
    jax.tree.map(np.testing.assert_array_equal, ours, wanted)
    assert (ours.plays == 96).all() and len(played.group.times) == 8
    np.testing.assert_array_equal(ours.record.pulls_at.sum(-1)[0, 0], played.group.times)


@pytest.mark.dealt(4)
def test_an_algorithm_with_full_windows():
    """Sums are rounded in another way, but the same experts are followed."""
    example = catalogue.ALGORITHMS["batched_exp4"]
    [(ours, wanted)] = Played(example._replace(algorithm=partial(example.algorithm, window=2))).spans()
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        assert near(x, y).all()


@pytest.mark.parametrize("name", ["adap_ucb", *dealt(["dp_se", "prm_ucb"], 4)])
def test_counted_windows(name):
    """Every lane ends its windows by itself, and lanes at rest are counted. Noise is rounded in another way in one."""
    [(ours, wanted)] = Played(catalogue.ALGORITHMS[name]).spans(first=2)
    rounded = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-5)
    same(ours, wanted, rounded if name == "prm_ucb" else np.testing.assert_array_equal)


def test_spans_that_are_closed():
    """Lanes wait for the end of a batch. Sums of rewards differ in the last bits."""
    two = partial(e.linear_arms, actions=np.eye(2), theta=np.array([0.5, 0.4]))
    reached = []
    for ours, wanted in Played(SmallSweep(a.bogunovic_elimination, two, horizon=300)).spans():
        same(ours, wanted, partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-5))
        reached.append(wanted.plays)
    assert len(reached) > 1 and (reached[0] < 300).any()
    assert (reached[-1] == 300).all()


@pytest.mark.parametrize("counted", [False, True])
def test_windows_that_must_stay_whole_are_not_cut(counted):
    laid_out = plan_of(SmallSweep(in_turn(9, 9, 11, full=not counted, whole=counted), catalogue.arms))
    parts, kind = laid_out.groups[0].parts, (9, not counted, counted)
    choice = engine.choice(parts, host_case(laid_out.cells[0]), 8, kind)
    assert choice.reason == f"windows of 9 plays, at most {engine.MOST_SLOTS}"
