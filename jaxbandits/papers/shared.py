"""What the studies share: final regrets as rows, ratios and exponents with their intervals."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import statistics
from jaxbandits.formatting import brackets
from jaxbandits.papers.study import Claim, Results
from jaxbandits.reports import plot
from jaxbandits.reports.plot import Plot
from jaxbandits.selection import final_regret, grid_dims, tidy
from jaxbandits.statistics import mean_interval
from jaxbandits.typing import Tensor

# the keys of one axis: the share of corrupted messages or rewards, of which the learner is told
MESSAGE_SHARE = ("corruption_bound", "message_adversary.corruption")
REWARD_SHARE = ("corruption_bound", "reward_adversary.corruption")
BUDGET = "reward_adversary.total"  # of corruption
# values y at x in words (`series`): regrets along a key, and the regret or the ratio of an algorithm
AT, REGRET, RATIO = "{y:,.0f} at {x:g}", "{x} {y:,.0f}", "{x} {y:.2f}"


def horizon_of(results: Results) -> int:
    """The plays of the first sweep's runs."""
    return next(int(ds.t[-1]) for ds in results.values() if isinstance(ds, xr.Dataset))


def regrets(ds: xr.Dataset) -> pd.DataFrame:
    """Mean final regret with its 95% interval: columns `algorithm`, the grid's, `mean`, `low`, `high`."""
    final = final_regret(ds).transpose("algorithm", *grid_dims(ds), "seed")
    mean, low, high = mean_interval(final.values)
    return tidy(final.isel(seed=0, drop=True), {"mean": mean, "low": low, "high": high})


def series(xs: Iterable[Any], ys: Iterable[Any], form: str = AT, separator: str = ", ") -> str:
    """Values y at x in words.

    >>> series([0.1, 1.0], [1234.0, 5.0])
    '1,234 at 0.1, 5 at 1'
    """
    both = (np.asarray(values if hasattr(values, "__array__") else list(values)) for values in (xs, ys))
    return separator.join(form.format(x=x, y=y) for x, y in zip(*both, strict=True))


def short(ratios: Iterable[float], whole: float = 10) -> list[str]:
    """Ratios as texts in the cells of a map: with a digit after the point below `whole`."""
    return [f"{x:.1f}" if x < whole else f"{x:.0f}" for x in ratios]


def and_own(ds: xr.Dataset, labels: Iterable[str]) -> list[str]:
    """Labels that a picture shows, and those of own algorithms beside them (`beside`)."""
    return [*labels, *ds.attrs.get("own", ())]


def in_order(frame: pd.DataFrame, labels: Iterable[str]) -> pd.DataFrame:
    """The rows of those algorithms that are there, label by label."""
    parts = dict(list(frame.groupby("algorithm", sort=False)))
    return pd.concat([parts[label] for label in labels if label in parts])


def bound_along(bound: Callable[..., float], at: Callable[[float], tuple]) -> Callable[[Iterable[float]], np.ndarray]:
    """A bound as a function of an axis: `at(x)` are its arguments there."""
    return lambda xs: np.array([bound(*at(float(x))) for x in xs])


def by_algorithm(ds: xr.Dataset, key: str, statement: Callable[[str], str], form: str = AT) -> list[Claim]:
    """A line for each algorithm: its mean regret at every value of the key."""
    parts = regrets(ds).groupby("algorithm", sort=False)
    return [Claim(statement(label), "", series(part[key], part["mean"], form)) for label, part in parts]


def by_value(ds: xr.Dataset, key: str, statement: Callable[[Any], str], separator: str = ", ") -> list[Claim]:
    """A line for each value of the key: the mean regret of every algorithm there."""
    at = {value: (part["algorithm"], part["mean"]) for value, part in regrets(ds).groupby(key)}
    return [Claim(statement(value), "", series(*pair, REGRET, separator)) for value, pair in at.items()]


Curve: TypeAlias = tuple[Any, ...]
"""A line of a picture: its name, places along x, and values [X, S] over seeds, means [X], or means and their ends."""


def curves(x: str, y: str, given: Iterable[Curve]) -> pd.DataFrame:
    """A row for each point of each curve, with the 95% interval of a mean over seeds."""
    rows = []
    for line, xs, *values in given:
        table = np.asarray(values[0], np.float64)
        ends = mean_interval(table) if table.ndim > 1 else values if len(values) > 1 else (table, table, table)
        rows += [{x: at, y: m, "low": a, "high": b, "line": line} for at, m, a, b in zip(xs, *ends, strict=True)]
    return pd.DataFrame(rows)


def draw_curves(x: str, y: str, given: Iterable[Curve], log: Literal["x", "y", "both"] = "both", **more: Any) -> Plot:
    """The picture of curves."""
    return plot.lines(curves(x, y, given), x, y, line="line", log=log, **more)


def picture(
    draw: Callable[..., Plot], data: str | Callable[[Results], Any], *columns: str, **settings: Any
) -> Callable[[Results], Plot]:
    """A figure: a function of `jb.plot` of one result, by its name, or of what `data` makes from the results.

    A setting that depends on the data is a function of it.
    """

    def drawing(results: Results) -> Plot:
        shown = results[data] if isinstance(data, str) else data(results)
        return draw(shown, *columns, **{key: x(shown) if callable(x) else x for key, x in settings.items()})

    return drawing


against = partial(picture, plot.against)


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


def times(numerator: Tensor, denominator: Tensor, digits: int = 2) -> str:
    """The ratio of two means over seeds with its 95% interval in brackets, in words."""
    ratio, low, high = (f"{float(x):.{digits}f}" for x in ratio_interval(numerator, denominator))
    return f"{ratio} [{low}, {high}]"


def ratios(final: xr.DataArray, ours: str, theirs: str, key: str = "epsilon", form: str = "{y} at {x:g}") -> str:
    """The regret of one algorithm over that of another at each value of a key, with its 95% interval, in words."""
    pairs = [final.sel({"algorithm": label}).transpose(key, "seed").values for label in (ours, theirs)]
    return series(final[key].values, [times(*pair) for pair in zip(*pairs, strict=True)], form)


def with_numeric_key(ds: xr.Dataset, key: str, name: str | None = None) -> xr.Dataset:
    """The Dataset with a key, renamed, whose values are numbers: those of texts, and the first ones of tuples."""
    ds = ds.rename({key: name or key})
    return ds.assign_coords({name or key: [float(str(x).strip("()").split(",")[0]) for x in ds[name or key].values]})


def slope_text(row: Any, sign: int = 1) -> str:
    """A slope of `statistics.slope` with its 95% interval, in words; -1 as the sign: against the inverse of the key."""
    low, high = sorted((sign * row.ci_low, sign * row.ci_high))
    return f"{sign * row.slope:.2f} [{low:.2f}, {high:.2f}]"


def as_sweep(final: xr.DataArray) -> xr.Dataset:
    """Final regrets of one algorithm [key, seed] as the Dataset of a sweep, with which an exponent is fitted."""
    regret = final.drop_vars("algorithm", errors="ignore").expand_dims("algorithm").expand_dims("t", -1)
    ordered = regret.assign_coords(t=[1]).transpose("algorithm", ..., "seed", "t").reset_coords(drop=True)
    return ordered.to_dataset(name="regret").assign_attrs(constant_along="{}")


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
