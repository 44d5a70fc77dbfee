"""Functions of a lane that are traced once, so that what names a program is what runs.

A user's function may compute something else whenever it is traced: it may read a setting, a clock, a counter or a file.
`Traces` keeps its first trace for given shapes. The trace that names a lane (`sweeps.identity`) and the programs of
calls over many lanes are then made of the same operations.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

import jax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from jaxbandits.contract import is_array, is_program
from jaxbandits.garbage import pause_collection
from jaxbandits.jax_internals import dce_jaxpr
from jaxbandits.typing import Array

F = TypeVar("F", bound=Callable[..., Any])


class Traces(dict[Any, "Trace"]):
    """First traces of a lane's functions, by function and shapes. All are equal: `Parts.traced` tells parts apart."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traces)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(Traces)

    def __repr__(self) -> str:  # JAX writes out a function that it traces, with all that it is given
        return f"<{len(self)} traces>"


class Trace(NamedTuple):
    """A function as it was traced: of arrays. What is none among its arguments and results is static."""

    program: ClosedJaxpr
    structure: Any  # of what it returns
    static: list[tuple[int, Any]]  # what is no array of that, with places

    def __call__(self, *args: Any) -> Any:
        return self._unflatten(jaxpr_as_fun(self.program)(*_split_arrays(jax.tree.leaves(args))[0]))

    def result_shapes(self) -> Any:
        """What it returns, with shapes for arrays."""
        return self._unflatten([jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.program.out_avals])

    def _unflatten(self, arrays: Iterable[Any]) -> Any:
        leaves = list(arrays)
        for i, x in self.static:
            leaves.insert(i, x)
        return jax.tree.unflatten(self.structure, leaves)


def trace(function: Callable[..., Any], *args: Any) -> Trace:
    """Trace a function anew, also where JAX knows it."""
    leaves, structure = jax.tree.flatten(args)
    arrays, form = _split_arrays(leaves)[0], list[Any]()

    def call_flat(*arrays: Array) -> list[Any]:
        remaining = iter(arrays)
        given = [next(remaining) if is_array(x) else x for x in leaves]
        results, structure_of_results = jax.tree.flatten(function(*jax.tree.unflatten(structure, given)))
        returned, static = _split_arrays(results)
        form[:] = structure_of_results, static
        return returned

    with pause_collection():
        return Trace(jax.make_jaxpr(call_flat)(*map(jax.typeof, arrays)), *form)


def trace_once(function: F) -> F:
    """A function of parts, and of arrays of one lane, that goes by its first trace where the parts keep traces."""

    @functools.wraps(function)
    def call_by_trace(parts: Any, *args: Any) -> Any:
        if parts.traces is None:
            return function(parts, *args)
        key = _trace_key(function, args)
        if key not in parts.traces:
            parts.traces[key] = trace(functools.partial(function, parts), *args)
        return parts.traces[key](*args)

    return cast(F, call_by_trace)


def shapes(function: Callable[..., Any], parts: Any, *args: Any) -> Any:
    """What a function that is traced once returns, with shapes for arrays; of a known trace nothing is done again."""
    function = inspect.unwrap(function)
    traces, key = {} if parts.traces is None else parts.traces, _trace_key(function, args)
    if key not in traces:
        traces[key] = trace(functools.partial(function, parts), *args)
    return traces[key].result_shapes()


def _trace_key(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a trace is kept by."""
    leaves, structure = jax.tree.flatten(args)
    arrays, static = _split_arrays(leaves)
    return function, structure, repr(static), tuple(map(jax.typeof, arrays))


def _split_arrays(leaves: list[Any]) -> tuple[list[Any], list[tuple[int, Any]]]:
    """Arrays, and what is none with its places."""
    return [x for x in leaves if is_array(x)], [(i, x) for i, x in enumerate(leaves) if not is_array(x)]


# ---- without what nothing reads


def without_unread(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as it is traced, without the operations whose results nothing reads, in loops and branches too.

    The result is the same, bit for bit; for use under `jax.jit`. XLA leaves such code out by itself, but jax 0.10.2
    dies of some of it (docs/decisions.md#unread).
    """

    @functools.wraps(function)
    def lean(*args: Any) -> Any:
        found = trace(function, *args)
        return found._replace(program=_lean(found.program, {}))(*args)

    return lean


def _lean(x: Any, done: dict[int, Any]) -> Any:
    """A program without unread operations; all its inputs and outputs stay. Anything else as it is.

    done: (original, result) of programs that were treated before, by identity. What is shared stays shared and is
    compiled once.
    """
    if not is_program(x):
        return x
    if id(x) not in done:
        if isinstance(x, ClosedJaxpr) and x.jaxpr is not x:  # from jax 0.11 on programs are of one class
            lean: Any = ClosedJaxpr(_lean(x.jaxpr, done), x.consts)
        else:
            # JAX's function looks into branches, scans and calls, but not into the body of a `while` loop
            lean, _ = dce_jaxpr(x, True, True)
            inside = functools.partial(jax.tree.map, lambda inner: _lean(inner, done), is_leaf=is_program)
            lean = lean.replace(eqns=[equation.replace(params=inside(equation.params)) for equation in lean.eqns])
        done[id(x)] = x, lean
    return done[id(x)][1]
