"""Sweeps put together: more seeds of the same algorithms, or more algorithms on the same seeds."""

import itertools
import json
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from jaxbandits.contract import first_line
from jaxbandits.formatting import join_values, show
from jaxbandits.selection import IDENTITY, TAKERS, grid_dims, takers, whole
from jaxbandits.validation import choice, declare, difference


@declare(check=False)
def concat(datasets: Sequence[xr.Dataset], dim: Literal["seed", "algorithm"]) -> xr.Dataset:
    """One Dataset of several sweeps, for comparisons and tables over all of them.

    Args:
        datasets (list of xarray.Dataset): What `sweep` or `load` returned, or a part of it that `sel` took, at least
            one. They agree in environment, adversaries, horizon, checkpoints, dtype and grid; with `dim="seed"` in the
            algorithms and their arguments too. Whether they do is seen from their coordinate `identity`, which holds
            what was computed, code and arrays included.
        dim: What the sweeps differ in.

    Returns:
        xarray.Dataset: As one sweep would return it, seeds in increasing order. Comparisons are paired over seeds: with
            `dim="algorithm"`, seeds that not all sweeps have are left out, with a warning. Pulls are there where all
            sweeps have them; diagnostics are NaN where a sweep has none. What `until` decided is left out, as it holds
            for the seeds of its own sweep.

    Raises:
        ValueError: A seed (`dim="seed"`) or a label (`dim="algorithm"`) stands in two sweeps, the sweeps differ in
            anything else, or no seed is in all of them.
        TypeError: For anything but Datasets of sweeps.

    Warns:
        UserWarning: The sweeps were computed by different releases, or one does not say what was computed, as one of an
            older release: then the recorded arguments are compared.

    >>> arms, settings = jb.environments.bernoulli_arms(means=[0.2, 0.8]), dict(horizon=50, progress=False)
    >>> first, more = (jb.sweep("ucb1", arms, seeds=seeds, **settings) for seeds in (range(2), range(2, 6)))
    >>> jb.concat([first, more], dim="seed").seed.values.tolist()
    [0, 1, 2, 3, 4, 5]
    """
    choice("dim", dim, ("seed", "algorithm"))
    if isinstance(datasets, xr.Dataset) or not isinstance(datasets, Sequence) or not len(datasets):
        raise TypeError(f"concat: datasets = {show(datasets)} must be a list of Datasets that jb.sweep returned")
    parts = [whole(ds, "concat") for ds in datasets]
    _only_once(parts, dim)
    configs = [json.loads(part.attrs.get("config", "{}")) for part in parts]
    common = set.intersection(*({*grid_dims(part)} for part in parts))  # `sel` left the others at one value
    one = [[d for d in grid_dims(part) if d not in common and part.sizes[d] == 1] for part in parts]
    parts = [part.isel(dict.fromkeys(dims, 0), drop=True) for part, dims in zip(parts, one, strict=True)]
    _check_same_run(parts, configs, dim)
    if dim == "algorithm":
        parts = _on_common_seeds(parts)
    parts = [parts[0], *(_as_the_first(part, parts[0], dim) for part in parts[1:])]
    for name, c in {name: c for part in parts for name, c in part.coords.items() if name not in part.dims}.items():
        there = [part.coords[name].variable for part in parts if name in part.coords]
        if len(there) < len(parts) or not (dim in c.dims or all(x.equals(c.variable) for x in there)):
            parts = [part.drop_vars([name], errors="ignore") for part in parts]
    versions = [part.attrs.get("versions") for part in parts]
    if len(set(versions)) > 1:
        there, here = (json.loads(text or "{}") for text in list(dict.fromkeys(versions))[:2])
        releases = f"the sweeps were computed by different releases: {difference('versions', there, here)}"
        remark = "bits may differ, and the result says what computed the first"
        warnings.warn(f"concat: {releases}; {remark}", UserWarning, stacklevel=2)
    try:
        joined = xr.concat(
            _with_the_same_variables(parts), dim, data_vars="minimal", coords="minimal", compat="equals", join="exact",
            combine_attrs="override",
        ).sortby("seed")  # fmt: skip
    except xr.MergeError as error:  # of those that do not say what was computed
        raise ValueError(f"concat: the sweeps are of other worlds ({first_line(error)})") from None
    for name in joined.coords:
        if any(TAKERS in part[name].attrs for part in parts):
            told = [takers(part[name]) for part in parts]  # None: all of them; no label: none that is left
            taking = [
                part["algorithm"].values.tolist() if x is None else x for x, part in zip(told, parts, strict=True)
            ]
            joined[name].attrs[TAKERS] = json.dumps(list(dict.fromkeys(itertools.chain(*taking))))
    joined.attrs = _attributes(parts, configs, joined["seed"].values)
    return joined


def _only_once(parts: Sequence[xr.Dataset], dim: str) -> None:
    met: dict[Any, int] = {}
    for i, part in enumerate(parts):
        for value in part[dim].values.tolist():
            if value in met:
                what = "a seed counted twice is no new run" if dim == "seed" else "give it another label"
                raise ValueError(f"concat: {dim} {value!r} stands in datasets[{met[value]}] and datasets[{i}]: {what}")
            met[value] = i


