"""LinUCB in the shuffle model, a comparator of "Improved rate for locally differentially private linear bandits".

Chowdhury and Zhou 2022. Draws are listed in `shuffle_statistics`.
"""

from typing import Literal

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.algorithms.contextual.shuffle_arguments import batch, shuffle_part
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory


@factory
def shuffle_linucb(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    epsilon: Scalar,
    delta: Scalar = 0.1,
    protocol: Literal["amplified", "vector"] = "amplified",
    window: int = 20,
    preset: Literal["reference", "theory"] = "reference",
    radius_scale: Scalar = 1.0,
    feature_norm: Scalar = 1.0,
) -> Algorithm:
    """LinUCB in the shuffle model: users send noisy messages, and a shuffler hides who sent which.

    The arm of the largest <x, theta> + w sqrt(x' P x) is played, with P = (V + rho I)^-1 and theta = P u from
    the noisy sums V and u, which are refreshed after every batch of users.

    Parameters
    ----------
    num_arms : int
        Arms K of a decision set, at least 2 [static]. Filled in from the environment.
    dim : int
        Features d of an arm, at least 1 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in by `sweep` and `simulate`.
    epsilon : float
        Privacy budget of one user, in (0, inf]. inf: no noise, and the ridge and width of `linucb`.
    delta : float, default 0.1
        The delta of the privacy claim, in (0, 1).
    protocol : {"amplified", "vector"}, default "amplified"
        What users send [static].

        "amplified": (Z + Z') / 2 is added to x x' and noise to x y, of scale s = sqrt(log(2.5 B / delta)) /
        (epsilon sqrt B); Gamma = s sqrt(T d).

        "vector": each coordinate v, cut to [-L, L], is sent as floor((v + L) g / L) + Bernoulli(fraction) +
        Bin(b, 1/4) with g = max(2 sqrt B, d, 4) and b = floor(c g^2 log^2(d / delta) / (epsilon^2 B)), c = 10,
        or 1 for epsilon < 1; Gamma = log(d / delta) sqrt(T d) / (4 epsilon sqrt B).
    window : int, default 20
        Users B of a batch, in [1, horizon] [static].
    preset : {"reference", "theory"}, default "reference"
        Noise, ridge and width, with R = 1/2. "reference", the code of Chowdhury and Zhou: the noise above,
        ridge rho = 2 Gamma and width w = sqrt(Gamma d) + R sqrt(d log(T (1 + T L^2 / Gamma))). "theory":
        amplified with s = 4 sqrt(2 log(2.5 B / delta) log(2 / delta)) / (epsilon sqrt B), claimed for epsilon
        up to sqrt(log(2 / delta) / B); vector with c = 24e4 and log(4 (d^2 + 1) / delta); ridge and width as in
        `ldp_linucb` at that noise of a user. It plays nearly uniformly for T of 1e4.
    radius_scale : float, default 1.0
        Multiplies the width w, at least 0.
    feature_norm : float, default 1.0
        The largest norm L > 0 of a feature. Clients scale longer features down to it.

    Returns
    -------
    Algorithm
        Its guarantee is in the shuffle model, one user.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    The client counts a non-finite reward as 0 and clips the others to [0, 1]; it scales features longer than
    `feature_norm` down to it. The noisy matrix V + rho I need not be definite: a negative x' P x counts as 0.
    Ties go to the lowest arm within 1e-5 of the largest index, relatively.

    The first batch is played without data. A batch that the horizon cuts short is never used, and not relayed.

    The published scales do not give epsilon. `guarantee.spend` is a proven bound at delta. "amplified", for a
    server that sees the permuted messages: the local guarantee, which permuting cannot harm, or amplification
    (Feldman, McMillan and Talwar 2021) where its conditions hold, which takes thousands of users. "vector", for
    a server that sees a batch's sums: the binomial noise of B users against one of them. The simulation relays
    sums under both. Departures: docs/deviations.md.

    References
    ----------
    Chowdhury and Zhou 2022 (the theory presets are recalled); docs/formulas/ldp_contextual.md#shuffle-model,
    docs/formulas/ldp_contextual.md#vector-code and docs/formulas/ldp_contextual.md#reference-presets

    Examples
    --------
    >>> import jaxbandits as jb
    >>> for protocol in ("amplified", "vector"):
    ...     private = jb.algorithms.shuffle_linucb(num_arms=100, dim=5, horizon=20_000, epsilon=1.0, protocol=protocol)
    ...     print(round(private.guarantee.spend(private.params)[0], 2))
    11.27
    0.34
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm)
    window = batch(window, s.horizon)
    part = shuffle_part(preset, protocol, window, s)
    return arguments.optimistic("shuffle_linucb", 2, part, s, radius_scale, window)
