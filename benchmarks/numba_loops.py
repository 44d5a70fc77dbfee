"""Reference loops for the speed figures: what a careful programmer gets from Numba on one core.

Each loop runs one lane after another (`lanes` may be spread over threads: `numba.set_num_threads`), with the same
algorithm and environment as the package, a fast sequential generator (xoroshiro128+, Blackman and Vigna 2018) in
place of addressed draws, and the final expected regret as its only result. Compiled with `fastmath`; contraction and
reordering are allowed.

    python benchmarks/numba_loops.py [LANES]      rates, one line a loop
"""

import math
import sys
import time
from functools import cache

import numba as nb
import numpy as np

_LOOP = {"parallel": True, "fastmath": True}
_INLINE = {"inline": "always", "fastmath": True}
U32, U64, F32 = np.uint32, np.uint64, np.float32


@nb.njit(**_INLINE)
def _mix64(x):
    """SplitMix64's output function (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


@nb.njit(**_INLINE)
def _seeded(seed, lane):
    """Two words of generator state for a lane."""
    x = U64(seed) * U64(0xD1342543DE82EF95) + (U64(lane) + U64(1)) * U64(0x9E3779B97F4A7C15)
    return _mix64(x), _mix64(x + U64(0x6A09E667F3BCC909)) | U64(1)


@nb.njit(**_INLINE)
def _advanced(s0, s1):
    """The next state of xoroshiro128+; its output is the sum of the two words before."""
    s1 ^= s0
    return ((s0 << U64(24)) | (s0 >> U64(40))) ^ s1 ^ (s1 << U64(16)), (s1 << U64(37)) | (s1 >> U64(27))


@cache
def _ucb1(arms):
    """The loop for a number of arms fixed at compilation, as in JAX: twice as fast as a loop of unknown length."""

    @nb.njit(**_LOOP)
    def loop(means, bonus, lanes, seed):
        horizon, best = bonus.shape[0], means.max()
        regret = np.zeros(lanes)
        for lane in nb.prange(lanes):
            s0, s1 = _seeded(seed, lane)
            total, mean, width = np.zeros(arms, F32), np.zeros(arms, F32), np.ones(arms, F32)
            pulls = np.zeros(arms, F32)
            for t in range(horizon):
                a = t
                if t >= arms:
                    a, top = 0, mean[0] + bonus[t] * width[0]
                    for k in range(1, arms):  # without branches: which arm leads is hard to predict
                        index = mean[k] + bonus[t] * width[k]
                        a = k if index > top else a
                        top = max(top, index)
                uniform = F32((s0 + s1) >> U64(40)) * F32(2.0**-24)
                s0, s1 = _advanced(s0, s1)
                total[a] += F32(1) if uniform < means[a] else F32(0)
                pulls[a] += F32(1)
                inverse = F32(1) / pulls[a]
                mean[a] = total[a] * inverse
                width[a] = math.sqrt(inverse)
            for k in range(arms):
                regret[lane] += pulls[k] * (best - means[k])
        return regret

    return loop


@nb.njit(**_LOOP)
def _ucb1_any(means, bonus, lanes, seed):
    """The loop a careful programmer writes first: any number of arms, a branch where an arm leads."""
    arms, horizon, best = means.shape[0], bonus.shape[0], means.max()
    regret = np.zeros(lanes)
    for lane in nb.prange(lanes):
        s0, s1 = _seeded(seed, lane)
        total, mean, width = np.zeros(arms, F32), np.zeros(arms, F32), np.ones(arms, F32)
        pulls = np.zeros(arms, F32)
        for t in range(horizon):
            a = t
            if t >= arms:
                a, top = 0, mean[0] + bonus[t] * width[0]
                for k in range(1, arms):
                    index = mean[k] + bonus[t] * width[k]
                    if index > top:
                        top = index
                        a = k
            uniform = F32((s0 + s1) >> U64(40)) * F32(2.0**-24)
            s0, s1 = _advanced(s0, s1)
            if uniform < means[a]:
                total[a] += F32(1)
            pulls[a] += F32(1)
            inverse = F32(1) / pulls[a]
            mean[a] = total[a] * inverse
            width[a] = math.sqrt(inverse)
        for k in range(arms):
            regret[lane] += pulls[k] * (best - means[k])
    return regret


def ucb1_any(means, horizon, lanes, seed):
    """`ucb1` with the number of arms known only at run time: half as fast."""
    bonus = np.sqrt(2 * np.log(np.arange(1, horizon + 1))).astype(F32)
    return _ucb1_any(np.asarray(means, F32), bonus, lanes, seed)


def ucb1(means, horizon, lanes, seed):
    """UCB1 on Bernoulli arms: each arm once in index order, then argmax of mean + sqrt(2 log t / N), t the coming play.

    `means` [K] in [0, 1]. Float32, ties to the lowest index, sqrt(2 log t) from a table, 1 / sqrt(N) kept per arm.
    Returns the final pseudo-regret [lanes], float64.
    """
    bonus = np.sqrt(2 * np.log(np.arange(1, horizon + 1))).astype(F32)
    return _ucb1(len(means))(np.asarray(means, F32), bonus, lanes, seed)


@nb.njit(**_LOOP)
def _exp3(means, mixing, horizon, lanes, seed):
    arms, best = means.shape[0], means.max()
    regret = np.zeros(lanes)
    share = mixing / arms
    for lane in nb.prange(lanes):
        s0, s1 = _seeded(seed, lane)
        weight, pulls = np.ones(arms), np.zeros(arms, np.int64)
        total = float(arms)
        for _ in range(horizon):
            word = s0 + s1
            s0, s1 = _advanced(s0, s1)
            choice = F32(word >> U64(40)) * F32(2.0**-24)  # 24 bits choose, the next 24 decide the reward
            coin = F32((word >> U64(16)) & U64(0xFFFFFF)) * F32(2.0**-24)
            a = arms - 1
            if choice < mixing:
                a = min(int(choice / share), arms - 1)
            else:
                left = (choice - mixing) / (1 - mixing) * total
                for k in range(arms - 1):
                    left -= weight[k]
                    if left < 0:
                        a = k
                        break
            if coin < means[a]:
                p = (1 - mixing) * weight[a] / total + share
                grown = weight[a] * math.exp(share / p)
                total += grown - weight[a]
                weight[a] = grown
                if total > 1e200:
                    scale, total = 1 / total, 0.0
                    for k in range(arms):
                        weight[k] *= scale
                        total += weight[k]
            pulls[a] += 1
        for k in range(arms):
            regret[lane] += pulls[k] * (best - means[k])
    return regret


def exp3(means, horizon, lanes, seed):
    """EXP3 on Bernoulli arms, the classic form with gains (Auer, Cesa-Bianchi, Freund and Schapire 2002, Figure 1).

    p_k = (1 - g) w_k / sum(w) + g / K, played arm a; w_a *= exp(g x / (K p_a)) for its gain x in {0, 1}; mixing
    g = min(1, sqrt(K log K / ((e - 1) horizon))), their Corollary 3.2 with the bound `horizon` on the best gain.
    Float64 weights; the mixture is sampled as a coin for "uniform arm" and otherwise by inverse CDF over the weights.
    Returns the final pseudo-regret [lanes], float64.
    """
    means = np.asarray(means, F32)
    mixing = min(1.0, math.sqrt(len(means) * math.log(len(means)) / ((math.e - 1) * horizon)))
    return _exp3(means, mixing, horizon, lanes, seed)


@nb.njit(**_INLINE)
def _hash32(x):
    """A 32-bit integer hash of low bias (Wellons 2018, `lowbias32`): a generator that vectorises over a counter."""
    x = U32(U32(x ^ (x >> U32(16))) * U32(0x7FEB352D))  # Numba widens integers: each product is cut back
    x = U32(U32(x ^ (x >> U32(15))) * U32(0x846CA68B))
    return U32(x ^ (x >> U32(16)))


@nb.njit(**_INLINE)
def log(y):
    """The logarithm of a positive normal number, by Cephes' polynomial."""
    word = F32(y).view(np.int32)
    exponent = F32(np.int32(np.int32(word >> np.int32(23)) - np.int32(126)))
    m = np.int32((word & np.int32(0x7FFFFF)) | np.int32(0x3F000000)).view(F32)  # in [1/2, 1)
    small = m < F32(0.70710678)
    exponent = exponent - F32(1) if small else exponent
    m = (m + m if small else m) - F32(1)
    p = F32(7.0376836292e-2)
    p = p * m - F32(1.1514610310e-1)
    p = p * m + F32(1.1676998740e-1)
    p = p * m - F32(1.2420140846e-1)
    p = p * m + F32(1.4249322787e-1)
    p = p * m - F32(1.6668057665e-1)
    p = p * m + F32(2.0000714765e-1)
    p = p * m - F32(2.4999993993e-1)
    p = p * m + F32(3.3333331174e-1)
    square = m * m
    return m + (p * m * square - F32(0.5) * square) + exponent * F32(0.69314718056)


