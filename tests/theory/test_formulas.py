"""Every formula of `jaxbandits.theory` against the page it is printed on, written out here once more.

All sizes differ and no argument is at its default or at 1, so that each of them can be told from each other; a second
row takes the other side of every maximum, cut and case. Numbers agree to 1e-12: less lets log(1 + x) pass for log(x).
"""

import bisect
import itertools
import math
from math import e, exp, inf, log, pi, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import comb

from jaxbandits import theory
from jaxbandits.mechanisms import gaussian_delta, gaussian_scale, vector_code
from jaxbandits.mechanisms.counters.counter import form_of
from jaxbandits.theory import federated, linear, linear_widths, tunings
from jaxbandits.theory.linear_widths import LinearTuning, RunningSums, Width
from jaxbandits.theory.robust_frontier import LOST

K, N, T, D, EPS, DELTA = 7, 5, 3001, 3, 0.3, 2e-4


def agree(rows):
    """Numbers, or dictionaries and tuples of them, in pairs."""
    for k, (found, want) in enumerate(rows):
        if isinstance(want, dict):
            assert list(found) == list(want), k
            found, want = [*found.values()], [*want.values()]
        assert found == pytest.approx(want, rel=1e-12, abs=0.0), f"row {k}"


def test_private_adversarial_bounds():
    """docs/formulas/private_adversarial.md#bounds."""
    n, log_kn = EPS * T, log(K * EPS * T)

    def exp3(n):
        log_kn = log(K * n)
        inner = sqrt(22) * log_kn + 2 * (1 + 4 * log_kn + 10 * log_kn**2) / (sqrt(22) * log_kn)
        return 2 / EPS * (sqrt(n * K * log(K)) * inner + 1) + 2 / EPS

    corrected = exp3(n)
    printed = 2 / EPS * (2 * sqrt(2 * n * K * log(K) * (1 + 10 * log_kn**2)) + 1) + 2 / EPS
    noisy = 0.7 * log(K * T)

    def ftpl(n, k, epsilon):
        inner = 10 * sqrt(k * n * log(k) * (1 + 10 * log(k * n) ** 2))
        return 2 / epsilon * (inner + 6 * log(k) * sqrt(k * n) * (1 + 4 * log(n)) + sqrt(k * n) / e + 1) + 2 / epsilon

    def htinf(k):
        return 60 * sqrt(6) / EPS * sqrt(k * (EPS * T + 1)) + 2 / EPS

    more, log_nt = N * log(1 / DELTA), log(N * T)
    local = 16 * sqrt(T * K * log(N)) * log(K * T) / EPS + 1
    batched = more ** (1 / 6) * sqrt(K) * T ** (2 / 3) * log_nt ** (1 / 3) * log(N) ** (1 / 3) / EPS ** (1 / 3)
    batched = 100 * (batched + sqrt(more) * log_nt * log(N) / EPS)
    sharp = 30 * sqrt(6) * 4 * sqrt(K * 751) + 4  # four plays a batch: 3001 have 750 of them
    # 1 / epsilon within 1e-6 of a whole number is that number, and noise of a little more than 1
    near = (1 - 5e-7) / 4
    nearly = 30 * sqrt(2 + 4 / (1 - 5e-7) ** 2) * 4 * sqrt(K * 751) + 4
    agree([
        (theory.conversion_bound(37.5, 4), 4 * 37.5 + 4),
        (theory.htinf_bound(K, T, EPS), htinf(K)),
        (theory.htinf_experts_bound(N, T, EPS), htinf(N)),
        (theory.htinf_window_bound(K, T, 4), sharp),
        (theory.htinf_window_bound(K, T, 4, 1.7), 30 * 1.7 * 4 * sqrt(K * 751) + 4),
        (theory.exp3_bound(K, T, EPS), printed),
        (theory.exp3_corrected_bound(K, T, EPS), corrected),
        (theory.exp3_corrected_bound(K, 2, EPS), exp3(1)),  # less than a batch
        (theory.exp3_base_bound(K, T, 0.7, 0.02),
            log(K) / 0.02 + 2 * 0.02 * T * K * (1 + 4 * noisy + 10 * noisy**2) + 1),
        (theory.ftpl_bound(K, T, EPS), ftpl(EPS * T, K, EPS)),
        (theory.ftpl_bound(K, 2, EPS), ftpl(1, K, EPS)),  # less than a batch
        (theory.local_exp4_bound(K, N, T, EPS), local),
        (theory.batched_exp4_bound(K, N, T, EPS, DELTA), batched),
        (theory.arms_rates(K, T, EPS),
            {"existing": sqrt(K * T * log(K * T)) / EPS, "conversion": sqrt(K * T / EPS)}),
        (theory.experts_rates(K, N, T, EPS), {
            "bandit_to_experts": sqrt(N * T / EPS),
            "local_exp4": sqrt(K * T * log(N)) * log(K * T) / EPS,
            "batched_exp4": N ** (1 / 6) * sqrt(K) * T ** (2 / 3) * log_nt / EPS ** (1 / 3) + sqrt(N) * log_nt / EPS}),
        (theory.arms_bounds(K, T, EPS), {"htinf": sharp, "exp3": corrected, "ftpl": ftpl(EPS * T, K, EPS)}),
        (theory.arms_bounds(K, T, EPS, corrected=False),
            {"htinf": htinf(K), "exp3": printed, "ftpl": ftpl(EPS * T, K, EPS)}),
        (theory.arms_bounds(K, T, near)["htinf"], nearly),
        (theory.experts_bounds(K, N, T, EPS, DELTA),
            {"bandit_to_experts": htinf(N), "local_exp4": local, "batched_exp4": batched}),
    ])  # fmt: skip


