"""Linear epsilon-greedy with decreasing exploration, without privacy and with it.

After Auer, Cesa-Bianchi and Fischer 2002.
"""

import math
from typing import Literal

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.algorithms.contextual.selection import GreedyParams, greedy
from jaxbandits.algorithms.contextual.shuffle_arguments import chosen_part
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory, number


@factory
def epsilon_greedy(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    statistics: Literal["none", "ldp", "jdp", "shuffle"] = "none",
    epsilon: Scalar = math.inf,
    delta: Scalar | None = None,
    exploration: Scalar = 0.1,
    preset: Literal["exact", "reference", "theory"] | None = None,
    protocol: Literal["amplified", "vector"] | None = None,
    window: int | None = None,
    tree: Literal["binary", "simplified", "blt", "honaker", "square_root", "banded"] | None = None,
    feature_norm: Scalar = 1.0,
) -> Algorithm:
    """Linear epsilon-greedy: play an arm at random with a probability that falls as 1 / t, else the best one so far.

    The best arm has the largest <x, theta>, theta = (V + rho I)^-1 u.

    Parameters
    ----------
    num_arms : int
        Arms K of a decision set, at least 2 [static]. Filled in from the environment.
    dim : int
        Features d of an arm, at least 1 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in by `sweep` and `simulate`.
    statistics : {"none", "ldp", "jdp", "shuffle"}, default "none"
        How V = sum x x' and u = sum x y are learnt [static]: with noise, ridge rho, clipping and guarantee of
        `linucb` (ridge 1e-4), `ldp_linucb`, `jdp_linucb` or `shuffle_linucb`.
    epsilon : float, default inf
        Privacy budget of one user, in (0, inf]; inf with `statistics="none"`. `statistics="shuffle"` spends less than
        it, as `shuffle_linucb` does.
    delta : float, optional
        The delta of the privacy claim, in (0, 1). The default: min(1e-3, 1 / horizon), which moves with the horizon
        of a sweep over horizons: bind it to compare them.
    exploration : float, default 0.1
        The constant c >= 0 of the rule: play t explores with probability min(1, c K / t).
    preset : {"exact", "reference", "theory"}, optional
        Noise and ridge, as in `ldp_linucb`, `jdp_linucb` and `shuffle_linucb`. The default: "exact", which alone
        spends what it is given; "reference" with `statistics="none"`, which has no "exact".
    protocol : {"amplified", "vector"}, optional
        Of `shuffle_linucb`, with its default; matters for `statistics="shuffle"` only [static].
    window : int, optional
        Users of a batch, in [1, horizon], as in `shuffle_linucb`; matters for `statistics="shuffle"` only [static].
    tree : {"binary", "simplified", "blt", "honaker", "square_root", "banded"}, optional
        Of `jdp_linucb`, with its default; matters for `statistics="jdp"` only [static].
    feature_norm : float, default 1.0
        The largest norm L > 0 of a feature. Private clients scale longer features down to it.

    Returns
    -------
    Algorithm
        Its guarantee is that of the statistics.

    Raises
    ------
    ValueError
        For arguments outside these ranges, or a finite epsilon without noise.

    Notes
    -----
    epsilon is the privacy budget, not the probability of exploring. Ties go to the lowest arm within 1e-5 of
    the largest index, relatively. Non-finite rewards count as 0. `guarantee.spend` is what the noise truly spends.

    Draws: `alg/act/explore` and `alg/act/arm`, a uniform a play. Departures: docs/deviations.md.

    References
    ----------
    Auer, Cesa-Bianchi and Fischer 2002; docs/formulas/ldp_contextual.md#epsilon-greedy, where the constant is
    our choice

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.epsilon_greedy(num_arms=100, dim=5, horizon=20_000).params.selection.rate
    10.0
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm, None)
    part, plays, _ = chosen_part(statistics, preset, protocol, window, tree, s)
    rate = number("exploration", exploration, 0.0) * s.num_arms
    return arguments.assembled("epsilon_greedy", 4, part, s, greedy, GreedyParams(rate), plays)
