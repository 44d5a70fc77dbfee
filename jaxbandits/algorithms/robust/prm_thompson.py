"""PRM-TS: Thompson sampling over private robust means (Wu, Zhou, Tao and Wang 2023, remark after Algorithm 1)."""

from typing import Unpack

from jaxbandits.algorithms.robust import prm_ucb
from jaxbandits.algorithms.robust.prm_formulas import PrmArguments
from jaxbandits.algorithms.stochastic.episodes import CentralPrivate
from jaxbandits.declared import Example, Horizon, NonNegative, NumArms
from jaxbandits.validation import factory


@factory(
    plays_on="arms",
    example=Example(
        {"epsilon": 1.0, "moment": "central", "mean_bound": 10.0, "histogram_scale": 1.0},
        world=("gaussian_arms", {"means": [0.0, 0.5, -0.5]}),
        horizon=600,
    ),
    source="""Wu, Zhou, Tao and Wang 2023, section 5, remark after Algorithm 1, which gives no listing:
        `docs/formulas/private_robust_mab.md#prm-ucb-and-prm-ts`. Constants:
        `docs/formulas/private_robust_mab.md#constants`.""",
)
def prm_thompson(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    thompson_scale: NonNegative = 0.7,
    sampling_scale: prm_ucb.SamplingScale = 1.0,
    privacy_scale: prm_ucb.PrivacyScale = 1.0,
    corruption_scale: prm_ucb.CorruptionScale = 1.0,
    shortcut: prm_ucb.Shortcut = False,
    **given: Unpack[PrmArguments],
) -> CentralPrivate:
    """Thompson sampling over private robust means, each arm played in episodes of doubling length.

    It is `prm_ucb` with mean + thompson_scale radius Z in place of mean + radius, where Z is a standard normal
    variable, drawn afresh for every arm at each decision.

    Args:
        thompson_scale: Multiplies the radius under the normal draw. The default is this package's choice.

    Note:
        Every arm is first played B0 times, in index order, as in `prm_ucb`. Mean, noise and radius are those of
        `prm_elimination`. Each mean rests on one episode alone. Ties go to the lowest index. Truncation rejects rewards
        that are not finite: they count as 0 and stay in the divisor. About one run in twenty still ends on a wrong arm.
        Departures from the paper: `docs/deviations/private_robust_mab.md`.

    >>> jb.algorithms.prm_thompson(num_arms=3, horizon=1000, epsilon=0.5).params.thompson_scale
    0.7
    """
    scales = sampling_scale, privacy_scale, corruption_scale
    return prm_ucb.index_over_private_means(num_arms, horizon, shortcut, thompson_scale, *scales, **given)
