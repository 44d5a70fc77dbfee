"""Figures of a sweep: regret and reward against plays, and final regret against a grid key: what `jb.plot` has.

A figure owns its canvas and its settings, so nothing leaks into pyplot. `layout` finds room for its texts.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from jaxbandits import selection, statistics
from jaxbandits.reports import layout
from jaxbandits.reports.heatmap import heatmap
from jaxbandits.reports.layout import COLOURS, Plot, overlaps, save
from jaxbandits.reports.trade_off import trade_off
from jaxbandits.reports.tuning import importance, parallel, response
from jaxbandits.validation import choice, shown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = [
    "Plot", "regret", "reward", "against", "lines", "heatmap", "trade_off", "response", "parallel", "importance",
    "save", "overlaps",
]  # fmt: skip

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKERS = "osD^vPX*<>"
MAX_TICKS = 8  # fewer grid values than this are ticks themselves
BLOCK_BYTES = 1 << 26  # of regret in memory at a time
MAX_LINEAR_SPREAD = 30.0  # lines whose final regrets differ by a larger factor cannot be read on a linear axis
GREY: dict[str, Any] = {"color": "0.55", "linewidth": 0.8, "zorder": 1}  # of a bound or an order
CENTRE = {"interval": "mean and 95% interval", "quantile": "median and 5% to 95% band"}


def regret(
    ds: xr.Dataset,
    *,
    select: Mapping[str, Any] | None = None,
    bands: Literal["interval", "quantile"] = "interval",
    log: Literal["x", "y", "both", "none"] | None = None,
    dotted: Mapping[str, str] | Iterable[str] = (),
    bounds: Mapping[str, Callable[[Any], Any] | Any] | None = None,
    names: Mapping[str, str] | None = None,
    caption: str = "",
    width: float | None = None,
    path: str | Path | None = None,
) -> Plot:
    """Cumulative regret against plays: a line for each algorithm, a panel for each value of the grid key that is left.

    Parameters
    ----------
    ds : xarray.Dataset
        What `sweep` or `load` returned.
    select : dict, optional
        `{key: value or list}` (also `algorithm`), so that at most one key has several values, six at most.
    bands : {"interval", "quantile"}
        "interval": mean and 95% interval; "quantile": median and the band from 5% to 95%.
    log : {"x", "y", "both", "none"}, optional
        Which axes are logarithmic. By default both where final regrets differ by a factor above 30, otherwise none.
    dotted : dict or sequence of str
        `{label: partner}`: drawn dotted in the partner's colour. A sequence of labels takes the other label that each
        one starts with.
    bounds : dict, optional
        `{name: function of the plays [C], or its values there}`: thin grey lines in every panel, such as a lower bound
        of `jb.theory`; a function may return one number for all plays.
    names : dict, optional
        `{key: its name in the panels' titles}`.
    caption : str
        Text added below.
    width : float, optional
        Of the figure, in inches.
    path : str or Path, optional
        Also write the figure there (.png, .pdf, .svg).

    Returns
    -------
    Plot
        The figure and the tidy table of what it shows; with `bounds` its column `kind` tells "algorithm" from "bound".

    Raises
    ------
    ValueError
        For what cannot be drawn: the message says why.

    Examples
    --------
    >>> import xarray as xr
    >>> values = np.arange(12.0).reshape(1, 4, 3)
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), values)}, {"algorithm": ["exp3"], "t": [1, 2, 3]})
    >>> regret(ds).data["centre"].tolist()
    [4.5, 5.5, 6.5]
    """
    choice("bands", bands, tuple(CENTRE))
    ds = selection.whole(ds, "plot.regret")
    ds, panel_key = _reduce(ds, select, 1)
    frame = _curves(ds["regret"], bands).dropna(subset="centre")
    log = _scales(frame, log)
    limits = _bounds(bounds, np.unique(frame["t"].to_numpy()))
    words = str(ds["regret"].attrs.get("long_name", "cumulative regret"))
    picture = _Curves(ds, panel_key, frame, words, _over(ds, bands), caption, width)
    figure = picture.drawn(log, dotted, names, lambda value: limits)
    if limits:
        import pandas as pd

        frame = pd.concat([frame.assign(kind="algorithm"), *limits], ignore_index=True)
    return _done(figure, frame, path)


def reward(
    ds: xr.Dataset,
    *,
    total: bool = False,
    select: Mapping[str, Any] | None = None,
    bands: Literal["interval", "quantile"] = "interval",
    log: Literal["x", "none"] = "none",
    dotted: Mapping[str, str] | Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    caption: str = "",
    width: float | None = None,
    path: str | Path | None = None,
) -> Plot:
    """Expected reward against plays, beside that of what regret is measured against, which is a thin grey line.

    The expected reward over plays 1..t is `ds.best_reward` less `ds.regret`: that of the best arm, or of the arm or
    expert that is best over these plays, less regret. For labelled rows it is how many labels were named right. A
    reward adversary changes what a learner sees and not this number.

    Parameters
    ----------
    ds : xarray.Dataset
        What `sweep` or `load` returned.
    total : bool
        Rewards summed over plays 1..t instead of their mean over these plays.
    select : dict, optional
        `{key: value or list}` (also `algorithm`), so that at most one key has several values, six at most.
    bands : {"interval", "quantile"}
        "interval": mean and 95% interval; "quantile": median and the band from 5% to 95%.
    log : {"x", "none"}
        Whether the axis of plays is logarithmic.
    dotted : dict or sequence of str
        `{label: partner}`: drawn dotted in the partner's colour. A sequence of labels takes the other label that each
        one starts with.
    names : dict, optional
        `{key: its name in the panels' titles}`.
    caption : str
        Text added below.
    width : float, optional
        Of the figure, in inches.
    path : str or Path, optional
        Also write the figure there (.png, .pdf, .svg).

    Returns
    -------
    Plot
        The figure and the tidy table of what it shows; its column `kind` is "algorithm" or, for the grey line, "best".

    Raises
    ------
    ValueError
        For what cannot be drawn: the message says why. Where contexts decide which arm is best there is no
        `best_reward`, and differences of rewards, regret, are all that is recorded.

    Examples
    --------
    >>> import xarray as xr
    >>> ds = xr.Dataset(
    ...     {"regret": (("algorithm", "seed", "t"), [[[1.0, 2.0]]]), "best_reward": ("t", [6.0, 12.0])},
    ...     {"algorithm": ["ucb1"], "t": [10, 20]},
    ... )
    >>> reward(ds).data[["algorithm", "centre"]].values.tolist()
    [['ucb1', 0.5], ['ucb1', 0.5], ['best fixed arm', 0.6], ['best fixed arm', 0.6]]
    """
    import pandas as pd

    choice("bands", bands, tuple(CENTRE))
    choice("log", log, ("x", "none"))
    ds = selection.whole(ds, "plot.reward")
    if "best_reward" not in ds:
        raise ValueError(
            "ds has no best_reward: contexts decide which arm is best there and only regret is known, so draw "
            "plot.regret(ds); or an earlier release computed it, and the same sweep with its store adds best_reward"
        )
    ds, panel_key = _reduce(ds, select, 1)
    best = ds["best_reward"] if total else ds["best_reward"] / ds["t"]
    frame = _curves(ds["regret"], bands, best, 1.0 if total else ds["t"]).dropna(subset="centre")
    expert = "expert" in ds["regret"].attrs.get("long_name", "")
    label = "best fixed expert" if expert else "best fixed arm"
    best = best.mean([d for d in best.dims if d not in ("t", panel_key)])
    shown, lines_of = [], {}
    for value in [None] if panel_key is None else ds[panel_key].values:
        here = frame if value is None else frame[frame[panel_key] == value]
        line = best.sel(t=np.unique(here["t"].to_numpy()))
        line = line.sel({panel_key: value}) if panel_key in line.dims else line
        part = pd.DataFrame({"algorithm": label, "t": line["t"].values, "centre": line.values, "kind": "best"})
        lines_of[value] = [part]
        shown.append(part if value is None else part.assign(**{str(panel_key): value}))
    words = "expected reward over plays 1..t" if total else "expected reward per play"
    picture = _Curves(ds, panel_key, frame, words, _over(ds, bands), caption, width)
    figure = picture.drawn(log, dotted, names, lambda value: lines_of[value])
    return _done(figure, pd.concat([frame.assign(kind="algorithm"), *shown], ignore_index=True), path)


class _Curves(NamedTuple):
    """What `regret` and `reward` draw: a line for each algorithm, a panel for each value of a grid key."""

    ds: xr.Dataset
    panel_key: str | None
    frame: pd.DataFrame
    words: str  # of the vertical axis
    over: str  # what the bands are
    caption: str
    width: float | None

    def drawn(self, log: str, dotted: Any, names: Any, limits_of: Callable[[Any], list[pd.DataFrame]]) -> Figure:
        """The figure; `limits_of` a panel's value are thin grey lines in it."""
        panel_key, frame = self.panel_key, self.frame
        values = [None] if panel_key is None else list(self.ds[panel_key].values)
        if len(values) > len(layout.SHAPES):
            shown = ", ".join(map(_text, values))
            raise ValueError(
                f"{panel_key} has {len(values)} values ({shown}) and a figure {len(layout.SHAPES)} panels: select some"
            )
        labels = [str(a) for a in self.ds["algorithm"].values]
        styles = _styles(labels, _partners(dotted, labels))
        known: dict[str, None] = {}
        with layout.style():
            figure, panels = layout.panels(len(values), self.width)
            for axes, value in zip(panels, values, strict=True):
                here = frame if value is None else frame[frame[panel_key] == value]
                limits = limits_of(value)
                for label, line in here.groupby("algorithm", sort=False):
                    # A zero has no place on a logarithmic axis: the line starts after it, the table keeps it.
                    centre = _visible(line["centre"], log)
                    every = (
                        0.2 if centre.notna().any() else None
                    )  # matplotlib cannot space the markers of an empty line
                    axes.plot(line["t"], centre, label=label, markevery=every, **styles[label])
                    colour = styles[label]["color"]
                    axes.fill_between(line["t"], line["low"], line["high"], color=colour, alpha=0.18, linewidth=0)
                own = here if panel_key == "horizon" else frame
                layout.axis(axes.xaxis, own["t"], log in ("x", "both"))
                shown_limits = [_visible(limit["centre"], log) for limit in limits]
                layout.axis(
                    axes.yaxis,
                    own[["centre", "low", "high"]].to_numpy(),
                    log in ("y", "both"),
                    also=[limit.dropna() for limit in shown_limits],
                )
                for limit, centre, dashes in zip(limits, shown_limits, itertools.cycle(DASHES[1:])):
                    name = limit["algorithm"].iloc[0]
                    known[name] = None
                    axes.plot(limit["t"], centre, label=name, linestyle=dashes, **GREY)
                if value is not None:
                    axes.set_title(f"{(names or {}).get(str(panel_key), _words(panel_key))} = {_text(value)}")
            layout.name_axes(panels, "plays t", self.words, shared=panel_key != "horizon")
            layout.finish(figure, panels[0], labels + list(known), self.over, self.caption)
        return figure


