"""What Skellam noise on integer sums costs, on the host.

Formulas: docs/formulas/private_frontier.md#secure-aggregation.
"""

import math
from typing import Annotated

from annotated_doc import Doc
from annotated_types import Ge

from jaxbandits.declared import Delta, Positive
from jaxbandits.typing import Scalar
from jaxbandits.validation import checked

Nominal = Annotated[
    Positive, Doc("The nominal budget, finite: noise of standard deviation g / epsilon on sums of integers in [0, g].")
]
Precision = Annotated[Positive, Doc("s: g is at least s epsilon.")]

# orders tried for a conversion: at epsilon = 0.01 and delta = 1e-10 the best is near 700
MOST_ORDERS = 1024


@checked(source="Chowdhury and Zhou (ICLR 2023), Theorem 2: `docs/formulas/private_frontier.md#secure-aggregation`")
def skellam_rdp(
    order: Annotated[int, Ge(2), Doc("The Renyi order a.")], epsilon: Nominal, precision_scale: Precision
) -> float:
    """The Renyi divergence that one block of `dist_elimination(noise="skellam")` costs at most.

    It is a epsilon^2 / 2 + min{(2a - 1) epsilon^2 / (4 s^2) + 3 epsilon / (2 s^3), 3 max(epsilon, epsilon^2) / (2 s)}.

    Notes
    -----
    The printed last term is 3 epsilon^2 / (2 s), which asks for g >= s; below epsilon = 1 short blocks have a smaller
    g, and 3 epsilon / (2 s) is what holds for them.

    >>> skellam_rdp(8, 1.0, 10.0)
    4.039
    """
    return _rdp(order, epsilon, precision_scale)


def _rdp(order: int, epsilon: Scalar, s: Scalar) -> float:
    fine = (2 * order - 1) * epsilon**2 / (4 * s**2) + 3 * epsilon / (2 * s**3)
    return float(order * epsilon**2 / 2 + min(fine, 3 * max(epsilon, epsilon**2) / (2 * s)))


@checked(source="`docs/formulas/private_frontier.md#secure-aggregation`")
def skellam_epsilon(epsilon: Nominal, precision_scale: Precision, delta: Delta) -> float:
    """The epsilon at `delta` that one block of `dist_elimination(noise="skellam")` spends at most.

    It is the least over integer orders a of skellam_rdp(a) + ln(1 - 1/a) - (ln delta + ln a) / (a - 1), at least 0.

    >>> round(skellam_epsilon(1.0, 10.0, 1e-5), 4)
    4.7767
    """
    orders = range(2, MOST_ORDERS)
    converted = (math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in orders)
    spent = (_rdp(a, epsilon, precision_scale) + more for a, more in zip(orders, converted, strict=True))
    return max(0.0, min(spent))
