"""Arms with heavy tails, Student, Pareto and log-normal rewards with given means, and such noise of mean 0.

Moments and settings: `docs/formulas/private_robust_mab.md#reward-laws`. One draw a play serves every arm, so what
another arm would have paid is defined. Draws: the path `environment/reward` itself, one word for Pareto and
log-normal, both words of one block for Student. Nothing is rejected, so a play's cost is fixed.

The noise is added to linear mean rewards: `docs/formulas/robust_frontier.md#heavy-tailed-noise`.
"""

import math
from functools import partial
from typing import Annotated, Any, TypedDict

import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import Default, Doc, Ge, Gt, Le, NonNegative, Remedy
from jaxbandits.environments import moments
from jaxbandits.environments.arms import ArmsEnvironment, Means, make_arms, noisy_range
from jaxbandits.numerics import rounded
from jaxbandits.random import Draws, to_exponential
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar, Vector
from jaxbandits.validation import factory, number

# The ranges of Student's degrees of freedom, of Pareto's exponent, and of the deviation of a logarithm.
DegreesOfFreedom = Annotated[Scalar, Gt(1), Remedy("the mean exists above 1 degree of freedom")]
TailExponent = Annotated[Scalar, Gt(1), Remedy("the mean exists above 1")]
PositiveMeans = Annotated[Means, Doc("Each arm's mean reward, above 0; at least two arms.")]
LogDeviation = Annotated[
    Scalar, Ge(0), Le(5), Remedy("float32 normals end at 5.4, and most of the mean would lie beyond")
]

# sin(pi u / 2) = u (c_0 + c_1 u^2 + ...) on [0, 1] within 4e-11, fitted. `jnp.cos` spends most of its time on reducing
# arguments that never occur here: with it Student rewards were drawn at 5.3e7 a second, so at 1.4e8.
_QUARTER_SINE = (1.57079633, -0.645964096, 0.0796926066, -0.00468166499, 1.60262320e-04, -3.43472157e-06)


def _sine_of_random_angle(bits, dtype):
    """cos(2 pi V), V uniform, in law: an arc of a quarter turn from 31 bits and a sign from the last."""
    shift, unit = (9, 2.0**-23) if dtype == jnp.float32 else (1, 2.0**-31)
    u = ((bits >> np.uint32(shift)).astype(jnp.int32).astype(dtype) + dtype(0.5)) * dtype(unit)
    square = u * u
    total = dtype(_QUARTER_SINE[-1])
    for coefficient in _QUARTER_SINE[-2::-1]:
        total = total * square + dtype(coefficient)
    return jnp.where((bits & np.uint32(1)) == 1, -u, u) * total


def _exp_minus_one(x, t):
    """exp(x) - 1 for x > 0. Not `jnp.expm1`: its last bit depends on the length of the window (measured on a CPU)."""
    series = x * (1 + x * (1 / 2) * (1 + x * (1 / 3) * (1 + x * (1 / 4) * (1 + x * (1 / 5) * (1 + x * (1 / 6))))))
    return jnp.where(x < 0.125, series, rounded(jnp.exp(x), t) - 1)


def standard_student(df: Numeric, draws: Draws, t: Int[Array, "..."]) -> Float[Array, "..."]:
    """Student's t of the plays t, from both words of a block."""
    # Bailey 1994: sqrt(df (U^(-2/df) - 1)) cos(2 pi V) is Student's t for every df > 0; -log U is exponential
    first, second = draws.words(t)
    growth = rounded(to_exponential(first, draws.dtype) * (2 / df), t)
    return jnp.sqrt(df * rounded(_exp_minus_one(growth, t), t)) * _sine_of_random_angle(second, draws.dtype)


def _student(params, draws, t, action):
    scale, df = params.scale
    noise = standard_student(df, draws, t)
    return params.means[action] + rounded(scale * rounded(noise, t), t)


def _pareto(params, draws, t, action):
    # x0 U^(-1/shape), with -log U exponential: three times faster than the power (measured: 2.5e8/s against 6e7/s)
    lowest, inverse_shape = params.scale
    return rounded(lowest[action] * jnp.exp(rounded(draws.exponential(t) * inverse_shape, t)), t)


def _lognormal(params, draws, t, action):
    location, sigma = params.scale
    return jnp.exp(location[action] + rounded(sigma * rounded(draws.normal(t), t), t))


def _positive(means: Vector) -> np.ndarray:
    means = np.asarray(means)
    if np.any(means <= 0):
        at = int(np.argmax(means <= 0))
        raise ValueError(f"means[{at}] = {means[at]!r} must be above 0: this law pays positive rewards only")
    return means


@factory(source="Bailey 1994, the generalised Box-Muller form; `docs/formulas/private_robust_mab.md#reward-laws`.")
def student_arms(*, means: Means, scale: NonNegative = 1.0, df: DegreesOfFreedom = 3.0) -> ArmsEnvironment:
    """Arms that pay a fixed mean plus scaled noise of Student's t law: symmetric, with heavy tails.

    The variance of a reward is scale^2 df / (df - 2) for df > 2. Moments of order df and above are infinite.

    Args:
        scale: Multiplies the noise.
        df: Degrees of freedom; the means exist above 1. Fewer degrees mean heavier tails.

    Note:
        The 32 random bits of a draw end the tails: rewards of any dtype lie within sqrt(df) 2^(32/df) scales of
        their mean.

    >>> jb.environments.student_arms(means=[0.0, 1.0], df=4.0).facts["moment"](2, central=True).round(6).tolist()
    [2.0, 2.0]
    """
    means = np.asarray(means)
    moment = partial(moments.student, means, scale, df)
    return make_arms(means, _student, moment, noisy_range(means, scale), (scale, df))


