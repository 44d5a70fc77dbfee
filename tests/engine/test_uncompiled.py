"""Functions evaluated in NumPy, operation by operation, give what their compiled forms give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from numpy.testing import assert_allclose, assert_array_equal
from uncompiled import uncompiled

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5)).astype(np.float32)
Y = np.array([[1.5, -0.0, 0.0, NAN, INF], [-INF, 3e38, 1e-37, -2.5, 0.5], [2.5, 7.0, -7.0, 1e10, -1e10]], np.float32)
AT = np.array([[4, -1, 7], [0, -6, 2]], np.int32)  # some lie outside of five places, on both sides
INTS = np.array([7, -7, 0, 2**31 - 1, -(2**31)], np.int32)


def elementwise(x, y):
    return (
        x + y, x - y, x * y, x / y, lax.rem(y, x), -y, jnp.sign(y), abs(y), jnp.maximum(x, y), jnp.minimum(y, 0.5),
        jnp.floor(y), jnp.ceil(y), jnp.round(y), lax.round(y, lax.RoundingMethod.AWAY_FROM_ZERO), jnp.isfinite(y),
        jnp.clip(y, -1.0, 1.0), jnp.where(x > 0, x, y), y == y, y < x, x**3, x**-2, lax.integer_pow(x, 5),
        jnp.nextafter(x, y), lax.nextafter(y, jnp.zeros_like(y)), jnp.isnan(y) | (x > 0), ~(x > 0),
    )  # fmt: skip


def transcendental(x, y):
    small, positive = jnp.tanh(x), jnp.abs(x)
    return (
        jnp.exp(x), jnp.log(positive), jnp.log1p(positive), jnp.expm1(x), jnp.sqrt(positive), lax.rsqrt(positive),
        jnp.sin(x), jnp.cos(x), small, positive**1.7, jnp.arctan2(x, small), lax.erf(x), lax.erf_inv(small),
        lax.lgamma(positive), lax.digamma(positive), jax.nn.sigmoid(x), jnp.logaddexp(x, small), jnp.log(y), jnp.exp(y),
        jax.scipy.special.gammainc(positive, positive + 1), jax.scipy.special.ndtr(x),
    )  # fmt: skip


def integers(i):
    j, u = jnp.array([3, -3, 5, 2, 7], jnp.int32), lax.bitcast_convert_type(i, jnp.uint32)
    by = jnp.array([0, 1, 31, 32, 40], jnp.uint32)  # a shift beyond the width leaves nothing
    return (
        i + j, i * j, i // j, i % j, lax.div(i, j), lax.rem(i, j), i ^ j, i & j, i | j, ~i, abs(j), jnp.sign(i),
        u << by, lax.shift_right_logical(u, by), lax.shift_right_arithmetic(i, jnp.array([0, 1, 31, 2, 4], jnp.int32)),
        lax.population_count(u), i.astype(jnp.int8), i.astype(jnp.float32), u.astype(jnp.float32), u + jnp.uint32(9),
    )  # fmt: skip


def conversions(y):
    """NaN becomes 0, and what is too large the largest integer."""
    return y.astype(jnp.int32), y.astype(jnp.uint32), y.astype(jnp.int8), y.astype(jnp.uint8), y.astype(bool)


def layouts(x):
    row = jnp.arange(5, dtype=x.dtype)
    return (
        x.T, x[::-1, 1:4:2], x.reshape(5, 3), jnp.concatenate([x, 2 * x], 1), jnp.stack([x, -x], 1),
        jnp.split(x, [2], 1), jnp.unstack(x), jnp.tile(x, (2, 1)), jnp.pad(x, ((1, 0), (0, 2)), constant_values=3.0),
        lax.pad(x, x[0, 0], ((0, 1, 2), (1, 0, 0))),
        jnp.broadcast_to(row, (2, 5)), row[None] * x, x[:, None, :] - x[None], jnp.tile(row, 2), jnp.repeat(row, 3),
        lax.expand_dims(x, (0, 2)), jnp.squeeze(x[:1]), lax.iota(jnp.int32, 4), lax.rev(x, (0, 1)), jnp.roll(x, 2, 1),
    )  # fmt: skip


def reductions(x, y):
    return (
        x.sum(), x.sum(0), x.prod(1), x.max(0), x.min((0, 1)), y.max(1), y.min(0), jnp.argmax(x, 1), jnp.argmin(x, 0),
        jnp.argmax(y, 1), (x > 0).any(1), (x > 0).all(0), jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1),
        lax.cummin(x, 1, reverse=True), lax.cumsum(x, 1, reverse=True), lax.cumlogsumexp(x, 1), x.mean(1), x.var(),
    )  # fmt: skip


def products(x):
    cube = jnp.stack([x, -x], 2)
    return x @ x.T, x @ x[0], jnp.einsum("ij,ij->i", x, x), jnp.einsum("ijk,lj->kil", cube, x), jnp.dot(x[0], x[1])


def sorts(x, y):
    ties = jnp.round(x)
    return (
        jnp.sort(x, 0), jnp.argsort(x, 1), jnp.argsort(ties, 1), jnp.sort(y, 1), lax.top_k(x, 3), lax.top_k(ties, 2),
        lax.sort((ties, x), dimension=1, num_keys=1), lax.sort((ties, x, 2 * x), dimension=1, num_keys=2),
        jnp.argsort(-x, 1, stable=True), jnp.median(x, 1), jnp.quantile(x[0], 0.3),
    )  # fmt: skip


def gathers(x, at):
    row, which = x[0], jnp.clip(at[:, :2], 0, 2)
    modes = [row.at[at].get(mode=mode) for mode in ("clip", "fill")]
    return (
        *modes, row.at[at].get(mode="fill", fill_value=-1.0), row.at[at].get(mode="fill", indices_are_sorted=False),
        x[at[0, 0]], x[:, at[0]], x[which[:, 0], at[:, 0]], x[which], x[which, at[:, :2]], x[:, 1:3][:, at[1, 0]],
        jnp.take_along_axis(x, at[:1, :1] * jnp.ones((3, 1), jnp.int32), 1), jnp.take(x, at, axis=1, mode="clip"),
        jax.vmap(lambda r, i: r[i])(x[:2], at), jax.vmap(lambda r, i: r.at[i].get(mode="clip"))(x[:2], at),
        jnp.arange(5, dtype=jnp.int32).at[at].get(mode="fill"), (x > 0)[which[:, 0]],
        lax.dynamic_slice(x, (at[0, 0], at[0, 1]), (2, 3)), lax.dynamic_index_in_dim(x, at[1, 1], 1),
        jax.vmap(lambda r, i: lax.dynamic_slice(r, (i,), (2,)))(x[:2], at[:, 0]),
    )  # fmt: skip


def scatters(x, at):
    row, values = x[0], x[:2, :3]
    return (
        row.at[at].set(7.0), row.at[at].add(values), row.at[at].mul(values), row.at[at].max(values),
        row.at[at].min(values), row.at[at].set(7.0, mode="clip"), row.at[at].add(values, mode="drop"),
        x.at[:, at[0]].add(1.0),
        x.at[at[1, 2], 1:3].set(values[0, :2]), x.at[1].set(0.0), x.at[1:, 2].add(row[:2]), x.at[:, 1].set(row[:3]),
        x.at[jnp.arange(2), at[:, 0]].add(values[:, 0]), jnp.zeros(5, jnp.int32).at[at].add(1),
        jax.vmap(lambda r, i, v: r.at[i].add(v))(x[:2], at, values),
        jax.vmap(lambda r, i: r.at[i].set(9.0))(x[:2], at[:, 0]),
        lax.dynamic_update_slice(x, values, (at[0, 0], at[0, 2])),
        jax.vmap(lambda r, i: lax.dynamic_update_slice(r, r[:2], (i,)))(x[:2], at[:, 1]),
    )  # fmt: skip


def halved(x, n):
    return lax.while_loop(lambda s: (abs(s[0]) > 0.1) & (s[1] < n), lambda s: (s[0] / 2, s[1] + 1), (x, 0))


def loops(x, n):
    """With conditions of one lane, of every lane, and of lanes that never begin."""
    return (
        halved(x[0, 0], n[0]), jax.vmap(halved)(x[0], n), jax.vmap(jax.vmap(halved, (0, None)))(x.T, n),
        jax.vmap(halved)(x[1], jnp.zeros(5, jnp.int32)), lax.fori_loop(0, 4, lambda i, s: s * 0.5 + i, x),
        lax.fori_loop(0, n[1], lambda i, s: s + x[i % 3], x[0]),
    )  # fmt: skip


def scans(x):
    def step(carry, row):
        return (carry[0] + row.sum(), carry[1] + 1), (row * carry[0], carry[1])

    start = x[0, 0], jnp.int32(0)
    return (
        lax.scan(step, start, x), lax.scan(step, start, x, reverse=True), lax.scan(step, start, x[:0]),
        lax.scan(lambda c, _: (c * 0.5, None), x, length=3),
        jax.vmap(lambda r: lax.scan(step, start, r))(x[:, :, None]),
        lax.map(lambda row: row[::-1], x), lax.associative_scan(jnp.add, x, axis=1),
    )  # fmt: skip


def branches(x, n):
    def chosen(x, i):
        return lax.switch(i, [lambda x: x, lambda x: 2 * x, lambda x: x - x.sum()], x)

    return (
        chosen(x, n[0]), chosen(x, jnp.int32(-3)), chosen(x, jnp.int32(9)), lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
        jax.vmap(chosen)(x.T, n), jax.vmap(lambda x: lax.cond(x > 0, jnp.sqrt, jnp.abs, x))(x[0]),
    )  # fmt: skip


def linear_algebra(x):
    matrix = x @ x.T + 2 * jnp.eye(3, dtype=x.dtype)
    return jnp.linalg.eigvalsh(matrix), jnp.linalg.cholesky(matrix)


def calls(x):
    """Programs inside of programs."""

    @jax.custom_jvp
    def doubled(x):
        return 2 * x

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))
    inner = jax.jit(lambda x, y: (x + y, x - y))
    return (
        inner(x, x[0][None]), doubled(x), jax.checkpoint(jnp.sin)(x), lax.stop_gradient(x),
        jax.grad(lambda x: (x**2).sum())(x), lax.optimization_barrier(x), lax.reduce_precision(x, 8, 23),
    )  # fmt: skip


N = np.array([3, 0, 1, 2, 2], np.int32)
FAMILIES = {
    elementwise: (X, Y), transcendental: (X, Y), integers: (INTS,), conversions: (Y,), layouts: (X,),
    reductions: (X, Y), products: (X,), sorts: (X, Y), gathers: (X, AT), scatters: (X, AT), loops: (X, N), scans: (X,),
    branches: (X, N), linear_algebra: (X,), calls: (X,),
}  # fmt: skip
# exactly the same numbers; sums, products and functions of others are rounded in another way
EXACT = {integers, conversions, layouts, sorts, gathers}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_evaluated_is_compiled(dtype):
    arguments = [[x.astype(dtype) if x.dtype.kind == "f" else x for x in arguments] for arguments in FAMILIES.values()]
    with jax.enable_x64(dtype == "float64"):
        compiled = jax.jit(lambda given: [f(*x) for f, x in zip(FAMILIES, given, strict=True)])(arguments)
        evaluated = [uncompiled(f)(*x) for f, x in zip(FAMILIES, arguments, strict=True)]
    for family, wanted, found in zip(FAMILIES, compiled, evaluated, strict=True):
        assert jax.tree.structure(found) == jax.tree.structure(wanted)
        for i, (x, y) in enumerate(zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)):
            where = f"{family.__name__}, result {i}"
            assert x.dtype == y.dtype and x.shape == y.shape, where
            if family in EXACT or y.dtype.kind != "f":
                assert_array_equal(x, y, err_msg=where)
            else:
                assert_allclose(x, y, rtol=64 * np.finfo(dtype).eps, atol=64 * np.finfo(dtype).eps, err_msg=where)


def test_a_function_is_traced_once_for_arguments_of_a_kind():
    traces = []

    @uncompiled
    def shifted(x):
        traces.append(x.shape)
        return x + 1

    assert_array_equal(shifted(X), X + 1)
    assert_array_equal(shifted(2 * X), 2 * X + 1)
    assert isinstance(shifted(X[0]), np.ndarray) and traces == [X.shape, X[0].shape]
