"""Estimates of a policy's mean reward from logged rows, and their intervals: NumPy in float64.

Axes: [n] rows of a log, [m] numbers that an estimate is the mean of, [K] arms.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from jaxbandits.environments.rows import Floats
from jaxbandits.mechanisms.pure import response_bound
from jaxbandits.typing import Scalar

WITH_MODEL = ("dr", "dm")
Whole = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Summands(NamedTuple):
    """An estimate is the mean of independent numbers, and its error follows from their spread."""

    own: Floats  # [m]: of the rows that are used
    every: Floats  # [n]: one for each row of the log, with the same mean, so that two estimates can be paired


def summands_of(
    estimator: str, probabilities: Floats, weights: Floats, arm: Whole, reward: Floats, model: Floats | None
) -> Summands:
    """What an estimate is the mean of.

    weights: [n], cut already. model: [n, K], the reward that is expected of every arm.
    """
    if estimator == "ips":
        found = weights * reward
    elif estimator == "snips":
        value = weights @ reward / weights.sum()
        found = value + weights * (reward - value) / weights.mean()
    elif estimator == "replay":
        used = np.take_along_axis(probabilities, arm[:, None], 1)[:, 0] > 0
        return pair_used(reward, used)
    else:
        assert model is not None
        found = (probabilities * model).sum(axis=1)
        if estimator == "dr":
            found = found + weights * (reward - np.take_along_axis(model, arm[:, None], 1)[:, 0])
    return Summands(found, found)


def pair_used(reward: Floats, used: Flags) -> Summands:
    """The mean reward of the rows that are used [n], bool."""
    value = reward[used].mean()
    return Summands(reward[used], value + used * (reward - value) / used.mean())


def standard_error(summands: Floats) -> float:
    """Of the mean of [m] numbers; NaN of one."""
    return float(summands.std(ddof=1) / math.sqrt(len(summands))) if len(summands) > 1 else math.nan


def half_width(error: float, m: int, confidence: float, spread: float = math.nan, *, student: bool = False) -> float:
    """Half of the interval of the mean of m numbers that has this standard error: normal, or Student's.

    spread: the range in which the numbers lie, for the empirical Bernstein bound of Maurer and Pontil (2009), Theorem
    4, at both sides: hence ln(4 / (1 - confidence)).
    """
    if math.isnan(spread) or m < 2:
        quantile = (1 + confidence) / 2
        return float(stdtrit(m - 1, quantile) if student else ndtri(quantile)) * error
    log = math.log(4 / (1 - confidence))
    return error * math.sqrt(2 * log) + 7 * spread * log / (3 * (m - 1))


def spread_of(estimator: str, low: float, high: float, weight: float) -> float:
    """The range of what an estimate is the mean of, for rewards in [low, high] and weights up to `weight`."""
    if estimator == "ips":
        return max(0.0, weight * high) - min(0.0, weight * low)
    return (high - low) * (1 + 2 * weight if estimator == "dr" else 1)


def bits_of(values: Floats, uniform: Floats, size: float, epsilon: Scalar) -> Floats:
    """One private bit for each of the values in [0, size], whose mean it is; others are cut to the nearer end.

    uniform: [n], which decides the rounding and the flip.
    """
    c = response_bound(epsilon)
    share = np.clip(values / size, 0, 1)
    bit = uniform < 0.5 + (share - 0.5) / c
    return np.asarray(size * (0.5 + c * (bit - 0.5)), np.float64)
