"""Orders of error and regret where private reports are corrupted. Formulas: docs/formulas/private_frontier.md."""

import math
from typing import Literal

from jaxbandits.mechanisms.randomized_response import response_bound
from jaxbandits.typing import Scalar
from jaxbandits.validation import choice, integer, number


def _shares(epsilon: Scalar, moment_order: Scalar, corruption: Scalar, order: str) -> tuple[float, float, float]:
    """c, the power 1 - 1/k, and the corruption part of an error."""
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    power = 1 - 1 / number("moment_order", moment_order, 2.0, finite=False)
    share = number("corruption", corruption, 0.0, 0.5, open_high=True)
    choice("order", order, ("after", "before"))
    c = response_bound(epsilon)
    return c, power, ((c * share) if order == "after" else share) ** power


def local_mean_rate(
    n: int, epsilon: Scalar, moment_order: Scalar, corruption: Scalar, order: Literal["after", "before"] = "after"
) -> float:
    """Order of the error of a mean from n locally private reports, with constant 1.

    Parameters
    ----------
    n : int
        Number of reports, at least 1.
    epsilon : float
        Privacy budget of one report, in (0, inf].
    moment_order : float
        Order k of the moment that is bounded by 1, in [2, inf].
    corruption : float
        Share alpha of corrupted rewards or reports, in [0, 1/2).
    order : {"after", "before"}, default "after"
        Whether reports are corrupted after the clients' noise, or rewards before it.

    Returns
    -------
    float
        A^(1 - 1/k) + (c / sqrt n)^(1 - 1/k), c = (e^epsilon + 1) / (e^epsilon - 1); A is c alpha "after", alpha
        "before".

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    `docs/formulas/private_frontier.md#local-privacy-and-corruption`

    Examples
    --------
    >>> [round(local_mean_rate(10_000, 0.5, 2.0, 0.05, order), 3) for order in ("before", "after")]
    [0.426, 0.654]
    """
    c, power, corrupted = _shares(epsilon, moment_order, corruption, order)
    return corrupted + (c / math.sqrt(integer("n", n, 1))) ** power


def local_robust_rate(
    num_arms: int,
    horizon: int,
    epsilon: Scalar,
    moment_order: Scalar,
    corruption: Scalar,
    order: Literal["after", "before"] = "after",
    max_gap: Scalar = 1.0,
) -> float:
    """Order of the regret of `local_robust_elimination` on the worst instance, with constant 1.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of one play, in (0, inf].
    moment_order : float
        Order k of the moment that is bounded by 1, in [2, inf].
    corruption : float
        Share alpha of corrupted rewards or reports, in [0, 1/2).
    order : {"after", "before"}, default "after"
        Whether reports are corrupted after the clients' noise, or rewards before it.
    max_gap : float, default 1.0
        Largest gap between two means, in units of a reward, at least 0: regret is at most T times it.

    Returns
    -------
    float
        T A^(1 - 1/k) + T^(1/2 + 1/(2k)) (c sqrt(K ln T))^(1 - 1/k), at most T max_gap; c and A as in
        `local_mean_rate`.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    `docs/formulas/private_frontier.md#local-privacy-and-corruption`

    Examples
    --------
    >>> round(local_robust_rate(5, 100_000, 1.0, float("inf"), 0.0))
    5192
    """
    c, power, corrupted = _shares(epsilon, moment_order, corruption, order)
    arms, horizon = integer("num_arms", num_arms, 2), integer("horizon", horizon, 1)
    private = (c * math.sqrt(arms * math.log(horizon))) ** power * horizon ** (1 - power / 2)
    return min(horizon * corrupted + private, horizon * number("max_gap", max_gap, 0.0))
