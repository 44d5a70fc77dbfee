"""Orders of races of arms under a budget of corruption, on the host. Formulas: docs/formulas/robust_frontier.md."""

import math
from typing import Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge

from jaxbandits.declared import NonNegative
from jaxbandits.theory.quantities import FailureProb, Means, Order, Plays
from jaxbandits.typing import Scalar
from jaxbandits.validation import checked

Length = Annotated[Plays, Ge(2)]
Budget = Annotated[
    NonNegative,
    Doc("C: the sum over plays of the largest corruption of any arm, chosen before the arm is known."),
]


def _gaps(means: Any, horizon: int, failure_prob: Scalar | None) -> tuple[Any, float]:
    """Gaps of all arms [K] and K / failure_prob."""
    return np.max(means) - means, len(means) / float(1 / horizon if failure_prob is None else failure_prob)


@checked
def multilayer_bound(
    means: Means,
    horizon: Length,
    corruption_budget: Budget = 0.0,
    failure_prob: FailureProb | None = None,
) -> Order:
    """Order of the multi-layer race's regret, up to constants: (K C ln(K T / p) + ln T) ln(K T / p) / D, summed.

    The sum is over the arms of gap D > 0; p is the failure probability.

    References
    ----------
    Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353), recalled:
    `docs/formulas/robust_frontier.md#multilayer-elimination`

    Examples
    --------
    >>> round(multilayer_bound([0.8, 0.6, 0.5, 0.3], 20_000, failure_prob=0.05))
    1462
    """
    gaps, odds = _gaps(means, horizon, failure_prob)
    log = math.log(horizon * odds)
    return float(sum((len(gaps) * corruption_budget * log + math.log(horizon)) * log / gap for gap in gaps[gaps > 0]))


@checked
def barbar_bound(
    means: Means,
    horizon: Length,
    corruption_budget: Budget = 0.0,
    failure_prob: FailureProb | None = None,
) -> Order:
    """Order of BARBAR's regret, up to constants: K C, and ln(T) ln(K ln(T) / p) / D summed over the worse arms.

    D is an arm's gap, p the failure probability; K C counts where some arm is worse.

    References
    ----------
    Gupta, Koren and Talwar 2019 (arXiv 1902.08647), abstract: `docs/formulas/robust_frontier.md#barbar`

    Examples
    --------
    >>> round(barbar_bound([0.8, 0.6, 0.5, 0.3], 20_000, 100.0, failure_prob=0.05))
    1083
    """
    gaps, odds = _gaps(means, horizon, failure_prob)
    worse = gaps[gaps > 0]
    if len(worse) == 0:
        return 0.0
    log = math.log(horizon) * math.log(odds * math.log(horizon))
    return float(len(gaps) * corruption_budget + sum(log / gap for gap in worse))
