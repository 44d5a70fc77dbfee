"""Private Thompson sampling, play by play: docs/formulas/private_frontier.md#private-thompson-sampling.

`rewards(t, arm)` pays play t (1-based). Draws are `normal(t, arm)`, `laplace(t)`, `uniform(t)`, `beta(t, arm, a, b)`.
"""

import math

from .private_robust_estimators import first_max
from .private_robust_rivals import clipped, scaled


def phi(horizon, tradeoff):
    return math.ceil(
        2 * math.sqrt(2 * math.pi * math.e)
        * horizon ** ((1 - tradeoff) / 2) * math.log(horizon) ** ((3 - tradeoff) / 2)
    )  # fmt: skip


def dp_ts_ucb(rewards, normal, *, num_arms, horizon, tradeoff=1.0, budget=None, variance_scale=1.0):
    """Actions, and per play the draws that were made: {arm: theta}."""
    v = variance_scale * math.log(horizon) ** tradeoff
    budget = phi(horizon, tradeoff) if budget is None else budget
    n, m, left = [0] * num_arms, [0.0] * num_arms, [0] * num_arms
    top, size, fresh = [0.0] * num_arms, [0] * num_arms, [[] for _ in range(num_arms)]
    actions, drawn = [], []
    for t in range(1, horizon + 1):
        made = {}
        if t <= num_arms:
            arm = t - 1
            n[arm], m[arm] = 1, clipped(rewards(t, arm))
            left[arm], top[arm], size[arm] = budget, -math.inf, 2
        else:
            theta = []
            for a in range(num_arms):
                if left[a] > 0:
                    made[a] = m[a] + math.sqrt(v / n[a]) * normal(t, a)
                    top[a], left[a] = max(top[a], made[a]), left[a] - 1
                    theta.append(made[a])
                else:
                    theta.append(top[a])
            arm = first_max(theta)
            fresh[arm].append(clipped(rewards(t, arm)))
            if len(fresh[arm]) == size[arm]:
                n[arm], m[arm] = size[arm], sum(fresh[arm]) / size[arm]
                fresh[arm], size[arm] = [], 2 * size[arm]
                left[arm], top[arm] = budget, -math.inf
        actions.append(arm)
        drawn.append(made)
    return actions, drawn


def gdp_thompson(rewards, normal, *, num_arms, horizon, pre_pulls=0, variance_scale=1.0):
    """Actions, and per play the draws that were made: {arm: theta}."""
    total, pulls, actions, drawn = [0.0] * num_arms, [0] * num_arms, [], []
    for t in range(1, horizon + 1):
        made = {}
        if t <= num_arms * pre_pulls:
            arm = (t - 1) // pre_pulls
        else:
            for a in range(num_arms):
                spread = math.sqrt(variance_scale / (pulls[a] + 1))
                made[a] = total[a] / (pulls[a] + 1) + spread * normal(t, a)
            arm = first_max([made[a] for a in range(num_arms)])
        total[arm] += clipped(rewards(t, arm))
        pulls[arm] += 1
        actions.append(arm)
        drawn.append(made)
    return actions, drawn


def lazy_dp_ts(rewards, uniform, laplace, beta, *, num_arms, horizon, epsilon, logarithm="binary"):
    """Actions, and the released means (t, mean)."""
    log = math.log2 if logarithm == "binary" else math.log
    O, m, r, buffer = [0] * num_arms, [0.0] * num_arms, [0] * num_arms, [[] for _ in range(num_arms)]
    actions, released = [], []
    for t in range(1, horizon + 1):
        if t <= num_arms:
            arm = t - 1
        else:
            theta = []
            for j in range(num_arms):
                u = clipped(m[j] + scaled(3 * log(t) / O[j], epsilon))
                theta.append(beta(t, j, u * O[j] + 1, (1 - u) * O[j] + 1))
            arm = first_max(theta)
        bit = float(uniform(t) < clipped(rewards(t, arm)))
        if t <= num_arms:
            O[arm], m[arm] = 1, bit + scaled(laplace(t), epsilon)
            released.append((t, m[arm]))
        else:
            buffer[arm].append(bit)
            if len(buffer[arm]) == 2 ** (r[arm] + 1):
                O[arm] = 2 ** (r[arm] + 1)
                m[arm] = (sum(buffer[arm]) + scaled(laplace(t), epsilon)) / O[arm]
                released.append((t, m[arm]))
                r[arm], buffer[arm] = r[arm] + 1, []
        actions.append(arm)
    return actions, released
