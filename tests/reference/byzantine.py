"""Byzantine-UCB, -DP and -DP-MoM, isolated and oracle LinUCB: docs/formulas/byzantine.md.

Randomness is data: contexts [T, N, A, d], reward_of(t, agent, arm), node(level, end) -> standard draws of a tree's
node, groups [N] of the median of means, hits [K, N] and attacks (`byzantine_attacks`) with their draws.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from . import byzantine_oracles as oracles
from . import byzantine_privacy as privacy
from .linear import first_argmax

# ---------------------------------------------------------------- constants


KINDS = ("geometric_median", "dp", "median_of_means")


class Constants(NamedTuple):
    """What the server knows; names of docs/formulas/byzantine.md#names-and-edges."""

    num_agents: int
    dim: int
    horizon: int
    window: int
    constants: str = "geometric_median"
    corruption_bound: float = 0.0
    feature_spread: float = 1.0
    noise_scale: float = 0.5
    failure_prob: float = 0.05
    ridge_scale: float = 0.1
    radius_scale: float = 0.03
    privacy: Any = None
    epsilon: float = math.inf
    delta: float = 1e-3


def episodes_of(horizon, window):
    return math.ceil(horizon / window)


def robustness(corruption_bound):
    """C_alpha."""
    return (2 - 2 * corruption_bound) / (1 - 2 * corruption_bound)


def iota_of(c):
    return math.log(128 * c.num_agents * c.horizon / c.failure_prob)


def noise_bound(c):
    """B: 0 unless privacy is on."""
    if c.privacy is None:
        return 0.0
    iota = iota_of(c)
    return 48 * iota * math.log(4 / c.delta) * (math.sqrt(c.dim) + iota) / c.epsilon


def ridge(c, k):
    """lambda_k, scaled."""
    L, iota, C, B, d = c.window, iota_of(c), robustness(c.corruption_bound), noise_bound(c), c.dim
    if c.constants == "median_of_means":
        shift = 8 * B * L * math.sqrt(d)
        first = 128 * c.feature_spread * math.sqrt(c.corruption_bound * L * iota)
    else:
        shift = 2 * C * B * L * math.sqrt(d) if c.constants == "dp" else 0.0
        first = 8 * math.sqrt(L * iota) * C * c.feature_spread
    return c.ridge_scale * (shift + max(L, first * math.sqrt(k)))


def radius(c, k):
    """beta_k, scaled, evaluated at the scaled lambda_k."""
    L, iota, C, B, d = c.window, iota_of(c), robustness(c.corruption_bound), noise_bound(c), c.dim
    both = c.feature_spread + c.noise_scale
    if c.constants == "median_of_means":
        numerator = 64 * both * math.sqrt(c.corruption_bound * (k - 1) * L * d * iota) + 4 * B * L
    else:
        numerator = 4 * math.sqrt((k - 1) * L * d * iota) * C * both
        if c.constants == "dp":
            numerator += C * B * L
    level = ridge(c, k)
    beta = 3 * math.sqrt(level * d) + numerator / math.sqrt(level)
    return c.radius_scale * (beta + 2 * c.noise_scale * math.sqrt(d * iota / c.num_agents))


# ---------------------------------------------------------------- the server's checks


def norm(part):
    """m |x / m|, which a message of 1e300 does not overflow."""
    largest = float(np.max(np.abs(part)))
    return 0.0 if largest == 0 else largest * float(np.linalg.norm(part / largest))


def receive(matrix, vector, window, private=False):
    """(0, 0) for what is not finite; each part clamped to 1e4 L; (0, 0) for what is not symmetric;
    in private, (0, 0) for a norm over L (1 + 1e-5), and the accepted part scaled to at most L.
    """
    zero = np.zeros_like(matrix), np.zeros_like(vector)
    if not (np.isfinite(matrix).all() and np.isfinite(vector).all()):
        return zero
    if not np.array_equal(matrix, matrix.T):
        return zero
    parts = []
    for part in (matrix, vector):
        size = norm(part)
        parts.append(part if size <= 1e4 * window else part * (1e4 * window / size))
    if private:
        if any(norm(part) > window * (1 + 1e-5) for part in parts):
            return zero
        parts = [part * min(1.0, window / norm(part)) if norm(part) > 0 else part for part in parts]
    return parts[0], parts[1]


# ---------------------------------------------------------------- the server's estimate


