"""Noise, ridges and widths of the linear comparators, computed on the host.

Their formulas are L34 to L44 of `docs/formulas/ldp_contextual.md#comparators`, in the letters that are used here: T is
the horizon, d the dimension, B the users of a batch, L the largest norm of a feature, R = 1/2 the rewards' noise, D = 1
the bound on theta, alpha = 0.1 the theory's failure probability.
"""

import math
from typing import NamedTuple

from jaxbandits.mechanisms.shuffle import BINOMIAL_SHARE, VectorCode, vector_code

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


class LinearTuning(NamedTuple):
    """One comparator's numbers. Scales are standard deviations of one draw of noise (of a node, for the tree)."""

    diagonal: float = 0.0  # of a diagonal entry of x x'
    off_diagonal: float = 0.0  # of an entry above the diagonal, mirrored below
    vector: float = 0.0  # of an entry of x y
    ridge: float = 0.0  # rho_t = ridge + ridge_root sqrt(t)
    ridge_root: float = 0.0
    width: Width = Width(0.0)


def reference_width(horizon: int, dim: int, shift: float, feature_norm: float) -> Width:
    """The width of L35, with Gamma as `shift`."""
    growth = math.log(horizon) + math.log1p(horizon * feature_norm**2 / shift)
    return Width(math.sqrt(shift * dim), slope=REWARD_SCALE * math.sqrt(dim), offset=growth)


def plain_tuning(preset: str, horizon: int, dim: int, feature_norm: float) -> LinearTuning:
    """LinUCB, without noise: L35 and L36."""
    if preset == "reference":
        return LinearTuning(ridge=PLAIN_RIDGE, width=reference_width(horizon, dim, 1.0, feature_norm))
    slope = REWARD_SCALE * math.sqrt(dim)
    return LinearTuning(ridge=1.0, width=Width(1.0, slope=slope, offset=math.log(horizon), growth=feature_norm**2))


def reference_tuning(scale: float, shift: float, horizon: int, dim: int, feature_norm: float) -> LinearTuning:
    """The noise of L37 with scale s, and L35 with Gamma as `shift`."""
    width = reference_width(horizon, dim, shift, feature_norm)
    return LinearTuning(scale, scale / math.sqrt(2), scale, ridge=2 * shift, width=width)


def tuning_of_users(
    preset: str, scale: float, shift: float, horizon: int, dim: int, feature_norm: float
) -> LinearTuning:
    """Noise of scale s from every user: by L35 with Gamma as `shift`, or by L38."""
    if scale == 0:
        return plain_tuning(preset, horizon, dim, feature_norm)
    if preset == "reference":
        return reference_tuning(scale, shift, horizon, dim, feature_norm)
    root, log = 4 * math.sqrt(dim) + 2 * math.log(2 * horizon / FAILURE_PROB), math.log(horizon)
    shift, quartic = scale * root, math.sqrt(scale) * (math.sqrt(3 * root) + math.sqrt(dim / root)) * dim * log
    width = Width(2 * scale * math.sqrt(dim * log), quartic)
    return LinearTuning(scale, scale, scale, ridge_root=2 * shift, width=width)


def local_tuning(
    preset: str, horizon: int, dim: int, epsilon: float, delta: float, feature_norm: float
) -> LinearTuning:
    """LinUCB with local privacy: L35 and L38."""
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
) -> LinearTuning:  # fmt: skip
    """LinUCB with joint privacy: L35 and L40.

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
    return LinearTuning(math.sqrt(2) * scale, scale, scale, ridge=2 * shift, width=width)


def amplified_tuning(
    preset: str, horizon: int, dim: int, epsilon: float, delta: float, window: int, feature_norm: float
) -> LinearTuning:
    """LinUCB in the shuffle model, by amplification (SDP-Amp): `docs/formulas/ldp_contextual.md#shuffle-model`."""
    log = math.log(2.5 * window / delta)
    root = math.sqrt(log / window) if preset == "reference" else 4 * math.sqrt(2 * log * math.log(2 / delta) / window)
    scale = root / epsilon
    return tuning_of_users(preset, scale, scale * math.sqrt(horizon * dim), horizon, dim, feature_norm)


def vector_tuning(
    preset: str, horizon: int, dim: int, epsilon: float, delta: float, window: int, feature_norm: float
) -> tuple[LinearTuning, VectorCode]:
    """LinUCB in the shuffle model, by sums of vectors (SDP-Vec): L35, where s is no noise, and L44."""
    if preset == "reference":
        code = vector_code(feature_norm, window, dim, epsilon, delta)
        scale = math.log(dim / delta) / epsilon / math.sqrt(window)
    else:
        log = math.log(4 * (dim**2 + 1) / delta)
        code = vector_code(feature_norm, window, dim, epsilon, delta, constant=24e4, log=log)
        scale = math.sqrt(code.trials / window * BINOMIAL_SHARE * (1 - BINOMIAL_SHARE)) * code.bound / code.levels
    shift = scale * math.sqrt(horizon * dim) / 4
    return tuning_of_users(preset, scale, shift, horizon, dim, feature_norm), code


def moment_sensitivity(feature_norm: float, weight: float = 1.0) -> float:
    """Largest change of (x x', sqrt(weight) x y) when one user's feature x and reward y change.

    In Frobenius and Euclidean norm together, as L39 derives it; rewards lie in [0, 1].

    >>> [round(moment_sensitivity(1.0, k) ** 2, 9) for k in (1.0, 2.0)]
    [4.5, 8.0]
    """
    square, k = feature_norm**2, weight
    return math.sqrt(2 * square**2 + 2 * k * square + k * k / 2 if 2 * square >= k else 4 * k * square)
