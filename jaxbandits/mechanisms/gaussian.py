"""The Gaussian mechanism: how much noise a claim needs, and what a given noise delivers.

Balle and Wang 2018, Theorem 8. With g = sensitivity / scale the mechanism is (epsilon, delta)-private exactly if
Phi(g/2 - epsilon/g) - e^epsilon Phi(-g/2 - epsilon/g) <= delta.
"""

import math
from typing import Any, Literal

import numpy as np

from jaxbandits.typing import Scalar
from jaxbandits.validation import choice, number

# Of sensitivity / scale: beyond it epsilon is half its square, to double precision, and before anything overflows.
MAX_RATIO = 1e50
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def _mills(x: Any) -> Any:
    """Phi(-x) / phi(x)."""
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _log_delta(ratio: float, epsilon: float) -> float:
    """log of the least delta at `epsilon`; ratio: sensitivity / scale > 0."""
    from scipy.special import ndtr

    near, far = epsilon / ratio - ratio / 2, epsilon / ratio + ratio / 2
    # e^epsilon phi(far) = phi(near), so that nothing of the size of epsilon is taken off anything
    if near < 0 and ratio >= 0.5:  # the first term is above 1/2
        return math.log(ndtr(-near) - math.exp(-near * near / 2) / math.sqrt(2 * math.pi) * _mills(far))
    # only a difference of Mills ratios is left, for small `ratio` as the integral of its slope
    if ratio < 0.5:
        x = near + ratio * (_NODES + 1) / 2
        difference = ratio / 2 * float(_WEIGHTS @ (1 - x * _mills(x)))
    else:
        difference = _mills(near) - _mills(far)
    # beyond the reach of a float the slope is 1 / x^2 and what is left of it is rounding
    difference = max(difference, ratio / (1 + far) ** 4)
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(difference)


def _budget(epsilon: Any, delta: Any) -> tuple[float, float]:
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    remedy = "Gaussian noise has no pure guarantee: give delta > 0, or use Laplace noise"
    return epsilon, number("delta", delta, 0.0, 1.0, open_low=True, open_high=True, remedy=remedy)


def zcdp_rho(epsilon: Scalar, delta: Scalar) -> float:
    """The largest rho whose zero-concentrated privacy implies (epsilon, delta)-privacy.

    Parameters
    ----------
    epsilon : float
        Privacy budget, in (0, inf]. inf gives inf.
    delta : float
        The claim's delta, in (0, 1).

    Returns
    -------
    float
        The rho, (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2. A Gaussian release spends sensitivity^2 / (2
        scale^2) of it.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Bun and Steinke 2016, Proposition 1.3

    Examples
    --------
    >>> round(zcdp_rho(1.0, 1e-5), 6)
    0.02082
    """
    epsilon, delta = _budget(epsilon, delta)
    return math.inf if math.isinf(epsilon) else _root_rho(epsilon, delta) ** 2


def _root_rho(epsilon: float, delta: float) -> float:
    """sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)), without its cancellation."""
    log = math.log(1 / delta)
    return epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))


def default_delta(delta: Scalar | None, horizon: int, most: float = 1e-3) -> Scalar:
    """The delta of a claim. None: one user's share of the plays, and never above `most`."""
    return min(most, 1 / horizon) if delta is None else delta


