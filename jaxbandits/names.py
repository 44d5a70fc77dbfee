"""Public names of the packages: each is loaded when it is first used, and one that is not there is told the nearest."""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import lazy_loader

OTHER_WORDS = {"run": "sweep", "read_csv": "read_labelled"}  # that users bring


def load_lazily(package: str, **parts: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names are loaded when they are first used."""
    load, list_names, public = lazy_loader.attach(package, **parts)
    refuse = refuse_unknown(package, public)
    return lambda name: (load if name in public else refuse)(name), list_names, public


def refuse_unknown(package: str, public: Iterable[str]) -> Callable[[str], NoReturn]:
    """`__getattr__` of a package that has loaded all its names."""

    def refuse_name(name: str) -> NoReturn:
        from jaxbandits.formatting import nearest  # needs NumPy

        other = OTHER_WORDS.get(name, name)
        hint = f" (did you mean {other!r}?)" if other in public else "" if name[:1] == "_" else nearest(name, public)
        raise AttributeError(f"{package} has no {name!r}{hint}", name=name)

    return refuse_name
