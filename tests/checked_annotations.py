"""Checks annotations of the package, shapes of arrays too, at every call: with CHECK_ANNOTATIONS=1 (conftest.py)."""

from typing import Any, Self

import jax
import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

try:
    from jax._src.literals import TypedNdArray as _Literal  # what a program holds as a number stands for an array
except ImportError:
    _Literal = jax.Array
# Two right annotations that beartype refuses to read; an int is a float, as type checkers have it.
_OVERRIDES = FrozenDict({np.ndarray[Any, Any]: np.ndarray, Self: object, jax.Array: jax.Array | _Literal})
check = beartype(conf=BeartypeConf(hint_overrides=_OVERRIDES, is_pep484_tower=True))
