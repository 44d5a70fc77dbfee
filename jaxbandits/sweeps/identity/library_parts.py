"""Parts of this package, described by their versions and by the arguments that differ from their defaults."""

import functools
import hashlib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.validation import Arguments, unwrapped

_LIBRARY = __name__.partition(".")[0]


class Altered(Exception):
    """Something is not a part of this package with arguments of plain values."""


def is_altered(*parts: Any) -> bool:
    """Whether any of these parts is anything else than what a factory of this package returns for plain arguments.

    Then only its traced program says what it computes, even where a user replaced no more than a number of it.
    Whether a user's function runs in a part is another question: `contract.runs_own_code`.
    """
    try:
        for part in parts:
            describe_part(part)
    except Altered:
        return True
    return False


def describe_part(part: Algorithm | Environment | Adversary | None) -> list[Any] | None:
    """The versions and arguments of a part of this package.

    Altered where the part is a user's, was changed since its factory returned it, or holds a part or function of a
    user's.
    """
    if part is None:
        return None
    config = getattr(part, "config", None)
    if not isinstance(config, Arguments) or not _in_package(config.home) or not config.describes(part):
        raise Altered
    version = version_numbers(part.version) if isinstance(part, Algorithm) else part.version
    return [config["name"], version, _arguments(config, config.defaults)]


def version_numbers(version: tuple[Any, ...]) -> list[Any]:
    """The version numbers in an algorithm's `version`, its own and those of the algorithms it wraps."""
    name, number, static = version
    return [name, number, *(version_numbers(x) for x in _wrapped(static))]


def _wrapped(x: Any) -> Iterator[tuple[Any, ...]]:
    """The versions inside a version's static values."""
    if (
        isinstance(x, tuple)
        and len(x) == 3
        and isinstance(x[0], str)
        and isinstance(x[1], int)
        and isinstance(x[2], tuple)
    ):
        yield x
    elif isinstance(x, tuple):
        for item in x:
            yield from _wrapped(item)


def _arguments(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Arguments that differ from their defaults."""
    described = {key: _value(x) for key, x in given.items() if key != "name"}
    return {key: x for key, x in described.items() if key not in defaults or x != _default(defaults[key])}


def _default(x: Any) -> Any:
    try:
        return _plain_default(x)
    except TypeError:  # not hashable
        return _value(x)


@functools.lru_cache(maxsize=4096, typed=True)
def _plain_default(x: Any) -> Any:
    return _value(x)


def _value(x: Any) -> Any:
    """An argument as JSON: 1, 1.0 and np.float32(1) are one number, a list of numbers is the array."""
    if x is None or isinstance(x, str | bool | np.bool_):
        return bool(x) if isinstance(x, np.bool_) else x
    if isinstance(x, Algorithm | Environment | Adversary):
        return describe_part(x)
    if isinstance(x, functools.partial) or callable(x):
        return _factory(x)
    if isinstance(x, range):
        x = list(x)
    if isinstance(x, Fraction) and float(x) == x:
        x = float(x)
    if isinstance(x, tuple | list):
        if (array := _rectangular(x)) is not None:
            return array
        return ["list", *(_value(item) for item in x)]
    if isinstance(x, dict):
        return {"named": [[_value(key), _value(item)] for key, item in x.items()]}
    if isinstance(x, int | float | np.generic) or hasattr(x, "__array__"):
        return numbers(np.asarray(x))
    raise Altered


def _factory(x: Any) -> list[Any]:
    """A factory of this package, with the arguments bound to it."""
    function, bound, plain = unwrapped(x)
    itself: Any = getattr(function, "itself", None)
    if not plain or itself is None or itself is not function or not _in_package(function.home):
        raise Altered
    return ["factory", function.__name__, _arguments(bound, function.defaults)]


def _in_package(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == _LIBRARY


def _rectangular(x: Any) -> Any:
    """A rectangular list of numbers as `numbers` describes it, None for other lists."""
    try:
        array = np.asarray(x)
    except ValueError:
        return None
    return numbers(array) if array.size and array.dtype.kind in "biuf" else None


def numbers(x: np.ndarray[Any, Any]) -> str | list[Any]:
    """An array as JSON, converted to float64 where that loses nothing: equal numbers of two types are one."""
    if x.dtype.kind in "iu" and np.all(np.abs(x.astype(np.float64)) < 2**53):
        x = x.astype(np.float64)
    elif x.dtype.kind == "f":
        x = x.astype(np.float64)
    elif x.dtype.kind == "O":
        raise Altered
    return float(x).hex() if x.ndim == 0 and x.dtype.kind == "f" else bits(x)


def bits(x: np.ndarray[Any, Any]) -> list[Any]:
    """An array exactly as it is: shape, type and a sha256 of its content."""
    return [list(x.shape), x.dtype.str, hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()]
