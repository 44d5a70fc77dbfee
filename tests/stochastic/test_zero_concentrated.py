"""Zero-concentrated privacy: AdaC-UCB's paths and numbers, its bound, and what its releases cost."""

import math
from functools import partial

import numpy as np
import pytest
from against_reference import exact_draw
from planting import errors, planted
from plays import silent, watched
from reference import private_robust_rivals as rivals

import jaxbandits as jb
from jaxbandits import mechanisms, theory
from jaxbandits.algorithms import adac_ucb, adap_ucb

EASY = [0.75, 0.625, 0.5, 0.375, 0.25]
T = 700
CASES = {"rho 0.1": {"rho": 0.1}, "rho 2, narrow": {"rho": 2.0, "index_scale": 0.5}, "no noise": {"rho": math.inf}}


def run_of(case, seed):
    algorithm = adac_ucb(num_arms=5, horizon=T, **CASES[case])
    return watched(algorithm, jb.environments.bernoulli_arms(means=EASY), seed).history


def literal(case, history, seed, reference=rivals):
    """The literal path on the draws of a run; a path that leaves the run's is not paid from there on."""
    pay = lambda t, arm: float(history.reward[t - 1]) if history.action[t - 1] == arm else 0.0
    normal = exact_draw(seed, "alg/update/mean", "normal", np.arange(T + 1))
    return reference.adac_ucb(pay, lambda t: normal[t], num_arms=5, horizon=T, **CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_paths_and_releases_are_the_literal_ones(case):
    for seed in range(3):
        history = run_of(case, seed)
        actions, released = literal(case, history, seed)
        np.testing.assert_array_equal(history.action, actions)
        values = np.asarray(history.released)
        np.testing.assert_allclose(values[~np.isnan(values)], [value for _, _, value in released], atol=1e-9)


@pytest.mark.parametrize("error", errors([
    ("scaled(1 / n**2, rho)", "scaled(1 / n, rho)"), ("math.sqrt(scaled(1 / 2, rho))", "scaled(1 / 2, rho)"),
    ("t + 1, rho", "t, rho"), ("length = total[arm]", "length = 2 * total[arm]"),
], rivals))  # fmt: skip
def test_planted_errors_fork_the_path(error):
    wrong = planted(*error)
    runs = ((case, seed, run_of(case, seed)) for case in ("rho 0.1", "rho 2, narrow") for seed in range(20))
    assert any(not np.array_equal(h.action, literal(case, h, seed, wrong)[0]) for case, seed, h in runs)


def test_pulls_without_noise_are_exact():
    """Numbers of another transcription for the literal loop, and what the fast code does without noise."""
    loop, pay, nothing = rivals.adac_ucb, lambda t, arm: float(arm % 2 == 0), lambda t: 0.0
    actions, _ = loop(pay, nothing, num_arms=3, horizon=3000, rho=0.1)
    assert np.bincount(actions).tolist() == [1912, 64, 1024]
    want, _ = loop(pay, nothing, num_arms=5, horizon=T, rho=0.1)
    bits = jb.environments.bernoulli_arms(means=[1.0, 0.0, 1.0, 0.0, 1.0])
    found = watched(silent(adac_ucb(num_arms=5, horizon=T, rho=0.1)), bits)
    np.testing.assert_array_equal(found.history.action, want)


def test_without_privacy_it_is_the_purely_private_one():
    arms = jb.environments.bernoulli_arms(means=EASY)
    for seed in range(3):
        pure = watched(adap_ucb(num_arms=5, horizon=T, epsilon=math.inf), arms, seed)
        np.testing.assert_array_equal(pure.history.action, run_of("no noise", seed).action)


def test_the_bound_and_the_width():
    assert theory.adac_ucb_bound(EASY, 100_000, 0.1) == pytest.approx(5363.213951914, rel=1e-9)
    assert rivals.adac_index(0.0, 8, 100, 0.1, 3.1) == pytest.approx(1.767167517, rel=1e-9)
    assert theory.adac_ucb_bound([0.5, 0.5], 1000, 1.0) == 0
    without = theory.adac_ucb_bound(EASY, 1000, math.inf)
    assert without == pytest.approx(8 * 3.1 * math.log(1000) * sum(1 / gap for gap in (0.125, 0.25, 0.375, 0.5)))


@pytest.mark.dealt(3)
def test_regret_at_the_published_instance_is_the_transcriptions():
    """646.2 +- 4.1 by a transcription nobody here wrote; four standard errors of both."""
    arms = partial(jb.environments.bernoulli_arms, means=EASY)
    found = jb.sweep(partial(adac_ucb, rho=0.1), arms, horizon=50_000, seeds=64, checkpoints=1, progress=False)
    regret = found.regret.values.ravel()
    assert abs(regret.mean() - 646.2) <= 4 * math.hypot(4.1, regret.std(ddof=1) / math.sqrt(len(regret)))


@pytest.mark.parametrize("rho", [0.01, 0.1, 3.0])
def test_what_it_spends(rho):
    algorithm = adac_ucb(num_arms=2, horizon=100, rho=rho, delta=1e-6)
    events = algorithm.guarantee.events(algorithm.params)
    assert mechanisms.zcdp(events) == pytest.approx(rho, rel=1e-12)
    assert mechanisms.gdp(events) == pytest.approx(math.sqrt(2 * rho), rel=1e-12)
    exact = mechanisms.gaussian_epsilon(math.sqrt(2 * rho), 1.0, 1e-6)
    assert algorithm.guarantee.spend(algorithm.params) == (pytest.approx(exact, rel=1e-12), 1e-6)
    ledger = jb.privacy.ledger(algorithm)
    assert (ledger.rho, ledger.g) == (mechanisms.zcdp(events), mechanisms.gdp(events))
    assert f"rho of zCDP = {rho:.4g}" in repr(ledger)
    half = algorithm.params._replace(mechanism_scale=0.5)
    assert mechanisms.zcdp(algorithm.guarantee.events(half)) == pytest.approx(4 * rho)


def test_costs_of_several_releases():
    normal, pure = mechanisms.gaussian_event("sum", 1.0, 2.0, times=8), mechanisms.laplace_event("sum", 1.0, 2.0)
    assert mechanisms.gdp([normal]) == pytest.approx(math.sqrt(2))
    assert mechanisms.zcdp([normal, pure]) == pytest.approx(8 / 8 + 0.25 / 2)
    assert mechanisms.gdp([normal, pure]) == math.inf  # Laplace noise has no Gaussian privacy
    assert mechanisms.zcdp([mechanisms.other_event("binomial", "sum", 0.1, 1e-6)]) == math.inf
    assert mechanisms.zcdp([]) == mechanisms.gdp([]) == 0
    clean = mechanisms.gaussian_event("sum", 1.0, 0.0)
    assert mechanisms.zcdp([clean]) == mechanisms.gdp([clean]) == math.inf
