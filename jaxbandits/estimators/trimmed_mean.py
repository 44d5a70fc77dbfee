"""Means of some order statistics: without the smallest and largest ones, and over the shortest window (the shorth)."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp

from jaxbandits.declared import TRACED, Doc, Remedy, Share
from jaxbandits.estimators._inputs import Sample, sample
from jaxbandits.numerics import argmin, fixed_sum
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import declare

GUARD = 1e-6  # relative: share * n counts as the integer that it is but for rounding


def count_to_trim(pulls: Int[Array, "..."], share: Float[Array, ""]) -> Int[Array, "..."]:
    """ceil(share * n), int32, guarded against rounding."""
    product = pulls.astype(share.dtype) * share
    return jnp.ceil(product * (1 - GUARD)).astype(jnp.int32)


def middle_mean(ordered: Float[Array, "..."], first: Numeric, stop: Numeric, axis: int = -1) -> Float[Array, "..."]:
    """Mean of ordered[first:stop] over one axis: ends that are data or ints, with at least one value between them."""
    place = jnp.arange(ordered.shape[axis], dtype=jnp.int32)
    place = place.reshape(-1, *(1,) * (ordered.ndim - 1 - axis % ordered.ndim))
    total = fixed_sum(jnp.where((place >= first) & (place < stop), ordered, 0), axis=axis)
    return total / jnp.asarray(stop - first, ordered.dtype)


def trim_and_average(
    ordered: Float[Array, "... n"], pulls: Int[Array, ""], share: Float[Array, ""]
) -> Float[Array, "..."]:
    """The trimmed mean of the first `pulls` entries of a row in rising order.

    The median where nothing would be left.
    """
    drop = jnp.minimum(count_to_trim(pulls, share), (pulls - 1) // 2)
    return middle_mean(ordered, drop, pulls - drop)


@declare(source="Niss and Tewari 2020; `docs/formulas/private_robust_mab.md#cr-ucb`.")
def trimmed_mean(
    x: Sample, share: Annotated[Share | Array, TRACED, Remedy("half of the values or more cannot be trimmed")]
) -> Annotated[Float[Array, ""], Doc("The trimmed mean; the median where nothing would be left (small n).")]:
    """The mean of x without its ceil(share n) smallest and as many largest values.

    Args:
        share: The share of the values that is left out at each end.

    >>> import jax.numpy as jnp
    >>> float(trimmed_mean(jnp.array([1e6, 1.0, 2.0, 6.0, -1e6]), 0.2))
    3.0
    """
    x = sample(x)
    return _of_all(trim_and_average, x, jnp.asarray(share, x.dtype))


def shorth(ordered: Float[Array, " S"], pulls: Int[Array, ""], share: Float[Array, ""]) -> Float[Array, ""]:
    """The shorth mean of the first `pulls` entries of a row in rising order."""
    outside = jnp.floor(2 * share * pulls.astype(share.dtype) * (1 + GUARD)).astype(jnp.int32)
    length = jnp.maximum(pulls - outside, 1)
    place = jnp.arange(ordered.shape[-1], dtype=jnp.int32)
    end = jnp.take(ordered, jnp.minimum(place + length - 1, ordered.shape[-1] - 1))
    first = argmin(jnp.where(place + length <= pulls, end - ordered, jnp.inf))
    return middle_mean(ordered, first, first + length)


@declare(source="Niss and Tewari 2020, recalled and not read again: `docs/formulas/private_robust_mab.md#cr-ucb`.")
def shorth_mean(
    x: Sample, share: Annotated[Share | Array, TRACED, Remedy("half of the values or more cannot be left out")]
) -> Annotated[Float[Array, ""], Doc("At least one value is averaged.")]:
    """The mean of the shortest window of n - floor(2 share n) neighbouring order statistics.

    Args:
        share: Half of the share of values that is left out.

    Note:
        Of equally short windows the lowest counts. The product 2 share n counts as an integer when it is one but for
        a relative 1e-6.

    >>> import jax.numpy as jnp
    >>> float(shorth_mean(jnp.array([9.0, 1.0, 2.0, 3.0]), 0.125))
    2.0
    """
    x = sample(x)
    return _of_all(shorth, x, jnp.asarray(share, x.dtype))


@partial(jax.jit, static_argnums=0)
def _of_all(mean: Callable[..., Any], x: Array, share: Numeric) -> Float[Array, ""]:
    return mean(jnp.sort(x), jnp.int32(len(x)), share)
