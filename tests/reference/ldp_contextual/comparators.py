"""docs/formulas/ldp_contextual.md#comparators: what the server knows (statistics) times how it chooses (selection)."""

import math

import numpy as np

from .online_ucb import first_argmax_fast

# ---------------------------------------------------------------- noise scales and widths, reference preset


def entry_noise(kind, epsilon, delta, *, horizon, dim, window=20):
    """Per-entry s of the reference preset; `vector` is the scale its Gamma uses."""
    if kind == "none" or math.isinf(epsilon):
        return 0.0
    if kind == "ldp":
        return math.sqrt(math.log(2.5 / delta)) / epsilon
    if kind == "jdp":
        return math.sqrt(math.log(horizon)) * math.log(2.5 / delta) / epsilon
    if kind == "amplified":
        return math.sqrt(math.log(2.5 * window / delta)) / (epsilon * math.sqrt(window))
    if kind == "vector":
        return math.log(dim / delta) / (epsilon * math.sqrt(window))
    raise ValueError(kind)


def gamma_and_ridge(kind, s, *, horizon, dim):
    if kind == "none" or s == 0.0:
        return 1.0, 1e-4
    if kind == "jdp":
        gamma = s * math.sqrt(dim * math.log(horizon))
    else:
        gamma = s * math.sqrt(horizon * dim) * (0.25 if kind == "vector" else 1.0)
    return gamma, 2 * gamma


def reference_width(gamma, *, horizon, dim, feature_norm=1.0, noise_scale=0.5):
    log = math.log(horizon * (1 + horizon * feature_norm**2 / gamma))
    return math.sqrt(gamma * dim) + noise_scale * math.sqrt(dim * log)


# ---------------------------------------------------------------- theory preset


def theory_linucb_width(t, *, dim, failure_prob, theta_bound=1.0, feature_norm=1.0, ridge=1.0, noise_scale=0.5):
    log = math.log((1 + t * feature_norm**2 / ridge) / failure_prob)
    return math.sqrt(ridge) * theta_bound + noise_scale * math.sqrt(dim * log)


def theory_ldp(t, epsilon, delta, *, horizon, dim, alpha=0.1):
    """sigma_z, ridge and width at t."""
    sigma = 4 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    upsilon = sigma * math.sqrt(t) * (4 * math.sqrt(dim) + 2 * math.log(2 * horizon / alpha))
    width = 2 * sigma * math.sqrt(dim * math.log(horizon))
    width += (math.sqrt(3 * upsilon) + sigma * math.sqrt(dim * t / upsilon)) * dim * math.log(horizon)
    return sigma, 2 * upsilon, width


def theory_jdp(t, epsilon, delta, *, horizon, dim, alpha=0.1, feature_norm=1.0, theta_bound=1.0, noise_scale=0.5):
    """s (of Z, before (Z + Z') / sqrt 2), shift 2 Upsilon and width at t."""
    m = math.ceil(math.log2(horizon)) + 1
    s = 4 * math.sqrt(m) * (feature_norm**2 + 1) * math.log(4 / delta) / epsilon
    upsilon = s * math.sqrt(2 * m) * (4 * math.sqrt(dim) + 2 * math.log(2 * horizon / alpha))
    low, high = upsilon, 3 * upsilon
    width = math.sqrt(high) * theta_bound
    width += s * math.sqrt(m / upsilon) * (math.sqrt(dim) + math.sqrt(2 * math.log(2 * horizon / alpha)))
    log = 2 * math.log(2 / alpha) + dim * math.log(high / low + t * feature_norm**2 / (dim * low))
    return s, 2 * upsilon, width + noise_scale * math.sqrt(log)


# ---------------------------------------------------------------- noise


def symmetrised(Z):
    return (Z + Z.T) / 2


def mirrored(upper):
    """[d, d] whose strict lower triangle is ignored, to the symmetric matrix."""
    return np.triu(upper) + np.triu(upper, 1).T


def dyadic_nodes(t):
    """[level, index] of the binary expansion of t, high level first; a node holds rounds index 2^level + 1 ..
    (index + 1) 2^level.
    """
    nodes, done = [], 0
    for level in range(t.bit_length() - 1, -1, -1):
        if t >> level & 1:
            nodes.append((level, done >> level))
            done += 1 << level
    return nodes


def simplified_nodes(t, horizon):
    """How many pre-drawn nodes are summed once t rounds are in."""
    return min(math.floor(math.log(1 + t)) + 1, math.floor(math.log(horizon)) + 1)


# ---------------------------------------------------------------- statistics


class Plain:
    """Sums as they are, or with noise of every user added: `noise(t)` -> ([d, d], [d]), scaled and symmetric."""

    def __init__(self, dim, noise=None):
        self.V, self.u, self.t, self.noise = np.zeros((dim, dim)), np.zeros(dim), 0, noise

    def learn(self, x, y):
        self.t += 1
        self.V = self.V + np.outer(x, x)
        self.u = self.u + y * x
        if self.noise is not None:
            matrix, vector = self.noise(self.t)
            self.V, self.u = self.V + matrix, self.u + vector

    def released(self):
        return self.V, self.u


