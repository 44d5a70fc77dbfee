"""Tunings of Asi, Raman and Talwar (ICML 2025), on the host: K arms, N experts, T plays, n = epsilon T."""

import bisect
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, NoReturn

from jaxbandits.declared import LATER, Doc, Ge, Gt, Le, NonNegative, Positive, Remedy
from jaxbandits.mechanisms.composition import composed_epsilon as composed_epsilon  # a name of `theory` too
from jaxbandits.theory.quantities import Arms, Epsilon, Experts, Plays, SmallDelta
from jaxbandits.typing import Scalar
from jaxbandits.validation import declare, integer

Mixing = Annotated[Scalar, Ge(0), Le(1), Doc("Share of uniform exploration. The default: the theory's.")]
WholeRun = Annotated[Scalar, Gt(0), Doc("Privacy budget of the whole run.")]
AtMostOne = Annotated[WholeRun, Le(1), Remedy("for a larger epsilon choose the window yourself")]
Covered = Annotated[Scalar, LATER, Doc("Privacy budget of the whole run, in [1/T, 1], which the theory covers.")]
TunedNumbers = Annotated[dict[str, Any], Doc("``learning_rate``, ``mixing``, ``window`` and ``noise_scale``.")]


@declare(source="Asi, Raman and Talwar 2025, Algorithm 1: `docs/formulas/private_adversarial.md#batch-length`.")
def window(epsilon: AtMostOne) -> int:
    """Batch length tau = ceil(1 / epsilon) of Algorithm 1.

    Note:
        1 / epsilon within a relative 1e-6 of an integer counts as that integer, so that 1/49 gives 49 also after
        float32 rounding.

    >>> window(0.1), window(1 / 49), window(0.3)
    (10, 49, 4)
    """
    return _ceil_with_tolerance(1 / float(epsilon), 1e-6)


@declare
def check_epsilon(
    epsilon: Annotated[WholeRun, Le(math.inf)], horizon: Annotated[int, LATER, Doc("Number of plays T.")]
) -> Annotated[float, Doc("epsilon.")]:
    """Check that the theory of Algorithm 1 covers epsilon: 1/T <= epsilon <= 1.

    Raises:
        ValueError: If epsilon lies outside [1/T, 1].
    """
    if not (1 - 1e-6) / horizon <= epsilon <= 1:
        covers = f"the theory covers 1/T <= epsilon <= 1 (T = {horizon})"
        raise ValueError(f"epsilon = {epsilon!r}: {covers}; choose the window yourself")
    return float(epsilon)


@declare(check=False)
def check_mixing(mixing: float, mixing_at: Callable[[int], float], **sizes: Any) -> float:
    """Check that the theory's mixing is a probability.

    Args:
        mixing: The theory's share of uniform exploration.
        mixing_at: The mixing at another horizon T.
        sizes (int or float): The sizes that the error names, T among them.

    Returns:
        mixing.

    Raises:
        ValueError: If mixing lies outside [0, 1]. The error names the sizes and the smallest T that works.
    """
    if not 0 <= mixing <= 1:
        refuse(f"the theory's mixing is {mixing:.4g} > 1", lambda t: 0 <= mixing_at(t) <= 1, **sizes)
    return mixing


@declare(check=False)
def refuse(
    what: str, works: Callable[[int], bool], *, remedy: str = "learning_rate and mixing", **sizes: Any
) -> NoReturn:
    """Raise a ValueError that names the smallest larger horizon at which the theory works.

    Args:
        what: What is wrong.
        works: Whether the theory works at a horizon T. The smallest such T is found by bisection.
        remedy: The arguments that replace the theory's values.
        sizes (int or float): The sizes that the error names, T among them.

    Raises:
        ValueError: Always.
    """
    horizons = range(2**62)
    first = bisect.bisect_left(horizons, True, sizes["T"] + 1, key=works)
    given = ", ".join(f"{name} = {x:.6g}" if isinstance(x, float) else f"{name} = {x}" for name, x in sizes.items())
    enlarge = f"the smallest T that works is {first}: enlarge the horizon"
    change = enlarge if first in horizons else "no T works: change the others"
    raise ValueError(f"{what} at {given}; {change}, or give {remedy}")


