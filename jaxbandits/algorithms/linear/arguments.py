"""From the arguments of robust elimination and its comparators to their numbers, schedule and claims. Host side.

Axes: [K] arms, [d] features, [B] batches.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, Required, TypedDict

import numpy as np

from jaxbandits.algorithms.linear.batches import BatchRules, Params, Radius, program
from jaxbandits.declared import STATIC, Axes, Default, Doc, Epsilon, Example, Ge, Inside, Le, Lt, NonNegative
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_message
from jaxbandits.mechanisms.pure import laplace_scale
from jaxbandits.protocol import Algorithm, Guarantee, Rewards, Span
from jaxbandits.typing import Matrix, Scalar, Tensor

MAX_STORED_REPORTS = 2**16  # of a batch, in a lane
TABLE_LENGTH = 32  # of a table by batch, so that horizons share a program: doubling batches exceed any horizon by then
COUNT_ROUNDING = 1 + 1e-4  # what rounding may add to a count
MAX_NOISE_SCALE = 1e12  # of a reward: variances of larger ones, times many reports, overflow float32


def slots(horizon: int) -> int:
    """Plays of a window: long windows waste slots where checkpoints cut them, short ones pay a loop step more often."""
    return min(128, max(8, 2 ** round(math.log2(max(horizon, 1) / 512))))


def schedule(horizon: int, most_plays: np.ndarray[Any, Any]) -> tuple[Span, ...]:
    """One span a batch, closed by the elimination, then what is left. most_plays: of each batch.

    The first span is empty: its close makes the first design (in `init` it would be compiled twice).
    """
    offered = slots(horizon)
    plays = [min(horizon, math.ceil(n * COUNT_ROUNDING)) for n in most_plays]
    batches = (Span(offered, -(-n // offered), full=False, close=True) for n in plays)
    return (Span(offered, 0, close=True), *batches, Span(offered, -(-horizon // offered), full=False))


def doubling_sizes(first: float, horizon: int) -> np.ndarray:
    """first, 2 first, 4 first, ...: as many batch lengths as can begin before the horizon."""
    return first * 2.0 ** np.arange(max(1, math.ceil(math.log2(horizon / first + 1))))


def support(num_arms: int, dim: int) -> int:
    """Arms in a design at most: a start of r arms, then at most 20 r steps of one arm each."""
    return min(num_arms, 21 * dim)


Elimination = Annotated[Algorithm, Doc("Diagnostics: `active_arms` and `batches` (estimated).")]


class Designed(TypedDict, total=False):
    """What all eliminations along G-optimal designs take."""

    actions: Required[
        Annotated[
            Matrix,
            Axes(2, "array [K, d]"),
            Doc("Feature vectors of at least two arms, not all zero. Filled in from the environment."),
        ]
    ]
    noise_scale: Annotated[
        Scalar,
        Ge(0),
        Le(MAX_NOISE_SCALE),
        Default(1.0),
        Doc("The rewards' sub-Gaussian scale s; 1 holds for rewards in [-1, 1]."),
    ]
    design_slack: Annotated[NonNegative, Default(1.0), Doc("The design stops at leverage (1 + design_slack) rank.")]


class Batched(Designed, total=False):
    """What robust elimination and its siblings take."""

    num_batches: Required[Annotated[int, Ge(2), STATIC, Doc("B, with horizon^(1/B) > 2.")]]
    epsilon: Annotated[
        Epsilon,
        Default(math.inf),
        Doc("""Local privacy of one reward in [-1, 1], at least 2e-12: clients add noise of scale 2 / epsilon. inf: no
            noise."""),
    ]
    bias_scale: Annotated[NonNegative, Default(1.0), Doc("Constant of the radius: of its term alpha.")]


ALL_WIDTHS = "Of all widths together, at a sampling_scale of 1; at a smaller one the probability of nothing."


class Located(Batched, total=False):
    """What eliminations take that put a robust location in the spectral filter's place.

    Args:
        corruption_bound: The share alpha of corrupted reports that is believed in.
        sampling_scale: The radius is sampling_scale max_x [sqrt(2 V L) + c L] + corruption_scale sqrt(rho^2 alpha) +
            bias_scale alpha, as in `robust_elimination`.
        corruption_scale: Constant of the radius: of its term sqrt(alpha).
        failure_prob: Of all widths together, at a sampling_scale of 1 and constants that a proof gives; at the default
            ones the probability of nothing. It enters the radius through L.
    """

    corruption_bound: Annotated[Scalar, Ge(0), Lt(0.25), Default(0.0)]
    sampling_scale: Annotated[NonNegative, Default(0.5)]
    corruption_scale: Annotated[NonNegative, Default(0.5)]
    failure_prob: Annotated[Inside, Default(0.05)]


LOCATED = Example({"num_batches": 3, "epsilon": 8.0, "corruption_bound": 0.02, "sampling_scale": 0.2}, horizon=600)


def check_features(given: Designed) -> np.ndarray:
    """[K, d] features of at least two arms, not all zero, else ValueError."""
    features = np.asarray(given["actions"])
    if len(features) < 2:
        raise ValueError(f"actions has {len(features)} row: it needs at least two arms")
    if not features.any():
        raise ValueError("actions is all zero: no reward depends on theta; give at least one non-zero feature vector")
    return features


def fewest(plays: np.ndarray, horizon: int) -> int:
    """How many batches of at least so many plays can begin before the horizon."""
    return min(len(plays), 1 + int(np.searchsorted(np.cumsum(np.maximum(plays, 1)), horizon)))


def batch_sizes(horizon: int, num_batches: int) -> np.ndarray:
    """m_i = T^(i / B), i = 1 .. B - 1, else ValueError: T^(1 / B) must exceed 2."""
    ratio = horizon ** (1 / num_batches)
    if ratio <= 2:
        most = math.ceil(math.log2(horizon)) - 1
        raise ValueError(
            f"num_batches = {num_batches} makes horizon^(1/num_batches) = {ratio:.3g}; it must exceed 2: "
            + (f"use at most {most} batches" if most >= 2 else "use a horizon of at least 5")
        )
    return np.array([horizon ** (i / num_batches) for i in range(1, num_batches)])


def laplace_noise(epsilon: Scalar) -> float:
    """b = 2 / epsilon, else ValueError: variances of larger ones times many reports leave float32."""
    b = laplace_scale(2.0, epsilon)
    if b > MAX_NOISE_SCALE:
        raise ValueError(
            f"epsilon = {epsilon!r} needs noise of scale {b:.3g}, whose square single precision cannot add up: "
            f"use at least {2 / MAX_NOISE_SCALE:g}"
        )
    return b


def clamp(noise_scale: float, b: float) -> float:
    """Largest `|report|` taken at face value: the square of a larger one would overflow sums."""
    return max(1e6, 100 * (1 + noise_scale + b))


def rewards_for_noise(noise_scale: float) -> Rewards:
    """Any reward; where noise of this scale is added, those in [-1, 1], for which epsilon holds."""
    return Rewards(-1.0, 1.0) if noise_scale > 0 else Rewards()


def column(values: Tensor) -> np.ndarray:
    """A table by batch, of TABLE_LENGTH rows: the last value is repeated."""
    table = np.asarray(values, np.float64)[:TABLE_LENGTH]
    return np.pad(table, (0, TABLE_LENGTH - len(table)), mode="edge")


def room(most_plays: np.ndarray[Any, Any], horizon: int) -> int:
    """Reports that a lane has room for: of the longest batch and a window, rounded up so that few shapes compile."""
    longest = min(math.ceil(max(most_plays) * COUNT_ROUNDING), horizon)
    if longest > MAX_STORED_REPORTS:
        raise ValueError(
            f"horizon = {horizon} makes a batch of {longest} plays; its reports are kept, and a lane keeps at most "
            f"{MAX_STORED_REPORTS}: use fewer batches (the last one has horizon^(1 - 1/num_batches) plays) "
            "or a shorter horizon"
        )
    return 1 << (longest + slots(horizon) - 1).bit_length()


def location_algorithm(rules: BatchRules, horizon: int, given: Located, own: Callable[..., Any]) -> Algorithm:
    """An algorithm with the batches and the radius of robust elimination under M1, which looks at every report.

    own: sizes [B], radius, alpha -> the rules' numbers.
    """
    features, b = check_features(given), laplace_noise(given["epsilon"])
    num_batches, alpha = given["num_batches"], float(given["corruption_bound"])
    sizes = batch_sizes(horizon, num_batches)
    log_term = math.log(2 * len(features) * num_batches / given["failure_prob"])
    scales = {key: value for key, value in given.items() if key in Radius._fields} | {"corruption_bound": alpha}
    radius = Radius(log_term=log_term, laplace_scale=b, **scales)
    most_plays = sizes + support(*features.shape)
    numbers, capacity = own(column(sizes), radius, alpha), room(most_plays, horizon)
    return elimination_algorithm(rules, horizon, given, most_plays, numbers, LOCAL, noise_scale=b, capacity=capacity)


def _events(params):
    return (laplace_event("reward in [-1, 1] of one play", 2.0, params.noise_scale * params.mechanism_scale),)


LOCAL = guarantee("local", "reward", _events, view_message, bound=1.0)


def elimination_algorithm(
    rules: BatchRules,
    horizon: int,
    given: Designed,
    most_plays: np.ndarray[Any, Any],
    own: Any,
    claim: Guarantee,
    *,
    noise_scale: float = 0.0,
    capacity: int = 0,
) -> Algorithm:
    """An algorithm from its rules and numbers. most_plays: of each batch; noise_scale: of the privacy noise."""
    features = check_features(given)
    params = Params(
        actions=features,
        horizon=horizon,
        design_slack=given["design_slack"],
        batches=len(most_plays),
        clamp=clamp(float(given["noise_scale"]), noise_scale),
        noise_scale=noise_scale,
        mechanism_scale=1.0,
        own=own,
    )
    functions, spans = program(*features.shape, capacity, rules), schedule(horizon, most_plays)
    return Algorithm(functions, spans, params, claim, rewards=rewards_for_noise(noise_scale))
