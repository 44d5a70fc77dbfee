"""Corruption before and after local privacy: paths, numbers, the estimator, regret, limits and refusals."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from numpy_draws import NumpyDraws
from planting import errors, planted
from plays import Lane, played
from reference import private_robust_rivals as rivals
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.algorithms import local_robust_elimination as local
from jaxbandits.algorithms.robust.local_robust_elimination import batch_rules
from jaxbandits.auditing import Edit
from jaxbandits.estimators import local_mean

WIDE = [0.9, 0.7, 0.5, 0.3, 0.1]
T = 1500
# the learner's arguments, and what the transcription calls them
CASES = {
    "bounded": {"epsilon": 4.0, "order": math.inf, "bound": 2.0},
    "clipped, corrupted": {"epsilon": 2.0, "order": 3.0, "bound": 0.9, "before": 0.01, "after": 0.3,
        "truncation": "clip"},
    "explicit": {"epsilon": math.inf, "order": math.inf, "radius": "explicit"},
    "explicit, moments": {"epsilon": 8.0, "order": 4.0, "bound": 0.9, "radius": "explicit", "truncation": "clip"},
}  # fmt: skip
NAMES = {"order": "moment_order", "bound": "moment_bound", "before": "corruption_before", "after": "corruption_after"}
bernoulli = partial(jb.environments.bernoulli_arms, means=WIDE)


@cache
def runs_of(case, seeds=10):
    """Histories by seed."""
    arguments = {NAMES.get(name, name): value for name, value in CASES[case].items()}
    algorithm = local(num_arms=5, horizon=T, **arguments)
    lanes = [Lane(seed, algorithm, bernoulli()) for seed in range(seeds)]
    return [run.history for run in played(lanes, checkpoints=1)]


def literal(case, history, seed, reference=rivals):
    pay = lambda t, arm: float(history.reward[t - 1]) if history.action[t - 1] == arm else 0.0
    uniform = NumpyDraws(seed, "alg/encode/bit").uniform(np.arange(T + 1))
    return reference.local_robust_elimination(pay, lambda t: uniform[t], num_arms=5, horizon=T, **CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_paths_and_estimates_are_the_literal_ones(case):
    for seed, history in enumerate(runs_of(case)[:3]):
        actions, released = literal(case, history, seed)
        np.testing.assert_array_equal(history.action, actions)
        values = np.asarray(history.released)
        np.testing.assert_allclose(values[~np.isnan(values)], [value for _, _, value in released], atol=1e-9)


@pytest.mark.parametrize("error", errors([
    ("0.75 * (c", "0.6 * (c"), ("1 / 2 + x / (2 * c * level)", "1 / 2 + x / (2 * level)"),
    ("n, means = 2 * n, {}", "n, means = 3 * n, {}"), ("<= 2 * beta", "<= beta"),
    ("(c * after) **", "after **"),
], rivals))  # fmt: skip
def test_planted_errors_fork_the_path(error):
    wrong = planted(*error)

    def differs(case, seed):
        history = runs_of(case)[seed]
        actions, released = literal(case, history, seed, wrong)
        values = np.asarray(history.released)
        values, told = values[~np.isnan(values)], np.array([value for _, _, value in released])
        return values.shape != told.shape or not np.allclose(values, told) or (history.action != actions).any()

    assert any(differs(case, seed) for case in ("bounded", "clipped, corrupted") for seed in range(10))


def test_numbers_are_the_specified_ones():
    of = lambda **more: local(num_arms=5, horizon=100_000, epsilon=1.0, **more).params
    assert of().clip[11] == pytest.approx(2.952362023, rel=1e-9)
    assert of(corruption_after=0.2).clip[11] == pytest.approx(1.520061113, rel=1e-9)
    assert of().radius[11] == pytest.approx(0.254033887, rel=1e-8)
    both = of(corruption_before=0.05, corruption_after=0.05)
    assert both.radius[11] == pytest.approx(0.530304357, rel=1e-8)
    assert of(corruption_after=0.05, radius="explicit").radius[11] == pytest.approx(1.184434766, rel=1e-8)
    # every scale, a failure probability of log 1 / delta = 4, and a bound that corruption of rewards alone sets
    assert of(clip_scale=1.7).clip[11] == pytest.approx(1.7 * 2.952362023, rel=1e-9)
    assert of(privacy_scale=1.5).radius[11] == pytest.approx(2 * 0.254033887, rel=1e-8)  # 3/4 of it is the default
    doubled = of(corruption_before=0.05, corruption_after=0.05, corruption_scale=1.0)
    assert doubled.radius[11] == pytest.approx(2 * 0.530304357 - 0.254033887, rel=1e-8)
    assert of(failure_prob=math.exp(-4)).clip[11] == pytest.approx(3.845484239, rel=1e-9)
    assert of(corruption_before=0.4).clip[11] == pytest.approx(0.4**-0.5, rel=1e-9)
    m, c = 0.4**-0.5, 1 / math.tanh(0.5)  # noise, what is cut off of honest rewards, and what of the others may be
    want = c * m * math.sqrt(2 * math.log(2e5) / 4096) + 0.6 / m + 0.4 * (m + 1)
    assert of(corruption_before=0.4, radius="explicit").radius[11] == pytest.approx(want, rel=1e-9)
    m = 2.952362023  # of both, of which neither decides
    noise = c * m * math.sqrt(2 * math.log(2e5) / 4096)
    want = noise + 0.95 * (0.95 / m + 0.05 * (m + 1)) + 0.05 * (c * m + 1)
    both = of(corruption_before=0.05, corruption_after=0.05, radius="explicit")
    assert both.radius[11] == pytest.approx(want, rel=1e-8)


def test_a_report_tells_rewards_apart_by_no_more_than_its_claim():
    class Grid:
        child = lambda self, name: self
        uniform = lambda self, t: (t.astype(jnp.float32) - 0.5) / 20_000

    algorithm = local(num_arms=2, horizon=100, epsilon=1.0, moment_order=math.inf)
    encode = batch_rules(2, "zero").encode
    t = np.arange(1, 20_001, dtype=np.int32)

    @uncompiled
    def sent(x):
        return encode(algorithm.params, jnp.float32(1.0), Grid(), jnp.asarray(t), jnp.full(t.shape, x))

    share = lambda x: np.mean(sent(np.float32(x)) > 0)
    assert share(1.0) / share(-1.0) == pytest.approx(math.e, rel=1e-3)
    for odd in (math.nan, math.inf, -1.5, 1.001):
        assert share(odd) == pytest.approx(0.5, abs=1e-4)
    clipped = batch_rules(2, "clip").encode

    @uncompiled
    def cut(x):
        return clipped(algorithm.params, jnp.float32(1.0), Grid(), jnp.asarray(t), jnp.full(t.shape, x))

    above = lambda x: np.mean(cut(np.float32(x)) > 0)
    assert (above(math.inf), above(-7.0)) == (share(1.0), share(-1.0))
    assert above(math.nan) == pytest.approx(0.5, abs=1e-4)
    wide = local(num_arms=2, horizon=100, epsilon=1.0, moment_order=math.inf, moment_bound=3.0, clip_scale=2.0)
    assert (wide.params.clip == 3.0).all() and wide.rewards == (-3.0, 3.0, "zero")


def test_the_mean_of_reports_is_bounded_by_what_an_honest_one_can_be():
    c = 1 / math.tanh(0.5)
    reports = np.array([math.inf, -math.inf, math.nan, 1e30, 0.5, -2 * c], np.float32)
    mean = lambda reports: local_mean(reports, 2.0, 1.0)
    assert float(uncompiled(mean)(reports)) == pytest.approx(0.5 / 6, rel=1e-5)
    assert float(jax.jit(mean)(reports)) == pytest.approx(0.5 / 6, rel=1e-5)


def test_the_mean_under_corrupted_rewards():
    random = np.random.default_rng(5)
    n, runs, c = 4096, 400, 1 / math.tanh(0.5)
    level = math.sqrt(1.25) * (n / (c * c * math.log(1000))) ** 0.25
    x = 0.5 + random.standard_t(3, (runs, n)) / math.sqrt(3)
    x = np.where(random.random((runs, n)) < 0.05, level, x)
    x = np.where(np.abs(x) <= level, x, 0)
    reports = np.where(random.random((runs, n)) < 0.5 + x / (2 * c * level), c * level, -c * level)
    found = uncompiled(jax.vmap(lambda y: local_mean(y, level, 1.0)))(np.float32(reports))
    assert abs(np.mean(found) - 0.6497) < 4 * math.hypot(np.std(found) / math.sqrt(runs), 0.0023)


@pytest.mark.parametrize(
    ("after", "mean", "error"), dealt([(0.02, 6333, 81), (0.0, 3119, 69)], 4, always=[(0.02, 6333, 81)])
)
def test_regret_is_the_specified_one(after, mean, error):
    attack = {"message_adversary": partial(jb.adversaries.huber, corruption=after, kind="target", value=1e9)}
    found = jb.sweep(
        partial(local, epsilon=1.0, moment_order=math.inf, corruption_after=after), bernoulli, horizon=50_000, seeds=64,
        checkpoints=1, progress=False, **(attack if after else {}),
    )  # fmt: skip
    regret = np.asarray(found.regret)[..., -1].ravel()
    assert abs(regret.mean() - mean) < 4 * math.hypot(regret.std() / 8, error)


def test_rewards_and_their_bound_scale_together():
    settings = {"horizon": 3000, "seeds": 4, "checkpoints": 1, "progress": False}
    arms = lambda scale: partial(jb.environments.gaussian_arms, means=[0.8 * scale, 0.0], scale=0.5 * scale)
    made = lambda scale: partial(local, epsilon=4.0, moment_bound=scale**2)
    one, four = (jb.sweep(made(scale), arms(scale), **settings) for scale in (1.0, 4.0))
    np.testing.assert_array_equal(one.pulls, four.pulls)
    assert len(np.unique(np.asarray(one.pulls).reshape(-1, 2)[:, 0])) > 1


def test_a_radius_that_never_drops_an_arm_is_warned_of():
    with pytest.warns(UserWarning, match="no arm may ever be dropped"):
        local(num_arms=2, horizon=100, epsilon=0.1, corruption_after=0.05)


def test_orders():
    c = 1 / math.tanh(0.25)
    assert theory.local_mean_rate(100, 0.5, 2.0, 0.04, "before") == pytest.approx(0.2 + math.sqrt(c / 10))
    assert theory.local_mean_rate(100, 0.5, 2.0, 0.04) == pytest.approx(math.sqrt(0.04 * c) + math.sqrt(c / 10))
    assert theory.local_mean_rate(100, math.inf, math.inf, 0.1) == pytest.approx(0.2)
    assert theory.local_robust_rate(4, 100, math.inf, math.inf, 0.0) == pytest.approx(20 * math.sqrt(math.log(100)))
    assert theory.local_robust_rate(4, 100, 0.01, 2.0, 0.4, max_gap=0.5) == 50
    assert theory.local_robust_rate(4, 100, 0.01, 2.0, 0.4) == 100


@pytest.mark.planted("an algorithm behind its claim", "half noise, `local_robust_elimination`")
def test_a_report_spends_its_claim_and_half_the_noise_is_caught():
    made = local(num_arms=2, horizon=40, epsilon=1.0, moment_order=math.inf)
    # the two rewards that are furthest apart
    pairs = [(Edit(1, 1.0), Edit(1, -1.0))]
    found = jb.audit(made, runs=40_000, pairs=pairs)
    assert found.claimed[0] == pytest.approx(1.0, abs=1e-6) and 0.85 <= found.epsilon_lower and not found.refuted
    mutant = made._replace(params=made.params._replace(mechanism_scale=0.5))
    mutant = mutant._replace(guarantee=made.guarantee._replace(spend=lambda params: (1.0, 0.0)))
    assert jb.audit(mutant, runs=20_000, pairs=pairs).refuted
