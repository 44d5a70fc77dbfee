"""Late feedback, written literally: a queue of messages, and the weights of the hybrid by nested searches.

docs/formulas/robust_frontier.md, sections on delays. Plays count from 1, arms from 0.
"""

import math

import numpy as np
from scipy import optimize


def geometric_delay(uniform, mean):
    """floor(ln U / ln p), p = mean / (1 + mean)."""
    return 0 if mean == 0 else math.floor(math.log(uniform) / math.log(mean / (1 + mean)))


def uniform_delay(uniform, low, high):
    """Both ends included."""
    return low + min(math.floor(uniform * (high - low + 1)), high - low)


def arrivals(delays, max_delay):
    """For t = 1..T the plays whose feedback arrives at the end of play t, in order; how many are lost, and outstanding.

    delays: [T], entry t - 1 of play t.
    """
    horizon = len(delays)
    due = {t: [] for t in range(1, horizon + 1)}
    lost = outstanding = 0
    for t, d in enumerate(delays, start=1):
        if d > max_delay:
            lost += 1
        elif t + d > horizon:
            outstanding += 1
        else:
            due[t + d].append(t)
    return [due[t] for t in range(1, horizon + 1)], lost, outstanding


def waiting(delays, max_delay):
    """For t = 1..T how many plays r < t have feedback that comes and has not come before play t: r + d_r >= t."""
    return [
        sum(1 for r in range(1, t) if delays[r - 1] <= max_delay and r + delays[r - 1] >= t)
        for t in range(1, len(delays) + 1)
    ]


def run(learner, rewards, delays, max_delay=math.inf):
    """Actions [T] of a learner with act(t, told) -> (arm, note) and update(t, note, reward).

    told: `waiting` of play t, and its sum over plays 1..t.
    """
    due, _, _ = arrivals(delays, max_delay)
    counts = waiting(delays, max_delay)
    notes, actions = {}, []
    for t in range(1, len(delays) + 1):
        arm, notes[t] = learner.act(t, (counts[t - 1], sum(counts[:t])))
        actions.append(arm)
        for s in due[t - 1]:
            learner.update(s, notes[s], rewards[s - 1][actions[s - 1]])
    return actions


class Ucb1:
    """mean + sqrt(2 ln t / S_a) over observed counts S_a, infinite before the first."""

    def __init__(self, num_arms):
        self.sums, self.counts = np.zeros(num_arms), np.zeros(num_arms)

    def act(self, t, told):
        index = [
            self.sums[a] / n + math.sqrt(2 * math.log(t) / n) if n else math.inf for a, n in enumerate(self.counts)
        ]
        arm = int(np.argmax(index))
        return arm, arm

    def update(self, t, note, reward):
        self.sums[note] += reward
        self.counts[note] += 1


def hybrid_weights(losses, a, b):
    """The minimiser x of <L, x> - 2 a sum sqrt(x) + b sum x ln x over the simplex.

    Stationary: -a e^(-s/2) + b (s + 1) = level - L_i for s = ln x_i. Search the s of the smallest loss, and bisect the
    others.
    """
    gaps = np.asarray(losses) - np.min(losses)

    def slope(s):
        return -a * np.exp(-s / 2) + b * (s + 1)

    def others(top):
        low = np.full(len(gaps), top - 1.0)
        while (slope(low) > slope(top) - gaps).any():
            low = top - 2 * (top - low)
        high = np.full(len(gaps), top)
        for _ in range(46):
            middle = (low + high) / 2
            below = slope(middle) < slope(top) - gaps
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.exp(high)

    least = -math.log(len(gaps)) - 1e-9  # all equal, the sum is 1 there but for rounding
    x = others(optimize.brentq(lambda top: others(top).sum() - 1, least, 1e-9, xtol=1e-13))
    return x / x.sum()


class Hybrid:
    """Tsallis-INF with an entropy of the outstanding feedback; first and second are eta_0 and gamma_0."""

    def __init__(self, num_arms, uniforms, tuning="simple", delay_bound=None):
        self.losses, self.uniforms, self.tuning = np.zeros(num_arms), uniforms, tuning
        self.first = self.second = 0.0
        if tuning == "best_of_both":
            third = num_arms ** (1 / 3)
            self.first = 10 * delay_bound + (delay_bound / (third * math.log(num_arms))) ** 2
            self.second = (24 * delay_bound * third) ** 2 * math.log(num_arms)

    def act(self, t, told):
        log = math.log(len(self.losses))
        if self.tuning == "simple":
            a, b = math.sqrt(t), math.sqrt(2 * told[1] / log)
        else:
            a, b = math.sqrt(t + self.first), math.sqrt((told[1] + self.second) / log)
        x = hybrid_weights(list(self.losses), a, b)
        arm = min(int(np.searchsorted(np.cumsum(x), self.uniforms[t - 1], side="right")), len(x) - 1)
        return arm, (arm, x[arm])

    def update(self, t, note, reward):
        arm, x = note
        self.losses[arm] += (1 - reward) / x
