"""What an audit's test achieves beside what the claim allows: the function behind `jb.plot.trade_off`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.auditing.confidence_bounds import claimed_curve
from jaxbandits.formatting import compact
from jaxbandits.reports import layout
from jaxbandits.reports.drawing import Axes, Caption, File, Width, documented, done
from jaxbandits.reports.layout import COLOURS, Plot

if TYPE_CHECKING:
    from jaxbandits.auditing.audit import Audit


@documented
def trade_off(audit: Audit, *, caption: Caption = "", width: Width = None, ax: Axes = None, path: File = None) -> Plot:
    """False negatives against false positives of an audit's test, beside the curve that its claim allows.

    A claim is refuted where the upper bounds come below its curve.

    Parameters
    ----------
    audit
        What `jb.audit` returned.

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
    import pandas as pd

    epsilon, delta = audit.claimed[0], audit.delta
    curve = audit.curve
    frame = pd.DataFrame(curve._asdict()).assign(claimed=claimed_curve(epsilon, delta, curve.false_positive))
    frame = frame.sort_values(["false_positive", "false_negative"], ignore_index=True)
    alpha = np.linspace(0, 1, 401)
    guess, claim, measured = (
        "guessing",
        rf"claimed: $\varepsilon$ = {compact(epsilon, 4)}, $\delta$ = {compact(delta)}",
        "audited test",
    )
    with layout.style():
        figure, (axes,) = layout.panels(1, width, ax)
        axes.plot([0, 1], [1, 0], color="0.6", linewidth=0.8, label=guess)
        axes.plot(alpha, claimed_curve(epsilon, delta, alpha), color=COLOURS[1], linestyle=(0, (5, 1.5)), label=claim)
        axes.plot(frame["false_positive"], frame["false_negative"], color=COLOURS[0], label=measured)
        axes.plot(
            frame["false_positive_high"], frame["false_negative_high"], color=COLOURS[0], linewidth=0.5, alpha=0.6
        )
        for axis in (axes.xaxis, axes.yaxis):
            layout.axis(axis, np.array([0.0, 1.0]), False)
        axes.set_title(rf"{audit.algorithm}: audited $\varepsilon$ at least {compact(audit.epsilon_lower, 3)}")
        layout.name_axes([axes], "false positives", "false negatives")
        counted = f"{audit.runs:,} runs; thin: upper {audit.confidence:.6g} bounds, point by point"
        layout.finish(figure, axes, [measured, claim, guess], counted, caption, ax is not None)
    return done(figure, frame, path)
