"""Robust phased elimination for a known or unknown amount of corruption (Bogunovic, Losalka, Krause and Scarlett 2021).

Axes: [K] arms, [d] features, [H] batches of doubling length. No draws.
"""

import math
from typing import Annotated, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batches import BatchRules
from jaxbandits.declared import Doc, Example, Gt, Horizon, Inside, Le, NonNegative
from jaxbandits.protocol import Guarantee
from jaxbandits.typing import Numeric, Scalar
from jaxbandits.validation import factory


class Own(NamedTuple):
    sizes: Numeric  # [H], m_h
    slack: Numeric  # [H]: an arm goes when its estimate is further below the best
    weight_floor: Numeric


def _counts_with_floor(params, memory, design):
    return jnp.asarray(params.own.sizes)[memory.batch] * jnp.maximum(design.weights, params.own.weight_floor)


def _judge_least_squares(params, draws, t, batch):
    return batches.least_squares(params, batch), jnp.asarray(params.own.slack)[batch.number], batch.finite > 0


BOGUNOVIC_RULES = BatchRules(_counts_with_floor, _judge_least_squares, truncates=True)


@factory(
    plays_on="fixed set",
    example=Example({"corruption_budget": 0.0}, world="linear", horizon=900),
    source="Bogunovic, Losalka, Krause and Scarlett 2021; `docs/formulas/robust_linear.md#robust-phased-elimination`.",
)
def bogunovic_elimination(
    *,
    horizon: Horizon,
    corruption_budget: NonNegative | None = None,
    weight_floor: Annotated[Scalar, Gt(0), Le(1), Doc("v. The default: 1/m_0.")] | None = None,
    failure_prob: Annotated[Inside, Doc("Of a width.")] = 0.05,
    **given: Unpack[arguments.Designed],
) -> arguments.Elimination:
    """Robust phased elimination: batches of doubling length whose width allows for corruption C in total.

    Batch h = 0, 1, ... has m_h = 2^h m_0, m_0 = 4 d (log log d + 18). Arm a of the design, of weight w_a, is played
    ceil(m_h max(w_a, v)) times, v = weight_floor. After least squares an arm goes when it is more than
    2 s sqrt(4 d log(1/failure_prob) / m_h) + 2 C / (m_h v) sqrt(4 d (1 + v m_0)) below the best, s = noise_scale.

    Args:
        corruption_budget: C, the sum over plays of `|corruption|`, such as share * horizon * largest size. The default:
            unknown; batch h then uses min(sqrt(T) / log T, sqrt(d) 2^(H-h)), H being the last batch that can begin.

    Note:
        The batch that the horizon cuts short is played in index order and not estimated. The last arm left is played to
        the horizon. log log d is that of max(d, 2). Reports that are not finite are left out of the mean, and nothing
        goes if none is left. There is no privacy.

        The algorithm is recalled: the publication was not at hand and its constants are unverified. So are H, the
        default of weight_floor and the factor s, which the formula has as 1 (`docs/deviations/robust_linear.md`).

    >>> algorithm = jb.algorithms.bogunovic_elimination(actions=[[1, 0], [0, 1]], horizon=1000, corruption_budget=5.0)
    >>> algorithm.params.own.sizes[:2].round(1), algorithm.params.own.slack[:2].round(2)
    (array([141.1, 282.1]), array([40.82, 20.58]))
    """
    num_arms, dim = arguments.check_features(given).shape
    first = 4 * dim * (math.log(math.log(max(dim, 2))) + 18)
    floor = 1 / first if weight_floor is None else weight_floor
    sizes = arguments.doubling_sizes(first, horizon)
    last = len(sizes) - 1
    if corruption_budget is None:
        cap = math.sqrt(horizon) / math.log(max(horizon, 2))
        corruption = np.minimum(cap, math.sqrt(dim) * 2.0 ** (last - np.arange(last + 1)))
    else:
        corruption = np.full(last + 1, corruption_budget)
    slack = 2 * given["noise_scale"] * np.sqrt(4 * dim * math.log(1 / failure_prob) / sizes)
    slack = slack + 2 * corruption / (sizes * floor) * math.sqrt(4 * dim * (1 + floor * first))
    support = arguments.support(num_arms, dim)
    most_plays = sizes * (1 + floor * support) + support
    own = Own(arguments.column(sizes), arguments.column(slack), floor)
    return arguments.elimination_algorithm(BOGUNOVIC_RULES, horizon, given, most_plays, own, Guarantee())
