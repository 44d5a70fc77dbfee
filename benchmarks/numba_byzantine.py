"""Byzantine-UCB by geometric median: what a careful programmer gets from Numba on one core, without attackers.

One lane after another, float32; a play of all agents at once: their N A arms are columns of short loops that
vectorise, normals by hash and inverse error function as in `numba_loops`. An episode's end: eight Weiszfeld
iterations from the better of two starts, matrices and vectors apart, and an inverse by Gauss and Jordan.
"""

import math
from functools import cache

import numba as nb
import numpy as np
from numba_loops import _INLINE, _LOOP, F32, U32, U64, _hash32, _normal, _seeded


@nb.njit(**_INLINE)
def _distances(points, z, d):
    for i in range(points.shape[1]):
        d[i] = F32(0)
    for j in range(points.shape[0]):
        for i in range(points.shape[1]):
            away = points[j, i] - z[j]
            d[i] += away * away
    total = F32(0)
    for i in range(points.shape[1]):
        d[i] = math.sqrt(d[i])
        total += d[i]
    return total


@nb.njit(**_INLINE)
def _mean(points, w, z):
    for j in range(points.shape[0]):
        total = F32(0)
        for i in range(points.shape[1]):
            total += w[i] * points[j, i]
        z[j] = total


@nb.njit(**_INLINE)
def _weiszfeld(points, w, z, iterations, d, ahead):
    """The median of points [p, N] in z, its weights in w."""
    _mean(points, w, ahead)
    if _distances(points, ahead, d) <= _distances(points, z, d):
        z[:] = ahead
        _distances(points, z, d)
    n = d.shape[0]
    for i in range(n):  # the median distance by ranks, as in the package: a sort of so few costs the same
        w[i] = d[i]
    w.sort()
    smoothing = max(F32(1e-4) * (w[(n - 1) // 2] + w[n // 2]) * F32(0.5), F32(1e-30))
    for _ in range(iterations):
        _distances(points, z, d)
        total = F32(0)
        for i in range(n):
            w[i] = F32(1) / max(smoothing, d[i])
            total += w[i]
        for i in range(n):
            w[i] /= total
        _mean(points, w, z)


@nb.njit(**_INLINE)
def invert(a):
    """Gauss and Jordan in place, without a choice of pivots."""
    for k in range(a.shape[0]):
        pivot = F32(1) / a[k, k]
        for j in range(a.shape[0]):
            a[k, j] = pivot if j == k else a[k, j] * pivot
        for i in range(a.shape[0]):
            if i != k:
                factor = a[i, k]
                for j in range(a.shape[0]):
                    a[i, j] = -factor * pivot if j == k else a[i, j] - factor * a[k, j]


@cache
def _loop(agents, arms, dim):
    columns, packed = agents * arms, dim * (dim + 1) // 2

    @nb.njit(**_LOOP)
    def loop(ridge, radius, noise_scale, horizon, window, iterations, lanes, seed):
        regret = np.zeros(lanes)
        level_of_theta, root = F32(0.6 / math.sqrt(dim)), F32(math.sqrt(2))
        for lane in nb.prange(lanes):
            s0, s1 = _seeded(seed, lane)
            key, noise_key = U32(s0 >> U64(32)), U32(s1 >> U64(32))
            x, z, index = np.empty((dim, columns), F32), np.empty(columns, F32), np.empty(columns, F32)
            width, square, mean = np.empty(columns, F32), np.empty(columns, F32), np.empty(columns, F32)
            gram, vector = np.zeros((packed, agents), F32), np.zeros((dim, agents), F32)
            w_gram, w_vector = np.full(agents, F32(1 / agents)), np.full(agents, F32(1 / agents))
            z_gram, z_vector = np.zeros(packed, F32), np.zeros(dim, F32)
            d, ahead_gram, ahead_vector = np.empty(agents, F32), np.empty(packed, F32), np.empty(dim, F32)
            inverse, theta = np.zeros((dim, dim), F32), np.zeros(dim, F32)
            total, k = 0.0, 0
            for t in range(horizon):
                if t % window == 0:
                    if k > 0:
                        _weiszfeld(gram, w_gram, z_gram, iterations, d, ahead_gram)
                        _weiszfeld(vector, w_vector, z_vector, iterations, d, ahead_vector)
                    p = 0
                    for i in range(dim):
                        for j in range(i, dim):
                            inverse[i, j] = inverse[j, i] = z_gram[p] if i == j else z_gram[p] / root
                            p += 1
                        inverse[i, i] += ridge[k]
                    invert(inverse)
                    for i in range(dim):
                        theta[i] = F32(0)
                        for j in range(dim):
                            theta[i] += inverse[i, j] * z_vector[j]
                    beta = radius[k]
                    k += 1
                row = key + U32(t) * U32(0x85EBCA6B)
                for c in range(columns):
                    square[c], mean[c], width[c], index[c] = F32(0), F32(0), F32(0), F32(0)
                for j in range(dim):
                    line = _hash32(row + U32(j) * U32(0xC2B2AE35))
                    for c in range(columns):
                        x[j, c] = _normal(_hash32(U32(line + U32(c) * U32(0x9E3779B9))))
                for j in range(dim):
                    for c in range(columns):
                        square[c] += x[j, c] * x[j, c]
                for c in range(columns):
                    square[c] = F32(1) / math.sqrt(square[c])
                for j in range(dim):
                    for c in range(columns):
                        x[j, c] *= square[c]
                for i in range(dim):
                    for c in range(columns):
                        z[c] = inverse[i, 0] * x[0, c]
                    for j in range(1, dim):
                        for c in range(columns):
                            z[c] += inverse[i, j] * x[j, c]
                    for c in range(columns):
                        width[c] += z[c] * x[i, c]
                        index[c] += theta[i] * x[i, c]
                        mean[c] += level_of_theta * x[i, c]
                for c in range(columns):
                    index[c] += beta * math.sqrt(max(width[c], F32(0)))
                for n in range(agents):
                    a, best = n * arms, mean[n * arms]
                    for c in range(n * arms + 1, (n + 1) * arms):
                        a = c if index[c] > index[a] else a
                        best = max(best, mean[c])
                    eta = _normal(_hash32(U32(noise_key + U32(t * agents + n) * U32(0x9E3779B9))))
                    reward = mean[a] + noise_scale * eta
                    total += best - mean[a]
                    p = 0
                    for i in range(dim):
                        vector[i, n] += x[i, a] * reward
                        for j in range(i, dim):
                            gram[p, n] += x[i, a] * x[j, a] if i == j else root * x[i, a] * x[j, a]
                            p += 1
            regret[lane] = total
        return regret

    return loop


def byzantine_ucb(agents, arms, dim, ridge, radius, noise_scale, horizon, window, iterations, lanes, seed):
    """Final regret [lanes], over all agents; ridge, radius: lambda_k and beta_k of every episode."""
    numbers = np.asarray(ridge, F32), np.asarray(radius, F32), F32(noise_scale)
    return _loop(agents, arms, dim)(*numbers, horizon, window, iterations, lanes, seed)
