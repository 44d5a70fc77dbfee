"""The charts that a reader can touch: what page.js draws, as numbers and texts; and pictures that stand still."""

import base64
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandits import statistics
from jaxbandits.formatting import compact, format_value
from jaxbandits.regret import rival_of
from jaxbandits.reports import drawing, layout
from jaxbandits.reports.layout import Plot
from jaxbandits.reports.of_sweeps import band_table, linear_below, reward
from jaxbandits.reports.of_tables import heatmap
from jaxbandits.reports.page.words import cut, key_name, listing, riders, value_words
from jaxbandits.selection import final_regret, grid_dims, spread_places

MAX_CHART_NUMBERS = 60_000  # of a chart: about 400 kB
MAX_TIMES, MIN_TIMES = 120, 15  # of a line
QUANTILES = 51  # points of a distribution's line
MAX_CATEGORIES = 30  # more values of a key than this are an axis of their own
MAX_MAPS = 3  # pairs of keys that are drawn
MAX_PANELS = max(layout.SHAPES)
LINE = 2  # pixels: dashes are in widths of their line

Chart = dict[str, Any]
# Whether axes are logarithmic, and up to where the vertical one is linear then; whether a reader may switch that;
# whether points are joined, and intervals are bands rather than bars; names of places on the horizontal axis.
USUAL: Chart = {
    "xLog": False, "yLog": False, "linear": None, "scales": True, "joined": True, "band": False, "ticks": None,
}  # fmt: skip


