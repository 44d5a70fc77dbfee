"""Summaries of a sweep: means with intervals, paired comparisons, log-log slopes and tables.

Everything is computed over the `seed` axis of a Dataset made by `sweep`. Regret is cumulative and in units of reward.
Intervals are at 95%. A NaN or infinite regret is data: it makes its row NaN or infinite and is never left out.
"""

import itertools
import json
import math
import warnings

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from jaxbandits.selection import final_regret, grid_dims, inert, listed, markdown, pick, text, tidy, whole
from jaxbandits.validation import choice, shown

RESAMPLES = 500
MAX_COLUMNS = 8  # a table with more columns fits neither a page nor a terminal


def mean_interval(values):
    """Mean over the last axis with its 95% Student interval.

    Args: `values [..., S]`, S seeds. Returns `(mean, low, high)`, each `[...]`; low and high are NaN for one seed.

    >>> [round(float(x), 3) for x in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.484, 4.484]
    """
    values = np.asarray(values, np.float64)
    mean = values.mean(-1)
    half = _half_width(values)
    return mean, mean - half, mean + half


def holm(p_values):
    """Holm's step-down correction of `p_values [M]` in [0, 1]; NaN entries (untested) stay NaN and are not counted.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    corrected = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1.0)
    return corrected


def summary(ds, *, t=None) -> pd.DataFrame:
    """Final regret over seeds, one row an algorithm and grid point.

    Columns: `algorithm`, the grid's keys, `seeds`, `mean`, `ci_low`, `ci_high` (95% interval of the mean), `median`,
    `q05`, `q95`, and each count of non-finite values that the Dataset holds, summed over seeds. An algorithm that does
    not depend on a key has equal rows along it. `t`: a checkpoint (plays) instead of the end; ValueError if it is none.

    >>> dims = ("algorithm", "seed", "t")
    >>> ds = xr.Dataset({"regret": (dims, np.arange(5.0).reshape(1, 5, 1))}, {"algorithm": ["a"], "t": [9]})
    >>> summary(ds)[["algorithm", "seeds", "mean", "median"]].values.tolist()
    [['a', 5, 2.0, 2.0]]
    """
    ds = whole(ds, "summary")
    final = final_regret(ds, t)
    names = ("seeds", "mean", "ci_low", "ci_high", "median", "q05", "q95")
    quantiles = np.quantile(final.values, [0.5, 0.05, 0.95], axis=-1)
    columns = dict(zip(names, (final.sizes["seed"], *mean_interval(final.values), *quantiles), strict=True))
    for name, variable in ds.data_vars.items():
        if "nonfinite" in str(name) and "seed" in variable.dims:
            columns[name] = variable.sum("seed").broadcast_like(final.isel(seed=0)).transpose(*final.dims[:-1]).values
    return tidy(final.isel(seed=0), columns)


def compare(ds, a, b, *, t=None) -> pd.DataFrame:
    """Paired comparison of two algorithms, or of two grid points: the same seeds give both the same environment.

    Args: `a`, `b`: a label, or `(label, {key: value})` to fix grid keys; `t`: a checkpoint (plays) instead of the end.
    Returns one row a remaining grid point (keys along which neither side changes are left out): `a`, `b`, keys,
    `seeds`, `difference` (mean regret of a minus b), `ci_low`, `ci_high` (95%), `relative` (difference / mean of b),
    `p_value` (paired t test), `p_holm` (corrected for the rows) and `share_lower` (of seeds in which a is lower).
    Raises ValueError for an unknown label, key or value.

    >>> regret = np.array([[[1.0], [2.0], [4.0]], [[2.0], [4.0], [5.0]]])
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), regret)}, coords={"algorithm": ["x", "y"], "t": [9]})
    >>> compare(ds, "x", "y")[["difference", "share_lower"]].round(3).values.tolist()
    [[-1.333, 1.0]]
    """
    ds = whole(ds, "compare")
    final = final_regret(ds, t)
    constant = json.loads(ds.attrs.get("constant_along", "{}"))
    (label_a, at_a), (label_b, at_b) = (_side(final, side, name) for name, side in (("a", a), ("b", b)))
    left, right = pick(final, {"algorithm": label_a, **at_a}, "a"), pick(final, {"algorithm": label_b, **at_b}, "b")
    # A pair repeated along an axis is one test, not several: counting it again would weaken Holm's correction.
    idle_a, idle_b = ({*constant.get(x, ())} | {*at} for x, at in ((label_a, at_a), (label_b, at_b)))
    idle = [d for d in grid_dims(ds) if d in idle_a and d in idle_b]
    left, right = (x.isel({d: 0 for d in idle if d in x.dims}, drop=True) for x in (left, right))
    left, right = xr.broadcast(left, right)
    dims = [d for d in grid_dims(ds) if d in left.dims]
    left, right = left.transpose(*dims, "seed"), right.transpose(*dims, "seed")
    difference = left.values - right.values
    mean, low, high = mean_interval(difference)
    base = right.values.mean(-1)
    p_value = _paired_p(difference)
    columns = {
        "seeds": left.sizes["seed"],
        "difference": mean,
        "ci_low": low,
        "ci_high": high,
        "relative": np.divide(mean, base, out=np.full_like(mean, np.nan), where=base != 0),
        "p_value": p_value,
        "p_holm": holm(np.ravel(p_value)),
        "share_lower": (difference < 0).mean(-1),
    }
    frame = tidy(left.isel(seed=0, drop=True), columns)
    for place, (label, at) in enumerate(((label_a, at_a), (label_b, at_b))):
        frame.insert(
            place, "ab"[place], f"{label} ({', '.join(f'{k} = {text(v)}' for k, v in at.items())})" if at else label
        )
    return frame


def slope(ds, over="t", *, theory=None, t_min=None) -> pd.DataFrame:
    """Least-squares slope of log mean regret against log `over`, with a 95% bootstrap interval over seeds.

    Args: `over`: `"t"`, `"horizon"` or any numeric grid key (at the end of the run); `t_min` (plays, with `"t"` only):
    fit t >= t_min instead of the last decade; `theory`: `{label: exponent}`, shown beside the slope.
    Returns one row an algorithm and remaining grid point: keys, `points` fitted, `seeds`, `slope`, `ci_low`, `ci_high`
    (and `theory`). Points where the mean regret or `over` is not positive and finite are left out; ValueError if fewer
    than two remain. The interval covers sampling error, not the bias of fitting a power law to what is not one.

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
            raise ValueError(
                f"over = {over!r} is not numeric ({listed(ds[over].values)}): choose another of {listed(known)}"
            )
        others = [d for d in grid_dims(ds) if d != over]
        curves, x = final_regret(ds).transpose("algorithm", *others, "seed", over), ds[over].values.astype(np.float64)
    seeds = curves.sizes["seed"]
    rng = np.random.default_rng(0)
    # One set of resamples for all rows, since the rows are paired by seed.
    weights = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=RESAMPLES) / seeds
    frame = tidy(curves.isel({"seed": 0, curves.dims[-1]: 0}), {"points": 0, "seeds": seeds})
    lanes, rows = curves.values.reshape(-1, *curves.shape[-2:]), []
    for where, values in zip(frame.drop(columns=["points", "seeds"]).to_dict("records"), lanes, strict=True):
        mean = values.mean(0)
        use = np.isfinite(mean) & (mean > 0) & (x > 0) & np.isfinite(x)
        if over == "t":
            own = x[~np.isnan(values).all(0)]  # a shorter horizon is padded with NaN
            use &= x >= (t_min if t_min is not None else own.max(initial=0) / 10)
        if use.sum() < 2:
            remedy = "lower t_min or run more checkpoints" if over == "t" else "run more values"
            message = f"slope against {over!r} needs two points with positive mean regret, {where} has {use.sum()}"
            raise ValueError(f"{message}: {remedy}, or select the others first")
        resampled = _fit(x[use], weights @ values[:, use])
        low, high = np.nanquantile(resampled, [0.025, 0.975]) if seeds > 1 else (np.nan, np.nan)
        rows.append((use.sum(), _fit(x[use], mean[None, use])[0], low, high))
    frame["points"], frame["slope"], frame["ci_low"], frame["ci_high"] = zip(*rows, strict=True)
    if theory is not None:
        for label in theory:
            choice("a label of theory", label, list(ds["algorithm"].values))
        frame["theory"] = frame["algorithm"].map(theory).astype(float)
    return frame


