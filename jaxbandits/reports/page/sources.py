"""Where results come from: the question, the configuration as a TOML file, the papers, and the commands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxbandits import adversaries, algorithms, environments
from jaxbandits.formatting import text
from jaxbandits.reports.citations import CITED, paper
from jaxbandits.reports.page.words import key_name, listing, span
from jaxbandits.selection import grid_dims
from jaxbandits.sweeps import toml_file
from jaxbandits.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from jaxbandits.reports.page.runs import Run

SLOTS = ("environment", "reward_adversary", "message_adversary")
SOFTWARE = f"""@software{{jaxbandits,
  author = {{{{The jaxbandits developers}}}},
  title = {{jaxbandits: a batched JAX simulator of private and robust bandits}},
  version = {{{__version__}}}
}}"""
# in a citation: pages of the documentation, which is not beside a report
PLACE = re.compile(r"(?:[:,]| and)?\s*`?docs/[\w./#-]+\w`?")
SHOWN_VALUES = 6  # of an argument, in a sentence


def _nested(x: Any) -> Iterator[Any]:
    """A value of a configuration and all that lie inside it."""
    yield x
    if isinstance(x, dict | list):
        for inside in x.values() if isinstance(x, dict) else x:
            yield from _nested(inside)


def _names(x: Any) -> Iterator[str]:
    """The names of all parts in a configuration."""
    return (part["name"] for part in _nested(x) if isinstance(part, dict) and isinstance(part.get("name"), str))


def own(table: Any) -> bool:
    """Whether a part of a file, or one inside it, is not of the package."""
    known = {*algorithms.__all__, *environments.__all__, *adversaries.__all__}
    references = {x for x in _nested(table) if isinstance(x, str) and ":" in x}
    return not {*_names(table), *references} <= known


def label_of(table: Any) -> str:
    """The label of an entry `[[algorithm]]`."""
    return str(table.get("label", table.get("name", ""))) if isinstance(table, dict) else str(table)


def as_raw(config: dict[str, Any], ds: xr.Dataset) -> dict[str, Any]:
    """A sweep's recorded configuration in the form of a TOML file."""
    config = _infinities(config)
    raw: dict[str, Any] = {key: config[key] for key in ("horizon", "seeds", "checkpoints", "dtype") if key in config}
    raw |= {slot: config[slot] for slot in SLOTS if config.get(slot)}
    labels = [str(label) for label in ds["algorithm"].values if str(label) in config["algorithms"]]
    raw["algorithm"] = [{"label": label} | config["algorithms"][label] for label in labels]
    axes = {key: _in_order(key, values, ds) for key, values in (config.get("grid") or {}).items()}
    axes = dict(sorted(axes.items(), key=lambda item: place(item[0], ds)))
    tied = {key: values for key, values in axes.items() if "+" in key and key not in grid_dims(ds)}
    if tied:
        raw["tied"] = [{"keys": key.split("+"), "values": values} for key, values in tied.items()]
    if len(axes) > len(tied):
        raw["grid"] = {key: values for key, values in axes.items() if key not in tied}
    return raw | ({"points": config["points"]} if config.get("points") else {})


def _in_order(key: str, values: Any, ds: xr.Dataset) -> Any:
    """Named values in the order that they have in the Dataset: JSON has lost it."""
    if isinstance(values, dict) and key in ds.coords and set(values) == set(map(str, ds[key].values)):
        return {str(name): values[str(name)] for name in ds[key].values}
    return values


def place(key: str | tuple[str, ...], ds: xr.Dataset) -> int:
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


def as_toml(raw: dict[str, Any]) -> str:
    """The text of a TOML file.

    ValueError for what is not in a configuration: parts of the user's own, arrays of more than 1,000 numbers.
    """
    if any(own(raw.get(key)) for key in (*SLOTS, "algorithm")):
        raise ValueError("it has parts of your own, whose modules the configuration does not name")
    if any(isinstance(x, dict) and set(x) == {"shape", "crc32"} for x in _nested(raw)):
        raise ValueError("an array is kept as a checksum only")
    return toml_file.written(raw) + "\n"


def question(run: Run) -> str:
    """What a sweep asks, in a sentence or two."""
    ds, config = run.ds, run.config
    labels = [str(label) for label in ds["algorithm"].values]
    who = listing(labels) if len(labels) <= 8 else f"{len(labels)} algorithms"
    where = f" on {_part(config['environment'])}" if config.get("environment") else ""
    keys = [d for d in grid_dims(ds) if ds.sizes[d] > 1]
    plays = "" if "horizon" in keys else f" over {int(ds['t'].values[-1]):,} plays"
    sentence = f"How much regret {'does' if len(labels) == 1 else 'do'} {who} have{where}{plays}"
    if keys:
        sentence += f", and how does it depend on {listing([f'{key_name(key)} ({span(ds, key)})' for key in keys])}"
    hits = [(slot, config[slot]) for slot in SLOTS[1:] if config.get(slot)]
    corrupted = [f" {_part(part)} corrupts {slot.partition('_')[0]}s." for slot, part in hits]
    return f"{sentence}?{''.join(corrupted)}"


def _part(part: dict[str, Any]) -> str:
    given = {key: value for key, value in part.items() if key != "name" and value is not None}
    return f"{part['name']}" + (f" ({', '.join(f'{k} = {_brief(v)}' for k, v in given.items())})" if given else "")


def _brief(value: Any) -> str:
    if isinstance(value, list):
        few = len(value) <= SHOWN_VALUES and not any(isinstance(x, list | dict) for x in value)
        return f"[{', '.join(map(text, value))}]" if few else f"{len(value)} values"
    if isinstance(value, dict):
        return f"an array of shape {value['shape']}" if "crc32" in value else str(value.get("name", "..."))
    return text(value)


def cited(runs: Iterable[Run]) -> list[tuple[str, str]]:
    """The parts of the package that play, each with what it cites."""
    found = {}
    for run in runs:
        for name in _names([run.config.get("algorithms"), *(run.config.get(slot) for slot in SLOTS)]):
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


def _file(run: Run) -> str:
    """The file of a run in its directory, for a shell."""
    kept = run.directory / "config.toml" if run.directory else None
    return shlex.quote(str(kept)) if kept and kept.is_file() else "FILE.toml"


def run_again(run: Run) -> str:
    """The command that computes a sweep again; "" where it takes Python."""
    if not run.toml:
        return ""
    return f"jaxbandits run {_file(run)} --out {shlex.quote(str(run.directory or 'runs/FILE'))}"


def audit_command(run: Run) -> str:
    """The command that audits all private algorithms of a sweep."""
    if not run.toml:
        return "jaxbandits audit MODULE:FACTORY --out runs/audit"
    return f"jaxbandits audit {_file(run)} --out {shlex.quote(str((run.directory or Path('runs/FILE')) / 'audit'))}"


def page_again(runs: list[Run], path: Path) -> str:
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
