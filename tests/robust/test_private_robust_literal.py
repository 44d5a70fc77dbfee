"""The literal transcriptions of private and robust bandits themselves:
formulas by hand, schedules, laws, planted errors.
"""

import math

import numpy as np
import pytest
from against_reference import planted
from reference import private_robust as prm
from reference import private_robust_estimators as estimators
from reference import private_robust_indices as indices
from reference import private_robust_rivals as rivals
from scipy import integrate, stats

K, MEANS = 5, np.array([0.9, 0.7, 0.5, 0.3, 0.1])
CENTRAL = {"moment": "central", "mean_bound": 10.0}


def no_draw(*address):
    raise AssertionError(f"a draw at {address} where the noise is off")


def fixed_draws(seed, size):
    """Tables of draws by play, so that two runs on one seed meet the same rewards, noise and arms."""
    rng = np.random.default_rng(seed)
    pareto, uniform = (1 - rng.random(size + 1)) ** (-1 / 3.5) * 2.5 / 3.5, rng.random((3, size + 1))
    laplace, normal, arm = (
        rng.laplace(size=(size + 1, 40)),
        rng.normal(size=(size + 1, K)),
        rng.integers(K, size=size + 1),
    )
    pareto[uniform[0] < 0.02] = rng.choice([math.inf, -math.inf, math.nan, 50.0], size + 1)[uniform[0] < 0.02]
    return {
        "rewards": lambda t, a: MEANS[a] * pareto[t], "laplace": lambda kind, t, j: laplace[t, j],
        "pick": lambda t: int(arm[t]), "coin": lambda t: uniform[1, t], "normal": lambda t, a: normal[t, a],
        "uniform": lambda t: uniform[2, t],
    }  # fmt: skip


# ---------------------------------------------------------------- formulas


def setup(horizon=1000, epsilon=0.5, **settings):
    return prm.Setup(K, horizon, epsilon, failure_prob=math.exp(-4), **settings)  # L = 4


def test_clip_and_order_radius_by_hand():
    raw = setup(moment_bound=4.0, clip_scale=3.0)  # s = 2, m(32) = sqrt(32 / 2 / 4) = 2
    assert prm.clip(raw, 32) == pytest.approx(12)
    assert prm.clip(raw._replace(corruption_bound=0.25), 3200) == pytest.approx(12)  # m = alpha^(-1/2) = 2
    assert prm.clip(raw._replace(epsilon=7.0), 16) == prm.clip(raw._replace(epsilon=math.inf), 16) == pytest.approx(12)
    ones = raw._replace(sampling_scale=1.0, privacy_scale=10.0, corruption_scale=100.0)
    assert prm.radius(ones, 32) == pytest.approx(2 * (math.sqrt(1 / 8) + 10 * 0.5))
    assert prm.radius(ones._replace(corruption_bound=0.25), 32) == pytest.approx(2 * (math.sqrt(1 / 8) + 5 + 50))
    assert prm.radius(ones._replace(moment_order=4.0, moment_bound=1.0), 32) == pytest.approx(
        math.sqrt(1 / 8) + 10 * 0.25**0.75
    )
    assert prm.laplace_scale(raw._replace(epsilon=4.0, mechanism_scale=0.5), 24 / 16) == pytest.approx(0.1875)


def test_explicit_radius_by_hand():
    four, two = math.log(4) + 4, math.log(2) + 4  # ln(4 / delta), ln(2 / delta)
    raw = setup(radius="explicit", corruption_bound=0.25, moment_bound=9.0)  # s = 3, M' = 2 at n = 32
    want = math.sqrt(2 * 2 * four / 32) + 4 * four / 96 + 4 * two / 16 + 0.5 + 0.75
    assert prm.radius(raw, 32) == pytest.approx(3 * want)
    assert prm.radius(raw._replace(epsilon=math.inf), 32) == pytest.approx(3 * (want - 4 * two / 16))
    central = setup(radius="explicit", moment_bound=9.0, **CENTRAL)  # r' = sqrt 10, a' = 2, M = 2 + 2 sqrt 10
    r, M = math.sqrt(10), 2 + 2 * math.sqrt(10)
    want = math.sqrt(2 * 11 * four / 32) + 2 * M * four / 96 + 2 * M * two / 16 + 0.5 + 2 * r / 4
    assert prm.radius(central, 32) == pytest.approx(3 * want)
    dirty = central._replace(corruption_bound=0.1)
    r = math.sqrt(0.9 / 0.149)
    M = 2 + 2 * r
    want = math.sqrt(2 * (1 + r**2 + 0.1 * (M + 2 * r) ** 2) * four / 32) + 2 * M * four / 96 + 2 * M * two / 16
    assert prm.radius(dirty, 32) == pytest.approx(3 * (want + 0.5 + r / 2 + 0.1 * (M + 2 * r)))


