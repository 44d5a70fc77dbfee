"""Contaminated, corrupted and delayed rewards, on the host: distances of normal arms, regret bounds and tunings.

Formulas: docs/formulas/robust_frontier.md.
"""

import bisect
import functools
import math
import sys
from typing import Annotated, Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from jaxbandits.declared import Axes, Doc, Ge, Le, NonNegative, Positive, Probability, Remedy, Share
from jaxbandits.theory.quantities import Arms, FailureProb, Length, Means, NoiseScale, Order, Plays, RegretBound
from jaxbandits.typing import Float, Scalar, Tensor, Vector
from jaxbandits.validation import array, declare

AtLeastTwo = Annotated[Plays, Ge(2)]
Budget = Annotated[
    NonNegative, Doc("C: the sum over plays of the largest corruption of any arm, chosen before the arm is known.")
]


def _gaps(means: Tensor, horizon: int, failure_prob: Scalar | None) -> tuple[Any, float]:
    """Gaps of all arms [K] and K / failure_prob."""
    return np.max(means) - means, len(means) / float(1 / horizon if failure_prob is None else failure_prob)


@declare(
    source="Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353), recalled: "
    "`docs/formulas/robust_frontier.md#multilayer-elimination`"
)
def multilayer_bound(
    means: Means, horizon: AtLeastTwo, corruption_budget: Budget = 0.0, failure_prob: FailureProb | None = None
) -> Order:
    """Order of the multi-layer race's regret, up to constants: (K C ln(K T / p) + ln T) ln(K T / p) / D, summed.

    The sum is over the arms of gap D > 0; p is the failure probability.

    >>> round(multilayer_bound([0.8, 0.6, 0.5, 0.3], 20_000, failure_prob=0.05))
    1462
    """
    gaps, odds = _gaps(means, horizon, failure_prob)
    log = math.log(horizon * odds)
    return float(sum((len(gaps) * corruption_budget * log + math.log(horizon)) * log / gap for gap in gaps[gaps > 0]))


@declare(source="Gupta, Koren and Talwar 2019 (arXiv 1902.08647), abstract: `docs/formulas/robust_frontier.md#barbar`")
def barbar_bound(
    means: Means, horizon: AtLeastTwo, corruption_budget: Budget = 0.0, failure_prob: FailureProb | None = None
) -> Order:
    """Order of BARBAR's regret, up to constants: K C, and ln(T) ln(K ln(T) / p) / D summed over the worse arms.

    D is an arm's gap, p the failure probability; K C counts where some arm is worse.

    >>> round(barbar_bound([0.8, 0.6, 0.5, 0.3], 20_000, 100.0, failure_prob=0.05))
    1083
    """
    gaps, odds = _gaps(means, horizon, failure_prob)
    worse = gaps[gaps > 0]
    if len(worse) == 0:
        return 0.0
    log = math.log(horizon) * math.log(odds * math.log(horizon))
    return float(len(gaps) * corruption_budget + sum(log / gap for gap in worse))


@declare(source="Ours: `docs/formulas/robust_frontier.md#stopping-elimination`")
def wide_elimination_bound(
    means: Annotated[Vector, Axes(1, "array of float [K]")],
    horizon: Plays,
    corruption_budget: NonNegative = 0.0,
    noise_scale: NoiseScale = 0.5,
    failure_prob: FailureProb | None = None,
) -> float:
    """Upper bound of the regret of `stopping_elimination` whose budget of corruption is known.

    Args:
        means: Expected rewards of the arms, K at least 2, in units of a reward.
        corruption_budget: C: the sum of the sizes of what an adversary changes in the rewards of the played arms.

    Returns:
        With l = ln(2 K T / delta), the sum over the arms of gap D > 0 of D (1 + ((2 sigma sqrt(2 l) + sqrt(8 sigma^2 l
        + 4 C D)) / D)^2). It holds with probability 1 - delta against every adversary of budget C, who may see the arm.
        It may exceed T max D.

    >>> round(wide_elimination_bound([0.8, 0.6, 0.5, 0.3], 20_000, 100.0, failure_prob=0.05), 1)
    3172.9
    """
    values, failure = np.asarray(means), 1 / horizon if failure_prob is None else failure_prob
    noise = 8 * noise_scale**2 * math.log(2 * len(values) * horizon / failure)
    gaps = values.max() - values
    gaps, root = gaps[gaps > 0], math.sqrt(noise)
    return math.fsum(gap * (1 + ((root + math.sqrt(noise + 4 * corruption_budget * gap)) / gap) ** 2) for gap in gaps)