def test_private_adversarial_tunings():
    """docs/formulas/private_adversarial.md."""
    n, tau, log_kn = EPS * T, 4, log(K * EPS * T)
    exp3 = sqrt(log(K) / (22 * n * K * log_kn**2))

    def noisy(lam, larger):
        rate = sqrt(log(K) / (2 * T * K * (1 + 10 * larger * log(K * T) ** 2)))
        return {"learning_rate": rate, "mixing": 4 * rate * lam * K * log(K * T)}

    def ftpl_noisy(k, j, lam):
        first = sqrt(log(k) / (k * j * (1 + 10 * lam**2 * log(k * j) ** 2)))
        return {
            "learning_rate": min(first, 1 / (sqrt(k * j) * (1 + 4 * lam * log(j)))),
            "tries": math.ceil(sqrt(k * j)),
        }

    def ftpl_private(k, horizon, epsilon, tau):
        n = epsilon * horizon
        first = sqrt(log(k) / (k * n + 10 * k * n * log(k * n) ** 2))
        second = 1 / (sqrt(k * n) * (1 + 4 * log(n)))
        return {"learning_rate": min(first, second), "tries": math.ceil(sqrt(k * n)), "window": tau,
                "noise_scale": 1 / (tau * epsilon)}  # fmt: skip

    local = sqrt(log(N) / (3 * T * K * (1 + 10 * log(K * T) ** 2 / EPS**2)))
    agree([
        (theory.exp3_tuning(K, T, EPS), {
            "learning_rate": exp3, "mixing": 4 * exp3 * K * log_kn, "window": tau, "noise_scale": 1 / (tau * EPS)}),
        (theory.exp3_tuning(K, T, EPS, mixing=0.125)["mixing"], 0.125),
        (theory.exp3_noisy_tuning(K, T, 0.7), noisy(0.7, 0.7)),  # max(lam, lam^2)
        (theory.exp3_noisy_tuning(K, T, 1.5), noisy(1.5, 1.5**2)),
        (theory.exp3_noisy_tuning(K, T, 1.5, mixing=0.125, window=9)["mixing"], 0.125),
        # no mixing is a number, too
        (theory.exp3_tuning(K, T, EPS, mixing=0.0)["mixing"], 0.0),
        (theory.exp3_noisy_tuning(K, T, 1.5, mixing=0.0)["mixing"], 0.0),
        (theory.local_exp4_tuning(K, N, T, EPS, mixing=0.0)["mixing"], 0.0),
        (theory.ftpl_tuning(K, T, EPS), ftpl_private(K, T, EPS, tau)),
        (theory.ftpl_tuning(50, 10, 0.11), ftpl_private(50, 10, 0.11, 10)),  # the second branch
        (theory.ftpl_noisy_tuning(K, T, 0.7), ftpl_noisy(K, T, 0.7)),
        (theory.ftpl_noisy_tuning(2, 5, 3.0), ftpl_noisy(2, 5, 3.0)),  # the first
        (theory.local_exp4_tuning(K, N, T, EPS), {
            "learning_rate": local, "mixing": 4 * local * K * log(K * T) / EPS, "noise_scale": 1 / EPS}),
        (theory.local_exp4_tuning(K, N, T, EPS, mixing=0.125)["mixing"], 0.125),
        (theory.local_exp4_tuning(K, N, T, inf),
            {"learning_rate": sqrt(log(N) / (3 * T * K)), "mixing": 0.0, "noise_scale": 0.0}),
        (theory.exp4_tuning(K, N, T), {"learning_rate": sqrt(2 * log(N) / (K * T)), "mixing": 0.0}),
    ])  # fmt: skip
    # whole numbers, and what lies a rounding above one or not: 1e-6 of 1 / epsilon, 1e-9 of a root
    assert [theory.window(1 / (49 * (1 + x))) for x in (-0.9e-6, 0.9e-6, 1.1e-6)] == [49, 49, 50]
    assert [theory.ftpl_noisy_tuning(5, j, 0.0)["tries"] for j in (180_024_001, 80_016_001)] == [30_002, 20_003]
    # 1/T within 1e-6 and 1 itself are covered
    assert [theory.check_epsilon(x, 100) for x in ((1 - 1e-6) / 100, 1.0)] == [(1 - 1e-6) / 100, 1.0]
    for epsilon in ((1 - 1.1e-6) / 100, 1 + 1e-9):
        told = (
            rf"^epsilon = {epsilon!r}: the theory covers 1/T <= epsilon <= 1 \(T = 100\); choose the window yourself$"
        )
        with pytest.raises(ValueError, match=told):
            theory.check_epsilon(epsilon, 100)
    with pytest.raises(ValueError, match=r"^epsilon T = 1 is too small: the tuning needs K epsilon T > 1; enlarge"):
        tunings._positive_log(1.0, "epsilon T = 1")
    assert tunings._positive_log(1.5, "") == log(1.5)


def batched(t, *, k=3, n=4, epsilon=0.1, delta=1e-3, rule="repaired", learning_rate=None, mixing=None, window=None):
    """Theorem 4.5 with its numbers, of which some are given."""
    more, log_nt = n * log(1 / delta), log(n * t)
    rate, tau, share = learning_rate, window, mixing
    if rate is None:
        rate = more ** (1 / 6) * log_nt ** (1 / 3) * log(n) ** (1 / 3) / (t ** (1 / 3) * sqrt(k) * epsilon ** (1 / 3))
    if tau is None:
        tau = math.ceil(more ** (1 / 3) * log_nt ** (2 / 3) * t ** (1 / 3) / (epsilon ** (2 / 3) * log(n) ** (1 / 3)))
    if share is None:
        first = (rate * (more if rule == "repaired" else n)) ** (1 / 3)
        first *= k ** (2 / 3) * log_nt ** (2 / 3) / (epsilon * tau) ** (2 / 3)
        share = max(first, 12 * rate * k * sqrt(more) * log_nt / (epsilon * tau))
    scale = 3 * k * sqrt(more) / (share * tau * epsilon)
    return {"learning_rate": rate, "mixing": share, "window": tau, "noise_scale": scale}


