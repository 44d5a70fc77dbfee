"""The comparators of robust elimination: schedules laid out by eye, estimators by NumPy, limits, noise, corruption."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import plays
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import (
    bogunovic_elimination,
    median_elimination,
    phased_elimination,
    private_elimination,
    robust_elimination,
    trimmed_elimination,
)
from jaxbandits.algorithms.linear import batches
from jaxbandits.algorithms.linear.batch_reports import MISSING
from jaxbandits.algorithms.linear.batches import Batch
from jaxbandits.algorithms.linear.median_elimination import bucket_estimates, report_estimates
from jaxbandits.algorithms.linear.private_elimination import GAUSSIAN, LAPLACE
from jaxbandits.algorithms.linear.trimmed_elimination import MEDIAN, TRIMMED
from jaxbandits.estimators.g_optimal import gram, regular_inverse, span_basis
from jaxbandits.estimators.geometric_median import plain_median
from jaxbandits.random import Draws

EYE = np.eye(4)
THETA = np.array([0.9, -0.2, 0.1, 0.0])
QUIET = jb.environments.linear_arms(actions=EYE, theta=THETA, noise_scale=0.0)


def cast(tree):
    return jax.tree.map(np.float32, tree)


def played(algorithm, environment=QUIET):
    """Every action, the pulls and the batches estimated."""
    (run,) = plays.played([plays.Lane(0, algorithm, environment)], compiled=False, dtype="float32")
    pulls = np.bincount(run.history.action, minlength=environment.facts["num_arms"])
    return run.history.action, pulls.tolist(), int(run.diagnostics["batches"])


def blocks(actions):
    """[(arm, plays)] runs of equal arms."""
    ends = np.flatnonzero(np.diff(actions, append=-1)) + 1
    return list(zip(actions[ends - 1].tolist(), np.diff(ends, prepend=0).tolist(), strict=True))


# schedules laid out by eye; every run compares paths with transcriptions (test_robust_linear_rivals_reference.py)


@pytest.mark.dealt(8)
def test_phases_on_the_canonical_basis():
    """g w = 1: ceil(2 4 log(8 2 / .05)) = 47 plays an arm,
    then ceil(2 16 log(8 6 / .05)) = 220 of those within 1 of the best.
    """
    assert math.ceil(8 * math.log(320)) == 47 and math.ceil(32 * math.log(960)) == 220
    actions, pulls, phases = played(phased_elimination(actions=EYE, horizon=2000))
    assert blocks(actions) == [(0, 47), (1, 47), (2, 47), (3, 47), (0, 220), (2, 220), (3, 220), (0, 1152)]
    assert pulls == [1419, 47, 267, 267] and phases == 2
    # the second phase is cut in index order
    actions, pulls, phases = played(phased_elimination(actions=EYE, horizon=488))
    assert blocks(actions)[4:] == [(0, 220), (2, 80)] and phases == 1


@pytest.mark.dealt(6)
def test_report_noise_lengthens_phases_by_its_variance():
    """epsilon = 4: b = 1/2, so that s^2 + 2 b^2 = 3/2."""
    algorithm = phased_elimination(actions=EYE, horizon=2000, epsilon=4.0)
    assert_allclose(algorithm.params.own.plays, 1.5 * phased_elimination(actions=EYE, horizon=9).params.own.plays)
    assert algorithm.params.noise_scale == 0.5 and algorithm.guarantee.spend(algorithm.params) == (4.0, 0.0)
    quiet = algorithm._replace(params=algorithm.params._replace(mechanism_scale=0.0))
    assert blocks(played(quiet)[0])[:4] == [(a, math.ceil(1.5 * 8 * math.log(320))) for a in range(4)]


@pytest.mark.dealt(6)
def test_without_noise_the_best_arm_is_found_in_phase_one():
    """A play of each arm, and the arms within 1 of the best stay: with theta = (0.8, -0.3, -0.4) only the first."""
    actions = np.eye(3)
    environment = jb.environments.linear_arms(actions=actions, theta=[0.8, -0.3, -0.4], noise_scale=0.0)
    algorithm = phased_elimination(actions=actions, horizon=50, noise_scale=0.0)
    actions, pulls, phases = played(algorithm, environment)
    assert blocks(actions)[:3] == [(0, 1), (1, 1), (2, 1)] and pulls == [48, 1, 1] and phases == 1
    assert len(algorithm.schedule) == 34  # all 32 phases, an empty span and the rest


@pytest.mark.dealt(6)
def test_tied_arms_are_told_apart_by_no_phase():
    environment = jb.environments.linear_arms(actions=np.eye(2), theta=[0.5, 0.5], noise_scale=0.0)
    _, pulls, phases = played(phased_elimination(actions=np.eye(2), horizon=100, noise_scale=0.0), environment)
    assert phases == 32 and pulls == [32 + 36, 32]  # then the best estimate, the lowest


@pytest.mark.dealt(6)
def test_bogunovic_doubles():
    """d = 4: m_0 = 16 (log log 4 + 18) = 293.2, 74 plays an arm; s = 0, C = 0: all but the best go at once."""
    first = 16 * (math.log(math.log(4)) + 18)
    actions, pulls, _ = played(bogunovic_elimination(actions=EYE, horizon=2000, corruption_budget=0, noise_scale=0.0))
    assert blocks(actions)[:4] == [(a, math.ceil(first / 4)) for a in range(4)] and pulls == [1778, 74, 74, 74]
    patient = bogunovic_elimination(actions=EYE, horizon=2000, corruption_budget=1e6)
    actions, _, batches = played(patient)  # 296, 588 and 1176 plays would be 2060: the last is cut
    runs = [(a, n) for n in (74, 147, 294) for a in range(4)]
    assert blocks(actions)[:11] == runs[:11] and blocks(actions)[11] == (3, 294 - 60) and batches == 2
    floored = bogunovic_elimination(actions=EYE, horizon=2000, corruption_budget=1e6, weight_floor=0.5)
    assert blocks(played(floored)[0])[:2] == [(0, 147), (1, 147)]


def test_bogunovic_widths():
    own = bogunovic_elimination(actions=EYE, horizon=2000, corruption_budget=3.0, weight_floor=0.1).params.own
    first = 16 * (math.log(math.log(4)) + 18)
    for h, (size, slack) in enumerate(zip(own.sizes[:3], own.slack[:3], strict=True)):
        want = 2 * math.sqrt(16 / size * math.log(20)) + 2 * 3 / (size * 0.1) * math.sqrt(16 * (1 + 0.1 * first))
        assert size == pytest.approx(first * 2**h) and slack == pytest.approx(want)
    unknown = bogunovic_elimination(actions=EYE, horizon=2000, weight_floor=0.1).params.own
    for h in range(3):  # batches 0, 1, 2 can begin: sqrt(d) 2^(2 - h) is 8, 4, 2; the cap is 5.9
        total = min(math.sqrt(2000) / math.log(2000), 2 * 2.0 ** (2 - h))
        want = bogunovic_elimination(actions=EYE, horizon=2000, corruption_budget=total, weight_floor=0.1).params.own
        assert unknown.slack[h] == pytest.approx(want.slack[h])


@pytest.mark.dealt(6)
def test_gaussian_batches_double():
    """2, 4, 8, ... plays along equal weights: 1, 1, 2, 4, ... of each arm; no radius, no noise: one batch decides."""
    make = partial(private_elimination, actions=EYE, horizon=40, epsilon=math.inf, mechanism="gaussian")
    actions, _, batches = played(make(sampling_scale=1e3))
    assert blocks(actions) == [(a, n) for n in (1, 1, 2, 4) for a in range(4)] + [(0, 8)] and batches == 4
    assert played(make(sampling_scale=0.0))[1] == [37, 1, 1, 1]


def batch_of(actions, counts, reports, capacity=64):
    """A batch whose plays were made arm by arm, with these reports [n]."""
    actions, counts = np.asarray(actions, np.float32), np.asarray(counts, np.int32)
    n, arm = int(counts.sum()), np.repeat(np.arange(len(actions)), counts)
    good = np.isfinite(reports)
    kept = np.full(capacity, 7.0, np.float32)  # what earlier batches left behind
    kept[:n] = np.where(good, reports, MISSING)
    sums = np.float32([reports[(arm == a) & good].sum() for a in range(len(actions))])
    basis, inverse = spanned(actions, counts)
    batch = Batch(np.int32(0), np.ones(len(actions), bool), basis, counts, np.int32(n), inverse, sums,
                  np.int32(good.sum()), kept)  # fmt: skip
    return batch, arm


@uncompiled
def spanned(actions, counts):
    basis = span_basis(actions, jnp.ones(len(actions), bool))
    return basis, regular_inverse(gram(actions, counts.astype(jnp.float32)), basis)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(1)
    actions = rng.normal(size=(5, 3))
    counts = np.array([9, 0, 7, 12, 8])
    arm = np.repeat(np.arange(5), counts)
    return actions, counts, actions[arm] @ [0.3, -0.5, 0.7] + rng.normal(size=36)


def stored(factory, actions, **arguments):
    """The rules' verdict on a batch, and the parameters."""
    return cast(factory(actions=actions, horizon=400, num_batches=3, **arguments).params)