def table(ds, format="markdown") -> str:
    """Final mean regret ± half-width of its 95% interval, as text for a paper (`"latex"`) or a page (`"markdown"`).

    Algorithms are rows; the last grid key with several values (at most eight) gives the columns, other keys more rows.
    Raises ValueError for another format.

    >>> dims = ("algorithm", "seed", "t")
    >>> ds = xr.Dataset({"regret": (dims, np.arange(9.0).reshape(1, 9, 1))}, {"algorithm": ["a"], "t": [9]})
    >>> print(table(ds))
    | algorithm | regret |
    |---|---|
    | a | 4.0 ± 2.1 |
    <BLANKLINE>
    Mean ± half-width of the 95% interval over 9 seeds.
    """
    choice("format", format, ("markdown", "latex"))
    ds = whole(ds, "table")
    final = final_regret(ds)
    single = [d for d in grid_dims(ds) if final.sizes[d] == 1]
    fixed = "".join(f"; {d} = {text(final[d].values[0])}" for d in single)
    final = final.squeeze(single, drop=True)
    shown = list(final.dims[1:-1])
    across = shown.pop() if shown and final.sizes[shown[-1]] <= MAX_COLUMNS else None
    head = [f"{across} = {text(v)}" for v in final[across].values] if across else ["regret"]
    latex = format == "latex"
    rows = [["algorithm", *shown, *head]]
    keys = itertools.product(final["algorithm"].values, *(final[d].values for d in shown))
    for key, lanes in zip(keys, final.values.reshape(-1, len(head), final.sizes["seed"]), strict=True):
        rows.append([*map(text, key), *(_cell(c, latex) for c in lanes)])
    seeds = final.sizes["seed"]
    note = (
        f"Mean ± half-width of the 95% interval over {seeds:,} seeds"
        if seeds > 1
        else "Regret of one seed, hence no interval"
    )
    if not latex:
        plain = 1 + len(shown)
        rows = [[inert(c) if i == 0 or j < plain else c for j, c in enumerate(row)] for i, row in enumerate(rows)]
        return f"{markdown(rows)}\n\n{note}{fixed}."
    plain = 1 + len(shown)  # the cells after these are LaTeX already, except in the head
    cells = [[_escape(c) if i == 0 or j < plain else c for j, c in enumerate(row)] for i, row in enumerate(rows)]
    body = [" & ".join(row) + r" \\" for row in cells]
    begin = rf"\begin{{tabular}}{{{'l' * plain + 'r' * len(head)}}}"
    return "\n".join([f"% {note.replace('±', 'and')}{fixed}.", begin, body[0], r"\hline", *body[1:], r"\end{tabular}"])


