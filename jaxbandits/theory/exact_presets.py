"""The preset "exact" of the private linear bandits, on the host: noise that spends what it is given, ridge and width.

Formulas: `docs/formulas/ldp_contextual.md#exact-presets`. T is the horizon, d the dimension, L the largest norm of a
feature, B the bound on theta, R = 1/2 the rewards' noise. Noise on x x' has scale s on the diagonal and s / sqrt(2)
above it, and s / L on x y: spherical in the norm in which a user moves the pair by at most sqrt(4.5) L^2.
`instrument_*` are of `ldp_instrument_ucb`: `docs/formulas/ldp_contextual.md#instrument`.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Literal, NamedTuple

import numpy as np

from jaxbandits.declared import LATER, Delta, Doc, FeatureNorm, NonNegative
from jaxbandits.mechanisms import shuffle
from jaxbandits.mechanisms.counters.counter import form_of
from jaxbandits.mechanisms.gaussian import gaussian_epsilon, gaussian_scale
from jaxbandits.mechanisms.shuffle import BINOMIAL_SHARE, MAX_BATCH_TRIALS, VectorCode
from jaxbandits.theory.linear_widths import REWARD_SCALE, LinearTuning, Width, moment_sensitivity
from jaxbandits.theory.quantities import Epsilon, Features, Order, Plays, ThetaNorm
from jaxbandits.typing import Scalar
from jaxbandits.validation import choice, declare, integer

# Forms of running sums that are not the binary tree (`mechanisms.counter`).
COUNTED = ("blt", "honaker", "square_root", "banded")


class SumNoise(NamedTuple):
    """What the noise of a form of running sums does, in units of one draw."""

    column_norm: float  # what one user's sensitivity is multiplied by
    deviation: float  # the largest standard deviation of a sum


@declare(source="Ours: docs/formulas/ldp_contextual.md#exact-presets")
def exact_tuning(
    kind: Literal["local", "joint", "vector", "amplified"],
    horizon: Plays,
    dim: Features,
    epsilon: Annotated[Epsilon, Doc("Privacy budget of one user; inf: no noise.")],
    delta: Delta,
    feature_norm: FeatureNorm = 1.0,
    theta_bound: Annotated[ThetaNorm, Doc("Bound B on the norm of theta. The default: 1 / L.")] | None = None,
    tree: Annotated[Literal["binary", "blt", "honaker", "square_root", "banded"], LATER] = "blt",
    window: int | None = None,
) -> dict[str, float]:
    """Noise, ridge and width of the preset "exact" of the private linear bandits: what is spent is what is asked for.

    Args:
        kind: `ldp_linucb`, `jdp_linucb`, or a protocol of `shuffle_linucb`.
        tree: The form of the running sums; of kind "joint" only.
        window: Users W of a batch, at least 1; of kinds "vector" and "amplified" only. The default: max(20, ceil
            sqrt(T)), at most T.

    Returns:
        dict: `diagonal`, `off_diagonal` and `vector`: standard deviations of one draw of noise on x x' and on x y (kind
            "vector": of one user's share, in the units of x x' and x y); `ridge` and `ridge_root`, of rho_t = ridge +
            ridge_root sqrt(t); `base` and `quartic`, of the width base + quartic t^(1/4); `trials`: binomial trials of
            one user (kind "vector", else 0); `spend`: the epsilon that is spent.

    >>> found = exact_tuning("local", 20_000, 5, 1.0, 5e-5)
    >>> [round(found[name], 5) for name in ("diagonal", "ridge_root", "base", "quartic", "spend")]
    [7.11895, 22.51209, 3.4431, 17.43498, 1.0]
    """
    norm, bound = float(feature_norm), float(1 / feature_norm if theta_bound is None else theta_bound)
    users = batch_of(horizon) if window is None else integer("window", window, 1, horizon)
    common, trials = (horizon, dim, float(epsilon), float(delta), norm, bound), 0
    if kind == "joint":
        sums = running_sums(choice("tree", tree, ("binary", *COUNTED)), horizon)
        tuning = exact_joint(*common, sums)
        moved = moment_sensitivity(norm, norm**2) * sums.column_norm
        spend = gaussian_epsilon(moved, tuning.diagonal, delta) if tuning.diagonal else math.inf
    elif kind == "vector":
        tuning, code = exact_vector(*common, users)
        trials = int(code.trials) // users
        spend = shuffle.vector_epsilon(code, moment_sensitivity(1.0), entries_of_pair(dim), delta)
    else:
        scale = exact_scale(kind, dim, epsilon, delta, norm, users)
        tuning = exact_local(scale, horizon, dim, norm, bound)
        spend = epsilon_of_user(kind, scale, dim, float(delta), norm, users)
    numbers = {name: float(getattr(tuning, name)) for name in LinearTuning._fields[:-1]}
    width = {"base": tuning.width.base, "quartic": tuning.width.quartic}
    return numbers | width | {"trials": float(trials), "spend": float(spend)}


@cache
def running_sums(form: str, horizon: int) -> SumNoise:
    """The binary tree, or a form of `mechanisms.counter`, over so many plays."""
    if form == "binary":
        return SumNoise(math.sqrt(max(horizon.bit_length(), 1)), math.sqrt((horizon + 1).bit_length() - 1))
    if form == "square_root":  # its numbers are known for horizons that no run of it can have
        later = np.arange(1.0, horizon)
        norm = math.sqrt(1 + float(np.sum(np.cumprod((2 * later - 1) / (2 * later)) ** 2)))
        return SumNoise(norm, norm)
    found = form_of(form, horizon)
    return SumNoise(found.column_norm, float(np.max(found.deviation(np.arange(1, horizon + 1)))))


def entries_of_pair(dim: int) -> int:
    """Entries of a user's pair (x x', x y)."""
    return dim * (dim + 1) // 2 + dim


def batch_of(horizon: int) -> int:
    """Users of a batch by default: as many as there are batches, and at least 20."""
    return min(max(20, math.isqrt(horizon - 1) + 1), horizon)


def _tail(horizon: int, dim: int) -> float:
    return math.sqrt(dim) + math.sqrt(2 * math.log(max(horizon, 2)))


def _own_width(horizon: int, dim: int, norm: float, ridge: float) -> float:
    """The part of the width that the rewards' own noise asks for, at the last play's ridge."""
    growth = dim * math.log1p(horizon * norm**2 / (dim * ridge))
    return REWARD_SCALE * math.sqrt(2 * math.log(max(horizon, 2)) + growth)


def _of_noise(scale: float, dim: int, norm: float, bound: float) -> float:
    """The deviation of a coordinate of h - H theta, for one draw of noise of x x' and of x y."""
    return math.sqrt(scale**2 * bound**2 * (1 + 1 / dim) / 2 + (scale / norm) ** 2)


