"""Schedules and regret bounds of Byzantine-robust federated linear bandits (Jadbabaie, Li, Qian and Tian), on the host.

N agents, a share alpha of them attacked, T plays, episodes of L, d features, sigma the features' spread, R the
rewards' noise, (mu, nu) the privacy claim, `log` natural. The schedules are the printed ones, without the
simulator's scales. Bounds are orders without constants and logarithms, to be drawn as lines; they are not
guarantees.
Formulas: `docs/formulas/byzantine.md#constants` and `docs/formulas/byzantine.md#regret-bounds`.
"""

import math
from typing import Annotated, Literal, NamedTuple, Required, TypedDict, Unpack

from jaxbandits.declared import LATER, Default, Delta, Doc, Ge, Gt, Inside, Le, Positive, Remedy
from jaxbandits.theory.quantities import Agents, Features, FiniteEpsilon, Length
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare, number

Version = Annotated[Literal["geometric_median", "dp", "median_of_means"], Doc("The version: Theorem 2, 6 or 7.")]
Spread = Annotated[Scalar, Ge(0), Doc("Spread sigma of the features.")]
Noise = Annotated[Scalar, Ge(0), Doc("Noise R of a reward.")]
Attacked = Annotated[
    Scalar, LATER, Doc('Share alpha of attacked agents: at most 1/4 for "median_of_means", else below 1/2.')
]
Fourth = Annotated[Scalar, Ge(0), Le(0.25), Doc("Share alpha of attacked agents.")]
FailureProb = Annotated[Inside, Doc("Failure probability of the bounds.")]
Budget = Annotated[FiniteEpsilon, Remedy("without privacy use byzantine_ucb_bound"), Doc("Privacy budget mu, finite.")]
Episode = Annotated[int, Ge(1), Doc("Index k of the episode.")]
Window = Annotated[Positive, Doc("Plays L of an episode.")]

PAPER = 'Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits"'
CONSTANTS_SOURCE = f"{PAPER}, Theorems 2, 6 and 7: `docs/formulas/byzantine.md#constants`."


class FederatedSetting(TypedDict, total=False):
    """Numbers of a run that the schedules depend on.

    Args:
        epsilon: Privacy budget of the claim; inf: no privacy. "geometric_median" takes no notice of it.
        delta: Failure probability of the privacy claim. "geometric_median" takes no notice of it.
    """

    num_agents: Required[Agents]
    horizon: Required[Length]
    dim: Required[Features]
    corruption_bound: Annotated[Attacked, Default(0.0)]
    feature_spread: Annotated[Spread, Default(1.0)]
    noise_scale: Annotated[Noise, Default(0.5)]
    failure_prob: Annotated[FailureProb, Default(0.05)]
    epsilon: Annotated[Scalar, Gt(0), Le(math.inf), Remedy("use float('inf') for no privacy"), Default(math.inf)]
    delta: Annotated[Delta, Default(1e-3)]


class Terms(NamedTuple):
    """The numbers of a version's ridge lambda_k and radius beta_k.

    lambda_k = shift + max(L, growth sqrt(k)) and
    beta_k = 3 sqrt(lambda_k d) + (numerator sqrt(k - 1) + excess) / sqrt(lambda_k) + tail.
    """

    shift: float
    growth: float
    numerator: float
    excess: float
    tail: float


def _check_attacked(constants: str, share: Scalar) -> None:
    medians = constants == "median_of_means"
    remedy = "the median-of-means constants need at most 1/4" if medians else "a majority must be honest"
    number("corruption_bound", share, 0.0, 0.25 if medians else 0.5, open_high=not medians, remedy=remedy)


def _iota(num_agents: int, horizon: Scalar, failure_prob: Scalar) -> float:
    return math.log(128 * num_agents * horizon / failure_prob)


@declare
def terms(constants: Version, *, window: Annotated[float, LATER], **setting: Unpack[FederatedSetting]) -> Terms:
    """The printed constants of one version, with an oracle's error of 0, or a ValueError.

    Without privacy, at an infinite epsilon, B is 0.
    """
    dim, spread, noise = setting["dim"], float(setting["feature_spread"]), float(setting["noise_scale"])
    _check_attacked(constants, setting["corruption_bound"])
    alpha = float(setting["corruption_bound"])
    iota = _iota(setting["num_agents"], setting["horizon"], setting["failure_prob"])
    private = float(48 * iota * math.log(4 / setting["delta"]) * (math.sqrt(dim) + iota) / setting["epsilon"] * window)
    # medians of means have alpha under the roots
    c, under = (16.0, alpha) if constants == "median_of_means" else ((2 - 2 * alpha) / (1 - 2 * alpha), 1.0)
    excess = {"dp": c * private, "median_of_means": 4 * private}.get(constants, 0.0)
    return Terms(
        shift=2 * excess * math.sqrt(dim),
        growth=8 * c * math.sqrt(under * window * iota) * spread,
        numerator=4 * c * math.sqrt(under * window * dim * iota) * (spread + noise),
        excess=excess,
        tail=2 * noise * math.sqrt(dim * iota / setting["num_agents"]),
    )


