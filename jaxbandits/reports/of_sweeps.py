"""Regret and reward of a sweep against plays, and final regret against a key of its grid."""

import itertools
import json
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from annotated_doc import Doc

from jaxbandits import formatting, selection, spending, statistics
from jaxbandits.formatting import show, texts_of
from jaxbandits.regret import rival_of
from jaxbandits.reports import drawing, layout
from jaxbandits.reports.layout import Panel, Plot
from jaxbandits.selection import Swept
from jaxbandits.validation import choice

BLOCK_BYTES = 1 << 26  # of regret in memory at a time
MAX_LINEAR_SPREAD = 30.0  # lines whose final regrets differ by a larger factor cannot be read on a linear axis
MAX_TICKS = 8  # fewer grid values than this are ticks themselves


@drawing.with_style
def regret(
    ds: Swept, *, select: drawing.Select = None,
    bands: drawing.Bands = "interval", log: Literal["x", "y", "both", "none"] | None = None,
    dotted: drawing.Dotted = (), bounds: Mapping[str, Callable[[Any], Any] | Any] | None = None,
    names: drawing.Titles = None,
    caption: drawing.Caption = "", width: drawing.FigureWidth = None, ax: drawing.Axes = None,
    path: drawing.File = None,
) -> Plot:  # fmt: skip
    """Cumulative regret against plays: a line for each algorithm, a panel for each value of the grid key that is left.

    Args:
        log: Which axes are logarithmic. By default none; where final regrets differ by a factor above 30, regret's axis
            is logarithmic above the power of ten below the smallest of them, and linear below.
        bounds (dict, optional): `{name: function of the plays [C], or its values there}`: thin grey lines in every
            panel, such as a lower bound of `jb.theory`; a function may return one number for all plays.

    Returns:
        Plot: The figure and the tidy table of what it shows; with `bounds` its column `kind` tells "algorithm" from
            "bound".

    >>> import xarray as xr
    >>> values = np.arange(12.0).reshape(1, 4, 3)
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), values)}, {"algorithm": ["exp3"], "t": [1, 2, 3]})
    >>> regret(ds).data["centre"].tolist()
    [4.5, 5.5, 6.5]
    """
    choice("bands", bands, tuple(drawing.CENTRE))
    ds, key = drawing.apply_selection(selection.whole(ds, "plot.regret"), select, 1)
    frame = band_table(ds["regret"], bands).dropna(subset="centre")
    log, linear = _scales(frame, log)
    thin = _bounds(bounds, np.unique(frame["t"].to_numpy()))
    panel, words = Panel(caption, width, ax, path, names), drawing.axis_words(ds)
    return _draw_over_plays(panel, ds, frame, thin, key, words, bands, dotted, log, linear)


@drawing.with_style
def reward(
    ds: Swept, *,
    total: Annotated[bool, Doc("Rewards summed over plays 1..t instead of their mean over these plays.")] = False,
    select: drawing.Select = None, bands: drawing.Bands = "interval",
    log: Annotated[Literal["x", "none"], Doc("Whether the axis of plays is logarithmic.")] = "none",
    dotted: drawing.Dotted = (), names: drawing.Titles = None,
    caption: drawing.Caption = "", width: drawing.FigureWidth = None, ax: drawing.Axes = None,
    path: drawing.File = None,
) -> Plot:  # fmt: skip
    """Expected reward against plays, beside that of what regret is measured against, which is a thin grey line.

    The expected reward over plays 1..t is `ds.best_reward` less `ds.regret`: that of the best arm, or of the arm or
    expert that is best over these plays, less regret. For labelled rows it is how many labels were named right. A
    reward adversary changes what a learner sees and not this number.

    Returns:
        Plot: The figure and the tidy table of what it shows; its column `kind` is "algorithm" or, for the grey line,
            "best".

    Raises:
        ValueError: For what cannot be drawn: the message says why. Where contexts decide which arm is best there is no
            `best_reward`, and differences of rewards, regret, are all that is recorded.

    >>> import xarray as xr
    >>> ds = xr.Dataset(
    ...     {"regret": (("algorithm", "seed", "t"), [[[1.0, 2.0]]]), "best_reward": ("t", [6.0, 12.0])},
    ...     {"algorithm": ["ucb1"], "t": [10, 20]},
    ... )
    >>> reward(ds).data[["algorithm", "centre"]].values.tolist()
    [['ucb1', 0.5], ['ucb1', 0.5], ['best fixed arm', 0.6], ['best fixed arm', 0.6]]
    """
    choice("bands", bands, tuple(drawing.CENTRE))
    choice("log", log, ("x", "none"))
    ds = selection.whole(ds, "plot.reward")
    if "best_reward" not in ds:
        why = "contexts decide which arm is best there and only regret is known, so draw plot.regret(ds)"
        older = "or an earlier release computed it, and the same sweep with its store adds best_reward"
        raise ValueError(f"ds has no best_reward: {why}; {older}")
    ds, key = drawing.apply_selection(ds, select, 1)
    best = ds["best_reward"] if total else ds["best_reward"] / ds["t"]
    frame = band_table(ds["regret"], bands, best, 1.0 if total else ds["t"]).dropna(subset="centre")
    label = rival_of(ds["regret"].attrs.get("long_name", ""))
    best = best.mean([d for d in best.dims if d not in ("t", key)])
    thin = []
    for value, here in [(None, frame)] if key is None else frame.groupby(key, sort=False):
        line = best.sel({"t": np.unique(here["t"].to_numpy())} | ({key: value} if key in best.dims else {}))
        part = _line(label, "t", line["t"].values, line.values, "best")
        thin.append(part if key is None else part.assign(**{str(key): value}))
    panel = Panel(caption, width, ax, path, names)
    words = f"expected reward {'over plays 1..t' if total else 'per play'}"
    return _draw_over_plays(panel, ds, frame, thin, key, words, bands, dotted, log, zero=total)


