"""Estimates of policies from logs and the replay of learners: slow transcriptions in NumPy, row by row."""

from math import exp, log, sqrt

import numpy as np

from reference.own_data import CHANCES, CONTEXTS, MEANS, fraction, invert

TARGET = np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1]])
TRUTH = (CHANCES[:, None] * TARGET * MEANS).sum()


def columns_of(uniforms, logging):
    """Columns of a log of the four contexts from three uniforms a row."""
    context = invert(CHANCES[None], uniforms[0])
    arm = invert(logging[context], uniforms[1])
    reward = (uniforms[2] < MEANS[context, arm]).astype(float)
    x = CONTEXTS[context]
    columns = {"x": x[:, 0], "y": x[:, 1], "arm": arm, "click": reward, "chance": logging[context, arm]}
    return context, columns


def uniform_log(n=900):
    """The golden log of uniform choices."""
    return columns_of([fraction(n, s) for s in (2, 3, 5)], np.full((4, 3), 1 / 3))


def cross_fitted(rows, arm, reward, num_arms, folds=5, ridge=1.0):
    """Ridge regressions of the other folds, cut to [0, 1]."""
    n, d = rows.shape
    q = np.zeros((n, num_arms))
    for i in range(n):
        for a in range(num_arms):
            known = [j for j in range(n) if j % folds != i % folds and arm[j] == a]
            if not known:
                known = [j for j in range(n) if j % folds != i % folds]
                q[i, a] = np.mean(reward[known])
                continue
            z = rows[known]
            theta = np.linalg.solve(z.T @ z + ridge * np.eye(d), z.T @ reward[known])
            q[i, a] = min(max(rows[i] @ theta, 0), 1)
    return q


def estimate(name, pi, arm, reward, propensity, q=None, clip=float("inf")):
    """The value and the numbers y whose spread gives its interval; None where there are none."""
    n = len(arm)
    w = [min(pi[i, arm[i]] / propensity[i], clip) for i in range(n)]
    if name == "ips":
        y = [w[i] * reward[i] for i in range(n)]
        return np.mean(y), y
    if name == "snips":
        value = sum(w[i] * reward[i] for i in range(n)) / sum(w)
        return value, [w[i] * (reward[i] - value) / np.mean(w) for i in range(n)]
    direct = [sum(pi[i, a] * q[i, a] for a in range(len(q[i]))) for i in range(n)]
    if name == "dm":
        return np.mean(direct), None
    y = [direct[i] + w[i] * (reward[i] - q[i, arm[i]]) for i in range(n)]
    return np.mean(y), y


def normal(y):
    """Half of the 95% interval of a mean."""
    return 1.959963984540054 * np.std(y, ddof=1) / sqrt(len(y))


def bernstein(y, spread, confidence):
    """Half of Maurer and Pontil's interval, at both sides."""
    m, level = len(y), log(4 / (1 - confidence))
    return np.std(y, ddof=1) * sqrt(2 * level / m) + 7 * spread * level / (3 * (m - 1))


def chance_of_bit(w, r, clip, high, epsilon):
    """The probability that a logged user's bit is 1, and what 0 and 1 are read as."""
    v = min(w, clip) * r / (clip * high)
    c = (exp(epsilon) + 1) / (exp(epsilon) - 1)
    return 0.5 + (v - 0.5) / c, clip * high * (0.5 - c / 2), clip * high * (0.5 + c / 2)


def replay(rows, arm, reward, propensity, coins, order, scale=1.0):
    """LinUCB with a model an arm on a log, event by event: the events that it accepts, and the arms it would play.

    rows: of the whole log; order: the rows of the events, of which the others are given.
    """
    (_, d), num_arms, least = rows.shape, 3, min(propensity)
    inverse, theta, accepted, played = np.stack([np.eye(d)] * num_arms), np.zeros((num_arms, d)), [], []
    for i, x in enumerate(rows[order]):
        index = [theta[a] @ x + scale * sqrt(x @ inverse[a] @ x) for a in range(num_arms)]
        chosen = next(a for a in range(num_arms) if index[a] >= max(index) - 1e-5 * abs(max(index)))
        played.append(chosen)
        if chosen == arm[i] and coins[i] < least / propensity[i]:
            accepted.append(i)
            error, v = reward[i] - theta[chosen] @ x, inverse[chosen] @ x
            theta[chosen] += v * error / (1 + x @ v)
            inverse[chosen] -= np.outer(v, v) / (1 + x @ v)
    return accepted, played