def exact_local(scale: float, horizon: int, dim: int, norm: float, bound: float) -> LinearTuning:
    """Noise of scale s by every user, spherical in the Frobenius norm of x x', and s / L on x y; the ridge grows."""
    root, noise = scale * math.sqrt(2 * dim), _of_noise(scale, dim, norm, bound)
    own = _own_width(horizon, dim, norm, norm**2 + root * math.sqrt(horizon))
    quartic = math.sqrt(root) * bound + noise * _tail(horizon, dim) / math.sqrt(root) if root else 0.0
    return LinearTuning(scale, scale / math.sqrt(2), scale / norm, norm**2, root, Width(norm * bound + own, quartic))


def exact_joint(
    horizon: int, dim: int, epsilon: float, delta: float, norm: float, bound: float, sums: SumNoise
) -> LinearTuning:
    """The same noise on running sums, at a trusted server."""
    scale = gaussian_scale(moment_sensitivity(norm, norm**2) * sums.column_norm, epsilon, delta, "analytic")
    ridge = norm**2 + 2 * scale * sums.deviation * math.sqrt(2 * dim)
    noise = _of_noise(scale, dim, norm, bound) * sums.deviation * _tail(horizon, dim) / math.sqrt(ridge)
    width = Width(math.sqrt(ridge) * bound + noise + _own_width(horizon, dim, norm, ridge))
    return LinearTuning(scale, scale / math.sqrt(2), scale / norm, ridge, 0.0, width)


def exact_vector(
    horizon: int, dim: int, epsilon: float, delta: float, norm: float, bound: float, users: int
) -> tuple[LinearTuning, VectorCode]:
    """Integers of x x' / L^2 and x y / L with the fewest binomial trials that spend at most epsilon."""
    levels, trials = levels_of(users, dim), exact_trials(dim, epsilon, delta, users)
    share = math.sqrt(trials * BINOMIAL_SHARE * (1 - BINOMIAL_SHARE) + 0.25) / levels  # noise, and 1/4 of rounding
    root = 2 * share * math.sqrt(dim) * norm**2 if trials else 0.0
    noise = share * math.sqrt(1 + norm**2 * bound**2)
    own = _own_width(horizon, dim, norm, norm**2 + root * math.sqrt(horizon))
    unit = root / norm**2
    quartic = norm * bound * math.sqrt(unit) + noise * _tail(horizon, dim) / math.sqrt(unit) if trials else 0.0
    scale, width = share * norm**2 if trials else 0.0, Width(norm * bound + own, quartic)
    code = VectorCode(1.0, levels, float(users * trials))
    return LinearTuning(scale, scale, scale / norm, norm**2, root, width), code


def levels_of(users: int, dim: int) -> float:
    """g: into how many levels a coordinate in [0, 1] is rounded."""
    return float(max(2 * math.sqrt(users), dim, 4))


@cache
def exact_trials(dim: int, epsilon: float, delta: float, users: int) -> int:
    """The fewest binomial trials of a user with which a batch's sums spend at most epsilon."""
    if math.isinf(epsilon):
        return 0
    moved, levels = moment_sensitivity(1.0), levels_of(users, dim)
    noise = levels * gaussian_scale(moved, epsilon, delta, "analytic")
    first = noise * noise / (BINOMIAL_SHARE * (1 - BINOMIAL_SHARE) * users)
    code_of = lambda trials: VectorCode(1.0, levels, float(users * trials))
    spent = lambda trials: shuffle.vector_epsilon(code_of(trials), moved, entries_of_pair(dim), delta)
    return fewest(spent, epsilon, first, users)


