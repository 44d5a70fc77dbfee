"""Checks annotations of the package, shapes of arrays too, at every call: with CHECK_ANNOTATIONS=1 (conftest.py)."""

from typing import Any, Self

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

# Two right annotations that beartype refuses to read; an int is a float, as type checkers have it.
_OVERRIDES = FrozenDict({np.ndarray[Any, Any]: np.ndarray, Self: object})
check = beartype(conf=BeartypeConf(hint_overrides=_OVERRIDES, is_pep484_tower=True))
