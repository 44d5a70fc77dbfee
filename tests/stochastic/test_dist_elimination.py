"""Secure aggregation: paths, integers, the law of the noise, its price, regret, limits and refusals."""

import functools
import math
from functools import partial

import numpy as np
import pytest
from against_reference import exact_draw
from planting import errors, planted
from plays import silent, watched
from reference import private_robust_rivals as rivals
from scipy import stats
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.algorithms import dist_elimination as dist
from jaxbandits.algorithms.stochastic.dist_elimination import skellam, two_sided_geometric

EASY = [0.75, 0.625, 0.5, 0.375, 0.25]
T = 3000
CASES = {
    "laplace": {"epsilon": 0.7, "radius_scale": 0.4},
    "skellam": {
        "epsilon": 1.5,
        "noise": "skellam",
        "s": 3.0,
        "radius_scale": 0.3,
        "failure": 0.2,
    },
    # a margin that noise leaves now and then, so that sums wrap around
    "wraps": {"epsilon": 0.2, "radius_scale": 0.05, "failure": 0.99},
}
NAMES = {"s": "precision_scale", "failure": "failure_prob"}
bernoulli = partial(jb.environments.bernoulli_arms, means=EASY)
between = partial(jb.environments.gaussian_arms, means=EASY, scale=0.3)  # rewards that are rounded at random


def made(case):
    given = {NAMES.get(name, name): value for name, value in CASES[case].items()}
    return dist(num_arms=5, horizon=T, calibration="paper", **given)


@functools.cache
def run_of(case, seed):
    return watched(made(case), between(), seed).history


def literal(case, history, seed, reference=rivals):
    pay = lambda t, arm: float(history.reward[t - 1]) if history.action[t - 1] == arm else 0.0
    at = lambda path, law: exact_draw(seed, f"alg/{path}", law, np.arange(T + 1))
    uniform = at("encode/round", "uniform")
    plus = at("update/plus", "exponential")
    minus = at("update/minus", "exponential")
    normal = at("update/noise", "normal")

    def drawn(t, spread):
        if case != "skellam":
            return math.floor(spread * plus[t]) - math.floor(spread * minus[t])
        z, variance = normal[t], spread * spread
        return round(math.sqrt(variance - 1 / 12) * (z + (z**3 - 3 * z) / (24 * variance)))

    return reference.dist_elimination(pay, lambda t: uniform[t], drawn, num_arms=5, horizon=T, **CASES[case])


def told(history):
    values = np.asarray(history.released)
    return values[~np.isnan(values)]


@pytest.mark.parametrize("case", CASES)
def test_paths_and_means_are_the_literal_ones(case):
    for seed in range(3):
        history = run_of(case, seed)
        actions, released = literal(case, history, seed)
        np.testing.assert_array_equal(history.action, actions)
        np.testing.assert_allclose(told(history), [value for _, _, value in released], atol=1e-9)
        assert ((history.reward > 0.01) & (history.reward < 0.99)).mean() > 0.5


@pytest.mark.parametrize("error", errors([
    ("y > n * g + tau", "y > n * g + 2 * tau"), ("math.ceil(epsilon * math.sqrt(n))", "math.ceil(epsilon * n)"),
    ("means[a] + beta >=", "means[a] >="), ("n, b, means = 2 * n", "n, b, means = 3 * n"),
    ("math.log(4 * k * b * b / failure)", "math.log(4 * k / failure)"), ("< y * g - math", "< 0.5 * y * g - math"),
], rivals))  # fmt: skip
def test_planted_errors_fork_the_path(error):
    wrong = planted(*error)

    def differs(case, seed):
        history = run_of(case, seed)
        actions, released = literal(case, history, seed, wrong)
        values = np.array([value for _, _, value in released])
        alike = values.shape == told(history).shape and np.allclose(values, told(history))
        return not alike or (history.action != actions).any()

    assert any(differs(case, seed) for seed in range(4) for case in ("laplace", "wraps"))


def test_numbers_are_the_specified_ones():
    made = partial(dist, num_arms=5, horizon=100_000, epsilon=0.5, failure_prob=0.1)
    laplace, poisson = made().params, made(noise="skellam", calibration="paper").params
    assert [int(x[9]) for x in (laplace.levels, laplace.margin, laplace.modulus)] == [16, 96, 16577]
    assert [int(x[9]) for x in (poisson.levels, poisson.margin, poisson.modulus)] == [160, 1112, 166065]
    wide = dist(num_arms=5, horizon=100_000, epsilon=0.5, failure_prob=0.1)
    # batch 3 with 1,024 plays is no batch: its radius from its parts
    assert rivals.modular_radius(1024, 3, 5, 0.5, "laplace", 0.1) == pytest.approx(0.080987341, rel=1e-7)
    assert wide.params.slack[2, 4] == pytest.approx(2 * rivals.modular_radius(8, 3, 5, 0.5, "laplace", 0.1))
    levels = lambda horizon: dist(num_arms=2, horizon=horizon, epsilon=50.0).params.levels[:3].tolist()
    assert levels(8) == [math.ceil(50 * 2**0.5), 100, 1]  # 2 + 2 plays, then 4 of arm 0 that end at play 8
    assert levels(7) == [71, 1, 1]
    assert poisson.slack[4, 1] == pytest.approx(2 * rivals.modular_radius(32, 5, 2, 0.5, "skellam", 0.1))


