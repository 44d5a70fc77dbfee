"""Parts of a sweep's Dataset: its grid, its points as rows, the values asked for, and the regret at the end."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import numpy as np
from annotated_doc import Doc

from jaxbandits.declared import Kind
from jaxbandits.formatting import join_values, nearest, show

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    Selected = TypeVar("Selected", xr.Dataset, xr.DataArray)


# What the public functions over a sweep say of it
Swept: TypeAlias = Annotated["xr.Dataset", Kind("xarray.Dataset"), Doc("What `sweep` or `load` returned.")]
# Coordinates along `algorithm` and the grid: what is asked for and spent (`jaxbandits.spending`).
SPENT = ("epsilon_asked", "epsilon_spent", "delta_spent")
# One more of them: what was computed, as three digests (world, cell and label) separated by spaces. It fixes regret and
# holds no seeds (`sweeps.identity`). A digest that begins with "-" says nothing to another process.
IDENTITY = "identity"
PICTURED = ("centre", "low", "high")  # columns of the data of a picture, beside the keys
TEXTS = {str, np.str_}
ANSWERS = "right answers"
UNITS = {"classification": ANSWERS, "loss_table": "losses"}  # of regret on a user's tables, elsewhere rewards
BESIDE = (*SPENT, IDENTITY)  # these are no keys
TAKERS = "algorithms"  # attribute of a tied key's coordinate, where only some algorithms take it: their labels, as JSON


def grid_dims(ds: xr.Dataset) -> list[str]:
    """The grid's dimensions, in order: all of `ds.regret`'s but `algorithm`, `seed` and `t`.

    >>> import xarray as xr
    >>> ds = xr.Dataset({"regret": (("algorithm", "epsilon", "seed", "t"), np.ones((1, 2, 3, 4)))})
    >>> grid_dims(ds)
    ['epsilon']
    """
    return [str(d) for d in ds["regret"].dims if d not in ("algorithm", "seed", "t")]


def whole(ds: xr.Dataset, function: str) -> xr.Dataset:
    """The Dataset with all dimensions of a sweep: one that `sel` or `isel` left as a scalar has one value again.

    Errors begin with the name of the function that was called. TypeError for anything but a sweep's Dataset. ValueError
    where a dimension is gone for good, a seed or a label stands twice, or an algorithm lacks seeds that others have, as
    after `xarray.concat` of sweeps with other seeds.

    >>> import xarray as xr
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), np.ones((2, 3, 4)))}, {"algorithm": ["a", "b"]})
    >>> whole(ds.sel(algorithm="b"), "summary").regret.dims
    ('algorithm', 'seed', 't')
    """
    import xarray as xr

    if not isinstance(ds, xr.Dataset) or "regret" not in ds.data_vars:
        what = f"a DataArray ({ds.name})" if isinstance(ds, xr.DataArray) else show(ds)
        what = "a Dataset without regret" if isinstance(ds, xr.Dataset) else what
        raise TypeError(f"{function}: ds is {what}; give the Dataset that jb.sweep or jb.load returns")
    regret = ds["regret"]
    for name in ("algorithm", "seed", "t"):
        if name not in regret.dims and (name not in ds.coords or ds[name].ndim):
            remedy = (
                "select with ds.sel or ds.isel without drop=True, do not average first, rename no dimension but keys"
            )
            raise ValueError(f"{function}: ds has no {name!r} any more: {remedy}")
    scalars = [str(name) for name, c in ds.coords.items() if c.ndim == 0 and name not in ("arm", "arm_name", *BESIDE)]
    if "point" in scalars:  # the keys of a point ride along it
        riders = [name for name in scalars if name not in ("algorithm", "seed", "t", "horizon", "point")]
        ds = ds.drop_vars(riders).expand_dims("point").assign_coords({n: ("point", [ds[n].values[()]]) for n in riders})
        scalars = [name for name in scalars if name not in ("point", *riders)]
    if "t" in scalars:  # the other variables have no plays
        there = [name for name in ("regret", "best_reward") if name in ds]
        t = [ds["t"].values[()]]
        ds = ds.drop_vars("t").assign({name: ds[name].drop_vars("t").expand_dims(t=t) for name in there})
    if scalars := [name for name in scalars if name != "t"]:
        ds = ds.expand_dims(scalars)
    labels = ds["algorithm"].values.tolist() if "algorithm" in ds.coords else []
    if not all(isinstance(label, str) for label in labels):  # renamed to numbers, say: labels are texts
        ds = ds.assign_coords(algorithm=list(map(str, labels)))
    ds = sort_plays(ds)
    keys = [d for d in ds["regret"].dims if d not in ("algorithm", "seed", "t")]
    ds = ds.assign(regret=ds["regret"].transpose("algorithm", *keys, "seed", "t"))
    _each_seed_once(ds, function)
    return _with_all_claims(_with_present_names(ds))


def sort_plays(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset with its plays in rising order: the last regret is that of the last play."""
    t = ds["t"].values
    return ds.sortby("t") if t.ndim and (t[1:] < t[:-1]).any() else ds