class Aggregator:
    """Agg on one kind of statistic, [N, p]."""

    def __init__(self, rule, num_attacked, groups=None, iterations=None):
        self.rule, self.num_attacked, self.groups = rule, num_attacked, groups
        self.median = oracles.geometric_median if iterations is None else oracles.WarmMedian(iterations)

    def __call__(self, points):
        if self.rule == "mean" or (self.rule == "median_of_means" and self.num_attacked == 0):
            return sum(points) / len(points)
        if self.rule == "geometric_median":
            return self.median(points)
        if self.rule == "median_of_means":
            return self.median(oracles.group_means(points, self.groups, 3 * self.num_attacked))
        if self.rule == "coordinate_median":
            return oracles.coordinate_median(points)
        if self.rule == "trimmed_mean":
            return oracles.trimmed_mean(points, self.num_attacked)
        if self.rule == "krum":
            return oracles.krum(points, self.num_attacked)
        raise ValueError(self.rule)


def floor_eigenvalues(matrix, floor):
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return vectors @ np.diag(np.maximum(values, floor)) @ vectors.T


class Policy(NamedTuple):
    """What an agent plays by during an episode."""

    estimate: np.ndarray  # theta_k [d]
    inverse: np.ndarray  # of Lambda_k [d, d]
    radius: float


def policy_of(gram, vector, level, beta):
    """Lambda_k = gram + level I, its eigenvalues at least 0.1 level."""
    inverse = np.linalg.inv(floor_eigenvalues(gram + level * np.eye(len(vector)), 0.1 * level))
    return Policy(inverse @ vector, inverse, beta)


# ---------------------------------------------------------------- Algorithm 1


class Run(NamedTuple):
    actions: np.ndarray  # [T, N]
    regret: np.ndarray  # [T] robust regret so far
    policies: list  # [K] of Policy (isolated: [K] of [N])
    sent: list  # [K] of (U [N, d, d], u [N, d]) after the attack, before the checks
    released: list  # [K] of (V [N, d, d], v [N, d]): what episode k is estimated from


def play_episodes(contexts, reward_of, theta, window, server, hits=None, attack=None, poisoned=None, tie=1e-9):
    """Episodes 1..K. server.policies() -> a Policy an agent; server.learn(grams, vectors), never with message K.

    hits [K, N]: messages replaced by attack(k, matrices, vectors, hit [N]); poisoned [T, N]: rewards from -theta.
    """
    horizon, num_agents, _, dim = contexts.shape
    count = episodes_of(horizon, window)
    hits = np.zeros((count, num_agents), bool) if hits is None else hits
    poisoned = np.zeros((horizon, num_agents), bool) if poisoned is None else poisoned
    actions, lost = np.zeros((horizon, num_agents), int), np.zeros(horizon)
    policies, sent = [], []
    for k in range(1, count + 1):
        policies.append(server.policies(k))
        matrices, vectors = np.zeros((num_agents, dim, dim)), np.zeros((num_agents, dim))
        for t in range((k - 1) * window + 1, min(k * window, horizon) + 1):
            for i in range(num_agents):
                estimate, inverse, beta = policies[-1][i]
                arms = contexts[t - 1, i]
                arm = first_argmax([x @ estimate + beta * math.sqrt(x @ inverse @ x) for x in arms], tie)
                x, values = arms[arm], arms @ theta
                reward = reward_of(t, i, arm)
                if poisoned[t - 1, i]:
                    reward = reward - 2 * (x @ theta)
                if not (hits[k - 1, i] or poisoned[t - 1, i]):
                    lost[t - 1] += values.max() - values[arm]
                actions[t - 1, i] = arm
                matrices[i] += np.outer(x, x)
                vectors[i] += x * reward
        sent.append(attack(k, matrices, vectors, hits[k - 1]) if attack else (matrices, vectors))
        if k < count:
            server.learn(*((matrices, vectors) if server.alone else sent[-1]))
    return Run(actions, np.cumsum(lost), policies, sent, server.released)


