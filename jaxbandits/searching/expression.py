"""Arguments of a sweep as Python that builds them again, with `import functools` and `import jaxbandits as jb`."""

import functools
import math
from typing import Any

import numpy as np

from jaxbandits.learners.transformations import is_transformation
from jaxbandits.sweeps.arguments import public_name
from jaxbandits.sweeps.configurations import text
from jaxbandits.validation import Arguments, unwrapped

MAX_NUMBERS = 100  # of an array that is written out


def written(x: Any) -> str:
    """An argument as Python.

    What has no expression is written as its name or its shape: a user's own function, an optimizer, a large array.

    >>> import jaxbandits as jb
    >>> written(functools.partial(jb.adversaries.huber, corruption=0.1, value=math.inf))
    "functools.partial(jb.adversaries.huber, corruption=0.1, value=float('inf'))"
    """
    if is_transformation(x):
        return text(x)
    if hasattr(x, "config"):  # a called part
        again = isinstance(x.config, Arguments) and x.config.describes(x)
        maker = getattr(x, "remake", None) if again else None
        return (x.config or {}).get("name", "own") if maker is None else f"{public_name(maker)}({_bound(maker)})"
    if callable(x):
        name, bound = public_name(x), _bound(x)
        return f"functools.partial({name}, {bound})" if bound else name
    if hasattr(x, "__array__") and np.ndim(x):
        shape = np.shape(x)
        return written(np.asarray(x).tolist()) if np.size(x) <= MAX_NUMBERS else f"<array of shape {shape}>"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key!r}: {written(value)}" for key, value in x.items()) + "}"
    if isinstance(x, list):
        return f"[{', '.join(map(written, x))}]"
    if isinstance(x, tuple):
        return f"({', '.join(map(written, x))}{',' if len(x) == 1 else ''})"
    x = x.item() if isinstance(x, np.generic) else x
    return f"float('{x}')" if isinstance(x, float) and not math.isfinite(x) else repr(x)


def _bound(factory: functools.partial[Any]) -> str:
    return ", ".join(f"{key}={written(value)}" for key, value in unwrapped(factory).bound.items())
