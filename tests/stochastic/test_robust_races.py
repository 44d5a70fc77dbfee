"""The multi-layer race and BARBAR: literal paths, values, laws, planted errors, what corruption does, bad arguments."""

import math
from functools import partial

import jax
import numpy as np
import pytest
from against_reference import apart, exact_draw
from dealt import dealt
from numpy_draws import NumpyDraws
from planting import errors, planted
from plays import watched
from reference import robust_races as reference
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import barbar, multilayer_elimination
from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.algorithms.stochastic.barbar import next_gaps
from jaxbandits.algorithms.stochastic.multilayer_elimination import layer_of, program, race_width
from jaxbandits.protocol import Report
from jaxbandits.random import Draws

W = [0.8, 0.6, 0.5, 0.3]
K, T = 4, 700
ARMS = partial(jb.environments.bernoulli_arms, means=W)
BETWEEN = partial(jb.environments.gaussian_arms, means=W, scale=0.5)
# rewards outside [0, 1] are clipped by barbar and accepted by the race
OUTSIDE = partial(jb.environments.gaussian_arms, means=[1.2, 0.4, 0.3, -0.2], scale=0.7)
CASES = {
    "race": (multilayer_elimination, {"failure_prob": 0.05, "width_scale": 0.1}),
    "race, narrow": (multilayer_elimination, {"failure_prob": 0.5, "width_scale": 0.03}),
    "race, wide": (multilayer_elimination, {"failure_prob": 0.05}),
    "barbar": (barbar, {"failure_prob": 0.05, "length_scale": 1 / 1024}),
    "barbar, short": (barbar, {"failure_prob": 0.3, "length_scale": 1 / 16384}),
    "barbar, tiny": (barbar, {"failure_prob": 0.3, "length_scale": 1e-7}),
}


def rewards_of(history):
    """Pays what a run was paid; a path that leaves the run's is not paid from there on."""
    return lambda t, arm: float(history.reward[t - 1]) if history.action[t - 1] == arm else 0.0


def run_of(name, seed, environment=BETWEEN):
    factory, arguments = CASES[name]
    return watched(factory(num_arms=K, horizon=T, **arguments), environment(), seed, checkpoints=[9, 130, T])


def layers_of(words, number):
    return uncompiled(lambda words: layer_of(words, number))(words)


def literal(name, history, seed, loops=reference):
    factory, arguments = CASES[name]
    t = np.arange(T + 1)
    if factory is barbar:
        uniform = exact_draw(seed, "alg/act/arm", "uniform", t)
        draw = lambda t: uniform[t]
    else:
        layers = layers_of(NumpyDraws(seed, "alg/act/layer").bits(t), reference.number_of_layers(T))
        draw = lambda t: int(layers[t])
    return getattr(loops, factory.__name__)(rewards_of(history), draw, num_arms=K, horizon=T, **arguments)


@pytest.mark.parametrize("name", CASES)
def test_paths_are_the_literal_ones(name):
    for seed in range(3):
        run = run_of(name, seed)
        actions, rest = literal(name, run.history, seed)
        np.testing.assert_array_equal(run.history.action, actions)
        if name.startswith("barbar"):
            assert int(run.diagnostics["epochs"]) == len(rest) - 1
        else:
            assert int(run.diagnostics["active_arms"]) == len(rest[-1]) > 0
            assert int(run.diagnostics["empty_layers"]) == sum(not arms for arms in rest)


def test_real_rewards_have_the_literal_path_too():
    for name in ("race", "barbar, short"):
        run = run_of(name, 5, OUTSIDE)
        np.testing.assert_array_equal(run.history.action, literal(name, run.history, 5)[0])


@pytest.mark.parametrize(("name", "error"), errors([
    ("race", "width_scale * (math", "2 * width_scale * (math"), ("race", "/ n[l][a]", "/ (n[l][a] + 1)"),
    ("race", "range(1, l + 1)", "range(1, l)"), ("race, narrow", "a = min(next(", "a = max(next("),
    ("barbar", "gap**2", "gap"), ("barbar", "gap / 16", "2 * gap"), ("barbar, short", "2.0**-m", "2.0**-(m + 1)"),
    ("barbar", "math.ceil(sum(n))", "math.floor(sum(n))"),
], reference))  # fmt: skip
def test_planted_errors_fork_the_path(name, error):
    wrong = planted(*error)
    runs = ((seed, run_of(name, seed).history) for seed in range(12))
    assert any(not np.array_equal(h.action, literal(name, h, seed, wrong)[0]) for seed, h in runs)