least_squares = uncompiled(batches.least_squares)
judged = {rule: uncompiled(lambda params, batch, rule=rule: rule.judge(params, None, None, batch))
          for rule in (TRIMMED, MEDIAN)}  # fmt: skip
bucketed, by_report = uncompiled(bucket_estimates), uncompiled(report_estimates)


def test_least_squares_is_numpys(sample):
    actions, counts, reports = sample
    batch, arm = batch_of(actions, counts, reports)
    params = stored(trimmed_elimination, actions)
    want = np.linalg.lstsq(actions[arm], reports, rcond=None)[0]
    assert_allclose(least_squares(params, batch), want, rtol=1e-4)
    broken = np.where(np.arange(36) % 6 == 0, np.nan, reports)  # left out; n and M stay
    batch, _ = batch_of(actions, counts, broken)
    moment = (actions.T * counts) @ actions
    total = actions[arm].T @ np.nan_to_num(broken)
    assert_allclose(least_squares(params, batch), 36 / 30 * np.linalg.solve(moment, total), rtol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.2, None])
def test_arms_are_trimmed_as_scipy_does(sample, share):
    """share None: the median. Non-finite reports are left out first."""
    actions, counts, reports = sample
    reports = np.where(np.arange(36) == 20, np.inf, reports)
    batch, arm = batch_of(actions, counts, reports)
    params = stored(trimmed_elimination, actions, trim_share=share)
    theta, slack, sound = judged[MEDIAN if share is None else TRIMMED](params, batch)
    means = np.zeros(5)
    for a in np.flatnonzero(counts):
        own = np.sort(reports[(arm == a) & np.isfinite(reports)])
        cut = 0 if share is None else math.ceil(share * len(own) - 1e-9)
        means[a] = np.median(own) if share is None else own[cut : len(own) - cut].mean()
    root = np.sqrt(counts)
    want = np.linalg.lstsq(root[:, None] * actions, root * means, rcond=None)[0]
    assert_allclose(theta, want, rtol=1e-4)
    assert bool(sound) and float(slack) > 0
    gone, _ = batch_of(actions, counts, np.where(arm == 2, np.nan, reports))
    assert not bool(judged[TRIMMED](params, gone)[2])
    for given, trim in ((0.0, 0.0), (None, 0.2)):  # a share of 0 is none; not given, it is twice the bound
        own = stored(trimmed_elimination, actions, corruption_bound=0.1, trim_share=given).own
        assert own.trim == pytest.approx(trim)


