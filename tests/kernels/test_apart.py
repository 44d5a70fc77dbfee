"""One-lane functions with every element held apart give what they give under vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbandits.kernels.apart import Apart, Unsupported
from jaxbandits.kernels.elements import filled

LANES = 8
NAN, INF = np.nan, np.inf


def apart(function, *arrays):
    """The function on every lane: arrays [LANES, ...]."""
    traced = jax.make_jaxpr(function)(*(x[0] for x in arrays))
    shapes = jax.eval_shape(function, *(x[0] for x in arrays))

    def on_block(*arrays):
        operands = [filled(x.shape[1:], lambda index, x=x: x[(slice(None), *index)]) for x in arrays]
        found = Apart(LANES).closed(traced, operands)
        return [
            jnp.stack([jnp.broadcast_to(jnp.asarray(e), (LANES,)) for e in x.reshape(-1)], -1).reshape(LANES, *x.shape)
            for x in found
        ]

    return jax.tree.unflatten(jax.tree.structure(shapes), jax.jit(on_block)(*map(jnp.asarray, arrays)))


def same(function, *arrays):
    """Both forms agree in every bit."""
    wanted = jax.jit(jax.vmap(function))(*map(jnp.asarray, arrays))
    jax.tree.map(np.testing.assert_array_equal, apart(function, *arrays), wanted)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=(LANES, *shape)).astype(np.float32)


def positions(*shape, low=-2, high=7, seed=1):
    return np.random.default_rng(seed).integers(low, high, size=(LANES, *shape)).astype(np.int32)


@pytest.mark.parametrize("function", [
    lambda x: x.reshape(2, 6).T[::-1, 1:],
    lambda x: jnp.concatenate([x, jnp.pad(x, ((1, 0), (0, 2)), constant_values=3.0)[:3, :4]]),
    lambda x: jnp.stack([x, -x], axis=1).sum((0, 2)),
    lambda x: jnp.arange(4.0)[None] + x,
    lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)),
    lambda x: jnp.split(x, [1, 3], axis=1),
    lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0, reverse=True), jnp.cumprod(x, 1)),
    lambda x: (x.max(), x.min(0), jnp.argmax(x, 1), jnp.argmin(x), (x > 0).any(1), (x > 0).all(0)),
    lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)),
    lambda x: (jnp.round(4 * x), jnp.rint(2 * x) / 2, jnp.floor(x), jnp.sign(x)),
    lambda x: jnp.where(x > 0, jnp.log(jnp.abs(x)), jnp.exp(x)),
])  # fmt: skip
def test_operations(function):
    same(function, numbers(3, 4))


def test_products_of_matrices():
    def products(x):
        return x @ x.T, jnp.einsum("ij,ij->i", x, x), jnp.einsum("ij,kj->ik", x, x[:2])

    for ours, wanted in zip(apart(products, numbers(3, 4)), jax.vmap(products)(numbers(3, 4)), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_reading_at_a_position(mode):
    low, high = (0, 5) if mode == "promise_in_bounds" else (0, 9)
    same(lambda x, i: x.at[i].get(mode=mode), numbers(5), positions(low=low, high=high))
    same(lambda x, i: x.at[i[0], i[1]].get(mode=mode), numbers(5, 5), positions(2, low=low, high=high))
    same(lambda x, i: x.at[i].get(mode=mode), numbers(5, 2), positions(3, low=low, high=high))


@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_writing_at_a_position(mode):
    same(lambda x, i, v: x.at[i].set(v, mode=mode), numbers(5), positions(low=0, high=9), numbers(seed=3))
    same(lambda x, i, v: x.at[i].add(v, mode=mode), numbers(5, 3), positions(low=0, high=9), numbers(3, seed=3))
    same(lambda x, i, v: x.at[i].max(v, mode=mode), numbers(5), positions(4, low=0, high=9), numbers(4, seed=3))
    same(lambda x, i, v: x.at[i].add(v, mode=mode), numbers(5), positions(4, low=0, high=9), numbers(4, seed=3))
    same(
        lambda x, i, v: x.at[i[0], i[1]].set(v, mode=mode), numbers(5, 4), positions(2, low=0, high=9), numbers(seed=3)
    )


def test_slices_at_a_position():
    same(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), numbers(5, 4), positions())
    same(lambda x, i, v: lax.dynamic_update_slice(x, v, (i, 1)), numbers(5, 4), positions(), numbers(2, 3, seed=4))


def test_nan_goes_where_jax_sends_it():
    x = numbers(4)
    x[0, 1], x[1, :2], x[2, 3], x[3] = NAN, [NAN, INF], NAN, NAN
    y = numbers(4, seed=2)
    y[4, 0], y[5] = NAN, -INF
    same(lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jnp.maximum(x, 0.5), jnp.minimum(0.5, y)), x, y)
    same(lambda x, y: (x.max(), x.min(), jnp.argmax(x), jnp.argmin(x), jnp.sort(x)), x, y)
    same(lambda x, y: (jnp.clip(x, -0.5, 0.5), jnp.nan_to_num(y), jnp.isfinite(x)), x, y)


def test_each_lane_leaves_a_loop_by_itself():
    def halved(x, n):
        return lax.while_loop(lambda s: (s[0] > 0.1) & (s[1] < n), lambda s: (s[0] / 2, s[1] + 1), (jnp.abs(x), 0))

    same(halved, numbers(), positions(low=0, high=6))
    same(lambda x: lax.fori_loop(0, 20, lambda i, s: s * 0.5 + i, x), numbers(3))
    same(
        lambda x: lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] + x), (0, jnp.float32(0)))[1], numbers()
    )


def test_rows_of_a_lane_leave_a_loop_by_themselves():
    def halved(x, n):
        return lax.while_loop(lambda s: (s[0] > 0.1) & (s[1] < n), lambda s: (s[0] / 2, s[1] + 1), (jnp.abs(x), 0))

    same(lambda x, n: jax.vmap(halved)(x, n), numbers(3), positions(3, low=0, high=6))


def test_a_scan_with_inputs_and_outputs():
    same(lambda x: lax.scan(lambda s, row: (s + row.sum(), s * row), jnp.float32(1), x, reverse=True), numbers(3, 2))


def test_branches():
    same(
        lambda x, i: lax.switch(i, [lambda: x, lambda: 2 * x, lambda: x - x.sum()]),
        numbers(3),
        positions(low=0, high=3),
    )
    same(lambda x: lax.cond(x > 0, jnp.sqrt, jnp.abs, x), numbers())


def test_a_branch_that_lanes_share_is_a_branch():
    traced = jax.make_jaxpr(lambda x, i: lax.cond(i > 3, lambda: jnp.sin(x), lambda: x * 0))(1.0, 0)

    def on_block(x, i):
        return Apart(LANES).closed(traced, [filled((), lambda _: x), filled((), lambda _: i)])[0][()]

    x = jnp.asarray(numbers())
    np.testing.assert_array_equal(on_block(x, jnp.int32(4)), jnp.sin(x))
    np.testing.assert_array_equal(on_block(x, jnp.int32(3)), 0 * x)
    assert "cond" in str(jax.make_jaxpr(on_block)(x, jnp.int32(0)))


def test_what_is_known_while_tracing_costs_nothing():
    traced = jax.make_jaxpr(lambda x: x[jnp.arange(4)[2]] * jnp.float32(3).astype(jnp.int32))(np.ones(4, np.int32))

    def on_block(x):
        return Apart(LANES).closed(traced, [filled((4,), lambda index: x[index])])[0][()]

    made = jax.make_jaxpr(on_block)(jnp.ones((4, LANES), jnp.int32))
    assert [eqn.primitive.name for eqn in made.jaxpr.eqns if eqn.primitive.name in ("mul", "select_n", "gather")] == [
        "mul"
    ]


def test_what_is_not_written_out_is_named():
    traced = jax.make_jaxpr(jnp.linalg.eigh)(np.eye(3, dtype=np.float32))
    with pytest.raises(Unsupported, match="eigh"):
        Apart(LANES).closed(traced, [filled((3, 3), lambda _: jnp.ones(LANES))])
