"""Lower bounds and leading terms for private bandits with Bernoulli arms, on the host.

Formulas: docs/formulas/private_frontier.md#lower-bounds.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Gt, Le

from jaxbandits.declared import Positive, Probability
from jaxbandits.theory.quantities import Arms, Epsilon, Means, Plays
from jaxbandits.typing import Scalar
from jaxbandits.validation import checked

Mean = Annotated[Probability, Doc("A mean.")]

PAPER = "Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613)"
READ = "through a detailed summary"


def _kl(x: float, y: float) -> float:
    """The Kullback-Leibler divergence of Bernoulli laws; 0 log 0 = 0."""

    def part(p: float, q: float) -> float:
        return 0.0 if p == 0 else math.inf if q == 0 else p * math.log(p / q)

    return part(x, y) + part(1 - x, 1 - y)


def _logit(x: float) -> float:
    return -math.inf if x == 0 else math.inf if x == 1 else math.log(x) - math.log1p(-x)


@checked(source=f"{PAPER}, {READ}; the closed form is derived: `docs/formulas/private_frontier.md#divergence`")
def private_kl_divergence(x: Mean, y: Mean, epsilon: Epsilon) -> float:
    """How far two Bernoulli means are apart for an epsilon-private algorithm.

    Returns
    -------
    float
        d_eps(x, y): the least ``epsilon |z - x| + kl(z, y)`` over z between them. It is at most kl(x, y) and at most
        ``epsilon |x - y|``, and finite at y = 1.

    >>> round(private_kl_divergence(0.3, 0.7, 0.5), 9), private_kl_divergence(0.5, 1.0, 2.0)
    (0.172174886, 1.0)
    """
    x, y, epsilon = float(x), float(y), float(epsilon)
    if x == y:
        return 0.0
    if x > y:
        x, y = 1 - x, 1 - y
    if _logit(y) - _logit(x) <= epsilon or math.isinf(epsilon):
        return _kl(x, y)
    return -epsilon * x + (epsilon if y == 1 else -math.log1p(y * math.expm1(-epsilon)))


def _over_gaps(means: Any, divergence: Callable[[float, float], float]) -> float:
    best = float(means.max())
    return math.fsum((best - mean) / divergence(float(mean), best) for mean in means if mean < best)


@checked(source=f"{PAPER}, Theorem 1, {READ}: `docs/formulas/private_frontier.md#lower-bounds`")
def private_kl_lower_bound(means: Means, epsilon: Epsilon) -> float:
    """Coefficient of log T in the regret of every consistent epsilon-private algorithm on Bernoulli arms.

    It is the sum of D_a / d_eps(mu_a, mu*) over the arms of gap D_a > 0. At epsilon = inf that of Lai and Robbins.

    >>> round(private_kl_lower_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1), 6)
    41.676726
    """
    return _over_gaps(means, lambda mean, best: private_kl_divergence(mean, best, epsilon))


@checked(source=f"{PAPER}, Theorem 2, {READ}: `docs/formulas/private_frontier.md#lower-bounds`")
def dp_index_bound(
    means: Means, epsilon: Epsilon, batch_ratio: Annotated[Scalar, Gt(1), Doc("Of the batches' lengths.")]
) -> float:
    """Coefficient of log T in the regret of `dp_klucb` and `dp_imed`: batch_ratio times the lower bound's.

    It is the leading term as T grows; nothing is said about any one T.

    >>> round(dp_index_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1, 1.5), 4)
    62.5151
    """
    return float(batch_ratio * private_kl_lower_bound(means, epsilon))


@checked(source="Azize and Basu 2022, Theorem 3: `docs/formulas/private_frontier.md#lower-bounds`")
def private_bandit_lower_bound(means: Means, epsilon: Epsilon) -> float:
    """The older coefficient of log T: sum of D_a / min(kl(mu_a, mu*), 6 epsilon D_a).

    It is never above `private_kl_lower_bound`.

    >>> round(private_bandit_lower_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1), 6)
    8.352337
    """
    return _over_gaps(means, lambda mean, best: min(_kl(mean, best), float(6 * epsilon * (best - mean))))


@checked(source="Azize and Basu 2022, Theorem 2: `docs/formulas/private_frontier.md#lower-bounds`")
def private_minimax_lower_bound(num_arms: Arms, horizon: Plays, epsilon: Epsilon) -> float:
    """Regret that some instance forces on every private algorithm: max(sqrt(T (K - 1)) / 27, (K - 1) / (131 epsilon)).

    >>> round(private_minimax_lower_bound(5, 100_000, 0.1), 4)
    23.4243
    """
    return max(math.sqrt(horizon * (num_arms - 1)) / 27, float((num_arms - 1) / (131 * epsilon)))


@checked(
    source="Derived for the algorithm of Azize and Basu 2023 (arXiv 2309.00557) as recalled: "
    "`docs/formulas/private_frontier.md#adac-ucb`"
)
def adac_ucb_bound(
    means: Means,
    horizon: Plays,
    rho: Annotated[Scalar, Gt(0), Le(math.inf), Doc("Budget of zero-concentrated privacy.")],
    index_scale: Annotated[Positive, Doc("beta.")] = 3.1,
) -> float:
    """Leading terms of AdaC-UCB's regret: 8 beta log T / D + 8 sqrt(beta log T / rho), summed over the worse arms.

    It is the sum over the arms of gap D > 0, in units of a reward, without terms of lower order in T. It may exceed T.

    >>> round(adac_ucb_bound([0.75, 0.625, 0.5, 0.375, 0.25], 100_000, 0.1), 2)
    5363.21
    """
    log = index_scale * math.log(horizon)
    private, gaps = math.sqrt(log / rho), np.max(means) - np.asarray(means)
    return float(sum(8 * log / gap + 8 * private for gap in gaps[gaps > 0]))
