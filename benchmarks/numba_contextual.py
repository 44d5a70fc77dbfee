"""LinUCB on contextual linear Bernoulli arms, by hand: what a careful programmer gets from Numba on one core.

One lane after another, float32 for what is computed per arm, shapes fixed at compilation, one short loop a step so
that each vectorises. Features and theta are (u / sqrt 2, 1 / sqrt 2), u uniform on the unit sphere of dim - 1
dimensions, so means lie in [0, 1]. Fixed arms: every arm's width and score follow by rank-one updates. Redrawn arms,
three generators: "circles" (dim = 5): two 32-bit hashes of a counter an arm, two circles of squared radii u and 1 -
u, sines by Taylor series: vectors, no table; "normals": a hash and Giles's inverse error function a coordinate,
vectors too; "ziggurat": Marsaglia and Tsang's (2000) table of 256 layers with xoroshiro128+, one number after
another.
"""

import math
from functools import cache

import numba as nb
import numpy as np
from numba_byzantine import invert
from numba_loops import _INLINE, _LOOP, F32, U32, U64, _advanced, _hash32, _normal, _seeded

GENERATORS = ("circles", "normals", "ziggurat")


def _layers(number: int = 256):
    """Edges x_i and heights f(x_i) of a ziggurat of equal areas under exp(-x^2 / 2), the lowest layer with the tail."""
    edge, area = 3.6541528853610088, 0.00492867323399
    x = np.empty(number + 1)
    x[0], x[1] = area / math.exp(-0.5 * edge * edge), edge
    for i in range(2, number):
        x[i] = math.sqrt(-2 * math.log(area / x[i - 1] + math.exp(-0.5 * x[i - 1] ** 2)))
    x[number] = 0.0
    return x.astype(F32), np.exp(-0.5 * x * x).astype(F32)


_EDGES, _HEIGHTS = _layers()


@nb.njit(fastmath=True)
def _unit(word):
    """(0, 1) from the upper 24 bits."""
    return (F32(word >> U64(40)) + F32(0.5)) * F32(2.0**-24)


@nb.njit(fastmath=True)
def _ziggurat(s0, s1):
    """A standard normal and the next state."""
    while True:
        word = s0 + s1
        s0, s1 = _advanced(s0, s1)
        layer = np.int64((word >> U64(8)) & U64(255))  # not the lowest bits, which are weak
        x = (F32(np.int32(word >> U64(33))) * F32(2.0**-30) - F32(1)) * _EDGES[layer]
        if abs(x) < _EDGES[layer + 1]:
            return x, s0, s1
        if layer == 0:
            while True:
                a = -math.log(_unit(s0 + s1)) / _EDGES[1]
                s0, s1 = _advanced(s0, s1)
                b = -math.log(_unit(s0 + s1))
                s0, s1 = _advanced(s0, s1)
                if b + b > a * a:
                    return (F32(_EDGES[1] + a) if x > 0 else -F32(_EDGES[1] + a)), s0, s1
        low, high = _HEIGHTS[layer], _HEIGHTS[layer + 1]
        u = _unit(s0 + s1)
        s0, s1 = _advanced(s0, s1)
        if low + u * (high - low) < math.exp(F32(-0.5) * x * x):
            return x, s0, s1


@nb.njit(**_INLINE)
def _on_circle(bits):
    """(cos, sin) of an angle: 30 bits within an eighth of a turn of an axis, by Taylor series;
    two bits for the axis.
    """
    angle = F32(np.int32(U32(bits << U32(2)))) * F32(math.pi / 4 * 2.0**-31)
    square = -angle * angle
    sine = angle * (F32(1) + square * (F32(1 / 6) + square * (F32(1 / 120) + square * F32(1 / 5040))))
    cosine = F32(1) + square * (F32(1 / 2) + square * (F32(1 / 24) + square * (F32(1 / 720) + square * F32(1 / 40320))))
    cosine = -cosine if bits & U32(1 << 30) else cosine
    across = bits & U32(1 << 31)
    return (sine if across else cosine), (cosine if across else sine)


