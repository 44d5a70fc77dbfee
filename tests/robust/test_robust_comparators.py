"""The robust comparators and their estimators by slow definitions: every play, ties, inf and NaN, one value."""

import math
from functools import cache, partial

import jax
import numpy as np
import pytest
from against_reference import on_tape
from dealt import others
from plays import Lane, played
from scipy import optimize
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import estimators as est
from jaxbandits.algorithms import cr_ucb, huber_ucb, robust_ucb
from jaxbandits.algorithms.robust import truncated_ucb
from jaxbandits.random import Draws

RNG = np.random.default_rng(3)


def psi(y):
    return np.sign(y) * np.log(1 + np.abs(y) + y * y / 2)


def catoni(x, v, log_term):
    n = len(x)
    a = math.sqrt(2 * log_term / (n * (v + 2 * v * log_term / (n - 2 * log_term))))
    low, high = x.min() - 1, x.max() + 1
    return optimize.brentq(lambda theta: psi(a * (x - theta)).sum(), low, high, xtol=1e-14, rtol=1e-15, maxiter=500)


def huber_place(x, clip):
    """The middle of all minimisers, from the function's values at its kinks."""
    kinks = np.unique(np.concatenate([x - clip, x + clip]))
    value = np.array([np.clip(x - k, -clip, clip).sum() for k in kinks])
    zero = np.abs(value) < 1e-9 * clip * len(x)
    if zero.any():
        return (kinks[zero].min() + kinks[zero].max()) / 2
    i = np.flatnonzero(value > 0).max()  # linear between two kinks
    return kinks[i] + (kinks[i + 1] - kinks[i]) * value[i] / (value[i] - value[i + 1])


def trimmed(x, share):
    n = len(x)
    drop = math.ceil(round(share * n, 9))
    return np.median(x) if n - 2 * drop < 1 else np.sort(x)[drop : n - drop].mean()


def shorth(x, share):
    x, n = np.sort(x), len(x)
    length = n - math.floor(round(2 * share * n, 9))
    i = min(range(n - length + 1), key=lambda i: (x[i + length - 1] - x[i], i))
    return x[i : i + length].mean()


def blocks_median(x, log_term):
    n = len(x)
    h = max(1, math.floor(min(8 * (1 / 8 + log_term), n / 2)))
    m = n // h
    return np.median([x[j * m : (j + 1) * m].mean() for j in range(h)])


def cleaned(x):
    return np.where(np.isfinite(x), x, 0.0)


SAMPLES = {
    "one": np.array([1.7]),
    "two": np.array([-1.0, 4.0]),
    "equal": np.full(9, 0.3),
    "ties": np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0.0]),
    "heavy": RNG.standard_t(2, size=101),
    "far": np.concatenate([1000 + RNG.normal(size=40), [1e6, -1e6, 1e9]]),
    "wild": np.concatenate([RNG.normal(size=30), [np.inf, -np.inf, np.nan, 1e18]]),
}


SHARES, CLIPS = (0.0, 0.1, 0.25, 0.45), (0.05, 0.5, 3.0, 1e4)


