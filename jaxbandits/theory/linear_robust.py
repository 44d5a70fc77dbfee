"""Radius and bound of CW-OFUL (He, Zhou, Zhang and Gu 2022), linear bandits under corruption, on the host.

Its constants were not readable: `docs/formulas/robust_frontier.md#cw-oful` says what is derived here.
T is the horizon, d the dimension, L the largest norm of a feature, B that of theta, C a budget of corruption.
"""

import math
from typing import Annotated

from annotated_doc import Doc

from jaxbandits.declared import LATER, NonNegative
from jaxbandits.theory.quantities import (
    FailureProb,
    FeatureNorm,
    Features,
    MaxGap,
    NoiseScale,
    Plays,
    ThetaNorm,
    clipped,
)
from jaxbandits.typing import Scalar
from jaxbandits.validation import checked, number


def weighted_radius(
    dim: int,
    horizon: int,
    corruption_budget: Scalar | None,
    ridge: float,
    noise_scale: Scalar,
    theta_norm: Scalar,
    feature_norm: Scalar,
    failure_prob: Scalar | None,
) -> tuple[Scalar, Scalar]:
    """(beta, alpha) of CW-OFUL, alpha = inf at C = 0."""
    corruption = math.sqrt(horizon) if corruption_budget is None else corruption_budget
    failure = 1 / max(horizon, 2) if failure_prob is None else failure_prob
    shrinkage = math.sqrt(ridge) * theta_norm
    confidence = math.log1p(horizon * feature_norm**2 / ridge) - math.log(failure)
    radius = noise_scale * math.sqrt(dim * confidence) + shrinkage
    if corruption == 0:
        return float(radius), math.inf
    share = noise_scale * math.sqrt(dim) + shrinkage  # alpha C
    return float(radius + share), float(share / corruption)


@checked(source="`docs/formulas/robust_frontier.md#cw-oful`.")
def cw_bound(
    dim: Features,
    horizon: Plays,
    corruption_budget: NonNegative | None = None,
    *,
    ridge: Annotated[Scalar, LATER, Doc("Of the regression, at least `feature_norm` squared.")] = 1.0,
    noise_scale: NoiseScale = 0.5,
    theta_norm: ThetaNorm = 1.0,
    feature_norm: FeatureNorm = 1.0,
    failure_prob: FailureProb | None = None,
    max_gap: MaxGap | None = None,
) -> float:
    """Upper bound on the regret of CW-OFUL, with its constants: it holds with probability 1 - failure_prob.

    2 beta (sqrt(2 T d i) + 2 d i / alpha) with i = ln(1 + T L^2 / (d ridge)); without the last term at C = 0.

    It is that of `cw_oful` at radius_scale = 1.

    Parameters
    ----------
    corruption_budget
        C that the learner allows for; the adversary's may not exceed it. The default: sqrt(T).
    failure_prob
        Failure probability of the bound. The default: 1 / T, and 1/2 at T = 1.

    Notes
    -----
    Derived here [ours], not the paper's theorem. Heavy plays, of weight 1, cost 2 beta each norm, and the squared
    norms of all of them sum to at most 2 d i. The others have w ||x|| = alpha, so that their norms sum to at most 2 d i
    / alpha.

    >>> round(cw_bound(4, 4000, 0, failure_prob=0.05)), round(cw_bound(4, 4000, 50, failure_prob=0.05))
    (4100, 23557)
    """
    ridge = number(
        "ridge", ridge, float(feature_norm**2), remedy="the bound needs a ridge of at least feature_norm squared"
    )
    radius, threshold = weighted_radius(
        dim, horizon, corruption_budget, ridge, noise_scale, theta_norm, feature_norm, failure_prob
    )
    information = dim * math.log1p(horizon * feature_norm**2 / (dim * ridge))
    bound = 2 * radius * (math.sqrt(2 * horizon * information) + 2 * information / threshold)
    return clipped(bound, horizon, max_gap)
