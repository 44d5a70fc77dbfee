"""Which code a user wrote, where it stands, which draws in its programs never change, and how errors name all that.

Nothing here runs a part. The functions that read programs take closed jaxprs, however they were obtained. Places are
`file:line` in the author's files. Files of this package, of installed libraries and of the standard library are none:
the answer is an empty string.
"""

import contextlib
import functools
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType, FunctionType, MethodType
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun

from jaxbandits.recipe import unwrap
from jaxbandits.typing import Array

# Functions of these packages, and of the standard library, are not a user's own.
LIBRARIES = ("jaxbandits", "jax", "jaxlib", "numpy", "optax")
# JAX's operations that draw, and how many of their first inputs are the key; None: all of them.
DRAWING_OPERATIONS = {"random_bits": 1, "random_gamma": 1, "rng_bit_generator": 1, "threefry2x32": None}
LANES = 7919  # a number of lanes that no other axis has
_PACKAGE = str(Path(__file__).parent) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))


class ContractError(ValueError):
    """In some run an action lies outside the arms, plays were lost, or regret is not finite."""


@functools.lru_cache(maxsize=1024)
def runs_own_code(part: object) -> bool:
    """Whether a user wrote any function that a part holds, also deep inside a closure.

    part: a Program, World or Attack, or one function. Whether only a trace says what it computes is another question
    (`code_name`): an optax transformation has no name either.
    """
    waiting, seen = list[Any]([part]), set[int]()
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, FunctionType):
            if _is_users(x.__module__):
                return True
            waiting += [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
            for cell in x.__closure__ or ():
                with contextlib.suppress(ValueError):  # a name that is bound later
                    waiting.append(cell.cell_contents)
        elif isinstance(x, functools.partial):
            waiting += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, MethodType):
            waiting += [x.__func__, x.__self__]
        elif isinstance(x, tuple | list):
            waiting += x
        elif isinstance(x, dict):
            waiting += x.values()
        elif callable(x) and not isinstance(x, type) and _is_users(type(x).__module__):
            return True
    return False


def _is_users(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return top == "__main__" or not (top in LIBRARIES or top in sys.stdlib_module_names)


@functools.lru_cache(maxsize=4096)  # asked of every frame of a trace
def of_author(path: str) -> bool:
    """Whether a file is neither of this package, nor of an installed or the standard library."""
    inside = path.startswith((_PACKAGE, *_LIBRARIES)) or "site-packages" in path or "dist-packages" in path
    return not inside and not path.startswith("<frozen")


def place_of(*about: object) -> str:
    """The author's line of the first of these that has one: where an error was raised, or what raised it was called.

    Of a frame, the line that it runs; of an operation of a traced program, the line that made it; of a function, or of
    one inside partials and decorators, that where it is defined. A text is a place already.
    """
    for x in about:
        if isinstance(x, str) and x:
            return x
        for path, line in _frames(x):
            if of_author(path):
                return f"{path}:{line}"
    return ""


def _frames(x: object) -> Iterable[tuple[str, int | None]]:
    """The files and lines of an error, a frame, an operation or a function, the innermost first."""
    if isinstance(x, BaseException):
        return [(frame.filename, frame.lineno) for frame in reversed(traceback.extract_tb(x.__traceback__))]
    if isinstance(x, FrameType):
        return ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(x))
    if isinstance(x, JaxprEqn):
        return [(frame.file_name, frame.line_num) for frame in getattr(x.source_info.traceback, "frames", ())]
    for _ in range(20):  # wrappers inside wrappers; a mock object wraps itself for ever
        x = unwrap(x).function
        x = getattr(x, "__wrapped__", x)
    code = getattr(x, "__code__", None)
    return [] if code is None else [(code.co_filename, code.co_firstlineno)]


def constant_draws(closed: ClosedJaxpr, varies: Sequence[bool]) -> list[str]:
    """Where a program draws with a key that depends on nothing of the lane, so that all lanes meet the same numbers.

    JAX's own rules for batches tell: over many lanes, such a key has no axis of lanes. varies: for each input of the
    program, whether it differs between lanes or plays.
    """
    # a constant may be traced, where the program is traced within another
    moving = [*(isinstance(x, jax.core.Tracer) for x in closed.consts), *varies]
    variables, number = [*closed.jaxpr.constvars, *closed.jaxpr.invars], len(closed.consts)
    sizes = [(LANES, *x.aval.shape) if moves else x.aval.shape for x, moves in zip(variables, moving, strict=True)]
    shapes = [jax.ShapeDtypeStruct(size, x.aval.dtype) for size, x in zip(sizes, variables, strict=True)]

    def lane(*inputs: Array) -> Any:
        return jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, inputs[:number]))(*inputs[number:])

    try:
        lanes = jax.make_jaxpr(jax.vmap(lane, [0 if moves else None for moves in moving], axis_size=LANES))(*shapes)
    except (NotImplementedError, ValueError):  # such as a host callback, which one lane alone may make
        return []
    # the outermost line: an inner function is traced for its first caller, and names that one
    alike = [equation for equation in lanes.eqns if any(map(_draws_alike, operations([equation])))]
    return list(dict.fromkeys(map(place_of, alike)))


