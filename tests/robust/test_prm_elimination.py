"""PRM elimination: formulas and blocks by hand, and errors. Its paths: test_private_robust_reference.py."""

import math
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms.robust import prm_block, prm_formulas
from jaxbandits.random import Draws

ARGUMENTS = {
    "moment": "raw", "epsilon": 0.5, "horizon": 1000, "moment_order": 2.0, "moment_bound": 1.0, "mean_bound": None,
    "corruption_bound": 0.0, "failure_prob": math.exp(-4), "radius": "order", "clip_scale": 1.0, "sampling_scale": 0.5,
    "privacy_scale": 0.75, "corruption_scale": 0.5, "threshold_scale": 1.0, "histogram_scale": 8.0, "guard_bins": 0,
    "clip_mode": "shifted",
}  # fmt: skip


def checked(**changes):
    return prm_formulas.check_prm(**ARGUMENTS | changes)


def test_raw_formulas_by_hand():
    prm = checked()
    table = prm_formulas.prm_tables(prm, [32])
    assert table.clip == pytest.approx(2.0)  # sqrt(32 / 2 / 4)
    assert table.radius == pytest.approx(0.5 * math.sqrt(1 / 8) + 0.75 * math.sqrt(4 / 16))
    assert table.noise_scale == pytest.approx(2 * 2.0 / (32 * 0.5)) and table.count_scale == 0
    assert prm_formulas.threshold(prm) == 0


def test_contamination_sets_clip_and_threshold_and_third_moments():
    prm = checked(corruption_bound=0.16, moment_bound=9.0)
    table = prm_formulas.prm_tables(prm, [8, 4096])
    np.testing.assert_allclose(table.clip, [3.0, 3 * 0.16**-0.5])
    assert table.radius[1] == pytest.approx(3 * (0.5 / 32 + 0.75 * math.sqrt(4 / 2048) + 0.5 * 0.4))
    assert prm_formulas.threshold(prm) == pytest.approx(4 / 0.16)
    assert prm_formulas.threshold(prm._replace(radius="explicit")) == 0
    table = prm_formulas.prm_tables(checked(moment_order=3.0, moment_bound=8.0, epsilon=1.0), [32])
    assert table.clip == pytest.approx(2 * 8 ** (1 / 3))
    assert table.radius == pytest.approx(2 * (0.5 * math.sqrt(1 / 8) + 0.75 * (1 / 8) ** (2 / 3)))


def test_large_epsilon_moves_noise_only():
    one, many, infinite = (prm_formulas.prm_tables(checked(epsilon=e), [8, 64]) for e in (1.0, 4.0, math.inf))
    np.testing.assert_array_equal(one.clip, many.clip)
    np.testing.assert_array_equal(one.radius, infinite.radius)
    np.testing.assert_allclose(one.noise_scale, 4 * many.noise_scale)
    assert not infinite.noise_scale.any()


def test_the_explicit_radius_by_hand():
    table = prm_formulas.prm_tables(checked(radius="explicit", corruption_bound=0.04), [200])
    clip, four, two = 5.0, math.log(4) + 4, math.log(2) + 4
    expected = math.sqrt(2 * (1 + 0.04 * 25) * four / 200) + 2 * clip * four / 600 + 2 * clip * two / 100
    assert table.radius == pytest.approx(expected + 1 / clip + 0.04 * (clip + 1))
    private = checked(radius="explicit", epsilon=math.inf)
    assert prm_formulas.prm_tables(private, [200]).radius == pytest.approx(
        math.sqrt(2 * four / 200) + 2 * math.sqrt(50) * four / 600 + 1 / math.sqrt(50)
    )


def test_central_formulas_by_hand():
    prm = checked(moment="central", mean_bound=10.0, epsilon=1.0)
    r = math.sqrt(10)
    table = prm_formulas.prm_tables(prm, [64, 65])
    np.testing.assert_allclose(table.clip, 2 * r + math.sqrt(8))
    np.testing.assert_allclose(table.radius, 0.5 * math.sqrt(1 / 8) + 0.75 * math.sqrt(1 / 8))
    np.testing.assert_allclose(table.noise_scale, 2 * (2 * r + math.sqrt(8)) / 32)
    np.testing.assert_allclose(table.count_scale, 2 / 32)
    assert prm_formulas.prm_tables(prm._replace(clip_mode="literal"), [64]).clip == pytest.approx(math.sqrt(8))
    assert prm_formulas.threshold(prm) == pytest.approx(8 * (math.log(10) + 4))
    assert prm_formulas.threshold(prm._replace(corruption_bound=0.01)) == pytest.approx(400.0)
    assert prm_formulas.histogram(prm) == (7, -10.0, r)
    guarded = prm_formulas.histogram(prm._replace(guard_bins=1))
    assert guarded.num_bins == 9 and guarded.first_edge == pytest.approx(-10 - r)
    assert prm_formulas.histogram(checked(moment="central", mean_bound=4 * r)).num_bins == 8  # no bin for rounding
    width = checked(moment="central", mean_bound=10.0, corruption_bound=0.1).bin_width
    assert width == pytest.approx(math.sqrt(0.9 / 0.149))


