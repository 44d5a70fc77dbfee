"""Constants of `ldp_instrument_ucb`, on the host: noise, ridge, width, and an order of its regret.

Ours, with a sketch in the place of a proof: `docs/formulas/ldp_contextual.md#instrument`. T is the horizon, d the
dimension, L the largest norm of a feature, B the bound on theta, R = 1/2 the rewards' noise.
"""

import math
from typing import Annotated

from jaxbandits.declared import Delta, Doc, FeatureNorm, NonNegative
from jaxbandits.mechanisms.gaussian import gaussian_scale
from jaxbandits.theory import quantities as q
from jaxbandits.theory.linear_widths import REWARD_SCALE
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare


@declare(source="Ours: `docs/formulas/ldp_contextual.md#instrument`.")
def instrument_sensitivity(
    feature_norm: FeatureNorm = 1.0,
    weight: Annotated[NonNegative, Doc("Weight of the squared change of psi y. The default: L^2.")] | None = None,
) -> float:
    """The largest L2 change of (psi x', sqrt(weight) psi y) that one user of `ldp_instrument_ucb` can bring about.

    It is 2 sqrt(L^2 + weight), since `|psi|` <= 1, `|x|` <= L and y lies in [0, 1]. It is tight: an ill-conditioned
    matrix turns the unit vectors psi of two near users away from each other.

    >>> round(instrument_sensitivity() ** 2, 12), round(instrument_sensitivity(2.0, weight=0.0), 12)
    (8.0, 4.0)
    """
    return 2 * math.sqrt(float(feature_norm) ** 2 + float(feature_norm**2 if weight is None else weight))


@declare(source="Ours: `docs/formulas/ldp_contextual.md#instrument`.")
def instrument_bound(
    horizon: q.Plays,
    dim: q.Features,
    epsilon: Annotated[q.Epsilon, Doc("Privacy budget of one user; inf: no noise.")],
    delta: Delta,
    feature_norm: FeatureNorm = 1.0,
) -> q.Order:
    """The order of the regret of `ldp_instrument_ucb`: 2 rho_T (d / log 2) log(1 + T L / lambda_T).

    rho_T is the width at `radius_scale` 1 and lambda_T the ridge, with the other defaults.

    Note:
        It comes from a sketch and not from a theorem: draw it dotted. It is below T from about T = 4.3e8 on, at epsilon
        = 1, d = 5 and delta = 1 / T.

    >>> round(instrument_bound(10**9, 5, 1.0, 1e-9) / 10**9, 2), instrument_bound(10**8, 5, 1.0, 1e-8) > 10**8
    (0.73, True)
    """
    tuning = instrument_tuning(horizon, dim, epsilon, delta, feature_norm, 1 / feature_norm, 1.0)
    width = tuning["base"] + tuning["growth"] * math.sqrt(horizon)
    ridge = tuning["ridge"] + tuning["ridge_root"] * math.sqrt(horizon)
    return 2 * width * dim / math.log(2) * math.log1p(horizon * feature_norm / ridge)


def instrument_tuning(
    horizon: int, dim: int, epsilon: Scalar, delta: Scalar, norm: Scalar, bound: Scalar, ridge_scale: Scalar
) -> dict[str, float]:
    """Noise of an entry of the matrix and of the vector, ridge + ridge_root sqrt(t), and base + growth sqrt(t)."""
    norm, bound = float(norm), float(bound)
    noise = gaussian_scale(math.sqrt(8), epsilon, delta, "analytic")
    root = float(ridge_scale) * 2 * norm * noise * math.sqrt(dim)
    deviation = math.sqrt(noise**2 * (1 + norm**2 * bound**2) + REWARD_SCALE**2)
    growth = deviation * (math.sqrt(dim) + math.sqrt(2 * math.log(max(horizon, 2)))) + root * bound
    scales = {"matrix": norm * noise, "vector": noise, "ridge": norm, "ridge_root": root}
    return scales | {"base": norm * bound, "growth": growth}
