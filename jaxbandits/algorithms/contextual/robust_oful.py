"""Robust OFUL: Hvt-UCB that also allows for a budget of corruption.

State and functions are those of `hvt_linucb`.
"""

import math
from typing import Unpack

from jaxbandits.algorithms.contextual.hvt_linucb import HeavyTailed, heavy_tailed
from jaxbandits.declared import Dim, Example, Horizon, NonNegative, NumArms
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory


@factory(
    plays_on="decision set",
    example=Example(
        {"moment_scale": 0.5, "corruption_budget": 5.0, "radius_scale": 1e-4},
        reward_adversary={"name": "huber", "corruption": 0.05, "value": "inf"},
    ),
    source="""Ours, after Tani and Futami 2026 (arXiv 2603.15596; abstract read, no theorem claimed):
        `docs/formulas/robust_frontier.md#robust-oful`.""",
)
def robust_oful(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Horizon,
    corruption_budget: NonNegative | None = None,
    **given: Unpack[HeavyTailed],
) -> Algorithm:
    """Linear bandits with heavy-tailed and corrupted rewards: `hvt_linucb` whose uncertain plays weigh less.

    The scale of a play's residual is at least sqrt(C q / sqrt(kappa)), q = sqrt(x' V^-1 x) of the decision and kappa
    as on the formulas page, and beta has 2 sqrt(kappa) more.

    Args:
        corruption_budget: C, the sum of the sizes of what an adversary adds to the rewards of played arms. 0: exactly
            `hvt_linucb`. The default: sqrt(horizon).

    Note:
        A residual of a clipped loss moves its gradient by at most its own change over the scale s, so that a corruption
        of size c moves the squared error by at most 2 beta c q / s^2, and all of it by 2 beta sqrt(kappa): hence beta's
        addition, which is the same for every C > 0. Curves over C have a step at 0. NaN, infinity and ties as in
        `hvt_linucb`.

    >>> made = {"num_arms": 20, "dim": 4, "horizon": 3000, "moment_scale": 1.0}
    >>> clean = jb.algorithms.robust_oful(**made, corruption_budget=0)
    >>> clean.params == jb.algorithms.hvt_linucb(**made).params
    True
    """
    budget = math.sqrt(horizon) if corruption_budget is None else corruption_budget
    return heavy_tailed(num_arms, dim, horizon, budget, given)
