"""TOML files that hold the arguments of `jb.sweep`."""

import contextlib
import functools
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from jaxbandits import algorithms, environments
from jaxbandits.environments.labelled_rows import read_labelled, read_losses, read_table
from jaxbandits.environments.logs import read_logged
from jaxbandits.formatting import nearest, show
from jaxbandits.recipe import recipe_of
from jaxbandits.strangers import foreign
from jaxbandits.sweeps.arguments import PART_KINDS, PARTS, check_text, own_factory, seed_range, short_text
from jaxbandits.sweeps.until import Until, refuse_until, until
from jaxbandits.validation import DATA, READERS, integer, path_of, prefix_errors

# The keys at the top level of a file, and those of its table [figure].
TOP_KEYS = (
    "horizon", "seeds", "checkpoints", "dtype", "memory", "environment", "reward_adversary", "message_adversary",
    "algorithm", "grid", "points", "tied", "figure", "caption", "tune", "offline", "folder",
)  # fmt: skip
FIGURE_KEYS = ("against", "dotted", "reward")
TUNE_KEYS = "space over unknown seeds report_seeds method trials objective quantile seed environments".split()
RULES = ("missing", "missing_words")  # how a file is read
UNTIL_KEYS = ("until", "error", "most", "block")  # of a table `seeds`
RANGES = ("linear", "log", "int")


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Keyword arguments of `sweep`, and `figure` and `caption`, from a TOML file. Errors name the file and the key."""
    path = path_of(path)
    return config_arguments(parse_toml(path), path)


def read_tuning(path: str | os.PathLike[str], seeds: int | None = None) -> dict[str, Any]:
    """Arguments of `tune` from a TOML file that has a table `[tune]`. Errors name the file and the key.

    What the table does not give, the file does: its seeds are the report seeds, or as many after the table's own where
    they would meet, and its grid is `over`. seeds: how many in place of the file's.
    """
    path = path_of(path)
    raw = parse_toml(path)
    settings, table = config_arguments(raw, path), raw.get("tune")
    if table is None:
        raise ValueError(f"{path}: 'tune' is missing: a table [tune] with a table [tune.space] says what is chosen")
    if not isinstance(table, dict) or not isinstance(table.get("space"), dict):
        raise ValueError(f"{path}: tune needs a table [tune.space], such as learning_rate = [0.001, 1.0, 'log']")
    _refuse_others(f"{path}: tune has no key", table, TUNE_KEYS)
    if seeds is not None:
        table["report_seeds"] = integer("--seeds", seeds, 1)
    if "points" in settings:
        raise ValueError(f"{path}: points cannot be tuned for: give a grid, or a table [tune.over]")
    own = ("grid", "seeds", "figure", "caption")  # `tune` takes the first two as `over` and `report_seeds`
    arguments = {key: x for key, x in settings.items() if key not in own}
    arguments |= {"report_seeds": settings["seeds"], "over": settings["grid"]} | table
    source = _source(raw, path)
    for key, values in (space := _flat(table["space"], source, where="tune.space")).items():
        # [low, high, kind] is a range, any other list its values
        if isinstance(values, list) and len(values) == 3 and values[2] in RANGES:
            space[key] = values if any(isinstance(x, str) for x in values[:2]) else tuple(values)
    arguments["space"] = space
    if "over" in table:
        if not isinstance(table["over"], dict):
            raise ValueError(f"{path}: tune.over = {show(table['over'])} must be a table")
        arguments["over"] = _flat(table["over"], source, where="tune.over")
    for key in ("report_seeds", "seeds"):
        if key in table and (key == "seeds" or type(table[key]) is not int):
            arguments[key] = _seeds_from_toml(table[key], path)
        refuse_until(arguments.get(key), f"{path}: tune.{key}", "give the table [tune] a number of them, or a range")
    searched, count = arguments.get("seeds"), raw["seeds"]
    if "report_seeds" not in table and type(count) is int and searched is not None and searched.start < count:
        arguments["report_seeds"] = count
    family = arguments.pop("environments", None)
    if family is not None:
        if not isinstance(family, dict):
            raise ValueError(f"{path}: tune.environments must be tables, [tune.environments.NAME]")
        arguments["environment"] = {}
        for name, part in family.items():
            built = _part_from_table(part, environments, f"tune.environments.{name}", source)
            arguments["environment"][name] = built
    return arguments


def format_toml(raw: dict[str, Any]) -> str:
    """The text of a TOML file, without what is None. ValueError for what TOML cannot write."""
    import tomlkit

    def plain_value(x: object) -> Any:
        if isinstance(x, dict):
            return {key: plain_value(value) for key, value in x.items() if value is not None}
        if isinstance(x, list | tuple):
            return [*map(plain_value, x)]
        return x.tolist() if isinstance(x, np.ndarray | np.generic) else x

    return tomlkit.dumps(plain_value(raw)).rstrip()


def read_file(path: Path) -> bytes:
    """What stands in a file, once: a pipe is empty by the next time, and a file may be edited. ValueError otherwise."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # a directory, no permission, a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path}: cannot be read ({reason}): give a TOML file") from None


