"""What XLA computes together, and what it computes once: layout of lanes, values stored, rare work."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.extend.core import Primitive

from jaxbandits.jax_internals import ad, lower_fun, primitive_batchers, register_lowering
from jaxbandits.typing import Array, Bool, Float, Int

F = TypeVar("F", bound=Callable[..., Any])
Tree = TypeVar("Tree")


def lanes_last(function: F) -> F:
    """A function of arrays whose last axes are lanes, as a function of one lane.

    Under vmap the axis of the lanes is appended to the arrays, instead of leading them.
    """
    return _of_one_lane(function, move_lanes_last, leading)


def lanes_first(function: F) -> F:
    """A function of arrays whose first axes are lanes, any number of them, as a function of one lane."""
    return _of_one_lane(function, in_front, with_lanes)


def _of_one_lane(function: F, before: Callable[..., Any], after: Callable[[Any], Any]) -> F:
    mapped = jax.custom_batching.custom_vmap(function)
    mapped.def_vmap(lambda axis_size, batched, *args: after(mapped(*before(axis_size, batched, args))))
    return cast(F, mapped)


def in_front(axis_size: int, batched: Iterable[Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments of a rule for `vmap`, all with the axis of the lanes in front."""

    def every(has, x):
        return x if has else jnp.broadcast_to(x, (axis_size, *jnp.shape(x)))

    return jax.tree.map(every, tuple(batched), args)


def with_lanes(out: object) -> tuple[Any, ...]:
    """Results of a rule for `vmap`, and that all have the axis of the lanes."""
    return out, jax.tree.map(lambda _: True, out)