def regret_over_plays(ds: xr.Dataset) -> Chart:
    """Mean regret with its interval against plays; a reader chooses the point of the grid."""
    ds, note = _few(ds, 3 * MIN_TIMES)
    lines = math.prod(ds["regret"].shape[:-2])
    # each null of a shorter horizon is short
    times = int(np.clip(MAX_CHART_NUMBERS // (3 * lines), MIN_TIMES, MAX_TIMES))
    t = ds["t"].values
    chosen = np.unique(np.concatenate([own[spread_places(len(own), times)] for own in _checkpoints(ds)]))
    ds = ds.isel(t=chosen)
    frame = band_table(ds["regret"], "interval")
    shape = (*ds["regret"].shape[:-2], len(chosen))
    bands = [frame[name].to_numpy().reshape(shape) for name in ("centre", "low", "high")]
    linear = linear_below(final_regret(ds).mean("seed").values)
    log: dict[str, Any] = {"yLog": linear is not None, "linear": linear}
    return _chart(ds, bands, t[chosen], xName="plays t", yName=drawing.axis_words(ds), note=note, band=True, **log)


def _checkpoints(ds: xr.Dataset) -> list[np.ndarray[Any, Any]]:
    """The places of the checkpoints on the axis of plays: those of every horizon, where there are several."""
    if "horizon" not in ds.dims:
        return [np.arange(ds.sizes["t"])]
    first = ds["regret"].isel({d: 0 for d in ds["regret"].dims if d not in ("horizon", "t")}).transpose("horizon", "t")
    own = [np.flatnonzero(~np.isnan(line)) for line in first.values]
    return [places if len(places) else np.arange(ds.sizes["t"]) for places in own]


def against(ds: xr.Dataset, key: str) -> Chart:
    """Mean final regret with its interval against a key of the grid; a reader chooses the other keys."""
    ds, note = _few(ds, 3 * ds.sizes[key], key)
    final = final_regret(ds)
    others = [d for d in grid_dims(ds) if d != key]
    final = final.transpose("algorithm", *others, key, "seed")
    x = ds[key].values
    numeric = x.dtype.kind in "iuf" and key != "point" and len(set(x[np.isfinite(x)])) > 1
    order = np.argsort(x, kind="stable") if numeric else np.arange(len(x))
    bands = [np.take(band, order, -1) for band in statistics.mean_interval(final.values)]
    places = x[order].astype(float) if numeric else np.arange(len(x), dtype=float)
    finite = places[np.isfinite(places)]
    x_log = bool(numeric and (finite > 0).all() and finite.max() > 10 * finite.min())
    if numeric and not np.isfinite(places).all():  # infinity stands apart, at the right
        step = finite[-1] * (finite[-1] / finite[0]) ** 0.2 if x_log else finite[-1] + 0.2 * np.ptp(finite)
        places = np.where(np.isfinite(places), places, step)
    few = len(x) <= MAX_CATEGORIES or not numeric
    named = riders(ds) if key == "point" else []

    def tick_words(i: int) -> str:
        return cut(", ".join(format_value(ds[name].values[i]) for name in named)) if named else value_words(ds, key, i)

    ticks = [[_five_digits(p), tick_words(int(i))] for p, i in zip(places, order, strict=True)] if few else None
    y_log = bool((bands[0] > 0).all()) and linear_below(bands[0]) is not None
    name = ", ".join(named) or key_name(key)
    return _chart(
        ds, bands, places, key, xName=name, yName=_at_the_end(ds), note=note, xLog=x_log, yLog=y_log, ticks=ticks,
        joined=numeric, scales=numeric,
    )  # fmt: skip


def distribution(ds: xr.Dataset) -> Chart:
    """The quantiles of final regret over seeds: at 0.9 the regret that 90% of the seeds stay below."""
    ds, note = _few(ds, QUANTILES)
    shares = np.linspace(0, 1, QUANTILES)
    quantiles = np.moveaxis(np.quantile(final_regret(ds).values, shares, axis=-1), 0, -1)
    y_log = linear_below(quantiles[..., QUANTILES // 2]) is not None
    return _chart(ds, [quantiles], shares, xName="share of seeds", yName=_at_the_end(ds), note=note, yLog=y_log)


def _at_the_end(ds: xr.Dataset) -> str:
    return f"regret at the end{drawing.unit_words(ds)}"


def pulls(ds: xr.Dataset) -> Chart:
    """Mean pulls of every arm at the horizon, with their intervals."""
    ds, note = _few(ds, 3 * ds.sizes["arm"])
    counts = statistics.mean_interval(ds["pulls"].transpose("algorithm", *grid_dims(ds), "arm", "seed").values)
    names = ds["arm_name"].values if "arm_name" in ds.coords else ds["arm"].values
    x = np.arange(len(names), dtype=float)
    ticks = [[float(i), cut(str(name))] for i, name in enumerate(names)] if len(names) <= MAX_CATEGORIES else None
    words = {"xName": "arm", "yName": "plays of the arm", "note": note}
    return _chart(ds, counts, x, ticks=ticks, joined=False, scales=False, **words)


def heatmaps(ds: xr.Dataset) -> list[tuple[str, str]]:
    """Heat maps of mean final regret over pairs of keys, a panel for each algorithm, other keys at their first value.

    Each is the address of an image, and what it shows.
    """
    keys = [d for d in grid_dims(ds) if ds.sizes[d] > 1 and d != "point"]
    labels = [str(label) for label in ds["algorithm"].values][:MAX_PANELS]
    found = []
    for x, y in itertools.islice(itertools.combinations(keys, 2), MAX_MAPS):
        here = ds.isel({"algorithm": slice(len(labels))} | {d: [0] for d in keys if d not in (x, y)})
        frame = statistics.summary(here)
        for key in (x, y):  # an infinite value has no place on an axis, as a name it has
            if frame[key].dtype.kind == "f" and not frame[key].map(abs).lt(float("inf")).all():
                frame[key] = frame[key].map(compact)
        fixed = [f"{key_name(d)} = {value_words(ds, d, 0)}" for d in keys if d not in (x, y)]
        words = f"Mean regret at the end over {key_name(x)} and {key_name(y)}, for {listing(labels)}"
        words += f"; {', '.join(fixed)}" if fixed else ""
        words += f"; {len(labels)} of {ds.sizes['algorithm']} algorithms" if ds.sizes["algorithm"] > MAX_PANELS else ""
        names = {key: key_name(key) for key in (x, y)}
        drawn = heatmap(frame, x, y, "mean", panel="algorithm", names=names, caption="mean regret at the end")
        found.append((_picture(drawn), f"{words}."))
    return found


def right_answers(ds: xr.Dataset) -> tuple[str, str]:
    """The share of right answers against plays, as the address of an image, and what it shows."""
    keys = [d for d in grid_dims(ds) if ds.sizes[d] > 1]
    here = ds.isel({d: spread_places(ds.sizes[d], 1 if i else MAX_PANELS) for i, d in enumerate(keys)})
    fixed = "".join(f"; {key_name(d)} = {value_words(ds, d, 0)}" for d in keys[1:])
    rival = rival_of(ds["regret"].attrs.get("long_name", ""))
    return _picture(reward(here)), f"Share of right answers so far, beside that of the {rival}{fixed}."


def _picture(drawn: Plot) -> str:
    """The address of an image that is inside the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(layout.render(drawn.figure, 'svg')).decode()}"


def _few(ds: xr.Dataset, numbers: int, keep: str | None = None) -> tuple[xr.Dataset, str]:
    """The Dataset with as many points of its grid as a page can hold, and what to say of the others."""
    thinned: dict[str, int] = {}
    while ds["regret"].isel(seed=0, t=0).size * numbers // (ds.sizes[keep] if keep else 1) > MAX_CHART_NUMBERS:
        sizes = {d: ds.sizes[d] for d in grid_dims(ds) if d != keep and ds.sizes[d] > 2}
        if not sizes:
            break
        key = max(sizes, key=lambda d: sizes[d])
        thinned[key] = thinned.get(key, sizes[key])
        ds = ds.isel({key: spread_places(sizes[key], math.ceil(sizes[key] / 2))})
    parts = [f"{ds.sizes[key]} of {size} values of {key_name(key)}" for key, size in thinned.items()]
    return ds, f"The page has room for {listing(parts)}." if parts else ""


def _chart(ds: xr.Dataset, bands: Sequence[Any], x: Any, key: str | None = None, **said: object) -> Chart:
    """A chart from arrays `[algorithm, <keys but `key`...>, x]`: centres and, where there are, lows and highs.

    said: what page.js reads, beside or in place of `USUAL`.
    """
    labels = [str(label) for label in ds["algorithm"].values]
    keys = [d for d in grid_dims(ds) if d != key]
    constant = json.loads(ds.attrs.get("constant_along", "{}"))
    series = []
    for i, label in enumerate(labels):
        idle = [d in constant.get(label, ()) for d in keys]
        for at in np.ndindex(*(ds.sizes[d] for d in keys)):
            if any(there and j > 0 for there, j in zip(idle, at, strict=True)):
                continue  # the same as at the first value
            one: dict[str, Any] = {"label": label, "at": [None if d else j for d, j in zip(idle, at, strict=True)]}
            for name, values in zip(("y", "low", "high"), bands, strict=False):
                one[name] = _numbers(values[(i, *at)])
            series.append(one)
    styles = drawing.styles_of(labels)
    looks = {label: _look(style) for label, style in styles.items()}
    return USUAL | said | {
        "x": _numbers(x), "labels": labels, "looks": looks, "series": series,
        "keys": [{"name": key_name(d), "values": [value_words(ds, d, j) for j in range(ds.sizes[d])]} for d in keys],
    }  # fmt: skip


def _look(style: dict[str, Any]) -> dict[str, Any]:
    """Colour, dashes and marker of a line of the pictures, as the page draws them."""
    dashes = () if style["linestyle"] == "-" else style["linestyle"][1]
    return {"colour": style["color"], "dash": [LINE * x for x in dashes], "mark": style["marker"]}


def _numbers(values: Iterable[Any]) -> list[float | int | None]:
    return [_five_digits(x) for x in np.asarray(values, float).tolist()]


def _five_digits(x: float) -> float | int | None:
    """Five significant digits; None for what is not finite, which JSON cannot hold."""
    if not math.isfinite(x):
        return None
    x = float(f"{x:.5g}")
    return int(x) if x.is_integer() and abs(x) < 1e15 else x
