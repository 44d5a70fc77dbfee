"""Whole sweeps whose plays are made by kernels, compiled by `cc`: what a user of a GPU would get."""

import warnings
from functools import partial

import jax
import numpy as np
import pytest
from laid_out import in_turn, needs_cc

import jaxbandits as jb
from jaxbandits.kernels import launch, plays
from jaxbandits.sweeps.compilation import compiled

pytestmark = needs_cc
ARMS = partial(jb.environments.bernoulli_arms, means=[0.2, 0.5, 0.8])
ucb1 = partial(jb.sweep, jb.algorithms.ucb1, ARMS, horizon=30, seeds=16, progress=False)


@pytest.fixture
def kept(monkeypatch):
    """Nothing comes from disk. Returns the keys of what is compiled, and how often plays were put into a kernel."""
    keys, kernels = [], []

    def executable(key, device, build, structure):
        keys.append(key)
        return build()

    def advance(*args):
        kernels.append(args[-1])
        return given(*args)

    given = plays.advance_by_kernel
    monkeypatch.setattr(compiled.executables, "executable", executable)
    monkeypatch.setattr(plays, "advance_by_kernel", advance)
    compiled.functions_of_group.cache_clear()
    yield keys, kernels
    compiled.functions_of_group.cache_clear()


@pytest.mark.compiles(30)  # three algorithms by programs of three kinds each, twice
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.dealt(8))])
def test_a_sweep_by_kernels_gives_the_same_dataset(kept, dtype):
    """Over points and seeds, with an adversary: single plays, counted windows, and a user's own long windows."""
    algorithms = {
        "single plays": jb.algorithms.exp3,  # UCB1 on two payoffs has ties, which the last bit decides
        "counted": partial(jb.algorithms.adap_ucb, epsilon=1.0),
        "long windows": in_turn(9),
    }
    adversary = partial(jb.adversaries.huber, kind="fixed", value=0.0)
    settings = {"horizon": 300, "seeds": 40, "checkpoints": 7, "reward_adversary": adversary, "dtype": dtype}
    settings["grid"] = {"reward_adversary.corruption": [0.0, 0.2]}
    plain = jb.sweep(algorithms, ARMS, progress=False, **settings)
    (keys, kernels), before = kept, set(kept[0])
    with launch.force_form("cc"), warnings.catch_warnings():
        warnings.filterwarnings("error", "no kernel could be compiled")
        ours = jb.sweep(algorithms, ARMS, progress=False, **settings)
    assert kernels == ["cc"] * 3
    assert len(set(keys) - before) == 3  # kernels have keys of their own, all else is as before
    assert ours.drop_attrs().identical(plain.drop_attrs())


def test_a_kernel_that_cannot_be_compiled_costs_no_result(kept, monkeypatch):
    def fails(*args, **options):
        raise NotImplementedError("no such operation here")

    monkeypatch.setattr(plays, "advance_by_kernel", fails)
    said = pytest.warns(RuntimeWarning, match="no kernel could be compiled.*no such operation here")
    with said, launch.force_form("cc"):
        ours = ucb1()
    np.testing.assert_array_equal(ours.pulls, ucb1().pulls)


@pytest.mark.compiles(30)  # a sweep by kernels and then without, and one by scans
def test_a_kernel_that_cannot_be_run_costs_no_result(kept, monkeypatch):
    """As where a device has no room for what its threads hold: plays are made anew."""
    _, kernels = kept

    def executable(key, device, build, structure):
        before, program = len(kernels), build()
        return no_room if len(kernels) > before else program

    def no_room(*args):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Failed to launch CUDA kernel: out of memory\nmore")

    monkeypatch.setattr(compiled.executables, "executable", executable)
    said = pytest.warns(RuntimeWarning, match="a kernel did not run on cpu.* slower: RESOURCE_EXHAUSTED.*memory$")
    with said as lines, launch.force_form("cc"):
        ours = ucb1()
    assert kernels and len(lines) == 1
    np.testing.assert_array_equal(ours.pulls, ucb1().pulls)
