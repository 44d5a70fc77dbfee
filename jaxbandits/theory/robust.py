"""Order lines of Wu, Zhou, Tao and Wang, On Private and Robust Bandits (NeurIPS 2023, arXiv 2302.02526), on the host.

K arms, T plays, k-th moments bounded by u, contamination alpha, `log` natural. The paper hides constants: these are orders with
constants of 1, to be drawn as lines, not guarantees. All scale with u^(1/k), the unit of rewards.
"""

import math

from jaxbandits.validation import integer, number


def _checked(
    num_arms, horizon, epsilon, moment_order, moment_bound, corruption, name="corruption_bound"
) -> tuple[float, float]:
    """(1 - 1/k, unit of rewards), or ValueError."""
    integer("num_arms", num_arms, 1)
    number("horizon", horizon, 2)
    number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    k = number("moment_order", moment_order, 2.0)
    number(name, corruption, 0.0, 0.5, open_high=True)
    return 1 - 1 / k, number("moment_bound", moment_bound, 0.0, open_low=True) ** (1 / k)


def _common(num_arms, horizon, epsilon, power, corruption) -> float:
    log_t = math.log(horizon)
    private = (num_arms * log_t / min(epsilon, 1.0)) ** power * horizon ** (1 - power)
    return math.sqrt(num_arms * horizon * log_t) + private + horizon * corruption**power


def prm_raw_bound(
    num_arms, horizon, epsilon, *, moment_order=2.0, moment_bound=1.0, corruption_bound=0.0, max_gap=None
) -> float:
    """Upper bound of PRM elimination with raw moments, up to constants (Theorem 6.5 and its clean case).

    u^(1/k) [sqrt(K T log T) + (K log T / min(epsilon, 1))^(1 - 1/k) T^(1/k) + T alpha^(1 - 1/k) + K log T / alpha], the last two
    only under contamination. max_gap: clip at max_gap T. epsilon > 0 or inf, moment_order >= 2, corruption_bound in [0, 1/2).

    >>> round(prm_raw_bound(5, 10_000, 1.0))
    1357
    """
    power, unit = _checked(num_arms, horizon, epsilon, moment_order, moment_bound, corruption_bound)
    bound = _common(num_arms, horizon, epsilon, power, corruption_bound)
    if corruption_bound > 0:
        bound += num_arms * math.log(horizon) / corruption_bound
    return _clipped(unit * bound, horizon, max_gap)


def prm_central_bound(
    num_arms, horizon, epsilon, mean_bound, *, moment_order=2.0, moment_bound=1.0, corruption_bound=0.0, max_gap=None
) -> float:
    """Upper bound of PRM elimination with central moments, up to constants (Theorems 6.10 and 6.12).

    u^(1/k) times the first three terms of `prm_raw_bound`, plus D K log T / alpha under contamination, plus
    D K log(D T / u^(1/k)) / min(epsilon, 1); D = mean_bound > 0.

    >>> prm_central_bound(5, 10_000, 1.0, 10.0) > prm_raw_bound(5, 10_000, 1.0)
    True
    """
    power, unit = _checked(num_arms, horizon, epsilon, moment_order, moment_bound, corruption_bound)
    mean_bound = number("mean_bound", mean_bound, 0.0, open_low=True)
    bound = unit * _common(num_arms, horizon, epsilon, power, corruption_bound)
    if corruption_bound > 0:
        bound += mean_bound * num_arms * math.log(horizon) / corruption_bound
    bound += mean_bound * num_arms * math.log(max(mean_bound * horizon / unit, math.e)) / min(epsilon, 1.0)
    return _clipped(bound, horizon, max_gap)


def private_robust_lower_bound(
    num_arms, horizon, epsilon, *, moment_order=2.0, moment_bound=1.0, corruption=0.0, max_gap=None, constant=1 / 27
) -> float:
    """Minimax lower bound, up to its constant (Theorem 4.1): what some instance costs every epsilon-private algorithm.

    constant u^(1/k) max{sqrt(K T), (K / epsilon)^(1 - 1/k) T^(1/k), T alpha^(1 - 1/k)}, alpha the true contamination. The
    theorem's constant is not stated; 1/27 is a choice: label the line "order". max_gap: clip at max_gap T.

    >>> round(private_robust_lower_bound(5, 10_000, 0.1), 1)
    26.2
    """
    power, unit = _checked(num_arms, horizon, epsilon, moment_order, moment_bound, corruption, "corruption")
    private = (num_arms / epsilon) ** power * horizon ** (1 - power)
    largest = max(math.sqrt(num_arms * horizon), private, horizon * corruption**power)
    return _clipped(number("constant", constant, 0.0) * unit * largest, horizon, max_gap)


def _clipped(bound: float, horizon, max_gap) -> float:
    return bound if max_gap is None else min(bound, number("max_gap", max_gap, 0.0) * horizon)
