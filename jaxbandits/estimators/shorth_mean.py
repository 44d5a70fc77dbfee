"""The shorth mean: the mean of the shortest window that holds a given number of values."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_doc import Doc

from jaxbandits.declared import TRACED, Remedy, Share
from jaxbandits.estimators._inputs import Sample, sample
from jaxbandits.estimators.trimmed_mean import GUARD, middle_mean
from jaxbandits.numerics import argmin
from jaxbandits.typing import Array, Float, Int
from jaxbandits.validation import checked

HalfOut = Annotated[
    Share | Array,
    TRACED,
    Remedy("half of the values or more cannot be left out"),
    Doc("Half of the share of values that is left out."),
]


def shorth(ordered: Float[Array, " S"], pulls: Int[Array, ""], share: Float[Array, ""]) -> Float[Array, ""]:
    """The shorth mean of the first `pulls` entries of a row in rising order."""
    outside = jnp.floor(2 * share * pulls.astype(share.dtype) * (1 + GUARD)).astype(jnp.int32)
    length = jnp.maximum(pulls - outside, 1)
    place = jnp.arange(ordered.shape[-1], dtype=jnp.int32)
    end = jnp.take(ordered, jnp.minimum(place + length - 1, ordered.shape[-1] - 1))
    first = argmin(jnp.where(place + length <= pulls, end - ordered, jnp.inf))
    return middle_mean(ordered, first, first + length)


@checked(source="Niss and Tewari 2020, recalled and not read again: `docs/formulas/private_robust_mab.md#cr-ucb`.")
def shorth_mean(x: Sample, share: HalfOut) -> Annotated[Float[Array, ""], Doc("At least one value is averaged.")]:
    """The mean of the shortest window of n - floor(2 share n) neighbouring order statistics.

    Notes
    -----
    Of equally short windows the lowest counts. Infinities and NaN count as 0. The product 2 share n counts as an
    integer when it is one but for a relative 1e-6.

    >>> import jax.numpy as jnp
    >>> float(shorth_mean(jnp.array([9.0, 1.0, 2.0, 3.0]), 0.125))
    2.0
    """
    x = sample(x)
    return _of_all(x, jnp.asarray(share, x.dtype))


@jax.jit
def _of_all(x: Any, share: Any) -> Float[Array, ""]:
    return shorth(jnp.sort(x), jnp.int32(x.shape[0]), share)
