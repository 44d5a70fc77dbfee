"""Constants of OnlineUCB (locally private linear bandits, Algorithm 1), computed on the host.

T plays, d features of norm at most L, D the bound on theta, R = 1/2 the rewards' sub-Gaussian scale, beta the
failure probability, sigma the privacy noise, Delta the extra perturbation of features, `log` natural. The printed
clip constant is garbled: `online_ucb_gradient_bound` is rebuilt. The paper names constants c_M, c_S, gamma without
values: 1 here.
Formulas: `docs/formulas/ldp_contextual.md#onlineucb`.
"""

import math
from typing import Annotated, Literal

from jaxbandits.declared import LATER, Delta, Doc, Epsilon, FeatureNorm, NonNegative, Positive, Remedy
from jaxbandits.mechanisms.gaussian import gaussian_delta, gaussian_scale
from jaxbandits.theory.linear_widths import REWARD_SCALE
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare

PAPER = '"Improved rate for locally differentially private linear bandits"'
REACH = (1e-4, 50.0)  # where `printed_noise_reach` looks for the largest epsilon
REACH_HALVINGS = 60  # of its logarithm: more than a float64 has room for

PrivateFeatures = Annotated[bool, LATER, Doc("Whether the user adds noise to the feature too, or to the reward alone.")]
NoisyDelta = Annotated[Delta, Remedy("Gaussian noise has no pure guarantee: give delta > 0")]
ClaimedDelta = Annotated[NoisyDelta, Doc("The delta that is claimed.")]
RewardRange = Annotated[
    NonNegative,
    Doc("Length of the range of rewards: 1 for [0, 1], 2 for [-1, 1], as in the paper, 0 where rewards are public."),
]
# Tunings of `online_ucb`, which has checked what it passes
ThetaBound = Annotated[Scalar, LATER, Doc("Bound D on the norm of theta.")]
Perturbation = Annotated[Scalar, LATER, Doc("Extra perturbation Delta of the features, at least 0.")]
GradientBound = Annotated[Scalar, LATER, Doc("Bound G at which gradients are clipped.")]
Curvature = Annotated[Scalar, LATER, Doc("lambda_min + Delta^2, greater than 0.")]
Plays = Annotated[int, LATER, Doc("Number of plays T.")]
FailureProb = Annotated[Scalar, LATER, Doc("Failure probability beta, in (0, 1].")]
UserEpsilon = Annotated[Scalar, LATER, Doc("Privacy budget of a user, in (0, inf].")]
UserDelta = Annotated[Scalar, LATER, Doc("Failure probability of the privacy claim, in (0, 1).")]


@declare(source=f"{PAPER}, Algorithm 1: `docs/formulas/ldp_contextual.md#calibration`.")
def online_ucb_sensitivity(private_features: PrivateFeatures = True, feature_norm: FeatureNorm = 1.0) -> float:
    """Largest L2 change of what a user adds noise to.

    It is sqrt(4 L^2 + 1) for the pair (x, y) with `|x|` <= L and y in [0, 1]; 1 for y alone.

    >>> online_ucb_sensitivity() ** 2, online_ucb_sensitivity(False)
    (5.000000000000001, 1.0)
    """
    return math.sqrt(4 * feature_norm**2 + 1) if private_features else 1.0


@declare(source=f"{PAPER}, Algorithm 1: `docs/formulas/ldp_contextual.md#calibration`.")
def online_ucb_noise(
    epsilon: Annotated[Epsilon, Doc("Privacy budget of a user; inf is no noise.")],
    delta: NoisyDelta = 0.1,
    *,
    calibration: Literal["exact", "paper", "reference"] = "exact",
    private_features: PrivateFeatures = True,
    feature_norm: Annotated[Scalar, LATER, Doc("The largest norm L > 0 of a feature.")] = 1.0,
) -> float:
    """Standard deviation sigma of the noise on every feature and on the reward.

    Args:
        calibration: "exact": the least noise that makes the pair (epsilon, delta)-private (Balle and Wang 2018).
            "paper": 2 sqrt(2 log(1.25 / delta)) / epsilon, and half of it for the reward alone. "reference":
            sqrt(log(2.5 / delta)) / epsilon, the noise of the LDP comparator in the code of Chowdhury and Zhou.

    >>> [round(online_ucb_noise(1.0, calibration=c), 3) for c in ("exact", "paper", "reference")]
    [2.428, 4.495, 1.794]
    """
    if calibration == "exact":
        return gaussian_scale(online_ucb_sensitivity(private_features, feature_norm), epsilon, delta, "analytic")
    if calibration == "reference":
        return float(math.sqrt(math.log(2.5 / delta)) / epsilon)
    return float((2 if private_features else 1) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon)