def test_thresholds_and_bins_by_hand():
    assert prm.threshold(setup()) == 0 and prm.threshold(setup(corruption_bound=0.1, threshold_scale=2.0)) == 80
    central = setup(**{**CENTRAL, "mean_bound": math.e**2})
    assert prm.threshold(central) == pytest.approx(8 * 6 / 0.5)
    assert prm.threshold(central._replace(epsilon=9.0)) == pytest.approx(8 * 6)
    assert prm.threshold(central._replace(corruption_bound=0.01)) == pytest.approx(400)
    assert prm.threshold(central._replace(corruption_bound=0.1)) == pytest.approx(96)
    assert prm.bin_width(setup(**CENTRAL)) == pytest.approx(math.sqrt(10))
    assert prm.bin_width(setup(corruption_bound=0.1, moment_bound=4.0, **CENTRAL)) == pytest.approx(
        2 * math.sqrt(0.9 / 0.149)
    )
    bound = 2 * math.sqrt(10)  # a whole number of bins: rounding must not add a fifth
    np.testing.assert_allclose(prm.left_edges(setup(moment="central", mean_bound=bound)), bound * np.arange(-1, 1, 0.5))
    edges = prm.left_edges(setup(moment="central", mean_bound=bound, guard_bins=1))
    np.testing.assert_allclose(edges, bound * np.arange(-1.5, 1.5, 0.5))
    shifted = setup(**CENTRAL)
    assert prm.clip(shifted, 32) == pytest.approx(2 + 2 * math.sqrt(10))
    assert prm.clip(shifted._replace(clip_mode="literal"), 32) == pytest.approx(2)


@pytest.mark.parametrize("moment", ["raw", "central"])
@pytest.mark.parametrize("corruption", [0.0, 0.1])
@pytest.mark.parametrize("n", [16, 256])
def test_explicit_radius_covers_the_mean(moment, corruption, n):
    """At failure probability 0.05; a fifth of it does not cover, so the bound is no empty one."""
    case = prm.Setup(K, 1, 1.0, failure_prob=0.05, radius="explicit", corruption_bound=corruption, moment=moment,
                     mean_bound=10.0, guard_bins=1, moment_bound=1.0)  # fmt: skip
    rng, far, size = np.random.default_rng(0), [], n if moment == "raw" else 2 * n
    for _ in range(300):
        if moment == "raw":
            x, mean = 0.9 * 2.5 / 3.5 * (1 - rng.random(size)) ** (-1 / 3.5), 0.9
        else:
            x, mean = 4.7 + rng.standard_t(3, size) / math.sqrt(3), 4.7
        bad = rng.choice([math.inf, math.nan, prm.clip(case, n), mean + prm.clip(case, n)], size)
        x = np.where(rng.random(size) < corruption, bad, x)
        draw = lambda *address: rng.laplace()
        value = prm.prm_raw(case, x, draw, 1) if moment == "raw" else prm.prm_central(case, x, draw, 1)[0]
        far.append(abs(value - mean))
    if moment == "raw" or n > 100:  # T0 keeps the histogram away from folds where its noise picks the bin
        assert np.mean(np.array(far) > prm.radius(case, n)) <= 0.01
    assert np.mean(np.array(far) > prm.radius(case, n) / 20) > 0.05


# ---------------------------------------------------------------- the mean


def test_the_truncated_mean_is_closed_rejects_what_is_not_finite_and_divides_by_n():
    assert estimators.truncated_mean([1.0, -2.0, 2.5, math.inf, -math.inf, math.nan, 2.0, 0.0], 2.0) == 1 / 8


