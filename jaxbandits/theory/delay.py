"""Delayed feedback on the host: how long a geometric delay lasts, a bound for UCB, and tunings of the hybrid.

Formulas: `docs/formulas/robust_frontier.md#robust-frontier-delay`.
"""

import math
from typing import Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Le

from jaxbandits.declared import Axes, NonNegative
from jaxbandits.theory.quantities import Arms, Bound, Order, Plays
from jaxbandits.typing import Scalar
from jaxbandits.validation import array, checked

LOST = 1e-9  # expected number of feedbacks of a run beyond `geometric_bound`


@checked(source="docs/formulas/robust_frontier.md#robust-frontier-delay")
def geometric_bound(
    mean: Annotated[Scalar, Ge(0), Le(1e6), Doc("Mean m of the delay in plays.")], horizon: Plays
) -> int:
    """The smallest D with T p^(D + 1) <= 1e-9: a run of T geometric delays hardly ever has one above it.

    It is [ours]. P(d = k) = (1 - p) p^k with p = mean / (1 + mean), so P(d > D) = p^(D + 1).

    >>> geometric_bound(50, 10_000)
    1511
    """
    if mean == 0:
        return 0
    log_p = -math.log1p(1 / mean)

    def rare(most: int) -> bool:
        return math.log(horizon) + (most + 1) * log_p <= math.log(LOST)

    most = max(math.ceil((math.log(LOST) - math.log(horizon)) / log_p) - 1, 0)
    while most > 0 and rare(most - 1):  # the logarithms are rounded
        most -= 1
    return most if rare(most) else most + 1


@checked(
    source="Joulani, György and Szepesvári 2013, recalled; docs/formulas/robust_frontier.md#robust-frontier-delayed-ucb"
)
def delayed_ucb_bound(
    gaps: Annotated[Any, Axes(1, "array of float [K]"), Ge(0), Doc("Gaps of the arms; those of 0 add nothing.")],
    horizon: Annotated[Plays, Ge(2)],
    outstanding: Any,
) -> Bound:
    """Regret bound of UCB1 under delays, `sum (8 ln T / gap + 3.5 gap) + sum gap G*`.

    It is [recalled]. G* is the expected largest number of an arm's plays that are outstanding at once. Under a fixed
    delay d it is at most d.

    Parameters
    ----------
    outstanding : float or array of float [K]
        G* of every arm, or one number for all, at least 0.

    >>> round(delayed_ucb_bound([0.0, 0.5], 1000, 10), 3)
    117.274
    """
    waiting = array("outstanding", np.atleast_1d(outstanding), 1, 0.0)
    if len(waiting) not in (1, len(gaps)):
        raise ValueError(f"outstanding has {len(waiting)} entries, one for each of {len(gaps)} gaps, or one for all")
    worse = gaps > 0
    waiting = np.broadcast_to(waiting, gaps.shape)[worse]
    worse_gaps = gaps[worse]
    return float(np.sum(8 * math.log(horizon) / worse_gaps + 3.5 * worse_gaps) + np.sum(worse_gaps * waiting))


@checked(source="Masoudian, Zimmert and Seldin 2022, recalled; docs/formulas/robust_frontier.md#robust-frontier-hybrid")
def hybrid_tuning(
    num_arms: Arms, delay_bound: Annotated[NonNegative, Doc("The largest delay d, in plays.")]
) -> tuple[float, float]:
    """eta_0 and gamma_0 of the hybrid that is tuned for both worlds, from a bound d on the delay.

    They are [recalled]: eta_0 = 10 d + (d / (K^(1/3) ln K))^2 and gamma_0 = (24 d K^(1/3))^2 ln K.

    >>> [round(x, 6) for x in hybrid_tuning(4, 50)]
    [1016.244892, 5030269.767145]
    """
    d, root, log = delay_bound, num_arms ** (1 / 3), math.log(num_arms)
    return 10 * d + (d / (root * log)) ** 2, (24 * d * root) ** 2 * log


@checked(source="Zimmert and Seldin 2020; docs/formulas/robust_frontier.md#robust-frontier-hybrid")
def delayed_order(
    num_arms: Arms, horizon: Plays, total_delay: Annotated[NonNegative, Doc("D, the sum of all delays.")]
) -> Order:
    """The order of the best possible regret under adversarial losses, `sqrt(K T) + sqrt(D ln K)`.

    It is in the abstract [paper].

    >>> round(delayed_order(4, 2000, 100_000), 1)
    461.8
    """
    return math.sqrt(num_arms * horizon) + math.sqrt(total_delay * math.log(num_arms))
