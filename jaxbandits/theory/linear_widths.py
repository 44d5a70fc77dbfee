"""Noise, ridges and widths of the linear comparators, computed on the host.

These are LinUCB, its locally private form (Zheng, Cai, Huang, Li and Wang 2020), its jointly private form (Shariff
and Sheffet 2018) and its form in the shuffle model (Chowdhury and Zhou 2022), in batches of B users. Formulas:
`docs/formulas/ldp_contextual.md#comparators`.

The preset "reference" is what the published code of Chowdhury and Zhou does
(`docs/formulas/ldp_contextual.md#reference-presets`). "theory" is the papers' own constants, recalled and not read
again. Widths and ridges of the shuffle model's theory presets are those of `tuning_of_users` at the noise of
one user, a choice of this package. T is the horizon, d the dimension, L the largest norm of a feature, R = 1/2 the
rewards' noise, D = 1 the bound on theta, alpha = 0.1 the theory's failure probability. `log` is natural.
"""

import math
from typing import NamedTuple

from jaxbandits.mechanisms.shuffle import SHARE, VectorCode, vector_code

REWARD_SCALE = 0.5  # R: rewards in [0, 1] are 1/2-sub-Gaussian
FAILURE_PROB = 0.1  # alpha
PLAIN_RIDGE = 1e-4  # the published code's ridge without noise


class Width(NamedTuple):
    """The width w_t = base + quartic t^(1/4) + slope sqrt(offset + log(1 + growth t)), t the 1-based play."""

    base: float
    quartic: float = 0.0
    slope: float = 0.0
    offset: float = 0.0
    growth: float = 0.0


class Tuning(NamedTuple):
    """One comparator's numbers. Scales are standard deviations of one draw of noise (of a node, for the tree)."""

    diagonal: float = 0.0  # of a diagonal entry of x x'
    off_diagonal: float = 0.0  # of an entry above the diagonal, mirrored below
    vector: float = 0.0  # of an entry of x y
    ridge: float = 0.0  # rho_t = ridge + ridge_root sqrt(t)
    ridge_root: float = 0.0
    width: Width = Width(0.0)


def reference_width(horizon: int, dim: int, shift: float, feature_norm: float) -> Width:
    """The width sqrt(shift d) + R sqrt(d log(T (1 + T L^2 / shift))), with Gamma as `shift`."""
    growth = math.log(horizon) + math.log1p(horizon * feature_norm**2 / shift)
    return Width(math.sqrt(shift * dim), slope=REWARD_SCALE * math.sqrt(dim), offset=growth)


def plain_tuning(preset: str, horizon: int, dim: int, feature_norm: float) -> Tuning:
    """LinUCB, without noise: `docs/formulas/ldp_contextual.md#linucb`.

    "reference" has Gamma = 1 and the ridge 1e-4; "theory" the ridge 1 and w_t = D + R sqrt(d log((1 + t L^2) T)).
    """
    if preset == "reference":
        return Tuning(ridge=PLAIN_RIDGE, width=reference_width(horizon, dim, 1.0, feature_norm))
    slope = REWARD_SCALE * math.sqrt(dim)
    return Tuning(ridge=1.0, width=Width(1.0, slope=slope, offset=math.log(horizon), growth=feature_norm**2))


def reference_tuning(scale: float, shift: float, horizon: int, dim: int, feature_norm: float) -> Tuning:
    """The noise (Z + Z') / 2 on x x', with Z of scale s, and noise of scale s on x y.

    The ridge is 2 Gamma, with Gamma = `shift`, and the width the reference one.
    """
    width = reference_width(horizon, dim, shift, feature_norm)
    return Tuning(scale, scale / math.sqrt(2), scale, ridge=2 * shift, width=width)