def test_sensitivities_are_what_the_noise_is_scaled_to():
    rng, M, edges = np.random.default_rng(1), 1.5, prm.left_edges(setup(**CENTRAL))
    moved, counted = [], []
    for _ in range(300):
        x = rng.normal(size=10)
        y = x.copy()
        x[0], y[0] = rng.choice([-M, M, 0.2, math.inf, math.nan, 9.0], 2)
        moved.append(abs(estimators.truncated_mean(x, M) - estimators.truncated_mean(y, M)))
        a, b = (np.array(estimators.bin_counts(z, edges, prm.bin_width(setup(**CENTRAL)))) / 10 for z in (x, y))
        counted.append(np.abs(a - b).sum())
    assert max(moved) == pytest.approx(2 * M / 10) and max(counted) == pytest.approx(2 / 10)


def test_the_central_mean_by_hand():
    case = setup(**CENTRAL)._replace(epsilon=math.inf, clip_mode="literal", clip_scale=0.5)
    x = [5.9, math.inf, 6.0, -9.9, math.nan, 40.0] + [6.0, math.nan, 5.0, 8.0, -math.inf, 6.5]
    r = math.sqrt(10)
    J = -10 + 5 * r  # 5.81
    value, edge = prm.prm_central(case, x, no_draw, 12)
    assert edge == pytest.approx(J)
    assert prm.clip(case, 6) == pytest.approx(0.5 * math.sqrt(6 / 4))  # 0.61: keeps 6.0 only
    assert value == pytest.approx(J + (6.0 - J) / 6)
    assert prm.prm_central(case, [*x[:6], *x[6:], 1e9], no_draw, 13)[0] == value  # an odd batch drops its last
    assert estimators.histogram_mean(x, prm.clip(case, 6), 10.0, r) == (value, edge)
    wide = case._replace(guard_bins=1)
    assert prm.prm_central(wide, x, no_draw, 12) == (value, edge)


def test_an_empty_bin_may_win_by_its_noise():
    case = setup(**CENTRAL)
    draws = {("bins", 6, 0): 30.0, ("mean", 12, 0): 1.0}
    value, edge = prm.prm_central(case, [6.0] * 12, lambda *address: draws.get(address, 0.0), 12)
    n, M = 6, prm.clip(case, 6)
    assert edge == -10 and value == pytest.approx(-10 + 2 * M / (n * 0.5))  # 6 - J is above M


# ---------------------------------------------------------------- schedules


def by_arm(values):
    return lambda t, arm: values[arm]


def quiet(num_arms, horizon, **settings):
    return prm.Setup(num_arms, horizon, math.inf, failure_prob=0.5, **settings)


def test_elimination_by_eye():
    """L = ln 2; M(2) = 1.70, 2 beta(2) = 2 (0.5 + 0.75) sqrt(ln 2 / 2) = 1.47; 2 beta(4) = 1.04; 2 beta(8) = 0.74."""
    case = quiet(3, 36)
    run = prm.prm_elimination(case, by_arm([0.0, 1.05, 0.2]), no_draw)
    assert (
        run.actions.tolist() == [0] * 2 + [1] * 2 + [2] * 2 + [0] * 4 + [1] * 4 + [2] * 4 + [1] * 8 + [2] * 8 + [1] * 2
    )
    assert [(r.t, r.arm, r.size) for r in run.released] == [
        (2, 0, 2), (4, 1, 2), (6, 2, 2), (10, 0, 4), (14, 1, 4), (18, 2, 4), (26, 1, 8), (34, 2, 8),
    ]  # fmt: skip
    assert [r.value for r in run.released[:3]] == [0.0, 1.05, 0.2]
    assert run.blocks[-1] == (34, 1, 16)  # arm 2 went, one arm is left, and the horizon cut its block


def test_the_gap_must_exceed_twice_the_radius():
    case = quiet(2, 20, sampling_scale=0.0, privacy_scale=0.0, clip_scale=9.0)  # radius 0
    assert (
        prm.prm_elimination(case, by_arm([0.5, 0.5]), no_draw).actions.tolist()
        == [0] * 2 + [1] * 2 + [0] * 4 + [1] * 4 + [0] * 8
    )


