"""Constants of OnlineUCB ("Improved rate for locally differentially private linear bandits", Algorithm 1), on the host.

T plays, d features of norm at most L, D the bound on theta, R = 1/2 the rewards' sub-Gaussian scale, beta the failure
probability, sigma the privacy noise, Delta the extra perturbation of features, `log` natural. The printed clip constant is
garbled: `online_ucb_gradient_bound` is rebuilt. The paper names constants c_M, c_S, gamma without values: 1 here.
"""

import math

from jaxbandits.mechanisms.gaussian import gaussian_scale
from jaxbandits.theory.linear_widths import REWARD_SCALE
from jaxbandits.validation import choice, number

CALIBRATIONS = ("exact", "paper", "reference")
WIDTHS = ("scaled", "theory")
GRADIENT_BOUNDS = ("practical", "theory")


def online_ucb_sensitivity(private_features=True, feature_norm=1.0) -> float:
    """Largest L2 change of what a user adds noise to: sqrt(4 L^2 + 1) of the pair (x, y), |x| <= L, y in [0, 1]; 1 of y alone.

    >>> online_ucb_sensitivity() ** 2, online_ucb_sensitivity(False)
    (5.000000000000001, 1.0)
    """
    norm = number("feature_norm", feature_norm, 0.0, open_low=True)
    return math.sqrt(4 * norm**2 + 1) if private_features else 1.0


def online_ucb_noise(epsilon, delta=0.1, *, calibration="exact", private_features=True, feature_norm=1.0) -> float:
    """sigma, the standard deviation of the noise on every feature and on the reward (private_features=False: on the reward).

    epsilon in (0, inf], inf: 0.0; delta in (0, 1). calibration "exact": the least that makes the pair (epsilon, delta)-private
    (Balle and Wang 2018); "paper": 2 sqrt(2 log(1.25 / delta)) / epsilon of Algorithm 1, half of it for the reward alone;
    "reference": sqrt(log(2.5 / delta)) / epsilon, the LDP comparator's in the code of Chowdhury and Zhou. Raises ValueError outside.

    >>> [round(online_ucb_noise(1.0, calibration=c), 3) for c in ("exact", "paper", "reference")]
    [2.428, 4.495, 1.794]
    """
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    remedy = "Gaussian noise has no pure guarantee: give delta > 0"
    delta = number("delta", delta, 0.0, 1.0, open_low=True, open_high=True, remedy=remedy)
    choice("calibration", calibration, CALIBRATIONS)
    if math.isinf(epsilon):
        return 0.0
    if calibration == "exact":
        return gaussian_scale(online_ucb_sensitivity(private_features, feature_norm), epsilon, delta, "analytic")
    if calibration == "reference":
        return math.sqrt(math.log(2.5 / delta)) / epsilon
    return (2 if private_features else 1) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def online_ucb_gradient_bound(feature_noise, reward_noise, *, theta_bound=1.0, perturbation=0.0, log=None) -> float:
    """G, to which gradients are clipped; feature_noise and reward_noise: sigma, or 0 where nothing is added.

    log: log(2 T / beta), for the paper's high-probability bound (|x| <= 1); None, the practical bound: both of its factors
    sqrt(2 log) and log left out, as large as a gradient is and no larger. Where both noises are sigma this is

        2 sqrt(2 log) (2 D sigma + 2 sigma + D Delta + Delta)
          + 2 log (2 D Delta^2 + 4 D Delta sigma + 2 Delta sigma + 2 D sigma^2 + 2 sigma^2 + D sigma^2) + 2 D + 2.

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
    return 2 * root * linear + 2 * log * square + 2 * D + 2


def online_ucb_learner_regret(gradient_bound, curvature, horizon, theta_bound=1.0) -> float:
    """M_N at N = T: (G^2 / (lambda_min + Delta^2) + G D) log T, the learner's regret; curvature: lambda_min + Delta^2 > 0.

    >>> round(online_ucb_learner_regret(10.0, 0.2, 20_000))
    5051
    """
    return (gradient_bound / curvature * gradient_bound + gradient_bound * theta_bound) * math.log(horizon)


def online_ucb_deviation(
    gradient_bound, curvature, horizon, failure_prob, *, epsilon, delta, theta_bound=1.0, perturbation=0.0
) -> float:
    """K_N at N = T, Lemma 3.3, with its unknown sum S of |theta_t - theta|^2 at the bound of Lemma 3.5.

    S = (G^2 / mu^2 + G D / mu) log T + (G^2 / mu^2) log(1 / beta), mu = 2 curvature.

    >>> round(online_ucb_deviation(10.0, 0.2, 20_000, 1 / 20_000, epsilon=1.0, delta=0.1))
    575961
    """
    G, D, mu, extra = gradient_bound, theta_bound, 2 * curvature, perturbation
    total = (G / mu * G / mu + G * D / mu) * math.log(horizon) + G / mu * G / mu * math.log(1 / failure_prob)
    noise, slope = math.log(1 / delta) / epsilon / epsilon, _slope(epsilon, delta, D, extra)
    found = D * extra * extra * math.sqrt(horizon * total) + slope * slope + (noise + extra * extra) * total
    return math.log(horizon / failure_prob) * found


def online_ucb_width(
    width, horizon, failure_prob, *, epsilon, delta, theta_bound=1.0, perturbation=0.0, gradient_bound=None, curvature=None
) -> float:  # fmt: skip
    """w: the index is <x, theta> + w sqrt(x' V^-1 x). epsilon may be inf.

    width "scaled": (R + D sqrt(log(1 / delta)) / epsilon + D Delta) sqrt(log(T / beta)), the root of the middle term of K_N;
    "theory": sqrt(M_N + K_N), which needs gradient_bound (G) and curvature (lambda_min + Delta^2).

    >>> round(online_ucb_width("scaled", 20_000, 1 / 20_000, epsilon=1.0, delta=0.1), 2)
    8.98
    """
    choice("width", width, WIDTHS)
    if width == "scaled":
        slope = _slope(epsilon, delta, theta_bound, perturbation)
        return slope * math.sqrt(math.log(horizon / failure_prob))
    found = online_ucb_learner_regret(gradient_bound, curvature, horizon, theta_bound)
    return math.sqrt(found + online_ucb_deviation(
        gradient_bound, curvature, horizon, failure_prob, epsilon=epsilon, delta=delta, theta_bound=theta_bound,
        perturbation=perturbation,
    ))  # fmt: skip


def _slope(epsilon, delta, theta_bound, perturbation):
    return REWARD_SCALE + theta_bound * math.sqrt(math.log(1 / delta)) / epsilon + theta_bound * perturbation
