"""docs/formulas/ldp_contextual.md#maler: Maler,
with the projection of the exp-concave experts by eigh and bisection.
"""

import math

import numpy as np

from .ogd import project_ball


def project_ellipsoid(y, A, radius):
    """argmin over ||x|| <= radius of (x - y)' A (x - y)."""
    if y @ y <= radius**2:
        return y
    eigenvalues, Q = np.linalg.eigh(A)
    z = Q.T @ y

    def excess(m):
        return float(np.sum((eigenvalues * z / (eigenvalues + m)) ** 2)) - radius**2

    low, high = 0.0, eigenvalues.max() * (math.sqrt(y @ y) / radius - 1)
    for _ in range(200):
        m = (low + high) / 2
        if m in (low, high):
            break
        low, high = (m, high) if excess(m) > 0 else (low, m)
    return Q @ (eigenvalues * z / (eigenvalues + high))


def num_scales(horizon):
    """n = ceil(log2(T) / 2), by integers: the smallest n with 4^n >= T."""
    n = 0
    while 4**n < horizon:
        n += 1
    return n


def priors(n):
    """convex, then [n + 1] of the strongly convex and as many of the exp-concave experts."""
    c = 1 + 1 / (n + 1)
    tail = np.array([c / (3 * (i + 1) * (i + 2)) for i in range(n + 1)])
    return np.concatenate([[1 / 3], tail, tail])


class Maler:
    """Experts in the order convex, strongly convex 0..n, exp-concave 0..n."""

    def __init__(self, dim, horizon, *, theta_bound, gradient_bound):
        self.D, self.G, self.diam = theta_bound, gradient_bound, 2 * theta_bound
        n = self.n = num_scales(horizon)
        eta = [2.0**-i / (5 * self.diam * self.G) for i in range(n + 1)]
        self.eta_c = 1 / (2 * self.G * self.diam * math.sqrt(horizon))
        self.rates = np.array([self.eta_c, *eta, *eta])
        self.log_weights = np.log(priors(n))
        self.points = np.zeros((2 * n + 3, dim))
        gradient_of_surrogate = 7 / (25 * self.diam)
        self.b = 0.5 * min(1 / (4 * gradient_of_surrogate * self.diam), 1.0)
        self.A = [np.eye(dim) / (self.b * self.diam) ** 2 for _ in range(n + 1)]
        self.t = 1
        self.outside = 0  # exp-concave steps that left the ball

    def predict(self):
        tilted = np.exp(self.log_weights - self.log_weights.max()) * self.rates
        return tilted @ self.points / tilted.sum()

    def update(self, g):
        x, G, n = self.predict(), self.G, self.n
        new, losses = self.points.copy(), np.zeros(2 * n + 3)

        point = self.points[0]
        losses[0] = -self.eta_c * ((x - point) @ g) + (self.eta_c * G * self.diam) ** 2
        new[0] = project_ball(point - self.diam / (G * math.sqrt(self.t)) * g, self.D)

        for i in range(n + 1):
            e = 1 + i
            point, eta = self.points[e], self.rates[e]
            losses[e] = -eta * ((x - point) @ g) + eta**2 * G**2 * ((x - point) @ (x - point))
            slope = eta * g + 2 * eta**2 * G**2 * (point - x)
            new[e] = project_ball(point - slope / (2 * eta**2 * G**2 * self.t), self.D)

        for i in range(n + 1):
            e = 2 + n + i
            point, eta = self.points[e], self.rates[e]
            r = (x - point) @ g
            losses[e] = -eta * r + eta**2 * r**2
            slope = eta * g + 2 * eta**2 * g * (g @ (point - x))
            self.A[i] = self.A[i] + np.outer(slope, slope)
            step = point - np.linalg.solve(self.A[i], slope) / self.b
            self.outside += step @ step > self.D**2
            new[e] = project_ellipsoid(step, self.A[i], self.D)

        self.log_weights = self.log_weights - losses
        top = self.log_weights.max()
        self.log_weights = self.log_weights - (top + math.log(np.exp(self.log_weights - top).sum()))
        self.points = new
        self.t += 1
