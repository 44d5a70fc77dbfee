"""Schedules and regret bounds of Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits, on the host.

N agents, a share alpha of them attacked, T plays, episodes of L, d features, sigma the features' spread, R the rewards'
noise, (mu, nu) the privacy claim, `log` natural. The schedules are the printed ones, without the simulator's scales; bounds
are orders without constants and logarithms, to be drawn as lines, not guarantees.
"""

import math
from typing import NamedTuple

from jaxbandits.validation import choice, integer, number

CONSTANTS = ("geometric_median", "dp", "median_of_means")


class Terms(NamedTuple):
    """lambda_k = shift + max(L, growth sqrt(k)), beta_k = 3 sqrt(lambda_k d) + (numerator sqrt(k - 1) + excess) / sqrt(lambda_k) + tail."""

    iota: float
    shift: float
    growth: float
    numerator: float
    excess: float
    tail: float


def terms(
    constants, *, num_agents, horizon, dim, window, corruption_bound=0.0, feature_spread=1.0, noise_scale=0.5,
    failure_prob=0.05, epsilon=math.inf, delta=1e-3,
) -> Terms:  # fmt: skip
    """The printed constants of one version, the oracle's error being 0, or ValueError; B = 0 for an infinite epsilon."""
    choice("constants", constants, CONSTANTS)
    integer("num_agents", num_agents, 1)
    integer("dim", dim, 1)
    medians = constants == "median_of_means"
    remedy = "the median-of-means constants need at most 1/4" if medians else "a majority must be honest"
    alpha = number(
        "corruption_bound", corruption_bound, 0.0, 0.25 if medians else 0.5, open_high=not medians, remedy=remedy
    )
    spread, noise = number("feature_spread", feature_spread, 0.0), number("noise_scale", noise_scale, 0.0)
    failure = number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no privacy")
    delta = number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    iota = math.log(128 * num_agents * number("horizon", horizon, 1) / failure)
    tail = 2 * noise * math.sqrt(dim * iota / num_agents)
    noisy = 48 * iota * math.log(4 / delta) * (math.sqrt(dim) + iota) / epsilon * window  # B L
    if medians:
        growth, numerator = 128 * math.sqrt(alpha * window * iota), 64 * math.sqrt(alpha * window * dim * iota)
        return Terms(iota, 8 * noisy * math.sqrt(dim), growth * spread, numerator * (spread + noise), 4 * noisy, tail)
    c = (2 - 2 * alpha) / (1 - 2 * alpha)
    growth, numerator = 8 * c * math.sqrt(window * iota), 4 * c * math.sqrt(window * dim * iota)
    noisy = c * noisy if constants == "dp" else 0.0
    return Terms(iota, 2 * noisy * math.sqrt(dim), growth * spread, numerator * (spread + noise), noisy, tail)


def byzantine_ridge(episode, *, window, constants="geometric_median", **setting) -> float:
    """lambda_k of episode k >= 1 as printed in Theorems 2 ("geometric_median"), 6 ("dp") and 7 ("median_of_means").

    window: L > 0. setting: num_agents, horizon, dim, and where they differ corruption_bound=0.0 (at most 1/4 for
    "median_of_means", else below 1/2), feature_spread=1.0, noise_scale=0.5, failure_prob=0.05, epsilon=inf and delta=1e-3
    (the privacy claim, of which "geometric_median" takes no notice). Raises ValueError outside.

    >>> byzantine_ridge(1, window=40, num_agents=10, horizon=2000, dim=4, feature_spread=0.0)
    40.0
    """
    k, window = integer("episode", episode, 1), number("window", window, 0.0, open_low=True)
    found = terms(constants, window=window, **setting)
    return found.shift + max(window, found.growth * math.sqrt(k))


