"""
Audit somebody else's learner
=============================

A learner in plain NumPy claims epsilon = 1: it plays both arms in turn, adds Laplace noise to the sums of rewards, and
commits to the arm of the larger one. :func:`jaxbandits.foreign` brings it here, and :func:`jaxbandits.audit` plays it
on two streams of rewards that differ in one play. Nothing but the arms is seen.
"""

from functools import partial

import numpy as np

import jaxbandits as jb


class Commits:
    def __init__(self, num_arms, seed, epsilon, noise=1.0):
        self.draws, self.scale = np.random.default_rng(seed), noise / epsilon
        self.sums, self.plays, self.best = np.zeros(num_arms), 0, None

    def ask(self):
        return self.plays % len(self.sums) if self.best is None else self.best

    def tell(self, arm, reward):
        self.plays += 1
        self.sums[arm] += reward
        if self.plays == 10:
            self.best = int(np.argmax(self.sums + self.draws.laplace(scale=self.scale, size=len(self.sums))))


theirs = jb.foreign(Commits)
honest = jb.audit(theirs, horizon=12, epsilon=1.0, runs=40_000)
figure, data = jb.plot.trade_off(
    honest, caption="The noise that the claim needs: the arms give away less than claimed."
)
print(honest)

# %%
# Its twin has half the noise and the same claim. The line names two inputs and what is likelier on one of them, which
# can be played by hand.

broken = jb.audit(partial(theirs, noise=0.5), horizon=12, epsilon=1.0, runs=40_000)
second, table = jb.plot.trade_off(broken, caption="Half of that noise: the test comes below the curve.")
print(broken)

# %%
# What half the noise would buy. The same learner in a sweep, beside one of ours at the same epsilon.

learners = {"theirs": partial(theirs, epsilon=1.0), "half the noise": partial(theirs, epsilon=1.0, noise=0.5)}
arms = jb.environments.bernoulli_arms(means=[0.3, 0.7])
ds = jb.sweep({**learners, "DP-KLUCB": partial(jb.algorithms.dp_klucb, epsilon=1.0)}, arms, horizon=500, seeds=100)
print(jb.table(ds))
