"""Figures of a tuning: `jb.plot.response`, `jb.plot.parallel` and `jb.plot.importance`."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np
import pandas as pd
from annotated_doc import Doc

from jaxbandits import formatting, statistics
from jaxbandits.reports import layout
from jaxbandits.reports.drawing import MARKERS, Axes, Caption, FigureWidth, File, Select, errorbar, with_style
from jaxbandits.reports.layout import COLOURS, Panel, Plot
from jaxbandits.searching.tuning import Tuning
from jaxbandits.validation import choice

MAX_SPREAD = 30.0  # positive numbers that differ by more are read on a logarithmic axis
BINS = 8  # of a key with many values, for its importance
ROW, ROOM = 0.22, 0.6  # inches of a bar's row, and of all else
BEST_SHARE = 0.25  # the share of settings that parallel coordinates draw in colour
Several = Annotated[
    Select, Doc("`{key of over: value or list}`, so that at most one key has several values, six at most.")
]
Tuned: TypeAlias = Annotated[Tuning, Doc("What `jb.tune` returned.")]


@with_style
def response(
    tuning: Tuned, key: Annotated[str, Doc("A key of numbers, without a label.")], *, select: Several = None,
    caption: Caption = "", width: FigureWidth = None, ax: Axes = None, path: File = None,
) -> Plot:  # fmt: skip
    """Regret on the seeds of the search against a key that was tuned: a line for each algorithm that has it.

    Where other keys were tuned beside it, each value is shown at its best. The chosen value is filled.

    Returns:
        Plot: Data: `algorithm`, keys of `over`, the key, `centre`, `low`, `high` (mean regret over the family and the
            seeds that were run, with its 95% interval) and `chosen`.

    >>> import jaxbandits as jb
    >>> losses = jb.environments.bernoulli_losses(means=[0.2, 0.8])
    >>> tuning = jb.tune("exp3", losses, space={"learning_rate": [0.01, 0.3]}, horizon=100,
    ...                  seeds=range(1000, 1016), report_seeds=16, progress=False)
    >>> response(tuning, "learning_rate").data[["learning_rate", "chosen"]].values.tolist()
    [[0.01, False], [0.3, True]]
    """
    frame = _frame(tuning)
    keys = list(tuning.best.attrs["chosen"])
    choice("key", key, keys)
    if frame[key].dtype.kind not in "iuf":
        raise ValueError(f"key = {key!r} has no numbers to stand on an axis: draw plot.parallel(tuning)")
    frame = frame.dropna(subset=[key])
    frame, apart = _select_rows(frame, list(tuning.best.attrs["over"]), select)
    by = ["algorithm", *([apart] if apart else []), key]
    frame = frame.sort_values("objective", kind="stable").drop_duplicates(by).sort_values(by, kind="stable")
    labels = list(dict.fromkeys(tuning.best["algorithm"][tuning.best["algorithm"].isin(frame["algorithm"])]))
    values = [] if apart is None else list(dict.fromkeys(tuning.trials[apart].values.tolist()))
    values = [v for v in values if (frame[apart] == v).any()]
    panel, title = Panel(caption, width, ax, path), lambda v: f"{panel.words_of(apart)} = {formatting.format_value(v)}"
    for axes, _, here in panel.split_rows(frame, apart, values, title):
        for i, label in enumerate(labels):
            line = here[here["algorithm"] == label]
            looks: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
            errorbar(axes, line[key], line, label, markerfacecolor="white", **looks)
            chosen = line[line["chosen"]]
            axes.plot(chosen[key], chosen["centre"], linestyle="", zorder=3, **looks)
        layout.axis(axes.xaxis, frame[key].to_numpy(float), _is_log(frame[key]))
        layout.axis(axes.yaxis, frame[["centre", "low", "high"]].to_numpy(), _is_log(frame["centre"]))
    table, about = frame[[*by, "centre", "low", "high", "chosen"]], "95% intervals; filled: chosen"
    return panel.complete(table, panel.words_of(key), "mean regret of the search", labels, about)


@with_style
def parallel(
    tuning: Tuned,
    algorithm: Annotated[str | None, Doc("A label. The default: the only one that was tuned.")] = None, *,
    select: Annotated[Select, Doc("`{key of over: value}`, one value for each key.")] = None,
    caption: Caption = "", width: FigureWidth = None, ax: Axes = None, path: File = None,
) -> Plot:  # fmt: skip
    """All settings of one algorithm as lines over its keys, and over their regret at the right.

    The best quarter is drawn in colour, the chosen setting thick.

    Returns:
        Plot: Data: `trial`, the keys, `objective` and `chosen`, the best first.
    """
    frame = _frame(tuning)
    keys = list(tuning.best.attrs["chosen"])
    tuned = [str(x) for x in dict.fromkeys(frame["algorithm"][~frame["untuned"]])]
    if algorithm is None and len(tuned) != 1:
        raise ValueError(f"algorithm: {len(tuned)} were tuned ({', '.join(tuned)}): name one")
    label = tuned[0] if algorithm is None else choice("algorithm", algorithm, tuned)
    frame, apart = _select_rows(frame[frame["algorithm"] == label], list(tuning.best.attrs["over"]), select)
    if apart is not None:
        value = frame[apart].iloc[0]
        raise ValueError(f"select leaves {apart} with several values: fix one, such as select={{{apart!r}: {value}}}")
    keys = [key for key in keys if not all(x == "" or x != x for x in frame[key])]
    frame = frame.sort_values("objective", kind="stable")
    places = {column: _heights(frame[column]) for column in [*keys, "objective"]}
    lines = np.column_stack([places[column][0] for column in places])
    wide = width if ax is not None else width or max(3.5, 1.1 * (len(keys) + 1))
    panel = Panel(caption, wide, ax, path)
    (axes,) = panel.lay_out(1)
    names = {"others": ("0.75", 0.6), "best quarter": (COLOURS[0], 0.9), "chosen": (COLOURS[1], 2.0)}
    kinds = np.where(np.arange(len(frame)) < np.ceil(BEST_SHARE * len(frame)), "best quarter", "others")
    kinds = np.where(frame["chosen"], "chosen", kinds)
    shown = []
    for name, (colour, thick) in names.items():
        for i, line in enumerate(lines[kinds == name]):
            axes.plot(range(lines.shape[1]), line, color=colour, linewidth=thick, label=name if i == 0 else None)
        shown += [name] if (kinds == name).any() else []
    for x, (_, ends) in enumerate(places.values()):
        axes.axvline(x, color="0.3", linewidth=0.6, zorder=0)
        for y, text in ends:
            axes.annotate(text, (x, y), (2, 0), textcoords="offset points", fontsize=7, va="center")
    axes.set_xticks(range(lines.shape[1]), [layout.key_words(key).replace(": ", ":\n") for key in [*keys, "regret"]])
    axes.set_xlim(-0.1, lines.shape[1] - 0.6)
    axes.set_yticks([])
    table, about = frame[["trial", *keys, "objective", "chosen"]], f"{label}: {len(frame)} settings"
    return panel.complete(table, "", "", shown[::-1], about)


@with_style
def importance(
    tuning: Tuned, *, caption: Caption = "", width: FigureWidth = None, ax: Axes = None, path: File = None
) -> Plot:
    """How much each tuned key matters: the share of the objective's variance over settings that its value explains.

    A key's own effect alone, corrected for what groups of random settings would explain (epsilon squared), and averaged
    over the points of `over`. A key of many values has eight groups. Meaningful where settings cover the space: a grid
    or quasi-random settings.

    Returns:
        Plot: Data: `algorithm`, `key` and `share`, in [0, 1].
    """
    frame, over, rows = _frame(tuning), list(tuning.best.attrs["over"]), []
    for label in dict.fromkeys(frame["algorithm"][~frame["untuned"]]):
        part = frame[frame["algorithm"] == label]
        groups = [group for _, group in part.groupby(over, sort=False)] if over else [part]
        for key in tuning.best.attrs["chosen"]:
            if all(x == "" or x != x for x in part[key]):
                continue
            shares = [_variance_share(group[key], group["objective"].to_numpy(float)) for group in groups]
            rows.append({"algorithm": label, "key": key, "share": float(np.mean(shares))})
    data = pd.DataFrame(rows)
    labels = list(dict.fromkeys(data["algorithm"]))
    bars = data.sort_values("share", ascending=False, kind="stable")
    bars = bars.sort_values("algorithm", key=lambda column: column.map(labels.index), kind="stable")
    order = labels if len(labels) > 1 else []
    caption = caption if order or caption is False else f"{labels[0]}; {caption}" if caption else labels[0]
    panel = Panel(caption, width, ax, path)
    (axes,) = panel.lay_out(1)
    if ax is None:
        axes.figure.set_figheight(ROOM + ROW * len(bars))
    for label in labels:
        y = np.flatnonzero(bars["algorithm"] == label)
        colour = COLOURS[labels.index(label) % len(COLOURS)]
        axes.barh(y, bars["share"].iloc[y], 0.6, color=colour, label=label)
    for y, share in enumerate(bars["share"]):
        axes.annotate(f"{share:.0%}", (share, y), (3, 0), textcoords="offset points", fontsize=7, va="center")
    layout.axis(axes.xaxis, np.array([0.0, 1.0]), False)
    axes.set_xlim(0.0, 1.12)
    names = [layout.key_words(key).replace(": ", ":\n") for key in bars["key"]]
    axes.set_yticks(range(len(bars)), names)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    return panel.complete(data, "share of the variance explained", "", order, "each key by itself")


def _variance_share(values: pd.Series, objective: np.ndarray[Any, Any]) -> float:
    """The share of the objective's variance that groups of equal values explain, at least 0."""
    groups = pd.Series(values.to_numpy())
    if groups.nunique() > BINS and groups.dtype.kind in "iuf":
        groups = pd.qcut(groups, BINS, labels=False, duplicates="drop")
    finite = np.isfinite(objective)
    y, codes = objective[finite], pd.factorize(groups[finite])[0]
    number, total = codes.max(initial=-1) + 1, float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0
    if number < 2 or total == 0.0:
        return 0.0
    inside = sum(float(((y[codes == g] - y[codes == g].mean()) ** 2).sum()) for g in range(number))
    spare = inside / (len(y) - number) if len(y) > number else 0.0
    return float(np.clip((total - inside - (number - 1) * spare) / total, 0.0, 1.0))


