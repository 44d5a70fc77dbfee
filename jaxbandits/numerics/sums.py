"""Sums in a fixed order, whatever number of lanes run side by side.

XLA orders a float reduction by the shape it is given. A bare `jnp.sum` over features may then differ in the
last bit between chunk sizes, and a bandit that differs in one bit soon plays other arms. Everything here is
elementwise operations in a fixed order. Short sums are written out, so that a step becomes a few loops over the
lanes.
"""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics.fusion import materialize, materialize_all
from jaxbandits.typing import Array, Bool, Float, Int

UNROLL = 32  # above this many terms, halve instead of unrolling: compile time grows with the unrolled length

FEW_FEATURES = 8  # features, and more than that are added by halves (`feature_sum`)

# A float32 sum of so many numbers up to 1 has a last bit of a half: a number below a quarter is lost in it.
SUMMED = 2**22
# Longer runs keep what rounding leaves out of such sums (`left_out`): in shorter ones it is not seen.
SHORT = 2**18


def floats(x: Any) -> Float[Array, "..."]:
    """Numbers as floats: as they are, or integers and booleans in float32."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.float32)


def fixed_sum(x: Array, axis: int = -1) -> Array:
    """Sum over one axis in a fixed order: left to right up to `UNROLL` terms, pairwise halves above."""
    x = jnp.moveaxis(x, axis, -1)
    return jaxbandits_halved_sum(x) if x.shape[-1] > UNROLL else _left_to_right(x)


@jax.jit  # traced once for all uses
def jaxbandits_halved_sum(x: Array) -> Array:
    """Sum over the last axis by pairwise halves, until `UNROLL` terms are left."""
    while x.shape[-1] > UNROLL:
        n = x.shape[-1]
        half = (n + 1) // 2
        tail = x[..., half:]
        head = x[..., : n - half] + tail
        x = head if n % 2 == 0 else jnp.concatenate([head, x[..., n - half : half]], axis=-1)
    return _left_to_right(x)


def _left_to_right(x: Array) -> Array:
    if x.shape[-1] == 0:
        return jnp.zeros(x.shape[:-1], x.dtype)
    return functools.reduce(operator.add, (x[..., i] for i in range(x.shape[-1])))


@jax.jit  # traced once for all uses
def jaxbandits_doubled_cumsum(x: Array) -> Array:
    """Cumulative sum over the last axis in a fixed order (doubling strides)."""
    n, stride = x.shape[-1], 1
    while stride < n:
        shifted = jnp.concatenate([jnp.zeros_like(x[..., :stride]), x[..., :-stride]], axis=-1)
        x, stride = x + shifted, 2 * stride
    return x


fixed_cumsum = jaxbandits_doubled_cumsum


def count(mask: Bool[Array, "..."], axis: int = -1) -> Int[Array, "..."]:
    """Number of True entries, int32 (integer sums are exact in any order)."""
    return jnp.sum(mask, axis=axis, dtype=jnp.int32)


def two_sum(
    high: Float[Array, "..."], low: Float[Array, "..."], x: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Add x to (high, low): Knuth's two-sum, then renormalised so that low stays below high's last bit."""
    total = high + x
    rounded_x = total - high  # the part of x that arrived in the total
    low = low + ((high - (total - rounded_x)) + (x - rounded_x))
    high = total + low
    return high, low - (high - total)


def left_out(total: Any, long: bool) -> Any:
    """What rounding has left out of a sum that begins: zeros in its form in a long run (`Draws.long`), otherwise ()."""
    return jax.tree.map(jnp.zeros_like, total) if long else ()


def added(total: Any, rest: Any, new: Any) -> tuple[Any, Any]:
    """The sum total + new, leaf by leaf, and what rounding left out of it. Where `rest` is () that is not kept."""
    if not jax.tree.leaves(rest):
        return jax.tree.map(operator.add, total, new), ()
    leaves, form = jax.tree.flatten(total)
    sums = map(two_sum, leaves, jax.tree.leaves(rest), jax.tree.leaves(new))
    high, low = zip(*(materialize_all(pair) for pair in sums), strict=True)
    return jax.tree.unflatten(form, high), jax.tree.unflatten(form, low)


