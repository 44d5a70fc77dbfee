"""One number an arm, in the form that is fastest: a tuple of scalars up to `UNROLL` arms, one array [K] beyond.

Under vmap every scalar of the tuple, a column, is one contiguous array over the lanes, and what is done to all arms is
loops over lanes in full vectors. An array is read with a stride, arm after arm, but compiles faster. Algorithms write
`columns.each(function, x, y)` and so on, and need not know which form they have.

XLA compiles a loop of a single operation without vectors: what `each` computes and stores should be two operations.
Axes: [K] arms.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import choice
from jaxbandits.numerics.fusion import materialize
from jaxbandits.numerics.sums import UNROLL, fixed_sum
from jaxbandits.typing import Array, Bool, Float, Int

# K scalars or an array [K]
Columns = Any


# docs/decisions.md#columns
def full(number: int, value: Any, dtype: Any) -> Columns:
    """The same value for every arm."""
    return apart(jnp.full(number, value, dtype))


def apart(x: Columns) -> Columns:
    """An array [K] in the form that its length asks for; columns are left as they are."""
    return x if isinstance(x, tuple) or len(x) > UNROLL else tuple(x[i] for i in range(len(x)))


def together(x: Columns) -> Array:
    """As one array [K]."""
    return jnp.stack(x) if isinstance(x, tuple) else x


def dtype(x: Columns) -> Any:
    """The type of the entries."""
    return x[0].dtype if isinstance(x, tuple) else x.dtype


def each(function: Callable[..., Array], x: Columns, *others: Columns) -> Columns:
    """The function of every arm's entries."""
    if isinstance(x, tuple):
        return tuple(function(*entries) for entries in zip(x, *others, strict=True))
    return function(x, *others)


def marks(x: Columns, arm: Int[Array, ""]) -> Columns:
    """For every arm of x, whether it is this one."""
    return tuple(arm == i for i in range(len(x))) if isinstance(x, tuple) else choice.one_hot(arm, len(x))


def entry(x: Columns, arm: Int[Array, ""]) -> Array:
    """The entry of one arm."""
    if not isinstance(x, tuple):
        return x[arm]

    def chosen(how: Any, arm: Array, *x: Array) -> Array:
        value = x[0]
        for i in range(1, len(x)):
            value = jnp.where(how(arm, i), x[i], value)
        return value

    # a CPU asks the same questions as `marks`, once; the conditions of all arms are more than a GPU can hold at once
    by_place, by_order = partial(chosen, operator.eq), partial(chosen, operator.ge)
    return lax.platform_dependent(arm, *x, cpu=by_place, default=by_order)


def marked(x: Columns, arm: Int[Array, ""], marks: Columns) -> Array:
    """The entry of one arm, of which there are already the `marks` of x."""
    if not isinstance(x, tuple):
        return x[arm]
    value = x[0]
    for own, here in zip(x[1:], marks[1:], strict=True):
        value = jnp.where(here, own, value)
    return value


def replaced(x: Columns, arm: Int[Array, ""], value: Array) -> Columns:
    """x with another entry for one arm."""
    if not isinstance(x, tuple):
        return x.at[arm].set(value)
    return each(lambda old, here: jnp.where(here, value, old), x, marks(x, arm))


def added(x: Columns, arm: Int[Array, ""], value: Array) -> Columns:
    """x with something added to the entry of one arm."""
    if not isinstance(x, tuple):
        return x.at[arm].add(value)
    return each(lambda old, here: jnp.where(here, old + value, old), x, marks(x, arm))


def total(x: Columns) -> Array:
    """The sum, left to right, of an array as `fixed_sum`."""
    if not isinstance(x, tuple):
        return materialize(fixed_sum(x))
    value = x[0]
    for other in x[1:]:
        value = value + other
    return value


def largest(x: Columns) -> Array:
    """The largest entry."""
    if not isinstance(x, tuple):
        return jnp.max(x)
    top = x[0]
    for other in x[1:]:
        top = jnp.maximum(top, other)
    return top


def above_least(x: Columns) -> Columns:
    """Every entry less the least one."""
    if not isinstance(x, tuple):
        return x - materialize(jnp.min(x))
    least = x[0]
    for other in x[1:]:
        least = jnp.minimum(least, other)
    least = materialize(least)
    return each(lambda value: jnp.maximum(value - least, 0), x)


def every(x: Columns) -> Bool[Array, ""]:
    """Whether all entries are True."""
    return jnp.all(together(x))


def argmax(x: Columns) -> Int[Array, ""]:
    """The lowest arm of the largest entry."""
    if not isinstance(x, tuple):
        return choice.argmax(x)
    arm, top = jnp.int32(0), x[0]
    for i in range(1, len(x)):
        above = x[i] > top
        arm, top = jnp.where(above, i, arm), jnp.where(above, x[i], top)
    return arm.astype(jnp.int32)


def argmin(x: Columns) -> Int[Array, ""]:
    """The lowest arm of the least entry."""
    return argmax(each(lambda value: -value, x))


def inverse_cdf(x: Columns, u: Float[Array, ""]) -> Int[Array, ""]:
    """The lowest arm i with x_0 + ... + x_i > u, at most the last."""
    if not isinstance(x, tuple):
        return materialize(choice.inverse_cdf(x, u))
    below, arm = x[0], jnp.zeros(jnp.shape(u), jnp.int32)
    for other in x[1:]:
        arm = arm + (below <= u).astype(jnp.int32)
        below = below + other
    return arm
