"""Checks of arguments on the host, before anything long runs: errors name the argument, the value and the remedy."""

import contextlib
import copy
import functools
import inspect
import json
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, overload

import jax
import numpy as np

from jaxbandits.declared import (
    PLAYS_ON,
    STATIC,
    TRACED,
    Argument,
    Axes,
    Declaration,
    Example,
    declaration,
    plays_on_by_names,
)
from jaxbandits.formatting import brackets, end_of_range, nearest, show
from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.recipe import unwrap

P = ParamSpec("P")
Declared = TypeVar("Declared", bound=Callable[..., Any])
Part = TypeVar("Part", Algorithm, Environment, Adversary)

MAX_INTEGER = 2**53  # the largest count: floating point holds every integer up to here
# What pandas calls a column without a name, and Parquet the index of a DataFrame.
UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
DATA = ("features", "losses", "rewards", "log")  # arguments that take users' tables
READERS = {
    "classification": "jb.read_labelled(path, label=...)",
    "loss_table": "jb.read_losses(path)",
    "contextual_table": "jb.read_table(path, rewards=[...])",
    "fitted": "jb.read_logged(path, arm=..., reward=...)",
}
NO_SCALARS = (bool, np.bool_, np.timedelta64)  # Python counts them among the integers


def same(x: Any, y: Any) -> bool:
    """Whether two values are one: 1 and 1.0 are, 1 and True are not, NaN and NaN are, in arrays too."""
    if isinstance(x, np.ndarray | list | tuple) or isinstance(y, np.ndarray | list | tuple):
        floats = np.asarray(x).dtype.kind == np.asarray(y).dtype.kind == "f"
        return x is y or bool(np.array_equal(x, y, equal_nan=floats))
    if isinstance(x, float) and isinstance(y, float) and math.isnan(x) and math.isnan(y):
        return True
    return isinstance(x, bool) == isinstance(y, bool) and bool(x == y)


def difference(name: str, there: Any, here: Any) -> str:
    """The first entry in which two JSON values differ, as text: its path and both values."""
    if name.endswith(".crc32"):
        return f"{name.removesuffix('.crc32')} has other contents here than there: the file or the array has changed"
    if isinstance(there, dict) and isinstance(here, dict):
        key = next(k for k in [*there, *here] if k not in there or k not in here or there[k] != here[k])
        return difference(f"{name}.{key}", there.get(key, "not given"), here.get(key, "not given"))
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        i = next(i for i, pair in enumerate(zip(there, here, strict=True)) if pair[0] != pair[1])
        return difference(f"{name}[{i}]", there[i], here[i])
    if isinstance(there, list) and isinstance(here, list) and max(len(there), len(here)) > 8:
        there, here = (f"of length {len(x)}" for x in (there, here))
    return f"{name} is {_as_json(there)} there, {_as_json(here)} here"


@contextlib.contextmanager
def prefix_errors(place: str) -> Iterator[None]:
    """A wrong value is an error that begins with its place."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if str(error).startswith(place):
            raise
        if type(error) in (TypeError, ValueError):
            error.args = (f"{place}: {error}",)
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{place}: {error}") from error


def plays_on(factory: Any, algorithm: Algorithm | None = None) -> str:
    """What a factory's algorithm plays on: as it says, else as the factory declares, else by the arguments' names.

    >>> import jaxbandits as jb
    >>> plays_on(jb.algorithms.ucb1), plays_on(functools.partial(jb.algorithms.linucb, dim=3))
    ('arms', 'decision set')
    """
    function = unwrap(factory).function
    told = getattr(algorithm, "plays_on", None) or getattr(function, "plays_on", None)
    return told if isinstance(told, str) else plays_on_by_names(inspect.signature(function).parameters)


class Arguments(dict[str, Any]):
    """The arguments a part was built with, and the part as its factory built it: a copy that was changed differs."""

    home: str  # module of the factory
    defaults: dict[str, Any]  # argument -> default, where there is one
    built: tuple[Any, ...]  # the fields of the part that fix its results
    others: tuple[Any, ...]  # all its fields but those that follow from the arguments
    again: Callable[[], Any]  # builds it anew, with the arguments that were given

    def describes(self, part: Algorithm | Environment | Adversary) -> bool:
        """Whether the part is still what the factory returned for these arguments."""
        now = _fixing(part)
        return len(self.built) == len(now) and all(map(operator.is_, self.built, now))

    def rebuild_of(self, part: Algorithm | Environment | Adversary) -> Callable[[], Any] | None:
        """What builds the part anew, as pickle needs it; None where any field is not the factory's."""
        whole = self.describes(part) and all(map(operator.is_, self.others, _other_fields(part)))
        return self.again if whole else None