def test_the_laplace_noise_has_the_specified_law():
    random, spread, runs = np.random.default_rng(2), 16 / 0.5, 400_000
    plus, minus = (random.exponential(size=runs).astype(np.float32) for _ in range(2))
    geometric = uncompiled(two_sided_geometric)
    drawn = geometric(spread, plus, minus)
    q = math.exp(-1 / spread)
    for z in (0, 1, -1, 20, -50):
        p = (1 - q) / (1 + q) * q ** abs(z)
        assert abs((drawn == z).mean() - p) < 5 * math.sqrt(p / runs)
    assert not geometric(0.0, plus, minus).any()


@pytest.mark.parametrize(("variance", "most"), [(8.0, 7e-4), (200.0, 1.1e-6), (2e5, 1e-9)])
def test_the_skellam_noise_is_that_close_to_its_law(variance, most):
    z = np.linspace(-8, 8, 2_000_001)
    reach = math.sqrt(variance - 1 / 12) * (z + (z**3 - 3 * z) / (24 * variance))
    k = np.arange(-math.ceil(11 * math.sqrt(variance)), math.ceil(11 * math.sqrt(variance)) + 1)
    edges = np.interp(np.append(k - 0.5, k[-1] + 0.5), reach, z)
    distance = np.abs(np.diff(stats.norm.cdf(edges)) - stats.skellam.pmf(k, variance / 2, variance / 2)).sum() / 2
    assert distance < most
    normal = np.array([-3.0, -1.0, 0.2, 1.7, 4.0], np.float32)
    expected = np.round(np.interp(normal, z, reach))
    np.testing.assert_array_equal(uncompiled(skellam)(variance, normal), expected)
    assert not uncompiled(skellam)(0.0, normal).any()


def test_what_skellam_noise_costs():
    assert theory.skellam_rdp(8, 1.0, 10.0) == pytest.approx(4.039)
    # the exact divergence of the law of a block, at some n >= 2, is never above
    for epsilon, s, n in ((0.1, 1.0, 2), (0.1, 10.0, 2), (1.0, 2.0, 8), (2.0, 10.0, 2)):
        g = math.ceil(s * epsilon * math.sqrt(n))
        mean = g * g / (2 * epsilon**2)
        k = np.arange(-int(40 * math.sqrt(mean)) - g, int(40 * math.sqrt(mean)) + g + 1)
        own, other = stats.skellam.logpmf(k, mean, mean), stats.skellam.logpmf(k - g, mean, mean)
        fine = np.isfinite(own) & np.isfinite(other)
        for order in (2, 5, 16):
            exact = math.log(np.exp(order * own[fine] + (1 - order) * other[fine]).sum()) / (order - 1)
            assert exact <= theory.skellam_rdp(order, epsilon, s)
    made = partial(dist, num_arms=2, horizon=100, epsilon=1.0, noise="skellam", delta=1e-6)
    printed = made(calibration="paper")
    assert printed.guarantee.spend(printed.params) == (theory.skellam_epsilon(1.0, 10.0, 1e-6), 1e-6)
    half = printed.params._replace(mechanism_scale=0.5)
    assert printed.guarantee.spend(half) == (theory.skellam_epsilon(2.0, 5.0, 1e-6), 1e-6)
    for asked in (0.2, 1.0, 10.0, 100.0):
        exact = made(epsilon=asked)
        assert asked * (1 - 1e-6) < exact.guarantee.spend(exact.params)[0] <= asked
    with pytest.raises(ValueError, match=r"epsilon = 0.003: at delta = 1e-06 Skellam noise is known to spend"):
        made(epsilon=0.003)


@pytest.mark.dealt(3)
def test_regret_is_the_specified_one():
    found = jb.sweep(partial(dist, epsilon=0.5), bernoulli, horizon=50_000, seeds=64, checkpoints=1, progress=False)
    regret = np.asarray(found.regret)[..., -1].ravel()
    assert abs(regret.mean() - 3479) < 4 * math.hypot(regret.std() / 8, 30)


def test_without_noise_a_mean_is_that_of_the_rounded_rewards():
    algorithm = silent(made("laplace"))
    bits = jb.environments.gaussian_arms(means=[1.0, 0.0, 1.0, 0.0, 1.0], scale=0.0)
    history = watched(algorithm, bits, 3).history
    start = 0
    for place, value in enumerate(told(history)[:10]):
        n = 2 ** (1 + place // 5)
        assert value == pytest.approx(history.reward[start : start + n].mean(), abs=1e-12)
        start += n
    assert algorithm.guarantee.spend(algorithm.params) == (math.inf, 0.0)
    poisson = silent(made("skellam"))
    assert poisson.guarantee.spend(poisson.params)[0] == math.inf


def test_a_report_counts_for_one_and_a_horizon_whose_blocks_fit_is_taken():
    attack = jb.adversaries.huber(corruption=1.0, kind="fixed", value="inf")
    run = watched(dist(num_arms=2, horizon=300, epsilon=50.0), bernoulli(means=[0.1, 0.2]), message_adversary=attack)
    assert np.allclose(told(run.history), 1.0, atol=0.1)
    dist(num_arms=2, horizon=3 * 2**20 - 5, epsilon=0.9)
