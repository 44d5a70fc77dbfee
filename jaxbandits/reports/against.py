"""Final regret against a key of the grid."""

import itertools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import formatting, selection, spending, statistics
from jaxbandits.reports import layout
from jaxbandits.reports.drawing import (
    DASHES,
    GREY,
    Axes,
    Caption,
    Dotted,
    Drawn,
    File,
    Names,
    Select,
    Width,
    documented,
    done,
    measured,
    over_seeds,
    partners_of,
    reduced,
    styles_of,
)  # fmt: skip
from jaxbandits.selection import Swept
from jaxbandits.validation import choice, shown

MAX_TICKS = 8  # fewer grid values than this are ticks themselves


@documented
def against(
    ds: Swept, key: str, *, select: Select = None,
    dotted: Dotted = (), reference: Mapping[str, Callable[[Any], Any]] | None = None,
    names: Names = None,
    caption: Caption = "", width: Width = None, ax: Axes = None, path: File = None,
) -> Drawn:  # fmt: skip
    """Final regret (mean, 95% interval) against a numeric grid key, on logarithmic axes where everything is positive.

    An algorithm that does not depend on the key is a horizontal line; an infinite value stands apart at the right.

    Parameters
    ----------
    key
        A numeric key of the grid, or `"epsilon_spent"` or `"delta_spent"`: what every algorithm truly spends at the
        values of the one key that is left.
    select
        `{key: value}` for the other keys.
    reference : dict
        `{name: function of the key's values [V]}`: thin grey lines, such as the order of a bound.

    >>> import xarray as xr
    >>> dims, values = ("algorithm", "epsilon", "seed", "t"), np.array([[[[4.0], [6.0]], [[1.0], [3.0]]]])
    >>> ds = xr.Dataset({"regret": (dims, values)}, {"algorithm": ["exp3"], "epsilon": [0.1, 1.0], "t": [10]})
    >>> against(ds, "epsilon").data["centre"].tolist()
    [5.0, 2.0]
    """
    ds = selection.whole(ds, "plot.against")
    keys, axis = selection.grid_dims(ds), key
    if not keys:
        raise ValueError(
            f"key = {shown(key)}: this sweep has no grid; run sweep(..., grid={{{shown(key)}: [...]}}), "
            "or draw plot.regret(ds)"
        )
    spends = key in (spending.EPSILON, spending.DELTA) and key in ds.coords
    if spends:
        several = [k for k in keys if ds.sizes[k] > 1 and k not in (select or {})]
        if len(several) != 1:
            raise ValueError(
                f"key = {key!r} is drawn over the values of one key, and {formatting.listed(several) or 'none'} have "
                "several: fix the others in `select`"
            )
        key = several[0]
    choice("key", key, keys)
    ds, _ = reduced(ds, select, 0, key)
    constant = {a for a, dims in json.loads(ds.attrs.get("constant_along", "{}")).items() if key in dims}
    summary = statistics.summary(ds).rename(columns={"mean": "centre", "ci_low": "low", "ci_high": "high"})
    if spends:
        summary[axis] = np.ravel(spending.along(ds, axis))
    varies = ~summary["algorithm"].isin(constant) if spends else np.full(len(summary), True)
    values = np.unique(summary[axis][varies]) if key in ds.dims else np.array([""])
    if values.dtype.kind not in "iuf" or not np.isfinite(values).any():
        raise ValueError(
            f"key = {axis!r} needs numeric values: keep several in `select`, or draw the key with `regret`"
        )
    frame = summary[["algorithm", axis, "centre", "low", "high"]].sort_values(axis, kind="stable", ignore_index=True)
    labels = [str(a) for a in ds["algorithm"].values]
    styles = styles_of(labels, partners_of(dotted, labels))
    finite = values[np.isfinite(values)].astype(float)
    log_x = bool(finite[0] > 0)
    log_y = bool((frame["centre"] > 0).all())
    steps = 0.12 * (math.log(finite[-1] / finite[0]) if log_x else finite[-1] - finite[0]) if finite.size > 1 else 1.0
    beyond = finite[-1] * math.exp(steps) if log_x else finite[-1] + steps
    beyond = beyond if np.isinf(values).any() else None
    with layout.style():
        figure, (axes,) = layout.panels(1, width, ax)
        for label in labels:
            line, style = frame[frame["algorithm"] == label], styles[label]
            if label in constant:
                _, centre, low, high = line[[axis, "centre", "low", "high"]].iloc[0]
                axes.axhline(centre, label=label, **style | {"marker": ""})
                axes.axhspan(low, high, color=style["color"], alpha=0.15, linewidth=0)
                continue
            apart = np.isinf(line[axis])
            for part in (line[~apart], line[apart]):
                if len(part):
                    x = part[axis].where(np.isfinite(part[axis]), beyond)
                    error = np.nan_to_num([part["centre"] - part["low"], part["high"] - part["centre"]])
                    axes.errorbar(x, part["centre"], error, label=label, elinewidth=0.8, capsize=1.5, **style)
        orders = _orders(reference, axis, finite, log_x)
        layout.axis(axes.yaxis, frame[["centre", "low", "high"]].to_numpy(), log_y, also=[o["centre"] for o in orders])
        layout.axis(axes.xaxis, finite, log_x, ticks=finite if finite.size < MAX_TICKS else None, infinity=beyond)
        for order, dashes in zip(orders, itertools.cycle(DASHES[1:])):
            axes.plot(order[axis], order["centre"], label=order["algorithm"].iloc[0], linestyle=dashes, **GREY)
        frame = pd.concat([frame.assign(kind="algorithm"), *orders])
        words = measured(ds, f" after {_plays(ds)}")
        layout.name_axes([axes], (names or {}).get(axis, layout.key_words(axis)), words)
        order, bands = labels + list(reference or {}), over_seeds(ds, "interval")
        layout.finish(figure, axes, order, bands, caption, ax is not None, {} if spends else spending.legend(ds))
    return done(figure, frame.reset_index(drop=True), path)


def _orders(
    reference: Mapping[str, Callable[[Any], Any]] | None, key: str, finite: Any, log: bool
) -> list[pd.DataFrame]:
    x = (np.geomspace if log else np.linspace)(finite[0], finite[-1], 100)
    frames = []
    for name, order in (reference or {}).items():
        y = np.broadcast_to(np.asarray(order(x), np.float64), x.shape)
        frames.append(pd.DataFrame({"algorithm": name, key: x, "centre": y, "kind": "reference"}))
    return frames


def _plays(ds: xr.Dataset) -> str:
    horizon = ds.coords.get("horizon", ds["t"][-1])
    return "the horizon" if horizon.ndim else f"{int(horizon):,} plays"
