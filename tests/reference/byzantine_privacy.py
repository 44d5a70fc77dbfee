"""Noise on what a federated server keeps: three calibrations, the binary tree,
increments (docs/formulas/byzantine.md#privacy-noise).
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp


def tree_levels(releases, calibration):
    """m for n = K - 1 messages: bit_length(n), or as the paper has it 1 + ceil(log2 n)."""
    if calibration == "paper":
        return 1 + math.ceil(math.log2(releases)) if releases > 1 else 1
    return releases.bit_length()


def gaussian_ratio(epsilon, delta):
    """g of docs/formulas/byzantine.md#calibrations:
    sensitivity over noise of the Gaussian mechanism that is exactly (epsilon, delta)-private.
    """

    def excess(g):
        first, second = log_ndtr(g / 2 - epsilon / g), epsilon + log_ndtr(-g / 2 - epsilon / g)
        return logsumexp([first, second], b=[1, -1]) - math.log(delta) if first > second else -math.inf

    return math.exp(brentq(lambda x: max(excess(math.exp(x)), -1e9), -30, 10, xtol=1e-14, rtol=1e-14))


def node_scale(releases, window, epsilon, delta, *, privacy="tree", calibration="exact"):
    """s, for `releases` = K - 1 messages of at most `window` in norm."""
    if epsilon == math.inf or releases == 0:
        return 0.0
    m = 1 if privacy == "increment" else tree_levels(releases, calibration)
    if calibration == "paper":
        return 8 * math.sqrt(m) * window * math.log(4 / delta) / epsilon
    if calibration == "zcdp":
        log = math.log(1 / delta)
        rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
        return window * math.sqrt(3 * m / rho)
    return math.sqrt(6 * m) * window / gaussian_ratio(epsilon, delta)


def truly_spent(scale_per_levels, delta):
    """epsilon of the Gaussian mechanism of sensitivity sqrt(12 m) L and standard deviation sqrt(2) s,
    s = that x L sqrt(m).
    """
    g = math.sqrt(6) / scale_per_levels

    def excess(epsilon):
        first, second = log_ndtr(g / 2 - epsilon / g), epsilon + log_ndtr(-g / 2 - epsilon / g)
        return math.exp(first) - math.exp(second) - delta

    return 0.0 if excess(0.0) <= 0 else brentq(excess, 0, g * g + 20 * g, xtol=1e-14)


def node_noise(raw):
    """Z = (Z' + Z'^T) / sqrt 2 [N, d + 1, d + 1]:
    the top block (diagonal variance 2) and the last column, corner dropped.
    """
    z = (raw + np.swapaxes(raw, -1, -2)) / math.sqrt(2)
    return z[:, :-1, :-1], z[:, :-1, -1]


def nodes_of(n, privacy):
    """(level, last message) of the nodes that cover messages 1..n: the tree's, by the bits of n;
    or every single message.
    """
    if privacy == "increment":
        return [(0, end) for end in range(1, n + 1)]
    nodes, end = [], 0
    for level in reversed(range(n.bit_length())):
        if n >> level & 1:
            end += 1 << level
            nodes.append((level, end))
    return nodes


class Privatizer:
    """The literal tree: each node holds the sum of its messages and its own noise;
    a release adds up the nodes of 1..n.
    """

    def __init__(self, privacy, scale, node):
        self.privacy, self.scale, self.node, self.grams, self.vectors, self.drawn = privacy, scale, node, [], [], {}

    def receive(self, grams, vectors):
        self.grams.append(np.array(grams))
        self.vectors.append(np.array(vectors))

    def release(self):
        n = len(self.grams)
        gram, vector = 0.0, 0.0
        for level, end in nodes_of(n, self.privacy):
            if (level, end) not in self.drawn:
                H, h = node_noise(self.node(level, end))
                inside = slice(end - (1 << level), end)
                self.drawn[level, end] = (
                    sum(self.grams[inside]) + self.scale * H,
                    sum(self.vectors[inside]) + self.scale * h,
                )
            gram, vector = gram + self.drawn[level, end][0], vector + self.drawn[level, end][1]
        return gram, vector