class Server:
    """Algorithm 1's server; `members` alone are pooled by the oracle's mean."""

    alone = False

    def __init__(self, c, aggregators, privatizer=None, members=None, plan=None):
        self.c, self.aggregators, self.privatizer, self.released = c, aggregators, privatizer, []
        self.members = range(c.num_agents) if members is None else members
        self.plan = plan or (lambda k, n: (ridge(c, k), radius(c, k)))
        self.grams = np.zeros((c.num_agents, c.dim, c.dim))
        self.vectors = np.zeros((c.num_agents, c.dim))

    def policies(self, k):
        c = self.c
        grams, vectors = self.grams, self.vectors
        if self.privatizer and k > 1:
            grams, vectors = self.privatizer.release()
        self.released.append((grams.copy(), vectors.copy()))
        pooled = self.aggregators[0]([oracles.pack(grams[i]) for i in self.members])
        vector = self.aggregators[1]([vectors[i] for i in self.members])
        level, beta = self.plan(k, len(self.members))
        return [policy_of(oracles.unpack(pooled, c.dim), vector, level, beta)] * c.num_agents

    def learn(self, matrices, vectors):
        pairs = [
            receive(*pair, self.c.window, self.c.privacy is not None) for pair in zip(matrices, vectors, strict=True)
        ]
        grams, vectors = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
        self.grams, self.vectors = self.grams + grams, self.vectors + vectors
        if self.privatizer:
            self.privatizer.receive(grams, vectors)


class Alone:
    """Isolated LinUCB: each agent's own, never attacked, statistics."""

    alone = True

    def __init__(self, c, plan):
        self.c, self.plan, self.released = c, plan, []
        self.grams = np.zeros((c.num_agents, c.dim, c.dim))
        self.vectors = np.zeros((c.num_agents, c.dim))

    def policies(self, k):
        self.released.append((self.grams.copy(), self.vectors.copy()))
        return [policy_of(V, v, *self.plan(k, 1)) for V, v in zip(self.grams, self.vectors, strict=True)]

    def learn(self, matrices, vectors):
        self.grams, self.vectors = self.grams + matrices, self.vectors + vectors


def byzantine_ucb(
    contexts, reward_of, theta, c, *, aggregate="geometric_median", iterations=None, calibration="exact", scale=None,
    mechanism_scale=1.0, node=None, groups=None, **world,
):  # fmt: skip
    """Algorithm 1. iterations: None for exact medians. scale: node_scale given. world: hits, attack, poisoned, tie."""
    num_attacked = oracles.attacked_count(c.corruption_bound, c.num_agents)
    privatizer = None
    if c.privacy is not None:
        if scale is None:
            releases = episodes_of(c.horizon, c.window) - 1
            scale = privacy.node_scale(
                releases, c.window, c.epsilon, c.delta, privacy=c.privacy, calibration=calibration
            )
        privatizer = privacy.Privatizer(c.privacy, mechanism_scale * scale, node)
    aggregators = [Aggregator(aggregate, num_attacked, groups, iterations) for _ in range(2)]
    return play_episodes(contexts, reward_of, theta, c.window, Server(c, aggregators, privatizer), **world)


def abbasi_yadkori(c, level=None, theta_bound=None):
    """docs/formulas/byzantine.md#linucb-comparators: lambda' / n and the radius over sqrt n, n agents pooled, t =
    steps so far. It names neither lambda' nor |theta*| nor scales: lambda' = ridge_scale, the model's bound sqrt d,
    and radius_scale on the whole, unless given.
    """
    level = c.ridge_scale if level is None else level
    theta_bound = math.sqrt(c.dim) if theta_bound is None else theta_bound

    def plan(k, pooled):
        t = (k - 1) * c.window
        inside = 2 * math.log(1 / c.failure_prob) + c.dim * math.log(1 + pooled * t / (c.dim * level))
        beta = (c.noise_scale * math.sqrt(inside) + math.sqrt(level) * theta_bound) / math.sqrt(pooled)
        return level / pooled, c.radius_scale * beta

    return plan


def scheduled(c):
    """lambda_k and beta_k of Byzantine-UCB with geometric-median constants."""
    c = c._replace(constants="geometric_median", privacy=None)
    return lambda k, pooled: (ridge(c, k), radius(c, k))


def isolated_linucb(contexts, reward_of, theta, c, *, plan=None, **world):
    return play_episodes(contexts, reward_of, theta, c.window, Alone(c, plan or scheduled(c)), **world)


def oracle_linucb(contexts, reward_of, theta, c, *, plan=None, **world):
    """The mean over agents N_1..N-1."""
    members = range(oracles.attacked_count(c.corruption_bound, c.num_agents), c.num_agents)
    server = Server(c, [Aggregator("mean", 0)] * 2, None, members, plan or scheduled(c))
    return play_episodes(contexts, reward_of, theta, c.window, server, **world)
