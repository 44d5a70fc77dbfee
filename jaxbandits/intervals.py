"""Intervals and p-values of a mean from a few seeds, and whether they can be trusted.

Axes: [..., S] one number a seed along the last axis. Each way returns (low, high, p), arrays [...]: the 95% interval
of the mean, and the p-value of the mean being zero, two-sided.
"""

from typing import Any, Literal, get_args

import numpy as np
from scipy.special import stdtr, stdtrit  # Student's law; scipy.stats takes several times as long to import

from jaxbandits.typing import Tensor

Way = Literal["student", "bootstrap-t", "anytime"]
WAYS: tuple[str, ...] = get_args(Way)
MISSED = 0.05  # how often a 95% interval may miss the mean
LEAST_SEEDS = 30  # fewer say too little of the law that they come from
COCHRAN = 25  # seeds for each unit of squared skewness
INTERVAL_RESAMPLES = 1999
FIRST_LOOK = 64  # seeds that differ, as in `until`
_BISECTIONS = 60


def of_mean(values: Tensor, way: Way) -> tuple[Any, Any, Any]:
    """The interval and the p-value of a mean, in one of three ways.

    values: [..., S], such as paired differences; NaN and infinite ones make a row NaN. What is returned is NaN where
    the way says nothing: of one seed, and of seeds that are all equal. There p is known nevertheless.

    No p-value is below 2^(1 - m), with m the seeds that are not zero: the signs of m seeds are all equal so often
    where plus and minus are equally likely. So two seeds, or ties but for two, never decide anything.

    - *student*: exact where seeds are normal; right in the limit of many otherwise.
    - *bootstrap-t* (Efron 1982): Student's ratio is resampled (1,999 times, always with the same draws), so that the
      interval is as skewed as the seeds are. It cannot know what no seed shows.
    - *anytime*: the law of `jaxbandits.until` at this number of seeds, with the same 64 seeds before the first look,
      inverted: it holds for every number of seeds at once, however often one looks, where values are symmetric about
      their mean. NaN with fewer than 64 seeds.

    Efron 1982, section 10.10, "The jackknife, the bootstrap and other resampling plans" (recalled); for *anytime* see
    `jaxbandits.until`.

    >>> [round(float(x), 3) for x in of_mean(np.array([1.0, 2.0, 3.0]), "student")]
    [-0.484, 4.484, 0.25]
    """
    values = np.asarray(values, np.float64)
    flat = values.reshape(-1, values.shape[-1])
    found = np.full((3, len(flat)), np.nan)
    usable = np.isfinite(flat).all(-1) & (flat.shape[-1] > 1)
    some = flat[usable]
    least = np.minimum(1.0, 2.0 ** (1 - (some != 0).sum(-1)))
    equal = np.ptp(some, axis=-1) == 0 if len(some) else np.zeros(0, bool)
    low, high, p = np.full((3, len(some)), np.nan)
    ways = {"student": _student, "bootstrap-t": _bootstrap_t, "anytime": _anytime}
    if not equal.all():
        low[~equal], high[~equal], p[~equal] = ways[way](some[~equal])
    p[equal] = _anytime_p(some[equal]) if way == "anytime" else 0.0
    found[:, usable] = low, high, np.maximum(p, least)
    return tuple(found.reshape(3, *values.shape[:-1]))


