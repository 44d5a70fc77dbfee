"""Regret bounds of Asi, Raman and Talwar (ICML 2025), on the host: K arms, N experts, T plays, n = epsilon T.

A bound may exceed T: plot min(bound, T). Where the printed constants could not be read, or a step of a proof is
missing, the docstring says which form is given.
Formulas: `docs/formulas/private_adversarial.md#bounds`.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from jaxbandits.theory.tunings import window
from jaxbandits.typing import Scalar
from jaxbandits.validation import integer, number

P = ParamSpec("P")
Bound = TypeVar("Bound")


def _checked(bound: Callable[P, Bound]) -> Callable[P, Bound]:
    """Check sizes and privacy levels by the names of the arguments."""
    checks: dict[str, Callable[[Any], Any]] = {
        "num_arms": lambda x: integer("num_arms", x, 2),
        "num_experts": lambda x: integer("num_experts", x, 2),
        "horizon": lambda x: integer("horizon", x, 1),
        "window": lambda x: integer("window", x, 1),
        "epsilon": lambda x: number("epsilon", x, 0.0, open_low=True),
        "delta": lambda x: number("delta", x, 0.0, 0.4, open_low=True),
    }
    signature = inspect.signature(bound)

    @functools.wraps(bound)
    def checking(*args: P.args, **kwargs: P.kwargs) -> Bound:
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            checks.get(name, lambda x: x)(value)
        return bound(*args, **kwargs)

    return checking


@_checked
def conversion_bound(base_bound: Scalar, window: int) -> float:
    """Regret of Algorithm 1 from a bound on its base: window * base_bound + window.

    Parameters
    ----------
    base_bound : float
        Bound on the base's regret over floor(T / window) rounds.
    window : int
        Plays of a batch, at least 1.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Theorem 3.1: `docs/formulas/private_adversarial.md#bounds`.
    """
    return float(window * base_bound + window)


@_checked
def htinf_bound(num_arms: int, horizon: int, epsilon: Scalar) -> float:
    """Regret of HTINF inside Algorithm 1, as printed.

    (60 sqrt 6 / epsilon) sqrt(K (epsilon T + 1)) + 2 / epsilon.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Corollary 3.2: `docs/formulas/private_adversarial.md#bounds`.
    """
    return float(60 * math.sqrt(6) / epsilon * math.sqrt(num_arms * (epsilon * horizon + 1)) + 2 / epsilon)


@_checked
def htinf_window_bound(num_arms: int, horizon: int, window: int, tail_scale: Scalar = 6**0.5) -> float:
    """Regret of HTINF inside Algorithm 1, in the sharper form behind Corollary 3.2.

    30 sigma tau sqrt(K (J + 1)) + tau with J = floor(T / tau).

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    window : int
        Plays tau of a batch, at least 1.
    tail_scale : float, default sqrt(6)
        sigma: sigma^2 is at least 2 + 4 lam^2, with lam the scale of the Laplace noise on a batch's mean loss. The
        default is the paper's, for lam = 1.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, proof of Corollary 3.2: `docs/formulas/private_adversarial.md#bounds`.
    """
    return conversion_bound(30 * tail_scale * math.sqrt(num_arms * (horizon // window + 1)), window)


@_checked
def exp3_bound(num_arms: int, horizon: int, epsilon: Scalar) -> float:
    """Regret of EXP3 inside Algorithm 1, as printed.

    (2/epsilon)(2 sqrt(2 n K log K (1 + 10 L^2)) + 1) + 2/epsilon with n = epsilon T and L = log(K n).

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    The proof drops a term of the mixing: `exp3_corrected_bound` has it.

    References
    ----------
    Asi, Raman and Talwar 2025, Corollary E.1: `docs/formulas/private_adversarial.md#exp3`.
    """
    n = epsilon * horizon
    log_kn = math.log(num_arms * n)
    root = math.sqrt(2 * n * num_arms * math.log(num_arms) * (1 + 10 * log_kn**2))
    return float(2 / epsilon * (2 * root + 1) + 2 / epsilon)


@_checked
def exp3_corrected_bound(num_arms: int, horizon: int, epsilon: Scalar) -> float:
    """Regret of EXP3 inside Algorithm 1, with the cost of its mixing.

    (2/epsilon)(sqrt(n K log K)[sqrt(22) L + 2 (1 + 4 L + 10 L^2) / (sqrt(22) L)] + 1) + 2/epsilon, for the tuning of
    Corollary E.1, with n = epsilon T and L = log(K n).

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Corollary E.1, repaired: `docs/formulas/private_adversarial.md#exp3`.
    """
    n = epsilon * horizon
    log_kn = math.log(num_arms * n)
    root = math.sqrt(22) * log_kn
    inner = root + 2 * (1 + 4 * log_kn + 10 * log_kn**2) / root
    return float(2 / epsilon * (math.sqrt(n * num_arms * math.log(num_arms)) * inner + 1) + 2 / epsilon)


@_checked
def exp3_base_bound(num_arms: int, horizon: int, noise_scale: Scalar, learning_rate: Scalar) -> float:
    """Regret of EXP3 with mixing 4 eta lam K L on J noisy rounds; use it with `conversion_bound`.

    log K / eta + 2 eta J K (1 + 4 lam L + 10 lam^2 L^2) + 1 with L = log(K J).

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of rounds J, at least 1.
    noise_scale : float
        Scale lam of the Laplace noise on a loss.
    learning_rate : float
        Step size eta, greater than 0.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, proof of Corollary E.1 with its dropped term put back:
    `docs/formulas/private_adversarial.md#exp3`.
    """
    lam_log = noise_scale * math.log(num_arms * horizon)
    variance = 1 + 4 * lam_log + 10 * lam_log**2
    return float(math.log(num_arms) / learning_rate + 2 * learning_rate * horizon * num_arms * variance + 1)


@_checked
def ftpl_bound(num_arms: int, horizon: int, epsilon: Scalar) -> float:
    """Regret of FTPL inside Algorithm 1, with constants of this package.

    (2/epsilon)(10 sqrt(K n log K (1 + 10 L^2)) + 6 log K sqrt(K n)(1 + 4 log n) + sqrt(K n)/e + 1) + 2/epsilon,
    with n = max(epsilon T, 1) and L = log(K n).

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Corollary E.3: `docs/formulas/private_adversarial.md#ftpl`.
    """
    n, log_k = max(epsilon * horizon, 1.0), math.log(num_arms)
    kn = num_arms * n
    inner = 10 * math.sqrt(kn * log_k * (1 + 10 * math.log(kn) ** 2))
    inner += 6 * log_k * math.sqrt(kn) * (1 + 4 * math.log(n)) + math.sqrt(kn) / math.e + 1
    return float(2 / epsilon * inner + 2 / epsilon)


@_checked
def htinf_experts_bound(num_experts: int, horizon: int, epsilon: Scalar) -> float:
    """Regret of HTINF over the experts inside Algorithm 1: `htinf_bound` with N for K.

    Parameters
    ----------
    num_experts : int
        Number of experts N, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Corollary 4.3: `docs/formulas/private_adversarial.md#bounds`.
    """
    return htinf_bound(num_experts, horizon, epsilon)


@_checked
def local_exp4_bound(num_arms: int, num_experts: int, horizon: int, epsilon: Scalar) -> float:
    """Regret of LDP-EXP4: 16 sqrt(T K log N) log(K T) / epsilon + 1.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    num_experts : int
        Number of experts N, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Theorem 4.4: `docs/formulas/private_adversarial.md#ldp-exp4`.
    """
    return float(
        16 * math.sqrt(horizon * num_arms * math.log(num_experts)) * math.log(num_arms * horizon) / epsilon + 1
    )


@_checked
def batched_exp4_bound(num_arms: int, num_experts: int, horizon: int, epsilon: Scalar, delta: Scalar) -> float:
    """Regret of batched EXP4.

    100 (N^(1/6) K^(1/2) T^(2/3) log(1/delta)^(1/6) L^(1/3) log(N)^(1/3) / epsilon^(1/3) + sqrt(N') L log(N) /
    epsilon) with L = log(N T) and N' = N log(1/delta).

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    num_experts : int
        Number of experts N, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.
    delta : float
        Failure probability of the privacy claim, in (0, 0.4].

    Returns
    -------
    float
        The bound, in units of a reward. It may exceed T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Theorem 4.5: `docs/formulas/private_adversarial.md#batched-exp4`.
    """
    more, log_n, log_nt = num_experts * math.log(1 / delta), math.log(num_experts), math.log(num_experts * horizon)
    first = more ** (1 / 6) * math.sqrt(num_arms) * horizon ** (2 / 3) * (log_nt * log_n / epsilon) ** (1 / 3)
    return 100 * (first + math.sqrt(more) * log_nt * log_n / epsilon)


@_checked
def arms_rates(num_arms: int, horizon: int, epsilon: Scalar) -> dict[str, float]:
    """Rates of private bandits without constants, by algorithm.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    dict of float
        ``existing``: sqrt(K T log(K T)) / epsilon; ``conversion``: sqrt(K T / epsilon).

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.
    """
    size = num_arms * horizon
    return {"existing": float(math.sqrt(size * math.log(size)) / epsilon), "conversion": math.sqrt(size / epsilon)}


@_checked
def experts_rates(num_arms: int, num_experts: int, horizon: int, epsilon: Scalar) -> dict[str, float]:
    """Rates of private bandits with expert advice without constants, by algorithm: take the smallest.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    num_experts : int
        Number of experts N, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    dict of float
        ``bandit_to_experts``: sqrt(N T / epsilon); ``local_exp4``: sqrt(K T log N) log(K T) / epsilon;
        ``batched_exp4``: N^(1/6) K^(1/2) T^(2/3) log(N T) / epsilon^(1/3) + sqrt(N) log(N T) / epsilon.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.
    """
    log_nt = math.log(num_experts * horizon)
    batched = num_experts ** (1 / 6) * math.sqrt(num_arms) * horizon ** (2 / 3) * log_nt / epsilon ** (1 / 3)
    return {
        "bandit_to_experts": math.sqrt(num_experts * horizon / epsilon),
        "local_exp4": math.sqrt(num_arms * horizon * math.log(num_experts)) * math.log(num_arms * horizon) / epsilon,
        "batched_exp4": batched + math.sqrt(num_experts) * log_nt / epsilon,
    }


@_checked
def arms_bounds(num_arms: int, horizon: int, epsilon: Scalar, *, corrected: bool = True) -> dict[str, float]:
    """Bounds of private bandits with constants, by the base inside Algorithm 1.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, in (0, 1].
    corrected : bool, default True
        Take Corollary 3.2 in its sharper form and Corollary E.1 with the term that its proof drops; False: both as
        printed.

    Returns
    -------
    dict of float
        ``htinf`` (Corollary 3.2), ``exp3`` (E.1) and ``ftpl`` (E.3, with constants of this package).

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.
    """
    tau = window(epsilon)
    sharp = htinf_window_bound(num_arms, horizon, tau, math.sqrt(max(6.0, 2 + 4 / (tau * epsilon) ** 2)))
    return {
        "htinf": sharp if corrected else htinf_bound(num_arms, horizon, epsilon),
        "exp3": (exp3_corrected_bound if corrected else exp3_bound)(num_arms, horizon, epsilon),
        "ftpl": ftpl_bound(num_arms, horizon, epsilon),
    }


@_checked
def experts_bounds(num_arms: int, num_experts: int, horizon: int, epsilon: Scalar, delta: Scalar) -> dict[str, float]:
    """Bounds of private bandits with expert advice with constants, by algorithm.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    num_experts : int
        Number of experts N, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.
    delta : float
        Failure probability of the privacy claim, in (0, 0.4].

    Returns
    -------
    dict of float
        ``bandit_to_experts`` (Corollary 4.3), ``local_exp4`` (4.4) and ``batched_exp4`` (4.5).

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    At sizes that can be simulated most of them exceed T: compare min(bound, T).

    References
    ----------
    Asi, Raman and Talwar 2025, Table 1: `docs/formulas/private_adversarial.md#bounds`.
    """
    return {
        "bandit_to_experts": htinf_experts_bound(num_experts, horizon, epsilon),
        "local_exp4": local_exp4_bound(num_arms, num_experts, horizon, epsilon),
        "batched_exp4": batched_exp4_bound(num_arms, num_experts, horizon, epsilon, delta),
    }


@_checked
def experts_regions(num_arms: int, num_experts: int, horizon: int, epsilon: Scalar) -> tuple[str, ...]:
    """The algorithms with expert advice whose printed region holds the point: none, one or several.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2.
    num_experts : int
        Number of experts N, at least 2.
    horizon : int
        Number of plays T, at least 1.
    epsilon : float
        Privacy budget of the whole run, greater than 0 and finite.

    Returns
    -------
    tuple of str
        ``bandit_to_experts`` for N <= K; ``local_exp4`` for N >= K and epsilon >= K / N; ``batched_exp4`` for N >=
        K and epsilon <= 1 / sqrt T.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    The regions do not tile. For a map without holes take the smallest of `experts_rates` or `experts_bounds`.

    References
    ----------
    Asi, Raman and Talwar 2025, Table 2, as printed: `docs/formulas/private_adversarial.md#bounds`.

    Examples
    --------
    >>> experts_regions(10, 5, 10_000, 0.1), experts_regions(10, 100, 10_000, 0.05)
    (('bandit_to_experts',), ())
    """
    many = num_experts >= num_arms
    holds = {
        "bandit_to_experts": num_experts <= num_arms,
        "local_exp4": many and epsilon >= num_arms / num_experts,
        "batched_exp4": many and epsilon <= 1 / math.sqrt(horizon),
    }
    return tuple(name for name, inside in holds.items() if inside)