def test_exploration_by_eye():
    """L / alpha = ln 2 / 0.1 = 6.93: batches of 2 and 4 are forced, 8 is not."""
    case = quiet(3, 30, corruption_bound=0.1)
    arms = lambda t: {1: 2, 3: 0, 4: 2, 5: 1, 6: 0, 2: 1}[t]
    play = lambda case, **draws: prm.prm_elimination(case, by_arm([0.0, 0.3, 1.0]), no_draw, **draws)
    rest = [0] * 8 + [1] * 8 + [2] * 8
    assert play(case, pick=arms).actions.tolist() == [2] * 2 + [0] * 4 + rest
    assert len(play(case, pick=arms).released) == 3
    assert play(case._replace(forced_arms=(1,)), pick=no_draw).actions.tolist() == [1] * 6 + rest
    assert play(case._replace(exploration="round"), pick=arms).actions.tolist() == [2, 1, 0, 2, 1, 0, *rest]
    greedy = case._replace(exploration="greedy", corruption_bound=0.02, horizon=70)  # forced up to 32
    run = play(greedy, pick=no_draw, coin=lambda t: 0.0)
    assert run.actions.tolist() == [0] * 2 + [1] * 4 + [2] * 8 + [2] * 16 + [2] * 32 + [0] * 8
    mixed = play(greedy._replace(greedy_prob=0.3), pick=lambda t: 1, coin=lambda t: 0.2 if t in (1, 15) else 0.3)
    assert mixed.actions.tolist() == [1] * 2 + [0] * 4 + [2] * 8 + [1] * 16 + [2] * 32 + [0] * 8


def test_ucb_and_thompson_by_eye():
    """beta(n) = 1.25 sqrt(ln 2 / n): 0.74, 0.52, 0.37, 0.26, 0.18 for n = 2, 4, 8, 16, 32."""
    case = quiet(2, 40)
    run = prm.prm_ucb(case, by_arm([0.2, 0.6]), no_draw)
    # 0.94 v 1.34; 0.94 v 1.12; 0.94 v 0.97; 0.94 v 0.86
    assert run.blocks == [(0, 0, 2), (2, 1, 2), (4, 1, 4), (8, 1, 8), (16, 1, 16), (32, 0, 4), (36, 1, 32)]
    assert len(run.actions) == 40
    late = prm.prm_ucb(case._replace(corruption_bound=0.1), by_arm([0.2, 0.6]), no_draw)
    assert late.blocks[:3] == [(0, 0, 8), (8, 1, 8), (16, 1, 16)]
    normal = lambda t, a: {5: (3.0, 0.0), 9: (0.0, 0.0)}.get(t, (0.0, -9.0))[a]
    run = prm.prm_thompson(case, by_arm([0.2, 0.6]), no_draw, normal)
    assert run.blocks[:5] == [(0, 0, 2), (2, 1, 2), (4, 0, 4), (8, 1, 4), (12, 0, 8)]


@pytest.mark.parametrize("exploration", ["batch", "greedy"])
@pytest.mark.parametrize("moment", ["raw", "central"])
def test_closed_form_counts_are_the_literal_loop(exploration, moment):
    draws, horizon = fixed_draws(3, 3000), 2500
    case = prm.Setup(K, horizon, 1.0, corruption_bound=0.05, moment=moment, mean_bound=8.0, histogram_scale=2.0,
                     exploration=exploration)  # fmt: skip
    run = prm.prm_elimination(case, draws["rewards"], draws["laplace"], draws["pick"], draws["coin"])
    batches = {}
    for start, arm, size in run.blocks:  # the blocks of a batch share their size
        batches.setdefault(size, (start, [], size))[1].append(arm)
    for t in range(horizon + 1):
        counts = estimators.closed_form_counts(batches.values(), K, t)
        # the batch in which the horizon fell never came to its later arms: no play, no count
        assert counts == estimators.counted(run.actions, K, t) and sum(counts) == t


def test_infinite_epsilon_is_noise_off():
    draws = fixed_draws(4, 3000)
    for extra in ({}, CENTRAL):
        limit = prm.Setup(K, 3000, math.inf, corruption_bound=0.02, **extra)
        off = limit._replace(epsilon=3.0, mechanism_scale=0.0)
        a, b = (prm.prm_elimination(c, draws["rewards"], no_draw, draws["pick"]) for c in (limit, off))
        np.testing.assert_array_equal(a.actions, b.actions)
        assert [r.value for r in a.released] == [r.value for r in b.released]
        assert np.all(np.isfinite([r.value for r in a.released]))


