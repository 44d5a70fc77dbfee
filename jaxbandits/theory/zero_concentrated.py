"""Regret bounds of bandits with zero-concentrated privacy, on the host. Formulas: docs/formulas/private_frontier.md."""

import math
from typing import Annotated

import numpy as np
from annotated_types import Gt, Le

from jaxbandits.declared import Positive
from jaxbandits.theory.quantities import Means, Plays
from jaxbandits.typing import Scalar
from jaxbandits.validation import checked


@checked
def adac_ucb_bound(
    means: Means,
    horizon: Plays,
    rho: Annotated[Scalar, Gt(0), Le(math.inf)],
    index_scale: Positive = 3.1,
) -> float:
    """Leading terms of AdaC-UCB's regret: 8 beta log T / D + 8 sqrt(beta log T / rho), summed over the worse arms.

    It is the sum over the arms of gap D > 0, in units of a reward, without terms of lower order in T. It may exceed T.

    Parameters
    ----------
    rho
        Budget of zero-concentrated privacy.
    index_scale
        beta.

    References
    ----------
    Derived for the algorithm of Azize and Basu 2023 (arXiv 2309.00557) as recalled:
    `docs/formulas/private_frontier.md#adac-ucb`

    Examples
    --------
    >>> round(adac_ucb_bound([0.75, 0.625, 0.5, 0.375, 0.25], 100_000, 0.1), 2)
    5363.21
    """
    log = index_scale * math.log(horizon)
    private, gaps = math.sqrt(log / rho), np.max(means) - np.asarray(means)
    return float(sum(8 * log / gap + 8 * private for gap in gaps[gaps > 0]))
