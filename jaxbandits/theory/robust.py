"""Order lines of Wu, Zhou, Tao and Wang, On Private and Robust Bandits (NeurIPS 2023, arXiv 2302.02526), on the host.

K arms, T plays, k-th moments bounded by u, contamination alpha, `log` natural. The paper hides constants: these are
orders with constants of 1, to be drawn as lines, not guarantees. All scale with u^(1/k), the unit of rewards.
Formulas: `docs/formulas/private_robust_mab.md#regret-bounds`.
"""

import math

from jaxbandits.typing import Scalar
from jaxbandits.validation import integer, number


def _checked(
    num_arms: int,
    horizon: Scalar,
    epsilon: Scalar,
    moment_order: Scalar,
    moment_bound: Scalar,
    corruption: Scalar,
    name: str = "corruption_bound",
) -> tuple[float, float]:
    """The power 1 - 1/k and the unit of rewards, or a ValueError."""
    integer("num_arms", num_arms, 1)
    number("horizon", horizon, 2)
    number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    k = number("moment_order", moment_order, 2.0)
    number(name, corruption, 0.0, 0.5, open_high=True)
    return 1 - 1 / k, number("moment_bound", moment_bound, 0.0, open_low=True) ** (1 / k)


def _common(num_arms: int, horizon: Scalar, epsilon: Scalar, power: float, corruption: Scalar) -> float:
    log_t = math.log(horizon)
    private = (num_arms * log_t / min(epsilon, 1.0)) ** power * horizon ** (1 - power)
    return float(math.sqrt(num_arms * horizon * log_t) + private + horizon * corruption**power)


def prm_raw_bound(
    num_arms: int,
    horizon: Scalar,
    epsilon: Scalar,
    *,
    moment_order: Scalar = 2.0,
    moment_bound: Scalar = 1.0,
    corruption_bound: Scalar = 0.0,
    max_gap: Scalar | None = None,
) -> float:
    """Upper bound of PRM elimination with raw moments, up to constants.

    u^(1/k) [sqrt(K T log T) + (K log T / min(epsilon, 1))^(1 - 1/k) T^(1/k) + T alpha^(1 - 1/k) + K log T / alpha],
    the last two terms only under contamination.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 1.
    horizon : float
        Number of plays T, at least 2.
    epsilon : float
        Privacy budget of the whole run, in (0, inf].
    moment_order : float, default 2.0
        Order k of the bounded moment, at least 2.
    moment_bound : float, default 1.0
        Bound u on the moment, in units of a reward to the power k, greater than 0.
    corruption_bound : float, default 0.0
        Share alpha of contaminated rewards that the learner believes in, in [0, 1/2).
    max_gap : float, optional
        Largest gap between two means, at least 0: the line is cut at max_gap T. Default: no cut.

    Returns
    -------
    float
        The order of the regret, in units of a reward.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Wu, Zhou, Tao and Wang 2023, Theorem 6.2 and its clean case: `docs/formulas/private_robust_mab.md#regret-bounds`.

    Examples
    --------
    >>> round(prm_raw_bound(5, 10_000, 1.0))
    1357
    """
    power, unit = _checked(num_arms, horizon, epsilon, moment_order, moment_bound, corruption_bound)
    bound = _common(num_arms, horizon, epsilon, power, corruption_bound)
    if corruption_bound > 0:
        bound += float(num_arms * math.log(horizon) / corruption_bound)
    return _clipped(unit * bound, horizon, max_gap)


