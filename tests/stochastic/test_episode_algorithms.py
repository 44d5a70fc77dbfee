"""Algorithms that play in episodes: schedules by hand, exact sums, noise, truncation, invariances, bad input."""

import itertools
import math
from functools import partial

import jax
import numpy as np
import plays
import pytest
from dealt import dealt
from numpy_draws import NumpyDraws, to_laplace
from plays import silent, watched
from scipy import optimize
from uncompiled import uncompiled

from jaxbandits.adversaries.huber import huber
from jaxbandits.algorithms.robust.dprse import dprse
from jaxbandits.algorithms.robust.prm_elimination import prm_elimination
from jaxbandits.algorithms.robust.prm_thompson import prm_thompson
from jaxbandits.algorithms.robust.prm_ucb import prm_ucb
from jaxbandits.algorithms.stochastic import episodes, integer_sums
from jaxbandits.algorithms.stochastic.adac_ucb import adac_ucb
from jaxbandits.algorithms.stochastic.adap_ucb import adap_kl_ucb, adap_ucb
from jaxbandits.algorithms.stochastic.bernoulli_index import largest_mean
from jaxbandits.algorithms.stochastic.dp_se import dp_se
from jaxbandits.algorithms.stochastic.elimination import after_block
from jaxbandits.environments.arms import gaussian_arms
from jaxbandits.mechanisms import gaussian_epsilon

INF = math.inf
central = partial(prm_ucb, moment="central", mean_bound=10.0)
T = 4000  # of most tests, with three arms: algorithms of one program share a compiled one


def runs(actions):
    """(arm, plays) of each run of equal actions."""
    return [(int(arm), len(list(group))) for arm, group in itertools.groupby(actions)]


def played(algorithm, environment, **options):
    """The history of one lane, and the estimates it released."""
    run = watched(algorithm, environment, dtype="float32", **options)
    released = run.history.released
    # central PRM: the mean, then its histogram's left edge
    released = released if released.ndim == 1 else released[:, 0]
    return run, released[~np.isnan(released)]


def test_adap_ucb_by_hand():
    """Rewards 0 and 1, no noise: index sqrt(1.55 ln t) against 1 + sqrt(1.55 ln t / n)."""
    algorithm = adap_ucb(num_arms=2, horizon=36, epsilon=INF)
    run, released = played(algorithm, gaussian_arms(means=[0.0, 1.0], scale=0.0))
    # t = 3, 4, 6, 10: 1.30 < 2.30, 1.47 < 2.47, 1.67 < 2.18, 1.89 < 1.94, each doubling arm 1's pulls; t = 18 and 19:
    # 2.12 > 1.75, 2.14 > 1.76, arm 0 once and twice; t = 21: 1.54 < 1.77
    assert runs(run.history.action) == [(0, 1), (1, 1 + 1 + 2 + 4 + 8), (0, 1 + 2), (1, 16)]
    assert released.tolist() == [0, 1, 1, 1, 1, 1, 0, 0, 1]


def test_private_index_explores_longer():
    """31 ln t / n decides: the arm of fewer plays is next, arm 1 where they are as many."""
    algorithm = silent(adap_ucb(num_arms=2, horizon=36, epsilon=0.1))
    run, _ = played(algorithm, gaussian_arms(means=[0.0, 1.0], scale=0.0))
    assert runs(run.history.action)[:4] == [(0, 1), (1, 1 + 1 + 2), (0, 1 + 2), (1, 4)]


def test_kl_index_solves_its_equation():
    grid = np.meshgrid([0, 1e-3, 0.2, 0.5, 0.7, 0.95, 0.999], [1e-4, 0.01, 0.3, 1.0, 4.0, 30.0])
    p, level = (x.ravel() for x in grid)

    def solved(p, level):
        at_p = (p * np.log(p) if p > 0 else 0) + (1 - p) * np.log1p(-p)

        def excess(y):
            return at_p + (1 - p) * y - (p * np.log(-np.expm1(-y)) if p > 0 else 0) - level

        return optimize.brentq(excess, -np.log1p(-p) + 1e-15, (level + 1) / (1 - p) + 1, xtol=1e-14)

    want = np.array([solved(*pair) for pair in zip(p, level, strict=True)])
    found = uncompiled(largest_mean)
    got = found(p.astype(np.float32), level.astype(np.float32))
    np.testing.assert_allclose(-np.expm1(-got), -np.expm1(-want), atol=1e-5)
    np.testing.assert_allclose(got, want, rtol=1e-3)  # also where q rounds to 1
    with jax.enable_x64(True):
        np.testing.assert_allclose(found(p, level), want, rtol=1e-6)
    assert found(np.float32(1), np.float32(0.1)) == INF


