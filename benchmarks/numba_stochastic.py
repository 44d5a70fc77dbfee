"""UCB1, KL-UCB, Thompson sampling and DP-SE on Bernoulli arms: loops over blocks of lanes in vectors.

How such a loop is written is told in `numba_vectors`. Every function returns the final pseudo-regret [lanes], float64;
horizons, lanes and seeds are arguments, numbers of arms are fixed at compilation. Float32, ties to the lowest index.
"""

import math
from functools import cache

import numba as nb
import numpy as np
from numba_loops import _INLINE, _LOOP, F32, U32, _normal, log
from numba_vectors import I32, LANES, exp, positive_uniform, seed_words, uniform, whole_blocks, words


@cache
def _ucb1(arms):
    @nb.njit(**_LOOP)
    def loop(means, bonus, blocks, seed):
        horizon, best = bonus.shape[0], means.max()
        regret = np.zeros(blocks * LANES)
        for block in nb.prange(blocks):
            state, word = np.empty((4, LANES), U32), np.empty(LANES, U32)
            seed_words(state, seed, block)
            mean, width = np.full((arms, LANES), F32(1e30)), np.zeros((arms, LANES), F32)
            pulls = np.zeros((arms, LANES), F32)
            top, arm = np.empty(LANES, F32), np.empty(LANES, I32)
            m, n, p = np.empty(LANES, F32), np.empty(LANES, F32), np.empty(LANES, F32)
            for t in range(horizon):
                wide = bonus[t]
                for i in range(LANES):
                    top[i], arm[i] = mean[0, i] + wide * width[0, i], I32(0)
                for k in range(1, arms):
                    for i in range(LANES):
                        index, leader, most = mean[k, i] + wide * width[k, i], arm[i], top[i]
                        arm[i] = I32(k) if index > most else leader
                        top[i] = index if index > most else most
                words(state, word)
                for i in range(LANES):
                    k = U32(arm[i])
                    m[i], n[i], p[i] = mean[k, i], pulls[k, i], means[k]
                for i in range(LANES):
                    reward = F32(1) if uniform(word[i]) < p[i] else F32(0)
                    old = m[i]
                    before = old if n[i] > F32(0) else reward
                    n[i] += F32(1)
                    inverse = F32(1) / n[i]
                    m[i], p[i] = before + (reward - before) * inverse, math.sqrt(inverse)
                for i in range(LANES):
                    k = U32(arm[i])
                    mean[k, i], pulls[k, i], width[k, i] = m[i], n[i], p[i]
            for i in range(LANES):
                for k in range(arms):
                    regret[block * LANES + i] += pulls[k, i] * (best - means[k])
        return regret

    return loop


def ucb1(means, horizon, lanes, seed):
    """UCB1: argmax of mean + sqrt(2 log t / N), an unplayed arm first; four times the rate of `numba_loops.ucb1`."""
    bonus = np.sqrt(2 * np.log(np.arange(1, horizon + 1))).astype(F32)
    return _ucb1(len(means))(np.asarray(means, F32), bonus, whole_blocks(lanes), seed)[:lanes]


@nb.njit(**_INLINE)
def _halley(mean, level):
    """w = -log((1 - q) / (1 - mean)) of the largest q with d(mean, q) <= level, mean in (0, 1): as the package does."""
    rest = F32(1) - mean
    bent = (F32(4) - F32(2) * mean) * F32(1 / 3) * level
    w = (bent + math.sqrt(bent * bent + F32(8) * rest * mean * level)) / (F32(2) * rest)
    for _ in range(2):
        series = w * (F32(1) - w * F32(0.5) * (F32(1) - w * F32(1 / 3) * (F32(1) - w * F32(0.25))))
        far = F32(1) - exp(-w)
        share = series if w < F32(0.0625) else far
        x = rest * share
        y = x / mean
        power = y * (F32(1) - y * (F32(0.5) - y * (F32(1 / 3) - y * (F32(0.25) - y * F32(0.2)))))
        logarithm = log(F32(1) + y)
        value = rest * w - mean * (power if y < F32(0.0625) else logarithm) - level
        slope = x / (mean + x)
        bend = mean * rest * (F32(1) - share) / ((mean + x) * (mean + x))
        divisor = F32(2) * slope * slope - value * bend
        divisor = divisor if divisor > F32(1e-30) else F32(1e-30)
        w -= F32(2) * value * slope / divisor
        w = w if w > F32(0) else F32(0)
    return w