def fewest(spent: Callable[[int], float], epsilon: float, first: float, users: int) -> int:
    """The fewest trials of a user that spend at most epsilon, which falls about as their root grows.

    first: where the search begins.

    Where what is spent does not fall everywhere, which happens at a handful, more may be too little again.
    """
    low, high, tried = 0, math.inf, max(1, math.ceil(min(first, 2 * MAX_BATCH_TRIALS)))
    while high - low > 1:
        if users * tried > MAX_BATCH_TRIALS:
            raise ValueError(f"epsilon = {epsilon:g} needs more than 2^53 binomial trials: raise epsilon")
        at = spent(tried)
        low, high = (low, tried) if at <= epsilon else (tried, high)
        grown = min(at / epsilon, 2.0) if math.isfinite(at) else math.sqrt(2)
        tried = int(min(max(math.ceil(tried * grown**2), low + 1), high - 1))
    return int(high)


def epsilon_of_user(kind: str, scale: float, dim: int, delta: float, norm: float, users: int) -> float:
    """The epsilon of one user's noisy pair, alone or in a permuted batch."""
    if scale == 0:
        return math.inf
    moved = moment_sensitivity(norm, norm**2)
    if kind == "local":
        return gaussian_epsilon(moved, scale, delta)
    return shuffle.amplified_epsilon(moved, scale, users, entries_of_pair(dim), delta)


@cache
def exact_scale(kind: str, dim: int, epsilon: float, delta: float, norm: float, users: int) -> float:
    """The least noise of a user that spends at most epsilon, alone or in a permuted batch."""
    local = gaussian_scale(moment_sensitivity(norm, norm**2), epsilon, delta, "analytic")
    if kind == "local" or local == 0:
        return local

    def enough(scale: float) -> bool:
        return epsilon_of_user(kind, scale, dim, delta, norm, users) <= epsilon

    if not enough(local * (1 - 1e-9)):  # no theorem amplifies messages of so few users
        return local
    low, high = local / 64, local
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@declare(source="Ours: docs/formulas/ldp_contextual.md#instrument")
def instrument_sensitivity(
    feature_norm: FeatureNorm = 1.0,
    weight: Annotated[NonNegative, Doc("Weight of the squared change of psi y. The default: L^2.")] | None = None,
) -> float:
    """The largest L2 change of (psi x', sqrt(weight) psi y) that a user of `ldp_instrument_ucb` makes, which is tight.

    It is 2 sqrt(L^2 + weight), since `|psi|` <= 1, `|x|` <= L and y lies in [0, 1].

    >>> round(instrument_sensitivity() ** 2, 12), round(instrument_sensitivity(2.0, weight=0.0), 12)
    (8.0, 4.0)
    """
    return 2 * math.sqrt(float(feature_norm) ** 2 + float(feature_norm**2 if weight is None else weight))


@declare(source="Ours: docs/formulas/ldp_contextual.md#instrument")
def instrument_bound(
    horizon: Plays,
    dim: Features,
    epsilon: Annotated[Epsilon, Doc("Privacy budget of one user; inf: no noise.")],
    delta: Delta,
    feature_norm: FeatureNorm = 1.0,
) -> Order:
    """The order of the regret of `ldp_instrument_ucb`, 2 rho_T (d / log 2) log(1 + T L / lambda_T), from a sketch.

    rho_T is its width at `radius_scale` 1 and lambda_T its ridge, with the other defaults. No theorem is claimed: draw
    it dotted. At epsilon = 1, d = 5 and delta = 1 / T it is below T from about T = 4.3e8 on.

    >>> round(instrument_bound(10**9, 5, 1.0, 1e-9) / 10**9, 2), instrument_bound(10**8, 5, 1.0, 1e-8) > 10**8
    (0.73, True)
    """
    tuning = instrument_tuning(horizon, dim, epsilon, delta, feature_norm, 1 / feature_norm, 1)
    root = math.sqrt(horizon)
    width, ridge = (tuning[a] + tuning[b] * root for a, b in (("base", "growth"), ("ridge", "ridge_root")))
    return 2 * width * dim / math.log(2) * math.log1p(horizon * feature_norm / ridge)


def instrument_tuning(
    horizon: int, dim: int, epsilon: Scalar, delta: Scalar, norm: Scalar, bound: Scalar, ridge_scale: Scalar
) -> dict[str, float]:
    """Noise of an entry of the matrix and of the vector, ridge + ridge_root sqrt(t), and base + growth sqrt(t)."""
    norm, bound = float(norm), float(bound)
    noise = gaussian_scale(math.sqrt(8), epsilon, delta, "analytic")
    root = float(ridge_scale) * 2 * norm * noise * math.sqrt(dim)
    growth = math.sqrt(noise**2 * (1 + norm**2 * bound**2) + REWARD_SCALE**2) * _tail(horizon, dim) + root * bound
    scales = {"matrix": norm * noise, "vector": noise, "ridge": norm, "ridge_root": root}
    return scales | {"base": norm * bound, "growth": growth}