@declare(source="Ours: `docs/formulas/robust_frontier.md#robust-frontier-budgets`.")
def budget_of_share(share: Probability, horizon: Length, size: Positive) -> float:
    """The budget that a share of corrupted rewards amounts to on average: share * horizon * size.

    Huber's share is no budget: how many rewards are hit is random, and nothing bounds how far each is moved. The number
    tells which `total` of `budgeted` to compare with which `corruption` of `huber`.

    Args:
        share: Chance that a reward is corrupted.
        size: How far a corrupted reward is moved, in units of a reward.

    >>> budget_of_share(0.01, 20_000, 0.5)
    100.0
    """
    return float(share * horizon * size)


# ---- contaminated normal arms

Contamination = Annotated[Share, Remedy("1/2 is the breakdown point"), Doc("Share eps of contaminated values.")]

HALVINGS = 80  # halvings of an interval of ln c; those of a float64 end before


@declare(source="`docs/formulas/robust_frontier.md#crimed`")
def median_shift(corruption_bound: Contamination) -> float:
    """How far contamination can move the median of a normal law, in standard deviations.

    It is b = Phi^-1(1 / (2 (1 - eps))), 0 without contamination.

    >>> round(median_shift(0.05), 9)
    0.066011812
    """
    return float(ndtri(1 / (2 * (1 - corruption_bound))))