def test_small_budgets_lengthen_the_epochs_of_dp_se():
    """8 l / (epsilon gap) is above 32 l / gap^2: 7,661 plays and 19,758."""
    small = dp_se(num_arms=3, horizon=1000, epsilon=0.01, failure_prob=0.1).params.pulls
    assert small[:2, 2].tolist() == [math.ceil(8 * math.log(120 * e**2) / (0.01 * 0.5**e) + 1) for e in (1, 2)]


def test_the_fullest_bin_is_found_in_every_part_of_a_long_histogram():
    """127 bins, 32 at a time: those of -150, 100 and 150 are 15, 94 and 110. T0 = 5 ln 400 = 29.96: 32 plays."""
    given = {"epsilon": 1.0, "mean_bound": 200.0, "failure_prob": 0.5, "histogram_scale": 5.0}
    algorithm = silent(central(num_arms=2, horizon=128, **given))
    arms, attack, width = gaussian_arms(means=[-150.0, 150.0], scale=0.0), huber(corruption=0.3, value=100.0), 10**0.5
    lanes, both = [plays.Lane(seed, algorithm, arms, attack) for seed in range(4)], 0
    for run in plays.played(lanes, checkpoints=1, compiled=False, dtype="float32"):
        released = run.history.released
        edges = released[~np.isnan(released[:, 0]), 1]
        for arm in range(2):
            half = run.history.reward[32 * arm : 32 * arm + 16]
            counts = np.bincount(((half + 200) // width).astype(int))
            assert edges[arm] == pytest.approx(-200 + counts.argmax() * width, abs=1e-3)
            both += arm == 0 and counts[15] > counts[94:].sum() > 0
    assert both


def test_a_thompson_scale_of_zero_is_a_scale():
    made = partial(prm_thompson, num_arms=3, horizon=100, epsilon=1.0)
    assert made(thompson_scale=0.0).params.thompson_scale == 0 and made(thompson_scale=0.0).program is made().program


def test_a_batch_of_t0_plays_counts_and_so_does_a_reward_at_the_clip():
    """L = 1, alpha = 1/4, k = 2: T0 = 4, and M = alpha^(-1/2) = 2 from four rewards on."""
    given = {"num_arms": 2, "horizon": 16, "epsilon": 1.0, "corruption_bound": 0.25, "failure_prob": math.exp(-1)}
    algorithm = silent(prm_ucb(**given))
    assert int(algorithm.params.pulls[algorithm.params.first]) == 4 and prm_elimination(**given).params.forced == 1
    _, released = played(algorithm, gaussian_arms(means=[2.0, -2.0], scale=0.0))
    assert released[:2].tolist() == [2.0, -2.0]


def test_an_arm_goes_only_where_it_is_further_behind():
    behind = np.ones(3, bool), np.float32([0.2, 0.5, 0.5]), np.int32(2), np.float32(0)
    left, ends, following = uncompiled(after_block)(*behind)
    assert (left.tolist(), bool(ends), int(following)) == ([False, True, True], True, 1)
    made = prm_elimination(num_arms=2, horizon=20, epsilon=INF, sampling_scale=0.0, privacy_scale=0.0)
    (run,) = plays.played(
        [plays.Lane(0, made, gaussian_arms(means=[0.2, 0.7], scale=0.0))], checkpoints=1, compiled=False
    )
    assert runs(run.history.action) == [(0, 2), (1, 18)]


def test_dp_se_by_hand():
    """Two epochs of R plays an arm; the middle arm outlives the first: 0.3 is within 2 h of 0.5, 0 is not."""
    algorithm = dp_se(num_arms=3, horizon=30_000, epsilon=INF, failure_prob=0.5)
    means = [0.0, 0.5, 0.4]
    first, second = (math.ceil(32 * math.log(8 * n * e**2 / 0.5) * 4**e + 1) for e, n in ((1, 3), (2, 2)))
    third = math.ceil(32 * math.log(8 * 2 * 9 / 0.5) * 64 + 1)
    run, released = played(algorithm, gaussian_arms(means=means, scale=0.0))
    # 2 h = 2 sqrt(L / (2 R)) is 2^-e / 4: 0.125 and 0.0625 and 0.03
    rest = 30_000 - 3 * first - 2 * second
    assert runs(run.history.action) == [(0, first), (1, first), (2, first), (1, second), (2, second), (1, rest)]
    np.testing.assert_allclose(released, [0.0, 0.5, 0.4, 0.5, 0.4], atol=1e-6)
    assert run.diagnostics == {"active_arms": 1, "epochs": 2}
    # closer arms: a third epoch tells 0.45 from 0.5
    run, _ = played(algorithm, gaussian_arms(means=[0.0, 0.5, 0.45], scale=0.0))
    assert runs(run.history.action)[5:] == [(1, third), (2, third), (1, rest - 2 * third)]


def test_dprse_rejects_what_lies_beyond_its_clip():
    """u = 0.01: clip about 0.48 in the first epoch: the arm paying 5 is worth 0; it goes at half a gap below 0.2."""
    algorithm = dprse(num_arms=2, horizon=5000, epsilon=INF, moment_bound=0.01, failure_prob=0.1)
    first, second = (math.ceil(0.01 * 576 * math.log(8 * e**2 / 0.1) * 4**e + 1) for e in (1, 2))
    run, released = played(algorithm, gaussian_arms(means=[0.2, 5.0], scale=0.0))
    rest = 5000 - 2 * first - 2 * second
    assert runs(run.history.action) == [(0, first), (1, first), (0, second), (1, second), (0, rest)]
    np.testing.assert_allclose(released, [0.2, 0, 0.2, 0], atol=1e-6)
    above = dprse(num_arms=2, horizon=5000, epsilon=4.0, moment_bound=0.01, failure_prob=0.1)
    np.testing.assert_array_equal(above.params.pulls, algorithm.params.pulls)  # above 1 only the noise falls
    begun = slice(8)  # later rows are cut to 32 bits
    want = 2 * above.params.clip / (4 * above.params.pulls)
    np.testing.assert_allclose(above.params.noise_scale[begun], want[begun])
    heavy = dprse(num_arms=2, horizon=5000, epsilon=1.0, moment_order=4.0, moment_bound=1e-4, failure_prob=0.1)
    np.testing.assert_array_equal(heavy.params.pulls, algorithm.params.pulls)  # E X^2 <= sqrt(E X^4)


@pytest.mark.parametrize("make", [prm_ucb, prm_thompson, partial(central, histogram_scale=1.0, threshold_scale=2.0)])
def test_prm_episodes_double(make):
    """L = 1 and alpha = 0.1: T0 is 10 (central: 20), so first episodes take 16 (32) plays, in index order."""
    algorithm = make(num_arms=3, horizon=T, epsilon=1.0, corruption_bound=0.1, failure_prob=math.exp(-1))
    begins = 16 if make in (prm_ucb, prm_thompson) else 32
    run, released = played(algorithm, gaussian_arms(means=[0.1, 0.9, 0.3], scale=0.3))
    actions, length, start, pulls = run.history.action, [begins] * 3, 0, []
    assert runs(actions)[:2] == [(0, begins), (1, begins)]
    while start < T:
        arm = int(actions[start])
        stop = min(start + length[arm], T)
        assert set(actions[start:stop].tolist()) == {arm}
        pulls.append((arm, stop - start))
        start, length[arm] = stop, 2 * length[arm]
    assert len(released) == len(pulls) - (pulls[-1][1] != length[pulls[-1][0]] // 2)


def test_clipped_rewards_and_ceilings():
    x = np.array([np.nan, INF, -INF, 0.25, 2.0, -1.0], np.float32)
    assert uncompiled(episodes.clip01)(x).tolist() == [0, 1, 0, 0.25, 1, 0]
    assert integer_sums.power_above([1.0, 1.01, 0.5, 3.0, 4.0, 0.3]).tolist() == [1, 2, 0.5, 4, 4, 0.5]


ENVIRONMENT = partial(gaussian_arms, means=[0.2, 0.7, 0.5], scale=0.4)
EACH = {
    "adap_ucb": partial(adap_ucb, epsilon=1.0),
    "adap_kl_ucb": partial(adap_kl_ucb, epsilon=1.0),
    "adac_ucb": partial(adac_ucb, rho=0.1),
    "dp_se": partial(dp_se, epsilon=1.0),
    "dprse": partial(dprse, epsilon=1.0, moment_bound=0.01),
    "prm_ucb": partial(prm_ucb, epsilon=1.0),
    "prm_thompson": partial(prm_thompson, epsilon=1.0),
    "central": partial(central, epsilon=1.0, histogram_scale=1.0),
    "many bins": partial(prm_ucb, epsilon=1.0, moment="central", mean_bound=400.0, histogram_scale=0.5),
}


@pytest.mark.parametrize("name", dealt(EACH, 8, always=["central"]))
def test_windows_and_checkpoints_change_no_bit(name):
    """Estimates are the same bits whatever the windows are, and windows enough are offered."""
    algorithm = EACH[name](num_arms=3, horizon=T)
    short = algorithm._replace(schedule=(algorithm.schedule[0]._replace(slots=4, repeats=2000),))
    run, released = played(algorithm, ENVIRONMENT())
    assert len(run.history.action) == T and len(released) >= 2 and np.isfinite(released).all()
    for same, times in ((algorithm, [*range(7, T, 11), T]), (short, [50, 900, T])):
        other, again = played(same, ENVIRONMENT(), checkpoints=times)
        np.testing.assert_array_equal(run.history.action, other.history.action)
        np.testing.assert_array_equal(released, again)


def test_sums_are_exact_to_the_unit():
    """The mean of an episode against a float64 sum: within half a unit, ceiling 2^-24, on average far less."""
    algorithm = silent(prm_ucb(num_arms=3, horizon=T, epsilon=1.0))
    run, released = played(algorithm, gaussian_arms(means=[0.5, 0.4, 0.1]))
    start, n, doubled = 0, {}, []
    for value in released:
        arm = int(run.history.action[start])
        n[arm] = 2 * n.get(arm, 1)
        row = int(math.log2(n[arm])) - 1
        x = run.history.reward[start : start + n[arm]].astype(np.float64)
        kept = np.where(np.abs(x) <= np.float32(algorithm.params.clip[row]), x, 0)
        doubled.append(kept.mean())
        assert abs(value - kept.mean()) <= 2.0**-23 * algorithm.params.ceiling[row]
        start += n[arm]
    assert len(released) > 8 and np.std(doubled) > 0.1


def test_central_estimate_is_the_mean_of_the_second_half():
    """Arms without spread: the bin of 7.3 is found, infinities have none and count as J."""
    algorithm = silent(central(num_arms=3, horizon=T, epsilon=1.0, histogram_scale=1.0))
    environment = gaussian_arms(means=[7.3, -7.3, 7.3], scale=0.0)
    _, released = played(algorithm, environment)
    np.testing.assert_allclose(np.abs(released), 7.3, atol=1e-5)
    width = math.sqrt(10)
    left = -10 + math.floor((7.3 + 10) / width) * width
    run, released = played(algorithm, environment, reward_adversary=huber(corruption=0.2, value="inf"))
    n = int(algorithm.params.pulls[algorithm.params.first]) // 2
    good = np.isfinite(run.history.reward[n : 2 * n]).mean()
    assert 0 < good < 1
    assert released[0] == pytest.approx(left + good * (7.3 - left), abs=1e-5)


@pytest.mark.parametrize(
    ("make", "scale"),
    [
        (partial(adap_ucb, epsilon=0.5), lambda p: 1 / 0.5),
        (partial(dp_se, epsilon=0.5), lambda p: 1 / (0.5 * p.pulls[0, 2])),
        (partial(dprse, epsilon=0.5, moment_bound=0.001), lambda p: 2 * p.clip[0, 2] / (0.5 * p.pulls[0, 2])),
        (partial(prm_ucb, epsilon=0.5), lambda p: 2 * p.clip[p.first] / (0.5 * p.pulls[p.first])),
        (partial(central, epsilon=0.5), lambda p: 2 * p.clip[p.first] / (0.5 * p.pulls[p.first] / 2)),
    ],
)  # fmt: skip
def test_noise_is_the_addressed_laplace_draw(make, scale):
    """The first estimate with noise less that without is scale Lap, drawn at the episode's last play."""
    algorithm = make(num_arms=3, horizon=T)
    environment = gaussian_arms(means=[0.4, 0.5, 0.6], scale=0.1)
    run, noisy = played(algorithm, environment, seed=3)
    _, exact = played(silent(algorithm), environment, seed=3)
    last = runs(run.history.action)[0][1] if make.func is not adap_ucb else 1
    draw = float(NumpyDraws(3, "alg/update/mean", np.float32).laplace(last))
    assert noisy[0] - exact[0] == pytest.approx(scale(algorithm.params) * draw, rel=1e-4)
    assert abs(draw) > 0.01


def test_histogram_noise_can_move_the_bin():
    """Two plays an episode, one a fold: the bin is the fullest after its noise, bin j's at position j."""
    algorithm = central(num_arms=2, horizon=64, epsilon=1.0, histogram_scale=0.0)
    p, moved = algorithm.params, 0
    for seed in range(6):
        _, released = played(algorithm, gaussian_arms(means=[7.3, -7.3], scale=0.0), seed=seed)
        draws = NumpyDraws(seed, "alg/update")
        share = 2.0 * to_laplace(draws.child("bins").at(1, np.arange(p.num_bins)))
        share[int((7.3 - p.first_edge) // p.bin_width)] += 1
        left = p.first_edge + share.argmax() * p.bin_width
        off = 7.3 - left if abs(7.3 - left) <= p.clip[0] else 0.0
        noise = p.noise_scale[0] * float(draws.child("mean").laplace(2))
        assert released[0] == pytest.approx(left + off + noise, abs=1e-4)
        moved += left != p.first_edge + int((7.3 - p.first_edge) // p.bin_width) * p.bin_width
    assert 0 < moved


def test_what_is_spent():
    for name, make in EACH.items():
        algorithm = make(num_arms=3, horizon=500)
        spent = algorithm.guarantee.spend(algorithm.params)
        assert spent == ((1.0, 0.0) if name != "adac_ucb" else (gaussian_epsilon(math.sqrt(0.2), 1.0, 1e-5), 1e-5))
        assert algorithm.guarantee.spend(silent(algorithm).params)[0] == INF
        assert algorithm.guarantee.model == "central" and algorithm.guarantee.unit == "reward"


def test_infinite_epsilon_is_the_finite_one_without_noise():
    """Radius and clip depend on min(epsilon, 1)."""
    for make in (prm_ucb, prm_thompson, central):
        free = make(num_arms=3, horizon=T, epsilon=INF)
        assert not np.any(free.params.noise_scale) and not np.any(free.params.count_scale)
        a, x = played(free, ENVIRONMENT())
        b, y = played(silent(make(num_arms=3, horizon=T, epsilon=1.0)), ENVIRONMENT())
        np.testing.assert_array_equal(a.history.action, b.history.action)
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("moment", ["raw", "central"])
def test_scaling_rewards_and_bounds_changes_no_action(moment):
    common = dict(num_arms=3, horizon=T, epsilon=1.0, moment=moment, moment_order=3.0, histogram_scale=0.0)
    one = silent(prm_ucb(mean_bound=10.0, **common))
    four = silent(prm_ucb(mean_bound=40.0, moment_bound=4.0**3, **common))
    small, x = played(one, ENVIRONMENT())
    large, y = played(four, gaussian_arms(means=[0.8, 2.8, 2.0], scale=1.6))
    np.testing.assert_array_equal(small.history.action, large.history.action)
    np.testing.assert_allclose(4 * x, y, rtol=1e-5)


def test_a_grid_shares_one_program():
    base = prm_ucb(num_arms=3, horizon=1000, epsilon=1.0)
    others = {"corruption_bound": 0.1, "moment_order": 3.0}, {"radius": "explicit"}, {"horizon": 9}
    for changes in ({"epsilon": INF}, *others):
        other = prm_ucb(**{"num_arms": 3, "horizon": 1000, "epsilon": 1.0} | changes)
        assert other.program is base.program
        assert jax.tree.map(np.shape, other.params) == jax.tree.map(np.shape, base.params)
    # gaps that are far below 2^-16: u 576 l 4^e with l = ln(8 e^2 1e4) is 1,937 at e = 32
    tiny = dprse(num_arms=2, horizon=10_000, epsilon=1.0, moment_bound=1e-20).params.pulls
    assert tiny.shape == (48, 2) and tiny[31, 1] < 10_000 <= tiny[-1, 1]
    near, far = (central(num_arms=3, horizon=1000, epsilon=1.0, corruption_bound=a) for a in (0.0, 0.05))
    assert near.program is far.program
    for horizon in (1, 50, 10**9):
        one, other = dp_se(num_arms=4, horizon=horizon, epsilon=1.0), dp_se(num_arms=4, horizon=100, epsilon=0.1)
        assert one.program is other.program and one.params.pulls.shape == other.params.pulls.shape
        assert one.params.pulls[-1, 1] >= horizon  # the tables outlast the run


def test_truncation_survives_infinities():
    """A tenth of the rewards infinite: truncated estimates hardly move, and the best arm stays the most played."""
    algorithm = prm_ucb(num_arms=3, horizon=T, epsilon=1.0, corruption_bound=0.1)
    clean, _ = played(algorithm, ENVIRONMENT())
    attacked, _ = played(algorithm, ENVIRONMENT(), reward_adversary=huber(corruption=0.1, value="inf"))
    assert 300 < np.isinf(attacked.history.reward).sum() < 500
    assert [np.bincount(run.history.action).argmax() for run in (clean, attacked)] == [1, 1]