def byzantine_radius(episode, *, window, constants="geometric_median", **setting) -> float:
    """beta_k of episode k >= 1 as printed in the theorems of `byzantine_ridge`, whose arguments it takes.

    Lemma 12 has Lambda_k >= lambda_k / 2, so the last term should carry sqrt(2); the slack of the others covers that only
    where feature_spread >= 0.24 noise_scale.

    >>> setting = {"window": 40, "num_agents": 10, "horizon": 2000, "dim": 4}
    >>> byzantine_radius(2, **setting) > byzantine_radius(1, **setting)
    True
    """
    found = terms(constants, window=window, **setting)
    ridge = byzantine_ridge(episode, window=window, constants=constants, **setting)
    numerator = found.numerator * math.sqrt(episode - 1) + found.excess
    return 3 * math.sqrt(ridge * setting["dim"]) + numerator / math.sqrt(ridge) + found.tail


def byzantine_window(
    num_agents, horizon, *, constants="geometric_median", corruption_bound=0.0, feature_spread=1.0, noise_scale=0.5,
    failure_prob=0.05,
) -> float:  # fmt: skip
    """The theorems' episode length L: C_alpha (sigma + R) sqrt(T iota), C_alpha = (2 - 2 alpha) / (1 - 2 alpha), for
    "geometric_median" and "dp"; max((sigma + R) sqrt(alpha T iota), 1) for "median_of_means". It is no integer and may exceed T.

    >>> byzantine_window(10, 2000, constants="median_of_means")
    1.0
    """
    found = terms(
        constants, num_agents=num_agents, horizon=horizon, dim=1, window=1, corruption_bound=corruption_bound,
        feature_spread=feature_spread, noise_scale=noise_scale, failure_prob=failure_prob,
    )  # fmt: skip
    alpha, scale = corruption_bound, (feature_spread + noise_scale) * math.sqrt(horizon * found.iota)
    if constants == "median_of_means":
        return max(scale * math.sqrt(alpha), 1.0)
    return (2 - 2 * alpha) / (1 - 2 * alpha) * scale


def byzantine_ucb_bound(num_agents, horizon, dim) -> float:
    """Byzantine-UCB, Theorem 2: robust regret of order d N T^(3/4), up to constants and logarithms.

    >>> byzantine_ucb_bound(10, 10_000, 4)
    40000.0
    """
    return integer("dim", dim, 1) * integer("num_agents", num_agents, 1) * number("horizon", horizon, 1) ** 0.75


def byzantine_ucb_dp_bound(num_agents, horizon, dim, epsilon, delta) -> float:
    """Byzantine-UCB-DP, Theorem 6: sqrt(log(2 / nu) / mu) d^(3/2) N T^(3/4), up to constants and logarithms; (mu, nu) =
    (epsilon, delta), epsilon > 0 and finite, delta in (0, 1).

    >>> round(byzantine_ucb_dp_bound(10, 10_000, 4, 1.0, 1e-3) / 1e3)
    221
    """
    return _private(epsilon, delta) * math.sqrt(dim) * byzantine_ucb_bound(num_agents, horizon, dim)


def byzantine_ucb_dp_mom_bound(num_agents, horizon, dim, epsilon, delta, *, corruption_bound=0.0) -> float:
    """Byzantine-UCB-DP-MoM, Theorem 7: sqrt(log(2 / nu) / mu) d^(3/2) N (alpha^(1/4) T^(3/4) + sqrt(T)), up to constants and logarithms;
    alpha = corruption_bound in [0, 1/4].

    >>> byzantine_ucb_dp_mom_bound(10, 10_000, 4, 1.0, 1e-3) < byzantine_ucb_dp_bound(10, 10_000, 4, 1.0, 1e-3)
    True
    """
    alpha = number("corruption_bound", corruption_bound, 0.0, 0.25)
    rate = alpha**0.25 * number("horizon", horizon, 1) ** 0.75 + math.sqrt(horizon)
    return _private(epsilon, delta) * integer("dim", dim, 1) ** 1.5 * integer("num_agents", num_agents, 1) * rate


def _private(epsilon, delta) -> float:
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, remedy="without privacy use byzantine_ucb_bound")
    delta = number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    return math.sqrt(math.log(2 / delta) / epsilon)
