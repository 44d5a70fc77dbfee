"""A name for what this package's own functions compute, found without tracing them.

A function of this package is named by where it is defined, by its byte code and by the values it closes over: the
static arguments that its builder was called with. What else it reads is text of this package, and a hash of all of it
stands beside the names (`sources`). A function of anyone else has no such name.
"""

import functools
import hashlib
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

PACKAGE = Path(__file__).resolve().parents[2]
_LIBRARY = PACKAGE.name
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
# When this process began to read the package: a file that changed later may not be the one that was loaded.
_LOADED = time.time()


class Foreign(Exception):
    """Something is neither this package's function nor a plain value."""


def name_of(value: Any) -> str | None:
    """A name for functions of this package and for plain values, alone or together in tuples; None for others.

    >>> from jaxbandits.numerics import argmax
    >>> name_of((argmax, 3)) == name_of((argmax, 3)), name_of((argmax, 3)) == name_of((argmax, 4))
    (True, False)
    >>> import json
    >>> name_of(json.dumps) is None
    True
    """
    sha = hashlib.sha256()
    try:
        for text in _texts(value, {}):
            sha.update(text.encode() + b"\0")
    except Foreign:
        return None
    return sha.hexdigest()


def sources() -> str | None:
    """A hash of all texts of this package; None where one changed while this process ran.

    Then the functions in memory may not be those of the files.
    """
    texts, changed = _sources()
    return None if changed >= _LOADED else texts


@functools.cache
def _sources() -> tuple[str, float]:
    """The hash, and when the last of the files changed: in content, name or place."""
    sha, changed = hashlib.sha256(), 0.0
    for path in sorted(PACKAGE.rglob("*.py")):
        content, about = path.read_bytes(), path.stat()
        sha.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\0".encode() + content)
        changed = max(changed, about.st_mtime, about.st_ctime)
    return sha.hexdigest(), changed


def _texts(x: Any, met: dict[int, int]) -> Iterator[str]:
    """What fixes a value, as pieces of text. met: numbers of the functions that were met, by their ids."""
    if isinstance(x, _PLAIN):
        yield f"{type(x).__name__} {x!r}"
    elif isinstance(x, np.ndarray | np.generic | jax.Array) and not isinstance(x, jax.core.Tracer):
        array = np.asarray(x)
        if array.dtype.hasobject:
            raise Foreign
        yield f"array {array.shape} {array.dtype.str} {hashlib.sha256(array.tobytes()).hexdigest()}"
    elif isinstance(x, np.dtype):
        yield f"dtype {x.str}"
    elif isinstance(x, type):
        yield f"class {_place(x)}"
    elif isinstance(x, tuple | list):
        yield f"{_place(type(x))} {len(x)}"
        for item in x:
            yield from _texts(item, met)
    elif type(x) is dict:
        yield f"dict {len(x)}"
        for key, item in x.items():
            yield from _texts(key, met)
            yield from _texts(item, met)
    elif isinstance(x, frozenset):
        yield f"frozenset {sorted(map(repr, x))}"
    elif isinstance(x, functools.partial):
        yield "partial"
        yield from _texts((x.func, x.args, x.keywords), met)
    elif isinstance(x, types.FunctionType):
        yield from _function(x, met)
    elif hasattr(x, "__wrapped__"):  # functions under `jax.jit`, and those with a rule of their own for `vmap`
        yield f"wrapped by {_place(type(x))}"
        yield from _texts(x.__wrapped__, met)
        if (rule := getattr(x, "vmap_rule", None)) is not None:
            yield from _texts(rule, met)
    else:
        raise Foreign


def _function(function: types.FunctionType, met: dict[int, int]) -> Iterator[str]:
    if id(function) in met:  # functions may call themselves
        yield f"again {met[id(function)]}"
        return
    met[id(function)] = len(met)
    yield f"function {_place(function)}"
    yield from _code(function.__code__)
    try:
        closed_over = tuple(cell.cell_contents for cell in function.__closure__ or ())
    except ValueError:  # a variable that is not bound yet
        raise Foreign from None
    yield from _texts((closed_over, function.__defaults__, function.__kwdefaults__), met)


def _code(code: types.CodeType) -> Iterator[str]:
    """What tells functions apart that are defined in one place, such as two lambdas of one line."""
    yield f"{code.co_firstlineno} {code.co_code.hex()} {code.co_names} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _place(x: Any) -> str:
    """Where a function or class is defined. Foreign unless that is this package, or a release with a version number."""
    module, name = x.__module__, x.__qualname__
    top = str(module).partition(".")[0]
    known = (_LIBRARY,) if isinstance(x, types.FunctionType) else (_LIBRARY, "builtins", "numpy", "jax", "jaxlib")
    if top not in known or (isinstance(x, type) and "<locals>" in name):
        raise Foreign
    return f"{module}.{name}"
