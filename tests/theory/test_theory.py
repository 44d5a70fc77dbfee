"""Tunings and bounds against values worked out here in float64 from the formulas of the paper."""

import math
import re

import numpy as np
import pytest

from jaxbandits import theory
from jaxbandits.theory import private_robust_lower_bound, prm_central_bound, prm_raw_bound


def test_window_of_every_reciprocal_is_exact_also_after_float32():
    for n in range(1, 2000):
        assert theory.window(1 / n) == n
        assert theory.window(float(np.float32(1 / n))) == n
    assert [theory.window(e) for e in (0.3, 0.7, 1, 0.021)] == [4, 2, 1, 48]


def test_exp3_tuning_by_hand_and_at_its_edges():
    made = theory.exp3_tuning(10, 100_000, 0.1)
    big = math.log(10 * 10_000)  # n = 10_000, L = log(K n) = 11.5129
    assert big == pytest.approx(11.512925464970229)
    assert made["learning_rate"] == pytest.approx(math.sqrt(math.log(10) / (22 * 10_000 * 10)) / big, rel=1e-14)
    assert made["learning_rate"] == pytest.approx(8.886117e-05, rel=1e-5)
    assert made["mixing"] == pytest.approx(4 * made["learning_rate"] * 10 * big, rel=1e-14)
    assert made["window"] == 10 and made["noise_scale"] == pytest.approx(1.0)
    k = 10
    edge = 16 / 22 * k * math.log(k)  # mixing <= 1 exactly where epsilon T >= (16/22) K log K = 16.75
    assert theory.exp3_tuning(k, 34, 17 / 34)["mixing"] <= 1 and edge < 17
    assert theory.exp3_tuning(k, 34, 16 / 34, mixing=0.5)["mixing"] == 0.5
    assert theory.exp3_noisy_tuning(5, 100, 0.0) == {"learning_rate": math.sqrt(math.log(5) / 1000), "mixing": 0.0}


def test_general_exp3_contains_the_corollary_up_to_its_rounding():
    # lam = 1: 2 (1 + 10 L^2) <= 22 L^2, so the corollary's step is the smaller one, by less than 5%
    special, general = theory.exp3_tuning(10, 1000, 1.0), theory.exp3_noisy_tuning(10, 1000, 1.0)
    assert 0.95 < special["learning_rate"] / general["learning_rate"] <= 1
    assert general["mixing"] == pytest.approx(4 * general["learning_rate"] * 10 * math.log(10_000))
    low = theory.exp3_noisy_tuning(10, 1000, 0.25)  # max(lam^2, lam) = lam below 1
    rate = math.sqrt(math.log(10) / (2e4 * (1 + 2.5 * math.log(1e4) ** 2)))
    assert low["learning_rate"] == pytest.approx(rate, rel=1e-14)


def test_ftpl_tuning_by_hand():
    made = theory.ftpl_tuning(4, 10_000, 0.25)
    n, log_kn = 2500.0, math.log(10_000)
    first = math.sqrt(math.log(4) / (4 * n + 40 * n * log_kn**2))
    second = 1 / (100 * (1 + 4 * math.log(n)))
    assert made == {"learning_rate": min(first, second), "tries": 100, "window": 4, "noise_scale": 1.0}
    general = theory.ftpl_noisy_tuning(4, 2500, 1.0)
    assert general["tries"] == 100 and general["learning_rate"] == pytest.approx(made["learning_rate"])
    assert theory.ftpl_noisy_tuning(3, 101, 0.0)["tries"] == 18  # ceil(sqrt 303)


def test_local_exp4_tuning_by_hand():
    made = theory.local_exp4_tuning(3, 8, 5000, 0.5)
    log_kt = math.log(15_000)
    rate = math.sqrt(math.log(8) / (3 * 5000 * 3 * (1 + 10 * log_kt**2 / 0.25)))
    assert made["learning_rate"] == pytest.approx(rate, rel=1e-14)
    assert made["mixing"] == pytest.approx(4 * rate * 3 * log_kt / 0.5, rel=1e-14)
    assert made["noise_scale"] == 2.0
    free = theory.local_exp4_tuning(3, 8, 5000, math.inf)
    assert free["mixing"] == 0 and free["noise_scale"] == 0
    assert free["learning_rate"] == math.sqrt(math.log(8) / 45_000)


