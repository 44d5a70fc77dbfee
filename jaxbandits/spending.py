"""What the algorithms of a sweep spend of a unit's privacy, as tables and figures say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.formatting import format_number, format_value
from jaxbandits.selection import BESIDE, SPENT, grid_dims

if TYPE_CHECKING:
    import xarray as xr

ASKED, EPSILON, DELTA = COORDINATES = SPENT  # coordinates of a sweep's Dataset
TOLERANCE = 0.02  # a spend within this share of what was asked for is that
MOST = 4  # pairs of numbers in a sentence


def has_spending(ds: xr.Dataset) -> bool:
    """Whether a sweep says what it spends: stores of old releases do not."""
    return all(name in ds.coords for name in COORDINATES)


def coordinate_array(ds: xr.Dataset, name: str) -> np.ndarray[Any, Any]:
    """A coordinate of `COORDINATES` as an array [algorithm, grid...]."""
    like = ds["regret"].isel(seed=0, t=0, drop=True).transpose("algorithm", *grid_dims(ds))
    values = ds[name].drop_vars(BESIDE, errors="ignore").broadcast_like(like)
    return np.asarray(values.transpose(*like.dims).values)


def spends_differently(asked: np.ndarray[Any, Any], spent: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where what is spent is not what was asked for."""
    with np.errstate(invalid="ignore"):
        return ~np.isnan(asked) & (asked != spent) & ~(np.abs(spent - asked) <= TOLERANCE * asked)


def pairs(ds: xr.Dataset) -> dict[str, list[tuple[float, float]]]:
    """{label: (asked, spent) where they differ, each pair once}, for the algorithms that have such points."""
    if not has_spending(ds):
        return {}
    asked, spent = coordinate_array(ds, ASKED), coordinate_array(ds, EPSILON)
    found = {}
    for label, a, s in zip(ds["algorithm"].values, asked, spent, strict=True):
        differ = spends_differently(a, s)
        if differ.any():
            found[str(label)] = list(dict.fromkeys(zip(a[differ].tolist(), s[differ].tolist(), strict=True)))
    return found


def sentence(ds: xr.Dataset) -> str:
    """What is spent where it is not what was asked for; empty where that is so nowhere."""
    parts = []
    for label, numbers in pairs(ds).items():
        shown = ", ".join(f"{format_number(spent)} (asked {format_number(asked)})" for asked, spent in numbers[:MOST])
        parts.append(f"{format_value(label)} {shown}{' ...' if len(numbers) > MOST else ''}")
    return f"ε spent: {'; '.join(parts)}" if parts else ""


def legend(ds: xr.Dataset) -> dict[str, str]:
    """{label: its text in a legend}, for the algorithms that spend something else than what they were asked for."""
    found = {}
    for label, numbers in pairs(ds).items():
        spent = {s for _, s in numbers}
        more = {s > a for a, s in numbers}
        how = f"ε = {format_number(spent.pop())}" if len(spent) == 1 else "another ε" if len(more) == 2 else None
        found[label] = f"{label} (spends {how or ('more' if more == {True} else 'less')})"
    return found
