"""Arguments of a sweep in one form: algorithms and parts as factories, seeds and times as integers, dtypes as words.

What cannot be understood is an error of one line that names the argument, the value and the remedy. As text and as
JSON they stand in results.
"""

import contextlib
import functools
import importlib
import importlib.metadata
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits import adversaries, algorithms, environments
from jaxbandits.contract import describe_error
from jaxbandits.formatting import nearest, show
from jaxbandits.learners.transformations import is_transformation, maker, program_of
from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.recipe import Recipe, recipe_of, unwrap
from jaxbandits.strangers import Foreign
from jaxbandits.sweeps.compilation.program_digest import fingerprint
from jaxbandits.sweeps.part_checks import fields
from jaxbandits.sweeps.until import MAX_SEEDS, Until, refuse_until
from jaxbandits.validation import Arguments, integer, prefix_errors, scalar_of

MAX_CHECKPOINTS = 10**6
PARTS = ("environment", "reward_adversary", "message_adversary")
# of every argument that is a part: where its factories are, what they return, and what that is called
PART_KINDS: dict[str, tuple[Any, Any, str]] = {
    "algorithm": (algorithms, Algorithm, "an algorithm"),
    "environment": (environments, Environment, "an environment"),
    "reward_adversary": (adversaries, Adversary, "an adversary"),
    "message_adversary": (adversaries, Adversary, "an adversary"),
}


def public_name(factory: Any) -> str:
    """Where a reader finds the factory: `jb.environments.bernoulli_arms`, or the name of a user's own."""
    function, _, name = unwrap(factory)
    home = next((module for module, *_ in PART_KINDS.values() if getattr(module, name, None) is function), None)
    return name if home is None else f"jb.{home.__name__.rpartition('.')[2]}.{name}"


def label_algorithms(given: Any) -> dict[str, Recipe]:
    """The recipe of every label, from a name, a factory, a list of them or {label: name or factory}."""
    named: dict[Any, Any] = given if isinstance(given, dict) else {}
    if named is not given:
        # a called part is a tuple, too
        several = list(given) if isinstance(given, list | tuple) and not hasattr(given, "_fields") else [given]
        for item in several:
            recipe = factory_of(item, "algorithm", "algorithms")
            if (name := recipe.name) in named:
                raise ValueError(f"two algorithms are called {name!r}: give labels, {{'one': ..., 'other': ...}}")
            named[name] = recipe
    if not named:
        raise ValueError("algorithms is empty: give at least one factory of jb.algorithms, or its name")
    for label in named:
        if not isinstance(label, str) or not label.strip() or label.split(".")[0] in (*PARTS, "base"):
            wanted = "a string that is not blank and does not begin with a part's name or 'base'"
            raise ValueError(f"label {label!r} must be {wanted}")
        check_text("label", label)
    if named is not given:
        return named
    return {label: factory_of(item, "algorithm", f"algorithms[{label!r}]") for label, item in named.items()}


def is_rebuilt(part: Any) -> bool:
    """Whether its factory builds it again: a user's own part has none, and that of a changed part returns another."""
    changed = isinstance(part.config, Arguments) and not part.config.describes(part)
    return part.remake is not None and not changed


def part_factory(given: Any, slot: str) -> Any:
    """The recipe of a part, given as a name, a factory, a partial or called; None for no adversary."""
    if given is None and slot != "environment":
        return None
    if isinstance(given, PART_KINDS[slot][1]):
        return recipe_of(given.remake if is_rebuilt(given) else lambda: given)
    return factory_of(given, slot, slot)