def test_batched_exp4_tuning():
    t = 100_000_000
    made = theory.batched_exp4_tuning(3, 4, t, 0.1, 1e-3)
    more, log_nt = 4 * math.log(1e3), math.log(4 * t)
    rate = more ** (1 / 6) * log_nt ** (1 / 3) * math.log(4) ** (1 / 3) / (t ** (1 / 3) * 3**0.5 * 0.1 ** (1 / 3))
    tau = math.ceil(more ** (1 / 3) * log_nt ** (2 / 3) * t ** (1 / 3) / (0.1 ** (2 / 3) * math.log(4) ** (1 / 3)))
    first = (rate * more) ** (1 / 3) * 3 ** (2 / 3) * log_nt ** (2 / 3) / (0.1 * tau) ** (2 / 3)
    second = 12 * rate * 3 * more**0.5 * log_nt / (0.1 * tau)
    assert made["learning_rate"] == pytest.approx(rate) and made["window"] == tau
    assert made["mixing"] == pytest.approx(max(first, second))
    assert made["noise_scale"] == pytest.approx(9 * math.sqrt(more) / (max(first, second) * tau * 0.1))
    # balance: before rounding the first branch is eta K, the second 12 eta^2 K^(3/2)
    assert first == pytest.approx(rate * 3, rel=1e-3) and second == pytest.approx(12 * rate**2 * 3**1.5, rel=1e-3)
    printed = theory.batched_exp4_tuning(3, 4, t, 0.1, 1e-3, mixing_rule="printed")
    assert printed["mixing"] <= made["mixing"] and printed["noise_scale"] >= made["noise_scale"]
    free = dict(learning_rate=0.1, mixing=0.2, window=5)
    tuned = theory.batched_exp4_tuning(3, 4, 10, 0.5, 0.1, **free)
    assert tuned["noise_scale"] == pytest.approx(9 * math.sqrt(4 * math.log(10)) / (0.2 * 5 * 0.5))


def test_bounds_by_hand():
    k, t, eps = 10, 100_000, 0.1
    n = 10_000
    assert theory.htinf_bound(k, t, eps) == pytest.approx(600 * math.sqrt(6) * math.sqrt(10 * 10_001) + 20)
    assert theory.htinf_window_bound(k, t, 10) == pytest.approx(300 * math.sqrt(6) * math.sqrt(10 * 10_001) + 10)
    assert theory.htinf_window_bound(k, t, 10) < theory.htinf_bound(k, t, eps)
    assert theory.htinf_experts_bound(7, t, eps) == theory.htinf_bound(7, t, eps)
    big = math.log(1e5)
    bound = 20 * (2 * math.sqrt(2e5 * math.log(10) * (1 + 10 * big**2)) + 1) + 20
    assert theory.exp3_bound(k, t, eps) == pytest.approx(bound)
    assert theory.exp3_corrected_bound(k, t, eps) > theory.exp3_bound(k, t, eps)
    tuning = theory.exp3_tuning(k, t, eps)  # the corrected bound is 2/epsilon times the base's, at lam = 1 and J = n
    base = theory.exp3_base_bound(k, n, 1.0, tuning["learning_rate"])
    assert theory.exp3_corrected_bound(k, t, eps) == pytest.approx(2 / eps * base + 2 / eps)
    assert theory.conversion_bound(base, 10) == pytest.approx(10 * base + 10)
    bound = 32 * math.sqrt(15_000 * math.log(8)) * math.log(15_000) + 1
    assert theory.local_exp4_bound(3, 8, 5000, 0.5) == pytest.approx(bound)
    kn, log_k = k * n, math.log(k)
    inner = 10 * math.sqrt(kn * log_k * (1 + 10 * math.log(kn) ** 2))
    inner += 6 * log_k * math.sqrt(kn) * (1 + 4 * math.log(n))
    assert theory.ftpl_bound(k, t, eps) == pytest.approx(20 * (inner + math.sqrt(kn) / math.e + 1) + 20)
    assert theory.ftpl_bound(k, 2, eps) == theory.ftpl_bound(k, 10, eps) > 10  # below 1 / eps plays: one batch
    size, log_nt = 4 * math.log(1000), math.log(4e6)
    first = size ** (1 / 6) * math.sqrt(3) * 1e4 * log_nt ** (1 / 3) * math.log(4) ** (1 / 3) / 0.1 ** (1 / 3)
    want = 100 * (first + math.sqrt(size) * log_nt * math.log(4) / 0.1)
    assert theory.batched_exp4_bound(3, 4, 10**6, 0.1, 1e-3) == pytest.approx(want)
    rates = theory.arms_rates(k, t, eps)
    assert rates["conversion"] == pytest.approx(math.sqrt(1e7)) and rates["existing"] > rates["conversion"]
    many = theory.experts_rates(2, 10**6, 10**6, 1.0)
    assert min(many, key=many.get) == "local_exp4"
    few = theory.experts_rates(20, 4, 10**6, 0.1)
    assert min(few, key=few.get) == "bandit_to_experts"


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


