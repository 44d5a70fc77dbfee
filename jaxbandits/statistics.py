"""Summaries of a sweep: means with intervals, paired comparisons, log-log slopes and tables.

Everything is computed over the `seed` axis of a Dataset that `sweep` returned. Regret is cumulative and in units of
reward. Intervals are at 95%. A NaN or infinite regret is data: it makes its row NaN or infinite and is never left
out.
"""

import itertools
import json
import math
import warnings
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from annotated_doc import Doc
from scipy.special import stdtrit

from jaxbandits import intervals, selection, spending
from jaxbandits.formatting import format_value, inert, join_values, markdown_table, show, texts_of
from jaxbandits.intervals import Way
from jaxbandits.selection import Swept, final_regret, grid_dims, select_values, takers, tidy, whole
from jaxbandits.typing import Tensor, Vector
from jaxbandits.validation import choice, declare


class WholeTable(pd.DataFrame):
    """A table that is printed with all of its columns, in blocks where a line is too narrow for them."""

    _constructor = property(lambda self: WholeTable)  # of what is cut from it

    def __repr__(self) -> str:
        with pd.option_context("display.max_columns", None, "display.max_colwidth", None):
            return super().__repr__()


SLOPE_RESAMPLES = 500  # bootstrap resamples of a slope's interval
Checkpoint = Annotated[int | None, Doc("A checkpoint (in plays) at which regret is read instead of the end.")]
Markup = Annotated[Literal["markdown", "latex"], Doc("The markup of the table.")]
Compared = str | tuple[str, Mapping[str, Any]]
MAX_TABLE_COLUMNS = 8  # a table with more columns fits neither a page nor a terminal


def mean_interval(values: Tensor) -> tuple[Any, Any, Any]:
    """The mean over the last axis with its 95% Student interval.

    values: array [..., S], one number a seed. Returns mean, low and high, arrays [...]; low and high are NaN for one
    seed, and where a value is not finite.

    >>> [round(float(x), 3) for x in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.484, 4.484]
    """
    values = np.asarray(values, np.float64)
    mean = values.mean(-1)
    half = _half_width(values)
    return mean, mean - half, mean + half


