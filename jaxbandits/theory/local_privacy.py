"""Orders of error and regret where private reports are corrupted. Formulas: docs/formulas/private_frontier.md."""

import math
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Le

from jaxbandits.declared import Epsilon, NonNegative
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
