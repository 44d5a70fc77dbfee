"""Numbers of linear bandits with one model an arm, on the host: `docs/formulas/ldp_contextual.md#one-model-an-arm`.

K arms, d features, T the horizon, L the largest norm of a feature. Noise is that of the exact presets: of scale s L^2
on the diagonal of x x', s L^2 / sqrt(2) above it and s L on x y, in the block of every arm.
"""

import math
from typing import Annotated, Literal

from jaxbandits.declared import LATER, Delta, Doc, FeatureNorm
from jaxbandits.mechanisms.gaussian import gaussian_scale
from jaxbandits.theory.exact_presets import COUNTED, SumNoise, running_sums
from jaxbandits.theory.linear_widths import REWARD_SCALE, LinearTuning, Width, moment_sensitivity
from jaxbandits.theory.quantities import Arms, Epsilon, Features, Plays
from jaxbandits.typing import Scalar
from jaxbandits.validation import choice, declare


@declare(source="Ours: docs/formulas/ldp_contextual.md#one-model-an-arm")
def per_arm_tuning(
    model: Annotated[Literal["local", "joint"], Doc("Who adds the noise: every user, or a trusted server.")],
    num_arms: Arms,
    dim: Features,
    horizon: Plays,
    epsilon: Annotated[Epsilon, Doc("Privacy budget of one user; inf: no noise.")],
    delta: Delta,
    feature_norm: FeatureNorm = 1.0,
    ridge: Annotated[Scalar, LATER, Doc("Of the regression of an arm without noise, greater than 0.")] = 1.0,
    tree: Annotated[Literal["binary", "blt", "honaker", "square_root", "banded"], LATER] = "binary",
) -> dict[str, float]:
    """Noise, ridge and width of private linear bandits with one model an arm: what is spent is what is asked for.

    Args:
        tree: The form of the running sums; of model "joint" only.

    Returns:
        dict: `diagonal`, `off_diagonal` and `vector`: standard deviations of one draw of noise on x x' and on x y, in
            the block of every arm; `ridge` and `ridge_root`, of rho_t = ridge + ridge_root sqrt(t); `base` and
            `quartic`, of the width base + quartic t^(1/4); `h` = sqrt(2 d) + sqrt(2 log(2 K T)), which bounds the
            largest eigenvalue of a noisy block, in units of s.

    >>> found = per_arm_tuning("local", 3, 5, 3000, 1.0, 0.1)
    >>> [round(found[name], 5) for name in ("diagonal", "h", "ridge_root", "quartic")]
    [2.30349, 7.58904, 17.48132, 0.55093]
    """
    sums = running_sums(choice("tree", tree, ("binary", *COUNTED)), horizon) if model == "joint" else None
    numbers = float(epsilon), float(delta), float(feature_norm), float(ridge)
    tuning = private_arm_tuning(num_arms, dim, horizon, *numbers, sums)
    scales = {name: float(getattr(tuning, name)) for name in LinearTuning._fields[:-1]}
    width = {"base": tuning.width.base, "quartic": tuning.width.quartic}
    return scales | width | {"h": noise_bound(num_arms, dim, horizon)}


def noise_bound(num_arms: int, dim: int, horizon: int) -> float:
    """h: a block's noise of scale s has its largest eigenvalue above s h with probability at most 1 / (2 K T)."""
    return math.sqrt(2 * dim) + math.sqrt(2 * math.log(2 * num_arms * horizon))


def private_arm_tuning(
    num_arms: int,
    dim: int,
    horizon: int,
    epsilon: float,
    delta: float,
    norm: float,
    ridge: float,
    sums: SumNoise | None,
) -> LinearTuning:
    """Noise of a message, or with `sums` on running sums, and the ridge and the width that make up for it."""
    of_draw, in_sum = (1.0, 1.0) if sums is None else (sums.column_norm, sums.deviation)
    scale = gaussian_scale(moment_sensitivity(1.0) * of_draw, epsilon, delta, "analytic")
    h = noise_bound(num_arms, dim, horizon)
    raised, wide = norm**2 * scale * h * in_sum, math.sqrt(scale * in_sum / h)
    noise = scale * norm**2, scale * norm**2 / math.sqrt(2), scale * norm
    if sums is None:
        return LinearTuning(*noise, ridge, raised, Width(1.0, wide))
    return LinearTuning(*noise, ridge + raised, 0.0, Width(1.0 + wide))


def plain_arm_tuning(num_arms: int, dim: int, horizon: int, preset: str, norm: float, ridge: float) -> LinearTuning:
    """Without noise. "theory": the self-normalised width at failure 1 / T, with a union over the arms."""
    if preset == "disjoint":
        return LinearTuning(ridge=ridge, width=Width(1.0))
    slope, offset = REWARD_SCALE * math.sqrt(dim), 2 * math.log(num_arms * horizon) / dim
    width = Width(math.sqrt(ridge), slope=slope, offset=offset, growth=norm**2 / (dim * ridge))
    return LinearTuning(ridge=ridge, width=width)
