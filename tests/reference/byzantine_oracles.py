"""How a server aggregates N points: docs/formulas/byzantine.md#geometric-median
to docs/formulas/byzantine.md#median-of-means, and docs/formulas/byzantine.md#aggregation-rules.
"""

import math

import numpy as np


def spread(points, z, weights=None):
    """g(z), the mean (or weighted mean) distance."""
    points = np.asarray(points, float)
    weights = np.full(len(points), 1 / len(points)) if weights is None else weights
    return float(sum(w * np.linalg.norm(z - x) for w, x in zip(weights, points, strict=True)))


def snap(points, j, weights=None):
    """docs/formulas/byzantine.md#snap: is point j itself a median? The pull of the others
    against the copies' weight.
    """
    points = np.asarray(points, float)
    weights = np.ones(len(points)) if weights is None else weights
    pull, copies = np.zeros(points.shape[1]), 0.0
    for w, x in zip(weights, points, strict=True):
        if np.array_equal(x, points[j]):
            copies += w
        else:
            pull = pull + w * (points[j] - x) / np.linalg.norm(points[j] - x)
    return bool(np.linalg.norm(pull) <= copies)


def geometric_median(points, weights=None):
    """argmin of `spread`: a data point where that is exact, else Weiszfeld until |grad g| <= 1e-13,
    helped by Newton steps where they make the gradient smaller (Weiszfeld alone is slow near a data point).
    """
    points = np.asarray(points, float)
    weights = np.full(len(points), 1 / len(points)) if weights is None else np.asarray(weights) / np.sum(weights)
    for j in range(len(points)):
        if weights[j] > 0 and snap(points, j, weights):
            return points[j].copy()

    def slope(z):
        distance = np.linalg.norm(z - points, axis=1)
        apart = distance > 0
        pull = weights[apart] / distance[apart]
        return pull @ (z - points[apart]), pull, apart

    z = np.median(points, axis=0)
    for step in range(20_000):
        gradient, pull, apart = slope(z)
        size = np.linalg.norm(gradient)
        if apart.all() and size <= 1e-13:
            return z
        stay = min(1.0, weights[~apart].sum() / size)  # Vardi and Zhang: off a data point
        moved = z - (1 - stay) * gradient / pull.sum()
        if step > 20 and apart.all():
            unit = (z - points) / np.linalg.norm(z - points, axis=1)[:, None]
            hessian = np.einsum("n,nij->ij", pull, np.eye(len(z)) - unit[:, :, None] * unit[:, None])
            newton = z - np.linalg.solve(hessian, gradient)
            if np.linalg.norm(slope(newton)[0]) < size:
                moved = newton
        if np.array_equal(moved, z) and size <= 1e-9:  # rounding
            return z
        z = moved
    raise ArithmeticError("no median")


def smoothing(distance):
    """nu_s = max(1e-4 median distance, the smallest normal number)."""
    return max(1e-4 * float(np.median(distance)), float(np.finfo(float).tiny))


def weiszfeld(points, z, iterations, weights=None, snapped=True):
    """Smoothed Weiszfeld, a fixed count, nu_s from the start's distances; the snap at the nearest point.
    -> z, last weights.
    """
    points = np.asarray(points, float)
    given = np.full(len(points), 1 / len(points)) if weights is None else weights
    last, nu = given, smoothing([np.linalg.norm(z - x) for x in points])
    for _ in range(iterations):
        last = given * np.array([nu / max(nu, float(np.linalg.norm(z - x))) for x in points])
        last = last / last.sum()
        z = last @ points
    nearest = int(np.argmin([np.linalg.norm(z - x) for x in points]))
    return (points[nearest].copy() if snapped and snap(points, nearest, weights) else z), last


class WarmMedian:
    """docs/formulas/byzantine.md#starting-point: starts are last weights (sum w_i z_i) and last z, of which the
    smaller g is kept; plain iterations follow, without the snap, which it does not ask for. At first weights are
    equal and z is 0.
    """

    def __init__(self, iterations):
        self.iterations, self.z, self.weights = iterations, None, None

    def __call__(self, points):
        points = np.asarray(points, float)
        if self.z is None:
            self.z, self.weights = np.zeros(points.shape[1]), np.full(len(points), 1 / len(points))
        start = min((self.weights @ points, self.z), key=lambda z: spread(points, z))
        self.z, self.weights = weiszfeld(points, start, self.iterations, snapped=False)
        return self.z


