"""LinUCB in the shuffle model (Chowdhury and Zhou 2022), a comparator of "Improved rate for locally differentially private linear
bandits" (specification, section 7). Draws are listed in `_shuffle_statistics`.
"""

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.algorithms.contextual.shuffle_arguments import batch, shuffle_part
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory


@factory
def shuffle_linucb(
    *, num_arms, dim, horizon, epsilon, delta=0.1, protocol="amplified", window=20, preset="reference", radius_scale=1.0,
    feature_norm=1.0,
) -> Algorithm:  # fmt: skip
    """Play argmax <x, theta> + w sqrt(x' P x), P = (V + rho I)^-1, theta = P u, refreshed after every batch of `window` users.

    Contexts are decision sets [A, d]. The client scales features longer than feature_norm down to it, clips rewards to [0, 1] and
    counts a non-finite one as 0. V + rho I need not be definite: x' P x < 0 counts as 0. Ties as in `linucb`. The first batch is
    played under the prior; one that the horizon cuts short is never used, and not relayed.

    num_arms >= 2, dim >= 1, window in [1, horizon]: B, protocol [static]; horizon >= 1: T. epsilon in (0, inf], inf: no noise and the numbers of
    `linucb`; delta in (0, 1). feature_norm > 0: L. radius_scale >= 0 multiplies the width. With R = 1/2 the width is w = sqrt(Gamma d) +
    R sqrt(d log(T (1 + T L^2 / Gamma))), rho = 2 Gamma, with preset "reference" (the code of Chowdhury and Zhou) and protocol
    "amplified": users add (Z + Z') / 2 to x x' and noise to x y, of scale s = sqrt(log(2.5 B / delta)) / (epsilon sqrt B), Gamma = s sqrt(T d);
    "vector": users send each coordinate, cut to [-L, L], as floor((v + L) g / L) + Bernoulli(fraction) + Bin(b, 1/4), g = max(2 sqrt B, d, 4),
    b = floor(c g^2 log^2(d / delta) / (epsilon^2 B)), c = 10, or 1 for epsilon < 1; Gamma = log(d / delta) sqrt(T d) / (4 epsilon sqrt B).
    Preset "theory": amplified with s = 4 sqrt(2 log(2.5 B / delta) log(2 / delta)) / (epsilon sqrt B), claimed for epsilon up to
    sqrt(log(2 / delta) / B); vector with c = 24e4 and log(4 (d^2 + 1) / delta); widths and ridges as in `ldp_linucb` at that noise of a
    user. Both recalled, not re-read, and near uniform for T of 1e4.

    The published scales do not give epsilon. `guarantee.spend` is a proven bound at delta: "amplified", for a server that sees the
    permuted messages, the local guarantee, which permuting cannot harm, or amplification (Feldman, McMillan and Talwar 2021) where its
    conditions hold, which takes thousands of users; "vector", for a server that sees a batch's sums, the binomial noise of B users
    against one of them. The simulation relays sums under both. Raises ValueError outside.
    Source: specification of locally private linear bandits, section 7.

    >>> import jaxbandits as jb
    >>> for protocol in ("amplified", "vector"):
    ...     made = jb.algorithms.shuffle_linucb(num_arms=100, dim=5, horizon=20_000, epsilon=1.0, protocol=protocol)
    ...     print(round(made.guarantee.spend(made.params)[0], 2))
    11.27
    0.34
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm)
    window = batch(window, s.horizon)
    part = shuffle_part(preset, protocol, window, s)
    return arguments.optimistic("shuffle_linucb", 1, part, s, radius_scale, window)
