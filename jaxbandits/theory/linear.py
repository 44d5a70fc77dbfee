"""Order lines of robust and private stochastic linear bandits (ICML 2023, arXiv 2304.11741).

The radii and thresholds that a run computes are in `jaxbandits.algorithms.linear.formulas`.
"""

import math

from jaxbandits.typing import Scalar
from jaxbandits.validation import integer, number


def robust_linear_reward_bound(
    dim: int,
    horizon: Scalar,
    epsilon: Scalar = math.inf,
    *,
    corruption: Scalar = 0.0,
    max_gap: Scalar | None = None,
) -> float:
    """Order of the regret in model M1, a client a reward; logarithms and constants are dropped.

    It is (sqrt(d T) + T max{sqrt(alpha d), alpha d}) (1 + 1 / epsilon).

    Parameters
    ----------
    dim : int
        Features d, at least 1.
    horizon : int
        Plays T, at least 1.
    epsilon : float
        Privacy budget of a reward, in (0, inf]; inf: no privacy.
    corruption : float
        The share alpha of corrupted rewards, in [0, 1/4).
    max_gap : float, optional
        The bound is at most max_gap T; None: no limit.

    Returns
    -------
    float
        The bound.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The theorem's maximum lost its radicals in our copy. The remark on alpha < 1/d fixes them, while the proof's
    own radius gives T d sqrt(alpha).

    References
    ----------
    Theorem 1.3; `docs/formulas/robust_linear.md#bounds`.

    Examples
    --------
    >>> robust_linear_reward_bound(4, 10_000), robust_linear_reward_bound(4, 10_000, 1.0, corruption=0.01)
    (200.0, 4400.0)
    """
    dim, horizon, epsilon = _checked(dim, horizon, epsilon)
    share = number("corruption", corruption, 0.0, 0.25, open_high=True) * dim
    return _clipped(
        (math.sqrt(dim * horizon) + horizon * max(math.sqrt(share), share)) * (1 + 1 / epsilon), horizon, max_gap
    )


def robust_linear_action_bound(
    dim: int, horizon: Scalar, epsilon: Scalar = math.inf, *, max_gap: Scalar | None = None
) -> float:
    """Order of the regret in model M2, a client an action, without corruption and at weight_floor of about 1 / d.

    It is d sqrt(T) + d^(3/2) ln(T) / epsilon; other logarithms and constants are dropped.

    Parameters
    ----------
    dim : int
        Features d, at least 1.
    horizon : int
        Plays T, at least 1.
    epsilon : float
        Privacy budget of a client, in (0, inf]; inf: no privacy.
    max_gap : float, optional
        The bound is at most max_gap T; None: no limit.

    Returns
    -------
    float
        The bound.

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    Equation 58; `docs/formulas/robust_linear.md#bounds`.

    Examples
    --------
    >>> robust_linear_action_bound(4, 10_000)
    400.0
    """
    dim, horizon, epsilon = _checked(dim, horizon, epsilon)
    return _clipped(dim * math.sqrt(horizon) + dim**1.5 * math.log(horizon) / epsilon, horizon, max_gap)


def _checked(dim: int, horizon: Scalar, epsilon: Scalar) -> tuple[int, float, float]:
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    return integer("dim", dim, 1), number("horizon", horizon, 1), epsilon


def _clipped(bound: float, horizon: float, max_gap: Scalar | None) -> float:
    return bound if max_gap is None else min(bound, number("max_gap", max_gap, 0.0) * horizon)


def __getattr__(name: str) -> object:
    if name in ("counts", "mean_square", "lambda_value", "gamma_practical", "gamma_paper"):
        raise ImportError(
            f"jaxbandits.theory.linear.{name} is jaxbandits.algorithms.linear.formulas.{name} since 0.2.0"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
