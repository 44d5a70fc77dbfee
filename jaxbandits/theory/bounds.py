"""Regret bounds of Asi, Raman and Talwar (ICML 2025), on the host: `docs/formulas/private_adversarial.md#bounds`."""

import math
from typing import Annotated

from jaxbandits.declared import LATER
from jaxbandits.theory.quantities import Arms, Batch, Experts, FiniteEpsilon, Plays, RegretBound, SmallDelta
from jaxbandits.theory.tunings import window
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare


@declare(source="Asi, Raman and Talwar 2025, Theorem 3.1: `docs/formulas/private_adversarial.md#bounds`.")
def conversion_bound(base_bound: Annotated[Scalar, LATER], window: Batch) -> RegretBound:
    """Regret of Algorithm 1 from a bound on its base: window * base_bound + window.

    Args:
        base_bound: Bound on the base's regret over floor(T / window) rounds.
    """
    return float(window * base_bound + window)


@declare(source="Asi, Raman and Talwar 2025, Corollary 3.2: `docs/formulas/private_adversarial.md#bounds`.")
def htinf_bound(num_arms: Arms, horizon: Plays, epsilon: FiniteEpsilon) -> RegretBound:
    """Regret of HTINF inside Algorithm 1, as printed.

    (60 sqrt 6 / epsilon) sqrt(K (epsilon T + 1)) + 2 / epsilon.
    """
    return float(60 * math.sqrt(6) / epsilon * math.sqrt(num_arms * (epsilon * horizon + 1)) + 2 / epsilon)


