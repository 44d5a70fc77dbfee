"""Schedules and regret bounds of Byzantine-robust federated linear bandits (Jadbabaie, Li, Qian and Tian), on the host.

N agents, a share alpha of them attacked, T plays, episodes of L, d features, sigma the features' spread, R the
rewards' noise, (mu, nu) the privacy claim, `log` natural. The schedules are the printed ones, without the
simulator's scales. Bounds are orders without constants and logarithms, to be drawn as lines; they are not
guarantees.
Formulas: `docs/formulas/byzantine.md#constants` and `docs/formulas/byzantine.md#regret-bounds`.
"""

import math
from typing import Any, Literal, NamedTuple, TypeAlias

from jaxbandits.typing import Scalar
from jaxbandits.validation import choice, integer, number

CONSTANTS = ("geometric_median", "dp", "median_of_means")

Version: TypeAlias = Literal["geometric_median", "dp", "median_of_means"]


class Terms(NamedTuple):
    """The numbers of a version's ridge lambda_k and radius beta_k.

    lambda_k = shift + max(L, growth sqrt(k)) and
    beta_k = 3 sqrt(lambda_k d) + (numerator sqrt(k - 1) + excess) / sqrt(lambda_k) + tail.
    """

    iota: float
    shift: float
    growth: float
    numerator: float
    excess: float
    tail: float


def terms(
    constants: Version,
    *,
    num_agents: int,
    horizon: Scalar,
    dim: int,
    window: Scalar,
    corruption_bound: Scalar = 0.0,
    feature_spread: Scalar = 1.0,
    noise_scale: Scalar = 0.5,
    failure_prob: Scalar = 0.05,
    epsilon: Scalar = math.inf,
    delta: Scalar = 1e-3,
) -> Terms:
    """The printed constants of one version, with an oracle's error of 0, or a ValueError.

    Without privacy, at an infinite epsilon, B is 0.
    """
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
    noisy = float(48 * iota * math.log(4 / delta) * (math.sqrt(dim) + iota) / epsilon * window)  # B L
    if medians:
        growth, numerator = 128 * math.sqrt(alpha * window * iota), 64 * math.sqrt(alpha * window * dim * iota)
        return Terms(
            iota=iota,
            shift=8 * noisy * math.sqrt(dim),
            growth=growth * spread,
            numerator=numerator * (spread + noise),
            excess=4 * noisy,
            tail=tail,
        )
    c = (2 - 2 * alpha) / (1 - 2 * alpha)
    growth, numerator = 8 * c * math.sqrt(window * iota), 4 * c * math.sqrt(window * dim * iota)
    noisy = c * noisy if constants == "dp" else 0.0
    return Terms(
        iota=iota,
        shift=2 * noisy * math.sqrt(dim),
        growth=growth * spread,
        numerator=numerator * (spread + noise),
        excess=noisy,
        tail=tail,
    )


def byzantine_ridge(episode: int, *, window: Scalar, constants: Version = "geometric_median", **setting: Any) -> float:
    """The ridge lambda_k of an episode, as printed.

    Parameters
    ----------
    episode : int
        Index k of the episode, at least 1.
    window : float
        Plays L of an episode, greater than 0.
    constants : {"geometric_median", "dp", "median_of_means"}, default "geometric_median"
        The version: Theorem 2, 6 or 7.
    **setting : int or float
        ``num_agents``, ``horizon`` and ``dim``. Where they differ from the values given here also
        ``corruption_bound`` = 0.0 (at most 1/4 for ``"median_of_means"``, else below 1/2), ``feature_spread`` =
        1.0, ``noise_scale`` = 0.5, ``failure_prob`` = 0.05, and the privacy claim ``epsilon`` = inf and ``delta`` =
        1e-3, of which ``"geometric_median"`` takes no notice.

    Returns
    -------
    float
        lambda_k.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Theorems 2, 6 and 7:
    `docs/formulas/byzantine.md#constants`.

    Examples
    --------
    >>> byzantine_ridge(1, window=40, num_agents=10, horizon=2000, dim=4, feature_spread=0.0)
    40.0
    """
    k, window = integer("episode", episode, 1), number("window", window, 0.0, open_low=True)
    printed = terms(constants, window=window, **setting)
    return printed.shift + max(window, printed.growth * math.sqrt(k))


