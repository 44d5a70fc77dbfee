"""Names, numbers and values of a report as text."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandits.formatting import compact, format_value, minus
from jaxbandits.reports import layout
from jaxbandits.selection import BESIDE

MAX_LETTERS = 60  # of a value


def key_name(key: str) -> str:
    """A key of the grid in words."""
    return layout.plain_text(layout.key_words(key))


def number_words(x: float | np.number[Any]) -> str:
    """Four significant digits; a dash for what is not there."""
    x = float(x)
    if math.isnan(x):
        return "–"
    return minus(compact(x, None if x.is_integer() and abs(x) < 1e6 else 4))


def key_number(x: float | np.number[Any]) -> str:
    """A number of a key, which is not rounded to fewer digits than tell its values apart."""
    x = float(x)
    if math.isnan(x):
        return "–"
    return minus(f"{x:,.0f}" if x.is_integer() and abs(x) < 1e15 else compact(x))


def value_words(ds: xr.Dataset, key: str, place: int) -> str:
    """A value of the grid; of a point, all its keys."""
    if key == "point" and riders(ds):
        return cut(", ".join(f"{name} = {format_value(ds[name].values[place])}" for name in riders(ds)))
    x = ds[key].values[place]
    return key_number(x) if isinstance(x, np.integer | np.floating) else cut(format_value(x))


def riders(ds: xr.Dataset) -> list[str]:
    """The keys of a list of settings."""
    return [str(name) for name, c in ds.coords.items() if c.dims == ("point",) and name not in ("point", *BESIDE)]


def cut(words: str) -> str:
    """A text of at most `MAX_LETTERS` letters."""
    return words if len(words) <= MAX_LETTERS else words[: MAX_LETTERS - 1] + "…"


def span(ds: xr.Dataset, key: str) -> str:
    """The values of a key: all of a few, otherwise the ends and how many."""
    size = ds.sizes[key]
    values = [value_words(ds, key, i) for i in range(size)]
    if size <= 4 and key != "point":
        return ", ".join(values)
    if ds[key].dtype.kind in "iuf" and key != "point":
        ends = ds[key].values
        return f"{key_number(ends.min())} to {key_number(ends.max())}, {size} values"
    return f"{size} values"


def listing(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
