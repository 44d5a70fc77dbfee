"""Functions of a lane that are traced once, so that what names a program is what runs.

A user's function may compute something else whenever it is traced: it may read a setting, a clock, a counter or a file.
`Traces` keeps its first trace for given shapes. The trace that names a lane (`sweeps.identity`) and the programs of
calls over many lanes are then made of the same operations.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
from jax.extend.core import jaxpr_as_fun

F = TypeVar("F", bound=Callable[..., Any])


class Traces:
    """The first traces of one lane's functions. All are equal: a hash of them tells parts apart (`Parts.traced`)."""

    def __init__(self) -> None:
        self._traces: dict[Any, _Trace] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traces)

    def __hash__(self) -> int:
        return hash(Traces)

    def of(self, function: Callable[..., Any], parts: Any, args: tuple[Any, ...]) -> Any:
        """`function(parts, *args)` by its first trace for such arguments. Numbers of Python among them are static."""
        leaves, structure = jax.tree.flatten(args)
        arrays, static = _divided(leaves)
        key = function, structure, repr(static), tuple(map(jax.typeof, arrays))
        if key not in self._traces:

            def of_leaves(*arrays: Any) -> Any:
                return function(parts, *jax.tree.unflatten(structure, _joined(arrays, static)))

            self._traces[key] = _Trace(of_leaves, arrays)
        return self._traces[key](arrays)


class _Trace:
    """A function of arrays, traced. Numbers of Python that it returns are returned as they are."""

    def __init__(self, function: Callable[..., Any], arrays: list[Any]) -> None:
        def traced(*arrays: Any) -> list[Any]:
            leaves, self.structure = jax.tree.flatten(function(*arrays))
            results, self.static = _divided(leaves)
            return results

        self.program = jax.make_jaxpr(traced)(*map(jax.typeof, arrays))

    def __call__(self, arrays: list[Any]) -> Any:
        return jax.tree.unflatten(self.structure, _joined(jaxpr_as_fun(self.program)(*arrays), self.static))


def _divided(leaves: list[Any]) -> tuple[list[Any], list[tuple[int, Any]]]:
    """Arrays, and numbers of Python with their places."""
    static = [(i, x) for i, x in enumerate(leaves) if type(x) in (bool, int, float)]
    return [x for x in leaves if type(x) not in (bool, int, float)], static


def _joined(arrays: Any, static: list[tuple[int, Any]]) -> list[Any]:
    leaves = list(arrays)
    for i, x in static:
        leaves.insert(i, x)
    return leaves


def traced_once(function: F) -> F:
    """A function of parts, and of arrays of one lane, that goes by its first trace where the parts keep traces."""

    @functools.wraps(function)
    def call(parts: Any, *args: Any) -> Any:
        return function(parts, *args) if parts.traces is None else parts.traces.of(function, parts, args)

    return cast(F, call)
