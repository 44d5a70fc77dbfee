"""AdaC-UCB (Azize and Basu 2023): AdaP-UCB with Gaussian noise, for zero-concentrated privacy."""

import math
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.adap_ucb import doubling
from jaxbandits.algorithms.stochastic.episodes import gaussian_claim
from jaxbandits.declared import Doc, Epsilon, Example, Horizon, NumArms, Positive, Remedy, StatedDelta
from jaxbandits.mechanisms.composition import gaussian_event
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.protocol import Algorithm
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    index_scale: Numeric  # beta
    inverse_rho: Numeric  # 1 / rho, 0 without noise
    deviation: Any  # standard deviation of the noise on a sum, 1 / sqrt(2 rho)
    mechanism_scale: Numeric
    delta: Numeric


def adac_index(params, mean, samples, log_t):
    """AdaC-UCB's `adap_ucb.IndexRule`."""
    width = params.index_scale * log_t / samples
    return mean + jnp.sqrt(0.5 * width + params.inverse_rho * width / samples)


def gaussian_noise(params: Params, draws: Draws, t: Int[Array, ""]) -> Float[Array, ""]:
    """Noise for the sum of an episode that ends at play t."""
    scale = params.mechanism_scale * params.deviation
    return scale * draws.child("mean").normal(t)


def _events(params):
    scale = params.deviation * params.mechanism_scale
    return (gaussian_event("sum of an episode's rewards in [0, 1]", 1.0, scale),)


@factory(
    plays_on="arms",
    example=Example({"rho": 0.5, "delta": 0.01}, horizon=600),
    source="""Azize and Basu 2023 (arXiv 2309.00557), AdaC-UCB: the algorithm is recalled, its index derived again, see
        `docs/formulas/private_frontier.md#adac-ucb`.""",
)
def adac_ucb(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    rho: Annotated[Epsilon, Doc("Budget of zero-concentrated privacy; at inf there is no noise.")],
    index_scale: Annotated[Positive, Doc("Multiplies ln t in the index; the analysis asks for more than 3.")] = 3.1,
    delta: Annotated[StatedDelta, Remedy("Gaussian noise has no pure guarantee: give delta > 0")] | None = None,
) -> Algorithm:
    """Play the arm of largest index until its pulls have doubled, then release the episode's mean with normal noise.

    The index is mean + sqrt((1 / (2 n) + 1 / (rho n^2)) index_scale ln t). The mean is that of the arm's last
    episode, of n pulls, plus N(0, 1 / (2 rho n^2)); t is the index of the coming play. Each arm is played once, then
    in episodes of 1, 2, 4, ... pulls.

    Returns:
        Algorithm: rho-zCDP in the central model for rewards that differ in one play: each reward enters one release.
            Its `guarantee.spend` states that as the exact (epsilon, delta) of the Gaussian noise.

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index. An arm's first single pull
        enters the index with n = 1. With rho = inf the plays are those of `adap_ucb` with epsilon = inf.

    >>> algorithm = jb.algorithms.adac_ucb(num_arms=3, horizon=1000, rho=0.125)
    >>> algorithm.params.deviation, round(jb.mechanisms.zcdp(algorithm.guarantee.events(algorithm.params)), 6)
    (2.0, 0.125)
    """
    delta = default_delta(delta, horizon, 1e-5)
    params = Params(index_scale, 1 / rho, 1 / math.sqrt(2 * rho), mechanism_scale=1.0, delta=delta)
    return doubling(num_arms, horizon, adac_index, gaussian_noise, params, gaussian_claim(_events, params))
