"""Curves of any tidy table, and what an audit's test achieves beside what the claim allows."""

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from annotated_doc import Doc

from jaxbandits.auditing.audit import Audit
from jaxbandits.auditing.confidence_bounds import claimed_curve
from jaxbandits.formatting import compact
from jaxbandits.reports import layout
from jaxbandits.reports.drawing import Axes, Caption, Columns, Dotted, Drawn, File, Width, done, drawn, styles_of
from jaxbandits.reports.layout import COLOURS, Plot
from jaxbandits.validation import choice


@drawn
def lines(
    frame: pd.DataFrame, x: str, y: str, *, line: Annotated[str, Doc("The column that tells the lines apart.")],
    log: Annotated[Literal["x", "y", "both", "none"], Doc("Which axes are logarithmic.")] = "none",
    dotted: Dotted = (), names: Columns = None,
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
    styles = styles_of(labels, dotted)
    (axes,) = layout.panels(1, width, ax)
    for label in labels:
        part = frame[frame[line] == label]
        marked = "markers" in part and part["markers"].any()
        axes.plot(part[x], part[y], label=label, **styles[label] | {"linestyle" if marked else "marker": ""})
    layout.axis(axes.xaxis, frame[x], log in ("x", "both"))
    layout.axis(axes.yaxis, frame[y], log in ("y", "both"))
    layout.name_axes([axes], names.get(x, layout.key_words(x)), names.get(y, layout.key_words(y)))
    return done(frame, axes, labels, "", caption, ax, path)


@drawn
def trade_off(
    audit: Annotated[Audit, Doc("What `jb.audit` returned.")], *,
    caption: Caption = "", width: Width = None, ax: Axes = None, path: File = None,
) -> Plot:  # fmt: skip
    """False negatives against false positives of an audit's test, beside the curve that its claim allows.

    A claim is refuted where the upper bounds come below its curve.

    Returns
    -------
    Plot
        Data: `false_positive`, `false_negative`, their upper confidence bounds `false_positive_high` and
        `false_negative_high`, and `claimed`, the least false negatives that the claim allows at `false_positive`.

    >>> import jaxbandits as jb
    >>> report = jb.audit(jb.algorithms.ldp_ucb(num_arms=2, horizon=100, epsilon=1.0), runs=2000)
    >>> list(trade_off(report).data)[:2]
    ['false_positive', 'false_negative']
    """
    epsilon, delta = audit.claimed[0], audit.delta
    curve = audit.curve
    frame = pd.DataFrame(curve._asdict()).assign(claimed=claimed_curve(epsilon, delta, curve.false_positive))
    frame = frame.sort_values(["false_positive", "false_negative"], ignore_index=True)
    alpha = np.linspace(0, 1, 401)
    claim = rf"claimed: $\varepsilon$ = {compact(epsilon, 4)}, $\delta$ = {compact(delta)}"
    (axes,) = layout.panels(1, width, ax)
    axes.plot([0, 1], [1, 0], color="0.6", linewidth=0.8, label="guessing")
    axes.plot(alpha, claimed_curve(epsilon, delta, alpha), color=COLOURS[1], linestyle=(0, (5, 1.5)), label=claim)
    axes.plot(frame["false_positive"], frame["false_negative"], color=COLOURS[0], label="audited test")
    axes.plot(frame["false_positive_high"], frame["false_negative_high"], color=COLOURS[0], linewidth=0.5, alpha=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        layout.axis(axis, np.array([0.0, 1.0]), False)
    axes.set_title(rf"{audit.algorithm}: audited $\varepsilon$ at least {compact(audit.epsilon_lower, 3)}")
    layout.name_axes([axes], "false positives", "false negatives")
    counted = f"{audit.runs:,} runs; thin: upper {audit.confidence:.6g} bounds, point by point"
    return done(frame, axes, ["audited test", claim, "guessing"], counted, caption, ax, path)
