"""Rows, logs and models of one's own data: slow transcriptions in NumPy, and the small data that tests share."""

import numpy as np

import jaxbandits as jb


def fraction(n, s):
    """u(n, s) = frac(i sqrt s), i = 1..n."""
    return np.arange(1, n + 1) * np.sqrt(s) % 1


# ---- the small table: 40 rows of 3 features, 3 arms

F = np.stack([np.round(4 * fraction(40, s) - 1, 3) * unit for s, unit in ((2, 1), (3, 2), (5, 0.5))], axis=1)
W = np.array([[0.3, -0.1, 0.2], [-0.2, 0.2, 0.1], [0.1, 0.05, -0.4]])
R = np.round(np.clip(0.5 + 0.6 * (F - F.mean(0)) @ W.T + 0.1 * np.sin(np.arange(40))[:, None], 0, 1), 2)


# ---- logs: four contexts, three arms

CONTEXTS = np.array([[0, 1], [1, -0.5], [-1, 0.3], [0.5, 2]])
CHANCES = np.array([0.4, 0.3, 0.2, 0.1])
MEANS = np.array([[0.2, 0.5, 0.35], [0.7, 0.3, 0.4], [0.1, 0.25, 0.6], [0.5, 0.8, 0.15]])
LOGGING = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])


def invert(chances, u):
    """How many cumulated probabilities are at most u."""
    return (np.cumsum(chances, -1) <= u[:, None]).sum(-1)


def golden_log(n=400):
    """Columns of a log: the context's number, two features, arm, reward, and the probability of the arm."""
    context = invert(CHANCES[None], fraction(n, 2))
    arm = invert(LOGGING[context], fraction(n, 3))
    reward = (fraction(n, 5) < MEANS[context, arm]).astype(float)
    x = CONTEXTS[context]
    columns = {"x": x[:, 0], "y": x[:, 1], "arm": arm, "click": reward, "chance": LOGGING[context, arm]}
    return context, columns


def read_golden(**changes):
    """The golden log as `read_logged` reads it."""
    import pandas as pd

    frame = pd.DataFrame(golden_log()[1])
    return jb.read_logged(frame, **{"arm": "arm", "reward": "click", "propensity": "chance"} | changes)


# ---- from features to rows


def rows_of(features, dim=None, standardise=True, bias=True, norm="unit"):
    """One row after another, in plain NumPy."""
    n, p = features.shape
    x = features.astype(float)
    for j in range(p):
        if standardise:
            mean = sum(features[:, j]) / n
            variance = sum((features[:, j] - mean) ** 2) / n
            x[:, j] = (features[:, j] - mean) / (np.sqrt(variance) if variance > 1e-20 else 1.0)
    if dim is not None and dim - bias < p:
        x = x - x.mean(axis=0)
        values, vectors = np.linalg.eigh(x.T @ x)
        vectors = vectors[:, np.argsort(-values)][:, : dim - bias]
        for j in range(dim - bias):
            entry = vectors[np.abs(vectors[:, j]).argmax(), j]
            vectors[:, j] *= np.sign(entry)
        x = x @ vectors
    rows = [np.append(row, 1.0) if bias else row for row in x]
    lengths = [np.sqrt(row @ row) for row in rows]
    if norm == "unit":
        return np.array([row / length if length > 0 else row for row, length in zip(rows, lengths, strict=True)])
    return np.array(rows) / (max(lengths) if norm == "largest" else 1.0)


# ---- one model an arm: what LinUCB does with rows in their order


def play_in_order(rows, rewards, horizon, ridge=1.0, scale=1.0):
    """The arms of LinUCB with a model an arm, and the pulls."""
    (n, d), num_arms = rows.shape, rewards.shape[1]
    inverse, theta, arms = np.stack([np.eye(d) / ridge] * num_arms), np.zeros((num_arms, d)), []
    for t in range(horizon):
        x = rows[t % n]
        index = [theta[a] @ x + scale * np.sqrt(x @ inverse[a] @ x) for a in range(num_arms)]
        top = max(index)
        arm = next(a for a in range(num_arms) if index[a] >= top - 1e-5 * abs(top))
        error, v = rewards[t % n, arm] - theta[arm] @ x, inverse[arm] @ x
        theta[arm] += v * error / (1 + x @ v)
        inverse[arm] -= np.outer(v, v) / (1 + x @ v)
        arms.append(arm)
    return np.array(arms), np.bincount(arms, minlength=num_arms)