def tuning_of_users(preset: str, scale: float, shift: float, horizon: int, dim: int, feature_norm: float) -> Tuning:
    """Noise of scale s from every user; "reference" has Gamma = `shift`.

    "theory" is Zheng et al. 2020: independent noise on the upper triangle of x x', mirrored, and on x y.
    Upsilon_t = s sqrt(t) (4 sqrt(d) + 2 log(2 T / alpha)), rho_t = 2 Upsilon_t, w_t = 2 s sqrt(d log T) + (sqrt(3
    Upsilon_t) + s sqrt(d t / Upsilon_t)) d log T, a constant and a multiple of t^(1/4).
    """
    if scale == 0:
        return plain_tuning(preset, horizon, dim, feature_norm)
    if preset == "reference":
        return reference_tuning(scale, shift, horizon, dim, feature_norm)
    root, log = 4 * math.sqrt(dim) + 2 * math.log(2 * horizon / FAILURE_PROB), math.log(horizon)
    shift, quartic = scale * root, math.sqrt(scale) * (math.sqrt(3 * root) + math.sqrt(dim / root)) * dim * log
    return Tuning(scale, scale, scale, ridge_root=2 * shift, width=Width(2 * scale * math.sqrt(dim * log), quartic))


def local_tuning(preset: str, horizon: int, dim: int, epsilon: float, delta: float, feature_norm: float) -> Tuning:
    """LinUCB with local privacy: `docs/formulas/ldp_contextual.md#local-privacy`.

    "reference" has s = sqrt(log(2.5 / delta)) / epsilon and Gamma = s sqrt(T d); "theory" has
    s = 4 sqrt(2 log(1.25 / delta)) / epsilon.
    """
    root = math.sqrt(math.log(2.5 / delta)) if preset == "reference" else 4 * math.sqrt(2 * math.log(1.25 / delta))
    scale = root / epsilon
    return tuning_of_users(preset, scale, scale * math.sqrt(horizon * dim), horizon, dim, feature_norm)


class RunningSums(NamedTuple):
    """How a form of private running sums compares with the binary tree over as many reports, at equal spend."""

    noise: float  # column norm over that of the tree: what multiplies the noise of a draw
    deviation: float  # the largest deviation of a sum, in draws
    error: float  # column norm times deviation, over those of the tree: what multiplies ridge and width


def joint_tuning(
    preset: str, horizon: int, dim: int, epsilon: float, delta: float, feature_norm: float,
    sums: RunningSums | None = None,
) -> Tuning:  # fmt: skip
    """LinUCB with joint privacy: `docs/formulas/ldp_contextual.md#joint-privacy`.

    "reference" has s = sqrt(log T) log(2.5 / delta) / epsilon and Gamma = s sqrt(d log T).

    "theory" has m = ceil(log2 T) + 1 levels, s^2 = 16 m (L^2 + 1)^2 log(4 / delta)^2 / epsilon^2, and a node that
    adds (Z + Z') / sqrt(2) to the Gram matrix of (x, y). With Upsilon = s sqrt(2 m) (4 sqrt(d) + 2 log(2 T /
    alpha)) the ridge is 2 Upsilon, and w_t = sqrt(3 Upsilon) D + s sqrt(m / Upsilon) (sqrt(d) + sqrt(2 log(2 T /
    alpha))) + R sqrt(2 log(2 / alpha) + d log(3 + t L^2 / (d Upsilon))).

    sums: of another form than the tree. Its draws have the scale that spends as much, and ridge and width follow what
    its sums carry: in "theory" sqrt(m), the draws in a sum, is its largest deviation.
    """
    if math.isinf(epsilon):
        return plain_tuning(preset, horizon, dim, feature_norm)
    log = math.log(max(horizon, 2))  # one play needs noise too
    if preset == "reference":
        scale = math.sqrt(log) * math.log(2.5 / delta) / epsilon
        noise, error = (sums.noise, sums.error) if sums else (1.0, 1.0)
        return reference_tuning(noise * scale, error * scale * math.sqrt(dim * log), horizon, dim, feature_norm)
    levels, tail = (horizon - 1).bit_length() + 1, math.log(2 * horizon / FAILURE_PROB)
    scale = 4 * math.sqrt(levels) * (feature_norm**2 + 1) * math.log(4 / delta) / epsilon
    in_a_sum = math.sqrt(levels)
    if sums:
        scale, in_a_sum = sums.noise * scale, sums.deviation
    shift = scale * math.sqrt(2) * in_a_sum * (4 * math.sqrt(dim) + 2 * tail)
    base = math.sqrt(3 * shift) + scale * in_a_sum / math.sqrt(shift) * (math.sqrt(dim) + math.sqrt(2 * tail))
    offset = 2 * math.log(2 / FAILURE_PROB) / dim + math.log(3)
    width = Width(base, slope=REWARD_SCALE * math.sqrt(dim), offset=offset, growth=feature_norm**2 / (3 * dim * shift))
    return Tuning(math.sqrt(2) * scale, scale, scale, ridge=2 * shift, width=width)


