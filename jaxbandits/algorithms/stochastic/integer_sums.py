"""Sums of rewards as integers: the same bits in whatever order, and however cut into windows, they are added.

A value of size at most `ceiling`, a power of two, counts in units of ceiling 2^-23 (2^-52 in float64), the last bit
of the largest value. An estimate then depends neither on window lengths nor on where checkpoints cut them, and one
reward never moves a sum by more than its bound. Axes: [P] plays of a window, or [V] values with how often each was
paid.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import UNROLL, fixed_sum, materialize, one_hot
from jaxbandits.typing import Array, DType, Float, Int, Numeric

# The most plays of one window. That many units of 2^23 still fit in 31 bits; with a ceiling twice as large 256 fit.
MAX_PLAYS = 128


class Sum(NamedTuple):
    """The number (high + low 2^-bits) ceiling, with 0 <= low < 2^bits."""

    high: Int[Array, ""]
    low: Int[Array, ""]


def power_above(bound: Numeric) -> np.ndarray:
    """The smallest powers of two that are not below `bound` (> 0): ceilings, on the host."""
    mantissa, exponent = np.frexp(np.asarray(bound, np.float64))
    return np.ldexp(1.0, exponent - (mantissa == 0.5))


def _integers(dtype):
    """Bits of a unit, and the integers that hold them."""
    return jnp.finfo(dtype).nmant, jnp.int64 if dtype == jnp.float64 else jnp.int32


def nothing(dtype: DType, shape: tuple[int, ...] = ()) -> Sum:
    """The sum of no rewards, or as many sums as `shape` says."""
    zero = jnp.zeros(shape, _integers(dtype)[1])
    return Sum(zero, zero)


def add_rewards(total: Sum, value: Float[Array, " P"], ceiling: Numeric, plays: Int[Array, " V"] | None = None) -> Sum:
    """`total` plus the rewards of a window.

    value: in [-ceiling, ceiling], 0 where nothing was played. plays: how often each value was paid, up to 2^14 times
    in all; None is once each.
    """
    bits, integer = _integers(value.dtype)
    units = jnp.round(value * (2.0**bits / ceiling)).astype(integer)
    high, low = total
    if plays is None:
        # any order gives these bits; `jnp.sum` was 3% slower in prm_elimination with raw moments
        low = low + fixed_sum(units)
    else:  # 2^14 times 2^23 units do not fit: the upper and the lower half of the units' bits are summed apart
        half, plays = bits // 2, plays.astype(integer)
        upper, lower = fixed_sum((units >> half) * plays), fixed_sum((units & (2**half - 1)) * plays)
        high = high + (upper >> (bits - half))
        low = low + ((upper & (2 ** (bits - half) - 1)) << half) + lower
    return Sum(high + (low >> bits), low & (2**bits - 1))


def add_by_arm(total: Sum, value: Float[Array, " P"], ceiling: Numeric, arm: Int[Array, " P"]) -> Sum:
    """`total` of every arm [K] plus the rewards of a window in which each play has an arm of its own."""
    bits, integer = _integers(value.dtype)
    units = materialize(jnp.round(value * (2.0**bits / ceiling)).astype(integer))
    high, low = total
    if len(low) > UNROLL:
        low = low.at[arm].add(units)
    else:
        low = low + fixed_sum(jnp.where(one_hot(arm, len(low)).T, units[None], 0))
    return Sum(high + (low >> bits), low & (2**bits - 1))


def sum_as_float(total: Sum, ceiling: Numeric, dtype: np.dtype[Any]) -> Float[Array, "..."]:
    """The sum, rounded to a float."""
    bits, _ = _integers(dtype)
    return (total.high.astype(dtype) + total.low.astype(dtype) * dtype.type(2.0**-bits)) * ceiling