def test_buckets_are_solved_one_by_one(sample):
    """alpha = 0.01 and 36 plays: ceil(0.72) + 5 = 6 buckets; with alpha = 0.2, 7, the fewest plays of an arm."""
    actions, counts, reports = sample
    for alpha, buckets in ((0.01, 6), (0.2, 7)):
        batch, arm = batch_of(actions, counts, reports)
        params = stored(median_elimination, actions, corruption_bound=alpha)
        points, whole = bucketed(params, batch)
        assert np.flatnonzero(whole).tolist() == list(range(buckets))
        sizes = [[len(x) for x in np.array_split(np.arange(n), buckets)] for n in counts]
        of = np.concatenate([np.repeat(np.arange(buckets), lengths) for lengths in sizes])
        for g in range(buckets):
            want = np.linalg.lstsq(actions[arm[of == g]], reports[of == g], rcond=None)[0]
            assert_allclose(points[g], want, rtol=2e-3, atol=1e-3)
    lacking, _ = batch_of(actions, counts, np.where(np.arange(36) == 0, np.nan, reports))
    points, whole = bucketed(params, lacking)  # two of nine reports of arm 0 in each of the first buckets
    assert whole[:7].all() and np.isfinite(points).all()
    lacking, _ = batch_of(actions, counts, np.where(np.arange(36) == 8, np.nan, reports))
    assert np.flatnonzero(~bucketed(params, lacking)[1][:7]).tolist() == [6]  # its last bucket had that one only


def test_the_straw_mans_points_average_to_least_squares(sample):
    actions, counts, reports = sample
    batch, arm = batch_of(actions, counts, reports)
    params = stored(median_elimination, actions, points="reports")
    points, present = by_report(params, batch)
    assert int(present.sum()) == 36
    want = np.linalg.lstsq(actions[arm], reports, rcond=None)[0]
    assert_allclose(np.asarray(points)[:36].mean(0), want, rtol=1e-3, atol=1e-4)


