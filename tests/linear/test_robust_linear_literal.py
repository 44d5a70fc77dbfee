"""The transcriptions of robust linear bandits by themselves:
the invariants of docs/formulas/robust_linear.md#invariants, paths by hand, planted errors.
"""

import itertools
import math

import numpy as np
import pytest
from against_reference import planted
from reference import robust_linear, robust_linear_rivals
from reference.linear import design

K, DIM = 8, 3
ACTIONS = np.random.default_rng(0).normal(size=(K, DIM))
ACTIONS /= np.linalg.norm(ACTIONS, axis=1)[:, None]
THETA = np.array([0.7, 0.5, -0.3])
MEANS = ACTIONS @ THETA
MODELS = ("M1", "M2")


class World:
    """Draws of one seed by play, and reports replaced with probability `share` by `value`."""

    def __init__(self, seed, horizon, share=0.0, value=1e6, means=MEANS, noise=1.0):
        rng = np.random.default_rng(seed)
        self.means, self.value = means, value
        self.noise, self.lap = noise * rng.normal(size=horizon + 2), rng.laplace(size=horizon + 2)
        self.normals = rng.normal(size=horizon + 2)
        self.hit, self.uniforms = rng.random(horizon + 2) < share, rng.random((20, 400))

    def reward(self, t, arm):
        return self.means[arm] + self.noise[t]

    def laplace(self, *place):
        return self.lap[place[-1].last]

    def normal(self, label, place):
        return self.normals[place.last]

    def attack(self, report, place):
        return self.value if self.hit[place.last] else report

    def uniform(self, batch, last, s):
        return self.uniforms[batch, s]

    def elimination(self, module=robust_linear, actions=ACTIONS, *, horizon, num_batches, **settings):
        setup = module.Setup(actions, horizon, num_batches, **settings)
        return module.robust_elimination(
            setup, self.reward, laplace=self.laplace, uniform=self.uniform, attack=self.attack
        )


def least_squares(batch, keep=None):
    """Of a batch's reports by numpy, in the rank's coordinates."""
    keep = np.ones(len(batch.reports), bool) if keep is None else keep
    rows = ACTIONS[[place.arm for place in batch.places]] @ batch.design.basis
    return batch.design.basis @ np.linalg.lstsq(rows[keep], batch.reports[keep], rcond=None)[0]


# ---------------------------------------------------------------- invariants


