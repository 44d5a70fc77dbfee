"""Results on their way from a device to the host: a CPU stands for a card whose memory is its own."""

import threading
from functools import partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from xarray.testing import assert_identical

import jaxbandits as jb
from jaxbandits.sweeps import dataset
from jaxbandits.sweeps.engines import calls, local, one_call, to_host

ARMS = jb.environments.bernoulli_arms(means=[0.1, 0.3, 0.7])
DRIFTING = jb.environments.loss_table(losses=np.random.default_rng(1).random((40, 3)))
THIRDS = np.arange(6.0).reshape(2, 3) / 3  # float32 does not hold them
DEVICE = jax.local_devices()[0]


@pytest.fixture
def card(monkeypatch):
    """What a device computes is not in the host's memory until it is sent."""
    monkeypatch.setattr(to_host, "THERE", ())
    monkeypatch.setattr(to_host, "_refused", set())


def locked_bytes(monkeypatch):
    """How many bytes went into page-locked memory, as they go."""
    sizes, put = [], jax.device_put

    def note(tree, where):
        if getattr(where, "memory_kind", "") == to_host.PINNED:
            sizes.append(sum(x.nbytes for x in jax.tree.leaves(tree)))
        return put(tree, where)

    monkeypatch.setattr(to_host.jax, "device_put", note)
    return sizes


def test_arrays_arrive_as_they_are(card, monkeypatch):
    with jax.enable_x64(True):
        wide = jax.numpy.asarray(THIRDS)
    tree = {"wide": wide, "counts": (jax.numpy.arange(4, dtype="int32"), ()), "none": None}
    sizes = locked_bytes(monkeypatch)
    for bound in (64, 63):  # six numbers of eight bytes and four of four
        monkeypatch.setattr(to_host, "PINNED_BYTES", bound)
        there = to_host.send_to_host(tree, DEVICE)()
        assert there["wide"].dtype == np.float64 and there["none"] is None and there["counts"][1] == ()
        assert_array_equal(there["wide"], THIRDS)
        assert_array_equal(there["counts"][0], range(4))
    assert sizes == [64]


@pytest.mark.parametrize("late", [False, True])
def test_a_machine_without_page_locked_memory_gives_ordinary_memory_and_is_asked_once(card, monkeypatch, late):
    asked, as_array = [], np.asarray

    def refuse(tree, where=None):
        asked.append(tree)
        if not late:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")
        return {"locked": tree["x"]}

    def arrive(x):
        if late and not arrived.is_set():
            arrived.set()
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")
        return as_array(x)

    arrived, tree = threading.Event(), {"x": jax.numpy.arange(3)}
    monkeypatch.setattr(to_host.jax, "device_put", refuse)
    monkeypatch.setattr(to_host.np, "asarray", arrive)
    for _ in range(2):
        assert to_host.send_to_host(tree, DEVICE)()["x"].tolist() == [0, 1, 2]
    assert len(asked) == 1


@pytest.mark.parametrize("world", [ARMS, DRIFTING], ids=["counts", "sums"])
def test_a_sweep_has_the_same_results_by_every_way(card, monkeypatch, world):
    run = partial(jb.sweep, [jb.algorithms.ucb1, jb.algorithms.exp3], world, horizon=40, seeds=20, progress=False)
    sizes = locked_bytes(monkeypatch)
    by_locked = run()
    assert sum(sizes) > by_locked.regret.nbytes
    monkeypatch.setattr(to_host, "PINNED_BYTES", 0)
    assert_identical(run(), by_locked)
    monkeypatch.setattr(to_host, "THERE", ("cpu",))
    assert_identical(run(), by_locked)


