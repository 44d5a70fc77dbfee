"""Arguments are checked on the host, before anything long runs: the error names the argument, the value and the remedy."""

import copy
import difflib
import functools
import hashlib
import inspect
import math
from numbers import Integral, Real

import jax
import numpy as np

from jaxbandits.protocol import Adversary, Environment


def nearest(name: str, known) -> str:
    """` (did you mean 'x'?)`, or nothing."""
    match = difflib.get_close_matches(str(name), [str(k) for k in known], n=1, cutoff=0.5)
    return f" (did you mean {match[0]!r}?)" if match else ""


class Arguments(dict):
    """The arguments a part was built with, and the part as its factory built it: how a copy that was changed is recognised."""

    home: str  # module of the factory
    defaults: dict  # argument -> default, where there is one
    built: tuple  # the fields of the part that fix its results
    contents: list  # what those of them hold that can be changed in place

    def describes(self, part) -> bool:
        """Whether the part is still what the factory returned for these arguments."""
        fixing = _fixing(part)
        if len(fixing) != len(self.built) or any(x is not y for x, y in zip(self.built, fixing, strict=True)):
            return False
        contents = _contents(part)
        return len(contents) == len(self.contents) and all(
            x == y if isinstance(x, bytes) else x is y for x, y in zip(self.contents, contents, strict=True)
        )


def _fixing(part) -> tuple:
    if isinstance(part, Environment):
        return part.world, part.params, part.facts, part.version
    if isinstance(part, Adversary):
        return part.attack, part.params, part.version
    return part.program, part.params, part.schedule, part.version


def _contents(part) -> list:
    """The leaves of a part's numbers and facts: arrays by their content, everything else by itself."""
    leaves = jax.tree.leaves((part.params, getattr(part, "facts", None)))
    return [hashlib.sha256(x.tobytes()).digest() if isinstance(x, np.ndarray) else x for x in leaves]


def _copied(x):
    """An argument that its owner can no longer change."""
    if type(x) in (list, tuple):
        return type(x)(_copied(item) for item in x)
    if type(x) is dict:
        return {key: _copied(item) for key, item in x.items()}
    return copy.deepcopy(x) if hasattr(x, "__array__") and not isinstance(x, jax.Array) else x


def factory(function):
    """Make a factory of keyword arguments only: unknown ones raise TypeError listing the known, `config` keeps them all."""
    signature = inspect.signature(function)
    known = list(signature.parameters)
    defaults = {key: p.default for key, p in signature.parameters.items() if p.default is not inspect.Parameter.empty}
    home = getattr(function, "__globals__", {}).get("__name__", "")  # `__module__` may be that of what it wraps

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
        # arrays and lists may be changed by their owner later: a part keeps what it was given
        kwargs = {key: _copied(value) for key, value in kwargs.items()}
        bound = signature.bind(**kwargs)
        bound.apply_defaults()
        part = function(**kwargs)
        config = Arguments({"name": name, **bound.arguments})
        config.home, config.defaults = home, defaults
        config.built, config.contents = _fixing(part), _contents(part)
        part = part._replace(config=config)
        if isinstance(part, Environment | Adversary):
            part = part._replace(remake=functools.partial(make, **kwargs))
        return part

    # a function that wraps this one takes over its attributes: `itself` tells the two apart
    make.itself, make.home, make.defaults = make, home, defaults  # type: ignore[attr-defined]
    return make


def number(
    name: str, value, low=-math.inf, high=math.inf, *, open_low=False, open_high=False, finite=True, remedy=""
) -> float:
    """A real number in a range, as a float. The range's ends are included unless said open."""
    inside = isinstance(value, Real | np.generic) and not isinstance(value, bool | np.bool_)
    if inside:
        v = float(value)
        inside = (v > low if open_low else v >= low) and (v < high if open_high else v <= high)
        inside = inside and not (finite and math.isinf(v))
    if not inside:
        left, right = "(" if open_low or low == -math.inf else "[", ")" if open_high or high == math.inf else "]"
        raise ValueError(f"{name} = {value!r} must be a number in {left}{low:g}, {high:g}{right}{_and(remedy)}")
    return float(value)


def integer(name: str, value, low=None, high=None, *, remedy="") -> int:
    """An integer in a closed range."""
    whole = isinstance(value, Integral | np.integer) and not isinstance(value, bool | np.bool_)
    whole = whole or (isinstance(value, float) and value.is_integer())
    if not whole or (low is not None and value < low) or (high is not None and value > high):
        ends = f"an integer{'' if low is None else f' of at least {low}'}{'' if high is None else f', at most {high}'}"
        raise ValueError(f"{name} = {value!r} must be {ends}{_and(remedy)}")
    return int(value)


def choice(name: str, value, known) -> str:
    """One of the known strings."""
    if value not in known:
        raise ValueError(f"{name} = {value!r} must be one of {', '.join(map(repr, known))}{nearest(value, known)}")
    return value


def array(name: str, value, ndim: int, low=-math.inf, high=math.inf, *, shape=None, remedy="") -> np.ndarray:
    """A finite float64 array of `ndim` axes with entries in [low, high]."""
    try:
        x = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
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
        raise ValueError(f"{name}{list(where)} = {x[where]!r} must be finite and in [{low:g}, {high:g}]{_and(remedy)}")
    return x


def _and(remedy: str) -> str:
    return f": {remedy}" if remedy else ""
