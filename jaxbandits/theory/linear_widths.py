"""Noise, ridges and widths of the linear comparators: LinUCB, its locally private form (Zheng, Cai, Huang, Li and Wang 2020), its
jointly private one (Shariff and Sheffet 2018) and its form in the shuffle model (Chowdhury and Zhou 2022), in batches of B users.
Specification of locally private linear bandits, section 7.

"reference" is what the published code of Chowdhury and Zhou does, "theory" the papers' own constants (recalled, not re-read). T is the
horizon, d the dimension, L the largest norm of a feature, R = 1/2 the rewards' noise, D = 1 the bound on theta, alpha = 0.1 the
theory's failure probability. Widths and ridges of the shuffle model's theory presets are those of `local_theory_tuning` at the noise of one
user: our choice. `log` is natural. Everything here is computed on the host.
"""

import math
from typing import NamedTuple

from jaxbandits.mechanisms.shuffle import SHARE, VectorCode, vector_code

REWARD_SCALE = 0.5  # R: rewards in [0, 1] are 1/2-sub-Gaussian
FAILURE = 0.1  # alpha
PLAIN_RIDGE = 1e-4  # the published code's ridge without noise


class Width(NamedTuple):
    """w_t = base + quartic t^(1/4) + slope sqrt(offset + log(1 + growth t)), t the 1-based play."""

    base: float
    quartic: float = 0.0
    slope: float = 0.0
    offset: float = 0.0
    growth: float = 0.0


class Tuning(NamedTuple):
    """One comparator's numbers. Scales are standard deviations of one draw of noise (of a node, for the tree)."""

    diagonal: float  # of a diagonal entry of x x'
    off_diagonal: float  # of an entry above the diagonal, mirrored below
    vector: float  # of an entry of x y
    ridge: float  # rho_t = ridge + ridge_root sqrt(t)
    ridge_root: float
    width: Width


def reference_width(horizon, dim, shift, feature_norm) -> Width:
    """sqrt(shift d) + R sqrt(d log(T (1 + T L^2 / shift))), shift: Gamma."""
    growth = math.log(horizon) + math.log1p(horizon * feature_norm**2 / shift)
    return Width(math.sqrt(shift * dim), slope=REWARD_SCALE * math.sqrt(dim), offset=growth)


def plain_tuning(preset, horizon, dim, feature_norm) -> Tuning:
    """LinUCB: no noise. reference: Gamma = 1, ridge 1e-4; theory: ridge lambda = 1, w_t = D + R sqrt(d log((1 + t L^2) T))."""
    if preset == "reference":
        return Tuning(0.0, 0.0, 0.0, PLAIN_RIDGE, 0.0, reference_width(horizon, dim, 1.0, feature_norm))
    slope = REWARD_SCALE * math.sqrt(dim)
    width = Width(1.0, slope=slope, offset=math.log(horizon), growth=feature_norm**2)
    return Tuning(0.0, 0.0, 0.0, 1.0, 0.0, width)


def reference_tuning(scale, shift, horizon, dim, feature_norm) -> Tuning:
    """(Z + Z') / 2 on x x' and noise on x y, Z of scale s; ridge 2 Gamma, Gamma = `shift`, and the reference width."""
    width = reference_width(horizon, dim, shift, feature_norm)
    return Tuning(scale, scale / math.sqrt(2), scale, 2 * shift, 0.0, width)


def local_theory_tuning(scale, horizon, dim) -> Tuning:
    """Zheng et al.: independent noise of scale s on the upper triangle of x x', mirrored, and on x y.

    Upsilon_t = s sqrt(t) (4 sqrt(d) + 2 log(2 T / alpha)), rho_t = 2 Upsilon_t,
    w_t = 2 s sqrt(d log T) + (sqrt(3 Upsilon_t) + s sqrt(d t / Upsilon_t)) d log T, a constant and a multiple of t^(1/4).
    """
    root, log = 4 * math.sqrt(dim) + 2 * math.log(2 * horizon / FAILURE), math.log(horizon)
    shift, quartic = scale * root, math.sqrt(scale) * (math.sqrt(3 * root) + math.sqrt(dim / root)) * dim * log
    return Tuning(scale, scale, scale, 0.0, 2 * shift, Width(2 * scale * math.sqrt(dim * log), quartic))


def local_tuning(preset, horizon, dim, epsilon, delta, feature_norm) -> Tuning:
    """LDP. reference: s = sqrt(log(2.5 / delta)) / epsilon, Gamma = s sqrt(T d); theory: s = 4 sqrt(2 log(1.25 / delta)) / epsilon."""
    if math.isinf(epsilon):
        return plain_tuning(preset, horizon, dim, feature_norm)
    if preset == "reference":
        scale = math.sqrt(math.log(2.5 / delta)) / epsilon
        return reference_tuning(scale, scale * math.sqrt(horizon * dim), horizon, dim, feature_norm)
    return local_theory_tuning(4 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon, horizon, dim)


