"""Robust elimination of linear arms (model M1): what a careful programmer gets from Numba on one core.

One lane after another. Rewards are drawn in vectors, straight into blocks of one arm as the filter wants them
(`numba_filter`, which is called once a batch); designs and matrices are small loops in float64.
"""

import math
from functools import cache

import numba as nb
import numpy as np
from numba_byzantine import invert
from numba_filter import _filter
from numba_loops import _INLINE, _LOOP, F32, U32, log
from numba_vectors import positive_uniform, seed_words, uniform, words

BLOCK = 32  # reports of one arm that are drawn and summed at once


@nb.njit(**_INLINE)
def _basis(actions, active, directions, picks):
    """Orthonormal directions of the active arms, the arm behind each, and their number, by pivoted Gram-Schmidt."""
    arms, d = actions.shape
    rest, rank, largest = actions.copy(), 0, 0.0
    for i in range(d):
        top, pick = -1.0, -1
        for k in range(arms):
            if active[k]:
                square = 0.0
                for j in range(d):
                    square += rest[k, j] * rest[k, j]
                if square > top * (1 + 1e-6):
                    top, pick = square, k
        largest = top if i == 0 else largest
        if top <= 1e-10 * largest:
            break
        scale = 1 / math.sqrt(top)
        for j in range(d):
            directions[rank, j] = rest[pick, j] * scale
        picks[rank] = pick
        for k in range(arms):
            along = 0.0
            for j in range(d):
                along += rest[k, j] * directions[rank, j]
            for j in range(d):
                rest[k, j] -= along * directions[rank, j]
        rank += 1
    return rank


@nb.njit(**_INLINE)
def _moment(actions, weights, directions, rank, total):
    """sum_a weights_a a a' / total, and beside it that matrix made definite outside the span; its level."""
    arms, d = actions.shape
    moment = np.zeros((d, d))
    for k in range(arms):
        if weights[k] > 0:
            for i in range(d):
                for j in range(d):
                    moment[i, j] += weights[k] / total * actions[k, i] * actions[k, j]
    level = 0.0
    for i in range(d):
        level += moment[i, i] / rank
    for i in range(d):
        for j in range(d):
            inside = 0.0
            for r in range(rank):
                inside += directions[r, i] * directions[r, j]
            moment[i, j] += level * ((1.0 if i == j else 0.0) - inside)
    return moment


@nb.njit(**_INLINE)
def _design(actions, active, directions, picks, rank, slack, weights, leverage):
    """Weights of a design whose largest leverage is at most (1 + slack) rank."""
    arms, d = actions.shape
    for k in range(arms):
        weights[k] = 0.0
    for r in range(rank):
        weights[picks[r]] += 1.0 / rank
    inverse, h = _moment(actions, weights, directions, rank, 1.0), np.empty(d)
    invert(inverse)
    for k in range(arms):
        leverage[k] = 0.0
        if active[k]:
            for i in range(d):
                for j in range(d):
                    leverage[k] += actions[k, i] * inverse[i, j] * actions[k, j]
    for _ in range(20 * rank if rank > 1 else 0):
        pick = 0
        for k in range(1, arms):
            pick = k if leverage[k] > leverage[pick] * (1 + 1e-6) else pick
        g = leverage[pick]
        if g <= (1 + slack) * rank * (1 + 1e-6):
            break
        s = (g / rank - 1) / (g - 1)
        shrink = s / (1 - s + s * g)
        for i in range(d):
            h[i] = 0.0
            for j in range(d):
                h[i] += inverse[i, j] * actions[pick, j]
        for k in range(arms):
            across = 0.0
            for i in range(d):
                across += actions[k, i] * h[i]
            leverage[k] = (leverage[k] - shrink * across * across) / (1 - s) if active[k] else 0.0
            weights[k] *= 1 - s
        for i in range(d):
            for j in range(d):
                inverse[i, j] = (inverse[i, j] - shrink * h[i] * h[j]) / (1 - s)
        weights[pick] += s


@nb.njit(**_INLINE)
def _inverse_cholesky(matrix):
    """L^-1 of L L' = matrix."""
    d = matrix.shape[0]
    low, inverse = np.zeros((d, d)), np.zeros((d, d))
    for j in range(d):
        for i in range(j, d):
            entry = matrix[i, j]
            for k in range(j):
                entry -= low[i, k] * low[j, k]
            low[i, j] = math.sqrt(entry) if i == j else entry / low[j, j]
    for j in range(d):
        for i in range(j, d):
            entry = 1.0 if i == j else 0.0
            for k in range(j, i):
                entry -= low[i, k] * inverse[k, j]
            inverse[i, j] = entry / low[i, i]
    return inverse