class Central:
    """Sums whose release after t rounds has the noise `total(t)` -> ([d, d], [d])."""

    def __init__(self, dim, total):
        self.plain, self.total = Plain(dim), total

    def learn(self, x, y):
        self.plain.learn(x, y)

    def released(self):
        matrix, vector = self.total(self.plain.t)
        return self.plain.V + matrix, self.plain.u + vector


class Batched:
    """Releases of `inner` only when the number of rounds is a multiple of the window; before the first, the prior."""

    def __init__(self, inner, window):
        self.inner, self.window, self.t = inner, window, 0
        self.last = inner.released()

    def learn(self, x, y):
        self.inner.learn(x, y)
        self.t += 1
        if self.t % self.window == 0:
            self.last = self.inner.released()

    def released(self):
        return self.last


def simplified_tree(matrices, vectors, horizon):
    """total(t) from standard nodes times s: matrices [n, d, d] (not symmetric), vectors [n, d], n = floor(ln T) + 1."""

    def total(t):
        n = simplified_nodes(t, horizon)
        return symmetrised(matrices[:n].sum(0)), vectors[:n].sum(0)

    return total


def binary_tree(node, s, dim):
    """total(t), Gram of (x, y): node(level, index) -> Z [d + 1, d + 1] standard. The shift is added with the ridge."""

    def total(t):
        noise = np.zeros((dim + 1, dim + 1))
        for level, index in dyadic_nodes(t):
            Z = s * node(level, index)
            noise = noise + (Z + Z.T) / math.sqrt(2)
        return noise[:dim, :dim], noise[:dim, dim]

    return total


class VectorShuffle:
    """SDP-Vec. Every coordinate v in [-L, L] of the upper triangle of x x' and of y x is sent as counts of bits.

    uniforms [T, d (d + 1) / 2 + d], rows by round, decide the rounding (up where below the fraction); ones(j) are the
    Bin(B b, 1/4) sums [d (d + 1) / 2 + d] of batch j >= 0. The upper triangle is in row order.
    """

    def __init__(self, dim, epsilon, delta, *, window, uniforms, ones, feature_norm=1.0, c=None, bits=None):
        self.dim, self.B, self.L, self.uniforms, self.ones = dim, window, feature_norm, uniforms, ones
        self.g = max(2 * math.sqrt(window), dim, 4)
        self.b = vector_bits(dim, epsilon, delta, window, c) if bits is None else bits
        self.upper = np.triu_indices(dim)
        self.total = np.zeros(len(self.upper[0]) + dim)
        self.sum, self.t = np.zeros_like(self.total), 0

    def learn(self, x, y):
        v = np.concatenate([np.outer(x, x)[self.upper], y * x])
        level = (v + self.L) * self.g / self.L
        self.sum = self.sum + np.floor(level) + (self.uniforms[self.t] < level - np.floor(level))
        self.t += 1
        if self.t % self.B == 0:
            count = self.sum + (self.ones(self.t // self.B - 1) if self.b else 0.0)
            self.total = self.total + self.L / self.g * (count - self.b * self.B / 4) - self.B * self.L
            self.sum = np.zeros_like(self.sum)

    def released(self):
        V = np.zeros((self.dim, self.dim))
        V[self.upper] = self.total[: -self.dim]
        return mirrored(V), self.total[-self.dim :]


def vector_bits(dim, epsilon, delta, window, c=None):
    if math.isinf(epsilon):
        return 0
    c = (10 if epsilon >= 1 else 1) if c is None else c
    g = max(2 * math.sqrt(window), dim, 4)
    return math.floor(c * g**2 * math.log(dim / delta) ** 2 / (epsilon**2 * window))


# ---------------------------------------------------------------- selection


def posterior(statistics, ridge):
    V, u = statistics.released()
    P = np.linalg.inv(V + ridge * np.eye(len(u)))
    return P, P @ u


def ucb(decision_set, P, estimate, width, tie=1e-9):
    square = np.einsum("kd,de,ke->k", decision_set, P, decision_set)
    return first_argmax_fast(decision_set @ estimate + width * np.sqrt(np.maximum(square, 0.0)), tie)


def thompson(decision_set, P, estimate, scale, z, tie=1e-9):
    """theta ~ N(estimate, scale^2 P) by the lower Cholesky factor of P on the standard normals z [d]."""
    return first_argmax_fast(decision_set @ (estimate + scale * np.linalg.cholesky(P) @ z), tie)


def thompson_scale(horizon, dim, failure_prob, posterior_scale=0.3, noise_scale=0.5):
    return posterior_scale * noise_scale * math.sqrt(9 * dim * math.log(horizon / failure_prob))


def greedy(decision_set, estimate, tie=1e-9):
    return first_argmax_fast(decision_set @ estimate, tie)


def explores(t, num_arms, uniform, exploration=0.1):
    return uniform < min(1.0, exploration * num_arms / t)


def play(contexts, reward_of, statistics, select, *, ridge):
    """contexts [T, K, d]; select(t, decision_set, P, estimate) -> arm; ridge a number or a function of t.

    Actions [T].
    """
    actions = []
    for t in range(1, len(contexts) + 1):
        P, estimate = posterior(statistics, ridge(t) if callable(ridge) else ridge)
        arm = select(t, contexts[t - 1], P, estimate)
        statistics.learn(contexts[t - 1][arm], reward_of(t, arm))
        actions.append(arm)
    return np.array(actions)
