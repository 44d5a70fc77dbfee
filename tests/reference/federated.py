"""Federated linear bandits: docs/formulas/byzantine.md."""

import math
from typing import NamedTuple

import numpy as np

from .linear import first_argmax


class Schedule(NamedTuple):
    ridge: np.ndarray  # [K] lambda_k
    radius: np.ndarray  # [K] beta_k


def schedule(
    num_episodes,
    *,
    window,
    num_agents,
    dim,
    horizon,
    corruption_bound=0.0,
    feature_spread=1.0,
    noise_scale=0.5,
    failure_prob=0.05,
    ridge_scale=0.1,
    radius_scale=0.03,
):
    """docs/formulas/byzantine.md#constants, row UCB:
    lambda_k (scaled), then beta_k (scaled) evaluated at the scaled lambda_k; entry k - 1 is k.
    """
    c_alpha = (2 - 2 * corruption_bound) / (1 - 2 * corruption_bound)
    iota = math.log(128 * num_agents * horizon / failure_prob)
    lambda_1 = 8 * math.sqrt(window * iota) * c_alpha * feature_spread
    ridge, radius = [], []
    for k in range(1, num_episodes + 1):
        lam = ridge_scale * max(window, lambda_1 * math.sqrt(k))
        numerator = 4 * math.sqrt((k - 1) * window * dim * iota) * c_alpha * (feature_spread + noise_scale)
        beta = (
            3 * math.sqrt(lam * dim) + numerator / math.sqrt(lam) + 2 * noise_scale * math.sqrt(dim * iota / num_agents)
        )
        ridge.append(lam)
        radius.append(radius_scale * beta)
    return Schedule(np.array(ridge), np.array(radius))


class Federated(NamedTuple):
    actions: np.ndarray  # [T, N]
    regret: np.ndarray  # [T] cumulative robust regret
    estimates: np.ndarray  # [K, d] theta_k ([K, N, d] isolated)
    ridge: np.ndarray  # [K]
    radius: np.ndarray  # [K]