def byzantine_radius(episode: int, *, window: Scalar, constants: Version = "geometric_median", **setting: Any) -> float:
    """The radius beta_k of an episode, as printed.

    Parameters
    ----------
    episode : int
        Index k of the episode, at least 1.
    window : float
        Plays L of an episode, greater than 0.
    constants : {"geometric_median", "dp", "median_of_means"}, default "geometric_median"
        The version: Theorem 2, 6 or 7.
    **setting : int or float
        ``num_agents``, ``horizon`` and ``dim``. Where they differ from the values given here also
        ``corruption_bound`` = 0.0 (at most 1/4 for ``"median_of_means"``, else below 1/2), ``feature_spread`` =
        1.0, ``noise_scale`` = 0.5, ``failure_prob`` = 0.05, and the privacy claim ``epsilon`` = inf and ``delta`` =
        1e-3, of which ``"geometric_median"`` takes no notice.

    Returns
    -------
    float
        beta_k.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    Lemma 12 has Lambda_k >= lambda_k / 2, so the last term should carry sqrt(2). The slack of the others covers
    that only where feature_spread >= 0.24 noise_scale.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Theorems 2, 6 and 7:
    `docs/formulas/byzantine.md#constants`.

    Examples
    --------
    >>> setting = {"window": 40, "num_agents": 10, "horizon": 2000, "dim": 4}
    >>> byzantine_radius(2, **setting) > byzantine_radius(1, **setting)
    True
    """
    printed = terms(constants, window=window, **setting)
    ridge = byzantine_ridge(episode, window=window, constants=constants, **setting)
    numerator = printed.numerator * math.sqrt(episode - 1) + printed.excess
    return 3 * math.sqrt(ridge * setting["dim"]) + numerator / math.sqrt(ridge) + printed.tail


def byzantine_window(
    num_agents: int,
    horizon: Scalar,
    *,
    constants: Version = "geometric_median",
    corruption_bound: Scalar = 0.0,
    feature_spread: Scalar = 1.0,
    noise_scale: Scalar = 0.5,
    failure_prob: Scalar = 0.05,
) -> float:
    """The length L of an episode in the theorems.

    C_alpha (sigma + R) sqrt(T iota) with C_alpha = (2 - 2 alpha) / (1 - 2 alpha) for "geometric_median" and "dp", and
    max((sigma + R) sqrt(alpha T iota), 1) for "median_of_means", with iota = log(128 N T / failure_prob).

    Parameters
    ----------
    num_agents : int
        Number of agents N, at least 1.
    horizon : float
        Number of plays T, at least 1.
    constants : {"geometric_median", "dp", "median_of_means"}, default "geometric_median"
        The version: Theorem 2, 6 or 7.
    corruption_bound : float, default 0.0
        Share alpha of attacked agents: at most 1/4 for ``"median_of_means"``, else below 1/2.
    feature_spread : float, default 1.0
        Spread sigma of the features, at least 0.
    noise_scale : float, default 0.5
        Noise R of a reward, at least 0.
    failure_prob : float, default 0.05
        Failure probability of the bounds, in (0, 1).

    Returns
    -------
    float
        Plays of an episode. It is no integer and may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Theorems 2, 6 and 7:
    `docs/formulas/byzantine.md#constants`.

    Examples
    --------
    >>> byzantine_window(10, 2000, constants="median_of_means")
    1.0
    """
    printed = terms(
        constants,
        num_agents=num_agents,
        horizon=horizon,
        dim=1,
        window=1,
        corruption_bound=corruption_bound,
        feature_spread=feature_spread,
        noise_scale=noise_scale,
        failure_prob=failure_prob,
    )
    alpha, scale = corruption_bound, (feature_spread + noise_scale) * math.sqrt(horizon * printed.iota)
    if constants == "median_of_means":
        return float(max(scale * math.sqrt(alpha), 1.0))
    return float((2 - 2 * alpha) / (1 - 2 * alpha) * scale)