def moved_mean(
    mean: Float[Array, "..."], rest: Float[Array, "..."], value: Float[Array, "..."], inverse: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """A mean, and what rounding left out of it, after one more value. inverse: 1 / N, that value counted."""
    return two_sum(mean, rest, ((value - mean) - rest) * inverse)


def contraction(x: Array, y: Array, axis: int = -1) -> Array:
    """Sum of x * y over an axis of features, in the order of `feature_sum`."""
    return fixed_sum(x * y, axis) if x.shape[axis] <= FEW_FEATURES else jaxbandits_sum_by_halves(axis % x.ndim, x, y)


def feature_sum(x: Array, axis: int = -1) -> Array:
    """Sum over an axis of features in a fixed order: left to right up to `FEW_FEATURES`, by halves above.

    `fixed_sum` of more than 8 terms is another order, which takes longer to compile and to run. It stands where
    results are older.
    """
    return fixed_sum(x, axis) if x.shape[axis] <= FEW_FEATURES else jaxbandits_sum_by_halves(axis % x.ndim, x)


def inner_products(*pairs: tuple[Float[Array, "... n"], Float[Array, "... n"]]) -> Float[Array, "p ..."]:
    """Inner products over the last axis of pairs of vectors, all in one sum."""
    return feature_sum(jnp.stack([x * y for x, y in pairs]))


@functools.partial(jax.jit, static_argnums=0)  # traced once for all uses
def jaxbandits_sum_by_halves(axis: int, *factors: Array) -> Array:
    """Sum of products over one axis, by halves.

    Halves of the factors are multiplied: halves of their product would make XLA store it first.
    """
    n = factors[0].shape[axis]
    while n > 1:
        half = (n + 1) // 2
        low, high = (
            functools.reduce(operator.mul, (lax.slice_in_dim(x, *ends, axis=axis) for x in factors))
            for ends in ((0, half), (half, n))
        )
        if n % 2:
            high = lax.pad(high, jnp.zeros((), high.dtype), [(0, int(i == axis), 0) for i in range(high.ndim)])
        factors, n = (low + high,), half
    return lax.squeeze(factors[0], (axis,))


def dot(x: Float[Array, "... n"], y: Float[Array, "... n"]) -> Float[Array, "..."]:
    """Inner product over the last axis, fixed order."""
    rank = max(jnp.ndim(x), jnp.ndim(y))
    return contraction(lax.broadcast_to_rank(x, rank), lax.broadcast_to_rank(y, rank))


def matvec(matrix: Float[Array, "... m n"], vector: Float[Array, "... n"]) -> Float[Array, "... m"]:
    """[..., m, n] times [..., n], fixed order."""
    rank = max(jnp.ndim(matrix), jnp.ndim(vector) + 1)
    return contraction(lax.broadcast_to_rank(matrix, rank), lax.broadcast_to_rank(vector[..., None, :], rank))


def product(x: Float[Array, "m d"], matrix: Float[Array, "d n"]) -> Float[Array, "m n"]:
    """The matrix product, for rows that fill a vector register: fixed order, blocks of rows after each other.

    One long row of sums would be split by XLA, which then stores all m d n products.
    """
    d = matrix.shape[0]

    def terms(first, number):
        # one at a time: of a slice that is read several times XLA makes no vectors
        columns = (lax.dynamic_slice_in_dim(x, first + i, 1, axis=1) for i in range(number))
        rows = (lax.dynamic_slice_in_dim(matrix, first + i, 1) for i in range(number))
        return functools.reduce(operator.add, map(operator.mul, columns, rows))

    if d <= UNROLL:
        return terms(0, d)
    block = UNROLL // 2
    rest = d % block
    total = jnp.zeros((len(x), matrix.shape[1]), x.dtype)
    total = lax.fori_loop(0, d // block, lambda k, total: total + terms(k * block, block), total)
    return total if rest == 0 else total + terms(d - rest, rest)


def combine(matrix: Float[Array, "m n"], weights: Float[Array, " n"]) -> Float[Array, " m"]:
    """[m, n] times [n] for long rows: eight running sums of neighbouring columns, added up at the end.

    The eight fill a vector register however few rows there are, and none waits for the addition before it.
    Measured for EXP4 with 64 experts: 6.1e6 plays/s by sums along m, 8.2e6 by this, 8.3e6 by a matrix product
    of the library, whose order of additions is its own.
    """
    m, n = matrix.shape
    short = -n % 8
    columns = jnp.pad(matrix, ((0, 0), (0, short))).reshape(m, -1, 8)
    weights = jnp.pad(weights, (0, short)).reshape(-1, 8)
    if len(weights) > UNROLL:
        return fixed_sum(fixed_sum(columns * weights[None], axis=1))
    total = functools.reduce(operator.add, (columns[:, i] * weights[i][None] for i in range(len(weights))))
    return fixed_sum(materialize(total))


def quadratic(matrix: Float[Array, "d d"], x: Float[Array, "... d"]) -> Float[Array, "..."]:
    """x^T M x over the last axis of x [..., d], with M [d, d] broadcast: fixed order."""
    return dot(x, matvec(matrix, x))
