"""Private robust mean estimates (PRM; Wu, Zhou, Tao and Wang 2023, Algorithms 2 and 3): arguments and formulas.

Everything here runs on the host. `check` validates what all PRM algorithms take. `tables` turns it into arrays, one
entry for each number of pulls that an estimate may rest on. `threshold` and `histogram` give the rest. The formulas
are those of `docs/formulas/private_robust_mab.md#clip-level`, `docs/formulas/private_robust_mab.md#raw-moments` and
`docs/formulas/private_robust_mab.md#central-moments`, in their notation: s = moment_bound^(1/k), k = moment_order,
L = ln(1 / failure_prob), alpha = corruption_bound, D = mean_bound.
"""

import math
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.typing import Float, Int, Scalar
from jaxbandits.validation import choice, integer, number

MAX_BINS = 2**16  # of a histogram: every lane stores their counts
MAX_CENTRAL_CORRUPTION = 0.133  # share of contamination up to which central moments can be handled (Corollary 6.8)

Table: TypeAlias = Float[np.ndarray, " B"]


class Prm(NamedTuple):
    """Checked arguments. Host numbers only."""

    central: bool
    epsilon: float
    moment_order: float
    moment_bound: float
    # 0 with raw moments
    mean_bound: float
    corruption_bound: float
    failure_prob: float
    # radius="explicit"
    explicit: bool
    # clip_mode="shifted"
    shifted: bool
    clip_scale: float
    sampling_scale: float
    privacy_scale: float
    corruption_scale: float
    threshold_scale: float
    histogram_scale: float
    guard_bins: int

    @property
    def unit(self) -> float:
        """The scale s of a reward."""
        return self.moment_bound ** (1 / self.moment_order)

    @property
    def log_term(self) -> float:
        """The logarithm L = ln(1 / failure_prob)."""
        return -math.log(self.failure_prob)

    @property
    def capped_epsilon(self) -> float:
        """The privacy budget min(epsilon, 1), from which radius, clip and threshold are computed."""
        return min(self.epsilon, 1.0)

    @property
    def bin_width(self) -> float:
        """The width r = s iota^(1/k): all but a share 1 / iota of an arm's own rewards lie within r of its mean."""
        alpha = self.corruption_bound
        iota = 10.0 if alpha == 0 else (1 - alpha) / (0.249 - alpha)
        return self.unit * iota ** (1 / self.moment_order)


class Tables(NamedTuple):
    """One entry for each number of pulls [B]."""

    # M
    clip: Table
    # beta
    radius: Table
    # Laplace scale of the released mean, 2 M / (n epsilon)
    noise_scale: Table
    # Laplace scale of each released share of a bin, 2 / (n epsilon); zeros with raw moments
    count_scale: Table


class Histogram(NamedTuple):
    """The bins of Algorithm 3."""

    num_bins: int
    # -D - guard_bins r
    first_edge: float
    # r
    width: float


def check(
    *,
    moment: Literal["raw", "central"],
    epsilon: Scalar,
    horizon: int,
    moment_order: Scalar,
    moment_bound: Scalar,
    mean_bound: Scalar | None,
    corruption_bound: Scalar,
    failure_prob: Scalar | None,
    radius: Literal["order", "explicit"],
    clip_scale: Scalar,
    sampling_scale: Scalar,
    privacy_scale: Scalar,
    corruption_scale: Scalar,
    threshold_scale: Scalar,
    histogram_scale: Scalar,
    guard_bins: int,
    clip_mode: Literal["shifted", "literal"],
) -> Prm:
    """The common arguments checked, or a ValueError. `failure_prob` None is 1 / horizon, at most 1/2."""
    central = choice("moment", moment, ("raw", "central")) == "central"
    explicit = choice("radius", radius, ("order", "explicit")) == "explicit"
    shifted = choice("clip_mode", clip_mode, ("shifted", "literal")) == "shifted"
    if central and explicit and not shifted:
        raise ValueError("clip_mode = 'literal' has no explicit radius: use radius='order' or clip_mode='shifted'")
    breakdown = MAX_CENTRAL_CORRUPTION if central else 0.5
    remedy = f"{breakdown:g} is the breakdown point with {moment} moments; lower the share the learner believes in"
    if failure_prob is None:
        failure_prob = min(0.5, 1 / horizon)
    prm = Prm(
        central=central,
        epsilon=number(
            "epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="float('inf') switches privacy off"
        ),
        moment_order=number("moment_order", moment_order, 2.0, remedy="the estimates need a finite second moment"),
        moment_bound=number("moment_bound", moment_bound, 0.0, open_low=True),
        mean_bound=0.0,
        corruption_bound=number("corruption_bound", corruption_bound, 0.0, breakdown, open_high=True, remedy=remedy),
        failure_prob=number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True),
        explicit=explicit,
        shifted=shifted,
        clip_scale=number("clip_scale", clip_scale, 0.0, open_low=True),
        sampling_scale=number("sampling_scale", sampling_scale, 0.0),
        privacy_scale=number("privacy_scale", privacy_scale, 0.0),
        corruption_scale=number("corruption_scale", corruption_scale, 0.0),
        threshold_scale=number("threshold_scale", threshold_scale, 0.0),
        histogram_scale=number("histogram_scale", histogram_scale, 0.0),
        guard_bins=integer("guard_bins", guard_bins, 0, 1000),
    )
    if mean_bound is not None:
        mean_bound = number("mean_bound", mean_bound, 0.0, open_low=True)
    if not central:
        return prm
    least = 2 * prm.bin_width
    remedy = f"central moments need a bound of at least 2 r = {least:.6g} on |mean|"
    if mean_bound is None:
        raise ValueError(f"mean_bound = None: {remedy}")
    most = MAX_BINS * prm.bin_width / 2
    if not least <= mean_bound <= most:
        raise ValueError(
            f"mean_bound = {mean_bound!r} must be in [{least:.6g}, {most:.6g}]: {remedy}, and at most {MAX_BINS} bins"
        )
    return prm._replace(mean_bound=mean_bound)


