"""A figure or table of a paper as a declaration: what to sweep, what to tune, what to draw, what the paper says.

`reproduce` runs a study. Everything simulated goes through `jb.sweep` with a store under the study's directory, so a
run that was interrupted goes on where it stopped, and a study that grew computes only what is new.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits.reports import plot
from jaxbandits.selection import final_regret, grid_dims, markdown
from jaxbandits.sweeps import sweep
from jaxbandits.sweeps.grid import PARTS, Axis, axes_of, takes
from jaxbandits.typing import Vector

Results: TypeAlias = dict[str, Any]
"""What a study computed, by name: the Dataset of a sweep, or what a computed function returned."""


class Tuning(NamedTuple):
    """What is tuned, and on which seeds: at every point of the grid the value of lowest mean regret at the horizon is
    chosen.

    The values tried are all valid or the sweep refuses. An algorithm without a grid keeps its own settings.
    """

    # label -> {key: values}, crossed; keys as in the grid of a sweep, without the label
    grids: dict[str, dict[str, Any]]
    seeds: range  # none of the reported ones
    unknown: tuple[str, ...] = ()  # keys of the grid that the tuner may not look at: its worst mean over them counts


class Sweep(NamedTuple):
    """One sweep of a study. With a tuning, the chosen values are reported on the seeds in `settings`."""

    settings: dict[str, Any]  # arguments of `jb.sweep`
    tuning: Tuning | None = None


class Claim(NamedTuple):
    """One line of the table "the paper says, we measure"."""

    statement: str
    paper: str
    measured: str
    holds: bool | None = None  # None: the paper says nothing that could fail


class Study(NamedTuple):
    """A figure or table of a paper.

    The functions of `figures` and `claims` take the results: {name: Dataset of a sweep, or what a computed function
    returned}.
    """

    title: str
    source: str  # paper, section, figure or table
    sweeps: Callable[[bool], dict[str, Sweep]]  # full? -> the sweeps: about 20 s in all unless full
    figures: dict[str, Callable[[dict], plot.Plot]]
    claims: Callable[[dict], list[Claim]]
    computed: Callable[[bool], dict[str, Any]] = lambda full: {}  # what is no sweep: plain NumPy on the host
    # full?, results -> sweeps that the first ones' results ask for
    following: Callable[[bool, dict], dict[str, Sweep]] = lambda full, results: {}


class Reproduction(NamedTuple):
    """What a study gave: results, figures and claims, and the files written."""

    results: dict[str, Any]
    figures: dict[str, plot.Plot]
    claims: list[Claim]
    paths: list[Path]


def reproduce(
    study: Study,
    directory: str | Path,
    *,
    full: bool = False,
    formats: Sequence[str] = ("png",),
    progress: bool = True,
) -> Reproduction:
    """Run a study into DIR/quick or DIR/full: its sweeps, figures with their data, and the table of claims.

    Parameters
    ----------
    study : Study
        What is run.
    directory : str or Path
        DIR. Written are `<figure>.<format>` and `<figure>.csv`, `<sweep>_tuning.csv` (the values chosen), `claims.csv`
        and `claims.md`, and a store per sweep under `sweeps/`.
    full : bool
        Whether it runs at full size; by default at a size of about 20 seconds.
    formats : sequence of str
        Of the figures: png, pdf or svg.
    progress : bool
        Whether sweeps show their progress.

    Returns
    -------
    Reproduction
        Results, figures and claims, and the files written.

    Raises
    ------
    ValueError
        What `jb.sweep` raises.
    """
    home = Path(directory) / ("full" if full else "quick")
    results, paths = dict(study.computed(full)), []
    for declared in (study.sweeps, lambda full: study.following(full, results)):
        for name, one in declared(full).items():
            results[name], chosen = run(one, home / "sweeps" / name, progress=progress)
            if chosen is not None:
                paths.append(home / f"{name}_tuning.csv")
                chosen.to_csv(paths[-1], index=False)
    home.mkdir(parents=True, exist_ok=True)
    figures = {name: draw(results) for name, draw in study.figures.items()}
    for name, figure in figures.items():
        paths += [home / f"{name}.csv", *(home / f"{name}.{suffix}" for suffix in formats)]
        figure.data.to_csv(home / f"{name}.csv", index=False)
        for suffix in formats:
            plot.save(figure, home / f"{name}.{suffix}")
    claims = study.claims(results)
    paths += [home / "claims.csv", home / "claims.md"]
    pd.DataFrame(claims, columns=Claim._fields).to_csv(paths[-2], index=False)
    paths[-1].write_text(f"{claims_table(claims)}\n")
    return Reproduction(results, figures, claims, paths)


def run(one: Sweep, store: str | Path, *, progress: bool = True) -> tuple[xr.Dataset, pd.DataFrame | None]:
    """A sweep's Dataset, and the values that its tuning chose (None without one)."""
    if one.tuning is None:
        return sweep(**one.settings, store=store, progress=progress), None
    settings = dict(one.settings)
    axes = axes_of(settings.pop("grid", None) or {}, None, settings["horizon"])
    _check_tuning(one, axes)
    chosen = {
        label: _chosen(one, label, keys, Path(store) / "tuning" / label.replace("/", "-"), progress)
        for label, keys in one.tuning.grids.items()
    }
    points: list[dict] = []
    for place in product(*(range(len(axis.values)) for axis in axes)):
        point = {
            k: v for axis, i in zip(axes, place, strict=True) for k, v in zip(axis.keys, axis.values[i], strict=True)
        }
        here = {axis.name: axis.labels[i] for axis, i in zip(axes, place, strict=True)}
        for label, table in chosen.items():
            row = next(r for r in table.to_dict("records") if all(r[k] == v for k, v in here.items() if k in r))
            point |= {f"{label}.{key}": row[key] for key in one.tuning.grids[label]}
        points.append(point)
    ds = sweep(**settings, points=points, store=Path(store) / "reported", progress=progress)
    return unfolded(ds, axes), pd.concat(chosen.values(), ignore_index=True)


