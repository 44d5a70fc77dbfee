"""What the studies share: final regrets as rows, ratios and exponents with their intervals."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import statistics
from jaxbandits.formatting import brackets
from jaxbandits.selection import final_regret, grid_dims, tidy
from jaxbandits.statistics import mean_interval
from jaxbandits.typing import Tensor

# the keys of one axis: the share of corrupted messages or rewards, of which the learner is told
MESSAGE_SHARE = ("corruption_bound", "message_adversary.corruption")
REWARD_SHARE = ("corruption_bound", "reward_adversary.corruption")


def regrets(ds: xr.Dataset) -> pd.DataFrame:
    """Mean final regret with its 95% interval: columns `algorithm`, the grid's, `mean`, `low`, `high`."""
    final = final_regret(ds).transpose("algorithm", *grid_dims(ds), "seed")
    mean, low, high = mean_interval(final.values)
    return tidy(final.isel(seed=0, drop=True), {"mean": mean, "low": low, "high": high})


def curve(line: str, x: str, xs: Iterable[Any], y: str, values: Tensor) -> list[dict[str, Any]]:
    """Rows of a line: means of values [X, S] over seeds with their 95% intervals, or values [X] themselves."""
    values = np.asarray(values, np.float64)
    mean, low, high = mean_interval(values) if values.ndim > 1 else (values, values, values)
    return [{x: at, y: m, "low": a, "high": b, "line": line} for at, m, a, b in zip(xs, mean, low, high, strict=True)]


def ratio_interval(numerator: Tensor, denominator: Tensor) -> tuple[Any, Any, Any]:
    """Ratio of two means over the last axis with its 95% interval; the values are paired, seed by seed.

    The interval is that of numerator - ratio * denominator, divided by the mean of the denominator.

    >>> [round(float(x), 2) for x in ratio_interval(np.array([2.0, 4.0]), np.array([1.0, 2.0]))]
    [2.0, 2.0, 2.0]
    """
    above, below = np.broadcast_arrays(np.asarray(numerator, np.float64), np.asarray(denominator, np.float64))
    ratio = above.mean(-1) / below.mean(-1)
    _, low, high = mean_interval((above - ratio[..., None] * below) / below.mean(-1)[..., None])
    return ratio, ratio + low, ratio + high


def ratios(final: xr.DataArray, ours: str, theirs: str, key: str = "epsilon") -> str:
    """The regret of one algorithm over that of another at each value of a key, with its 95% interval, in words."""
    parts = []
    for value in final[key].values:
        here = final.sel({key: value})
        ratio, low, high = ratio_interval(here.sel(algorithm=ours).values, here.sel(algorithm=theirs).values)
        parts.append(f"{ratio:.2f} [{low:.2f}, {high:.2f}] at {value:g}")
    return ", ".join(parts)


def exponent(ds: xr.Dataset, over: str, *, sign: int = 1) -> tuple[float, str]:
    """The log-log slope of one algorithm's final regret along a key, and its interval, decades and bias in words.

    Its bias is the distance between the slope along the whole key and that along its upper half (its lower one where
    `sign` is -1, towards which the regret grows). It needs three values of the key at least. An order has no constant,
    so that no slope decides about it: this is what stands beside it.
    """
    ordered = ds.sortby(over, ascending=sign > 0)
    values = np.asarray(ordered[over].values, np.float64)
    if len(values) < 3:
        raise ValueError(f"over = {over!r} has {len(values)} values: an exponent and its bias need three")
    row = statistics.slope(ordered, over=over).iloc[0]
    end = statistics.slope(ordered.isel({over: slice((len(values) - 1) // 2, None)}), over=over).iloc[0]
    ends = brackets(*sorted((sign * row.ci_low, sign * row.ci_high)))
    decades, bias = math.log10(values.max() / values.min()), abs(float(end.slope) - float(row.slope))
    return sign * float(row.slope), f"exponent {ends} over {decades:.1f} decades, bias {bias:.2f}"
