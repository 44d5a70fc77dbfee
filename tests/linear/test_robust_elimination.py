"""Robust elimination: limits and invariants of docs/formulas/robust_linear.md#invariants
and docs/formulas/robust_linear.md#edges; the formulas by hand; what attacks do.

Most runs share one compiled program: K = 6, d = 3, B = 3, T = 600.
"""

import warnings
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_draws import NumpyDraws
from plays import Lane, played
from robust_linear_world import plays_of_arms
from scipy import stats
from uncompiled import uncompiled

from jaxbandits import theory
from jaxbandits.adversaries.huber import huber
from jaxbandits.algorithms.linear import batch_reports, formulas
from jaxbandits.algorithms.linear.robust_elimination import robust_elimination
from jaxbandits.environments.linear import linear_arms
from jaxbandits.protocol import AdversaryView, Report, Truth
from jaxbandits.random import Draws
from jaxbandits.sweeps import assumptions
from jaxbandits.sweeps.plan import cast

THETA = np.array([0.9, 0.1, -0.2])
RNG = np.random.default_rng(4)
ACTIONS = RNG.normal(size=(6, 3))
ACTIONS /= np.linalg.norm(ACTIONS, axis=1, keepdims=True)
ACTIONS[0] = THETA / np.linalg.norm(THETA)
ARMS = linear_arms(actions=ACTIONS, theta=THETA, noise="rademacher")
NOBODY = huber(corruption=0.0)
SEEDS = 32


class Outcome(NamedTuple):
    """Of all seeds."""

    pulls: Any  # [S, K]
    active_arms: Any  # [S], as the next ones
    batches: Any
    removals: Any
    nonfinite_reports: Any

    def regret(self, environment):
        means = environment.facts["means"]
        return self.pulls @ (means.max() - means)


def run(world=ARMS, horizon=600, attack=NOBODY, num_batches=3, **settings):
    """32 seeds. Runs whose environments, attacks and settings differ in numbers alone are one program."""
    algorithm = robust_elimination(actions=world.facts["actions"], horizon=horizon, num_batches=num_batches, **settings)
    lanes = [Lane(seed, algorithm, world, None, attack) for seed in range(SEEDS)]
    runs = played(lanes, compiled=False, dtype="float32")
    num_arms = len(world.facts["actions"])
    pulls = np.array([np.bincount(lane.history.action, minlength=num_arms) for lane in runs])
    return Outcome(pulls, *(np.array([lane.diagnostics[name] for lane in runs]) for name in Outcome._fields[1:]))


def same(a, b):
    np.testing.assert_array_equal(a.pulls, b.pulls)


def test_counts_by_hand():
    weights = np.float32([0.5, 0.0, 0.3, 0.2])
    counts = lambda size, **model: uncompiled(lambda w: plays_of_arms(w, float(size), **model))(weights).tolist()
    assert counts(10) == [5, 0, 3, 2]
    assert counts(11) == [6, 0, 4, 3]
    assert counts(10, model="M2", weight_floor=0.25) == [5, 0, 3, 3]
    assert counts(30, model="M2", weight_floor=0.0) == [15, 0, 9, 6]
    split = np.float32([0.6, 0.4])  # 25 times the first is 15.000001
    assert uncompiled(lambda w: formulas.counts(w, 25))(split).tolist() == [15, 10]
    assert uncompiled(lambda w: plays_of_arms(w, 25.0))(split).tolist() == [15, 10]


