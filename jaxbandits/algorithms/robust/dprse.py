"""DPRSE (Tao et al. 2021): private successive elimination for heavy tails, by truncated means."""

import math
from functools import partial
from typing import Annotated

import numpy as np

from jaxbandits.algorithms.stochastic import episodes, integer_sums
from jaxbandits.algorithms.stochastic.dp_se import Params, epoch_rules, epoch_tables, events
from jaxbandits.declared import Epsilon, Example, Ge, Horizon, Inside, NumArms, Positive, Remedy
from jaxbandits.protocol import Algorithm, Rewards, Tails
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0, "moment_bound": 0.02}, world=("arms", {"means": [0.48, 0.6]}), horizon=6000),
    source="""Tao, Wu, Zhao and Wang 2021, "Optimal rates of (locally) differentially private heavy-tailed multi-armed
        bandits", recalled and not read again: `docs/formulas/private_robust_mab.md#dprse`.""",
)
def dprse(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    epsilon: Annotated[Epsilon, Remedy("")],
    moment_order: Annotated[Scalar, Ge(2), Remedy("the variance must be finite")] = 2.0,
    moment_bound: Positive = 1.0,
    failure_prob: Inside | None = None,
) -> Algorithm:
    """Private successive elimination for heavy tails, by truncated means of fresh pulls.

    In epoch e = 1, 2, ... each of the n active arms is pulled R times, in index order; then arms that are clearly
    worse are dropped. With gap = 2^-e, l = ln(4 n e^2 / `failure_prob`), v = min(`moment_order`, 2) - 1 and u a
    bound on E|X|^(1 + v): R = ceil(u^(1/v) 24^((1 + v)/v) l / (epsilon gap^((1 + v)/v)) + 1) and clip = (u R
    epsilon / l)^(1/(1 + v)). An arm's estimate is the sum of its rewards of size at most clip, divided by R, plus
    Lap(2 clip / (R epsilon)). The arm is dropped when the best estimate exceeds its own by more than 12 u^(1/(1 +
    v)) (l / (R epsilon))^(v/(1 + v)). The last arm is played to the horizon.

    Args:
        epsilon: Privacy budget of the whole run; ``float("inf")`` is no noise. R, clip and the margin use min(epsilon,
            1), the noise epsilon itself: above 1 the sampling error decides, not the noise.
        moment_order: Order k of the moment that is bounded.
        moment_bound: Bound on E|X|^k, in units of a reward to the power k. With k above 2, u is moment_bound^(2/k).
        failure_prob: Failure probability of the confidence bounds. The default: 1 / horizon.

    Returns:
        Algorithm: epsilon-private in the central model for rewards that differ in one play: each reward enters one
            release. Diagnostics at the horizon: ``active_arms`` and ``epochs``, the number of finished ones.

    Note:
        Truncation rejects NaN and infinities: they count as 0 and stay in the divisor. The comparison is strict, so
        equal estimates all stay. The first epoch alone takes 576 u l / (epsilon gap^2) plays of each arm, so that
        hardly one epoch ends within 100,000 plays. The cap of epsilon at 1 is this package's repair.

    >>> jb.algorithms.dprse(num_arms=5, horizon=100_000, epsilon=1.0).params.pulls[:2, 4]
    array([ 33429, 146489])
    """
    failure = 1 / horizon if failure_prob is None else failure_prob
    u, v = moment_bound ** (2 / moment_order), min(moment_order, 2.0) - 1
    power, budget = (1 + v) / v, min(epsilon, 1.0)

    def columns_of(epoch, arms):
        logs = np.log(4 * arms * epoch**2 / failure)
        pulls = np.ceil(u ** (1 / v) * 24**power * logs / budget * 2.0 ** (epoch * power) + 1)
        share = logs / (pulls * budget)
        clip = (u / share) ** (1 / (1 + v))
        noise_scale = np.zeros(pulls.shape) if math.isinf(epsilon) else 2 * clip / (pulls * epsilon)
        return pulls, clip, noise_scale, 12 * u ** (1 / (1 + v)) * share ** (v / (1 + v))

    pulls, clip, noise_scale, slack = epoch_tables(num_arms, horizon, columns_of)
    ceiling = integer_sums.power_above(clip)
    params = Params(pulls=pulls, clip=clip, ceiling=ceiling, noise_scale=noise_scale, slack=slack, mechanism_scale=1.0)
    claim, tails = episodes.pure_claim(partial(events, None)), Tails(moment_order, moment_bound)
    return episodes.algorithm(epoch_rules(num_arms, False), horizon, pulls.size, params, claim, Rewards(), tails)
