"""Public names of the packages: each is loaded when it is first used, and one that is not there is told the nearest."""

from collections.abc import Callable, Collection
from typing import Any, NoReturn

import lazy_loader

OTHER_WORDS = {"run": "sweep", "read_csv": "read_labelled"}  # that users bring


class UnknownName(AttributeError):
    """A name that a package has not. The nearest is looked for when it is printed: imports of modules meet it too."""

    def __str__(self) -> str:
        from jaxbandits.formatting import nearest  # needs NumPy

        package, name, public = self.args
        other = OTHER_WORDS.get(name, name)
        hint = f" (did you mean {other!r}?)" if other in public else nearest(name, public)
        return f"{package} has no {name!r}{hint}"


def load_lazily(package: str, **parts: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names are loaded when they are first used."""
    load, list_names, public = lazy_loader.attach(package, **parts)

    def load_name(name: str) -> Any:
        if name in public:
            return load(name)
        raise UnknownName(package, name, public)

    return load_name, list_names, public


def refuse_unknown(package: str, public: Collection[str]) -> Callable[[str], NoReturn]:
    """`__getattr__` of a package that has loaded all its names."""

    def refuse_name(name: str) -> NoReturn:
        raise UnknownName(package, name, public)

    return refuse_name
