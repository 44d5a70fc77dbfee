"""What contamination leaves of the distance of two normal arms. Formulas: docs/formulas/robust_frontier.md#crimed."""

import math
from typing import Annotated

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge
from scipy.special import ndtr, ndtri

from jaxbandits.declared import Axes, Remedy, Share
from jaxbandits.typing import Float, Vector
from jaxbandits.validation import checked

Contamination = Annotated[Share, Remedy("1/2 is the breakdown point"), Doc("Share eps of contaminated values.")]

HALVINGS = 80  # halvings of an interval of ln c; those of a float64 end before


@checked(source="`docs/formulas/robust_frontier.md#crimed`")
def median_shift(corruption_bound: Contamination) -> float:
    """How far contamination can move the median of a normal law, in standard deviations.

    It is b = Phi^-1(1 / (2 (1 - eps))), 0 without contamination.

    >>> round(median_shift(0.05), 9)
    0.066011812
    """
    return float(ndtri(1 / (2 * (1 - corruption_bound))))


@checked(source="Derived: `docs/formulas/robust_frontier.md#crimed`")
def contaminated_divergence(
    gaps: Annotated[Vector, Axes(1, "array of float [n]"), Ge(0)], corruption_bound: Contamination
) -> Float[np.ndarray, " n"]:
    """The least Kullback-Leibler divergence of two normal laws of variance 1 that are both contaminated.

    Parameters
    ----------
    gaps
        Distances g of the two means, in standard deviations.

    Returns
    -------
    array of float64 [n]
        d_eps(g): 0 for g up to twice `median_shift`, at most g^2 / 2, and g^2 / 2 without contamination.

    Notes
    -----
    It is that of the least favourable pair of Huber and Strassen. With c > 1 the solution of Phi(u) + Phi(l) / c =
    1 / (1 - eps), u = g / 2 + ln(c) / g and l = g - u, it is (1 - eps) (ln(c) (1 - 1 / c) Phi(l) + g^2 / 2 (Phi(u) -
    Phi(l)) - g (phi(l) - phi(u))).

    >>> contaminated_divergence([0.2, 0.5, 1.0], 0.1).round(4).tolist()
    [0.0, 0.0131, 0.1404]
    """
    g, share, shift = np.asarray(gaps), corruption_bound, median_shift(corruption_bound)
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
