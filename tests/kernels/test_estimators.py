"""The spectral filter, geometric medians and Maler as kernels over lanes, by `cc`, against XLA's operations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from laid_out import needs_cc

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.estimators import geometric_median, spectral_filter
from jaxbandits.estimators.geometric_median import _solver, _warm, warm_median, warm_start
from jaxbandits.estimators.spectral_filter import filter_blocks
from jaxbandits.kernels import filter_kernel, fitting, launch, over_lanes
from jaxbandits.kernels.launch import absent_gpu
from jaxbandits.learners import maler
from jaxbandits.learners.maler import _kernel, num_pairs
from jaxbandits.numerics import device_forms
from jaxbandits.numerics.device_forms import forced
from jaxbandits.protocol import Span
from jaxbandits.random import Draws
from jaxbandits.sweeps.compilation import compiled

ULPS = 8  # units in the last place of a lane's largest number
pytestmark = needs_cc
SAME_REMOVALS = 0.95  # the least share of lanes that remove the same reports: sums are rounded in another order


@pytest.fixture
def kernels(monkeypatch):
    """The kernels that were called."""
    called, given = [], launch.call

    def call(source, *args):
        called.append(source.name)
        return given(source, *args)

    monkeypatch.setattr(launch, "call", call)
    return called


def both(function, *arrays):
    """What lanes [L, ...] give by a kernel, wherever they lie, and by XLA's operations."""
    found = []
    for kind in ("cc", "xla"):
        with forced(kind):
            program = jax.jit(lambda *x: jax.vmap(function)(*x))  # a new function: JAX keeps what it compiled
            found.append(jax.tree.map(np.asarray, program(*arrays)))
            if kind == "cc":
                turned = jax.tree.map(np.asarray, program(*(x[::-1] for x in arrays)))
                jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[::-1], y), turned, found[0])
    return found


def assert_near(ours, wanted, ulps=ULPS):
    """Leaves [L, ...] are the same but for a few units in the last place of the lane's largest number, at least 1."""
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        np.testing.assert_array_equal(a[~np.isfinite(b)], b[~np.isfinite(b)])
        a, b = np.where(np.isfinite(b), a, 0), np.where(np.isfinite(b), b, 0)
        largest = np.max(np.abs(b), tuple(range(1, b.ndim)), keepdims=True, initial=1)
        assert np.all(np.abs(a - b) <= ulps * np.spacing(np.broadcast_to(largest, b.shape)))


def clouds(lanes, count, dim):
    """Points of many lanes. Some lanes hold what is not finite, far points, equal points."""
    points = np.random.default_rng(count).normal(size=(lanes, count, dim)).astype(np.float32)
    points[1, 0], points[2, 1, 0], points[3, 0, 0] = np.nan, np.inf, 1e30
    points[4] = points[4, 0]
    points[5] = np.nan
    return points


# Budgets of compilations: what geometric medians trace are numbers of the host, which JAX converts one by one.
@pytest.mark.compiles(24)
@pytest.mark.parametrize(("lanes", "count", "dim", "tolerance"), [(131, 3, 2, 1e-3)])
def test_geometric_median(kernels, lanes, count, dim, tolerance):
    function = partial(geometric_median, iterations=12, tolerance=tolerance)
    ours, wanted = both(function, clouds(lanes, count, dim))
    assert kernels
    assert_near(ours, wanted)
    assert np.isinf(ours.gap[5]) and np.all(np.isfinite(np.delete(ours.gap, 5)))


@pytest.mark.dealt(3)  # a sweep at the end of this file plays it as a kernel
def test_warm_median(kernels):
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
    assert kernels


def test_maler(kernels):
    learner = maler(dim=2, horizon=50, theta_bound=1.0, gradient_bound=4.0)
    target = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)

    def plays(target):
        def play(state, _):
            return learner.update(state, learner.predict(state) - target), None

        return jax.lax.scan(play, learner.init(), length=9)[0]

    ours, wanted = both(plays, target)
    assert kernels
    assert_near(ours, wanted, ulps=32)  # after nine updates, each from the one before
    assert np.all(ours.t == 9)


@pytest.mark.compiles(20)  # forms of several estimators
def test_one_lane_alone_is_no_kernel_and_what_is_large_is_one(kernels):
    median = partial(geometric_median, iterations=2)
    with forced("cc"):
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


@pytest.mark.parametrize(
    ("lanes", "count", "dim", "arms", "most"),
    dealt([(45, 40, 3, 5, None), (6, 20, 1, 1, 2), (9, 60, 10, 12, None)], 4, always=[(45, 40, 3, 5, None)]),
)
def test_spectral_filter(kernels, lanes, count, dim, arms, most):
    """By given uniforms, with the history of eigenvalues."""
    *given, directions = reports(lanes, count, dim, arms, 0)
    one = partial(spectral_filter, directions=directions, bound=0.5, max_removals=most)
    ours, wanted = both(lambda u, x, a: one(u, x, a), *given)
    assert kernels
    same = np.all(ours.keep == wanted.keep, 1)
    assert same.mean() >= SAME_REMOVALS and wanted.num_removed.max() >= (most or 5)
    assert_near(*(jax.tree.map(lambda x: x[same], found) for found in (ours, wanted)), ulps=32)
    assert wanted.num_removed[1] == wanted.num_removed[3] == 0 and np.all(ours.mean[1] == 0)
    assert ours.exhausted.any() == (most is not None)


