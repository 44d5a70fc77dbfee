"""Regret of elimination under a budget of corruption. Formulas: docs/formulas/robust_frontier.md."""

import math

from jaxbandits.typing import Scalar, Vector
from jaxbandits.validation import array, integer, number


def wide_elimination_bound(
    means: Vector,
    horizon: int,
    corruption_budget: Scalar = 0.0,
    noise_scale: Scalar = 0.5,
    failure_prob: Scalar | None = None,
) -> float:
    """Upper bound of the regret of `stopping_elimination` whose budget of corruption is known.

    Parameters
    ----------
    means : array of float [K]
        Expected rewards of the arms, K at least 2, in units of a reward.
    horizon : int
        Number of plays T, at least 1.
    corruption_budget : float, default 0.0
        C, at least 0: the sum of the sizes of what an adversary changes in the rewards of the played arms.
    noise_scale : float, default 0.5
        Sub-Gaussian scale sigma of the rewards, at least 0.
    failure_prob : float, optional
        delta, in (0, 1). Default: 1 / horizon.

    Returns
    -------
    float
        With l = ln(2 K T / delta), the sum over the arms of gap D > 0 of D (1 + ((2 sigma sqrt(2 l) + sqrt(8 sigma^2 l
        + 4 C D)) / D)^2). It holds with probability 1 - delta against every adversary of budget C, who may see the arm.
        It may exceed T max D.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Ours: `docs/formulas/robust_frontier.md#stopping-elimination`

    Examples
    --------
    >>> round(wide_elimination_bound([0.8, 0.6, 0.5, 0.3], 20_000, 100.0, failure_prob=0.05), 1)
    3172.9
    """
    values, horizon = array("means", means, 1), integer("horizon", horizon, 1)
    budget, sigma = number("corruption_budget", corruption_budget, 0.0), number("noise_scale", noise_scale, 0.0)
    failure = 1 / horizon
    if failure_prob is not None:
        failure = number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True)
    noise = 8 * sigma**2 * math.log(2 * len(values) * horizon / failure)
    gaps = values.max() - values
    return math.fsum(
        gap * (1 + ((math.sqrt(noise) + math.sqrt(noise + 4 * budget * gap)) / gap) ** 2) for gap in gaps[gaps > 0]
    )
