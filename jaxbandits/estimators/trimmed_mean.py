"""The trimmed mean: the smallest and the largest values are left out."""

import jax
import jax.numpy as jnp

from jaxbandits.estimators._inputs import checked, sample
from jaxbandits.numerics import fixed_sum

GUARD = 1e-6  # relative: share * n counts as the integer that it is but for rounding


def left_out(pulls, share):
    """ceil(share * n), int32, guarded against rounding."""
    product = pulls.astype(share.dtype) * share
    return jnp.ceil(product * (1 - GUARD)).astype(jnp.int32)


def middle_mean(ordered, first, stop):
    """Mean of ordered[first:stop] (traced ends, not empty) over the last axis."""
    place = jnp.arange(ordered.shape[-1], dtype=jnp.int32)
    total = fixed_sum(jnp.where((place >= first) & (place < stop), ordered, 0))
    return total / (stop - first).astype(ordered.dtype)


def trimmed(ordered, pulls, share):
    """The trimmed mean of the first `pulls` entries of a row in rising order; the median where nothing would be left."""
    drop = jnp.minimum(left_out(pulls, share), (pulls - 1) // 2)
    return middle_mean(ordered, drop, pulls - drop)


def trimmed_mean(x, share):
    """The mean of x without its ceil(share n) smallest and as many largest values.

    x: [n]; infinities and NaN count as 0. share in [0, 1/2), of the values at each end. Where nothing would be left (small n) the
    median is returned. Returns []. Raises ValueError for an empty x or another share.
    Source: specification of private and robust bandits, section 7 (Niss and Tewari 2020).

    >>> import jax.numpy as jnp
    >>> float(trimmed_mean(jnp.array([1e6, 1.0, 2.0, 6.0, -1e6]), 0.2))
    3.0
    """
    x = sample(x)
    share = jnp.asarray(
        checked("share", share, 0.0, 0.5, remedy="half of the values or more cannot be trimmed"), x.dtype
    )
    return _of_all(x, share)


@jax.jit
def _of_all(x, share):
    return trimmed(jnp.sort(x), jnp.int32(x.shape[0]), share)
