"""What is computed, as a hash: by a traced program, or by this package's own functions, which need no trace for it.

A function of this package is named by where it is defined, by its byte code and by the values it closes over: the
static arguments that its builder was called with. What else it reads stands in the modules of this package that it
reaches (`sources`). A function of anyone else has no such name.
"""

import dataclasses
import enum
import functools
import hashlib
import inspect
import itertools
import sys
import types
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core

from jaxbandits.contract import expansion, place_of
from jaxbandits.numerics.device_forms import plain_program

# Parameters of operations that say nothing about the forward values: derivative rules, and functions whose jaxpr is
# another parameter.
_TREES = ("in_tree", "out_tree", "out_trees")
_UNREAD = {"name", "computation", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "debug_info", *_TREES}
# Settings under which a single operation was traced, as by `with jax.threefry_partitionable(False):`.
_SETTINGS = ("threefry_partitionable", "compute_type", "xla_metadata")
_CALLBACKS = {"pure_callback": "a host callback", "io_callback": "a host callback", "ffi_call": "foreign code"}
_GENERATORS = {"threefry2x32", "rbg", "unsafe_rbg"}  # JAX's generators of random numbers; others are users' functions
_LIBRARY = __name__.partition(".")[0]
_OWNERS = ("jax", "jaxlib", _LIBRARY)  # of operations whose names say what they compute
_PLAIN = (bool, int, float, complex, str, bytes, slice, range, type(Ellipsis))
_known: dict[int, core.Primitive] = {}  # operations of theirs, by id


class NoIdentity(Exception):
    """What a lane computes cannot be told from its traced program; the text says why."""


def fingerprint(programs: Sequence[core.ClosedJaxpr], results: Any, *, lasting: bool = True) -> str:
    """The sha256 of each program and of the names of its results, separated by spaces.

    NoIdentity where one holds something without a stable description, such as a host callback. lasting False: such a
    thing is identified by its place in memory, which is enough while this process holds it.
    """
    writers = [_Program("refused" if lasting else "by place") for _ in programs]
    for writer, program in zip(writers, programs, strict=True):
        writer.feed_value([program, results])
    return " ".join(writer.sha.hexdigest() for writer in writers)


def first_difference(first: core.ClosedJaxpr, second: core.ClosedJaxpr) -> str | None:
    """The place of the first operation in which two traces of one function differ; None where they are alike.

    Numbers from `np.random` or a clock are written into a program when it is traced: its results are then those of one
    trace, not of the function.
    """
    writers = _Program("passed over"), _Program("passed over")
    both = zip(writers, (first, second), strict=True)
    steps = (writer.steps(program.jaxpr, program.consts) for writer, program in both)
    for equation, _ in itertools.zip_longest(*steps):
        if writers[0].sha.digest() != writers[1].sha.digest():
            return place_of(equation)
    return None


