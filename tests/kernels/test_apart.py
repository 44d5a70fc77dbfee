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
    """The function of every lane of NumPy's arrays [LANES, ...], to be compiled: it takes the arrays."""
    lane = [x[0] for x in arrays]
    traced, shapes = jax.make_jaxpr(function)(*lane), jax.eval_shape(function, *lane)

    def on_block(*arrays):
        operands = [filled(x.shape[1:], lambda index, x=x: x[(slice(None), *index)]) for x in arrays]
        found = [
            jnp.stack([jnp.broadcast_to(jnp.asarray(e), (LANES,)) for e in x.reshape(-1)], -1).reshape(LANES, *x.shape)
            for x in Apart(LANES).closed(traced, operands)
        ]
        return jax.tree.unflatten(jax.tree.structure(shapes), found)

    return on_block


def both(*cases):
    """What both forms give of every (function, arrays...), in one program."""
    blocks = [(apart(*case), jax.vmap(case[0])) for case in cases]
    program = jax.jit(lambda given: [(ours(*x), wanted(*x)) for (ours, wanted), x in zip(blocks, given, strict=True)])
    return program([arrays for _, *arrays in cases])


def same(*cases):
    """Both forms of every (function, arrays...) agree in every bit."""
    for number, (ours, wanted) in enumerate(both(*cases)):
        jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y, err_msg=f"case {number}"), ours, wanted)  # noqa: B023


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=(LANES, *shape)).astype(np.float32)


def positions(*shape, low=-2, high=7, seed=1):
    return np.random.default_rng(seed).integers(low, high, size=(LANES, *shape)).astype(np.int32)


OPERATIONS = [
    lambda x: x.reshape(2, 6).T[::-1, 1:],
    lambda x: jnp.concatenate([x, jnp.pad(x, ((1, 0), (0, 2)), constant_values=3.0)[:3, :4]]),
    lambda x: jnp.stack([x, -x], axis=1).sum((0, 2)),
    lambda x: jnp.arange(4.0)[None] + x,
    lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)),
    lambda x: jnp.split(x, [1, 3], axis=1),
    lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0, reverse=True), jnp.cumprod(x, 1)),
    lambda x: (x.max(), x.min(0), jnp.argmax(x, 1), jnp.argmin(x), (x > 0).any(1), (x > 0).all(0)),
    lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)),
    lambda x: (jnp.argmax(jnp.round(x), 1), jnp.argmin(jnp.round(x), 1), jnp.argmin(jnp.round(x))),  # with ties
    lambda x: (jnp.round(4 * x), jnp.rint(2 * x) / 2, jnp.floor(x), jnp.sign(x)),
    lambda x: jnp.where(x > 0, jnp.log(jnp.abs(x)), jnp.exp(x)),
]  # fmt: skip


def test_operations():
    same(*((function, numbers(3, 4)) for function in OPERATIONS))


def test_products_of_matrices():
    def products(x):
        return x @ x.T, jnp.einsum("ij,ij->i", x, x), jnp.einsum("ij,kj->ik", x, x[:2])

    [found] = both((products, numbers(3, 4)))
    for ours, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6, atol=1e-6)


def test_reading_at_a_position():
    cases = []
    for mode, high in (("clip", 9), ("fill", 9), ("promise_in_bounds", 5)):
        one, two = positions(low=0, high=high), positions(2, low=0, high=high)
        cases += [
            (lambda x, i, mode=mode: x.at[i].get(mode=mode), numbers(5), one),
            (lambda x, i, mode=mode: x.at[i[0], i[1]].get(mode=mode), numbers(5, 5), two),
            (lambda x, i, mode=mode: x.at[i].get(mode=mode), numbers(5, 2), positions(3, low=0, high=high)),
        ]
    same(*cases)


def test_writing_at_a_position():
    one, four, value = positions(low=0, high=9), positions(4, low=0, high=9), numbers(seed=3)
    cases = []
    for mode in ("clip", "drop"):
        cases += [
            (lambda x, i, v, mode=mode: x.at[i].set(v, mode=mode), numbers(5), one, value),
            (lambda x, i, v, mode=mode: x.at[i].add(v, mode=mode), numbers(5, 3), one, numbers(3, seed=3)),
            (lambda x, i, v, mode=mode: x.at[i].max(v, mode=mode), numbers(5), four, numbers(4, seed=3)),
            (lambda x, i, v, mode=mode: x.at[i].add(v, mode=mode), numbers(5), four, numbers(4, seed=3)),
            (lambda x, i, v, mode=mode: x.at[i[0], i[1]].set(v, mode=mode), numbers(5, 4),
             positions(2, low=0, high=9), value),
        ]  # fmt: skip
    same(*cases)