@declare(source="Asi, Raman and Talwar 2025, Corollary E.1: `docs/formulas/private_adversarial.md#exp3`.")
def exp3_tuning(num_arms: Arms, horizon: Plays, epsilon: Covered, *, mixing: Mixing | None = None) -> TunedNumbers:
    """Tuning of EXP3 inside Algorithm 1.

    learning_rate = sqrt(log K / (22 n K L^2)) and mixing = 4 learning_rate K L with n = epsilon T and L = log(K n).

    Raises:
        ValueError: If an argument lies outside its range, L <= 0, or the theory's mixing exceeds 1 (about epsilon T <
            0.73 K log K).

    >>> sorted(exp3_tuning(10, 100_000, 0.1))
    ['learning_rate', 'mixing', 'noise_scale', 'window']
    """
    k, epsilon = num_arms, check_epsilon(epsilon, horizon)
    n, tau = epsilon * horizon, window(epsilon)
    log_kn = _positive_log(k * n, f"epsilon T = {n:.4g}")
    rate = math.sqrt(math.log(k) / (22 * n * k * log_kn**2))
    if mixing is None:
        share = math.sqrt(16 * k * math.log(k) / 22)  # 4 rate K L: L cancels
        check_mixing(4 * rate * k * log_kn, lambda t: share / math.sqrt(epsilon * t), K=k, T=horizon, epsilon=epsilon)
        mixing = 4 * rate * k * log_kn
    return {"learning_rate": rate, "mixing": mixing, "window": tau, "noise_scale": 1 / (tau * epsilon)}


