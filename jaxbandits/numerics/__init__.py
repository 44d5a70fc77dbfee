"""Sums, choices and small linear algebra whose results do not depend on how many lanes run side by side.

The names are in `__init__.pyi`, a line each.
"""

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_RENAMED = {"settle": "materialize", "settle_all": "materialize_all", "seldom": "cond_any"}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        raise ImportError(f"jaxbandits.numerics.{name} is called {_RENAMED[name]} since 0.2.0")
    return _attribute(name)
