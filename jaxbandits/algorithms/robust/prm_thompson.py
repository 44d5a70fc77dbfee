"""PRM-TS: Thompson sampling over private robust means (Wu, Zhou, Tao and Wang 2023, remark after Algorithm 1; specification, section 6)."""

from jaxbandits.algorithms.robust.prm_ucb import made
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory


@factory
def prm_thompson(
    *, num_arms, horizon, epsilon, moment="raw", moment_order=2.0, moment_bound=1.0, mean_bound=None, corruption_bound=0.0,
    failure_prob=None, radius="order", clip_scale=1.0, sampling_scale=1.0, privacy_scale=1.0, corruption_scale=1.0,
    threshold_scale=1.0, histogram_scale=8.0, guard_bins=0, clip_mode="shifted", shortcut=False, thompson_scale=0.7,
) -> Algorithm:  # fmt: skip
    """`prm_ucb` with mean + thompson_scale radius Z in place of mean + radius: Z a standard normal for every arm and decision.

    thompson_scale >= 0; everything else, the privacy included, is as in `prm_ucb`. About one run in twenty still ends on a wrong arm.
    Source: Wu et al. 2023, section 5, remark after Algorithm 1; details from the specification, section 6.

    >>> import jaxbandits as jb
    >>> jb.algorithms.prm_thompson(num_arms=3, horizon=1000, epsilon=0.5).params.thompson_scale
    0.7
    """
    return made(
        "prm_thompson", True, num_arms, horizon, shortcut, thompson_scale, moment=moment, epsilon=epsilon,
        moment_order=moment_order, moment_bound=moment_bound, mean_bound=mean_bound, corruption_bound=corruption_bound,
        failure_prob=failure_prob, radius=radius, clip_scale=clip_scale, sampling_scale=sampling_scale,
        privacy_scale=privacy_scale, corruption_scale=corruption_scale, threshold_scale=threshold_scale,
        histogram_scale=histogram_scale, guard_bins=guard_bins, clip_mode=clip_mode,
    )  # fmt: skip
