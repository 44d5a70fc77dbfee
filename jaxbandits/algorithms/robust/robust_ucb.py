"""Robust UCB (Bubeck, Cesa-Bianchi and Lugosi 2013): UCB with a mean estimate that heavy tails cannot mislead."""

import math
from typing import Annotated, Any, Literal

from jaxbandits.algorithms.robust import catoni_ucb, median_of_means_ucb, truncated_ucb
from jaxbandits.algorithms.robust.stored_rewards import row_length
from jaxbandits.declared import STATIC, Example, Ge, Horizon, NumArms, Positive, Remedy
from jaxbandits.protocol import Algorithm, Program, Rewards, Span, Tails
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory


@factory(
    plays_on="arms",
    example=Example(
        {"moment_bound": 0.2},
        world=("gaussian_arms", {"means": [0.0, 0.3, 0.6], "scale": 0.3}),
        reward_adversary={"name": "huber", "corruption": 0.1, "value": 3.0},
    ),
    source="""Bubeck, Cesa-Bianchi and Lugosi 2013, "Bandits with heavy tail", Definitions 1 to 3 and Robust UCB,
        recalled and not read again: `docs/formulas/private_robust_mab.md#robust-ucb`.""",
)
def robust_ucb(
    *,
    num_arms: NumArms,
    horizon: Annotated[Horizon, STATIC],
    estimator: Literal["truncated", "median_of_means", "catoni"] = "truncated",
    moment_order: Annotated[Scalar, Ge(2), Remedy("the estimates need a finite second moment")] = 2.0,
    moment_bound: Positive = 1.0,
) -> Algorithm:
    """UCB for heavy tails: the arm of largest robust estimate + bonus is played.

    All rewards of an arm are used. N is the number of its pulls, t the index of the coming play, and u a bound on
    the second moment of a reward.

    Args:
        horizon: Number of plays. Filled in from the run. The estimators ``"median_of_means"`` and ``"catoni"`` store
            every reward and take at most 2^14 plays, and are static in it.
        estimator: How an arm's mean is estimated, and the bonus that belongs to it.

            ``"truncated"``: the sum of the i-th rewards with `|x_i|` <= sqrt(u i / ln t^2), divided by N; bonus sqrt(16
            u ln t^2 / N). A play takes constant time.

            ``"median_of_means"``: the median of the means of h = max(1, floor(min(8 ln(e^(1/8) t^2), N/2))) blocks of
            floor(N/h) consecutive rewards; bonus sqrt(12 u * 32 ln t^2 / N).

            ``"catoni"``: `estimators.catoni_mean` with variance u and failure probability t^-2; bonus 2 sqrt(u ln t^2 /
            N), plus infinity while N < 4 ln t^2.
        moment_order: Order k of the moment that is bounded. The default asks for a finite variance only.
        moment_bound: Bound on E|X|^k, in units of a reward to the power k; u = moment_bound^(2/k) by Jensen's
            inequality.

    Returns:
        Algorithm: It claims no privacy. Diagnostic of ``"truncated"``: ``left_early``, how many rewards were left out
            some plays before t demands it because 32 rewards an arm were already waiting to leave; 0 means that the run
            is exactly as defined.

    Note:
        All three estimates follow the present t at every play. The threshold of the truncated mean falls with t, so a
        reward that counts may leave later, and none comes back. Arms of infinite index, those never played and with
        Catoni those with N < 4 ln t^2, come first; ties go to the lowest arm, with Catoni within a relative 1e-6 (1e-12
        in float64). Rewards that are not finite count as 0; ``"median_of_means"`` and ``"catoni"`` also cut rewards at
        1e30 in size. Nothing is drawn at random. Departures: `docs/deviations/private_robust_mab.md`.

    >>> jb.algorithms.robust_ucb(num_arms=3, horizon=100, moment_order=4.0, moment_bound=9.0).params.moment_bound
    3.0
    """
    bound = moment_bound ** (2 / moment_order)
    program: Program
    params: Any
    if estimator == "truncated":
        program, params = truncated_ucb.program(num_arms), truncated_ucb.Params(bound, 2 * math.log(horizon))
    else:
        own = catoni_ucb if estimator == "catoni" else median_of_means_ucb
        room = row_length(horizon, f"estimator = {estimator!r}", "estimator = 'truncated'")
        program, params = own.program(num_arms, room), own.Params(bound)
    tails = Tails(moment_order, moment_bound, "X" if estimator == "truncated" else "X - mean")
    return Algorithm(program, (Span(1, horizon),), params, rewards=Rewards(), tails=tails)