def _chosen(one: Sweep, label: str, keys: dict[str, Any], store: Path, progress: bool) -> pd.DataFrame:
    """The best values of `keys` for one algorithm, a row for each point known to the tuner.

    `edge` says whether a value is at an end of those that were tried.
    """
    settings, tuning = dict(one.settings), one.tuning
    assert tuning is not None
    settings |= {"algorithms": {label: settings["algorithms"][label]}, "checkpoints": 1, "seeds": tuning.seeds}
    grid, names = {}, {}
    for axis in axes_of(settings.get("grid") or {}, None, settings["horizon"]):
        at = [i for i, key in enumerate(axis.keys) if _reaches(key, label, one.settings["algorithms"])]
        if at:  # else the algorithm does not depend on this axis
            key = tuple(axis.keys[i] for i in at) if len(at) > 1 else axis.keys[at[0]]
            rows = [tuple(row[i] for i in at) if len(at) > 1 else row[at[0]] for row in axis.values]
            grid[key], names[axis.keys[at[0]]] = dict(zip(axis.labels, rows, strict=True)), axis.name
    ds = sweep(**settings | {"grid": grid | keys}, store=store, progress=progress)
    ds = ds.rename({dim: name for dim, name in names.items() if dim != name})
    mean = final_regret(ds).isel(algorithm=0, drop=True).mean("seed")
    mean = mean.where(np.isfinite(mean), np.inf).max([d for d in tuning.unknown if d in mean.dims])
    known = [d for d in mean.dims if d not in keys]
    values = mean.transpose(*known, *keys).values.reshape(*(mean.sizes[d] for d in known), -1)
    best = values.argmin(-1)
    rows = []
    for place in np.ndindex(best.shape):
        where = np.unravel_index(best[place], [len(v) for v in keys.values()])
        row: dict = {"algorithm": label} | {d: ds[d].values[i] for d, i in zip(known, place, strict=True)}
        row |= {key: tried[i] for (key, tried), i in zip(keys.items(), where, strict=True)}
        row["mean"] = values[(*place, best[place])]
        row["edge"] = any(len(v) > 1 and i in (0, len(v) - 1) for v, i in zip(keys.values(), where, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def _reaches(key: str, label: str, algorithms: dict[str, Any]) -> bool:
    """Whether a grid key concerns this algorithm, or the part of a sweep that all share."""
    owner = max((name for name in algorithms if key.startswith(f"{name}.")), key=len, default=None)
    if owner is not None:
        return owner == label
    return key.partition(".")[0] in PARTS or takes(algorithms[label], key)


def _check_tuning(one: Sweep, axes: list[Axis]) -> None:
    tuning, seeds = one.tuning, one.settings["seeds"]
    assert tuning is not None
    reported = seeds if isinstance(seeds, range) else range(seeds)
    if max(reported.start, tuning.seeds.start) < min(reported.stop, tuning.seeds.stop):
        raise ValueError(f"tuning.seeds = {tuning.seeds} meets the reported seeds {reported}: tune on others")
    if np.ndim(one.settings["horizon"]):
        raise ValueError("a tuned sweep has one horizon: declare a sweep for each and join them with `over_horizons`")
    names = [axis.name for axis in axes]
    if missing := [key for key in tuning.unknown if key not in names]:
        raise ValueError(f"tuning.unknown names {missing[0]!r}, which is no key of the grid ({', '.join(names)})")


def unfolded(ds: xr.Dataset, axes: list[Axis]) -> xr.Dataset:
    """A Dataset of points, in the order of the product of `axes`, with a dimension for each axis instead."""
    if not axes:
        return ds.isel(point=0, drop=True)
    names, labels = [axis.name for axis in axes], [list(axis.labels) for axis in axes]
    index = pd.MultiIndex.from_product(labels, names=names)
    ds = ds.drop_vars([c for c, v in ds.coords.items() if "point" in v.dims])
    ds = ds.assign_coords(xr.Coordinates.from_pandas_multiindex(index, "point")).unstack("point")
    ds = ds.reindex(dict(zip(names, labels, strict=True))).assign_attrs(constant_along="{}")
    return ds.map(lambda v: v.transpose("algorithm", *names, "seed", ...))


def over_horizons(parts: list[xr.Dataset]) -> xr.Dataset:
    """Datasets of one horizon each, tuned for it, as one with the dimension `horizon`.

    That is how a sweep over horizons gives it.
    """
    ends = [int(ds.t[-1]) for ds in parts]
    joined = xr.concat([ds[["regret"]] for ds in parts], pd.Index(ends, name="horizon"), join="outer", coords="minimal")
    return joined.transpose("algorithm", "horizon", ..., "seed", "t").assign_attrs(constant_along="{}")


def worst(ds: xr.Dataset, key: str) -> xr.Dataset:
    """Each algorithm at the value of `key` where its mean regret at the horizon is highest.

    The value is chosen anew at every other point of the grid.
    """
    where = final_regret(ds).mean("seed").argmax(key)
    regret = ds["regret"].isel({key: where}).drop_vars(key)
    rest = [d for d in grid_dims(ds) if d != key]
    at_worst = regret.transpose("algorithm", *rest, "seed", "t").to_dataset(name="regret")
    return at_worst.assign_attrs(ds.attrs)


def crossing(x: Vector, difference: Vector) -> float:
    """Where a difference changes sign along increasing positive `x`, by log-linear interpolation; NaN if it never does.

    >>> round(crossing([0.1, 1.0, 10.0], [2.0, 1.0, -1.0]), 3)
    3.162
    """
    x, y = np.asarray(x, np.float64), np.asarray(difference, np.float64)
    for i in range(len(x) - 1):
        if y[i] == 0 or y[i] * y[i + 1] < 0:
            return float(x[i] * (x[i + 1] / x[i]) ** (y[i] / (y[i] - y[i + 1])))
    return math.nan


def claims_table(claims: list[Claim]) -> str:
    """The claims as Markdown."""
    words = {True: "yes", False: "**no**", None: ""}
    return markdown(
        [
            ["", "the paper says", "we measure", "holds"],
            *([c.statement, c.paper, c.measured, words[c.holds]] for c in claims),
        ]
    )
