"""The multi-layer race and BARBAR, play by play: docs/formulas/robust_frontier.md#multilayer-elimination, #barbar.

`rewards(t, arm)` pays play t (1-based). `layer(t)` is the layer that play t draws, `uniform(t)` a uniform draw.
"""

import math


def usable(x):
    return x if math.isfinite(x) else 0.0


def number_of_layers(horizon):
    return max(1, math.ceil(math.log2(horizon)))


def layer_probabilities(layers):
    """p[1], ..., p[L]."""
    p = [2.0**-layer for layer in range(1, layers + 1)]
    p[0] += 2.0**-layers
    return p


def multilayer_elimination(rewards, layer, *, num_arms, horizon, failure_prob, width_scale=1.0):
    """Actions, and the active arms of every layer at the end."""
    K, T, L = num_arms, horizon, number_of_layers(horizon)
    log_term = math.log(4 * K * T * L / failure_prob)

    def wd(n):
        return math.inf if n == 0 else width_scale * (math.sqrt(log_term / n) + log_term / n)

    n = [[0] * K for _ in range(L + 1)]
    mean = [[0.0] * K for _ in range(L + 1)]
    I = [set(range(K)) for _ in range(L + 1)]
    actions = []
    for t in range(1, T + 1):
        l = layer(t)
        if I[l]:
            a = min(sorted(I[l]), key=lambda b: n[l][b])
            x = usable(rewards(t, a))
            n[l][a] += 1
            mean[l][a] += (x - mean[l][a]) / n[l][a]
            low = max(mean[l][b] - wd(n[l][b]) for b in I[l])
            out = {b for b in I[l] if mean[l][b] + wd(n[l][b]) < low}
            for below in range(1, l + 1):
                I[below] -= out
        else:
            a = min(next(I[other] for other in range(1, L + 1) if I[other]))
        actions.append(a)
    return actions, I[1:]


def length_parameter(num_arms, horizon, failure_prob, length_scale=1.0):
    return length_scale * 1024 * math.log(8 * num_arms / failure_prob * math.log2(horizon))


def next_gaps(gaps, r, m):
    """The gaps after epoch m with the means r, and r*."""
    best = max(x - gap / 16 for x, gap in zip(r, gaps, strict=True))
    return [max(2.0**-m, best - x) for x in r], best


def barbar(rewards, uniform, *, num_arms, horizon, failure_prob, length_scale=1.0):
    """Actions, and of every epoch: its gaps and its length."""
    lam = length_parameter(num_arms, horizon, failure_prob, length_scale)
    gaps, m, t = [1.0] * num_arms, 1, 0
    actions, epochs = [], []
    while True:
        n = [lam / gap**2 for gap in gaps]
        N = math.ceil(sum(n))
        epochs.append((gaps, N))
        S = [0.0] * num_arms
        for _ in range(N):
            t += 1
            if t > horizon:
                return actions, epochs
            u, below = uniform(t), 0.0
            arm = 0
            for share in n[:-1]:
                below += share / sum(n)
                arm += below <= u
            actions.append(arm)
            S[arm] += min(max(usable(rewards(t, arm)), 0.0), 1.0)
        r = [min(S[a] / (N * n[a] / sum(n)), 1.0) for a in range(num_arms)]
        gaps, _ = next_gaps(gaps, r, m)
        m += 1
