"""What a report is about: Datasets with their configuration, and their parts built again where that is possible.

Where they come from: the question, the configuration as a TOML file, the papers, and the commands.
"""

import json
import re
import shlex
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd
import xarray as xr

from jaxbandits import adversaries, algorithms, environments, selection
from jaxbandits.formatting import format_value, show
from jaxbandits.reports import output
from jaxbandits.reports.citations import CITED, paper
from jaxbandits.reports.page.words import key_name, listing, span
from jaxbandits.selection import grid_dims
from jaxbandits.sweeps import arguments, load, toml_file
from jaxbandits.sweeps.arguments import PARTS
from jaxbandits.sweeps.grid import Axis
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.plan import plan as laid_out
from jaxbandits.sweeps.storage.dataset_file import RESULTS
from jaxbandits.validation import path_of
from jaxbandits.version import __version__

ALONE = "sweep"  # the name of one Dataset that has none
SOFTWARE = f"""@software{{jaxbandits,
  author = {{{{The jaxbandits developers}}}},
  title = {{jaxbandits: a batched JAX simulator of private and robust bandits}},
  version = {{{__version__}}}
}}"""
# in a citation: pages of the documentation, which is not beside a report
PLACE = re.compile(r"(?:[:,]| and)?\s*`?docs/[\w./#-]+\w`?")
SHOWN_VALUES = 6  # of an argument, in a sentence


class ReportRun(NamedTuple):
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
    offline: pd.DataFrame | None = None  # `offline.csv` of the directory; None without one
    kept: Path | None = None  # `config.toml` of the directory, if it is of this run


def runs(given: Any) -> list[ReportRun]:
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
    labels = [" ".join(str(label).split()) or ALONE for label in named]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise ValueError(f"report: two labels are both written {twice[0]!r}: give different ones")
    return [_run(label, one) for label, one in zip(labels, named.values(), strict=True)]


def _name(directory: object) -> str:
    try:
        path = path_of(directory).resolve()
        return path.stem if path.suffix in (".nc", ".zarr") else path.name or ALONE
    except (TypeError, ValueError):
        remedy = "give the Dataset of jb.sweep, a run's directory, or {label: either}"
        raise TypeError(f"report: ds is {show(directory)}; {remedy}") from None


def _csv(path: Path) -> pd.DataFrame:
    """A table of ours; names such as "None" and "007" are texts."""
    names = {"algorithm": str, "policy": str}
    return pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=names)


def _run(label: str, given: Any) -> ReportRun:
    directory = judged = None
    if not isinstance(given, xr.Dataset | xr.DataArray):
        _name(given)
        directory = path_of(given) if path_of(given).is_dir() else None
        judged = directory / "offline.csv" if directory and (directory / "offline.csv").is_file() else None
        if directory and judged and not (directory / RESULTS).is_file():  # `jaxbandits offline` without a run
            return ReportRun(label, xr.Dataset(), directory, {}, "", "", {}, None, "", None, _csv(judged))
        given = load(given)
    ds = selection.whole(cast("xr.Dataset", given), "report")
    config = json.loads(ds.attrs.get("config", "{}"))
    if not {*map(str, ds["algorithm"].values)} <= {*config.get("algorithms", ())}:
        config = {}  # of a part alone: `xarray.concat` keeps what the first one says
    if new := config.pop("renamed", {}):  # dimensions begin with a label, too
        ds = ds.rename({dim: name for dim in grid_dims(ds) if (name := selection.relabel_key(dim, new)) != dim})
    raw, caption = as_raw(config, ds) if config else {}, ""
    kept = output.config_of(directory, config) if directory else None
    if kept:
        raw = toml_file.parse_toml(kept)
        caption = str(raw.get("caption", ""))
    toml = kept.read_text(encoding="utf-8-sig") if kept else _toml(raw)
    plan, unplanned = _rebuild_plan(raw, ds, kept or Path("the configuration"))
    audits = [] if directory is None else [directory / "audit" / "audit.csv", directory / "audit.csv"]
    return ReportRun(
        label=label, ds=ds, directory=directory, config=config, toml=toml, caption=caption,
        provenance=_json(directory / "provenance.json") if directory else {}, plan=plan, unplanned=unplanned,
        audit=next((_csv(path) for path in audits if path.is_file()), None),
        offline=None if judged is None else _csv(judged), kept=kept,
    )  # fmt: skip