def _fixing(part: Algorithm | Environment | Adversary) -> tuple[Any, ...]:
    """The fields of a part that fix its results."""
    if isinstance(part, Environment):
        return part.world, part.params, *part.facts.keys(), *part.facts.values(), part.version
    if isinstance(part, Adversary):
        return part.attack, part.params, part.version
    return part.program, part.params, part.schedule, part.version


def _other_fields(part: Algorithm | Environment | Adversary) -> tuple[Any, ...]:
    """All fields of a part but those of its arguments; the facts of an environment are compared one by one."""
    return tuple(x for name, x in zip(part._fields, part, strict=True) if name not in ("config", "remake", "facts"))


def _freeze(x: Any) -> None:
    """Make the arrays of a part read-only: its arguments could not tell that they were written into."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    for item in x.values() if isinstance(x, dict) else x if isinstance(x, tuple | list) else ():
        if isinstance(item, np.ndarray | dict | tuple | list):
            _freeze(item)


def _copy_argument(x: Any) -> Any:
    """An argument that its owner can no longer change."""
    if type(x) in (list, tuple):
        return type(x)(map(_copy_argument, x))
    if type(x) is dict:
        return {key: _copy_argument(item) for key, item in x.items()}
    if isinstance(x, jax.Array | np.ndarray) and x.ndim == 0 and not isinstance(x, jax.core.Tracer):
        return scalar_of("", x)
    return copy.deepcopy(x) if hasattr(x, "__array__") and not isinstance(x, jax.Array) else x


@overload
def factory(function: Callable[P, Part], /) -> Callable[P, Part]: ...


@overload
def factory(
    *, plays_on: str | None = None, example: Example | None = None, source: str = ""
) -> Callable[[Callable[P, Part]], Callable[P, Part]]: ...


def factory(
    function: Any = None, /, *, plays_on: str | None = None, example: Example | None = None, source: str = ""
) -> Any:
    """Decorate the function that builds a part: the factory checks its declared arguments and keeps them all.

    What the annotations of the function's arguments declare (`jaxbandits.declared`) is checked before it is called and
    written into the docstring. Where none has a mark, the function checks them itself and the docstring stays. The
    factory has the same signature and takes keyword arguments alone. It copies lists and arrays. The Algorithm,
    Environment or Adversary that it returns has `config`, the name and all arguments with their defaults; the last two
    also have `remake`, the factory as a partial.

    plays_on: "arms", "row", "decision set", "fixed set", "advice" or "agents"; by default what the part says that the
    function returns, such as a conversion's base, or the names of the arguments. example: arguments of a small run, the
    part's case in the catalogue. source: what it follows, such as a paper and its theorem: the docstring's References.

    The factory raises TypeError where an argument is given by position, is not known or is missing, with a list of the
    known ones; ValueError where one is outside its declared range, or leads to numbers that floating point cannot hold.

    >>> import jaxbandits as jb
    >>> jb.algorithms.ucb1(num_arms=3, horizon=100).config["name"]
    'ucb1'
    >>> jb.algorithms.ucb1(num_armz=3)
    Traceback (most recent call last):
        ...
    TypeError: ucb1 has no argument 'num_armz' (did you mean 'num_arms'?); it takes ...
    """
    choice("plays_on", plays_on, known=(None, *PLAYS_ON))
    if function is None:
        return functools.partial(factory, plays_on=plays_on, example=example, source=source)
    name = function.__name__
    declared = declaration(function)
    marked = any(row.marks for row in declared.arguments.values())  # otherwise the function checks all of them itself
    declared = declared.read() if marked or source else declared
    # what must be given comes first, also where it stands in a TypedDict
    rows = dict(sorted(declared.arguments.items(), key=lambda row: not row[1].required))
    checks = {key: check for key, row in rows.items() if marked and (check := checker(row)) is not None}
    defaults = {key: row.default for key, row in rows.items() if not row.required}
    home = getattr(function, "__globals__", {}).get("__name__", "")  # `__module__` may be that of what it wraps

    @functools.wraps(function)
    def make(*args: Any, **given: Any) -> Any:
        if args:
            raise TypeError(f"{name} takes keyword arguments only: {', '.join(rows)}")
        kwargs: dict[str, Any] = {}
        for key, value in given.items():  # the caller may write into arrays and lists later: the part has copies
            if key in DATA and name in READERS and isinstance(value, str | os.PathLike):
                raise ValueError(f"{name}: {key} = {show(value)} is a text and no table: {READERS[name]} reads a file")
            if key not in rows:
                hint = f": {READERS[name]} reads one" if key == "path" and name in READERS else nearest(key, rows)
                raise TypeError(f"{name} has no argument {key!r}{hint}; it takes {', '.join(rows)}")
            kwargs[key] = _copy_argument(value)
        full = dict.fromkeys(rows) | defaults | kwargs
        if missing := [key for key in rows if key not in defaults and key not in given]:
            raise TypeError(f"{name} needs {', '.join(missing)}")
        try:
            with np.errstate(all="warn", under="ignore"):
                part = function(**full | {key: check(full[key]) for key, check in checks.items()})
        except (ArithmeticError, MemoryError) as error:  # a number so large or so small that no formula survives it
            passed_in = [key for key in rows if key in given]
            extreme = ", ".join(f"{key} = {show(full[key])}" for key in passed_in if _extreme(full[key]))
            what = extreme or ", ".join(passed_in)
            why = f"leads to numbers that cannot be held ({error.args[-1]})"
            raise ValueError(f"{name}: {what} {why}: choose something nearer 1") from None
        # an environment may say how its arguments are recorded: a DataFrame as its numbers
        plain = {key: x for key, x in part.config.items() if key in rows} if isinstance(part, Environment) else {}
        _freeze((part.params, getattr(part, "facts", ()), kwargs, plain))
        if isinstance(part, Algorithm):
            version = (name, 1, ()) if part.version == () else part.version
            part = part._replace(version=version, plays_on=part.plays_on or plays_on)
        config = Arguments({"name": name, **full, **plain})
        config.home, config.defaults, config.built = home, defaults, _fixing(part)
        config.others, config.again = _other_fields(part), functools.partial(make, **kwargs)
        part = part._replace(config=config)
        if isinstance(part, Environment | Adversary):
            part = part._replace(remake=config.again)
        return part

    made: Any = _describe(make, declared._replace(arguments=rows), source)
    made.plays_on, made.example = plays_on, example
    return made


@overload
def declare(function: Declared, /) -> Declared: ...


@overload
def declare(*, check: bool = True, source: str = "", raises: str | None = None) -> Callable[[Declared], Declared]: ...


def declare(function: Any = None, /, *, check: bool = True, source: str = "", raises: str | None = None) -> Any:
    """Decorate a function whose annotations declare its arguments: they are checked before it is called.

    Its docstring gets the Parameters, Returns and Raises that follow, and `source` as its References, as in `factory`.
    One that is declared to return a float takes arrays where it takes numbers, and returns an array then.

    check: False for a function that sees for itself whether its arguments are right, and for a NamedTuple. raises: when
    there is a ValueError, where the docstring does not say so; by default for arguments that are checked.
    """
    if function is None:
        return functools.partial(declare, check=check, source=source, raises=raises)
    declared = declaration(function).read()
    # no program is compiled for a number of the host
    rows = {key: row._replace(static=STATIC in row.marks) for key, row in declared.arguments.items()}
    declared = declared._replace(arguments=rows)
    if not check:
        return _describe(function, declared, source, raises or "")
    checks = {key: check for key, row in rows.items() if (check := checker(row)) is not None}
    defaults = {key: row.default for key, row in rows.items() if not row.required}
    takes = declared.written.parameters
    positional = [key for key, p in takes.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    numeric = [k for k in checks if (asked := rows[k].range) is not None and asked.kind in ("number", "integer")]
    numeric = numeric if declared.signature().return_annotation is float else []

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        placed = dict(zip(positional, args, strict=False)) | given
        passed = defaults | placed
        if len(placed) < len(args) + len(given) or passed.keys() != rows.keys():
            if rows.keys() == takes.keys():
                return function(*args, **given)  # Python says best what is missing or unknown
            try:
                declared.signature().bind(*args, **given)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
        if several := {key: passed[key] for key in numeric if getattr(passed[key], "ndim", 0)}:
            each = np.vectorize(lambda *one: call(**passed | dict(zip(several, one, strict=True))), otypes=[float])
            return each(*(np.asarray(scalar_of(key, x)) for key, x in several.items()))
        for key, check in checks.items():
            passed[key] = check(passed[key])
        with np.errstate(all="warn", under="ignore"):
            return function(**passed)

    return _describe(call, declared, source, raises)


def _describe(made: Any, declared: Declaration, source: str, raises: str | None = None) -> Any:
    """Give what was made of a function, or the function itself, what follows from its declaration."""
    made.__doc__ = declared.docstring(source, raises)
    if not isinstance(made, type):
        made.arguments, made.__signature__ = declared.arguments, declared.signature()
    return made


def checker(row: Argument) -> Callable[[Any], Any] | None:
    """What checks an argument by its declaration and returns it; None where nothing is asked of it."""
    asked, name = row.range, row.name
    ends: dict[str, Any] = {} if asked is None else {"low": asked.low, "high": asked.high, "remedy": row.remedy}
    check: Any
    if row.checked and row.kinds == [bool]:
        check = functools.partial(boolean, name)
    elif not row.checked or asked is None or (asked.kind == "choice" and len(row.kinds) > 1):
        return None  # of texts beside something else, the function itself sees which it was given
    elif asked.kind == "choice":
        check = functools.partial(choice, name, known=asked.values)
    elif asked.kind == "array":
        check = functools.partial(array, name, **ends, ndim=row.mark(Axes).number)
    elif asked.kind == "integer":
        ends |= {"low": None} if asked.low == -math.inf else {}
        ends |= {"high": MAX_INTEGER} if asked.high == math.inf else {}
        check = functools.partial(integer, name, **ends)
    else:
        ends |= {"open_low": asked.open_low, "open_high": asked.open_high, "finite": not row.infinite}
        check = functools.partial(number, name, **ends)
    optional, traced = row.default is None, TRACED in row.marks

    def unless(value: Any) -> Any:  # None passes, and what is no number on the host
        passes = (optional and value is None) or (traced and not isinstance(value, Real | np.generic))
        return value if passes else check(value)

    return unless if optional or traced else check


def base_algorithm(base: Callable[..., Any], **arguments: Any) -> Algorithm:
    """What a conversion's base factory returns, checked to be an algorithm."""
    algorithm = base(**arguments)
    if not isinstance(algorithm, Algorithm):
        what = f"{show(algorithm)} of type {type(algorithm).__name__}"
        raise TypeError(f"base = {show(base)} returned {what}, and no Algorithm: give a factory of jb.algorithms")
    return algorithm


