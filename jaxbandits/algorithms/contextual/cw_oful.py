"""CW-OFUL (He, Zhou, Zhang and Gu 2022): plays whose feature is uncertain weigh less, so that corruption moves little.

State, message and functions are those of `linucb`, with a weight.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.linucb import Contexts, FailureProb, Ridge, ThetaNorm, program
from jaxbandits.declared import Dim, Example, FeatureNorm, Horizon, NonNegative, NumArms
from jaxbandits.protocol import Algorithm, Rewards, Span
from jaxbandits.theory.linear import radius_and_weight
from jaxbandits.typing import Array, Float, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    """Numbers of CW-OFUL; V is what `linucb` calls P^-1."""

    radius_scale: Numeric
    ridge: Numeric
    radius: Any  # beta, of the confidence set
    threshold: Numeric  # alpha: plays with ||x|| of V^-1 above it weigh less; inf without corruption


def _width(params: Params, time: Array) -> Array:
    return params.radius_scale * params.radius


def _weight(params: Params, square: Float[Array, ""]) -> Float[Array, ""]:
    """min(1, threshold / sqrt(square)): selected, so that neither inf nor 0 is multiplied or divided."""
    norm = jnp.sqrt(jnp.maximum(square, 0))
    uncertain = norm > params.threshold
    return jnp.where(uncertain, params.threshold / jnp.where(uncertain, norm, 1), 1)


@factory(
    plays_on="decision set",
    example=Example({"corruption_budget": 10.0, "radius_scale": 0.2}),
    source="""He, Zhou, Zhang and Gu 2022, not read (estimator from others' code, radius derived anew):
        `docs/formulas/robust_frontier.md#cw-oful`. Bound: `theory.cw_bound`.""",
)
def cw_oful(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Horizon,
    corruption_budget: NonNegative | None = None,
    ridge: Ridge = 1.0,
    noise_scale: NonNegative = 0.5,
    theta_norm: ThetaNorm = 1.0,
    feature_norm: FeatureNorm = 1.0,
    failure_prob: FailureProb = None,
    radius_scale: NonNegative = 1.0,
    contexts: Contexts = "redraw",
) -> Algorithm:
    """OFUL whose plays weigh less the more uncertain their feature is, so that corruption moves little.

    With V = ridge I + sum w x x' and theta = V^-1 sum w x r it plays the arm of largest <x, theta> + radius_scale beta
    sqrt(x' V^-1 x). The play's weight is w = min(1, alpha / sqrt(x' V^-1 x)), V as it was at the decision.

    Args:
        corruption_budget: C, the sum of the sizes of what an adversary adds to the rewards of played arms. 0: all
            weights are 1, and this is OFUL. The default: sqrt(horizon), which covers every budget up to it.
        noise_scale: The rewards' sub-Gaussian scale R; 1/2 holds for rewards in [0, 1].
        radius_scale: Multiplies beta where arms are compared. It changes no weight.

    Note:
        alpha = (R sqrt(d) + sqrt(ridge) B) / C, and beta = R sqrt(d ln((1 + T L^2 / ridge) / p)) + sqrt(ridge) B +
        alpha C with p = failure_prob. At C = 0 the last term is 0, while it is R sqrt(d) + sqrt(ridge) B for every C >
        0: curves over C have a step there. Ties go to the lowest arm within 1e-5 of the largest index. Non-finite
        rewards count as 0. The weight is fixed at the decision and goes with the play, so that it is right when the
        reward comes late.

    >>> algorithm = jb.algorithms.cw_oful(num_arms=20, dim=4, horizon=4000, corruption_budget=50, failure_prob=0.05)
    >>> round(algorithm.params.threshold, 6), round(algorithm.params.radius, 6)
    (0.04, 6.360064)
    """
    radius, threshold = radius_and_weight(
        dim, horizon, corruption_budget, float(ridge), noise_scale, theta_norm, feature_norm, failure_prob
    )
    params = Params(radius_scale=radius_scale, ridge=ridge, radius=radius, threshold=threshold)
    functions = program(num_arms, dim, contexts, _width, _weight)
    return Algorithm(functions, (Span(1, horizon),), params, rewards=Rewards())
