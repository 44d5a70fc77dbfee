"""Linear bandits under corruption: order lines of M1 and M2, and radius and bound of CW-OFUL, on the host.

Order lines are those of robust and private stochastic linear bandits (ICML 2023, arXiv 2304.11741). The radii and
thresholds that a run of them computes are in `jaxbandits.algorithms.linear.formulas`.

CW-OFUL is that of He, Zhou, Zhang and Gu 2022. Its constants were not readable:
`docs/formulas/robust_frontier.md#cw-oful` says what is derived here. T is the horizon, d the dimension, L the largest
norm of a feature, B that of theta, C a budget of corruption.
"""

import math
from typing import Annotated, Literal

from jaxbandits.declared import LATER, Doc, FeatureNorm, Ge, Le, NonNegative
from jaxbandits.theory import quantities as q
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare, number


@declare(source="Theorem 1.3; `docs/formulas/robust_linear.md#bounds`.")
def robust_linear_reward_bound(
    dim: q.Features,
    horizon: q.Length,
    epsilon: Annotated[q.Epsilon, Doc("Privacy budget of a reward; inf: no privacy.")] = math.inf,
    *,
    corruption: Annotated[Scalar, Ge(0), Le(0.5)] = 0.0,
    max_gap: q.MaxGap | None = None,
) -> q.Order:
    """Order of the regret in model M1, a client a reward; logarithms and constants are dropped.

    It is (sqrt(d T) + T max{sqrt(alpha d), alpha d}) (1 + 1 / epsilon).

    Args:
        corruption: The share alpha of corrupted rewards. The theorem covers shares below 1/4; the paper's Figure 1
            draws the formula up to 1/2.

    Note:
        The theorem's maximum lost its radicals in our copy. The remark on alpha < 1/d fixes them, while the proof's
        own radius gives T d sqrt(alpha).

        With unit arms and a unit theta no gap exceeds 2, so that a value of 2 T and more says nothing. That is so for
        alpha d >= 4 / (1 + 1 / epsilon)^2 below alpha d = 1: at d = 5 and epsilon = 1 from alpha = 0.2 on, whatever T.

    >>> robust_linear_reward_bound(4, 10_000), robust_linear_reward_bound(4, 10_000, 1.0, corruption=0.01)
    (200.0, 4400.0)
    """
    share = corruption * dim
    bound = (math.sqrt(dim * horizon) + horizon * max(math.sqrt(share), share)) * (1 + 1 / epsilon)
    return q.cut_at_max_gap(bound, horizon, max_gap)


@declare(source="Equation 58 and Theorem 1.4; `docs/formulas/robust_linear.md#bounds`.")
def robust_linear_action_bound(
    dim: q.Features,
    horizon: q.Length,
    epsilon: Annotated[q.Epsilon, Doc("Privacy budget of a client; inf: no privacy.")] = math.inf,
    *,
    source: Literal["proof", "theorem"] = "proof",
    max_gap: q.MaxGap | None = None,
) -> q.Order:
    """Order of the regret in model M2, a client an action, without corruption and at weight_floor of about 1 / d.

    It is d sqrt(T) + d^(3/2) ln(T) / epsilon by the proof, and d sqrt(T) + d / epsilon in the informal theorem, which
    the paper's Figure 1 draws; other logarithms and constants are dropped.

    Args:
        source: Which of the two: they differ in the private term, by sqrt(d) ln(T).

    Note:
        The proof bounds the norm of every arm by sqrt(2 d) (Lemma 3.7), and that factor also multiplies the private
        term. With an exactly G-optimal design no weight exceeds 1 / d, the norm is at most 1, and the theorem's term
        follows if the support is of order d: `docs/deviations/robust_linear.md#order-of-m2`.

    >>> robust_linear_action_bound(4, 10_000)
    400.0
    >>> robust_linear_action_bound(4, 10_000, 0.1, source="theorem")
    440.0
    """
    private = dim if source == "theorem" else dim**1.5 * math.log(horizon)
    return q.cut_at_max_gap(dim * math.sqrt(horizon) + private / epsilon, horizon, max_gap)


def radius_and_weight(
    dim: int, horizon: int, corruption_budget: Scalar | None, ridge: float, noise_scale: Scalar, theta_norm: Scalar,
    feature_norm: Scalar, failure_prob: Scalar | None,
) -> tuple[Scalar, Scalar]:  # fmt: skip
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


@declare(source="`docs/formulas/robust_frontier.md#cw-oful`.")
def cw_bound(
    dim: q.Features,
    horizon: q.Plays,
    corruption_budget: NonNegative | None = None,
    *,
    ridge: Annotated[Scalar, LATER, Doc("Of the regression, at least `feature_norm` squared.")] = 1.0,
    noise_scale: q.NoiseScale = 0.5,
    theta_norm: q.ThetaNorm = 1.0,
    feature_norm: FeatureNorm = 1.0,
    failure_prob: q.FailureProb | None = None,
    max_gap: q.MaxGap | None = None,
) -> float:
    """Upper bound on the regret of CW-OFUL, with its constants: it holds with probability 1 - failure_prob.

    2 beta (sqrt(2 T d i) + 2 d i / alpha) with i = ln(1 + T L^2 / (d ridge)); without the last term at C = 0.

    It is that of `cw_oful` at radius_scale = 1.

    Args:
        corruption_budget: C that the learner allows for; the adversary's may not exceed it. The default: sqrt(T).
        failure_prob: Failure probability of the bound. The default: 1 / T, and 1/2 at T = 1.

    Note:
        Derived here [ours], not the paper's theorem. Heavy plays, of weight 1, cost 2 beta each norm, and the squared
        norms of all of them sum to at most 2 d i. The others have w ||x|| = alpha, so that their norms sum to at most 2
        d i / alpha.

    >>> round(cw_bound(4, 4000, 0, failure_prob=0.05)), round(cw_bound(4, 4000, 50, failure_prob=0.05))
    (4100, 23557)
    """
    remedy = "the bound needs a ridge of at least feature_norm squared"
    ridge = number("ridge", ridge, float(feature_norm**2), remedy=remedy)
    radius, threshold = radius_and_weight(
        dim, horizon, corruption_budget, ridge, noise_scale, theta_norm, feature_norm, failure_prob
    )
    information = dim * math.log1p(horizon * feature_norm**2 / (dim * ridge))
    bound = 2 * radius * (math.sqrt(2 * horizon * information) + 2 * information / threshold)
    return q.cut_at_max_gap(bound, horizon, max_gap)


def __getattr__(name: str) -> object:
    if name in ("counts", "mean_square", "lambda_value", "gamma_practical", "gamma_paper"):
        here, there = f"jaxbandits.theory.linear.{name}", f"jaxbandits.algorithms.linear.formulas.{name}"
        raise ImportError(f"{here} is {there} since 0.2.0")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
