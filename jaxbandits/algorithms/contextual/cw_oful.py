"""CW-OFUL (He, Zhou, Zhang and Gu 2022): plays whose feature is uncertain weigh less, so that corruption moves little.

The estimator was read in others' code, and the radius is derived anew: `docs/formulas/robust_frontier.md#cw-oful`.
State, message and functions are those of `linucb`, with a weight.
"""

from typing import Any, Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.linucb import program
from jaxbandits.protocol import Algorithm, Guarantee, Rewards, Span
from jaxbandits.theory.linear_robust import weighted_radius
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    """Numbers of CW-OFUL; V is what `linucb` calls P^-1."""

    radius_scale: Any
    ridge: Any
    # beta, of the confidence set
    radius: Any
    # alpha: plays with ||x|| of V^-1 above it weigh less; inf without corruption
    threshold: Any


def _width(params: Params, time: Any) -> Any:
    return params.radius_scale * params.radius


def _weight(params: Params, square: Float[Array, ""]) -> Float[Array, ""]:
    """min(1, threshold / sqrt(square)): selected, so that neither inf nor 0 is multiplied or divided."""
    norm = jnp.sqrt(jnp.maximum(square, 0))
    uncertain = norm > params.threshold
    return jnp.where(uncertain, params.threshold / jnp.where(uncertain, norm, 1), 1)


@factory
def cw_oful(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    corruption_budget: Scalar | None = None,
    ridge: Scalar = 1.0,
    noise_scale: Scalar = 0.5,
    theta_norm: Scalar = 1.0,
    feature_norm: Scalar = 1.0,
    failure_prob: Scalar | None = None,
    radius_scale: Scalar = 1.0,
    contexts: Literal["redraw", "fixed"] = "redraw",
) -> Algorithm:
    """OFUL whose plays weigh less the more uncertain their feature is, so that corruption moves little.

    With V = ridge I + sum w x x' and theta = V^-1 sum w x r it plays the arm of largest <x, theta> + radius_scale beta
    sqrt(x' V^-1 x). The play's weight is w = min(1, alpha / sqrt(x' V^-1 x)), V as it was at the decision.

    Parameters
    ----------
    num_arms : int
        Arms K of a decision set, at least 2 [static]. Filled in from the environment.
    dim : int
        Features d of an arm, at least 1 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in by `sweep` and `simulate`.
    corruption_budget : float, optional
        C, at least 0: the sum of the sizes of what an adversary adds to the rewards of played arms. 0: all weights
        are 1, and this is OFUL. Default: sqrt(horizon), which covers every budget up to it.
    ridge : float, default 1.0
        Of the regression, in [1e-6, 1e6].
    noise_scale : float, default 0.5
        The rewards' sub-Gaussian scale R, at least 0; 1/2 holds for rewards in [0, 1].
    theta_norm : float, default 1.0
        Bound B > 0 on the norm of the unknown theta.
    feature_norm : float, default 1.0
        The largest norm L > 0 of a feature.
    failure_prob : float, optional
        That the confidence sets fail, in (0, 1). Default: 1 / horizon, and 1/2 at horizon 1.
    radius_scale : float, default 1.0
        Multiplies beta where arms are compared, at least 0. It changes no weight.
    contexts : {"redraw", "fixed"}, default "redraw"
        Which contexts to expect [static]. "redraw" takes any. "fixed" relies on every play of a trial showing
        the same arms, and keeps their scores and widths, as in `linucb`. Filled in from the environment.

    Returns
    -------
    Algorithm
        For environments whose contexts are decision sets [K, d], such as `environments.contextual_linear`.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    alpha = (R sqrt(d) + sqrt(ridge) B) / C, and beta = R sqrt(d ln((1 + T L^2 / ridge) / p)) + sqrt(ridge) B + alpha C
    with p = failure_prob. At C = 0 the last term is 0, while it is R sqrt(d) + sqrt(ridge) B for every C > 0: curves
    over C have a step there. Ties go to the lowest arm within 1e-5 of the largest index. Non-finite rewards count as 0.
    The weight is fixed at the decision and goes with the play, so that it is right when the reward comes late.

    References
    ----------
    He, Zhou, Zhang and Gu 2022, not read (estimator from others' code, radius derived anew):
    `docs/formulas/robust_frontier.md#cw-oful`. Bound: `theory.cw_bound`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.cw_oful(num_arms=20, dim=4, horizon=4000, corruption_budget=50, failure_prob=0.05)
    >>> round(algorithm.params.threshold, 6), round(algorithm.params.radius, 6)
    (0.04, 6.360064)
    """
    num_arms, dim = integer("num_arms", num_arms, 2), integer("dim", dim, 1)
    horizon = integer("horizon", horizon, 1)
    scale = number("radius_scale", radius_scale, 0.0)
    contexts = choice("contexts", contexts, ("redraw", "fixed"))
    ridge = number("ridge", ridge, 1e-6, 1e6)
    radius, threshold = weighted_radius(
        dim, horizon, corruption_budget, ridge, noise_scale, theta_norm, feature_norm, failure_prob
    )
    static = (num_arms, dim, contexts)
    return Algorithm(
        program=program(*static, _width, _weight),
        schedule=(Span(1, horizon),),
        params=Params(radius_scale=scale, ridge=ridge, radius=radius, threshold=threshold),
        guarantee=Guarantee(),
        version=("cw_oful", 2, static),
        config={},
        rewards=Rewards(),
    )