def test_fifty_weiszfeld_steps():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(40, 3))
    points[:15] += [100.0, 0.0, -1e5]
    median = uncompiled(plain_median)
    found = median(np.float32(points), np.arange(40) < 38)
    want = optimize.minimize(lambda z: np.linalg.norm(points[:38] - z, axis=1).sum(), np.zeros(3), method="Nelder-Mead")
    assert_allclose(found, want.x, atol=5e-3)
    assert median(np.ones((4, 2), np.float32), np.zeros(4, bool)).tolist() == [0, 0]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_central_noise_has_its_scale(mechanism):
    """Of an arm's estimate on the canonical basis:
    sum + Lap(2 / epsilon) over n_a, or N(0, (2 sqrt(2 ln(1.25 / delta)) / (n_a epsilon))^2).
    """
    counts = np.array([2, 5, 10, 20])
    batch, _ = batch_of(np.eye(4), counts, np.repeat(THETA, counts))
    more = {"num_batches": 3} if mechanism == "laplace" else {"delta": 0.01, "calibration": "paper"}
    algorithm = private_elimination(actions=np.eye(4), horizon=400, epsilon=0.5, mechanism=mechanism, **more)
    params, judge = cast(algorithm.params), (LAPLACE if mechanism == "laplace" else GAUSSIAN).judge

    @jax.jit
    def thetas(seeds, scale):
        one = lambda seed: judge(
            params._replace(mechanism_scale=scale), Draws(seed, "alg/close"), jnp.int32(9), batch)[0]  # fmt: skip
        return jax.vmap(one)(seeds)

    seeds = np.arange(4000, dtype=np.uint32)
    assert_allclose(thetas(seeds, np.float32(0.0))[0], THETA, atol=1e-6)
    noise = np.asarray(thetas(seeds, np.float32(1.0))) - THETA.astype(np.float32)
    law = stats.laplace(scale=4.0) if mechanism == "laplace" else stats.norm(scale=4 * math.sqrt(2 * math.log(125)))
    for a in range(4):
        assert stats.kstest(noise[:, a] * counts[a], law.cdf).pvalue > 1e-4
        for factor in (2 / 3, 3 / 2):
            assert stats.kstest(noise[:, a] * counts[a] * factor, law.cdf).pvalue < 1e-10
    assert abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.08


def test_private_radii_by_hand():
    """Canonical basis, equal counts n: V = s^2 / n and sum w^2 = 1 / n^2."""
    batch, _ = batch_of(np.eye(4), [10] * 4, np.zeros(40))
    laplace = private_elimination(actions=EYE, horizon=1000, epsilon=0.5, num_batches=3)
    log = math.log(2 * 4 * 3 / 0.05)
    want = 0.5 * math.sqrt(2 * log / 10) + 4 * 4 * log / (10 * 0.5)

    def radius(rule, params):
        judge = lambda params, batch: rule.judge(params, Draws(jnp.uint32(0), "alg/close"), jnp.int32(1), batch)[1]
        return float(uncompiled(judge)(cast(params), batch))

    assert radius(LAPLACE, laplace.params) == pytest.approx(2 * want, rel=1e-4)
    printed = {"mechanism": "gaussian", "calibration": "paper", "delta": 0.01}
    gaussian = private_elimination(actions=EYE, horizon=1000, epsilon=0.5, **printed)
    log, scale = (
        math.log(2 * 4 * 9 / 0.05),
        4 * math.sqrt(2 * math.log(125)),
    )  # 2 + 4 + ... + 2^9 is the first above 1000
    want = math.sqrt(2 * log * (1 / 10 + scale**2 / 100))
    assert radius(GAUSSIAN, gaussian.params) == pytest.approx(2 * want, rel=1e-4)


def test_what_is_spent():
    made = private_elimination(actions=EYE, horizon=100, epsilon=0.5, num_batches=2)
    assert made.guarantee.spend(made.params) == (0.5, 0.0) and made.guarantee.bound == 1
    gaussian = partial(private_elimination, actions=EYE, horizon=100, mechanism="gaussian", delta=1e-6)
    for asked in (0.2, 1.0, 10.0, 100.0):
        exact = gaussian(epsilon=asked)
        assert exact.guarantee.spend(exact.params) == (pytest.approx(asked), 1e-6)
    made = gaussian(epsilon=20.0, calibration="paper")
    epsilon, delta = made.guarantee.spend(made.params)  # the classic rule fails here
    assert epsilon > 20 and delta == 1e-6
    assert epsilon == pytest.approx(jb.mechanisms.gaussian_epsilon(2.0, made.params.noise_scale, 1e-6))
    assert bogunovic_elimination(actions=EYE, horizon=100).guarantee.model == "none"


