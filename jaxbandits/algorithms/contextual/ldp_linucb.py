"""LinUCB on locally private reports, a comparator of "Improved rate for locally differentially private linear bandits".

Zheng, Cai, Huang, Li and Wang 2020. Draws: `alg/encode/noise`, d (d + 1) / 2 + d a play: x x' by rows, then x y.
"""

from typing import Literal

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory


@factory
def ldp_linucb(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    epsilon: Scalar,
    delta: Scalar | None = None,
    preset: Literal["exact", "reference", "theory"] | None = None,
    radius_scale: Scalar | None = None,
    theta_bound: Scalar | None = None,
    feature_norm: Scalar = 1.0,
) -> Algorithm:
    """LinUCB under local privacy: every user adds Gaussian noise to x x' and x y before sending them.

    The arm of the largest <x, theta> + w_t sqrt(x' P x) is played, with P = (V + rho_t I)^-1 and theta = P u
    from the noisy sums V and u.

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
    preset : {"exact", "reference", "theory"}, default "exact"
        Noise, ridge and width, with R = 1/2. Only "exact" spends what it is given.

        "exact": noise of scale s = sqrt(4.5) L^2 / m on the diagonal of x x', s / sqrt(2) above it and s / L on x y,
        with 1 / m the noise that one release of sensitivity 1 needs. The ridge is rho_t = L^2 + r sqrt(t) with r = s
        sqrt(2 d), and the width w_t = L B + R sqrt(2 log T + d log(1 + T L^2 / (d rho_T))) + (sqrt(r) B + n tail /
        sqrt(r)) t^(1/4), with n^2 = s^2 B^2 (1 + 1/d) / 2 + (s / L)^2 and tail = sqrt(d) + sqrt(2 log T).

        "reference", the code of Chowdhury and Zhou: users add (Z + Z') / 2 to x x' and z to x y, Z and z normal
        of scale s = sqrt(log(2.5 / delta)) / epsilon. With Gamma = s sqrt(T d) the ridge is rho = 2 Gamma and
        the width w = sqrt(Gamma d) + R sqrt(d log(T (1 + T L^2 / Gamma))).

        "theory": noise of scale s = 4 sqrt(2 log(1.25 / delta)) / epsilon on the upper triangle of x x' and on
        x y. With Upsilon_t = s sqrt(t) (4 sqrt(d) + 2 log(20 T)) the ridge is rho_t = 2 Upsilon_t and the width
        w_t = 2 s sqrt(d log T) + (sqrt(3 Upsilon_t) + s sqrt(d t / Upsilon_t)) d log T. It plays nearly
        uniformly for T of 1e4.
    radius_scale : float, optional
        Multiplies the width w, at least 0. The default: 0.2 with "exact", 1 with the others.
    theta_bound : float, optional
        Bound B > 0 on the norm of theta; read by "exact". The default: 1 / L.
    feature_norm : float, default 1.0
        The largest norm L > 0 of a feature. Clients scale longer features down to it.

    Returns
    -------
    Algorithm
        Its guarantee is local, one message a user.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    The client counts a non-finite reward as 0 and clips the others to [0, 1]; it scales features longer than
    `feature_norm` down to it. The noisy matrix V + rho I need not be definite: a negative x' P x counts as 0.
    Ties go to the lowest arm within 1e-5 of the largest index, relatively.

    `guarantee.spend` is what a user's pair (x, y) truly spends at delta; at L = 1 its squared L2 sensitivity is 4.5.
    The scales of the published presets do not give epsilon. Departures: docs/deviations.md.

    Local privacy is dear: `examples/gallery/2_privacy/plot_contexts.py` compares it with a shuffler and a trusted
    server.

    References
    ----------
    Zheng, Cai, Huang, Li and Wang 2020; docs/formulas/ldp_contextual.md#local-privacy,
    docs/formulas/ldp_contextual.md#reference-presets and, ours, docs/formulas/ldp_contextual.md#exact-presets

    Examples
    --------
    >>> import jaxbandits as jb
    >>> for preset in ("exact", "reference", "theory"):
    ...     private = jb.algorithms.ldp_linucb(
    ...         num_arms=100, dim=5, horizon=20_000, epsilon=10.0, delta=0.1, preset=preset
    ...     )
    ...     print(round(private.params.statistics.vector, 4), round(private.guarantee.spend(private.params)[0], 4))
    0.5978 10.0
    0.1794 84.1052
    0.899 5.0246
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm, theta_bound)
    preset = arguments.preset_of(preset)
    default = 0.2 if preset == "exact" else 1.0
    return arguments.optimistic("ldp_linucb", 3, arguments.local_part(preset, s), s, radius_scale, default)