@nb.njit(**_INLINE)
def _inside(mean):
    """The mean away from 0 and 1, where logarithms are finite."""
    mean = mean if mean > F32(1e-6) else F32(1e-6)
    return mean if mean < F32(1 - 1e-6) else F32(1 - 1e-6)


@cache
def _kl_ucb(arms, first_plays):
    @nb.njit(**_LOOP)
    def loop(means, logs, blocks, seed):
        horizon, best = logs.shape[0], means.max()
        regret = np.zeros(blocks * LANES)
        for block in nb.prange(blocks):
            state, word = np.empty((4, LANES), U32), np.empty(LANES, U32)
            seed_words(state, seed, block)
            mean, pulls = np.full((arms, LANES), F32(1)), np.zeros((arms, LANES), F32)
            entropy = np.zeros((arms, LANES), F32)  # mean log mean + (1 - mean) log (1 - mean)
            least, arm, beaten = np.empty(LANES, F32), np.zeros(LANES, I32), np.zeros(LANES, I32)
            m, n, p = np.empty(LANES, F32), np.empty(LANES, F32), np.empty(LANES, F32)
            low, high = np.empty(LANES, F32), np.empty(LANES, F32)  # log(q) and log(1 - q) of the leader
            for t in range(horizon):
                level = logs[t]
                if t < first_plays:  # every arm's index: ties are common as long as arms have few pulls
                    for i in range(LANES):
                        least[i] = F32(2)
                    for k in range(arms):
                        for i in range(LANES):
                            own, number, most, leader = mean[k, i], pulls[k, i], least[i], arm[i]
                            w = _halley(_inside(own), level / max(number, F32(1)))
                            room = (F32(1) - own) * exp(-min(w, F32(80)))
                            room = room if number > F32(0) else F32(-1)
                            arm[i] = I32(k) if room < most else leader
                            least[i] = room if room < most else most
                else:  # the leader's index q; an arm beats it where d(mean, q) < log t / N: nothing to solve
                    for i in range(LANES):
                        k = U32(arm[i])
                        m[i], n[i] = mean[k, i], pulls[k, i]
                    for i in range(LANES):
                        own = _inside(m[i])
                        w = _halley(own, level / n[i])
                        room = (F32(1) - own) * exp(-min(w, F32(80)))
                        low[i], high[i] = log(F32(1) - room), log(F32(1) - own) - w
                        m[i] = F32(1) - room
                        beaten[i] = I32(0)
                    for k in range(arms):
                        for i in range(LANES):
                            own, q, lead = mean[k, i], m[i], beaten[i]
                            divergence = entropy[k, i] - own * low[i] - (F32(1) - own) * high[i]
                            better = (pulls[k, i] * divergence < level * F32(0.99999)) | (own > q)
                            other = arm[i] != I32(k)
                            beaten[i] = I32(k + 1) if better & other else lead
                    for i in range(LANES):
                        while beaten[i] > 0:  # the one that beats the leader leads, until nobody beats it
                            k = U32(beaten[i] - 1)
                            own = _inside(mean[k, i])
                            w = _halley(own, level / pulls[k, i])
                            q = F32(1) - (F32(1) - own) * exp(-min(w, F32(80)))
                            beaten[i] = I32(0)
                            if q > m[i]:  # not by rounding alone
                                arm[i], m[i] = I32(k), q
                                lower, higher = log(q), log(F32(1) - own) - w
                                for j in range(arms):
                                    own = mean[j, i]
                                    divergence = entropy[j, i] - own * lower - (F32(1) - own) * higher
                                    better = (pulls[j, i] * divergence < level * F32(0.99999)) | (own > q)
                                    beaten[i] = I32(j + 1) if better & (j != k) else beaten[i]
                words(state, word)
                for i in range(LANES):
                    k = U32(arm[i])
                    m[i], n[i], p[i] = mean[k, i], pulls[k, i], means[k]
                for i in range(LANES):
                    reward = F32(1) if uniform(word[i]) < p[i] else F32(0)
                    n[i] += F32(1)
                    after = m[i] + (reward - m[i]) / n[i]
                    after = after if after > F32(0) else F32(0)
                    m[i] = after if after < F32(1) else F32(1)
                    own = _inside(m[i])
                    p[i] = own * log(own) + (F32(1) - own) * log(F32(1) - own)
                for i in range(LANES):
                    k = U32(arm[i])
                    mean[k, i], pulls[k, i], entropy[k, i] = m[i], n[i], p[i]
            for i in range(LANES):
                for k in range(arms):
                    regret[block * LANES + i] += pulls[k, i] * (best - means[k])
        return regret

    return loop


