"""Numerics whose result does not depend on how many lanes run side by side: fixed-order sums, ties, small linear algebra.

XLA orders a float reduction by the shape it is given, so a bare `jnp.sum` over features may differ in the last bit
between chunk sizes, and a bandit then forks its whole path. Everything here is written as elementwise operations in a
fixed order. Small sizes are unrolled, so that a step fuses into a few loops over the lanes.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

UNROLL = 32  # above this many terms, halve instead of unrolling: compile time grows with the unrolled length


def lanes_last(function):
    """`function` of arrays whose last axes are lanes, as a function of one lane: vmap appends its axis instead of leading with it."""
    mapped = jax.custom_batching.custom_vmap(function)

    @mapped.def_vmap
    def _(axis_size, batched, *args):
        def moved(moves, x):
            return jnp.moveaxis(x, 0, -1) if moves else jnp.broadcast_to(x[..., None], (*jnp.shape(x), axis_size))

        out = mapped(*jax.tree.map(moved, tuple(batched), args))
        out = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), out)
        return out, jax.tree.map(lambda _: True, out)

    return mapped


def fixed_sum(x, axis: int = -1):
    """Sum over one axis in a fixed order: left to right up to `UNROLL` terms, pairwise halves above."""
    x = jnp.moveaxis(x, axis, -1)
    while x.shape[-1] > UNROLL:
        n = x.shape[-1]
        half = (n + 1) // 2
        tail = x[..., half:]
        head = x[..., : n - half] + tail
        x = head if n % 2 == 0 else jnp.concatenate([head, x[..., n - half : half]], axis=-1)
    if x.shape[-1] == 0:
        return jnp.zeros(x.shape[:-1], x.dtype)
    total = x[..., 0]
    for i in range(1, x.shape[-1]):
        total = total + x[..., i]
    return total


def count(mask, axis: int = -1):
    """Number of True entries, int32 (integer sums are exact in any order)."""
    return jnp.sum(mask, axis=axis, dtype=jnp.int32)


def dot(x, y):
    """Inner product over the last axis, fixed order."""
    return fixed_sum(x * y)


def matvec(matrix, vector):
    """[..., m, n] times [..., n], fixed order."""
    return fixed_sum(matrix * vector[..., None, :])


def combine(matrix, weights):
    """[m, n] times [n] for long rows: eight running sums of neighbouring columns, added up at the end -> [m].

    The eight fill a vector register however few rows there are, and none waits for the addition before it (measured against sums along m:
    EXP4 with 64 experts 6.1e6 to 8.2e6 plays/s, a matrix product of the library, whose order is its own, 8.3e6).
    """
    m, n = matrix.shape
    short = -n % 8
    columns = jnp.pad(matrix, ((0, 0), (0, short))).reshape(m, -1, 8)
    weights = jnp.pad(weights, (0, short)).reshape(-1, 8)
    if len(weights) > UNROLL:
        return fixed_sum(fixed_sum(columns * weights, axis=1))
    total = columns[:, 0] * weights[0]
    for i in range(1, len(weights)):
        total = total + columns[:, i] * weights[i]
    return fixed_sum(settle(total))


def quadratic(matrix, x):
    """x^T M x over the last axis of x [..., d], with M [d, d] broadcast: fixed order."""
    return dot(x, matvec(matrix, x))


def argmax(x, relative: float = 0.0, axis: int = -1):
    """Lowest index of the maximum over one axis, int32; `relative`: values within this share of it are tied with it.

    `jnp.argmax` is faster over about ten arms, maximum-then-lowest-index over a hundred (measured: 2.3x and 3x).
    axis: other than the last one, as under `lanes_last`, the comparisons of a few arms are unrolled.
    """
    n = x.shape[axis]
    if relative == 0.0 and axis == -1 and n <= UNROLL:
        return jnp.argmax(x, axis=-1).astype(jnp.int32)
    unrolled = axis != -1 and n <= UNROLL
    values = [jax.lax.index_in_dim(x, i, axis) for i in range(n)] if unrolled else []
    top = functools.reduce(jnp.maximum, values) if unrolled else jnp.max(x, axis=axis, keepdims=True)
    if relative != 0.0:  # one product: a difference of two might be contracted into a fused multiply-add, or not
        top = top * jnp.where(top > 0, 1 - relative, 1 + relative).astype(x.dtype)
    if unrolled:
        index = jnp.full(top.shape, n - 1, jnp.int32)
        for i in range(n - 2, -1, -1):
            index = jnp.where(values[i] >= top, i, index)
        return jnp.squeeze(index, axis)
    index = jnp.arange(n, dtype=x.dtype).reshape(n, *(1,) * (x.ndim - 1 - axis % x.ndim))
    return jnp.min(jnp.where(x >= top, index, n - 1), axis=axis).astype(jnp.int32)


def argmin(x):
    """Lowest index of the minimum over the last axis, int32."""
    return argmax(-x)


def settle(x):
    """x itself, computed once. XLA on a CPU fuses a producer into every consumer and computes it again in each; a
    two-operand reduction is the one cheap thing it does not fuse away. Around a step's action and its few new scalars
    this is worth a factor of two (measured: EXP3 2.1e7 to 6.6e7 plays/s, UCB1 3.4e7 to 8.5e7).
    """
    pair = jnp.stack([x, x], axis=-1)
    position = jax.lax.broadcasted_iota(jnp.int32, pair.shape, pair.ndim - 1)

    def first(a, b):
        later = b[1] < a[1]
        return jnp.where(later, b[0], a[0]), jnp.where(later, b[1], a[1])

    return jax.lax.reduce((pair, position), (jnp.zeros((), x.dtype), jnp.int32(2)), first, (pair.ndim - 1,))[0]


def settle_all(arrays) -> list:
    """`settle` for several arrays of one shape, all computed in one loop: what they share is computed once.

    One by one each would compute it again (measured: four features of unit vectors 3.2e8 to 8.4e8 draws/s).
    """
    pairs = [jnp.stack([x, x], axis=-1) for x in arrays]
    position = jax.lax.broadcasted_iota(jnp.int32, pairs[0].shape, pairs[0].ndim - 1)

    def first(a, b):
        later = b[-1] < a[-1]
        return tuple(jnp.where(later, y, x) for x, y in zip(a, b, strict=True))

    start = (*(jnp.zeros((), x.dtype) for x in arrays), jnp.int32(2))
    return list(jax.lax.reduce((*pairs, position), start, first, (position.ndim - 1,))[:-1])


def seldom(wanted, function, x, *args):
    """function(x, *args) where `wanted`, else x: for rare and costly work in a step.

    Under vmap `lax.cond` computes both branches for every lane; here the function runs, for all lanes, only when some lane
    wants it. It must give back x for a lane that does not: which of the two happens is the other lanes' affair. Whatever
    differs between lanes is among x and args, not closed over.
    """

    @jax.custom_batching.custom_vmap
    def chosen(wanted, x, args):
        return jax.lax.cond(wanted, lambda: function(x, *args), lambda: x)

    @chosen.def_vmap
    def _(axis_size, batched, wanted, x, args):
        flags = batched[0], *batched[1:]
        wanted, x, args = jax.tree.map(
            lambda moves, leaf: leaf if moves else jnp.broadcast_to(leaf, (axis_size, *jnp.shape(leaf))),
            flags, (wanted, x, args),
        )  # fmt: skip
        many = seldom(jnp.any(wanted), jax.vmap(function), x, *args)
        return many, jax.tree.map(lambda _: True, many)

    return chosen(wanted, x, args)


def inverse_cdf(probabilities, u):
    """The lowest i with p_0 + ... + p_i > u, at most n - 1: probabilities [..., n], u [...] -> int32 [...]."""
    n = probabilities.shape[-1]
    if n > UNROLL:
        below = count(fixed_cumsum(probabilities) <= u[..., None])
        return jnp.minimum(below, n - 1)
    total = probabilities[..., 0]
    index = jnp.zeros(jnp.broadcast_shapes(total.shape, jnp.shape(u)), jnp.int32)
    for i in range(1, n):
        index = index + (total <= u).astype(jnp.int32)
        total = total + probabilities[..., i]
    return index


def fixed_cumsum(x):
    """Cumulative sum over the last axis in a fixed order (doubling strides)."""
    n, stride = x.shape[-1], 1
    while stride < n:
        shifted = jnp.concatenate([jnp.zeros_like(x[..., :stride]), x[..., :-stride]], axis=-1)
        x, stride = x + shifted, 2 * stride
    return x


def pick(x, index, axis: int = -1):
    """x[..., index] over one axis, the index a batch of integers: [..., n], [...] -> [...].

    axis: other than the last one, as under `lanes_last`, the choices among a few are unrolled.
    """
    if axis == -1 or x.shape[axis] > UNROLL:
        return jnp.squeeze(jnp.take_along_axis(x, jnp.expand_dims(index, axis), axis=axis), axis)
    chosen = jax.lax.index_in_dim(x, 0, axis, keepdims=False)
    for i in range(1, x.shape[axis]):
        chosen = jnp.where(index == i, jax.lax.index_in_dim(x, i, axis, keepdims=False), chosen)
    return chosen


def features(context) -> list:
    """The d arrays [P, N, A] of a context [P, N, A, d]."""
    return [context[..., j] for j in range(context.shape[-1])]


@lanes_last
def picked(x, action):
    """The played arm's entry of every array [P, N, A] of a list, action [P, N]: a list of [P, N]."""
    return settle_all([pick(a, action, axis=2) for a in x])