def _half_width(values):
    seeds = values.shape[-1]
    if seeds < 2:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):  # an infinite regret: its interval is NaN
        return stats.t.ppf(0.975, seeds - 1) * values.std(-1, ddof=1) / math.sqrt(seeds)


def _paired_p(difference):
    if difference.shape[-1] < 2:
        return np.full(difference.shape[:-1], np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's own about equal values, which the next lines handle
        p = stats.ttest_1samp(difference, 0.0, axis=-1).pvalue
        flat = np.ptp(difference, axis=-1) == 0  # t is 0/0 (no difference) or x/0 (the same one in every seed)
    return np.where(flat, np.where(difference[..., 0] == 0, 1.0, 0.0), p)


def _fit(x, y):
    """Slopes `[R]` of log y `[R, C]` on log x `[C]`, over each row's positive points."""
    use = y > 0
    lx, ly = np.where(use, np.log(x), 0.0), np.log(np.where(use, y, 1.0))
    n = np.maximum(use.sum(-1, keepdims=True), 1)
    dx = np.where(use, lx - lx.sum(-1, keepdims=True) / n, 0.0)
    square = (dx**2).sum(-1)
    return np.divide((dx * ly).sum(-1), square, out=np.full(len(y), np.nan), where=square > 0)


def _side(final, side, name):
    pair = isinstance(side, tuple | list) and len(side) == 2 and isinstance(side[1], dict)
    if not isinstance(side, str) and not pair:
        raise ValueError(
            f"{name} = {shown(side)} must be a label, or (label, {{key: value}}) for one point of the grid"
        )
    label, at = (side, {}) if isinstance(side, str) else side
    return choice(name, label, [str(x) for x in final["algorithm"].values]), dict(at)


def _cell(values, latex):
    mean, half = values.mean(), float(_half_width(values))
    if not (math.isfinite(mean) and math.isfinite(half)):
        return f"{mean:g}"
    digits = max(0, 1 - math.floor(math.log10(half))) if half > 0 else 1
    plus = r" \pm " if latex else " ± "
    cell = f"{mean:,.{digits}f}{plus}{half:,.{digits}f}"
    return f"${cell.replace(',', '{,}')}$" if latex else cell


_SIGNS = {
    "\\": r"\textbackslash ", "~": r"\textasciitilde ", "^": r"\textasciicircum ", "<": r"\textless ", ">": r"\textgreater ",
}  # fmt: skip


def _escape(cell):
    for plain, escaped in _SIGNS.items():
        cell = cell.replace(plain, escaped)
    return "".join("\\" + c if c in "_%&#${}" else c for c in cell)