def _each_seed_once(ds: xr.Dataset, function: str) -> None:
    """ValueError where runs were joined so that seeds are counted twice, or are missing on one side."""
    for dim in ("seed", "algorithm"):
        values, counts = np.unique(ds[dim].values, return_counts=True) if dim in ds.coords else ((), np.ones(1))
        if counts.max(initial=1) > 1:
            twice = f"{dim} {values[counts.argmax()]} stands {counts.max()} times in ds"
            join, drop = f"jb.concat([ds, ...], dim={dim!r})", f"ds.drop_duplicates({dim!r})"
            raise ValueError(f"{function}: {twice}: join sweeps with {join}, or leave one out with {drop}")
    # A joined Dataset has no number at any play where a sweep had no such seed; a run has one at its first checkpoint.
    regret = ds["regret"]
    lacking = np.isnan(regret.isel(t=0).values) & np.isnan(regret.isel(t=-1).values)
    if lacking.any() and "pulls" in ds and {*ds["pulls"].dims} == {*regret.dims[:-1], "arm"}:
        lacking &= np.isnan(ds["pulls"].transpose(*regret.dims[:-1], "arm").values).all(-1)
    some = lacking.any(-1) & ~lacking.all(-1)
    if some.any():
        at = tuple(np.argwhere(some)[0])
        seeds = ds["seed"].values[lacking[at]]
        shown_seeds = f"{join_values(seeds[:3])}{', ...' if len(seeds) > 3 else ''}"
        lacks = f"{str(ds['algorithm'].values[at[0]])!r} has no run of {len(seeds)} of {lacking.shape[-1]} seeds"
        join = "join sweeps with jb.concat([ds, ...], dim='algorithm'), which keeps the seeds that all of them have"
        raise ValueError(f"{function}: {lacks} ({shown_seeds}): {join}, or select those with ds.sel(seed=[...])")


def label_digest(label: str) -> str:
    """The third word of an identity: by which label an algorithm was run."""
    return hashlib.sha256(label.encode(errors="replace")).hexdigest()[:16]


def _with_present_names(ds: xr.Dataset) -> xr.Dataset:
    """The attributes that name algorithms and axes, in the names that these have now: a user may have renamed them."""
    regret, told = ds["regret"], ds.coords.get(IDENTITY)
    if told is not None and "algorithm" not in told.dims and regret.sizes["algorithm"] == 1:
        told = told.expand_dims("algorithm")
    points = regret.dims[:-2]
    if told is None or not {"algorithm"} <= {*told.dims} <= {*points} or not {*map(type, np.ravel(told))} <= TEXTS:
        return _with_idle_axes(ds)
    told = told.transpose(*(dim for dim in points if dim in told.dims))
    idle, claims, config = (json.loads(ds.attrs.get(key, "{}")) for key in ("constant_along", "guarantees", "config"))
    ran = {label_digest(label): label for label in (*idle, *config.get("algorithms", ()))}
    rows = dict(zip(map(str, ds["algorithm"].values), told.values.astype(object), strict=True))
    names = {label: ran.get(np.ravel(row)[0].split()[-1], label) for label, row in rows.items()}  # as they were run

    def is_idle(label: str, dim: object) -> bool:
        if dim not in told.dims or regret.sizes[dim] == 1:
            return dim in idle.get(names[label], ())
        row = rows[label]
        return bool((row == row.take([0], told.dims.index(dim) - 1)).all())

    now = {"constant_along": idle | {label: [str(dim) for dim in points[1:] if is_idle(label, dim)] for label in names}}
    if any(label != was for label, was in names.items()):
        plays = config.get("algorithms", {})
        now["guarantees"], plays = ({x: old[was] for x, was in names.items() if was in old} for old in (claims, plays))
        new = {was: label for label, was in names.items()}
        renamed = config | {"algorithms": plays, "renamed": {was: label for was, label in new.items() if was != label}}
        if grid := config.get("grid"):
            renamed["grid"] = {relabel_key(key, new): x for key, x in grid.items()}
        if points := config.get("points"):
            renamed["points"] = [{relabel_key(key, new): x for key, x in point.items()} for point in points]
        now["config"] = renamed
        if "decisions" in ds.attrs:
            now["decisions"] = json.loads(ds.attrs["decisions"])
            for row in now["decisions"]["rows"]:
                row |= {side: new.get(row[side], row[side]) for side in ("a", "b", "lower")}
        for name, labels in {name: takers(c) for name, c in ds.coords.items() if TAKERS in c.attrs}.items():
            taking = [label for label, was in names.items() if was in (labels or ())]
            ds = ds.assign_coords({name: ds[name].assign_attrs({TAKERS: json.dumps(taking)})})
        words = [f"{x[:-16]}{label_digest(label)}" for label, row in rows.items() for x in np.ravel(row)]
        ds = ds.assign_coords({IDENTITY: (told.dims, np.reshape(words, told.shape))})
    kept = {*ds.attrs, "constant_along"}  # which `xarray.concat` may have dropped
    return ds.assign_attrs({key: json.dumps(x, sort_keys=True) for key, x in now.items() if key in kept})


