"""A user's own factory, which a TOML file names as `module:function`.

Importing a module runs it, so a TOML file is a program. Names that no file can mean, such as `os:system`, are refused.
"""

import functools
import importlib
import importlib.metadata
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxbandits.validation import unwrapped


def own_factory(name: str, beside: Path) -> Callable[..., Any]:
    """The function `module:function` of a module in the directory `beside`, or of an installed one; else ValueError."""
    module_name, _, attribute = name.partition(":")
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", module_name) or not attribute.isidentifier():
        raise ValueError(f"{name!r} must be module:function, such as 'my_module:my_algorithm'")
    _refuse(module_name, name, beside)
    place, path = _behind_standard_library(), str(beside.resolve())
    sys.path.insert(place, path)
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # a module that calls exit() fails, too
        raise ValueError(f"cannot load {name!r}: {type(error).__name__}: {' '.join(str(error).split())}") from None
    finally:
        if sys.path[place : place + 1] == [path]:
            del sys.path[place]
    if not callable(factory):
        raise ValueError(f"{name!r} is {type(factory).__name__} and no function: give a factory of keyword arguments")
    function = unwrapped(factory).function
    home = getattr(function, "__module__", None) or type(function).__module__
    _refuse(home, name, beside)
    return factory


def here_first() -> None:
    """Let modules of the working directory be imported, as `python -m` does."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def _refuse(module: str, name: str, beside: Path) -> None:
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        raise ValueError(
            f"{name!r} is of Python's standard library ({module}): give a factory of your own, "
            "in a module of another name"
        )
    own = (beside / f"{top}.py").is_file() or (beside / top).is_dir() or top == "jaxbandits"
    if not own and top in dependencies():
        raise ValueError(f"{name!r} is of an installed library ({module}): give a factory of your own")


def _behind_standard_library() -> int:
    """Where a directory stands in `sys.path` so that its modules hide no module of Python's own."""
    standard = Path(functools.__file__).resolve().parent
    places = [
        i for i, path in enumerate(sys.path) if path and Path(path).resolve() in (standard, standard / "lib-dynload")
    ]
    return max(places, default=len(sys.path) - 1) + 1


@functools.cache
def dependencies() -> frozenset[str]:
    """Top-level names of the modules that this package needs, and that those need in turn, where they are installed."""

    def normal(requirement: str) -> str:
        return re.sub(r"[-_.]+", "-", re.split(r"[\s;<>=!~\[(@]", requirement, maxsplit=1)[0]).lower()

    waiting, seen = ["jaxbandits"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            waiting += [normal(line) for line in importlib.metadata.requires(name) or ()]
        except importlib.metadata.PackageNotFoundError:
            continue
    modules = importlib.metadata.packages_distributions().items()
    return frozenset(module for module, owners in modules if any(normal(owner) in seen for owner in owners))
