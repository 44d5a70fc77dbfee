"""Arguments are checked on the host, before anything long runs: the error names the argument, the value and the remedy."""

import difflib
import functools
import inspect
import json
import math
from numbers import Integral, Real

import numpy as np

from jaxbandits.protocol import Adversary, Algorithm, Environment

MAX_INTEGER = 2**53  # of a count: floating point holds every integer up to here
SHOWN = 80  # characters of a value in a message


def shown(value) -> str:
    """A value as a message shows it: its `repr`, on one line and not too long."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**SHOWN:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write the longest ones
    if isinstance(value, np.generic):
        value = value.item()
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def difference(name: str, there, here) -> str:
    """The first entry in which two JSON values differ, by its path."""
    if isinstance(there, dict) and isinstance(here, dict):
        key = next(k for k in [*there, *here] if k not in there or k not in here or there[k] != here[k])
        return difference(f"{name}.{key}", there.get(key, "absent"), here.get(key, "absent"))
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        i = next(i for i, pair in enumerate(zip(there, here, strict=True)) if pair[0] != pair[1])
        return difference(f"{name}[{i}]", there[i], here[i])
    if isinstance(there, list) and isinstance(here, list) and max(len(there), len(here)) > 8:
        there, here = (f"of length {len(x)}" for x in (there, here))
    return f"{name} is {_as_json(there)} there, {_as_json(here)} here"


def nearest(name: str, known) -> str:
    """` (did you mean 'x'?)`, or nothing."""
    others = [str(k) for k in known if str(k) != str(name)]
    match = difflib.get_close_matches(str(name), others, n=1, cutoff=0.5)
    return f" (did you mean {match[0]!r}?)" if match else ""


def factory(function):
    """Make a factory of keyword arguments only: unknown ones raise TypeError listing the known, `config` keeps them all."""
    signature = inspect.signature(function)
    known = list(signature.parameters)

    @functools.wraps(function)
    def make(*args, **kwargs):
        name = function.__name__
        if args:
            raise TypeError(f"{name} takes keyword arguments only: {', '.join(known)}")
        for key in kwargs:
            if key not in known:
                raise TypeError(f"{name} has no argument {key!r}{nearest(key, known)}; it takes {', '.join(known)}")
        missing = [
            key for key, p in signature.parameters.items() if p.default is inspect.Parameter.empty and key not in kwargs
        ]
        if missing:
            raise TypeError(f"{name} needs {', '.join(missing)}")
        bound = signature.bind(**kwargs)
        bound.apply_defaults()
        try:
            part = function(**kwargs)
        except (ArithmeticError, MemoryError) as error:  # a number so large or so small that no formula survives it
            extreme = ", ".join(f"{key} = {shown(value)}" for key, value in kwargs.items() if _extreme(value))
            raise ValueError(
                f"{name}: {extreme or ', '.join(kwargs)} leads to numbers that cannot be held ({error.args[-1]}): "
                "choose something nearer 1"
            ) from None
        made = part._replace(config={"name": name, **bound.arguments})
        if isinstance(made, Environment | Adversary):
            made = made._replace(remake=functools.partial(make, **kwargs))
        return made

    return make


def base_algorithm(base, **arguments) -> Algorithm:
    """What a conversion's base factory returns, checked to be an algorithm."""
    algorithm = base(**arguments)
    if not isinstance(algorithm, Algorithm):
        what = f"{shown(algorithm)} of type {type(algorithm).__name__}"
        raise TypeError(f"base = {shown(base)} returned {what}, and no Algorithm: give a factory of jb.algorithms")
    return algorithm


def number(
    name: str, value, low=-math.inf, high=math.inf, *, open_low=False, open_high=False, finite=True, remedy=""
) -> float:
    """A real number in a range, as a float. The range's ends are included unless said open."""
    inside = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if inside:
        v = _float(value)
        inside = (v > low if open_low else v >= low) and (v < high if open_high else v <= high)
        inside = inside and not (math.isinf(v) and (finite or isinstance(value, Integral)))
    if not inside:
        left, right = "(" if open_low or low == -math.inf else "[", ")" if open_high or high == math.inf else "]"
        raise ValueError(f"{name} = {shown(value)} must be a number in {left}{low:g}, {high:g}{right}{_and(remedy)}")
    return float(value)


def integer(name: str, value, low=None, high=MAX_INTEGER, *, remedy="") -> int:
    """An integer in a closed range, which ends at `MAX_INTEGER` unless said otherwise."""
    whole = isinstance(value, Integral | np.integer) and not isinstance(value, bool | np.bool_)
    whole = whole or (isinstance(value, float) and value.is_integer())
    if not whole or (low is not None and value < low) or (high is not None and value > high):
        most = "" if high is None or (high == MAX_INTEGER and not (whole and value > high)) else f", at most {high}"
        ends = f"an integer{'' if low is None else f' of at least {low}'}{most}"
        raise ValueError(f"{name} = {shown(value)} must be {ends}{_and(remedy)}")
    return int(value)


def choice(name: str, value, known) -> str:
    """One of the known strings."""
    plain, *known = (x.item() if isinstance(x, np.generic) else x for x in (value, *known))
    # types first: an array would be compared entry by entry
    if not any(isinstance(plain, type(option)) and plain == option for option in known):
        hint = nearest(value, known) if isinstance(value, str) else ""
        raise ValueError(f"{name} = {shown(value)} must be one of {', '.join(map(repr, known))}{hint}")
    return value


def array(name: str, value, ndim: int, low=-math.inf, high=math.inf, *, shape=None, remedy="") -> np.ndarray:
    """A finite float64 array of `ndim` axes with entries in [low, high]."""
    try:
        x = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a rectangular array of numbers with {ndim} axes{_and(remedy)}") from None
    if x.ndim != ndim or x.size == 0:
        raise ValueError(f"{name} has shape {x.shape}; it needs {ndim} non-empty axes{_and(remedy)}")
    if shape is not None and any(want is not None and got != want for got, want in zip(x.shape, shape, strict=True)):
        raise ValueError(
            f"{name} has shape {x.shape}; it must be {tuple('any' if s is None else s for s in shape)}{_and(remedy)}"
        )
    bad = ~np.isfinite(x) | (x < low) | (x > high)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name}{list(where)} = {float(x[where])!r} must be finite and in [{low:g}, {high:g}]{_and(remedy)}"
        )
    return x


def _float(value) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf if value > 0 else -math.inf


def _extreme(value) -> bool:
    if not isinstance(value, Real):
        return False
    size = abs(_float(value))
    return size > 1e12 or 0 < size < 1e-12


def _and(remedy: str) -> str:
    return f": {remedy}" if remedy else ""


def _as_json(x) -> str:
    text = x if isinstance(x, str) else json.dumps(x)
    return text if len(text) <= 60 else f"{text[:57]}..."
