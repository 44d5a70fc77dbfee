"""Linear epsilon-greedy with decreasing exploration (after Auer, Cesa-Bianchi and Fischer 2002), non-private and private
(specification of locally private linear bandits, section 7).
"""

import math

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.algorithms.contextual.selection import GreedyParams, greedy
from jaxbandits.algorithms.contextual.shuffle_arguments import chosen_part
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory, number


@factory
def epsilon_greedy(
    *, num_arms, dim, horizon, statistics="none", epsilon=math.inf, delta=0.1, exploration=0.1, protocol="amplified", window=20,
    feature_norm=1.0,
) -> Algorithm:  # fmt: skip
    """Play an arm at random with probability min(1, exploration K / t), else argmax <x, theta>, theta = (V + rho I)^-1 u.

    epsilon is the privacy budget, exploration >= 0 is the constant c of the rule, K = num_arms. statistics [static]: how V = sum x x'
    and u = sum x y are learnt, "none", "ldp", "jdp" or "shuffle", with noise and ridge rho of the published preset "reference" of
    `linucb` (1e-4), `ldp_linucb`, `jdp_linucb` and `shuffle_linucb`; so are clipping, guarantee and what it truly spends. Contexts
    are decision sets [A, d]. Ties go to the lowest arm within 1e-5 of the largest index, relatively.

    num_arms >= 2, dim >= 1 [static]; horizon >= 1: T. epsilon in (0, inf], inf with "none"; delta in (0, 1). protocol and window in [1, T]
    [static] matter for "shuffle" only. feature_norm > 0. Raises ValueError outside.
    Source: specification, section 7, where the constant is our default. Draws: `alg/act/explore` and `alg/act/arm`, a uniform a play.

    >>> import jaxbandits as jb
    >>> jb.algorithms.epsilon_greedy(num_arms=100, dim=5, horizon=20_000).params.selection.rate
    10.0
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm)
    part, plays = chosen_part(statistics, protocol, window, s)
    rate = number("exploration", exploration, 0.0) * s.num_arms
    return arguments.assembled("epsilon_greedy", 1, part, s, greedy, GreedyParams(rate), plays)
