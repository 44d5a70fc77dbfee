"""What fixes a cell's results, as a key: equal keys mean equal bits.

A key is the sha256 of a description of the cell: the algorithm's version, numbers and functions, the environment, the
adversaries, horizon, checkpoint times, dtype, JAX and platform. Chunk sizes, memory, devices and what else runs beside it are
no part of it, so another machine, more seeds, more grid values and new algorithms all find what is finished. The functions of
this package and of installed libraries enter by name, since version numbers speak for them; functions of the user enter by
their compiled code and everything it uses, so that an edit is never answered with old results.
"""

import contextlib
import functools
import hashlib
import json
import pickle
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import jaxlib
import numpy as np

from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.sweeps.plan import Plan

SCHEMA = 1  # of keys and files; raise it when the engine's own arithmetic changes results


def keys_of(plan: Plan, platform: str) -> list[str]:
    """The key of every cell of a plan. ValueError where a user's function uses something that cannot be described."""
    describe = Description()
    common = {"about": versions(platform), "dtype": plan.dtype}
    times = {h: describe(t) for h, t in plan.times.items()}
    parts: dict = {}  # cells share environments: each is described once

    def part(x):
        if id(x) not in parts:
            parts[id(x)] = describe(x)
        return parts[id(x)]

    found = []
    for cell in plan.cells:
        names = ("environment", "reward_adversary", "message_adversary")
        content = {name: part(getattr(cell, name)) for name in names}
        content |= {"algorithm": describe(cell.algorithm), "horizon": cell.horizon, "times": times[cell.horizon]}
        found.append(_sha(common | content))
    return found


def versions(platform: str) -> list:
    """What the bits depend on beside the sweep itself."""
    return [SCHEMA, jax.__version__, jaxlib.__version__, platform]


