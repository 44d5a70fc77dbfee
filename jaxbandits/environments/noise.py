"""Noise of mean 0 that is added to linear mean rewards: Gaussian, or with heavy tails.

The laws are those of `student_arms`, `pareto_arms` and `lognormal_arms`, less their mean and times a scale s:

* "student": s t, t of Student's law with `df` degrees of freedom;
* "pareto": s (X - 1), X of Pareto's law with exponent `shape` and mean 1, at least -s / shape;
* "lognormal": s (X - 1), X = exp(sigma Z - sigma^2 / 2) of mean 1, above -s.

Moments: `docs/formulas/robust_frontier.md#heavy-tailed-noise`. One draw a play serves every arm. Draws: as those of
those arms.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits.environments import moments
from jaxbandits.environments.heavy_tailed import standard_student
from jaxbandits.numerics import rounded
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import number

HEAVY = ("student", "pareto", "lognormal")


def numbers_of(law: str, noise_scale: Scalar, df: Scalar, shape: Scalar, sigma: Scalar) -> tuple[Any, dict[str, float]]:
    """What a world needs to draw the noise, and all arguments, checked."""
    scale = number("noise_scale", noise_scale, 0.0)
    tails = {
        "df": number("df", df, 1.0, open_low=True, remedy="the mean exists above 1 degree of freedom"),
        "shape": number("shape", shape, 1.0, open_low=True, remedy="the mean exists above 1"),
        "sigma": number(
            "sigma", sigma, 0.0, 5.0, remedy="float32 normals end at 5.4, and most of the mean would lie beyond"
        ),
    }
    numbers = {
        "student": (scale, tails["df"]),
        "pareto": (scale, (tails["shape"] - 1) / tails["shape"], 1 / tails["shape"]),
        "lognormal": (scale, -(tails["sigma"] ** 2) / 2, tails["sigma"]),
    }
    return numbers.get(law, scale), {"noise_scale": scale, **tails}


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
