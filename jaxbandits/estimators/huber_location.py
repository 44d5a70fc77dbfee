"""Huber's M-estimator of location with a given clip (Huber 1964)."""

import jax
import jax.numpy as jnp

from jaxbandits.estimators._inputs import checked, decreasing_root, sample
from jaxbandits.numerics import count, fixed_sum


def location(x, present, clip, start):
    """The location of the present values of x [n]: the middle of all minimisers, searched from `start` []."""
    low = jnp.min(jnp.where(present, x, jnp.inf))
    high = jnp.max(jnp.where(present, x, -jnp.inf))

    def pull(theta):
        off = x - theta
        inside = count(present & (jnp.abs(off) <= clip)).astype(x.dtype)
        return fixed_sum(jnp.where(present, jnp.clip(off, -clip, clip), 0)), inside

    theta = decreasing_root(pull, start, low, high, clip)
    # no value within the clip: as many lie above as below, and every point between them at least `clip` away is a minimiser
    off = x - theta
    flat = ~jnp.any(present & (jnp.abs(off) < clip * (1 - 1e-5)))
    left = jnp.max(jnp.where(present & (off < 0), x, -jnp.inf)) + clip
    right = jnp.min(jnp.where(present & (off > 0), x, jnp.inf)) - clip
    return jnp.where(flat & (left < right) & jnp.isfinite(left) & jnp.isfinite(right), left / 2 + right / 2, theta)


def huber_location(x, clip):
    """The theta that minimises sum_i rho(x_i - theta), rho quadratic within `clip` and linear beyond: sum clip(x_i - theta) = 0.

    x: [n]; infinities and NaN count as 0. clip > 0, in the rewards' unit. Returns []; where the minimisers are an interval, its
    middle. A large clip gives the mean, a small one the median. Raises ValueError for an empty x or another clip.
    Source: Huber 1964; specification of private and robust bandits, section 7.

    >>> import jax.numpy as jnp
    >>> float(huber_location(jnp.array([0.0, 1.0, 2.0, 1e6]), 1.5))
    1.5
    """
    x = sample(x)
    clip = jnp.asarray(checked("clip", clip, 0.0, open_low=True), x.dtype)
    return _of_all(x, clip)


@jax.jit
def _of_all(x, clip):
    return location(x, jnp.ones(x.shape, bool), clip, jnp.median(x))
