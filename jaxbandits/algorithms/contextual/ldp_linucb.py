"""LinUCB on locally private reports (Zheng, Cai, Huang, Li and Wang 2020), a comparator of "Improved rate for locally differentially
private linear bandits" (specification, section 7). Draws: `alg/encode/noise`, [d (d + 1) / 2 + d] a play: x x' by rows, then x y.
"""

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory


@factory
def ldp_linucb(
    *, num_arms, dim, horizon, epsilon, delta=0.1, preset="reference", radius_scale=1.0, feature_norm=1.0
) -> Algorithm:
    """Play argmax <x, theta> + w_t sqrt(x' P x), P = (V + rho_t I)^-1, theta = P u, where every user adds noise to (x x', x y).

    Contexts are decision sets [A, d]. The client scales features longer than feature_norm down to it, clips rewards to [0, 1] and
    counts a non-finite one as 0. V + rho_t I need not be definite: x' P x < 0 counts as 0. Ties as in `linucb`.

    num_arms >= 2, dim >= 1 [static]; horizon >= 1: T. epsilon in (0, inf], inf: no noise and the numbers of `linucb`; delta in (0, 1).
    feature_norm > 0: L. radius_scale >= 0 multiplies the width. preset, with R = 1/2:
    "reference", the code of Chowdhury and Zhou: (Z + Z') / 2 on x x' and z on x y, Z and z normal of scale
    s = sqrt(log(2.5 / delta)) / epsilon; Gamma = s sqrt(T d), rho = 2 Gamma, w = sqrt(Gamma d) + R sqrt(d log(T (1 + T L^2 / Gamma))).
    "theory": s = 4 sqrt(2 log(1.25 / delta)) / epsilon on the upper triangle of x x' and on x y;
    Upsilon_t = s sqrt(t) (4 sqrt(d) + 2 log(20 T)), rho_t = 2 Upsilon_t, w_t = 2 s sqrt(d log T) + (sqrt(3 Upsilon_t) +
    s sqrt(d t / Upsilon_t)) d log T. Plays near uniformly for T of 1e4.
    The published scales do not give epsilon: `guarantee.spend` is what a user's pair (x, y) truly spends at delta (at L = 1 its squared
    L2 sensitivity is 4.5). Raises ValueError outside.
    Source: specification of locally private linear bandits, section 7.

    >>> import jaxbandits as jb
    >>> for preset in ("reference", "theory"):
    ...     made = jb.algorithms.ldp_linucb(num_arms=100, dim=5, horizon=20_000, epsilon=10.0, preset=preset)
    ...     print(round(made.params.statistics.vector, 4), round(made.guarantee.spend(made.params)[0], 4))
    0.1794 84.1052
    0.899 5.0246
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm)
    return arguments.optimistic("ldp_linucb", 1, arguments.local_part(preset, s), s, radius_scale)
