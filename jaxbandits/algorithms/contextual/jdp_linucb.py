"""Jointly private LinUCB (Shariff and Sheffet 2018), a comparator of "Improved rate for locally differentially private linear bandits"
(specification, section 7). Draws of [d (d + 1) / 2 + d], V by rows, then u: binary `alg/update/noise` at a node's last play, simplified
`alg/init/noise` at 0, 1, ....
"""

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory


@factory
def jdp_linucb(
    *, num_arms, dim, horizon, epsilon, delta=0.1, preset="reference", tree=None, radius_scale=1.0, feature_norm=1.0
) -> Algorithm:
    """Play argmax <x, theta> + w_t sqrt(x' P x), P = (V + rho I)^-1, theta = P u, where the server adds noise to V and u.

    Contexts are decision sets [A, d]. The client scales features longer than feature_norm down to it, clips rewards to [0, 1] and
    counts a non-finite one as 0. V + rho I need not be definite: x' P x < 0 counts as 0. Ties as in `linucb`.

    num_arms >= 2, dim >= 1, tree [static]; horizon >= 1: T, static by its number of nodes. epsilon in (0, inf], inf: no noise and the
    numbers of `linucb`; delta in (0, 1). feature_norm > 0: L. radius_scale >= 0 multiplies the width. preset, with R = 1/2:
    "reference", the code of Chowdhury and Zhou: nodes (Z + Z') / 2 on V and z on u, Z and z normal of scale
    s = sqrt(log T) log(2.5 / delta) / epsilon; Gamma = s sqrt(d log T), rho = 2 Gamma, w = sqrt(Gamma d) +
    R sqrt(d log(T (1 + T L^2 / Gamma))).
    "theory": m = ceil(log2 T) + 1, nodes (Z + Z') / sqrt(2) on the Gram matrix of (x, y), s^2 = 16 m (L^2 + 1)^2 log(4 / delta)^2 / epsilon^2,
    Upsilon = s sqrt(2 m) (4 sqrt(d) + 2 log(20 T)), rho = 2 Upsilon, w_t = sqrt(3 Upsilon) + s sqrt(m / Upsilon) (sqrt(d) +
    sqrt(2 log(20 T))) + R sqrt(2 log(20) + d log(3 + t L^2 / (d Upsilon))). Plays near uniformly for T of 1e4.
    tree: "binary", after n reports the noise of n's dyadic nodes; "simplified", at play t the first floor(ln t) + 1 of nodes drawn in
    advance, as in the published code: sums that share their noise differ by one user's exact data, so epsilon is infinite. None:
    simplified with the reference preset, binary with theory. `guarantee.spend` is what a user truly spends at delta through all
    that the server releases. Raises ValueError outside.
    Source: specification of locally private linear bandits, section 7.

    >>> import jaxbandits as jb
    >>> for choices in ({"preset": "reference"}, {"preset": "reference", "tree": "binary"}, {"preset": "theory"}):
    ...     made = jb.algorithms.jdp_linucb(num_arms=100, dim=5, horizon=20_000, epsilon=10.0, **choices)
    ...     print(round(made.params.statistics.vector, 4), round(made.guarantee.spend(made.params)[0], 4))
    1.013 inf
    1.013 42.3601
    11.8044 0.522
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm)
    return arguments.optimistic("jdp_linucb", 1, arguments.joint_part(preset, tree, s), s, radius_scale)
