"""The shorth mean: the mean of the shortest window that holds a given number of values."""

import jax
import jax.numpy as jnp

from jaxbandits.estimators._inputs import checked, sample
from jaxbandits.estimators.trimmed_mean import GUARD, middle_mean
from jaxbandits.numerics import argmin


def shorth(ordered, pulls, share):
    """The shorth mean of the first `pulls` entries of a row in rising order."""
    outside = jnp.floor(2 * share * pulls.astype(share.dtype) * (1 + GUARD)).astype(jnp.int32)
    length = jnp.maximum(pulls - outside, 1)
    place = jnp.arange(ordered.shape[-1], dtype=jnp.int32)
    end = jnp.take(ordered, jnp.minimum(place + length - 1, ordered.shape[-1] - 1))
    first = argmin(jnp.where(place + length <= pulls, end - ordered, jnp.inf))
    return middle_mean(ordered, first, first + length)


def shorth_mean(x, share):
    """The mean of the shortest window of n - floor(2 share n) neighbouring order statistics; the lowest of equally short ones.

    x: [n]; infinities and NaN count as 0. share in [0, 1/2). At least one value is kept. Returns []. Raises ValueError for an
    empty x or another share. Source: specification of private and robust bandits, section 7 (Niss and Tewari 2020).

    >>> import jax.numpy as jnp
    >>> float(shorth_mean(jnp.array([9.0, 1.0, 2.0, 3.0]), 0.125))
    2.0
    """
    x = sample(x)
    share = jnp.asarray(
        checked("share", share, 0.0, 0.5, remedy="half of the values or more cannot be left out"), x.dtype
    )
    return _of_all(x, share)


@jax.jit
def _of_all(x, share):
    return shorth(jnp.sort(x), jnp.int32(x.shape[0]), share)