def _visible(centre: Any, log: str) -> Any:
    """The values that a vertical axis has a place for."""
    return centre.where(centre > 0) if log in ("y", "both") else centre


def against(
    ds: xr.Dataset,
    key: str,
    *,
    select: Mapping[str, Any] | None = None,
    dotted: Mapping[str, str] | Iterable[str] = (),
    reference: Mapping[str, Callable[[Any], Any]] | None = None,
    names: Mapping[str, str] | None = None,
    caption: str = "",
    width: float | None = None,
    path: str | Path | None = None,
) -> Plot:
    """Final regret (mean, 95% interval) against a numeric grid key, on logarithmic axes where everything is positive.

    An algorithm that does not depend on the key is a horizontal line; an infinite value stands apart at the right.

    Parameters
    ----------
    ds : xarray.Dataset
        What `sweep` or `load` returned.
    key : str
        A numeric key of the grid.
    select : dict, optional
        `{key: value}` for the other keys.
    dotted : dict or sequence of str
        `{label: partner}`: drawn dotted in the partner's colour. A sequence of labels takes the other label that each
        one starts with.
    reference : dict, optional
        `{name: function of the key's values [V]}`: thin grey lines, such as the order of a bound.
    names : dict, optional
        `{key: label of its axis}`.
    caption : str
        Text added below.
    width : float, optional
        Of the figure, in inches.
    path : str or Path, optional
        Also write the figure there (.png, .pdf, .svg).

    Returns
    -------
    Plot
        The figure and the tidy table of what it shows.

    Raises
    ------
    ValueError
        For what cannot be drawn: the message says why.

    Examples
    --------
    >>> import xarray as xr
    >>> dims, values = ("algorithm", "epsilon", "seed", "t"), np.array([[[[4.0], [6.0]], [[1.0], [3.0]]]])
    >>> ds = xr.Dataset({"regret": (dims, values)}, {"algorithm": ["exp3"], "epsilon": [0.1, 1.0], "t": [10]})
    >>> against(ds, "epsilon").data["centre"].tolist()
    [5.0, 2.0]
    """
    import pandas as pd

    ds = selection.whole(ds, "plot.against")
    keys = selection.grid_dims(ds)
    if not keys:
        raise ValueError(
            f"key = {shown(key)}: this sweep has no grid; run sweep(..., grid={{{shown(key)}: [...]}}), "
            "or draw plot.regret(ds)"
        )
    choice("key", key, keys)
    ds, _ = _reduce(ds, select, 0, key)
    if key not in ds.dims or ds[key].dtype.kind not in "iuf" or not np.isfinite(ds[key].values).any():
        raise ValueError(f"key = {key!r} needs numeric values: keep several in `select`, or draw the key with `regret`")
    summary = statistics.summary(ds).rename(columns={"mean": "centre", "ci_low": "low", "ci_high": "high"})
    frame = summary[["algorithm", key, "centre", "low", "high"]].sort_values(key, kind="stable", ignore_index=True)
    labels = [str(a) for a in ds["algorithm"].values]
    styles = _styles(labels, _partners(dotted, labels))
    constant = {a for a, dims in json.loads(ds.attrs.get("constant_along", "{}")).items() if key in dims}
    finite = np.sort(ds[key].values[np.isfinite(ds[key].values)].astype(float))
    log_x = bool(finite[0] > 0)
    log_y = bool((frame["centre"] > 0).all())
    steps = 0.12 * (math.log(finite[-1] / finite[0]) if log_x else finite[-1] - finite[0]) if finite.size > 1 else 1.0
    beyond = finite[-1] * math.exp(steps) if log_x else finite[-1] + steps
    beyond = beyond if np.isinf(ds[key].values).any() else None
    with layout.style():
        figure, (axes,) = layout.panels(1, width)
        for label in labels:
            line, style = frame[frame["algorithm"] == label], styles[label]
            if label in constant:
                _, centre, low, high = line[[key, "centre", "low", "high"]].iloc[0]
                axes.axhline(centre, label=label, **style | {"marker": ""})
                axes.axhspan(low, high, color=style["color"], alpha=0.15, linewidth=0)
                continue
            apart = np.isinf(line[key])
            for part in (line[~apart], line[apart]):
                if len(part):
                    x = part[key].where(np.isfinite(part[key]), beyond)
                    error = np.nan_to_num([part["centre"] - part["low"], part["high"] - part["centre"]])
                    axes.errorbar(x, part["centre"], error, label=label, elinewidth=0.8, capsize=1.5, **style)
        orders = _orders(reference, key, finite, log_x)
        layout.axis(axes.yaxis, frame[["centre", "low", "high"]].to_numpy(), log_y, also=[o["centre"] for o in orders])
        layout.axis(axes.xaxis, finite, log_x, ticks=finite if finite.size < MAX_TICKS else None, infinity=beyond)
        for order, dashes in zip(orders, itertools.cycle(DASHES[1:])):
            axes.plot(order[key], order["centre"], label=order["algorithm"].iloc[0], linestyle=dashes, **GREY)
        frame = pd.concat([frame.assign(kind="algorithm"), *orders])
        words = str(ds["regret"].attrs.get("long_name", "cumulative regret"))
        head, _, rest = words.partition(" against ")
        words = f"{head} after {_plays(ds)}" + (f" against {rest}" if rest else "")
        layout.name_axes([axes], (names or {}).get(key, _words(key)), words)
        layout.finish(figure, axes, labels + list(reference or {}), _over(ds, "interval"), caption)
    return _done(figure, frame.reset_index(drop=True), path)