def base_arguments(base: Callable[..., Any]) -> tuple[set[str], dict[str, Any]]:
    """The names of the arguments of a conversion's base factory, and those bound in partials. ValueError: it is none.

    >>> import jaxbandits as jb
    >>> sorted(base_arguments(functools.partial(jb.algorithms.ucb1, horizon=9))[0])
    ['bonus_scale', 'horizon', 'num_arms']
    """
    function, bound, _ = unwrap(base)
    if not callable(function):
        form = "a factory of algorithms or a partial of one: for instance algorithms.linucb"
        raise ValueError(f"base = {show(function)} must be {form}")
    return set(inspect.signature(function).parameters), bound


def number(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False,
    open_high: bool = False, finite: bool = True, remedy: str = "",
) -> float:  # fmt: skip
    """Check that an argument is a real number in a range, and return it as a float; ValueError otherwise.

    Booleans, text and arrays with axes are no numbers. low, high: the ends of the range, inside unless open_low and
    open_high say otherwise. finite: whether infinity is refused. name: what the error calls the argument; remedy: its
    last words.

    >>> number("epsilon", 1, 0.0, open_low=True)
    1.0
    >>> number("epsilon", 0, 0.0, open_low=True)
    Traceback (most recent call last):
        ...
    ValueError: epsilon = 0 must be a number in (0, inf)
    """
    value = value if type(value) is float else scalar_of(name, value)
    inside = type(value) is float or (isinstance(value, Real) and not isinstance(value, NO_SCALARS))
    if inside:
        v = _float(value)
        inside = (v > low if open_low else v >= low) and (v < high if open_high else v <= high)
        inside = inside and not (math.isinf(v) and (finite or isinstance(value, Integral)))
    if not inside:
        opened = {"open_low": open_low or low == -math.inf, "open_high": open_high or high == math.inf}
        asked = f"must be a number in {brackets(low, high, end_of_range, **opened)}"
        raise ValueError(f"{name} = {show(value)} {asked}{_and(remedy)}")
    return float(value)