@declare(source="Asi, Raman and Talwar 2025, proof of Corollary 3.2: `docs/formulas/private_adversarial.md#bounds`.")
def htinf_window_bound(num_arms: Arms, horizon: Plays, window: Batch, tail_scale: Scalar = 6**0.5) -> RegretBound:
    """Regret of HTINF inside Algorithm 1, in the sharper form behind Corollary 3.2.

    30 sigma tau sqrt(K (J + 1)) + tau with J = floor(T / tau).

    Args:
        tail_scale: sigma: sigma^2 is at least 2 + 4 lam^2, with lam the scale of the Laplace noise on a batch's mean
            loss. The default sqrt(6) is the paper's, for lam = 1.
    """
    return conversion_bound(30 * tail_scale * math.sqrt(num_arms * (horizon // window + 1)), window)


@declare(source="Asi, Raman and Talwar 2025, Corollary E.1: `docs/formulas/private_adversarial.md#exp3`.")
def exp3_bound(num_arms: Arms, horizon: Plays, epsilon: FiniteEpsilon) -> RegretBound:
    """Regret of EXP3 inside Algorithm 1, as printed.

    (2/epsilon)(2 sqrt(2 n K log K (1 + 10 L^2)) + 1) + 2/epsilon with n = epsilon T and L = log(K n).

    Note:
        The proof drops a term of the mixing: `exp3_corrected_bound` has it.
    """
    n = epsilon * horizon
    log_kn = math.log(num_arms * n)
    root = math.sqrt(2 * n * num_arms * math.log(num_arms) * (1 + 10 * log_kn**2))
    return float(2 / epsilon * (2 * root + 1) + 2 / epsilon)


@declare(source="Asi, Raman and Talwar 2025, Corollary E.1, repaired: `docs/formulas/private_adversarial.md#exp3`.")
def exp3_corrected_bound(num_arms: Arms, horizon: Plays, epsilon: FiniteEpsilon) -> RegretBound:
    """Regret of EXP3 inside Algorithm 1, with the cost of its mixing.

    (2/epsilon)(sqrt(n K log K)[sqrt(22) L + 2 (1 + 4 L + 10 L^2) / (sqrt(22) L)] + 1) + 2/epsilon, for the tuning of
    Corollary E.1, with n = max(epsilon T, 1), as less than a batch costs at most 1/epsilon, and L = log(K n).
    """
    n = max(epsilon * horizon, 1.0)
    log_kn = math.log(num_arms * n)
    root = math.sqrt(22) * log_kn
    inner = root + 2 * (1 + 4 * log_kn + 10 * log_kn**2) / root
    return float(2 / epsilon * (math.sqrt(n * num_arms * math.log(num_arms)) * inner + 1) + 2 / epsilon)


@declare(
    source="Asi, Raman and Talwar 2025, proof of Corollary E.1 with its dropped term put back: "
    "`docs/formulas/private_adversarial.md#exp3`."
)
def exp3_base_bound(num_arms: Arms, horizon: Plays, noise_scale: Scalar, learning_rate: Scalar) -> RegretBound:
    """Regret of EXP3 with mixing 4 eta lam K L on J noisy rounds; use it with `conversion_bound`.

    log K / eta + 2 eta J K (1 + 4 lam L + 10 lam^2 L^2) + 1 with L = log(K J).

    Args:
        horizon: Number of rounds J.
        noise_scale: Scale lam of the Laplace noise on a loss.
        learning_rate: Step size eta, greater than 0.
    """
    lam_log = noise_scale * math.log(num_arms * horizon)
    variance = 1 + 4 * lam_log + 10 * lam_log**2
    return float(math.log(num_arms) / learning_rate + 2 * learning_rate * horizon * num_arms * variance + 1)


@declare(source="Asi, Raman and Talwar 2025, Corollary E.3: `docs/formulas/private_adversarial.md#ftpl`.")
def ftpl_bound(num_arms: Arms, horizon: Plays, epsilon: FiniteEpsilon) -> RegretBound:
    """Regret of FTPL inside Algorithm 1, with constants of this package.

    (2/epsilon)(10 sqrt(K n log K (1 + 10 L^2)) + 6 log K sqrt(K n)(1 + 4 log n) + sqrt(K n)/e + 1) + 2/epsilon,
    with n = max(epsilon T, 1) and L = log(K n).
    """
    n, log_k = max(epsilon * horizon, 1.0), math.log(num_arms)
    kn = num_arms * n
    inner = 10 * math.sqrt(kn * log_k * (1 + 10 * math.log(kn) ** 2))
    inner += 6 * log_k * math.sqrt(kn) * (1 + 4 * math.log(n)) + math.sqrt(kn) / math.e + 1
    return float(2 / epsilon * inner + 2 / epsilon)


@declare(source="Asi, Raman and Talwar 2025, Corollary 4.3: `docs/formulas/private_adversarial.md#bounds`.")
def htinf_experts_bound(num_experts: Experts, horizon: Plays, epsilon: FiniteEpsilon) -> RegretBound:
    """Regret of HTINF over the experts inside Algorithm 1: `htinf_bound` with N for K."""
    return htinf_bound(num_experts, horizon, epsilon)


@declare(source="Asi, Raman and Talwar 2025, Theorem 4.4: `docs/formulas/private_adversarial.md#ldp-exp4`.")
def local_exp4_bound(num_arms: Arms, num_experts: Experts, horizon: Plays, epsilon: FiniteEpsilon) -> RegretBound:
    """Regret of LDP-EXP4: 16 sqrt(T K log N) log(K T) / epsilon + 1."""
    root = math.sqrt(horizon * num_arms * math.log(num_experts))
    return float(16 * root * math.log(num_arms * horizon) / epsilon + 1)


@declare(source="Asi, Raman and Talwar 2025, Theorem 4.5: `docs/formulas/private_adversarial.md#batched-exp4`.")
def batched_exp4_bound(
    num_arms: Arms, num_experts: Experts, horizon: Plays, epsilon: FiniteEpsilon, delta: SmallDelta
) -> RegretBound:
    """Regret of batched EXP4.

    100 (N^(1/6) K^(1/2) T^(2/3) log(1/delta)^(1/6) L^(1/3) log(N)^(1/3) / epsilon^(1/3) + sqrt(N') L log(N) /
    epsilon) with L = log(N T) and N' = N log(1/delta).
    """
    more, log_n, log_nt = num_experts * math.log(1 / delta), math.log(num_experts), math.log(num_experts * horizon)
    first = more ** (1 / 6) * math.sqrt(num_arms) * horizon ** (2 / 3) * (log_nt * log_n / epsilon) ** (1 / 3)
    return 100 * (first + math.sqrt(more) * log_nt * log_n / epsilon)


@declare(source="Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.")
def arms_rates(num_arms: Arms, horizon: Plays, epsilon: FiniteEpsilon) -> dict[str, float]:
    """Rates of private bandits without constants, by algorithm.

    Returns:
        dict of float: ``existing``: sqrt(K T log(K T)) / epsilon; ``conversion``: sqrt(K T / epsilon).
    """
    size = num_arms * horizon
    return {"existing": float(math.sqrt(size * math.log(size)) / epsilon), "conversion": math.sqrt(size / epsilon)}


@declare(source="Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.")
def experts_rates(num_arms: Arms, num_experts: Experts, horizon: Plays, epsilon: FiniteEpsilon) -> dict[str, float]:
    """Rates of private bandits with expert advice without constants, by algorithm: take the smallest.

    Returns:
        dict of float: ``bandit_to_experts``: sqrt(N T / epsilon); ``local_exp4``: sqrt(K T log N) log(K T) / epsilon;
            ``batched_exp4``: N^(1/6) K^(1/2) T^(2/3) log(N T) / epsilon^(1/3) + sqrt(N) log(N T) / epsilon.
    """
    log_nt = math.log(num_experts * horizon)
    batched = num_experts ** (1 / 6) * math.sqrt(num_arms) * horizon ** (2 / 3) * log_nt / epsilon ** (1 / 3)
    return {
        "bandit_to_experts": math.sqrt(num_experts * horizon / epsilon),
        "local_exp4": math.sqrt(num_arms * horizon * math.log(num_experts)) * math.log(num_arms * horizon) / epsilon,
        "batched_exp4": batched + math.sqrt(num_experts) * log_nt / epsilon,
    }


@declare(source="Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.")
def arms_bounds(
    num_arms: Arms, horizon: Plays, epsilon: FiniteEpsilon, *, corrected: Annotated[bool, LATER] = True
) -> dict[str, float]:
    """Bounds of private bandits with constants, by the base inside Algorithm 1.

    Args:
        epsilon: Privacy budget of the whole run, at most 1.
        corrected: Take Corollary 3.2 in its sharper form and Corollary E.1 with the term that its proof drops; False:
            both as printed.

    Returns:
        dict of float: ``htinf`` (Corollary 3.2), ``exp3`` (E.1) and ``ftpl`` (E.3, with constants of this package).
    """
    tau = window(epsilon)
    sharp = htinf_window_bound(num_arms, horizon, tau, math.sqrt(max(6.0, 2 + 4 / (tau * epsilon) ** 2)))
    return {
        "htinf": sharp if corrected else htinf_bound(num_arms, horizon, epsilon),
        "exp3": (exp3_corrected_bound if corrected else exp3_bound)(num_arms, horizon, epsilon),
        "ftpl": ftpl_bound(num_arms, horizon, epsilon),
    }


@declare(source="Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.")
def experts_bounds(
    num_arms: Arms, num_experts: Experts, horizon: Plays, epsilon: FiniteEpsilon, delta: SmallDelta
) -> dict[str, float]:
    """Bounds of private bandits with expert advice with constants, by algorithm.

    Returns:
        dict of float: ``bandit_to_experts`` (Corollary 4.3), ``local_exp4`` (4.4) and ``batched_exp4`` (4.5).

    Note:
        At sizes that can be simulated most of them exceed T: compare min(bound, T).
    """
    return {
        "bandit_to_experts": htinf_experts_bound(num_experts, horizon, epsilon),
        "local_exp4": local_exp4_bound(num_arms, num_experts, horizon, epsilon),
        "batched_exp4": batched_exp4_bound(num_arms, num_experts, horizon, epsilon, delta),
    }


@declare(source="Asi, Raman and Talwar 2025, Table 2, as printed: `docs/formulas/private_adversarial.md#bounds`.")
def experts_regions(num_arms: Arms, num_experts: Experts, horizon: Plays, epsilon: FiniteEpsilon) -> tuple[str, ...]:
    """The algorithms with expert advice whose printed region holds the point: none, one or several.

    Returns:
        tuple of str: ``bandit_to_experts`` for N <= K; ``local_exp4`` for N >= K and epsilon >= K / N; ``batched_exp4``
            for N >= K and epsilon <= 1 / sqrt T.

    Note:
        The regions do not tile. For a map without holes take the smallest of `experts_rates` or `experts_bounds`.

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
