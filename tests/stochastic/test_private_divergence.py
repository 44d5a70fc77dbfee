"""DP-KLUCB and DP-IMED: their divergence against searches, literal paths, laws, lower bounds, bad arguments."""

import math
from functools import partial

import jax
import numpy as np
import pytest
from against_reference import exact_draw
from dealt import dealt
from planting import errors, planted
from plays import silent, watched
from reference import private_divergence as reference
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.algorithms import dp_imed, dp_klucb
from jaxbandits.algorithms.stochastic import private_divergence as fast
from jaxbandits.algorithms.stochastic.dp_klucb import targets

EASY, HARD = [0.75, 0.625, 0.5, 0.375, 0.25], [0.75, 0.7, 0.7, 0.7, 0.7]
K, T = 5, 700
ARMS = partial(jb.environments.bernoulli_arms, means=EASY)
LEVELS = [0.01, 0.3, 1.0, 5.0, 30.0, math.inf]
MEANS = [0.0, 1e-3, 0.2, 0.5, 0.7, 0.95, 1.0]


divergence, upper_index, counted_divergence, counted_upper_index = map(
    uncompiled, (fast.divergence, fast.upper_index, fast.divergence_with_noises, fast.upper_index_with_noises)
)


def single(*x):
    return [np.float32(value) for value in x]


def double(*x):
    return [np.float64(value) for value in x]


@pytest.mark.parametrize("epsilon", LEVELS)
def test_the_divergence_is_what_a_search_finds(epsilon):
    for x in MEANS:
        for y in MEANS:
            exact = theory.private_kl_divergence(x, y, epsilon)
            assert exact == pytest.approx(reference.d_eps(x, y, epsilon), rel=1e-12, abs=1e-15)
            if math.isfinite(epsilon):
                assert exact <= reference.searched(x, y, epsilon) + 1e-12
                assert exact == pytest.approx(reference.searched(x, y, epsilon), rel=1e-4, abs=1e-8)
                assert exact <= min(reference.kl(x, y), epsilon * abs(x - y)) + 1e-12
            if x < y < 1:
                found = divergence(*single(x, y, min(epsilon, fast.UNBOUNDED)))
                assert float(found) == pytest.approx(exact, rel=2e-3, abs=2e-6)


def test_values_of_others():
    for x, y, epsilon, want in (
        (0.3, 0.7, 0.5, 0.172174886), (0.3, 0.7, 5, 0.338919144), (0.9, 0.2, 0.25, 0.169749716), (0.5, 1, 2, 1)
    ):  # fmt: skip
        assert theory.private_kl_divergence(x, y, epsilon) == pytest.approx(want, abs=5e-10)
    assert theory.private_kl_lower_bound(EASY, 0.1) == pytest.approx(41.676725846, rel=1e-9)
    assert theory.private_kl_lower_bound(HARD, 0.5) == pytest.approx(31.242887375, rel=1e-9)
    assert theory.private_bandit_lower_bound(EASY, 0.1) == pytest.approx(8.352337097, rel=1e-9)
    assert theory.private_minimax_lower_bound(5, 100_000, 0.1) == pytest.approx(23.424278964, rel=1e-9)
    with jax.enable_x64(True):
        as_mean = lambda index: -math.expm1(-float(index))
        assert as_mean(upper_index(*double(0.3, 0.5, 1))) == pytest.approx(0.871148752, abs=1e-8)
        assert as_mean(upper_index(*double(0.97, 0.001, 20))) == pytest.approx(0.977012083, abs=1e-8)
        assert float(counted_divergence(*double(0.3, 0.7, 50, 6, 0.5))) == pytest.approx(2.941830574, abs=1e-8)
        found = counted_upper_index(*double(0.3, 5 / 50, 50, 1, 0.5))
        assert as_mean(found) == pytest.approx(0.645927655, abs=1e-8)


@pytest.mark.parametrize("means", [EASY, HARD, [0.2, 1.0, 0.0], [0.5, 0.5]])
@pytest.mark.parametrize("epsilon", LEVELS)
def test_the_new_lower_bound_is_above_the_old_one(means, epsilon):
    new, old = theory.private_kl_lower_bound(means, epsilon), theory.private_bandit_lower_bound(means, epsilon)
    assert new >= old * (1 - 1e-12)
    assert theory.dp_index_bound(means, epsilon, 1.5) == pytest.approx(1.5 * new)
    if means == [0.5, 0.5]:
        assert new == 0


