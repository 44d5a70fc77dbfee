"""Whole sweeps whose plays are made by kernels, compiled by `cc`: what a user of a GPU would get."""

import warnings
from functools import cache, partial

import jax
import numpy as np
import pytest
from laid_out import needs_cc

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.kernels import engine, forms, launch
from jaxbandits.protocol import Span
from jaxbandits.sweeps.compilation import compiled

pytestmark = needs_cc
ARMS = partial(jb.environments.bernoulli_arms, means=[0.2, 0.5, 0.8])


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

    given = engine.advance
    monkeypatch.setattr(compiled.executables, "executable", executable)
    monkeypatch.setattr(engine, "advance", advance)
    compiled.compiled.cache_clear()
    yield keys, kernels
    compiled.compiled.cache_clear()


@cache
def going_round(num_arms):
    """A user's own program."""
    algorithm, _ = catalogue.case("uniform")
    return algorithm.program._replace(act=lambda params, state, draws, t, context: (t % num_arms, None, ()))


def in_turn(slots):
    """An algorithm that goes round the arms, in windows of some plays."""

    def make(*, num_arms, horizon):
        schedule = (Span(slots, -(-horizon // slots)),)
        return catalogue.case("uniform")[0]._replace(program=going_round(num_arms), schedule=schedule, config={})

    return make


def by_kernels(*args, **options):
    """A sweep by kernels, which fails where one cannot be made."""
    with forms.forced("cc"), warnings.catch_warnings():
        warnings.filterwarnings("error", "no kernel could be compiled")
        return jb.sweep(*args, progress=False, **options)


@pytest.mark.compiles(30)  # three algorithms by programs of three kinds each, twice
def test_a_sweep_by_kernels_gives_the_same_dataset(kept):
    """Over points and seeds, with an adversary: single plays, counted windows, and long windows."""
    algorithms = {
        "single plays": jb.algorithms.exp3,  # UCB1 on two payoffs has ties, which the last bit decides
        "counted": partial(jb.algorithms.adap_ucb, epsilon=1.0),
        "long windows": in_turn(9),
    }
    adversary = partial(jb.adversaries.huber, kind="fixed", value=0.0)
    settings = {"horizon": 300, "seeds": 40, "checkpoints": 7, "reward_adversary": adversary}
    settings["grid"] = {"reward_adversary.corruption": [0.0, 0.2]}
    plain = jb.sweep(algorithms, ARMS, progress=False, **settings)
    keys, kernels = kept
    before = set(keys)
    ours = by_kernels(algorithms, ARMS, **settings)
    assert kernels == ["cc"] * 3
    assert len(set(keys) - before) == 3  # kernels have keys of their own, all else is as before
    assert ours.drop_attrs().identical(plain.drop_attrs())


@pytest.mark.dealt(8)
def test_in_double_precision(kept):
    environment, settings = partial(jb.environments.gaussian_arms, means=[0.0, 0.5]), {"dtype": "float64", "seeds": 16}
    algorithms = {"single plays": jb.algorithms.ucb1, "counted windows": partial(jb.algorithms.adap_ucb, epsilon=1.0)}
    ours = by_kernels(algorithms, environment, horizon=64, **settings)
    assert len(kept[1]) >= 2
    plain = jb.sweep(algorithms, environment, horizon=64, progress=False, **settings)
    np.testing.assert_array_equal(ours.regret, plain.regret)


@pytest.mark.compiles(30)  # a sweep by kernels, and one by scans
def test_a_users_own_algorithm_becomes_a_kernel(kept):
    """Nothing is said about it anywhere: its one-lane functions are enough."""
    ours = by_kernels({"in_turn": in_turn(1)}, ARMS, horizon=30, seeds=16)
    assert kept[1]
    np.testing.assert_array_equal(ours.pulls, np.full(ours.pulls.shape, 10))


def test_only_a_gpu_gets_kernels():
    assert launch.form_on(jax.devices("cpu")[0]) == "scan"
    with forms.forced("cc"):
        assert launch.form_on(jax.devices("cpu")[0]) == "cc"
    assert launch.form_on(jax.devices("cpu")[0]) == "scan"


def test_a_kernel_that_cannot_be_compiled_costs_no_result(kept, monkeypatch):
    def fails(*args, **options):
        raise NotImplementedError("no such operation here")

    monkeypatch.setattr(engine, "advance", fails)
    said = pytest.warns(RuntimeWarning, match="no kernel could be compiled.*no such operation here")
    with said, forms.forced("cc"):
        ours = jb.sweep(jb.algorithms.ucb1, ARMS, horizon=30, seeds=16, progress=False)
    plain = jb.sweep(jb.algorithms.ucb1, ARMS, horizon=30, seeds=16, progress=False)
    np.testing.assert_array_equal(ours.pulls, plain.pulls)


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
    with said as lines, forms.forced("cc"):
        ours = jb.sweep(jb.algorithms.ucb1, ARMS, horizon=30, seeds=16, progress=False)
    plain = jb.sweep(jb.algorithms.ucb1, ARMS, horizon=30, seeds=16, progress=False)
    assert kernels and len(lines) == 1
    np.testing.assert_array_equal(ours.pulls, plain.pulls)
