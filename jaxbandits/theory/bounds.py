"""Regret bounds of Asi, Raman and Talwar (ICML 2025), on the host: K arms, N experts, T plays, n = epsilon T.

A bound may exceed T: plot min(bound, T). Where the printed constants could not be read or a step of a proof is missing, the
docstring says which form is given.
"""

import functools
import inspect
import math

from jaxbandits.theory.tunings import window
from jaxbandits.validation import integer, number


def _checked(bound):
    """Sizes and privacy levels are checked by the names of the arguments."""
    checks = {
        "num_arms": lambda x: integer("num_arms", x, 2), "num_experts": lambda x: integer("num_experts", x, 2),
        "horizon": lambda x: integer("horizon", x, 1), "window": lambda x: integer("window", x, 1),
        "epsilon": lambda x: number("epsilon", x, 0.0, open_low=True), "delta": lambda x: number("delta", x, 0.0, 0.4, open_low=True),
    }  # fmt: skip
    signature = inspect.signature(bound)

    @functools.wraps(bound)
    def checking(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            checks.get(name, lambda x: x)(value)
        return bound(*args, **kwargs)

    return checking


@_checked
def conversion_bound(base_bound, window) -> float:
    """Theorem 3.1: regret of Algorithm 1 from a base's bound on floor(T / window) rounds: window * base_bound + window."""
    return window * base_bound + window


@_checked
def htinf_bound(num_arms, horizon, epsilon) -> float:
    """Corollary 3.2, HTINF inside Algorithm 1: (60 sqrt 6 / epsilon) sqrt(K (epsilon T + 1)) + 2 / epsilon."""
    return 60 * math.sqrt(6) / epsilon * math.sqrt(num_arms * (epsilon * horizon + 1)) + 2 / epsilon


@_checked
def htinf_window_bound(num_arms, horizon, window, tail_scale=6**0.5) -> float:
    """The sharper form behind Corollary 3.2: 30 sigma tau sqrt(K (J + 1)) + tau, J = floor(T / tau), sigma^2 >= 2 + 4 lam^2."""
    return conversion_bound(30 * tail_scale * math.sqrt(num_arms * (horizon // window + 1)), window)


@_checked
def exp3_bound(num_arms, horizon, epsilon) -> float:
    """Corollary E.1 as printed: (2/epsilon)(2 sqrt(2 n K log K (1 + 10 L^2)) + 1) + 2/epsilon. Its proof drops a term of the mixing."""
    n = epsilon * horizon
    log_kn = math.log(num_arms * n)
    return 2 / epsilon * (2 * math.sqrt(2 * n * num_arms * math.log(num_arms) * (1 + 10 * log_kn**2)) + 1) + 2 / epsilon


@_checked
def exp3_corrected_bound(num_arms, horizon, epsilon) -> float:
    """Corollary E.1 with the mixing's cost, for its own tuning.

    (2/epsilon)(sqrt(n K log K)[sqrt(22) L + 2 (1 + 4 L + 10 L^2) / (sqrt(22) L)] + 1) + 2/epsilon.
    """
    n = epsilon * horizon
    log_kn = math.log(num_arms * n)
    root = math.sqrt(22) * log_kn
    inner = root + 2 * (1 + 4 * log_kn + 10 * log_kn**2) / root
    return 2 / epsilon * (math.sqrt(n * num_arms * math.log(num_arms)) * inner + 1) + 2 / epsilon


@_checked
def exp3_base_bound(num_arms, horizon, noise_scale, learning_rate) -> float:
    """EXP3 with mixing 4 eta lam K L on J noisy rounds: log K / eta + 2 eta J K (1 + 4 lam L + 10 lam^2 L^2) + 1, L = log(K J).

    The proof of Corollary E.1 with its dropped term put back; use with `conversion_bound`.
    """
    lam_log = noise_scale * math.log(num_arms * horizon)
    variance = 1 + 4 * lam_log + 10 * lam_log**2
    return math.log(num_arms) / learning_rate + 2 * learning_rate * horizon * num_arms * variance + 1


@_checked
def ftpl_bound(num_arms, horizon, epsilon) -> float:
    """Corollary E.3 with our constants, L = log(K n).

    (2/epsilon)(10 sqrt(K n log K (1 + 10 L^2)) + 6 log K sqrt(K n)(1 + 4 log n) + sqrt(K n)/e + 1) + 2/epsilon.
    """
    n, log_k = epsilon * horizon, math.log(num_arms)
    kn = num_arms * n
    inner = 10 * math.sqrt(kn * log_k * (1 + 10 * math.log(kn) ** 2))
    inner += 6 * log_k * math.sqrt(kn) * (1 + 4 * math.log(n)) + math.sqrt(kn) / math.e + 1
    return 2 / epsilon * inner + 2 / epsilon


@_checked
def htinf_experts_bound(num_experts, horizon, epsilon) -> float:
    """Corollary 4.3, HTINF over the experts inside Algorithm 1: Corollary 3.2 with N for K."""
    return htinf_bound(num_experts, horizon, epsilon)


@_checked
def local_exp4_bound(num_arms, num_experts, horizon, epsilon) -> float:
    """Theorem 4.4, LDP-EXP4: 16 sqrt(T K log N) log(K T) / epsilon + 1."""
    return 16 * math.sqrt(horizon * num_arms * math.log(num_experts)) * math.log(num_arms * horizon) / epsilon + 1


@_checked
def batched_exp4_bound(num_arms, num_experts, horizon, epsilon, delta) -> float:
    """Theorem 4.5, batched EXP4, L = log(N T), N' = N log(1/delta).

    100 (N^(1/6) K^(1/2) T^(2/3) log(1/delta)^(1/6) L^(1/3) log(N)^(1/3) / epsilon^(1/3) + sqrt(N') L log(N) / epsilon).
    """
    more, log_n, log_nt = num_experts * math.log(1 / delta), math.log(num_experts), math.log(num_experts * horizon)
    first = more ** (1 / 6) * math.sqrt(num_arms) * horizon ** (2 / 3) * (log_nt * log_n / epsilon) ** (1 / 3)
    return 100 * (first + math.sqrt(more) * log_nt * log_n / epsilon)


@_checked
def arms_rates(num_arms, horizon, epsilon) -> dict:
    """Table 1, bandits, without constants: `existing` sqrt(K T log(K T)) / epsilon and `conversion` sqrt(K T / epsilon)."""
    size = num_arms * horizon
    return {"existing": math.sqrt(size * math.log(size)) / epsilon, "conversion": math.sqrt(size / epsilon)}


@_checked
def experts_rates(num_arms, num_experts, horizon, epsilon) -> dict:
    """Table 1, expert advice, without constants: `bandit_to_experts`, `local_exp4`, `batched_exp4`. Take the smallest.

    sqrt(N T / epsilon); sqrt(K T log N) log(K T) / epsilon; N^(1/6) K^(1/2) T^(2/3) log(N T) / epsilon^(1/3) + sqrt(N) log(N T) / epsilon.
    """
    log_nt = math.log(num_experts * horizon)
    batched = num_experts ** (1 / 6) * math.sqrt(num_arms) * horizon ** (2 / 3) * log_nt / epsilon ** (1 / 3)
    return {
        "bandit_to_experts": math.sqrt(num_experts * horizon / epsilon),
        "local_exp4": math.sqrt(num_arms * horizon * math.log(num_experts)) * math.log(num_arms * horizon) / epsilon,
        "batched_exp4": batched + math.sqrt(num_experts) * log_nt / epsilon,
    }


@_checked
def arms_bounds(num_arms, horizon, epsilon, *, corrected=True) -> dict:
    """Table 1, bandits, with constants: `htinf` (Corollary 3.2), `exp3` (E.1), `ftpl` (E.3, constants ours) inside Algorithm 1.

    corrected: Corollary 3.2 in its sharper form and E.1 with the term its proof drops; False: both as printed.
    """
    tau = window(epsilon)
    sharp = htinf_window_bound(num_arms, horizon, tau, math.sqrt(max(6.0, 2 + 4 / (tau * epsilon) ** 2)))
    return {
        "htinf": sharp if corrected else htinf_bound(num_arms, horizon, epsilon),
        "exp3": (exp3_corrected_bound if corrected else exp3_bound)(num_arms, horizon, epsilon),
        "ftpl": ftpl_bound(num_arms, horizon, epsilon),
    }


@_checked
def experts_bounds(num_arms, num_experts, horizon, epsilon, delta) -> dict:
    """Table 1, expert advice, with constants: `bandit_to_experts` (Corollary 4.3), `local_exp4` (4.4), `batched_exp4` (4.5).

    At the sizes that can be simulated most exceed T: compare min(bound, T).
    """
    return {
        "bandit_to_experts": htinf_experts_bound(num_experts, horizon, epsilon),
        "local_exp4": local_exp4_bound(num_arms, num_experts, horizon, epsilon),
        "batched_exp4": batched_exp4_bound(num_arms, num_experts, horizon, epsilon, delta),
    }


@_checked
def experts_regions(num_arms, num_experts, horizon, epsilon) -> tuple[str, ...]:
    """Table 2 as printed: the algorithms whose region holds the point. They do not tile: it may be none, or several.

    `bandit_to_experts` for N <= K, `local_exp4` for N >= K and epsilon >= K / N, `batched_exp4` for N >= K and epsilon <= 1 / sqrt T.
    For a map without holes take the smallest of `experts_rates` or `experts_bounds`.

    >>> experts_regions(10, 5, 10_000, 0.1), experts_regions(10, 100, 10_000, 0.05)
    (('bandit_to_experts',), ())
    """
    many = num_experts >= num_arms
    holds = {
        "bandit_to_experts": num_experts <= num_arms,
        "local_exp4": many and epsilon >= num_arms / num_experts,
        "batched_exp4": many and epsilon <= 1 / math.sqrt(horizon),
    }
    return tuple(name for name, inside in holds.items() if inside)