def joint_tuning(preset, horizon, dim, epsilon, delta, feature_norm) -> Tuning:
    """JDP. reference: s = sqrt(log T) log(2.5 / delta) / epsilon, Gamma = s sqrt(d log T). theory, m = ceil(log2 T) + 1 levels:

    s^2 = 16 m (L^2 + 1)^2 log(4 / delta)^2 / epsilon^2, a node adds (Z + Z') / sqrt(2) to the Gram matrix of (x, y),
    Upsilon = s sqrt(2 m) (4 sqrt(d) + 2 log(2 T / alpha)), ridge 2 Upsilon, w_t = sqrt(3 Upsilon) D + s sqrt(m / Upsilon)
    (sqrt(d) + sqrt(2 log(2 T / alpha))) + R sqrt(2 log(2 / alpha) + d log(3 + t L^2 / (d Upsilon))).
    """
    if math.isinf(epsilon):
        return plain_tuning(preset, horizon, dim, feature_norm)
    log = math.log(max(horizon, 2))  # one play needs noise too
    if preset == "reference":
        scale = math.sqrt(log) * math.log(2.5 / delta) / epsilon
        return reference_tuning(scale, scale * math.sqrt(dim * log), horizon, dim, feature_norm)
    levels, tail = (horizon - 1).bit_length() + 1, math.log(2 * horizon / FAILURE)
    scale = 4 * math.sqrt(levels) * (feature_norm**2 + 1) * math.log(4 / delta) / epsilon
    shift = scale * math.sqrt(2 * levels) * (4 * math.sqrt(dim) + 2 * tail)
    base = math.sqrt(3 * shift) + scale * math.sqrt(levels / shift) * (math.sqrt(dim) + math.sqrt(2 * tail))
    offset = 2 * math.log(2 / FAILURE) / dim + math.log(3)
    width = Width(base, slope=REWARD_SCALE * math.sqrt(dim), offset=offset, growth=feature_norm**2 / (3 * dim * shift))
    return Tuning(math.sqrt(2) * scale, scale, scale, 2 * shift, 0.0, width)


def amplified_tuning(preset, horizon, dim, epsilon, delta, window, feature_norm) -> Tuning:
    """SDP-Amp. reference: s = sqrt(log(2.5 B / delta)) / (epsilon sqrt B), Gamma = s sqrt(T d).

    theory: s = 4 sqrt(2 log(2.5 B / delta) log(2 / delta)) / (epsilon sqrt B), claimed for epsilon <= sqrt(log(2 / delta) / B).
    """
    if math.isinf(epsilon):
        return plain_tuning(preset, horizon, dim, feature_norm)
    log = math.log(2.5 * window / delta)
    if preset == "reference":
        scale = math.sqrt(log / window) / epsilon
        return reference_tuning(scale, scale * math.sqrt(horizon * dim), horizon, dim, feature_norm)
    scale = 4 * math.sqrt(2 * log * math.log(2 / delta) / window) / epsilon
    return local_theory_tuning(scale, horizon, dim)


def vector_tuning(preset, horizon, dim, epsilon, delta, window, feature_norm) -> tuple[Tuning, VectorCode]:
    """SDP-Vec. reference: Gamma = s sqrt(T d) / 4, s = log(d / delta) / (epsilon sqrt B): a scale, not the noise.

    theory: b with the proved constant 24e4 log^2(4 (d^2 + 1) / delta), per-user noise sqrt(b p (1 - p)) L / g.
    """
    if preset == "reference":
        code = vector_code(feature_norm, window, dim, epsilon, delta)
    else:
        log = math.log(4 * (dim**2 + 1) / delta)
        code = vector_code(feature_norm, window, dim, epsilon, delta, constant=24e4, log=log)
    if math.isinf(epsilon) or (preset == "theory" and code.trials == 0):
        return plain_tuning(preset, horizon, dim, feature_norm), code
    if preset == "reference":
        scale = math.log(dim / delta) / epsilon / math.sqrt(window)
        return reference_tuning(scale, scale * math.sqrt(horizon * dim) / 4, horizon, dim, feature_norm), code
    scale = math.sqrt(code.trials / window * SHARE * (1 - SHARE)) * code.bound / code.levels
    return local_theory_tuning(scale, horizon, dim), code


def moment_sensitivity(feature_norm, weight=1.0) -> float:
    """Largest change of (x x', sqrt(weight) x y) in Frobenius and Euclidean norm when one user's x, ||x|| <= L, and y in [0, 1] change.

    With r, q the norms and c the cosine of two features and y = w = 1 the squared change is
    r^4 + q^4 - 2 r^2 q^2 c^2 + k (r^2 + q^2 - 2 r q c), k = `weight`. If r q >= k / 2 its maximum over c is at c = -k / (2 r q) and equals
    r^4 + q^4 + k (r^2 + q^2) + k^2 / 2; otherwise it is at c = -1. Both grow with r and q, and y, w in (0, 1) give less (the
    change is convex in each, and (1, 0) stays below): 2 L^4 + 2 k L^2 + k^2 / 2 if 2 L^2 >= k, else 4 k L^2; attained for d >= 2.

    >>> [round(moment_sensitivity(1.0, k) ** 2, 9) for k in (1.0, 2.0)]
    [4.5, 8.0]
    """
    square, k = feature_norm**2, weight
    return math.sqrt(2 * square**2 + 2 * k * square + k * k / 2 if 2 * square >= k else 4 * k * square)
