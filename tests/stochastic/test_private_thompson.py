"""Private Thompson sampling: literal paths, laws, claims and bad arguments."""

import functools
import math
from functools import partial

import numpy as np
import pytest
from against_reference import apart, exact_draw
from dealt import dealt
from planting import errors, planted
from plays import watched
from reference import private_thompson as reference

import jaxbandits as jb
from jaxbandits import mechanisms
from jaxbandits.algorithms import dp_ts_ucb, gdp_thompson, lazy_dp_ts
from jaxbandits.algorithms.stochastic.dp_ts_ucb import draws_of_an_epoch

EASY = [0.75, 0.625, 0.5, 0.375, 0.25]
K, T, LANES = 5, 400, 128
ARMS = jb.environments.bernoulli_arms(means=EASY)
BETWEEN = jb.environments.gaussian_arms(means=EASY, scale=0.2)
# what the algorithm is given, and what the literal loop is
CASES = {
    "dp_ts_ucb": (dp_ts_ucb, {}, {}),
    "dp_ts_ucb, half": (dp_ts_ucb, {"tradeoff": 0.5}, {"tradeoff": 0.5}),
    "dp_ts_ucb, few draws": (dp_ts_ucb, {"budget": 3}, {"budget": 3}),
    "gdp_thompson": (gdp_thompson, {}, {}),
    "gdp_thompson, in advance": (
        gdp_thompson, {"pre_pulls": 4, "variance_scale": 0.3}, {"pre_pulls": 4, "variance_scale": 0.3}),
}  # fmt: skip


pytestmark = pytest.mark.filterwarnings("ignore:.*reads rewards in:UserWarning")  # clipped ones are paid on purpose


def run_of(name, seed, environment=BETWEEN):
    factory, arguments, _ = CASES[name]
    return watched(factory(num_arms=K, horizon=T, **arguments), environment, seed).history


def literal(name, history, seed, loops=reference):
    """The literal path on the draws of a run; a path that leaves the run's is not paid from there on."""
    factory, _, arguments = CASES[name]
    pay = lambda t, arm: float(history.reward[t - 1]) if history.action[t - 1] == arm else 0.0
    normal = exact_draw(seed, "alg/act", "normal", np.arange(T + 1), (K,))
    return getattr(loops, factory.__name__)(pay, lambda t, arm: normal[t, arm], num_arms=K, horizon=T, **arguments)


@pytest.mark.parametrize("name", CASES)
def test_paths_and_draws_are_the_literal_ones(name):
    for seed in range(3):
        history = run_of(name, seed)
        actions, drawn = literal(name, history, seed)
        np.testing.assert_array_equal(history.action, actions)
        want = [[made.get(arm, math.nan) for arm in range(K)] for made in drawn]
        np.testing.assert_allclose(history.released, want, atol=1e-9)


PLANTED = [
    ("dp_ts_ucb", "max(top[a], made[a])", "made[a]"), ("dp_ts_ucb", "sum(fresh[arm]) / size[arm]", "m[arm]"),
    ("dp_ts_ucb, few draws", "left[a] > 0", "left[a] > 1"), ("dp_ts_ucb, half", "v / n[a]", "v / (n[a] + 1)"),
    ("dp_ts_ucb", "fresh[arm], size[arm] = [], 2 * size[arm]", "fresh[arm], size[arm] = [], size[arm] + 1"),
    ("dp_ts_ucb, half", "math.log(horizon) ** tradeoff", "math.log(horizon)"),
    ("gdp_thompson", "variance_scale / (pulls[a] + 1)", "variance_scale / max(pulls[a], 1)"),
    ("gdp_thompson", "total[a] / (pulls[a] + 1)", "total[a] / max(pulls[a], 1)"),
    ("gdp_thompson, in advance", "(t - 1) // pre_pulls", "(t - 1) % num_arms"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "error"), errors(PLANTED, reference))
def test_planted_errors_fork_the_path(name, error):
    wrong = planted(*error)
    runs = ((seed, run_of(name, seed)) for seed in range(12))
    assert any(not np.array_equal(h.action, literal(name, h, seed, wrong)[0]) for seed, h in runs)


def lazily(epsilon, lanes, loops=reference, horizon=T, **options):
    """Regrets of the literal Lazy-DP-TS on draws of its own."""
    return np.array([_lazily(np.random.default_rng(lane), epsilon, loops, horizon, options) for lane in range(lanes)])


def _lazily(rng, epsilon, loops, horizon, options):
    actions, _ = loops.lazy_dp_ts(
        lambda t, arm: float(rng.random() < EASY[arm]), lambda t: rng.random(), lambda t: rng.laplace(),
        lambda t, arm, a, b: rng.beta(a, b), num_arms=K, horizon=horizon, epsilon=epsilon, **options,
    )  # fmt: skip
    return sum(EASY[0] - EASY[arm] for arm in actions)


@functools.cache
def lazy_regrets(epsilon, lanes, horizon=T, **options):
    found = jb.sweep(
        partial(lazy_dp_ts, epsilon=epsilon, **options), ARMS, horizon=horizon, seeds=lanes, checkpoints=1,
        progress=False,
    )  # fmt: skip
    return found.regret.values.ravel()


