"""Files of agents: arrays and a JSON text in one `.npz`, and no pickle, so that to read one runs nobody's code.

Of an algorithm they hold the name of its factory and its arguments, where these are the package's own and plain values.
"""

import functools
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandits import algorithms
from jaxbandits.protocol import Algorithm
from jaxbandits.recipe import unwrap
from jaxbandits.sweeps.storage.store import write_whole
from jaxbandits.validation import Arguments
from jaxbandits.version import __version__

FORMAT = "jaxbandits agent 1"
PLAIN = (bool, int, float, str, type(None))


class _NotPlain(Exception):
    """A value that is no plain data."""


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a file, at once or not at all. about: JSON values."""
    text = json.dumps({"format": FORMAT, "jaxbandits": __version__, "jax": jax.__version__, **about})
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, about=np.array(text), **{key: np.asarray(x) for key, x in arrays.items()})
    write_whole(path, content.getvalue(), "and save it again, what was there before is still there")


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `write` was given, and releases. ValueError for another file, or one of another release."""
    try:
        with np.load(path) as file:
            arrays = dict(file)
        about = json.loads(str(arrays.pop("about")))
        known = about["format"] == FORMAT
    except FileNotFoundError:
        raise ValueError(f"path = {str(path)!r}: there is no such file: agent.save(path) writes one") from None
    except (KeyError, OSError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"path = {str(path)!r} is no saved agent, or not the whole file: save it again") from None
    if not known or about["jaxbandits"] != __version__:
        there, remedy = about["jaxbandits"], "read it there and give state, as NumPy arrays, to jb.agent here"
        raise ValueError(f"{path} was saved by jaxbandits {there}, and this is {__version__}: {remedy}")
    return about, arrays


def describe_algorithm(algorithm: Algorithm) -> tuple[Any, dict[str, Any]]:
    """A factory of `jb.algorithms` and its arguments as JSON, arrays apart; None where it is not one, or changed."""
    config, arrays = algorithm.config, dict[str, Any]()
    again: Any = config.rebuild_of(algorithm) if isinstance(config, Arguments) else None
    try:
        return None if again is None else _plain(again, arrays), arrays
    except _NotPlain:
        return None, {}


def rebuild_algorithm(described: Any, arrays: Mapping[str, Any]) -> Algorithm:
    """The algorithm that `describe_algorithm` described."""
    built: Algorithm = _value(described, arrays)()
    return built


def _plain(x: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, PLAIN):
        return x
    if type(x) in (list, tuple):
        return {"list" if type(x) is list else "tuple": [_plain(item, arrays) for item in x]}
    if isinstance(x, dict):
        return {"dict": {str(key): _plain(item, arrays) for key, item in x.items()}}
    if hasattr(x, "__array__"):
        name = f"argument_{len(arrays)}"
        arrays[name] = np.asarray(x)
        if arrays[name].dtype.kind in "biuf":
            return {"array": name}
    elif callable(x):
        function, bound, _ = unwrap(x)
        name = getattr(function, "__name__", "")
        if name in algorithms.__all__ and getattr(algorithms, name) is function:
            return {"factory": name, "bound": {key: _plain(item, arrays) for key, item in bound.items()}}
    raise _NotPlain


def _value(x: Any, arrays: Mapping[str, Any]) -> Any:
    if not isinstance(x, dict):
        return x
    if "factory" in x:
        if x["factory"] not in algorithms.__all__:
            raise ValueError(f"{x['factory']!r} is no name of jb.algorithms: the file was changed")
        bound = {key: _value(item, arrays) for key, item in x["bound"].items()}
        return functools.partial(getattr(algorithms, x["factory"]), **bound)
    if "array" in x:
        return arrays[x["array"]]
    if "dict" in x:
        return {key: _value(item, arrays) for key, item in x["dict"].items()}
    kind, items = next(iter(x.items()))
    return (list if kind == "list" else tuple)(_value(item, arrays) for item in items)
