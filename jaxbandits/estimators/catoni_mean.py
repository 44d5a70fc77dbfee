"""Catoni's M-estimator of a mean (Catoni 2012, as in Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 3)."""

import math
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_doc import Doc

from jaxbandits.declared import TRACED, Inside, Positive
from jaxbandits.estimators._inputs import Sample, decreasing_root, sample
from jaxbandits.numerics import fixed_sum
from jaxbandits.typing import Array, Float
from jaxbandits.validation import checked


def influence(y: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """The influence psi(y) = sgn(y) ln(1 + `|y|` + y^2/2) and its derivative, elementwise."""
    size = jnp.minimum(jnp.abs(y), 1e150 if y.dtype == jnp.float64 else 1e18)  # the square stays finite
    inner = size + size * size / 2
    return jnp.sign(y) * jnp.log1p(inner), (1 + size) / (1 + inner)


def width(pulls: Any, variance: Any, log_term: Any) -> Float[Array, "..."]:
    """The scale a = sqrt(2 l / (n (v + 2 v l / (n - 2 l)))) for n > 2 l pulls, l = ln(1 / failure_prob)."""
    return jnp.sqrt(2 * log_term / (pulls * variance * (1 + 2 * log_term / (pulls - 2 * log_term))))


@checked(
    source="Catoni 2012, in the form of Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 3, recalled and not read "
    "again: `docs/formulas/private_robust_mab.md#robust-ucb`."
)
def catoni_mean(
    x: Sample,
    variance: Annotated[Positive | Array, TRACED, Doc("A bound v on the variance, in units of a value squared.")],
    failure_prob: Annotated[
        Inside | Array,
        TRACED,
        Doc("Large enough that n >= 4 l; where it is traced, a value below exp(-n / 4) gives NaN."),
    ],
) -> Annotated[Float[Array, ""], Doc("Within 2 sqrt(v l / n) of the mean with probability 1 - 2 failure_prob.")]:
    """Catoni's M-estimator of a mean, for values of which only the variance is bounded.

    It is the root theta of sum_i psi(a (x_i - theta)) with psi(y) = sgn(y) ln(1 + `|y|` + y^2/2) and, with
    l = ln(1 / failure_prob), a = sqrt(2 l / (n (v + 2 v l / (n - 2 l)))).

    >>> import jax.numpy as jnp
    >>> x = jnp.array([0.0, 0.2, 0.1, 0.3, -0.1, 0.1, 0.1, 1e6])
    >>> 0.1 < float(catoni_mean(x, 1.0, 0.2)) < 20
    True
    """
    x = sample(x)
    least = -4 * math.log(failure_prob) if isinstance(failure_prob, float) else 0.0
    if x.shape[0] < least:
        raise ValueError(
            f"x has {x.shape[0]} values; failure_prob = {failure_prob:g} needs at least {math.ceil(least)}: "
            "raise failure_prob"
        )
    return _root(x, jnp.asarray(variance, x.dtype), -jnp.log(jnp.asarray(failure_prob, x.dtype)))


@jax.jit
def _root(x: Any, variance: Any, log_term: Any) -> Float[Array, ""]:
    enough = x.shape[0] >= log_term * 3.9999
    a = jnp.where(enough, width(x.shape[0], variance, jnp.where(enough, log_term, 0)), jnp.nan)

    def slack(theta):
        value, slope = influence(a * (x - theta))
        return fixed_sum(value), a * fixed_sum(slope)

    return decreasing_root(slack, jnp.median(x), jnp.min(x), jnp.max(x), jnp.sqrt(variance))
