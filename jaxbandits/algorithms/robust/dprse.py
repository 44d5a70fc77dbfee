"""DPRSE (Tao et al. 2021): private successive elimination for heavy tails, by truncated means.

The formulas were recalled and not read again: `docs/formulas/private_robust_mab.md#dprse`.
"""

import math
from functools import partial

import numpy as np

from jaxbandits.algorithms.stochastic import episodes, integer_sums
from jaxbandits.algorithms.stochastic.dp_se import Params, events, rules, tables
from jaxbandits.protocol import Algorithm, Rewards
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory, integer, number


@factory
def dprse(
    *,
    num_arms: int,
    horizon: int,
    epsilon: Scalar,
    moment_order: Scalar = 2.0,
    moment_bound: Scalar = 1.0,
    failure_prob: Scalar | None = None,
) -> Algorithm:
    """Private successive elimination for heavy tails, by truncated means of fresh pulls.

    In epoch e = 1, 2, ... each of the n active arms is pulled R times, in index order; then arms that are clearly
    worse are dropped. With gap = 2^-e, l = ln(4 n e^2 / `failure_prob`), v = min(`moment_order`, 2) - 1 and u a
    bound on E|X|^(1 + v): R = ceil(u^(1/v) 24^((1 + v)/v) l / (epsilon gap^((1 + v)/v)) + 1) and clip = (u R
    epsilon / l)^(1/(1 + v)). An arm's estimate is the sum of its rewards of size at most clip, divided by R, plus
    Lap(2 clip / (R epsilon)). The arm is dropped when the best estimate exceeds its own by more than 12 u^(1/(1 +
    v)) (l / (R epsilon))^(v/(1 + v)). The last arm is played to the horizon.

    Parameters
    ----------
    num_arms : int
        Number of arms, at least 2 [static]. `sweep` fills it in from the environment.
    horizon : int
        Number of plays, at least 1. `sweep` fills it in.
    epsilon : float
        Privacy budget of the whole run, in (0, inf]; ``float("inf")`` is no noise. R, clip and the margin use
        min(epsilon, 1), the noise epsilon itself: above 1 the sampling error decides, not the noise.
    moment_order : float, default 2.0
        Order k of the moment that is bounded, at least 2.
    moment_bound : float, default 1.0
        Bound on E|X|^k, in units of a reward to the power k, greater than 0. With k above 2, u is moment_bound^(2/k).
    failure_prob : float, optional
        Failure probability of the confidence bounds, in (0, 1). Default: 1 / horizon.

    Returns
    -------
    Algorithm
        epsilon-private in the central model for rewards that differ in one play: each reward enters one release.
        Diagnostics at the horizon: ``active_arms`` and ``epochs``, the number of finished ones.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    Truncation rejects NaN and infinities: they count as 0 and stay in the divisor. The comparison is strict, so
    equal estimates all stay. The first epoch alone takes 576 u l / (epsilon gap^2) plays of each arm, so that
    hardly one epoch ends within 100,000 plays. The cap of epsilon at 1 is this package's repair.

    References
    ----------
    Tao, Wu, Zhao and Wang 2021, "Optimal rates of (locally) differentially private heavy-tailed multi-armed bandits",
    recalled and not read again: `docs/formulas/private_robust_mab.md#dprse`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.dprse(num_arms=5, horizon=100_000, epsilon=1.0).params.pulls[:2, 4]
    array([ 33429, 146489])
    """
    num_arms, horizon = integer("num_arms", num_arms, 2), integer("horizon", horizon, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    failure = 1 / horizon
    if failure_prob is not None:
        failure = number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True)
    order = number("moment_order", moment_order, 2.0, remedy="the variance must be finite")
    u = number("moment_bound", moment_bound, 0.0, open_low=True) ** (2 / order)
    v = min(order, 2.0) - 1
    power, budget = (1 + v) / v, min(epsilon, 1.0)

    def of(epoch, arms):
        logs = np.log(4 * arms * epoch**2 / failure)
        pulls = np.ceil(u ** (1 / v) * 24**power * logs / budget * 2.0 ** (epoch * power) + 1)
        share = logs / (pulls * budget)
        clip = (u / share) ** (1 / (1 + v))
        noise_scale = np.zeros(pulls.shape) if math.isinf(epsilon) else 2 * clip / (pulls * epsilon)
        return pulls, clip, noise_scale, 12 * u ** (1 / (1 + v)) * share ** (v / (1 + v))

    pulls, clip, noise_scale, slack = tables(num_arms, horizon, of)
    params = Params(
        pulls=pulls,
        clip=clip,
        ceiling=integer_sums.power_above(clip),
        noise_scale=noise_scale,
        slack=slack,
        mechanism_scale=1.0,
    )
    return Algorithm(
        program=episodes.program(rules(num_arms, False)),
        schedule=episodes.schedule(horizon, pulls.size),
        params=params,
        guarantee=episodes.claim(partial(events, None)),
        version=("dprse", 1, (num_arms,)),
        config={},
        rewards=Rewards(),
    )