def test_a_call_is_copied_while_the_next_one_plays(card, monkeypatch):
    """Each call ends only once the one before is on its way, which arrives only once this one plays."""
    seeds, block = 64, 16
    plays, sent = ([threading.Event() for _ in range(seeds // block)] for _ in range(2))
    machine = calls.Machine([DEVICE], 1, "cpu", 1 << 30, at_once=2)
    monkeypatch.setattr(local, "this_machine", lambda devices, memory: machine)
    monkeypatch.setattr(calls, "CPU_LANES", block)
    play, send = one_call.Player._play_span, one_call.send_to_host
    last = threading.local()

    def play_span(self, *args):
        last.call = self.call.first // block
        plays[last.call].set()
        assert last.call == 0 or sent[last.call - 1].wait(60)
        return play(self, *args)

    def begin_copy(tree, device):
        call, arrive = last.call, send(tree, device)
        sent[call].set()

        def arrive_late():
            assert call + 1 == len(plays) or plays[call + 1].wait(60)
            return arrive()

        return arrive_late

    run = partial(jb.sweep, jb.algorithms.ucb1, ARMS, horizon=40, seeds=seeds, progress=False)
    monkeypatch.setattr(one_call.Player, "_play_span", play_span)
    monkeypatch.setattr(one_call, "send_to_host", begin_copy)
    overlapping = run()
    assert all(event.is_set() for event in sent)
    monkeypatch.undo()
    assert_identical(run(), overlapping)


@pytest.mark.parametrize(("workers", "at_once", "most"), [(1, 1, 2), (2, 1, 4), (1, 2, 3), (2, 2, 6)])
def test_few_calls_are_under_way(workers, at_once, most):
    """Two of each core; of a device two that play and one whose results are laid out."""
    calls_left = SimpleNamespace(calls=range(50), note_end=lambda call: None)
    machine = calls.Machine([], workers, "cpu", 1, at_once)
    run = local.EngineRun(None, calls_left, machine, local.Orders(None, print, None, print))
    under_way, begun = [], iter(range(50))
    run.slots, run.stop = partial(int, workers * at_once), lambda: None
    run.submit = lambda: run.pending.setdefault(next(begun), [None])
    run.wait = lambda: under_way.append(len(run.pending)) or [next(iter(run.pending))]
    run.result, run.keep = lambda ticket: one_call.Outcome(None, None, {}), lambda call, outcome: None
    run.play()
    assert max(under_way) == most and len(under_way) == 50


def breaks(*, num_arms, horizon):
    """UCB1, which plays an arm that is not there from play 20 on."""
    algorithm = jb.algorithms.ucb1(num_arms=num_arms, horizon=horizon)

    def act(params, state, draws, t, context):
        action, *rest = algorithm.program.act(params, state, draws, t, context)
        return jax.numpy.where(t < 20, action, num_arms), *rest

    return algorithm._replace(program=algorithm.program._replace(act=act))


MEANS = {"environment.means": {"two": [0.2, 0.4], "three": [0.1, 0.3, 0.7]}}


def test_what_no_run_writes_is_filled_in(monkeypatch):
    """Memory is given as it was left: other checkpoints, fewer arms, runs of which nothing is kept."""
    monkeypatch.setattr(dataset.np, "empty", lambda shape, dtype=float: np.full(shape, 77, dtype))
    run = partial(jb.sweep, environment=ARMS, checkpoints=5, seeds=20, progress=False)
    ends = run(jb.algorithms.ucb1, horizon=[10, 40])
    assert_array_equal(
        ends.regret.notnull(), np.broadcast_to([[[[1, 1, 1, 1, 1, 0, 0]], [[1, 0, 1, 1, 0, 1, 1]]]], (1, 2, 20, 7))
    )
    sizes = run(jb.algorithms.ucb1, horizon=40, grid=MEANS)
    assert (sizes.pulls.sum("arm") == 40).all() and (sizes.pulls[:, 0, :, 2] == 0).all()
    seen = []
    both = {"good": jb.algorithms.ucb1, "bad": breaks}
    with pytest.warns(RuntimeWarning, match="'bad' broke the contract"), pytest.raises(jb.ContractError):
        run(both, horizon=40, on_chunk=lambda ds, done, seconds: seen.append(ds))
    by_label = {ds.algorithm.item(): ds for ds in seen}
    assert by_label["bad"].regret.isnull().all() and (by_label["bad"].pulls == 0).all()
    assert by_label["good"].regret.notnull().all() and (by_label["good"].pulls.sum("arm") == 40).all()
