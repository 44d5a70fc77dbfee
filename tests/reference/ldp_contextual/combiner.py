"""docs/formulas/ldp_contextual.md#combiner: Algorithm 2, the bandit combiner."""

import math
from typing import NamedTuple

import numpy as np


def num_bases(horizon):
    return 1 + math.ceil(math.log2(horizon**0.125))


def base_eigenvalue(i, horizon):
    """lambda_i, i from 1."""
    return 2 ** (i - 1) * horizon**-0.125


class Constants(NamedTuple):
    alpha: np.ndarray  # [M]
    C: np.ndarray  # [M], scaled
    eta: np.ndarray  # [M]
    R: np.ndarray  # [M], scaled


def constants(num, horizon, dim, epsilon, failure_prob, *, bonus_scale=1.0, P=1.0, P2=1.0):
    T, d, log = horizon, dim, math.log(horizon) ** 1.5
    alpha, C, eta = [], [], []
    for i in range(1, num + 1):
        if i == 1:
            root = epsilon * T**0.125
            alpha.append(0.75)
            C.append(P * log * math.sqrt(d) * (root + 1) / root)
            eta.append(root / (math.sqrt(d * T) * (P * log * root + 1)))
        else:
            alpha.append(0.5)
            C.append(P2 * log * math.sqrt(d) / (epsilon * base_eigenvalue(i, T)))
            eta.append(epsilon / (P2 * log * math.sqrt(d * T)))
    R = []
    for i in range(num):
        a = alpha[i]
        ratio = (1 - a) ** ((1 - a) / a) * (1 + a) ** (1 / a) / a ** ((1 - a) / a)
        total = C[i] * T**a + ratio * C[i] ** (1 / a) * T * eta[i] ** ((1 - a) / a)
        total += 288 * math.log(T**3 * num / failure_prob) * T * eta[i]
        total += sum(1 / eta[k] for k in range(num) if k != i)
        R.append(total)
    return Constants(np.array(alpha), bonus_scale * np.array(C), np.array(eta), bonus_scale * np.array(R))


def deviation(i, n, c, num, horizon, variance, failure_prob, p=1.0):
    """W(i, n), i from 0."""
    inside = horizon**3 * num * math.log(max(n, 2)) * (1 + variance) / failure_prob
    return c.C[i] * n ** c.alpha[i] + p * math.sqrt(n * (1 + variance) * math.log(max(inside, 1.0)))


def combiner(contexts, reward_of, bases, c, *, variance, failure_prob, noise, p=1.0):
    """bases: M servers with choose and learn. noise(t, i, feature, reward) is the noised pair of play t by base i.

    Returns actions [T], bases played [T] and the active set after each play [T, M].
    """
    horizon, num = len(contexts), len(bases)
    active, pulls, mean, deficit = np.ones(num, bool), np.zeros(num, int), np.zeros(num), np.zeros(num)
    actions, played, actives = [], [], []
    for t in range(1, horizon + 1):
        index = np.full(num, -math.inf)
        for i in range(num):
            if active[i]:
                n = pulls[i]
                bonus = 1.0 if n == 0 else min(1.0, deviation(i, n, c, num, horizon, variance, failure_prob, p) / n)
                index[i] = mean[i] + bonus - c.R[i] / horizon
        i = int(np.argmax(index))
        arm = bases[i].choose(contexts[t - 1])
        x, y = noise(t, i, contexts[t - 1][arm], reward_of(t, arm))
        bases[i].learn(x, y)
        pulls[i] += 1
        deficit[i] += mean[i] - y
        mean[i] += (y - mean[i]) / pulls[i]
        if active.sum() > 1 and deficit[i] >= deviation(i, pulls[i], c, num, horizon, variance, failure_prob, p):
            active[i] = False
        actions.append(arm)
        played.append(i)
        actives.append(active.copy())
    return np.array(actions), np.array(played), np.array(actives)