def by_hand(model, pulls, sigma, b, log, active, scales, alpha):
    """docs/formulas/robust_linear.md#practical-radius in float64."""
    played = np.flatnonzero(pulls)
    share = pulls if model == "M1" else (pulls > 0)
    inverse = np.linalg.inv((ACTIONS.T * share) @ ACTIONS)
    own = np.ones(len(pulls)) if model == "M1" else pulls
    least = own[played].min()
    square = 1 + sigma**2 / least + 2 * (b / least) ** 2
    widest = 0.0
    for x in np.flatnonzero(active):
        w = ACTIONS[x] @ inverse @ ACTIONS.T
        v = sum(share[a] * w[a] ** 2 * (sigma**2 / own[a] + 2 * (b / own[a]) ** 2) for a in played)
        widest = max(widest, np.sqrt(2 * v * log) + log * max(abs(w[a]) * b / own[a] for a in played))
    bias = scales[1] * np.sqrt(square * alpha) + scales[2] * alpha if alpha > 0 else 0.0
    return scales[0] * widest + bias, square, inverse


@pytest.mark.parametrize("model", ["M1", "M2"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_practical_radius_by_hand(model, alpha):
    pulls, active = np.array([4, 0, 9, 7, 0, 3]), np.array([True, False, True, True, True, True])
    want, square, inverse = by_hand(model, pulls, 0.7, 2.5, 3.0, active, (0.6, 0.4, 0.9), alpha)

    @uncompiled
    def found(pulls, alpha):
        square = formulas.mean_square(pulls, 0.7, 2.5, model=model)
        return square, formulas.gamma_practical(
            jnp.float32(ACTIONS), jnp.asarray(active), jnp.float32(inverse), pulls, log_term=3.0, square=square,
            noise_scale=0.7, laplace_scale=2.5, model=model, sampling_scale=0.6, corruption_bound=alpha,
            corruption_scale=0.4, bias_scale=0.9,
        )  # fmt: skip

    got_square, got = found(pulls.astype(np.int32), np.float32(alpha))
    assert float(got_square) == pytest.approx(square, rel=1e-6)
    assert float(got) == pytest.approx(want, rel=1e-5)


def test_paper_radius_by_hand():
    r, m, k, nu, alpha, epsilon, log = 3.0, 50.0, 4.0, 0.2, 0.04, 0.5, 9.0
    y = 1 + np.sqrt(np.log(m) + log) + (np.log(m) + log) / epsilon
    corrupted = (2 * r * (np.sqrt(alpha) + np.sqrt(alpha * log / m)) + np.sqrt(2 * r) * alpha) * y
    want = 1.1 * np.sqrt(2 * r / m) * (np.sqrt(log) + log / epsilon) + 0.9 * corrupted + 0.7 * alpha
    scales = {"sampling_scale": 1.1, "corruption_bound": alpha, "corruption_scale": 0.9, "bias_scale": 0.7}
    shared = {"log_term": log, "laplace_scale": 2 / epsilon, **scales}
    width = lambda **model: float(uncompiled(lambda m: formulas.gamma_paper(r, m, k, **model, **shared))(np.float32(m)))
    assert width(model="M1") == pytest.approx(want, rel=1e-5)
    n, log_k = nu * m, np.log(k) + log
    y = 1 + np.sqrt(log_k / n) + log_k / (n * epsilon)
    corrupted = (2 * r * (k * np.sqrt(alpha) + np.sqrt(k * alpha * log)) + np.sqrt(2 * r * k) * alpha) * y
    want = 1.1 * np.sqrt(2 * r) * (np.sqrt(log / n) + log / (n * epsilon)) + 0.9 * corrupted + 0.7 * alpha
    assert width(model="M2", weight_floor=nu) == pytest.approx(want, rel=1e-5)


def test_order_lines_of_figure_1():
    """The right panel ends at 0.5; at the center's parameters both orders of M2 are offered, on either side of M1's."""
    assert theory.robust_linear_reward_bound(5, 100, 1.0, corruption=0.5) == pytest.approx(2 * (np.sqrt(500) + 250))
    center = {"dim": 50, "horizon": 10_000, "epsilon": 0.1}
    first = theory.robust_linear_reward_bound(**center)
    assert first == pytest.approx(11 * np.sqrt(500_000))
    theorem, proof = (theory.robust_linear_action_bound(**center, source=name) for name in ("theorem", "proof"))
    assert theorem == pytest.approx(5000 + 500) and proof == pytest.approx(5000 + 50**1.5 * np.log(10_000) * 10)
    assert theorem < first < proof == theory.robust_linear_action_bound(**center)


def test_an_exactly_optimal_design_has_unweighted_norms_of_one():
    """No weight of a G-optimal design exceeds 1 / d, so that M of model M2 is at least d times that of the design.

    The paper's Lemma 3.7 has 2 d for approximate designs, which is where d^(3/2) in the order of M2 comes from.
    """
    rng = np.random.default_rng(0)
    for dim, num_arms in ((3, 12), (5, 40), (8, 60)):
        actions = rng.normal(size=(num_arms, dim))
        actions /= np.linalg.norm(actions, axis=1, keepdims=True)
        weights = np.full(num_arms, 1 / num_arms)
        for _ in range(20_000):  # the multiplicative algorithm for D-optimal designs
            leverage = ((actions @ np.linalg.inv(actions.T * weights @ actions)) * actions).sum(1)
            weights *= leverage / dim
        assert leverage.max() < dim * 1.01 and weights.max() < 1.01 / dim
        support = actions[weights > 1e-4]
        assert ((actions @ np.linalg.inv(support.T @ support)) * actions).sum(1).max() < 1.02


def test_blocks_hold_one_arm_each():
    """Two arms of 9 and 3 reports, blocks of 8: 8 + 1 of arm 0, 3 of arm 2."""
    kept = np.float32([*range(1, 13), *[99] * 20])
    kept[10] = batch_reports.MISSING
    found = uncompiled(lambda kept, counts: batch_reports.in_blocks(kept, counts, 16, 4))(kept, np.int32([9, 0, 3, 0]))
    assert found.values.shape == (6, 8) and found.arm.tolist()[:3] == [0, 0, 2]
    assert found.values[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert found.values[1].tolist() == [9] + [0] * 7 and found.values[2].tolist() == [10, 0, 12] + [0] * 5
    assert found.present.sum(axis=1).tolist() == [8, 1, 2, 0, 0, 0] and int(found.lost) == 1


def test_the_sieve_by_hand():
    own = SimpleNamespace(radius=SimpleNamespace(noise_scale=0.5, laplace_scale=2.0), failure_prob=0.05, presieve=True)
    params = SimpleNamespace(actions=np.zeros((2, 1), np.float32), own=own, clamp=1e6)
    h1, h2 = np.log(2 * 20 / 0.05), np.log(2 * 2 / 0.05)
    limit = lambda model: uncompiled(lambda counts: batch_reports.sieve_limit(params, counts, model))
    limits = lambda model: limit(model)(np.int32([16, 4])).tolist()
    assert limits("M1") == pytest.approx([1 + 0.5 * np.sqrt(2 * h1) + 2 * h1] * 2, rel=1e-6)
    assert limits("M2") == pytest.approx([1 + 0.5 * np.sqrt(2 * h2 / n) + 2 * h2 / n for n in (16, 4)], rel=1e-6)

    @uncompiled
    def sieved(values, limits):
        return batch_reports.passes_sieve(batch_reports.one_a_block(values, jnp.ones(2, jnp.int32)), limits)

    values = np.float32([3.0, -5.0])
    assert sieved(values, np.float32([4.0, 4.0])).ravel().tolist() == [True, False]
    assert sieved(values, np.float32([1.0, 4.0])).ravel().tolist() == [True, True]  # none would be left


@pytest.mark.parametrize("lost", [0, 2])
def test_refit_is_least_squares_on_what_is_left(lost):
    counts = np.int32([5, 0, 4, 6, 0, 3])
    arms, values = np.repeat(np.arange(6), counts), np.float32(RNG.normal(size=18))
    moment = (ACTIONS.T * counts) @ ACTIONS / 18
    whiten, actions = np.float32(np.linalg.inv(np.linalg.cholesky(moment))), np.float32(ACTIONS)
    keep = np.ones(18, bool)
    keep[[1, 7][:lost]] = False
    kept = np.pad(np.where(keep, values, np.float32(batch_reports.MISSING)), (0, 24))

    def theta(refit):
        def estimated(kept, counts, whiten, actions):
            reports = batch_reports.in_blocks(kept, counts, 18, 6)
            return batch_reports.estimate_theta(reports, reports.present, counts, whiten, actions, None, None, 0, refit)

        found = uncompiled(estimated)(kept, counts, whiten, actions)
        assert int(found.lost) == lost
        return found.theta

    want = np.linalg.lstsq(ACTIONS[arms[keep]], values[keep], rcond=None)[0]
    np.testing.assert_allclose(theta(True), want, rtol=1e-4, atol=1e-5)
    plain = np.linalg.solve(moment, ACTIONS[arms[keep]].T @ values[keep] / keep.sum())  # n and M of the full batch
    np.testing.assert_allclose(theta(False), plain, rtol=1e-4, atol=1e-5)


def test_noise_of_a_report_has_the_stated_scale():
    made = robust_elimination(actions=ACTIONS, horizon=600, num_batches=3, epsilon=0.5)
    t = np.arange(1, 4001, dtype=np.int32)

    @uncompiled
    def encoded(scale):
        params = jax.tree.map(jnp.asarray, made.params._replace(mechanism_scale=scale))
        rewards = jnp.zeros(4000, jnp.int32), jnp.zeros(4000), jnp.ones(4000, bool)
        draws = Draws(np.uint32(3), "alg/encode")
        return made.program.encode(params, (), draws, jnp.asarray(t), (), *rewards).value

    noise = lambda scale: encoded(np.float32(scale))
    found = noise(1.0)
    assert stats.kstest(found, stats.laplace(scale=4.0).cdf).pvalue > 1e-3
    for wrong in (2 / 3, 1.5):
        assert stats.kstest(found, stats.laplace(scale=4.0 * wrong).cdf).pvalue < 1e-3
    assert not noise(0.0).any()
    np.testing.assert_allclose(found, 4 * NumpyDraws(3, "alg/encode/noise", np.float32).laplace(t), rtol=1e-6)


def test_an_answer_is_the_mean_of_an_arms_rewards():
    """Arms of 2, 0 and 4 plays, of which the window holds all, then only the last arm's."""
    t, counts = np.arange(11, 19, dtype=np.int32), np.int32([2, 0, 4])
    reward = np.float32([1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 50.0, 60.0])
    arms = uncompiled(lambda first: batch_reports.block_arms(jnp.asarray(counts), first, 8))
    answered = uncompiled(lambda first, action, play: batch_reports.answers(
        jnp.asarray(counts), first, jnp.asarray(t), jnp.asarray(reward), action, play))  # fmt: skip
    first = np.int32(0)
    mean, own, last, there = answered(first, arms(first), np.arange(8) < 6)
    assert mean.tolist() == [1.5, 0.0, 5.25] and own.tolist() == [2, 1, 4]
    assert there.tolist() == [True, False, True] and last[0] == 12 and last[2] == 16
    first = np.int32(2)
    mean, _, last, there = answered(first, arms(first), np.arange(8) < 4)
    assert there.tolist() == [False, False, True] and float(mean[2]) == 2.5 and last[2] == 14
    # the last arm's four do not fit
    inside, plays = uncompiled(lambda counts: batch_reports.whole_blocks(counts, jnp.int32(0), 5))(counts)
    assert inside.tolist() == [True, False, False] and int(plays) == 2


def test_noise_vanishes_as_epsilon_grows():
    much, little, none = (run(epsilon=epsilon) for epsilon in (1.0, 1e7, np.inf))
    same(little, none)
    assert (much.pulls != none.pulls).any()


@pytest.mark.dealt(4)
def test_one_report_an_arm_makes_both_models_one():
    """T = 25, two batches: q = 5 plays over six arms of weight 1/6 are one play each, in M1 and M2, noise included."""
    orthogonal = linear_arms(actions=np.eye(6), theta=[0.5, 0, 0, 0.4, 0, 0], noise="rademacher")
    settings = {"horizon": 25, "num_batches": 2, "epsilon": 2.0, "sampling_scale": 0.05}
    one, other = (run(orthogonal, model=model, **settings) for model in ("M1", "M2"))
    same(one, other)
    assert len(np.unique(one.regret(orthogonal).round(9))) > 2 and (one.batches == 1).all()


@pytest.mark.dealt(4)
def test_answers_of_a_schedule_laid_out_by_eye():
    """m = 8.43 and 71.1; three arms of weight 1/3 (short ones: none) take 3 and 24 plays; with floor 1/2, 5 and 36."""
    actions = np.concatenate([np.eye(3), 0.1 * np.eye(3)])
    environment = linear_arms(actions=actions, theta=[0.5, 0.5, 0.5], noise="rademacher")
    for floor, plays in ((0.1, 27), (0.5, 41)):
        found = run(environment, model="M2", weight_floor=floor, sampling_scale=1e3)
        assert (found.active_arms == 6).all() and (found.batches == 2).all() and (found.pulls.sum(1) == 600).all()
        assert found.pulls[0, :3].min() == plays
    schedule = robust_elimination(actions=actions, horizon=600, num_batches=3, model="M2").schedule
    assert [span.slots for span in schedule[1:3]] == [10, 73] and all(span.whole for span in schedule[1:3])


@pytest.mark.dealt(4)
def test_a_zero_arm_alone_ends_exploration():
    """theta dislikes every other arm; without noise only the zero arm is left, which spans nothing."""
    actions = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0.6, 0.8, 0], [0, 0.6, 0.8]])
    environment = linear_arms(actions=actions, theta=[-0.5, -0.6, -0.5], noise_scale=0.0)
    found = run(environment, sampling_scale=1e-6)
    assert (found.active_arms == 1).all() and (found.batches == 1).all()
    assert (found.pulls[:, 3] > 580).all() and (found.pulls.sum(1) == 600).all()


