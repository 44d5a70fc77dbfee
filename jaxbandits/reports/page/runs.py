"""What a report is about: Datasets with their configuration, and their parts built again where that is possible."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jaxbandits import selection
from jaxbandits.reports.page import sources
from jaxbandits.sweeps import load
from jaxbandits.sweeps.configurations import text
from jaxbandits.sweeps.plan import plan as laid_out
from jaxbandits.sweeps.toml_file import config_arguments, parsed
from jaxbandits.validation import path_of, shown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from jaxbandits.sweeps.grid import Axis
    from jaxbandits.sweeps.plan import Plan

ALONE = "sweep"  # the name of one Dataset that has none


class Run(NamedTuple):
    """One sweep of a report."""

    label: str
    ds: xr.Dataset
    directory: Path | None  # where it was read from; None for a Dataset
    config: dict[str, Any]  # the arguments of the sweep, {} where the Dataset does not say
    toml: str  # the same as text of a TOML file; "" where that cannot be written
    caption: str
    provenance: dict[str, Any]  # what `provenance.json` of the directory says
    plan: Plan | None  # the algorithms built again, those of the package; None where none could be
    unplanned: str  # why algorithms are missing from the plan; "" where none are
    audit: pd.DataFrame | None  # `audit.csv` of the directory or of its folder `audit`; None without one


def runs(given: Any) -> list[Run]:
    """What is reported on, from a Dataset, a directory, or {label: either}."""
    if isinstance(given, Mapping) and not hasattr(given, "data_vars"):
        named = dict(given)
    elif isinstance(given, list | tuple):
        names = [ALONE if hasattr(one, "data_vars") else _name(one) for one in given]
        twice = {name for name in names if names.count(name) > 1}
        labels = [str(one) if name in twice else name for name, one in zip(names, given, strict=True)]
        if len(set(labels)) < len(labels) or any(hasattr(one, "data_vars") for one in given[1:]):
            raise ValueError("report: what is given needs different names: give {label: Dataset or directory}")
        named = dict(zip(labels, given, strict=True))
    else:
        named = {ALONE if hasattr(given, "data_vars") else _name(given): given}
    if not named:
        raise ValueError(f"ds = {given} holds no sweep: give {{label: Dataset or directory}}")
    return [_run(" ".join(str(label).split()) or ALONE, one) for label, one in named.items()]


def _name(directory: Any) -> str:
    try:
        path = path_of(directory).resolve()
        return path.stem if path.suffix in (".nc", ".zarr") else path.name or ALONE
    except (TypeError, ValueError):
        raise TypeError(
            f"report: ds is {shown(directory)}; give the Dataset of jb.sweep, a run's directory, or {{label: either}}"
        ) from None


def _run(label: str, given: Any) -> Run:
    import pandas as pd
    import xarray as xr

    directory = None
    if not isinstance(given, xr.Dataset | xr.DataArray):
        _name(given)
        directory, given = path_of(given), load(given)
        directory = directory if directory.is_dir() else None
    ds = selection.whole(cast("xr.Dataset", given), "report")
    config = json.loads(ds.attrs.get("config", "{}"))
    raw, caption, kept = sources.as_raw(config, ds) if config else {}, "", None
    if directory is not None and (directory / "config.toml").is_file():
        kept = directory / "config.toml"
        raw = parsed(kept)
        caption = str(raw.get("caption", ""))
    try:
        toml = kept.read_text(encoding="utf-8-sig") if kept else sources.as_toml(raw) if raw else ""
    except ValueError:
        toml = ""
    plan, unplanned = _planned(raw, ds, kept or Path("the configuration"))
    audits = [] if directory is None else [directory / "audit" / "audit.csv", directory / "audit.csv"]
    return Run(
        label=label, ds=ds, directory=directory, config=config, toml=toml, caption=caption,
        provenance=_json(directory / "provenance.json") if directory else {}, plan=plan, unplanned=unplanned,
        audit=next((pd.read_csv(path) for path in audits if path.is_file()), None),
    )  # fmt: skip


def _planned(raw: dict[str, Any], ds: xr.Dataset, path: Path) -> tuple[Plan | None, str]:
    """The sweep's algorithms of the package built again, and why others are missing. No code of a user is run."""
    if not raw:
        return None, "the Dataset does not say how it was computed"
    raw = {key: value for key, value in raw.items() if key not in ("figure", "caption", "tune")} | {"seeds": 1}
    tables = raw["algorithm"] if isinstance(raw["algorithm"], list) else [raw["algorithm"]]
    known = [table for table in tables if not sources.own(table)]
    if not known or any(sources.own(raw.get(slot)) for slot in sources.SLOTS):
        return None, "parts of your own play in it, and a report runs no code of yours"
    try:
        settings = config_arguments(raw | {"algorithm": known}, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the sweep itself has warned
            grid = sorted(settings["grid"].items(), key=lambda item: sources.place(item[0], ds))
            settings["grid"] = dict(grid)
            plan = laid_out(settings.pop("algorithms"), settings.pop("environment"), **settings)
    except Exception as error:  # data that moved away, or arrays of which the configuration holds a digest only
        return None, f"its parts cannot be built again ({' '.join(str(error).split())})"
    if [axis.name for axis in plan.axes] != selection.grid_dims(ds) or not all(_covers(axis, ds) for axis in plan.axes):
        return None, "it is a part of a sweep: a report of the whole sweep has this"
    left = [sources.label_of(table) for table in tables if table not in known]
    return plan, f"{', '.join(left)} of your own, and a report runs no code of yours" if left else ""


def _covers(axis: Axis, ds: xr.Dataset) -> bool:
    """Whether a Dataset has all values of an axis, in order."""
    values = ds[axis.name].values.tolist()
    names = [x if isinstance(x, str | int | float) else text(x) for x in axis.labels]
    return len(values) == len(names) and all(x == y or str(x) == str(y) for x, y in zip(values, names, strict=True))


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