def scalar_of(name: str, value: Any) -> Any:
    """What an array of JAX or NumPy without axes holds, and a float32 as its shortest decimal; another value as it is.

    ValueError where it is traced.

    >>> scalar_of("epsilon", np.array(0.1, np.float32)), scalar_of("epsilon", [0.5])
    (0.1, [0.5])
    """
    if isinstance(value, jax.core.Tracer):
        remedy = "build once outside of jit, vmap and grad and replace leaves of params, or use grid= of jb.sweep"
        raise ValueError(f"{name} is traced: {remedy}")
    foreign = hasattr(value, "__array__") and not isinstance(value, jax.Array | np.ndarray | np.generic)
    value = np.asarray(value) if foreign and np.ndim(value) == 0 else value  # of xarray, torch
    if not isinstance(value, jax.Array | np.ndarray | np.floating) or value.ndim or is_masked(value):
        return value
    short = value.dtype.kind == "f" and value.dtype.itemsize < 8  # 0.1 of float32 is meant as 0.1
    return float(str(np.asarray(value)[()])) if short else value.item()


def integer(name: str, value: Any, low: int | None = None, high: int | None = MAX_INTEGER, *, remedy: str = "") -> int:
    """Check that an argument is an integer in a closed range, and return it as an int; ValueError otherwise.

    A float without a fraction is one, booleans are none. low, high: the ends; None: no end. Floating point holds every
    integer up to the default of `high`. name: what the error calls the argument; remedy: its last words.

    >>> integer("horizon", 1e3, 1)
    1000
    """
    value = value if type(value) is int else scalar_of(name, value)
    whole = type(value) is int or (isinstance(value, Integral | np.integer) and not isinstance(value, NO_SCALARS))
    whole = whole or (isinstance(value, float) and value.is_integer())
    if not whole or (low is not None and value < low) or (high is not None and value > high):
        most = "" if high is None or (high == MAX_INTEGER and not (whole and value > high)) else f", at most {high}"
        ends = f"an integer{'' if low is None else f' of at least {low}'}{most}"
        raise ValueError(f"{name} = {show(value)} must be {ends}{_and(remedy)}")
    return int(value)


