"""What a setting is judged by: a number for each seed, whose mean over seeds is the objective; and which settings could
be the best.

Axes: [N] settings, [F] problems of a family, [S] seeds. Regret of seeds that a setting was not run on is NaN.
"""

from typing import Any

import numpy as np

from jaxbandits.typing import Float, Tensor

OBJECTIVES = ("mean", "worst", "quantile")
CONFIDENCE = 0.95  # of the set of settings that could be the best


def over_family(regret: Tensor, objective: str, quantile: float) -> np.ndarray[Any, Any]:
    """One number a seed [..., S] from the regret [..., F, S] on every problem of a family.

    Its mean over seeds is the objective: of the F mean regrets their mean, the largest, or a quantile, interpolated
    between two of them. For the last two it is the regret on the problem of the largest mean, or the weighted regrets
    on the two problems, so that intervals take these problems as given.

    >>> over_family(np.array([[1.0, 3.0], [4.0, 4.0]]), "worst", 0.9).tolist()
    [4.0, 4.0]
    """
    regret = np.asarray(regret, np.float64)
    if regret.shape[-2] == 1:
        return regret[..., 0, :]
    if objective == "mean":
        return regret.mean(-2)
    means = np.nanmean(np.where(np.isnan(regret).all(-1, keepdims=True), np.inf, regret), -1)
    order = np.argsort(means, -1, kind="stable")
    at = (regret.shape[-2] - 1) * (1.0 if objective == "worst" else quantile)
    low = int(np.floor(at))
    high = min(low + 1, regret.shape[-2] - 1)

    def ranked(rank: int) -> np.ndarray[Any, Any]:
        return np.take_along_axis(regret, order[..., rank, None, None], -2)[..., 0, :]

    return ranked(low) if at == low else (high - at) * ranked(low) + (at - low) * ranked(high)


def means_of(values: Float[np.ndarray, "*N S"]) -> Float[np.ndarray, "*N"]:
    """The mean over the seeds that were run. Infinite where one of them is not finite, or none was run."""
    run = ~np.isnan(values)
    counts = run.sum(-1)
    mean = np.divide(np.where(run, values, 0.0).sum(-1), counts, out=np.full(counts.shape, np.inf), where=counts > 0)
    return np.where(np.isfinite(mean), mean, np.inf)


def could_be_best(values: Float[np.ndarray, "N S"]) -> np.ndarray[Any, Any]:
    """Which settings [N] could have the lowest mean: the best one is among them with a probability of at least 95%.

    A setting is left out where a paired t test finds it worse than some other one; the tests share the 5% (Bonferroni).
    Which setting came out lowest plays no part, so that it need not be corrected for. Settings that were stopped early
    have NaN from there on: pairs are compared on their common seeds at every number of seeds at which some stopped.

    >>> could_be_best(np.array([[1.0, 2.0, 3.0, 2.0], [2.0, 1.0, 2.0, 3.0], [9.0, 8.0, 9.0, 9.5]])).tolist()
    [True, True, False]
    """
    from scipy import stats

    values = np.asarray(values, np.float64)
    number_run = (~np.isnan(values)).sum(-1)
    stops = np.unique(number_run[number_run > 0])
    possible = np.ones(len(values), bool)
    tests = max(len(values) - 1, 1) * len(stops)
    for stop in stops:
        here = np.flatnonzero(number_run >= stop)
        if stop < 2 or len(here) < 2:
            continue
        limit = stats.t.ppf(1 - (1 - CONFIDENCE) / tests, stop - 1)
        shared = values[here, :stop]
        for other in shared:
            difference = shared - other
            mean, error = difference.mean(-1), difference.std(-1, ddof=1) / np.sqrt(stop)
            possible[here] &= ~((mean > 0) & (mean > limit * error))
    return possible