@pytest.mark.parametrize("extra", [{}, {"histogram_scale": 0.0, **CENTRAL}, {"radius": "explicit"}])
def test_scaling_rewards_and_bounds_together_changes_nothing(extra):
    draws, k = fixed_draws(5, 3000), 3.0
    case = prm.Setup(K, 3000, math.inf, moment_order=k, corruption_bound=0.02, **extra)
    scaled = case._replace(moment_bound=8.0**k, mean_bound=8 * case.mean_bound)
    a = prm.prm_elimination(case, draws["rewards"], no_draw, draws["pick"])
    b = prm.prm_elimination(scaled, lambda t, arm: 8 * draws["rewards"](t, arm), no_draw, draws["pick"])
    np.testing.assert_array_equal(a.actions, b.actions)
    assert len(np.unique(a.actions[-800:])) < K  # something was removed


def test_the_regret_of_the_tested_defaults_is_met():
    """docs/formulas/private_robust_mab.md#tested-defaults:
    mean regret 1949 +- 14 over the arms of E1 at T = 3e4, epsilon 1.
    """
    regrets, q = [], 3.5
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = (q - 1) / q * (1 - rng.random(30000)) ** (-1 / q)
        run = prm.prm_elimination(prm.Setup(K, 30000, 1.0), lambda t, a, x=x: MEANS[a] * x[t - 1],
                                  lambda *address, rng=rng: rng.laplace())  # fmt: skip
        regrets.append(np.sum(MEANS[0] - MEANS[run.actions]))
    error = np.std(regrets) / math.sqrt(200)
    assert abs(np.mean(regrets) - 1949) < 4 * math.hypot(error, 14) and 4 * error < 0.15 * 1949


# ---------------------------------------------------------------- comparators


def test_epochs_by_hand():
    # n = 2, e = 1, b = 1/100, epsilon 1/2: 32 ln(1600) 4 = 944.4; 8 ln(800) 2 / 0.5 = 213.9
    R, h, c = rivals.dp_se_epoch(1, 2, 0.5, 0.01)
    assert R == 946 and h == pytest.approx(math.sqrt(math.log(1600) / 1892)) and c == pytest.approx(math.log(800) / 473)
    assert rivals.dp_se_epoch(1, 2, 0.01, 0.01)[0] == 10697  # 8 ln(800) 2 / 0.01 = 10695.4
    assert rivals.dp_se_epoch(3, 2, 0.5, 0.01)[0] == math.ceil(32 * 64 * math.log(14400) + 1)
    # v = 1, u = 1, n = 5, e = 1, b = 1e-5: 576 ln(2e6) 4 = 33427.9
    R, B, err = rivals.dprse_epoch(1, 5, 1.0, 1e-5, 1.0, 1.0)
    assert R == 33429 and B == pytest.approx(math.sqrt(33429 / math.log(2e6)))
    assert err == pytest.approx(math.sqrt(math.log(2e6) / 33429))
    actions, released = rivals.dp_se(
        by_arm([0.0, 9.0]), no_draw, num_arms=2, horizon=4000, epsilon=math.inf, failure_prob=0.1
    )
    R = math.ceil(128 * math.log(160) + 1)  # 651; h = 0.062
    assert actions.tolist() == [0] * R + [1] * (4000 - R) and released == [(R, 0, 0.0), (2 * R, 1, 1.0)]


def test_episodes_double():
    draws = fixed_draws(6, 400)
    actions, released = rivals.adap_ucb(
        by_arm([1.0, 0.9]), lambda t: draws["laplace"]("mean", t, 0), num_arms=2, horizon=300, epsilon=1.0)  # fmt: skip
    assert actions[:2].tolist() == [0, 1] and [r[0] for r in released[:2]] == [1, 2]
    for arm in (0, 1):
        ends = [r[0] for r in released if r[1] == arm]
        assert [int(np.sum(actions[:t] == arm)) for t in ends] == [2**i for i in range(len(ends))]


def test_kl_upper_solves_its_equation():
    for p, bound in ((0.0, 0.5), (0.3, 0.2), (0.99, 0.01), (0.9, 30.0)):
        y = rivals.kl_upper(p, bound)
        assert 1 - math.exp(-y) > p and rivals.divergence(p, y) == pytest.approx(bound)
    assert rivals.kl_upper(0.0, 0.5) == pytest.approx(0.5) and rivals.kl_upper(1.0, 3.0) == math.inf
    q = 1 - math.exp(-rivals.kl_upper(0.3, 0.2))
    assert 0.3 * math.log(0.3 / q) + 0.7 * math.log(0.7 / (1 - q)) == pytest.approx(0.2)