def lines(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    line: str,
    log: Literal["x", "y", "both", "none"] = "none",
    dotted: Mapping[str, str] | Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    caption: str = "",
    width: float | None = None,
    path: str | Path | None = None,
) -> Plot:
    """Curves of a tidy table: column `y` against column `x`, with a line for each value of the column `line`.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each point. A column of bools `markers`, where there is one, marks its points instead of joining
        them.
    x, y : str
        The columns of the axes.
    line : str
        The column that tells the lines apart.
    log : {"x", "y", "both", "none"}
        Which axes are logarithmic.
    dotted : dict or sequence of str
        `{label: partner}`: drawn dotted in the partner's colour. A sequence of labels takes the other label that each
        one starts with.
    names : dict, optional
        `{column: label of its axis}`.
    caption : str
        Text added below.
    width : float, optional
        Of the figure, in inches.
    path : str or Path, optional
        Also write the figure there (.png, .pdf, .svg).

    Returns
    -------
    Plot
        The figure and the tidy table of what it shows.

    Raises
    ------
    ValueError
        For what cannot be drawn: the message says why.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"t": [1, 2, 1, 2], "p": [0.5, 0.6, 0.5, 0.4], "data": ["l", "l", "m", "m"]})
    >>> len(lines(frame, "t", "p", line="data").figure.axes)
    1
    """
    choice("log", log, ("x", "y", "both", "none"))
    for column in (x, y, line):
        choice("column", column, list(frame.columns))
    names = names or {}
    labels = list(dict.fromkeys(frame[line]))
    styles = _styles(labels, _partners(dotted, labels))
    with layout.style():
        figure, (axes,) = layout.panels(1, width)
        for label in labels:
            part = frame[frame[line] == label]
            style = dict(styles[label])
            if "markers" in part and part["markers"].any():
                style["linestyle"] = ""
            else:
                style["marker"] = ""
            axes.plot(part[x], part[y], label=label, **style)
        layout.axis(axes.xaxis, frame[x], log in ("x", "both"))
        layout.axis(axes.yaxis, frame[y], log in ("y", "both"))
        layout.name_axes([axes], names.get(x, _words(x)), names.get(y, _words(y)))
        layout.finish(figure, axes, labels, caption, "")
    return _done(figure, frame, path)