def test_an_epsilon_as_large_as_delta_allows_is_taken():
    theory.batched_exp4_tuning(3, 4, 10**8, 3.0, math.exp(-0.92 * 3))


def test_composition_of_the_noise_of_batched_exp4():
    for epsilon, delta, count in ((0.1, 0.4, 2), (1.0, 0.1, 64), (1.0, 0.4, 1000), (2.0, 0.4, 1000)):
        each = epsilon / (3 * math.sqrt(count * math.log(1 / delta)))
        # docs/formulas/private_adversarial.md#batched-exp4
        lemma = epsilon**2 / (6 * math.log(1 / delta)) + math.sqrt(2 / 3) * epsilon
        assert theory.composed_epsilon(each, count, delta) == pytest.approx(min(lemma, count * each))
        assert (lemma <= epsilon * (1 + 1e-9)) == (
            epsilon < 2
        )  # the theorem's own claim, while log(1/delta) >= 0.91 epsilon


def test_tables_with_constants():
    made = theory.arms_bounds(10, 100_000, 0.1)
    assert made["htinf"] == theory.htinf_window_bound(10, 100_000, 10)
    assert made["exp3"] == theory.exp3_corrected_bound(10, 100_000, 0.1)
    printed = theory.arms_bounds(10, 100_000, 0.1, corrected=False)
    assert printed["htinf"] == theory.htinf_bound(10, 100_000, 0.1) and printed["exp3"] < made["exp3"]
    assert printed["ftpl"] == made["ftpl"] == theory.ftpl_bound(10, 100_000, 0.1)
    experts = theory.experts_bounds(10, 64, 10**6, 0.1, 1e-3)
    assert list(experts) == list(theory.experts_rates(10, 64, 10**6, 0.1))
    assert experts["batched_exp4"] == theory.batched_exp4_bound(10, 64, 10**6, 0.1, 1e-3)


def test_regions_of_table_2_leave_holes_and_overlap():
    for num_experts, epsilon, want in (
        (5, 0.5, ("bandit_to_experts",)),
        (10, 1.0, ("bandit_to_experts", "local_exp4")),
        (10, 0.01, ("bandit_to_experts", "batched_exp4")),
        (100, 0.1, ("local_exp4",)),
        (100, 0.05, ()),
        (100, 0.01, ("batched_exp4",)),
        (10_000, 0.005, ("local_exp4", "batched_exp4")),
    ):
        assert theory.experts_regions(10, num_experts, 10_000, epsilon) == want


