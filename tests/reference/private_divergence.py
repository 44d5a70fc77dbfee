"""DP-KLUCB and DP-IMED, play by play and by brute force: docs/formulas/private_frontier.md#dp-klucb.

`rewards(t, arm)` pays play t (1-based); `laplace(t)` is a standard Laplace draw, t the last play of the batch.
"""

import math

import numpy as np

from .private_robust_estimators import first_max
from .private_robust_rivals import Plays, clipped, scaled


def kl(x, y):
    part = lambda p, q: 0.0 if p == 0 else math.inf if q == 0 else p * math.log(p / q)
    return part(x, y) + part(1 - x, 1 - y)


def d_eps(x, y, epsilon):
    """By its definition's minimum, at the one point where the slope in z changes sign."""
    if x == y:
        return 0.0
    if math.isinf(epsilon):
        return kl(x, y)
    if x > y:
        return d_eps(1 - x, 1 - y, epsilon)
    z = max(x, y * math.exp(-epsilon) / (1 - y + y * math.exp(-epsilon)))
    return epsilon * (z - x) + kl(z, y)


def searched(x, y, epsilon, points=200_001):
    """d_eps by a search over z."""
    z = np.linspace(min(x, y), max(x, y), points)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(z > 0, z * np.log(z / y), 0)
        high = np.where(z < 1, (1 - z) * np.log((1 - z) / (1 - y)), 0)
    return float(np.min(epsilon * np.abs(z - x) + low + high))


def upper(p, level, epsilon, divergence=d_eps, steps=200):
    """-ln(1 - q) for the largest q in [p, 1] with divergence(p, q) <= level, by bisection; inf where that is 1."""
    if p >= 1 or divergence(p, 1.0, epsilon) <= level:
        return math.inf
    low, high = p, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(p, middle, epsilon) <= level else (low, middle)
    return -math.log1p(-low)


def counted(x, y, n, m, epsilon, points=4000):
    """D_m(x, y; n), by a search over l."""
    if x >= y:
        return 0.0
    share = (np.arange(points) + 0.5) / points
    rate = share * epsilon
    return max(0.0, float(np.max(
        -rate * n * x - n * np.log1p(y * np.expm1(-rate)) + m * np.log1p(-share**2)
    )))  # fmt: skip


def targets(ratio, first, number):
    ends = [first]
    while len(ends) < number:
        ends.append(max(ends[-1] + 1, math.ceil(ratio * ends[-1] - 1e-9)))
    return ends


def played(rewards, laplace, choose, *, num_arms, horizon, epsilon, batch_ratio, first_batch):
    """Batches of the arm that `choose(p, n, m, t)` names; sums and noises of all of them add up."""
    plays = Plays(rewards, horizon, clipped)
    ends = targets(batch_ratio, first_batch, 200)
    S, n, m = [0.0] * num_arms, [0] * num_arms, [0] * num_arms
    arm = 0
    while (x := plays.block(arm, ends[m[arm]] - n[arm])) is not None:
        t = len(plays.actions)
        noisy = sum(x) + scaled(laplace(t), epsilon)
        plays.released.append((t, arm, noisy))
        S[arm], n[arm], m[arm] = S[arm] + noisy, ends[m[arm]], m[arm] + 1
        arm = m.index(0) if 0 in m else choose([clipped(S[a] / n[a]) for a in range(num_arms)], n, m, t + 1)
    return plays.result()


def dp_klucb(rewards, laplace, *, num_arms, horizon, epsilon, batch_ratio=2.0, first_batch=1, index="printed"):
    def value(p, n, m, a, t):
        if index == "printed":
            return upper(p[a], math.log(t) / n[a], epsilon)
        return upper(p[a], math.log(t), epsilon, lambda x, y, epsilon: counted(x, y, n[a], m[a], epsilon), 50)

    def choose(p, n, m, t):
        return first_max([value(p, n, m, a, t) for a in range(num_arms)])

    return played(rewards, laplace, choose, num_arms=num_arms, horizon=horizon, epsilon=epsilon,
                  batch_ratio=batch_ratio, first_batch=first_batch)  # fmt: skip


def dp_imed(rewards, laplace, *, num_arms, horizon, epsilon, batch_ratio=2.0, first_batch=1, index="printed"):
    def value(p, n, m, a):
        far = n[a] * d_eps(p[a], max(p), epsilon) if index == "printed" else counted(p[a], max(p), n[a], m[a], epsilon)
        return far + math.log(n[a])

    def choose(p, n, m, t):
        return first_max([-value(p, n, m, a) for a in range(num_arms)])

    return played(rewards, laplace, choose, num_arms=num_arms, horizon=horizon, epsilon=epsilon,
                  batch_ratio=batch_ratio, first_batch=first_batch)  # fmt: skip
