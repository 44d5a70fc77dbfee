"""Lower bounds and leading terms for private bandits with Bernoulli arms, on the host.

Formulas: docs/formulas/private_frontier.md#lower-bounds.
"""

import math
from collections.abc import Callable

from jaxbandits.typing import Scalar, Vector
from jaxbandits.validation import array, integer, number


def _kl(x: float, y: float) -> float:
    """The Kullback-Leibler divergence of Bernoulli laws; 0 log 0 = 0."""

    def part(p: float, q: float) -> float:
        return 0.0 if p == 0 else math.inf if q == 0 else p * math.log(p / q)

    return part(x, y) + part(1 - x, 1 - y)


def _logit(x: float) -> float:
    return -math.inf if x == 0 else math.inf if x == 1 else math.log(x) - math.log1p(-x)


def _epsilon(epsilon: Scalar) -> float:
    return number("epsilon", epsilon, 0.0, open_low=True, finite=False)


def private_kl_divergence(x: Scalar, y: Scalar, epsilon: Scalar) -> float:
    """How far two Bernoulli means are apart for an epsilon-private algorithm.

    Parameters
    ----------
    x, y : float
        Means, in [0, 1].
    epsilon : float
        Privacy budget, in (0, inf].

    Returns
    -------
    float
        d_eps(x, y): the least ``epsilon |z - x| + kl(z, y)`` over z between them. It is at most kl(x, y) and at most
        ``epsilon |x - y|``, and finite at y = 1.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613), through a detailed summary; the closed form is
    derived: `docs/formulas/private_frontier.md#divergence`

    Examples
    --------
    >>> round(private_kl_divergence(0.3, 0.7, 0.5), 9), private_kl_divergence(0.5, 1.0, 2.0)
    (0.172174886, 1.0)
    """
    x, y, epsilon = number("x", x, 0.0, 1.0), number("y", y, 0.0, 1.0), _epsilon(epsilon)
    if x == y:
        return 0.0
    if x > y:
        x, y = 1 - x, 1 - y
    if _logit(y) - _logit(x) <= epsilon or math.isinf(epsilon):
        return _kl(x, y)
    return -epsilon * x + (epsilon if y == 1 else -math.log1p(y * math.expm1(-epsilon)))


def _over_gaps(means: Vector, divergence: Callable[[float, float], float]) -> float:
    values = array("means", means, 1, 0.0, 1.0)
    best = float(values.max())
    return math.fsum((best - mean) / divergence(float(mean), best) for mean in values if mean < best)


def private_kl_lower_bound(means: Vector, epsilon: Scalar) -> float:
    """Coefficient of log T in the regret of every consistent epsilon-private algorithm on Bernoulli arms.

    Parameters
    ----------
    means : array of float [K]
        Expected rewards, in [0, 1].
    epsilon : float
        Privacy budget, in (0, inf].

    Returns
    -------
    float
        sum of D_a / d_eps(mu_a, mu*) over the arms of gap D_a > 0. At epsilon = inf that of Lai and Robbins.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613), Theorem 1, through a detailed summary:
    `docs/formulas/private_frontier.md#lower-bounds`

    Examples
    --------
    >>> round(private_kl_lower_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1), 6)
    41.676726
    """
    epsilon = _epsilon(epsilon)
    return _over_gaps(means, lambda mean, best: private_kl_divergence(mean, best, epsilon))


def dp_index_bound(means: Vector, epsilon: Scalar, batch_ratio: Scalar) -> float:
    """Coefficient of log T in the regret of `dp_klucb` and `dp_imed`: batch_ratio times the lower bound's.

    Parameters
    ----------
    means : array of float [K]
        Expected rewards, in [0, 1].
    epsilon : float
        Privacy budget, in (0, inf].
    batch_ratio : float
        Of the batches' lengths, above 1.

    Returns
    -------
    float
        The leading term as T grows; nothing is said about any one T.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613), Theorem 2, through a detailed summary:
    `docs/formulas/private_frontier.md#lower-bounds`

    Examples
    --------
    >>> round(dp_index_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1, 1.5), 4)
    62.5151
    """
    return number("batch_ratio", batch_ratio, 1.0, open_low=True) * private_kl_lower_bound(means, epsilon)


def private_bandit_lower_bound(means: Vector, epsilon: Scalar) -> float:
    """The older coefficient of log T: sum of D_a / min(kl(mu_a, mu*), 6 epsilon D_a).

    Parameters
    ----------
    means : array of float [K]
        Expected rewards, in [0, 1].
    epsilon : float
        Privacy budget, in (0, inf].

    Returns
    -------
    float
        The coefficient, never above `private_kl_lower_bound`.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Azize and Basu 2022, Theorem 3: `docs/formulas/private_frontier.md#lower-bounds`

    Examples
    --------
    >>> round(private_bandit_lower_bound([0.75, 0.625, 0.5, 0.375, 0.25], 0.1), 6)
    8.352337
    """
    epsilon = _epsilon(epsilon)
    return _over_gaps(means, lambda mean, best: min(_kl(mean, best), 6 * epsilon * (best - mean)))


def private_minimax_lower_bound(num_arms: int, horizon: int, epsilon: Scalar) -> float:
    """Regret that some instance forces on every private algorithm: max(sqrt(T (K - 1)) / 27, (K - 1) / (131 epsilon)).

    Parameters
    ----------
    num_arms : int
        K, at least 2.
    horizon : int
        T, at least 1.
    epsilon : float
        Privacy budget, in (0, inf].

    Returns
    -------
    float
        The regret, in units of a reward.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Azize and Basu 2022, Theorem 2: `docs/formulas/private_frontier.md#lower-bounds`

    Examples
    --------
    >>> round(private_minimax_lower_bound(5, 100_000, 0.1), 4)
    23.4243
    """
    others = integer("num_arms", num_arms, 2) - 1
    return max(math.sqrt(integer("horizon", horizon, 1) * others) / 27, others / (131 * _epsilon(epsilon)))