def holm(p_values: Vector) -> np.ndarray[Any, Any]:
    """Holm's step-down correction of p-values for testing several hypotheses at once.

    p_values: array [M] in [0, 1]; NaN stands for what was not tested, stays NaN and is not counted among the tests.
    The corrected ones are at most 1. Source: Holm 1979, "A simple sequentially rejective multiple test procedure".

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    corrected = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested])]
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1.0)
    return corrected


@declare(check=False)
def summary(ds: Swept, *, t: Checkpoint = None) -> pd.DataFrame:
    """Final regret over seeds, one row for each algorithm and grid point.

    Returns:
        pandas.DataFrame: Columns `algorithm`, the grid's keys (with a _ behind one that is called as another column),
            `seeds`, `mean`, `ci_low` and `ci_high` (95% interval of
            the mean), `median`, `q05`, `q95`, every count of non-finite values that the Dataset holds, summed over
            seeds, of labelled rows `right_answers`, the mean share of them, and, where something is private,
            `epsilon_asked`, `epsilon_spent` and `delta_spent`. An algorithm that does not depend on a key has equal
            rows along it.

    Raises:
        ValueError: Where `t` is no checkpoint, or a dimension of the sweep is gone.
        TypeError: For anything but a sweep's Dataset.

    >>> import xarray as xr
    >>> dims = ("algorithm", "seed", "t")
    >>> ds = xr.Dataset({"regret": (dims, np.arange(5.0).reshape(1, 5, 1))}, {"algorithm": ["a"], "t": [9]})
    >>> summary(ds)[["algorithm", "seeds", "mean", "median"]].values.tolist()
    [['a', 5, 2.0, 2.0]]
    """
    ds = whole(ds, "summary")
    final = final_regret(ds, t)
    names = ("seeds", "mean", "ci_low", "ci_high", "median", "q05", "q95")
    quantiles = np.quantile(final.values, [0.5, 0.05, 0.95], axis=-1)
    found = (final.sizes["seed"], *mean_interval(final.values), *quantiles)
    columns: dict[str, Any] = dict(zip(names, found, strict=True))
    for name, variable in ds.data_vars.items():
        if "nonfinite" in str(name) and "seed" in variable.dims:
            counts = variable.sum("seed").broadcast_like(final.isel(seed=0))
            columns[str(name)] = counts.transpose(*final.dims[:-1]).values
    if selection.unit_of(ds) == selection.ANSWERS:
        columns["right_answers"] = selection.right_answers(ds, t).mean("seed").values
    if spending.has_spending(ds) and json.loads(ds.attrs.get("guarantees", "{}")):
        columns |= {name: spending.coordinate_array(ds, name) for name in spending.COORDINATES}
    return WholeTable(tidy(final.isel(seed=0), columns))


@declare(check=False)
def compare(ds: Swept, a: Compared, b: Compared, *, t: Checkpoint = None, interval: Way = "student") -> pd.DataFrame:
    """Paired comparison of two algorithms, or of two grid points: the same seeds give both the same environment.

    Args:
        a, b (str or (str, dict)): The label of an algorithm, or `(label, {key: value})` to fix keys of the grid.
        interval: How the interval and the p-value are made. The default, "student": a paired t test, for many seeds or
            normal differences. "bootstrap-t": as skewed as the differences are. "anytime": as in `until`, for symmetric
            differences and from 64 seeds on, and however often one looks.

    Returns:
        pandas.DataFrame: One row for each remaining grid point; keys along which neither side changes are left out.
            Columns: `a`, `b`, the keys, `seeds`, `difference` (mean regret of a minus that of b), `ci_low` and
            `ci_high` (95% interval; NaN where all differences are equal), `relative` (difference divided by the mean of
            b; NaN where a mean is negative), `p_value` (at least 2^(1 - m), with m the seeds in which a and b differ),
            `p_holm` (corrected for the number of rows: a is better or worse where it is at most 0.05; the interval is
            not corrected), `share_lower` (share of seeds in which a has less regret; ties are on neither side) and
            `seeds_needed` (how many Student's interval needs to be right, as far as these show; `until` finds how many
            tell which is better).

    Raises:
        ValueError: For an unknown label, key or value, or another `interval`.
        TypeError: For anything but a sweep's Dataset.

    Warns:
        UserWarning: With "student", where `seeds_needed` are more than there are: below 30 seeds, where differences are
            skewed, as those of an algorithm that rarely fails, and where all are equal.

    Note:
        No number of seeds shows what happens in fewer than one of them: of failures in 1 of 100 runs, 200 seeds see
        none in 13 of 100 sweeps. `docs/concepts.md#how-far-an-interval-can-be-trusted` has measured how often each way
        is wrong.

    >>> import xarray as xr
    >>> regret = np.random.default_rng(0).normal(size=(2, 40, 1)) + [[[1.0]], [[2.0]]]
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), regret)}, coords={"algorithm": ["x", "y"], "t": [9]})
    >>> compare(ds, "x", "y")[["difference", "share_lower", "seeds_needed"]].round(3).values.tolist()
    [[-1.362, 0.8, 30.0]]
    """
    choice("interval", interval, intervals.WAYS)
    ds = whole(ds, "compare")
    final = final_regret(ds, t)
    constant = json.loads(ds.attrs.get("constant_along", "{}"))
    (label_a, at_a), (label_b, at_b) = (_side(final, side, name) for name, side in (("a", a), ("b", b)))
    left = select_values(final, {"algorithm": label_a, **at_a}, "a")
    right = select_values(final, {"algorithm": label_b, **at_b}, "b")
    # A pair repeated along an axis is one test, not several: counting it again would weaken Holm's correction.
    idle_a, idle_b = ({*constant.get(x, ())} | {*at} for x, at in ((label_a, at_a), (label_b, at_b)))
    idle = [d for d in grid_dims(ds) if d in idle_a and d in idle_b]
    left, right = (x.isel({d: 0 for d in idle if d in x.dims}, drop=True) for x in (left, right))
    left, right = xr.broadcast(left, right)
    dims = [d for d in grid_dims(ds) if d in left.dims]
    left, right = left.transpose(*dims, "seed"), right.transpose(*dims, "seed")
    difference = left.values - right.values
    low, high, p_value = intervals.of_mean(difference, interval)
    needed = intervals.seeds_needed(difference)
    if interval == "student":
        _warn_of_few(needed, left.sizes["seed"])
    mean, base = difference.mean(-1), right.values.mean(-1)
    positive = (base > 0) & (left.values.mean(-1) >= 0)
    relative = np.divide(mean, base, out=np.full_like(mean, np.nan), where=positive)
    lower = np.where(np.isnan(difference).any(-1), np.nan, (difference < 0).mean(-1))
    columns = {"seeds": left.sizes["seed"], "difference": mean, "ci_low": low, "ci_high": high, "relative": relative}
    columns |= {"p_value": p_value, "p_holm": holm(np.ravel(p_value)), "share_lower": lower, "seeds_needed": needed}
    here = left.isel(seed=0, drop=True)
    of_others = [c for c, v in here.coords.items() if not {label_a, label_b} & {*(takers(v) or (label_a,))}]
    here = here.drop_vars(of_others).rename({c: f"{c}_" for c in here.coords.keys() & {"a", "b"} - {*of_others}})
    frame = WholeTable(tidy(here, columns))
    close = label_a == label_b and [*map(format_value, at_a.values())] == [*map(format_value, at_b.values())]
    for place, (label, at) in enumerate(((label_a, at_a), (label_b, at_b))):
        keys = ", ".join(f"{key} = {(show if close else format_value)(value)}" for key, value in at.items())
        frame.insert(place, "ab"[place], f"{label} ({keys})" if at else label)
    return frame


@declare(check=False)
def decisions(ds: Swept) -> pd.DataFrame:
    """What a sweep with `seeds=jb.until(...)` has decided.

    Returns:
        pandas.DataFrame: One row for each comparison at each point of the grid; keys along which neither side changes
            are left out. Columns: `a`, `b`, the keys, `lower` (the label with less regret, or "undecided"), `seeds`
            (how many decided it; all, where it is undecided), `difference` (mean regret of a minus that of b, on all
            seeds) and `p_value` (valid at any time and corrected for the number of rows; at most `error` where it is
            decided). Its `attrs` are the rule's `error`, `most` and `block`.

    Raises:
        ValueError: The seeds of the sweep do not come from `until`.
        TypeError: For anything but a sweep's Dataset.

    >>> import jaxbandits as jb
    >>> ds = jb.sweep(["ucb1", "uniform"], jb.environments.bernoulli_arms(means=[0.2, 0.8]), horizon=100,
    ...               grid={"bonus_scale": [0.5, 1.0]}, seeds=jb.until([("uniform", "ucb1")]), progress=False)
    >>> decisions(ds)[["bonus_scale", "lower", "seeds"]].values.tolist()
    [[0.5, 'ucb1', 64], [1.0, 'ucb1', 64]]
    """
    ds = whole(ds, "decisions")
    if "decisions" not in ds.attrs:
        raise ValueError("decisions: this sweep ran a given number of seeds: compare(ds, a, b) compares algorithms")
    rule = json.loads(ds.attrs["decisions"])
    frame = WholeTable([{"a": row["a"], "b": row["b"], **row.pop("at"), **row} for row in rule.pop("rows")])
    frame.attrs = rule
    return frame


@declare(check=False)
def slope(
    ds: Swept, over: str = "t", *, theory: Mapping[str, float] | None = None, t_min: float | None = None
) -> pd.DataFrame:
    """Least-squares slope of log mean regret against log `over`, with a 95% bootstrap interval over seeds.

    Args:
        over: `"t"` (the default), `"horizon"`, or any numeric key of the grid; keys use the regret at the end of the
            run.
        theory (dict, optional): `{label: exponent}`, shown beside the slope as the column `theory`.
        t_min: In plays, with `over="t"` only: fit the checkpoints t >= t_min instead of the last decade.

    Returns:
        pandas.DataFrame: One row for each algorithm and remaining grid point: the keys, `points` fitted, `seeds`,
            `slope`, `ci_low`, `ci_high`, and `theory` where it is given.

    Raises:
        ValueError: For an unknown or non-numeric `over`, an unknown label of `theory`, `t_min` with another `over`, or
            where fewer than two points can be fitted.
        TypeError: For anything but a sweep's Dataset.

    Note:
        Points where the mean regret or `over` is not positive and finite are left out. No power law falls below zero,
        so that a row that does is refused. The interval covers sampling
        error, not the bias of fitting a power law to what is not one.

    >>> import xarray as xr
    >>> t = np.array([10, 100, 1000])
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), [[2 * t**0.5, 3 * t**0.5]])}, {"t": t})
    >>> slope(ds, t_min=10)[["points", "slope"]].round(6).values.tolist()
    [[3.0, 0.5]]
    """
    ds = whole(ds, "slope")
    if over == "t":
        curves, x = ds["regret"].transpose("algorithm", *grid_dims(ds), "seed", "t"), ds["t"].values.astype(np.float64)
    else:
        known = ["t", *grid_dims(ds)]
        choice("over", over, known)
        if t_min is not None:
            raise ValueError(f"t_min = {t_min} applies to over='t' only: leave it out with over={over!r}")
        if ds[over].dtype.kind not in "iuf":
            values = join_values(ds[over].values)
            raise ValueError(f"over = {over!r} is not numeric ({values}): choose another of {join_values(known)}")
        others = [d for d in grid_dims(ds) if d != over]
        curves, x = final_regret(ds).transpose("algorithm", *others, "seed", over), ds[over].values.astype(np.float64)
    seeds = curves.sizes["seed"]
    # One set of resamples for all rows, since the rows are paired by seed.
    weights = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), size=SLOPE_RESAMPLES) / seeds
    columns = {"points": 0, "seeds": seeds, "slope": 0.0, "ci_low": 0.0, "ci_high": 0.0}
    columns |= {} if theory is None else {"theory": 0.0}
    frame = tidy(curves.isel({"seed": 0, curves.dims[-1]: 0}), columns)
    lanes, rows = curves.values.reshape(-1, *curves.shape[-2:]), []
    for where, values in zip(frame.drop(columns=[*columns]).to_dict("records"), lanes, strict=True):
        mean, use = values.mean(0), points_to_fit(values, x, over, t_min)
        if use.sum() < 2:
            remedy = "lower t_min or run more checkpoints" if over == "t" else "run more values"
            message = f"slope against {over!r} needs two points above zero and none below, {where} has {use.sum()}"
            raise ValueError(f"{message}: {remedy}, or select the others first")
        resampled = log_slopes(x[use], weights @ values[:, use])
        low, high = np.nanquantile(resampled, [0.025, 0.975]) if seeds > 1 else (np.nan, np.nan)
        rows.append((use.sum(), log_slopes(x[use], mean[None, use])[0], low, high))
    frame["points"], frame["slope"], frame["ci_low"], frame["ci_high"] = zip(*rows, strict=True)
    if theory is not None:
        for label in theory:
            choice("a label of theory", label, list(ds["algorithm"].values))
        frame["theory"] = frame["algorithm"].map(theory).astype(float)
    return frame


class _Table(str):
    """The text of a table: a terminal shows its lines, a notebook renders it."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self) if self.startswith("|") else f"```latex\n{self}\n```"