def floor_eigenvalues(matrix, floor):
    """docs/formulas/byzantine.md#eigenvalue-floor: raise the eigenvalues of a symmetric matrix to at least `floor`."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return vectors @ np.diag(np.maximum(values, floor)) @ vectors.T


def choose(decision_set, estimate, inverse, radius, tie_tolerance):
    scores = [x @ estimate + radius * math.sqrt(x @ inverse @ x) for x in decision_set]
    return first_argmax(scores, tie_tolerance)


def step_regret(decision_set, action, theta):
    values = [x @ theta for x in decision_set]
    return max(values) - values[action]


def receive(matrix, vector, window):
    """docs/formulas/byzantine.md#message-check and docs/formulas/byzantine.md#clamp, server side:
    non-finite or asymmetric -> (0, 0); each part clamped radially at 1e4 L.
    """
    zero = np.zeros_like(matrix), np.zeros_like(vector)
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(vector))):
        return zero
    if not np.array_equal(matrix, matrix.T):
        return zero
    parts = []
    for part in (matrix, vector):
        largest = np.max(np.abs(part))
        norm = largest * np.linalg.norm(part / largest) if largest > 0 else 0.0
        parts.append(part * min(1.0, 1e4 * window / norm) if norm > 0 else part)
    return parts[0], parts[1]


def federated_ucb(
    contexts, reward_of, theta, *, window, attacked=(), attack_scale=1.0, floor=0.1, tie_tolerance=1e-9, **constants
):
    """docs/formulas/byzantine.md#algorithm (no privacy):
    messages once per episode of `window` plays, the mean of cumulative statistics.

    contexts [T, N, A, d]; reward_of(t, agent, arm); `attacked`: agents whose message is replaced in every episode by
    the `target` attack of docs/formulas/byzantine.md#attacks: U = mean honest U, u = U (-attack_scale theta).
    `constants`: the keywords of `schedule`. Ties: lowest index within a relative tie_tolerance. Regret is summed over
    the agents not attacked. An attacked agent still plays the broadcast policy.
    """
    horizon, num_agents, _, dim = contexts.shape
    num_episodes = math.ceil(horizon / window)
    lam, beta = schedule(num_episodes, window=window, num_agents=num_agents, dim=dim, horizon=horizon, **constants)
    honest = [i for i in range(num_agents) if i not in attacked]

    def pool(points):
        return sum(points) / num_agents

    grams = [np.zeros((dim, dim)) for _ in range(num_agents)]
    moments = [np.zeros(dim) for _ in range(num_agents)]
    actions, regrets, estimates = [], [], []
    for k in range(1, num_episodes + 1):
        full = floor_eigenvalues(pool(grams) + lam[k - 1] * np.eye(dim), floor * lam[k - 1])
        inverse = np.linalg.inv(full)
        estimate = inverse @ pool(moments)
        estimates.append(estimate)
        sent = [[np.zeros((dim, dim)), np.zeros(dim)] for _ in range(num_agents)]
        for t in range((k - 1) * window + 1, min(k * window, horizon) + 1):
            row, lost = [], 0.0
            for i in range(num_agents):
                arm = choose(contexts[t - 1][i], estimate, inverse, beta[k - 1], tie_tolerance)
                x = contexts[t - 1][i][arm]
                reward = reward_of(t, i, arm)
                sent[i][0] = sent[i][0] + np.outer(x, x)
                sent[i][1] = sent[i][1] + reward * x
                row.append(arm)
                if i in honest:
                    lost += step_regret(contexts[t - 1][i], arm, theta)
            actions.append(row)
            regrets.append(lost)
        mean_gram = sum(sent[i][0] for i in honest) / len(honest)
        for i in range(num_agents):
            matrix, vector = sent[i]
            if i not in honest:
                matrix, vector = mean_gram, mean_gram @ (-attack_scale * np.asarray(theta))
            matrix, vector = receive(matrix, vector, window)
            grams[i] = grams[i] + matrix
            moments[i] = moments[i] + vector
    return Federated(np.array(actions), np.cumsum(regrets), np.array(estimates), lam, beta)


def isolated_linucb(contexts, reward_of, theta, *, window, floor=0.1, tie_tolerance=1e-9, **constants):
    """docs/formulas/byzantine.md#linucb-comparators, isolated, width="schedule":
    lambda_k, beta_k of docs/formulas/byzantine.md#constants, own statistics updated once an episode.
    """
    horizon, num_agents, _, dim = contexts.shape
    num_episodes = math.ceil(horizon / window)
    lam, beta = schedule(num_episodes, window=window, num_agents=num_agents, dim=dim, horizon=horizon, **constants)
    actions = np.zeros((horizon, num_agents), int)
    lost = np.zeros(horizon)
    estimates = np.zeros((num_episodes, num_agents, dim))
    for i in range(num_agents):
        gram, moment = np.zeros((dim, dim)), np.zeros(dim)
        for k in range(1, num_episodes + 1):
            inverse = np.linalg.inv(floor_eigenvalues(gram + lam[k - 1] * np.eye(dim), floor * lam[k - 1]))
            estimate = inverse @ moment
            estimates[k - 1][i] = estimate
            new_gram, new_moment = np.zeros((dim, dim)), np.zeros(dim)
            for t in range((k - 1) * window + 1, min(k * window, horizon) + 1):
                arm = choose(contexts[t - 1][i], estimate, inverse, beta[k - 1], tie_tolerance)
                x = contexts[t - 1][i][arm]
                new_gram = new_gram + np.outer(x, x)
                new_moment = new_moment + reward_of(t, i, arm) * x
                actions[t - 1][i] = arm
                lost[t - 1] += step_regret(contexts[t - 1][i], arm, theta)
            gram, moment = gram + new_gram, moment + new_moment
    return Federated(actions, np.cumsum(lost), estimates, lam, beta)