@pytest.mark.dealt(4)
def test_observed_is_least_squares_seed_for_seed():
    """Sums by arm against stored reports that no filter touches, and both without a single removal."""
    attack = huber(corruption=0.1, value=50.0)
    sums, stored = (run(variance_bound="observed", refit=refit, attack=attack, epsilon=2.0) for refit in (False, True))
    same(sums, stored)
    assert not sums.removals.any() and not stored.removals.any()


def test_the_printed_bound_removes_nothing():
    bound_of = uncompiled(lambda square, mu: formulas.lambda_value(square, 40, mu, clean=True))
    rng = np.random.default_rng(0)
    for scale in (1.0, 30.0, 1e5):
        arms = np.sort(rng.integers(0, 6, 40))
        reports = np.where(rng.random(40) < 0.2, scale, 1.0) * rng.normal(size=40)
        inverse = np.linalg.inv(ACTIONS[arms].T @ ACTIONS[arms])
        mu = np.einsum("kd,de,ke->k", ACTIONS, inverse, ACTIONS).max()
        bound = bound_of(np.mean(reports**2), mu)
        directions = ACTIONS @ np.linalg.cholesky(inverse)  # a rotation of M^-1/2
        top = np.linalg.eigvalsh(np.cov((directions[arms] * reports[:, None]).T, bias=True)).max()
        assert 0.05 * float(bound) < top < 4 * float(bound)


