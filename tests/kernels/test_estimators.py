"""The spectral filter, geometric medians and Maler as kernels over lanes, by `cc`, against XLA's operations."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from laid_out import assert_near, in_turn, needs_cc

import jaxbandits as jb
from jaxbandits.estimators import geometric_median, spectral_filter
from jaxbandits.estimators.geometric_median import warm_median, warm_start
from jaxbandits.estimators.spectral_filter import filter_blocks
from jaxbandits.kernels import launch, over_lanes, schedule
from jaxbandits.learners import maler
from jaxbandits.numerics import device_forms
from jaxbandits.random import Draws
from jaxbandits.sweeps.compilation import compiled

pytestmark = needs_cc
SAME_REMOVALS = 0.95  # the least share of lanes that remove the same reports: sums are rounded in another order


@pytest.fixture
def kernels(monkeypatch):
    """The kernels that were called."""
    called, given = [], launch.call_kernel

    def call(source, *args):
        called.append(source.name)
        return given(source, *args)

    monkeypatch.setattr(launch, "call_kernel", call)
    return called


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


@pytest.fixture
def both(kernels):
    """What lanes [L, ...] of a function give by a kernel, wherever they lie, and by XLA's operations."""

    def by_both(function, *arrays):
        def by(kind, *calls):
            program = jax.jit(lambda *x: jax.vmap(function)(*x))  # a new function: JAX keeps what it compiled
            with device_forms.force_device_form(kind):
                return [jax.tree.map(np.asarray, program(*each)) for each in calls]

        ours, turned = by("cc", arrays, [x[::-1] for x in arrays])
        jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[::-1], y), turned, ours)
        assert kernels
        return ours, *by("xla", arrays)

    return by_both


def clouds(lanes, count, dim):
    """Points of many lanes. Some lanes hold what is not finite, far points, equal points."""
    points = np.random.default_rng(count).normal(size=(lanes, count, dim)).astype(np.float32)
    points[1, 0], points[2, 1, 0], points[3, 0, 0] = np.nan, np.inf, 1e30
    points[4] = points[4, 0]
    points[5] = np.nan
    return points


# Budgets of compilations: what geometric medians trace are numbers of the host, which JAX converts one by one.
@pytest.mark.compiles(24)
def test_geometric_median(both):
    ours, wanted = both(partial(geometric_median, iterations=12, tolerance=1e-3), clouds(131, 3, 2))
    assert_near(ours, wanted)
    assert np.isinf(ours.gap[5]) and np.all(np.isfinite(np.delete(ours.gap, 5)))


@pytest.mark.dealt(3)  # a sweep at the end of this file plays it as a kernel
def test_warm_median(both):
    """In step code, where some points do not count, under two nested `vmap`s."""

    def one(points, present):
        return warm_median(points, warm_start(4, 3, jnp.float32, present), 3, present=present)

    points = np.nan_to_num(clouds(140, 4, 3), posinf=3, neginf=-3, nan=1).clip(-9, 9)
    present = np.ones((70, 4), bool)
    present[::2, 1] = False
    ours, wanted = both(one, points, np.repeat(present, 2, 0))
    assert_near(ours, wanted)
    nested, _ = both(jax.vmap(one, (0, None)), points.reshape(70, 2, 4, 3), present)
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x.reshape(y.shape), y), nested, ours)


def test_maler(both):
    learner = maler(dim=2, horizon=50, theta_bound=1.0, gradient_bound=4.0)
    target = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)

    def plays(target):
        def play(state, _):
            return learner.update(state, learner.predict(state) - target), None

        return jax.lax.scan(play, learner.init(), length=9)[0]

    ours, wanted = both(plays, target)
    assert_near(ours, wanted, ulps=32)  # after nine updates, each from the one before
    assert np.all(ours.t == 9)


@pytest.mark.compiles(20)  # forms of several estimators
def test_one_lane_alone_is_no_kernel_and_what_is_large_is_one(kernels, both):
    median = partial(geometric_median, iterations=2)
    with device_forms.force_device_form("cc"):
        jax.jit(lambda x: median(x)).lower(floats(4, 2))
        assert not kernels
        jax.jit(lambda x: jax.vmap(median)(x)).lower(floats(6, 4, 2))
        assert kernels
    large = np.random.default_rng(0).normal(size=(6, 20, 15)).astype(np.float32)
    assert_near(*both(partial(geometric_median, iterations=5), large), ulps=32)