def path_of(path: Any, name: str = "path") -> Path:
    """A path that a user gave, with `~` and `~user` at its beginning expanded: the one way in for all of them.

    It need not exist. name: what the errors call it. ValueError for an empty text or one with NUL, for an address such
    as "s3://bucket/run", and where `~` names a home that there is not; TypeError for anything but a text or a path.

    >>> path_of("~/run") == Path.home() / "run", path_of("runs/~").as_posix()
    (True, 'runs/~')
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    wanted = f"{name} = {show(path)} must be the name of a file or directory"
    if not isinstance(text, str):
        raise TypeError(wanted)
    if not text or "\0" in text:
        raise ValueError(wanted)
    if re.match(r"([A-Za-z][\w+.-]*::)*[A-Za-z][\w+.-]+:/", text):  # pathlib would make folders of it
        remedy = "files are on this machine's disks, so give a local path, and copy it with the address's own tools"
        raise ValueError(f"{name} = {show(text)} is an address: {remedy}")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"{name} = {show(text)} begins in a home that there is not: write the whole path") from None


def choice(name: str, value: Any, known: Iterable[Any]) -> str:
    """Check that an argument is one of the known strings, and return it; ValueError otherwise.

    >>> choice("kind", "fixed", ("fixed", "swapped"))
    'fixed'
    """
    known = list(known)
    if not (isinstance(value, str) and value in known):
        plain, *known = (x.item() if isinstance(x, np.generic) else x for x in (value, *known))
        # types first: an array would be compared entry by entry
        if not any(isinstance(plain, type(option)) and plain == option for option in known):
            hint = nearest(value, known) if isinstance(value, str) else ""
            raise ValueError(f"{name} = {show(value)} must be one of {', '.join(map(repr, known))}{hint}")
    return value


def boolean(name: str, value: Any) -> bool:
    """Check that an argument is True or False, and return it; ValueError otherwise."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} = {show(value)} must be True or False")
    return bool(value)


def is_frame(x: Any) -> bool:
    """Whether it is a pandas DataFrame; pandas need not be loaded for that."""
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "columns") and hasattr(x, "iloc")