@declare(source="Asi, Raman and Talwar 2025, proof of Corollary E.1: `docs/formulas/private_adversarial.md#exp3`.")
def exp3_noisy_tuning(
    num_arms: Arms, horizon: Plays, noise_scale: NonNegative, *, mixing: Mixing | None = None, window: int = 1
) -> Annotated[dict[str, Any], Doc("``learning_rate`` and ``mixing``.")]:
    """Tuning of EXP3 on losses with Laplace noise, the general form behind Corollary E.1.

    learning_rate = sqrt(log K / (2 J K (1 + 10 max(lam^2, lam) log^2(K J)))) and mixing = 4 learning_rate lam K
    log(K J).

    Args:
        horizon: Number of updates J.
        noise_scale: Scale lam of the noise.
        window: Plays of an update. It changes the text of errors only, which then count plays and name epsilon = 1 /
            (window lam).

    Raises:
        ValueError: If an argument lies outside its range, or the theory's mixing exceeds 1.
    """
    k, j, lam = num_arms, horizon, noise_scale

    def rate_and_mixing(j):
        log_kj = math.log(k * j)
        rate = math.sqrt(math.log(k) / (2 * j * k * (1 + 10 * max(lam**2, lam) * log_kj**2)))
        return rate, 4 * rate * lam * k * log_kj

    rate, share = rate_and_mixing(j)
    if mixing is None:
        sizes = {"K": k, "T": j * window, "epsilon": 1 / (window * lam) if lam > 0 else math.inf}
        sizes |= {"window": window} if window > 1 else {}
        mixing = check_mixing(share, lambda t: rate_and_mixing(t // window)[1], **sizes)
    return {"learning_rate": rate, "mixing": mixing}


@declare(source="Asi, Raman and Talwar 2025, Corollary E.3: `docs/formulas/private_adversarial.md#ftpl`.")
def ftpl_tuning(num_arms: Arms, horizon: Plays, epsilon: Covered) -> dict[str, Any]:
    """Tuning of FTPL inside Algorithm 1.

    tries = ceil(sqrt(K n)) and
    learning_rate = min(sqrt(log K / (K n + 10 K n L^2)), 1 / (sqrt(K n) (1 + 4 log n))) with n = epsilon T and
    L = log(K n).

    Returns:
        ``learning_rate``, ``tries``, ``window`` and ``noise_scale``.

    Raises:
        ValueError: If an argument lies outside its range, or L <= 0.
    """
    k, epsilon = num_arms, check_epsilon(epsilon, horizon)
    n, tau = epsilon * horizon, window(epsilon)
    log_kn = _positive_log(k * n, f"epsilon T = {n:.4g}")
    first = math.sqrt(math.log(k) / (k * n + 10 * k * n * log_kn**2))
    second = 1 / (math.sqrt(k * n) * (1 + 4 * math.log(n)))
    tries = _ceil_with_tolerance(math.sqrt(k * n))
    return {"learning_rate": min(first, second), "tries": tries, "window": tau, "noise_scale": 1 / (tau * epsilon)}


@declare(source="Asi, Raman and Talwar 2025, Lemma E.4: `docs/formulas/private_adversarial.md#ftpl`.")
def ftpl_noisy_tuning(num_arms: Arms, horizon: Plays, noise_scale: NonNegative) -> dict[str, Any]:
    """Tuning of FTPL on losses with Laplace noise.

    tries = ceil(sqrt(K J)) and
    learning_rate = min(sqrt(log K / (K J (1 + 10 lam^2 log^2(K J)))), 1 / (sqrt(K J) (1 + 4 lam log J))).

    Args:
        horizon: Number of updates J.
        noise_scale: Scale lam of the noise.

    Returns:
        ``learning_rate`` and ``tries``.
    """
    k, j, lam = num_arms, horizon, noise_scale
    first = math.sqrt(math.log(k) / (k * j * (1 + 10 * lam**2 * math.log(k * j) ** 2)))
    second = 1 / (math.sqrt(k * j) * (1 + 4 * lam * math.log(j)))
    return {"learning_rate": min(first, second), "tries": _ceil_with_tolerance(math.sqrt(k * j))}


@declare(
    source="Asi, Raman and Talwar 2025, Algorithm 6 and Theorem 4.4: `docs/formulas/private_adversarial.md#ldp-exp4`."
)
def local_exp4_tuning(
    num_arms: Arms, num_experts: Experts, horizon: Plays, epsilon: Epsilon, *, mixing: Mixing | None = None
) -> Annotated[dict[str, Any], Doc("``learning_rate``, ``mixing`` and ``noise_scale``.")]:
    """Tuning of LDP-EXP4.

    learning_rate = sqrt(log N / (3 T K (1 + 10 log^2(K T) / epsilon^2))) and
    mixing = 4 learning_rate K log(K T) / epsilon.

    Args:
        epsilon: Privacy budget of the whole run; inf adds no noise and gives mixing 0.

    Raises:
        ValueError: If an argument lies outside its range, or the theory's mixing exceeds 1 (about T < 0.53 K log N).
    """
    k, experts = num_arms, num_experts
    lam = 0.0 if math.isinf(epsilon) else 1 / epsilon

    def rate_and_mixing(t):
        log_kt = math.log(k * t)
        rate = math.sqrt(math.log(experts) / (3 * t * k * (1 + 10 * (lam * log_kt) ** 2)))
        return rate, 4 * rate * k * log_kt * lam

    rate, share = rate_and_mixing(horizon)
    if mixing is None:
        mixing = check_mixing(share, lambda t: rate_and_mixing(t)[1], K=k, N=experts, T=horizon, epsilon=epsilon)
    return {"learning_rate": rate, "mixing": mixing, "noise_scale": lam}


@declare(
    source="Asi, Raman and Talwar 2025, Algorithm 2 and Theorem 4.5: "
    "`docs/formulas/private_adversarial.md#batched-exp4`."
)
def batched_exp4_tuning(
    num_arms: Arms,
    num_experts: Experts,
    horizon: Plays,
    epsilon: Epsilon,
    delta: Annotated[SmallDelta, Remedy("a larger delta would leave too little noise")],
    *,
    mixing_rule: Literal["repaired", "printed"] = "repaired",
    learning_rate: Annotated[Positive, Doc("Step size. The default: the theory's.")] | None = None,
    mixing: Annotated[Scalar, Gt(0), Le(1)] | None = None,
    window: Annotated[int, LATER, Doc("Plays of a batch, from 1 to T. The default: the theory's.")] | None = None,
) -> TunedNumbers:
    """Tuning of batched EXP4.

    With N' = N log(1/delta) and L = log(N T):
    learning_rate = N'^(1/6) L^(1/3) log(N)^(1/3) / (T^(1/3) K^(1/2) epsilon^(1/3)),
    window = ceil(N'^(1/3) L^(2/3) T^(1/3) / (epsilon^(2/3) log(N)^(1/3))),
    mixing = max((learning_rate N')^(1/3) K^(2/3) L^(2/3) / (epsilon window)^(2/3),
    12 learning_rate K sqrt(N') L / (epsilon window)), noise_scale = 3 K sqrt(N') / (mixing window epsilon).

    Args:
        epsilon: Privacy budget of the whole run. inf adds no noise and needs `learning_rate`, `mixing` and `window`.
        mixing_rule: "printed" has N for N' in the first branch of mixing; the theorem's rate needs N'.
        mixing: Share of uniform exploration. The default: the theory's. The noise follows from the mixing used.

    Raises:
        ValueError: If an argument lies outside its range, or the theory gives mixing > 1, learning_rate >= 1 or window
            > T.
    """
    k, n = num_arms, num_experts
    given = {"learning_rate": learning_rate, "mixing": mixing, "window": window}
    if math.isinf(epsilon) and (missing := [name for name, value in given.items() if value is None]):
        remedy = "give learning_rate, mixing and window"
        raise ValueError(f"epsilon = inf leaves {', '.join(missing)} without a theory: {remedy}")
    if any(value is None for value in given.values()) and math.log(1 / delta) < 0.91 * epsilon:
        needed = f"the theorem needs log(1/delta) >= 0.91 epsilon; take delta at most {math.exp(-0.91 * epsilon):.4g}"
        raise ValueError(f"delta = {delta!r} is too large for epsilon = {epsilon!r}: {needed}")
    more = n * math.log(1 / delta)

    def rate_window_mixing(t):
        """Learning rate, window and mixing at horizon t: given values as they are, the others the theory's."""
        log_nt = math.log(n * t)
        rate, tau, share = learning_rate, window, mixing
        if rate is None:
            rate = more ** (1 / 6) * (log_nt * math.log(n) / (t * epsilon)) ** (1 / 3) / math.sqrt(k)
        if tau is None:
            tau = math.ceil((more * log_nt**2 * t / (epsilon**2 * math.log(n))) ** (1 / 3))
        if share is None:
            within = more if mixing_rule == "repaired" else n
            first = (rate * within) ** (1 / 3) * (k * log_nt / (epsilon * tau)) ** (2 / 3)
            share = max(first, 12 * rate * k * math.sqrt(more) * log_nt / (epsilon * tau))
        return rate, tau, share

    def works(t):
        rate, tau, share = rate_window_mixing(t)
        return (learning_rate is not None or rate < 1) and tau <= t and share <= 1

    if window is not None:
        window = integer("window", window, 1, horizon)
    rate, tau, share = rate_window_mixing(horizon)
    if not works(horizon):
        what = f"the theory's learning rate is {rate:.4g}, window {tau}, mixing {share:.4g}"
        what += "; needed are < 1, <= T and <= 1"
        sizes = {"K": k, "N": n, "T": horizon, "epsilon": epsilon, "delta": delta}
        refuse(what, works, remedy="learning_rate, mixing and window", **sizes)
    scale = 3 * k * math.sqrt(more) / (share * tau * epsilon)
    return {"learning_rate": rate, "mixing": share, "window": tau, "noise_scale": scale}


@declare(source="Auer, Cesa-Bianchi, Freund and Schapire 2002: `docs/formulas/private_adversarial.md#without-privacy`.")
def exp4_tuning(num_arms: Arms, num_experts: Experts, horizon: Plays) -> dict[str, float]:
    """Tuning of EXP4 without privacy: learning_rate sqrt(2 log N / (K T)), mixing 0.

    Returns:
        dict of float: ``learning_rate`` and ``mixing``.
    """
    rate = math.sqrt(2 * math.log(num_experts) / (num_arms * horizon))
    return {"learning_rate": rate, "mixing": 0.0}


def _positive_log(value: float, what: str) -> float:
    if value <= 1:
        raise ValueError(f"{what} is too small: the tuning needs K epsilon T > 1; enlarge horizon or epsilon")
    return math.log(value)


def _ceil_with_tolerance(value: float, rounding: float = 1e-9) -> int:
    nearest = round(value)
    return nearest if abs(value - nearest) <= rounding * value else math.ceil(value)
