"""EXP3, HTINF, its private conversion and FTPL: loops over blocks of lanes in vectors.

How such a loop is written is told in `numba_vectors`. Losses are 1 - reward, rewards Bernoulli; FTPL's are given.
Every function returns the final pseudo-regret [lanes], float64.
"""

import math
from functools import cache

import numba as nb
import numpy as np
from numba_loops import _LOOP, F32, U32, log
from numba_vectors import I32, LANES, exp, positive_uniform, seed_words, uniform, whole_blocks, words

RENORMALISED = 32  # plays between two computations of the sum of weights
SKIP_SHARE = 1 - 2 ** (-1 / 3)  # HTINF's threshold at tail index 2


@cache
def _exp3(arms):
    @nb.njit(**_LOOP)
    def loop(means, rate, mixing, horizon, blocks, seed):
        best, floor, kept = means.max(), mixing / F32(arms), F32(1) - mixing
        regret = np.zeros(blocks * LANES)
        for block in nb.prange(blocks):
            state, word, other = np.empty((4, LANES), U32), np.empty(LANES, U32), np.empty(LANES, U32)
            seed_words(state, seed, block)
            weight, pulls = np.ones((arms, LANES), F32), np.zeros((arms, LANES), F32)
            total, below, left = np.full(LANES, F32(arms)), np.empty(LANES, F32), np.empty(LANES, F32)
            arm, own, p = np.empty(LANES, I32), np.empty(LANES, F32), np.empty(LANES, F32)
            for t in range(horizon):
                if t % RENORMALISED == 0:
                    for i in range(LANES):
                        below[i] = F32(1) / total[i]
                        total[i] = F32(0)
                    for k in range(arms):
                        for i in range(LANES):
                            x = weight[k, i] * below[i]
                            x = x if x > F32(1e-30) else F32(1e-30)
                            weight[k, i] = x
                            total[i] += x
                words(state, word)
                words(state, other)
                for i in range(LANES):
                    left[i], below[i], arm[i] = uniform(word[i]) * total[i], F32(0), I32(0)
                for k in range(arms - 1):
                    for i in range(LANES):
                        below[i] += kept * weight[k, i] + floor * total[i]
                        arm[i] += I32(1) if below[i] <= left[i] else I32(0)
                for i in range(LANES):
                    k = U32(arm[i])
                    own[i], p[i] = weight[k, i], means[k]
                for i in range(LANES):
                    loss = F32(0) if uniform(other[i]) < p[i] else F32(1)
                    step = rate * loss / (kept * own[i] / total[i] + floor)
                    step = step if step < F32(60) else F32(60)
                    grown = own[i] * exp(-step)
                    total[i] += grown - own[i]
                    own[i] = grown
                for i in range(LANES):
                    k = U32(arm[i])
                    weight[k, i] = own[i]
                    pulls[k, i] += F32(1)
            for i in range(LANES):
                for k in range(arms):
                    regret[block * LANES + i] += pulls[k, i] * (best - means[k])
        return regret

    return loop


def exp3(means, params, horizon, lanes, seed):
    """EXP3 with losses and the package's `params`: p_k = (1 - g) w_k / sum(w) + g / K, w_a *= exp(-rate loss / p_a)."""
    numbers = F32(params.learning_rate), F32(params.mixing)
    return _exp3(len(means))(np.asarray(means, F32), *numbers, horizon, whole_blocks(lanes), seed)[:lanes]


@cache
def _htinf(arms):
    @nb.njit(**_LOOP)
    def loop(means, tail_scale, window, noise_scale, horizon, blocks, seed):
        best, largest = means.max(), F32(math.sqrt(arms))
        regret = np.zeros(blocks * LANES)
        for block in nb.prange(blocks):
            state, word = np.empty((4, LANES), U32), np.empty(LANES, U32)
            seed_words(state, seed, block)
            estimate, pulls = np.zeros((arms, LANES), F32), np.zeros((arms, LANES), F32)
            v, total, slope = np.full(LANES, largest), np.empty(LANES, F32), np.empty(LANES, F32)
            upto, left, least = np.empty((arms, LANES), F32), np.empty(LANES, F32), np.empty(LANES, F32)
            arm, x, p, loss = np.empty(LANES, I32), np.empty(LANES, F32), np.empty(LANES, F32), np.empty(LANES, F32)
            done, batch = 0, 0
            while done < horizon:
                scale = F32(tail_scale * math.sqrt(batch + 1.0))
                rate = F32(1) / scale
                for _ in range(2):  # Newton's steps for the normaliser, from that of the play before
                    for i in range(LANES):
                        total[i], slope[i] = F32(0), F32(0)
                    for k in range(arms):
                        for i in range(LANES):
                            inverse = F32(1) / (estimate[k, i] * rate + v[i])
                            total[i] += inverse * inverse
                            slope[i] += inverse * inverse * inverse
                    for i in range(LANES):
                        y = v[i] + (math.sqrt(total[i]) - F32(1)) * total[i] / slope[i]
                        y = y if y > F32(1) else F32(1)
                        v[i] = y if y < largest else largest
                for i in range(LANES):
                    total[i], arm[i] = F32(0), I32(0)
                for k in range(arms):
                    for i in range(LANES):
                        inverse = F32(1) / (estimate[k, i] * rate + v[i])
                        total[i] += inverse * inverse
                        upto[k, i] = total[i]
                words(state, word)
                for i in range(LANES):
                    left[i] = uniform(word[i]) * total[i]
                for k in range(arms - 1):
                    for i in range(LANES):
                        arm[i] += I32(1) if upto[k, i] <= left[i] else I32(0)
                for i in range(LANES):
                    k = U32(arm[i])
                    x[i], p[i], loss[i] = estimate[k, i], means[k], F32(0)
                plays = min(window, horizon - done)
                for _ in range(plays):
                    words(state, word)
                    for i in range(LANES):
                        loss[i] += F32(0) if uniform(word[i]) < p[i] else F32(1)
                if plays == window:
                    if noise_scale > F32(0):
                        words(state, word)
                        for i in range(LANES):
                            noise = -noise_scale * log(positive_uniform(word[i]))
                            negative = (word[i] & U32(256)) != U32(0)
                            loss[i] = loss[i] / F32(window) + (-noise if negative else noise)
                    for i in range(LANES):
                        inverse = F32(1) / (x[i] * rate + v[i])
                        weight = inverse * inverse
                        step = loss[i] / weight
                        x[i] += step if abs(loss[i]) <= F32(SKIP_SHARE) * scale * inverse else F32(0)
                        least[i] = F32(1e30)
                for i in range(LANES):
                    k = U32(arm[i])
                    estimate[k, i] = x[i]
                    pulls[k, i] += F32(plays)
                for k in range(arms):
                    for i in range(LANES):
                        least[i] = min(least[i], estimate[k, i])
                for k in range(arms):
                    for i in range(LANES):
                        estimate[k, i] -= least[i]
                done, batch = done + plays, batch + 1
            for i in range(LANES):
                for k in range(arms):
                    regret[block * LANES + i] += pulls[k, i] * (best - means[k])
        return regret

    return loop