def _check_same_run(parts: Sequence[xr.Dataset], configs: Sequence[dict[str, Any]], dim: str) -> None:
    """ValueError where more than `dim` differs in what was computed, or, where that is not known, in the arguments."""
    left_out = {"seeds", "until"} | ({"algorithms"} if dim == "algorithm" else set())
    first, *others = ({key: x for key, x in config.items() if key not in left_out} for config in configs)
    told, unknown = [_identities(part, dim) for part in parts], False
    for i, other in enumerate(others, 1):
        both = bool(told[0] and told[i])
        if both and told[i] == told[0]:
            continue
        unknown |= not both
        if other != first or (both and parts[i].attrs.get("versions") == parts[0].attrs.get("versions")):
            code = "its arguments are recorded alike, its code or its arrays are others"
            why = code if other == first else difference("config", other, first)
            rest = "only runs that agree in it can be compared on their seeds"
            raise ValueError(f"concat: datasets[{i}] is another run than datasets[0]: {why}; {rest}")
    if unknown:
        says_not = "not all say what was computed, as those of older releases and of parts without a lasting name"
        text = f"concat: {says_not}: their recorded arguments agree, whether code and arrays do cannot be seen"
        warnings.warn(text, UserWarning, stacklevel=3)


def _identities(part: xr.Dataset, dim: str) -> set[object]:
    """What was computed at every point, or in which world with `dim="algorithm"`; empty where that is not known."""
    if IDENTITY not in part.coords:
        return set()
    told = part[IDENTITY].reset_coords(drop=True).broadcast_like(part["regret"].isel(seed=0, t=0, drop=True))
    frame = told.to_dataframe(IDENTITY).reset_index()
    frame[IDENTITY] = frame[IDENTITY].astype(str).str.split().str[0 if dim == "algorithm" else 1]
    known = frame[IDENTITY].str.fullmatch("[0-9a-f]{16}").fillna(False).all()
    columns = sorted({*frame.columns} - {dim}, key=str)
    return {*frame[columns].itertuples(index=False, name=None)} if known else set()


def _on_common_seeds(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """The seeds that all have, in increasing order."""
    everywhere = sorted(set.intersection(*({*part["seed"].values.tolist()} for part in parts)))
    if not everywhere:
        raise ValueError("concat: no seed is in all sweeps, and algorithms are compared on equal ones: run them again")
    gone = sum(part.sizes["seed"] for part in parts) - len(everywhere) * len(parts)
    if gone:
        rest = "the others are left out, as comparisons are paired"
        warnings.warn(f"concat: {len(everywhere):,} seeds are in all sweeps; {rest}", UserWarning, stacklevel=3)
    return [part.sel(seed=everywhere) for part in parts]


def _as_the_first(part: xr.Dataset, first: xr.Dataset, dim: str) -> xr.Dataset:
    """A sweep with the values of every other dimension in the order of the first."""
    for axis in first["regret"].dims:
        if axis == dim:
            continue
        known = first[axis].values if axis in first.coords else np.arange(first.sizes[axis])
        own = part[axis].values if axis in part.dims and axis in part.coords else None
        if axis not in part["regret"].dims or (own is not None and {*own.tolist()} != {*known.tolist()}):
            there = "none" if own is None else join_values(own)
            values = f"{join_values(known)} in the first, {there} in another"
            raise ValueError(f"concat: the sweeps differ in {axis}: {values}; run them on the same values")
        part = part if own is None else part.sel({axis: known})
    return part


def _with_the_same_variables(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Numbers that some algorithms do not have are NaN; whole numbers that not all have are left out."""
    names = {str(name): part[name] for part in parts for name in part.data_vars}
    optional = {name for name, x in names.items() if x.dtype.kind == "f" and x.dims == parts[0]["regret"].dims[:-1]}
    kept, filled = [name for name in names if name in optional or all(name in part for part in parts)], []
    if len({part.sizes.get("arm") for part in parts}) > 1:
        kept = [name for name in kept if name != "pulls"]
        parts = [part.drop_vars(["arm", "arm_name"], errors="ignore") for part in parts]
    for part in parts:
        like = part["regret"].isel(t=0, drop=True)
        missing = {name: like.copy(data=np.full(like.shape, np.nan)) for name in kept if name not in part}
        filled.append(part.assign(missing)[kept])
    return filled


def _attributes(parts: Sequence[xr.Dataset], configs: Sequence[dict[str, Any]], seeds: Any) -> dict[str, Any]:
    """What one sweep of all would say of itself."""
    attrs = {key: value for key, value in parts[0].attrs.items() if key != "decisions"}
    for key in ("constant_along", "guarantees"):
        if told := [json.loads(part.attrs[key]) for part in parts if key in part.attrs]:
            attrs[key] = json.dumps({k: x for about in told for k, x in about.items()})
    attrs |= next(({"privacy": part.attrs["privacy"]} for part in parts if "privacy" in part.attrs), {})
    if config := {key: value for key, value in next(filter(None, configs), {}).items() if key != "until"}:
        config["algorithms"] = {label: x for other in configs for label, x in other.get("algorithms", {}).items()}
        without_gaps = len(seeds) == seeds[-1] - seeds[0] + 1
        config["seeds"] = [int(seeds[0]), int(seeds[-1]) + 1] if without_gaps else seeds.tolist()
        attrs["config"] = json.dumps(config, sort_keys=True)
    return attrs