ARMS = np.random.default_rng(3).normal(size=(12, 3))
ARMS = ARMS / np.linalg.norm(ARMS, axis=1, keepdims=True)
LINEAR = jb.environments.linear_arms(actions=ARMS, theta=[0.6, -0.6, 0.3], noise="rademacher")


@pytest.mark.dealt(6)
def test_without_their_own_they_are_least_squares_elimination():
    """Same batches, radius and report noise: the same plays, seed for seed."""
    settings = {"actions": ARMS, "horizon": 3000, "num_batches": 4}
    factories = {
        "plain": partial(robust_elimination, variance_bound="observed"),
        "trimmed": partial(trimmed_elimination, trim_share=0.0), "central": private_elimination,
    }  # fmt: skip
    runs = {}
    for name, factory in factories.items():
        made = [factory(epsilon=epsilon, **settings) for epsilon in (2.0, math.inf)]
        lanes = [plays.Lane(seed, one, LINEAR) for one in made for seed in range(8)]
        runs[name] = plays.played(lanes, compiled=False, dtype="float32")
    plain, trimmed, central = (np.array([run.history.action for run in runs[name]]) for name in factories)
    assert_array_equal(trimmed, plain)
    assert_array_equal(central[8:], plain[8:])
    assert not np.array_equal(plain[:8], plain[8:])
    # noise on sums is smaller than noise on every reward
    left = {name: np.array([run.diagnostics["active_arms"] for run in runs[name][:8]]) for name in factories}
    assert (left["central"] < left["plain"]).any()


def test_one_program_serves_a_grid():
    for factory, more in (
        (phased_elimination, [{}, {"epsilon": 1.0, "noise_scale": 0.2}]),
        (bogunovic_elimination, [{}, {"corruption_budget": 9.0, "weight_floor": 0.2}]),
        (partial(private_elimination, num_batches=3), [{"epsilon": 1.0}, {"epsilon": math.inf, "privacy_scale": 0.0}]),
        (partial(median_elimination, num_batches=3), [{}, {"epsilon": 1.0, "corruption_bound": 0.2}]),
        (partial(trimmed_elimination, num_batches=3), [{}, {"epsilon": 1.0, "corruption_bound": 0.2}]),
    ):
        first, second = (factory(actions=EYE, horizon=500, **arguments) for arguments in more)
        assert first.program is second.program
        assert jax.tree.map(np.shape, first.params) == jax.tree.map(np.shape, second.params)


@pytest.mark.dealt(8)
def test_robust_estimators_keep_the_best_arm():
    """A tenth of rewards is -30 on the best arm, 30 elsewhere: least squares loses it, medians and trimming do not."""
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [-0.7, 0.5], [-0.6, -0.6]])
    environment = jb.environments.linear_arms(actions=actions, theta=[0.9, 0.0], noise_scale=0.3)
    robust = {"num_batches": 2, "corruption_bound": 0.1, "noise_scale": 0.3}
    made = {
        "median": partial(median_elimination, **robust), "trimmed": partial(trimmed_elimination, **robust),
        "arm median": partial(trimmed_elimination, estimator="median", **robust),
        "phased": partial(phased_elimination, noise_scale=0.3),
    }  # fmt: skip
    attack, kept = jb.adversaries.huber(corruption=0.1, kind="target", value=30.0), {}
    for name, factory in made.items():
        algorithm = factory(actions=actions, horizon=20_000)
        lanes = [plays.Lane(seed, algorithm, environment, attack) for seed in range(32)]
        runs = plays.played(lanes, dtype="float32")
        kept[name] = np.mean([np.sum(run.history.action == 0) > 10_000 for run in runs])
    assert min(kept["median"], kept["trimmed"], kept["arm median"]) >= 0.9 and kept["phased"] <= 0.2, kept


@pytest.mark.dealt(6)
def test_an_attack_waits_for_a_batch():
    """The first batch decides; where its reports are lost nothing goes, and the second decides."""
    algorithm = bogunovic_elimination(actions=EYE, horizon=2000, corruption_budget=0.0, noise_scale=0.1)
    attacks = [jb.adversaries.huber(corruption=share, kind="burst", value="nan", batch=1) for share in (0.0, 1.0)]
    lanes = [plays.Lane(seed, algorithm, QUIET, None, attack) for attack in attacks for seed in range(4)]
    runs = [run.diagnostics for run in plays.played(lanes, compiled=False, dtype="float32")]
    assert [int(run["batches"]) for run in runs] == [1] * 4 + [2] * 4 and all(run["active_arms"] == 1 for run in runs)