def _draw_over_plays(
    panel: Panel, ds: Swept, frame: pd.DataFrame, thin: list[pd.DataFrame], key: str | None, words: str, bands: str,
    dotted: Any, log: str, linear: float | None = None, zero: bool = True,
) -> Plot:  # fmt: skip
    """A line for each algorithm and thin grey ones, a panel for each value of a grid key.

    words: of the vertical axis; linear, zero: as `layout.axis` has them.
    """
    values = [] if key is None else list(ds[key].values)
    if len(values) > len(layout.SHAPES):
        has = f"{len(values)} values ({', '.join(map(drawing.value_text, values))})"
        raise ValueError(f"{key} has {has} and a figure {len(layout.SHAPES)} panels: select some")
    labels = [str(a) for a in ds["algorithm"].values]
    styles = drawing.styles_of(labels, dotted)
    shown = dict(zip(values, texts_of(values, drawing.value_text), strict=True))
    title = lambda value: f"{panel.words_of(key)} = {shown[value]}"
    for axes, value, here in panel.split_rows(frame, key, values, title):
        limits = [line for line in thin if key not in line or line[key].iloc[0] == value]
        for i, (label, line) in enumerate(here.groupby("algorithm", sort=False)):
            # A zero has no place on a logarithmic axis: the line starts after it, the table keeps it.
            centre = _visible(line["centre"], log)
            # from places of their own on; matplotlib cannot space the markers of an empty line
            every = (0.2 * (i + 1) / len(labels), 0.2) if centre.notna().sum() > 1 else None
            axes.plot(line["t"], centre, label=label, markevery=every, **styles[label])
            colour = styles[label]["color"]
            axes.fill_between(line["t"], line["low"], line["high"], color=colour, alpha=0.18, linewidth=0)
        own = here if key == "horizon" else frame
        also, spread = [_visible(limit["centre"], log) for limit in limits], own[["centre", "low", "high"]].to_numpy()
        layout.axis(axes.xaxis, own["t"], log in ("x", "both"))
        layout.axis(axes.yaxis, spread, log in ("y", "both"), also=also, linear=linear, zero=zero)
        _add(axes, limits, "t", log)
    order = labels + list(dict.fromkeys(line["algorithm"].iloc[0] for line in thin))
    table = pd.concat([frame.assign(kind="algorithm"), *thin]) if thin else frame
    about, legend = drawing.over_seeds(ds, bands), spending.legend(ds)
    return panel.complete(table, "plays $t$", words, order, about, shared=key != "horizon", words=legend)


