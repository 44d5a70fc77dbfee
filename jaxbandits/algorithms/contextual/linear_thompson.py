"""Linear Thompson sampling (Agrawal and Goyal 2013), non-private and private (specification of locally private linear bandits, section 7)."""

import math

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.algorithms.contextual.selection import ThompsonParams, thompson
from jaxbandits.algorithms.contextual.shuffle_arguments import chosen_part
from jaxbandits.protocol import Algorithm
from jaxbandits.theory.linear_widths import REWARD_SCALE
from jaxbandits.validation import factory, number


@factory
def linear_thompson(
    *, num_arms, dim, horizon, statistics="none", epsilon=math.inf, delta=0.1, posterior_scale=0.3, protocol="amplified", window=20,
    feature_norm=1.0,
) -> Algorithm:  # fmt: skip
    """Play argmax <x, theta~>, theta~ drawn at every play from N(theta, v^2 P), P = (V + rho I)^-1, theta = P u.

    statistics [static]: how V = sum x x' and u = sum x y are learnt, "none", "ldp", "jdp" or "shuffle", with noise and ridge rho of the
    published preset "reference" of `linucb` (1e-4), `ldp_linucb`, `jdp_linucb` and `shuffle_linucb`; so are clipping, guarantee and
    what it truly spends.
    v = posterior_scale R sqrt(9 d log(T^2)), R = 1/2: the width is the non-private one, whatever the noise. A pivot of P below
    0 counts as 0. Contexts are decision sets [A, d]. Ties go to the lowest arm within 1e-5 of the largest index, relatively.

    num_arms >= 2, dim >= 1 [static]; horizon >= 1: T. epsilon in (0, inf], inf with "none"; delta in (0, 1). posterior_scale >= 0: 0 is greedy.
    protocol and window in [1, T] [static] matter for "shuffle" only. feature_norm > 0. Raises ValueError outside.
    Source: specification, section 7, where v and its scale are our defaults; the posterior is Agrawal and Goyal's (recalled, not re-read).
    Draws: `alg/act/posterior`, [d] a play.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.linear_thompson(num_arms=100, dim=5, horizon=20_000)
    >>> round(made.params.selection.posterior, 4)
    4.4782
    """
    s = arguments.setting(num_arms, dim, horizon, epsilon, delta, feature_norm)
    part, plays = chosen_part(statistics, protocol, window, s)
    scale = number("posterior_scale", posterior_scale, 0.0)
    posterior = scale * REWARD_SCALE * math.sqrt(9 * s.dim * 2 * math.log(s.horizon))
    return arguments.assembled("linear_thompson", 1, part, s, thompson, ThompsonParams(posterior), plays)
