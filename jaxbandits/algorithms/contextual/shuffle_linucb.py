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
    delta: Scalar | None = None,
    protocol: Literal["amplified", "vector"] | None = None,
    window: int | None = None,
    preset: Literal["exact", "reference", "theory"] | None = None,
    radius_scale: Scalar | None = None,
    theta_bound: Scalar | None = None,
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
        Privacy budget of one user, in (0, inf]. inf: no noise, and the ridge and width that the preset has without
        any, those of `linucb` for the published ones.
    delta : float, optional
        The delta of the privacy claim, in (0, 1). The default: min(1e-3, 1 / horizon), which moves with the horizon
        of a sweep over horizons: bind it to compare them.
    protocol : {"amplified", "vector"}, optional
        What users send [static]. The default: "vector" with "exact", "amplified" with the others.

        "amplified": noise is added to x x' and x y, as in `ldp_linucb`, and the shuffler permutes the messages.

        "vector": each coordinate v in [-1, 1], in units of its largest value, is sent as floor((v + 1) g) +
        Bernoulli(fraction) + Bin(b, 1/4) with g = max(2 sqrt W, d, 4), W the window, and the server sees the sums.
    window : int, optional
        Users W of a batch, in [1, horizon] [static]. The default: max(20, ceil sqrt(T)) with "exact", 20 with the
        others, at most T.
    preset : {"exact", "reference", "theory"}, default "exact"
        Noise, ridge and width, with R = 1/2. Only "exact" spends what it is given.

        "exact": ridge and width as in `ldp_linucb`. "vector" has the fewest trials b that spend at most epsilon. It
        spends less, by up to 4% for epsilon up to 10, and by a fifth to six tenths at 50, where b is a handful.
        "amplified" has the least noise that spends epsilon; for windows of tens to thousands of users that is the
        local one, since no amplification theorem covers them: local privacy, refreshed late.

        "reference", the code of Chowdhury and Zhou: with "amplified" s = sqrt(log(2.5 W / delta)) / (epsilon sqrt W)
        and Gamma = s sqrt(T d); with "vector", whose coordinates are cut to [-L, L], b = floor(c g^2 log^2(d / delta)
        / (epsilon^2 W)), c = 10, or 1 for epsilon < 1, and Gamma = log(d / delta) sqrt(T d) / (4 epsilon sqrt W). The
        ridge is 2 Gamma and the width w = sqrt(Gamma d) + R sqrt(d log(T (1 + T L^2 / Gamma))).

        "theory": amplified with s = 4 sqrt(2 log(2.5 W / delta) log(2 / delta)) / (epsilon sqrt W), claimed for
        epsilon up to sqrt(log(2 / delta) / W); vector with c = 24e4 and log(4 (d^2 + 1) / delta); ridge and width as
        in the preset "theory" of `ldp_linucb` at that noise of a user. It plays nearly uniformly for T of 1e4.
    radius_scale : float, optional
        Multiplies the width w, at least 0. The default: 0.2 with "exact", 1 with the others.
    theta_bound : float, optional
        Bound B > 0 on the norm of theta; read by "exact". The default: 1 / L.
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

    `guarantee.spend` is a proven bound at delta; the scales of the published presets do not give epsilon.
    "amplified", for a server that sees the permuted messages: the local guarantee, which permuting cannot harm, or
    amplification (Feldman, McMillan and Talwar 2021) where its conditions hold, which takes thousands of users.
    "vector", for a server that sees a batch's sums: the binomial noise of B users against one of them. The simulation
    relays sums under both. Departures: docs/deviations.md.

    References
    ----------
    Chowdhury and Zhou 2022 (the theory presets are recalled); docs/formulas/ldp_contextual.md#shuffle-model,
    docs/formulas/ldp_contextual.md#vector-code and docs/formulas/ldp_contextual.md#reference-presets; "exact" is ours,
    docs/formulas/ldp_contextual.md#exact-presets

    Examples
    --------
    >>> import jaxbandits as jb
    >>> for preset, protocol in (("exact", "vector"), ("reference", "amplified"), ("reference", "vector")):
    ...     private = jb.algorithms.shuffle_linucb(
    ...         num_arms=100, dim=5, horizon=20_000, epsilon=1.0, delta=0.1, preset=preset, protocol=protocol
    ...     )
    ...     print(round(private.guarantee.spend(private.params)[0], 2))
    1.0
    11.27
    0.34
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm, theta_bound)
    preset = arguments.preset_of(preset)
    window = batch(window, s.horizon, preset)
    part = shuffle_part(preset, protocol, window, s)
    default = 0.2 if preset == "exact" else 1.0
    return arguments.optimistic("shuffle_linucb", 3, part, s, radius_scale, default, window)