def move_lanes_last(axis_size: int, batched: Iterable[Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments of a rule for `vmap`, the axis of the lanes moved from the front to the end, or appended."""

    def move_or_append(moves, x):
        return jnp.moveaxis(x, 0, -1) if moves else jnp.broadcast_to(x[..., None], (*jnp.shape(x), axis_size))

    return jax.tree.map(move_or_append, tuple(batched), args)


def leading(out: object) -> tuple[Any, ...]:
    """Results of a rule for `vmap`, the axis of the lanes moved from the end to the front, and that all have it."""
    return with_lanes(jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), out))


def lanes_at(arrays: Sequence[Array], axes: Sequence[int | None], places: Sequence[int]) -> list[Array]:
    """Operands of an operation's rule for `vmap`, with the axis of the lanes at given places; axes: where it was."""
    size = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)

    def move_lanes(x: Array, own: int | None, to: int) -> Array:
        if own is None:
            return jnp.broadcast_to(jnp.expand_dims(x, to), (*x.shape[:to], size, *x.shape[to:]))
        return jnp.moveaxis(x, own, to)

    return list(map(move_lanes, arrays, axes, places))


# docs/decisions.md#materialize
def materialize(x: Array, *, long: bool = False) -> Array:
    """x itself, on a CPU computed once and stored.

    XLA on a CPU fuses a producer into every consumer and computes it again in each; a two-operand reduction is
    the one cheap thing that it does not fuse away. Around a step's action and its few new scalars this is worth
    a factor of two (measured: EXP3 2.1e7 to 6.6e7 plays/s, UCB1 3.4e7 to 8.5e7). An accelerator needs no such
    thing, and there it would only cut a kernel in two.

    long: x takes dozens of operations, as a normal does. Then it is not stacked, which compiles it twice and behind a
    branch, without vectors (measured: a normal 37 to 5.5 ns; but UCB1's and EXP3's few operations the other way
    round, 5.9 and 13 ns a play where stacked ones take 4.4 and 5.5).
    """
    return _materialize.bind(jnp.asarray(x), long=long)[0]


def materialize_all(arrays: Sequence[Array]) -> list[Array]:
    """`materialize` for several arrays of one shape, all computed in one loop: what they share is computed once.

    One by one each would compute it again (measured: four features of unit vectors 3.2e8 to 8.4e8 draws/s).
    """
    return list(_materialize.bind(*map(jnp.asarray, arrays), long=False))


# An operation of its own: `lax.platform_dependent` would trace, and lower for a CPU, a branch for every platform.
_materialize = Primitive("materialize")
_materialize.multiple_results = True


def _store_by_reduction(*arrays: Array, long: bool) -> list[Array]:
    """The arrays, by a reduction of two equal entries to the first one."""
    pairs = [jnp.broadcast_to(x[..., None], (*x.shape, 2)) if long else jnp.stack([x, x], axis=-1) for x in arrays]
    position = jax.lax.broadcasted_iota(jnp.int32, pairs[0].shape, pairs[0].ndim - 1)

    def take_earlier(a, b):
        later = b[-1] < a[-1]
        return tuple(jnp.where(later, y, x) for x, y in zip(a, b, strict=True))

    start = (*(jnp.zeros((), x.dtype) for x in arrays), jnp.int32(2))
    return list(jax.lax.reduce((*pairs, position), start, take_earlier, (position.ndim - 1,))[:-1])


def _over_lanes(arrays: Sequence[Array], axes: Sequence[int | None], *, long: bool) -> tuple[list[Array], list[int]]:
    """The rule for `vmap`: all arrays get the axis of the lanes, where the first that has one has it."""
    at = [next(axis for axis in axes if axis is not None)] * len(arrays)
    return _materialize.bind(*lanes_at(arrays, axes, at), long=long), at


_materialize.def_impl(jax.jit(_materialize.bind, static_argnames="long"))
_materialize.def_abstract_eval(lambda *arrays, long: [core.ShapedArray(x.shape, x.dtype) for x in arrays])
primitive_batchers[_materialize] = _over_lanes
ad.primitive_jvps[_materialize] = lambda arrays, tangents, **long: (_materialize.bind(*arrays, **long), tangents)
ad.primitive_transposes[_materialize] = lambda cotangents, *_, **long: cotangents
register_lowering(_materialize, lambda _, *arrays, long: arrays)
register_lowering(_materialize, lower_fun(_store_by_reduction, multiple_results=True), platform="cpu")


# docs/decisions.md#cond-any
def cond_any(wanted: Bool[Array, ""], function: Callable[..., Tree], x: Tree, *args: object) -> Tree:
    """`function(x, *args)` where `wanted`, else x: for rare and costly work in a step.

    Under vmap `lax.cond` computes both branches for every lane. Here the function runs, for all lanes, only
    when some lane wants it. So it may run for a lane that does not want it, and must then give back x. Whatever
    differs between lanes is passed as x or args, and not closed over.
    """

    @jax.custom_batching.custom_vmap
    def apply_where_wanted(wanted, x, args):
        return jax.lax.cond(wanted, lambda: function(x, *args), lambda: x)

    @apply_where_wanted.def_vmap
    def _(axis_size, batched, wanted, x, args):
        wanted, x, args = in_front(axis_size, batched, (wanted, x, args))
        return with_lanes(cond_any(jnp.any(wanted), jax.vmap(function), x, *args))

    return cast(Tree, apply_where_wanted(wanted, x, args))


def rounded(x: Float[Array, "P ..."], t: Int[Array, " P"]) -> Float[Array, "P ..."]:
    """x unchanged, but rounded to its type before anything is done with it; t are the play indices.

    Without it a compiler contracts mean + scale * normal into one fused multiply-add or not, depending on the
    length of the window. The top bit of t, which is always 0, is mixed into x and hides the product from the
    compiler: rewards are then the same bits in windows of every size.
    """
    word = jnp.uint64 if x.dtype == jnp.float64 else jnp.uint32
    zero = (t.astype(jnp.uint32) >> np.uint32(31)).astype(word).reshape(t.shape + (1,) * (x.ndim - t.ndim))
    return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(x, word) ^ zero, x.dtype)
