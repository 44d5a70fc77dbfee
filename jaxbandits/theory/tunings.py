"""Tunings of Asi, Raman and Talwar (ICML 2025), on the host: K arms, N experts, T plays, n = epsilon T."""

import math

from jaxbandits.validation import choice, integer, number


def window(epsilon) -> int:
    """Batch length tau = ceil(1 / epsilon) of Algorithm 1, epsilon in (0, 1].

    Guarded: 1 / epsilon within a relative 1e-6 of an integer counts as that integer, so 1/49 gives 49 also after float32 rounding.

    >>> window(0.1), window(1 / 49), window(0.3)
    (10, 49, 4)
    """
    epsilon = number(
        "epsilon", epsilon, 0.0, 1.0, open_low=True, remedy="for a larger epsilon choose the window yourself"
    )
    nearest = round(1 / epsilon)
    return nearest if abs(1 / epsilon - nearest) <= 1e-6 / epsilon else math.ceil(1 / epsilon)


def check_epsilon(epsilon, horizon) -> float:
    """epsilon if the theory of Algorithm 1 covers it: 1/T <= epsilon <= 1; otherwise ValueError."""
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    if not (1 - 1e-6) / horizon <= epsilon <= 1:
        raise ValueError(
            f"epsilon = {epsilon!r}: the theory covers 1/T <= epsilon <= 1 (T = {horizon}); choose the window yourself"
        )
    return epsilon


def check_mixing(mixing: float, mixing_at, **sizes) -> float:
    """mixing if it is a probability; otherwise ValueError with the sizes (T among them) and the smallest T that works.

    mixing_at: T -> the mixing there.
    """
    if not 0 <= mixing <= 1:
        refuse(f"the theory's mixing is {mixing:.4g} > 1", lambda t: 0 <= mixing_at(t) <= 1, **sizes)
    return mixing


def refuse(what: str, works, *, remedy="learning_rate and mixing", **sizes):
    """Raise ValueError: what is wrong, at which sizes (T among them), and the smallest larger T where `works(T)`, by bisection.

    remedy: the arguments that replace the theory's values.
    """
    low, high = sizes["T"], 2 * sizes["T"]
    while high < 2**62 and not works(high):
        low, high = high, 2 * high
    while high - low > 1 and high < 2**62:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    given = ", ".join(
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}" for name, value in sizes.items()
    )
    enlarge = (
        f"the smallest T that works is {high}: enlarge the horizon" if high < 2**62 else "no T works: change the others"
    )
    raise ValueError(f"{what} at {given}; {enlarge}, or give {remedy}")


def exp3_tuning(num_arms, horizon, epsilon, *, mixing=None) -> dict:
    """EXP3 inside Algorithm 1, Corollary E.1: `learning_rate`, `mixing`, `window`, `noise_scale`.

    learning_rate = sqrt(log K / (22 n K L^2)), mixing = 4 learning_rate K L, n = epsilon T, L = log(K n). Raises ValueError where mixing
    would exceed 1 (about epsilon T < 0.73 K log K) or L <= 0; a given `mixing` replaces the theory's.

    >>> sorted(exp3_tuning(10, 100_000, 0.1))
    ['learning_rate', 'mixing', 'noise_scale', 'window']
    """
    k, horizon = _sizes(num_arms, horizon)
    epsilon = check_epsilon(epsilon, horizon)
    n, tau = epsilon * horizon, window(epsilon)
    log_kn = _positive_log(k * n, f"epsilon T = {n:.4g}")
    rate = math.sqrt(math.log(k) / (22 * n * k * log_kn**2))
    if mixing is None:
        share = math.sqrt(16 * k * math.log(k) / 22)  # 4 rate K L: L cancels
        check_mixing(4 * rate * k * log_kn, lambda t: share / math.sqrt(epsilon * t), K=k, T=horizon, epsilon=epsilon)
        mixing = 4 * rate * k * log_kn
    mixing = number("mixing", mixing, 0.0, 1.0)
    return {"learning_rate": rate, "mixing": mixing, "window": tau, "noise_scale": 1 / (tau * epsilon)}