def test_estimators_by_hand():
    x = [3.0, 1.0, 100.0, 2.0, -50.0]
    assert estimators.trimmed_mean(x, 0.2) == 2.0 and estimators.trimmed_mean(x, 0.21) == 2.0
    assert estimators.trimmed_mean(x, 0.0) == np.mean(x) and estimators.trimmed_mean([4.0, 8.0], 0.3) == 6.0
    assert estimators.trimmed_mean(range(10), 0.2) == stats.trim_mean(np.arange(10), 0.2)
    assert estimators.shorth(x, 0.2) == 2.0 and estimators.shorth(x, 0.1) == np.mean([1, 2, 3, -50])
    assert estimators.shorth([0.0, 1.0, 2.0, 3.0], 0.25) == 0.5  # the lowest of equal windows
    assert estimators.huber_location(x, 1e9) == pytest.approx(np.mean(x))
    assert estimators.huber_location(x, 1.0) == pytest.approx(2.0)
    assert estimators.huber_location([0.0, 10.0], 1.0) == pytest.approx(5.0)  # zero on [1, 9]
    y = np.random.default_rng(0).standard_t(3, 200)
    theta = estimators.catoni_mean(y, 3.0, 0.01)
    assert abs(theta) < 0.5 and estimators.catoni_mean(5 - y, 3.0, 0.01) == pytest.approx(5 - theta)
    a = math.sqrt(2 * math.log(100) / (200 * (3 + 6 * math.log(100) / (200 - 2 * math.log(100)))))
    z = a * (y - theta)
    assert np.sum(np.where(z > 0, np.log(1 + z + z**2 / 2), -np.log(1 - z + z**2 / 2))) == pytest.approx(0, abs=1e-9)
    blocks = [0, 4, 1, 1, 9, 9, 2, 4, 777]  # four pairs: 2, 1, 9, 3; what is left over is dropped
    assert estimators.median_of_means(blocks, 10.0) == 2.5
    assert estimators.median_of_means([7.0], 1.0) == 7.0 and estimators.median_of_means(blocks, 0.0) == 807 / 9
    kept = estimators.falling_truncated_mean([1.0, 1.01, 2.0, math.inf, math.nan], 1.0, 2.0, 1.0)
    assert kept == pytest.approx(2.01 / 5)  # bounds 1, 1.41, 1.73, 2, 2.24


@pytest.mark.parametrize("k", [1.0, 2.0, 2.5])
def test_moments_are_the_integrals(k):
    def expect(law, centre=0.0):
        low, high = law.ppf(0), law.ppf(1)
        return integrate.quad(lambda x: abs(x - centre) ** k * law.pdf(x), low, high, limit=300)[0]

    assert estimators.pareto_moment(0.9, 3.5, k) == pytest.approx(
        expect(stats.pareto(3.5, scale=0.9 * 2.5 / 3.5)), rel=1e-6
    )
    assert estimators.student_moment(3.0, 0.7, k) == pytest.approx(expect(stats.t(3, 2.0, 0.7), 2.0), rel=1e-4)
    law = stats.lognorm(0.5, scale=math.exp(estimators.lognormal_location(0.8, 0.5)))
    assert estimators.lognormal_moment(0.8, 0.5, k) == pytest.approx(expect(law), rel=1e-6)
    assert estimators.normal_moment(1.3, k) == pytest.approx(expect(stats.norm(0.4, 1.3), 0.4), rel=1e-6)
    assert estimators.lognormal_moment(0.8, 0.5, 1.0) == pytest.approx(0.8) == estimators.pareto_moment(0.8, 3.5, 1.0)
    # docs/formulas/private_robust_mab.md#reward-laws: moments within u = 1 up to mean 0.916
    assert estimators.pareto_moment(0.916, 3.5, 2.0) < 1 < estimators.pareto_moment(0.917, 3.5, 2.0)


def test_local_reports_are_unbiased():
    rng, n = np.random.default_rng(2), 40_000
    for r in (0.0, 0.3, 1.0):
        for report, spread in ((indices.epsilon_laplace, 2.0), (indices.randomized_response, 2.0)):
            y = [report(r, t, 1.0, 1.0, lambda t: rng.laplace(), lambda t: rng.random()) for t in range(n)]
            assert abs(np.mean(y) - r) < 4 * np.std(y) / math.sqrt(n) and np.std(y) < spread
    assert indices.randomized_response(0.4, 1, math.inf, 1.0, no_draw, lambda t: 0.39) == 1.0
    assert indices.response_gain(math.log(3)) == pytest.approx(2.0)