def read_settings(words: list[str]) -> dict[str, Any]:
    """Arguments of a command line, each KEY=VALUE with a value of TOML, or a text that needs no quotes.

    >>> read_settings(["epsilon=1", "tree=blt", "means=[0.2, 0.8]"])
    {'epsilon': 1, 'tree': 'blt', 'means': [0.2, 0.8]}
    """
    found = dict[str, Any]()
    for word in words:
        key, _, value = (x.strip() for x in word.partition("="))
        if not key.isidentifier() or not value or key in found:
            twice = ": it is given twice" if key in found else ": write KEY=VALUE, such as epsilon=1"
            raise ValueError(f"--set {word}{twice}")
        try:
            found |= tomllib.loads(f"{key} = {value}")
        except tomllib.TOMLDecodeError:
            found[key] = value
    return found


def parse_toml(path: Path, read: bytes | None = None) -> dict[str, Any]:
    """A TOML file as a dict. It is in UTF-8 with or without a byte-order mark; ValueError where it cannot be read.

    read: what stands in it, where that was read already.
    """
    try:
        content = (read_file(path) if read is None else read).decode("utf-8-sig")
        return tomllib.loads(content)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not valid TOML: it is not in UTF-8 ({error.reason} at byte {error.start})") from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        text = content.splitlines()[int(line[1]) - 1].strip() if line else ""
        word = re.search(r"\b(NaN|NAN|Inf|INF|Infinity|infinity|True|False|None|null)\b", text)
        hint = f"; TOML writes nan, inf, true and false so, and leaves out what is none, not {word[1]}" if word else ""
        table = re.match(r"\[+\s*(algorithm|tied)\s*\]", text)
        hint = f"; each of several is [[{table[1]}]], in two brackets" if table else hint
        raise ValueError(f"{path}: not valid TOML: {' '.join(str(error).split())}{hint}") from None


class ConfigSource(NamedTuple):
    """Where the parts of a configuration come from. As text it is the file."""

    file: Path
    folder: Path  # where the data and the modules lie that the file names

    def __str__(self) -> str:
        return str(self.file)


def is_passing(file: Path) -> bool:
    """Whether a file is a pipe or a process's own input, which lies nowhere and is empty the next time."""
    return file.is_fifo() or bool(re.match(r"/dev/(stdin$|fd/)|/proc/", file.absolute().as_posix()))


def _source(raw: dict[str, Any], file: Path) -> ConfigSource:
    here = Path() if is_passing(file) else file.parent
    if "folder" not in raw:
        return ConfigSource(file, here)
    with prefix_errors(str(file)):
        return ConfigSource(
            file, (here if is_passing(file) else file.resolve().parent) / path_of(raw["folder"], "folder")
        )


