"""Linear epsilon-greedy with decreasing exploration, without privacy and with it."""

from typing import Unpack

from jaxbandits.algorithms.contextual.arguments import Learnt, LearntAlgorithm, linear_algorithm
from jaxbandits.algorithms.contextual.selection import GreedyParams, greedy
from jaxbandits.algorithms.contextual.shuffle_statistics import choose_part
from jaxbandits.declared import Dim, Example, Horizon, NonNegative, NumArms
from jaxbandits.validation import factory


@factory(
    plays_on="decision set",
    example=Example({"statistics": "shuffle", "protocol": "amplified", "window": 5, "epsilon": 0.8}),
    source="""Auer, Cesa-Bianchi and Fischer 2002; docs/formulas/ldp_contextual.md#epsilon-greedy, where the constant is
        our choice""",
)
def epsilon_greedy(
    *, num_arms: NumArms, dim: Dim, horizon: Horizon, exploration: NonNegative = 0.1, **given: Unpack[Learnt]
) -> LearntAlgorithm:
    """Linear epsilon-greedy: play an arm at random with a probability that falls as 1 / t, else the best one so far.

    The best arm has the largest <x, theta>, theta = (V + rho I)^-1 u.

    Args:
        exploration: The constant c of the rule: play t explores with probability min(1, c K / t).

    Note:
        epsilon is the privacy budget, not the probability of exploring. Ties go to the lowest arm within 1e-5 of the
        largest index, relatively. Non-finite rewards count as 0. `guarantee.spend` is what the noise truly spends.

        Draws: `alg/act/explore` and `alg/act/arm`, a uniform a play. Departures: docs/deviations.md.

    >>> jb.algorithms.epsilon_greedy(num_arms=100, dim=5, horizon=20_000).params.selection.rate
    10.0
    """
    part, s, window = choose_part(num_arms, dim, horizon, **given)
    return linear_algorithm(part, s, greedy, GreedyParams(exploration * num_arms), window)