@declare(check=False)
def table(ds: Swept, format: Markup = "markdown") -> str:
    """Final mean regret ± half-width of its 95% interval, as text for a paper or a page.

    Algorithms are rows. The last grid key with several values (at most eight) gives the columns, other keys give more
    rows.

    Returns:
        The table and a line that says how many seeds it is over. A notebook renders it.

    Raises:
        ValueError: For another format.
        TypeError: For anything but a sweep's Dataset.

    >>> import xarray as xr
    >>> dims = ("algorithm", "seed", "t")
    >>> ds = xr.Dataset({"regret": (dims, np.arange(9.0).reshape(1, 9, 1))}, {"algorithm": ["a"], "t": [9]})
    >>> print(table(ds))
    | algorithm | regret |
    |---|---|
    | a | 4.0 ± 2.1 |
    <BLANKLINE>
    Mean ± half-width of the 95% interval over 9 seeds. Of fewer than 30 seeds, intervals may miss the mean more often.
    """
    choice("format", format, ("markdown", "latex"))
    ds = whole(ds, "table")
    final = final_regret(ds)
    single = [d for d in grid_dims(ds) if final.sizes[d] == 1]
    fixed = "".join(f"; {d} = {format_value(final[d].values[0])}" for d in single)
    final = final.squeeze(single, drop=True)
    shown = [str(d) for d in final.dims[1:-1]]
    across = shown.pop() if shown and final.sizes[shown[-1]] <= MAX_TABLE_COLUMNS else None
    head = [f"{across} = {text}" for text in texts_of(final[across].values, format_value)] if across else ["regret"]
    latex = format == "latex"
    readable = (lambda cell: cell.translate(_LATEX_SIGNS)) if latex else inert
    # LaTeX's other cells are LaTeX, except in the head
    rows = [list(map(readable, ["algorithm", *shown, *head]))]
    columns = list[list[str]]()
    for values in (final[d].values for d in ("algorithm", *shown)):
        texts = texts_of(values, format_value)
        columns.append(texts if values.dtype.kind in "iuf" else list(map(readable, texts)))
    keys = itertools.product(*columns)
    for key, lanes in zip(keys, final.values.reshape(-1, len(head), final.sizes["seed"]), strict=True):
        rows.append([*key, *(_cell(c, latex) for c in lanes)])
    seeds = final.sizes["seed"]
    many = f"Mean ± half-width of the 95% interval over {seeds:,} seeds"
    note = many if seeds > 1 else "Regret of one seed, hence no interval"
    said = spending.sentence(ds)
    note = f"{note}{fixed}.{_doubt(final.values)}{f' {said}.' if said else ''}"
    if not latex:
        return _Table(f"{markdown_table(rows)}\n\n{note}")
    body = [" & ".join(row) + r" \\" for row in rows]
    begin = rf"\begin{{tabular}}{{{'l' * (1 + len(shown)) + 'r' * len(head)}}}"
    lines = [f"% {note.replace('±', 'and')}", begin, body[0], r"\hline", *body[1:], r"\end{tabular}"]
    return _Table("\n".join(lines))


