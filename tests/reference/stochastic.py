"""Stochastic bandits: docs/formulas/private_robust_mab.md#ucb1,
docs/formulas/private_robust_mab.md#successive-elimination; order of play:
docs/formulas/private_robust_mab.md#elimination.

`reward_of(t, arm)` pays play t (1-based). A non-finite reward counts as 0
(docs/formulas/private_robust_mab.md#unusable-rewards, policy `zero`).
"""

import math

import numpy as np


def finite(reward):
    return float(reward) if math.isfinite(reward) else 0.0


def ucb1(reward_of, num_arms, horizon, scale=1.0):
    """UCB1: every arm once in index order, then argmax mean + scale sqrt(2 ln t / N), t the play about to be made.

    First index on ties. Returns actions [T].
    """
    sums, counts, actions = [0.0] * num_arms, [0] * num_arms, []
    for t in range(1, horizon + 1):
        best, best_index = None, -math.inf
        for a in range(num_arms):
            if counts[a] == 0:
                best = a
                break
            index = sums[a] / counts[a] + scale * math.sqrt(2 * math.log(t) / counts[a])
            if index > best_index:
                best, best_index = a, index
        sums[best] += finite(reward_of(t, best))
        counts[best] += 1
        actions.append(best)
    return np.array(actions)


def successive_elimination(reward_of, num_arms, horizon, noise_scale=1.0, failure_prob=None, *, scale=1.0):
    """SE: one pull per active arm per round, ascending; radius noise_scale sqrt(2 ln(4 K t^2 / failure_prob) / N).

    After each full round an arm goes if max mean - mean > 2 radius (strict). failure_prob=None is 1 / T. `t` is the
    number of plays made so far over all arms (docs/formulas/private_robust_mab.md#names-and-edges). Returns actions
    [T].
    """
    if failure_prob is None:
        failure_prob = 1.0 / horizon
    active = list(range(num_arms))
    sums, counts, actions = [0.0] * num_arms, [0] * num_arms, []
    while len(actions) < horizon:
        for a in active:
            if len(actions) == horizon:
                return np.array(actions)
            sums[a] += finite(reward_of(len(actions) + 1, a))
            counts[a] += 1
            actions.append(a)
        if len(active) > 1:
            n = counts[active[0]]
            t = len(actions)
            radius = scale * noise_scale * math.sqrt(2 * math.log(4 * num_arms * t**2 / failure_prob) / n)
            best = max(sums[a] / counts[a] for a in active)
            active = [a for a in active if not best - sums[a] / counts[a] > 2 * radius]
    return np.array(actions)


def gradient_bandit(reward_of, num_arms, horizon, uniforms, *, learning_rate=0.1, baseline=True, step=None):
    """Sutton and Barto 2018, section 2.8: softmax of preferences H, equations (2.11) and (2.12).

    Play t draws the first arm whose cumulative probability exceeds uniforms[t - 1]. The baseline is the mean of the
    rewards before play t, and the reward itself at t = 1. step(g, t): what an optimizer takes off the preferences for
    the gradient g of minus the expected reward; None: learning_rate g. Returns actions [T].
    """
    preferences, total, actions = np.zeros(num_arms), 0.0, []
    for t in range(1, horizon + 1):
        weights = [math.exp(h - max(preferences)) for h in preferences]
        policy = np.array(weights) / sum(weights)
        arm, below = 0, policy[0]
        while below <= uniforms[t - 1] and arm < num_arms - 1:
            arm += 1
            below += policy[arm]
        reward = finite(reward_of(t, arm))
        mean = (total / (t - 1) if t > 1 else reward) if baseline else 0.0
        ascent = np.array([(reward - mean) * ((1.0 if a == arm else 0.0) - policy[a]) for a in range(num_arms)])
        preferences = preferences - (step(-ascent, t) if step else -learning_rate * ascent)
        total += reward
        actions.append(arm)
    return np.array(actions)
