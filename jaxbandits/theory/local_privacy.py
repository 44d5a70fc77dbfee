"""Orders of error and regret where private reports are corrupted, and what Skellam noise on their integer sums costs.

Formulas: docs/formulas/private_frontier.md.
"""

import math
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Le

from jaxbandits.declared import Delta, Epsilon, NonNegative, Positive
from jaxbandits.mechanisms.randomized_response import response_bound
from jaxbandits.theory.quantities import Arms, Corruption, Plays, clipped
from jaxbandits.typing import Scalar
from jaxbandits.validation import checked

Budget = Annotated[Epsilon, Doc("Privacy budget of one report.")]
MomentOrder = Annotated[Scalar, Ge(2), Le(math.inf), Doc("Order k of the moment that is bounded by 1.")]
Order = Annotated[
    Literal["after", "before"], Doc("Whether reports are corrupted after the clients' noise, or rewards before it.")
]


def _shares(epsilon: Scalar, moment_order: Scalar, corruption: Scalar, order: Order) -> tuple[float, float, float]:
    """c, the power 1 - 1/k, and the corruption part of an error."""
    c, power = response_bound(epsilon), 1 - 1 / moment_order
    return c, float(power), float(((c * corruption) if order == "after" else corruption) ** power)


@checked(source="`docs/formulas/private_frontier.md#local-privacy-and-corruption`")
def local_mean_rate(
    n: Annotated[int, Ge(1), Doc("Number of reports.")],
    epsilon: Budget,
    moment_order: MomentOrder,
    corruption: Corruption,
    order: Order = "after",
) -> float:
    """Order of the error of a mean from n locally private reports, with constant 1.

    It is A^(1 - 1/k) + (c / sqrt n)^(1 - 1/k), c = (e^epsilon + 1) / (e^epsilon - 1); A is c alpha "after", alpha
    "before".

    >>> [round(local_mean_rate(10_000, 0.5, 2.0, 0.05, order), 3) for order in ("before", "after")]
    [0.426, 0.654]
    """
    c, power, corrupted = _shares(epsilon, moment_order, corruption, order)
    return corrupted + (c / math.sqrt(n)) ** power


@checked(source="`docs/formulas/private_frontier.md#local-privacy-and-corruption`")
def local_robust_rate(
    num_arms: Arms,
    horizon: Plays,
    epsilon: Budget,
    moment_order: MomentOrder,
    corruption: Corruption,
    order: Order = "after",
    max_gap: NonNegative = 1.0,
) -> float:
    """Order of the regret of `local_robust_elimination` on the worst instance, with constant 1.

    It is T A^(1 - 1/k) + T^(1/2 + 1/(2k)) (c sqrt(K ln T))^(1 - 1/k), at most T max_gap; c and A as in
    `local_mean_rate`.

    Parameters
    ----------
    max_gap
        Largest gap between two means, in units of a reward: regret is at most T times it.

    >>> round(local_robust_rate(5, 100_000, 1.0, float("inf"), 0.0))
    5192
    """
    c, power, corrupted = _shares(epsilon, moment_order, corruption, order)
    private = (c * math.sqrt(num_arms * math.log(horizon))) ** power * horizon ** (1 - power / 2)
    return clipped(horizon * corrupted + private, horizon, max_gap)


Nominal = Annotated[
    Positive, Doc("The nominal budget, finite: noise of standard deviation g / epsilon on sums of integers in [0, g].")
]
Precision = Annotated[Positive, Doc("s: g is at least s epsilon.")]

MOST_ORDERS = 1024  # orders tried for a conversion: at epsilon = 0.01 and delta = 1e-10 the best is near 700


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