@pytest.mark.parametrize("name", SAMPLES)
def test_estimators_by_their_definitions(name):
    x = SAMPLES[name]
    clean = cleaned(x)
    prob = max(0.05, 1.01 * math.exp(-len(x) / 4))

    @uncompiled
    def found(x, clip):
        return [(est.trimmed_mean(x, share), est.shorth_mean(x, share)) for share in SHARES], (
            est.huber_location(x, clip), est.catoni_mean(x, 2.0, prob))  # fmt: skip

    with jax.enable_x64():
        for clip in CLIPS:
            by_share, (huber, root) = found(x, clip)
            np.testing.assert_allclose(huber, huber_place(clean, clip), rtol=1e-9, atol=1e-9)
        for share, values in zip(SHARES, by_share, strict=True):
            np.testing.assert_allclose(values, (trimmed(clean, share), shorth(clean, share)), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(root, catoni(clean, 2.0, -math.log(prob)), rtol=1e-10, atol=1e-10)


def test_the_median_of_means_by_its_definition():
    points, groups = RNG.normal(size=(50, 3)), RNG.integers(6, size=50)
    points[7] = [np.nan, np.inf, 1.0]
    groups[groups == 4] = 2  # group 4 is empty
    means = np.array([cleaned(points)[groups == g].mean(0) for g in (0, 1, 2, 3, 5)])
    with jax.enable_x64():
        of_numbers, of_vectors = (uncompiled(partial(est.median_of_means, num_groups=6)) for _ in range(2))
        found = [of_numbers(points[:, i : i + 1], groups)[0] for i in range(3)]
        np.testing.assert_allclose(found, np.median(means, axis=0), rtol=1e-12)
        middle = uncompiled(est.geometric_median)(means).value  # of vectors, the point of least mean distance
        np.testing.assert_allclose(of_vectors(points, groups), middle, rtol=1e-9, atol=1e-9)


def test_huber_location_between_two_heaps_and_at_its_limits():
    x, huber = np.array([0.0, 0.1, 9.9, 10.0]), uncompiled(est.huber_location)
    with jax.enable_x64():
        assert float(huber(x, 1.0)) == pytest.approx(5.0)  # any point of [1.1, 8.9] is a minimiser
        assert float(huber(SAMPLES["heavy"], 1e6)) == pytest.approx(SAMPLES["heavy"].mean())
        assert float(huber(SAMPLES["heavy"], 1e-9)) == pytest.approx(np.median(SAMPLES["heavy"]), abs=1e-8)


@pytest.mark.dealt(8)
def test_estimators_under_vmap_do_not_see_their_neighbours():
    rows = RNG.standard_t(2, size=(16, 40)).astype(np.float32)
    by_share = (partial(estimate, share=0.1) for estimate in (est.trimmed_mean, est.shorth_mean))
    catoni_mean = partial(est.catoni_mean, variance=1.0, failure_prob=0.05)
    for estimate in (catoni_mean, partial(est.huber_location, clip=0.7), *by_share):
        together, few = (np.asarray(jax.jit(jax.vmap(estimate))(r)) for r in (rows, rows[:8]))
        np.testing.assert_array_equal(together[:8], few)


# -- literal indices, one arm: rewards so far in the order they came, t the coming play --------------------------------


def truncated_index(x, t, u):
    n, log_term = len(x), 2 * math.log(t)
    i = np.arange(1, n + 1)
    kept = np.abs(x) <= (np.sqrt(u * i / log_term) if log_term > 0 else np.inf)
    return np.where(kept, x, 0).sum() / n + math.sqrt(u) * math.sqrt(16 * log_term / n)


def mom_index(x, t, u):
    return blocks_median(x, 2 * math.log(t)) + math.sqrt(12 * u) * math.sqrt(32 * 2 * math.log(t) / len(x))


def catoni_index(x, t, u):
    n, log_term = len(x), 2 * math.log(t)
    return math.inf if n < 4 * log_term else catoni(x, u, log_term) + 2 * math.sqrt(u * log_term / n)


def huber_index(x, t, sigma, b, alpha, c_lim):
    n = len(x)
    if n < math.ceil(c_lim * math.log(t)):
        return math.inf
    bonus = sigma * math.sqrt(2 * math.log(t) / n) + b * math.log(t) / (3 * n)
    return huber_place(x, b) + bonus + 2 * b * alpha / (1 - 2 * alpha)


def cr_index(x, t, of, sigma, alpha, c_b, horizon):
    bonus = math.sqrt(4 * math.log(t) / len(x)) + c_b * alpha * math.sqrt(math.log(horizon))
    return of(x, alpha) + sigma / (1 - 2 * alpha) * bonus


HORIZON = 300
RUNS = {
    "truncated": (partial(robust_ucb, moment_bound=0.5), partial(truncated_index, u=0.5)),
    "truncated, order 4": (
        partial(robust_ucb, moment_order=4.0, moment_bound=0.01), partial(truncated_index, u=0.1),
    ),
    "median of means": (
        partial(robust_ucb, estimator="median_of_means", moment_bound=0.002), partial(mom_index, u=0.002),
    ),
    "catoni": (partial(robust_ucb, estimator="catoni", moment_bound=0.3), partial(catoni_index, u=0.3)),
    "huber": (
        partial(huber_ucb, noise_scale=0.2, clip=0.3, corruption_bound=0.1, min_pulls_scale=3.0),
        partial(huber_index, sigma=0.2, b=0.3, alpha=0.1, c_lim=3.0),
    ),
    "huber, defaults": (partial(huber_ucb, noise_scale=0.5),
        partial(huber_index, sigma=0.5, b=1.0, alpha=0.0, c_lim=8.0)),
    "trimmed": (
        partial(cr_ucb, noise_scale=0.3, corruption_bound=0.06, corruption_width=0.5),
        partial(cr_index, of=trimmed, sigma=0.3, alpha=0.06, c_b=0.5, horizon=HORIZON),
    ),
    "shorth": (
        partial(cr_ucb, estimator="shorth", noise_scale=0.3, corruption_bound=0.12),
        partial(cr_index, of=shorth, sigma=0.3, alpha=0.12, c_b=1.0, horizon=HORIZON),
    ),
}  # fmt: skip
ATTACKS = {  # one program: numbers are data
    "clean": {"corruption": 0.0},
    "nan": {"corruption": 0.1, "value": "nan"},
    "3": {"corruption": 0.1, "value": 3.0},
    "-1e6": {"corruption": 0.05, "value": -1e6},
    # equal arms that pay 0.5 or 1: sums tie
    "tied": {"corruption": 0.4, "value": 1.0},
}


def replayed(index, actions, rewards, num_arms):
    """How many plays the definition would have made otherwise: of the first 60, then of every fourth."""
    seen, wrong = [[] for _ in range(num_arms)], 0
    for t, (action, reward) in enumerate(zip(actions, cleaned(rewards), strict=True), 1):
        if t <= 60 or t % 4 == 0:
            indices = [index(np.array(x), t) if x else math.inf for x in seen]
            best = max(indices)
            tied = best if math.isinf(best) else best - 1e-9 * abs(best)
            wrong += int(action != next(a for a, value in enumerate(indices) if value >= tied))
        seen[action].append(reward)
    return wrong


def parts(name, means=(0.0, 0.25, 0.5), scale=0.4, **attack):
    """A lane's algorithm, environment and adversary."""
    arms = jb.environments.gaussian_arms(means=list(means), scale=scale)
    return RUNS[name][0](num_arms=3, horizon=HORIZON), arms, jb.adversaries.huber(**attack)


@cache
def runs_of(name):
    """The run under each attack."""
    arms = {"tied": {"means": [0.5] * 3, "scale": 0.0}}
    lanes = [Lane(5, *parts(name, **arms.get(attack, {}), **hand)) for attack, hand in ATTACKS.items()]
    runs = dict(zip(ATTACKS, played(lanes, checkpoints=1), strict=True))
    for run in runs.values():
        assert all(np.all(np.isfinite(leaf) | np.isinf(leaf)) for leaf in jax.tree.leaves(run.state))  # no NaN
    return runs


@pytest.mark.parametrize("name", RUNS)
def test_every_play_is_the_definition(name):
    index = RUNS[name][1]
    for attack, run in runs_of(name).items():
        if attack == "tied" and name.startswith(("catoni", "huber")):
            continue  # their roots are not exact
        assert replayed(index, run.history.action, run.history.reward, 3) == 0, attack
        assert len(np.unique(run.history.action)) == 3
        if name.startswith("truncated"):
            assert run.diagnostics["left_early"] == 0
        assert run.diagnostics["nonfinite_rewards"] == np.sum(~np.isfinite(run.history.reward))


WRONG = {
    "a larger scale": lambda index, x, t: index(x, t) * (1 + 0.2 / math.sqrt(len(x))),
    "half of t": lambda index, x, t: index(x, max(1, t // 2)),
}


@pytest.mark.planted("an index by its definition")
@pytest.mark.parametrize(("name", "error"), [
    (name, error) for name in RUNS for error in WRONG
    if (name, error) != ("median of means", "half of t")  # its bonus dwarfs everything at such horizons
])  # fmt: skip
def test_planted_errors_are_noticed(name, error):
    run, index = runs_of(name)["3"], RUNS[name][1]
    assert replayed(partial(WRONG[error], index), run.history.action, run.history.reward, 3) > 0


def test_a_truncated_sample_leaves_when_the_threshold_passes_it():
    """Rewards of 1, u = 1: sample i of an arm counts at play t iff 2 ln t <= i."""
    ones = jb.environments.bernoulli_arms(means=[1.0, 1.0])
    means = []
    for horizon in (3, 10, 60):  # plays alternate, so each arm has horizon / 2 samples
        run = jb.simulate(partial(robust_ucb, horizon=horizon + 1), ones, checkpoints=1)
        after = run.state.pulls.tolist()
        now = 2 * math.log(horizon + 2)
        want = [sum(i >= now for i in range(1, n + 1)) / n for n in after]
        np.testing.assert_allclose(run.state.arms[:, 0], want, rtol=1e-6)
        means.append(want)
    assert means[0] != means[1] != means[2]


def test_more_samples_than_can_be_watched_leave_at_once_and_are_counted(monkeypatch):
    ones = jb.environments.bernoulli_arms(means=[1.0, 1.0])
    make = partial(robust_ucb, horizon=6000, moment_bound=0.02)  # sample i counts while 100 ln t <= i
    assert jb.simulate(make, ones, checkpoints=1).diagnostics["left_early"] > 0
    monkeypatch.setattr(truncated_ucb, "WATCHED_PER_ARM", 400)
    truncated_ucb.program.cache_clear()
    try:
        roomy = jb.simulate(make, ones, checkpoints=1)
    finally:
        truncated_ucb.program.cache_clear()
    assert roomy.diagnostics["left_early"] == 0


@pytest.mark.dealt(4)
def test_outliers_break_ucb1_and_not_the_truncated_mean():
    arms = jb.environments.gaussian_arms(means=[0.0, 0.5], scale=0.3)
    ds = jb.sweep(
        {"ucb1": jb.algorithms.ucb1, "truncated": partial(robust_ucb, moment_bound=0.05)}, arms, horizon=3000, seeds=32,
        reward_adversary=partial(jb.adversaries.huber, corruption=0.05, value=-1e6), progress=False,
    )  # fmt: skip
    final = ds.regret.sel(t=3000).mean("seed")
    assert float(final.sel(algorithm="truncated")) < 200 < float(final.sel(algorithm="ucb1"))


@pytest.mark.parametrize("name", others(["truncated", "median of means", "catoni", "huber", "trimmed", "shorth"], 6))
def test_huge_rewards_leave_no_nan_behind(name):
    attack = {"corruption": 0.4, "kind": "random_sign", "value": 3e38}
    (run,) = played([Lane(5, *parts(name, **attack))], checkpoints=1, dtype="float32")
    assert all(np.all(np.isfinite(leaf) | np.isinf(leaf)) for leaf in jax.tree.leaves(run.state))
    assert run.history.action.shape == (HORIZON,)


@pytest.mark.parametrize("name", others(["median of means", "catoni", "huber", "shorth"]))
def test_a_lane_does_not_see_the_others(name):
    """The variants that the contract tests' table leaves out: loops run for the slowest lane."""
    arms = jb.environments.gaussian_arms(means=[0.0, 0.25, 0.5], scale=0.4)
    attack = partial(jb.adversaries.huber, corruption=0.1, value=3.0)
    run = partial(jb.sweep, RUNS[name][0], arms, horizon=200, reward_adversary=attack, progress=False)
    np.testing.assert_array_equal(run(seeds=range(7, 8)).pulls[:, 0], run(seeds=64).pulls[:, 7])


def test_parameters_share_a_program_and_horizons_share_shapes():
    assert robust_ucb(num_arms=3, horizon=100).program is robust_ucb(num_arms=3, horizon=999, moment_bound=2).program
    assert cr_ucb(num_arms=3, horizon=100).program is cr_ucb(num_arms=3, horizon=128, corruption_bound=0.3).program
    assert huber_ucb(num_arms=3, horizon=100).program is huber_ucb(num_arms=3, horizon=90, clip=3.0).program
    build = partial(robust_ucb, num_arms=3, horizon=100)
    assert build(estimator="median_of_means").program is not build(estimator="catoni").program
    assert build(moment_order=3.0, moment_bound=8.0).params.moment_bound == pytest.approx(4.0)


def test_indices_within_rounding_are_tied_and_go_to_the_lowest_arm():
    for made in (
        huber_ucb(num_arms=2, horizon=32, noise_scale=1e-3),
        robust_ucb(num_arms=2, horizon=32, estimator="catoni", moment_bound=1e-8),
    ):
        for dtype, tied, apart in ((np.float32, 5e-7, 3e-6), (np.float64, 5e-13, 1e-9)):
            with jax.enable_x64(dtype == np.float64):
                draws, params = Draws(np.uint32(0), "alg/act", dtype), jax.tree.map(dtype, made.params)
                start = uncompiled(made.program.init)(params, draws)
                start = start._replace(pulls=start.pulls + start.pulls.dtype.type(10))
                given, at = (params, start, draws), np.array([2], np.int32)

                def chosen(x, act=made.program.act, given=given, at=at):
                    params, start, draws = given
                    return act(params, start._replace(estimate=x), draws, at, ())[0][0]

                act = uncompiled(chosen)
                assert [int(act(np.array([1, 1 + x], dtype))) for x in (tied, apart)] == [0, 1]


def test_an_arm_that_was_never_played_comes_first():
    made = huber_ucb(num_arms=3, horizon=6, noise_scale=0.01, min_pulls_scale=0.0)
    rewards = np.tile([1.0, 0.0, 0.0], (6, 1))
    assert on_tape(made, np.zeros((6, 1)), rewards)[0].tolist() == [0, 1, 2, 0, 0, 0]
