"""Robust OFUL: Hvt-UCB that also allows for a budget of corruption.

Ours, with the ingredients of Tani and Futami 2026, of which the abstract was read; no theorem of theirs is claimed:
`docs/formulas/robust_frontier.md#robust-oful`. State and functions are those of `hvt_linucb`.
"""

from jaxbandits.algorithms.contextual.hvt_linucb import algorithm_of
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory


@factory
def robust_oful(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    moment_scale: Scalar,
    corruption_budget: Scalar | None = None,
    moment_order: Scalar = 2.0,
    theta_norm: Scalar = 1.0,
    feature_norm: Scalar = 1.0,
    ridge: Scalar | None = None,
    least_scale: Scalar | None = None,
    growth: Scalar = 4.0,
    failure_prob: Scalar | None = None,
    radius_scale: Scalar = 1.0,
) -> Algorithm:
    """Linear bandits with heavy-tailed and corrupted rewards: `hvt_linucb` whose uncertain plays weigh less.

    The scale of a play's residual is at least sqrt(C q / sqrt(kappa)), q = sqrt(x' V^-1 x) of the decision and kappa
    as on the formulas page, and beta has 2 sqrt(kappa) more.

    Parameters
    ----------
    num_arms : int
        Arms K of a decision set, at least 2 [static]. Filled in from the environment.
    dim : int
        Features d of an arm, at least 1 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in by `sweep` and `simulate`.
    moment_scale : float
        nu, at least 0, in units of a reward: E|noise|^moment_order is at most nu^moment_order. The environments' fact
        ``noise_moment(order)`` to the power 1 / order is the least.
    corruption_budget : float, optional
        C, at least 0: the sum of the sizes of what an adversary adds to the rewards of played arms. 0: exactly
        `hvt_linucb`. Default: sqrt(horizon).
    moment_order : float, default 2.0
        Order 1 + e of the bounded moment, in (1, 2].
    theta_norm : float, default 1.0
        Bound B > 0 on the norm of the unknown theta; the estimate is projected onto that ball.
    feature_norm : float, default 1.0
        The largest norm L > 0 of a feature.
    ridge : float, optional
        lambda, in [1e-6, 1e6]. Default: dim.
    least_scale : float, optional
        The least scale of a residual, above 0. Default: 1 / sqrt(horizon).
    growth : float, default 4.0
        alpha > 0: V grows by x x' / (alpha s^2). Larger values take longer steps.
    failure_prob : float, optional
        In (0, 1). Default: 1 / horizon, and 1/2 at horizon 1.
    radius_scale : float, default 1.0
        Multiplies the width beta, also in the scale of a residual, at least 0. With 1 arms are played nearly uniformly
        for a long time, since beta is 4890 at T = 3000; 1e-4 is what others' code of a relative takes.

    Returns
    -------
    Algorithm
        For environments whose contexts are decision sets [K, d], such as `environments.contextual_linear`.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    A residual of a clipped loss moves its gradient by at most its own change over the scale s, so that a corruption of
    size c moves the squared error by at most 2 beta c q / s^2, and all of it by 2 beta sqrt(kappa): hence beta's
    addition, which is the same for every C > 0. Curves over C have a step at 0. NaN, infinity and ties as in
    `hvt_linucb`.

    References
    ----------
    Ours, after Tani and Futami 2026 (arXiv 2603.15596; abstract read, no theorem claimed):
    `docs/formulas/robust_frontier.md#robust-oful`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> made = {"num_arms": 20, "dim": 4, "horizon": 3000, "moment_scale": 1.0}
    >>> clean = jb.algorithms.robust_oful(**made, corruption_budget=0)
    >>> clean.params == jb.algorithms.hvt_linucb(**made).params
    True
    """
    return algorithm_of(
        "robust_oful",
        num_arms,
        dim,
        horizon,
        radius_scale,
        corruption_budget,
        moment_scale=moment_scale,
        moment_order=moment_order,
        theta_norm=theta_norm,
        feature_norm=feature_norm,
        ridge=ridge,
        least_scale=least_scale,
        growth=growth,
        failure_prob=failure_prob,
    )