def relabel_key(keys: str, new: Mapping[str, str]) -> str:
    """A key of the grid, or tied ones, that address labels by the names that these have now."""

    def one(key: str) -> str:
        was = max((label for label in new if key.startswith(f"{label}.")), key=len, default="")
        return new[was] + key[len(was) :] if was else key

    return "+".join(map(one, keys.split("+")))


def _with_idle_axes(ds: xr.Dataset) -> xr.Dataset:
    """`constant_along` where names were changed and no identity says so, as of older releases: by regret itself."""
    if "constant_along" not in ds.attrs:
        return ds
    idle, regret = json.loads(ds.attrs["constant_along"]), ds["regret"]
    axes = [dim for dim in regret.dims[1:-2] if dim != "horizon" and ds.sizes[dim] > 1]
    for label, rows in zip(map(str, ds["algorithm"].values), regret.isel(t=-1), strict=True):
        if not {*idle.get(label, (None,))} <= {*ds.dims}:
            idle[label] = [str(dim) for dim in axes if bool((rows == rows.isel({dim: 0}, drop=True)).all())]
    return ds.assign_attrs(constant_along=json.dumps(idle, sort_keys=True))


def _with_all_claims(ds: xr.Dataset) -> xr.Dataset:
    """With a claim of every algorithm that spends: `xarray.concat` keeps the attributes of its first part alone."""
    if not all(name in ds.coords for name in SPENT):
        return ds
    asked, spent = (ds[name].drop_vars(BESIDE, errors="ignore") for name in SPENT[:2])
    private = (asked.notnull() | np.isfinite(spent)).broadcast_like(ds["regret"].isel(seed=0, t=0, drop=True))
    private = private.any([dim for dim in private.dims if dim != "algorithm"])
    claims = json.loads(ds.attrs.get("guarantees", "{}"))
    spend = [label for label in map(str, ds["algorithm"].values[private.values]) if label not in claims]
    claims |= {label: {"model": "not recorded", "unit": "unit"} for label in spend}
    return ds.assign_attrs(guarantees=json.dumps(claims)) if spend else ds


def select_values(array: Selected, selection: Mapping[str, Any] | None, name: str = "select") -> Selected:
    """`array` at the named values: a scalar drops its dimension, a list keeps it; numbers match within rounding.

    selection: {dimension: value or list of values}. ValueError, which begins with `name`, for an unknown dimension or
    value.

    >>> import xarray as xr
    >>> ds = xr.Dataset({"regret": ("epsilon", [5.0, 3.0])}, coords={"epsilon": [0.1, 1.0]})
    >>> float(select_values(ds, {"epsilon": 1.0}).regret)
    3.0
    """
    for dim, wanted in (selection or {}).items():
        if dim not in array.dims:
            raise ValueError(f"{name}: no key {dim!r}{nearest(dim, array.dims)}; choose from {join_values(array.dims)}")
        known = array[dim].values
        many = isinstance(wanted, list | tuple | np.ndarray)
        where = []
        for value in wanted if many else [wanted]:
            hits = np.flatnonzero(known == value)
            if not hits.size and known.dtype.kind == "U":  # a key of other things than numbers holds their texts
                hits = np.flatnonzero(known == str(value))
            elif not hits.size and known.dtype.kind in "iuf" and isinstance(value, int | float | np.number):
                near = known.astype(np.float64)
                hits = np.flatnonzero(np.isclose(near, float(value), rtol=1e-9, atol=0.0))
                hits = hits[np.argsort(np.abs(near[hits] - float(value)), kind="stable")]
            if not hits.size:
                holds = f"it holds {join_values(known)}"
                raise ValueError(f"{name}: {dim} has no {value!r}{nearest(value, known)}; {holds}")
            where.append(int(hits[0]))
        array = array.isel({dim: where}) if many else array.isel({dim: where[0]}, drop=dim != "horizon")
    return array