def test_spectral_filter_draws_in_the_kernel(kernels):
    """As the end of a batch uses it: a stream of draws a lane, without a history."""
    _, values, arms, directions = reports(33, 32, 2, 4, 1)
    values = np.nan_to_num(values, posinf=1, nan=1).reshape(33, 4, 8)
    arms = np.sort(arms[:, :4], 1)

    def one(seed, values, arms):
        present = jnp.arange(32).reshape(4, 8) % 7 != 3
        return filter_blocks(Draws(seed, "filter"), 5, values, present, arms, directions, 0.3)

    ours, wanted = both(one, np.arange(33, dtype=np.uint32), values, arms)
    assert kernels
    same = np.all(ours.keep == wanted.keep, (1, 2))
    assert same.mean() >= SAME_REMOVALS and wanted.num_removed.max() > 3
    assert_near(*(jax.tree.map(lambda x: x[same], found) for found in (ours, wanted)), ulps=32)


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def median_of(count, dim):
    return over_lanes.one_lane(
        _solver(64, False, False).__wrapped__, floats(count, dim), floats(count), floats(dim), floats()
    )


def warm_of(count, dim):
    present = jax.ShapeDtypeStruct((count,), bool)
    return over_lanes.one_lane(_warm(8), floats(count, dim), present, floats(count), floats(dim))


def maler_of(dim, horizon):
    learner = maler(dim=dim, horizon=horizon, theta_bound=1.0, gradient_bound=4.0)
    return over_lanes.one_lane(_kernel(dim, num_pairs(horizon)), jax.eval_shape(learner.init), floats(dim))


def filter_of(dim, reports, arms=6):
    shapes = [jax.ShapeDtypeStruct((), np.uint32), jax.ShapeDtypeStruct((), np.int32), floats(reports // 25, 25)]
    shapes += [jax.ShapeDtypeStruct(shapes[2].shape, bool), jax.ShapeDtypeStruct((reports // 25,), np.int32)]
    shapes += [floats(arms, dim), floats(), jax.ShapeDtypeStruct((), np.int32)]
    return over_lanes.one_lane(lambda seed, *args: filter_kernel.one(0, Draws(seed, "filter"), *args), *shapes)


# Whether all arrays are held apart. None is refused, whatever its size.
SIZES = {
    "geometric_median, 5 points, 3 coordinates": (partial(median_of, 5, 3), "written out"),
    "geometric_median, 20 points, 14 coordinates": (partial(median_of, 20, 14), "loops"),
    "geometric_median, 64 points, 64 coordinates": (partial(median_of, 64, 64), "loops"),
    "warm_median, 5 points, 9 coordinates": (partial(warm_of, 5, 9), "written out"),
    "warm_median, 20 points, 14 coordinates": (partial(warm_of, 20, 14), "loops"),
    "maler, 3 features": (partial(maler_of, 3, 5_000), "written out"),
    "maler, 8 features": (partial(maler_of, 8, 5_000), "loops"),
    "spectral_filter, 3 features": (partial(filter_of, 3, 1_000), "loops"),
    "spectral_filter, 50 features": (partial(filter_of, 50, 1_000), "loops"),
}


@pytest.mark.parametrize("name", SIZES)
def test_no_size_is_refused(name):
    one = SIZES[name][0]()
    assert not one.reason and one.kernel.form == SIZES[name][1]
    census = one.kernel.census
    last = one.kernel.largest == fitting.APART[-1]
    assert last or (census.operations <= fitting.MOST_STATEMENTS and census.alive <= fitting.MOST_ALIVE)


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
            with absent_gpu(ptx=lambda text, capability: text):
                text = traced.lower(lowering_platforms=(platform,)).as_text()
            assert text.count("stablehlo.custom_call") == text.count("@__gpu$xla.gpu.ptx(") == kernels


def of_medians(*, num_arms, horizon):
    """Plays in turn, and computes a median of draws at every play."""
    algorithm, _ = catalogue.case("uniform")

    def act(params, state, draws, t, context):
        points = draws.uniform(t[0], (3, 2))
        value = warm_median(points, warm_start(3, 2, points.dtype), 2).value
        return (t + (value[0] > 2).astype(t.dtype)) % num_arms, None, ()

    program = algorithm.program._replace(act=act)
    return algorithm._replace(program=program, schedule=(Span(1, horizon),), config={})


@pytest.mark.compiles(30)  # two sweeps, one of them twice
def test_in_a_sweep_and_where_a_kernel_cannot_be_compiled(kernels, monkeypatch):
    # nothing from disk
    monkeypatch.setattr(compiled.executables, "executable", lambda key, device, build, structure: build())
    monkeypatch.setattr(compiled, "has_kernels", lambda device: True)
    arms = partial(jb.environments.bernoulli_arms, means=[0.2, 0.5, 0.8])

    def sweep():
        compiled.compiled.cache_clear()
        device_forms._forced.set_global("cc")  # in the threads of the sweep too
        try:
            return jb.sweep({"of_medians": of_medians}, arms, horizon=9, seeds=16, progress=False)
        finally:
            device_forms._forced.set_global(None)
            compiled.compiled.cache_clear()

    assert np.all(sweep().pulls == 3) and kernels

    def fails(*args, **options):
        raise NotImplementedError("no such operation here")

    monkeypatch.setattr(over_lanes, "by_kernel", fails)
    with pytest.warns(RuntimeWarning, match="learners have no kernels on cpu.*no such operation here"):
        assert np.all(sweep().pulls == 3)
