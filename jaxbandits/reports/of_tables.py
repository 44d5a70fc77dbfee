"""Figures of any tidy table: lines, maps, what policies earn on a log, and what an audit's test achieves beside what
the claim allows.
"""

import itertools
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from annotated_doc import Doc
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from jaxbandits.auditing.audit import Audit
from jaxbandits.auditing.confidence_bounds import claimed_curve
from jaxbandits.formatting import compact, minus, texts_of
from jaxbandits.off_policy.offline import Offline, to_table
from jaxbandits.reports import drawing, layout
from jaxbandits.reports.drawing import Axes, Caption, ColumnNames, Drawn, FigureWidth, File, styles_of, with_style
from jaxbandits.reports.layout import COLOURS, Panel, Plot
from jaxbandits.validation import choice

HATCH = "////"
NUM_LEVELS = 6  # colours of a map of numbers without cuts
MAX_CELLS_WITH_TICKS = 8  # of an axis of numbers; a longer one has fewer ticks than cells
ROW_INCHES = 0.24  # of a policy
MAX_CELLS_WITH_TEXT = 60  # of a panel; in a larger one no text is written


@with_style
def lines(
    frame: pd.DataFrame, x: str, y: str, *, line: Annotated[str, Doc("The column that tells the lines apart.")],
    log: Annotated[Literal["x", "y", "both", "none"], Doc("Which axes are logarithmic.")] = "none",
    dotted: drawing.Dotted = (), names: ColumnNames = None,
    caption: Caption = "", width: FigureWidth = None, ax: Axes = None, path: File = None,
) -> Drawn:  # fmt: skip
    """Curves of a tidy table: column `y` against column `x`, with a line for each value of the column `line`.

    Args:
        frame (pandas.DataFrame): One row for each point. A column of bools `markers`, where there is one, marks its
            points instead of joining them.
        x, y: The columns of the axes.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"t": [1, 2, 1, 2], "p": [0.5, 0.6, 0.5, 0.4], "data": ["l", "l", "m", "m"]})
    >>> len(lines(frame, "t", "p", line="data").figure.axes)
    1
    """
    choice("log", log, ("x", "y", "both", "none"))
    for column in (x, y, line):
        choice("column", column, list(frame.columns))
    if frame[line].isna().any():
        raise ValueError(f"column {line!r} has an empty cell: name its line, or leave the row out")
    values = list(dict.fromkeys(frame[line]))
    labels = texts_of(values)
    for letter, column in (("x", x), ("y", y)):
        if log in (letter, "both") and not (frame[column] > 0).any():
            raise ValueError(
                f"log = {log!r} needs a positive number in column {column!r}, and there is none: use 'none'"
            )
    styles = styles_of(labels, dotted)
    panel = Panel(caption, width, ax, path, names)
    (axes,) = panel.lay_out(1)
    for value, label in zip(values, labels, strict=True):
        part = frame[[type(x) is type(value) and x == value for x in frame[line]]]
        marked = len(part) == 1 or ("markers" in part and part["markers"].any())  # one point is no line
        axes.plot(part[x], part[y], label=label, **styles[label] | {"linestyle" if marked else "marker": ""})
    layout.axis(axes.xaxis, frame[x], log in ("x", "both"))
    layout.axis(axes.yaxis, frame[y], log in ("y", "both"))
    return panel.complete(frame, panel.words_of(x), panel.words_of(y), labels)


