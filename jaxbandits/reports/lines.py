"""Curves of any tidy table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jaxbandits.reports import layout
from jaxbandits.reports.drawing import (
    Axes,
    Caption,
    Dotted,
    Drawn,
    File,
    Names,
    Width,
    documented,
    done,
    partners_of,
    styles_of,
)  # fmt: skip
from jaxbandits.validation import choice

if TYPE_CHECKING:
    import pandas as pd


@documented
def lines(
    frame: pd.DataFrame, x: str, y: str, *, line: str, log: Literal["x", "y", "both", "none"] = "none",
    dotted: Dotted = (), names: Names = None,
    caption: Caption = "", width: Width = None, ax: Axes = None, path: File = None,
) -> Drawn:  # fmt: skip
    """Curves of a tidy table: column `y` against column `x`, with a line for each value of the column `line`.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each point. A column of bools `markers`, where there is one, marks its points instead of joining
        them.
    x, y
        The columns of the axes.
    line
        The column that tells the lines apart.
    log
        Which axes are logarithmic.
    names
        `{column: label of its axis}`.

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
    styles = styles_of(labels, partners_of(dotted, labels))
    with layout.style():
        figure, (axes,) = layout.panels(1, width, ax)
        for label in labels:
            part = frame[frame[line] == label]
            marked = "markers" in part and part["markers"].any()
            axes.plot(part[x], part[y], label=label, **styles[label] | {"linestyle" if marked else "marker": ""})
        layout.axis(axes.xaxis, frame[x], log in ("x", "both"))
        layout.axis(axes.yaxis, frame[y], log in ("y", "both"))
        layout.name_axes([axes], names.get(x, layout.key_words(x)), names.get(y, layout.key_words(y)))
        layout.finish(figure, axes, labels, caption, "", ax is not None)
    return done(figure, frame, path)
