"""Work during which Python collects no garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Iterator[None]:
    """Without collections, for work that makes many objects and drops few, such as traces and imports.

    A collection visits every object that there is, again and again. Of several threads the first one that ends switches
    collections on again.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
