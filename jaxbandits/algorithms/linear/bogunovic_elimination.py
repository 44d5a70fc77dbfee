"""Robust phased elimination for a known or unknown amount of corruption (Bogunovic, Losalka, Krause and Scarlett 2021).

Axes: [K] arms, [d] features, [H] batches of doubling length. No draws.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batches import Rules
from jaxbandits.protocol import Algorithm, Guarantee
from jaxbandits.validation import factory, integer, number


class Own(NamedTuple):
    sizes: Any  # [H] m_h
    slack: Any  # [H] an arm goes when its estimate is further below the best
    weight_floor: Any


def _counts(params, batch, design):
    return jnp.asarray(params.own.sizes)[batch] * jnp.maximum(design.weights, params.own.weight_floor)


def _judge(params, draws, t, batch):
    return batches.least_squares(params, batch), jnp.asarray(params.own.slack)[batch.number], batch.finite > 0


RULES = Rules(_counts, _judge, truncates=True)


@factory
def bogunovic_elimination(
    *, actions, horizon, corruption_budget=None, weight_floor=None, failure_prob=0.05, noise_scale=1.0, design_slack=1.0
) -> Algorithm:  # fmt: skip
    """Batches h = 0, 1, ... with m_h = 2^h m_0, m_0 = 4 d (log log d + 18); the width of elimination allows for corruption C in total.

    Arm a of the design, of weight w_a, is played ceil(m_h max(w_a, v)) times, v = weight_floor. After least squares an arm goes
    when it is more than 2 s sqrt(4 d log(1/failure_prob) / m_h) + 2 C / (m_h v) sqrt(4 d (1 + v m_0)) below the best, s = noise_scale.
    The batch that the horizon cuts short is played in index order and not estimated; the last arm left is played to the horizon.

    corruption_budget: C >= 0, the sum over plays of |corruption|, such as share * horizon * largest size; None: unknown, and batch h
    uses min(sqrt(T) / log T, sqrt(d) 2^(H-h)) for it, h = H being the last batch that can begin. weight_floor in (0, 1];
    None: 1/m_0. log log d is that of max(d, 2). actions: [K, d], K >= 2, not all zero. failure_prob in (0, 1). noise_scale >= 0.
    design_slack >= 0. Reports that are not finite are left out of the mean (nothing goes if none is left). Raises ValueError
    outside. No privacy. Diagnostics: `active_arms`, `batches` (estimated).
    Source: specification of robust linear bandits, section 7.2, recalled: the publication was not at hand, constants are
    unverified (so are H, the default of weight_floor and the factor s, which the formula has as 1).

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.bogunovic_elimination(actions=[[1, 0], [0, 1]], horizon=1000, corruption_budget=5.0)
    >>> made.params.own.sizes[:2].round(1), made.params.own.slack[:2].round(2)
    (array([141.1, 282.1]), array([40.82, 20.58]))
    """
    actions, horizon = arguments.checked_actions(actions), integer("horizon", horizon, 1)
    num_arms, dim = actions.shape
    (noise, _), failure = arguments.noise(noise_scale, math.inf), arguments.probability("failure_prob", failure_prob)
    first = 4 * dim * (math.log(math.log(max(dim, 2))) + 18)
    floor = 1 / first if weight_floor is None else number("weight_floor", weight_floor, 0.0, 1.0, open_low=True)
    sizes = arguments.doubled(first, horizon)
    last = len(sizes) - 1
    if corruption_budget is None:
        cap = math.sqrt(horizon) / math.log(max(horizon, 2))
        corruption = np.minimum(cap, math.sqrt(dim) * 2.0 ** (last - np.arange(last + 1)))
    else:
        corruption = np.full(last + 1, number("corruption_budget", corruption_budget, 0.0))
    slack = 2 * noise * np.sqrt(4 * dim * math.log(1 / failure) / sizes)
    slack = slack + 2 * corruption / (sizes * floor) * math.sqrt(4 * dim * (1 + floor * first))
    support = arguments.support(num_arms, dim)
    return arguments.assembled(
        "bogunovic_elimination", RULES, actions=actions, horizon=horizon, most=sizes * (1 + floor * support) + support,
        batches=len(sizes), design_slack=design_slack, reward_scale=noise, noise_scale=0.0,
        own=Own(arguments.column(sizes), arguments.column(slack), floor), guarantee=Guarantee(),
    )  # fmt: skip