def kl_ucb(means, horizon, lanes, seed):
    """KL-UCB: the arm of the largest q with N d(mean, q) <= log t, an unplayed arm first.

    After the first 256 plays only the leader's index is solved for; whether another arm's is larger takes two products
    with the logarithms of that index.
    """
    logs = np.log(np.arange(1, horizon + 1)).astype(F32)
    return _kl_ucb(len(means), 256)(np.asarray(means, F32), logs, whole_blocks(lanes), seed)[:lanes]


@cache
def _thompson(arms):
    @nb.njit(**_LOOP)
    def loop(means, horizon, blocks, seed):
        best = means.max()
        regret = np.zeros(blocks * LANES)
        for block in nb.prange(blocks):
            state, word, other = np.empty((4, LANES), U32), np.empty(LANES, U32), np.empty(LANES, U32)
            seed_words(state, seed, block)
            # Marsaglia and Tsang's d and 1 / sqrt(9 d) of 2 K shapes: failures, then successes
            d, c = np.full((2 * arms, LANES), F32(2 / 3)), np.full((2 * arms, LANES), F32(1 / math.sqrt(6)))
            gamma, refused = np.empty((2, LANES), F32), np.empty(LANES, I32)
            top, arm = np.empty(LANES, F32), np.empty(LANES, I32)
            for _ in range(horizon):
                for i in range(LANES):
                    top[i] = F32(-1)
                for k in range(arms):
                    for side in range(2):
                        row, bad = side * arms + k, I32(0)
                        words(state, word)
                        words(state, other)
                        for i in range(LANES):
                            x, u = _normal(word[i]), positive_uniform(other[i])
                            own = d[row, i]
                            v = F32(1) + c[row, i] * x
                            v = v * v * v
                            positive = v > F32(1e-30)
                            v = v if positive else F32(1e-30)
                            accepted = log(u) < F32(0.5) * x * x + own * (F32(1) - v + log(v))
                            gamma[side, i] = own * v
                            refused[i] = I32(0) if accepted & positive else I32(1)
                            bad += refused[i]
                        if bad > 0:
                            for i in range(LANES):
                                while refused[i] == 1:
                                    words(state[:, i : i + 1], word[i : i + 1])
                                    words(state[:, i : i + 1], other[i : i + 1])
                                    x, u = _normal(word[i]), positive_uniform(other[i])
                                    v = F32(1) + c[row, i] * x
                                    if v > F32(0):
                                        v = v * v * v
                                        if log(u) < F32(0.5) * x * x + d[row, i] * (F32(1) - v + log(v)):
                                            gamma[side, i], refused[i] = d[row, i] * v, I32(0)
                    for i in range(LANES):
                        sample, most, leader = gamma[1, i] / (gamma[0, i] + gamma[1, i]), top[i], arm[i]
                        arm[i] = I32(k) if sample > most else leader
                        top[i] = sample if sample > most else most
                words(state, word)
                for i in range(LANES):
                    k = U32(arm[i])
                    row = k + U32(arms) if uniform(word[i]) < means[k] else k
                    d[row, i] += F32(1)
                    c[row, i] = F32(1) / math.sqrt(F32(9) * d[row, i])
            for i in range(LANES):
                for k in range(arms):
                    number = d[k, i] + d[arms + k, i] - F32(4 / 3)
                    regret[block * LANES + i] += number * (best - means[k])
        return regret

    return loop