@pytest.mark.dealt(8)
def test_without_corruption_the_adversary_does_not_matter():
    same(run(attack=None), run(attack=huber(corruption=0.0, kind="target", value=1e6)))


@pytest.mark.dealt(8)
def test_about_the_outliers_are_removed():
    found = run(attack=huber(corruption=0.1, kind="random_sign", value=100.0), sampling_scale=1e3)
    # batches of 8.4 and 71.1 plays, rounded up by arm
    assert 0.07 * 82 < found.removals.mean() < 0.12 * 88
    assert run(sampling_scale=1e3).removals.mean() < 0.5


@pytest.mark.dealt(4)
def test_the_filter_saves_the_regret_that_least_squares_loses():
    settings = {"attack": huber(corruption=0.1, kind="target", value=30.0), "corruption_bound": 0.1}
    robust, plain = run(presieve=True, **settings), run(variance_bound="observed", **settings)
    assert 2 * robust.regret(ARMS).mean() < plain.regret(ARMS).mean()


def test_lost_reports_eliminate_nothing_and_rotations_change_no_play():
    found = run(attack=huber(corruption=1.0, value="nan"))
    assert (found.active_arms == 6).all() and (found.batches == 2).all() and not found.removals.any()
    assert (found.pulls.sum(1) == 600).all() and (found.pulls[:, 0] > 500).all()  # theta = 0: the lowest arm is best
    assert (found.nonfinite_reports >= 80).all()
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turned = linear_arms(actions=ACTIONS @ rotation, theta=THETA @ rotation, noise="rademacher")
    assert np.mean((run().pulls == run(turned).pulls).all(1)) > 0.9