# ---------------------------------------------------------------- what a comparison of paths sees


def bounded(draws):
    """Rewards in [0, 1] at 0.2 to 0.9 with the same share of inf and NaN."""
    return lambda t, a: min(abs(draws["rewards"](t, a)), 1.0) if math.isfinite(draws["rewards"](t, a)) else math.nan


def prm_path(name, **settings):
    def path(ref, draws):
        case = ref.Setup(K, 4000, 2.0, **settings)
        extra = {"prm_ucb": (), "prm_elimination": (draws["pick"], draws["coin"]), "prm_thompson": (draws["normal"],)}
        return getattr(ref, name)(case, draws["rewards"], draws["laplace"], *extra[name]).actions

    return path


def rival_path(name, noisy=True, horizon=600, num_arms=K, **settings):
    def path(ref, draws):
        noise = (lambda t: draws["laplace"]("mean", t, 0),) if noisy else ()
        out = getattr(ref, name)(bounded(draws), *noise, num_arms=num_arms, horizon=horizon, **settings)
        return out[0] if isinstance(out, tuple) else out

    return path


def local_path(mechanism):
    return lambda ref, draws: ref.ldp_ucb(
        bounded(draws), lambda t: draws["laplace"]("mean", t, 0), draws["uniform"], num_arms=K, horizon=600,
        epsilon=2.0,
        mechanism=mechanism)  # fmt: skip


def thompson_path(noise_scale):
    def path(ref, draws):
        beta = lambda t, arm, a, b: stats.beta.ppf(draws["uniform"](5 * t + arm), a, b)
        draw = beta if noise_scale is None else draws["normal"]
        return ref.thompson(bounded(draws), draw, num_arms=K, horizon=100, noise_scale=noise_scale)

    return path