def gaussian_scale(
    sensitivity: Scalar, epsilon: Scalar, delta: Scalar, rule: Literal["classic", "analytic", "zcdp"] = "classic"
) -> float:
    """Standard deviation of Gaussian noise that makes a release (epsilon, delta)-private.

    Parameters
    ----------
    sensitivity : float
        Largest L2 change of the release between neighbouring inputs, > 0.
    epsilon : float
        Privacy budget, in (0, inf]. inf: no noise.
    delta : float
        The claim's delta, in (0, 1).
    rule : {"classic", "analytic", "zcdp"}, default "classic"
        "classic": sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, whose proof needs epsilon <= 1. "analytic":
        the least that suffices. "zcdp": by `zcdp_rho`, for adding up many releases.

    Returns
    -------
    float
        The standard deviation; 0.0 without noise.

    Raises
    ------
    ValueError
        For arguments outside these ranges, and for epsilon > 1 with `rule="classic"`.

    Notes
    -----
    Noise drawn in floating point simulates the mechanism; it is not a certified release.

    References
    ----------
    Dwork and Roth 2014, Theorem A.1 ("classic"); Balle and Wang 2018, Theorem 8 ("analytic"); Bun and Steinke
    2016 ("zcdp")

    Examples
    --------
    >>> round(gaussian_scale(1.0, 0.5, 1e-5), 4), round(gaussian_scale(1.0, 0.5, 1e-5, "analytic"), 4)
    (9.6896, 7.0318)
    """
    from scipy.optimize import brentq

    sensitivity = number("sensitivity", sensitivity, 0.0, open_low=True)
    epsilon, delta = _budget(epsilon, delta)
    choice("rule", rule, ("classic", "analytic", "zcdp"))
    if math.isinf(epsilon):
        return 0.0
    if rule == "zcdp":
        return sensitivity / (math.sqrt(2) * _root_rho(epsilon, delta))  # its square may underflow
    if rule == "classic":
        number("epsilon", epsilon, 0.0, 1.0, remedy='beyond 1 the classic rule is not proven: use rule="analytic"')
        return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    if epsilon > MAX_RATIO * MAX_RATIO:
        return sensitivity / math.sqrt(2) / math.sqrt(epsilon)
    low, high = -1.0, 1.0  # logarithms of sensitivity / scale
    while _log_delta(math.exp(low), epsilon) > math.log(delta):
        low *= 2
    while _log_delta(math.exp(high), epsilon) < math.log(delta):
        high *= 2
    root = brentq(lambda x: _log_delta(math.exp(x), epsilon) - math.log(delta), low, high, xtol=1e-15, rtol=1e-15)
    return sensitivity / math.exp(root)


def gaussian_delta(sensitivity: Scalar, scale: Scalar, epsilon: Scalar) -> float:
    """The least delta at which Gaussian noise is (epsilon, delta)-private.

    Parameters
    ----------
    sensitivity : float
        Largest L2 change of the release between neighbouring inputs, > 0.
    scale : float
        Standard deviation of the noise, in [0, inf].
    epsilon : float
        The claim's epsilon, in [0, inf).

    Returns
    -------
    float
        The delta; 1.0 without noise.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Balle and Wang 2018, Theorem 8

    Examples
    --------
    >>> round(gaussian_delta(1.0, gaussian_scale(1.0, 0.5, 1e-5, "analytic"), 0.5), 8)
    1e-05
    """
    sensitivity = number("sensitivity", sensitivity, 0.0, open_low=True)
    scale = number("scale", scale, 0.0, finite=False)
    epsilon = number("epsilon", epsilon, 0.0)
    ratio = sensitivity / scale if scale > 0 else math.inf
    if ratio == 0 or math.isinf(ratio):
        return 0.0 if ratio == 0 else 1.0
    if ratio > MAX_RATIO:
        return float(epsilon < ratio * ratio / 2)
    return math.exp(_log_delta(ratio, epsilon))


def gaussian_epsilon(sensitivity: Scalar, scale: Scalar, delta: Scalar) -> float:
    """The least epsilon at which Gaussian noise is (epsilon, delta)-private.

    Parameters
    ----------
    sensitivity : float
        Largest L2 change of the release between neighbouring inputs, > 0.
    scale : float
        Standard deviation of the noise, in [0, inf].
    delta : float
        The claim's delta, in (0, 1).

    Returns
    -------
    float
        The epsilon; inf without noise, and 0.0 where there is so much noise that delta alone covers it.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    References
    ----------
    Balle and Wang 2018, Theorem 8

    Examples
    --------
    >>> round(gaussian_epsilon(1.0, gaussian_scale(1.0, 0.5, 1e-5), 1e-5), 4)
    0.3526
    """
    from scipy.optimize import brentq

    sensitivity = number("sensitivity", sensitivity, 0.0, open_low=True)
    scale = number("scale", scale, 0.0, finite=False)
    delta = _budget(1.0, delta)[1]
    ratio = sensitivity / scale if scale > 0 else math.inf
    if math.isinf(ratio):
        return math.inf
    if ratio == 0 or math.erf(ratio / math.sqrt(8)) <= delta:
        return 0.0
    if ratio > MAX_RATIO:
        return ratio * ratio / 2
    high = 1.0
    while _log_delta(ratio, high) > math.log(delta):
        high *= 2
    return brentq(lambda x: _log_delta(ratio, x) - math.log(delta), 0.0, high, xtol=1e-300, rtol=1e-15)