def prm_central_bound(
    num_arms: int,
    horizon: Scalar,
    epsilon: Scalar,
    mean_bound: Scalar,
    *,
    moment_order: Scalar = 2.0,
    moment_bound: Scalar = 1.0,
    corruption_bound: Scalar = 0.0,
    max_gap: Scalar | None = None,
) -> float:
    """Upper bound of PRM elimination with central moments, up to constants.

    u^(1/k) times the first three terms of `prm_raw_bound`, plus D K log T / alpha under contamination, plus
    D K log(D T / u^(1/k)) / min(epsilon, 1).

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 1.
    horizon : float
        Number of plays T, at least 2.
    epsilon : float
        Privacy budget of the whole run, in (0, inf].
    mean_bound : float
        Bound D on the size of every mean, in units of a reward, greater than 0.
    moment_order : float, default 2.0
        Order k of the bounded moment, at least 2.
    moment_bound : float, default 1.0
        Bound u on the moment, in units of a reward to the power k, greater than 0.
    corruption_bound : float, default 0.0
        Share alpha of contaminated rewards that the learner believes in, in [0, 1/2).
    max_gap : float, optional
        Largest gap between two means, at least 0: the line is cut at max_gap T. Default: no cut.

    Returns
    -------
    float
        The order of the regret, in units of a reward.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Wu, Zhou, Tao and Wang 2023, Theorems 6.10 and 6.12: `docs/formulas/private_robust_mab.md#regret-bounds`.

    Examples
    --------
    >>> prm_central_bound(5, 10_000, 1.0, 10.0) > prm_raw_bound(5, 10_000, 1.0)
    True
    """
    power, unit = _checked(num_arms, horizon, epsilon, moment_order, moment_bound, corruption_bound)
    mean_bound = number("mean_bound", mean_bound, 0.0, open_low=True)
    bound = unit * _common(num_arms, horizon, epsilon, power, corruption_bound)
    if corruption_bound > 0:
        bound += float(mean_bound * num_arms * math.log(horizon) / corruption_bound)
    bound += float(mean_bound * num_arms * math.log(max(mean_bound * horizon / unit, math.e)) / min(epsilon, 1.0))
    return _clipped(bound, horizon, max_gap)


def private_robust_lower_bound(
    num_arms: int,
    horizon: Scalar,
    epsilon: Scalar,
    *,
    moment_order: Scalar = 2.0,
    moment_bound: Scalar = 1.0,
    corruption: Scalar = 0.0,
    max_gap: Scalar | None = None,
    constant: Scalar = 1 / 27,
) -> float:
    """Minimax lower bound, up to its constant: what some instance costs every epsilon-private algorithm.

    constant u^(1/k) max{sqrt(K T), (K / epsilon)^(1 - 1/k) T^(1/k), T alpha^(1 - 1/k)}.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 1.
    horizon : float
        Number of plays T, at least 2.
    epsilon : float
        Privacy budget of the whole run, in (0, inf].
    moment_order : float, default 2.0
        Order k of the bounded moment, at least 2.
    moment_bound : float, default 1.0
        Bound u on the moment, in units of a reward to the power k, greater than 0.
    corruption : float, default 0.0
        True share alpha of contaminated rewards, in [0, 1/2).
    max_gap : float, optional
        Largest gap between two means, at least 0: the line is cut at max_gap T. Default: no cut.
    constant : float, default 1/27
        The theorem's constant, at least 0. The theorem does not state it; the default is this package's choice, so
        label the line "order".

    Returns
    -------
    float
        The order of the regret, in units of a reward.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Wu, Zhou, Tao and Wang 2023, Theorem 4.1: `docs/formulas/private_robust_mab.md#regret-bounds`.

    Examples
    --------
    >>> round(private_robust_lower_bound(5, 10_000, 0.1), 1)
    26.2
    """
    power, unit = _checked(num_arms, horizon, epsilon, moment_order, moment_bound, corruption, "corruption")
    private = (num_arms / epsilon) ** power * horizon ** (1 - power)
    largest = float(max(math.sqrt(num_arms * horizon), private, horizon * corruption**power))
    return _clipped(number("constant", constant, 0.0) * unit * largest, horizon, max_gap)


def _clipped(bound: float, horizon: Scalar, max_gap: Scalar | None) -> float:
    return bound if max_gap is None else float(min(bound, number("max_gap", max_gap, 0.0) * horizon))