@declare(source=f"{PAPER}, Theorem 3.2: `docs/formulas/ldp_contextual.md#calibration`.")
def printed_noise_delta(epsilon: Positive, delta: ClaimedDelta, reward_range: RewardRange = 1.0) -> float:
    """The delta that the printed noise of OnlineUCB truly has for a user's pair at an epsilon.

    Args:
        epsilon: The epsilon that is claimed, finite.

    Returns:
        The least delta at which the message (x, y), of a feature with `|x|` <= 1 and its reward, is private at
        `epsilon`.

    Note:
        The printed standard deviation, 2 sqrt(2 log(1.25 / delta)) / epsilon, is that of the classical formula for x
        and for y apart, each of which moves by 2 at most. The pair moves by sqrt(4 + reward_range^2), and it is one
        Gaussian release, of which the least delta is known exactly (Balle and Wang 2018, Theorem 8).

    >>> round(printed_noise_delta(10.0, 0.1), 6), round(printed_noise_delta(1.0, 1e-5, 2.0), 9)
    (0.607584, 3.7361e-05)
    """
    scale = online_ucb_noise(epsilon, delta, calibration="paper")
    return gaussian_delta(math.sqrt(4 + reward_range**2), scale, epsilon)


@declare(source=f"{PAPER}, Theorem 3.2: `docs/formulas/ldp_contextual.md#calibration`.")
def printed_noise_reach(delta: ClaimedDelta, reward_range: RewardRange = 1.0) -> float:
    """The largest epsilon at which the printed noise of OnlineUCB keeps its claim.

    Returns:
        float: epsilon*: the claim (epsilon, delta) is true of a user's pair exactly for epsilon <= epsilon*. It is
            looked for in [1e-4, 50], and 0 where it is smaller; it is below 20 for every delta that is a float64. What
            the noise has beyond it is in `printed_noise_delta`.

    >>> round(printed_noise_reach(0.1), 6), round(printed_noise_reach(1e-5, 2.0), 6)
    (4.356574, 0.364732)
    """
    low, high = map(math.log, REACH)
    if printed_noise_delta(REACH[0], delta, reward_range) > delta:
        return 0.0
    for _ in range(REACH_HALVINGS):
        middle = (low + high) / 2
        kept = printed_noise_delta(math.exp(middle), delta, reward_range) <= delta
        low, high = (middle, high) if kept else (low, middle)
    return math.exp(low)


@declare(source=f"{PAPER}, Algorithm 1, rebuilt: `docs/formulas/ldp_contextual.md#clip-constant`.")
def online_ucb_gradient_bound(
    feature_noise: Scalar,
    reward_noise: Annotated[Scalar, LATER, Doc("Standard deviation of the noise on a reward; 0 where none is added.")],
    *,
    theta_bound: ThetaBound = 1.0,
    perturbation: Perturbation = 0.0,
    log: float | None = None,
) -> float:
    """The size G to which gradients are clipped.

    Where both noises are sigma it is

        2 sqrt(2 log) (2 D sigma + 2 sigma + D Delta + Delta)
          + 2 log (2 D Delta^2 + 4 D Delta sigma + 2 Delta sigma + 2 D sigma^2 + 2 sigma^2 + D sigma^2) + 2 D + 2.

    Args:
        feature_noise: Standard deviation of the noise on a feature's entry; 0 where none is added.
        log: log(2 T / beta), for the paper's bound with high probability (`|x|` <= 1). The default: the practical
            bound, which leaves out both factors sqrt(2 log) and log; it is as large as a gradient typically is.

    >>> sigma = online_ucb_noise(1.0, calibration="paper")
    >>> round(online_ucb_gradient_bound(sigma, sigma))
    242
    >>> round(online_ucb_gradient_bound(sigma, sigma, log=math.log(2 * 20_000**2)))
    4376
    """
    D, x, y, extra = theta_bound, feature_noise, reward_noise, perturbation
    linear = 2 * D * x + x + y + D * extra + extra
    square = 2 * D * extra * extra + 4 * D * extra * x + 2 * extra * y + 2 * D * x * x + 2 * x * y + D * x * x
    root, log = (1.0, 1.0) if log is None else (math.sqrt(2 * log), log)
    return float(2 * root * linear + 2 * log * square + 2 * D + 2)