def played(context, action) -> list:
    """The d features [P, N] of the played arms: context [P, N, A, d], action [P, N]."""
    return picked(features(context), action)


def one_hot(index, n: int):
    """Boolean one-hot over a new last axis."""
    return index[..., None] == jnp.arange(n, dtype=jnp.int32)


def two_sum(high, low, x):
    """Add x to the compensated sum (high, low): Knuth's two-sum, then renormalised so that low stays below high's last bit."""
    total = high + x
    kept = total - high
    low = low + ((high - (total - kept)) + (x - kept))
    high = total + low
    return high, low - (high - total)


def safe_norm(x, axis: int = -1):
    """Euclidean norm that neither overflows (unless the norm itself does) nor divides by zero."""
    # powers of two first, exactly: beyond 8e37 the reciprocal that a compiler makes of a division is flushed to zero
    top = jnp.max(jnp.abs(x), axis=axis, keepdims=True)
    shrink = jnp.where(top > 1, 2.0**-64, 2.0**64).astype(x.dtype)
    top = jnp.maximum(top * shrink, jnp.finfo(x.dtype).tiny)
    scaled = x * shrink / top
    return jnp.squeeze(top / shrink, axis) * jnp.sqrt(fixed_sum(scaled * scaled, axis))


def rounded(x, t):
    """x [P, ...] unchanged, rounded to its type before anything is done with it: t [P] play indices.

    A compiler may contract mean + scale * normal into one fused multiply-add or not, by the length of the window; the
    top bit of t, always 0, hides the product from it, so that rewards are the same bits in windows of every size.
    """
    word = jnp.uint64 if x.dtype == jnp.float64 else jnp.uint32
    zero = (t.astype(jnp.uint32) >> np.uint32(31)).astype(word).reshape(t.shape + (1,) * (x.ndim - t.ndim))
    return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(x, word) ^ zero, x.dtype)