def fold(prm: Prm, pulls: Any) -> Any:
    """How many rewards n the released mean of `pulls` pulls rests on.

    With central moments these are half of them; an odd last one is dropped.
    """
    return pulls // 2 if prm.central else pulls


def tables(prm: Prm, pulls: Int[np.ndarray, " B"]) -> Tables:
    """Clip, radius and noise scales, float64, of estimates from `pulls` pulls: at least 1, with central moments 2."""
    n = np.asarray(fold(prm, np.asarray(pulls, np.int64)), np.float64)
    k, s, alpha, log_term = prm.moment_order, prm.unit, prm.corruption_bound, prm.log_term
    # m(n): its two terms balance M L / (n epsilon) and alpha M against the tail's bias M^(1-k)
    m = (n * prm.capped_epsilon / log_term) ** (1 / k)
    if alpha > 0:
        m = np.minimum(m, alpha ** (-1 / k))
    inner = prm.clip_scale * m  # a / s; raw: M / s
    shift = 2 * prm.bin_width / s if prm.central and prm.shifted else 0.0
    clip = inner + shift
    if prm.explicit:
        radius = _explicit(prm, n, inner, shift)
    else:
        radius = prm.sampling_scale * np.sqrt(log_term / n)
        radius = radius + prm.privacy_scale * (log_term / (n * prm.capped_epsilon)) ** (1 - 1 / k)
        if alpha > 0:
            radius = radius + prm.corruption_scale * alpha ** (1 - 1 / k)
    if (largest := float(np.max(s * clip, initial=0.0))) > 1e37:
        raise ValueError(
            f"moment_bound = {prm.moment_bound:g} and clip_scale = {prm.clip_scale:g} clip rewards at {largest:.3g} "
            "only, beyond what single precision holds: infinities would pass; state the rewards in a larger unit"
        )
    share = 2 / (n * prm.epsilon) if math.isfinite(prm.epsilon) else np.zeros_like(n)
    return Tables(s * clip, s * radius, s * clip * share, share if prm.central else np.zeros_like(n))


def _explicit(prm: Prm, n: Any, inner: Any, shift: float) -> Any:
    """The radius with its constants, in units of s.

    Its terms are Bernstein's inequality at delta / 2, the biases of tail and mixture, and the Laplace tail at delta
    / 2. A mean that is estimated around J with |J - mean| < 2 r = `shift` clips at a + 2 r; with raw moments the
    shift is 0.
    """
    k, alpha, delta, clip = prm.moment_order, prm.corruption_bound, prm.failure_prob, inner + shift
    if prm.central:
        variance = 1 + shift**2 * inner**-k + alpha * (clip + shift) ** 2
        bias = inner ** (1 - k) + shift * inner**-k + alpha * (clip + shift)
    else:
        variance = 1 + alpha * clip**2
        bias = inner ** (1 - k) + alpha * (clip + 1)
    log_four = math.log(4 / delta)
    radius = np.sqrt(2 * variance * log_four / n) + 2 * clip * log_four / (3 * n) + bias
    if math.isfinite(prm.epsilon):
        radius = radius + 2 * clip * math.log(2 / delta) / (n * prm.epsilon)
    return radius


def threshold(prm: Prm) -> float:
    """The threshold T0: batches of fewer pulls explore. Theorem 6.2 (raw), Theorems 6.10 and 6.12 (central).

    The explicit radius needs no part L / alpha: its own terms absorb what that part is for.
    """
    least = 0.0
    if prm.corruption_bound > 0 and not prm.explicit:
        least = prm.threshold_scale * prm.log_term / prm.corruption_bound
    if prm.central:
        least = max(least, prm.histogram_scale * math.log(prm.mean_bound / prm.failure_prob) / prm.capped_epsilon)
    return least


def histogram(prm: Prm) -> Histogram:
    """The bins. With raw moments it is one bin that is never used."""
    if not prm.central:
        return Histogram(1, 0.0, 1.0)
    width = prm.bin_width
    num_bins = math.ceil(2 * prm.mean_bound / width - 1e-12) + 2 * prm.guard_bins
    return Histogram(num_bins, -prm.mean_bound - prm.guard_bins * width, width)


def offered_bins(num_bins: int) -> int:
    """A power of two, at least `num_bins`: a static number, so that a grid over D or alpha shares few programs."""
    return 1 << (num_bins - 1).bit_length()


def events(central: bool, pulls: Any, params: Any) -> tuple[Any, ...]:
    """The releases that one reward of a block of `pulls` [B] pulls enters.

    It enters the block's mean or, with central moments, either that or the shares of the bins. Later blocks forget
    it. `params` has the leaves clip, noise_scale, count_scale [B] and mechanism_scale.
    """
    pulls = np.asarray(pulls, np.int64)
    ends = pulls < 2**31 - 1  # a longer block never ends
    n = (pulls // 2 if central else pulls)[ends]
    clip, mean, share = (np.asarray(x)[ends] for x in (params.clip, params.noise_scale, params.count_scale))
    if not central:
        return (laplace_event("truncated mean of a block", 2 * clip / n, mean * params.mechanism_scale),)
    sensitivity, scale = np.concatenate([2 * clip / n, 2 / n]), np.concatenate([mean, share]) * params.mechanism_scale
    return (laplace_event("truncated mean of half a block, or shares of its bins", sensitivity, scale),)