def column_names(source: str, columns: Iterable[Any]) -> list[str]:
    """The names of a table's columns as text; ValueError where one has no name, or two have the same.

    >>> column_names("losses.csv", ["first", 2])
    ['first', '2']
    >>> column_names("losses.csv", ["", "first"])
    Traceback (most recent call last):
        ...
    ValueError: losses.csv: column 1 ('') has no name, as the index of a DataFrame: ...
    """
    # None and NaN stand for no name
    names = ["" if name is None or name != name else str(name) for name in columns]
    for j, name in enumerate(names):
        if UNNAMED.fullmatch(name.strip()):
            remedy = "write the table with index=False, or drop or name the column"
            lacks = f"column {j + 1} ({name!r}) has no name, as the index of a DataFrame"
            raise ValueError(f"{source}: {lacks}: {remedy}")
        if name in names[:j]:
            raise ValueError(f"{source}: two columns have the name {name!r}: rename or drop one of them")
    return names


def is_masked(x: Any) -> bool:
    """Whether an array, or an array in nested lists, has masked entries."""
    return any(map(is_masked, x)) if isinstance(x, list | tuple) else np.ma.isMaskedArray(x) and np.ma.is_masked(x)


def numbers(name: str, value: Any, remedy: str = "") -> np.ndarray[Any, Any]:
    """Check that an argument holds real numbers and nothing else, and return them as a float64 array.

    value: a number, nested lists, an array or a pandas DataFrame; a float64 array is returned itself. Booleans are 0
    and 1. ValueError where an entry is masked, a date, complex or text, where lists differ in length, and for a
    DataFrame with a column without a name of its own. remedy: the error's last words where it is no array at all.

    >>> numbers("means", [0.2, 1])
    array([0.2, 1. ])
    >>> numbers("means", ["0.2", 1])
    Traceback (most recent call last):
        ...
    ValueError: means[0] = '0.2' of type str is not a number: convert it, or leave it out
    """
    if is_frame(value):
        column_names(name, value.columns)
    masked = is_masked(value)
    try:
        x = np.ma.array(value) if masked else np.asarray(value)
        if masked:
            wrong = np.ma.getmaskarray(x)
        elif x.dtype.kind in "OSUT":
            x = np.asarray(value, object)
            wrong = np.array([not isinstance(entry, Real | Decimal | np.bool_) for entry in x.flat]).reshape(x.shape)
        else:
            wrong = np.full(x.shape, x.dtype.kind in "mMc")
        if not wrong.any():
            return np.asarray(x, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a rectangular array of numbers{_and(remedy)}") from None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    what = "is masked: fill it in"
    if not masked:
        what = f"= {show(x[where])} of type {type(x[where]).__name__} is not a number: convert it"
    raise ValueError(f"{name}{list(where) or ''} {what}, or leave it out")


def array(
    name: str, value: Any, ndim: int, low: float = -math.inf, high: float = math.inf, *,
    shape: Sequence[int | None] | None = None, remedy: str = "",
) -> np.ndarray[Any, Any]:  # fmt: skip
    """Check that an argument is an array of finite numbers, and return it as float64; ValueError otherwise.

    As `numbers`, with `ndim` axes, none of them empty. low, high: the ends of the range of its entries, inclusive.
    shape: the shape it must have, None for an axis of any length. name: what the error calls the argument; remedy: its
    last words.

    >>> array("means", [0.2, 0.5], 1, 0.0, 1.0)
    array([0.2, 0.5])
    """
    x = numbers(name, value, remedy)
    if x.ndim != ndim or x.size == 0:
        raise ValueError(f"{name} has shape {x.shape}; it needs {ndim} non-empty axes{_and(remedy)}")
    if shape is not None and any(want is not None and got != want for got, want in zip(x.shape, shape, strict=True)):
        wanted = tuple("any" if size is None else size for size in shape)
        raise ValueError(f"{name} has shape {x.shape}; it must be {wanted}{_and(remedy)}")
    bad = ~np.isfinite(x) | (x < low) | (x > high)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        asked = f"must be finite and in {brackets(low, high, end_of_range)}"
        raise ValueError(f"{name}{list(where)} = {float(x[where])!r} {asked}{_and(remedy)}")
    return x


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf if value > 0 else -math.inf


def _extreme(value: Any) -> bool:
    size = abs(_float(value)) if isinstance(value, Real) else 1.0
    return size > 1e12 or 0 < size < 1e-12


def _and(remedy: str) -> str:
    return f": {remedy}" if remedy else ""


def _as_json(x: Any) -> str:
    text = x if isinstance(x, str) else json.dumps(x)
    return text if len(text) <= 60 else f"{text[:57]}..."
