"""Linear Thompson sampling (Agrawal and Goyal 2013), without privacy and with it."""

import math
from typing import Literal

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.algorithms.contextual.selection import ThompsonParams, thompson
from jaxbandits.algorithms.contextual.shuffle_arguments import chosen_part
from jaxbandits.protocol import Algorithm
from jaxbandits.theory.linear_widths import REWARD_SCALE
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory, number


@factory
def linear_thompson(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    statistics: Literal["none", "ldp", "jdp", "shuffle"] = "none",
    epsilon: Scalar = math.inf,
    delta: Scalar | None = None,
    posterior_scale: Scalar | None = None,
    preset: Literal["exact", "reference", "theory"] | None = None,
    protocol: Literal["amplified", "vector"] | None = None,
    window: int | None = None,
    tree: Literal["binary", "simplified", "blt", "honaker", "square_root", "banded"] | None = None,
    feature_norm: Scalar = 1.0,
) -> Algorithm:
    """Linear Thompson sampling: draw a parameter from the posterior at every play, and play the best arm for it.

    The arm of the largest <x, theta~> is played, with theta~ drawn from N(theta, v^2 P), P = (V + rho I)^-1 and
    theta = P u.

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
    posterior_scale : float, optional
        Multiplies v = posterior_scale R sqrt(9 d log(T^2)), R = 1/2; at least 0, and 0 is greedy. The width is
        that without privacy, whatever the noise. The default: 0.1 with "exact", 0.3 with the others.
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
    Ties go to the lowest arm within 1e-5 of the largest index, relatively. A pivot of P below 0 counts as 0.
    Non-finite rewards count as 0. `guarantee.spend` is what the noise truly spends.

    Draws: `alg/act/posterior`, d normals a play. Departures: docs/deviations.md.

    References
    ----------
    Agrawal and Goyal 2013 (recalled); docs/formulas/ldp_contextual.md#thompson-sampling, where v and its scale
    are our choice

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.linear_thompson(num_arms=100, dim=5, horizon=20_000)
    >>> round(algorithm.params.selection.posterior, 4)
    4.4782
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm, None)
    part, plays, preset = chosen_part(statistics, preset, protocol, window, tree, s)
    default = 0.1 if preset == "exact" else 0.3
    scale = default if posterior_scale is None else number("posterior_scale", posterior_scale, 0.0)
    posterior = scale * REWARD_SCALE * math.sqrt(9 * s.dim * 2 * math.log(s.horizon))
    return arguments.assembled("linear_thompson", 4, part, s, thompson, ThompsonParams(posterior), plays)