@nb.njit(**_INLINE)
def _normal(bits):
    """A standard normal by Giles's (2012) single-precision inverse error function."""
    x = (F32(np.int32(bits >> U32(9))) + F32(0.5)) * F32(2.0**-22) - F32(1)
    w = -log((F32(1) - x) * (F32(1) + x))  # of a number in (2^-23, 1]
    near, far = w - F32(2.5), math.sqrt(w) - F32(3)
    a = F32(2.81022636e-08)
    a = a * near + F32(3.43273939e-07)
    a = a * near - F32(3.5233877e-06)
    a = a * near - F32(4.39150654e-06)
    a = a * near + F32(0.00021858087)
    a = a * near - F32(0.00125372503)
    a = a * near - F32(0.00417768164)
    a = a * near + F32(0.246640727)
    a = a * near + F32(1.50140941)
    b = F32(-0.000200214257)
    b = b * far + F32(0.000100950558)
    b = b * far + F32(0.00134934322)
    b = b * far - F32(0.00367342844)
    b = b * far + F32(0.00573950773)
    b = b * far - F32(0.0076224613)
    b = b * far + F32(0.00943887047)
    b = b * far + F32(1.00167406)
    b = b * far + F32(2.83297682)
    return F32(1.41421356) * x * (a if w < F32(5) else b)


def main(lanes):
    means = np.linspace(0.1, 0.9, 10)
    cases = {
        "ucb1": (10_000, lanes, lambda horizon, n: ucb1(means, horizon, n, 0)),
        "exp3": (10_000, lanes, lambda horizon, n: exp3(means, horizon, n, 0)),
    }
    for name, (horizon, count, run) in cases.items():
        count = max(count, nb.get_num_threads())
        start = time.perf_counter()
        run(horizon, nb.get_num_threads())
        compiled, seconds = time.perf_counter() - start, math.inf
        for _ in range(3):
            start = time.perf_counter()
            regret = run(horizon, count)
            seconds = min(seconds, time.perf_counter() - start)
        error = regret.std() / math.sqrt(count)
        print(
            f"{name:14s} {horizon * count / seconds:.3g} plays/s on {nb.get_num_threads()} threads, {count} lanes, "
            f"horizon {horizon}; regret {regret.mean():.1f} +- {error:.1f}; first call {compiled:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