def _sha(x) -> str:
    return hashlib.sha256(json.dumps(x, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Description:
    """Describes anything a part of a sweep may hold, as JSON that is equal exactly where it means the same.

    Among a part's arguments 1, 1.0 and a list of numbers mean what the array means. In code they differ, and so do two
    functions in another order.
    """

    def __init__(self):
        self.memo: dict[int, tuple[Any, str]] = {}  # functions already described, kept alive with their id
        self.stack: list[int] = []  # what is being described: code may refer to itself

    def __call__(self, x, code: bool = False, lenient: bool = False) -> Any:
        """code: inside a function. lenient: inside a library's function, where unknown things are no business of ours."""
        if isinstance(x, Algorithm):
            return [self(x.version), self(jax.tree.leaves(x.params)), self(x.schedule), self(x.program, True)]
        if isinstance(x, Environment):
            means = self(x.facts.get("means"))
            return [x.version, self(x.config), self(jax.tree.leaves(x.params)), means, self(x.world, True)]
        if isinstance(x, Adversary):
            return [x.version, self(x.config), self(jax.tree.leaves(x.params)), self(x.attack, True)]
        if x is None or isinstance(x, str | bool):
            return x
        if isinstance(x, int | float | complex | np.generic) or hasattr(x, "__array__"):
            return _numbers(np.asarray(x), code and type(x).__name__)
        if isinstance(x, bytes | range | slice | np.dtype) or x is Ellipsis:
            return repr(x)
        if id(x) in self.stack:
            return ["itself", len(self.stack) - self.stack.index(id(x))]
        self.stack.append(id(x))
        try:
            return self._compound(x, code, lenient)
        finally:
            self.stack.pop()

    def _compound(self, x, code: bool, lenient: bool):
        if isinstance(x, FunctionType):
            if id(x) not in self.memo:
                self.memo[id(x)] = (x, _sha(self._function(x)))
            return self.memo[id(x)][1]
        if isinstance(x, functools.partial):
            return ["partial", self(x.func, code), self(x.args, code), self(x.keywords, code)]
        if isinstance(x, MethodType):
            return ["method", self(x.__func__, code), self(x.__self__, code, lenient)]
        if isinstance(x, ModuleType):
            return ["module", x.__name__]
        if isinstance(x, tuple | list):
            if not code and (array := _rectangular(x)) is not None:
                return array
            return [type(x).__name__ if code else "list", *(self(v, code, lenient) for v in x)]
        if isinstance(x, dict):
            return {f"{type(k).__name__} {k}" if code else str(k): self(v, code, lenient) for k, v in x.items()}
        if isinstance(x, set | frozenset):
            return ["set", *sorted(json.dumps(self(v, code, lenient)) for v in x)]
        if isinstance(x, type):
            return [_name(x), {} if _is_library(x.__module__) else self._class(x)]
        if hasattr(x, "__wrapped__"):  # `jit`, `cache`, `custom_jvp`: not functions of Python, but around one
            return [_name(type(x)), self(x.__wrapped__, code)]
        if isinstance(x, BuiltinFunctionType | np.ufunc) or (callable(x) and _is_library(type(x).__module__)):
            return _name(x)
        if hasattr(x, "__dict__") and not _is_library(type(x).__module__):
            return [_name(type(x)), self._class(type(x)), self(vars(x), True)]
        if lenient:
            return _name(type(x))
        with contextlib.suppress(Exception):  # an object of a library: what it would be on disk
            return [_name(type(x)), hashlib.sha256(pickle.dumps(x, protocol=4)).hexdigest()]
        raise ValueError(
            f"a store must know what a function uses, and cannot tell {x!r:.80} of type {_name(type(x))} apart from another: "
            f"use numbers, text, arrays, functions, tuples and dicts, or leave store away"
        )

    def _class(self, x: type) -> dict:
        """The functions of a user's class, its own and inherited."""
        own = [c for c in x.__mro__ if not _is_library(c.__module__)]
        names = {n: v for c in reversed(own) for n, v in vars(c).items() if isinstance(v, FunctionType)}
        return {n: self(v, True) for n, v in sorted(names.items()) if not n.startswith("__") or n == "__call__"}

    def _function(self, x: FunctionType) -> list:
        closure = [c.cell_contents for c in x.__closure__ or () if _filled(c)]
        if _is_library(x.__globals__.get("__name__", "")):
            return [_name(x), [self(v, True, True) for v in closure if not isinstance(v, dict)]]
        used = {}
        for name in _names(x.__code__):
            value = x.__globals__.get(name)
            if isinstance(value, ModuleType) and not _is_library(
                value.__name__
            ):  # what it takes from a module of its own
                inside = {n: getattr(value, n) for n in _names(x.__code__) if hasattr(value, n)}
                used[name] = {n: self(v, True) for n, v in inside.items()}
            elif name in x.__globals__:
                used[name] = self(value, True)
        defaults = [self(v, True) for v in (x.__defaults__, x.__kwdefaults__)]
        return [_code(x.__code__), [self(v, True) for v in closure], used, defaults]


def _rectangular(x):
    """A list of numbers means the same as an array of them."""
    try:
        array = np.asarray(x)
    except ValueError:
        return None
    return _numbers(array, False) if array.size and array.dtype.kind in "iuf" else None


def _numbers(x: np.ndarray, kind):
    """Arguments: numbers become float64 where that loses nothing. In code, `kind` names the type and nothing is changed."""
    if kind:
        return [kind, list(x.shape), x.dtype.str, _bytes(x)]
    if x.dtype.kind in "iu" and np.all(np.abs(x.astype(np.float64)) < 2**53):
        x = x.astype(np.float64)  # 1 and 1.0 are one number
    elif x.dtype.kind == "f":
        x = x.astype(np.float64)
    if x.ndim == 0 and x.dtype.kind == "f":
        return float(x).hex()
    return bool(x) if x.ndim == 0 and x.dtype.kind == "b" else [list(x.shape), x.dtype.str, _bytes(x)]


def _bytes(x: np.ndarray) -> str:
    content = repr(x.tolist()).encode() if x.dtype.kind == "O" else np.ascontiguousarray(x).tobytes()
    return hashlib.sha256(content).hexdigest()


def _name(x) -> str:
    return f"{getattr(x, '__module__', None) or ''}.{getattr(x, '__qualname__', None) or getattr(x, '__name__', '')}"


@functools.cache
def _is_library(module: str) -> bool:
    """Installed libraries, this one and Python's own speak for themselves through their version numbers."""
    top = module.partition(".")[0]
    if top == __name__.partition(".")[0] or (top in sys.stdlib_module_names and top != "__main__"):
        return True
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def _filled(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that is bound later
        return False


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
