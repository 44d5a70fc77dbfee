"""Phased elimination (Lattimore and Szepesvari 2020, chapter 22), with locally private reports where wanted.

Axes: [K] arms, [d] features, [L] phases. Draws: `encode/noise` (one Laplace a play).
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batches import Rules
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory, integer, number


class Own(NamedTuple):
    plays: Any  # [L] of a phase, for each unit of the largest leverage
    slack: Any  # [L] an arm goes when its estimate is further below the best


def _counts(params, phase, design):
    return jnp.asarray(params.own.plays)[phase] * design.max_leverage * design.weights


def _judge(params, draws, t, batch):
    return batches.least_squares(params, batch), jnp.asarray(params.own.slack)[batch.number], batch.finite > 0


RULES = Rules(_counts, _judge, private=True, truncates=True)


@factory
def phased_elimination(
    *, actions, horizon, epsilon=math.inf, failure_prob=0.05, noise_scale=1.0, design_slack=1.0
) -> Algorithm:  # fmt: skip
    """Phases l = 1, 2, ... of least squares along a G-optimal design; after each, arms more than 2 e below the best go, e = 2^-l.

    Arm a of the design is played ceil(2 g w_a (s^2 + 2 b^2) e^-2 log(2 K l (l+1) / failure_prob)) times, at least once: w its weight,
    g the largest leverage that was reached, s = noise_scale, b = 2 / epsilon. The phase that the horizon cuts short is played in
    index order and not estimated. The last arm left is played to the horizon; so is the best estimate after 32 phases.

    actions: [K, d], K >= 2, not all zero. epsilon in (0, inf]: clients add Lap(2 / epsilon) to every reward, which makes each report
    epsilon-private (local model) if rewards lie in [-1, 1], as those of `linear_arms(noise="rademacher")` do; Gaussian rewards do
    not and have no guarantee. failure_prob in (0, 1). noise_scale >= 0: the rewards' sub-Gaussian scale. design_slack >= 0:
    the design stops at leverage (1 + design_slack) rank. Reports that are not finite are left out of the mean (nothing goes if none
    is left). Raises ValueError outside. Nothing protects it from corruption.
    Diagnostics: `active_arms`, `batches` (phases estimated).
    Source: Lattimore and Szepesvari 2020, chapter 22, in the form of the specification of robust linear bandits, section 7.1 (the
    textbook has g = d, s = 1, b = 0 and K l (l+1) in the logarithm).

    >>> import jaxbandits as jb
    >>> jb.algorithms.phased_elimination(actions=[[1, 0], [0, 1]], horizon=1000).params.own.plays[:2].round(1)
    array([ 40.6, 197.6])
    """
    actions, horizon = arguments.checked_actions(actions), integer("horizon", horizon, 1)
    num_arms, dim = actions.shape
    noise, b = arguments.noise(noise_scale, epsilon)
    failure, room = arguments.probability("failure_prob", failure_prob), number("design_slack", design_slack, 0.0)
    phase = np.arange(1, arguments.ROWS + 1)
    plays = 2 * (noise**2 + 2 * b**2) * 4.0**phase * np.log(2 * num_arms * phase * (phase + 1) / failure)
    number_of = arguments.fewest(plays, horizon)  # the largest leverage is at least 1
    # a design that its last step leaves above (1 + slack) rank is far below 2 rank then
    most = plays[:number_of] * (1 + max(room, 1.0)) * dim + arguments.support(num_arms, dim)
    return arguments.assembled(
        "phased_elimination", RULES, actions=actions, horizon=horizon, most=most, batches=number_of, design_slack=room,
        reward_scale=noise, noise_scale=b, own=Own(plays, 2 * 2.0**-phase), guarantee=arguments.LOCAL,
    )  # fmt: skip