@factory(source="`docs/formulas/private_robust_mab.md#reward-laws`.")
def pareto_arms(*, means: PositiveMeans, shape: TailExponent = 3.5) -> ArmsEnvironment:
    """Arms that pay Pareto rewards with given means: positive, with a power law in the upper tail.

    P(X > x) = (x0 / x)^shape above x0 = mean (shape - 1) / shape. Moments of order `shape` and above are infinite.

    Args:
        shape: Exponent of the tail; the means exist above 1. A smaller exponent means a heavier tail.

    Note:
        The 32 random bits of a draw end the tail: float32 rewards reach x0 2^(32/shape).

    >>> jb.environments.pareto_arms(means=[0.9, 0.5], shape=3.5).facts["moment"](2).round(6).tolist()
    [0.964286, 0.297619]
    """
    means = _positive(means)
    lowest = means * (shape - 1) / shape
    pays = (float(lowest.min()), math.inf)
    return make_arms(means, _pareto, partial(moments.pareto, means, shape), pays, (lowest, 1 / shape))


@factory(source="`docs/formulas/private_robust_mab.md#reward-laws`.")
def lognormal_arms(*, means: PositiveMeans, sigma: LogDeviation = 1.0) -> ArmsEnvironment:
    """Arms that pay log-normal rewards with given means: positive, with all moments finite.

    A reward is exp(m + sigma Z), Z standard normal, with m = ln mean - sigma^2 / 2.

    Args:
        sigma: Standard deviation of a reward's logarithm. A normal of float32 ends at 5.4, and most of the mean of a
            larger sigma lies beyond.

    >>> jb.environments.lognormal_arms(means=[1.0, 0.5]).facts["moment"](2).round(6).tolist()
    [2.718282, 0.67957]
    """
    means = _positive(means)
    location = np.log(means) - sigma**2 / 2
    pays = (0.0, math.inf) if sigma > 0 else noisy_range(means, sigma)
    return make_arms(means, _lognormal, partial(moments.lognormal, means, sigma), pays, (location, sigma))


# ---- noise of mean 0

NoiseScale = Annotated[
    Scalar,
    Ge(0),
    Doc("""Multiplies the noise, where the law of a reward has any. It is the standard deviation of Gaussian noise, and
        the mean that Pareto and log-normal noise had before it was centred. The variance is noise_scale^2 times df /
        (df - 2) for "student" with df > 2, 1 / (shape (shape - 2)) for "pareto" with shape > 2, exp(sigma^2) - 1 for
        "lognormal"."""),
]


class TailNumbers(TypedDict, total=False):
    """The numbers of heavy tails.

    Args:
        df: Degrees of freedom of "student". Moments of order df and above are infinite.
        shape: Exponent of the upper tail of "pareto". Moments of order `shape` and above are infinite.
        sigma: Standard deviation of the logarithm in "lognormal". All moments are finite.
    """

    df: Annotated[DegreesOfFreedom, Default(3.0)]
    shape: Annotated[TailExponent, Default(3.5)]
    sigma: Annotated[LogDeviation, Default(1.0)]


def numbers_of(law: str, arguments: dict[str, float]) -> Numeric | tuple[Numeric, ...]:
    """What a world needs to draw the noise; arguments: `noise_scale` and those of `TailNumbers`."""
    scale, sigma, shape = (arguments[key] for key in ("noise_scale", "sigma", "shape"))
    numbers = {
        "student": (scale, arguments["df"]),
        "pareto": (scale, (shape - 1) / shape, 1 / shape),
        "lognormal": (scale, -(sigma**2) / 2, sigma),
    }
    return numbers.get(law, scale)


def noise_of_law(law: str, numbers: Any, draws: Draws, t: Int[Array, " P"]) -> Float[Array, " P"]:
    """The noise of the plays t."""
    if law == "gaussian":
        return rounded(numbers * rounded(draws.normal(t), t), t)
    if law == "student":
        scale, df = numbers
        return rounded(scale * rounded(standard_student(df, draws, t), t), t)
    if law == "pareto":
        scale, lowest, inverse_shape = numbers
        x = lowest * rounded(jnp.exp(rounded(draws.exponential(t) * inverse_shape, t)), t)
    else:
        scale, location, sigma = numbers
        x = jnp.exp(location + rounded(sigma * rounded(draws.normal(t), t), t))
    return rounded(scale * (rounded(x, t) - 1), t)


def noise_moment(law: str, arguments: dict[str, float], order: Scalar) -> float:
    """E|noise|^order, on the host; inf where it does not exist."""
    scale = arguments["noise_scale"]
    unit = np.array([scale])
    if scale == 0:
        number("order", order, 0.0, open_low=True)
        return 0.0
    of_law = {"gaussian": "noise_scale", "student": "noise_scale df", "pareto": "shape", "lognormal": "sigma"}
    numbers = (arguments[name] for name in of_law[law].split())
    return float(getattr(moments, law)(unit, *numbers, order, central=True)[0])


def reward_range(law: str, low: float, high: float, arguments: dict[str, float]) -> tuple[float, float]:
    """(low, high) of rewards with means in [low, high] and this noise."""
    scale = arguments["noise_scale"]
    if scale == 0 or (law == "lognormal" and arguments["sigma"] == 0):
        return low, high
    if law == "pareto":
        return low - scale / arguments["shape"], math.inf
    return (low - scale if law == "lognormal" else -math.inf), math.inf
