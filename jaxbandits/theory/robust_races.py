"""Orders of races of arms under a budget of corruption, on the host. Formulas: docs/formulas/robust_frontier.md."""

import math
from typing import Any

import numpy as np

from jaxbandits.typing import Scalar, Vector
from jaxbandits.validation import array, integer, number


def _checked(
    means: Vector, horizon: int, corruption_budget: Scalar, failure_prob: Scalar | None
) -> tuple[Any, float, float]:
    """Gaps of all arms [K], the budget and K / failure_prob, or a ValueError."""
    values = array("means", means, 1, 0.0, 1.0)
    integer("horizon", horizon, 2)
    if failure_prob is None:
        failure_prob = 1 / horizon
    prob = number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True)
    return np.max(values) - values, number("corruption_budget", corruption_budget, 0.0), len(values) / prob


def multilayer_bound(
    means: Vector, horizon: int, corruption_budget: Scalar = 0.0, failure_prob: Scalar | None = None
) -> float:
    """Order of the multi-layer race's regret, up to constants: (K C ln(K T / p) + ln T) ln(K T / p) / D, summed.

    Parameters
    ----------
    means : array of float [K]
        Expected rewards of the arms, in [0, 1].
    horizon : int
        Number of plays T, at least 2.
    corruption_budget : float, default 0.0
        C, at least 0: the sum over plays of the largest corruption of any arm, chosen before the arm is known.
    failure_prob : float, optional
        p, in (0, 1). Default: 1 / T.

    Returns
    -------
    float
        The sum over the arms of gap D > 0, in units of a reward, with constants of 1: a line to draw dotted, no
        guarantee. It may exceed T.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353), recalled:
    `docs/formulas/robust_frontier.md#multilayer-elimination`

    Examples
    --------
    >>> round(multilayer_bound([0.8, 0.6, 0.5, 0.3], 20_000, failure_prob=0.05))
    1462
    """
    gaps, budget, odds = _checked(means, horizon, corruption_budget, failure_prob)
    log = math.log(horizon * odds)
    return float(sum((len(gaps) * budget * log + math.log(horizon)) * log / gap for gap in gaps[gaps > 0]))


def barbar_bound(
    means: Vector, horizon: int, corruption_budget: Scalar = 0.0, failure_prob: Scalar | None = None
) -> float:
    """Order of BARBAR's regret, up to constants: K C, and ln(T) ln(K ln(T) / p) / D summed over the worse arms.

    Parameters
    ----------
    means : array of float [K]
        Expected rewards of the arms, in [0, 1].
    horizon : int
        Number of plays T, at least 2.
    corruption_budget : float, default 0.0
        C, at least 0: the sum over plays of the largest corruption of any arm, chosen before the arm is known.
    failure_prob : float, optional
        p, in (0, 1). Default: 1 / T.

    Returns
    -------
    float
        K C where some arm is worse, and the sum over the arms of gap D > 0, in units of a reward, with constants of
        1: a line to draw dotted, no guarantee. It may exceed T.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Gupta, Koren and Talwar 2019 (arXiv 1902.08647), abstract: `docs/formulas/robust_frontier.md#barbar`

    Examples
    --------
    >>> round(barbar_bound([0.8, 0.6, 0.5, 0.3], 20_000, 100.0, failure_prob=0.05))
    1083
    """
    gaps, budget, odds = _checked(means, horizon, corruption_budget, failure_prob)
    worse = gaps[gaps > 0]
    if len(worse) == 0:
        return 0.0
    log = math.log(horizon) * math.log(odds * math.log(horizon))
    return float(len(gaps) * budget + sum(log / gap for gap in worse))
