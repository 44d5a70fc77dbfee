"""One ridge regression an arm: learners and their tunings, transcribed literally. Rows are in `own_data`.

Axes: [K] arms, [d] features, [n] rows.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm as normal

TIE = 1e-5


def lowest_of_the_largest(index):
    """The lowest arm whose index is within a share 1e-5 of the largest."""
    top = index.max()
    return int(np.flatnonzero(index >= top - TIE * abs(top))[0])


def theory_width(num_arms, dim, horizon, t, ridge=1.0, norm=1.0):
    root = 2 * math.log(num_arms * horizon) / dim + math.log(1 + t * norm**2 / (dim * ridge))
    return math.sqrt(ridge) + math.sqrt(dim) / 2 * math.sqrt(root)


def sensitivity(norm):
    """Of (x x', L x y): the same arm. Two arms: sqrt(2 L^4 + 2 L^2 L^2), which is less."""
    return math.sqrt(4.5) * norm**2


def gaussian_noise(moved, epsilon, delta):
    """The least deviation of noise that makes a release (epsilon, delta)-private: Balle and Wang, by their formula."""
    if math.isinf(epsilon):
        return 0.0

    def excess(s):
        g = moved / s
        return normal.cdf(g / 2 - epsilon / g) - math.exp(epsilon) * normal.cdf(-g / 2 - epsilon / g) - delta

    return brentq(excess, 1e-3 * moved, 1e6 * moved, xtol=1e-13, rtol=1e-14)


def tuning(model, num_arms, dim, horizon, epsilon, delta):
    """s, h, ridge, its part that grows with sqrt(t), width, its part that grows with t^(1/4); L = 1, binary tree."""
    h = math.sqrt(2 * dim) + math.sqrt(2 * math.log(2 * num_arms * horizon))
    if model == "local":
        s = gaussian_noise(sensitivity(1.0), epsilon, delta)
        return s, h, 1.0, s * h, 1.0, math.sqrt(s / h)
    levels, nodes = horizon.bit_length(), max(bin(n).count("1") for n in range(1, horizon + 1))
    s = gaussian_noise(sensitivity(1.0) * math.sqrt(levels), epsilon, delta)
    return s, h, 1 + s * h * math.sqrt(nodes), 0.0, 1 + math.sqrt(s * math.sqrt(nodes) / h), 0.0


def clipped(x, y, norm=1.0):
    """What a private client reports."""
    size = np.linalg.norm(x)
    return x * min(1, norm / size) if size > 0 else x, min(max(y, 0.0), 1.0)


def symmetric_noise(z, dim, scale):
    """The noise of a pair from its normals, a triangle by rows and then a vector.

    Of deviation s on the diagonal and in the vector, s / sqrt 2 beside the diagonal.
    """
    matrix, k = np.zeros((dim, dim)), 0
    for i in range(dim):
        for j in range(i, dim):
            matrix[i, j] = matrix[j, i] = z[k] * (scale if i == j else scale / math.sqrt(2))
            k += 1
    return matrix, z[k:] * scale


def shared(rows, rewards, *, width=1.0, ridge=1.0, num_arms):
    """LinUCB of one theta on blocks [K, K d]: arm k has the row in block k and zeros elsewhere."""
    dim = rows.shape[1]
    V, u, actions = ridge * np.eye(num_arms * dim), np.zeros(num_arms * dim), []
    for x, paid in zip(rows, rewards, strict=True):
        blocks = np.zeros((num_arms, num_arms * dim))
        for k in range(num_arms):
            blocks[k, k * dim : (k + 1) * dim] = x
        P = np.linalg.inv(V)
        index = [b @ P @ u + width * math.sqrt(b @ P @ b) for b in blocks]
        a = lowest_of_the_largest(np.array(index))
        V, u = V + np.outer(blocks[a], blocks[a]), u + blocks[a] * paid[a]
        actions.append(a)
    return np.array(actions)


def play(rows, rewards, rule, *, ridge=1.0):
    """Actions [T] on rows [T, d] or sets [T, K, d] and what the arms would pay [T, K].

    rule: play, means m_a and squares q_a [K] -> arm.
    """
    num_arms, dim = rewards.shape[1], rows.shape[-1]
    P, theta, actions = np.array([np.eye(dim) / ridge] * num_arms), np.zeros((num_arms, dim)), []
    for t, (shown, paid) in enumerate(zip(rows, rewards, strict=True), 1):
        x = np.broadcast_to(shown, (num_arms, dim))
        m, q = np.einsum("ad,ad->a", x, theta), np.einsum("ad,ade,ae->a", x, P, x)
        a = rule(t, m, q)
        r = paid[a] if math.isfinite(paid[a]) else 0.0
        v = P[a] @ x[a]
        g = 1 / (1 + q[a])
        theta[a] += v * (r - m[a]) * g
        P[a] -= np.outer(v, v) * g
        actions.append(a)
    return np.array(actions)


def optimism(width=1.0):
    """linucb. width: w, or a function of the play."""
    of_play = width if callable(width) else lambda t: width
    return lambda t, m, q: lowest_of_the_largest(m + of_play(t) * np.sqrt(np.maximum(q, 0)))


def thompson(normals, posterior=0.3):
    """linear_thompson. normals: play -> [K]."""
    return lambda t, m, q: lowest_of_the_largest(m + posterior * np.sqrt(np.maximum(q, 0)) * normals(t))


def greedy(explores, arm, exploration=0.1):
    """epsilon_greedy. explores, arm: play -> a uniform."""

    def choose(t, m, q):
        at_random = explores(t) * t < exploration * len(m)
        return min(int(arm(t) * len(m)), len(m) - 1) if at_random else lowest_of_the_largest(m)

    return choose


def private(rows, rewards, model, normals, *, epsilon, delta, radius_scale=1.0):
    """ldp_linucb and jdp_linucb, L = 1: actions [T], and what is sent or released [T, K, d, d] and [T, K, d].

    normals: play -> [K, n], of that play's messages, or of the tree's node that ends with it.
    """
    horizon, num_arms, dim = len(rows), rewards.shape[1], rows.shape[-1]
    s, _, ridge, root, base, quartic = tuning(model, num_arms, dim, horizon, epsilon, delta)
    V, u, actions, shown = np.zeros((num_arms, dim, dim)), np.zeros((num_arms, dim)), [], []
    known_V, known_u, nodes = V.copy(), u.copy(), {}
    for t, (x, paid) in enumerate(zip(rows, rewards, strict=True), 1):
        index = np.zeros(num_arms)
        for a in range(num_arms):
            P = np.linalg.inv(known_V[a] + (ridge + root * math.sqrt(t)) * np.eye(dim))
            wide = radius_scale * (base + quartic * t**0.25)
            index[a] = x @ P @ known_u[a] + wide * math.sqrt(max(x @ P @ x, 0))
        a = lowest_of_the_largest(index)
        sent, y = clipped(x, paid[a])
        own_V, own_u = np.zeros((num_arms, dim, dim)), np.zeros((num_arms, dim))
        own_V[a], own_u[a] = np.outer(sent, sent), sent * y
        fresh = [symmetric_noise(z, dim, s) for z in normals(t)]
        noise_V, noise_u = np.array([z for z, _ in fresh]), np.array([z for _, z in fresh])
        if model == "local":
            message = own_V + noise_V, own_u + noise_u
            known_V, known_u = known_V + message[0], known_u + message[1]
            shown.append(message)
        else:
            V, u = V + own_V, u + own_u
            level = (t & -t).bit_length() - 1
            nodes = {j: node for j, node in nodes.items() if j > level} | {level: (noise_V, noise_u)}
            known_V = V + sum(node for node, _ in nodes.values())
            known_u = u + sum(node for _, node in nodes.values())
            shown.append((known_V, known_u))
        actions.append(a)
    return np.array(actions), *(np.array(part) for part in zip(*shown, strict=True))