def _rebuild_plan(raw: dict[str, Any], ds: xr.Dataset, path: Path) -> tuple[Plan | None, str]:
    """The sweep's algorithms of the package built again, and why others are missing. No code of a user is run."""
    if not raw:
        return None, "the Dataset does not say how it was computed"
    raw = {key: value for key, value in raw.items() if key not in ("figure", "caption", "tune")} | {"seeds": 1}
    tables = raw["algorithm"] if isinstance(raw["algorithm"], list) else [raw["algorithm"]]
    known = [table for table in tables if not is_own(table)]
    if not known or any(is_own(raw.get(slot)) for slot in PARTS):
        return None, "parts of your own play in it, and a report runs no code of yours"
    try:
        settings = toml_file.config_arguments(raw | {"algorithm": known}, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the sweep itself has warned
            grid = sorted(settings["grid"].items(), key=lambda item: axis_place(item[0], ds))
            settings["grid"] = dict(grid)
            plan = laid_out(settings.pop("algorithms"), settings.pop("environment"), **settings)
    except Exception as error:  # data that moved away, or arrays of which the configuration holds a digest only
        return None, f"its parts cannot be built again ({' '.join(str(error).split())})"
    if [axis.name for axis in plan.axes] != selection.grid_dims(ds) or not all(_covers(axis, ds) for axis in plan.axes):
        return None, "it is a part of a sweep: a report of the whole sweep has this"
    named = [table if isinstance(table, dict) else {"name": table} for table in tables if table not in known]
    left = [str(table.get("label", table.get("name", ""))) for table in named]
    return plan, f"{', '.join(left)} of your own, and a report runs no code of yours" if left else ""


def _covers(axis: Axis, ds: xr.Dataset) -> bool:
    """Whether a Dataset has all values of an axis, in order."""
    values = ds[axis.name].values.tolist()
    names = [x if isinstance(x, str | int | float) else arguments.short_text(x) for x in axis.labels]
    return len(values) == len(names) and all(x == y or str(x) == str(y) for x, y in zip(values, names, strict=True))


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _walk_values(x: object) -> Iterator[Any]:
    """A value of a configuration and all that lie inside it."""
    yield x
    if isinstance(x, dict | list):
        for inside in x.values() if isinstance(x, dict) else x:
            yield from _walk_values(inside)


def _names(x: object) -> Iterator[str]:
    """The names of all parts in a configuration."""
    return (part["name"] for part in _walk_values(x) if isinstance(part, dict) and isinstance(part.get("name"), str))


def is_own(table: object) -> bool:
    """Whether a part of a file, or one inside it, is not of the package."""
    known = {*algorithms.__all__, *environments.__all__, *adversaries.__all__}
    references = {x for x in _walk_values(table) if isinstance(x, str) and ":" in x}
    return not {*_names(table), *references} <= known


def as_raw(config: dict[str, Any], ds: xr.Dataset) -> dict[str, Any]:
    """A sweep's recorded configuration in the form of a TOML file."""
    config = _infinities(config)
    raw: dict[str, Any] = {key: config[key] for key in ("horizon", "seeds", "checkpoints", "dtype") if key in config}
    raw |= {slot: config[slot] for slot in PARTS if config.get(slot)}
    labels = [str(label) for label in ds["algorithm"].values if str(label) in config["algorithms"]]
    raw["algorithm"] = [{"label": label} | config["algorithms"][label] for label in labels]
    axes = dict(sorted((config.get("grid") or {}).items(), key=lambda item: axis_place(item[0], ds)))
    idle = json.loads(ds.attrs.get("constant_along", "{}"))  # keys that no algorithm takes that `sel` left
    unused = {d for d in grid_dims(ds) if labels and all(d in idle.get(label, ()) for label in labels)}
    axes = {key: values for key, values in axes.items() if key not in unused and key.split("+")[0] not in unused}
    for key, values in axes.items():  # JSON has lost the order of named values
        if isinstance(values, dict) and key in ds.coords and set(values) == set(names := ds[key].values.astype(str)):
            axes[key] = {str(name): values[str(name)] for name in names}
    tied = {key: values for key, values in axes.items() if "+" in key and key not in grid_dims(ds)}
    if tied:
        raw["tied"] = [{"keys": key.split("+"), "values": values} for key, values in tied.items()]
    if len(axes) > len(tied):
        raw["grid"] = {key: values for key, values in axes.items() if key not in tied}
    return raw | ({"points": config["points"]} if config.get("points") else {})


def axis_place(key: str | tuple[str, ...], ds: xr.Dataset) -> int:
    """Where a key, or the first of tied keys, is among the axes."""
    dims = grid_dims(ds)
    name = key[0] if isinstance(key, tuple) else key if key in dims else key.split("+")[0]
    return dims.index(name) if name in dims else len(dims)


def _infinities(x: Any) -> Any:
    """The numbers that JSON cannot hold, from their texts."""
    if isinstance(x, dict):
        return {key: _infinities(value) for key, value in x.items()}
    if isinstance(x, list):
        return [_infinities(value) for value in x]
    return float(x) if x in ("inf", "-inf", "nan") else x


def _toml(raw: dict[str, Any]) -> str:
    """The text of a TOML file; "" where a configuration lacks what is the user's own, and large arrays."""
    # large arrays are kept as a checksum only
    large = any(isinstance(x, dict) and set(x) == {"shape", "crc32"} for x in _walk_values(raw))
    if not raw or large or any(is_own(raw.get(key)) for key in (*PARTS, "algorithm")):
        return ""
    try:
        return toml_file.format_toml(raw) + "\n"
    except ValueError:
        return ""


def question(run: ReportRun) -> str:
    """What a sweep asks, in a sentence or two."""
    ds, config = run.ds, run.config
    labels = [str(label) for label in ds["algorithm"].values]
    who = listing(labels) if len(labels) <= 8 else f"{len(labels)} algorithms"
    part, table = config.get("environment"), tomllib.loads(run.toml).get("environment")
    if part and isinstance(table, dict) and "path" in table:  # data by the name of their file
        name = f"{part['name']} of {Path(table['path']).name}"
        part = {key: x for key, x in part.items() if key in table} | {"name": name}
    where = f" on {_describe_part(part)}" if part else ""
    keys = [d for d in grid_dims(ds) if ds.sizes[d] > 1]
    plays = "" if "horizon" in keys else f" over {int(ds['t'].values[-1]):,} plays"
    sentence = f"How much regret {'does' if len(labels) == 1 else 'do'} {who} have{where}{plays}"
    if keys:
        sentence += f", and how does it depend on {listing([f'{key_name(key)} ({span(ds, key)})' for key in keys])}"
    hits = [(slot, config[slot]) for slot in PARTS[1:] if config.get(slot)]
    corrupted = [f" {_describe_part(part)} corrupts {slot.partition('_')[0]}s." for slot, part in hits]
    return f"{sentence}?{''.join(corrupted)}"


def _describe_part(part: dict[str, Any]) -> str:
    given = {key: value for key, value in part.items() if key != "name" and value is not None}
    words = ", ".join(f"{key} = {_describe_value(value)}" for key, value in given.items())
    return f"{part['name']} ({words})" if given else f"{part['name']}"


def _describe_value(value: object) -> str:
    if isinstance(value, list):
        few = len(value) <= SHOWN_VALUES and not any(isinstance(x, list | dict) for x in value)
        return f"[{', '.join(map(format_value, value))}]" if few else f"{len(value)} values"
    if isinstance(value, dict):
        return f"an array of shape {value['shape']}" if "crc32" in value else str(value.get("name", "..."))
    return format_value(value)


def citations_of(runs: Iterable[ReportRun]) -> list[tuple[str, str]]:
    """The parts of the package that play, each with what it cites."""
    found = {}
    for run in runs:
        for name in _names([run.config.get("algorithms"), *(run.config.get(slot) for slot in PARTS)]):
            module = next((m for m in (algorithms, environments, adversaries) if name in m.__all__), None)
            if module is not None:
                found[name] = papers(paper(getattr(module, name)))
    return [(name, citation) for name, citation in found.items() if citation]


def papers(citation: str) -> str:
    """The papers of a citation, without pages of the documentation and what says only where these are.

    >>> papers("Neu 2015, Theorem 1: `docs/formulas/private_adversarial.md#exp3`. How it is tuned: `docs/concepts.md`")
    'Neu 2015, Theorem 1'
    """
    kept = []
    for part in re.split(r"(?<=[.;]) ", citation):
        bare = PLACE.sub("", part).strip(" .;")
        if bare and (bare == part.strip(" .;") or CITED.search(bare)):
            kept.append(bare + (part[-1] if part[-1] in ".;" else ""))
    found = " ".join(kept).rstrip(" .;")
    return found if CITED.search(found) else ""


def _file(run: ReportRun) -> str:
    """The file of a run in its directory, for a shell."""
    return shlex.quote(str(run.kept)) if run.kept else "FILE.toml"


def run_again(run: ReportRun) -> str:
    """The command that computes a sweep again; "" where it takes Python."""
    if not run.toml:
        return ""
    return f"jaxbandits run {_file(run)} --out {shlex.quote(str(run.directory or 'runs/FILE'))}"


def audit_command(run: ReportRun) -> str:
    """The command that audits all private algorithms of a sweep."""
    if not run.toml:
        return "jaxbandits audit MODULE:FACTORY --out runs/audit"
    return f"jaxbandits audit {_file(run)} --out {shlex.quote(str((run.directory or Path('runs/FILE')) / 'audit'))}"


def page_again(runs: list[ReportRun], path: Path) -> str:
    """The command or the lines of Python that make the page again."""
    if all(run.directory for run in runs):
        places = " ".join(shlex.quote(str(run.directory)) for run in runs)
        return f"jaxbandits report {places} --out {shlex.quote(str(path))}"
    quoted = partial(json.dumps, ensure_ascii=False)
    if len(runs) == 1:
        return f"jb.report(ds, {quoted(str(path))})"
    parts = [json.dumps(str(run.directory)) if run.directory else "ds" for run in runs]
    inside = ", ".join(f"{quoted(run.label)}: {part}" for run, part in zip(runs, parts, strict=True))
    return f"jb.report({{{inside}}}, {quoted(str(path))})"