@with_style
def trade_off(
    audit: Annotated[Audit, Doc("What `jb.audit` returned.")], *,
    caption: Caption = "", width: FigureWidth = None, ax: Axes = None, path: File = None,
) -> Plot:  # fmt: skip
    """False negatives against false positives of an audit's test, beside the curve that its claim allows.

    A claim is refuted where the upper bounds come below its curve.

    Returns:
        Plot: Data: `false_positive`, `false_negative`, their upper confidence bounds `false_positive_high` and
            `false_negative_high`, and `claimed`, the least false negatives that the claim allows at `false_positive`.

    >>> import jaxbandits as jb
    >>> report = jb.audit(jb.algorithms.ldp_ucb(num_arms=2, horizon=100, epsilon=1.0), runs=2000)
    >>> list(trade_off(report).data)[:2]
    ['false_positive', 'false_negative']
    """
    epsilon, delta, curve = audit.claimed[0], audit.delta, audit.curve
    frame = pd.DataFrame(curve._asdict()).assign(claimed=claimed_curve(epsilon, delta, curve.false_positive))
    frame = frame.sort_values(["false_positive", "false_negative"], ignore_index=True)
    alpha = np.linspace(0, 1, 401)
    claim = rf"claimed: $\varepsilon$ = {compact(epsilon, 4)}, $\delta$ = {compact(delta)}"
    panel = Panel(caption, width, ax, path)
    (axes,) = panel.lay_out(1)
    axes.plot([0, 1], [1, 0], color="0.6", linewidth=0.8, label="guessing")
    axes.plot(alpha, claimed_curve(epsilon, delta, alpha), color=COLOURS[1], linestyle=(0, (5, 1.5)), label=claim)
    axes.plot(frame["false_positive"], frame["false_negative"], color=COLOURS[0], label="audited test")
    axes.plot(frame["false_positive_high"], frame["false_negative_high"], color=COLOURS[0], linewidth=0.5, alpha=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        layout.axis(axis, np.array([0.0, 1.0]), False)
    axes.set_title(rf"{audit.algorithm}: audited $\varepsilon$ at least {compact(audit.epsilon_lower, 3)}")
    about = f"{audit.runs:,} runs; thin: upper {audit.confidence:.6g} bounds, point by point"
    return panel.complete(frame, "false positives", "false negatives", ["audited test", claim, "guessing"], about)


@with_style
def offline(
    results: Annotated[pd.DataFrame | Offline, Doc("What `jb.offline` returned.")], *,
    caption: Caption = "", width: FigureWidth = None, ax: Axes = None, path: File = None,
) -> Plot:  # fmt: skip
    """What policies would have earned a row of a log: point and interval, beside what the logged policy earned.

    Behind the name of a policy stands its effective size in rows.

    Returns:
        Plot: Data: the table of `jb.offline`.

    >>> import jaxbandits as jb, pandas as pd
    >>> frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0] * 25, "ad": ["a", "b"] * 50, "click": [0, 1, 1, 1] * 25})
    >>> log = jb.read_logged(frame, arm="ad", reward="click", propensity="uniform")
    >>> len(offline(jb.offline(["a", "b"], log)).data)
    2
    """
    frame = to_table({"policy": results}) if isinstance(results, Offline) else results
    if "effective_size" not in getattr(frame, "columns", ()):
        raise TypeError(f"results of type {type(results).__name__}: give what jb.offline returned")
    panel = Panel(caption, width, ax, path)
    (axes,) = panel.lay_out(1)
    if ax is None:
        figure = axes.figure.figure
        figure.set_size_inches(figure.get_figwidth(), max(figure.get_figheight(), 0.7 + ROW_INCHES * len(frame)))
    ends, places = frame[["value", "low", "high"]].to_numpy(float), np.arange(len(frame))
    error = np.nan_to_num(np.abs(ends[:, 1:] - ends[:, :1]).T)
    axes.errorbar(
        ends[:, 0], places, xerr=error, linestyle="", marker="o", color=COLOURS[0], elinewidth=0.8, capsize=1.5
    )
    logged, order = frame.attrs.get("logged", np.nan), list[str]()
    if np.isfinite(logged):
        order = [f"the logged policy: {minus(compact(logged, 3))}"]
        axes.axvline(logged, label=order[0], linestyle=(0, (5, 1.5)), color="0.35", linewidth=0.9)
    layout.axis(axes.xaxis, np.append(ends, logged), False)
    names = [textwrap.fill(str(name), 34) for name in frame.index]
    sizes = ["" if np.isnan(size) else f" ({size:,.0f})" for size in frame["effective_size"]]
    axes.set(yticks=places, yticklabels=map("".join, zip(names, sizes, strict=True)), ylim=(len(frame) - 0.5, -0.5))
    about = f"{100 * frame.attrs.get('confidence', 0.95):g}% intervals; in brackets: effective rows"
    return panel.complete(frame.reset_index(), "mean reward of a row", "", order, about)


@with_style
def heatmap(
    frame: pd.DataFrame, x: str, y: str, value: str, *,
    panel: Annotated[str | None, Doc("The column with one panel for each of its values, six at most.")] = None,
    text: Annotated[str | None, Doc("A column written into the cells, where a panel has at most sixty.")] = None,
    hatched: Annotated[str | None, Doc("A column of bools: its cells are hatched.")] = None, names: ColumnNames = None,
    hatch: Annotated[str, Doc("What the legend calls hatched cells.")] = "not valid",
    cuts: Sequence[float] | None = None,
    caption: Caption = "", width: FigureWidth = None, ax: Axes = None, path: File = None,
) -> Drawn:  # fmt: skip
    """A map of one column of a tidy table over two others.

    Args:
        frame (pandas.DataFrame): One row for each cell.
        x, y: The columns of the axes. A column of numbers is an axis, logarithmic where all are positive; one of names
            has equal cells in order of appearance.
        value: The column that is drawn. Names get a colour each, in order of appearance or of the column's categories.
            Numbers get six colours, on a logarithmic scale where all are positive. A missing value leaves the cell
            white.
        cuts (sequence of float, optional): For numbers: where one colour ends and the next begins, rising, at least
            two. By default six colours share the range of the values; values of which most are close together need
            cuts.

    Raises:
        ValueError: For a column that is not there, where an axis holds numbers that are not finite, and for cuts that
            do not rise or do not hold every value.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2, 1, 2], "b": [1, 1, 2, 2], "winner": ["u", "u", "v", "u"]})
    >>> len(heatmap(frame, "a", "b", "winner").data)
    4
    """
    _check(frame, [c for c in (x, y, value, panel, text, hatched) if c is not None], (x, y))
    if (twice := frame.duplicated([c for c in (panel, x, y) if c is not None])).any():
        at = ", ".join(f"{c} = {frame[c][twice].iloc[0]}" for c in (panel, x, y) if c is not None)
        raise ValueError(f"a cell has several rows ({at}): tell them apart with `panel`, or select one row a cell")
    table, named = frame, {key: list(pd.unique(frame[key])) for key in (x, y) if frame[key].dtype.kind not in "iuf"}
    frame = frame.assign(**{key: frame[key].map(known.index) for key, known in named.items()})
    values = [] if panel is None else list(dict.fromkeys(frame[panel].dropna()))
    if len(values) > len(layout.SHAPES):
        has = f"{len(values)} values and a figure {len(layout.SHAPES)} panels"
        raise ValueError(f"panel = {panel!r} has {has}: select some")
    colour, legend = _colours(frame[value], cuts)
    looks: dict[str, dict[str, Any]] = {label: {"facecolor": look} for label, look in legend.items()}
    if hatched is not None and frame[hatched].any():
        looks[hatch] = {"facecolor": "white", "edgecolor": "0.35", "hatch": HATCH}
    edges = {key: _edges(frame[key]) for key in (x, y)}
    canvas = Panel(caption, width, ax, path)
    for axes, _, part in canvas.split_rows(frame, panel, values, str):
        axes.grid(False)
        for row in part.to_dict("records"):
            (left, right, across), (low, high, up) = (edges[key][row[key]] for key in (x, y))
            cell = partial(Rectangle, (left, low), right - left, high - low, linewidth=0.0)
            face = colour(row[value])
            axes.add_patch(cell(facecolor=face))
            if hatched is not None and row[hatched]:
                axes.add_patch(cell(facecolor="none", edgecolor="white" if _dark(face) else "0.35", hatch=HATCH))
            if text is not None and len(part) <= MAX_CELLS_WITH_TEXT:
                box = {"facecolor": face, "edgecolor": "none", "pad": 0.8}
                ink = "white" if _dark(face) else "black"
                axes.text(across, up, str(row[text]), color=ink, ha="center", va="center", fontsize=6.5, bbox=box)
        for key, axis, set_limits in ((x, axes.xaxis, axes.set_xlim), (y, axes.yaxis, axes.set_ylim)):
            known = np.unique(frame[key])
            few = key in named or len(known) <= MAX_CELLS_WITH_TICKS
            layout.axis(axis, known, _log(known), ticks=known if few else None)
            if key in named:
                axis.set_major_formatter(FuncFormatter(lambda i, _, key=key: str(named[key][round(i)])))
            set_limits(edges[key][known[0]][0], edges[key][known[-1]][1])
        for label, look in looks.items():
            axes.add_patch(Rectangle((0, 0), 0, 0, label=label, **look))
    names = {"epsilon": layout.KEY_NAMES["epsilon"], **(names or {})}
    x_label, y_label = (names.get(key, key.replace("_", " ")) for key in (x, y))
    return canvas.complete(table, x_label, y_label, list(looks))


def _check(frame: pd.DataFrame, columns: list[str], numeric: tuple[str, ...]) -> None:
    for column in columns:
        if column not in frame.columns:
            raise ValueError(f"the table has no column {column!r}: it has {', '.join(map(str, frame.columns))}")
    for column in numeric:
        bad = frame[column].isna()
        if frame[column].dtype.kind in "iuf":
            bad = bad | np.isinf(frame[column])
        if frame.empty or bad.any():
            raise ValueError(f"column {column!r} must hold finite numbers or names: it is an axis of the map")


def _log(values: Any) -> bool:
    """Whether an axis is logarithmic. That of names is not: they are numbers from 0."""
    return bool((np.asarray(values) > 0).all())


def _edges(values: Any) -> dict[Any, tuple[float, float, float]]:
    """The cell of each value, halfway (on the axis' scale) to its neighbours, and the cell's middle."""
    known, log = np.unique(values), _log(values)
    at = np.log(known) if log else known.astype(float)
    steps = np.diff(at) if len(at) > 1 else np.array([1.0])
    cuts = np.concatenate([[at[0] - steps[0] / 2], (at[1:] + at[:-1]) / 2, [at[-1] + steps[-1] / 2]])
    cuts = np.exp(cuts) if log else cuts
    middle = np.sqrt(cuts[:-1] * cuts[1:]) if log else (cuts[:-1] + cuts[1:]) / 2
    return dict(zip(known, zip(cuts[:-1], cuts[1:], middle, strict=True), strict=True))


def _colours(values: pd.Series, given: Sequence[float] | None) -> tuple[Callable[[Any], Any], dict[str, Any]]:
    """A function from a cell's value to its colour, and the legend {label: colour}."""
    if values.dtype.kind not in "iuf":
        here = list(pd.unique(values.dropna()))
        known = list(values.cat.categories) if isinstance(values.dtype, pd.CategoricalDtype) else here
        few = len(known) <= len(COLOURS)
        shades = COLOURS if few else mpl.colormaps["turbo"](np.linspace(0.05, 0.95, len(known)))
        table = {name: mpl.colors.to_rgb(c) for name, c in zip(known, shades, strict=False) if name in here}
        legend = dict(zip(texts_of(table), table.values(), strict=True))
        return (lambda name: table.get(name, (1.0, 1.0, 1.0))), legend
    finite = values[np.isfinite(values)].astype(float)
    if given is not None:
        cuts = np.asarray(given, np.float64)
        if len(cuts) < 2 or not (np.diff(cuts) > 0).all():
            raise ValueError(f"cuts = {list(given)} do not rise: give at least two numbers in rising order")
        if not finite.empty and (finite.min() < cuts[0] or finite.max() > cuts[-1]):
            outside = f"values from {finite.min():g} to {finite.max():g}"
            raise ValueError(f"cuts = {list(given)} leave out {outside}: widen them")
    elif finite.empty or finite.min() == finite.max():
        low, high = (0.0, 1.0) if finite.empty else (finite.min() - 0.5, finite.max() + 0.5)
        cuts = np.linspace(low, high, NUM_LEVELS + 1)
    else:
        cuts = (np.geomspace if finite.min() > 0 else np.linspace)(finite.min(), finite.max(), NUM_LEVELS + 1)
    shades = [mpl.colors.to_rgb(c) for c in mpl.colormaps["viridis"](np.linspace(0.05, 1, len(cuts) - 1))]

    def colour(v):
        return (1.0, 1.0, 1.0) if not np.isfinite(v) else shades[int(np.searchsorted(cuts[1:-1], v))]

    digits = next(
        (n for n in range(2 if given is None else 6, 6) if len({compact(x, n) for x in cuts}) == len(cuts)), 6
    )
    ends = texts_of(cuts, partial(compact, digits=digits))
    labels = [minus(f"{a} to {b}") for a, b in itertools.pairwise(ends)]
    return colour, dict(zip(labels, shades, strict=True))


def _dark(colour: Any) -> bool:
    return float(np.dot(colour, (0.299, 0.587, 0.114))) < 0.5
