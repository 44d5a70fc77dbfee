"""Private robust mean estimates (PRM; Wu, Zhou, Tao and Wang 2023, Algorithms 2 and 3): arguments and formulas.

Everything here runs on the host. `PrmArguments` is what all PRM algorithms take, `check_prm` holds it against itself.
`prm_tables` turns it into arrays, one entry for each number of pulls that an estimate may rest on. `threshold` and
`histogram` give the rest. The formulas are those of `docs/formulas/private_robust_mab.md#clip-level`,
`docs/formulas/private_robust_mab.md#raw-moments` and `docs/formulas/private_robust_mab.md#central-moments`, in their
notation: s = moment_bound^(1/k), k = moment_order, L = ln(1 / failure_prob), alpha = corruption_bound, D = mean_bound.
"""

import math
from typing import Annotated, Any, Literal, NamedTuple, Required, TypeAlias, TypedDict

import numpy as np

from jaxbandits import declared
from jaxbandits.declared import HOST, STATIC, Default, Epsilon, Ge, Inside, NonNegative, Positive, Remedy, Share
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.protocol import Tails
from jaxbandits.typing import Float, Int, Numeric, Scalar
from jaxbandits.validation import number

MAX_BINS = 2**16  # of a histogram: every lane stores their counts
MAX_CENTRAL_CORRUPTION = 0.133  # share of contamination up to which central moments can be handled (Corollary 6.8)

Table: TypeAlias = Float[np.ndarray, " B"]


class PrmArguments(TypedDict, total=False):
    """What all algorithms over private robust means take.

    Args:
        epsilon: Privacy budget of the whole run. At ``float("inf")`` there is no noise, and everything else is as for
            epsilon 1. The noise uses epsilon itself; clip, order radius and threshold use min(epsilon, 1), up to which
            the paper's theorems hold.
        moment: What is known of an arm's rewards X. ``"raw"``: E|X|^k <= u, and means are truncated around 0.
            ``"central"``: E|X - mean|^k <= u and `|mean|` <= D; one half of the data finds a bin near the mean, the
            other half is truncated around it.
        moment_order: Order k of the moment. The default asks for a finite variance only.
        moment_bound: Bound u on the moment, in units of a reward to the power k. The default is the paper's; s =
            u^(1/k) is the unit that rewards are measured in.
        mean_bound: Bound D on the size of every mean, in units of a reward. ``moment="central"`` needs it, in [2 r,
            2^15 r], where r is the width of a bin: r = s iota^(1/k) with iota = 10 without contamination and otherwise
            (1 - alpha) / (0.249 - alpha). No default; raw moments take no notice of it.
        corruption_bound: Largest share alpha of contaminated rewards that the learner believes in; with central moments
            in [0, 0.133).
        failure_prob: Failure probability delta of one confidence bound with ``radius="explicit"``; at the default
            scales of ``"order"`` the probability of nothing. The default: 1 / horizon, and 1/2 at horizon 1.
        radius: The confidence radius beta. ``"order"``: the paper's three orders times `sampling_scale`,
            `privacy_scale` and `corruption_scale`. ``"explicit"``: all constants from a proof of this package, wider;
            it needs no part of T0 for contamination, and ``clip_mode="shifted"``.
        clip_scale: Multiplies the level at which rewards are truncated (with central moments its part a). The default
            is the paper's order.
        threshold_scale: Multiplies the contamination part L / alpha of the threshold T0. The default is the paper's
            order. It has no effect without contamination or with the explicit radius.
        histogram_scale: Multiplies the histogram part ln(D / delta) / min(epsilon, 1) of T0; central moments only. The
            default was tried out: 2 to 6% of runs lost the best arm with 4, 0.2% with 8; with 16 T0 dominates the
            regret.
        guard_bins: Bins added on each side of [-D, D]; central moments only. The default is the printed grid; where
            2 D / r is an integer, no bin of it sees mass from D on, and elsewhere the number of bins is rounded up: use
            1, or a `mean_bound` that is r larger than the largest mean.
        clip_mode: Truncation around the bin's edge; central moments only. ``"shifted"``: at 2 r + a, since the edge may
            be off by 2 r. ``"literal"``: at a, as printed, for which the bias bound fails where a is small.
    """

    epsilon: Required[Annotated[Epsilon, Remedy("float('inf') switches privacy off")]]
    moment: Annotated[Literal["raw", "central"], Default("raw")]
    moment_order: Annotated[Scalar, Ge(2), Remedy("the estimates need a finite second moment"), Default(2.0)]
    moment_bound: Annotated[Positive, Default(1.0)]
    mean_bound: Annotated[Positive | None, Default(None)]
    corruption_bound: Annotated[Share, declared.LATER, Default(0.0)]
    failure_prob: Annotated[Inside | None, Default(None)]
    radius: Annotated[Literal["order", "explicit"], HOST, Default("order")]
    clip_scale: Annotated[Positive, Default(1.0)]
    threshold_scale: Annotated[NonNegative, Default(1.0)]
    histogram_scale: Annotated[NonNegative, Default(8.0)]
    guard_bins: Annotated[int, Ge(0), declared.Le(1000), STATIC, Default(0)]
    clip_mode: Annotated[Literal["shifted", "literal"], HOST, Default("shifted")]


