"""CRIMED, play by play, and its divergence by bisection: docs/formulas/robust_frontier.md#crimed.

`rewards(t, arm)` pays play t (1-based).
"""

import math
from bisect import insort
from functools import cache


def Phi(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def phi(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def b(eps):
    """Phi(b) = 1 / (2 (1 - eps)), by bisection."""
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if Phi(middle) < 1 / (2 * (1 - eps)) else (low, middle)
    return low


def c_of(g, eps):
    """Phi(u) + Phi(l) / c = 1 / (1 - eps), u = g/2 + ln(c)/g, l = g - u, by bisection in c."""
    low, high = 1.0, (1 - eps) / eps
    for _ in range(100):
        c = (low + high) / 2
        u = g / 2 + math.log(c) / g
        low, high = (c, high) if Phi(u) + Phi(g - u) / c > 1 / (1 - eps) else (low, c)
    return low


@cache
def d(g, eps):
    if eps == 0:
        return g * g / 2
    if g <= 2 * b(eps):
        return 0.0
    c = c_of(g, eps)
    u = g / 2 + math.log(c) / g
    l = g - u
    return (1 - eps) * (math.log(c) * (1 - 1 / c) * Phi(l) + g * g / 2 * (Phi(u) - Phi(l)) - g * (phi(l) - phi(u)))


def tabulated(g, eps):
    """d at the points 0, 0.01, ..., 40, and a straight line between two of them."""
    g = min(g, 40.0)
    i = min(int(g * 100), 3999)
    return d(i / 100, eps) + (g * 100 - i) * (d((i + 1) / 100, eps) - d(i / 100, eps))


def lower_median(ordered):
    return ordered[(len(ordered) - 1) // 2]


def crimed(rewards, *, num_arms, horizon, eps=0.05, sigma=1.0):
    """The arms played."""
    actions, seen = [], [[] for _ in range(num_arms)]
    for t in range(1, horizon + 1):
        if t <= num_arms:
            arm = t - 1
        else:
            m = [lower_median(x) for x in seen]
            best = max(m)
            far = [0.0 if x == best else (best - x) / sigma for x in m]
            index = [len(x) * tabulated(g, eps) + math.log(len(x)) for x, g in zip(seen, far, strict=True)]
            arm = index.index(min(index))
        actions.append(arm)
        x = rewards(t, arm)
        insort(seen[arm], math.inf if math.isnan(x) else x)
    return actions