def test_the_explicit_central_radius_by_hand():
    central = {"moment": "central", "mean_bound": 10.0, "radius": "explicit"}
    prm = checked(**central, epsilon=1.0, corruption_bound=0.01, moment_order=2.0)
    r, a, four, two = prm.bin_width, math.sqrt(8), math.log(4) + 4, math.log(2) + 4
    clip = a + 2 * r
    variance = 1 + 4 * r**2 / 8 + 0.01 * (clip + 2 * r) ** 2
    expected = math.sqrt(2 * variance * four / 32) + 2 * clip * four / 96 + 2 * clip * two / 32
    expected += 1 / a + 2 * r / 8 + 0.01 * (clip + 2 * r)
    assert prm_formulas.prm_tables(prm, [64]).radius == pytest.approx(expected)


@cache
def block_functions(bins, slots):
    """What a block holds at first, what it holds after a window of `slots` plays, and its estimate."""

    def draws():
        return Draws(jnp.uint32(1), "alg/update")

    def after(block, pulls, used, value, play, constants, t):
        more = constants, bins, prm_block.Bins(8, -4.0, 1.0), jnp.float32(1), draws(), t
        return prm_block.extend_block(block, pulls, used, value, play, *more)

    def value(block, pulls, constants, t):
        return prm_block.estimate_mean(block, pulls, constants, bins, jnp.float32(1), draws(), t)

    return uncompiled(lambda: prm_block.empty_block(bins, jnp.float32)), uncompiled(after), uncompiled(value)


def block_of(windows, pulls, bins, clip, noise=0.0):
    """The estimate of rewards given in windows, each padded with plays that are not used."""
    constants, pulls = prm_block.BlockConstants(*(np.float32(x) for x in (clip, 4.0, noise, noise))), np.int32(pulls)
    first, after, value_of = block_functions(bins, 10)
    block, t = first(), 0
    for rewards in windows:
        assert len(rewards) <= prm_block.plays_left(block, pulls, bins)
        t += len(rewards)
        value = np.full(10, np.nan, np.float32)
        value[: len(rewards) + 1] = [*rewards, 100.0]
        play = np.arange(10) < len(rewards)
        block, full = after(block, pulls, np.int32(len(rewards)), value, play, constants, np.int32(t))
    assert bool(full)
    return float(value_of(block, pulls, constants, np.int32(t)))


def truncated(x, clip):
    return float(uncompiled(jb.estimators.truncated_mean)(np.float32(x), clip))


def histogram(x, *arguments):
    """The estimate and its left edge."""
    return [float(v) for v in uncompiled(lambda x: jb.estimators.histogram_mean(x, *arguments))(np.float32(x))]


def test_a_block_is_the_estimators_mean_however_it_is_cut():
    x = np.array([0.5, 1.5, np.inf, 1.0, 1.25, 2.0, np.nan, 1.75], np.float32)
    raw = truncated(x, 2.0)
    assert raw == (0.5 + 1.5 + 1.0 + 1.25 + 2.0 + 1.75) / 8
    central = histogram(x, 0.8, 4.0, 1.0)
    assert central == [1 + (0.25 + 0.75) / 4, 1.0]
    for cuts in ([8], [4, 4], [1, 3, 2, 2]):
        windows = np.split(x, np.cumsum(cuts)[:-1])
        assert block_of(windows, 8, 0, 2.0) == raw
        if len(cuts) > 1:
            assert block_of(windows, 8, 8, 0.8) == central[0]


def test_an_odd_block_drops_its_last_reward_and_empty_bins_are_noisy_too():
    even = histogram([1.5, 1.5, 1.0, 1.5], 2.0, 4.0, 1.0)
    odd = histogram([1.5, 1.5, 1.0, 1.5, 7.0], 2.0, 4.0, 1.0)
    assert even == odd and even[0] == 1.25
    assert len({block_of([[1.5, 1.5], [1.0, 1.5]], 4, 8, 2.0, noise=noise) for noise in (0.0, 50.0)}) == 2


def test_estimators_move_little():
    """docs/formulas/private_robust_mab.md#private-robust-mean:
    one reward moves the truncated mean by at most 2 M / n and the shares of the bins by at most 2 / n.
    """
    rng = np.random.default_rng(0)
    x = np.float32(rng.standard_cauchy(40))
    changed = lambda value: np.where(np.arange(40) == 3, np.float32(value), x)
    base = truncated(x, 1.5)
    for value in (np.inf, -1.5, 1.5, np.nan):
        assert abs(truncated(changed(value), 1.5) - base) <= 3.0 / 40 + 1e-6
    assert abs(truncated([-1.5] + [1.5] * 39, 1.5) - 1.5) == pytest.approx(3 / 40)
