"""CW-OFUL, Hvt-UCB and robust OFUL, literally: docs/formulas/robust_frontier.md. Matrices are inverted anew."""

import math

import numpy as np


def arm_of(index, tie=1e-5):
    """The lowest arm within `tie` of the largest index, relatively."""
    return int(np.argmax(index >= index.max() - tie * abs(index.max())))


def norm_in(matrix, x):
    return math.sqrt(max(x @ matrix @ x, 0.0))


def cw_numbers(
    dim, horizon, *, budget=None, ridge=1.0, noise_scale=0.5, theta_norm=1.0, feature_norm=1.0, failure=None
):
    """(beta, alpha)."""
    budget = math.sqrt(horizon) if budget is None else budget
    failure = 1 / horizon if failure is None else failure
    beta = noise_scale * math.sqrt(dim * math.log((1 + horizon * feature_norm**2 / ridge) / failure))
    beta += math.sqrt(ridge) * theta_norm
    if budget == 0:
        return beta, None
    alpha = (noise_scale * math.sqrt(dim) + math.sqrt(ridge) * theta_norm) / budget
    return beta + alpha * budget, alpha


def cw_oful(contexts, rewards, *, radius_scale=1.0, **numbers):
    """Actions and weights. contexts [T, A, d], rewards [T, A]."""
    horizon, _, dim = contexts.shape
    beta, alpha = cw_numbers(dim, horizon, **numbers)
    sigma, b = numbers.get("ridge", 1.0) * np.eye(dim), np.zeros(dim)
    actions, weights = [], []
    for t in range(1, horizon + 1):
        x, inverse = contexts[t - 1], np.linalg.inv(sigma)
        theta = inverse @ b
        width = radius_scale * beta
        norms = np.array([norm_in(inverse, row) for row in x])
        arm = arm_of(x @ theta + width * norms)
        weight = 1.0 if alpha is None or norms[arm] == 0 else min(1.0, alpha / norms[arm])
        reward = rewards[t - 1, arm]
        reward = reward if math.isfinite(reward) else 0.0
        sigma = sigma + weight * np.outer(x[arm], x[arm])
        b = b + weight * x[arm] * reward
        actions.append(arm)
        weights.append(weight)
    return np.array(actions), np.array(weights)


def hvt_numbers(dim, horizon, *, order=2.0, feature_norm=1.0, ridge=None, least=None, growth=4.0, failure=None):
    """(rho, kappa, tau_0, log factor, ridge, least scale)."""
    e = order - 1
    ridge = float(dim) if ridge is None else ridge
    least = 1 / math.sqrt(horizon) if least is None else least
    failure = 1 / horizon if failure is None else failure
    rho = (1 - e) / (2 * (1 + e))
    kappa = dim * math.log(1 + feature_norm**2 * horizon / (growth * ridge * least**2 * dim))
    log = math.log(2 * horizon**2 / failure)
    tau_0 = math.sqrt(2 * kappa) * math.log(3 * horizon) ** rho / log ** (1 / (1 + e))
    return rho, kappa, tau_0, log, ridge, least


def projected(theta, v, radius):
    """The point of the ball nearest to theta in the norm of V: (V + m I)^-1 V theta, m by bisection."""
    if np.linalg.norm(theta) <= radius:
        return theta
    at = lambda m: np.linalg.solve(v + m * np.eye(len(v)), v @ theta)
    low, high = 0.0, 1.0
    while np.linalg.norm(at(high)) > radius:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(at(middle)) > radius else (low, middle)
    return at(high)


def hvt_linucb(
    contexts, rewards, *, scale, order=2.0, theta_norm=1.0, feature_norm=1.0, ridge=None, least=None, growth=4.0,
    failure=None, radius_scale=1.0, budget=0.0,
):  # fmt: skip
    """Actions and the thetas after each play. budget: of robust OFUL, 0 for Hvt-UCB."""
    horizon, _, dim = contexts.shape
    rho, kappa, tau_0, log, ridge, least = hvt_numbers(
        dim, horizon, order=order, feature_norm=feature_norm, ridge=ridge, least=least, growth=growth, failure=failure
    )
    extra = 2 * math.sqrt(kappa) if budget > 0 else 0.0

    def beta(t):
        return radius_scale * (107 * log * tau_0 * t**rho + math.sqrt(ridge * (2 + 4 * theta_norm**2)) + extra)

    v, theta, actions, thetas = ridge * np.eye(dim), np.zeros(dim), [], []
    for t in range(1, horizon + 1):
        x, inverse, now = contexts[t - 1], np.linalg.inv(v), beta(max(t - 1, 1))
        norms = np.array([norm_in(inverse, row) for row in x])
        arm = arm_of(x @ theta + now * norms)
        actions.append(arm)
        chosen, q = x[arm], norms[arm]
        sigma = max(scale, least, q * math.sqrt(2 * now / (tau_0 * math.sqrt(growth) * t**rho)))
        sigma = max(sigma, math.sqrt(budget * q / math.sqrt(kappa)))
        v = v + np.outer(chosen, chosen) / (growth * sigma**2)
        w = q / (math.sqrt(growth) * sigma)
        z = (rewards[t - 1, arm] - chosen @ theta) / sigma
        if w > 0 and not math.isnan(z):
            tau = tau_0 * math.sqrt(1 + w**2) / w * t**rho
            theta = theta + np.linalg.inv(v) @ chosen * min(max(z, -tau), tau) / sigma
        theta = projected(theta, v, theta_norm)
        thetas.append(theta)
    return np.array(actions), np.array(thetas)