@cache
def _features(arms, dim, generator):
    """Write `arms` features into x [dim, arms] from a key and the state of xoroshiro128+, which is given back."""
    half = F32(math.sqrt(0.5))
    if generator not in GENERATORS:
        raise ValueError(f"generator = {generator!r} must be one of {GENERATORS}")
    if generator == "circles" and dim != 5:
        raise ValueError(f"generator = 'circles' draws in four dimensions: dim = {dim} must be 5")

    @nb.njit(fastmath=True)
    def normalised(x):
        for k in range(arms):
            square = F32(0)
            for j in range(dim - 1):
                square += x[j, k] * x[j, k]
            scale = half / math.sqrt(square)
            for j in range(dim - 1):
                x[j, k] *= scale

    @nb.njit(fastmath=True)
    def circles(x, key, s0, s1):
        other = U32(_hash32(U32(key + U32(1))))
        for k in range(arms):
            low = _hash32(U32(key + U32(k) * U32(0x9E3779B9)))
            high = _hash32(U32(other + U32(k) * U32(0x9E3779B9)))
            bits = U32(U32(low << U32(21)) | U32(U32(high & U32(2047)) << U32(10)))
            share = (F32(np.int32(bits >> U32(9))) + F32(0.5)) * F32(2.0**-23)
            inner, outer = half * math.sqrt(share), half * math.sqrt(F32(1) - share)
            c, s = _on_circle(U32(low & U32(0xFFFFF800)))
            x[0, k], x[1, k] = inner * c, inner * s
            c, s = _on_circle(U32(high & U32(0xFFFFF800)))
            x[2, k], x[3, k] = outer * c, outer * s
        return s0, s1

    @nb.njit(fastmath=True)
    def normals(x, key, s0, s1):
        for j in range(dim - 1):
            row = U32(_hash32(U32(key + U32(j))))
            for k in range(arms):
                x[j, k] = _normal(_hash32(U32(row + U32(k) * U32(0x9E3779B9))))
        normalised(x)
        return s0, s1

    @nb.njit(fastmath=True)
    def ziggurat(x, key, s0, s1):
        for j in range(dim - 1):
            for k in range(arms):
                x[j, k], s0, s1 = _ziggurat(s0, s1)
        normalised(x)
        return s0, s1

    return {"circles": circles, "normals": normals, "ziggurat": ziggurat}[generator]


@nb.njit(**_INLINE)
def _lowest(index, top, arms):
    a = np.int32(arms)
    for k in range(arms):
        a = min(a, np.int32(k) if index[k] == top else np.int32(arms))
    return a


@cache
def _linucb(arms, dim, redraw, generator):
    """The loop for shapes fixed at compilation.

    P and the estimate are kept in float64, what is computed per arm in float32.
    """
    draw, half = _features(arms, dim, generator), F32(math.sqrt(0.5))
    draw_theta = _features(1, dim, "normals")

    @nb.njit(**_LOOP)
    def loop(horizon, width, ridge, lanes, seed):
        regret = np.zeros(lanes)
        for lane in nb.prange(lanes):
            s0, s1 = _seeded(seed, lane)
            x, theta = np.full((dim, arms), half), np.full((dim, 1), half)
            variance, score, index = np.empty(arms, F32), np.zeros(arms, F32), np.empty(arms, F32)
            mean = np.zeros(arms, F32)
            inverse, estimate, v = np.eye(dim) / ridge, np.zeros(dim), np.zeros(dim)
            p, u = np.empty((dim, dim), F32), np.zeros(dim, F32)
            key, other = U32(s0 >> U64(32)), U32(s0)
            draw_theta(theta, other, s0, s1)
            s0, s1 = draw(x, key, s0, s1)
            key = U32(s1 >> U64(32))
            gain, shrink, best, total = F32(0), F32(0), F32(0), 0.0
            refresh = 1
            for t in range(1, horizon + 1):
                if redraw or t == refresh:  # widths and scores from P; fixed arms follow by rank-one updates in between
                    refresh = 2 * t
                    if redraw:
                        s0, s1 = draw(x, U32(key + U32(t) * U32(0x85EBCA6B)), s0, s1)
                    for i in range(dim):
                        u[i] = F32(estimate[i])
                        for j in range(dim):
                            p[i, j] = F32(inverse[i, j] * (1 if i == j else 2))
                    best = F32(-1)
                    for k in range(arms):  # unrolled over features: in registers
                        q, s, m = F32(0), F32(0), F32(0)
                        for i in range(dim):
                            z = F32(0)
                            for j in range(i, dim):
                                z += p[i, j] * x[j, k]
                            q += z * x[i, k]
                            s += u[i] * x[i, k]
                            m += theta[i, 0] * x[i, k]
                        variance[k], score[k], mean[k] = q, s, m
                    for k in range(arms):
                        best = mean[k] if mean[k] > best else best
                else:
                    for k in range(arms):
                        z = F32(0)
                        for j in range(dim):
                            z += x[j, k] * u[j]
                        q = variance[k] - z * z * shrink
                        variance[k] = q if q > F32(0) else F32(0)
                        score[k] += z * gain
                for k in range(arms):
                    index[k] = score[k] + width * math.sqrt(max(variance[k], F32(0)))
                top = F32(-1e30)
                for k in range(arms):
                    top = index[k] if index[k] > top else top
                a = _lowest(index, top, arms)
                uniform = F32((s0 + s1) >> U64(40)) * F32(2.0**-24)
                s0, s1 = _advanced(s0, s1)
                reward = 1.0 if uniform < mean[a] else 0.0
                total += best - mean[a]
                spread, error = 1.0, reward
                for i in range(dim):
                    v[i] = 0.0
                    for j in range(dim):
                        v[i] += inverse[i, j] * x[j, a]
                    spread += v[i] * x[i, a]
                    error -= estimate[i] * x[i, a]
                scale = 1 / spread
                for i in range(dim):
                    u[i] = F32(v[i])
                    estimate[i] += v[i] * error * scale
                    for j in range(dim):
                        inverse[i, j] -= v[i] * v[j] * scale
                shrink, gain = F32(scale), F32(error * scale)
            regret[lane] = total
        return regret

    return loop


