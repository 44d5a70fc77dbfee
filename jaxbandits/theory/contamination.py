"""What contamination leaves of the distance of two normal arms. Formulas: docs/formulas/robust_frontier.md#crimed."""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from jaxbandits.typing import Float, Scalar, Vector
from jaxbandits.validation import array, number

# Halvings of an interval of ln c; those of a float64 end before.
HALVINGS = 80


def median_shift(corruption_bound: Scalar) -> float:
    """How far contamination can move the median of a normal law, in standard deviations.

    Parameters
    ----------
    corruption_bound : float
        Share eps of contaminated values, in [0, 1/2).

    Returns
    -------
    float
        b = Phi^-1(1 / (2 (1 - eps))), 0 without contamination.

    Raises
    ------
    ValueError
        If the share lies outside its range.

    References
    ----------
    `docs/formulas/robust_frontier.md#crimed`

    Examples
    --------
    >>> round(median_shift(0.05), 9)
    0.066011812
    """
    share = number("corruption_bound", corruption_bound, 0.0, 0.5, open_high=True, remedy="1/2 is the breakdown point")
    return float(ndtri(1 / (2 * (1 - share))))


def contaminated_divergence(gaps: Vector, corruption_bound: Scalar) -> Float[np.ndarray, " n"]:
    """The least Kullback-Leibler divergence of two normal laws of variance 1 that are both contaminated.

    Parameters
    ----------
    gaps : array of float [n]
        Distances g of the two means, in standard deviations, at least 0.
    corruption_bound : float
        Share eps of contaminated values, in [0, 1/2).

    Returns
    -------
    array of float64 [n]
        d_eps(g): 0 for g up to twice `median_shift`, at most g^2 / 2, and g^2 / 2 without contamination.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    It is that of the least favourable pair of Huber and Strassen. With c > 1 the solution of Phi(u) + Phi(l) / c =
    1 / (1 - eps), u = g / 2 + ln(c) / g and l = g - u, it is (1 - eps) (ln(c) (1 - 1 / c) Phi(l) + g^2 / 2 (Phi(u) -
    Phi(l)) - g (phi(l) - phi(u))).

    References
    ----------
    Derived: `docs/formulas/robust_frontier.md#crimed`

    Examples
    --------
    >>> contaminated_divergence([0.2, 0.5, 1.0], 0.1).round(4).tolist()
    [0.0, 0.0131, 0.1404]
    """
    g, shift = array("gaps", gaps, 1, 0.0), median_shift(corruption_bound)
    share = float(corruption_bound)
    if share == 0:
        return g * g / 2
    far = g > 2 * shift
    g = np.where(far, g, 1.0)  # any gap, where the answer is 0
    odds = share / (1 - share)
    # Phi(l) / c >= eps / (1 - eps), so that ln c is at most this
    low, high = np.zeros_like(g), np.full_like(g, math.log(1 / odds))
    for _ in range(HALVINGS):
        log_c = (low + high) / 2
        u = g / 2 + log_c / g
        more = ndtr(g - u) * np.exp(-log_c) - ndtr(-u) > odds  # the left side falls as c grows
        low, high = np.where(more, log_c, low), np.where(more, high, log_c)
    u = g / 2 + low / g
    inside, outside = ndtr(g - u), ndtr(u)
    slope = (np.exp(-((g - u) ** 2) / 2) - np.exp(-(u**2) / 2)) / math.sqrt(2 * math.pi)
    value = low * -np.expm1(-low) * inside + g * g / 2 * (outside - inside) - g * slope
    return np.where(far, np.maximum((1 - share) * value, 0), 0.0)
