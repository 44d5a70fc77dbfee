"""Linear Thompson sampling (Agrawal and Goyal 2013), without privacy and with it."""

import math
from typing import Unpack

from jaxbandits.algorithms.contextual.arguments import Learnt, LearntAlgorithm, linear_algorithm
from jaxbandits.algorithms.contextual.selection import ThompsonParams, UcbParams, thompson
from jaxbandits.algorithms.contextual.shuffle_statistics import choose_part
from jaxbandits.declared import Dim, Example, Horizon, NonNegative, NumArms
from jaxbandits.theory.linear_widths import REWARD_SCALE, Width
from jaxbandits.validation import factory


@factory(
    plays_on="decision set",
    example=Example({"statistics": "ldp", "epsilon": 1.0}),
    source="""Agrawal and Goyal 2013 (recalled); docs/formulas/ldp_contextual.md#thompson-sampling, where v and its
        scale are our choice""",
)
def linear_thompson(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Horizon,
    posterior_scale: NonNegative | None = None,
    **given: Unpack[Learnt],
) -> LearntAlgorithm:
    """Linear Thompson sampling: draw a parameter from the posterior at every play, and play the best arm for it.

    The arm of the largest <x, theta~> is played, with theta~ drawn from N(theta, v^2 P), P = (V + rho I)^-1 and
    theta = P u.

    Args:
        posterior_scale: Multiplies v = posterior_scale R sqrt(9 d log(T^2)), R = 1/2; 0 is greedy. The width is that
            without privacy, whatever the noise. With `models="per_arm"` it is v itself, and with the preset "theory"
            multiplies the width of `linucb`. The default: 0.1 with "exact", 0.3 with the others.

    Note:
        Ties go to the lowest arm within 1e-5 of the largest index, relatively. A pivot of P below 0 counts as 0.
        Non-finite rewards count as 0. `guarantee.spend` is what the noise truly spends.

        Draws: `alg/act/posterior`, d normals a play; with `models="per_arm"` K, since <x, theta~> of each arm is normal
        on its own: N(<x, theta>, v^2 x' P x). Departures: docs/deviations.md.

    >>> algorithm = jb.algorithms.linear_thompson(num_arms=100, dim=5, horizon=20_000)
    >>> round(algorithm.params.selection.posterior, 4)
    4.4782
    """
    part, s, window = choose_part(num_arms, dim, horizon, **given)
    scale = (0.1 if s.preset == "exact" else 0.3) if posterior_scale is None else posterior_scale
    if s.blocks:
        width = Width(1.0) if s.preset == "disjoint" else part.tuning.width
        return linear_algorithm(part, s, thompson, UcbParams(scale, **width._asdict()))
    posterior = scale * REWARD_SCALE * math.sqrt(9 * dim * 2 * math.log(horizon))
    return linear_algorithm(part, s, thompson, ThompsonParams(posterior), window)