@drawing.with_style
def against(
    ds: Swept, key: str, *, select: Annotated[drawing.Select, Doc("`{key: value}` for the other keys.")] = None,
    dotted: drawing.Dotted = (), reference: Mapping[str, Callable[[Any], Any]] | None = None,
    names: drawing.Names = None,
    caption: drawing.Caption = "", width: drawing.FigureWidth = None, ax: drawing.Axes = None,
    path: drawing.File = None,
) -> drawing.Drawn:  # fmt: skip
    """Final regret (mean, 95% interval) against a numeric grid key, on logarithmic axes where everything is positive.

    An algorithm that does not depend on the key is a horizontal line; an infinite value stands apart at the right.

    Args:
        key: A numeric key of the grid, or `"epsilon_spent"` or `"delta_spent"`: what every algorithm truly spends at
            the values of the one key that is left.
        reference (dict, optional): `{name: function of the key's values [V]}`: thin grey lines, such as the order of a
            bound.

    >>> import xarray as xr
    >>> dims, values = ("algorithm", "epsilon", "seed", "t"), np.array([[[[4.0], [6.0]], [[1.0], [3.0]]]])
    >>> ds = xr.Dataset({"regret": (dims, values)}, {"algorithm": ["exp3"], "epsilon": [0.1, 1.0], "t": [10]})
    >>> against(ds, "epsilon").data["centre"].tolist()
    [5.0, 2.0]
    """
    ds = selection.whole(ds, "plot.against")
    axis, key = key, _key_of_grid(ds, key, select)
    spends = axis != key
    ds, _ = drawing.apply_selection(ds, select, 0, key)
    constant = {a for a, dims in json.loads(ds.attrs.get("constant_along", "{}")).items() if key in dims}
    frame = _final_table(ds, axis)
    if spends:
        frame[axis] = np.ravel(spending.coordinate_array(ds, axis))
    varies = ~frame["algorithm"].isin(constant) if spends else np.full(len(frame), True)
    values = np.unique(frame[axis][varies]) if key in ds.dims else np.array([""])
    if values.dtype.kind not in "iuf" or not np.isfinite(values).any():
        remedy = "keep several in `select`, or draw the key with `regret`"
        raise ValueError(f"key = {axis!r} needs numeric values: {remedy}")
    frame = frame[["algorithm", axis, "centre", "low", "high"]].sort_values(axis, kind="stable", ignore_index=True)
    labels = [str(a) for a in ds["algorithm"].values]
    styles, panel = drawing.styles_of(labels, dotted), Panel(caption, width, ax, path, names)
    finite = values[np.isfinite(values)].astype(float)
    log_x, log_y = bool(finite[0] > 0), bool((frame["centre"] > 0).all())
    beyond = _place_of_infinity(finite, log_x) if np.isinf(values).any() else None
    (axes,) = panel.lay_out(1)
    for label in labels:
        line, style = frame[frame["algorithm"] == label], styles[label]
        if label in constant:
            centre, low, high = line[["centre", "low", "high"]].iloc[0]
            axes.axhline(centre, label=label, **style | {"marker": ""})
            axes.axhspan(low, high, color=style["color"], alpha=0.15, linewidth=0)
            continue
        apart = np.isinf(line[axis])
        for part in (line[~apart], line[apart]):
            if len(part):
                drawing.errorbar(axes, part[axis].where(np.isfinite(part[axis]), beyond), part, label, **style)
    x = (np.geomspace if log_x else np.linspace)(finite[0], finite[-1], 100)
    orders = [_line(name, axis, x, order(x), "reference") for name, order in (reference or {}).items()]
    layout.axis(axes.yaxis, frame[["centre", "low", "high"]].to_numpy(), log_y, also=[o["centre"] for o in orders])
    layout.axis(axes.xaxis, finite, log_x, ticks=finite if finite.size < MAX_TICKS else None, infinity=beyond)
    _add(axes, orders, axis)
    horizon = ds.coords.get("horizon", ds["t"][-1])
    words = drawing.axis_words(ds, " after the horizon" if horizon.ndim else f" after {int(horizon):,} plays")
    table, order = pd.concat([frame.assign(kind="algorithm"), *orders]), labels + list(reference or {})
    about, legend = drawing.over_seeds(ds, "interval"), {} if spends else spending.legend(ds)
    return panel.complete(table, panel.words_of(axis), words, order, about, words=legend)


def _key_of_grid(ds: Swept, key: str, select: Mapping[str, Any] | None) -> str:
    """The key itself; of what is spent, the one key of the grid along which it is drawn."""
    keys = selection.grid_dims(ds)
    if not keys:
        remedy = f"run sweep(..., grid={{{show(key)}: [...]}}), or draw plot.regret(ds)"
        raise ValueError(f"key = {show(key)}: this sweep has no grid; {remedy}")
    if key not in (spending.EPSILON, spending.DELTA) or key not in ds.coords:
        return choice("key", key, keys)
    several = [k for k in keys if ds.sizes[k] > 1 and k not in (select or {})]
    if len(several) != 1:
        have = f"{formatting.join_values(several) or 'none'} have several: fix the others in `select`"
        raise ValueError(f"key = {key!r} is drawn over the values of one key, and {have}")
    return several[0]


def _place_of_infinity(finite: Any, log: bool) -> float:
    """Where an infinite value stands: to the right of the finite ones."""
    span = math.log(finite[-1] / finite[0]) if log else finite[-1] - finite[0]
    step = 0.12 * span if finite.size > 1 else 1.0
    return finite[-1] * math.exp(step) if log else finite[-1] + step