def htinf(means, params, horizon, lanes, seed):
    """HTINF at tail index 2 with the package's `params`; Newton's steps begin at the normaliser of the play before."""
    blocks = whole_blocks(lanes)
    return _htinf(len(means))(np.asarray(means, F32), params.tail_scale, 1, F32(0), horizon, blocks, seed)[:lanes]


def private_htinf(means, params, horizon, lanes, seed):
    """The private conversion of HTINF with the package's `params`; the rewards of a batch are drawn one by one."""
    numbers = params.base.tail_scale, int(params.window), F32(params.noise_scale)
    return _htinf(len(means))(np.asarray(means, F32), *numbers, horizon, whole_blocks(lanes), seed)[:lanes]


TRIES = 16  # perturbations of one arm that are drawn at once


@cache
def _ftpl(arms):
    @nb.njit(**_LOOP)
    def loop(losses, coins, rate, tries, horizon, blocks, seed):
        best, width = losses.min(), F32(1) / rate
        regret = np.zeros(blocks * LANES)
        for block in nb.prange(blocks):
            state, word = np.empty((4, LANES), U32), np.empty(LANES, U32)
            more, drawn = np.empty((4, TRIES), U32), np.empty(TRIES, U32)
            seed_words(state, seed, 2 * block)
            seed_words(more, seed + 1_000_003, 2 * block + 1)
            estimate, pulls = np.zeros((arms, LANES), F32), np.zeros((arms, LANES), F32)
            least, arm, loss = np.empty(LANES, F32), np.empty(LANES, I32), np.empty(LANES, F32)
            lowest, rival = np.empty(TRIES, F32), np.empty(TRIES, I32)
            for _ in range(horizon):
                for i in range(LANES):
                    least[i] = F32(1e30)
                for k in range(arms):
                    words(state, word)
                    for i in range(LANES):
                        noise = -width * log(positive_uniform(word[i]))
                        negative = (word[i] & U32(256)) != U32(0)
                        value, most, leader = estimate[k, i] + (-noise if negative else noise), least[i], arm[i]
                        arm[i] = I32(k) if value < most else leader
                        least[i] = value if value < most else most
                words(state, word)
                for i in range(LANES):
                    k = U32(arm[i])
                    loss[i] = losses[k]
                    pulls[k, i] += F32(1)
                if coins:
                    for i in range(LANES):
                        loss[i] = F32(1) if uniform(word[i]) < loss[i] else F32(0)
                for i in range(LANES):
                    if loss[i] != F32(0):  # a loss of 0 changes nothing, however many tries it takes
                        tried, a = 0, arm[i]
                        while True:
                            for j in range(TRIES):
                                lowest[j] = F32(1e30)
                            for k in range(arms):
                                words(more, drawn)
                                shift = estimate[k, i]
                                for j in range(TRIES):
                                    noise = -width * log(positive_uniform(drawn[j]))
                                    negative = (drawn[j] & U32(256)) != U32(0)
                                    value, most, leader = shift + (-noise if negative else noise), lowest[j], rival[j]
                                    rival[j] = I32(k) if value < most else leader
                                    lowest[j] = value if value < most else most
                            first = TRIES
                            for j in range(TRIES - 1, -1, -1):
                                first = j if rival[j] == a else first
                            if first < TRIES or tried + TRIES >= tries:
                                tried = min(tried + first + 1, tries)
                                break
                            tried += TRIES
                        estimate[U32(a), i] += loss[i] * F32(tried)
                        least[i] = F32(1e30)
                        for k in range(arms):
                            least[i] = min(least[i], estimate[k, i])
                        for k in range(arms):
                            estimate[k, i] -= least[i]
            for i in range(LANES):
                for k in range(arms):
                    regret[block * LANES + i] += pulls[k, i] * (losses[k] - best)
        return regret

    return loop


def ftpl(losses, params, horizon, lanes, seed, coins):
    """FTPL with the package's `params` and geometric resampling try by try, `TRIES` tries at once in vectors.

    losses [K] are what every play costs or, with `coins`, probabilities of a loss of 1.
    """
    numbers = coins, F32(params.learning_rate), int(params.tries)
    return _ftpl(len(losses))(np.asarray(losses, F32), *numbers, horizon, whole_blocks(lanes), seed)[:lanes]