def test_slices_at_a_position():
    same(
        (lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), numbers(5, 4), positions()),
        (lambda x, i, v: lax.dynamic_update_slice(x, v, (i, 1)), numbers(5, 4), positions(), numbers(2, 3, seed=4)),
    )


def test_nan_goes_where_jax_sends_it():
    x = numbers(4)
    x[0, 1], x[1, :2], x[2, 3], x[3] = NAN, [NAN, INF], NAN, NAN
    y = numbers(4, seed=2)
    y[4, 0], y[5] = NAN, -INF
    same(
        (lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jnp.maximum(x, 0.5), jnp.minimum(0.5, y)), x, y),
        (lambda x, y: (x.max(), x.min(), jnp.argmax(x), jnp.argmin(x), jnp.sort(x)), x, y),
        (lambda x, y: (jnp.clip(x, -0.5, 0.5), jnp.nan_to_num(y), jnp.isfinite(x)), x, y),
    )


def halved(x, n):
    return lax.while_loop(lambda s: (s[0] > 0.1) & (s[1] < n), lambda s: (s[0] / 2, s[1] + 1), (jnp.abs(x), 0))


def counted(x):
    return lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] + x), (0, jnp.float32(0)))[1]


def test_each_lane_leaves_a_loop_by_itself():
    """And the rows of a lane by themselves."""
    same(
        (halved, numbers(), positions(low=0, high=6)),
        (lambda x: lax.fori_loop(0, 20, lambda i, s: s * 0.5 + i, x), numbers(3)),
        (counted, numbers()),
        (lambda x, n: jax.vmap(halved)(x, n), numbers(3), positions(3, low=0, high=6)),
    )


def test_a_scan_with_inputs_and_outputs():
    same((lambda x: lax.scan(lambda s, row: (s + row.sum(), s * row), jnp.float32(1), x, reverse=True), numbers(3, 2)))


def test_branches():
    same(
        (
            lambda x, i: lax.switch(i, [lambda: x, lambda: 2 * x, lambda: x - x.sum()]),
            numbers(3),
            positions(low=0, high=3),
        ),
        (lambda x: lax.cond(x > 0, jnp.sqrt, jnp.abs, x), numbers()),
    )


def test_a_branch_that_lanes_share_is_a_branch():
    traced = jax.make_jaxpr(lambda x, i: lax.cond(i > 3, lambda: jnp.sin(x), lambda: x * 0))(1.0, 0)

    def on_block(x, i):
        return Apart(LANES).closed(traced, [filled((), lambda _: x), filled((), lambda _: i)])[0][()]

    x, run = numbers(), jax.jit(on_block)
    np.testing.assert_array_equal(run(x, np.int32(4)), jax.jit(jnp.sin)(x))
    np.testing.assert_array_equal(run(x, np.int32(3)), 0 * x)
    assert "cond" in str(jax.make_jaxpr(on_block)(x, np.int32(0)))


def test_what_is_known_while_tracing_costs_nothing():
    traced = jax.make_jaxpr(lambda x: x[jnp.arange(4)[2]] * jnp.float32(3).astype(jnp.int32))(np.ones(4, np.int32))

    def on_block(x):
        return Apart(LANES).closed(traced, [filled((4,), lambda index: x[index])])[0][()]

    made = jax.make_jaxpr(on_block)(np.ones((4, LANES), np.int32))
    assert [eqn.primitive.name for eqn in made.jaxpr.eqns if eqn.primitive.name in ("mul", "select_n", "gather")] == [
        "mul"
    ]


def test_what_is_not_written_out_is_named():
    traced = jax.make_jaxpr(jnp.linalg.eigh)(np.eye(3, dtype=np.float32))
    with pytest.raises(Unsupported, match="eigh"):
        Apart(LANES).closed(traced, [filled((3, 3), lambda _: np.ones(LANES, np.float32))])