def factory_of(given: Any, slot: str, argument: str) -> Recipe:
    """The recipe of a factory, given as itself or by its name. ValueError or TypeError for anything else."""
    if isinstance(given, Recipe):  # looked at already: by `tune`, or before a worker of Ray got it
        return given
    module = PART_KINDS[slot][0]
    known, order = module.__name__.rpartition(".")[2], "the algorithms come first, then the environment"
    if slot not in ("algorithm", "environment"):
        order = f"{slot} takes a factory of jb.adversaries"
    if isinstance(given, str):
        if given in module.__all__:
            return recipe_of(getattr(module, given))
        if elsewhere := _belongs(given, slot):
            raise ValueError(f"{argument} = {given!r} is {elsewhere}: {order}")
        listed = f"{nearest(given, module.__all__)}; dir(jb.{known}) lists them"
        own = ": give the function itself" if ":" in given else listed
        raise ValueError(f"{argument} = {show(given)} is no name of jb.{known}{own}")
    for other, (_, kind, what) in PART_KINDS.items():
        if isinstance(given, kind):
            name = (given.config or {}).get("name", what.split()[1])
            if slot == other == "algorithm":
                remedy = "give its factory, or a functools.partial of it"
                filled = "the sweep fills in the horizon and what the environment fixes"
                raise ValueError(f"{argument} is already built ({name}): {remedy}; {filled}")
            raise TypeError(f"{argument} = {name}(...) is {what}: {order}")
    try:
        recipe = recipe_of(given)
    except ValueError:
        wanted = f"a factory of jb.{known}, its name, or a functools.partial of it"
        wanted += ", or jb.foreign(make) of other code" if slot == "algorithm" else ""
        raise TypeError(f"{argument} = {show(given)} must be {wanted}") from None
    if elsewhere := _belongs(recipe.name, slot, recipe.function):
        raise TypeError(f"{argument} = {recipe.name} is {elsewhere}: {order}")
    return recipe


def _belongs(name: str, slot: str, function: Any = None) -> str:
    """The words `an environment` or the like, where a name or function is a factory of another kind than the slot's."""
    for module, _, what in PART_KINDS.values():
        named = name in module.__all__ if function is None else getattr(module, name, None) is function
        if named and module is not PART_KINDS[slot][0]:
            return what
    return ""


def call_factory(recipe: Recipe, slot: str, prefix: str | None = None, place: str = "") -> Any:
    """What a factory returns, checked to be a part of the slot's kind. TypeError where an argument is missing.

    prefix: how grid keys that could give a missing argument begin; None without a grid. place: what an error of the
    factory begins with, such as a label.
    """
    function, name = recipe.function, recipe.name
    if missing := recipe.needed[
        len(getattr(recipe.factory, "args", ())) :
    ]:  # a partial binds the first ones by position
        values = ", ".join(f"{key}=..." for key in missing)
        grid = "" if prefix is None else f" or {' and '.join(prefix + key for key in missing)} in the grid"
        whose = f"{place}: " if slot == "algorithm" and place not in ("", name) else ""
        remedy = f"functools.partial({public_name(function)}, {values}){grid}"
        raise TypeError(f"{whose}{name} needs {', '.join(missing)}: {remedy}")
    try:
        with prefix_errors(place):
            part = recipe.factory()
    except (ValueError, TypeError):
        raise
    except Exception as error:
        raise ValueError(f"{slot}: {name} fails with {describe_error(error)}") from error
    fields.check_part(part, PART_KINDS[slot][1], function, name)
    return part


def seed_range(seeds: Any, labels: Iterable[str] | None = None) -> range:
    """Seeds as a range, from a count, a range or a list; `until`, for a sweep, is all that it may come to."""
    if labels is not None and isinstance(seeds, Until):
        seeds.check_labels(labels)
        return range(seeds.most)
    refuse_until(seeds, "seeds", "it is for jb.sweep alone, give a count or a range")
    listed = not isinstance(seeds, range | str | bytes | dict) and np.ndim(seeds) == 1
    if listed and len(seeds):
        plain = list(np.asanyarray(seeds) if hasattr(seeds, "__array__") else seeds)  # masks are kept
        values = [integer("seeds", s, 0, MAX_SEEDS - 1, remedy="give a count or a range") for s in plain]
        seeds = range(values[0], values[0] + len(values))
        if values != list(seeds):
            remedy = f"range({min(values)}, {max(values) + 1}) runs them and what lies between"
            raise ValueError(f"seeds = {show(values)} must be consecutive: {remedy}, ds.sel(seed=[...]) then selects")
    if isinstance(seeds, range):
        if len(seeds) == 0 or seeds.step != 1 or seeds.start < 0 or seeds.stop > MAX_SEEDS:
            raise ValueError(f"seeds = {seeds!r} must be a non-empty range of step 1 in [0, 2^31)")
        return seeds
    return range(integer("seeds", seeds, 1, MAX_SEEDS, remedy="give the number of seeds, or a range"))


