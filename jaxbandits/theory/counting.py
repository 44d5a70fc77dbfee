"""Errors of private running sums, on the host. Formulas: docs/formulas/counting.md."""

import math
from typing import Annotated, Literal

import numpy as np

from jaxbandits.declared import LATER, Doc, Ge, Le
from jaxbandits.mechanisms.counters import toeplitz
from jaxbandits.mechanisms.counters.counter import form_of
from jaxbandits.validation import declare, integer

Released = Annotated[int, Ge(1), Doc("Running sums that are released.")]


@declare(source="docs/formulas/counting.md#error")
def counting_error(
    form: Literal["blt", "tree", "honaker", "square_root", "banded", "k_ary", "increment"],
    n: Annotated[Released, Le(2**20)],
    error: Annotated[Literal["max", "mean"], Doc("The largest deviation, or their root mean square.")] = "max",
    *,
    buffers: Annotated[int, LATER, Doc('Of "blt".')] = 4,
) -> float:
    """The noise of n private running sums at equal privacy: column norm times deviation.

    Args:
        form: As in `mechanisms.counter`; "blt" and "k_ary" with the parameters for `error`, "banded" with min(256, n)
            bands. "increment" is noise on every message.

    Returns:
        Standard deviation of the noise for a unit of sensitivity 1 and unit noise. That of "k_ary" is for the 1-norm
        and Laplace noise, and does not compare with the others.

    >>> [round(counting_error(form, 1000), 3) for form in ("blt", "square_root", "honaker", "tree", "increment")]
    [3.265, 3.265, 6.736, 9.487, 31.623]
    """
    if form == "increment":
        return math.sqrt(n if error == "max" else (n + 1) / 2)
    if form == "square_root":
        made = toeplitz.square_root(n, 1, 1)
    else:
        made = form_of(form, n, error, integer("buffers", buffers, 1))
    deviation = np.asarray(made.deviation(np.arange(1, n + 1)), np.float64)
    return made.column_norm * float(deviation.max() if error == "max" else math.sqrt(np.mean(deviation**2)))


@declare(
    source="Matousek, Nikolov and Talwar 2020, as the abstract of arXiv 2509.14334 quotes it: "
    "docs/formulas/counting.md#error"
)
def counting_lower_bound(n: Released) -> float:
    """The least largest error that any factorization of n running sums can have.

    It is (2 + log((2 n + 1) / 3)) / pi.

    >>> round(counting_lower_bound(1000), 3)
    2.707
    """
    return (2 + math.log((2 * n + 1) / 3)) / math.pi