def _half_width(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | np.floating[Any]:
    seeds = values.shape[-1]
    if seeds < 2:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):  # an infinite regret: its interval is NaN
        half = stdtrit(seeds - 1, 0.975) * values.std(-1, ddof=1) / math.sqrt(seeds)
        return np.where(np.ptp(values, axis=-1) == 0, 0.0, half)  # a mean of equal numbers is rounded


def _doubt(values: np.ndarray[Any, Any]) -> str:
    """A sentence where the intervals of `table` may be wrong, else an empty text. values: [..., S]."""
    seeds, needed = values.shape[-1], intervals.seeds_needed(values)
    if 1 < seeds < intervals.LEAST_SEEDS:
        return f" Of fewer than {intervals.LEAST_SEEDS} seeds, intervals may miss the mean more often."
    skewed = _is_skewed(values)
    if not skewed.any():
        return ""
    doubtful = f"{np.sum(skewed):,} of {np.size(skewed):,} intervals (marked *) may be too narrow, as regret is skewed"
    return f" {doubtful}: about {np.max(needed[skewed]):,.0f} seeds would be enough."


def _is_skewed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which intervals of 30 seeds or more may be too narrow. values: [..., S]."""
    needed, seeds = intervals.seeds_needed(values), values.shape[-1]
    return np.isfinite(needed) & (needed > seeds) & (seeds >= intervals.LEAST_SEEDS)


def _warn_of_few(needed: Any, seeds: int) -> None:
    """Warn where the intervals of `compare` may be wrong."""
    few = (needed > seeds) & (seeds > 1)
    if np.any(few):
        most = np.max(np.where(few, needed, 0))
        enough = f"about {most:,.0f} seeds would make them right, which need not decide between a and b"
        why = "all differences are equal" if np.isinf(most) else enough
        wrong = f"intervals and p-values of {np.sum(few):,} of {np.size(few):,} rows may be wrong with {seeds:,} seeds"
        remedy = "run more of them, give interval='bootstrap-t' or 'anytime'"
        until = "or let seeds=jb.until(...) decide how many"
        warnings.warn(f"compare: {wrong} ({why}): {remedy}, {until}", UserWarning, stacklevel=3)


def points_to_fit(values: Any, x: Any, over: str, t_min: float | None = None) -> np.ndarray[Any, Any]:
    """Which points `[C]` a slope of `[S, C]` is fitted to: positive ones, from `t_min` on; none if one is negative."""
    mean = values.mean(0)
    use = np.isfinite(mean) & (x > 0) & np.isfinite(x)
    own = x[~np.isnan(values).all(0)]  # a shorter horizon is padded with NaN
    use &= (x >= (t_min if t_min is not None else own.max(initial=0) / 10)) | (over != "t")
    return use & (mean > 0) & (not (mean[use] < 0).any())


def log_slopes(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Slopes `[R]` of log y `[R, C]` on log x `[C]`, over each row's positive points."""
    use = y > 0
    lx, ly = np.where(use, np.log(x), 0.0), np.log(np.where(use, y, 1.0))
    n = np.maximum(use.sum(-1, keepdims=True), 1)
    dx = np.where(use, lx - lx.sum(-1, keepdims=True) / n, 0.0)
    square = (dx**2).sum(-1)
    return np.divide((dx * ly).sum(-1), square, out=np.full(len(y), np.nan), where=square > 0)