@pytest.mark.parametrize("slack", [1.0, 0.1])
def test_the_design_satisfies_kiefer_wolfowitz(slack):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        actions = rng.normal(size=(12, 4)) @ np.diag([1, 1, 1, seed % 2])  # every other one has rank 3
        d = design(actions, slack=slack)
        points = actions @ d.basis
        inverse = np.linalg.inv(points.T @ (d.weights[:, None] * points))
        leverages = np.einsum("ai,ij,aj->a", points, inverse, points)
        assert d.rank == 3 + seed % 2
        assert d.weights.sum() == pytest.approx(1) and d.weights @ leverages == pytest.approx(d.rank)
        assert d.rank <= leverages.max() <= (1 + slack) * d.rank * (1 + 1e-8)
        assert d.max_leverage == pytest.approx(leverages.max())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_without_removal_the_estimate_is_least_squares(model, epsilon):
    for seed in range(5):
        run = World(seed, 2000).elimination(
            horizon=2000, num_batches=4, model=model, epsilon=epsilon, variance_bound="clean"
        )
        assert len(run.actions) == 2000 and len(run.batches) == 3
        for batch in run.batches:
            assert batch.removed == 0 and batch.keep.all()
            np.testing.assert_allclose(batch.estimate, least_squares(batch), atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_the_observed_bound_removes_nothing_whatever_is_reported(model):
    for seed, (share, value) in itertools.product(range(6), [(0.1, 1e6), (0.3, 30.0), (0.05, -3.0)]):
        run = World(seed, 1500, share, value).elimination(
            horizon=1500, num_batches=4, model=model, variance_bound="observed"
        )
        for batch in run.batches:
            assert batch.removed == 0
            np.testing.assert_allclose(batch.estimate, least_squares(batch), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_without_privacy_nothing_is_drawn_and_large_epsilon_is_its_limit(model):
    world = World(3, 2000)
    public = world.elimination(horizon=2000, num_batches=4, model=model)
    np.testing.assert_array_equal(
        public.actions, world.elimination(horizon=2000, num_batches=4, model=model, epsilon=1e12).actions
    )
    world.lap[:] = math.nan
    np.testing.assert_array_equal(public.actions, world.elimination(horizon=2000, num_batches=4, model=model).actions)


def test_the_path_is_that_of_the_rotated_problem():
    rotation = np.linalg.qr(np.random.default_rng(5).normal(size=(DIM, DIM)))[0]
    for seed, model in itertools.product(range(4), MODELS):
        settings = {"horizon": 1500, "num_batches": 4, "model": model, "corruption_bound": 0.1}
        world = World(seed, 1500, 0.1, 30.0)
        runs = [world.elimination(actions=a, **settings) for a in (ACTIONS, ACTIONS @ rotation)]
        np.testing.assert_array_equal(runs[0].actions, runs[1].actions)


def test_arms_pulled_once_make_the_models_one():
    """q = 4.5 with weights 1 / 5: one pull an arm in the only batch."""
    actions = np.eye(5)
    world = World(1, 20, means=actions @ np.full(5, 0.3))
    runs = [
        world.elimination(actions=actions, horizon=20, num_batches=2, model=m, epsilon=2.0, corruption_bound=0.1)
        for m in MODELS
    ]
    assert [run.batches[0].counts.tolist() for run in runs] == [[1] * 5] * 2
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    for field in ("bound", "radius"):
        assert getattr(runs[0].batches[0], field) == pytest.approx(getattr(runs[1].batches[0], field))


# ---------------------------------------------------------------- threshold, radius, filter and edges


def test_the_filter_removes_by_the_law():
    """Every order of removals on five points, its probability multiplied out, against 4,000 runs."""
    points = np.random.default_rng(2).normal(size=(5, 2)) * [3, 1]
    bound = 0.1

    def enumerated(left):
        x = points[list(left)]
        centred = x - x.mean(axis=0)
        values, vectors = np.linalg.eigh(centred.T @ centred / len(left))
        if values[-1] < 4 * bound or len(left) <= 1:
            return {left: 1.0}
        tau, law = (centred @ vectors[:, -1]) ** 2, {}
        for i, share in zip(left, tau / tau.sum(), strict=True):
            for end, more in enumerated(tuple(j for j in left if j != i)).items():
                law[end] = law.get(end, 0.0) + share * more
        return law

    law, rng, runs = enumerated(tuple(range(5))), np.random.default_rng(3), 4000
    seen = {}
    for u in rng.random((runs, 5)):
        result = robust_linear.spectral_filter(lambda s, u=u: u[s], points, bound)
        end = tuple(np.flatnonzero(result.keep).tolist())
        seen[end] = seen.get(end, 0) + 1
    assert len(law) > 5 and set(seen) <= set(law)
    for end, share in law.items():
        assert abs(seen.get(end, 0) / runs - share) <= 4 * math.sqrt(share * (1 - share) / runs) + 1e-9


def test_sums_by_arm_are_the_filters_numbers():
    """docs/formulas/robust_linear.md#block-sums: mean, covariance and scores from N, S1 and S2 of every arm."""
    rng = np.random.default_rng(4)
    arms, u, r = rng.integers(4, size=60), rng.normal(size=(4, 3)), rng.normal(size=60) * 5
    x, n = u[arms] * r[:, None], 60
    held, first, second = (np.array([np.sum(r[arms == a] ** p) for a in range(4)]) for p in (0, 1, 2))
    mean = u.T @ first / n
    covariance = u.T @ np.diag(second / n) @ u - np.outer(mean, mean)
    np.testing.assert_allclose(covariance, np.cov(x.T, bias=True), atol=1e-12)
    top, v = robust_linear.top_eigenpair(covariance)
    assert robust_linear.squared_eigenpair(covariance)[0] == pytest.approx(top, rel=1e-6)
    scores, c, level = ((x - mean) @ v) ** 2, u @ v, v @ mean
    for a in range(4):
        expected = c[a] ** 2 * second[a] - 2 * c[a] * level * first[a] + level**2 * held[a]
        assert np.sum(scores[arms == a]) == pytest.approx(expected)


@pytest.mark.parametrize("value", [1e6, -1e30, math.inf, math.nan])
def test_gross_outliers_leave_no_trace(value):
    """They are removed or dropped, and the average is over the others."""
    for seed in range(4):
        world = World(seed, 3000, 0.08, value)
        batch = world.elimination(horizon=3000, num_batches=3, corruption_bound=0.1).batches[-1]
        hit = world.hit[[place.last for place in batch.places]]
        assert hit.sum() > 3 and not batch.keep[hit].any()
        assert (~batch.keep[~hit]).sum() <= 2
        survivors = np.where(batch.keep, batch.reports, 0.0) * len(hit) / batch.keep.sum()
        expected = least_squares(batch._replace(reports=survivors))
        np.testing.assert_allclose(batch.estimate, expected, atol=1e-9)
        refit = world.elimination(horizon=3000, num_batches=3, corruption_bound=0.1, refit=True).batches[0]
        np.testing.assert_allclose(refit.estimate, least_squares(refit, refit.keep), atol=1e-9)


def test_nothing_left_eliminates_nothing():
    for model in MODELS:
        run = World(0, 500, 1.0, math.nan).elimination(horizon=500, num_batches=3, model=model, corruption_bound=0.1)
        assert all(batch.active == list(range(K)) and not batch.estimate.any() for batch in run.batches)
        assert run.actions[-1] == 0 and len(run.actions) == 500


def test_the_sieve_meets_values_under_the_filters_threshold():
    """docs/formulas/robust_linear.md#sieve-and-refit: v = 10 passes both bounds;
    the sieve drops it and almost nothing else.
    """
    world = World(2, 4000, 0.05, 10.0)
    kept, wrongly = [], 0
    for presieve in (False, True):
        batch = world.elimination(horizon=4000, num_batches=3, corruption_bound=0.05, presieve=presieve).batches[-1]
        hit = world.hit[[place.last for place in batch.places]]
        kept.append(batch.keep[hit].mean())
        wrongly = (~batch.keep[~hit]).sum()
    assert kept[0] > 0.5 and kept[1] == 0 and wrongly <= 1


def test_numbers_by_hand():
    """Two orthogonal arms, T = 100, B = 2: q = 10, five pulls each, M = 5 I, so mu = 1 / 5."""
    actions, means = np.eye(2), np.array([0.8, 0.1])
    world, log = World(0, 100, means=means, noise=0.0), math.log(2 * 2 * 2 / 0.05)
    settings = {"actions": actions, "horizon": 100, "num_batches": 2}
    run = world.elimination(noise_scale=0.0, **settings)
    assert run.actions.tolist() == [0] * 5 + [1] * 5 + [0] * 90
    (batch,) = run.batches
    assert batch.bound == pytest.approx(1 / 10) and batch.radius == 0 and batch.active == [0]
    # sigma = 1, epsilon = 2 (b = 1), alpha = 0.04: V = 3 * 5 / 25, c = 1 / 5, rho^2 = 4
    private = {"epsilon": 2.0, "corruption_bound": 0.04, "mechanism_scale": 0.0, **settings}
    (batch,) = world.elimination(**private).batches
    assert batch.bound == pytest.approx(4 / 10)
    corrupted = 0.5 * math.sqrt(4 * 0.04) + 0.04
    assert batch.radius == pytest.approx(0.5 * (math.sqrt(2 * 0.6 * log) + log / 5) + corrupted)
    (batch,) = world.elimination(variance_bound="clean", sampling_scale=2.0, corruption_scale=0.0, **private).batches
    assert batch.bound == pytest.approx(4 / 5)
    assert batch.radius == pytest.approx(2 * (math.sqrt(2 * 0.6 * log) + log / 5) + 0.04)
    (batch,) = world.elimination(variance_bound="observed", **private).batches
    assert batch.bound == pytest.approx((0.64 + 0.01) / 2 / 5)
    # M2: two reports, M = I, V = 1 / 5 + 2 / 25, c = 1 / 5, rho^2 = 1 + 1 / 5 + 2 / 25
    (batch,) = world.elimination(model="M2", **private).batches
    corrupted = 0.5 * math.sqrt(1.28 * 0.04) + 0.04
    assert batch.bound == pytest.approx(1.28 / 2)
    assert batch.radius == pytest.approx(0.5 * (math.sqrt(2 * 0.28 * log) + log / 5) + corrupted)
    # the paper's radius: delta' = 0.05 / 20,000, so L = log(400,000); d = 2, m = 10, alpha = 0.04
    prob = 400_000.0
    log = math.log(prob)
    (batch,) = world.elimination(radius="paper", **private).batches
    y = 1 + math.sqrt(math.log(10 * prob)) + math.log(10 * prob) / 2
    expected = math.sqrt(0.4) * (math.sqrt(log) + log / 2) + (4 * (0.2 + math.sqrt(0.004 * log)) + 0.08) * y + 0.04
    assert batch.radius == pytest.approx(expected)
    (batch,) = world.elimination(radius="paper", model="M2", weight_floor=0.5, bias_scale=3.0, **private).batches
    log_k = math.log(2 * prob)
    y = 1 + math.sqrt(log_k / 5) + log_k / 10
    expected = 2 * (math.sqrt(log / 5) + log / 10)
    expected += (4 * (2 * 0.2 + math.sqrt(0.08 * log)) + math.sqrt(8) * 0.04) * y + 0.12
    assert batch.radius == pytest.approx(expected)


@pytest.mark.parametrize("model", MODELS)
def test_errors_of_the_estimate_have_the_variance_of_the_radius(model):
    """300 seeds: <x, estimate - theta>^2 over V is 1 within 4 standard errors, and neither 2/3 nor 3/2 of it is."""
    ratios = []
    for seed in range(300):
        batch = World(seed, 400).elimination(
            horizon=400, num_batches=2, model=model, epsilon=1.0, sampling_scale=1.0, variance_bound="observed"
        ).batches[0]  # fmt: skip
        n, points = batch.counts, ACTIONS
        moment = points.T @ ((n if model == "M1" else n > 0)[:, None] * points)
        w = points[0] @ np.linalg.inv(moment) @ points.T
        if model == "M1":
            variance = (1 + 2 * 4) * np.sum(n * w**2)
        else:
            variance = sum(w[a] ** 2 * (1 / n[a] + 2 * (2 / n[a]) ** 2) for a in np.flatnonzero(n))
        ratios.append((points[0] @ (batch.estimate - THETA)) ** 2 / variance)
    error = np.std(ratios) / math.sqrt(300)
    assert abs(np.mean(ratios) - 1) < 4 * error
    assert abs(np.mean(ratios) * 1.5 - 1) > 2 * error and abs(np.mean(ratios) / 1.5 - 1) > 2 * error


def test_bad_input():
    for settings in ({"corruption_bound": 0.25}, {"num_batches": 12}, {"actions": np.zeros((3, 2))}):
        with pytest.raises(ValueError):
            World(0, 100).elimination(**{"horizon": 100, "num_batches": 2, **settings})


def test_zero_arms():
    """A lone zero arm beside others is never in the design; one arm left goes on."""
    actions = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    run = World(0, 300, means=actions @ [-0.5, -0.5], noise=0.0).elimination(
        actions=actions, horizon=300, num_batches=3, noise_scale=0.0
    )
    assert run.batches[0].counts[0] == 0 and run.batches[0].active == [0] and run.actions[-1] == 0
    assert len(run.batches) == 1  # rank 0: exploration stops


# ---------------------------------------------------------------- planted errors

CASES = {
    "public": {},
    "private": {"epsilon": 1.0},
    "contaminated": {"corruption_bound": 0.1},
    "clean": {"corruption_bound": 0.05, "variance_bound": "clean", "presieve": True},
    "both": {"epsilon": 0.7, "corruption_bound": 0.1, "weight_floor": 0.35, "sampling_scale": 0.1},
    "second moment": {"epsilon": 0.3, "corruption_bound": 0.2, "sampling_scale": 0.05, "corruption_scale": 2.0},
    "refit": {"corruption_bound": 0.1, "refit": True},
    "paper": {"radius": "paper", "sampling_scale": 0.2, "corruption_bound": 0.01, "corruption_scale": 0.02},
}
PLANTED = [
    ("2 * radius", "4 * radius"),
    ("4 * bound", "bound"),
    ("growth**i, model", "growth ** (i - 1), model"),
    ("reward(len(played), a)", "reward(len(played) - 1, a)"),
    ("1 + noise_scale**2 + 2 * b**2", "(1 + noise_scale**2 + 2 * b**2) / 4"),
    ("1 + noise_scale**2 / least + 2 * (b / least) ** 2", "1 + noise_scale**2 / least"),
    ("theta = n * root", "theta = len(kept) * root"),
    ("uniform(removed)", "uniform(removed + 1)"),
    ("clean_square / num_reports", "clean_square"),
    ("return 0.0 if math.isinf(epsilon) else 2 / epsilon", "return 0.0 if math.isinf(epsilon) else 1 / epsilon"),
    ("max(weight, weight_floor)", "weight"),
    ("c_stat * statistical", "2 * c_stat * statistical"),
    ("math.log(2 * arms * s.num_batches", "math.log(4 * arms * s.horizon"),
    ("h, b = math.log(", "h, b = 40 * math.log("),
    ("survivors, r[keep]", "survivors, r[keep] * 1.3"),
]


def paths(module):
    return [
        World(seed, 2500, 0.08 if "corruption_bound" in settings else 0.0, 25.0).elimination(
            module, horizon=2500, num_batches=4, model=model, **settings
        ).actions
        for settings in CASES.values() for model in MODELS for seed in range(4)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def honest():
    return paths(robust_linear)


@pytest.mark.parametrize(("old", "new"), PLANTED)
def test_a_planted_error_changes_a_path(honest, old, new):
    wrong = paths(planted(robust_linear, old, new))
    assert any(not np.array_equal(a, b) for a, b in zip(honest, wrong, strict=True))


# ---------------------------------------------------------------- rivals

TWO = {"actions": np.eye(2), "horizon": 3000}


def two(noise=0.0, seed=0, **more):
    return World(seed, 3000, means=np.array([0.8, 0.1]), noise=noise, **more)


def test_phased_elimination_by_hand():
    """l = 1: 2 * 2 * 1/2 * 4 * log(4 * 2 / 0.05) = 40.6 pulls an arm; 2 e = 1 keeps both; l = 2 drops the second."""
    run = robust_linear_rivals.phased_elimination(reward=two().reward, **TWO)
    first, second = math.ceil(8 * math.log(160)), math.ceil(32 * math.log(480))
    assert [phase.counts for phase in run.batches[:2]] == [[first] * 2, [second] * 2]
    assert [phase.active for phase in run.batches] == [[0, 1], [0], [0]]
    assert np.sum(run.actions == 1) == first + second and len(run.actions) == 3000


def test_bogunovic_elimination_by_hand():
    """m_0 = 8 (log log 2 + 18) = 141.07, halves of 70.53: 71 pulls each."""
    run = robust_linear_rivals.bogunovic_elimination(reward=two().reward, **TWO)
    assert [phase.counts for phase in run.batches[:2]] == [[71, 71], [142, 142]]
    assert run.batches[0].radius == pytest.approx(math.sqrt(8 / 141.0677 * math.log(20)), rel=1e-5)
    more = robust_linear_rivals.bogunovic_elimination(reward=two().reward, corruption=5.0, **TWO).batches[0].radius
    added = 5 / 14.10677 * math.sqrt(8 * (1 + 14.10677))
    assert more - run.batches[0].radius == pytest.approx(added, rel=1e-5)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_central_noise_has_its_scale(mechanism):
    """Arms' means of one batch over 400 seeds: variance of the noise over n_a^2, beside the rewards'."""
    settings = {"mechanism": mechanism, "epsilon": 0.5, "delta": 0.01, "log": 3.0, "last": 1}
    scale = 4.0 if mechanism == "laplace" else 4 * math.sqrt(2 * math.log(125))
    estimates = []
    for seed in range(400):
        world = two(1.0, seed)
        run = robust_linear_rivals.private_elimination(
            reward=world.reward, size_of=lambda phase: 40, laplace=world.laplace, normal=world.normal, **settings, **TWO
        )
        estimates.append(run.batches[0].estimate[0])
    assert run.batches[0].counts == [20, 20]
    variance = 1 / 20 + (2 if mechanism == "laplace" else 1) * (scale / 20) ** 2
    assert np.mean(estimates) == pytest.approx(0.8, abs=4 * math.sqrt(variance / 400))
    assert np.var(estimates) / variance == pytest.approx(1, abs=0.3)


def test_locations_resist_outliers_that_sink_the_mean():
    def final(eliminate, **more):
        arms = []
        for seed in range(10):
            world = two(1.0, seed, share=0.1, value=-30.0)
            s = robust_linear.Setup(np.eye(2), 3000, 2, corruption_bound=0.1)
            attack = lambda r, place, world=world: r if place.arm else world.attack(r, place)
            arms.append(eliminate(s, world.reward, attack=attack, **more).actions[-1])
        return sum(arm == 0 for arm in arms)

    assert final(robust_linear_rivals.trimmed_elimination, share=0.2) >= 9
    assert final(robust_linear_rivals.trimmed_elimination, estimator="median") >= 9
    assert final(robust_linear_rivals.median_elimination) >= 9
    assert final(robust_linear_rivals.trimmed_elimination, share=0.0) <= 2  # the mean


def test_the_geometric_median_of_three_is_the_fermat_point():
    """An equilateral triangle's centre; a vertex with an angle of 120 degrees or more."""
    triangle = [[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]]
    np.testing.assert_allclose(robust_linear_rivals.weiszfeld(triangle), [0.5, math.sqrt(0.75) / 3], atol=1e-12)
    flat = [[0.0, 0.0], [2.0, 0.0], [1.0, 0.1]]
    np.testing.assert_allclose(robust_linear_rivals.weiszfeld(flat, iterations=2000), [1.0, 0.1], atol=1e-3)
