"""Confidence bounds on epsilon from counts, and trade-off curves of tests. Plain statistics, on the host."""

from typing import NamedTuple

import numpy as np
from scipy.stats import beta


class Curve(NamedTuple):
    """What a test achieves, threshold by threshold, on runs that had no part in choosing it."""

    false_positive: np.ndarray  # [n] share of the first input's runs taken for the second's
    false_negative: np.ndarray  # [n] share of the second input's runs taken for the first's
    false_positive_high: np.ndarray  # [n] their upper confidence bounds, point by point
    false_negative_high: np.ndarray


def clopper_pearson(successes, trials, failure_prob):
    """Exact one-sided bounds (low, high) on a probability, each wrong with at most `failure_prob`. Arrays broadcast.

    Source: Clopper and Pearson 1934.

    >>> [round(float(x), 4) for x in clopper_pearson(0, 100, 0.025)]
    [0.0, 0.0362]
    """
    k, n = np.asarray(successes, float), np.asarray(trials, float)
    low = np.where(k > 0, beta.ppf(failure_prob, np.maximum(k, 0.5), n - k + 1), 0.0)
    high = np.where(k < n, beta.ppf(1 - failure_prob, k + 1, np.maximum(n - k, 0.5)), 1.0)
    return low, high


def epsilon_lower(true_positives, false_positives, trials, delta, confidence):
    """The largest epsilon refuted at `delta` by an event fixed beforehand: log((TPR - delta) / FPR) at the ends of their intervals, at least 0.

    Both counts are out of `trials`. The two bounds share 1 - confidence. Arrays broadcast.
    Source: Jagielski, Ullman and Oprea 2020; Kairouz, Oh and Viswanath 2015, Theorem 2.1.

    >>> round(float(epsilon_lower(50_000, 18_394, 100_000, 0.0, 0.95)), 3)
    0.981
    """
    return np.maximum(log_ratio(true_positives, false_positives, trials, delta, confidence), 0.0)


def log_ratio(true_positives, false_positives, trials, delta, confidence):
    """`epsilon_lower` before it is cut at 0: what a choice between weak events goes by."""
    failure = (1 - confidence) / 2
    low, _ = clopper_pearson(true_positives, trials, failure)
    _, high = clopper_pearson(false_positives, trials, failure)
    return np.log(np.maximum(low - delta, 1e-12) / high)


def claimed_curve(epsilon, delta, false_positive):
    """The least false negatives at `false_positive` [n] that (epsilon, delta) allows any test.

    Source: Wasserman and Zhou 2010; Dong, Roth and Su 2022, Proposition 2.5.

    >>> claimed_curve(np.log(3), 0.0, np.array([0.0, 0.25, 1.0])).round(3).tolist()
    [1.0, 0.25, 0.0]
    """
    alpha = np.asarray(false_positive, float)
    if np.isinf(epsilon):
        return np.zeros_like(alpha)
    return np.maximum(0, np.maximum(1 - delta - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1 - delta - alpha)))


def above(scores, thresholds):
    """How many of `scores` [L] reach each of `thresholds` [n]."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")


def trade_off(negative, positive, confidence, points=200) -> Curve:
    """The curve of the tests {score >= threshold}: scores [L] of runs on the first and on the second input."""
    steps = np.concatenate(
        [[0.0], np.geomspace(1e-4, 0.5, points // 2), 1 - np.geomspace(0.5, 1e-4, points // 2), [1.0]]
    )
    pooled = np.concatenate([negative, positive])
    thresholds = np.concatenate([np.unique(np.quantile(pooled, steps, method="nearest")), [np.inf]])
    failure = (1 - confidence) / 2
    fp, tp = above(negative, thresholds), above(positive, thresholds)
    fn = len(positive) - tp
    high = [clopper_pearson(k, len(x), failure)[1] for k, x in ((fp, negative), (fn, positive))]
    return Curve(fp / len(negative), fn / len(positive), *high)
