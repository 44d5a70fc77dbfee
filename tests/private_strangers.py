"""Three private learners of other people, in plain NumPy, and copies of them with a fault each.

`Episodes` is central: an arm is played for episodes of doubling length, each of which releases its noisy mean once.
`Reports` is local: every reward is sent with noise of its own. `Leaders` is for loss vectors: it plays the arm of the
best rounded noisy mean of each batch for as long as the batch took. `FAULTS` are what an audit has to refute.

The processes that play them import this module, so that it imports no JAX.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np


class Episodes:
    """An index of the noisy mean of each arm's last episode; every reward is in one release."""

    factor = 1.0  # of the noise

    def __init__(self, num_arms, horizon, epsilon, seed):
        self.rng, self.epsilon, self.horizon = self.generator(seed), epsilon, horizon
        self.counts, self.index = np.zeros(num_arms, int), np.full(num_arms, np.inf)
        self.arm, self.left, self.total, self.plays = 0, 1, 0.0, 0

    def generator(self, seed):
        return np.random.default_rng(seed)

    def ask(self):
        return self.arm

    def tell(self, arm, reward):
        self.total += min(max(reward, 0.0), 1.0)
        self.plays += 1
        self.counts[arm] += 1
        self.left -= 1
        if self.left == 0:
            self.release(arm, max(1, self.counts[arm] // 2))

    def noise(self):
        return self.factor * self.rng.laplace() / self.epsilon

    def release(self, arm, length):
        width = np.sqrt(np.log(self.horizon) / (2 * length)) + np.log(self.horizon) / (self.epsilon * length)
        self.index[arm] = (self.total + self.noise()) / length + 0.25 * width
        self.begin()

    def begin(self):
        self.arm = int(np.argmax(self.index))
        self.left, self.total = max(1, self.counts[self.arm]), 0.0


class HalfNoise(Episodes):
    """Half the noise."""

    factor = 0.5


class Unseeded(Episodes):
    """Half the noise, whatever the seed."""

    factor = 0.5

    def __init__(self, num_arms, horizon, epsilon):
        super().__init__(num_arms, horizon, epsilon, None)


class FixedSeed(Episodes):
    """Noise from a fixed seed, the same in every run."""

    def generator(self, seed):
        return np.random.default_rng(7)


class RawBonus(Episodes):
    """The bonus is larger where the mean without noise is."""

    def release(self, arm, length):
        bonus = self.total / length
        super().release(arm, length)
        self.index[arm] += bonus
        self.begin()


class EveryPlay(Episodes):
    """Epsilon is spent a play: noisy means of all rewards so far are released after each of them."""

    def __init__(self, num_arms, horizon, epsilon, seed):
        super().__init__(num_arms, horizon, epsilon, seed)
        self.sums = np.zeros_like(self.index)

    def tell(self, arm, reward):
        self.counts[arm] += 1
        self.sums[arm] += min(max(reward, 0.0), 1.0)
        noise = self.rng.laplace(size=len(self.sums)) / self.epsilon
        self.index = np.where(self.counts > 0, (self.sums + noise) / np.maximum(self.counts, 1), np.inf)
        self.arm = int(np.argmax(self.index))


class Reports:
    """UCB on rewards to which their users add noise before they send them."""

    low, high = 0.0, 1.0

    def __init__(self, num_arms, epsilon, seed):
        self.rng, self.epsilon = np.random.default_rng(seed), epsilon
        self.sums, self.counts, self.message = np.zeros(num_arms), np.zeros(num_arms, int), 0.0

    def ask(self):
        if (self.counts == 0).any():
            return int(np.argmin(self.counts))
        width = np.sqrt(8 * np.log(self.counts.sum()) / (self.epsilon**2 * self.counts))
        return int(np.argmax(self.sums / self.counts + width))

    def tell(self, arm, reward):
        self.message = min(max(reward, self.low), self.high) + self.rng.laplace() / self.epsilon
        self.sums[arm] += self.message
        self.counts[arm] += 1


class Unclipped(Reports):
    """A missing clip."""

    low, high = -np.inf, np.inf


class Leaders:
    """Batches: both arms in turn, their noisy sums, then the leader by rounded means of this batch for as long."""

    turns = 2  # of each arm in a batch

    def __init__(self, num_arms, epsilon, seed):
        self.rng, self.epsilon, self.num_arms = np.random.default_rng(seed), epsilon, num_arms
        self.shown = np.zeros(num_arms)
        self.first, self.sums, self.play, self.leader = self.draw(), np.zeros(num_arms), 0, 0

    def draw(self):
        return self.rng.laplace(size=self.num_arms) / self.epsilon

    def noise(self):
        return self.draw()

    def ask(self):
        explores = self.play < self.turns * self.num_arms
        return self.play % self.num_arms if explores else self.leader

    def tell(self, arm, reward):
        if self.play < self.turns * self.num_arms:
            self.sums[arm] += min(max(reward, 0.0), 1.0)
        self.play += 1
        if self.explored():
            self.shown = np.round((self.sums + self.noise()) / self.turns)
            self.leader = self.choose()
        if self.play == 2 * self.turns * self.num_arms:
            self.forget()

    def explored(self):
        return self.play == self.turns * self.num_arms

    def choose(self):
        return int(np.argmax(self.shown))

    def forget(self):
        self.play, self.sums = 0, np.zeros(self.num_arms)


class Reused(Leaders):
    """The noise of the first batch serves all others."""

    def noise(self):
        return self.first


class EarlyEnd(Leaders):
    """The leader is played until its rewards without noise are large enough."""

    def tell(self, arm, reward):
        super().tell(arm, reward)
        self.paid = getattr(self, "paid", 0.0) + reward
        if self.play > self.turns * self.num_arms and self.paid >= 3:
            self.forget()

    def forget(self):
        super().forget()
        self.paid = 0.0


class OncePerRelease(Leaders):
    """Sums are not reset, and every batch releases them as if they had not been released before."""

    def forget(self):
        self.play = 0


class OneDraw(Leaders):
    """One draw of noise for all arms."""

    def draw(self):
        return np.full(self.num_arms, self.rng.laplace() / self.epsilon)


class ExactTies(Leaders):
    """Ties of rounded noisy means are broken by the means without noise."""

    def choose(self):
        return int(np.lexsort((-self.sums, -self.shown))[0])


class Row(NamedTuple):
    """A learner, and how it is audited."""

    make: Any
    horizon: int
    about: dict[str, Any]
    unbounded: bool = False  # whether rewards have no bounds


def message(learner, arm, reward):
    """What a user sends."""
    return learner.message


def releases(learner, arm, reward):
    """The rounded noisy means that are in force."""
    return learner.shown


LOCAL = {"model": "local", "view": message}
VECTORS = {"unit": "loss_vector"}
HONEST = {
    "episodes": Row(Episodes, 32, {}),
    "reports": Row(Reports, 16, LOCAL),
    "leaders": Row(Leaders, 32, VECTORS | {"view": releases}),
}
FAULTS = {
    "half the noise": Row(HalfNoise, 32, {}),
    "noise reused from batch to batch": Row(Reused, 32, VECTORS),
    "noise from a fixed seed": Row(FixedSeed, 32, {}),
    "a raw mean in the bonus": Row(RawBonus, 32, {}),
    "a batch that ends when the data say so": Row(EarlyEnd, 32, VECTORS),
    "a missing clip": Row(Unclipped, 16, LOCAL, unbounded=True),
    "a budget spent once a release": Row(OncePerRelease, 64, VECTORS),
    "one draw for all arms": Row(OneDraw, 32, VECTORS),
    "ties of rounded means broken by the exact ones": Row(ExactTies, 32, VECTORS),
    "epsilon a play where a run was claimed": Row(EveryPlay, 32, {}),
}


def audit(row, runs, epsilon=1.0, **settings):
    """An audit of a row."""
    import jaxbandits as jb

    if row.unbounded:
        settings["environment"] = partial(jb.environments.gaussian_arms, means=[0.0, 0.0])
    learner = partial(jb.foreign(row.make), epsilon=epsilon)
    return jb.audit(learner, horizon=row.horizon, epsilon=epsilon, runs=runs, **row.about, **settings)
