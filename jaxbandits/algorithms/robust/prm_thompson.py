"""PRM-TS: Thompson sampling over private robust means (Wu, Zhou, Tao and Wang 2023, remark after Algorithm 1).

Formulas: `docs/formulas/private_robust_mab.md#prm-ucb-and-prm-ts`.
"""

from typing import Literal

from jaxbandits.algorithms.robust.prm_ucb import index_over_private_means
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory


@factory
def prm_thompson(
    *,
    num_arms: int,
    horizon: int,
    epsilon: Scalar,
    moment: Literal["raw", "central"] = "raw",
    moment_order: Scalar = 2.0,
    moment_bound: Scalar = 1.0,
    mean_bound: Scalar | None = None,
    corruption_bound: Scalar = 0.0,
    failure_prob: Scalar | None = None,
    radius: Literal["order", "explicit"] = "order",
    clip_scale: Scalar = 1.0,
    sampling_scale: Scalar = 1.0,
    privacy_scale: Scalar = 1.0,
    corruption_scale: Scalar = 1.0,
    threshold_scale: Scalar = 1.0,
    histogram_scale: Scalar = 8.0,
    guard_bins: int = 0,
    clip_mode: Literal["shifted", "literal"] = "shifted",
    shortcut: bool = False,
    thompson_scale: Scalar = 0.7,
) -> Algorithm:
    """Thompson sampling over private robust means, each arm played in episodes of doubling length.

    It is `prm_ucb` with mean + thompson_scale radius Z in place of mean + radius, where Z is a standard normal
    variable, drawn afresh for every arm at each decision.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. `sweep` fills it in from the environment.
    horizon : int
        Number of plays T, at least 1. `sweep` fills it in.
    epsilon : float
        Privacy budget of the whole run, in (0, inf]. At ``float("inf")`` there is no noise, and everything else is
        as for epsilon 1. The noise uses epsilon itself; clip, order radius and threshold use min(epsilon, 1), up to
        which the paper's theorems hold.
    moment : {"raw", "central"}, default "raw"
        What is known of an arm's rewards X [static]. ``"raw"``: E|X|^k <= u, and means are truncated around 0.
        ``"central"``: E|X - mean|^k <= u and `|mean|` <= D; one half of the data finds a bin near the mean, the other
        half is truncated around it.
    moment_order : float, default 2.0
        Order k of the moment, at least 2. The default asks for a finite variance only.
    moment_bound : float, default 1.0
        Bound u on the moment, in units of a reward to the power k, greater than 0. The default is the paper's; s =
        u^(1/k) is the unit that rewards are measured in.
    mean_bound : float, optional
        Bound D on the size of every mean, in units of a reward. ``moment="central"`` needs it, in [2 r, 2^15 r],
        where r is the width of a bin: r = s iota^(1/k) with iota = 10 without contamination and otherwise (1 -
        alpha) / (0.249 - alpha). No default; raw moments take no notice of it.
    corruption_bound : float, default 0.0
        Largest share alpha of contaminated rewards that the learner believes in: in [0, 1/2), with central moments in
        [0, 0.133).
    failure_prob : float, optional
        Failure probability delta of one confidence bound, in (0, 1). Default: 1 / horizon, and 1/2 at horizon 1.
    radius : {"order", "explicit"}, default "order"
        The confidence radius beta. ``"order"``: the paper's three orders times `sampling_scale`, `privacy_scale`
        and `corruption_scale`. ``"explicit"``: all constants from a proof of this package, wider; it needs no part
        of T0 for contamination, and ``clip_mode="shifted"``.
    clip_scale : float, default 1.0
        Multiplies the level at which rewards are truncated (with central moments its part a), greater than 0. The
        default is the paper's order.
    sampling_scale : float, default 1.0
        Multiplies the order radius' sampling part s sqrt(L / n), L = ln(1 / delta), at least 0. The default is the
        plain order: with scales of 1/2 an unlucky estimate is never refreshed, and a few runs in a hundred end on a
        wrong arm.
    privacy_scale : float, default 1.0
        Multiplies the order radius' privacy part s (L / (n min(epsilon, 1)))^(1 - 1/k), at least 0. Default as
        before.
    corruption_scale : float, default 1.0
        Multiplies the order radius' contamination part s alpha^(1 - 1/k), at least 0. The default is the
        plain order.
    threshold_scale : float, default 1.0
        Multiplies the contamination part L / alpha of the threshold T0, at least 0. The default is the paper's
        order. It has no effect without contamination or with the explicit radius.
    histogram_scale : float, default 8.0
        Multiplies the histogram part ln(D / delta) / min(epsilon, 1) of T0, at least 0; central moments only. The
        default was tried out: 2 to 6% of runs lost the best arm with 4, 0.2% with 8; with 16 T0 dominates the
        regret.
    guard_bins : int, default 0
        Bins added on each side of [-D, D], from 0 to 1000; central moments only. The default is the printed grid,
        on which no bin sees mass above D: use 1, or a `mean_bound` that is r larger than the largest mean.
    clip_mode : {"shifted", "literal"}, default "shifted"
        Truncation around the bin's edge; central moments only. ``"shifted"``: at 2 r + a, since the edge may be off
        by 2 r. ``"literal"``: at a, as printed, for which the bias bound fails where a is small.
    shortcut : bool, default False
        Draw how often each value was paid instead of every reward, by binomials [static]: the law is the same, the
        draws are others. For arms of few values (`bernoulli_arms`) and contamination by few values; other
        environments and adversaries are an error.
    thompson_scale : float, default 0.7
        Multiplies the radius under the normal draw, at least 0. The default is this package's choice.

    Returns
    -------
    Algorithm
        epsilon-private in the central model for rewards that differ in one play: each reward enters one estimate.

    Raises
    ------
    ValueError
        If an argument lies outside its range, or if a combination is refused as said above.

    Notes
    -----
    Every arm is first played B0 times, in index order, as in `prm_ucb`. Mean, noise and radius are those of
    `prm_elimination`. Each mean rests on one episode alone. Ties go to the lowest index. Truncation rejects rewards
    that are not finite: they count as 0 and stay in the divisor. About one run in twenty still ends on a wrong arm.
    Departures from the paper: `docs/deviations/private_robust_mab.md`.

    References
    ----------
    Wu, Zhou, Tao and Wang 2023, section 5, remark after Algorithm 1, which gives
    no listing: `docs/formulas/private_robust_mab.md#prm-ucb-and-prm-ts`. Constants:
    `docs/formulas/private_robust_mab.md#constants`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.prm_thompson(num_arms=3, horizon=1000, epsilon=0.5).params.thompson_scale
    0.7
    """
    return index_over_private_means(
        "prm_thompson",
        True,
        num_arms,
        horizon,
        shortcut,
        thompson_scale,
        moment=moment,
        epsilon=epsilon,
        moment_order=moment_order,
        moment_bound=moment_bound,
        mean_bound=mean_bound,
        corruption_bound=corruption_bound,
        failure_prob=failure_prob,
        radius=radius,
        clip_scale=clip_scale,
        sampling_scale=sampling_scale,
        privacy_scale=privacy_scale,
        corruption_scale=corruption_scale,
        threshold_scale=threshold_scale,
        histogram_scale=histogram_scale,
        guard_bins=guard_bins,
        clip_mode=clip_mode,
    )