def checkpoint_times(horizon: int, checkpoints: Any) -> np.ndarray[Any, Any]:
    """Increasing plays to the horizon, from such plays or their number, about even in the logarithm."""
    checkpoints = scalar_of("checkpoints", checkpoints)
    if isinstance(checkpoints, int | float | np.number):
        remedy = f"for every play give checkpoints={horizon}, the horizon" if horizon <= MAX_CHECKPOINTS else ""
        number = min(integer("checkpoints", checkpoints, 1, remedy=remedy), horizon)
        if number > MAX_CHECKPOINTS:
            raise ValueError(f"checkpoints = {number} are more than {MAX_CHECKPOINTS:,}: give fewer")
        if number == 1:
            return np.array([horizon])
        target = number  # more points are asked for until enough survive the rounding
        while len(times := np.unique(np.round(np.geomspace(1, horizon, target)).astype(np.int64))) < number:
            if target > 64 * number + horizon:
                times = np.unique(np.concatenate([times, np.arange(1, number + 1)]))
                break
            target = int(target * 1.3) + 1
        return times[np.round(np.linspace(0, len(times) - 1, number)).astype(int)]
    try:
        times = np.asarray(list(checkpoints))
    except (TypeError, ValueError):
        times = np.empty(0)
    if times.ndim != 1 or times.dtype.kind not in "iuf" or not times.size or not np.all(times == np.round(times)):
        advice = f"for every play give checkpoints={horizon}, the horizon"
        raise ValueError(f"checkpoints = {show(checkpoints)} must be a count or a list of plays: {advice}")
    if times[0] < 1 or np.any(times[1:] <= times[:-1]) or times[-1] > horizon:
        wanted = f"from at least 1 to at most the horizon {horizon}"
        raise ValueError(f"checkpoints must increase {wanted}, got {show(times.tolist())}")
    times = times.astype(np.int64)
    return times if times[-1] == horizon else np.append(times, horizon)


def floating(dtype: Any) -> str:
    """`float32` or `float64`, from the word, a NumPy or JAX type or a NumPy dtype."""
    try:
        name = np.dtype(dtype).name if dtype is not None else ""
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype = {show(dtype)} must be 'float32' or 'float64'")
    return name


def check_text(what: str, text: str) -> None:
    """ValueError for text that no file can hold (NUL, half a character) or mathematics that cannot be drawn."""
    if "\0" in text or text.encode(errors="ignore").decode() != text:
        raise ValueError(f"{what} {text!r} holds a character that no file can: leave it out")
    if "$" in text:
        from matplotlib import cbook, mathtext

        if cbook.is_math_text(text):
            try:
                mathtext.MathTextParser("path").parse(text)
            except ValueError as error:
                fault = f"is broken mathematics for the pictures ({str(error).splitlines()[-1]})"
                raise ValueError(f"{what} {show(text)} {fault}: mend it, or write \\$ for a dollar") from None


# ---- a user's own factory, which a TOML file names as `module:function`. Importing a module runs it, so such a file is
# a program. Names that no file can mean, such as `os:system`, are refused.


def own_factory(name: str, beside: Path) -> Callable[..., Any]:
    """The function `module:function` of a module in the directory `beside`, or of an installed one; else ValueError."""
    module_name, _, attribute = name.partition(":")
    if not all(map(str.isidentifier, [*module_name.split("."), attribute])):
        raise ValueError(f"{name!r} must be module:function, such as 'my_module:my_algorithm'")
    _refuse(module_name, name, beside)
    # a directory stands behind the standard library in `sys.path`, so that its modules hide none of Python's own
    standard, path = Path(functools.__file__).resolve().parent, str(beside.resolve())
    found = [Path(entry).resolve() in (standard, standard / "lib-dynload") if entry else False for entry in sys.path]
    place = max((i for i, known in enumerate(found) if known), default=len(found) - 1) + 1
    sys.path.insert(place, path)
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # a module that calls exit() fails, too
        raise ValueError(f"cannot load {name!r}: {describe_error(error)}") from None
    finally:
        if sys.path[place : place + 1] == [path]:
            del sys.path[place]
    top = module_name.partition(".")[0]
    place = getattr(sys.modules[top], "__file__", None) or path  # a namespace has no file
    other = Path(place).exists() and not Path(place).resolve().is_relative_to(path)  # and not what was moved here
    if other and (beside / f"{top}.py").is_file():
        raise ValueError(f"cannot load {name!r}: {top!r} is {place} here: rename the module of your own")
    if not callable(factory):
        raise ValueError(f"{name!r} is {type(factory).__name__} and no function: give a factory of keyword arguments")
    function = unwrap(factory).function
    _refuse(getattr(function, "__module__", None) or type(function).__module__, name, beside)
    return factory


