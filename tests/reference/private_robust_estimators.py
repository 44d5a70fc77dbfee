"""Robust estimators, moments and pull counts: docs/formulas/private_robust_mab.md.

Estimators take what they are given: the rule for inf and NaN is the caller's, except where the estimator itself
rejects. Shares of N count as the integers they are but for rounding.
"""

import math

import numpy as np


def truncated_mean(x, clip):
    """(1/n) sum x_i 1{|x_i| <= M}: what is rejected counts in n. Summed exactly: equal data in another order tie."""
    kept = []
    for value in x:
        if abs(value) <= clip:
            kept.append(value)
    return math.fsum(kept) / len(x)


def bin_counts(x, edges, width):
    """How many fall into [e, e + width), the next edge closing it; inf, NaN and the rest nowhere."""
    ends = edges[1:] + [edges[-1] + width]
    return [sum(1 for value in x if e <= value < end) for e, end in zip(edges, ends, strict=True)]


def first_max(values):
    """Index of the maximum, the first on ties."""
    best = 0
    for a, value in enumerate(values):
        if value > values[best]:
            best = a
    return best


def histogram_mean(x, clip, mean_bound, bin_width, guard_bins=0):
    """Algorithm 3 without noise: (estimate, left edge of the fullest bin, the first on ties)."""
    n = len(x) // 2
    edges = [
        -mean_bound + (j - guard_bins) * bin_width
        for j in range(math.ceil(2 * mean_bound / bin_width - 1e-12) + 2 * guard_bins)
    ]
    J = edges[first_max(bin_counts(x[:n], edges, bin_width))]
    return J + truncated_mean([value - J for value in x[n : 2 * n]], clip), J


def falling_truncated_mean(x, bound, order, log):
    """Robust-UCB: the i-th sample of an arm is kept iff |x_i| <= (u i / log)^(1/order); N stays the divisor."""
    total = 0.0
    for i, value in enumerate(x, start=1):
        if abs(value) <= (bound * i / log) ** (1 / order):
            total += value
    return total / len(x)


def median_of_means(x, log):
    """max(1, floor(min(8 (1/8 + log), N/2))) blocks of floor(N / blocks) consecutive samples;
    what is left over is dropped.
    """
    blocks = max(1, math.floor(min(8 * (1 / 8 + log), len(x) / 2)))
    size = len(x) // blocks
    means = sorted(sum(x[i * size : (i + 1) * size]) / size for i in range(blocks))
    middle = blocks // 2
    return means[middle] if blocks % 2 else (means[middle - 1] + means[middle]) / 2


def decreasing_root(f, low, high):
    """Where a decreasing f crosses zero: the middle of its zeros if there are many."""

    def edge(positive):
        a, b = low, high
        for _ in range(70):
            middle = (a + b) / 2
            if positive(f(middle)):
                a = middle
            else:
                b = middle
        return (a + b) / 2

    return (edge(lambda y: y > 0) + edge(lambda y: y >= 0)) / 2


def catoni_mean(x, variance, failure_prob):
    """Root of sum psi(a (x - theta)), psi(y) = sign(y) ln(1 + |y| + y^2 / 2); needs N > 2 ln(1 / failure_prob)."""
    x, n, log = np.asarray(x, float), len(x), math.log(1 / failure_prob)
    a = math.sqrt(2 * log / (n * (variance + 2 * variance * log / (n - 2 * log))))

    def total(theta):
        y = a * (x - theta)
        return float(np.sum(np.sign(y) * np.log(1 + np.abs(y) + y**2 / 2)))

    return decreasing_root(total, x.min(), x.max())


def huber_location(x, clip):
    """Root of sum clip(x - theta, -b, b)."""
    x = np.asarray(x, float)
    return decreasing_root(lambda theta: float(np.sum(np.clip(x - theta, -clip, clip))), x.min(), x.max())


def trimmed_mean(x, share):
    """Mean without the ceil(share N) smallest and as many largest; the median where that leaves nothing (ours)."""
    drop = min(math.ceil(share * len(x) - 1e-9), (len(x) - 1) // 2)
    kept = sorted(x)[drop : len(x) - drop]
    return sum(kept) / len(kept)


def shorth(x, share):
    """Mean of the shortest window of N - floor(2 share N) order statistics, the lowest on ties."""
    x, size = sorted(x), len(x) - math.floor(2 * share * len(x) + 1e-9)
    lengths = [x[i + size - 1] - x[i] for i in range(len(x) - size + 1)]
    start = lengths.index(min(lengths))
    return sum(x[start : start + size]) / size


def pareto_scale(mean, shape):
    return mean * (shape - 1) / shape


def pareto_moment(mean, shape, order):
    """E X^k, finite for k < shape."""
    return shape * pareto_scale(mean, shape) ** order / (shape - order) if order < shape else math.inf


def student_moment(df, scale, order):
    """E |X - loc|^k, finite for k < df."""
    if order >= df:
        return math.inf
    half = math.gamma((order + 1) / 2) * math.gamma((df - order) / 2) / (math.sqrt(math.pi) * math.gamma(df / 2))
    return scale**order * df ** (order / 2) * half


def lognormal_location(mean, sigma):
    return math.log(mean) - sigma**2 / 2


def lognormal_moment(mean, sigma, order):
    """E X^k."""
    return math.exp(order * lognormal_location(mean, sigma) + order**2 * sigma**2 / 2)


def bernoulli_moment(mean, order):
    """E |X|^k = p whatever k."""
    return mean


def normal_moment(scale, order):
    """E |X - mu|^k."""
    return scale**order * 2 ** (order / 2) * math.gamma((order + 1) / 2) / math.sqrt(math.pi)