def test_values_of_the_formulas():
    race = partial(multilayer_elimination, num_arms=4, failure_prob=0.05)
    for horizon, layers in ((1, 1), (2, 1), (3, 2), (1000, 10), (1024, 10), (1025, 11), (20_000, 15)):
        assert race(horizon=horizon).program is program(4, layers)
    p = reference.layer_probabilities(10)
    assert (p[0], p[9], sum(p)) == (0.5009765625, 0.0009765625, 1)
    params = race(horizon=20_000).params
    assert params.linear == pytest.approx(18.37985875, rel=1e-9)
    with jax.enable_x64(True):
        assert float(uncompiled(race_width)(params, np.float64(100))) == pytest.approx(0.6125159623, rel=1e-9)
    scale = lambda *x: barbar(num_arms=x[0], horizon=x[1], failure_prob=x[2]).params.pulls_scale
    assert scale(4, 20_000, 0.05) == pytest.approx(9339.768904, rel=1e-9)
    assert scale(10, 10**6, 1e-6) == pytest.approx(21698.39824, rel=1e-9)


def test_failure_probabilities_are_one_in_the_horizon():
    assert multilayer_elimination(num_arms=3, horizon=50).params == pytest.approx(
        multilayer_elimination(num_arms=3, horizon=50, failure_prob=0.02).params
    )
    assert barbar(num_arms=3, horizon=50).params == barbar(num_arms=3, horizon=50, failure_prob=0.02).params


@pytest.mark.parametrize("layers", [1, 3, 10, 31])
def test_layers_are_drawn_as_often_as_they_should(layers):
    n = 1 << 17
    drawn = np.bincount(layers_of(NumpyDraws(3, "alg/act/layer").bits(np.arange(n)), layers), minlength=layers + 1)
    assert drawn[0] == 0 and len(drawn) == layers + 1
    p = np.array(reference.layer_probabilities(layers))
    assert np.all(np.abs(drawn[1:] - n * p) <= 4.5 * np.sqrt(n * p * (1 - p)) + 1)
    # the words that are no layer's: the first of them all, and the last of the topmost layer
    edge = np.array([0, 2**32 - 1, 2 ** (32 - layers), 2 ** (32 - layers) - 1], np.uint32)
    assert layers_of(edge, layers).tolist() == [1, 1, layers, 1]


def test_gaps_of_two_epochs():
    following = uncompiled(next_gaps)
    with jax.enable_x64(True):
        gaps, expected = np.ones(4), np.array([3.0, 5.0, 7.0, 9.0])
        for m, r, best, want in (
            (1, (0.8, 0.6, 0.5, 0.3), 0.7375, (0.5, 0.5, 0.5, 0.5)),
            (2, (0.82, 0.58, 0.5, 0.31), 0.78875, (0.25, 0.25, 0.28875, 0.47875)),
        ):
            after, top = reference.next_gaps(gaps.tolist(), r, m)
            assert top == pytest.approx(best) and after == pytest.approx(want)
            gaps = following(gaps, np.array(r) * expected, expected, np.float64(2.0**-m))
            np.testing.assert_allclose(gaps, want, rtol=1e-14)
        # a mean is at most 1
        np.testing.assert_allclose(following(np.ones(2), np.array([9.0, 0.0]), np.ones(2), 0.5), [0.5, 0.9375])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_rewards_follow_the_recursion_of_the_gaps(dtype):
    constant, slots, seed = np.array([0.9, 0.6, 0.5, 0.1], dtype), 64, 2
    algorithm = barbar(num_arms=4, horizon=5000, failure_prob=0.05, length_scale=1 / 4096)
    program, found = algorithm.program, []
    with jax.enable_x64(dtype == np.float64):
        root = Draws(np.uint32(seed), "alg", dtype)
        params = jax.tree.map(dtype, algorithm.params)

        @uncompiled
        def window(state, before):
            place = np.arange(slots, dtype=np.int32)
            action, used, note = program.act(params, state, root.child("act"), before + 1 + place, ())
            report = Report(jax.numpy.asarray(constant)[action], action, place < used)
            return program.update(params, state, root.child("update"), before + used, note, report, used)[0], used

        state, before = uncompiled(lambda: program.init(params, root.child("init")))(), np.int32(0)
        while before < 5000:
            if not found or float(state.least_gap) != found[-1][2]:
                found.append((state.gaps, int(state.left), float(state.least_gap)))
            state, used = window(state, before)
            before = before + used
    uniform = NumpyDraws(seed, "alg/act/arm", dtype).uniform(np.arange(6000)).astype(np.float64)
    _, epochs = reference.barbar(
        lambda t, arm: constant[arm], lambda t: uniform[t], num_arms=4, horizon=5000, failure_prob=0.05,
        length_scale=1 / 4096,
    )  # fmt: skip
    assert len(epochs) >= 5
    scale = float(algorithm.params.pulls_scale)
    for (gaps, length, least), (want, N) in zip(found, epochs, strict=False):
        np.testing.assert_allclose(
            gaps, want, rtol=1e-9 if dtype == np.float64 else 2e-3
        )  # float32: a draw at an edge may differ
        assert length == N or (dtype == np.float32 and abs(length - N) <= 0.01 * N)
        if dtype == np.float64:
            assert length == math.ceil(np.sum(scale / gaps**2))
        assert np.min(gaps) == least * 2  # the arm that names r* has the least gap


