"""Exact absolute moments of the arms' laws: E|X|^order, or E|X - mean|^order if central, on the host in float64.

Every function takes the law's numbers first, then order > 0 (real) and `central`. It returns [K], inf where the
moment does not exist. Closed forms (`docs/formulas/private_robust_mab.md#reward-laws`) are used where there are any,
and otherwise quadrature that is told where the integrand has kinks.
"""

import itertools
import math

import numpy as np

from jaxbandits.typing import Scalar
from jaxbandits.validation import number


def _order(order: Scalar) -> float:
    return number("order", order, 0.0, open_low=True)


def bernoulli(means: np.ndarray, order: Scalar, central: bool = False) -> np.ndarray:
    """p, or p (1 - p)^order + (1 - p) p^order."""
    k = _order(order)
    return means * (1 - means) ** k + (1 - means) * means**k if central else means.copy()


def gaussian(means: np.ndarray, scale: Scalar, order: Scalar, central: bool = False) -> np.ndarray:
    """scale^order 2^(order/2) Gamma((order + 1)/2) / sqrt(pi).

    The raw moment is that times 1F1(-order/2; 1/2; -mean^2 / (2 scale^2)).
    """
    from scipy import special

    k = _order(order)
    if scale == 0:
        return np.zeros(len(means)) if central else np.abs(means) ** k
    with np.errstate(over="ignore"):  # beyond 1e308: infinite for every purpose
        noise = np.exp(k * math.log(scale) + k / 2 * math.log(2) + special.gammaln((k + 1) / 2) - math.log(math.pi) / 2)
        if central:
            return np.full(len(means), noise)
        return noise * special.hyp1f1(-k / 2, 0.5, -((means / scale) ** 2) / 2)


def student(means: np.ndarray, scale: Scalar, df: Scalar, order: Scalar, central: bool = False) -> np.ndarray:
    """scale^order df^(order/2) Gamma((order + 1)/2) Gamma((df - order)/2) / (sqrt(pi) Gamma(df/2)).

    The raw moment is computed by quadrature.
    """
    from scipy import special

    k = _order(order)
    if scale == 0:
        return np.zeros(len(means)) if central else np.abs(means) ** k
    if k >= df:
        return np.full(len(means), np.inf)
    if not central:
        return np.array([_raw_student(mean, scale * math.sqrt(df), df, k) for mean in means])
    logs = special.gammaln((k + 1) / 2) + special.gammaln((df - k) / 2) - special.gammaln(df / 2)
    with np.errstate(over="ignore"):
        return np.full(len(means), np.exp(k * math.log(scale) + k / 2 * math.log(df) + logs - math.log(math.pi) / 2))


def _raw_student(mean, width, df, k) -> float:
    """With t = sqrt(df) tan(angle): the integral of |mean cos + width sin|^k cos^(df - 1 - k) over (-pi/2, pi/2).

    That is (size |sin x|)^k |sin(length - x)|^(df - 1 - k), x the distance from the root of mean cos + width sin to
    either end at distance `length`: algebraic at both, which the quadrature's weight treats exactly.
    """
    from scipy import integrate, special

    if df > 30:  # the density falls so fast that plain quadrature, told the kink, is exact; powers of sines lose digits
        scale, kink = width / math.sqrt(df), -mean / (width / math.sqrt(df))
        log_norm = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - math.log(df * math.pi) / 2

        def density(x):
            return abs(mean + scale * x) ** k * math.exp(log_norm - (df + 1) / 2 * math.log1p(x * x / df))

        edges = itertools.pairwise(sorted({-np.inf, -8.0, 0.0, 8.0, min(max(kink, -60.0), 60.0), np.inf}))
        return sum(integrate.quad(density, *pair, epsabs=0, epsrel=1e-11, limit=200)[0] for pair in edges)
    size, root, power = math.hypot(mean, width), -math.atan2(mean, width), df - 1 - k

    def smooth(x, length):
        return (size * np.sinc(x / math.pi)) ** k * np.sinc((length - x) / math.pi) ** power

    total = sum(
        integrate.quad(smooth, 0, length, (length,), weight="alg", wvar=(k, power), epsabs=0, epsrel=1e-11)[0]
        for length in (math.pi / 2 - root, math.pi / 2 + root)
    )
    return total * math.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2)) / math.sqrt(math.pi)


def pareto(means: np.ndarray, shape: Scalar, order: Scalar, central: bool = False) -> np.ndarray:
    """shape x0^order / (shape - order); central by a beta function below the mean and a hypergeometric one above."""
    from scipy import special

    k = _order(order)
    if k >= shape:
        return np.full(len(means), np.inf)
    lowest = (shape - 1) / shape  # for mean 1
    if not central:
        return means**k * shape * lowest**k / (shape - k)
    # E|X - 1|^k = shape * integral over v in (0, 1) of |lowest - v|^k v^(shape - 1 - k), with X = lowest / v
    above = special.beta(shape - k, k + 1)
    x = 1 / shape
    below = x ** (k + 1) / (k + 1) * special.hyp2f1(k + 1, shape + 1, k + 2, x)
    return means**k * shape * lowest**shape * (above + below)


def lognormal(means: np.ndarray, sigma: Scalar, order: Scalar, central: bool = False) -> np.ndarray:
    """mean^order exp((order^2 - order) sigma^2 / 2); central by quadrature over the normal, split at the mean."""
    from scipy import integrate

    k = _order(order)
    if not central:
        with np.errstate(over="ignore"):  # beyond 1e308: infinite for every purpose
            return means**k * np.exp((k * k - k) * sigma**2 / 2)
    if sigma == 0:
        return np.zeros(len(means))

    def density(z):  # |exp(sigma z - sigma^2 / 2) - 1|^k phi(z), in logarithms: the power alone may overflow
        gap = sigma * z - sigma**2 / 2
        size = gap + np.log(-np.expm1(-gap)) if gap > 0 else np.log(-np.expm1(gap)) if gap < 0 else -np.inf
        return math.exp(k * size - z * z / 2) / math.sqrt(2 * math.pi)

    kink, peak = sigma / 2, max(k * sigma, sigma / 2)
    edges = itertools.pairwise([-12.0, kink, peak, peak + 14])
    parts = [integrate.quad(density, a, b, epsabs=1e-300, epsrel=1e-11, limit=200)[0] for a, b in edges]
    return means**k * sum(parts)