class Learner(NamedTuple):
    batch: Any = 0
    threshold: Any = 40.0
    mean_square: Any = 10.0


def corrupted(adversary, state):
    """Values of 6 reports, one an arm, arm 2 the best."""

    def values(params):
        means, t = jnp.array([0.1, 0.2, 0.9, 0.3, 0.0, 0.5]), jnp.arange(1, 5, dtype=jnp.int32)
        report = Report(jnp.zeros(6), jnp.arange(6, dtype=jnp.int32), jnp.ones(6, bool))
        action = jnp.array([1, 3, 3, 5], jnp.int32)
        fresh = lambda other: 10.0 * other.astype(jnp.float32) + jnp.arange(4.0)
        seen = AdversaryView(t, (), action, jnp.ones(4, bool), Truth(means), (), state, (), fresh)
        return adversary.attack.corrupt(params, (), Draws(np.uint32(1), "attack"), t, report, seen)[0].value

    return uncompiled(values)(jax.tree.map(np.float32, adversary.params)).tolist()


def test_subthreshold_stays_just_below_the_threshold():
    v = 0.99 * np.sqrt((40 - 10) / 1.0)
    found = corrupted(huber(corruption=1.0, kind="subthreshold"), Learner())
    assert found == pytest.approx([v, v, -v, v, v, v])
    assert 1.0 * v**2 + 10 < 40 < 1.0 * (v / 0.99) ** 2 + 10 + 1e-4
    half = corrupted(huber(corruption=1.0, kind="subthreshold", value=0.5), Learner())
    assert half == pytest.approx(np.array(found) / 1.98)


