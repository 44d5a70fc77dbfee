"""How a sweep is cut: shards, intervals of seeds, sizes of calls by hand, few large calls for an accelerator."""

import contextlib
import io
import itertools
import sys
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from tqdm import tqdm

import jaxbandits as jb
from jaxbandits.kernels.source import BLOCK
from jaxbandits.protocol import Span
from jaxbandits.sweeps import estimate, execution
from jaxbandits.sweeps.arguments import checkpoint_times, jsonable
from jaxbandits.sweeps.compilation.compiled import LaneShape
from jaxbandits.sweeps.engines import calls as calls_module
from jaxbandits.sweeps.engines import local, one_call
from jaxbandits.sweeps.engines.local import this_machine
from jaxbandits.sweeps.plan import Group, cast, plan
from jaxbandits.sweeps.sweep import parse_memory
from jaxbandits.validation import boolean, integer, scalar_of


@pytest.mark.parametrize(("files", "quota"), [
    ({}, np.inf), ({"cpu.max": "max 100000"}, np.inf), ({"cpu.max": "200000 100000"}, 2),
    ({"cpu.max": "250000 100000"}, 3), ({"cpu.max": "50000 100000"}, 1),
    ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, np.inf),
    ({"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "50000"}, 3),
    # a group within groups: the least of theirs
    ({"own": "0::/job/step\n", "job/cpu.max": "100000 100000", "job/step/cpu.max": "max 100000"}, 1),
    ({"own": "0::/job/step\n", "job/cpu.max": "400000 100000", "job/step/cpu.max": "200000 100000"}, 2),
    ({"own": "4:memory:/a\n3:cpu,cpuacct:/b\n", "cpu/b/cpu.cfs_quota_us": "500000", "cpu/b/cpu.cfs_period_us": "100000",
      "cpu/a/cpu.cfs_quota_us": "100000", "cpu/a/cpu.cfs_period_us": "100000"}, 5),
])  # fmt: skip
def test_cores_are_those_of_the_quota(monkeypatch, files, quota):
    there = {f"/sys/fs/cgroup/{name}": text for name, text in files.items()}
    there["/proc/self/cgroup"] = files.get("own", "0::/\n")

    def read(path):
        if str(path) not in there:
            raise FileNotFoundError
        return there[str(path)]

    monkeypatch.setattr(local.Path, "read_text", read)
    monkeypatch.setattr(local.os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    monkeypatch.setattr(local, "_cores", None)
    assert local.quota_of_cores() == quota and jb.cores() == min(quota, 64)
    assert jb.cores(np.int64(7)) == 7 == jb.cores()  # what is asked for counts


class Broken:
    """A stream that takes a few words, and then nothing."""

    def __init__(self, error, words=0):
        self.error, self.words, self.text = error, words, ""

    def write(self, text):
        self.words -= 1
        if self.words < 0:
            raise self.error
        self.text += text

    def flush(self):
        self.write("")


def test_no_word_about_a_run_ends_it(monkeypatch):
    closed = io.StringIO()
    closed.close()
    alone = SimpleNamespace(write=lambda text: None)
    errors = BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device"), RuntimeError("window is gone")
    for stream in (closed, alone, *map(Broken, errors), Broken(errors[0], 4)):
        monkeypatch.setattr(sys, "stderr", stream)
        estimate.print_progress("words")
        with estimate.progress_bar(["a line"], total=10, mininterval=0) as bar:
            bar.update(3)
            bar.set_description_str("more words")
    assert stream.text.startswith("words\n")  # as long as it took them
    # a user's own words stand beside the bar, and not in it
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with estimate.progress_bar([], total=10, mininterval=0, desc="bar"):
        tqdm.write("own words", file=stream)
    assert stream.getvalue().split("own words")[0].endswith("\r")  # the bar was cleared
    # a bar that an environment variable turned off
    monkeypatch.setattr(estimate, "progress_bar", lambda lines, **given: tqdm(**given, disable=True))
    meter = estimate.Meter(
        None, SimpleNamespace(calls=[], note_plays=print), calls_module.Machine([], 1, "cpu", 1 << 30), []
    )
    meter.compiling(0, 2)
    meter.compiles(5)


def test_a_warning_that_fails_does_not_end_what_runs(capsys, monkeypatch):
    with pytest.warns(RuntimeWarning, match="on_chunk fails") as caught:
        execution.warn_meanwhile("on_chunk fails")
    assert caught[0].filename != execution.__file__
    for fail in (RuntimeWarning("as an error"), ValueError("I/O operation on closed file")):
        with monkeypatch.context() as patch:
            patch.setattr(execution.warnings, "warn", lambda *of, fail=fail, **more: (_ for _ in ()).throw(fail))
            execution.warn_meanwhile("on_chunk fails")
    assert capsys.readouterr().err == 2 * "on_chunk fails\n"


def test_numbers_that_come_in_are_what_they_mean():
    with np.errstate(all="raise"):
        assert cast(1e-60, "float32") == 0
    assert integer("horizon", np.float32(1000), 1) == 1000
    assert [scalar_of("epsilon", kind(0.1)) for kind in (np.float16, np.float32, np.float64)] == [0.1] * 3
    half, fifth = Fraction(1, 2), Decimal("0.2")
    assert jsonable({"means": [half, fifth, Fraction(3), True, 7]}) == {"means": [0.5, 0.2, 3.0, True, 7]}
    assert jsonable([Decimal("Infinity"), np.inf]) == ["inf", "inf"]
    assert jsonable({"b", "a"}) == ["a", "b"] and jsonable(MappingProxyType({"a": half})) == {"a": 0.5}
    laid_out = plan("ucb1", ARMS, horizon=[50, 100], seeds=2, checkpoints=(t for t in (10, 20)))
    assert {h: list(times) for h, times in laid_out.times.items()} == {50: [10, 20, 50], 100: [10, 20, 100]}
    assert laid_out.given["checkpoints"] == [10, 20]


@pytest.mark.parametrize(("files", "room"), [
    ({"memory.max": "max"}, 8 << 30), ({"memory.max": "5000", "memory.current": "4000"}, 1000),
    ({"memory.max": "5000", "memory.current": "4000", "memory.stat": "anon 1\ninactive_file 9\n"}, 1009),
    ({"memory.max": "50", "memory.current": "50", "memory.stat": "active_file 7\ninactive_file 30\n"}, 30),
    ({"memory.max": "50", "memory.current": "60", "memory.stat": "inactive_file 3\n"}, 0),
])  # fmt: skip
def test_files_that_were_read_do_not_fill_a_container(monkeypatch, files, room):
    there = {f"/sys/fs/cgroup/{name}": text for name, text in files.items()}
    there["/proc/meminfo"] = f"MemTotal: 99 kB\nMemAvailable: {8 << 20} kB\n"

    def read(path):
        if str(path) not in there:
            raise FileNotFoundError
        return there[str(path)]

    monkeypatch.setattr(execution.Path, "read_text", read)
    assert execution.free_memory() == room


def test_counts_may_be_numbers_of_numpy():
    assert this_machine(np.int64(1), None).devices == this_machine(1, None).devices
    assert parse_memory(np.uint64(2 * 10**9)) == parse_memory(np.float32(2e9)) == 2 * 10**9
    with pytest.raises(ValueError, match="memory = True"):
        parse_memory(np.True_)
    assert boolean("primed", np.True_) is True and boolean("primed", np.False_) is False
    assert checkpoint_times(20, np.array([5, 10], np.uint8)).tolist() == [5, 10, 20]
    with pytest.raises(ValueError, match="checkpoints must increase"):
        checkpoint_times(20, np.array([10, 5], np.uint8))


def test_a_stream_that_is_no_terminal_has_a_bar_now_and_then(monkeypatch):
    lines = []
    for stream, interval in ((SimpleNamespace(write=lines.append, flush=lambda: None), 30), (None, 30)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(estimate, "progress_bar", lambda lines, **settings: settings)
        remaining = SimpleNamespace(calls=[])
        assert estimate.Meter(None, remaining, None, []).bar["mininterval"] == interval


ARMS = partial(jb.environments.bernoulli_arms, means=np.linspace(0.1, 0.9, 10))
LOSSES = partial(jb.environments.bernoulli_losses, means=np.linspace(0.1, 0.9, 10))
COMPANIES = calls_module._companies
MEMORY = int(141e9 * 0.75) // 4  # a quarter of what JAX takes of an H200


def calls(algorithm, seeds, grid, memory=MEMORY, platform="gpu", workers=1, world=ARMS):
    laid_out = calls_module.add_lane_shapes(plan({"x": algorithm}, world, horizon=10_000, seeds=seeds, grid=grid))
    machine = calls_module.Machine([], workers, platform, memory)
    found = calls_module.calls_of(laid_out, calls_module.seeds_of_shard(laid_out), machine)
    assert sum(task.seeds * len(task.cells) for task in found) == len(laid_out.cells) * len(laid_out.seeds)
    assert all(calls_module.bytes_of_call(task, laid_out) <= memory for task in found)
    return found


@pytest.mark.parametrize(("algorithm", "key", "seeds", "points"), [
    (jb.algorithms.ucb1, "bonus_scale", 100, 1000),
    (jb.algorithms.ucb1, "bonus_scale", 1000, 100),
    (partial(jb.algorithms.prm_elimination, moment="raw"), "epsilon", 1000, 100),
])  # fmt: skip
def test_a_sweep_that_fits_is_one_call(algorithm, key, seeds, points):
    grid = {key: np.linspace(0.1, 0.9, points)}
    [call] = calls(algorithm, seeds, grid)
    assert len(call.cells) == points and seeds <= call.lanes < seeds + BLOCK
    assert len(calls(algorithm, seeds, grid, platform="cpu")) > 20


SEEDS = [1_000, 1_025, 1_100, 2_200, 5_000, 20_000, 100_000, 300_000, 2**20, 2**20 + 1, range(1_000, 2_100)]


@pytest.mark.parametrize("seeds", SEEDS)
def test_hardly_more_lanes_are_played_than_there_are_seeds(seeds):
    asked = len(seeds) if isinstance(seeds, range) else seeds
    found = calls(jb.algorithms.ucb1, seeds, None, memory=10**12)
    assert len(found) == -(-asked // calls_module.ACCELERATOR_LANES)
    played = sum(call.lanes for call in found)
    assert played - asked < BLOCK * len(found) and played <= 1.06 * asked + (BLOCK if asked < 2_200 else 0)
    assert len({call.lanes for call in found}) == 1  # one program
    # where memory does not hold them all, calls are of one size still
    few = calls(jb.algorithms.ucb1, seeds, None, memory=10**12 // 10**5)
    assert len(few) > 1 and sum(call.lanes for call in few) - asked < BLOCK * len(few)


@pytest.mark.parametrize("seeds", [16, 40, 100])
def test_few_seeds_are_no_whole_block(seeds):
    (call,) = calls(jb.algorithms.ucb1, seeds, None)
    assert seeds <= call.lanes < seeds + calls_module.LEAST_LANES


EPSILONS = {"epsilon": np.geomspace(0.01, 1.0, 64)}


def test_batches_of_all_lengths_are_one_call_but_on_a_cpu():
    (call,) = calls(jb.algorithms.private_batched, 1_000, EPSILONS, world=LOSSES)
    assert len(call.cells) == 64 and call.lanes == 1_024
    # There a branch that points share is dearer as a selection, and its last bits are others.
    found = calls(jb.algorithms.private_batched, 1_000, EPSILONS, platform="cpu", world=LOSSES)
    lengths = [jb.theory.window(epsilon) for epsilon in EPSILONS["epsilon"]]
    assert len(found) >= len(set(lengths)) > 30
    for call in found:
        assert len({lengths[cell] for cell in call.cells}) == 1


def test_a_call_plays_batches_of_several_lengths(monkeypatch):
    """The actions of each point are those of a call of its own, up to a last bit here and there."""
    few = {"horizon": 200, "seeds": 32, "progress": False, "checkpoints": [50, 200]}
    apart = jb.sweep(jb.algorithms.private_batched, LOSSES, grid={"epsilon": [0.03, 0.3, 1.0]}, **few)
    monkeypatch.setattr(calls_module, "_companies", lambda plan, on_cpu: COMPANIES(plan, False))
    together = jb.sweep(jb.algorithms.private_batched, LOSSES, grid={"epsilon": [0.03, 0.3, 1.0]}, **few)
    assert np.mean(np.any(apart.pulls.values != together.pulls.values, axis=-1)) <= 0.02
    assert np.all(together.pulls.sum("arm") == 200)


def test_calls_are_equal_and_fit_the_memory():
    grid = {"bonus_scale": np.linspace(0.1, 0.9, 100)}
    few = calls(jb.algorithms.ucb1, 1000, grid, memory=MEMORY // 100)
    assert len(few) > 1
    points = [len(call.cells) for call in few]
    assert max(points) - min(points) < len(few)
    # the next larger call would not have fitted
    assert len(few) == -(-100 // max(points))


def test_a_quarter_of_a_million_lanes_are_enough_for_a_call_and_every_device_gets_some():
    many = calls(jb.algorithms.ucb1, 3_000_000, None, memory=10**15)
    assert len(many) == 12 and {call.lanes for call in many} == {250_112}
    assert len(calls(jb.algorithms.ucb1, 100, {"bonus_scale": np.linspace(0.1, 0.9, 100)}, workers=4)) == 8


def test_an_accelerator_plays_one_call_while_another_is_copied(monkeypatch):
    """Two calls share its memory; where that is not enough for two, one is made at a time."""
    grid, memory = {"bonus_scale": np.linspace(0.1, 0.9, 100)}, MEMORY // 1000
    laid_out = calls_module.add_lane_shapes(plan("ucb1", ARMS, horizon=10_000, seeds=16, grid=grid))
    wanted = calls_module.seeds_of_shard(laid_out)
    monkeypatch.setattr(local.jax, "local_devices", lambda: [SimpleNamespace(platform="gpu")])
    machine = this_machine(None, memory)
    assert (machine.workers, machine.at_once, machine.memory) == (1, 2, memory // 2)
    assert calls_module.fitting(laid_out, wanted, machine)[0] == machine
    least = calls_module.call_bytes(laid_out.groups[0].shape, 16, 1, len(laid_out.groups[0].times))
    small = this_machine(None, least)
    assert calls_module.fitting(laid_out, wanted, small)[0] == small._replace(at_once=1, memory=2 * small.memory)


# ---------------------------------------------------------------- sizes by hand

# 100 bytes of state, of which 40 are only written into, 1,000 of record, 10 of a context, 3 plays a window, 5
# checkpoints: a seed of p points takes p (2 * 100 + 2 * 1,000 + 8 * 5) + 2 * 10 = 2,240 p + 20 bytes
SHAPE = LaneShape(100, 40, 1_000, 10, False, None, 3, 0, ())
SPAN = Span(1, 1)
CPU, GPU = "cpu", "gpu"


def shape_of(
    cells=20, longest=10**6, memory=10**9, platform=CPU, workers=1, shared=True, tally=False, others=(), **changes
):
    """Seeds and points of a call of a group like `SHAPE`."""
    hints = SimpleNamespace(hints=SimpleNamespace(tally=tally))
    span = SPAN._replace(full=shared, repeats=2 if shared else 0)
    group = Group(SimpleNamespace(program=hints), (span, *others), np.arange(5), [], None, SHAPE._replace(**changes))
    laid_out = SimpleNamespace(cells=[SimpleNamespace(label="x")])
    machine = calls_module.Machine([], workers, platform, memory)
    return calls_module.call_shape(group, [0] * cells, laid_out, longest, machine)


def test_bytes_of_a_call():
    assert calls_module.call_bytes(SHAPE, 3, 2, 5) == 3 * (2 * 2_240 + 20) == 13_500


@pytest.mark.parametrize("seeded", [False, True])
def test_bytes_of_a_result(seeded):
    """Of 3 cells and 7 seeds: regret at 5 checkpoints, a diagnostic, 3 counts of pulls; best rewards of each seed."""
    parts = SimpleNamespace(world=SimpleNamespace(seeded=seeded))
    group = Group(parts, (SPAN,), np.arange(5), [0, 1, 2], None, SHAPE._replace(diagnostics=("x",), arms=3))
    laid_out = SimpleNamespace(times={9: np.arange(5)}, cells=[None] * 3, groups=[group], seeds=range(7),
                               places={k: k for k in range(3)})  # fmt: skip
    assert calls_module.total_bytes(laid_out) == 7 * (3 * (8 * (5 + 1) + 4 * 3) + 8 * 5 * seeded)


@pytest.mark.parametrize(("given", "call"), [
    # all 16 points, and seeds until a call has 2,048 lanes
    ({}, (128, 16)), ({"cells": 15}, (128, 15)), ({"cells": 3}, (512, 3)), ({"cells": 1}, (2_048, 1)),
    # fewer points where 16 lanes of all do not fit: 16 (16 * 2,240 + 20) = 573,760 bytes, of 8 points 287,040
    ({"memory": 573_760}, (16, 16)), ({"memory": 573_759}, (16, 8)), ({"memory": 574_079}, (16, 16)),
    ({"memory": 287_039}, (16, 4)), ({"memory": 179_519, "cells": 5}, (16, 3)), ({"memory": 36_160}, (16, 1)),
    # what a lane reads and writes of 2 s seeds is to fit 2^19 bytes: 960 + 10 a seed for one point of 1,000 bytes
    ({"state": 1_000, "cells": 1}, (512, 1)), ({"state": 1_054, "cells": 1}, (512, 1)),
    ({"state": 1_055, "cells": 1}, (256, 1)), ({"state": 1_055, "kept": 41, "cells": 1}, (512, 1)),
    # no more seeds than are wanted, to the next power of two
    ({"cells": 1, "longest": 100}, (128, 1)), ({"cells": 1, "longest": 128}, (128, 1)),
    ({"cells": 1, "longest": 129}, (256, 1)), ({"cells": 1, "longest": 3}, (16, 1)),
    # where points share no draws a call has one, and its seeds cover the longest stretch evenly
    ({"shared": False, "longest": 10**4}, (2_000, 1)), ({"shared": False, "longest": 100}, (112, 1)),
    # one span whose plays the schedule counts is enough
    ({"cells": 3, "others": [SPAN._replace(full=False)]}, (512, 3)),
    # windows of s plays: 2^15 / s lanes, unless plays are added up at once
    ({"shared": False, "slots": 64, "longest": 5_120}, (512, 1)),
    ({"shared": False, "slots": 64, "longest": 5_120, "tally": True}, (1_712, 1)),
    # an accelerator: all seeds in whole blocks of 128, then points, in calls of equal size
    ({"platform": GPU, "longest": 1_000}, (1_024, 20)), ({"platform": GPU, "longest": 100}, (112, 20)),
    ({"platform": GPU, "longest": 1_000, "memory": 1_024 * (7 * 2_240 + 20)}, (1_024, 7)),
    ({"platform": GPU, "longest": 1_000, "memory": 1_024 * (7 * 2_240 + 20) - 1}, (1_024, 5)),
    ({"platform": GPU, "longest": 1_000, "memory": 512 * 2_260}, (512, 1)),
    ({"platform": GPU, "longest": 1_000, "memory": 512 * 2_260 - 1}, (256, 2)),
    ({"platform": GPU, "longest": 200, "memory": 64 * 2_260}, (64, 1)),
    ({"platform": GPU, "longest": 2**21, "memory": 10**12, "cells": 3}, (2**18, 1)),
    ({"platform": GPU, "longest": 2**16, "memory": 10**12}, (2**16, 4)),
    # two calls for every device
    ({"platform": GPU, "longest": 1_000, "workers": 3}, (1_024, 4)),
    ({"platform": GPU, "longest": 1_000, "workers": 3, "cells": 2}, (1_024, 1)),
    ({"platform": GPU, "longest": 2_000, "workers": 3, "memory": 1_024 * (20 * 2_240 + 20)}, (2_048, 4)),
], ids=str)  # fmt: skip
def test_sizes_of_a_call_by_hand(given, call):
    assert shape_of(**given) == call


def test_a_memory_that_holds_no_call_is_refused():
    what = "memory = 36159 bytes cannot hold 16 lanes of 'x', which need 36160: raise memory or use fewer checkpoints"
    with pytest.raises(ValueError, match=f"^{what}$"):
        shape_of(memory=36_159)


# ---------------------------------------------------------------- shards and intervals


def planned(cells, seeds):
    """A plan of one algorithm a cell: (group, horizon) of each."""
    plan, groups = SimpleNamespace(seeds=seeds, cells=cells), {}
    for c, (name, horizon) in enumerate(cells):
        groups.setdefault(name, SimpleNamespace(times=[horizon], cells=[])).cells.append(c)
    plan.groups = list(groups.values())
    return plan


ALIKE, LONG = [("a", 10)] * 6, [("a", 10), ("b", 10), ("c", 10), ("d", 30)]


def test_shards_are_a_partition_dealt_by_plays():
    for cells, seeds, n, largest in (  # the plays of the largest shard in those of an even one
        (ALIKE[:1], range(600), 2, 1.0),
        (ALIKE, range(100), 2, 1.0),
        (ALIKE, range(5, 901), 3, 1.01),
        (ALIKE, range(1000), 50, 1.2),
        (ALIKE, range(20), 4, 4 / 3),
        (LONG, range(8), 2, 1.0),
        (LONG, range(640), 20, 1.0),
        (ALIKE[:1], range(3), 5, 5.0),
    ):
        plan = planned(cells, seeds)
        owned = [calls_module.seeds_of_shard(plan, (i, n)) for i in range(n)]
        spans = [[(c, *span) for c, of_cell in enumerate(mine) for span in of_cell] for mine in owned]
        lanes = [(c, s) for mine in spans for c, low, high in mine for s in range(low, high)]
        assert sorted(lanes) == [(c, s) for c in range(len(cells)) for s in seeds]
        plays = [sum((high - low) * cells[c][1] for c, low, high in mine) for mine in spans]
        assert max(plays) <= largest * sum(plays) / n * (1 + 1e-9)
        # seeds are cut evenly: shards of the same cells differ by one at most
        lengths = {(*(c for c, _, _ in mine),): [] for mine in spans}
        for mine in spans:
            lengths[(*(c for c, _, _ in mine),)] += [high - low for _, low, high in mine]
        assert all(max(each, default=0) - min(each, default=0) <= 1 for cells, each in lengths.items() if cells)


def test_what_is_computed_elsewhere_is_dealt_to_nobody():
    owned = [calls_module.seeds_of_shard(planned(ALIKE, range(8)), (i, 2), {0, 3}) for i in range(2)]
    assert [[c for c, spans in enumerate(mine) if spans] for mine in owned] == [[0], [3]]


def test_intervals():
    assert calls_module.without([(0, 10)], [(2, 4), (3, 5), (9, 20)]) == [(0, 2), (5, 9)]
    assert calls_module.without([(0, 10), (20, 30)], [(5, 25)]) == [(0, 5), (25, 30)]
    assert calls_module.without([(0, 4)], []) == [(0, 4)] and calls_module.without([(0, 4)], [(0, 4)]) == []
    assert calls_module.blocks(5, 20, 8) == [(5, 8), (8, 16), (16, 20)] and calls_module.blocks(8, 16, 8) == [(8, 16)]
    rng, want = np.random.default_rng(0), [(0, 10), (12, 25)]
    seeds = lambda spans: {s for low, high in spans for s in range(low, high)}
    for _ in range(200):
        done = [tuple(sorted(rng.integers(0, 30, 2).tolist())) for _ in range(4)]
        assert seeds(calls_module.without(want, done)) == seeds(want) - seeds(done)
        first, stop, size = (int(x) for x in (rng.integers(0, 20), rng.integers(21, 60), rng.integers(1, 9)))
        cut = calls_module.blocks(first, stop, size)
        assert [s for low, high in cut for s in range(low, high)] == [*range(first, stop)]
        assert [high for _, high in cut[:-1]] == [s for s in range(first + 1, stop) if s % size == 0]


# ---------------------------------------------------------------- the segments of a span

ENDS, WORKS = 5, [(2, 0.0), (2, 1.0), (2, 2.0), (3, 2.0), (5, 3.0), (5, 4.0)]  # plays and states, window by window


def span_of(windows, monkeypatch, stop_at=99):
    """Of a span in segments of one window: those that were played, where it was offered to be kept, what was told.

    A look at the clock takes a second.
    """
    played, kept, told = [], [], []
    player = object.__new__(one_call.Player)
    player.group, player.times = SimpleNamespace(schedule=[Span(1, len(windows), full=False, whole=True)]), [ENDS]
    player.horizon, player.told, player.since, player.first_segment = ENDS, 0, None, 0
    player.call, player.report = SimpleNamespace(seeds=2, cells=[0]), lambda new: told.append((new.plays, new.seconds))
    player.stopped = lambda: len(played) == stop_at
    player.keep = lambda number, window, leaves, last=False: kept.append((number, window, last))

    def advance(lane, number, start, first, count):
        played.append(first)
        plays, state = windows[first]
        return SimpleNamespace(
            plays=np.full((2, 1), plays, np.int32), algorithm=(np.float32(state), np.array([np.nan]))
        )

    player.advance = advance
    monkeypatch.setattr(one_call, "time", SimpleNamespace(perf_counter=itertools.count(1.0).__next__))
    monkeypatch.setattr(one_call, "segments", lambda windows, begin, done=0: ((k, 1) for k in range(done, windows)))
    with pytest.raises(one_call.Interrupted) if stop_at < len(windows) else contextlib.nullcontext():
        assert player._play_span(0, SimpleNamespace(plays=0, algorithm=()), 0, 0).plays.max() == windows[played[-1]][0]
    return played, kept, told


def test_a_span_is_over_once_a_segment_neither_plays_nor_changes_the_state(monkeypatch):
    played, _, told = span_of(WORKS, monkeypatch)
    assert played == [0, 1, 2, 3, 4]  # works between two plays, and reaches the horizon
    assert told == [(4, 0.0), (0, 1.0), (0, 1.0), (2, 1.0), (4, 1.0)]  # the first segment may be compiled
    rests = [(2, 0.0), (2, 1.0), (2, 1.0), (2, 1.0)]
    assert span_of(rests, monkeypatch)[:2] == ([0, 1, 2], [(0, 1, False), (0, 2, False)])
    assert span_of([(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0)], monkeypatch)[0] == [0, 1, 2, 3]
    assert span_of([(2, 0.0), (2, 1e-9), (2, 2e-9), (5, 3e-9)], monkeypatch)[0] == [0, 1, 2, 3]  # work in small steps


def test_a_span_that_is_stopped_is_kept_where_it_stands(monkeypatch):
    assert span_of(WORKS, monkeypatch, stop_at=2)[:2] == ([0, 1], [(0, 1, False), (0, 2, False), (0, 2, True)])


def test_a_call_is_saved_each_minute_or_seldomer_and_at_its_last_chance(monkeypatch):
    """A save takes 6 s, a twentieth of two minutes."""
    now, kept = [100.0], []

    def keep_begun(begun, leaves):
        kept.append((now[0], begun.span, begun.window))
        now[0] += 6.0

    monkeypatch.setattr(one_call, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    keep = one_call.Keeper(SimpleNamespace(keep_begun=keep_begun), calls_module.Call(0, (0,), 0, 16, 10, ("a",)))
    for at, last in (
        (102.9, True), (159.9, False), (160.0, False), (285.9, False), (286.0, False), (294.9, True), (295.0, True)
    ):  # fmt: skip
        now[0] = at
        keep(1, 7, list, last=last)
    assert kept == [(160.0, 1, 7), (286.0, 1, 7), (295.0, 1, 7)]


@pytest.mark.parametrize(("workers", "left", "memory"), [(2, 1, 20), (3, 1, 30), (5, 2, 25), (4, 2, 20)])
def test_fewer_workers_share_all_of_the_memory(monkeypatch, workers, left, memory):
    """Each has 10 bytes, and a call needs as many as half of them, rounded down, have."""

    def needs(plan, wanted, machine):
        if machine.memory < memory:
            raise ValueError
        return []

    monkeypatch.setattr(calls_module, "calls_of", needs)
    machine = calls_module.Machine([None] * workers, workers, GPU, 10)
    assert calls_module.fitting(None, [], machine) == (machine._replace(workers=left, memory=memory), [])
    with pytest.raises(ValueError):
        calls_module.fitting(None, [], machine._replace(devices=[]))
