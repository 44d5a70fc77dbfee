"""What Skellam noise on integer sums costs, on the host.

Formulas: docs/formulas/private_frontier.md#secure-aggregation.
"""

import math

from jaxbandits.typing import Scalar
from jaxbandits.validation import integer, number

# orders tried for a conversion: at epsilon = 0.01 and delta = 1e-10 the best is near 700
MOST_ORDERS = 1024


def skellam_rdp(order: int, epsilon: Scalar, precision_scale: Scalar) -> float:
    """The Renyi divergence that one block of `dist_elimination(noise="skellam")` costs at most.

    Parameters
    ----------
    order : int
        The Renyi order a, at least 2.
    epsilon : float
        The nominal budget, greater than 0 and finite: noise of standard deviation g / epsilon on sums of integers in
        [0, g].
    precision_scale : float
        s, greater than 0: g is at least s epsilon.

    Returns
    -------
    float
        a epsilon^2 / 2 + min{(2a - 1) epsilon^2 / (4 s^2) + 3 epsilon / (2 s^3), 3 max(epsilon, epsilon^2) / (2 s)}.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    The printed last term is 3 epsilon^2 / (2 s), which asks for g >= s; below epsilon = 1 short blocks have a smaller
    g, and 3 epsilon / (2 s) is what holds for them.

    References
    ----------
    Chowdhury and Zhou (ICLR 2023), Theorem 2: `docs/formulas/private_frontier.md#secure-aggregation`

    Examples
    --------
    >>> skellam_rdp(8, 1.0, 10.0)
    4.039
    """
    order = integer("order", order, 2)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True)
    s = number("precision_scale", precision_scale, 0.0, open_low=True)
    fine = (2 * order - 1) * epsilon**2 / (4 * s**2) + 3 * epsilon / (2 * s**3)
    return order * epsilon**2 / 2 + min(fine, 3 * max(epsilon, epsilon**2) / (2 * s))


def skellam_epsilon(epsilon: Scalar, precision_scale: Scalar, delta: Scalar) -> float:
    """The epsilon at `delta` that one block of `dist_elimination(noise="skellam")` spends at most.

    Parameters
    ----------
    epsilon : float
        The nominal budget, greater than 0 and finite.
    precision_scale : float
        s, greater than 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The least over integer orders a of skellam_rdp(a) + ln(1 - 1/a) - (ln delta + ln a) / (a - 1), at least 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    `docs/formulas/private_frontier.md#secure-aggregation`

    Examples
    --------
    >>> round(skellam_epsilon(1.0, 10.0, 1e-5), 4)
    4.7767
    """
    delta = number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    orders = range(2, MOST_ORDERS)
    converted = (math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in orders)
    spent = (skellam_rdp(a, epsilon, precision_scale) + more for a, more in zip(orders, converted, strict=True))
    return max(0.0, min(spent))
