"""A user's own factory, which a TOML file names as `module:function`.

Importing a module runs it, so a TOML file is a program. Names that no file can mean, such as `os:system`, are refused.
"""

import contextlib
import functools
import importlib
import importlib.metadata
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxbandits.contract import described
from jaxbandits.validation import unwrapped


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
        raise ValueError(f"cannot load {name!r}: {described(error)}") from None
    finally:
        if sys.path[place : place + 1] == [path]:
            del sys.path[place]
    if not callable(factory):
        raise ValueError(f"{name!r} is {type(factory).__name__} and no function: give a factory of keyword arguments")
    function = unwrapped(factory).function
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

    def normal(requirement: str) -> str:
        return re.sub(r"[-_.]+", "-", re.split(r"[\s;<>=!~\[(@]", requirement, maxsplit=1)[0]).lower()

    needed = ["jaxbandits"]
    for name in needed:  # it grows meanwhile
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            names = map(normal, importlib.metadata.requires(name) or ())
            needed += [other for other in dict.fromkeys(names) if other not in needed]
    modules = importlib.metadata.packages_distributions().items()
    return frozenset(module for module, owners in modules if any(normal(owner) in needed for owner in owners))
