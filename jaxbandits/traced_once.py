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
        self.programs: dict[Any, Any] = {}  # function and shapes -> its trace, and the form of what it returns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traces)

    def __hash__(self) -> int:
        return hash(Traces)


def traced_once(function: F) -> F:
    """A function of parts, and of arrays of one lane, that goes by its first trace where the parts keep traces.

    Numbers of Python among its arguments are static, and those that it returns are returned as they are.
    """

    @functools.wraps(function)
    def call(parts: Any, *args: Any) -> Any:
        if parts.traces is None:
            return function(parts, *args)
        leaves, structure = jax.tree.flatten(args)
        arrays, static = _divided(leaves)
        key = function, structure, repr(static), tuple(map(jax.typeof, arrays))
        if key not in parts.traces.programs:
            form: Any = None

            def traced(*arrays: Any) -> list[Any]:
                nonlocal form
                results = function(parts, *jax.tree.unflatten(structure, _joined(arrays, static)))
                leaves, structure_of_results = jax.tree.flatten(results)
                returned, numbers = _divided(leaves)
                form = structure_of_results, numbers
                return returned

            program = jax.make_jaxpr(traced)(*map(jax.typeof, arrays))
            parts.traces.programs[key] = program, *form
        program, structure, static = parts.traces.programs[key]
        return jax.tree.unflatten(structure, _joined(jaxpr_as_fun(program)(*arrays), static))

    return cast(F, call)


def _divided(leaves: list[Any]) -> tuple[list[Any], list[tuple[int, Any]]]:
    """Arrays, and numbers of Python with their places."""
    static = [(i, x) for i, x in enumerate(leaves) if type(x) in (bool, int, float)]
    return [x for x in leaves if type(x) not in (bool, int, float)], static


def _joined(arrays: Any, static: list[tuple[int, Any]]) -> list[Any]:
    leaves = list(arrays)
    for i, x in static:
        leaves.insert(i, x)
    return leaves
