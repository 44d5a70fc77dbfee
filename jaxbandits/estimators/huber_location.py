"""Huber's M-estimator of location with a given clip (Huber 1964)."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_doc import Doc

from jaxbandits.declared import TRACED, Positive
from jaxbandits.estimators._inputs import Sample, decreasing_root, sample
from jaxbandits.numerics import count, fixed_sum
from jaxbandits.typing import Array, Bool, Float
from jaxbandits.validation import checked


def location(x: Float[Array, " n"], present: Bool[Array, " n"], clip: Any, start: Any) -> Float[Array, ""]:
    """The location of those values of x that are present: the middle of all minimisers, searched from `start`."""
    low = jnp.min(jnp.where(present, x, jnp.inf))
    high = jnp.max(jnp.where(present, x, -jnp.inf))

    def pull(theta):
        off = x - theta
        inside = count(present & (jnp.abs(off) <= clip)).astype(x.dtype)
        return fixed_sum(jnp.where(present, jnp.clip(off, -clip, clip), 0)), inside

    theta = decreasing_root(pull, start, low, high, clip)
    # Where no value is within the clip, as many lie above as below, and every point between them that is at least
    # `clip` away from all is a minimiser.
    off = x - theta
    flat = ~jnp.any(present & (jnp.abs(off) < clip * (1 - 1e-5)))
    left = jnp.max(jnp.where(present & (off < 0), x, -jnp.inf)) + clip
    right = jnp.min(jnp.where(present & (off > 0), x, jnp.inf)) - clip
    return jnp.where(flat & (left < right) & jnp.isfinite(left) & jnp.isfinite(right), left / 2 + right / 2, theta)


@checked(source="Huber 1964: `docs/formulas/private_robust_mab.md#huber-ucb`.")
def huber_location(
    x: Sample,
    clip: Annotated[
        Positive | Array, TRACED, Doc("Distance at which a value's influence is cut, in units of a value.")
    ],
) -> Annotated[Float[Array, ""], Doc("Where the minimisers are an interval, its middle.")]:
    """Huber's estimate of location: between the median (small clip) and the mean (large clip).

    It is the theta that minimises sum_i rho(x_i - theta), rho being quadratic within `clip` and linear beyond. The
    distances x_i - theta, cut at plus and minus `clip`, then sum to 0.

    >>> import jax.numpy as jnp
    >>> float(huber_location(jnp.array([0.0, 1.0, 2.0, 1e6]), 1.5))
    1.5
    """
    x = sample(x)
    return _of_all(x, jnp.asarray(clip, x.dtype))


@jax.jit
def _of_all(x: Any, clip: Any) -> Float[Array, ""]:
    return location(x, jnp.ones(x.shape, bool), clip, jnp.median(x))
