"""Regret bounds of bandits with zero-concentrated privacy, on the host. Formulas: docs/formulas/private_frontier.md."""

import math

from jaxbandits.typing import Scalar, Vector
from jaxbandits.validation import array, integer, number


def adac_ucb_bound(means: Vector, horizon: int, rho: Scalar, index_scale: Scalar = 3.1) -> float:
    """Leading terms of AdaC-UCB's regret: 8 beta log T / D + 8 sqrt(beta log T / rho), summed over the worse arms.

    Parameters
    ----------
    means : array of float [K]
        Expected rewards of the arms, in [0, 1].
    horizon : int
        Number of plays T, at least 1.
    rho : float
        Budget of zero-concentrated privacy, in (0, inf].
    index_scale : float, default 3.1
        beta, above 0.

    Returns
    -------
    float
        The sum over the arms of gap D > 0, in units of a reward, without terms of lower order in T. It may exceed T.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Derived for the algorithm of Azize and Basu 2023 (arXiv 2309.00557) as recalled:
    `docs/formulas/private_frontier.md#adac-ucb`

    Examples
    --------
    >>> round(adac_ucb_bound([0.75, 0.625, 0.5, 0.375, 0.25], 100_000, 0.1), 2)
    5363.21
    """
    values = array("means", means, 1, 0.0, 1.0)
    log = number("index_scale", index_scale, 0.0, open_low=True) * math.log(integer("horizon", horizon, 1))
    private = math.sqrt(log / number("rho", rho, 0.0, open_low=True, finite=False))
    gaps = values.max() - values
    return float(sum(8 * log / gap + 8 * private for gap in gaps[gaps > 0]))
