"""Regret of elimination under a budget of corruption. Formulas: docs/formulas/robust_frontier.md."""

import math
from typing import Annotated

import numpy as np

from jaxbandits.declared import Axes, NonNegative
from jaxbandits.theory.quantities import FailureProb, NoiseScale, Plays
from jaxbandits.typing import Vector
from jaxbandits.validation import checked


@checked
def wide_elimination_bound(
    means: Annotated[Vector, Axes(1, "array of float [K]")],
    horizon: Plays,
    corruption_budget: NonNegative = 0.0,
    noise_scale: NoiseScale = 0.5,
    failure_prob: FailureProb | None = None,
) -> float:
    """Upper bound of the regret of `stopping_elimination` whose budget of corruption is known.

    Parameters
    ----------
    means
        Expected rewards of the arms, K at least 2, in units of a reward.
    corruption_budget
        C: the sum of the sizes of what an adversary changes in the rewards of the played arms.

    Returns
    -------
    float
        With l = ln(2 K T / delta), the sum over the arms of gap D > 0 of D (1 + ((2 sigma sqrt(2 l) + sqrt(8 sigma^2 l
        + 4 C D)) / D)^2). It holds with probability 1 - delta against every adversary of budget C, who may see the arm.
        It may exceed T max D.

    References
    ----------
    Ours: `docs/formulas/robust_frontier.md#stopping-elimination`

    Examples
    --------
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
