"""The Gaussian mechanism: how much noise a claim needs, and what a given noise delivers.

Balle and Wang 2018, Theorem 8. With g = sensitivity / scale the mechanism is (epsilon, delta)-private exactly if
Phi(g/2 - epsilon/g) - e^epsilon Phi(-g/2 - epsilon/g) <= delta.
"""

import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np

from jaxbandits import declared
from jaxbandits.declared import Doc, Ge, Gt, Le, NonNegative, Remedy
from jaxbandits.typing import Numeric, Scalar
from jaxbandits.validation import declare, number

Sensitivity = Annotated[Scalar, Gt(0), Doc("Largest L2 change of the release between neighbouring inputs.")]
Epsilon = Annotated[declared.Epsilon, Doc("Privacy budget; inf: no noise.")]
Delta = Annotated[declared.Delta, Remedy("Gaussian noise has no pure guarantee: give delta > 0, or use Laplace noise")]
Deviation = Annotated[Scalar, Ge(0), Le(math.inf), Doc("Standard deviation of the noise.")]
ClaimedEpsilon = Annotated[NonNegative, Doc("The claim's epsilon, finite.")]
ScaleRule = Literal["classic", "analytic", "zcdp"]

# Of sensitivity / scale: beyond it epsilon is half its square, to double precision, and before anything overflows.
MAX_RATIO = 1e50
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def _mills(x: Numeric) -> Numeric:
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
    # beyond the reach of a float nothing is left of it but rounding, and its size does not matter
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(max(difference, 5e-324))


def _root(function: Callable[[float], float], low: float, high: float, absolute: float) -> float:
    """The root between two points of different signs, by Brent's method, within 1e-15 of itself or `absolute`.

    Bit for bit that of `scipy.optimize.brentq`, whose import would take as long as that of xarray.
    """
    before, now, across = low, high, low
    f_before, f_now = function(before), function(now)
    f_across = f_before
    if f_before == 0:
        return before
    last = step = now - before
    while True:
        if f_before != 0 and f_now != 0 and (f_before < 0) != (f_now < 0):
            across, f_across = before, f_before
            last = step = now - before
        if abs(f_across) < abs(f_now):
            before, now, across = now, across, now
            f_before, f_now, f_across = f_now, f_across, f_now
        least, half = (absolute + 1e-15 * abs(now)) / 2, (across - now) / 2
        if f_now == 0 or abs(half) < least:
            return now
        attempt = math.inf
        if abs(last) > least and abs(f_now) < abs(f_before):
            if before == across:
                attempt = -f_now * (now - before) / (f_now - f_before)
            else:
                near, far = (f_before - f_now) / (before - now), (f_across - f_now) / (across - now)
                attempt = -f_now * (f_across * far - f_before * near) / (far * near * (f_across - f_before))
        if 2 * abs(attempt) < min(abs(last), 3 * abs(half) - least):
            last, step = step, attempt
        else:
            last = step = half
        before, f_before = now, f_now
        now += step if abs(step) > least else math.copysign(least, half)
        f_now = function(now)


@declare(source="Bun and Steinke 2016, Proposition 1.3")
def zcdp_rho(epsilon: Annotated[Epsilon, Doc("Privacy budget. inf gives inf.")], delta: Delta) -> float:
    """The largest rho whose zero-concentrated privacy implies (epsilon, delta)-privacy.

    It is (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2. A Gaussian release spends sensitivity^2 / (2 scale^2)
    of it.

    >>> round(zcdp_rho(1.0, 1e-5), 6)
    0.02082
    """
    return math.inf if math.isinf(epsilon) else _root_rho(float(epsilon), float(delta)) ** 2


def _root_rho(epsilon: float, delta: float) -> float:
    """sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)), without its cancellation."""
    log = math.log(1 / delta)
    return epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))


def default_delta(delta: Scalar | None, horizon: int, most: float = 1e-3) -> Scalar:
    """The delta of a claim. None: one user's share of the plays, and never above `most`."""
    return min(most, 1 / horizon) if delta is None else delta


@declare(
    source='Dwork and Roth 2014, Theorem A.1 ("classic"); Balle and Wang 2018, Theorem 8 ("analytic"); Bun and '
    'Steinke 2016 ("zcdp")'
)
def gaussian_scale(sensitivity: Sensitivity, epsilon: Epsilon, delta: Delta, rule: ScaleRule = "classic") -> float:
    """Standard deviation of Gaussian noise that makes a release (epsilon, delta)-private.

    It is 0.0 without noise.

    Args:
        rule: "classic": sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, whose proof needs epsilon <= 1. "analytic": the
            least that suffices. "zcdp": by `zcdp_rho`, for adding up many releases.

    Raises:
        ValueError: For arguments outside these ranges, and for epsilon > 1 with `rule="classic"`.

    Note:
        Noise drawn in floating point simulates the mechanism; it is not a certified release.

    >>> round(gaussian_scale(1.0, 0.5, 1e-5), 4), round(gaussian_scale(1.0, 0.5, 1e-5, "analytic"), 4)
    (9.6896, 7.0318)
    """
    sensitivity, epsilon, delta = float(sensitivity), float(epsilon), float(delta)
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
    root = _root(lambda x: _log_delta(math.exp(x), epsilon) - math.log(delta), low, high, 1e-15)
    return sensitivity / math.exp(root)


@declare(source="Balle and Wang 2018, Theorem 8")
def gaussian_delta(sensitivity: Sensitivity, scale: Deviation, epsilon: ClaimedEpsilon) -> float:
    """The least delta at which Gaussian noise is (epsilon, delta)-private.

    It is 1.0 without noise.

    >>> round(gaussian_delta(1.0, gaussian_scale(1.0, 0.5, 1e-5, "analytic"), 0.5), 8)
    1e-05
    """
    ratio = float(sensitivity / scale) if scale > 0 else math.inf
    if ratio == 0 or math.isinf(ratio):
        return 0.0 if ratio == 0 else 1.0
    if ratio > MAX_RATIO:
        return float(epsilon <= ratio * ratio / 2)  # from above: at equality it is a half
    return math.exp(_log_delta(ratio, float(epsilon)))


@declare(source="Balle and Wang 2018, Theorem 8")
def gaussian_epsilon(sensitivity: Sensitivity, scale: Deviation, delta: Delta) -> float:
    """The least epsilon at which Gaussian noise is (epsilon, delta)-private.

    It is inf without noise, and 0.0 where there is so much noise that delta alone covers it.

    >>> round(gaussian_epsilon(1.0, gaussian_scale(1.0, 0.5, 1e-5), 1e-5), 4)
    0.3526
    """
    ratio = float(sensitivity / scale) if scale > 0 else math.inf
    if math.isinf(ratio):
        return math.inf
    if ratio == 0 or math.erf(ratio / math.sqrt(8)) <= delta:
        return 0.0
    if ratio > MAX_RATIO:
        return ratio * ratio / 2
    high = 1.0
    while _log_delta(ratio, high) > math.log(delta):
        high *= 2
    return _root(lambda x: _log_delta(ratio, x) - math.log(delta), 0.0, high, 1e-300)