def _done(figure: Figure, frame: pd.DataFrame, path: str | Path | None) -> Plot:
    plot = Plot(figure, frame.reset_index(drop=True))
    if path is not None:
        save(plot, path)
    return plot


def _reduce(
    ds: xr.Dataset, select: Mapping[str, Any] | None, allowed: int, key: str | None = None
) -> tuple[xr.Dataset, str | None]:
    """`ds` at the selection without keys of one value, and the key that still has several."""
    axes = ("algorithm", "seed", "t")  # these stay dimensions, even of size one
    ds = selection.pick(ds, {k: [v] if k in axes and np.ndim(v) == 0 else v for k, v in (select or {}).items()})
    dims = [d for d in selection.grid_dims(ds) if d != key]
    left = [d for d in dims if ds.sizes[d] > 1]
    if len(left) > allowed:
        held = "; ".join(f"{d}: {', '.join(map(_text, ds[d].values))}" for d in left)
        remedy = f"select=dict({left[-1]}={_text(ds[left[-1]].values[0])})"
        raise ValueError(f"select leaves {len(left)} keys with several values ({held}): fix some, such as {remedy}")
    for d in dims:
        ds = ds if d in left else ds.isel({d: 0}, drop=d != "horizon")
    return ds, left[0] if left else None


def _curves(regret: xr.DataArray, bands: str, best: xr.DataArray | None = None, plays: Any = 1.0) -> pd.DataFrame:
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
    return selection.tidy(lanes.isel(seed=0), {"centre": centre, "low": low, "high": high})