def start_of(algorithm):
    return uncompiled(lambda params: algorithm.program.init(params, Draws(np.uint32(0), "alg/init")))(algorithm.params)


def test_the_first_epoch_is_rounded_up():
    assert int(start_of(barbar(num_arms=4, horizon=20_000, failure_prob=0.05)).left) == 37_360


def test_sums_by_arm_are_exact_for_few_arms_and_for_many():
    rng = np.random.default_rng(0)
    value = rng.integers(0, 2**23 + 1, 128) * 2.0**-23
    for arms in (3, 50):
        arm = rng.integers(0, arms, 128)
        total = uncompiled(lambda arms=arms: integer_sums.nothing(np.float32, (arms,)))()
        added = uncompiled(integer_sums.add_by_arm)
        for _ in range(3):
            total = added(total, value.astype(np.float32), np.float32(1), arm.astype(np.int32))
        want = 3 * np.bincount(arm, value, arms)
        np.testing.assert_array_equal(total.high.astype(np.float64) + total.low * 2.0**-23, want)


def test_the_shares_of_an_epoch_are_the_printed_ones():
    """Epoch 2 of one setting, given its gaps: an arm is drawn with probability n_a over their sum."""
    algorithm = barbar(num_arms=3, horizon=10_000, length_scale=1.0)
    state = start_of(algorithm)._replace(gaps=np.array([0.5, 0.6, 1.0], np.float32))
    draws, t = Draws(np.uint32(4), "alg/act"), np.arange(1, 40_001, dtype=np.int32)
    action, _, _ = uncompiled(lambda state, t: algorithm.program.act(algorithm.params, state, draws, t, ()))(state, t)
    p = np.array([4, 1 / 0.36, 1]) / (5 + 1 / 0.36)
    assert np.all(np.abs(np.bincount(action, minlength=3) - 40_000 * p) <= 4 * np.sqrt(40_000 * p * (1 - p)))


@pytest.mark.parametrize("name", dealt(["race", "barbar"], 8))
def test_regrets_are_those_of_the_transcription_with_draws_of_its_own(name):
    factory, arguments = CASES[name]
    swept = partial(factory, **arguments)
    found = jb.sweep(swept, ARMS, horizon=400, seeds=400, checkpoints=1, progress=False).regret.values.ravel()
    rng, own = np.random.default_rng(1), []
    p = reference.layer_probabilities(reference.number_of_layers(400))
    for _ in range(200):
        paid = rng.random((401, K)) < W
        layers, uniform = rng.choice(len(p), 401, p=p) + 1, rng.random(401)
        draw = (lambda t, u=uniform: u[t]) if factory is barbar else (lambda t, l=layers: l[t])
        run = getattr(reference, factory.__name__)
        actions, _ = run(lambda t, arm, x=paid: x[t, arm], draw, num_arms=K, horizon=400, **arguments)
        own.append(np.sum(W[0] - np.array(W)[actions]))
    assert apart(found, own) <= 4


OTHERS = {
    "barbar, short": (partial(barbar, length_scale=1 / 256), 128, 1436.8, 8.5),
    "barbar": (barbar, 64, 4999.6, 1.0),
    "race": (partial(multilayer_elimination, width_scale=0.5), 64, 1404.1, 4.4),
}


@pytest.mark.parametrize("name", dealt(OTHERS, 3, always=["barbar, short"]))
def test_regrets_are_those_of_a_transcription_of_others(name):
    factory, seeds, mean, error = OTHERS[name]
    run = partial(factory, failure_prob=0.05)
    found = jb.sweep(run, ARMS, horizon=20_000, seeds=seeds, checkpoints=1, progress=False).regret.values.ravel()
    assert abs(found.mean() - mean) <= 4 * math.hypot(error, found.std(ddof=1) / math.sqrt(seeds))


@pytest.mark.parametrize("name", dealt(["race", "barbar, tiny"], 2, always=["race"]))
def test_many_arms_have_the_literal_path(name, monkeypatch):
    """More arms than are written out as scalars."""
    monkeypatch.setattr(f"{__name__}.K", 40)
    arms = partial(jb.environments.bernoulli_arms, means=np.linspace(0.0, 1.0, 40).tolist())
    run = run_of(name, 1, arms)
    np.testing.assert_array_equal(run.history.action, literal(name, run.history, 1)[0])