def _line(name: str, key: str, x: Any, values: Any, kind: str) -> pd.DataFrame:
    """The rows of a thin grey line in a figure's table."""
    centre = np.broadcast_to(np.asarray(values, float), x.shape)
    return pd.DataFrame({"algorithm": name, key: x, "centre": centre, "kind": kind})


def _add(axes: Any, lines: list[pd.DataFrame], key: str, log: str = "none") -> None:
    """Draw thin grey lines, each with dashes of its own."""
    for line, dashes in zip(lines, itertools.cycle(drawing.DASHES[1:])):
        label = line["algorithm"].iloc[0]
        axes.plot(line[key], _visible(line["centre"], log), label=label, linestyle=dashes, **drawing.GREY)


def _visible(centre: Any, log: str) -> Any:
    """The values that a vertical axis has a place for."""
    return centre.where(centre > 0) if log in ("y", "both") else centre


def band_table(regret: xr.DataArray, bands: str, best: xr.DataArray | None = None, plays: Any = 1.0) -> pd.DataFrame:
    """Centre and band of regret or, where `best` is given, of best - regret / plays."""
    keys = [d for d in regret.dims if d not in ("algorithm", "seed", "t")]
    lanes = regret.transpose("algorithm", *keys, "t", "seed")
    step, parts = max(1, BLOCK_BYTES // (lanes.nbytes // lanes.sizes["t"] + 1)), []
    for i in range(0, lanes.sizes["t"], step):  # a large Dataset is on disk
        block = lanes.isel(t=slice(i, i + step))
        if best is not None:
            block = (best.isel(t=slice(i, i + step)) - block / plays).transpose(*lanes.dims)
        values = block.values
        if bands == "interval":
            parts.append(statistics.mean_interval(values))
        else:
            low, centre, high = np.quantile(values, [0.05, 0.5, 0.95], axis=-1)
            parts.append((centre, low, high))
    centre, low, high = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
    _refuse_columns(lanes)
    return selection.tidy(lanes.isel(seed=0), {"centre": centre, "low": low, "high": high})


def _final_table(ds: xr.Dataset, axis: str) -> pd.DataFrame:
    """The final regret of every algorithm and point under the names of a picture's columns."""
    _refuse_columns(ds)
    frame = statistics.summary(ds).rename(columns={"mean": "centre", "ci_low": "low", "ci_high": "high"})
    if f"{axis}_" in frame:  # a key that is called as a column of summary
        frame = frame.drop(columns=axis, errors="ignore").rename(columns={f"{axis}_": axis})
    return frame


def _refuse_columns(ds: xr.Dataset | xr.DataArray) -> None:
    """ValueError where a key is called as a column of a picture's data."""
    for name in selection.PICTURED:
        if name in ds.coords:
            remedy = f"draw ds.rename({{{name!r}: {f'{name}_'!r}}})"
            raise ValueError(f"the key {name!r} is called as a column of the picture's data: {remedy}")


def _scales(frame: pd.DataFrame, log: str | None) -> tuple[str, float | None]:
    """Which axes are logarithmic, and up to where regret's is linear below."""
    if log is not None:
        choice("log", log, ("x", "y", "both", "none"))
        if log in ("y", "both") and not (frame["centre"] > 0).any():
            raise ValueError(f"log = {log!r} needs some positive regret and there is none: use 'x' or 'none'")
        return log, None
    keys = [c for c in frame.columns if c not in ("t", "centre", "low", "high")]
    return "none", linear_below(frame.groupby(keys, dropna=False)["centre"].last().to_numpy())


def linear_below(ends: Any) -> float | None:
    """Where an axis of regrets changes from linear to logarithmic: a power of ten; None where it is linear throughout.

    >>> linear_below([4.0, 16.0, 2000.0]), linear_below([4.0, 16.0])
    (1.0, None)
    """
    ends = np.asarray(ends, float)
    ends = ends[ends > 0]
    if not ends.size or ends.max() <= MAX_LINEAR_SPREAD * ends.min():
        return None
    return float(10.0 ** np.floor(np.log10(ends.min())))


def _bounds(bounds: Mapping[str, Callable[[Any], Any] | Any] | None, t: Any) -> list[pd.DataFrame]:
    """The bounds at the plays t, a tidy table each."""
    frames = []
    for name, bound in (bounds or {}).items():
        values = np.asarray(bound(t.astype(float)) if callable(bound) else bound, float)
        if values.ndim > 0 and values.shape != t.shape:
            remedy = f"give a function of the plays, or a value for each of the {len(t)} checkpoints"
            raise ValueError(f"bounds[{name!r}] has shape {values.shape}; {remedy}")
        frames.append(_line(name, "t", t, values, "bound"))
    return frames