TEAM = {"num_agents": 10, "horizon": 2000, "dim": 4, "window": 40}
IOTA = math.log(128 * 10 * 2000 / 0.05)


def test_byzantine_ridge_and_radius_by_hand():
    c = 8 / 3
    ridge = 8 * math.sqrt(40 * IOTA) * c * math.sqrt(9)
    assert theory.byzantine_ridge(9, **TEAM, corruption_bound=0.2) == pytest.approx(ridge)
    numerator = 4 * math.sqrt(8 * 40 * 4 * IOTA) * c * 1.5
    want = 3 * math.sqrt(4 * ridge) + numerator / math.sqrt(ridge) + math.sqrt(4 * IOTA / 10)
    assert theory.byzantine_radius(9, **TEAM, corruption_bound=0.2) == pytest.approx(want)
    b = 48 * IOTA * math.log(4000) * (2 + IOTA) / 2
    private = {"epsilon": 2.0, "delta": 1e-3, "corruption_bound": 0.2}
    dp = theory.byzantine_ridge(9, **TEAM, constants="dp", **private)
    assert dp == pytest.approx(ridge + 2 * c * b * 40 * 2)
    mom = theory.byzantine_ridge(9, **TEAM, constants="median_of_means", **private)
    assert mom == pytest.approx(8 * b * 40 * 2 + max(40, 128 * math.sqrt(0.2 * 40 * IOTA) * 3))
    assert theory.byzantine_ridge(9, **TEAM, **private) == pytest.approx(ridge)  # Theorem 2 knows no privacy


def test_byzantine_windows_and_rates_of_bounds():
    assert theory.byzantine_window(10, 2000, corruption_bound=0.2) == pytest.approx(4 * math.sqrt(2000 * IOTA))
    mom = theory.byzantine_window(10, 2000, corruption_bound=0.1, constants="median_of_means")
    assert mom == pytest.approx(1.5 * math.sqrt(200 * IOTA))
    assert theory.byzantine_ucb_bound(10, 16 * 81, 4) / theory.byzantine_ucb_bound(10, 81, 4) == pytest.approx(8)
    dp = theory.byzantine_ucb_dp_bound(10, 10_000, 4, 2.0, 1e-3)
    assert dp == pytest.approx(math.sqrt(math.log(2000) / 2) * 8 * 10 * 1000)
    mom = theory.byzantine_ucb_dp_mom_bound(10, 10_000, 4, 2.0, 1e-3, corruption_bound=1 / 16)
    assert mom == pytest.approx(dp / 1000 * (500 + 100))


LOG = math.log(10_000)


def test_raw_terms_of_prm():
    clean = prm_raw_bound(4, 10_000, 0.25)
    assert clean == pytest.approx(200 * math.sqrt(LOG) + math.sqrt(16 * LOG) * 100)
    dirty = prm_raw_bound(4, 10_000, 0.25, corruption_bound=0.04)
    assert dirty - clean == pytest.approx(10_000 * 0.2 + 4 * LOG / 0.04)
    third = prm_raw_bound(4, 10_000, 0.25, moment_order=3.0, moment_bound=8.0)
    assert third == pytest.approx(2 * (200 * math.sqrt(LOG) + (16 * LOG) ** (2 / 3) * 10_000 ** (1 / 3)))
    assert prm_raw_bound(4, 10_000, math.inf) == prm_raw_bound(4, 10_000, 1.0)
    assert prm_raw_bound(4, 10_000, 0.25, max_gap=0.01) == 100


def test_central_terms_of_prm():
    extra = prm_central_bound(4, 10_000, 0.5, 10.0) - prm_raw_bound(4, 10_000, 0.5)
    assert extra == pytest.approx(10 * 4 * math.log(100_000) / 0.5)
    extra = prm_central_bound(4, 10_000, 0.5, 10.0, corruption_bound=0.1) - prm_central_bound(4, 10_000, 0.5, 10.0)
    assert extra == pytest.approx(10_000 * math.sqrt(0.1) + 10 * 4 * LOG / 0.1)
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