@pytest.mark.dealt(4)
def test_subthreshold_is_not_removed_and_more_is():
    below, above = (run(attack=huber(corruption=0.1, kind="subthreshold", value=value)) for value in (0.5, 3.0))
    assert below.removals.mean() < 1 and above.removals.mean() > 4


def test_bursts_and_swapped_reports():
    attack = huber(corruption=1.0, kind="burst", value=7.0, batch=2)
    assert corrupted(attack, Learner(batch=0)) == [0.0] * 6 == corrupted(attack, Learner(batch=2))
    assert corrupted(attack, Learner(batch=1)) == [7.0] * 6
    # Arms 1, 3, 3, 5 are played; the mirror of arm 3 is 3's opposite by rank, and its first play is the second.
    found = corrupted(huber(corruption=1.0, kind="swapped"), Learner())
    mirror = {1: 3, 3: 1, 5: 0}  # ranks of the means: 4 < 0 < 1 < 3 < 5 < 2
    assert [found[1], found[3], found[5]] == [10.0 * mirror[1], 10.0 * mirror[3] + 1, 10.0 * mirror[5] + 3]


@cache
def private(noise):
    return linear_arms(actions=ACTIONS, theta=THETA, noise=noise)


def test_what_is_spent_depends_on_the_rewards():
    build = partial(robust_elimination, actions=ACTIONS, horizon=600, num_batches=3)
    for model in ("M1", "M2"):
        one = build(epsilon=0.5, model=model)
        assert one.guarantee.spend(one.params) == (0.5, 0.0)
        assert one.guarantee.spend(one.params._replace(mechanism_scale=2.0)) == (0.25, 0.0)
        assert (one.guarantee.model, one.guarantee.unit, one.guarantee.bound) == ("local", "reward", 1.0)
        assert assumptions.overspent(one, private("gaussian"))
    made, quiet = build(epsilon=0.5), build(epsilon=np.inf)
    told, untold, silent = (private("rademacher"), made), (private("gaussian"), made), (private("gaussian"), quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for environment, algorithm in (told, silent):  # the second declares nothing
            assumptions.warn([("one", algorithm, environment, None)], "float32", stacklevel=1)
    with pytest.warns(UserWarning, match="epsilon = 0.5 is that of rewards in"):
        assumptions.warn([("one", untold[1], untold[0], None)], "float32", stacklevel=1)
    assert assumptions.overspent(made, untold[0]) and not assumptions.overspent(made, told[0])


def test_options_that_only_set_numbers_share_a_program():
    make = partial(robust_elimination, actions=ACTIONS, horizon=600, num_batches=3)
    one = make().program
    for change in ({"variance_bound": "clean"}, {"radius": "paper"}, {"presieve": True}, {"epsilon": 1.0}):
        assert make(corruption_bound=0.1, **change).program is one
    assert make(variance_bound="observed").program is not one and make(refit=True).program is not one
    # T^(2/3) = 71.1: 72 + 6 plays at most, in three bits 80
    for given, kept in (({}, 0), ({"refit": True}, 80), ({"presieve": True}, 80)):
        assert make(variance_bound="observed", **given).version[-1].largest == kept


def test_constants_of_the_radius():
    """Half of the printed scales is the default; `radius="paper"` has all constants 1; and 0 is a scale."""
    make = partial(robust_elimination, actions=ACTIONS, horizon=600, num_batches=3)
    off = {"sampling_scale": 0.0, "corruption_scale": 0.0}
    for given, want in (({}, 0.5), ({"radius": "paper"}, 1.0), (off, 0.0), ({"radius": "paper", **off}, 0.0)):
        own = make(**given).params.own.radius
        assert (own.sampling_scale, own.corruption_scale, own.bias_scale) == (want, want, 1.0)


def test_noise_beyond_single_precision_is_refused():
    """Its variance would be infinite, the radius NaN, and no arm would stay."""
    make = partial(robust_elimination, actions=ACTIONS, horizon=600, num_batches=3)
    assert make(epsilon=2e-12).params.noise_scale == 1e12
    cut = lambda **given: make(**given).params.clamp
    assert cut() == 1e6 and cut(epsilon=1e-6) == pytest.approx(100 * (1 + 1 + 2e6))
    assert cut(noise_scale=1e6) == pytest.approx(100 * (1 + 1e6))


def test_a_batch_of_more_plays_than_32_bits_hold_does_not_fit():
    """8 arms of 3e8 plays each."""
    reports = {"model": "M2", "weight_floor": 1.0, "variance_bound": "observed"}
    made = robust_elimination(actions=np.eye(8), horizon=1_900_000_000, num_batches=12, **reports)
    params = jax.tree.map(partial(cast, dtype="float32"), made.params)

    def closed(params):
        draws = Draws(np.uint32(1), "learner")
        before = made.program.init(params, draws)
        before = before._replace(memory=before.memory._replace(batch=jnp.int32(10)))
        return made.program.close(params, before, draws, jnp.int32(1)).memory

    after = jax.jit(closed)(params)
    assert int(after.batch) == 10 and bool(after.done) and not np.asarray(after.counts).any()