def here_first() -> None:
    """Let modules of the working directory be imported, as `python -m` does."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def _refuse(module: str, name: str, beside: Path) -> None:
    top, remedy = module.partition(".")[0], "give a factory of your own"
    if top in sys.stdlib_module_names and top != "__main__":
        library = f"Python's standard library ({module})"
        raise ValueError(f"{name!r} is of {library}: {remedy}, in a module of another name")
    own = (beside / f"{top}.py").is_file() or (beside / top).is_dir() or top == "jaxbandits"
    if not own and top in dependencies():
        raise ValueError(f"{name!r} is of an installed library ({module}): {remedy}")


@functools.cache
def dependencies() -> frozenset[str]:
    """Top-level names of the modules that this package needs, and that those need in turn, where they are installed."""

    def distribution_name(requirement: str) -> str:
        return re.sub(r"[-_.]+", "-", re.split(r"[\s;<>=!~\[(@]", requirement, maxsplit=1)[0]).lower()

    needed = ["jaxbandits"]
    for name in needed:  # it grows meanwhile
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            names = map(distribution_name, importlib.metadata.requires(name) or ())
            needed += [other for other in dict.fromkeys(names) if other not in needed]
    modules = importlib.metadata.packages_distributions().items()
    return frozenset(module for module, owners in modules if not {*needed}.isdisjoint(map(distribution_name, owners)))


# ---- as text and as JSON


def short_text(x: Any) -> str:
    """A factory, array or number as short text."""
    if is_transformation(x):
        config = _transformation(x)
        return f"{config['name'].rpartition('.')[2]} {config['program'][:8]}"
    if callable(x):
        _, bound, name = unwrap(x)
        inner = ", ".join(f"{k}={short_text(v)}" for k, v in bound.items())
        return f"{name}({inner})" if inner else name
    return str(x)


def jsonable(x: Any) -> Any:
    """Anything a config may hold, as JSON."""
    if isinstance(x, Mapping):
        return {str(k): jsonable(v) for k, v in x.items()}
    foreign = not isinstance(x, np.ndarray | np.generic | str | bytes | list | tuple)
    if foreign and hasattr(x, "__array__"):  # of JAX, xarray, pandas, polars
        with contextlib.suppress(TypeError):  # a random key of JAX is no array of numbers
            return jsonable(np.asarray(x))
    elif isinstance(x, memoryview):
        return jsonable(np.asarray(x))
    elif foreign and isinstance(x, Collection):
        return jsonable(sorted(x, key=repr) if isinstance(x, Set) else list(x))  # or `array.array`, values of a dict
    if hasattr(x, "config"):  # a called part inside another, such as the losses behind experts
        return jsonable(x.config or {"name": "own"})
    if is_transformation(x):
        return dict(_transformation(x))
    if isinstance(x, Recipe) or callable(x):
        factory = x if isinstance(x, Recipe) else unwrap(x)
        stranger = {"foreign": True} if isinstance(factory.function, Foreign) else {}
        return {"name": factory.name, **stranger, **{k: jsonable(v) for k, v in factory.bound.items()}}
    with contextlib.suppress(ValueError):  # entries of different lengths, of which each is written by itself
        if isinstance(x, list | tuple | np.ndarray) and np.size(x) > 1000:
            return {"shape": list(np.shape(x)), "crc32": _crc(np.asarray(x))}
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, range):
        return jsonable(list(x))
    if isinstance(x, list | tuple):
        return [jsonable(v) for v in x]
    if isinstance(x, np.generic):
        return jsonable(x.item())
    if isinstance(x, Real | Decimal) and not isinstance(x, int):  # fractions, too, which run as floats
        return float(x) if np.isfinite(float(x)) else str(float(x))
    return x if isinstance(x, str | int | float | bool) or x is None else str(x)


@functools.cache
def _transformation(x: Any) -> dict[str, str]:
    """The function that made an optax transformation, and a hash of what it computes: its numbers are in closures."""
    try:
        program = fingerprint([program_of(x)], [])
    except Exception:  # a user's own, of which no more is recorded: chunks are named by the whole lane's program
        program = "unknown"
    return {"name": maker(x), "program": program}


def _crc(x: np.ndarray[Any, Any]) -> int:
    if x.dtype.kind not in "biuf":  # text: an entry each, whatever its width in the array
        return zlib.crc32("\0".join(map(str, x.ravel().tolist())).encode())
    return zlib.crc32(np.ascontiguousarray(x, np.float64).tobytes())