def byzantine_ucb_bound(num_agents: int, horizon: Scalar, dim: int) -> float:
    """Robust regret of Byzantine-UCB: d N T^(3/4), up to constants and logarithms.

    Parameters
    ----------
    num_agents : int
        Number of agents N, at least 1.
    horizon : float
        Number of plays T, at least 1.
    dim : int
        Number of features d, at least 1.

    Returns
    -------
    float
        The order of the robust regret.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Theorem 2:
    `docs/formulas/byzantine.md#regret-bounds`.

    Examples
    --------
    >>> byzantine_ucb_bound(10, 10_000, 4)
    40000.0
    """
    return integer("dim", dim, 1) * integer("num_agents", num_agents, 1) * number("horizon", horizon, 1) ** 0.75


def byzantine_ucb_dp_bound(num_agents: int, horizon: Scalar, dim: int, epsilon: Scalar, delta: Scalar) -> float:
    """Robust regret of Byzantine-UCB-DP, up to constants and logarithms.

    sqrt(log(2 / nu) / mu) d^(3/2) N T^(3/4).

    Parameters
    ----------
    num_agents : int
        Number of agents N, at least 1.
    horizon : float
        Number of plays T, at least 1.
    dim : int
        Number of features d, at least 1.
    epsilon : float
        Privacy budget mu, greater than 0 and finite.
    delta : float
        Failure probability nu of the privacy claim, in (0, 1).

    Returns
    -------
    float
        The order of the robust regret.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Theorem 6:
    `docs/formulas/byzantine.md#regret-bounds`.

    Examples
    --------
    >>> round(byzantine_ucb_dp_bound(10, 10_000, 4, 1.0, 1e-3) / 1e3)
    221
    """
    return _private(epsilon, delta) * math.sqrt(dim) * byzantine_ucb_bound(num_agents, horizon, dim)


def byzantine_ucb_dp_mom_bound(
    num_agents: int, horizon: Scalar, dim: int, epsilon: Scalar, delta: Scalar, *, corruption_bound: Scalar = 0.0
) -> float:
    """Robust regret of Byzantine-UCB-DP-MoM, up to constants and logarithms.

    sqrt(log(2 / nu) / mu) d^(3/2) N (alpha^(1/4) T^(3/4) + sqrt(T)).

    Parameters
    ----------
    num_agents : int
        Number of agents N, at least 1.
    horizon : float
        Number of plays T, at least 1.
    dim : int
        Number of features d, at least 1.
    epsilon : float
        Privacy budget mu, greater than 0 and finite.
    delta : float
        Failure probability nu of the privacy claim, in (0, 1).
    corruption_bound : float, default 0.0
        Share alpha of attacked agents, in [0, 1/4].

    Returns
    -------
    float
        The order of the robust regret.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Theorem 7:
    `docs/formulas/byzantine.md#regret-bounds`.

    Examples
    --------
    >>> byzantine_ucb_dp_mom_bound(10, 10_000, 4, 1.0, 1e-3) < byzantine_ucb_dp_bound(10, 10_000, 4, 1.0, 1e-3)
    True
    """
    alpha = number("corruption_bound", corruption_bound, 0.0, 0.25)
    rate = alpha**0.25 * number("horizon", horizon, 1) ** 0.75 + math.sqrt(horizon)
    return _private(epsilon, delta) * integer("dim", dim, 1) ** 1.5 * integer("num_agents", num_agents, 1) * rate


def _private(epsilon: Scalar, delta: Scalar) -> float:
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, remedy="without privacy use byzantine_ucb_bound")
    delta = number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    return math.sqrt(math.log(2 / delta) / epsilon)