@pytest.mark.parametrize("epsilon", LEVELS)
def test_the_upper_index_is_what_bisection_finds(epsilon):
    for p in MEANS:
        for level in (1e-3, 0.05, 0.5, 3.0, 20.0):
            want = reference.upper(p, level, epsilon)
            with jax.enable_x64(True):
                exact = upper_index(*double(p, level, min(epsilon, 1e20)))
            found = upper_index(*single(p, level, min(epsilon, 1e20)))
            if want > 30:  # 1 - q is below what a search in q can tell
                assert min(float(found), float(exact)) > 14
                continue
            assert float(exact) == pytest.approx(want, rel=1e-6, abs=1e-12)
            assert -math.expm1(-float(found)) == pytest.approx(-math.expm1(-want), abs=2e-5)
    if math.isinf(epsilon):
        with jax.enable_x64(True):
            for p, level in ((0.3, 0.1), (0.0, 0.5), (0.9, 0.02)):
                found = counted_upper_index(*double(p, level, 50, 3, fast.UNBOUNDED))
                assert float(found) == pytest.approx(reference.upper(p, level, epsilon), rel=1e-6)


def test_counted_noises_are_what_a_search_finds_and_the_inverse_of_each_other():
    with jax.enable_x64(True):
        for p, q, n, m, epsilon in ((0.3, 0.7, 50, 6, 0.5), (0.1, 0.2, 400, 9, 0.1), (0.0, 0.4, 30, 2, 3.0)):
            found = float(counted_divergence(*double(p, q, n, m, epsilon)))
            assert found == pytest.approx(reference.counted(p, q, n, m, epsilon), rel=1e-4, abs=1e-6)
            back = counted_upper_index(*double(p, found / n, n, m, epsilon))
            assert -math.expm1(-float(back)) == pytest.approx(q, abs=1e-6)
            sure = counted_divergence(*single(0.9, 1.0, n, m, 30.0))
            assert float(sure) == pytest.approx(reference.counted(0.9, 1.0, n, m, 30.0), rel=1e-3)
            none = float(counted_divergence(*double(p, q, n, 0, epsilon)))
            assert none == pytest.approx(n * theory.private_kl_divergence(p, q, epsilon), rel=1e-6)
            assert float(counted_divergence(*double(p, q, n, m, 1e20))) == pytest.approx(n * reference.kl(p, q))


def test_the_chance_to_look_that_far_below_is_covered():
    """P(p < mu and D_m(p, mu; n) >= z) <= e^-z; the index without the noises' number does not keep it."""
    rng, mu, n, m, epsilon, z = np.random.default_rng(0), 0.5, 100, 8, 0.5, 4.0
    p = (rng.binomial(n, mu, 4000) + rng.laplace(scale=1 / epsilon, size=(4000, m)).sum(1)) / n
    p = np.clip(p, 0, 1)
    share = lambda far: np.mean([x < mu and far(x) >= z for x in p])
    assert share(lambda x: reference.counted(x, mu, n, m, epsilon, 400)) <= math.exp(-z)
    assert share(lambda x: n * reference.d_eps(x, mu, epsilon)) > 2 * math.exp(-z)


