"""What the planner sends to an accelerator: few large calls, as the memory allows."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.kernels.source import BLOCK
from jaxbandits.sweeps.engines import calls as calls_module
from jaxbandits.sweeps.engines import local
from jaxbandits.sweeps.engines.local import this_machine
from jaxbandits.sweeps.plan import plan

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


def test_a_million_lanes_are_enough_for_a_call_and_every_device_gets_some():
    many = calls(jb.algorithms.ucb1, 3_000_000, None, memory=10**15)
    assert len(many) == 3 and {call.lanes for call in many} == {1_000_064}
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
