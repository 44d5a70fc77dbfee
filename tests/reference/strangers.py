"""Learners as other people write them, in NumPy: UCB1, EXP3 and LinUCB by the literal listings of this folder."""

import math
import os

import numpy as np
from numpy_draws import NumpyDraws

from reference.adversarial import Exp3
from reference.linear import first_argmax, linucb_width

TIE = 1e-5  # as the package has it: unit vectors tie at the first play


class UCB1Stranger:
    """Every arm once, then argmax mean + scale sqrt(2 ln t / N)."""

    def __init__(self, num_arms, scale=1.0):
        self.sums, self.counts, self.scale, self.t = [0.0] * num_arms, [0] * num_arms, scale, 0

    def index_of(self, arm):
        count = self.counts[arm]
        return self.sums[arm] / count + self.scale * math.sqrt(2 * math.log(self.t) / count) if count else math.inf

    def ask(self):
        self.t += 1
        return max(range(len(self.sums)), key=self.index_of)

    def tell(self, arm, reward):
        self.sums[arm] += reward
        self.counts[arm] += 1


class Exp3Stranger:
    """EXP3, told losses, on the uniforms that the package's own EXP3 has in a run of this seed."""

    def __init__(self, num_arms, seed, learning_rate, mixing):
        self.base = Exp3(num_arms, learning_rate=learning_rate, mixing=mixing)
        self.draws, self.t = NumpyDraws(seed, "alg/act"), 0

    def act(self):
        self.t += 1
        return self.base.act(self.t, float(self.draws.uniform(self.t)))

    def update(self, arm, loss):
        self.base.update(loss)


class LinUCBStranger:
    """LinUCB of the theory preset, its inverse computed anew in every play."""

    def __init__(self, dim, horizon, radius_scale=1.0, ridge=1.0):
        self.gram, self.moment, self.t = np.zeros((dim, dim)), np.zeros(dim), 0
        self.dim, self.horizon, self.radius_scale, self.ridge = dim, horizon, radius_scale, ridge

    def select_arm(self, features):
        self.t += 1
        inverse = np.linalg.inv(self.gram + self.ridge * np.eye(self.dim))
        width = linucb_width(self.t, self.dim, failure_prob=1 / self.horizon, ridge=self.ridge)
        spread = [self.radius_scale * width * math.sqrt(x @ inverse @ x) for x in features]
        return first_argmax([x @ inverse @ self.moment + s for x, s in zip(features, spread, strict=True)], TIE)

    def update(self, arm, reward, features):
        x = np.asarray(features[arm])
        self.gram, self.moment = self.gram + np.outer(x, x), self.moment + reward * x


class Told:
    """Plays arms in turn and remembers what it is told."""

    def __init__(self, num_arms=2, seed=0):
        self.num_arms, self.seed, self.told, self.plays = num_arms, seed, [], 0

    def ask(self):
        self.plays += 1
        return (self.plays + self.seed) % self.num_arms

    def tell(self, arm, reward):
        self.told.append((arm, reward))


class ByItself:
    """Draws from a generator that no seed fixes."""

    def __init__(self, num_arms):
        self.draws, self.num_arms = np.random.default_rng(), num_arms

    def ask(self):
        return self.draws.integers(self.num_arms)

    def tell(self, arm, reward):
        pass


class FailsLate(Told):
    def tell(self, arm, reward):
        if self.seed == 1 and self.plays == 20:
            raise ValueError("too late")


class OneArm(Told):
    def ask(self):
        self.plays += 1
        return 1


class EndsLate(OneArm):
    """Takes its process with it."""

    def tell(self, arm, reward):
        if self.seed == 1 and self.plays == 20:
            os._exit(7)
