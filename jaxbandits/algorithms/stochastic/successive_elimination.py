"""Successive elimination (Even-Dar, Mannor and Mansour 2006).

The form is that of Algorithm 1 of Wu, Zhou, Tao and Wang 2023 (arXiv 2302.02526) without noise, truncation or doubling.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.elimination import DROPPED, by_rounds
from jaxbandits.algorithms.stochastic.plain_reports import finite
from jaxbandits.declared import Example, FailureProb, Horizon, NonNegative, NumArms
from jaxbandits.numerics import count
from jaxbandits.protocol import Algorithm, Rewards, Span
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    noise_scale: Numeric
    log_term: Numeric  # ln(4 K / failure_prob)


def radius(params, pulls, t):
    """Half of what a mean may be below the best."""
    return params.noise_scale * jnp.sqrt(2 * (params.log_term + 2 * jnp.log(t.astype(pulls.dtype))) / pulls)


def diagnose(params, state):
    """How many arms are left."""
    return {"active_arms": count(state.mean > DROPPED)}


@factory(
    plays_on="arms",
    example=Example({"noise_scale": 0.2}),
    source="""Even-Dar, Mannor and Mansour 2006; the margin is ours:
        `docs/formulas/private_robust_mab.md#successive-elimination`.""",
)
def successive_elimination(
    *, num_arms: NumArms, horizon: Horizon, noise_scale: NonNegative = 1.0, failure_prob: FailureProb | None = None
) -> Algorithm:
    """Pull every active arm once a round and drop the arms that are clearly worse at the round's end.

    Arms are pulled in index order. An arm is dropped when the best mean exceeds its own by more than 2 noise_scale
    sqrt(2 ln(4 K t^2 / failure_prob) / N), where t counts the plays so far and N the arm's pulls. The last arm is
    played to the horizon.

    Args:
        noise_scale: Sub-Gaussian scale of the rewards; 0.5 suffices for rewards in [0, 1].

    Returns:
        Algorithm: Without a privacy guarantee. Diagnostic: `active_arms`, how many arms are left at the horizon.

    Note:
        A non-finite reward counts as 0.

    >>> jb.algorithms.successive_elimination(num_arms=3, horizon=100).schedule[0].repeats
    100
    """
    log_term = math.log(4 * num_arms * horizon if failure_prob is None else 4 * num_arms / failure_prob)
    # Windows of one play: with two arms left a round is two plays, so longer windows would be mostly empty.
    functions = by_rounds(num_arms, finite, radius, diagnose)
    return Algorithm(functions, (Span(1, horizon),), Params(noise_scale, log_term), rewards=Rewards())
