"""docs/formulas/ldp_contextual.md#onlineucb: Algorithm 1, its calibrations, clip constants and widths."""

import math

import numpy as np

from ..linear import first_argmax


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def delivered_delta(sigma, epsilon, sensitivity):
    """Balle and Wang 2018, equation 6: the smallest delta of a Gaussian mechanism at epsilon."""
    half, shift = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return normal_cdf(half - shift) - math.exp(epsilon) * normal_cdf(-half - shift)


def analytic_sigma(epsilon, delta, sensitivity):
    low, high = 1e-6, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delivered_delta(middle, epsilon, sensitivity) > delta else (low, middle)
    return high


def sigma_of(epsilon, delta, calibration, private_features=True, feature_norm=1.0):
    """Noise per entry. Joint sensitivity: 2 ||x|| for the feature and 1 for the reward, so sqrt 5 at ||x|| <= 1."""
    if math.isinf(epsilon):
        return 0.0
    if calibration == "paper":
        return (2 if private_features else 1) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    if calibration == "reference":
        return math.sqrt(math.log(2.5 / delta)) / epsilon
    return analytic_sigma(epsilon, delta, math.sqrt(4 * feature_norm**2 + 1) if private_features else 1.0)


def extra_scale(min_eigenvalue, horizon, power=0.25):
    """Delta: Delta^2 = T^-power where lambda_min is at most that, else 0; None is 0."""
    floor = horizon**-power
    return math.sqrt(floor) if min_eigenvalue is not None and min_eigenvalue <= floor else 0.0


def gradient_bound(sigma, *, theta_bound=1.0, extra=0.0, c=1.0, kind="practical", horizon=None, failure_prob=None):
    """G of both kinds, features noised: theory with L = log(2 T / beta), practical with both log factors 1."""
    D = theta_bound
    first = 2 * D * sigma + 2 * sigma + D * extra + extra
    second = 2 * D * extra**2 + 4 * D * extra * sigma + 2 * extra * sigma
    second += 2 * D * sigma**2 + 2 * sigma**2 + D * c * sigma**2
    if kind == "practical":
        return 2 * first + 2 * second + 2 * D + 2
    L = math.log(2 * horizon / failure_prob)
    return 2 * math.sqrt(2 * L) * first + 2 * L * second + 2 * D + 2


def gradient_bound_reward_only(sigma_y, *, theta_bound=1.0):
    """The practical G of `private_features=False`;
    docs/formulas/ldp_contextual.md#clip-constant has no theory G there.
    """
    return 2 * sigma_y + 2 * theta_bound + 2


def scaled_width(epsilon, delta, horizon, failure_prob, *, theta_bound=1.0, extra=0.0, scale=1.0, noise_scale=0.5):
    D = theta_bound
    bracket = noise_scale + D * math.sqrt(math.log(1 / delta)) / epsilon + D * extra
    return scale * bracket * math.sqrt(math.log(horizon / failure_prob))


def theory_width(
    epsilon, delta, horizon, failure_prob, G, *, min_eigenvalue, rounds, theta_bound=1.0, extra=0.0, scale=1.0,
    noise_scale=0.5,
):  # fmt: skip
    """w = sqrt(M_N + K_N), N = `rounds`, constants 1, S by its bound."""
    D, lam = theta_bound, min_eigenvalue + extra**2
    mu = 2 * lam
    M = (G**2 / lam + G * D) * math.log(rounds)
    S = (G**2 / mu**2 + G * D / mu) * math.log(rounds) + G**2 / mu**2 * math.log(1 / failure_prob)
    tail = math.log(horizon / failure_prob)
    K = D * extra**2 * tail * math.sqrt(rounds * S)
    K += (noise_scale + D * math.sqrt(math.log(1 / delta)) / epsilon + D * extra) ** 2 * tail
    K += (math.log(1 / delta) / epsilon**2 + extra**2) * tail * S
    return scale * math.sqrt(M + K)


def clip(g, bound):
    norm = math.sqrt(g @ g)
    return g * min(1.0, bound / max(norm, 1e-300))


class OnlineUCB:
    """The server of Algorithm 1; `learner` has predict() -> [d] and update(gradient)."""

    def __init__(self, dim, learner, *, covariance, gradient_bound, width, tie_tolerance=1e-9):
        """covariance: sigma^2 of the noise that privacy puts on each entry
        of a feature (0: only rewards are noised).
        """
        self.learner, self.covariance, self.G = learner, covariance, gradient_bound
        self.width, self.tie = width, tie_tolerance
        self.V, self.u = np.eye(dim), np.zeros(dim)
        self.prediction = learner.predict()

    def choose(self, decision_set):
        self.prediction = self.learner.predict()  # step 1
        inverse = np.linalg.inv(self.V)  # step 2
        estimate = inverse @ self.u
        spread = np.sqrt(np.einsum("kd,de,ke->k", decision_set, inverse, decision_set))
        return first_argmax_fast(decision_set @ estimate + self.width * spread, self.tie)

    def learn(self, x, y):
        """Steps 4-6 on the noised pair."""
        theta = self.prediction
        g = 2 * x * (x @ theta - y) - 2 * self.covariance * theta
        self.V = self.V + np.outer(x, x)
        self.u = self.u + (theta @ x) * x
        self.gradient = clip(g, self.G)
        self.learner.update(self.gradient)


def first_argmax_fast(values, tolerance):
    """`first_argmax` without its loop."""
    top = values.max()
    if not math.isfinite(top):
        return first_argmax(values, tolerance)
    return int(np.argmax(values >= top - tolerance * abs(top)))


def noised(x, y, zeta, eta_x, eta_y):
    """Step 3: the noises already carry their scales."""
    return x + zeta + eta_x, y + eta_y


def online_ucb(contexts, reward_of, server, *, zeta, eta_x, eta_y):
    """contexts [T, K, d], zeta and eta_x [T, d], eta_y [T]:
    actions [T], predictions [T, d], clipped gradients [T, d].
    """
    actions, predictions, gradients = [], [], []
    for t in range(1, len(contexts) + 1):
        arm = server.choose(contexts[t - 1])
        x, y = noised(contexts[t - 1][arm], reward_of(t, arm), zeta[t - 1], eta_x[t - 1], eta_y[t - 1])
        actions.append(arm)
        predictions.append(server.prediction)
        server.learn(x, y)
        gradients.append(server.gradient)
    return np.array(actions), np.array(predictions), np.array(gradients)