@declare(source=f"{PAPER}, M_N: `docs/formulas/ldp_contextual.md#width`.")
def online_ucb_learner_regret(
    gradient_bound: GradientBound, curvature: Curvature, horizon: Plays, theta_bound: ThetaBound = 1.0
) -> float:
    """The learner's regret M_N at N = T: (G^2 / (lambda_min + Delta^2) + G D) log T.

    >>> round(online_ucb_learner_regret(10.0, 0.2, 20_000))
    5051
    """
    return float((gradient_bound / curvature * gradient_bound + gradient_bound * theta_bound) * math.log(horizon))


@declare(source=f"{PAPER}, Lemma 3.3, with Lemma 3.5 for S: `docs/formulas/ldp_contextual.md#width`.")
def online_ucb_deviation(
    gradient_bound: GradientBound,
    curvature: Curvature,
    horizon: Plays,
    failure_prob: FailureProb,
    *,
    epsilon: UserEpsilon,
    delta: UserDelta,
    theta_bound: ThetaBound = 1.0,
    perturbation: Perturbation = 0.0,
) -> float:
    """The deviation K_N at N = T, with its unknown sum S of `|theta_t - theta|^2` at a bound.

    S = (G^2 / mu^2 + G D / mu) log T + (G^2 / mu^2) log(1 / beta) with mu = 2 curvature, by Lemma 3.5. That is false
    where features are perturbed: the sum is of order T there (docs/verdicts.md, Lemma 3.5), and this is no deviation.

    >>> round(online_ucb_deviation(10.0, 0.2, 20_000, 1 / 20_000, epsilon=1.0, delta=0.1))
    575961
    """
    G, D, mu, extra = gradient_bound, theta_bound, 2 * curvature, perturbation
    total = (G / mu * G / mu + G * D / mu) * math.log(horizon) + G / mu * G / mu * math.log(1 / failure_prob)
    noise, slope = math.log(1 / delta) / epsilon / epsilon, _slope(epsilon, delta, D, extra)
    bound = D * extra * extra * math.sqrt(horizon * total) + slope * slope + (noise + extra * extra) * total
    return float(math.log(horizon / failure_prob) * bound)


@declare(source=f"{PAPER}, Algorithm 1: `docs/formulas/ldp_contextual.md#width`.")
def online_ucb_width(
    width: Literal["scaled", "theory"],
    horizon: Plays,
    failure_prob: FailureProb,
    *,
    epsilon: UserEpsilon,
    delta: UserDelta,
    theta_bound: ThetaBound = 1.0,
    perturbation: Perturbation = 0.0,
    gradient_bound: GradientBound | None = None,
    curvature: Annotated[Curvature, Doc('lambda_min + Delta^2, greater than 0. "theory" needs it.')] | None = None,
) -> float:
    """The width w of the index <x, theta> + w sqrt(x' V^-1 x).

    Args:
        width: "scaled": (R + D sqrt(log(1 / delta)) / epsilon + D Delta) sqrt(log(T / beta)), the root of the middle
            term of K_N. "theory": sqrt(M_N + K_N).
        gradient_bound: Bound G at which gradients are clipped. "theory" needs it.

    Raises:
        ValueError: If `width` is unknown, or ``"theory"`` lacks a number.

    >>> round(online_ucb_width("scaled", 20_000, 1 / 20_000, epsilon=1.0, delta=0.1), 2)
    8.98
    """
    if width == "scaled":
        slope = _slope(epsilon, delta, theta_bound, perturbation)
        return slope * math.sqrt(math.log(horizon / failure_prob))
    if gradient_bound is None or curvature is None:
        raise ValueError("width = 'theory' needs gradient_bound and curvature")
    at = (gradient_bound, curvature, horizon)
    deviation = online_ucb_deviation(
        *at, failure_prob, epsilon=epsilon, delta=delta, theta_bound=theta_bound, perturbation=perturbation
    )
    return math.sqrt(online_ucb_learner_regret(*at, theta_bound) + deviation)


def _slope(epsilon: Scalar, delta: Scalar, theta_bound: Scalar, perturbation: Scalar) -> float:
    return float(REWARD_SCALE + theta_bound * math.sqrt(math.log(1 / delta)) / epsilon + theta_bound * perturbation)