def final_regret(ds: xr.Dataset, t: int | None = None) -> xr.DataArray:
    """Cumulative regret [algorithm, grid..., seed] at play `t`, or at the end of each horizon.

    ValueError where `t` is no checkpoint, or lies beyond one of several horizons.

    >>> import xarray as xr
    >>> ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), [[[1.0, 5.0]]])}, {"algorithm": ["a"], "t": [1, 10]})
    >>> float(final_regret(ds).squeeze()), float(final_regret(ds, t=1).squeeze())
    (5.0, 1.0)
    """
    import xarray as xr

    regret = ds["regret"].transpose("algorithm", *grid_dims(ds), "seed", "t")
    times = ds["t"].values
    horizon = ds.coords.get("horizon")
    if t is not None:
        if horizon is not None and t > horizon.values.min():
            raise ValueError(f"t = {t} lies beyond horizon {horizon.values.min()}: select the longer horizons first")
        if t not in times:
            close = times[np.argmin(np.abs(times - t))]
            raise ValueError(f"t = {t} is no checkpoint: the nearest is {close} (the sweep's `checkpoints` sets them)")
        return regret.isel(t=int(np.flatnonzero(times == t)[0]), drop=True)
    if horizon is None:
        return regret.isel(t=-1, drop=True)
    last = np.searchsorted(times, horizon.values, side="right") - 1
    return regret.isel(t=xr.DataArray(last, dims=horizon.dims)).drop_vars("t").transpose(*regret.dims[:-1])


def unit_of(ds: xr.Dataset) -> str:
    """What regret counts, in the plural."""
    name = str((json.loads(ds.attrs.get("config", "{}")).get("environment") or {}).get("name"))
    return "rewards" if name == "classification" and "best_reward" not in ds else UNITS.get(name, "rewards")


def right_answers(ds: xr.Dataset, t: int | None = None) -> xr.DataArray:
    """The share of right answers of labelled rows, in the shape of `final_regret`."""
    return final_regret(ds.assign(regret=(-ds["regret"] + ds["best_reward"]) / ds["t"]), t)


def spread_places(size: int, most: int) -> np.ndarray[Any, Any]:
    """Places of at most so many of some values, evenly apart, the first and the last among them.

    >>> spread_places(9, 4).tolist(), spread_places(2, 4).tolist()
    ([0, 3, 5, 8], [0, 1])
    """
    return np.unique(np.linspace(0, size - 1, min(most, size)).round().astype(int))


def takers(coordinate: xr.DataArray) -> list[str] | None:
    """The algorithms that take a tied key; None where all do."""
    return json.loads(coordinate.attrs[TAKERS]) if TAKERS in coordinate.attrs else None


def tidy(like: xr.DataArray, columns: Mapping[Any, Any]) -> pd.DataFrame:
    """One row for each point of the DataArray `like`: its coordinates, then `columns` (scalars, or arrays of its
    shape).

    A tied key is left empty where the algorithm of the row does not take it. A key that is called as one of `columns`
    has a _ behind its name.

    >>> import xarray as xr
    >>> tidy(xr.DataArray([5.0, 3.0], {"epsilon": [0.1, 1.0]}), {"regret": [5.0, 3.0]}).values.tolist()
    [[0.1, 5.0], [1.0, 3.0]]
    """
    import pandas as pd

    index = np.indices(like.shape).reshape(like.ndim, math.prod(like.shape))
    frame: dict = {}
    for position, dim in enumerate(like.dims):
        tied = [c for c, v in like.coords.items() if c not in (dim, *BESIDE) and v.dims == (dim,)]
        along = [dim, *tied]  # tied keys ride along
        for c in along:
            values = like[c].values[index[position]]
            if "algorithm" in like.dims and (labels := takers(like[c])) is not None:
                own = np.isin(like["algorithm"].values[index[like.dims.index("algorithm")]], labels)
                values = np.where(own, values, np.nan if values.dtype.kind in "iuf" else "")
            frame[f"{c}_" if c in columns else str(c)] = values
    rows = index.shape[1]
    frame |= {k: np.ravel(v) if np.ndim(v) or rows == 1 else [v] * rows for k, v in columns.items()}
    return pd.DataFrame(frame)
