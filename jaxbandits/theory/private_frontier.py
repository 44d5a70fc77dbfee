"""Private bandits with Bernoulli arms, private reports that are corrupted, and Skellam noise on sums: on the host.

Formulas: docs/formulas/private_frontier.md.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import logit, rel_entr

from jaxbandits import declared
from jaxbandits.declared import Delta, Doc, Ge, Gt, Le, NonNegative, Positive, Probability
from jaxbandits.mechanisms.pure import response_bound
from jaxbandits.theory.quantities import Arms, Corruption, Epsilon, Means, Plays, cut_at_max_gap
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare

Mean = Annotated[Probability, Doc("A mean.")]
Rho = Annotated[Scalar, Gt(0), Le(math.inf), Doc("Budget of zero-concentrated privacy.")]
IndexScale = Annotated[Positive, Doc("beta.")]

PAPER = "Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613)"
HOW_READ = "through a detailed summary"


def _kl(x: float, y: float) -> float:
    """The Kullback-Leibler divergence of Bernoulli laws."""
    return float(rel_entr(x, y) + rel_entr(1 - x, 1 - y))


@declare(source=f"{PAPER}, {HOW_READ}; the closed form is derived: `docs/formulas/private_frontier.md#divergence`")
def private_kl_divergence(x: Mean, y: Mean, epsilon: Epsilon) -> float:
    """How far two Bernoulli means are apart for an epsilon-private algorithm.

    Returns:
        float: d_eps(x, y): the least ``epsilon |z - x| + kl(z, y)`` over z between them. It is at most kl(x, y) and at
            most ``epsilon |x - y|``, and finite at y = 1.

    >>> round(private_kl_divergence(0.3, 0.7, 0.5), 9), private_kl_divergence(0.5, 1.0, 2.0)
    (0.172174886, 1.0)
    """
    x, y, epsilon = float(x), float(y), float(epsilon)
    if x == y:
        return 0.0
    if x > y:
        x, y = 1 - x, 1 - y
    if logit(y) - logit(x) <= epsilon:
        return _kl(x, y)
    return -epsilon * x + (epsilon if y == 1 else -math.log1p(y * math.expm1(-epsilon)))


def _over_gaps(means: Any, divergence: Callable[[float, float], float]) -> float:
    best = float(means.max())
    return math.fsum((best - mean) / divergence(float(mean), best) for mean in means if mean < best)


@declare(source=f"{PAPER}, Theorem 1, {HOW_READ}: `docs/formulas/private_frontier.md#lower-bounds`")
def private_kl_lower_bound(means: Means, epsilon: Epsilon) -> float:
    """Coefficient of log T in the regret of every consistent epsilon-private algorithm on Bernoulli arms.

    It is the sum of D_a / d_eps(mu_a, mu*) over the arms of gap D_a > 0. At epsilon = inf that of Lai and Robbins.

    >>> round(private_kl_lower_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1), 6)
    41.676726
    """
    return _over_gaps(means, lambda mean, best: private_kl_divergence(mean, best, epsilon))


@declare(source=f"{PAPER}, Theorem 2, {HOW_READ}: `docs/formulas/private_frontier.md#lower-bounds`")
def dp_index_bound(
    means: Means, epsilon: Epsilon, batch_ratio: Annotated[Scalar, Gt(1), Doc("Of the batches' lengths.")]
) -> float:
    """Coefficient of log T in the regret of `dp_klucb` and `dp_imed`: batch_ratio times the lower bound's.

    It is the leading term as T grows; nothing is said about any one T.

    >>> round(dp_index_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1, 1.5), 4)
    62.5151
    """
    return float(batch_ratio * private_kl_lower_bound(means, epsilon))


@declare(source="Azize and Basu 2022, Theorem 3: `docs/formulas/private_frontier.md#lower-bounds`")
def private_bandit_lower_bound(means: Means, epsilon: Epsilon) -> float:
    """The older coefficient of log T: sum of D_a / min(kl(mu_a, mu*), 6 epsilon D_a).

    It is never above `private_kl_lower_bound`.

    >>> round(private_bandit_lower_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1), 6)
    8.352337
    """
    return _over_gaps(means, lambda mean, best: min(_kl(mean, best), float(6 * epsilon * (best - mean))))


@declare(source="Azize and Basu 2022, Theorem 2: `docs/formulas/private_frontier.md#lower-bounds`")
def private_minimax_lower_bound(num_arms: Arms, horizon: Plays, epsilon: Epsilon) -> float:
    """Regret that some instance forces on every private algorithm: max(sqrt(T (K - 1)) / 27, (K - 1) / (131 epsilon)).

    >>> round(private_minimax_lower_bound(5, 100_000, 0.1), 4)
    23.4243
    """
    return max(math.sqrt(horizon * (num_arms - 1)) / 27, float((num_arms - 1) / (131 * epsilon)))


@declare(
    source="Derived for the algorithm of Azize and Basu 2023 (arXiv 2309.00557) as recalled: "
    "`docs/formulas/private_frontier.md#adac-ucb`"
)
def adac_ucb_bound(means: Means, horizon: Plays, rho: Rho, index_scale: IndexScale = 3.1) -> float:
    """Leading terms of AdaC-UCB's regret: 8 beta log T / D + 8 sqrt(beta log T / rho), summed over the worse arms.

    It is the sum over the arms of gap D > 0, in units of a reward, without terms of lower order in T. It may exceed T.

    >>> round(adac_ucb_bound([0.75, 0.625, 0.5, 0.375, 0.25], 100_000, 0.1), 2)
    5363.21
    """
    log = index_scale * math.log(horizon)
    private, gaps = math.sqrt(log / rho), np.max(means) - np.asarray(means)
    return float(sum(8 * log / gap + 8 * private for gap in gaps[gaps > 0]))


# ---- corrupted reports

Budget = Annotated[declared.Epsilon, Doc("Privacy budget of one report.")]
MomentOrder = Annotated[Scalar, Ge(2), Le(math.inf), Doc("Order k of the moment that is bounded by 1.")]
Reports = Annotated[int, Ge(1), Doc("Number of reports.")]
CorruptionOrder = Annotated[
    Literal["after", "before"], Doc("Whether reports are corrupted after the clients' noise, or rewards before it.")
]


def _shares(
    epsilon: Scalar, moment_order: Scalar, corruption: Scalar, order: CorruptionOrder
) -> tuple[float, float, float]:
    """c, the power 1 - 1/k, and the corruption part of an error."""
    c, power = response_bound(epsilon), 1 - 1 / moment_order
    return c, float(power), float(((c * corruption) if order == "after" else corruption) ** power)


@declare(source="`docs/formulas/private_frontier.md#local-privacy-and-corruption`")
def local_mean_rate(
    n: Reports, epsilon: Budget, moment_order: MomentOrder, corruption: Corruption, order: CorruptionOrder = "after"
) -> float:
    """Order of the error of a mean from n locally private reports, with constant 1.

    It is A^(1 - 1/k) + (c / sqrt n)^(1 - 1/k), c = (e^epsilon + 1) / (e^epsilon - 1); A is c alpha "after", alpha
    "before".

    >>> [round(local_mean_rate(10_000, 0.5, 2.0, 0.05, order), 3) for order in ("before", "after")]
    [0.426, 0.654]
    """
    c, power, corrupted = _shares(epsilon, moment_order, corruption, order)
    return corrupted + (c / math.sqrt(n)) ** power


@declare(source="`docs/formulas/private_frontier.md#local-privacy-and-corruption`")
def local_robust_rate(
    num_arms: Arms,
    horizon: Plays,
    epsilon: Budget,
    moment_order: MomentOrder,
    corruption: Corruption,
    order: CorruptionOrder = "after",
    max_gap: NonNegative = 1.0,
) -> float:
    """Order of the regret of `local_robust_elimination` on the worst instance, with constant 1.

    It is T A^(1 - 1/k) + T^(1/2 + 1/(2k)) (c sqrt(K ln T))^(1 - 1/k), at most T max_gap; c and A as in
    `local_mean_rate`.

    Args:
        max_gap: Largest gap between two means, in units of a reward: regret is at most T times it.

    >>> round(local_robust_rate(5, 100_000, 1.0, float("inf"), 0.0))
    5192
    """
    c, power, corrupted = _shares(epsilon, moment_order, corruption, order)
    private = (c * math.sqrt(num_arms * math.log(horizon))) ** power * horizon ** (1 - power / 2)
    return cut_at_max_gap(horizon * corrupted + private, horizon, max_gap)


# ---- Skellam noise

Nominal = Annotated[
    Positive, Doc("The nominal budget, finite: noise of standard deviation g / epsilon on sums of integers in [0, g].")
]
Precision = Annotated[Positive, Doc("s: g is at least s epsilon.")]

MOST_ORDERS = 1024  # orders tried for a conversion: at epsilon = 0.01 and delta = 1e-10 the best is near 700


@declare(source="Chowdhury and Zhou (ICLR 2023), Theorem 2: `docs/formulas/private_frontier.md#secure-aggregation`")
def skellam_rdp(
    order: Annotated[int, Ge(2), Doc("The Renyi order a.")], epsilon: Nominal, precision_scale: Precision
) -> float:
    """The Renyi divergence that one block of `dist_elimination(noise="skellam")` costs at most.

    It is a epsilon^2 / 2 + min{(2a - 1) epsilon^2 / (4 s^2) + 3 epsilon / (2 s^3), 3 max(epsilon, epsilon^2) / (2 s)}.

    Note:
        The printed last term is 3 epsilon^2 / (2 s), which asks for g >= s; below epsilon = 1 short blocks have a
        smaller g, and 3 epsilon / (2 s) is what holds for them.

    >>> skellam_rdp(8, 1.0, 10.0)
    4.039
    """
    return _rdp(order, epsilon, precision_scale)


def _rdp(order: int, epsilon: Scalar, s: Scalar) -> float:
    fine = (2 * order - 1) * epsilon**2 / (4 * s**2) + 3 * epsilon / (2 * s**3)
    return float(order * epsilon**2 / 2 + min(fine, 3 * max(epsilon, epsilon**2) / (2 * s)))


@declare(source="`docs/formulas/private_frontier.md#secure-aggregation`")
def skellam_epsilon(epsilon: Nominal, precision_scale: Precision, delta: Delta) -> float:
    """The epsilon at `delta` that one block of `dist_elimination(noise="skellam")` spends at most.

    It is the least over integer orders a of skellam_rdp(a) + ln(1 - 1/a) - (ln delta + ln a) / (a - 1), at least 0.

    >>> round(skellam_epsilon(1.0, 10.0, 1e-5), 4)
    4.7767
    """
    orders = range(2, MOST_ORDERS)
    converted = (math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in orders)
    spent = (_rdp(a, epsilon, precision_scale) + more for a, more in zip(orders, converted, strict=True))
    return max(0.0, min(spent))
