"""What fixes a cell's results, as a key: equal keys mean equal bits.

A key is the sha256 of canonical JSON: the algorithm's version and numbers, the environment, the adversaries, horizon, checkpoint
times, dtype, JAX and platform. Chunk sizes, memory, devices and what else runs beside it are no part of it, so another
machine, more seeds, more grid values and new algorithms all find what is finished. The package's own code enters by its
version numbers; a user's functions enter by their compiled code, so that an edit is never answered with old results.
"""

import functools
import hashlib
import json
from types import CodeType, FunctionType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.sweeps.plan import Plan

SCHEMA = 1  # of keys and files; raise it when the engine's own arithmetic changes results


def keys_of(plan: Plan, platform: str) -> list[str]:
    """The key of every cell of a plan."""
    import jaxlib

    common = {
        "schema": SCHEMA,
        "dtype": plan.dtype,
        "jax": [jax.__version__, jaxlib.__version__],
        "platform": platform,
    }
    times = {h: canonical(t) for h, t in plan.times.items()}
    parts: dict = {}  # cells share environments: each is described once

    def part(x):
        if id(x) not in parts:
            parts[id(x)] = canonical(x)
        return parts[id(x)]

    found = []
    for cell in plan.cells:
        names = ("environment", "reward_adversary", "message_adversary")
        content = {name: part(getattr(cell, name)) for name in names}
        content |= {"algorithm": canonical(cell.algorithm), "horizon": cell.horizon, "times": times[cell.horizon]}
        text = json.dumps(common | content, sort_keys=True, separators=(",", ":"))
        found.append(hashlib.sha256(text.encode()).hexdigest())
    return found


def canonical(x) -> Any:
    """Anything a part of a sweep may hold, as JSON that is equal exactly where it means the same."""
    if isinstance(x, Algorithm):
        numbers = [canonical(leaf) for leaf in jax.tree.leaves(x.params)]
        return [canonical(x.version), numbers, canonical(x.schedule), foreign_code(x.program)]
    if isinstance(x, Environment):
        numbers = [canonical(leaf) for leaf in jax.tree.leaves(x.params)]
        return [x.version, canonical(x.config), numbers, canonical(x.facts.get("means")), foreign_code(x.world)]
    if isinstance(x, Adversary):
        numbers = [canonical(leaf) for leaf in jax.tree.leaves(x.params)]
        return [x.version, canonical(x.config), numbers, foreign_code(x.attack)]
    if x is None or isinstance(x, str | bool | np.bool_):
        return bool(x) if isinstance(x, np.bool_) else x
    if isinstance(x, int | float | np.number) or hasattr(x, "__array__"):
        return _numbers(np.asarray(x))
    if isinstance(x, dict):
        return {str(k): canonical(v) for k, v in x.items()}
    if isinstance(x, functools.partial):
        return [canonical(x.func), canonical(x.args), canonical(x.keywords)]
    if isinstance(x, list | tuple):
        return _rectangular(x) or [canonical(v) for v in x]
    if callable(x):
        name = f"{getattr(x, '__module__', '')}.{getattr(x, '__qualname__', type(x).__name__)}"
        return [name, foreign_code(x)]
    return f"{type(x).__module__}.{type(x).__qualname__}"


def _rectangular(x):
    """A list of numbers means the same as an array of them."""
    try:
        array = np.asarray(x)
    except ValueError:
        return None
    return _numbers(array) if array.size and array.dtype.kind in "iuf" else None


def _numbers(x: np.ndarray):
    if x.dtype.kind in "iu" and np.all(np.abs(x.astype(np.float64)) < 2**53):
        x = x.astype(np.float64)  # 1 and 1.0 are one number
    elif x.dtype.kind == "f":
        x = x.astype(np.float64)
    if x.ndim == 0 and x.dtype.kind == "f":
        return float(x).hex()
    return [list(x.shape), x.dtype.str, hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()]


def foreign_code(x) -> list[str]:
    """Digests of the users' functions that `x` reaches: a function, or a tuple of functions such as a Program."""
    found: list[str] = []
    _walk(x, found, set())
    return sorted(found)


def _walk(x, found: list[str], seen: set[int]) -> None:
    if id(x) in seen:
        return
    seen.add(id(x))
    x = getattr(x, "__wrapped__", x)  # the function inside `jit`, `cache` and `wraps`
    if isinstance(x, functools.partial):
        _walk((x.func, x.args, tuple(x.keywords.values())), found, seen)
    elif isinstance(x, tuple | list):
        for item in x:
            _walk(item, found, seen)
    elif isinstance(x, FunctionType):
        inside = [cell.cell_contents for cell in x.__closure__ or () if _filled(cell)]
        if not _is_library(x):
            found.append(hashlib.sha256(repr(_function(x, inside)).encode()).hexdigest())
            inside += [x.__globals__[n] for n in _names(x.__code__) if _same_home(x, x.__globals__.get(n))]
        _walk(inside, found, seen)


def _filled(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that is bound later
        return False


def _is_library(function: FunctionType) -> bool:
    """Libraries, this one included, speak for themselves through their version numbers."""
    path = function.__code__.co_filename
    home = (function.__module__ or "").partition(".")[0]
    return home == __name__.partition(".")[0] or "site-packages" in path or path.startswith("<frozen")


def _same_home(function: FunctionType, other) -> bool:
    return isinstance(other, FunctionType) and not _is_library(other) and other.__module__ == function.__module__


def _function(function: FunctionType, inside: list) -> list:
    named = {n: function.__globals__[n] for n in _names(function.__code__) if n in function.__globals__}
    plain = {n: _plain(v) for n, v in named.items() if not isinstance(v, ModuleType) and not callable(v)}
    defaults = [_plain(v) for v in (function.__defaults__ or ())]
    keywords = {k: _plain(v) for k, v in (function.__kwdefaults__ or {}).items()}
    return [_code(function.__code__), [_plain(v) for v in inside], sorted(plain.items()), defaults, keywords]


def _plain(x):
    """A value a function closes over; functions in it are walked on their own."""
    if callable(x) or (isinstance(x, tuple) and any(callable(v) for v in x)):
        return "function"
    return canonical(x)


def _names(code: CodeType) -> list[str]:
    inner = [name for c in code.co_consts if isinstance(c, CodeType) for name in _names(c)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _code(code: CodeType) -> list:
    def constant(c):
        if isinstance(c, CodeType):
            return _code(c)
        return sorted(map(repr, c)) if isinstance(c, frozenset) else repr(c)  # a set has no order of its own

    constants = [constant(c) for c in code.co_consts]
    return [code.co_code.hex(), constants, code.co_names, code.co_varnames]
