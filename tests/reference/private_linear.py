"""AdaC-OFUL, literally: docs/formulas/private_frontier.md#adac-oful. Matrices are inverted anew at every play."""

import math

import numpy as np


def confidence_width(log_det, m, smallest, *, dim, rho, ridge, noise_scale, theta_bound, failure):
    """After m releases; log_det is ln det V0 / det(ridge I), `smallest` the least eigenvalue of V0."""
    own = noise_scale * math.sqrt(2 * math.log(2 / failure) + log_det) + math.sqrt(ridge) * theta_bound
    if m == 0:
        return own
    tail = math.sqrt(2 * math.log(math.pi**2 * m**2 / (3 * failure)))
    return own + math.sqrt(m / (2 * rho * smallest)) * (math.sqrt(dim) + tail)


def adac_oful(
    contexts, rewards, normal, *, rho, growth=1.0, ridge=1.0, noise_scale=0.5, theta_bound=1.0, radius_scale=1.0,
    failure=None, tie=1e-5,
):  # fmt: skip
    """Actions, and (play, noisy sum) of every release. contexts [T, A, d], rewards [T, A], normal(t) -> [d]."""
    horizon, _, dim = contexts.shape
    failure = 1 / horizon if failure is None else failure
    v, pending, noisy = ridge * np.eye(dim), np.zeros(dim), np.zeros(dim)
    v0, theta, m, actions, released = v, np.zeros(dim), 0, [], []
    log_det = lambda matrix: np.linalg.slogdet(matrix / ridge)[1]
    for t in range(1, horizon + 1):
        x = contexts[t - 1]
        width = confidence_width(
            log_det(v0), m, np.linalg.eigvalsh(v0)[0], dim=dim, rho=rho, ridge=ridge, noise_scale=noise_scale,
            theta_bound=theta_bound, failure=failure,
        )  # fmt: skip
        inverse = np.linalg.inv(v0)
        index = x @ theta + radius_scale * width * np.sqrt(np.einsum("ai,ij,aj->a", x, inverse, x))
        arm = int(np.argmax(index >= index.max() - tie * abs(index.max())))
        actions.append(arm)
        played = x[arm] / max(1.0, np.linalg.norm(x[arm]))
        reward = rewards[t - 1, arm]
        v = v + np.outer(played, played)
        pending = pending + played * (0.0 if math.isnan(reward) else min(max(reward, 0.0), 1.0))
        if log_det(v) - log_det(v0) > math.log(1 + growth):
            noisy = noisy + pending + normal(t) / math.sqrt(2 * rho)
            pending, m, v0 = np.zeros(dim), m + 1, v
            theta = np.linalg.inv(v0) @ noisy
            released.append((t, noisy))
    return np.array(actions), released