def exp3_noisy_tuning(num_arms, horizon, noise_scale, *, mixing=None, window=1) -> dict:
    """EXP3 on losses with Laplace noise of scale lam over J = horizon updates (the general form behind Corollary E.1).

    window: plays of an update; an error then counts plays, T, and names epsilon = 1 / (window lam).

    learning_rate = sqrt(log K / (2 J K (1 + 10 max(lam^2, lam) log^2(K J)))), mixing = 4 learning_rate lam K log(K J).
    Raises ValueError where mixing would exceed 1; a given `mixing` replaces the theory's.
    """
    k, j = _sizes(num_arms, horizon)
    lam = number("noise_scale", noise_scale, 0.0)

    def numbers(j):
        log_kj = math.log(k * j)
        rate = math.sqrt(math.log(k) / (2 * j * k * (1 + 10 * max(lam**2, lam) * log_kj**2)))
        return rate, 4 * rate * lam * k * log_kj

    rate, share = numbers(j)
    if mixing is None:
        sizes = {"K": k, "T": j * window, "epsilon": 1 / (window * lam) if lam > 0 else math.inf}
        sizes |= {"window": window} if window > 1 else {}
        mixing = check_mixing(share, lambda t: numbers(t // window)[1], **sizes)
    mixing = number("mixing", mixing, 0.0, 1.0)
    return {"learning_rate": rate, "mixing": mixing}


def ftpl_tuning(num_arms, horizon, epsilon) -> dict:
    """FTPL inside Algorithm 1, Corollary E.3: `learning_rate`, `tries`, `window`, `noise_scale`. L = log(K n).

    tries = ceil(sqrt(K n)), learning_rate = min(sqrt(log K / (K n + 10 K n L^2)), 1 / (sqrt(K n) (1 + 4 log n))).
    """
    k, horizon = _sizes(num_arms, horizon)
    epsilon = check_epsilon(epsilon, horizon)
    n, tau = epsilon * horizon, window(epsilon)
    log_kn = _positive_log(k * n, f"epsilon T = {n:.4g}")
    first = math.sqrt(math.log(k) / (k * n + 10 * k * n * log_kn**2))
    second = 1 / (math.sqrt(k * n) * (1 + 4 * max(math.log(n), 0.0)))
    tries = _guarded_ceil(math.sqrt(k * n))
    return {"learning_rate": min(first, second), "tries": tries, "window": tau, "noise_scale": 1 / (tau * epsilon)}


def ftpl_noisy_tuning(num_arms, horizon, noise_scale) -> dict:
    """FTPL on losses with Laplace noise of scale lam over J = horizon plays, Lemma E.4: `learning_rate`, `tries`.

    tries = ceil(sqrt(K J)), learning_rate = min(sqrt(log K / (K J (1 + 10 lam^2 log^2(K J)))), 1 / (sqrt(K J) (1 + 4 lam log J))).
    """
    k, j = _sizes(num_arms, horizon)
    lam = number("noise_scale", noise_scale, 0.0)
    first = math.sqrt(math.log(k) / (k * j * (1 + 10 * lam**2 * math.log(k * j) ** 2)))
    second = 1 / (math.sqrt(k * j) * (1 + 4 * lam * math.log(j)))
    return {"learning_rate": min(first, second), "tries": _guarded_ceil(math.sqrt(k * j))}


def local_exp4_tuning(num_arms, num_experts, horizon, epsilon, *, mixing=None) -> dict:
    """LDP-EXP4 (Algorithm 6), Theorem 4.4: `learning_rate`, `mixing`, `noise_scale`. epsilon in (0, inf]: inf is mixing 0.

    learning_rate = sqrt(log N / (3 T K (1 + 10 log^2(K T) / epsilon^2))), mixing = 4 learning_rate K log(K T) / epsilon.
    Raises ValueError where mixing would exceed 1 (about T < 0.53 K log N); a given `mixing` replaces the theory's.
    """
    k, horizon = _sizes(num_arms, horizon)
    experts = integer("num_experts", num_experts, 2)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    lam = 0.0 if math.isinf(epsilon) else 1 / epsilon

    def numbers(t):
        log_kt = math.log(k * t)
        rate = math.sqrt(math.log(experts) / (3 * t * k * (1 + 10 * (lam * log_kt) ** 2)))
        return rate, 4 * rate * k * log_kt * lam

    rate, share = numbers(horizon)
    if mixing is None:
        mixing = check_mixing(share, lambda t: numbers(t)[1], K=k, N=experts, T=horizon, epsilon=epsilon)
    mixing = number("mixing", mixing, 0.0, 1.0)
    return {"learning_rate": rate, "mixing": mixing, "noise_scale": lam}


def batched_exp4_tuning(
    num_arms,
    num_experts,
    horizon,
    epsilon,
    delta,
    *,
    mixing_rule="repaired",
    learning_rate=None,
    mixing=None,
    window=None,
) -> dict:
    """Batched EXP4 (Algorithm 2), Theorem 4.5: `learning_rate`, `mixing`, `window`, `noise_scale`.

    With N' = N log(1/delta) and L = log(N T): learning_rate = N'^(1/6) L^(1/3) log(N)^(1/3) / (T^(1/3) K^(1/2) epsilon^(1/3)),
    window = ceil(N'^(1/3) L^(2/3) T^(1/3) / (epsilon^(2/3) log(N)^(1/3))), mixing = max((learning_rate N')^(1/3) K^(2/3) L^(2/3) /
    (epsilon window)^(2/3), 12 learning_rate K sqrt(N') L / (epsilon window)), noise_scale = 3 K sqrt(N') / (mixing window epsilon).
    mixing_rule="printed" has N for N' in the first branch, as printed; the theorem's rate needs N'. Given values replace the
    theory's and the noise follows from the mixing used. 0 < delta <= 0.4 (the noise's own condition). epsilon = inf needs all
    three and adds no noise. Raises ValueError where mixing > 1, learning_rate >= 1 or window > T.
    """
    k, horizon = _sizes(num_arms, horizon)
    n = integer("num_experts", num_experts, 2)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    delta = number("delta", delta, 0.0, 0.4, open_low=True, remedy="a larger delta would leave too little noise")
    choice("mixing_rule", mixing_rule, ("repaired", "printed"))
    given = {"learning_rate": learning_rate, "mixing": mixing, "window": window}
    if math.isinf(epsilon) and (missing := [name for name, value in given.items() if value is None]):
        raise ValueError(
            f"epsilon = inf leaves {', '.join(missing)} without a theory: give learning_rate, mixing and window"
        )
    if any(value is None for value in given.values()) and math.log(1 / delta) < 0.91 * epsilon:
        raise ValueError(
            f"delta = {delta!r} is too large for epsilon = {epsilon!r}: the theorem needs log(1/delta) >= 0.91 epsilon; "
            f"take delta at most {math.exp(-0.91 * epsilon):.4g}"
        )
    more = n * math.log(1 / delta)

    def numbers(t):
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
        rate, tau, share = numbers(t)
        return (learning_rate is not None or rate < 1) and tau <= t and share <= 1

    if learning_rate is not None:
        learning_rate = number("learning_rate", learning_rate, 0.0, open_low=True)
    if window is not None:
        window = integer("window", window, 1, horizon)
    if mixing is not None:
        mixing = number("mixing", mixing, 0.0, 1.0, open_low=True)
    rate, tau, share = numbers(horizon)
    if not works(horizon):
        found = (
            f"the theory's learning rate is {rate:.4g}, window {tau}, mixing {share:.4g}; needed are < 1, <= T and <= 1"
        )
        refuse(
            found, works, remedy="learning_rate, mixing and window", K=k, N=n, T=horizon, epsilon=epsilon, delta=delta
        )
    scale = 0.0 if math.isinf(epsilon) else 3 * k * math.sqrt(more) / (share * tau * epsilon)
    return {"learning_rate": rate, "mixing": share, "window": tau, "noise_scale": scale}


def exp4_tuning(num_arms, num_experts, horizon) -> dict:
    """EXP4 without privacy: `learning_rate` sqrt(2 log N / (K T)), `mixing` 0."""
    k, horizon = _sizes(num_arms, horizon)
    rate = math.sqrt(2 * math.log(integer("num_experts", num_experts, 2)) / (k * horizon))
    return {"learning_rate": rate, "mixing": 0.0}


def _sizes(num_arms, horizon) -> tuple[int, int]:
    return integer("num_arms", num_arms, 2), integer("horizon", horizon, 1)


def _positive_log(value: float, what: str) -> float:
    if value <= 1:
        raise ValueError(f"{what} is too small: the tuning needs K epsilon T > 1; enlarge horizon or epsilon")
    return math.log(value)


def _guarded_ceil(value: float) -> int:
    nearest = round(value)
    return nearest if abs(value - nearest) <= 1e-9 * max(value, 1.0) else math.ceil(value)