NARROW = {"sampling_scale": 0.2, "privacy_scale": 0.2, "corruption_scale": 0.2}
PATHS = {
    "elimination": (prm, prm_path("prm_elimination", **NARROW)),
    "elimination, dirty": (prm, prm_path("prm_elimination", corruption_bound=0.05, **NARROW)),
    "elimination, explicit": (prm, prm_path("prm_elimination", radius="explicit", moment_bound=0.1, failure_prob=0.9)),
    "elimination, central": (prm, prm_path("prm_elimination", histogram_scale=0.0, **NARROW, **CENTRAL)),
    **{
        f"elimination, {exploration}": (prm, prm_path(
            "prm_elimination", corruption_bound=0.05, exploration=exploration, greedy_prob=0.5))
        for exploration in ("round", "greedy")
    },
    "ucb": (prm, prm_path("prm_ucb")),
    "thompson": (prm, prm_path("prm_thompson")),
    "dp_se": (rivals, rival_path("dp_se", horizon=9000, epsilon=2.0, failure_prob=0.5)),
    "dprse": (rivals, rival_path("dprse", horizon=9000, epsilon=20.0, failure_prob=0.5)),
    "adap_ucb": (rivals, rival_path("adap_ucb", horizon=150, epsilon=9.0)),
    "adap_kl_ucb": (rivals, rival_path("adap_kl_ucb", horizon=150, epsilon=9.0)),
    **{
        f"robust_ucb {estimator}": (indices, rival_path(
            "robust_ucb", noisy=False, estimator=estimator, moment_bound=0.01))
        for estimator in ("truncated", "median_of_means")
    },
    "robust_ucb catoni": (indices, rival_path(
        "robust_ucb", noisy=False, num_arms=2, horizon=150, estimator="catoni", moment_bound=0.1)),
    "huber_ucb": (indices, rival_path(
        "huber_ucb", noisy=False, horizon=150, noise_scale=0.2, corruption_bound=0.1, min_pulls_scale=2.0)),
    **{
        f"cr_ucb {estimator}": (indices, rival_path(
            "cr_ucb", noisy=False, horizon=300, noise_scale=0.2, corruption_bound=0.1, estimator=estimator))
        for estimator in ("trimmed", "shorth")
    },
    "ldp_ucb laplace": (indices, local_path("laplace")),
    "ldp_ucb response": (indices, local_path("randomized_response")),
    "beta": (indices, thompson_path(None)),
    "gaussian": (indices, thompson_path(0.3)),
    "kl_ucb": (indices, rival_path("kl_ucb", noisy=False)),
    "moss": (indices, rival_path("moss", noisy=False)),
}  # fmt: skip
RADIUS, REMOVE = ("return s * ", "return 2 * s * "), ("> 2 * beta", "> 4 * beta")
NOISE = ('laplace("mean", t, 0)', 'laplace("mean", t - 1, 0)')
COMING = ("t = len(plays.actions) + 1", "t = len(plays.actions) + 2")
LATE = ("t = len(plays.actions)\n", "t = len(plays.actions) - 1\n")
PLANTED = [
    ("elimination", RADIUS), ("elimination", REMOVE), ("elimination", NOISE),
    ("elimination", ("batch *= 2", "batch *= 4")),
    ("elimination, dirty", RADIUS), ("elimination, dirty", ("pick(first)", "pick(first + 1)")),
    ("elimination, explicit", RADIUS), ("elimination, explicit", NOISE),
    ("elimination, central", RADIUS), ("elimination, central", NOISE),
    ("elimination, central", ('laplace("bins", t - n, j)', 'laplace("bins", t - n + 1, j)')),
    ("elimination, round", ("pick(pulls.next())", "pick(pulls.next() + 1)")),
    ("elimination, greedy", ("coin(first)", "coin(first + 1)")),
    ("ucb", RADIUS), ("ucb", NOISE), ("ucb", ("2 * behind[arm]", "behind[arm]")),
    ("thompson", RADIUS), ("thompson", ("optimism(t, a)", "optimism(t - 1, a)")),
    ("dp_se", ("2 * h + 2 * c", "4 * h + 4 * c")), ("dp_se", ("/ gap**2", "/ (gap / 2)**2")),
    ("dp_se", ("e += 1", "e += 2")),
    ("dprse", ("12 * err", "24 * err")), ("dprse", (") + 1)", ") + 2)")), ("dprse", ("e += 1", "e += 2")),
    ("adap_ucb", ("mean + math.sqrt(", "mean + 2 * math.sqrt(")), ("adap_ucb", COMING), ("adap_ucb", LATE),
    ("adap_kl_ucb", ("math.log(t) / n)", "2 * math.log(t) / n)")), ("adap_kl_ucb", COMING), ("adap_kl_ucb", LATE),
    *((f"robust_ucb {estimator}", error) for estimator in ("truncated", "median_of_means")
      for error in (("(c * math", "(4 * c * math"), COMING)),
    ("robust_ucb catoni", ("2 * math.sqrt(u", "4 * math.sqrt(u")), ("robust_ucb catoni", COMING),
    ("huber_ucb", ("+ noise_scale * math", "+ 2 * noise_scale * math")), ("huber_ucb", COMING),
    *((f"cr_ucb {estimator}", error) for estimator in ("trimmed", "shorth")
      for error in (("return centre(x, corruption_bound) + width", "return centre(x, corruption_bound) + 2 * width"),
                    COMING)),
    ("ldp_ucb laplace", ("mean + math.sqrt(8", "mean + math.sqrt(32")), ("ldp_ucb laplace", COMING),
    ("ldp_ucb laplace", ("clock[0] += 1", "clock[0] += 2")),
    ("ldp_ucb response", ("response_gain(epsilon) *", "2 * response_gain(epsilon) *")), ("ldp_ucb response", COMING),
    ("ldp_ucb response", ("clock[0] += 1", "clock[0] += 2")),
    ("beta", COMING), ("beta", ("1 + sum(x), 1", "2 + sum(x), 1")),
    ("gaussian", COMING), ("gaussian", ("noise_scale / math", "2 * noise_scale / math")),
    ("kl_ucb", ("bonus_scale * math", "2 * bonus_scale * math")), ("kl_ucb", COMING),
    ("moss", ("bonus_scale * math", "2 * bonus_scale * math")), ("moss", ("num_arms * n)", "num_arms * (n + 1))")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "error"), PLANTED, ids=lambda x: x if isinstance(x, str) else x[1])
def test_a_planted_error_changes_the_path(name, error):
    module, path = PATHS[name]
    wrong, few = planted(module, *error), name.startswith("adap")  # few decisions a run
    tables = (fixed_draws(seed, 150 if few else 9000) for seed in range(300 if few else 4))
    assert any(not np.array_equal(path(module, draws), path(wrong, draws)) for draws in tables)