def _side(final: xr.DataArray, side: Any, name: str) -> tuple[str, dict[str, Any]]:
    """The label and the fixed keys of one side of a comparison."""
    pair = isinstance(side, tuple | list) and len(side) == 2 and isinstance(side[1], dict)
    labels = [str(x) for x in final["algorithm"].values]
    alone = isinstance(side, str) or (np.isscalar(side) and str(side) in labels)
    if not alone and not pair:
        raise ValueError(f"{name} = {show(side)} must be a label, or (label, {{key: value}}) for one point of the grid")
    label, at = (side, {}) if alone else side
    for key, value in at.items():
        if isinstance(value, list | tuple | np.ndarray):
            raise ValueError(f"{name}: {key} = {show(value)} must be one value: leave {key} out for a row at each")
    return choice(name, str(label), labels), dict(at)


def _cell(values: np.ndarray[Any, Any], latex: bool) -> str:
    """A cell of `table`: the mean and its half-width, rounded to the half-width's second digit, and perhaps a mark."""
    mean, half = values.mean(), float(_half_width(values))
    if not (math.isfinite(mean) and math.isfinite(half)):
        return f"{mean:g}"
    short = half > 0 or np.isclose(mean, round(float(mean), 1), rtol=1e-9, atol=0)
    spread = half if short else abs(mean) / 100  # four digits of what does not vary
    digits = max(0, 1 - math.floor(math.log10(spread))) if spread > 0 else 1
    plus = r" \pm " if latex else " ± "
    cell = f"{mean:,.{digits}f}{plus}{half:,.{digits}f}"
    return (f"${cell.replace(',', '{,}')}$" if latex else cell) + ("*" if _is_skewed(values) else "")


_LATEX_SIGNS = str.maketrans({
    "\\": r"\textbackslash ", "~": r"\textasciitilde ", "^": r"\textasciicircum ", "<": r"\textless ",
    ">": r"\textgreater ", "|": r"\textbar ", "[": "{[}", "*": "{*}", **{sign: f"\\{sign}" for sign in "_%&#${}"},
})  # fmt: skip
