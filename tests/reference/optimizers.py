"""Optimizers as their papers write them, in float64 and entry by entry; projected onto a ball after every step.

sgd: x - a g. Momentum (Polyak 1964, as optax has it): m = d m + g, x - a m. Adam (Kingma and Ba 2015, Algorithm 1).
AdaGrad (Duchi, Hazan and Singer 2011): x - a g / sqrt(0.1 + sum g^2 + 1e-7), optax's first accumulator and its
epsilon. A builder returns step(g, t).
"""

import math

import numpy as np


def sgd(rate):
    return lambda g, t: rate * g


def decaying(rate):
    return lambda g, t: rate / t * g


def momentum(rate, decay):
    memory = [0.0]

    def step(g, t):
        memory[0] = decay * memory[0] + g
        return rate * memory[0]

    return step


def adam(rate, b1=0.9, b2=0.999, epsilon=1e-8):
    moments = [0.0, 0.0]

    def step(g, t):
        moments[0] = b1 * moments[0] + (1 - b1) * g
        moments[1] = b2 * moments[1] + (1 - b2) * g * g
        first, second = moments[0] / (1 - b1**t), moments[1] / (1 - b2**t)
        return rate * first / (np.sqrt(second) + epsilon)

    return step


def adagrad(rate, initial=0.1, epsilon=1e-7):
    total = [initial]

    def step(g, t):
        total[0] = total[0] + g * g
        return rate * g / np.sqrt(total[0] + epsilon)

    return step


class Projected:
    """Steps of a builder above, each followed by the projection onto the ball of a radius; t is 1 at the first step."""

    def __init__(self, dim, step, *, theta_bound):
        self.step, self.D, self.x, self.t = step, theta_bound, np.zeros(dim), 1

    def predict(self):
        return self.x

    def update(self, g):
        x = self.x - self.step(g, self.t)
        size = math.sqrt(sum(a * a for a in x))
        self.x = x * (self.D / size) if size > self.D else x
        self.t += 1


def predictions(learner, gradients):
    """The points [rounds, d] before each of the gradients [rounds, d]."""
    points = []
    for g in np.asarray(gradients, np.float64):
        points.append(learner.predict())
        learner.update(g)
    return np.array(points)
