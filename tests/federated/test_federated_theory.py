"""Schedules and bounds of Byzantine-robust federated bandits, by hand."""

import math

import pytest

from jaxbandits import theory

SETTING = {"num_agents": 10, "horizon": 2000, "dim": 4, "window": 40}
IOTA = math.log(128 * 10 * 2000 / 0.05)


def test_ridge_and_radius_by_hand():
    c = 8 / 3
    ridge = 8 * math.sqrt(40 * IOTA) * c * math.sqrt(9)
    assert theory.byzantine_ridge(9, **SETTING, corruption_bound=0.2) == pytest.approx(ridge)
    numerator = 4 * math.sqrt(8 * 40 * 4 * IOTA) * c * 1.5
    want = 3 * math.sqrt(4 * ridge) + numerator / math.sqrt(ridge) + math.sqrt(4 * IOTA / 10)
    assert theory.byzantine_radius(9, **SETTING, corruption_bound=0.2) == pytest.approx(want)
    b = 48 * IOTA * math.log(4000) * (2 + IOTA) / 2
    private = {"epsilon": 2.0, "delta": 1e-3, "corruption_bound": 0.2}
    dp = theory.byzantine_ridge(9, **SETTING, constants="dp", **private)
    assert dp == pytest.approx(ridge + 2 * c * b * 40 * 2)
    mom = theory.byzantine_ridge(9, **SETTING, constants="median_of_means", **private)
    assert mom == pytest.approx(8 * b * 40 * 2 + max(40, 128 * math.sqrt(0.2 * 40 * IOTA) * 3))
    assert theory.byzantine_ridge(9, **SETTING, **private) == pytest.approx(ridge)  # Theorem 2 knows no privacy


def test_window_by_hand():
    assert theory.byzantine_window(10, 2000, corruption_bound=0.2) == pytest.approx(4 * math.sqrt(2000 * IOTA))
    mom = theory.byzantine_window(10, 2000, corruption_bound=0.1, constants="median_of_means")
    assert mom == pytest.approx(1.5 * math.sqrt(200 * IOTA))


def test_bounds_have_their_rates():
    assert theory.byzantine_ucb_bound(10, 16 * 81, 4) / theory.byzantine_ucb_bound(10, 81, 4) == pytest.approx(8)
    dp = theory.byzantine_ucb_dp_bound(10, 10_000, 4, 2.0, 1e-3)
    assert dp == pytest.approx(math.sqrt(math.log(2000) / 2) * 8 * 10 * 1000)
    mom = theory.byzantine_ucb_dp_mom_bound(10, 10_000, 4, 2.0, 1e-3, corruption_bound=1 / 16)
    assert mom == pytest.approx(dp / 1000 * (500 + 100))