def config_for_directory(file: Path, content: bytes, directory: Path, seeds: int | None = None) -> bytes:
    """The content of a configuration that runs from another directory: it says where its data and modules lie.

    A file that names neither stays as it is, byte for byte. content: as it was read. seeds: what was run in place of
    the file's.
    """
    import tomlkit

    raw = parse_toml(file, content)
    folder = _source(raw, file).folder.resolve()
    stays = folder == (directory / raw.get("folder", "")).resolve() or not _names_files(raw)
    if stays and seeds is None:
        return content
    document, first = tomlkit.parse(content.decode("utf-8-sig")), ""
    if seeds is not None:
        document["seeds"] = seeds
    if not stays:
        try:
            place = Path(os.path.relpath(folder, directory.resolve())).as_posix()
        except ValueError:  # another drive of Windows
            place = folder.as_posix()
        document.pop("folder", None)
        first = f"folder = {json.dumps(place, ensure_ascii=False)}  # of the data and modules named here\n"
    return f"{first}{tomlkit.dumps(document)}".encode()


def _names_files(x: object) -> bool:
    """Whether tables name data of the user's (`path`), or a module that may lie beside the file."""
    if isinstance(x, dict):
        return "path" in x or any(map(_names_files, x.values()))
    return any(map(_names_files, x)) if isinstance(x, list) else isinstance(x, str) and ":" in x


