"""Regret under a budget of corruption, on the host. Formulas: docs/formulas/robust_frontier.md."""

import math
from typing import Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge

from jaxbandits.declared import Axes, NonNegative, Positive, Probability
from jaxbandits.theory.quantities import FailureProb, Length, Means, NoiseScale, Order, Plays
from jaxbandits.typing import Scalar, Vector
from jaxbandits.validation import checked

AtLeastTwo = Annotated[Plays, Ge(2)]
Budget = Annotated[
    NonNegative, Doc("C: the sum over plays of the largest corruption of any arm, chosen before the arm is known.")
]

StrongBudget = Annotated[
    NonNegative, Doc("C: the sum of the sizes of what an adversary changes in the rewards of the played arms.")
]
AnyMeans = Annotated[
    Vector, Axes(1, "array of float [K]"), Doc("Expected rewards of the arms, K at least 2, in units of a reward.")
]


def _gaps(means: Any, horizon: int, failure_prob: Scalar | None) -> tuple[Any, float]:
    """Gaps of all arms [K] and K / failure_prob."""
    return np.max(means) - means, len(means) / float(1 / horizon if failure_prob is None else failure_prob)


@checked(
    source="Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353), recalled: "
    "`docs/formulas/robust_frontier.md#multilayer-elimination`"
)
def multilayer_bound(
    means: Means, horizon: AtLeastTwo, corruption_budget: Budget = 0.0, failure_prob: FailureProb | None = None
) -> Order:
    """Order of the multi-layer race's regret, up to constants: (K C ln(K T / p) + ln T) ln(K T / p) / D, summed.

    The sum is over the arms of gap D > 0; p is the failure probability.

    >>> round(multilayer_bound([0.8, 0.6, 0.5, 0.3], 20_000, failure_prob=0.05))
    1462
    """
    gaps, odds = _gaps(means, horizon, failure_prob)
    log = math.log(horizon * odds)
    return float(sum((len(gaps) * corruption_budget * log + math.log(horizon)) * log / gap for gap in gaps[gaps > 0]))


@checked(source="Gupta, Koren and Talwar 2019 (arXiv 1902.08647), abstract: `docs/formulas/robust_frontier.md#barbar`")
def barbar_bound(
    means: Means, horizon: AtLeastTwo, corruption_budget: Budget = 0.0, failure_prob: FailureProb | None = None
) -> Order:
    """Order of BARBAR's regret, up to constants: K C, and ln(T) ln(K ln(T) / p) / D summed over the worse arms.

    D is an arm's gap, p the failure probability; K C counts where some arm is worse.

    >>> round(barbar_bound([0.8, 0.6, 0.5, 0.3], 20_000, 100.0, failure_prob=0.05))
    1083
    """
    gaps, odds = _gaps(means, horizon, failure_prob)
    worse = gaps[gaps > 0]
    if len(worse) == 0:
        return 0.0
    log = math.log(horizon) * math.log(odds * math.log(horizon))
    return float(len(gaps) * corruption_budget + sum(log / gap for gap in worse))


@checked(source="Ours: `docs/formulas/robust_frontier.md#stopping-elimination`")
def wide_elimination_bound(
    means: AnyMeans,
    horizon: Plays,
    corruption_budget: StrongBudget = 0.0,
    noise_scale: NoiseScale = 0.5,
    failure_prob: FailureProb | None = None,
) -> float:
    """Upper bound of the regret of `stopping_elimination` whose budget of corruption is known.

    Returns
    -------
    float
        With l = ln(2 K T / delta), the sum over the arms of gap D > 0 of D (1 + ((2 sigma sqrt(2 l) + sqrt(8 sigma^2 l
        + 4 C D)) / D)^2). It holds with probability 1 - delta against every adversary of budget C, who may see the arm.
        It may exceed T max D.

    >>> round(wide_elimination_bound([0.8, 0.6, 0.5, 0.3], 20_000, 100.0, failure_prob=0.05), 1)
    3172.9
    """
    values, failure = np.asarray(means), 1 / horizon if failure_prob is None else failure_prob
    noise = 8 * noise_scale**2 * math.log(2 * len(values) * horizon / failure)
    gaps = values.max() - values
    return math.fsum(
        gap * (1 + ((math.sqrt(noise) + math.sqrt(noise + 4 * corruption_budget * gap)) / gap) ** 2)
        for gap in gaps[gaps > 0]
    )


@checked(source="Ours: `docs/formulas/robust_frontier.md#robust-frontier-budgets`.")
def budget_of_share(
    share: Annotated[Probability, Doc("Chance that a reward is corrupted.")],
    horizon: Length,
    size: Annotated[Positive, Doc("How far a corrupted reward is moved, in units of a reward.")],
) -> float:
    """The budget that a share of corrupted rewards amounts to on average: share * horizon * size.

    Huber's share is no budget: how many rewards are hit is random, and nothing bounds how far each is moved. The number
    tells which `total` of `budgeted` to compare with which `corruption` of `huber`.

    >>> budget_of_share(0.01, 20_000, 0.5)
    100.0
    """
    return float(share * horizon * size)