def _frame(tuning: Tuning) -> pd.DataFrame:
    """A row for each setting that was run: algorithm, keys of over, trial, its values, objective, interval, chosen."""
    regret, objective = tuning.trials["regret"], tuning.trials["objective"]
    family = [d for d in regret.dims if d not in (*objective.dims, "seed")]
    values = regret.mean(family).transpose(*objective.dims, "seed").values.reshape(objective.size, -1)
    was_run = ~np.isnan(values).all(-1)
    intervals = [statistics.mean_interval(row[~np.isnan(row)]) for row in values[was_run]]
    frame = objective.to_dataframe().reset_index()[was_run].reset_index(drop=True)
    frame[["centre", "low", "high"]] = np.reshape(intervals, (-1, 3))
    over = list(tuning.best.attrs["over"])
    best = json.loads(tuning.trials.attrs["chosen_trials"])
    at = frame.groupby(["algorithm", *over], sort=False).ngroup() if len(frame) else []
    frame["chosen"] = [trial == best[group] for trial, group in zip(frame["trial"], at, strict=True)]
    keys = list(tuning.best.attrs["chosen"])
    frame["untuned"] = (frame[keys].isna() | (frame[keys] == "")).all(axis=1)
    return frame


def _select_rows(
    frame: pd.DataFrame, over: list[str], select: Mapping[str, Any] | None
) -> tuple[pd.DataFrame, str | None]:
    """The rows of a selection, and the key of over that still has several values."""
    for key, wanted in (select or {}).items():
        choice("a key of select", key, over)
        several = list(wanted) if isinstance(wanted, list | tuple | np.ndarray) else [wanted]
        frame = frame[frame[key].isin(several)]
        if frame.empty:
            raise ValueError(f"select: {key} has no {wanted!r}")
    left = [key for key in over if frame[key].nunique() > 1]
    if len(left) > 1 or (left and frame[left[0]].nunique() > len(layout.SHAPES)):
        raise ValueError(f"select leaves too many values of {', '.join(left)}: fix all keys but one, and at most six")
    return frame, left[0] if left else None


def _heights(values: pd.Series) -> tuple[np.ndarray[Any, Any], list[tuple[float, str]]]:
    """Values as heights in [0, 1], and the texts at some heights."""
    if values.dtype.kind not in "iuf":
        names = list(dict.fromkeys(map(str, values)))
        heights = {name: (i + 0.5) / len(names) for i, name in enumerate(names)}
        return np.array([heights[str(x)] for x in values]), [(y, name) for name, y in heights.items()]
    x = values.to_numpy(float)
    scaled = np.log(x) if _is_log(values) else x
    low, high = float(np.min(scaled)), float(np.max(scaled))
    least, most = formatting.compact(x.min(), 3), formatting.compact(x.max(), 3)
    if high > low:
        return (scaled - low) / (high - low), [(0.0, least), (1.0, most)]
    return np.full(len(x), 0.5), [(0.5, least)]


def _is_log(values: pd.Series) -> bool:
    x = values.to_numpy(float)
    return bool((x > 0).all() and x.max() > MAX_SPREAD * x.min())