class Prm(NamedTuple):
    """The arguments of these names. Host numbers only."""

    sampling_scale: float
    privacy_scale: float
    corruption_scale: float
    epsilon: float
    moment: str
    moment_order: float
    moment_bound: float
    mean_bound: float  # 0 with raw moments
    corruption_bound: float
    failure_prob: float
    radius: str
    clip_scale: float
    threshold_scale: float
    histogram_scale: float
    guard_bins: int
    clip_mode: str

    @property
    def central(self) -> bool:
        """Whether moments are central."""
        return self.moment == "central"

    @property
    def tails(self) -> Tails:
        """What is assumed of rewards."""
        if self.central:
            return Tails(self.moment_order, self.moment_bound, "X - mean", self.mean_bound)
        return Tails(self.moment_order, self.moment_bound)

    @property
    def explicit(self) -> bool:
        """Whether the radius has all its constants."""
        return self.radius == "explicit"

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

    clip: Table  # M
    radius: Table  # beta
    noise_scale: Table  # Laplace scale of the released mean, 2 M / (n epsilon)
    count_scale: Table  # Laplace scale of each released share of a bin, 2 / (n epsilon); zeros with raw moments


class Histogram(NamedTuple):
    """The bins of Algorithm 3."""

    num_bins: int
    first_edge: float  # -D - guard_bins r
    width: float  # r


def check_prm(horizon: int, sampling_scale: Any, privacy_scale: Any, corruption_scale: Any, **given: Any) -> Prm:
    """`PrmArguments` held against each other, or a ValueError. `failure_prob` None is 1 / horizon, at most 1/2."""
    prm = Prm(sampling_scale, privacy_scale, corruption_scale, **given)
    if prm.central and prm.explicit and prm.clip_mode == "literal":
        raise ValueError("clip_mode = 'literal' has no explicit radius: use radius='order' or clip_mode='shifted'")
    breakdown = MAX_CENTRAL_CORRUPTION if prm.central else 0.5
    remedy = f"{breakdown:g} is the breakdown point with {prm.moment} moments; lower the share the learner believes in"
    share = number("corruption_bound", prm.corruption_bound, 0.0, breakdown, open_high=True, remedy=remedy)
    failure = min(0.5, 1 / horizon) if prm.failure_prob is None else prm.failure_prob
    prm = prm._replace(corruption_bound=share, failure_prob=failure)
    if not prm.central:
        return prm._replace(mean_bound=0.0)
    least = 2 * prm.bin_width
    remedy = f"central moments need a bound of at least 2 r = {least:.6g} on |mean|"
    if prm.mean_bound is None:
        raise ValueError(f"mean_bound = None: {remedy}")
    most = MAX_BINS * prm.bin_width / 2
    if not least <= prm.mean_bound <= most:
        raise ValueError(
            f"mean_bound = {prm.mean_bound!r} must be in [{least:.6g}, {most:.6g}]: {remedy}, and at most "
            f"{MAX_BINS} bins"
        )
    return prm


def fold(prm: Prm, pulls: Numeric) -> Any:
    """How many rewards n the released mean of `pulls` pulls rests on.

    With central moments these are half of them; an odd last one is dropped.
    """
    return pulls // 2 if prm.central else pulls


def prm_tables(prm: Prm, pulls: Int[np.ndarray, " B"]) -> Tables:
    """Clip, radius and noise scales, float64, of estimates from `pulls` pulls: at least 1, with central moments 2."""
    n = np.asarray(fold(prm, np.asarray(pulls, np.int64)), np.float64)
    k, s, alpha, log_term = prm.moment_order, prm.unit, prm.corruption_bound, prm.log_term
    # m(n): its two terms balance M L / (n epsilon) and alpha M against the tail's bias M^(1-k)
    m = (n * prm.capped_epsilon / log_term) ** (1 / k)
    if alpha > 0:
        m = np.minimum(m, alpha ** (-1 / k))
    inner = prm.clip_scale * m  # a / s; raw: M / s
    shift = 2 * prm.bin_width / s if prm.central and prm.clip_mode == "shifted" else 0.0
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


def _explicit(prm: Prm, n: Numeric, inner: Numeric, shift: float) -> Any:
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


def bins_to_offer(num_bins: int) -> int:
    """A power of two, at least `num_bins`: a static number, so that a grid over D or alpha shares few programs."""
    return 1 << (num_bins - 1).bit_length()


def events(central: bool, pulls: Numeric, params: Any) -> tuple[Any, ...]:
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
    event = laplace_event("truncated mean of half a block, or shares of its bins", sensitivity, scale)
    return (event._replace(largest=math.inf),)  # of the shares a bin's edge is shown