def config_arguments(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """What `read_config` returns, from the parsed TOML of a file, which errors name."""
    source = _source(raw, path)
    _refuse_others(f"{path}: unknown key", raw, TOP_KEYS)
    for key in ("horizon", "seeds", "environment", "algorithm"):
        if key not in raw:
            raise ValueError(f"{path}: {key!r} is missing")
    arguments: dict[str, Any] = {k: raw[k] for k in ("horizon", "checkpoints", "dtype", "memory") if k in raw}
    arguments["seeds"] = _seeds_from_toml(raw["seeds"], path)
    for slot in PARTS:
        if slot in raw:
            arguments[slot] = _part_from_table(raw[slot], PART_KINDS[slot][0], slot, source)
    tables = raw["algorithm"] if isinstance(raw["algorithm"], list) else [raw["algorithm"]]
    factories: dict[str, Any] = {}
    for i, table in enumerate(tables):
        if not isinstance(table, dict | str):
            raise ValueError(f"{path}: algorithm[{i}] = {show(table)} must be a name or a table, [[algorithm]]")
        table = {"name": table} if isinstance(table, str) else dict(table)
        label = table.pop("label", table.get("name", ""))
        if not isinstance(label, str) and label != table.get("name"):
            raise ValueError(f"{path}: algorithm[{i}]: label = {show(label)} must be a string")
        if label in factories:
            raise ValueError(f"{path}: two algorithms have the label {label!r}: give them different labels")
        factories[label] = _part_from_table(table, algorithms, f"algorithm[{i}]", source)
    arguments["algorithms"] = factories
    for key, kind, what in (("grid", dict, "a table"), ("figure", dict, "a table"), ("caption", str, "a string")):
        if not isinstance(raw.get(key, kind()), kind):
            raise ValueError(f"{path}: {key} = {show(raw[key])} must be {what}")
    grid = dict(raw.get("grid", {}))
    tables = raw.get("tied", [])
    for i, tied in enumerate(tables if isinstance(tables, list) else [tables]):
        lists = isinstance(tied, dict) and {key for key, x in tied.items() if isinstance(x, list)}
        if lists != {"keys", "values"} or len(tied) > 2:
            raise ValueError(f"{path}: tied[{i}] needs exactly 'keys' and 'values', both lists")
        grid[tuple(tied["keys"])] = tied["values"]
    arguments["grid"], figure = _flat(grid, source), raw.get("figure", {})
    arguments |= {key: raw[key] for key in ("points", "figure", "caption") if key in raw}
    for key, words in [*(("figure", words) for words in figure.values()), ("caption", raw.get("caption"))]:
        check_text(f"{path}: {key}", words if isinstance(words, str) else "")
    _refuse_others(f"{path}: figure has no key", figure, FIGURE_KEYS)
    if not isinstance(figure.get("reward", False), bool):
        raise ValueError(f"{path}: figure.reward = {show(figure['reward'])} must be true or false")
    return arguments


def _seeds_from_toml(seeds: object, path: Path) -> range | Until:
    """A list of two numbers is the range [a, b), a table the rule of `until`; anything else is as in Python."""
    if isinstance(seeds, dict):
        _refuse_others(f"{path}: seeds has no key", seeds, UNTIL_KEYS)
        if "until" not in seeds:
            raise ValueError(f"{path}: seeds needs until, the pairs of labels that are compared: until = [['a', 'b']]")
        with prefix_errors(f"{path}: seeds"):
            return until(**{"comparisons" if key == "until" else key: x for key, x in seeds.items()})
    if isinstance(seeds, list) and len(seeds) == 2 and all(type(s) is int for s in seeds):
        seeds = range(*seeds)
    try:
        return seed_range(seeds)
    except ValueError as error:
        pair = "; in TOML [a, b] is the range from a to b - 1" if isinstance(seeds, range | list) else ""
        raise ValueError(f"{path}: {error}{pair}") from None


def _refuse_others(text: str, table: Iterable[str], known: Sequence[str]) -> None:
    """ValueError, which begins with the text, for a key that is not known."""
    for key in table:
        if key not in known:
            raise ValueError(f"{text} {key!r}{nearest(key, known)}; known keys: {', '.join(known)}")


@contextlib.contextmanager
def name_file_in_errors(path: Path, settings: dict[str, Any]) -> Iterator[None]:
    """A wrong value in the arguments from a file is an error that names the file and the table of the algorithm."""
    try:
        with prefix_errors(str(path)):
            yield
    except (TypeError, ValueError) as error:
        # a call of Python is no TOML
        text = re.sub(r"functools\.partial\([\w.:]+, ([^)]*=\.\.\.)\)", r"write \1 in its table", str(error))
        for i, label in enumerate(settings["algorithms"]):
            if text.startswith(begun := f"{path}: {label}: "):
                text = f"{path}: algorithm[{i}] ({label}): {text.removeprefix(begun)}"
        if text != str(error):
            raise type(error)(text) from error
        raise


def _flat(grid: dict[Any, Any], path: ConfigSource, prefix: str = "", where: str = "grid") -> dict[Any, Any]:
    """A grid with dotted keys, which TOML reads as tables, joined again. A table of lists stays: it names arrays."""
    out: dict[Any, Any] = {}
    for key, value in grid.items():
        if isinstance(key, str) and key.rpartition(".")[2] == "base" and isinstance(value, list):
            parts = [_part_from_table(v, algorithms, f"{where}.{prefix}{key}", path) for v in value]
            names = [v if isinstance(v, str) else short_text(p) for v, p in zip(value, parts, strict=True)]
            out[prefix + key] = dict(zip(names, parts, strict=True))
            if len(out[prefix + key]) < len(value):
                raise ValueError(f"{path}: {where}.{prefix}{key} holds a value twice")
        elif isinstance(key, tuple) or isinstance(value, list):
            out[key if isinstance(key, tuple) else prefix + key] = value
        elif isinstance(value, dict):
            # below a part's argument, as in `[grid.environment] means = {easy = [...]}`, a table names arrays
            below = "." in prefix + key and key.rpartition(".")[2] != "base"
            if below and all(isinstance(v, list) for v in value.values()):
                out[prefix + key] = value
                continue
            out.update(_flat(value, path, f"{prefix}{key}.", where))
        else:
            raise ValueError(f"{path}: {where}.{prefix}{key} = {show(value)} must be a list of values")
    return out


def _part_from_table(table: object, module: ModuleType, where: str, path: ConfigSource) -> functools.partial[Any]:
    """A factory with its arguments bound, from {name = ..., ...}."""
    if isinstance(table, str):
        table = {"name": table}
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise ValueError(f"{path}: {where} needs a name, for example name = {module.__all__[0]!r}")
    name, settings = table["name"], {k: v for k, v in table.items() if k != "name"}
    if ":" in name:  # the user's own factory, module:attribute, beside the file or importable
        with prefix_errors(f"{path}: {where}"):
            factory = _own_factory(name, settings, path.folder)
    elif name in module.__all__:
        factory = getattr(module, name)
    else:
        known = ", ".join(module.__all__)
        raise ValueError(f"{path}: {where}: no {name!r}{nearest(name, module.__all__)}; known: {known}")
    names = recipe_of(factory).arguments
    for key, text in settings.items():
        if name in READERS and key in DATA and isinstance(text, str):
            raise ValueError(f"{path}: {where}.{key} = {show(text)} is a text: of a file, write path = {show(text)}")
    if "path" in settings and "path" not in names:
        settings = _read_data(settings, names, where, path)
    for key in settings:
        if key not in names:
            read = f", or path{', label' * ('labels' in names)}, {', '.join(RULES)}" if name in READERS else ""
            unknown = f"{where} ({name}) has no argument {key!r}{nearest(key, [*names, *read.split(', ')])}"
            raise ValueError(f"{path}: {unknown}; it takes {', '.join(names)}{read}")
    for key in ("base", "losses"):
        if isinstance(settings.get(key), dict | str):
            kind = algorithms if key == "base" else environments
            inner = _part_from_table(settings[key], kind, f"{where}.{key}", path)
            settings[key] = inner if key == "base" else inner()
    if isinstance(settings.get("log"), dict):
        if "path" not in settings["log"]:
            raise ValueError(f"{path}: {where}.log needs path, the file of the log")
        settings["log"] = _read_data(settings["log"], ("log",), f"{where}.log", path)["log"]
    if isinstance(settings.get("bases"), list):
        bases = enumerate(settings["bases"], start=1)
        settings["bases"] = [_part_from_table(base, algorithms, f"{where}.bases {i}", path) for i, base in bases]
    return functools.partial(factory, **settings)


def _own_factory(name: str, settings: dict[str, Any], folder: Path) -> Any:
    """A user's factory, or learner where the settings say `foreign`; what is about that leaves the settings."""
    factory = own_factory(name, folder)
    if (stranger := settings.pop("foreign", False)) not in (True, False):
        raise ValueError(f"foreign = {show(stranger)} must be true or false")
    about = {key: settings.pop(key) for key in ("plays_on", "version") if stranger and key in settings}
    return foreign(factory, **about) if stranger else factory


def _read_data(settings: dict[str, Any], names: Iterable[str], where: str, path: ConfigSource) -> dict[str, Any]:
    """The settings with the data of the file `path` in place of its name."""
    settings = dict(settings)
    with prefix_errors(str(path)):
        file = path.folder / path_of(settings.pop("path"), f"{where}.path")
    rules = {key: settings.pop(key) for key in RULES if key in settings}
    if "log" in names:
        with prefix_errors(f"{path}: {where}"):
            return {"log": read_logged(file, **rules, **settings)}
    if "rewards" in names:
        if "rewards" not in settings:
            raise ValueError(f"{path}: {where} needs rewards = the names of the columns that arms pay in {file}")
        features, rewards = read_table(file, rewards=settings.pop("rewards"), **rules)
        return {"features": features, "rewards": rewards, **settings}
    if "losses" in names:
        return {"losses": read_losses(file, **rules), **settings}
    if "labels" in names:
        if "label" not in settings:
            raise ValueError(f"{path}: {where} needs label = the name of the column to predict in {file}")
        features, labels = read_labelled(file, label=settings.pop("label"), **rules)
        return {"features": features, "labels": labels, **settings}
    raise ValueError(f"{path}: {where} takes no path")
