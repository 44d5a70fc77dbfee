"""Tunings and bounds against values worked out here in float64 from the formulas of the paper."""

import math
import re

import numpy as np
import pytest

from jaxbandits import theory
from jaxbandits.theory import private_robust_lower_bound, prm_raw_bound


def test_window_of_every_reciprocal_is_exact_also_after_float32():
    for n in range(1, 2000):
        assert theory.window(1 / n) == n
        assert theory.window(float(np.float32(1 / n))) == n
    assert [theory.window(e) for e in (0.3, 0.7, 1, 0.021)] == [4, 2, 1, 48]


def test_exp3_tuning_at_its_edges():
    k = 10
    edge = 16 / 22 * k * math.log(k)  # mixing <= 1 exactly where epsilon T >= (16/22) K log K = 16.75
    assert theory.exp3_tuning(k, 34, 17 / 34)["mixing"] <= 1 and edge < 17
    assert theory.exp3_tuning(k, 34, 16 / 34, mixing=0.5)["mixing"] == 0.5
    assert theory.exp3_noisy_tuning(5, 100, 0.0) == {"learning_rate": math.sqrt(math.log(5) / 1000), "mixing": 0.0}


def test_general_exp3_contains_the_corollary_up_to_its_rounding():
    # lam = 1: 2 (1 + 10 L^2) <= 22 L^2, so the corollary's step is the smaller one, by less than 5%
    special, general = theory.exp3_tuning(10, 1000, 1.0), theory.exp3_noisy_tuning(10, 1000, 1.0)
    assert 0.95 < special["learning_rate"] / general["learning_rate"] <= 1


def smallest(tuning):
    """The T named by the error of a tuning that does not reach."""
    with pytest.raises(ValueError, match="the smallest T") as found:
        tuning()
    return int(re.search(r"smallest T that works is (\d+)", str(found.value)).group(1))


@pytest.mark.parametrize(
    ("tuning", "start"),
    [
        (lambda t: theory.exp3_tuning(10, t, 0.3), 20),
        (lambda t: theory.exp3_noisy_tuning(10, t, 2.0), 5),
        (lambda t: theory.local_exp4_tuning(10, 8, t, 0.5), 5),
        (lambda t: theory.batched_exp4_tuning(3, 4, t, 0.05, 1e-3), 100),
        (lambda t: theory.batched_exp4_tuning(3, 4, t, 0.05, 1e-3, mixing_rule="printed"), 100),
        (lambda t: theory.batched_exp4_tuning(10, 64, t, 1.0, 0.1), 50),
        (lambda t: theory.batched_exp4_tuning(3, 4, t, 0.5, 0.1, mixing=0.5), 10),
    ],
)
def test_the_horizon_an_error_names_works_and_the_one_before_does_not(tuning, start):
    horizon = smallest(lambda: tuning(start))
    assert horizon > start and tuning(horizon)["mixing"] <= 1
    assert smallest(lambda: tuning(horizon - 1)) == horizon


def test_composition_of_the_noise_of_batched_exp4():
    for epsilon, delta, count in ((0.1, 0.4, 2), (1.0, 0.1, 64), (1.0, 0.4, 1000), (2.0, 0.4, 1000)):
        each = epsilon / (3 * math.sqrt(count * math.log(1 / delta)))
        # docs/formulas/private_adversarial.md#batched-exp4
        lemma = epsilon**2 / (6 * math.log(1 / delta)) + math.sqrt(2 / 3) * epsilon
        assert theory.composed_epsilon(each, count, delta) == pytest.approx(min(lemma, count * each))
        assert (lemma <= epsilon * (1 + 1e-9)) == (
            epsilon < 2
        )  # the theorem's own claim, while log(1/delta) >= 0.91 epsilon


def test_regions_of_table_2_leave_holes_and_overlap():
    for num_experts, epsilon, want in (
        (5, 0.5, ("bandit_to_experts",)),
        (5, 0.005, ("bandit_to_experts",)),
        (5, 2.5, ("bandit_to_experts",)),
        (100, 0.015, ()),
        (10, 1.0, ("bandit_to_experts", "local_exp4")),
        (10, 0.01, ("bandit_to_experts", "batched_exp4")),
        (100, 0.1, ("local_exp4",)),
        (100, 0.05, ()),
        (100, 0.01, ("batched_exp4",)),
        (10_000, 0.005, ("local_exp4", "batched_exp4")),
    ):
        assert theory.experts_regions(10, num_experts, 10_000, epsilon) == want


def test_the_lower_bound_is_the_largest_of_three():
    assert private_robust_lower_bound(4, 10_000, math.inf) == pytest.approx(200 / 27)
    assert private_robust_lower_bound(4, 10_000, 0.01) == pytest.approx(20 * 100 / 27)
    assert private_robust_lower_bound(4, 10_000, 1.0, corruption=0.25) == pytest.approx(5000 / 27)
    assert private_robust_lower_bound(4, 10_000, 1.0, corruption=0.25, constant=1.0, max_gap=0.1) == 1000
    for epsilon in (0.1, 1.0):
        for alpha in (0.0, 0.1):
            below = private_robust_lower_bound(4, 10_000, epsilon, corruption=alpha)
            assert below < prm_raw_bound(4, 10_000, epsilon, corruption_bound=alpha)
