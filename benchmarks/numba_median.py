"""Weiszfeld's iterations for many small problems: what a careful programmer gets from Numba on one core.

Problem after problem in float32, the points of one in the first-level cache, coordinates a compile-time length so
that the inner loops become vector instructions (reductions reordered: fastmath). The result is certified, and put on
a data point that is the median, as `geometric_median` does.
"""

import math

import numba as nb
import numpy as np

F32 = np.float32
_LOOP = {"fastmath": True, "cache": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}


def compiled(num_points: int, dim: int):
    """(points [B, N, p], iterations, robust) -> values [B, p], certified gaps [B];
    robust: start at the coordinatewise median.
    """
    N, P, share = num_points, dim, F32(1 / num_points)

    @nb.njit(**_LOOP)
    def norm(x):
        total = F32(0)
        for j in range(P):
            total += x[j] * x[j]
        return math.sqrt(total)

    @nb.njit(**_LOOP)
    def certified(x, z, smoothing, units, reach):
        near, least = 0, F32(np.inf)
        for i in range(N):
            total = F32(0)
            for j in range(P):
                away = z[j] - x[i, j]
                units[i, j] = away
                total += away * away
            reach[i] = math.sqrt(total)
            if reach[i] < least:
                near, least = i, reach[i]
        rest, mean = np.zeros(P, F32), np.zeros(P, F32)
        for i in range(N):
            scale = share / max(smoothing, reach[i])
            if i != near:
                for j in range(P):
                    rest[j] += scale * units[i, j]
        pull = norm(rest)
        own = F32(-1) / max(share, pull)
        for j in range(P):
            mean[j] = rest[j] + share * own * rest[j]
        first, most = F32(0), F32(1)
        slope = F32(0)
        for i in range(N):
            scale = F32(1) / max(smoothing, reach[i])
            size, along = F32(0), F32(0)
            for j in range(P):
                u = (own * rest[j] if i == near else scale * units[i, j]) - mean[j]
                size += u * u
                along += u * units[i, j]
            most = max(most, math.sqrt(size))
            slope += along
        for i in range(N):
            first += reach[i]
        gap = share * (first - slope / most)
        for j in range(P):
            mean[j] = rest[j] + (share / least * units[near, j] if least > 0 else F32(0))
        subgradient, farthest = norm(mean), F32(np.inf)
        if least == 0:
            subgradient = max(subgradient - share, F32(0))
        ordered, total = np.sort(reach), F32(0)
        for i in range(N):
            total += ordered[i]
            if 2 * (i + 1) > N:
                farthest = min(farthest, 2 * total / F32(2 * (i + 1) - N))
        return max(min(gap, subgradient * farthest), F32(0)), near

    @nb.njit(**_LOOP)
    def snaps(x, near, rest):
        rest[:] = 0
        copies = 0
        for i in range(N):
            total = F32(0)
            for j in range(P):
                total += (x[near, j] - x[i, j]) ** 2
            if total > 0:
                scale = F32(1) / math.sqrt(total)
                for j in range(P):
                    rest[j] += scale * (x[near, j] - x[i, j])
            else:
                copies += 1
        return norm(rest) <= copies

    @nb.njit(**_LOOP)
    def solve(points, iterations, robust):
        values, gaps = np.empty((len(points), P), F32), np.empty(len(points), F32)
        z, new, column = np.empty(P, F32), np.empty(P, F32), np.empty(N, F32)
        units, reach = np.empty((N, P), F32), np.empty(N, F32)
        for b in range(len(points)):
            x = points[b]
            z[:] = 0
            for i in range(N):
                for j in range(P):
                    z[j] += share * x[i, j]
            if robust:
                for j in range(P):
                    for i in range(N):  # sorting in place: twenty numbers are few
                        value, k = x[i, j], i
                        while k > 0 and column[k - 1] > value:
                            column[k] = column[k - 1]
                            k -= 1
                        column[k] = value
                    z[j] = (column[(N - 1) // 2] + column[N // 2]) / 2
            for i in range(N):
                total = F32(0)
                for j in range(P):
                    total += (x[i, j] - z[j]) ** 2
                column[i] = math.sqrt(total)
            smoothing = F32(1e-4) * np.sort(column)[N // 2]
            for _ in range(iterations):
                new[:] = 0
                mass = F32(0)
                for i in range(N):
                    total = F32(0)
                    for j in range(P):
                        total += (x[i, j] - z[j]) ** 2
                    pull = F32(1) / max(smoothing, math.sqrt(total))
                    mass += pull
                    for j in range(P):
                        new[j] += pull * x[i, j]
                for j in range(P):
                    z[j] = new[j] / mass
            gap, near = certified(x, z, smoothing, units, reach)
            if snaps(x, near, new):
                z[:] = x[near]
                gap, near = certified(x, z, smoothing, units, reach)
            values[b], gaps[b] = z, gap
        return values, gaps

    return solve
