"""docs/formulas/ldp_contextual.md#gradient-descent: projected online gradient descent."""

import math

import numpy as np


def project_ball(x, radius):
    norm = math.sqrt(x @ x)
    return x if norm <= radius else x * (radius / norm)


class OGD:
    """Gradients are clipped by the caller. strong_convexity is mu of the `strong` step."""

    def __init__(self, dim, *, theta_bound, gradient_bound, step="adanorm", strong_convexity=None):
        self.D, self.G, self.step, self.mu = theta_bound, gradient_bound, step, strong_convexity
        self.theta, self.t, self.total = np.zeros(dim), 1, 0.0

    def predict(self):
        return self.theta

    def update(self, g):
        self.total += g @ g
        if self.step == "sqrt":
            a = 2 * self.D / (self.G * math.sqrt(self.t))
        elif self.step == "strong":
            a = 1 / (self.mu * self.t)
        else:
            a = math.sqrt(2) * self.D / math.sqrt(self.total) if self.total > 0 else 0.0
        self.theta = project_ball(self.theta - a * g, self.D)
        self.t += 1