@declare(source="Derived: `docs/formulas/robust_frontier.md#crimed`")
def contaminated_divergence(
    gaps: Annotated[Vector, Axes(1, "array of float [n]"), Ge(0)], corruption_bound: Contamination
) -> Float[np.ndarray, " n"]:
    """The least Kullback-Leibler divergence of two normal laws of variance 1 that are both contaminated.

    Args:
        gaps: Distances g of the two means, in standard deviations.

    Returns:
        array of float64 [n]: d_eps(g): 0 for g up to twice `median_shift`, at most g^2 / 2, and g^2 / 2 without
            contamination.

    Note:
        It is that of the least favourable pair of Huber and Strassen. With c > 1 the solution of Phi(u) + Phi(l) / c =
        1 / (1 - eps), u = g / 2 + ln(c) / g and l = g - u, it is (1 - eps) (ln(c) (1 - 1 / c) Phi(l) + g^2 / 2 (Phi(u)
        - Phi(l)) - g (phi(l) - phi(u))).

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


@declare(source="`docs/formulas/robust_frontier.md#robust-frontier-worst-case`")
@functools.cache
def expected_max(m: Annotated[int, Ge(1), Doc("How many normals.")]) -> float:
    """The mean of the largest of m independent standard normals.

    Where m trials of a search have equal true values and independent seeds, n each of deviation s, the largest mean
    exceeds the truth by s / sqrt(n) times this. Trials that share their seeds have less, but not none.

    It is 0 for one, and about sqrt(2 log m) for many.

    >>> [round(expected_max(m), 3) for m in (1, 2, 32, 128)]
    [0.0, 0.564, 2.07, 2.595]
    """
    # The density m phi(x) Phi(x)^(m - 1) is smooth and vanishes at both ends: the trapezoidal rule is exact there.
    x, step = np.linspace(-12.0, 18.0, 6001, retstep=True)
    log_density = np.log(m) - x**2 / 2 - np.log(2 * np.pi) / 2 + (m - 1) * log_ndtr(x)
    return float(np.sum(x * np.exp(log_density)) * step) if m > 1 else 0.0


# ---- delay

LOST = 1e-9  # expected number of feedbacks of a run beyond `geometric_bound`


@declare(source="docs/formulas/robust_frontier.md#robust-frontier-delay")
def geometric_bound(
    mean: Annotated[Scalar, Ge(0), Le(1e6), Doc("Mean m of the delay in plays.")], horizon: Plays
) -> int:
    """The smallest D with T p^(D + 1) <= 1e-9: a run of T geometric delays hardly ever has one above it.

    It is [ours]. P(d = k) = (1 - p) p^k with p = mean / (1 + mean), so P(d > D) = p^(D + 1).

    >>> geometric_bound(50, 10_000)
    1511
    """
    if mean == 0:
        return 0
    log_p = -math.log1p(1 / mean)

    def rare(most: int) -> bool:
        return math.log(horizon) + (most + 1) * log_p <= math.log(LOST)

    return bisect.bisect_left(range(sys.maxsize), True, key=rare)


@declare(
    source="Joulani, György and Szepesvári 2013, recalled; docs/formulas/robust_frontier.md#robust-frontier-delayed-ucb"
)
def delayed_ucb_bound(
    gaps: Annotated[Any, Axes(1, "array of float [K]"), Ge(0)], horizon: Annotated[Plays, Ge(2)], outstanding: Any
) -> RegretBound:
    """Regret bound of UCB1 under delays, `sum (8 ln T / gap + 3.5 gap) + sum gap G*`.

    It is [recalled]. G* is the expected largest number of an arm's plays that are outstanding at once. Under a fixed
    delay d it is at most d.

    Args:
        gaps: Gaps of the arms; those of 0 add nothing.
        outstanding (float or array of float [K]): G* of every arm, or one number for all, at least 0.

    >>> round(delayed_ucb_bound([0.0, 0.5], 1000, 10), 3)
    117.274
    """
    waiting = array("outstanding", np.atleast_1d(outstanding), 1, 0.0)
    if len(waiting) not in (1, len(gaps)):
        raise ValueError(f"outstanding has {len(waiting)} entries, one for each of {len(gaps)} gaps, or one for all")
    worse = gaps > 0
    waiting = np.broadcast_to(waiting, gaps.shape)[worse]
    worse_gaps = gaps[worse]
    return float(np.sum(8 * math.log(horizon) / worse_gaps + 3.5 * worse_gaps) + np.sum(worse_gaps * waiting))


@declare(source="Masoudian, Zimmert and Seldin 2022, recalled; docs/formulas/robust_frontier.md#robust-frontier-hybrid")
def hybrid_tuning(
    num_arms: Arms, delay_bound: Annotated[NonNegative, Doc("The largest delay d, in plays.")]
) -> tuple[float, float]:
    """eta_0 and gamma_0 of the hybrid that is tuned for both worlds, from a bound d on the delay.

    They are [recalled]: eta_0 = 10 d + (d / (K^(1/3) ln K))^2 and gamma_0 = (24 d K^(1/3))^2 ln K.

    >>> [round(x, 6) for x in hybrid_tuning(4, 50)]
    [1016.244892, 5030269.767145]
    """
    d, root, log = delay_bound, num_arms ** (1 / 3), math.log(num_arms)
    return 10 * d + (d / (root * log)) ** 2, (24 * d * root) ** 2 * log


@declare(source="Zimmert and Seldin 2020; docs/formulas/robust_frontier.md#robust-frontier-hybrid")
def delayed_order(
    num_arms: Arms, horizon: Plays, total_delay: Annotated[NonNegative, Doc("D, the sum of all delays.")]
) -> Order:
    """The order of the best possible regret under adversarial losses, `sqrt(K T) + sqrt(D ln K)`.

    It is in the abstract [paper].

    >>> round(delayed_order(4, 2000, 100_000), 1)
    461.8
    """
    return math.sqrt(num_arms * horizon) + math.sqrt(total_delay * math.log(num_arms))