@lanes_last
def sweep_inverse(matrix):
    """Inverse of a symmetric positive definite [d, d] by Gauss-Jordan sweeps, and the smallest pivot (> 0: it was definite).

    A loop over d pivots: its compile time does not grow with d, as an unrolled factorisation's does (40 s at d = 10).
    """

    def sweep(k, carry):
        a, smallest = carry
        pivot, column = a[k, k], a[:, k]
        row = a[k] / pivot[None]
        a = (
            (a - column[:, None] * row[None, :])
            .at[k]
            .set(row)
            .at[:, k]
            .set(-column / pivot[None])
            .at[k, k]
            .set(1 / pivot)
        )
        return a, jnp.minimum(smallest, pivot)  # NaN stays NaN, hence not > 0

    start = jnp.full(matrix.shape[2:], jnp.inf, matrix.dtype)
    return jax.lax.fori_loop(0, matrix.shape[0], sweep, (matrix, start))


def inverse_cholesky(matrix):
    """L^-1 of a symmetric positive definite [d, d] matrix L L': lower triangular. A loop, as `sweep_inverse`."""
    d = matrix.shape[-1]
    below = jnp.arange(d, dtype=jnp.int32)

    def eliminate(k, carry):
        a, x = carry
        column = jnp.where(below > k, a[:, k] / a[k, k], 0)
        a, x = a - column[:, None] * a[k][None, :], x - column[:, None] * x[k][None, :]
        return a, x.at[k].set(x[k] / jnp.sqrt(a[k, k]))

    return jax.lax.fori_loop(0, d, eliminate, (matrix, jnp.eye(d, dtype=matrix.dtype)))[1]
