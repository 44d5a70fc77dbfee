"""Order lines of Wu, Zhou, Tao and Wang, On Private and Robust Bandits (NeurIPS 2023, arXiv 2302.02526), on the host.

K arms, T plays, k-th moments bounded by u, contamination alpha, `log` natural. The paper hides constants: these are
orders with constants of 1, to be drawn as lines, not guarantees. All scale with u^(1/k), the unit of rewards.
Formulas: `docs/formulas/private_robust_mab.md#regret-bounds`.
"""

import math
from typing import Annotated

from jaxbandits.declared import Doc, Ge, Gt, NonNegative, Positive
from jaxbandits.theory.quantities import Corruption, CorruptionBound, Epsilon, MaxGap, Order, cut_at_max_gap
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare

Arms = Annotated[int, Ge(1), Doc("Number of arms K.")]
Length = Annotated[Scalar, Ge(2), Doc("Number of plays T, which need not be whole.")]
MomentOrder = Annotated[Scalar, Ge(2), Doc("Order k of the bounded moment.")]
MomentBound = Annotated[Scalar, Gt(0), Doc("Bound u on the moment, in units of a reward to the power k.")]


def _common(num_arms: int, horizon: Scalar, epsilon: Scalar, moment_order: Scalar, corruption: Scalar) -> float:
    power, log_t = 1 - 1 / moment_order, math.log(horizon)
    private = (num_arms * log_t / min(epsilon, 1.0)) ** power * horizon ** (1 - power)
    return float(math.sqrt(num_arms * horizon * log_t) + private + horizon * corruption**power)


@declare(
    source="Wu, Zhou, Tao and Wang 2023, Theorem 6.2 and its clean case: "
    "`docs/formulas/private_robust_mab.md#regret-bounds`."
)
def prm_raw_bound(
    num_arms: Arms,
    horizon: Length,
    epsilon: Epsilon,
    *,
    moment_order: MomentOrder = 2.0,
    moment_bound: MomentBound = 1.0,
    corruption_bound: CorruptionBound = 0.0,
    max_gap: MaxGap | None = None,
) -> Order:
    """Upper bound of PRM elimination with raw moments, up to constants.

    u^(1/k) [sqrt(K T log T) + (K log T / min(epsilon, 1))^(1 - 1/k) T^(1/k) + T alpha^(1 - 1/k) + K log T / alpha],
    the last two terms only under contamination.

    >>> round(prm_raw_bound(5, 10_000, 1.0))
    1357
    """
    bound = _common(num_arms, horizon, epsilon, moment_order, corruption_bound)
    if corruption_bound > 0:
        bound += float(num_arms * math.log(horizon) / corruption_bound)
    return cut_at_max_gap(moment_bound ** (1 / moment_order) * bound, horizon, max_gap)


@declare(
    source="Wu, Zhou, Tao and Wang 2023, Theorems 6.10 and 6.12: `docs/formulas/private_robust_mab.md#regret-bounds`."
)
def prm_central_bound(
    num_arms: Arms,
    horizon: Length,
    epsilon: Epsilon,
    mean_bound: Annotated[Positive, Doc("Bound D on the size of every mean, in units of a reward.")],
    *,
    moment_order: MomentOrder = 2.0,
    moment_bound: MomentBound = 1.0,
    corruption_bound: CorruptionBound = 0.0,
    max_gap: MaxGap | None = None,
) -> Order:
    """Upper bound of PRM elimination with central moments, up to constants.

    u^(1/k) times the first three terms of `prm_raw_bound`, plus D K log T / alpha under contamination, plus
    D K log(D T / u^(1/k)) / min(epsilon, 1).

    >>> prm_central_bound(5, 10_000, 1.0, 10.0) > prm_raw_bound(5, 10_000, 1.0)
    True
    """
    unit = moment_bound ** (1 / moment_order)
    bound = unit * _common(num_arms, horizon, epsilon, moment_order, corruption_bound)
    if corruption_bound > 0:
        bound += float(mean_bound * num_arms * math.log(horizon) / corruption_bound)
    bound += float(mean_bound * num_arms * math.log(max(mean_bound * horizon / unit, math.e)) / min(epsilon, 1.0))
    return cut_at_max_gap(bound, horizon, max_gap)


@declare(source="Wu, Zhou, Tao and Wang 2023, Theorem 4.1: `docs/formulas/private_robust_mab.md#regret-bounds`.")
def private_robust_lower_bound(
    num_arms: Arms,
    horizon: Length,
    epsilon: Epsilon,
    *,
    moment_order: MomentOrder = 2.0,
    moment_bound: MomentBound = 1.0,
    corruption: Corruption = 0.0,
    max_gap: MaxGap | None = None,
    constant: NonNegative = 1 / 27,
) -> Order:
    """Minimax lower bound, up to its constant: what some instance costs every epsilon-private algorithm.

    constant u^(1/k) max{sqrt(K T), (K / epsilon)^(1 - 1/k) T^(1/k), T alpha^(1 - 1/k)}.

    Args:
        constant: The theorem's constant, which it does not state: 1/27 is this package's choice, so label the line
            "order".

    >>> round(private_robust_lower_bound(5, 10_000, 0.1), 1)
    26.2
    """
    power, unit = 1 - 1 / moment_order, moment_bound ** (1 / moment_order)
    private = (num_arms / epsilon) ** power * horizon ** (1 - power)
    largest = float(max(math.sqrt(num_arms * horizon), private, horizon * corruption**power))
    return cut_at_max_gap(constant * unit * largest, horizon, max_gap)