def test_targets_are_integers_of_the_printed_rule():
    assert targets(60, 1.5, 1)[:10].tolist() == [1, 2, 3, 5, 8, 12, 18, 27, 41, 62]
    for ratio, first in ((1.01, 1), (1.25, 7), (2.0, 1), (3.0, 2)):
        table = targets(5000, ratio, first)
        assert table[: np.sum(table <= 5000)].tolist() == [n for n in reference.targets(ratio, first, 600) if n <= 5000]
        assert len(table) >= 64 and len(table) & (len(table) - 1) == 0
    n, exact = 10, []  # in integers: 1.1 times 170 is 187.00000000000003 in floating point
    while n <= 1000:
        exact.append(n)
        n = max(n + 1, -(-11 * n // 10))
    assert targets(1000, 1.1, 10)[: len(exact)].tolist() == exact


CASES = {
    "dp_klucb": (dp_klucb, {"epsilon": 1.0}),
    "dp_klucb, often": (dp_klucb, {"epsilon": 8.0, "batch_ratio": 1.2, "first_batch": 3}),
    "dp_klucb, no noise": (dp_klucb, {"epsilon": math.inf, "batch_ratio": 1.5}),
    "dp_klucb, coupled": (dp_klucb, {"epsilon": 2.0, "batch_ratio": 1.25, "index": "coupled"}),
    "dp_imed": (dp_imed, {"epsilon": 1.0}),
    "dp_imed, often": (dp_imed, {"epsilon": 8.0, "batch_ratio": 1.2, "first_batch": 3}),
    "dp_imed, no noise": (dp_imed, {"epsilon": math.inf, "batch_ratio": 1.5}),
    "dp_imed, coupled": (dp_imed, {"epsilon": 2.0, "batch_ratio": 1.25, "index": "coupled"}),
}


def run_of(name, seed):
    factory, arguments = CASES[name]
    return watched(factory(num_arms=K, horizon=T, **arguments), ARMS(), seed).history


def literal(name, history, seed, loops=reference):
    """The literal path on the draws of a run; a path that leaves the run's is not paid from there on."""
    factory, arguments = CASES[name]
    pay = lambda t, arm: float(history.reward[t - 1]) if history.action[t - 1] == arm else 0.0
    laplace = exact_draw(seed, "alg/update/mean", "laplace", np.arange(T + 1))
    return getattr(loops, factory.__name__)(pay, lambda t: laplace[t], num_arms=K, horizon=T, **arguments)


FEW = ["dp_klucb, no noise", "dp_imed, often", "dp_imed, no noise"]


@pytest.mark.parametrize("name", dealt(CASES, 4, always=[name for name in CASES if name not in FEW]))
def test_paths_and_releases_are_the_literal_ones(name):
    for seed in range(1 if "coupled" in name else 3):  # its literal loop is slow
        history = run_of(name, seed)
        actions, released = literal(name, history, seed)
        np.testing.assert_array_equal(history.action, actions)
        values = np.asarray(history.released)
        np.testing.assert_allclose(values[~np.isnan(values)], [value for _, _, value in released], atol=1e-9)


@pytest.mark.parametrize(("name", "error"), errors([
    ("dp_klucb", "n, m, t + 1)", "n, m, t + 50)"), ("dp_klucb", "math.log(t) / n[a]", "2 * math.log(t) / n[a]"),
    ("dp_klucb", "S[arm] + noisy", "noisy"), ("dp_klucb, often", "math.ceil(ratio", "math.floor(ratio"),
    ("dp_imed", "+ math.log(n[a])", ""), ("dp_imed", "epsilon * (z - x)", "2 * epsilon * (z - x)"),
    ("dp_imed, coupled", "m * np.log1p(", "2 * m * np.log1p("),
    ("dp_klucb, coupled", "n[a], m[a], epsilon), 50", "n[a], 0, epsilon), 50"),
], reference))  # fmt: skip
def test_planted_errors_fork_the_path(name, error):
    wrong = planted(*error)
    runs = ((seed, run_of(name, seed)) for seed in range(12))
    assert any(not np.array_equal(h.action, literal(name, h, seed, wrong)[0]) for seed, h in runs)


@pytest.mark.parametrize(("factory", "pulls"), [(dp_klucb, [18, 1981, 1]), (dp_imed, [12, 1976, 12])])
def test_pulls_without_noise_are_exact(factory, pulls):
    """Numbers of another transcription for the literal loops, and what the fast code does without noise."""
    loop, pay, nothing = getattr(reference, factory.__name__), lambda t, arm: float(arm == 1), lambda t: 0.0
    actions, _ = loop(pay, nothing, num_arms=3, horizon=2000, epsilon=0.5, batch_ratio=1.5)
    assert np.bincount(actions).tolist() == pulls
    want, _ = loop(pay, nothing, num_arms=K, horizon=T, epsilon=0.5, batch_ratio=1.5)
    algorithm = silent(factory(num_arms=K, horizon=T, epsilon=0.5, batch_ratio=1.5))
    found = watched(algorithm, jb.environments.bernoulli_arms(means=[0.0, 1.0, 0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(found.history.action, want)


OTHERS = {
    "dp_klucb": (partial(dp_klucb, epsilon=1.0), 20_000, 103.75, 3.28),
    "dp_imed": (partial(dp_imed, epsilon=0.5, batch_ratio=1.5, first_batch=20), 50_000, 97.34, 1.77),
    "dp_imed, coupled": (partial(dp_imed, epsilon=0.5, batch_ratio=1.25, index="coupled"), 20_000, 200.7, 2.4),
}


@pytest.mark.parametrize("name", dealt(OTHERS, 6))
def test_regrets_are_those_of_a_transcription_of_others(name):
    factory, horizon, mean, error = OTHERS[name]
    found = jb.sweep(factory, ARMS, horizon=horizon, seeds=64, checkpoints=1, progress=False).regret.values.ravel()
    assert abs(found.mean() - mean) <= 4 * math.hypot(error, found.std(ddof=1) / 8)


def test_each_reward_enters_one_release():
    for factory in (dp_klucb, dp_imed):
        algorithm = factory(num_arms=3, horizon=100, epsilon=0.7)
        assert algorithm.guarantee.spend(algorithm.params) == (pytest.approx(0.7), 0.0)
        half = algorithm.params._replace(mechanism_scale=0.5)
        assert algorithm.guarantee.spend(half)[0] == pytest.approx(1.4)


@pytest.mark.parametrize("make", [jb.algorithms.dp_imed, jb.algorithms.dp_klucb])
def test_a_budget_beyond_what_the_search_resolves_is_none(make):
    """From 1e9 on the search over shares of epsilon misses the best rate, of order 1; from 1e11 on D would be 0."""
    known = {
        epsilon: make(num_arms=2, horizon=100, epsilon=epsilon, index="coupled").params for epsilon in (1e8, 1e9, 1e12)
    }
    unbounded = make(num_arms=2, horizon=100, epsilon=float("inf"), index="coupled").params.epsilon
    assert [known[x].epsilon for x in (1e8, 1e9, 1e12)] == [1e8, unbounded, unbounded]
    assert known[1e9].noise_scale == 1e-9  # the noise is that of the budget
