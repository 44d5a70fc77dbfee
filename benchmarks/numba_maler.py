"""Maler: what a careful programmer gets from Numba on one core.

The updates of `learners.maler`, one lane after another, float32.

The same units (unit ball, gradients over their bound), rank-one updates of the inverses, and 8 Newton steps by
Cholesky factors only for the experts that leave the ball. Experts are the inner, vectorised index; dimension and
number of pairs are compile-time constants. The loss is noisy linear regression, its draws from a cheap counter that
both sides share.
"""

import math
from functools import cache

import numba as nb
import numpy as np
from numba_loops import F32, U32

_LOOP = {"fastmath": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}
CURVATURE = F32(25 / 56)
ONE, C2, C3, C4, C5, C6 = (F32(1 / math.factorial(k)) for k in (1, 2, 3, 4, 5, 6))


@cache
def compiled(dim: int, pairs: int):
    """(seeds [lanes] uint32, theta [d], plays, horizon, G) -> last predictions [lanes, d],
    share of steps that left the ball.
    """
    D, N = dim, pairs

    @nb.njit(**_LOOP)
    def projected(y, inverse, low, scale, x, z):
        """y [d] outside the unit ball becomes its projection; inverse [d, d]."""
        m = F32(0)
        for step in range(9):
            for j in range(D):
                pivot = F32(1) + m * inverse[j, j]
                for k in range(j):
                    pivot -= low[j, k] * low[j, k]
                scale[j] = F32(1) / math.sqrt(pivot)
                for i in range(j + 1, D):
                    entry = m * inverse[i, j]
                    for k in range(j):
                        entry -= low[i, k] * low[j, k]
                    low[i, j] = entry * scale[j]
            for i in range(D):
                value = y[i]
                for k in range(i):
                    value -= low[i, k] * x[k]
                x[i] = value * scale[i]
            for i in range(D - 1, -1, -1):
                value = x[i]
                for k in range(i + 1, D):
                    value -= low[k, i] * x[k]
                x[i] = value * scale[i]
            square = F32(0)
            for i in range(D):
                square += x[i] * x[i]
            if step == 8:
                clip = F32(1) / max(math.sqrt(square), F32(1))
                for i in range(D):
                    y[i] = x[i] * clip
                return
            slope = F32(0)
            for i in range(D):
                z[i] = F32(0)
                for k in range(D):
                    z[i] += inverse[i, k] * x[k]
            for i in range(D):
                for k in range(i):
                    z[i] -= low[i, k] * z[k]
                    x[i] -= low[i, k] * x[k]
                z[i] *= scale[i]
                x[i] *= scale[i]
                slope += x[i] * z[i]
            m += max(square / slope * (math.sqrt(square) - F32(1)), F32(0))

    @nb.njit(**_LOOP)
    def loop(seeds, theta, plays, horizon, bound):
        found, left = np.zeros((len(seeds), D), F32), 0
        a, tilt = np.empty(N, F32), F32(0.25) / F32(math.sqrt(horizon))
        for i in range(N):
            a[i] = F32(0.1) * F32(2.0) ** -i
        g, x, z, y, scale = np.empty(D, F32), np.empty(D, F32), np.empty(D, F32), np.empty(D, F32), np.empty(D, F32)
        low, own = np.zeros((D, D), F32), np.empty((D, D), F32)
        prediction, convex = np.empty(D, F32), np.empty(D, F32)
        strong, newton, v = np.empty((D, N), F32), np.empty((D, N), F32), np.empty((D, N), F32)
        inverse, weights = np.empty((D, D, N), F32), np.empty(2 * N + 1, F32)
        logs, gap, far, along = np.empty(2 * N + 1, F32), np.empty(N, F32), np.empty(N, F32), np.empty(N, F32)
        bits = np.empty(2 * N + 1, np.int32)
        powers = bits.view(np.float32)
        for lane in range(len(seeds)):
            h = seeds[lane]
            prediction[:], convex[:], strong[:], newton[:], inverse[:] = 0, 0, 0, 0, 0
            for j in range(D):
                for i in range(N):
                    inverse[j, j, i] = F32(4) * CURVATURE * CURVATURE
            logs[0] = -math.log(3)
            for i in range(N):
                logs[1 + i] = logs[1 + N + i] = math.log((1 + 1 / N) / (3 * (i + 1) * (i + 2)))
            for t in range(1, plays + 1):
                # gradient of (<x, theta_t> - y)^2, clipped
                h = U32(h * U32(1664525) + U32(1013904223))
                error = F32((h >> U32(3 * D)) & U32(1023)) * F32(1 / 512) - F32(1)
                for j in range(D):
                    x[j] = F32((h >> U32(3 * j)) & U32(1023)) * F32(1 / 170) - F32(3)
                    error += x[j] * (prediction[j] - theta[j])
                size = F32(0)
                for j in range(D):
                    g[j] = F32(2) * x[j] * error
                    size += g[j] * g[j]
                clip = min(F32(1), bound / max(math.sqrt(size), F32(1e-30))) / bound
                for j in range(D):
                    g[j] *= clip

                regret = F32(0)
                gap[:], far[:] = 0, 0
                for j in range(D):
                    regret += (prediction[j] - convex[j]) * g[j]
                    for i in range(N):
                        away = prediction[j] - strong[j, i]
                        gap[i] += away * g[j]
                        far[i] += away * away
                logs[0] -= F32(4) * tilt * tilt - tilt * regret
                for i in range(N):
                    logs[1 + i] -= a[i] * (a[i] * far[i] - gap[i])
                gap[:] = 0
                for j in range(D):
                    for i in range(N):
                        gap[i] += (prediction[j] - newton[j, i]) * g[j]
                for i in range(N):
                    logs[1 + N + i] -= a[i] * gap[i] * (a[i] * gap[i] - F32(1))

                rate, norm = F32(2) / math.sqrt(F32(t)), F32(0)
                for j in range(D):
                    convex[j] -= rate * g[j]
                    norm += convex[j] * convex[j]
                norm = F32(1) / max(math.sqrt(norm), F32(1))
                for j in range(D):
                    convex[j] *= norm
                rate = F32(1) / F32(t)
                far[:] = 0
                for j in range(D):
                    for i in range(N):
                        strong[j, i] += (prediction[j] - strong[j, i] - g[j] / (F32(2) * a[i])) * rate
                        far[i] += strong[j, i] * strong[j, i]
                for i in range(N):
                    far[i] = F32(1) / max(math.sqrt(far[i]), F32(1))
                for j in range(D):
                    for i in range(N):
                        strong[j, i] *= far[i]

                along[:] = 0
                for j in range(D):
                    for i in range(N):
                        total = F32(0)
                        for k in range(D):
                            total += (inverse[j, k, i] if k <= j else inverse[k, j, i]) * g[k]
                        v[j, i] = total * a[i] * (F32(1) - F32(2) * a[i] * gap[i])
                        along[i] += v[j, i] * g[j]
                for i in range(N):
                    along[i] = F32(1) / (F32(1) + along[i] * a[i] * (F32(1) - F32(2) * a[i] * gap[i]))
                for j in range(D):
                    for k in range(j + 1):
                        for i in range(N):
                            inverse[j, k, i] -= v[j, i] * v[k, i] * along[i]
                far[:] = 0
                for j in range(D):
                    for i in range(N):
                        newton[j, i] -= v[j, i] * along[i] / CURVATURE
                        far[i] += newton[j, i] * newton[j, i]
                for i in range(N):
                    if far[i] > F32(1):
                        left += 1
                        for j in range(D):
                            y[j] = newton[j, i]
                            for k in range(D):
                                own[j, k] = inverse[max(j, k), min(j, k), i]
                        projected(y, own, low, scale, x, z)
                        for j in range(D):
                            newton[j, i] = y[j]

                total = F32(0)
                for i in range(2 * N + 1):  # exponentials by hand: the library's is not vectorised
                    value = max(logs[i], F32(-87))
                    whole = np.floor(value * F32(1.4426950) + F32(0.5))
                    r = (value - whole * F32(0.693359375)) + whole * F32(2.12194440e-4)
                    weights[i] = ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * C6)))))
                    bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)
                for i in range(2 * N + 1):
                    weights[i] *= powers[i]
                    total += weights[i]
                total = math.log(total)
                for i in range(2 * N + 1):
                    logs[i] -= total
                weights[0] *= tilt
                total = weights[0]
                for i in range(N):
                    weights[1 + i] *= a[i]
                    weights[1 + N + i] *= a[i]
                    total += weights[1 + i] + weights[1 + N + i]
                for j in range(D):
                    mean = weights[0] * convex[j]
                    for i in range(N):
                        mean += weights[1 + i] * strong[j, i] + weights[1 + N + i] * newton[j, i]
                    prediction[j] = mean / total
            found[lane] = prediction
        return found, left / (len(seeds) * plays * N)

    return loop
