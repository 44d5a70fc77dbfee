"""One number an arm, in the form that is fastest: a tuple of scalars up to `UNROLL` arms, one array [K] beyond.

Under vmap every scalar of the tuple, a column, is one contiguous array over the lanes, and what is done to all arms is
loops over lanes in full vectors. An array is read with a stride, arm after arm, but compiles faster. Where a play
changes the number of one arm alone there is a third form, `Kept`: columns to all who read it, and written by one loop
for all arms. Algorithms write `columns.map_arms(function, x, y)` and so on, and need not know which form they have.

XLA compiles a loop of a single operation without vectors: what `map_arms` computes and stores should be two operations.
Axes: [K] arms.
"""

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import core, lax
from jax.extend.core import ClosedJaxpr, Primitive

from jaxbandits.jax_internals import lower_fun, primitive_batchers, register_lowering
from jaxbandits.numerics import choice
from jaxbandits.numerics.fusion import lanes_at, materialize
from jaxbandits.numerics.sums import UNROLL, fixed_sum
from jaxbandits.typing import Array, Bool, DType, Float, Int, Numeric

KEPT = 64  # up to so many arms `Kept` is faster than an array


# docs/decisions.md#kept-columns
class Kept(NamedTuple):
    """Numbers of which a play changes one arm's alone. Lanes lie behind the arms while they play (`lanes_behind`)."""

    rows: Array  # [K]


# K scalars, an array [K], or `Kept`
Columns: TypeAlias = tuple[Array, ...] | Array | Kept


# docs/decisions.md#columns
def full(number: int, value: Numeric, dtype: DType) -> Columns:
    """The same value for every arm."""
    return from_array(jnp.full(number, value, dtype))


def full_for_single_writes(number: int, value: Numeric, dtype: DType) -> Columns:
    """The same value for every arm, where a play changes that of one arm alone."""
    x = jnp.full(number, value, dtype)
    return Kept(x) if number <= KEPT else x


def from_array(x: Columns) -> Columns:
    """An array [K] in the form that its length asks for; columns are left as they are."""
    x = _read(x)
    return x if isinstance(x, tuple) or len(x) > UNROLL else tuple(x[i] for i in range(len(x)))


def _read(x: Columns) -> tuple[Array, ...] | Array:
    """As those see it who read it: `Kept` as columns."""
    return tuple(x.rows[i] for i in range(len(x.rows))) if isinstance(x, Kept) else x


def together(x: Columns) -> Array:
    """As one array [K]."""
    x = _read(x)
    return jnp.stack(x) if isinstance(x, tuple) else x


def dtype(x: Columns) -> np.dtype[Any]:
    """The type of the entries."""
    return x.rows.dtype if isinstance(x, Kept) else x[0].dtype if isinstance(x, tuple) else x.dtype


def map_arms(function: Callable[..., Array], x: Columns, *others: Columns) -> Columns:
    """The function of every arm's entries."""
    x, *others = map(_read, (x, *others))
    if isinstance(x, tuple):
        return tuple(function(*entries) for entries in zip(x, *others, strict=True))
    return function(x, *others)


def marks(x: Columns, arm: Int[Array, ""]) -> Columns:
    """For every arm of x, whether it is this one."""
    x = _read(x)
    return tuple(arm == i for i in range(len(x))) if isinstance(x, tuple) else choice.one_hot(arm, len(x))


def entry(x: Columns, arm: Int[Array, ""]) -> Array:
    """The entry of one arm."""
    x = _read(x)
    if not isinstance(x, tuple):
        return x[arm]

    def entry_by(how: Callable[..., Any], arm: Array, *x: Array) -> Array:
        return reduce(lambda value, i: jnp.where(how(arm, i), x[i], value), range(1, len(x)), x[0])

    # a CPU asks the same questions as `marks`, once; the conditions of all arms are more than a GPU can hold at once
    by_place, by_order = partial(entry_by, operator.eq), partial(entry_by, operator.ge)
    return lax.platform_dependent(arm, *x, cpu=by_place, default=by_order)


def entry_at_marks(x: Columns, arm: Int[Array, ""], marks: Columns) -> Array:
    """The entry of one arm, of which there are already the `marks` of x."""
    x = _read(x)
    if not isinstance(x, tuple):
        return x[arm]
    return reduce(lambda value, i: jnp.where(marks[i], x[i], value), range(1, len(x)), x[0])


def replace_entry(x: Columns, arm: Int[Array, ""], value: Numeric, *, add: bool = False) -> Columns:
    """x with another entry for one arm, or with something added to it."""
    if isinstance(x, Kept):
        return Kept(_bind_write(x.rows, jnp.asarray(arm, jnp.int32), jnp.asarray(value, x.rows.dtype), add=add))
    if not isinstance(x, tuple):
        return x.at[arm].add(value) if add else x.at[arm].set(value)
    return map_arms(lambda old, here: jnp.where(here, old + value if add else value, old), x, marks(x, arm))


