"""PRM elimination: formulas by hand, paths against a loop pull by pull, exact counts, limits and errors."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.algorithms.robust import prm_formulas
from jaxbandits.algorithms.robust.prm_block import Bins, Constants, empty, estimate, extended, left
from jaxbandits.algorithms.robust.prm_elimination import prm_elimination
from jaxbandits.random import Draws, to_laplace

MEANS = [0.9, 0.7, 0.5, 0.3, 0.1]
ARGUMENTS = {
    "moment": "raw", "epsilon": 0.5, "horizon": 1000, "moment_order": 2.0, "moment_bound": 1.0, "mean_bound": None,
    "corruption_bound": 0.0, "failure_prob": math.exp(-4), "radius": "order", "clip_scale": 1.0, "sampling_scale": 0.5,
    "privacy_scale": 0.75, "corruption_scale": 0.5, "threshold_scale": 1.0, "histogram_scale": 8.0, "guard_bins": 0,
    "clip_mode": "shifted",
}  # fmt: skip
gaussian = partial(jb.environments.gaussian_arms, means=MEANS, scale=0.3)


def checked(**changes):
    return prm_formulas.check(**ARGUMENTS | changes)


# the formulas, L = 4


def test_raw_formulas_by_hand():
    prm = checked()
    table = prm_formulas.tables(prm, [32])
    assert table.clip == pytest.approx(2.0)  # sqrt(32 / 2 / 4)
    assert table.radius == pytest.approx(0.5 * math.sqrt(1 / 8) + 0.75 * math.sqrt(4 / 16))
    assert table.noise_scale == pytest.approx(2 * 2.0 / (32 * 0.5)) and table.count_scale == 0
    assert prm_formulas.threshold(prm) == 0


def test_contamination_caps_the_clip_and_sets_the_threshold():
    prm = checked(corruption_bound=0.16, moment_bound=9.0)
    table = prm_formulas.tables(prm, [8, 4096])
    np.testing.assert_allclose(table.clip, [3.0, 3 * 0.16**-0.5])
    assert table.radius[1] == pytest.approx(3 * (0.5 / 32 + 0.75 * math.sqrt(4 / 2048) + 0.5 * 0.4))
    assert prm_formulas.threshold(prm) == pytest.approx(4 / 0.16)
    assert prm_formulas.threshold(prm._replace(explicit=True)) == 0


def test_third_moments():
    table = prm_formulas.tables(checked(moment_order=3.0, moment_bound=8.0, epsilon=1.0), [32])
    assert table.clip == pytest.approx(2 * 8 ** (1 / 3))
    assert table.radius == pytest.approx(2 * (0.5 * math.sqrt(1 / 8) + 0.75 * (1 / 8) ** (2 / 3)))


def test_large_epsilon_moves_noise_only():
    one, many, infinite = (prm_formulas.tables(checked(epsilon=e), [8, 64]) for e in (1.0, 4.0, math.inf))
    np.testing.assert_array_equal(one.clip, many.clip)
    np.testing.assert_array_equal(one.radius, infinite.radius)
    np.testing.assert_allclose(one.noise_scale, 4 * many.noise_scale)
    assert not infinite.noise_scale.any()


def test_the_explicit_radius_by_hand():
    table = prm_formulas.tables(checked(radius="explicit", corruption_bound=0.04), [200])
    clip, four, two = 5.0, math.log(4) + 4, math.log(2) + 4
    expected = math.sqrt(2 * (1 + 0.04 * 25) * four / 200) + 2 * clip * four / 600 + 2 * clip * two / 100
    assert table.radius == pytest.approx(expected + 1 / clip + 0.04 * (clip + 1))
    private = checked(radius="explicit", epsilon=math.inf)
    assert prm_formulas.tables(private, [200]).radius == pytest.approx(
        math.sqrt(2 * four / 200) + 2 * math.sqrt(50) * four / 600 + 1 / math.sqrt(50)
    )


def test_central_formulas_by_hand():
    prm = checked(moment="central", mean_bound=10.0, epsilon=1.0)
    r = math.sqrt(10)
    table = prm_formulas.tables(prm, [64, 65])
    np.testing.assert_allclose(table.clip, 2 * r + math.sqrt(8))
    np.testing.assert_allclose(table.radius, 0.5 * math.sqrt(1 / 8) + 0.75 * math.sqrt(1 / 8))
    np.testing.assert_allclose(table.noise_scale, 2 * (2 * r + math.sqrt(8)) / 32)
    np.testing.assert_allclose(table.count_scale, 2 / 32)
    assert prm_formulas.tables(prm._replace(shifted=False), [64]).clip == pytest.approx(math.sqrt(8))
    assert prm_formulas.threshold(prm) == pytest.approx(8 * (math.log(10) + 4))
    assert prm_formulas.threshold(prm._replace(corruption_bound=0.01)) == pytest.approx(400.0)
    assert prm_formulas.histogram(prm) == (7, -10.0, r)
    guarded = prm_formulas.histogram(prm._replace(guard_bins=1))
    assert guarded.num_bins == 9 and guarded.first_edge == pytest.approx(-10 - r)
    assert prm_formulas.histogram(checked(moment="central", mean_bound=4 * r)).num_bins == 8  # no bin for rounding
    alpha = 0.1
    assert checked(moment="central", mean_bound=10.0, corruption_bound=alpha).bin_width == pytest.approx(
        math.sqrt(0.9 / 0.149)
    )


def test_the_explicit_central_radius_by_hand():
    prm = checked(
        moment="central", mean_bound=10.0, epsilon=1.0, radius="explicit", corruption_bound=0.01, moment_order=2.0
    )
    r, a, four, two = prm.bin_width, math.sqrt(8), math.log(4) + 4, math.log(2) + 4
    clip = a + 2 * r
    variance = 1 + 4 * r**2 / 8 + 0.01 * (clip + 2 * r) ** 2
    expected = math.sqrt(2 * variance * four / 32) + 2 * clip * four / 96 + 2 * clip * two / 32
    assert prm_formulas.tables(prm, [64]).radius == pytest.approx(expected + 1 / a + 2 * r / 8 + 0.01 * (clip + 2 * r))


# one block


def block_of(windows, pulls, bins, clip, noise=0.0):
    """The estimate of rewards given in windows, each padded with plays that are not used."""
    draws, constants = (
        Draws(jnp.uint32(1), "alg/update"),
        Constants(*(jnp.float32(x) for x in (clip, 4.0, noise, noise))),
    )
    block, t, histogram = empty(bins, jnp.float32), 0, Bins(8, -4.0, 1.0)
    for rewards in windows:
        assert len(rewards) <= left(block, jnp.int32(pulls), bins)
        t += len(rewards)
        value = jnp.asarray([*rewards, 100.0, np.nan], jnp.float32)
        play = jnp.arange(len(value)) < len(rewards)
        block, full = extended(
            block,
            jnp.int32(pulls),
            jnp.int32(len(rewards)),
            value,
            play,
            constants,
            bins,
            histogram,
            jnp.float32(1),
            draws,
            t,
        )
    assert bool(full)
    return float(estimate(block, jnp.int32(pulls), constants, bins, jnp.float32(1), draws, t))


def test_a_block_is_the_estimators_mean_however_it_is_cut():
    x = np.array([0.5, 1.5, np.inf, 1.0, 1.25, 2.0, np.nan, 1.75], np.float32)
    raw = float(jb.estimators.truncated_mean(jnp.asarray(x), 2.0))
    assert raw == (0.5 + 1.5 + 1.0 + 1.25 + 2.0 + 1.75) / 8
    central = jb.estimators.histogram_mean(jnp.asarray(x), 0.8, 4.0, 1.0)
    assert [float(v) for v in central] == [1 + (0.25 + 0.75) / 4, 1.0]
    for cuts in ([8], [4, 4], [1, 3, 2, 2]):
        windows = np.split(x, np.cumsum(cuts)[:-1])
        assert block_of(windows, 8, 0, 2.0) == raw
        if len(cuts) > 1:
            assert block_of(windows, 8, 8, 0.8) == float(central.estimate)


def test_an_odd_block_drops_its_last_reward_and_empty_bins_are_noisy_too():
    even = jb.estimators.histogram_mean(jnp.array([1.5, 1.5, 1.0, 1.5]), 2.0, 4.0, 1.0)
    odd = jb.estimators.histogram_mean(jnp.array([1.5, 1.5, 1.0, 1.5, 7.0]), 2.0, 4.0, 1.0)
    assert even == odd and float(even.estimate) == 1.25
    found = {block_of([[1.5, 1.5], [1.0, 1.5]], 4, 8, 2.0, noise=noise) for noise in (0.0, 50.0)}
    assert len(found) == 2


def test_estimators_move_little():
    """docs/formulas/private_robust_mab.md#private-robust-mean:
    one reward moves the truncated mean by at most 2 M / n and the shares of the bins by at most 2 / n.
    """
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_cauchy(40), jnp.float32)
    base = float(jb.estimators.truncated_mean(x, 1.5))
    for value in (np.inf, -1.5, 1.5, np.nan):
        assert abs(float(jb.estimators.truncated_mean(x.at[3].set(value), 1.5)) - base) <= 3.0 / 40 + 1e-6
    assert abs(float(jb.estimators.truncated_mean(x.at[:].set(1.5).at[0].set(-1.5), 1.5)) - 1.5) == pytest.approx(
        3 / 40
    )


# whole paths


def literal(algorithm, rewards, horizon, seed, *, central, exploration="batch"):
    """Actions [T] of Algorithm 1, pull by pull; rewards(t, arm), noise from the addressed streams."""
    p, num_arms = algorithm.params, len(MEANS)
    streams = {
        name: Draws(jnp.uint32(seed), f"alg/{name}", jnp.float64) for name in ("act/arm", "act/greedy", "update/mean")
    }
    bins = Draws(jnp.uint32(seed), "alg/update/bins", jnp.float64)
    actions, active, latest = [], list(range(num_arms)), {}

    def uniform(name, t):
        return float(streams[name].uniform(jnp.int32(t)))

    def pull(arm):
        actions.append(arm)
        return rewards(len(actions), arm)

    def estimated(x, b):
        n, t = len(x), len(actions)
        edge = 0.0
        if central:
            n = len(x) // 2
            half, counts = x[:n], np.zeros(p.bins.num_bins)
            for v in half:
                j = (v - p.bins.first_edge) / p.bins.width
                if 0 <= j < len(counts):
                    counts[int(j)] += 1
            noise = [
                float(to_laplace(bins.at(jnp.int32(t - n), jnp.int32(j)), jnp.float64)) for j in range(len(counts))
            ]
            edge = p.bins.first_edge + p.bins.width * int(
                np.argmax(counts / n + p.mechanism_scale * p.count_scale[b] * np.array(noise))
            )
            x = x[n:]
        noise = float(streams["update/mean"].laplace(jnp.int32(t)))
        kept = sum(v - edge for v in x if abs(v - edge) <= p.clip[b])
        return edge + kept / n + p.mechanism_scale * p.noise_scale[b] * noise

    for b in range(60):
        size = 2 ** (b + 1)
        if b < p.forced:
            first = len(actions) + 1
            arm = min(int(uniform("act/arm", first) * num_arms), num_arms - 1)
            if exploration == "greedy" and not uniform("act/greedy", first) < p.greedy_prob:
                unseen = [a for a in range(num_arms) if a not in latest]
                arm = unseen[0] if unseen else max(latest, key=lambda a: (latest[a], -a))
            x = []
            for _ in range(size):
                if exploration == "round":
                    arm = min(int(uniform("act/arm", len(actions) + 1) * num_arms), num_arms - 1)
                x.append(pull(arm))
                if len(actions) == horizon:
                    return actions
            if exploration == "greedy":
                latest[arm] = estimated(x, b)
            continue
        value = {}
        for arm in active:
            x = []
            for _ in range(size):
                x.append(pull(arm))
                if len(actions) == horizon:
                    return actions
            value[arm] = estimated(x, b)
        top = max(value.values())
        active = [a for a in active if not top - value[a] > 2 * p.radius[b]]


CASES = {
    "raw": {"epsilon": 1.0},
    "explicit": {"epsilon": math.inf, "radius": "explicit", "moment_order": 6.0, "moment_bound": 2.0,
        "failure_prob": 0.5},
    "contaminated": {"epsilon": 2.0, "corruption_bound": 0.05, "threshold_scale": 0.2},
    "round": {"epsilon": 2.0, "corruption_bound": 0.05, "threshold_scale": 0.5, "exploration": "round"},
    "greedy": {"epsilon": 2.0, "corruption_bound": 0.05, "threshold_scale": 0.5, "exploration": "greedy",
        "greedy_prob": 0.3},
    "central": {"epsilon": 1.0, "moment": "central", "mean_bound": 3.0, "moment_bound": 0.2, "histogram_scale": 0.5,
        "guard_bins": 1},
    "literal": {
        "epsilon": 1.0, "moment": "central", "mean_bound": 3.0, "moment_bound": 0.2, "histogram_scale": 2.0,
        "clip_mode": "literal", "exploration": "greedy",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_paths_are_those_of_the_literal_loop(name):
    horizon, arguments = 1500, CASES[name]
    adversary = jb.adversaries.huber(corruption=0.02, kind="fixed", value="nan" if name == "contaminated" else "inf")
    make = partial(prm_elimination, **arguments)
    algorithm = make(num_arms=5, horizon=horizon)
    removed = 0
    for seed in range(4):
        run = jb.simulate(
            algorithm,
            gaussian(),
            reward_adversary=adversary,
            seed=seed,
            checkpoints=horizon,
            history=True,
            dtype="float64",
        )
        assert len(run.history.action) == horizon  # a lane at rest shows every play
        with jax.enable_x64(True):
            expected = literal(
                algorithm, lambda t, arm, run=run: run.history.reward[t - 1], horizon, seed,
                central=arguments.get("moment") == "central", exploration=arguments.get("exploration", "batch"),
            )  # fmt: skip
        np.testing.assert_array_equal(run.history.action, expected)
        counts = np.cumsum(np.eye(5)[np.array(expected)], axis=0)
        np.testing.assert_allclose(run.regret, counts @ (max(MEANS) - np.array(MEANS)))
        np.testing.assert_array_equal(run.pulls, counts[-1])
        removed += 5 - run.diagnostics["active_arms"]
    assert removed > 0  # the rewards of the plays mattered
