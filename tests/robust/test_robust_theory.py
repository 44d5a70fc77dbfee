"""The order lines of private and robust bandits, term by term."""

import math

import pytest

from jaxbandits.theory import private_robust_lower_bound, prm_central_bound, prm_raw_bound

L = math.log(10_000)


def test_raw_terms():
    clean = prm_raw_bound(4, 10_000, 0.25)
    assert clean == pytest.approx(200 * math.sqrt(L) + math.sqrt(16 * L) * 100)
    dirty = prm_raw_bound(4, 10_000, 0.25, corruption_bound=0.04)
    assert dirty - clean == pytest.approx(10_000 * 0.2 + 4 * L / 0.04)
    third = prm_raw_bound(4, 10_000, 0.25, moment_order=3.0, moment_bound=8.0)
    assert third == pytest.approx(2 * (200 * math.sqrt(L) + (16 * L) ** (2 / 3) * 10_000 ** (1 / 3)))
    assert prm_raw_bound(4, 10_000, math.inf) == prm_raw_bound(4, 10_000, 1.0)
    assert prm_raw_bound(4, 10_000, 0.25, max_gap=0.01) == 100


def test_central_terms():
    extra = prm_central_bound(4, 10_000, 0.5, 10.0) - prm_raw_bound(4, 10_000, 0.5)
    assert extra == pytest.approx(10 * 4 * math.log(100_000) / 0.5)
    extra = prm_central_bound(4, 10_000, 0.5, 10.0, corruption_bound=0.1) - prm_central_bound(4, 10_000, 0.5, 10.0)
    assert extra == pytest.approx(10_000 * math.sqrt(0.1) + 10 * 4 * L / 0.1)
    units = [prm_central_bound(4, 10_000, 0.5, 10.0 * s, moment_bound=s * s, corruption_bound=0.1) for s in (1.0, 3.0)]
    assert units[1] == pytest.approx(3 * units[0])


def test_the_lower_bound_is_the_largest_of_three():
    assert private_robust_lower_bound(4, 10_000, math.inf) == pytest.approx(200 / 27)
    assert private_robust_lower_bound(4, 10_000, 0.01) == pytest.approx(20 * 100 / 27)
    assert private_robust_lower_bound(4, 10_000, 1.0, corruption=0.25) == pytest.approx(5000 / 27)
    assert private_robust_lower_bound(4, 10_000, 1.0, corruption=0.25, constant=1.0, max_gap=0.1) == 1000
    for epsilon in (0.1, 1.0):
        for alpha in (0.0, 0.1):
            below = private_robust_lower_bound(4, 10_000, epsilon, corruption=alpha)
            assert below < prm_raw_bound(4, 10_000, epsilon, corruption_bound=alpha)