def add_to_entry(x: Columns, arm: Int[Array, ""], value: Array | int) -> Columns:
    """x with something added to the entry of one arm."""
    return replace_entry(x, arm, value, add=True)


def sum_entries(x: Columns) -> Array:
    """The sum, left to right, of an array as `fixed_sum`."""
    x = _read(x)
    if not isinstance(x, tuple):
        return materialize(fixed_sum(x))
    return reduce(operator.add, x)


def largest_entry(x: Columns) -> Array:
    """The largest entry."""
    x = _read(x)
    return reduce(jnp.maximum, x) if isinstance(x, tuple) else jnp.max(x)


def above_least(x: Columns) -> Columns:
    """Every entry less the least one."""
    x = _read(x)
    if not isinstance(x, tuple):
        return x - materialize(jnp.min(x))
    least = materialize(reduce(jnp.minimum, x))
    return map_arms(lambda value: jnp.maximum(value - least, 0), x)


def every(x: Columns) -> Bool[Array, ""]:
    """Whether all entries are True."""
    return jnp.all(together(x))


def argmax(x: Columns) -> Int[Array, ""]:
    """The lowest arm of the largest entry."""
    x = _read(x)
    if not isinstance(x, tuple):
        return choice.argmax(x)
    arm, top = jnp.int32(0), x[0]
    for i in range(1, len(x)):
        above = x[i] > top
        arm, top = jnp.where(above, i, arm), jnp.where(above, x[i], top)
    return arm.astype(jnp.int32)


def argmin(x: Columns) -> Int[Array, ""]:
    """The lowest arm of the least entry."""
    return argmax(map_arms(lambda value: -value, x))


def inverse_cdf(x: Columns, u: Float[Array, ""]) -> Int[Array, ""]:
    """The lowest arm i with x_0 + ... + x_i > u, at most the last."""
    x = _read(x)
    if not isinstance(x, tuple):
        return materialize(choice.inverse_cdf(x, u))
    below, arm = x[0], jnp.zeros(jnp.shape(u), jnp.int32)
    for other in x[1:]:
        arm = arm + (below <= u).astype(jnp.int32)
        below = below + other
    return arm


# ---- numbers of which a play changes one


def lanes_behind(tree: object, *, back: bool = False) -> Any:
    """A tree with the lanes of all `Kept` behind the arms; `back`: in front of them again."""
    at, to = (0, -1) if back else (-1, 0)
    return _each_kept(lambda x: Kept(jnp.moveaxis(x.rows, at, to)), lambda x: x, tree)


def axes_of_lanes(tree: object, behind: int) -> Any:
    """The axes of lanes for `vmap`: the first axis, of `Kept` the axis `behind`."""
    return _each_kept(lambda x: behind, lambda x: 0, tree)


def _each_kept(those: Callable[[Kept], Any], others: Callable[[Any], Any], tree: object) -> Any:
    def is_kept(x: object) -> bool:
        return isinstance(x, Kept)

    return jax.tree.map(lambda x: those(x) if is_kept(x) else others(x), tree, is_leaf=is_kept)


# An operation of its own: JAX's rules for `vmap` would bring the lanes of each operand to the front. `plain` says what
# it does in operations of JAX.
_write = Primitive("write_one")


def _as_loop(x: Array, arm: Array, value: Array, *, add: bool) -> Array:
    new = x + value[None] if add else value[None]
    return jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, 0) == arm[None], new, x)


def _bind_write(*arrays: Array, add: bool) -> Array:
    return _write.bind(*arrays, add=add, plain=jax.make_jaxpr(partial(_as_loop, add=add))(*arrays))


def _over_lanes(arrays: Sequence[Array], axes: Sequence[int | None], *, add: bool, **_: object) -> tuple[Array, int]:
    """The rule for `vmap`: lanes stay where the numbers have them, behind the arms."""
    at = axes[0] or 1
    return _bind_write(*lanes_at(arrays, axes, (at, at - 1, at - 1)), add=add), at


def _write_as_operations(*arrays: Array, add: bool, plain: ClosedJaxpr) -> Array:
    return _as_loop(*arrays, add=add)


_at_once = jax.jit(_as_loop, static_argnames="add")
_write.def_impl(lambda *arrays, add, plain: _at_once(*arrays, add=add))
_write.def_abstract_eval(lambda x, arm, value, **_: core.ShapedArray(x.shape, x.dtype))
primitive_batchers[_write] = _over_lanes
register_lowering(_write, lower_fun(_write_as_operations, multiple_results=False))