def _draws_alike(equation: JaxprEqn) -> bool:
    """Whether an operation over lanes draws with one key for all of them."""
    keys = equation.invars[: DRAWING_OPERATIONS.get(equation.primitive.name, 0)]
    return bool(keys) and not any(LANES in getattr(key.aval, "shape", ()) for key in keys)


def operations(equations: Iterable[JaxprEqn]) -> Iterator[JaxprEqn]:
    """Operations of a traced program, with those inside of them: of branches, bodies of loops, calls, expansions."""
    for equation in equations:
        yield equation
        for inner in (*jax.tree.leaves(equation.params, is_leaf=is_program), expansion(equation)):
            if is_program(inner):
                yield from operations(inner.eqns)


def expansion(equation: JaxprEqn) -> ClosedJaxpr | None:
    """What an operation computes, where JAX keeps that as a method and traces it only when the operation is compiled.

    `jnp.searchsorted` is such an operation from jax 0.12 on. None for all other operations. A user's own are among
    these: they may compute something else for a batch.
    """
    operation: Any = equation.params.get("_prim")
    if not (hasattr(operation, "expand") and type(operation).__module__.startswith("jax.")):
        return None
    return jax.make_jaxpr(operation.expand)(*operation.in_avals)


def is_program(x: object) -> bool:
    """Whether something is a traced program, open or closed."""
    return isinstance(x, ClosedJaxpr | Jaxpr)


# ---- how errors about parts name shapes, values and lines


def is_array(x: object) -> bool:
    """Whether it has a shape and a type."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, type)


def is_number(x: object) -> bool:
    """Whether it is one number of Python's or NumPy's, and no truth value."""
    return isinstance(x, int | float | np.number) and not isinstance(x, bool)


def shape_text(tree: Any) -> str:
    """The types and shapes of a tree's arrays, as short text, such as `float32[3,2]`."""
    if is_array(tree):
        return f"{tree.dtype}[{','.join(map(str, tree.shape))}]"
    if hasattr(tree, "_fields"):
        inside = ", ".join(f"{name}={shape_text(x)}" for name, x in zip(tree._fields, tree, strict=True))
        return f"{type(tree).__name__}({inside})"
    if isinstance(tree, tuple | list):
        return f"({', '.join(map(shape_text, tree))})"
    if isinstance(tree, dict) and any(map(is_array, tree.values())):
        return f"{{{', '.join(f'{key!r}: {shape_text(x)}' for key, x in tree.items())}}}"
    return what(tree)


def what(x: object) -> str:
    """A value as a message names it."""
    if x is None:
        return "None"
    if is_array(x):
        return f"an array {shape_text(x)}"
    if hasattr(x, "_fields"):
        return f"{a_kind(type(x))} alone"
    if inspect.isfunction(x):
        return f"the function {x.__name__}"
    text = repr(x)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(x).__name__})"


def a_kind(kind: type) -> str:
    """The name of a type after its article, such as `an Algorithm`."""
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def at_line(*about: object) -> str:
    """` (file:line)` of the first of these that has a place, as the end of a message; nothing where none has."""
    place = place_of(*about)
    return f" ({place})" if place else ""


def not_traced(label: str, error: BaseException, where: object) -> ValueError:
    """The error about a part that fails while it is traced, to be raised."""
    return ValueError(f"{label!r} cannot be traced: {type(error).__name__}: {first_line(error)}{at_line(where)}")


@contextlib.contextmanager
def naming(label: str) -> Iterator[None]:
    """An error inside a user's functions, while they are traced, becomes a ValueError with the label and the place."""
    try:
        yield
    except Exception as error:
        raise not_traced(label, error, error) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).splitlines() or [""])[0]


def one_line(text: object) -> str:
    """A message without line breaks and without the framework's remarks about its own traceback."""
    words = " ".join(str(text).split())
    return words.split(" -------------------- For simplicity, JAX has removed")[0]


def describe_error(error: BaseException) -> str:
    """An error as a line of text."""
    return f"{type(error).__name__}: {one_line(error)}"
