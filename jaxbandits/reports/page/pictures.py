"""The pictures of a report that stand still: heat maps of final regret over two keys of the grid."""

from __future__ import annotations

import base64
import itertools
from typing import TYPE_CHECKING, NamedTuple

from jaxbandits import statistics
from jaxbandits.formatting import compact
from jaxbandits.reports import layout
from jaxbandits.reports.heatmap import heatmap
from jaxbandits.reports.page.words import key_name, listing, value
from jaxbandits.selection import grid_dims

if TYPE_CHECKING:
    import xarray as xr

MAX_MAPS = 3  # pairs of keys that are drawn
MAX_PANELS = max(layout.SHAPES)


class Picture(NamedTuple):
    """A picture as the address of an image, and what it shows."""

    source: str
    words: str


def heatmaps(ds: xr.Dataset) -> list[Picture]:
    """Mean final regret over pairs of keys, a panel for each algorithm, other keys at their first value."""
    keys = [d for d in grid_dims(ds) if ds.sizes[d] > 1 and d != "point"]
    labels = [str(label) for label in ds["algorithm"].values][:MAX_PANELS]
    found = []
    for x, y in itertools.islice(itertools.combinations(keys, 2), MAX_MAPS):
        here = ds.isel({"algorithm": slice(len(labels))} | {d: [0] for d in keys if d not in (x, y)})
        frame = statistics.summary(here)
        for key in (x, y):  # an infinite value has no place on an axis, as a name it has
            if frame[key].dtype.kind == "f" and not frame[key].map(abs).lt(float("inf")).all():
                frame[key] = frame[key].map(compact)
        fixed = [f"{key_name(d)} = {value(ds, d, 0)}" for d in keys if d not in (x, y)]
        words = f"Mean regret at the end over {key_name(x)} and {key_name(y)}, for {listing(labels)}"
        words += f"; {', '.join(fixed)}" if fixed else ""
        words += f"; {len(labels)} of {ds.sizes['algorithm']} algorithms" if ds.sizes["algorithm"] > MAX_PANELS else ""
        names = {key: key_name(key) for key in (x, y)}
        drawn = heatmap(frame, x, y, "mean", panel="algorithm", names=names, caption="mean regret at the end")
        found.append(Picture(_address(layout.render(drawn.figure, "svg")), f"{words}."))
    return found


def _address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