@cache
def _robust_elimination(arms, d, wide):
    @nb.njit(**_LOOP)
    def loop(actions, means, sizes, numbers, corruption, value, horizon, lanes, seed):
        slack, spread, b, log_term, sampling, bias, threshold = numbers
        best_mean, limit = means.max(), np.int64(2**31)
        regret = np.zeros(lanes)
        for lane in nb.prange(lanes):
            state, word = np.empty((4, BLOCK), U32), np.empty((3, BLOCK), U32)
            seed_words(state, seed, lane)
            active, weights, leverage = np.ones(arms, np.bool_), np.zeros(arms), np.zeros(arms)
            directions, picks, total = np.zeros((d, d)), np.zeros(d, np.int64), np.zeros(arms)
            pulls, plays, best = np.zeros(arms), 0, 0
            for batch in range(sizes.shape[0]):
                rank = _basis(actions, active, directions, picks)
                _design(actions, active, directions, picks, rank, slack, weights, leverage)
                n, blocks, used = 0, 0, 0
                for k in range(arms):
                    pulls[k] = math.ceil(sizes[batch] * weights[k] * (1 - 2e-6) - 1e-9) if weights[k] > 0 else 0.0
                    n += int(pulls[k])
                    blocks += (int(pulls[k]) + BLOCK - 1) // BLOCK
                    used += 1 if pulls[k] > 0 else 0
                if n > horizon - plays:
                    break
                moment = _moment(actions, pulls, directions, rank, float(n))
                whiten = _inverse_cholesky(moment)
                invert(moment)
                widest = 0.0
                for x in range(arms):
                    if active[x]:
                        square, tail = 0.0, 0.0
                        for k in range(arms):
                            if pulls[k] > 0:
                                along = 0.0
                                for i in range(d):
                                    for j in range(d):
                                        along += actions[x, i] * moment[i, j] * actions[k, j]
                                square += pulls[k] * (along / n) ** 2
                                tail = max(tail, abs(along / n))
                        widest = max(widest, math.sqrt(2 * log_term * spread * square) + log_term * b * tail)
                radius = sampling * widest + bias
                values, block_arm = np.empty((1, blocks, BLOCK), F32), np.empty(blocks, np.int64)
                pointed, block, place = np.zeros((used, wide), F32), 0, 0
                for k in range(arms):
                    left = int(pulls[k])
                    if left == 0:
                        continue
                    total[k] += left
                    for i in range(d):
                        along = 0.0
                        for j in range(i + 1):
                            along += whiten[i, j] * actions[k, j]
                        pointed[place, i] = F32(along)
                    paid = F32(0.5 * (1 + means[k]))
                    while left > 0:
                        row = values[0, block]
                        words(state, word[0])
                        words(state, word[1])
                        words(state, word[2])
                        for i in range(BLOCK):
                            reward = F32(1) if uniform(word[0, i]) < paid else F32(-1)
                            reward = value if uniform(word[1, i]) < corruption else reward
                            noise = -F32(b) * log(positive_uniform(word[2, i]))
                            row[i] = reward + (-noise if (word[2, i] & U32(256)) != U32(0) else noise)
                        for i in range(left, BLOCK):
                            row[i] = np.nan
                        block_arm[block] = place
                        block, left = block + 1, left - BLOCK
                    place += 1
                uniforms = np.empty((1, n), F32)
                for i in range(n):
                    if i % BLOCK == 0:
                        words(state, word[0])
                    uniforms[0, i] = uniform(word[0, i % BLOCK])
                mean = _filter(uniforms, values, block_arm, d, pointed, F32(threshold), min(limit, n))[0]
                theta, top = np.zeros(d), -math.inf
                for i in range(d):
                    for j in range(i, d):
                        theta[i] += whiten[j, i] * mean[0, j]
                for k in range(arms):
                    leverage[k] = -math.inf
                    if active[k]:
                        leverage[k] = 0.0
                        for i in range(d):
                            leverage[k] += actions[k, i] * theta[i]
                    if leverage[k] > top:
                        top, best = leverage[k], k
                for k in range(arms):
                    active[k] = active[k] and leverage[k] >= top - 2 * radius
                plays += n
            total[best] += horizon - plays
            for k in range(arms):
                regret[lane] += total[k] * (best_mean - means[k])
        return regret

    return loop


def robust_elimination(actions, means, params, corruption, value, horizon, lanes, seed):
    """Robust elimination with the package's `params`: rewards of 1 and -1, a share replaced by `value`, Laplace noise.

    Lambda is rho^2 / n and the radius the practical one. Returns the final pseudo-regret [lanes].
    """
    own = params.own.radius
    b, alpha = float(own.laplace_scale), float(own.corruption_bound)
    spread = float(own.noise_scale) ** 2 + 2 * b * b
    bias = own.corruption_scale * math.sqrt((1 + spread) * alpha) + own.bias_scale * alpha if alpha > 0 else 0.0
    numbers = float(params.design_slack), spread, b, float(own.log_term), float(own.sampling_scale), float(bias)
    actions = np.asarray(actions, float)
    arms, d = actions.shape
    loop = _robust_elimination(arms, d, -(-d // 8) * 8)
    settings = F32(corruption), F32(value), horizon, lanes, seed
    return loop(
        actions, np.asarray(means, float), np.asarray(params.own.sizes, float), (*numbers, 4 * (1 + spread)), *settings
    )