def reports(lanes, count, dim, arms, seed):
    """Uniforms, reports of which a tenth are far off, their arms, and the arms' directions."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(arms, dim))
    directions *= np.sqrt(dim) / np.linalg.norm(directions, axis=1, keepdims=True)
    values = np.where(rng.random((lanes, count)) < 0.1, 12.0, rng.normal(size=(lanes, count)))
    values[1], values[2, 3:9], values[3] = np.nan, np.inf, 0  # none, some that are not finite, all equal
    return (
        rng.random((lanes, count)).astype(np.float32), values.astype(np.float32),
        rng.integers(arms, size=(lanes, count)).astype(np.int32), directions.astype(np.float32),
    )  # fmt: skip


def assert_near_where_the_same_is_removed(ours, wanted, most):
    same = np.all(ours.keep == wanted.keep, tuple(range(1, ours.keep.ndim)))
    assert same.mean() >= SAME_REMOVALS and wanted.num_removed.max() >= most
    assert_near(*(jax.tree.map(lambda x: x[same], found) for found in (ours, wanted)), ulps=32)


@pytest.mark.parametrize(
    ("lanes", "count", "dim", "arms", "most"),
    dealt([(45, 40, 3, 5, None), (6, 20, 1, 1, 2), (9, 60, 10, 12, None)], 4, always=[(45, 40, 3, 5, None)]),
)
def test_spectral_filter(both, lanes, count, dim, arms, most):
    """By given uniforms, with the history of eigenvalues."""
    *given, directions = reports(lanes, count, dim, arms, 0)
    one = partial(spectral_filter, directions=directions, bound=0.5, max_removals=most)
    ours, wanted = both(lambda u, x, a: one(u, x, a), *given)
    assert_near_where_the_same_is_removed(ours, wanted, most or 5)
    assert wanted.num_removed[1] == wanted.num_removed[3] == 0 and np.all(ours.mean[1] == 0)
    assert ours.exhausted.any() == (most is not None)


def test_spectral_filter_draws_in_the_kernel(both):
    """As the end of a batch uses it: a stream of draws a lane, without a history."""
    _, values, arms, directions = reports(33, 32, 2, 4, 1)
    values = np.nan_to_num(values, posinf=1, nan=1).reshape(33, 4, 8)
    arms = np.sort(arms[:, :4], 1)

    def one(seed, values, arms):
        present = jnp.arange(32).reshape(4, 8) % 7 != 3
        return filter_blocks(Draws(seed, "filter"), 5, values, present, arms, directions, 0.3)

    ours, wanted = both(one, np.arange(33, dtype=np.uint32), values, arms)
    assert_near_where_the_same_is_removed(ours, wanted, 4)


# How kernels of `estimator_cases.py` hold their arrays. None is refused, whatever its size.
SIZES = {
    "geometric_median-5-3": "written out", "geometric_median-20-14": "loops", "geometric_median-64-64": "loops",
    "warm_median-5-9": "written out", "warm_median-20-14": "loops", "maler-3": "written out", "maler-8": "loops",
    "spectral_filter-3": "loops", "spectral_filter-50": "loops",
}  # fmt: skip


@pytest.mark.parametrize("name", dealt(SIZES, 4, always=["warm_median-5-9", "spectral_filter-50"]))
def test_no_size_is_refused(monkeypatch, name):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from estimator_cases import CASES

    stem, *sizes = name.split("-")
    one = CASES[stem](*map(int, sizes)).kernel()
    assert not one.reason and one.form == SIZES[name]
    last = one.largest == schedule.APART[-1]
    assert last or (one.census.operations <= schedule.MOST_STATEMENTS and one.census.alive <= schedule.MOST_SPILLED)


@pytest.mark.compiles(24)
def test_lowered_for_a_gpu():
    """One kernel each on a GPU, no library and no kernel on a TPU."""
    learner = maler(dim=2, horizon=50, theta_bound=1.0, gradient_bound=4.0)
    *given, directions = (jax.typeof(x) for x in reports(40, 20, 2, 3, 0))
    programs = {
        "median": (partial(geometric_median, iterations=4), (floats(40, 4, 2),)),
        "maler": (lambda g: learner.update(learner.init(), g), (floats(40, 2),)),
        "filter": (lambda u, x, a: spectral_filter(u, x, a, jnp.ones(directions.shape), 1.0), given),
    }
    for function, args in programs.values():
        traced = jax.jit(jax.vmap(function)).trace(*args)
        for platform, kernels in (("cuda", 1), ("tpu", 0), ("cpu", 0)):
            with launch.absent_gpu(ptx=lambda text, capability: text):
                text = traced.lower(lowering_platforms=(platform,)).as_text()
            assert text.count("stablehlo.custom_call") == text.count("@__gpu$xla.gpu.ptx(") == kernels


def median(draws, t):
    return (warm_median(draws.uniform(t[0], (3, 2)), warm_start(3, 2, jnp.float32), 2).value[0] > 2).astype(t.dtype)


@pytest.mark.compiles(30)  # two sweeps, one of them twice
def test_in_a_sweep_and_where_a_kernel_cannot_be_compiled(kernels, monkeypatch):
    # nothing from disk
    monkeypatch.setattr(compiled.executables, "executable", lambda key, device, build, structure: build())
    monkeypatch.setattr(compiled, "has_kernels", lambda device: True)
    arms = partial(jb.environments.bernoulli_arms, means=[0.2, 0.5, 0.8])

    def sweep():
        compiled.functions_of_group.cache_clear()
        device_forms._forced.set_global("cc")  # in the threads of the sweep too
        try:
            return jb.sweep({"of_medians": in_turn(ahead=median)}, arms, horizon=9, seeds=16, progress=False)
        finally:
            device_forms._forced.set_global(None)
            compiled.functions_of_group.cache_clear()

    assert np.all(sweep().pulls == 3) and kernels

    def fails(*args, **options):
        raise NotImplementedError("no such operation here")

    monkeypatch.setattr(over_lanes, "by_kernel", fails)
    with pytest.warns(RuntimeWarning, match="learners have no kernels on cpu.*no such operation here"):
        assert np.all(sweep().pulls == 3)