def thompson(means, horizon, lanes, seed):
    """Thompson sampling from Beta(1 + successes, 1 + failures), as ratios of gammas by Marsaglia and Tsang (2000).

    The first try is made in vectors, for all lanes of an arm; what is refused is tried again lane by lane.
    """
    return _thompson(len(means))(np.asarray(means, F32), horizon, whole_blocks(lanes), seed)[:lanes]


@nb.njit(**_INLINE)
def _coins(state, word, number, bound):
    """How many of `number` words are below a bound: rewards of one arm, drawn one by one in vectors."""
    paid, left = 0, number
    while left >= LANES:
        words(state, word)
        here = I32(0)
        for i in range(LANES):
            here += I32(1) if word[i] < bound else I32(0)
        paid, left = paid + here, left - LANES
    if left > 0:
        words(state, word)
        for i in range(left):
            paid += 1 if word[i] < bound else 0
    return paid


@cache
def _dp_se(arms):
    @nb.njit(**_LOOP)
    def loop(means, table, noise_scale, slack, horizon, lanes, seed):
        best = means.max()
        regret = np.zeros(lanes)
        bounds = np.empty(arms, U32)
        for k in range(arms):
            bounds[k] = U32(means[k] * 4294967295.0)
        for lane in nb.prange(lanes):
            state, word = np.empty((4, LANES), U32), np.empty(LANES, U32)
            seed_words(state, seed, lane)
            active, estimate, pulls = np.ones(arms, np.bool_), np.zeros(arms), np.zeros(arms)
            left, t, epoch = arms, 0, 0
            while left > 1 and t < horizon:
                row, size = min(epoch, table.shape[0] - 1), table[min(epoch, table.shape[0] - 1), left - 1]
                for k in range(arms):
                    if active[k] and t < horizon:
                        number = min(size, horizon - t)
                        paid = _coins(state, word, number, bounds[k])
                        t += number
                        pulls[k] += number
                        words(state[:, :1], word[:1])
                        noise = -math.log(positive_uniform(word[0]))
                        words(state[:, :1], word[:1])
                        noise = noise if word[0] >= U32(1 << 31) else -noise
                        estimate[k] = paid / size + noise_scale[row, left - 1] * noise
                if t >= horizon:
                    break
                top = -math.inf
                for k in range(arms):
                    if active[k]:
                        top = max(top, estimate[k])
                bound = slack[row, left - 1]
                for k in range(arms):
                    if active[k] and top - estimate[k] > bound:
                        active[k] = False
                        left -= 1
                epoch += 1
            for k in range(arms):
                if active[k] and left == 1:
                    pulls[k] += horizon - t
                regret[lane] += pulls[k] * (best - means[k])
        return regret

    return loop


def dp_se(means, params, horizon, lanes, seed):
    """DP-SE with the tables of the package's `params`; rewards drawn one by one until one arm is left."""
    tables = np.asarray(params.pulls, np.int64), np.asarray(params.noise_scale), np.asarray(params.slack)
    return _dp_se(len(means))(np.asarray(means, np.float64), *tables, horizon, lanes, seed)