def amplified_tuning(
    preset: str, horizon: int, dim: int, epsilon: float, delta: float, window: int, feature_norm: float
) -> Tuning:
    """LinUCB in the shuffle model, by amplification (SDP-Amp): `docs/formulas/ldp_contextual.md#shuffle-model`.

    "reference" has s = sqrt(log(2.5 B / delta)) / (epsilon sqrt B) and Gamma = s sqrt(T d). "theory" has s = 4
    sqrt(2 log(2.5 B / delta) log(2 / delta)) / (epsilon sqrt B), claimed for epsilon <= sqrt(log(2 / delta) / B).
    """
    log = math.log(2.5 * window / delta)
    root = math.sqrt(log / window) if preset == "reference" else 4 * math.sqrt(2 * log * math.log(2 / delta) / window)
    scale = root / epsilon
    return tuning_of_users(preset, scale, scale * math.sqrt(horizon * dim), horizon, dim, feature_norm)


def vector_tuning(
    preset: str, horizon: int, dim: int, epsilon: float, delta: float, window: int, feature_norm: float
) -> tuple[Tuning, VectorCode]:
    """LinUCB in the shuffle model, by sums of vectors (SDP-Vec): `docs/formulas/ldp_contextual.md#vector-code`.

    "reference" has Gamma = s sqrt(T d) / 4 with s = log(d / delta) / (epsilon sqrt B), which is a scale and not the
    noise. "theory" has b with the proved constant 24e4 log^2(4 (d^2 + 1) / delta), and the noise sqrt(b p (1 - p))
    L / g of a user.
    """
    if preset == "reference":
        code = vector_code(feature_norm, window, dim, epsilon, delta)
        scale = math.log(dim / delta) / epsilon / math.sqrt(window)
    else:
        log = math.log(4 * (dim**2 + 1) / delta)
        code = vector_code(feature_norm, window, dim, epsilon, delta, constant=24e4, log=log)
        scale = math.sqrt(code.trials / window * SHARE * (1 - SHARE)) * code.bound / code.levels
    shift = scale * math.sqrt(horizon * dim) / 4
    return tuning_of_users(preset, scale, shift, horizon, dim, feature_norm), code


def moment_sensitivity(feature_norm: float, weight: float = 1.0) -> float:
    """Largest change of (x x', sqrt(weight) x y) when one user's feature x and reward y change.

    In Frobenius and Euclidean norm together, with L = feature_norm and k = weight: the root of 2 L^4 + 2 k L^2 + k^2 /
    2 if 2 L^2 >= k, and of 4 k L^2 otherwise. It is attained for d >= 2. Rewards lie in [0, 1].

    Let r and q be the norms of the two features, c their cosine, and both rewards 1. The squared change is r^4 +
    q^4 - 2 r^2 q^2 c^2 + k (r^2 + q^2 - 2 r q c). If r q >= k / 2 its maximum over c is at c = -k / (2 r q) and
    equals r^4 + q^4 + k (r^2 + q^2) + k^2 / 2; otherwise it is at c = -1. Both grow with r and q. Rewards inside
    (0, 1) give less, since the change is convex in each and the pair (1, 0) stays below.

    >>> [round(moment_sensitivity(1.0, k) ** 2, 9) for k in (1.0, 2.0)]
    [4.5, 8.0]
    """
    square, k = feature_norm**2, weight
    return math.sqrt(2 * square**2 + 2 * k * square + k * k / 2 if 2 * square >= k else 4 * k * square)
