"""Index policies: docs/formulas/private_robust_mab.md#comparators, from all data at every play.

`rewards(t, arm)` pays play t (1-based, may be inf or NaN); other draws are given as functions of the play. Every
index is computed afresh from all rewards of its arm; t is the coming play. An index that is not defined yet is +inf,
and the first arm of largest index is played.
"""

import math

from .private_robust_estimators import (
    catoni_mean,
    falling_truncated_mean,
    first_max,
    huber_location,
    median_of_means,
    shorth,
    trimmed_mean,
)
from .private_robust_rivals import Plays, clipped, kl_upper, low_moment, noise, scaled, zeroed


def index_policy(rewards, num_arms, horizon, index, receive=zeroed, follow=None):
    """index(t, x) of an arm's rewards x so far, never empty; an arm without one has +inf. Returns actions [T].

    follow [T]: among finite indices within 1e-9 of the largest, the arm that this path took; where sums of few
    different values tie, rounding of another order of summation decides.
    """
    data, plays = [[] for _ in range(num_arms)], Plays(rewards, horizon, receive)
    while not plays.done():
        t = len(plays.actions) + 1
        values = [index(t, data[a]) if data[a] else math.inf for a in range(num_arms)]
        arm = first_max(values)
        if follow is not None and values[arm] < math.inf and values[follow[t - 1]] > values[arm] - 1e-9:
            arm = int(follow[t - 1])
        data[arm] += plays.block(arm, 1)
    return plays.result()[0]


def robust_ucb(rewards, *, num_arms, horizon, estimator="truncated", moment_order=2.0, moment_bound=1.0):
    """Robust-UCB with delta_t = 1 / t^2."""
    order, u = low_moment(moment_order, moment_bound)
    e = order - 1

    def bonus(v, c, t, n):
        return v ** (1 / (1 + e)) * (c * math.log(t**2) / n) ** (e / (1 + e))

    def truncated(t, x):
        return falling_truncated_mean(x, u, order, math.log(t**2)) + bonus(u, 4 ** ((1 + e) / e), t, len(x))

    def blocks(t, x):
        return median_of_means(x, math.log(t**2)) + bonus(12 * u, 32, t, len(x))

    def catoni(t, x):
        n, log = len(x), math.log(t**2)
        return catoni_mean(x, u, 1 / t**2) + 2 * math.sqrt(u * log / n) if n >= 4 * log else math.inf

    index = {"truncated": truncated, "median_of_means": blocks, "catoni": catoni}[estimator]
    return index_policy(rewards, num_arms, horizon, index, float if estimator == "truncated" else zeroed)


def huber_ucb(
    rewards, *, num_arms, horizon, noise_scale=1.0, corruption_bound=0.0, clip=None, min_pulls_scale=8.0
):  # fmt: skip
    b = 2 * noise_scale if clip is None else clip
    bias = 2 * b * corruption_bound / (1 - 2 * corruption_bound)

    def index(t, x):
        n = len(x)
        if n < math.ceil(min_pulls_scale * math.log(t)):
            return math.inf
        return huber_location(x, b) + noise_scale * math.sqrt(2 * math.log(t) / n) + b * math.log(t) / (3 * n) + bias

    return index_policy(rewards, num_arms, horizon, index)


def cr_ucb(
    rewards, *, num_arms, horizon, noise_scale=1.0, corruption_bound=0.0, estimator="trimmed", corruption_width=1.0
):  # fmt: skip
    centre = {"trimmed": trimmed_mean, "shorth": shorth}[estimator]
    bias = corruption_width * corruption_bound * math.sqrt(math.log(horizon))

    def index(t, x):
        width = noise_scale / (1 - 2 * corruption_bound) * (math.sqrt(4 * math.log(t) / len(x)) + bias)
        return centre(x, corruption_bound) + width

    return index_policy(rewards, num_arms, horizon, index)


def ldp_ucb(
    rewards, laplace, uniform, *, num_arms, horizon, epsilon, mechanism="laplace", mechanism_scale=1.0, follow=None
):
    """Every client reports privately: laplace(t), or uniform(t) for randomised response."""
    noisy, clock = {"laplace": epsilon_laplace, "randomized_response": randomized_response}[mechanism], [0]

    def receive(reward):
        clock[0] += 1
        return noisy(clipped(reward), clock[0], epsilon, mechanism_scale, laplace, uniform)

    def index(t, x):
        n, mean = len(x), sum(x) / len(x)
        if mechanism == "randomized_response":
            return mean + response_gain(epsilon) * math.sqrt(2 * math.log(t) / n)
        if n < 4 * math.log(t):
            return math.inf
        return mean + math.sqrt(8 * (1 / 4 + scaled(2 / epsilon, epsilon)) * math.log(t) / n)

    return index_policy(rewards, num_arms, horizon, index, receive, follow)


def epsilon_laplace(r, t, epsilon, mechanism_scale, laplace, uniform):
    return r + noise(mechanism_scale * scaled(1.0, epsilon), lambda: laplace(t))


def response_gain(epsilon):
    """(e^epsilon + 1) / (e^epsilon - 1)."""
    return 1 / math.tanh(epsilon / 2)


def randomized_response(r, t, epsilon, mechanism_scale, laplace, uniform):
    """Bernoulli(r), flipped with probability p = 1 / (1 + e^epsilon), in one draw; debiased: (y - p) / (1 - 2p)."""
    p = mechanism_scale / (1 + math.exp(epsilon)) if epsilon < 700 else 0.0
    y = float(uniform(t) < r * (1 - p) + (1 - r) * p)
    return (y - p) / (1 - 2 * p)


def thompson(rewards, draw, *, num_arms, horizon, noise_scale=None):
    """Bernoulli (noise_scale None): draw(t, successes + 1 [K], failures + 1 [K]) ~ Beta [K].

    Gaussian: draw(t, arm) ~ N(0, 1).
    """
    data, plays = [[] for _ in range(num_arms)], Plays(rewards, horizon, clipped if noise_scale is None else zeroed)

    def sample(t, arm):
        x = data[arm]
        return sum(x) / len(x) + noise_scale / math.sqrt(len(x)) * draw(t, arm) if x else math.inf

    while not plays.done():
        t = len(plays.actions) + 1
        if noise_scale is None:
            samples = draw(t, [1 + sum(x) for x in data], [1 + len(x) - sum(x) for x in data])
        else:
            samples = [sample(t, a) for a in range(num_arms)]
        arm = first_max(samples)
        data[arm] += plays.block(arm, 1)
    return plays.result()[0]


def kl_ucb(rewards, *, num_arms, horizon, bonus_scale=1.0, follow=None):
    """max {q: N d(mean, q) <= ln t}; an arm never played comes before q = 1."""

    def index(t, x):
        return min(kl_upper(sum(x) / len(x), bonus_scale * math.log(t) / len(x)), 1e300)

    return index_policy(rewards, num_arms, horizon, index, clipped, follow)


def moss(rewards, *, num_arms, horizon, bonus_scale=1.0, follow=None):
    def index(t, x):
        n = len(x)
        return sum(x) / n + bonus_scale * math.sqrt(max(0.0, math.log(horizon / (num_arms * n))) / n)

    return index_policy(rewards, num_arms, horizon, index, follow=follow)