def _scales(frame: pd.DataFrame, log: str | None) -> str:
    if log is not None:
        choice("log", log, ("x", "y", "both", "none"))
        if log in ("y", "both") and not (frame["centre"] > 0).any():
            raise ValueError(f"log = {log!r} needs some positive regret and there is none: use 'x' or 'none'")
        return log
    keys = [c for c in frame.columns if c not in ("t", "centre", "low", "high")]
    ends = frame.groupby(keys)["centre"].last()
    ends = ends[ends > 0]
    return "both" if len(ends) and ends.max() > MAX_LINEAR_SPREAD * ends.min() else "none"


def _styles(labels: list[str], partners: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    partners = partners or {}
    styles = {}
    for i, label in enumerate(x for x in labels if x not in partners):
        kinds = {"color": COLOURS, "linestyle": DASHES, "marker": MARKERS}
        styles[label] = {name: values[i % len(values)] for name, values in kinds.items()}
    for label, main in partners.items():
        styles[label] = styles[main] | {"linestyle": ":", "markerfacecolor": "white"}
    return styles


def _partners(dotted: Any, labels: list[str]) -> dict[str, Any]:
    if not hasattr(dotted, "items"):
        mains = [x for x in labels if x not in dotted]
        dotted = {x: max((m for m in mains if x.startswith(m)), key=len, default=None) for x in dotted}
    for label, main in dotted.items():
        choice("a label of dotted", label, labels)
        if main not in labels or main in dotted:
            raise ValueError(f"dotted: {label!r} has no partner {main!r}: give {{{label!r}: another of {labels}}}")
    return dict(dotted)


def _bounds(bounds: Mapping[str, Callable[[Any], Any] | Any] | None, t: Any) -> list[pd.DataFrame]:
    """The bounds at the plays t, a tidy table each."""
    import pandas as pd

    frames = []
    for name, bound in (bounds or {}).items():
        values = np.asarray(bound(t.astype(float)) if callable(bound) else bound, float)
        if values.ndim > 0 and values.shape != t.shape:
            raise ValueError(
                f"bounds[{name!r}] has shape {values.shape}; give a function of the plays, or a value for each of the "
                f"{len(t)} checkpoints"
            )
        frames.append(
            pd.DataFrame({"algorithm": name, "t": t, "centre": np.broadcast_to(values, t.shape), "kind": "bound"})
        )
    return frames


def _orders(
    reference: Mapping[str, Callable[[Any], Any]] | None, key: str, finite: Any, log: bool
) -> list[pd.DataFrame]:
    import pandas as pd

    x = (np.geomspace if log else np.linspace)(finite[0], finite[-1], 100)
    frames = []
    for name, order in (reference or {}).items():
        y = np.broadcast_to(np.asarray(order(x), np.float64), x.shape)
        frames.append(pd.DataFrame({"algorithm": name, key: x, "centre": y, "kind": "reference"}))
    return frames


def _words(key: Any) -> str:
    names = {"epsilon": "privacy level ε", "horizon": "horizon (plays)", "window": "window (plays)"}
    return names.get(key, key.replace("_", " ").replace(".", ": "))


def _over(ds: xr.Dataset, bands: str) -> str:
    seeds = ds.sizes["seed"]
    return f"{CENTRE[bands]} over {seeds:,} seeds" if seeds > 1 else "one seed, hence no interval"


def _plays(ds: xr.Dataset) -> str:
    horizon = ds.coords.get("horizon", ds["t"][-1])
    return "the horizon" if horizon.ndim else f"{int(horizon):,} plays"


def _text(value: Any) -> str:
    return layout.number(float(value)) if isinstance(value, int | float | np.number) else str(value)