def test_batched_exp4():
    """Numbers; what is given is taken; and a refusal says where the theory begins: at the first T that works."""
    for t, given in (
        (10**8, {}), (10**11, {}), (10**8, {"rule": "printed"}), (10**8, {"learning_rate": 0.003, "window": 777}),
        (10**8, {"mixing": 0.2}), (50, {"learning_rate": 2.5, "mixing": 1.0, "window": 50}),
    ):  # fmt: skip
        told = {"mixing_rule": given["rule"]} if "rule" in given else given
        agree([(theory.batched_exp4_tuning(3, 4, t, 0.1, 1e-3, **told), batched(t, **given))])
    free = theory.batched_exp4_tuning(3, 4, 50, inf, 0.1, learning_rate=0.1, mixing=0.2, window=5)
    assert free == {"learning_rate": 0.1, "mixing": 0.2, "window": 5, "noise_scale": 0.0}
    theory.batched_exp4_tuning(3, 4, 10**8, log(10) / 0.91, 0.1)  # both sides are equal
    theory.batched_exp4_tuning(3, 4, 50, 3.0, 0.1, learning_rate=0.1, mixing=0.2, window=5)
    small = {"epsilon": 0.2, "delta": 1e-3}
    # the learning rate is too large; the window; the mixing; all of them
    for given in ({"mixing": 0.5, "window": 5}, {"mixing": 0.5, "learning_rate": 0.1}, {"learning_rate": 2.5}, {}):

        def works(t):
            x = batched(t, **small, **given)  # noqa: B023
            return ("learning_rate" in given or x["learning_rate"] < 1) and x["window"] <= t and x["mixing"] <= 1  # noqa: B023

        x, first = batched(20, **small, **given), bisect.bisect_left(range(10**9), True, 20, key=works)
        told = f"the theory's learning rate is {x['learning_rate']:.4g}, window {x['window']}, "
        told += f"mixing {x['mixing']:.4g}; needed are < 1, <= T and <= 1 at K = 3, N = 4, T = 20, epsilon = 0.2, "
        told += (
            f"delta = 0.001; the smallest T that works is {first}: enlarge the horizon, or give learning_rate, mixing "
        )
        with pytest.raises(ValueError) as refusal:
            theory.batched_exp4_tuning(3, 4, 20, **small, **given)
        assert str(refusal.value) == told + "and window"
    for arguments, given, told in (
        ((50, 3.0, exp(-0.909 * 3)), {"window": 5}, r"^delta = 0.065\d* is too large for epsilon = 3.0: the theorem "
            r"needs log\(1/delta\) >= 0.91 epsilon; take delta at most 0.06522$"),
        ((50, inf, 0.1), {"mixing": 0.5},
            r"^epsilon = inf leaves learning_rate, window without a theory: give learning_rate, mixing and window$"),
        ((50, inf, 0.1), {"window": 5, "learning_rate": 0.5}, "^epsilon = inf leaves mixing without a theory: "),
        ((50, 0.5, 0.1), {"learning_rate": 0.1, "mixing": 0.2, "window": 51},
            "^window = 51 must be an integer of at least 1, at most 50$"),
        ((50, 0.5, 0.1), {"learning_rate": 0.1, "mixing": 0.2, "window": 0},
            "^window = 0 must be an integer of at least 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            theory.batched_exp4_tuning(3, 4, *arguments, **given)


def test_a_refused_mixing_names_the_first_horizon_that_works():
    def exp3(t):
        n = 0.3 * t
        return 4 * sqrt(log(10) / (22 * n * 10)) * 10

    def noisy(t):
        j = t // 2
        return 4 * sqrt(log(10) / (20 * j * (1 + 10 * 4 * log(10 * j) ** 2))) * 2 * 10 * log(10 * j)

    def single(t):
        return 4 * sqrt(log(10) / (20 * t * (1 + 9 * log(10 * t) ** 2))) * 0.9 * 10 * log(10 * t)

    def local(t):
        return 4 * sqrt(log(8) / (30 * t * (1 + 10 * log(10 * t) ** 2 / 0.25))) * 10 * log(10 * t) / 0.5

    for share, start, call, at in (
        (exp3, 20, lambda: theory.exp3_tuning(10, 20, 0.3), "K = 10, T = 20, epsilon = 0.3"),
        (noisy, 10, lambda: theory.exp3_noisy_tuning(10, 5, 2.0, window=2),
            "K = 10, T = 10, epsilon = 0.25, window = 2"),
        (single, 3, lambda: theory.exp3_noisy_tuning(10, 3, 0.9), "K = 10, T = 3, epsilon = 1.11111"),
        (local, 5, lambda: theory.local_exp4_tuning(10, 8, 5, 0.5), "K = 10, N = 8, T = 5, epsilon = 0.5"),
    ):  # fmt: skip
        first = next(t for t in itertools.count(start + 1) if share(t) <= 1)
        told = f"the theory's mixing is {share(start):.4g} > 1 at {at}; the smallest T that works is {first}: "
        with pytest.raises(ValueError) as refusal:
            call()
        assert str(refusal.value) == told + "enlarge the horizon, or give learning_rate and mixing"
    with pytest.raises(
        ValueError, match=r"mixing is 2 > 1 at K = 10, T = 1, epsilon = 0.5; the smallest T that works "
    ):
        tunings.check_mixing(2.0, lambda t: 2 / t, K=10, T=1, epsilon=0.5)
    assert [tunings.check_mixing(x, lambda t: 1, T=1) for x in (0.0, 1.0)] == [0.0, 1.0]
    with pytest.raises(ValueError):
        tunings.check_mixing(-0.1, lambda t: -0.1, T=1)


@pytest.mark.parametrize("start", [1, 3, 10])
def test_a_search_for_a_horizon_finds_every_one(start):
    for first in (*range(start + 1, 8 * start + 9), 2**61, 2**62 - 1):
        with pytest.raises(ValueError, match=rf"^w at T = {start}; the smallest T that works is {first}: enlarge"):
            tunings.refuse("w", lambda t: t >= first, T=start)  # noqa: B023
    with pytest.raises(ValueError, match=f"the smallest T that works is {start + 1}:"):
        tunings.refuse("w", lambda t: True, T=start)
    for x, text in ((1 / 3, "0.333333"), (7, "7")):
        with pytest.raises(ValueError, match=rf"^w at T = 3, x = {text}; no T works: change the others, or give it$"):
            tunings.refuse("w", lambda t: t >= 2**62, remedy="it", T=3, x=x)


def test_federated_schedules_and_bounds():
    """docs/formulas/byzantine.md#constants."""
    agents, horizon, window, k, alpha, sigma, noise, p, epsilon, delta = (
        11,
        2003,
        41,
        10,
        0.2,
        0.7,
        0.4,
        0.03,
        2.0,
        2e-3,
    )
    iota = log(128 * agents * horizon / p)
    b = 48 * iota * log(4 / delta) * (sqrt(D) + iota) / epsilon
    setting = {
        "num_agents": agents, "horizon": horizon, "dim": D, "corruption_bound": alpha, "feature_spread": sigma,
        "noise_scale": noise, "failure_prob": p, "epsilon": epsilon, "delta": delta, "window": window,
    }  # fmt: skip
    c = (2 - 2 * alpha) / (1 - 2 * alpha)
    tail = 2 * noise * sqrt(D * iota / agents)
    rows = []
    for version, growth, numerator, private in (
        ("geometric_median", 8 * c * sqrt(window * iota), 4 * c * sqrt(window * D * iota), 0.0),
        ("dp", 8 * c * sqrt(window * iota), 4 * c * sqrt(window * D * iota), c * b * window),
        ("median_of_means", 128 * sqrt(alpha * window * iota), 64 * sqrt(alpha * window * D * iota), 4 * b * window),
    ):
        ridge = 2 * private * sqrt(D) + max(window, growth * sigma * sqrt(k))
        radius = 3 * sqrt(ridge * D) + (numerator * (sigma + noise) * sqrt(k - 1) + private) / sqrt(ridge) + tail
        rows += [(theory.byzantine_ridge(k, constants=version, **setting), ridge)]
        rows += [(theory.byzantine_radius(k, constants=version, **setting), radius)]
        length = 1.0 if version == "median_of_means" else c
        length *= (sigma + noise) * sqrt(horizon * iota * (alpha if version == "median_of_means" else 1))
        given = {"corruption_bound": alpha, "feature_spread": sigma, "noise_scale": noise, "failure_prob": p}
        rows += [(theory.byzantine_window(agents, horizon, constants=version, **given), length)]
    lasting = setting | {"feature_spread": 0.0}
    bound = D * agents * horizon**0.75
    private = sqrt(log(2 / delta) / epsilon)
    agree([
        *rows,
        (theory.byzantine_ridge(k, **lasting), window),
        (theory.byzantine_window(agents, horizon, constants="median_of_means", corruption_bound=1e-9), 1.0),
        (theory.byzantine_ucb_bound(agents, horizon, D), bound),
        (theory.byzantine_ucb_dp_bound(agents, horizon, D, epsilon, delta), private * D**1.5 * agents * horizon**0.75),
        (theory.byzantine_ucb_dp_mom_bound(agents, horizon, D, epsilon, delta, corruption_bound=alpha),
            private * D**1.5 * agents * (alpha**0.25 * horizon**0.75 + sqrt(horizon))),
    ])  # fmt: skip
    for version, share, refused in (
        ("dp", 0.49, False), ("dp", 0.5, True), ("median_of_means", 0.25, False), ("median_of_means", 0.2501, True),
        ("dp", -0.01, True),
    ):  # fmt: skip
        for call in (theory.byzantine_window, lambda n, t, **given: theory.byzantine_ridge(2, **setting | given)):
            if not refused:
                call(agents, horizon, constants=version, corruption_bound=share)
                continue
            why = "the median-of-means constants need at most 1/4" if "m" in version else "a majority must be honest"
            edge = r"\[0, 0.25\]" if "m" in version else r"\[0, 0.5\)"
            with pytest.raises(ValueError, match=rf"corruption_bound = {share} must be .* in {edge}.*{why}"):
                call(agents, horizon, constants=version, corruption_bound=share)
    assert federated.terms("dp", **setting).excess == pytest.approx(c * b * window, rel=1e-12)


def test_defaults_of_federated_schedules():
    """Nobody attacked, sigma = 1, R = 1/2, failure 0.05, no privacy; nu = 1e-3 where there is some."""
    iota, given = log(128 * 11 * 2003 / 0.05), {"window": 41, "num_agents": 11, "horizon": 2003, "dim": D}
    ridge, b = 16 * sqrt(41 * iota) * sqrt(10), 24 * iota * log(4000) * (sqrt(D) + iota)  # mu = 2
    radius = 3 * sqrt(ridge * D) + 36 * sqrt(41 * D * iota) / sqrt(ridge) + sqrt(D * iota / 11)
    agree([
        (theory.byzantine_window(11, 2003), 3 * sqrt(2003 * iota)),
        (theory.byzantine_ridge(10, **given), ridge), (theory.byzantine_radius(10, **given), radius),
        (theory.byzantine_ridge(10, constants="dp", epsilon=2.0, **given), 4 * b * 41 * sqrt(D) + ridge),
    ])  # fmt: skip


def test_private_and_robust_bounds():
    """docs/formulas/private_robust_mab.md#regret-bounds."""
    order, unit, alpha, level = 3.0, 5.0 ** (1 / 3), 0.04, log(T)
    rows = []
    for epsilon in (EPS, 2.5):
        clean = sqrt(K * T * level) + (K * level / min(epsilon, 1)) ** (2 / 3) * T ** (1 / 3)
        given = {"moment_order": order, "moment_bound": 5.0}
        raw, central = theory.prm_raw_bound, theory.prm_central_bound
        hidden = 1.3 * K * log(1.3 * T / unit) / min(epsilon, 1)
        dirty = clean + T * alpha ** (2 / 3)
        small = 1e-4 * K * 1 / min(epsilon, 1)  # log(D T / u^(1/k)) is at least 1
        lower = max(sqrt(K * T), (K / epsilon) ** (2 / 3) * T ** (1 / 3))
        rows += [
            (raw(K, T, epsilon, **given), unit * clean),
            (raw(K, T, epsilon, **given, corruption_bound=alpha), unit * (dirty + K * level / alpha)),
            (central(K, T, epsilon, 1.3, **given), unit * clean + hidden),
            (central(K, T, epsilon, 1e-4, **given), unit * clean + small),
            (central(K, T, epsilon, 1.3, **given, corruption_bound=alpha),
                unit * dirty + 1.3 * K * level / alpha + hidden),
            (theory.private_robust_lower_bound(K, T, epsilon, **given), unit * lower / 27),
            (theory.private_robust_lower_bound(K, T, epsilon, **given, corruption=0.2, constant=0.3),
                0.3 * unit * T * 0.2 ** (2 / 3)),
        ]  # fmt: skip
    low = (50 * K) ** (2 / 3) * T ** (1 / 3)
    rows += [(theory.private_robust_lower_bound(K, T, 0.02, moment_order=3.0), low / 27)]
    cut = {"max_gap": 0.01}
    rows += [(raw(K, T, 1.0, **cut), 0.01 * T), (central(K, T, 1.0, 2.0, **cut), 0.01 * T)]
    rows += [(theory.private_robust_lower_bound(K, T, 1.0, corruption=0.4, **cut), 0.01 * T)]
    rows += [(raw(K, T, 1.0, max_gap=1e9), raw(K, T, 1.0)), (raw(K, T, 1.0, max_gap=0.0), 0.0)]
    large = {"moment_order": 3.0, "moment_bound": 5.0} | cut  # gaps have a unit already
    rows += [(raw(K, T, 1.0, **large), 0.01 * T)]
    rows += [(theory.private_robust_lower_bound(K, T, 1.0, corruption=0.4, **large), 0.01 * T)]
    agree(rows)


def test_linear_bounds():
    """docs/formulas/robust_linear.md#bounds, docs/formulas/robust_frontier.md#cw-oful."""
    ridge, noise, theta, norm, p, cut = 2.3, 0.4, 1.7, 1.2, 0.03, {"max_gap": 0.01}

    def cw(budget, p):
        shrinkage = sqrt(ridge) * theta
        beta = noise * sqrt(D * (log(1 + T * norm**2 / ridge) + log(1 / p))) + shrinkage
        information = D * log(1 + T * norm**2 / (D * ridge))
        if not budget:
            return 2 * beta * sqrt(2 * T * information)
        share = noise * sqrt(D) + shrinkage
        return 2 * (beta + share) * (sqrt(2 * T * information) + 2 * information * budget / share)

    given = {"ridge": ridge, "noise_scale": noise, "theta_norm": theta, "feature_norm": norm}
    reward, action = theory.robust_linear_reward_bound, theory.robust_linear_action_bound
    agree([
        (theory.cw_bound(D, T, 0, **given, failure_prob=p), cw(0, p)),
        (theory.cw_bound(D, T, 9.0, **given, failure_prob=p), cw(9.0, p)),
        (theory.cw_bound(D, T, **given), cw(sqrt(T), 1 / T)),
        (theory.cw_bound(D, T, 9.0, **given, **cut), 0.01 * T),
        (theory.cw_bound(D, 1, 0, failure_prob=0.5), theory.cw_bound(D, 1, 0)),
        (theory.cw_bound(D, 2, 0, failure_prob=0.5), theory.cw_bound(D, 2, 0)),
        (reward(D, T, EPS, corruption=0.2), (sqrt(D * T) + T * sqrt(0.2 * D)) * (1 + 1 / EPS)),
        (reward(D, T, EPS, corruption=0.4), (sqrt(D * T) + T * 0.4 * D) * (1 + 1 / EPS)),
        (reward(D, T, EPS, corruption=0.4, **cut), 0.01 * T),
        (reward(D, T), sqrt(D * T)),
        (action(D, T, EPS), D * sqrt(T) + D**1.5 * log(T) / EPS),
        (action(D, T, EPS, source="theorem"), D * sqrt(T) + D / EPS),
        (action(D, T, **cut), 0.01 * T),
    ])  # fmt: skip
    with pytest.raises(ValueError, match=r"^ridge = 1.43 .*the bound needs a ridge of at least feature_norm squared"):
        theory.cw_bound(D, T, ridge=1.43, feature_norm=1.2)
    theory.cw_bound(D, T, ridge=1.44000001, feature_norm=1.2)
    there = "jaxbandits.theory.linear.counts is jaxbandits.algorithms.linear.formulas.counts since 0.2.0"
    for name, error, told in (("counts", ImportError, there), ("u", AttributeError, "linear' has no attribute 'u'")):
        with pytest.raises(error, match=told):
            getattr(linear, name)


def test_linear_widths():
    """docs/formulas/ldp_contextual.md#comparators, L35 to L44."""
    L, s, shift, tail = 1.3, 0.7, 11.0, log(2 * T / 0.1)

    def constant(shift):
        return Width(sqrt(shift * D), 0.0, 0.5 * sqrt(D), log(T * (1 + T * L**2 / shift)), 0.0)

    def reference(s, shift):
        return LinearTuning(s, s / sqrt(2), s, 2 * shift, 0.0, constant(shift))

    def theorem(s):
        root = 4 * sqrt(D) + 2 * tail
        quartic = (sqrt(3 * s * root) + s * sqrt(D / (s * root))) * D * log(T)
        return LinearTuning(s, s, s, 0.0, 2 * s * root, Width(2 * s * sqrt(D * log(T)), quartic))

    plain = LinearTuning(ridge=1e-4, width=constant(1.0))
    unbiased = LinearTuning(ridge=1.0, width=Width(1.0, 0.0, 0.5 * sqrt(D), log(T), L**2))
    local, batch = sqrt(log(2.5 / DELTA)) / EPS, log(2.5 * N / DELTA)
    amplified = sqrt(batch / N) / EPS
    jointly = sqrt(log(T)) * log(2.5 / DELTA) / EPS
    sums = RunningSums(0.6, 1.9, 0.8)

    def joint(epsilon, noise, m):
        s = 4 * sqrt(13) * (L**2 + 1) * log(4 / DELTA) / epsilon * noise  # 2^11 < T <= 2^12
        shift = s * sqrt(2) * m * (4 * sqrt(D) + 2 * tail)
        base = sqrt(3 * shift) + s * m / sqrt(shift) * (sqrt(D) + sqrt(2 * tail))
        offset, growth = 2 * log(2 / 0.1) / D + log(3), L**2 / (3 * D * shift)
        return LinearTuning(sqrt(2) * s, s, s, 2 * shift, 0.0, Width(base, 0.0, 0.5 * sqrt(D), offset, growth))

    code = vector_code(L, N, D, EPS, DELTA)
    printed = vector_code(L, N, D, EPS, DELTA, constant=24e4, log=log(4 * (D**2 + 1) / DELTA))
    of_code = sqrt(printed.trials / N * 3 / 16) * L / printed.levels
    sizes, w = (T, D, EPS, DELTA), linear_widths
    found = [
        (w.plain_tuning("reference", T, D, L), plain),
        (w.plain_tuning("theory", T, D, L), unbiased),
        (w.tuning_of_users("reference", s, shift, T, D, L), reference(s, shift)),
        (w.tuning_of_users("theory", s, shift, T, D, L), theorem(s)),
        (w.tuning_of_users("theory", 0.0, shift, T, D, L), unbiased),
        (w.tuning_of_users("reference", 0.0, shift, T, D, L), plain),
        (w.local_tuning("reference", *sizes, L), reference(local, local * sqrt(T * D))),
        (w.local_tuning("theory", *sizes, L), theorem(4 * sqrt(2 * log(1.25 / DELTA)) / EPS)),
        (w.joint_tuning("reference", *sizes, L), reference(jointly, jointly * sqrt(D * log(T)))),
        (w.joint_tuning("reference", *sizes, L, sums), reference(0.6 * jointly, 0.8 * jointly * sqrt(D * log(T)))),
        (w.joint_tuning("reference", 1, D, EPS, DELTA, L).diagonal, sqrt(log(2)) * log(2.5 / DELTA) / EPS),
        (w.joint_tuning("theory", *sizes, L), joint(EPS, 1.0, sqrt(13))),
        (w.joint_tuning("theory", *sizes, L, sums), joint(EPS, 0.6, 1.9)),
        (w.joint_tuning("theory", T, D, inf, DELTA, L, sums), unbiased),
        (w.amplified_tuning("reference", *sizes, N, L), reference(amplified, amplified * sqrt(T * D))),
        (w.amplified_tuning("theory", *sizes, N, L), theorem(4 * sqrt(2 * batch * log(2 / DELTA)) / EPS / sqrt(N))),
        (w.vector_tuning("reference", *sizes, N, L)[0],
            reference(log(D / DELTA) / EPS / sqrt(N), log(D / DELTA) / EPS / sqrt(N) * sqrt(T * D) / 4)),
        (w.vector_tuning("theory", *sizes, N, L)[0], theorem(of_code)),
    ]  # fmt: skip
    agree([
        pair for a, b in found for pair in ([(a[:5], b[:5]), (a.width, b.width)] if isinstance(a, tuple) else [(a, b)])
    ])  # fmt: skip
    assert w.vector_tuning("reference", *sizes, N, L)[1] == code
    assert w.vector_tuning("theory", *sizes, N, L)[1] == printed
    levels = [w.joint_tuning("theory", t, D, EPS, DELTA, L).vector for t in (1, 2, 4, 5)]
    one = 4 * (L**2 + 1) * log(4 / DELTA) / EPS
    agree([
        (levels, [one * sqrt(m) for m in (1, 2, 3, 4)]),
        (w.moment_sensitivity(1.3, 0.7), sqrt(2 * 1.3**4 + 2 * 0.7 * 1.3**2 + 0.49 / 2)),
        (w.moment_sensitivity(0.7, 0.7), sqrt(2 * 0.7**4 + 2 * 0.7**3 + 0.49 / 2)),
        (w.moment_sensitivity(0.5, 0.7), 2 * 0.5 * sqrt(0.7)),
        (w.moment_sensitivity(0.5), 1.0),
    ])  # fmt: skip


def test_online_ucb():
    """docs/formulas/ldp_contextual.md#width, L7 to L12."""
    G, c, p, B, extra, x, y, ell = 12.0, 0.4, 0.03, 1.7, 0.35, 0.9, 1.4, 6.5
    linear = 2 * B * x + x + y + B * extra + extra
    square = 2 * B * extra**2 + 4 * B * extra * x + 2 * extra * y + 2 * B * x**2 + 2 * x * y + B * x**2
    mu = 2 * c
    s = (G**2 / mu**2 + G * B / mu) * log(T) + G**2 / mu**2 * log(1 / p)
    slope = 0.5 + B * sqrt(log(1 / DELTA)) / EPS + B * extra
    k = log(T / p) * (B * extra**2 * sqrt(T * s) + slope**2 + (log(1 / DELTA) / EPS**2 + extra**2) * s)
    m = (G**2 / c + G * B) * log(T)
    told = {"epsilon": EPS, "delta": DELTA, "theta_bound": B, "perturbation": extra}
    width, noise = theory.online_ucb_width, theory.online_ucb_noise
    printed = 2 * sqrt(2 * log(1.25 / DELTA)) / EPS
    exactly = {"private_features": True, "feature_norm": 1.3}
    agree([
        (theory.online_ucb_sensitivity(True, 1.3), sqrt(4 * 1.69 + 1)),
        (theory.online_ucb_sensitivity(False, 1.3), 1.0),
        (noise(EPS, DELTA, **exactly), gaussian_scale(sqrt(4 * 1.69 + 1), EPS, DELTA, "analytic")),
        (noise(EPS, DELTA, private_features=False, feature_norm=1.3), gaussian_scale(1.0, EPS, DELTA, "analytic")),
        (noise(EPS, DELTA, calibration="paper", feature_norm=1.3), printed),
        (noise(EPS, DELTA, calibration="paper", private_features=False), printed / 2),
        (noise(EPS, DELTA, calibration="reference"), sqrt(log(2.5 / DELTA)) / EPS),
        (noise(inf, DELTA), 0.0),
        (theory.printed_noise_delta(EPS, 0.01, 1.5),
            gaussian_delta(sqrt(4 + 2.25), 2 * sqrt(2 * log(125)) / EPS, EPS)),
        (theory.online_ucb_gradient_bound(x, y, theta_bound=B, perturbation=extra, log=ell),
            2 * sqrt(2 * ell) * linear + 2 * ell * square + 2 * B + 2),
        (theory.online_ucb_gradient_bound(x, y, theta_bound=B, perturbation=extra),
            2 * linear + 2 * square + 2 * B + 2),
        (theory.online_ucb_learner_regret(G, c, T, B), m),
        (theory.online_ucb_deviation(G, c, T, p, **told), k),
        (width("theory", T, p, **told, gradient_bound=G, curvature=c), sqrt(m + k)),
        (width("scaled", T, p, **told), slope * sqrt(log(T / p))),
    ])  # fmt: skip
    for given in ({"gradient_bound": G}, {"curvature": c}):
        with pytest.raises(ValueError, match=r"^width = 'theory' needs gradient_bound and curvature$"):
            width("theory", T, p, **told, **given)


def test_private_frontier():
    """docs/formulas/private_frontier.md."""
    means, beta = [0.35, 0.8, 0.8, 0.55], 2.3
    gaps = [0.8 - 0.35, 0.8 - 0.55]

    def rdp(a, eps, s):
        fine = (2 * a - 1) * eps**2 / (4 * s**2) + 3 * eps / (2 * s**3)
        return a * eps**2 / 2 + min(fine, 3 * max(eps, eps**2) / (2 * s))

    def spent(eps, s, delta):
        orders = range(2, 1024)
        return min(rdp(a, eps, s) + log(1 - 1 / a) - (log(delta) + log(a)) / (a - 1) for a in orders)

    c = (exp(EPS) + 1) / (exp(EPS) - 1)
    rate = theory.local_robust_rate
    spread = T ** (1 / 2 + 1 / 6) * (c * sqrt(K * log(T))) ** (2 / 3)
    agree([
        (theory.adac_ucb_bound(means, T, 0.2, beta),
            sum(8 * beta * log(T) / g + 8 * sqrt(beta * log(T) / 0.2) for g in gaps)),
        (theory.dp_index_bound(means, EPS, 1.7), 1.7 * theory.private_kl_lower_bound(means, EPS)),
        (theory.private_minimax_lower_bound(K, T, 0.001), 6 / 0.131),
        (theory.private_minimax_lower_bound(K, T, EPS), sqrt(6 * T) / 27),
        (theory.private_bandit_lower_bound(means, 0.1), 2 / 0.6),
        (theory.local_mean_rate(N, EPS, 3.0, 0.04), (c * 0.04) ** (2 / 3) + (c / sqrt(N)) ** (2 / 3)),
        (theory.local_mean_rate(N, EPS, 3.0, 0.04, "before"), 0.04 ** (2 / 3) + (c / sqrt(N)) ** (2 / 3)),
        (rate(K, T, EPS, 3.0, 0.01, max_gap=99.0), T * (c * 0.01) ** (2 / 3) + spread),
        (rate(K, T, EPS, 3.0, 0.01, "before", 99.0), T * 0.01 ** (2 / 3) + spread),
        (rate(K, T, EPS, 3.0, 0.01, max_gap=0.25), T / 4),
        *[(theory.skellam_rdp(*x), rdp(*x)) for x in ((16, 0.5, 1.3), (16, 2.0, 1.3), (3, 0.5, 4.0))],
        # the best order is the smallest, one between, and the largest
        *[(theory.skellam_epsilon(*x), spent(*x)) for x in ((50.0, 9.0, 0.1), (0.7, 5.0, 1e-5), (1e-3, 9.0, 1e-9))],
    ])  # fmt: skip
    assert theory.skellam_epsilon(1e-4, 1e4, 0.9) == 0.0  # never below
    assert theory.private_kl_divergence(0.25, 1.0, 800.0) == 600.0 == theory.private_kl_divergence(0.75, 0.0, 800.0)
    assert theory.private_kl_divergence(0.3, 0.3, 0.5) == 0.0 == theory.private_kl_divergence(1.0, 1.0, inf)


def test_robust_frontier():
    """docs/formulas/robust_frontier.md."""
    means, gaps = [0.35, 0.8, 0.8, 0.55], [0.8 - 0.35, 0.8 - 0.55]
    rows = []
    for told, p in (({"failure_prob": 0.03}, 0.03), ({}, 1 / T)):
        race, inner, wide = log(4 * T / p), log(T) * log(4 * log(T) / p), log(2 * 4 * T / p)
        noise = 8 * 0.4**2 * wide
        rows += [
            (theory.multilayer_bound(means, T, 9.0, **told), sum((4 * 9 * race + log(T)) * race / g for g in gaps)),
            (theory.barbar_bound(means, T, 9.0, **told), 4 * 9 + sum(inner / g for g in gaps)),
            (theory.wide_elimination_bound(means, T, 9.0, 0.4, **told),
                sum(g * (1 + ((2 * 0.4 * sqrt(2 * wide) + sqrt(noise + 4 * 9 * g)) / g) ** 2) for g in gaps)),
        ]  # fmt: skip
    ucb = theory.delayed_ucb_bound
    agree([
        *rows,
        (theory.budget_of_share(0.01, T, 2.5), 0.01 * T * 2.5),
        (ucb([0.0, 0.2, 0.5], T, [7.0, 3.0, 2.0]), 8 * log(T) / 0.2 + 8 * log(T) / 0.5 + 3.5 * 0.7 + 0.6 + 1.0),
        (ucb([0.0, 0.2, 0.5], T, 0.0), 8 * log(T) / 0.2 + 8 * log(T) / 0.5 + 3.5 * 0.7),
        (ucb([0.0, 0.2, 0.5], T, 3.0), 8 * log(T) / 0.2 + 8 * log(T) / 0.5 + 3.5 * 0.7 + 3 * 0.7),
        (theory.hybrid_tuning(K, 50.0),
            (500 + (50 / (K ** (1 / 3) * log(K))) ** 2, (24 * 50 * K ** (1 / 3)) ** 2 * log(K))),
        (theory.delayed_order(K, T, 99.0), sqrt(K * T) + sqrt(99 * log(K))),
        (theory.median_shift(0.05), NormalDist().inv_cdf(1 / 1.9)),
        (theory.contaminated_divergence([0.3, 2.0], 0.0), [0.045, 2.0]),
        (theory.expected_max(2), 1 / sqrt(pi)),
        (theory.expected_max(4), 3 / sqrt(pi) * (0.5 + math.asin(1 / 3) / pi)),
    ])  # fmt: skip
    assert theory.barbar_bound([0.5, 0.5], T, 9.0) == 0.0 == theory.expected_max(1)
    with pytest.raises(ValueError, match="outstanding has 2 entries, one for each of 3 gaps, or one for all"):
        ucb([0.0, 0.2, 0.5], T, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"outstanding"):
        ucb([0.0, 0.2], T, -0.1)
    for mean in (0.0, 1e-300, 0.01, 0.3, 50, 1e6):
        for horizon in (1, 7, 10**5):
            rare = lambda most: log(horizon) + (most + 1) * log(mean / (1 + mean)) <= log(LOST)  # noqa: B023
            most = theory.geometric_bound(mean, horizon)
            edges = mean < 1e-9 or rare(most * (1 + 1e-9)), most > 0 and rare((most - 1) * (1 - 1e-9))
            assert edges == (True, False)


def test_errors_of_running_sums():
    """docs/formulas/counting.md#error."""
    n = 21
    squares = [(comb(2 * j, j) / 4**j) ** 2 for j in range(n)]
    bits = [t.bit_count() for t in range(1, n + 1)]
    error = theory.counting_error
    few = {error: form_of("blt", n, error, 2) for error in ("max", "mean")}
    deviations = {error: np.asarray(form.deviation(np.arange(1, n + 1)), np.float64) for error, form in few.items()}
    agree([
        (error("increment", n), sqrt(21)), (error("increment", n, "mean"), sqrt(11)),
        (theory.counting_lower_bound(n), (2 + log(43 / 3)) / pi),
    ])  # fmt: skip
    for found, want in (
        (error("square_root", n), sum(squares)),
        (error("square_root", n, "mean"), sqrt(sum(squares) * np.mean(np.cumsum(squares)))),
        (error("tree", n), sqrt(5 * max(bits))),
        (error("tree", n, "mean"), sqrt(5 * np.mean(bits))),
        (error("blt", n, "mean", buffers=2), few["mean"].column_norm * sqrt(np.mean(deviations["mean"] ** 2))),
        (error("blt", n, buffers=2), few["max"].column_norm * deviations["max"].max()),
    ):
        assert found == pytest.approx(want, rel=1e-6)
    assert error("blt", n) == error("blt", n, buffers=4) < error("blt", n, buffers=1)
    with pytest.raises(ValueError, match="buffers = 0 must be an integer of at least 1"):
        error("blt", n, buffers=0)