LAWS = {
    f"{epsilon}, {logarithm}": (epsilon, logarithm)
    for epsilon in (1.0, 20.0, math.inf) for logarithm in ("binary", "natural")
}  # fmt: skip


@pytest.mark.parametrize("name", dealt(LAWS, 4, always=["1.0, natural", "20.0, binary"]))
def test_lazy_dp_ts_has_the_literal_law(name):
    epsilon, logarithm = LAWS[name]
    options = {} if logarithm == "binary" else {"logarithm": logarithm}
    assert apart(lazy_regrets(epsilon, LANES, **options), lazily(epsilon, 64, **options)) <= 4


@pytest.mark.parametrize("error", errors([
    ("3 * log(t) / O[j]", "log(t) / O[j]"), ("u * O[j] + 1", "u * O[j] / 8 + 1"),
    ("r[arm], buffer[arm] = r[arm] + 1, []", "r[arm], buffer[arm] = r[arm], []"),
], reference))  # fmt: skip
def test_planted_errors_change_the_law(error):
    assert apart(lazy_regrets(20.0, LANES), lazily(20.0, 64, planted(*error))) > 4


def test_lazy_dp_ts_releases_noisy_means_of_its_epochs():
    """Bits are integers, so what is released beyond the noise is a whole number of them over the epoch's length."""
    algorithm = lazy_dp_ts(num_arms=K, horizon=T, epsilon=2.0)
    history = watched(algorithm, ARMS, 3).history
    noise = exact_draw(3, "alg/update/mean", "laplace", np.arange(T + 1)) / 2
    sizes, left, heard = [1] * K, [1] * K, [0.0] * K
    for t, (arm, reward, mean) in enumerate(zip(history.action, history.reward, history.released, strict=True), 1):
        left[arm], heard[arm] = left[arm] - 1, heard[arm] + float(reward)
        if left[arm] > 0:
            assert np.isnan(mean)
            continue
        assert mean * sizes[arm] == pytest.approx(heard[arm] + noise[t], abs=1e-9)
        sizes[arm], heard[arm] = 2 * sizes[arm], 0.0
        left[arm] = sizes[arm]
    assert max(sizes) > 16


OTHERS = {
    "lazy_dp_ts": (partial(lazy_dp_ts, epsilon=1.0), 5000, 449.4, 1.8), "dp_ts_ucb": (dp_ts_ucb, 5000, 581.5, 4.1),
    "gdp_thompson": (partial(gdp_thompson, pre_pulls=10, variance_scale=4.0), 5000, 259.3, 1.2),
}  # fmt: skip


@pytest.mark.parametrize("name", dealt(OTHERS, 6))
def test_regrets_are_those_of_a_transcription_of_others(name):
    algorithm, horizon, mean, error = OTHERS[name]
    found = jb.sweep(algorithm, ARMS, horizon=horizon, seeds=LANES, checkpoints=1, progress=False).regret.values.ravel()
    assert abs(found.mean() - mean) <= 4 * math.hypot(error, found.std(ddof=1) / math.sqrt(LANES))


def test_draws_of_an_epoch_and_what_they_cost():
    assert [draws_of_an_epoch(100_000, a) for a in (0.0, 0.5, 1.0)] == [102_105, 3118, 96]
    assert [reference.phi(100_000, a) for a in (0.0, 0.5, 1.0)] == [102_105, 3118, 96]
    build = partial(dp_ts_ucb, num_arms=5, horizon=100_000)
    assert jb.privacy.ledger(build()).g == pytest.approx(2.887638144, rel=1e-9)
    wider = build(epsilon=1.0)
    assert wider.params.deviation**2 / math.log(100_000) == pytest.approx(116.051371474, rel=1e-6)
    assert wider.guarantee.spend(wider.params)[0] == pytest.approx(1.0, rel=1e-6)
    assert build().guarantee.spend(build().params) == (pytest.approx(15.87, abs=0.005), 1e-5)


def test_what_plain_thompson_sampling_spends():
    build = partial(gdp_thompson, num_arms=5, horizon=10_000)
    assert jb.privacy.ledger(build()).g == pytest.approx(70.707142496, rel=1e-9)
    ahead = jb.privacy.ledger(build(pre_pulls=10, variance_scale=4.0))
    assert ahead.g == pytest.approx(math.sqrt((10_000 - 50) / (4 * 11)), rel=1e-12)
    told = build(pre_pulls=100, epsilon=1.0)
    assert told.guarantee.spend(told.params) == (pytest.approx(1.0, rel=1e-6), 1e-5)
    scale = mechanisms.gaussian_scale(1.0, 1.0, 1e-5, "analytic")
    assert told.params.deviation**2 == pytest.approx((10_000 - 500) * scale**2 / 101, rel=1e-9)
    assert jb.privacy.ledger(gdp_thompson(num_arms=5, horizon=50, pre_pulls=10)).epsilon == 0  # no draw is made


@pytest.mark.parametrize("factory", [partial(gdp_thompson, pre_pulls=2), dp_ts_ucb])
def test_less_noise_spends_more(factory):
    algorithm = factory(num_arms=3, horizon=100, delta=0.01)
    spent = [algorithm.guarantee.spend(algorithm.params._replace(mechanism_scale=x))[0] for x in (2.0, 1.0, 0.5)]
    assert spent == sorted(spent) and spent[0] < spent[2]
