"""DPRSE (Tao et al. 2021): private successive elimination for heavy tails, by truncated means.

The formulas are the specification's, which recalls them from memory of the publication: they were not re-read there.
"""

import math
from functools import partial

import numpy as np

from jaxbandits.algorithms.stochastic import episodes, integer_sums
from jaxbandits.algorithms.stochastic.dp_se import Params, check, events, rules, tables
from jaxbandits.protocol import Algorithm, Rewards
from jaxbandits.validation import factory, number


@factory
def dprse(*, num_arms, horizon, epsilon, moment_order=2.0, moment_bound=1.0, failure_prob=None) -> Algorithm:
    """Epochs e = 1, 2, ...: R fresh pulls of each of the n active arms, in index order; then drop what is clearly worse.

    With gap = 2^-e, l = ln(4 n e^2 / failure_prob), v = min(moment_order, 2) - 1 and u a bound of E|X|^(1 + v):
    R = ceil(u^(1/v) 24^((1 + v)/v) l / (epsilon gap^((1 + v)/v)) + 1), clip = (u R epsilon / l)^(1/(1 + v)). An arm's estimate is the sum
    of its rewards of size at most clip over R, plus Lap(2 clip / (R epsilon)); it goes when the best exceeds it by more than
    12 u^(1/(1 + v)) (l / (R epsilon))^(v/(1 + v)). The last arm is played to the horizon. Truncation rejects NaN and infinities.
    R, clip and the margin use min(epsilon, 1), the noise epsilon itself: above 1 sampling errors, not the noise, decide.

    epsilon-private in the central model for rewards that differ in one play: each reward enters one release.
    num_arms >= 2 [static]; epsilon in (0, inf], inf: no noise; moment_order >= 2 and moment_bound > 0 bound E|X|^moment_order (above
    order 2, u = moment_bound^(2/moment_order)); failure_prob in (0, 1), None: 1 / horizon. Raises ValueError outside.
    The first epoch alone takes 576 u l / (epsilon gap^2) plays an arm. Diagnostics: `active_arms`, `epochs` (finished) at the horizon.
    Source: Tao et al. 2021, in the form of the specification of private and robust bandits, section 7, recalled from memory.

    >>> import jaxbandits as jb
    >>> jb.algorithms.dprse(num_arms=5, horizon=100_000, epsilon=1.0).params.pulls[:2, 4]
    array([ 33429, 146489])
    """
    num_arms, horizon, epsilon, failure = check(num_arms, horizon, epsilon, failure_prob)
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
    params = Params(pulls, clip, integer_sums.power_above(clip), noise_scale, slack, 1.0)
    return Algorithm(
        episodes.program(rules(num_arms, False)),
        episodes.schedule(horizon, pulls.size),
        params,
        episodes.claim(partial(events, None)),
        ("dprse", 1, (num_arms,)),
        {},
        rewards=Rewards(),
    )
