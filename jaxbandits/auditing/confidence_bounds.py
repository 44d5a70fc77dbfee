"""Confidence bounds on epsilon from counts, and trade-off curves of tests. Plain statistics, on the host."""

from typing import Any, NamedTuple

import numpy as np

from jaxbandits.typing import Float, Numeric, Vector
from jaxbandits.validation import declare

Scores = Float[np.ndarray, " L"]


class Curve(NamedTuple):
    """What a test achieves, threshold by threshold, on runs that had no part in choosing it."""

    # share of the first input's runs taken for the second's, at each of n thresholds
    false_positive: Float[np.ndarray, " n"]
    # share of the second input's runs taken for the first's
    false_negative: Float[np.ndarray, " n"]
    # their upper confidence bounds, point by point
    false_positive_high: Float[np.ndarray, " n"]
    false_negative_high: Float[np.ndarray, " n"]


# docs/decisions.md#own-quantiles
@declare(check=False)
def clopper_pearson(successes: Numeric, trials: Numeric, failure_prob: float) -> tuple[Any, Any]:
    """Exact one-sided bounds on a probability from a count of successes.

    Args:
        successes, trials (int or array): Counts; arrays broadcast.
        failure_prob: In (0, 1): the probability at most with which each of the two bounds is wrong.

    Returns:
        low, high (array): The lower and the upper bound, each in [0, 1].

    References:
        Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the binomial".

    >>> [round(float(x), 4) for x in clopper_pearson(0, 100, 0.025)]
    [0.0, 0.0362]
    """
    from scipy.stats import beta

    k, n = np.asarray(successes, float), np.asarray(trials, float)
    low = np.where(k > 0, beta.ppf(failure_prob, k, n - k + 1), 0.0)
    high = np.where(k < n, beta.ppf(1 - failure_prob, k + 1, n - k), 1.0)
    return low, high


@declare(check=False)
def epsilon_lower(
    true_positives: Numeric, false_positives: Numeric, trials: Numeric, delta: float, confidence: float
) -> Numeric:
    """The largest epsilon that an event, fixed beforehand, refutes at a delta.

    Args:
        true_positives, false_positives (int or array): How often the event happened on the second and on the first
            input; arrays broadcast.
        trials (int or array): Runs on each of the two inputs.
        delta: In [0, 1).
        confidence: In (0, 1): the probability at least with which the bound holds. The bounds on the two shares split 1
            - confidence evenly.

    Returns:
        float or array: log((TPR - delta) / FPR) at the ends of the shares' intervals, at least 0.

    References:
        Jagielski, Ullman and Oprea 2020, "Auditing differentially private machine learning"; Kairouz, Oh and Viswanath
        2015, Theorem 2.1.

    >>> round(float(epsilon_lower(50_000, 18_394, 100_000, 0.0, 0.95)), 3)
    0.981
    """
    return np.maximum(log_ratio(true_positives, false_positives, trials, delta, confidence), 0.0)


def log_ratio(true: Numeric, false: Numeric, trials: Numeric, delta: float, confidence: float) -> Any:
    """`epsilon_lower` of true and false positives before it is cut at 0: what a choice between weak events goes by."""
    failure = (1 - confidence) / 2
    low, high = clopper_pearson(true, trials, failure)[0], clopper_pearson(false, trials, failure)[1]
    return np.log(np.maximum(low - delta, 1e-12) / high)


@declare(check=False)
def claimed_curve(epsilon: float, delta: float, false_positive: Vector) -> Float[np.ndarray, " n"]:
    """The least share of false negatives that (epsilon, delta) allows any test with given shares of false positives.

    Args:
        epsilon: At least 0; infinite where nothing is claimed.
        delta: In [0, 1].
        false_positive (array [n]): Shares in [0, 1].

    Returns:
        array [n]: Shares in [0, 1].

    References:
        Wasserman and Zhou 2010, "A statistical framework for differential privacy"; Dong, Roth and Su 2022, "Gaussian
        differential privacy", Proposition 2.5.

    >>> claimed_curve(np.log(3), 0.0, np.array([0.0, 0.25, 1.0])).round(3).tolist()
    [1.0, 0.25, 0.0]
    """
    alpha = np.asarray(false_positive, float)
    if np.isinf(epsilon):
        return np.zeros_like(alpha)
    growth = np.exp(min(epsilon, 700.0))  # finite: 0 times it is 0
    return np.maximum(0, np.maximum(1 - delta - growth * alpha, (1 - delta - alpha) / growth))


def above(scores: Scores, thresholds: Float[np.ndarray, " n"]) -> np.ndarray[Any, Any]:
    """How many of `scores` [L] reach each of `thresholds` [n]."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")


def trade_off(negative: Scores, positive: Scores, confidence: float, points: int = 200) -> Curve:
    """The curve of the tests {score >= threshold}.

    negative, positive: scores [L] of runs on the first and on the second input. confidence in (0, 1): of each upper
    bound. points: about how many thresholds.
    """
    half = points // 2
    steps = np.concatenate([[0.0], np.geomspace(1e-4, 0.5, half), 1 - np.geomspace(0.5, 1e-4, half), [1.0]])
    pooled = np.concatenate([negative, positive])
    thresholds = np.concatenate([np.unique(np.quantile(pooled, steps, method="nearest")), [np.inf]])
    failure = (1 - confidence) / 2
    fp, tp = above(negative, thresholds), above(positive, thresholds)
    fn = len(positive) - tp
    high = [clopper_pearson(k, len(x), failure)[1] for k, x in ((fp, negative), (fn, positive))]
    return Curve(fp / len(negative), fn / len(positive), *high)
