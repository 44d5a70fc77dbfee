"""Elimination under a budget of corruption, pull by pull: docs/formulas/robust_frontier.md#stopping-elimination.

`rewards(t, arm)` pays play t (1-based).
"""

import math


def taken(x):
    return x if math.isfinite(x) else 0.0


def radius_known(N, *, num_arms, horizon, budget, sigma, delta):
    return sigma * math.sqrt(2 * math.log(2 * num_arms * horizon / delta) / N) + budget / N


def known(rewards, *, num_arms, horizon, budget, sigma=0.5, delta=None):
    """SE-WR: the arms played, and how many rounds ended while several arms were left."""
    delta = 1 / horizon if delta is None else delta
    actions, S, active, N, rounds = [], [0.0] * num_arms, list(range(num_arms)), 0, 0
    while True:
        for a in active:
            if len(actions) == horizon:
                return actions, rounds
            actions.append(a)
            t = len(actions)
            S[a] += taken(rewards(t, a))
        N += 1
        rounds += len(active) > 1
        r = radius_known(N, num_arms=num_arms, horizon=horizon, budget=budget, sigma=sigma, delta=delta)
        best = max(S[a] / N for a in active)
        active = [a for a in active if not best - S[a] / N > 2 * r]


def number_of_phases(num_arms, horizon):
    return max(2, math.ceil(math.log2(max(horizon / num_arms, 1))) + 1)


def phase(h, *, num_arms, horizon, sigma, delta):
    """n_h, C_h and r_h."""
    H = number_of_phases(num_arms, horizon)
    L = math.log(2 * num_arms * H / delta)
    h = min(h, H - 1)
    n = math.ceil(L) * 2**h
    C = min(math.sqrt(horizon / num_arms), 2 ** (H - h))
    return n, C, sigma * math.sqrt(2 * L / n) + C / n


def unknown(rewards, *, num_arms, horizon, sigma=0.5, delta=None):
    """PE-WR: the arms played, and how many phases ended while several arms were left."""
    delta = 1 / horizon if delta is None else delta
    actions, active, h = [], list(range(num_arms)), 0
    while True:
        n, _, r = phase(h, num_arms=num_arms, horizon=horizon, sigma=sigma, delta=delta)
        mean = {}
        for a in active:
            total = 0.0
            for _ in range(n if len(active) > 1 else horizon):
                if len(actions) == horizon:
                    return actions, h
                actions.append(a)
                t = len(actions)
                total += taken(rewards(t, a))
            mean[a] = total / n
        h += 1
        best = max(mean.values())
        active = [a for a in active if not best - mean[a] > 2 * r]
