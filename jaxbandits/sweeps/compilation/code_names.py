"""A name for what this package's own functions compute, found without tracing them.

A function of this package is named by where it is defined, by its byte code and by the values it closes over: the
static arguments that its builder was called with. What else it reads is text of this package, and a hash of all of it
stands beside the names (`sources`). A function of anyone else has no such name.
"""

import functools
import hashlib
import types
from pathlib import Path
from typing import Any

import jax

from jaxbandits import version
from jaxbandits.sweeps.compilation.program_digest import NoIdentity, Writer

PACKAGE = Path(__file__).resolve().parents[2]
_LIBRARY = PACKAGE.name


def name_of(value: Any) -> str | None:
    """A name for functions of this package and for plain values, alone or together in tuples; None for others.

    >>> from jaxbandits.numerics import argmax
    >>> name_of((argmax, 3)) == name_of((argmax, 3)), name_of((argmax, 3)) == name_of((argmax, 4))
    (True, False)
    >>> import json
    >>> name_of(json.dumps) is None
    True
    """
    writer = _Names()
    try:
        writer.value(value)
    except NoIdentity:
        return None
    return writer.sha.hexdigest()


def sources() -> str | None:
    """A hash of all texts of this package; None where one changed while this process ran.

    Then the functions in memory may not be those of the files.
    """
    texts, changed = _sources()
    return None if changed >= version.LOADED else texts


@functools.cache
def _sources() -> tuple[str, float]:
    """The hash, and when the last of the files changed: in content, name or place."""
    sha, changed = hashlib.sha256(), 0.0
    for path in sorted(PACKAGE.rglob("*.py")):
        content, about = path.read_bytes(), path.stat()
        sha.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\0".encode() + content)
        changed = max(changed, about.st_mtime, about.st_ctime)
    return sha.hexdigest(), changed


class _Names(Writer):
    """Feeds values and functions of this package to a hash."""

    def __init__(self) -> None:
        super().__init__()
        self.met: dict[int, int] = {}  # numbers of the functions that were met, by their ids

    def array(self, x: Any) -> None:
        if isinstance(x, jax.core.Tracer):
            raise NoIdentity
        super().array(x)

    def class_name(self, kind: type) -> str:
        return _place(kind)

    def other(self, x: Any) -> None:
        if isinstance(x, type):
            self.text(_place(x))
        elif isinstance(x, frozenset):
            self.text(f"frozenset {sorted(map(repr, x))}")
        elif isinstance(x, functools.partial):
            self.value(("partial", x.func, x.args, x.keywords))
        elif isinstance(x, types.FunctionType):
            self.function(x)
        elif hasattr(x, "__wrapped__"):  # functions under `jax.jit`, and those with a rule of their own for `vmap`
            self.text(f"wrapped by {_place(type(x))}")
            self.value((x.__wrapped__, getattr(x, "vmap_rule", None)))
        else:
            raise NoIdentity

    def function(self, function: types.FunctionType) -> None:
        if id(function) in self.met:  # functions may call themselves
            return self.text(f"again {self.met[id(function)]}")
        self.met[id(function)] = len(self.met)
        self.text(f"function {_place(function)}")
        self.code(function.__code__)
        try:
            closed_over = tuple(cell.cell_contents for cell in function.__closure__ or ())
        except ValueError:  # a variable that is not bound yet
            raise NoIdentity from None
        self.value((closed_over, function.__defaults__, function.__kwdefaults__))

    def code(self, code: types.CodeType) -> None:
        """What tells functions apart that are defined in one place, such as two lambdas of one line."""
        self.text(f"{code.co_firstlineno} {code.co_code.hex()} {code.co_names} {code.co_freevars}")
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant)
            else:
                self.text(repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant))


def _place(x: Any) -> str:
    """Where a function or class is defined. NoIdentity unless it is this package's, or of a release with a number."""
    module, name = x.__module__, x.__qualname__
    top = str(module).partition(".")[0]
    known = (_LIBRARY,) if isinstance(x, types.FunctionType) else (_LIBRARY, "builtins", "numpy", "jax", "jaxlib")
    if top not in known or (isinstance(x, type) and "<locals>" in name):
        raise NoIdentity
    return f"{module}.{name}"