def linucb(num_arms, dim, horizon, lanes, seed, contexts="fixed", generator="circles", ridge=1e-4):
    """LinUCB: argmax of x'estimate + w sqrt(x'Px), P = (ridge I + sum x x')^-1,
    w that of the package's `reference` preset.

    `contexts`: "fixed" draws the arms once a lane, "redraw" every play by `generator`. With fixed arms widths and
    scores follow by rank-one updates and are computed anew whenever the play index has doubled. Ties go to the lowest
    index. Returns the final regret [lanes].
    """
    if contexts not in ("fixed", "redraw"):
        raise ValueError(f"contexts = {contexts!r} must be 'fixed' or 'redraw'")
    width = math.sqrt(dim) + 0.5 * math.sqrt(dim * math.log(horizon * (1 + horizon)))
    loop = _linucb(num_arms, dim, contexts == "redraw", generator)
    return loop(horizon, F32(width), float(ridge), lanes, seed)


@cache
def _ldp_linucb(arms, dim, generator):
    """The loop for redrawn arms and shapes fixed at compilation; the sums are kept in float64."""
    draw, half, entries = _features(arms, dim, generator), F32(math.sqrt(0.5)), dim * (dim + 1) // 2 + dim
    draw_theta = _features(1, dim, "normals")

    @nb.njit(**_LOOP)
    def loop(width, ridge, diagonal, off_diagonal, vector_scale, lanes, seed):
        horizon = width.shape[0]
        regret = np.zeros(lanes)
        for lane in nb.prange(lanes):
            s0, s1 = _seeded(seed, lane)
            x, theta = np.full((dim, arms), half), np.full((dim, 1), half)
            index, mean, noise = np.empty(arms, F32), np.empty(arms, F32), np.empty(entries, F32)
            gram, vector, inverse = np.zeros((dim, dim)), np.zeros(dim), np.zeros((dim, dim))
            p, u = np.empty((dim, dim), F32), np.zeros(dim, F32)
            draw_theta(theta, U32(s0), s0, s1)
            key, noise_key, total = U32(s0 >> U64(32)), U32(s1 >> U64(32)), 0.0
            for t in range(horizon):
                s0, s1 = draw(x, U32(key + U32(t) * U32(0x85EBCA6B)), s0, s1)
                for i in range(dim):
                    for j in range(dim):
                        inverse[i, j] = gram[i, j]
                    inverse[i, i] += ridge[t]
                invert(inverse)
                for i in range(dim):
                    u[i] = F32(0)
                    for j in range(dim):
                        u[i] += F32(inverse[i, j] * vector[j])
                        p[i, j] = F32(inverse[i, j] * (1 if i == j else 2))
                wide = width[t]
                for k in range(arms):  # unrolled over features: in registers
                    q, s, m = F32(0), F32(0), F32(0)
                    for i in range(dim):
                        z = F32(0)
                        for j in range(i, dim):
                            z += p[i, j] * x[j, k]
                        q += z * x[i, k]
                        s += u[i] * x[i, k]
                        m += theta[i, 0] * x[i, k]
                    q = q if q > F32(0) else F32(0)
                    index[k], mean[k] = s + wide * math.sqrt(q), m
                top, best = F32(-3e38), F32(-1)
                for k in range(arms):
                    top = index[k] if index[k] > top else top
                    best = mean[k] if mean[k] > best else best
                a = min(_lowest(index, top, arms), np.int32(arms - 1))
                uniform = F32((s0 + s1) >> U64(40)) * F32(2.0**-24)
                s0, s1 = _advanced(s0, s1)
                reward = 1.0 if uniform < mean[a] else 0.0
                total += best - mean[a]
                row = U32(_hash32(U32(noise_key + U32(t) * U32(0xC2B2AE35))))
                for k in range(entries):
                    noise[k] = _normal(_hash32(U32(row + U32(k) * U32(0x9E3779B9))))
                k = 0
                for i in range(dim):
                    for j in range(i, dim):
                        gram[i, j] += x[i, a] * x[j, a] + (diagonal if i == j else off_diagonal) * noise[k]
                        gram[j, i] = gram[i, j]
                        k += 1
                for i in range(dim):
                    vector[i] += x[i, a] * reward + vector_scale * noise[k + i]
            regret[lane] = total
        return regret

    return loop


def ldp_linucb(num_arms, dim, params, horizon, lanes, seed, generator="circles"):
    """LinUCB with local privacy on redrawn arms with the numbers of the package's `params`: noise on x x' and x y."""
    own, rule, t = params.statistics, params.selection, np.arange(1, horizon + 1)
    width = rule.base + rule.quartic * t**0.25 + rule.slope * np.sqrt(rule.offset + np.log1p(rule.growth * t))
    tables = (rule.radius_scale * width).astype(F32), own.ridge + own.ridge_root * np.sqrt(t)
    scales = float(own.diagonal), float(own.off_diagonal), float(own.vector)
    return _ldp_linucb(num_arms, dim, generator)(*tables, *scales, lanes, seed)