@declare(source=CONSTANTS_SOURCE)
def byzantine_ridge(
    episode: Episode, *, window: Window, constants: Version = "geometric_median", **setting: Unpack[FederatedSetting]
) -> float:
    """The ridge lambda_k of an episode, as printed.

    >>> byzantine_ridge(1, window=40, num_agents=10, horizon=2000, dim=4, feature_spread=0.0)
    40.0
    """
    printed = terms(constants, window=float(window), **setting)
    return printed.shift + max(float(window), printed.growth * math.sqrt(episode))


@declare(source=CONSTANTS_SOURCE)
def byzantine_radius(
    episode: Episode, *, window: Window, constants: Version = "geometric_median", **setting: Unpack[FederatedSetting]
) -> float:
    """The radius beta_k of an episode, as printed.

    Note:
        Lemma 12 has Lambda_k >= lambda_k / 2, so the middle term should carry sqrt(2). The slack of the first covers
        that where feature_spread >= 0.14 noise_scale; elsewhere it may not.

    >>> setting = {"window": 40, "num_agents": 10, "horizon": 2000, "dim": 4}
    >>> byzantine_radius(2, **setting) > byzantine_radius(1, **setting)
    True
    """
    printed = terms(constants, window=float(window), **setting)
    ridge = byzantine_ridge(episode, window=window, constants=constants, **setting)
    numerator = printed.numerator * math.sqrt(episode - 1) + printed.excess
    return 3 * math.sqrt(ridge * setting["dim"]) + numerator / math.sqrt(ridge) + printed.tail


@declare(source=CONSTANTS_SOURCE)
def byzantine_window(
    num_agents: Agents,
    horizon: Length,
    *,
    constants: Version = "geometric_median",
    corruption_bound: Attacked = 0.0,
    feature_spread: Spread = 1.0,
    noise_scale: Noise = 0.5,
    failure_prob: FailureProb = 0.05,
) -> float:
    """The length L of an episode in the theorems.

    C_alpha (sigma + R) sqrt(T iota) with C_alpha = (2 - 2 alpha) / (1 - 2 alpha) for "geometric_median" and "dp", and
    max((sigma + R) sqrt(alpha T iota), 1) for "median_of_means", with iota = log(128 N T / failure_prob).

    It is no integer and may exceed T.

    >>> byzantine_window(10, 2000, constants="median_of_means")
    1.0
    """
    _check_attacked(constants, corruption_bound)
    iota = _iota(num_agents, horizon, failure_prob)
    scale = (feature_spread + noise_scale) * math.sqrt(horizon * iota)
    if constants == "median_of_means":
        return float(max(scale * math.sqrt(corruption_bound), 1.0))
    return float((2 - 2 * corruption_bound) / (1 - 2 * corruption_bound) * scale)


@declare(source=f"{PAPER}, Theorem 2: `docs/formulas/byzantine.md#regret-bounds`.")
def byzantine_ucb_bound(num_agents: Agents, horizon: Length, dim: Features) -> float:
    """Robust regret of Byzantine-UCB: d N T^(3/4), up to constants and logarithms.

    >>> byzantine_ucb_bound(10, 10_000, 4)
    40000.0
    """
    return dim * num_agents * float(horizon) ** 0.75


@declare(source=f"{PAPER}, Theorem 6: `docs/formulas/byzantine.md#regret-bounds`.")
def byzantine_ucb_dp_bound(num_agents: Agents, horizon: Length, dim: Features, epsilon: Budget, delta: Delta) -> float:
    """Robust regret of Byzantine-UCB-DP, up to constants and logarithms.

    sqrt(log(2 / nu) / mu) d^(3/2) N T^(3/4), for mu of order log(2 / nu) at most.

    >>> round(byzantine_ucb_dp_bound(10, 10_000, 4, 1.0, 1e-3) / 1e3)
    221
    """
    return math.sqrt(math.log(2 / delta) / epsilon) * math.sqrt(dim) * byzantine_ucb_bound(num_agents, horizon, dim)


@declare(source=f"{PAPER}, Theorem 7: `docs/formulas/byzantine.md#regret-bounds`.")
def byzantine_ucb_dp_mom_bound(
    num_agents: Agents, horizon: Length, dim: Features, epsilon: Budget, delta: Delta, *, corruption_bound: Fourth = 0.0
) -> float:
    """Robust regret of Byzantine-UCB-DP-MoM, up to constants and logarithms.

    sqrt(log(2 / nu) / mu) d^(3/2) N (alpha^(1/4) T^(3/4) + sqrt(T)), for mu of order log(2 / nu) at most.

    >>> byzantine_ucb_dp_mom_bound(10, 10_000, 4, 1.0, 1e-3) < byzantine_ucb_dp_bound(10, 10_000, 4, 1.0, 1e-3)
    True
    """
    rate = float(corruption_bound) ** 0.25 * float(horizon) ** 0.75 + math.sqrt(horizon)
    return math.sqrt(math.log(2 / delta) / epsilon) * dim**1.5 * num_agents * rate
