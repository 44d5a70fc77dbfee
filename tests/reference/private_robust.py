"""PRM elimination, UCB and Thompson: docs/formulas/private_robust_mab.md, pull by pull.

Randomness is given: `rewards(t, arm)` pays play t (1-based, may be inf or NaN); `laplace(kind, t, position)` is a
standard Laplace draw of kind "mean" (position 0) or "bins" (position = bin), t the last play of what is released: of
the batch, or of its first fold; `pick(t)` is a uniform arm, t the first play it serves; `coin(t)` a uniform;
`normal(t, arm)` a standard normal, t the episode's first play.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .private_robust_estimators import bin_counts, first_max, truncated_mean


class Setup(NamedTuple):
    """The arguments of the algorithms, with the defaults
    of docs/formulas/private_robust_mab.md#constants (elimination).
    """

    num_arms: int
    horizon: int
    epsilon: float
    moment: str = "raw"
    moment_order: float = 2.0
    moment_bound: float = 1.0
    mean_bound: float = math.nan
    corruption_bound: float = 0.0
    failure_prob: float | None = None
    radius: str = "order"
    clip_scale: float = 1.0
    sampling_scale: float = 0.5
    privacy_scale: float = 0.75
    corruption_scale: float = 0.5
    threshold_scale: float = 1.0
    histogram_scale: float = 8.0
    guard_bins: int = 0
    clip_mode: str = "shifted"
    exploration: str = "batch"
    greedy_prob: float = 0.0
    forced_arms: tuple | None = None
    mechanism_scale: float = 1.0


class Release(NamedTuple):
    """One private estimate: what left the server."""

    t: int  # last play of the batch
    arm: int
    size: int  # plays of the batch
    value: float
    left_edge: float  # central only


class Run(NamedTuple):
    actions: Any  # [T]
    released: list
    blocks: list  # (plays before it, arm, planned length), in order of play


def failure_prob(setup):
    return 1.0 / setup.horizon if setup.failure_prob is None else setup.failure_prob


def unit(setup):
    """s: rewards are measured in units of s = u^(1/k)."""
    return setup.moment_bound ** (1 / setup.moment_order)


def samples(setup, size):
    """n: every play of a raw batch, half of a central one."""
    return size if setup.moment == "raw" else size // 2


def relative_clip(setup, n):
    """m(n) = (n min(epsilon, 1) / L)^(1/k), at most alpha^(-1/k)."""
    k, bound = setup.moment_order, setup.corruption_bound
    m = (n * min(setup.epsilon, 1.0) / math.log(1 / failure_prob(setup))) ** (1 / k)
    return min(m, bound ** (-1 / k)) if bound > 0 else m


def iota(corruption_bound):
    """Corollaries 6.6 (clean) and 6.8."""
    return 10.0 if corruption_bound == 0 else (1 - corruption_bound) / (0.249 - corruption_bound)


def bin_width(setup):
    """r."""
    return unit(setup) * iota(setup.corruption_bound) ** (1 / setup.moment_order)


def left_edges(setup):
    """e_j = -D + (j - guard) r."""
    width, bound, guard = bin_width(setup), setup.mean_bound, setup.guard_bins
    return [-bound + (j - guard) * width for j in range(math.ceil(2 * bound / width - 1e-12) + 2 * guard)]


def clip(setup, n):
    """M."""
    a = setup.clip_scale * unit(setup) * relative_clip(setup, n)
    return a + 2 * bin_width(setup) if (setup.moment, setup.clip_mode) == ("central", "shifted") else a


def radius(setup, n):
    """beta(n), n the samples of the truncated mean."""
    k, delta, bound, epsilon = setup.moment_order, failure_prob(setup), setup.corruption_bound, setup.epsilon
    s, log = unit(setup), math.log(1 / failure_prob(setup))
    if setup.radius == "order":
        beta = setup.sampling_scale * math.sqrt(log / n)
        beta += setup.privacy_scale * (log / (n * min(epsilon, 1.0))) ** (1 - 1 / k)
        beta += setup.corruption_scale * bound ** (1 - 1 / k) if bound > 0 else 0.0
        return s * beta
    a, M = setup.clip_scale * relative_clip(setup, n), clip(setup, n) / s
    noise = 0.0 if math.isinf(epsilon) else 2 * M * math.log(2 / delta) / (n * epsilon)
    if setup.moment == "raw":
        variance, bias = 1 + bound * M**2, M ** (1 - k) + bound * (M + 1)
    else:
        assert setup.clip_mode == "shifted"
        r = bin_width(setup) / s
        variance = 1 + 4 * r**2 * a ** (-k) + bound * (M + 2 * r) ** 2
        bias = a ** (1 - k) + 2 * r * a ** (-k) + bound * (M + 2 * r)
    sampling = math.sqrt(2 * variance * math.log(4 / delta) / n) + 2 * M * math.log(4 / delta) / (3 * n)
    return s * (sampling + noise + bias)


def threshold(setup):
    """T0: batches shorter than this give no estimate. The explicit radius needs no L / alpha."""
    contaminated, histogram = 0.0, 0.0
    if setup.corruption_bound > 0 and setup.radius == "order":
        contaminated = setup.threshold_scale * math.log(1 / failure_prob(setup)) / setup.corruption_bound
    if setup.moment == "central":
        histogram = math.log(setup.mean_bound / failure_prob(setup)) / min(setup.epsilon, 1.0)
    return max(contaminated, setup.histogram_scale * histogram)


def laplace_scale(setup, sensitivity):
    return 0.0 if math.isinf(setup.epsilon) else setup.mechanism_scale * sensitivity / setup.epsilon


def noise(setup, sensitivity, draw):
    """Select, never multiply: no draw is taken where the scale is zero."""
    scale = laplace_scale(setup, sensitivity)
    return scale * draw() if scale > 0 else 0.0


def prm_raw(setup, x, laplace, t):
    """Algorithm 2."""
    n, M = len(x), clip(setup, len(x))
    return truncated_mean(x, M) + noise(setup, 2 * M / n, lambda: laplace("mean", t, 0))


def prm_central(setup, x, laplace, t):
    """Algorithm 3: a noisy histogram of the first fold finds a bin, the second fold is averaged around it."""
    n, edges = len(x) // 2, left_edges(setup)
    M, best, top = clip(setup, n), 0, -math.inf
    for j, count in enumerate(bin_counts(x[:n], edges, bin_width(setup))):
        share = count / n + noise(setup, 2 / n, lambda j=j: laplace("bins", t - n, j))
        if share > top:
            best, top = j, share
    J = edges[best]
    centred = [value - J for value in x[n : 2 * n]]
    return J + truncated_mean(centred, M) + noise(setup, 2 * M / n, lambda: laplace("mean", t, 0)), J


class Pulls:
    """Plays one by one up to the horizon."""

    def __init__(self, rewards, horizon):
        self.rewards, self.horizon = rewards, horizon
        self.actions, self.blocks, self.released = [], [], []

    def next(self):
        """Index of the coming play."""
        return len(self.actions) + 1

    def done(self):
        return len(self.actions) == self.horizon

    def block(self, arm, size):
        """Rewards of `size` plays of one arm, or None where the horizon cut them."""
        self.blocks.append((len(self.actions), arm, size))
        x = []
        for _ in range(size):
            if self.done():
                return None
            x.append(float(self.rewards(self.next(), arm)))
            self.actions.append(arm)
        return x

    def estimate(self, setup, arm, x, laplace):
        t, J = len(self.actions), math.nan
        if setup.moment == "raw":
            value = prm_raw(setup, x, laplace, t)
        else:
            value, J = prm_central(setup, x, laplace, t)
        self.released.append(Release(t, arm, len(x), value, J))
        return value

    def run(self):
        return Run(np.array(self.actions, int), self.released, self.blocks)


def prm_elimination(setup, rewards, laplace, pick=None, coin=None):
    """Algorithm 1."""
    pulls, active, batch, forced = Pulls(rewards, setup.horizon), list(range(setup.num_arms)), 1, 0
    latest = [None] * setup.num_arms  # greedy exploration: an arm's latest private value
    while not pulls.done():
        batch *= 2
        if batch < threshold(setup):
            first = pulls.next()
            if setup.forced_arms is not None:
                arm = setup.forced_arms[forced % len(setup.forced_arms)]
            elif setup.exploration == "round":
                for _ in range(batch):
                    if not pulls.done():
                        pulls.block(pick(pulls.next()), 1)
                continue
            elif setup.exploration == "batch" or coin(first) < setup.greedy_prob:
                arm = pick(first)
            elif None in latest:
                arm = latest.index(None)
            else:
                arm = first_max(latest)
            forced += 1
            x = pulls.block(arm, batch)
            if setup.exploration == "greedy" and x is not None:
                latest[arm] = pulls.estimate(setup, arm, x, laplace)
            continue
        values = {}
        for arm in active:
            x = pulls.block(arm, batch)
            if x is None:
                return pulls.run()
            if len(active) > 1:
                values[arm] = pulls.estimate(setup, arm, x, laplace)
        if len(active) > 1:
            best, beta = max(values.values()), radius(setup, samples(setup, batch))
            active = [arm for arm in active if not best - values[arm] > 2 * beta]
    return pulls.run()


def prm_index(setup, rewards, laplace, optimism):
    """docs/formulas/private_robust_mab.md#prm-ucb-and-prm-ts:
    B0 pulls of every arm, then episodes of twice the samples behind the chosen arm's value.
    """
    pulls, size = Pulls(rewards, setup.horizon), 2
    while size < threshold(setup):
        size *= 2
    value, width, behind = [], [], []
    for arm in range(setup.num_arms):
        x = pulls.block(arm, size)
        if x is None:
            return pulls.run()
        value.append(pulls.estimate(setup, arm, x, laplace))
        width.append(radius(setup, samples(setup, size)))
        behind.append(size)
    while not pulls.done():
        t = pulls.next()
        arm = first_max([value[a] + width[a] * optimism(t, a) for a in range(setup.num_arms)])
        x = pulls.block(arm, 2 * behind[arm])
        if x is not None:
            behind[arm] = len(x)
            value[arm] = pulls.estimate(setup, arm, x, laplace)
            width[arm] = radius(setup, samples(setup, len(x)))
    return pulls.run()


def prm_ucb(setup, rewards, laplace):
    return prm_index(setup, rewards, laplace, lambda t, a: 1.0)


def prm_thompson(setup, rewards, laplace, normal, thompson_scale=0.7):
    return prm_index(setup, rewards, laplace, lambda t, a: thompson_scale * normal(t, a))