class DigestWriter:
    """Feeds plain values, arrays, and what is made of them, to a hash. NoIdentity for anything else."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()

    def feed_text(self, text: str) -> None:
        self.sha.update(text.encode() + b"\0")

    def feed_value(self, x: Any) -> None:
        if x is None or isinstance(x, _PLAIN):
            self.feed_text(f"{type(x).__name__} {x!r}")
        elif isinstance(x, enum.Enum):
            self.feed_text(f"{self.class_name(type(x))} {x.name}")
        elif isinstance(x, np.ndarray | np.generic | jax.Array):
            self.feed_array(x)
        elif isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
            self.feed_text(repr(np.dtype(x)))
        elif isinstance(x, tuple | list):
            self.feed_text(f"{self.class_name(type(x))} {len(x)}")
            for item in x:
                self.feed_value(item)
        elif isinstance(x, dict):
            self.feed_text(self.class_name(type(x)))
            self.feed_value(list(x.items()))
        else:
            self.feed_other(x)

    def feed_array(self, x: Any) -> None:
        array = np.asarray(x)
        if array.dtype.hasobject:
            raise NoIdentity(f"its traced program holds {type(x).__name__}, which is no array of numbers")
        self.feed_text(f"array {array.dtype!r} {array.shape} {getattr(x, 'weak_type', False)}")
        self.sha.update(np.ascontiguousarray(array).tobytes())

    def class_name(self, kind: type) -> str:
        return kind.__name__

    def feed_other(self, x: Any) -> None:
        raise NoIdentity(f"{type(x).__name__} is no plain value")


class _Program(DigestWriter):
    """Feeds a program to a hash, with variables numbered in the order in which they are bound.

    opaque: what happens to something without a stable description, such as a function of the host. It is "refused",
    entered "by place" in memory, or "passed over": two traces of one function hold different objects for the same
    thing.
    """

    def __init__(self, opaque: str) -> None:
        super().__init__()
        self.opaque = opaque

    def feed_program(self, jaxpr: core.Jaxpr, consts: Iterable[Any]) -> None:
        for _ in self.steps(jaxpr, consts):
            pass

    def steps(self, jaxpr: core.Jaxpr, consts: Iterable[Any]) -> Iterator[core.JaxprEqn | None]:
        """Feed a program, one operation after the other, and at the end what it returns."""
        numbers: dict[Any, Any] = {}
        self.feed_text(f"program {len(jaxpr.constvars)} {len(jaxpr.invars)}")
        for variable in (*jaxpr.constvars, *jaxpr.invars):
            self.bind(variable, numbers)
        for variable, const in zip(jaxpr.constvars, consts, strict=False):
            writer = _Program(self.opaque) if self.opaque == "passed over" else self
            writer.feed_array(const)
            if writer is not self:  # two programs differ where they read a constant, not where they begin
                numbers[variable] = writer.sha.hexdigest()
        for equation in jaxpr.eqns:
            self.feed_equation(equation, numbers)
            yield equation
        self.feed_text("returns")
        self.feed_atoms(jaxpr.outvars, numbers)
        yield None

    def feed_equation(self, equation: core.JaxprEqn, numbers: dict[Any, Any]) -> None:
        self.feed_text(equation.primitive.name)
        if self.opaque != "passed over" and not _is_known(equation.primitive):
            if self.opaque == "refused":
                operation = f"the operation {equation.primitive.name!r}, which is neither JAX's nor this package's"
                rules = "what it computes is in rules that no trace shows"
                raise NoIdentity(f"its traced program holds {operation}: {rules}")
            self.feed_text(uuid.uuid4().hex)  # its rules may be other ones by the next trace
        self.feed_value({name: getattr(equation.ctx, name) for name in _SETTINGS})
        self.feed_atoms(equation.invars, numbers)
        self.feed_parameters(equation)
        for variable in equation.outvars:
            self.bind(variable, numbers)

    def bind(self, variable: Any, numbers: dict[Any, Any]) -> None:
        numbers[variable] = len(numbers)
        self.feed_text(_shape(variable.aval))

    def feed_atoms(self, atoms: Iterable[Any], numbers: dict[Any, Any]) -> None:
        for atom in atoms:
            if isinstance(atom, core.Literal):
                self.feed_text(f"literal {_shape(atom.aval)}")
                self.feed_array(atom.val)
            else:
                self.feed_text(f"variable {numbers[atom]}")

    def feed_parameters(self, equation: core.JaxprEqn) -> None:
        name, params = equation.primitive.name, equation.params
        if name in _CALLBACKS and self.opaque == "refused":
            raise NoIdentity(f"it calls {_CALLBACKS[name]} ({name}), which may compute anything")
        if name in ("debug_callback", "debug_print"):  # prints, and gives nothing back
            return
        if name in ("jit", "pjit", "closed_call", "core_call"):  # how it is compiled does not matter, what is
            return self.feed_value(params.get("jaxpr", params.get("call_jaxpr")))
        if name == "custom_vmap_call":  # its rule shows in the program of a batch
            return self.feed_value(plain_program(params["call"]))
        expanded = expansion(equation)
        if expanded is not None:
            return self.feed_value(expanded)
        for key in sorted(params.keys() - _UNREAD):
            self.feed_text(key)
            self.feed_value(params[key])

    def feed_value(self, x: Any) -> None:
        if isinstance(x, core.ClosedJaxpr):
            self.feed_program(x.jaxpr, x.consts)
        elif isinstance(x, core.Jaxpr):
            self.feed_program(x, ())
        elif getattr(x, "name", None) in _GENERATORS and hasattr(x, "key_shape"):
            self.feed_text(f"generator {x.name}")
        else:
            super().feed_value(x)

    def feed_array(self, x: Any) -> None:
        if isinstance(x, jax.core.Tracer):
            self.feed_text(f"traced {_shape(x.aval)}")
        elif isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
            super().feed_array(jax.random.key_data(x))
        elif self.opaque == "passed over" and np.asarray(x).dtype.hasobject:
            self.feed_text(type(x).__name__)
        else:
            super().feed_array(x)

    def feed_other(self, x: Any) -> None:
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            self.feed_text(type(x).__name__)
            return self.feed_value([getattr(x, field.name) for field in dataclasses.fields(x)])
        text = repr(x)
        if callable(x) or " at 0x" in text:
            if self.opaque == "refused":
                raise NoIdentity(f"its traced program holds {text:.80}, which cannot be told apart from another")
            text = str(id(x)) if self.opaque == "by place" else ""
        self.feed_text(f"{type(x).__name__} {text}")


def _is_known(operation: core.Primitive) -> bool:
    """Whether an operation is JAX's or this package's, whose rules change with versions and files alone."""
    if id(operation) not in _known:
        # JAX loads some of its modules late
        modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _OWNERS]
        found = [x for module in modules for x in list(vars(module).values()) if isinstance(x, core.Primitive)]
        _known.update({id(x): x for x in found})
    return id(operation) in _known


def _shape(aval: Any) -> str:
    if not hasattr(aval, "shape"):
        return str(aval)
    return f"{aval.dtype} {aval.shape} {getattr(aval, 'weak_type', False)}"


# ---------------------------------------------------------------------------- names of functions, without a trace


class Name(NamedTuple):
    """What functions of this package are called, and the modules that they and what they hold are defined in."""

    sha: str
    modules: frozenset[str]


def name_of(value: Any) -> Name | None:
    """A name for functions of this package and for plain values, alone or together in tuples; None for others."""
    writer = _Names()
    try:
        writer.feed_value(value)
    except NoIdentity:
        return None
    return Name(writer.sha.hexdigest(), frozenset(writer.modules))


class _Names(DigestWriter):
    """Feeds values and functions of this package to a hash."""

    def __init__(self) -> None:
        super().__init__()
        self.met: dict[int, int] = {}  # numbers of the functions that were met, by their ids
        self.modules: set[str] = set()

    def feed_array(self, x: Any) -> None:
        if isinstance(x, jax.core.Tracer):
            raise NoIdentity
        super().feed_array(x)

    def class_name(self, kind: type) -> str:
        return self.place(kind)

    def feed_other(self, x: Any) -> None:
        if isinstance(x, type):
            self.feed_text(self.place(x))
        elif isinstance(x, frozenset):
            self.feed_text(f"frozenset {sorted(map(repr, x))}")
        elif isinstance(x, functools.partial):
            self.feed_value(("partial", x.func, x.args, x.keywords))
        elif isinstance(x, types.FunctionType):
            self.feed_function(x)
        elif hasattr(x, "__wrapped__"):  # functions under `jax.jit`, and those with a rule of their own for `vmap`
            self.feed_text(f"wrapped by {self.place(type(x))}")
            self.feed_value((x.__wrapped__, getattr(x, "vmap_rule", None)))
        else:
            raise NoIdentity

    def feed_function(self, function: types.FunctionType) -> None:
        if id(function) in self.met:  # functions may call themselves
            return self.feed_text(f"again {self.met[id(function)]}")
        self.met[id(function)] = len(self.met)
        self.feed_text(f"function {self.place(function)}")
        self.feed_code(function.__code__)
        try:
            closed_over = tuple(cell.cell_contents for cell in function.__closure__ or ())
        except ValueError:  # a variable that is not bound yet
            raise NoIdentity from None
        self.feed_value((closed_over, function.__defaults__, function.__kwdefaults__))

    def feed_code(self, code: types.CodeType) -> None:
        """What tells functions apart that are defined in one place, such as two lambdas of one line."""
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        self.feed_text(f"{names} {counts} {code.co_code.hex()} {code.co_exceptiontable.hex()}")
        for constant in code.co_consts[int(_has_docstring(code)) :]:
            if isinstance(constant, types.CodeType):
                self.feed_code(constant)
            else:
                self.feed_text(repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant))

    def place(self, x: Any) -> str:
        """Where a function or class is defined. NoIdentity unless it is ours, or of a release with a number."""
        module, name = str(x.__module__), x.__qualname__
        top = module.partition(".")[0]
        known = (_LIBRARY,) if isinstance(x, types.FunctionType) else (_LIBRARY, "builtins", "numpy", "jax", "jaxlib")
        if top not in known or (isinstance(x, type) and "<locals>" in name):
            raise NoIdentity
        if top == _LIBRARY:
            self.modules.add(module)
        if isinstance(x, types.FunctionType):  # a decorator's code may stand elsewhere
            self.modules.add(x.__globals__["__name__"])
        return f"{module}.{name}"


def _has_docstring(code: types.CodeType) -> bool:
    """Whether the first constant of a function's code is its docstring, or takes that place."""
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & inspect.CO_HAS_DOCSTRING)
    return bool(code.co_flags & inspect.CO_NEWLOCALS) and not code.co_name.startswith("<")