def of_ratio(a: Tensor, b: Tensor) -> tuple[Any, Any, Any]:
    """How many times the mean of b the mean of a is, with its 95% interval, from numbers of the same seeds.

    a, b: [..., S]. The interval holds the factors f for which the mean of a - f b may be zero by Student's interval.
    All three are NaN where that interval has no end: b's mean is not above zero beyond doubt; and of one seed. Fieller
    1954, "Some problems in interval estimation" (recalled).

    >>> [round(float(x), 3) for x in of_ratio(np.array([4.0, 6.0, 5.0, 5.0]), np.array([2.0, 3.0, 2.0, 3.0]))]
    [2.0, 1.576, 2.736]
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    seeds = b.shape[-1]
    if seeds < 2:
        return tuple(np.full((3, *b.shape[:-1]), np.nan))
    mean_a, mean_b = a.mean(-1), b.mean(-1)
    share = stdtrit(seeds - 1, 1 - MISSED / 2) ** 2 / (seeds * (seeds - 1))
    left, right = a - mean_a[..., None], b - mean_b[..., None]
    # the ends are the roots f of denominator f^2 - 2 middle f + constant
    denominator = mean_b**2 - share * (right**2).sum(-1)
    middle = mean_a * mean_b - share * (left * right).sum(-1)
    constant = mean_a**2 - share * (left**2).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = np.sqrt(np.maximum(middle**2 - denominator * constant, 0.0))
        found = np.array([mean_a / mean_b, (middle - half) / denominator, (middle + half) / denominator])
        return tuple(np.where((denominator > 0) & (mean_b > 0), found, np.nan))


def seeds_needed(values: Tensor) -> np.ndarray[Any, Any]:
    """How many seeds Student's interval needs, as far as these show: array [...].

    At least 30, and 25 times the squared skewness (Cochran's rule: then a 95% interval misses the mean in at most 6 of
    100). Infinite where all seeds are equal, since such seeds show nothing of how they spread. NaN where one is not
    finite.

    >>> seeds_needed(np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 9.0], [1.0, 1.0, 1.0, 1.0]])).round().tolist()
    [30.0, 33.0, inf]
    """
    values = np.asarray(values, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = values - values.mean(-1, keepdims=True)
        skewness = (centred**3).mean(-1) / (centred**2).mean(-1) ** 1.5
        return np.where(np.ptp(values, axis=-1) == 0, np.inf, np.maximum(LEAST_SEEDS, COCHRAN * skewness**2))


def _student(values: np.ndarray[Any, Any]) -> tuple[Any, Any, Any]:
    seeds = values.shape[-1]
    mean, error = values.mean(-1), values.std(-1, ddof=1) / np.sqrt(seeds)
    half = stdtrit(seeds - 1, 1 - MISSED / 2) * error
    return mean - half, mean + half, 2 * stdtr(seeds - 1, -np.abs(mean / error))


def _bootstrap_t(values: np.ndarray[Any, Any]) -> tuple[Any, Any, Any]:
    seeds = values.shape[-1]
    mean, error = values.mean(-1), values.std(-1, ddof=1) / np.sqrt(seeds)
    weights = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), size=INTERVAL_RESAMPLES) / seeds
    rows = []
    for row, m, e in zip(values - mean[:, None], mean, error, strict=True):
        means = weights @ row
        spread = np.maximum(weights @ row**2 - means**2, 0.0)
        spread[spread < 1e-14 * np.mean(row**2)] = 0.0  # resamples of one seed: rounding alone
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = means / np.sqrt(spread / (seeds - 1))
        ratios = np.sort(np.nan_to_num(ratios, nan=0.0, posinf=np.inf, neginf=-np.inf))
        cut = int(MISSED / 2 * (INTERVAL_RESAMPLES + 1))
        low, high = m - ratios[-cut] * e, m - ratios[cut - 1] * e
        below = np.searchsorted(ratios, m / e, side="right")
        above = INTERVAL_RESAMPLES - np.searchsorted(ratios, m / e, side="left")
        rows.append((low, high, min(1.0, 2 * (1 + min(below, above)) / (INTERVAL_RESAMPLES + 1))))
    return tuple(np.array(rows).T)


def _anytime(values: np.ndarray[Any, Any]) -> tuple[Any, Any, Any]:
    mean, spread, p = values.mean(-1), values.std(-1), _anytime_p(values)
    if values.shape[-1] < FIRST_LOOK:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan), p
    ends = []
    for sign in (-1.0, 1.0):
        inside, outside = mean.copy(), mean + sign * spread
        for _ in range(_BISECTIONS):  # until it lies outside
            inner = _log_e(values, outside) < np.log(1 / MISSED)
            outside = np.where(inner, mean + 2 * (outside - mean), outside)
            if not inner.any():
                break
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            inner = _log_e(values, middle) < np.log(1 / MISSED)
            inside, outside = np.where(inner, middle, inside), np.where(inner, outside, middle)
        ends.append(outside)
    return ends[0], ends[1], p


def _anytime_p(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.minimum(1.0, np.exp(-_log_e(values, np.zeros(len(values)))))


def _log_e(values: np.ndarray[Any, Any], mean: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The logarithm of e of `until` for a mean [R]; 0 where fewer seeds differ from it than a first look takes."""
    away = values - mean[:, None]
    first = np.cumsum(away != 0, axis=-1) <= FIRST_LOOK
    scale, squares, total = (away**2 * first).sum(-1), (away**2).sum(-1), away.sum(-1)
    with np.errstate(invalid="ignore"):  # no seed differs from the mean: 0/0
        found = 0.5 * np.log(scale / (squares + scale)) + total**2 / (2 * (squares + scale))
    return np.where((away != 0).sum(-1) < FIRST_LOOK, 0.0, found)
