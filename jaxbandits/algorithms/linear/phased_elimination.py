"""Phased elimination (Lattimore and Szepesvari 2020, chapter 22), with locally private reports where wanted.

Axes: [K] arms, [d] features, [L] phases. Draws: `encode/noise` (one Laplace a play).
"""

import math
from typing import Annotated, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batches import BatchRules
from jaxbandits.declared import Doc, Epsilon, Example, Horizon, Inside
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory


class Own(NamedTuple):
    plays: Numeric  # [L]: plays of a phase, for each unit of the largest leverage
    slack: Numeric  # [L]: an arm goes when its estimate is further below the best


def _counts_of_phase(params, memory, design):
    return jnp.asarray(params.own.plays)[memory.batch] * design.max_leverage * design.weights


def _judge_least_squares(params, draws, t, batch):
    return batches.least_squares(params, batch), jnp.asarray(params.own.slack)[batch.number], batch.finite > 0


PHASED_RULES = BatchRules(_counts_of_phase, _judge_least_squares, private=True, truncates=True)


@factory(
    plays_on="fixed set",
    example=Example({"epsilon": 8.0, "noise_scale": 0.3}, horizon=600),
    source="""Lattimore and Szepesvari 2020, chapter 22 (the textbook has g = d, s = 1, b = 0 and K l (l+1) in the
        logarithm); `docs/formulas/robust_linear.md#phased-elimination`.""",
)
def phased_elimination(
    *,
    horizon: Horizon,
    epsilon: Epsilon = math.inf,
    failure_prob: Annotated[Inside, Doc("Of all widths together.")] = 0.05,
    **given: Unpack[arguments.Designed],
) -> arguments.Elimination:
    """Phases of least squares along a G-optimal design, with locally private reports where wanted.

    After phase l = 1, 2, ... arms more than 2 e below the best go, e = 2^-l. Arm a of the design is played
    ceil(2 g w_a (s^2 + 2 b^2) e^-2 log(2 K l (l+1) / failure_prob)) times, at least once: w is its weight, g
    the largest leverage that was reached, s = noise_scale, b = 2 / epsilon.

    Args:
        epsilon: Local privacy of one reward, at least 2e-12: clients add Lap(2 / epsilon) to every reward. inf: no
            noise.

    Note:
        The phase that the horizon cuts short is played in index order and not estimated. The last arm left is played to
        the horizon; so is the best estimate after 32 phases. Each report is epsilon-private if rewards lie in [-1, 1],
        as those of `linear_arms(noise="rademacher")` do; Gaussian rewards do not and have no guarantee. Reports that
        are not finite are left out of the mean, and nothing goes if none is left. Nothing protects it from corruption.

    >>> jb.algorithms.phased_elimination(actions=[[1, 0], [0, 1]], horizon=1000).params.own.plays[:2].round(1)
    array([ 40.6, 197.6])
    """
    num_arms, dim = arguments.check_features(given).shape
    noise, b = given["noise_scale"], arguments.laplace_noise(epsilon)
    phase = np.arange(1, arguments.TABLE_LENGTH + 1)
    plays = 2 * (noise**2 + 2 * b**2) * 4.0**phase * np.log(2 * num_arms * phase * (phase + 1) / failure_prob)
    num_phases = arguments.fewest(plays, horizon)  # the largest leverage is at least 1
    # a design that its last step leaves above (1 + slack) rank is far below 2 rank then
    most = plays[:num_phases] * (1 + max(given["design_slack"], 1.0)) * dim + arguments.support(num_arms, dim)
    own = Own(plays, 2 * 2.0**-phase)
    return arguments.elimination_algorithm(PHASED_RULES, horizon, given, most, own, arguments.LOCAL, noise_scale=b)
