"""Order lines of robust and private stochastic linear bandits (ICML 2023, arXiv 2304.11741).

The radii and thresholds that a run computes are in `jaxbandits.algorithms.linear.formulas`.
"""

import math
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Le

from jaxbandits.theory.quantities import Epsilon, Features, Length, MaxGap, Order, clipped
from jaxbandits.typing import Scalar
from jaxbandits.validation import checked

Proven = Annotated[
    Literal["proof", "theorem"], Doc("Which of the two: they differ in the private term, by sqrt(d) ln(T).")
]


@checked(source="Theorem 1.3; `docs/formulas/robust_linear.md#bounds`.")
def robust_linear_reward_bound(
    dim: Features,
    horizon: Length,
    epsilon: Annotated[Epsilon, Doc("Privacy budget of a reward; inf: no privacy.")] = math.inf,
    *,
    corruption: Annotated[Scalar, Ge(0), Le(0.5)] = 0.0,
    max_gap: MaxGap | None = None,
) -> Order:
    """Order of the regret in model M1, a client a reward; logarithms and constants are dropped.

    It is (sqrt(d T) + T max{sqrt(alpha d), alpha d}) (1 + 1 / epsilon).

    Parameters
    ----------
    corruption
        The share alpha of corrupted rewards. The theorem covers shares below 1/4; the paper's Figure 1 draws the
        formula up to 1/2.

    Notes
    -----
    The theorem's maximum lost its radicals in our copy. The remark on alpha < 1/d fixes them, while the proof's
    own radius gives T d sqrt(alpha).

    With unit arms and a unit theta no gap exceeds 2, so that a value of 2 T and more says nothing. That is so for
    alpha d >= 4 / (1 + 1 / epsilon)^2 below alpha d = 1: at d = 5 and epsilon = 1 from alpha = 0.2 on, whatever T.

    >>> robust_linear_reward_bound(4, 10_000), robust_linear_reward_bound(4, 10_000, 1.0, corruption=0.01)
    (200.0, 4400.0)
    """
    share = corruption * dim
    return clipped(
        (math.sqrt(dim * horizon) + horizon * max(math.sqrt(share), share)) * (1 + 1 / epsilon), horizon, max_gap
    )


@checked(source="Equation 58 and Theorem 1.4; `docs/formulas/robust_linear.md#bounds`.")
def robust_linear_action_bound(
    dim: Features,
    horizon: Length,
    epsilon: Annotated[Epsilon, Doc("Privacy budget of a client; inf: no privacy.")] = math.inf,
    *,
    source: Proven = "proof",
    max_gap: MaxGap | None = None,
) -> Order:
    """Order of the regret in model M2, a client an action, without corruption and at weight_floor of about 1 / d.

    It is d sqrt(T) + d^(3/2) ln(T) / epsilon by the proof, and d sqrt(T) + d / epsilon in the informal theorem, which
    the paper's Figure 1 draws; other logarithms and constants are dropped.

    Notes
    -----
    The proof bounds the norm of every arm by sqrt(2 d) (Lemma 3.7), and that factor also multiplies the private term.
    With an exactly G-optimal design no weight exceeds 1 / d, the norm is at most 1, and the theorem's term follows:
    `docs/deviations/robust_linear.md#order-of-m2`.

    >>> robust_linear_action_bound(4, 10_000)
    400.0
    >>> robust_linear_action_bound(4, 10_000, 0.1, source="theorem")
    440.0
    """
    private = dim if source == "theorem" else dim**1.5 * math.log(horizon)
    return clipped(dim * math.sqrt(horizon) + private / epsilon, horizon, max_gap)


def __getattr__(name: str) -> object:
    if name in ("counts", "mean_square", "lambda_value", "gamma_practical", "gamma_paper"):
        raise ImportError(
            f"jaxbandits.theory.linear.{name} is jaxbandits.algorithms.linear.formulas.{name} since 0.2.0"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
