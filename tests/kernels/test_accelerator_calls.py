"""What the planner sends to an accelerator: few large calls, as the memory allows."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.sweeps.engines import local
from jaxbandits.sweeps.engines.calls import (
    ACCELERATOR_LANES,
    Machine,
    bytes_of_call,
    call_bytes,
    calls_of,
    fitting,
    owned,
    shapes_of,
)
from jaxbandits.sweeps.engines.local import this_machine
from jaxbandits.sweeps.plan import plan

ARMS = partial(jb.environments.bernoulli_arms, means=np.linspace(0.1, 0.9, 10))
MEMORY = int(141e9 * 0.75) // 4  # a quarter of what JAX takes of an H200


def calls(algorithm, seeds, grid, memory=MEMORY, platform="gpu", workers=1):
    laid_out = plan(
        {"x": algorithm}, ARMS, horizon=10_000, seeds=seeds, grid=grid, points=None, reward_adversary=None,
        message_adversary=None, checkpoints=200, dtype="float32",
    )  # fmt: skip
    shapes = shapes_of(laid_out)
    found = calls_of(laid_out, owned(laid_out), Machine([], workers, platform, memory), shapes)
    assert sum(task.seeds * len(task.cells) for task in found) == len(laid_out.cells) * seeds
    assert all(bytes_of_call(task, laid_out, shapes) <= memory for task in found)
    return found


@pytest.mark.parametrize(("algorithm", "key", "seeds", "points"), [
    (jb.algorithms.ucb1, "bonus_scale", 100, 1000),
    (jb.algorithms.ucb1, "bonus_scale", 1000, 100),
    (partial(jb.algorithms.prm_elimination, moment="raw"), "epsilon", 1000, 100),
])  # fmt: skip
def test_a_sweep_that_fits_is_one_call(algorithm, key, seeds, points):
    grid = {key: np.linspace(0.1, 0.9, points)}
    [call] = calls(algorithm, seeds, grid)
    assert len(call.cells) == points and seeds <= call.lanes < 2 * seeds
    assert len(calls(algorithm, seeds, grid, platform="cpu")) > 20


def test_calls_are_equal_and_fit_the_memory():
    grid = {"bonus_scale": np.linspace(0.1, 0.9, 100)}
    few = calls(jb.algorithms.ucb1, 1000, grid, memory=MEMORY // 100)
    assert len(few) > 1
    points = [len(call.cells) for call in few]
    assert max(points) - min(points) < len(few)
    # the next larger call would not have fitted
    assert len(few) == -(-100 // max(points))


def test_a_million_lanes_are_enough_for_a_call():
    many = calls(jb.algorithms.ucb1, 3_000_000, None, memory=10**15)
    assert [call.lanes for call in many] == [ACCELERATOR_LANES] * 3


def test_every_device_gets_calls():
    grid = {"bonus_scale": np.linspace(0.1, 0.9, 100)}
    assert len(calls(jb.algorithms.ucb1, 100, grid, workers=4)) == 8


def test_an_accelerator_plays_one_call_while_another_is_copied(monkeypatch):
    """Two calls share its memory; where that is not enough for two, one is made at a time."""
    grid, memory = {"bonus_scale": np.linspace(0.1, 0.9, 100)}, MEMORY // 1000
    laid_out = plan(
        {"x": jb.algorithms.ucb1}, ARMS, horizon=10_000, seeds=16, grid=grid, points=None, reward_adversary=None,
        message_adversary=None, checkpoints=200, dtype="float32",
    )  # fmt: skip
    shapes, wanted = shapes_of(laid_out), owned(laid_out)
    monkeypatch.setattr(local.jax, "local_devices", lambda: [SimpleNamespace(platform="gpu")])
    machine = this_machine(None, memory)
    assert (machine.workers, machine.at_once, machine.memory) == (1, 2, memory // 2)
    assert fitting(laid_out, wanted, machine, shapes)[0] == machine
    least = call_bytes(shapes[0], 16, 1, len(laid_out.groups[0].times))
    small = this_machine(None, least)
    assert fitting(laid_out, wanted, small, shapes)[0] == small._replace(at_once=1, memory=2 * small.memory)
