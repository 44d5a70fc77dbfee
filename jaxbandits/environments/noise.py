"""Noise of mean 0 that is added to linear mean rewards: Gaussian, or with heavy tails.

The laws are those of `student_arms`, `pareto_arms` and `lognormal_arms`, less their mean and times a scale s:

* "student": s t, t of Student's law with `df` degrees of freedom;
* "pareto": s (X - 1), X of Pareto's law with exponent `shape` and mean 1, at least -s / shape;
* "lognormal": s (X - 1), X = exp(sigma Z - sigma^2 / 2) of mean 1, above -s.

Moments: `docs/formulas/robust_frontier.md#heavy-tailed-noise`. One draw a play serves every arm. Draws: as those of
those arms.
"""

import math
from typing import Annotated, Any, TypedDict

import jax.numpy as jnp
import numpy as np
from annotated_doc import Doc
from annotated_types import Ge

from jaxbandits.declared import Default
from jaxbandits.environments import moments
from jaxbandits.environments.heavy_tailed import DegreesOfFreedom, LogDeviation, TailExponent, standard_student
from jaxbandits.numerics import rounded
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import number

HEAVY = ("student", "pareto", "lognormal")


NoiseScale = Annotated[
    Scalar,
    Ge(0),
    Doc(
        """Multiplies the noise, where the law of a reward has any. It is the standard deviation of Gaussian noise, and
        the mean that Pareto and log-normal noise had before it was centred. The variance is noise_scale^2 times df /
        (df - 2) for "student" with df > 2, 1 / (shape (shape - 2)) for "pareto" with shape > 2, exp(sigma^2) - 1 for
        "lognormal"."""
    ),
]


class Tails(TypedDict, total=False):
    """The numbers of heavy tails.

    Parameters
    ----------
    df
        Degrees of freedom of "student". Moments of order df and above are infinite.
    shape
        Exponent of the upper tail of "pareto". Moments of order `shape` and above are infinite.
    sigma
        Standard deviation of the logarithm in "lognormal". All moments are finite.
    """

    df: Annotated[DegreesOfFreedom, Default(3.0)]
    shape: Annotated[TailExponent, Default(3.5)]
    sigma: Annotated[LogDeviation, Default(1.0)]


def numbers_of(law: str, arguments: dict[str, float]) -> Any:
    """What a world needs to draw the noise; arguments: `noise_scale` and those of `Tails`."""
    scale, sigma, shape = (arguments[key] for key in ("noise_scale", "sigma", "shape"))
    numbers = {
        "student": (scale, arguments["df"]),
        "pareto": (scale, (shape - 1) / shape, 1 / shape),
        "lognormal": (scale, -(sigma**2) / 2, sigma),
    }
    return numbers.get(law, scale)


def drawn(law: str, numbers: Any, draws: Draws, t: Int[Array, " P"]) -> Float[Array, " P"]:
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
    if law == "gaussian":
        return float(moments.gaussian(unit, scale, order, central=True)[0])
    if law == "student":
        return float(moments.student(unit, scale, arguments["df"], order, central=True)[0])
    if law == "pareto":
        return float(moments.pareto(unit, arguments["shape"], order, central=True)[0])
    return float(moments.lognormal(unit, arguments["sigma"], order, central=True)[0])


def reward_range(law: str, low: float, high: float, arguments: dict[str, float]) -> tuple[float, float]:
    """(low, high) of rewards with means in [low, high] and this noise."""
    scale = arguments["noise_scale"]
    if scale == 0 or (law == "lognormal" and arguments["sigma"] == 0):
        return low, high
    if law == "pareto":
        return low - scale / arguments["shape"], math.inf
    return (low - scale if law == "lognormal" else -math.inf), math.inf