def first_certificate(points, z, weights=None):
    """docs/formulas/byzantine.md#certificates:
    g(z) - gap bounds min g, from subgradients corrected at the nearest point, centred, cut to the unit ball.
    """
    points = np.asarray(points, float)
    n = len(points)
    weights = np.full(n, 1 / n) if weights is None else np.asarray(weights) / np.sum(weights)
    away = [z - x for x in points]
    distance = [float(np.linalg.norm(a)) for a in away]
    nu = smoothing(distance)
    u = [a / max(nu, d) for a, d in zip(away, distance, strict=True)]
    j = int(np.argmin(distance))
    if weights[j] > 0:
        u[j] = into_ball(-sum(weights[i] * u[i] for i in range(n) if i != j) / weights[j])
    middle = sum(w * v for w, v in zip(weights, u, strict=True))
    u = [v - middle for v in u]
    largest = max(1.0, max(float(np.linalg.norm(v)) for v in u))
    return float(sum(w * (d - v @ a / largest) for w, d, v, a in zip(weights, distance, u, away, strict=True)))


def second_certificate(points, z):
    """docs/formulas/byzantine.md#certificates: D |(1/n) sum u_i| with subgradients at z, D >= |z* - z|."""
    points = np.asarray(points, float)
    n = len(points)
    distance = np.array([np.linalg.norm(z - x) for x in points])
    total = sum((z - x) / d for x, d in zip(points, distance, strict=True) if d > 0)
    copies = int(np.sum(distance == 0))
    if copies:
        total = total + copies * into_ball(-total / copies)
    ordered = np.sort(distance)
    reach = min(2 * ordered[: n - m].sum() / (n - 2 * m) for m in range((n + 1) // 2))
    return float(reach * np.linalg.norm(total) / n)


def certificate(points, z):
    return min(first_certificate(points, z), second_certificate(points, z))


def into_ball(v):
    return v / max(1.0, float(np.linalg.norm(v)))


def group_means(points, groups, num_groups):
    points, groups = np.asarray(points, float), np.asarray(groups)
    return np.array([points[groups == p].mean(axis=0) for p in range(num_groups)])


def trimmed_mean(points, dropped):
    """Per coordinate, `dropped` smallest and as many largest left out."""
    columns = [np.sort(column)[dropped : len(column) - dropped] for column in np.asarray(points, float).T]
    return np.array([column.mean() for column in columns])


def coordinate_median(points):
    return np.array([np.median(column) for column in np.asarray(points, float).T])


def krum(points, num_attacked):
    """The point of least sum of squared distances to its N - N_1 - 2 (at least one) nearest others;
    lowest index on ties.
    """
    points = np.asarray(points, float)
    n = len(points)
    scores = []
    for i in range(n):
        others = sorted(float(np.sum((points[i] - points[j]) ** 2)) for j in range(n) if j != i)
        scores.append(sum(others[: max(1, n - num_attacked - 2)]))
    return points[int(np.argmin(scores))].copy()


def attacked_count(share, num_agents):
    """N_1 = floor(share N + 1/2)."""
    return math.floor(share * num_agents + 0.5)


def pack(matrix):
    """svec: the upper triangle row by row, off-diagonals times sqrt 2, so that norms are Frobenius norms."""
    matrix = np.asarray(matrix, float)
    d = len(matrix)
    return np.array([matrix[i, j] * (1 if i == j else math.sqrt(2)) for i in range(d) for j in range(i, d)])


def unpack(packed, dim):
    matrix, at = np.zeros((dim, dim)), 0
    for i in range(dim):
        for j in range(i, dim):
            matrix[i, j] = matrix[j, i] = packed[at] / (1 if i == j else math.sqrt(2))
            at += 1
    return matrix
