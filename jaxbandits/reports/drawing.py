"""What the figures of a sweep share: which keys they show, how their lines look, and what their axes say."""

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

import numpy as np
import pandas as pd
import xarray as xr
from annotated_doc import Doc

from jaxbandits import intervals, selection, spending
from jaxbandits.declared import Kind
from jaxbandits.formatting import compact, minus
from jaxbandits.reports import layout
from jaxbandits.reports.layout import COLOURS, Plot
from jaxbandits.validation import choice, declare

P = ParamSpec("P")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKERS = "osD^vPX*<>"
GREY: dict[str, Any] = {"color": "0.55", "linewidth": 0.8, "zorder": 1}  # of a bound or an order
CENTRE = {"interval": "mean and 95% interval", "quantile": "median and 5% to 95% band"}

# ---- arguments that figures share

Select = Annotated[
    Mapping[str, Any] | None,
    Kind("dict"),
    Doc("""`{key: value or list}` (also `algorithm`), so that at most one key has several values, six at most."""),
]
Bands = Annotated[
    Literal["interval", "quantile"],
    Doc("""\"interval": mean and 95% interval; "quantile": median and the band from 5% to 95%."""),
]
Dotted = Annotated[
    Mapping[str, str] | Iterable[str],
    Kind("dict or sequence of str"),
    Doc("""`{label: partner}`: drawn dotted in the partner's colour. A sequence of labels takes the other label that
        each one starts with."""),
]
Names = Annotated[Mapping[str, str] | None, Kind("dict"), Doc("`{key: label of its axis}`.")]
ColumnNames = Annotated[Names, Doc("`{column: label of its axis}`.")]
Titles = Annotated[Names, Doc("`{key: its name in the panels' titles}`.")]
Caption = Annotated[str | Literal[False], Kind("str or False"), Doc("Text added below; False: no caption at all.")]
FigureWidth = Annotated[float | None, Doc("Of the figure, in inches.")]
Axes = Annotated[
    Any,
    Kind("matplotlib axes or sequence of axes"),
    Doc("Draw there instead of into a figure of its own: one axes, or one for each panel."),
]
File = Annotated[str | Path | None, Doc("Also write the figure there (.png, .pdf, .svg).")]
Drawn = Annotated[Plot, Doc("The figure and the tidy table of what it shows.")]


def with_style(function: Callable[P, Plot]) -> Callable[P, Plot]:
    """A function that draws under our settings of matplotlib, whose docstring gets what it shares with others."""

    @functools.wraps(function)
    def draw(*args: P.args, **given: P.kwargs) -> Plot:
        with layout.style(), np.errstate(all="warn", under="ignore"):
            return function(*args, **given)

    return declare(check=False, raises="For what cannot be drawn: the message says why.")(draw)


def apply_selection(
    ds: xr.Dataset, select: Mapping[str, Any] | None, allowed: int, key: str | None = None
) -> tuple[xr.Dataset, str | None]:
    """`ds` at the selection without keys of one value, which an attribute says, and the key that still has several."""
    axes = ("algorithm", "seed", "t")  # these stay dimensions, even of size one
    chosen = {key: [x] if key in axes and np.ndim(x) == 0 else x for key, x in (select or {}).items()}
    ds = selection.sort_plays(selection.select_values(ds, chosen))
    dims = [d for d in selection.grid_dims(ds) if d != key]
    left = [d for d in dims if ds.sizes[d] > 1]
    if len(left) > allowed:
        held = "; ".join(f"{d}: {', '.join(map(value_text, ds[d].values))}" for d in left)
        remedy = f"select=dict({left[-1]}={value_text(ds[left[-1]].values[0])})"
        raise ValueError(f"select leaves {len(left)} keys with several values ({held}): fix some, such as {remedy}")
    single = [d for d in dims if d not in (*left, "horizon", "point")]
    ds = ds.assign_attrs(single="; ".join(f"{layout.key_words(d)} = {value_text(ds[d].values[0])}" for d in single))
    for d in dims:
        ds = ds if d in left else ds.isel({d: 0}, drop=d != "horizon")
    return ds, left[0] if left else None


def styles_of(labels: list[str], dotted: Mapping[str, str] | Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """Label -> colour, dashes and marker of its line; of a dotted one those of its partner, dotted.

    ValueError for a dotted label without a partner.
    """
    mains = [x for x in labels if x not in dotted]
    longest = lambda x: max((m for m in mains if x.startswith(m)), key=len, default=None)
    partners: Mapping[str, Any] = dotted if isinstance(dotted, Mapping) else {x: longest(x) for x in dotted}
    kinds = {"color": COLOURS, "linestyle": DASHES, "marker": MARKERS}
    styles = {x: {name: values[i % len(values)] for name, values in kinds.items()} for i, x in enumerate(mains)}
    for label, main in partners.items():
        choice("a label of dotted", label, labels)
        if main not in mains:
            raise ValueError(f"dotted: {label!r} has no partner {main!r}: give {{{label!r}: another of {labels}}}")
        styles[label] = styles[main] | {"linestyle": ":", "markerfacecolor": "white"}
    return styles


def axis_words(ds: xr.Dataset, after: str = "") -> str:
    """What the vertical axis shows, in words and with its unit where that is known."""
    regret = ds["regret"].attrs
    words = str(regret.get("long_name", "cumulative regret"))
    head, _, rest = words.partition(" against ")
    words = f"{head}{after}" + (f" against {rest}" if rest else "")
    return words + unit_words(ds)


def unit_words(ds: xr.Dataset) -> str:
    """The unit of regret in brackets, where it is known."""
    return f" (in\u00a0{selection.unit_of(ds)})" if ds["regret"].attrs.get("units") == "reward" else ""


def over_seeds(ds: xr.Dataset, bands: str) -> str:
    """What the bands are, and what is spent where it is not what was asked for: for the caption."""
    seeds, said = ds.sizes["seed"], spending.sentence(ds)
    few = " (few: it may miss more often)" if bands == "interval" and seeds < intervals.LEAST_SEEDS else ""
    bands = f"{CENTRE[bands]} over {seeds:,} seeds{few}" if seeds > 1 else "one seed, hence no interval"
    return "; ".join(filter(None, (bands, ds.attrs.get("single"), said)))


def value_text(value: object) -> str:
    """A value of a grid key, for a title or a message."""
    return minus(compact(float(value))) if isinstance(value, int | float | np.number) else str(value)


def errorbar(axes: Any, x: Any, line: pd.DataFrame, label: str, **look: Any) -> None:
    """Draw the means of a line with their intervals."""
    error = np.nan_to_num([line["centre"] - line["low"], line["high"] - line["centre"]])
    axes.errorbar(x, line["centre"], error, label=label, elinewidth=0.8, capsize=1.5, **look)
