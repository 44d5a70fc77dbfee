"""Regret and reward against plays: a line for each algorithm, a panel for each value of a grid key."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from jaxbandits import selection, spending, statistics
from jaxbandits.reports import drawing, layout
from jaxbandits.reports.drawing import (
    CENTRE,
    Axes,
    Bands,
    Caption,
    Dotted,
    File,
    Names,
    Select,
    Width,
    documented,
    measured,
    over_seeds,
    value_text,
)  # fmt: skip
from jaxbandits.reports.layout import Plot
from jaxbandits.selection import Swept
from jaxbandits.validation import choice

BLOCK_BYTES = 1 << 26  # of regret in memory at a time
MAX_LINEAR_SPREAD = 30.0  # lines whose final regrets differ by a larger factor cannot be read on a linear axis


@documented
def regret(
    ds: Swept, *, select: Select = None,
    bands: Bands = "interval", log: Literal["x", "y", "both", "none"] | None = None,
    dotted: Dotted = (), bounds: Mapping[str, Callable[[Any], Any] | Any] | None = None,
    names: Names = None,
    caption: Caption = "", width: Width = None, ax: Axes = None, path: File = None,
) -> Plot:  # fmt: skip
    """Cumulative regret against plays: a line for each algorithm, a panel for each value of the grid key that is left.

    Parameters
    ----------
    log
        Which axes are logarithmic. By default none; where final regrets differ by a factor above 30, regret's axis is
        logarithmic above the power of ten below the smallest of them, and linear below.
    bounds : dict
        `{name: function of the plays [C], or its values there}`: thin grey lines in every panel, such as a lower bound
        of `jb.theory`; a function may return one number for all plays.
    names
        `{key: its name in the panels' titles}`.

    Returns
    -------
    Plot
        The figure and the tidy table of what it shows; with `bounds` its column `kind` tells "algorithm" from "bound".

    >>> import xarray as xr
    >>> values = np.arange(12.0).reshape(1, 4, 3)
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), values)}, {"algorithm": ["exp3"], "t": [1, 2, 3]})
    >>> regret(ds).data["centre"].tolist()
    [4.5, 5.5, 6.5]
    """
    choice("bands", bands, tuple(CENTRE))
    ds = selection.whole(ds, "plot.regret")
    ds, panel_key = drawing.reduced(ds, select, 1)
    frame = band_table(ds["regret"], bands).dropna(subset="centre")
    log, linear = _scales(frame, log)
    limits = _bounds(bounds, np.unique(frame["t"].to_numpy()))
    figure = _drawn(
        ds, panel_key, frame, lambda value: limits, words=measured(ds), over=over_seeds(ds, bands), log=log,
        linear=linear, dotted=dotted, names=names or {}, caption=caption, width=width, ax=ax,
    )  # fmt: skip
    if limits:
        frame = pd.concat([frame.assign(kind="algorithm"), *limits], ignore_index=True)
    return drawing.done(figure, frame, path)


@documented
def reward(
    ds: Swept, *, total: bool = False, select: Select = None,
    bands: Bands = "interval", log: Literal["x", "none"] = "none",
    dotted: Dotted = (), names: Names = None,
    caption: Caption = "", width: Width = None, ax: Axes = None, path: File = None,
) -> Plot:  # fmt: skip
    """Expected reward against plays, beside that of what regret is measured against, which is a thin grey line.

    The expected reward over plays 1..t is `ds.best_reward` less `ds.regret`: that of the best arm, or of the arm or
    expert that is best over these plays, less regret. For labelled rows it is how many labels were named right. A
    reward adversary changes what a learner sees and not this number.

    Parameters
    ----------
    total
        Rewards summed over plays 1..t instead of their mean over these plays.
    log
        Whether the axis of plays is logarithmic.
    names
        `{key: its name in the panels' titles}`.

    Returns
    -------
    Plot
        The figure and the tidy table of what it shows; its column `kind` is "algorithm" or, for the grey line, "best".

    Raises
    ------
    ValueError
        For what cannot be drawn: the message says why. Where contexts decide which arm is best there is no
        `best_reward`, and differences of rewards, regret, are all that is recorded.

    >>> import xarray as xr
    >>> ds = xr.Dataset(
    ...     {"regret": (("algorithm", "seed", "t"), [[[1.0, 2.0]]]), "best_reward": ("t", [6.0, 12.0])},
    ...     {"algorithm": ["ucb1"], "t": [10, 20]},
    ... )
    >>> reward(ds).data[["algorithm", "centre"]].values.tolist()
    [['ucb1', 0.5], ['ucb1', 0.5], ['best fixed arm', 0.6], ['best fixed arm', 0.6]]
    """
    choice("bands", bands, tuple(CENTRE))
    choice("log", log, ("x", "none"))
    ds = selection.whole(ds, "plot.reward")
    if "best_reward" not in ds:
        raise ValueError(
            "ds has no best_reward: contexts decide which arm is best there and only regret is known, so draw "
            "plot.regret(ds); or an earlier release computed it, and the same sweep with its store adds best_reward"
        )
    ds, panel_key = drawing.reduced(ds, select, 1)
    best = ds["best_reward"] if total else ds["best_reward"] / ds["t"]
    frame = band_table(ds["regret"], bands, best, 1.0 if total else ds["t"]).dropna(subset="centre")
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
    figure = _drawn(
        ds, panel_key, frame, lines_of.__getitem__, words=words, over=over_seeds(ds, bands), log=log,
        dotted=dotted, names=names or {}, caption=caption, width=width, ax=ax,
    )  # fmt: skip
    return drawing.done(figure, pd.concat([frame.assign(kind="algorithm"), *shown], ignore_index=True), path)


def _drawn(
    ds: Swept, panel_key: str | None, frame: pd.DataFrame, limits_of: Callable[[Any], list[pd.DataFrame]], *,
    words: str, over: str, log: str, dotted: Any, names: Mapping[str, str], caption: str | Literal[False],
    width: float | None, ax: Any, linear: float | None = None,
) -> Figure:  # fmt: skip
    """A line for each algorithm, a panel for each value of a grid key with thin grey lines, `limits_of` that value.

    words: of the vertical axis; over: what the bands are; linear: up to where a logarithmic vertical axis is linear.
    """
    values = [None] if panel_key is None else list(ds[panel_key].values)
    if len(values) > len(layout.SHAPES):
        shown = ", ".join(map(value_text, values))
        raise ValueError(
            f"{panel_key} has {len(values)} values ({shown}) and a figure {len(layout.SHAPES)} panels: select some"
        )
    labels = [str(a) for a in ds["algorithm"].values]
    styles = drawing.styles_of(labels, drawing.partners_of(dotted, labels))
    known: dict[str, None] = {}
    with layout.style():
        figure, panels = layout.panels(len(values), width, ax)
        for axes, value in zip(panels, values, strict=True):
            here = frame if value is None else frame[frame[panel_key] == value]
            limits = limits_of(value)
            for label, line in here.groupby("algorithm", sort=False):
                # A zero has no place on a logarithmic axis: the line starts after it, the table keeps it.
                centre = _visible(line["centre"], log)
                # matplotlib cannot space the markers of an empty line
                every = 0.2 if centre.notna().any() else None
                axes.plot(line["t"], centre, label=label, markevery=every, **styles[label])
                colour = styles[label]["color"]
                axes.fill_between(line["t"], line["low"], line["high"], color=colour, alpha=0.18, linewidth=0)
            own = here if panel_key == "horizon" else frame
            seen = [_visible(limit["centre"], log) for limit in limits]
            heights, also = own[["centre", "low", "high"]].to_numpy(), [centre.dropna() for centre in seen]
            layout.axis(axes.xaxis, own["t"], log in ("x", "both"))
            layout.axis(axes.yaxis, heights, log in ("y", "both"), also=also, linear=linear)
            for limit, centre, dashes in zip(limits, seen, itertools.cycle(drawing.DASHES[1:])):
                name = limit["algorithm"].iloc[0]
                known[name] = None
                axes.plot(limit["t"], centre, label=name, linestyle=dashes, **drawing.GREY)
            if value is not None:
                key = names.get(str(panel_key), layout.key_words(panel_key))
                axes.set_title(f"{key} = {value_text(value)}")
        layout.name_axes(panels, "plays $t$", words, shared=panel_key != "horizon")
        legend = spending.legend(ds)
        layout.finish(figure, panels[0], labels + list(known), over, caption, ax is not None, legend)
    return figure


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
    return selection.tidy(lanes.isel(seed=0), {"centre": centre, "low": low, "high": high})


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
            raise ValueError(
                f"bounds[{name!r}] has shape {values.shape}; give a function of the plays, or a value for each of the "
                f"{len(t)} checkpoints"
            )
        frames.append(
            pd.DataFrame({"algorithm": name, "t": t, "centre": np.broadcast_to(values, t.shape), "kind": "bound"})
        )
    return frames
