"""How large the largest of several noisy means is by chance."""

import functools
from typing import Annotated

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge
from scipy.special import log_ndtr

from jaxbandits.validation import checked


@checked(source="`docs/formulas/robust_frontier.md#robust-frontier-worst-case`")
def expected_max(m: Annotated[int, Ge(1), Doc("How many normals.")]) -> float:
    """The mean of the largest of m independent standard normals.

    Where m trials of a search have equal true values and independent seeds, n each of deviation s, the largest mean
    exceeds the truth by s / sqrt(n) times this. Trials that share their seeds have less, but not none.

    It is 0 for one, and about sqrt(2 log m) for many.

    >>> [round(expected_max(m), 3) for m in (1, 2, 32, 128)]
    [0.0, 0.564, 2.07, 2.595]
    """
    return _expected_max(m)


@functools.cache
def _expected_max(m: int) -> float:
    # The density m phi(x) Phi(x)^(m - 1) is smooth and vanishes at both ends: the trapezoidal rule is exact there.
    x, step = np.linspace(-12.0, 18.0, 6001, retstep=True)
    log_density = np.log(m) - x**2 / 2 - np.log(2 * np.pi) / 2 + (m - 1) * log_ndtr(x)
    return float(np.sum(x * np.exp(log_density)) * step) if m > 1 else 0.0
