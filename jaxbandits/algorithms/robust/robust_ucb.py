"""Robust UCB (Bubeck, Cesa-Bianchi and Lugosi 2013): UCB with a mean estimate that heavy tails cannot mislead."""

import math
from typing import Any

from jaxbandits.algorithms.robust import catoni_ucb, median_of_means_ucb, truncated_ucb
from jaxbandits.algorithms.robust.stored_rewards import check_horizon, places
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import choice, factory, integer, number


@factory
def robust_ucb(*, num_arms, horizon, estimator="truncated", moment_order=2.0, moment_bound=1.0) -> Algorithm:
    """Play the arm of largest estimate + bonus; t is the index of the coming play, N an arm's pulls, all rewards are used.

    With E|X|^k <= moment_bound, k = moment_order >= 2, so u = moment_bound^(2/k) bounds E X^2 (e = min(k, 2) - 1 = 1). estimator:
    "truncated": the mean over N of the i-th rewards with |x_i| <= sqrt(u i / ln t^2), bonus sqrt(16 u ln t^2 / N). The threshold
    is that of the present t: it falls, so a reward may leave later and never comes back; any horizon, O(1) a play.
    "median_of_means": h = max(1, floor(min(8 ln(e^(1/8) t^2), N/2))) blocks of floor(N/h) consecutive rewards, bonus
    sqrt(12 u * 32 ln t^2 / N). "catoni": `estimators.catoni_mean` with variance u and failure probability t^-2, bonus
    2 sqrt(u ln t^2 / N), plus infinity while N < 4 ln t^2; indices within a relative 1e-6 are tied. These two follow the present t
    at every play too, keep every reward and hence need horizon <= 2^14 [static]. Arms with index infinity, unplayed ones and with Catoni those with N < 4 ln t^2, come first, the lowest of them.

    num_arms >= 2 [static]; moment_bound > 0. Non-finite rewards count as 0; "median_of_means" and "catoni" cut rewards at 1e30.
    Diagnostic of "truncated": `left_early`, rewards left out at once although t allowed them for some plays more, because 32
    rewards an arm were already waiting to leave (0 means: exactly as defined). Raises ValueError outside.
    Source: Bubeck et al. 2013, Definitions 1 to 3 and Robust UCB, recalled, not re-read; specification of private and robust
    bandits, section 7.

    >>> import jaxbandits as jb
    >>> jb.algorithms.robust_ucb(num_arms=3, horizon=100, moment_order=4.0, moment_bound=9.0).params.moment_bound
    3.0
    """
    num_arms = integer("num_arms", num_arms, 2)
    choice("estimator", estimator, ("truncated", "median_of_means", "catoni"))
    order = number("moment_order", moment_order, 2.0, remedy="the estimates need a finite second moment")
    bound = number("moment_bound", moment_bound, 0.0, open_low=True) ** (2 / order)
    static: tuple = (num_arms, estimator)
    program: Program
    params: Any
    if estimator == "truncated":
        horizon = integer("horizon", horizon, 1)
        program, params = truncated_ucb.program(num_arms), truncated_ucb.Params(bound, 2 * math.log(horizon))
    else:
        horizon = check_horizon(horizon, f"estimator = {estimator!r}", "estimator = 'truncated'")
        own = catoni_ucb if estimator == "catoni" else median_of_means_ucb
        program, params = own.program(num_arms, places(horizon)), own.Params(bound)
        static = (*static, places(horizon))
    return Algorithm(
        program, (Span(1, horizon),), params, Guarantee(), ("robust_ucb", 1, static), {}, rewards=Rewards()
    )
