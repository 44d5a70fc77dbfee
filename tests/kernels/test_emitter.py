"""One-lane functions written as C give what they give under vmap: held apart, and as loops over memory."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from laid_out import kernel_of, needs_cc

from jaxbandits.kernels import schedule
from jaxbandits.kernels.arrays import LARGEST
from jaxbandits.kernels.over_lanes import by_kernel
from jaxbandits.kernels.text import Unsupported

pytestmark = needs_cc
LANES = 8
NAN, INF = np.nan, np.inf
FORMS = {"apart": LARGEST, "loops": 1}  # elements of the largest array that is held apart


def both(largest, *cases):
    """What every (function, arrays [LANES, ...]) gives, as one kernel and under vmap."""
    given = [x for _, *arrays in cases for x in arrays]

    def every(*arrays):
        left = iter(arrays)
        return [function(*(next(left) for _ in own)) for function, *own in cases]

    one = kernel_of(every, *(x[0] for x in given), largest=largest)
    last = [np.moveaxis(x, 0, -1) for x in given]
    ours = jax.jit(lambda *arrays: by_kernel(one, arrays, "cc"))(*last)
    wanted = jax.jit(jax.vmap(every))(*given)
    ours = jax.tree.unflatten(jax.tree.structure(wanted), [np.moveaxis(np.asarray(x), -1, 0) for x in ours])
    return list(zip(ours, wanted, strict=True))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=(LANES, *shape)).astype(np.float32)


def positions(*shape, low=-2, high=7, seed=1):
    return np.random.default_rng(seed).integers(low, high, size=(LANES, *shape)).astype(np.int32)


OPERATIONS = [
    lambda x: x.reshape(2, 6).T[::-1, 1:],
    lambda x: jnp.concatenate([x, jnp.pad(x, ((1, 0), (0, 2)), constant_values=3.0)[:3, :4]]),
    lambda x: lax.pad(x, jnp.float32(2), ((-1, 2, 1), (1, -1, 0))),
    lambda x: jnp.stack([x, -x], axis=1).sum((0, 2)),
    lambda x: jnp.arange(4.0)[None] + x,
    lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)),
    lambda x: jnp.split(x, [1, 3], axis=1),
    lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0, reverse=True), jnp.cumprod(x, 1)),
    lambda x: (x.max(), x.min(0), jnp.argmax(x, 1), jnp.argmin(x), (x > 0).any(1), (x > 0).all(0)),
    lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)),
    lambda x: (jnp.argmax(jnp.round(x), 1), jnp.argmin(jnp.round(x), 1), jnp.argmin(jnp.round(x))),  # with ties
    lambda x: (jnp.round(4 * x), jnp.rint(2 * x) / 2, jnp.floor(x), jnp.sign(x), x**3, x**-2),
    lambda x: jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), x * x),
    lambda x: ((x * 300).astype(jnp.int32), (x * 3e9).astype(jnp.uint32), (x * 99).astype(jnp.int8), x > 0.5),
]  # fmt: skip
INTEGERS = [
    lambda i, j: (i + j, i - j, i * j, -i, jnp.abs(i), jnp.sign(i), i & j, i | j, i ^ j, ~i, jnp.maximum(i, j)),
    lambda i, j: (lax.div(i, j), lax.rem(i, j), lax.clz(i), lax.population_count(i), i * (i + j)),
    lambda i, j: [shift(i, j) for shift in (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)],
    lambda i, j: (lax.bitcast_convert_type(i, jnp.float32), i.astype(jnp.uint8), j.astype(jnp.float32) / 4),
]  # fmt: skip


def extremes(dtype):
    """Integers of which some are the smallest, and others to divide and shift them by: 0, -1, and many bits."""
    i = np.random.default_rng(0).integers(-(2**31), 2**31, size=(LANES, 3)).astype(dtype)
    j = np.random.default_rng(1).integers(-3, 40, size=(LANES, 3)).astype(dtype)
    i[0], j[1] = np.iinfo(dtype).min, np.array([0, -1, 31]).astype(dtype)
    j[0] = np.array([-1, 0, 32]).astype(dtype)
    return i, j


def reading(mode, high):
    one, two = positions(low=0, high=high), positions(2, low=0, high=high)
    return [
        (lambda x, i: x.at[i].get(mode=mode), numbers(5), one),
        (lambda x, i: x.at[i[0], i[1]].get(mode=mode), numbers(5, 5), two),
        (lambda x, i: x.at[i].get(mode=mode), numbers(5, 2), positions(3, low=0, high=high)),
    ]


def writing(mode):
    one, two, four = (positions(*shape, low=0, high=9) for shape in ((), (2,), (4,)))
    return [
        (lambda x, i, v: x.at[i].set(v, mode=mode), numbers(5), one, numbers(seed=3)),
        (lambda x, i, v: x.at[i].add(v, mode=mode), numbers(5, 3), one, numbers(3, seed=3)),
        (lambda x, i, v: x.at[i].max(v, mode=mode), numbers(5), four, numbers(4, seed=3)),
        (lambda x, i, v: x.at[i].add(v, mode=mode), numbers(5), four, numbers(4, seed=3)),
        (lambda x, i, v: x.at[i[0], i[1]].set(v, mode=mode), numbers(5, 4), two, numbers(seed=3)),
    ]


def read_late(x, i):
    """Arrays that are written over while others are still to be computed from what they held."""
    x = jnp.cumsum(x)
    backwards, twice = x[::-1], x * 2
    y = lax.fori_loop(0, 3, lambda k, y: y.at[k].add(backwards[0]).at[i].set(y[k]), x)
    return y.at[i].set(9) - backwards, twice.at[i].set(7), y.at[0].add(twice[1])


def one_after_another(x, y, i):
    """Loops over the same indices that read what others made: at the same place, at another, and before it is set."""
    a = x * y
    b = a - y
    first = jnp.pad(a, (0, 2))
    after = jnp.pad(jnp.where(first[:5] > first.max() / 2, b, a), (0, 2))
    rows = jnp.stack([a, b, a + b], 1)
    turned = rows.T * y[None]
    marked = after.at[i].set(a[i])
    products = jnp.cumsum(b)[::-1] * a, rows[i], turned, (rows * rows[::-1]).sum(1)
    return first.max(), after * marked, *products, a[1:] - a[:-1]


def until(x):
    """Loops before and after the place where a loop ends."""

    def body(state):
        y = state[0] * 0.5
        return y, state[1] + y * state[0]

    return lax.while_loop(lambda s: (s[0] * s[0]).max() > 0.1, body, (x, x - x))


X, Y = numbers(4), numbers(4, seed=2)
X[0, 1], X[1, :2], X[2, 3], X[3] = NAN, [NAN, INF], NAN, NAN
Y[4, 0], Y[5] = NAN, -INF


def halved(x, n):
    return lax.while_loop(lambda s: (s[0] > 0.1) & (s[1] < n), lambda s: (s[0] / 2, s[1] + 1), (jnp.abs(x), 0))


def counted(x):
    return lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] + x), (0, jnp.float32(0)))[1]


def sorted_by_hand(x):
    """Arrays that a loop writes over, and reads before and after."""

    def turn(k, carry):
        x, total = carry
        i = jnp.argmin(jnp.where(jnp.arange(5) < k, INF, x))
        return x.at[i].set(x[k]).at[k].set(x[i]), total + x[k]

    return lax.fori_loop(0, 5, turn, (x, x.sum()))


CASES = {
    "operations": [(function, numbers(3, 4)) for function in OPERATIONS],
    "integers that wrap": [(function, *extremes(dtype)) for dtype in (np.int32, np.uint32) for function in INTEGERS],
    "read at a position": [*reading("clip", 9), *reading("fill", 9), *reading("promise_in_bounds", 5)],
    "written at a position": [*writing("clip"), *writing("drop")],
    "not written over while it is read": [(read_late, numbers(5), positions(low=0, high=5))],
    "loops one after another": [
        (one_after_another, numbers(5), numbers(5, seed=2), positions(low=0, high=5)), (until, numbers(5)),
    ],
    "slices at a position": [
        (lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), numbers(5, 4), positions()),
        (lambda x, i, v: lax.dynamic_update_slice(x, v, (i, 1)), numbers(5, 4), positions(), numbers(2, 3, seed=4)),
    ],
    "not a number": [
        (lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jnp.maximum(x, 0.5), jnp.minimum(0.5, y)), X, Y),
        (lambda x, y: (x.max(), x.min(), jnp.argmax(x), jnp.argmin(x), jnp.sort(x)), X, Y),
        (lambda x, y: (jnp.clip(x, -0.5, 0.5), jnp.nan_to_num(y), jnp.isfinite(x), x.astype(jnp.int32)), X, Y),
    ],
    "loops that each lane leaves by itself, and the rows of a lane by themselves": [
        (halved, numbers(), positions(low=0, high=6)),
        (lambda x: lax.fori_loop(0, 20, lambda i, s: s * 0.5 + i, x), numbers(3)),
        (counted, numbers()),
        (lambda x, n: jax.vmap(halved)(x, n), numbers(3), positions(3, low=0, high=6)),
        (sorted_by_hand, numbers(5)),
        (lambda x: lax.while_loop(lambda s: s[0][0] < 4, lambda s: (s[1], s[0] + 1), (0 * x, 0 * x + 2)), numbers(3)),
    ],
    "scans with inputs and outputs": [
        (lambda x: lax.scan(lambda s, y: (s + y.sum(), s * y), jnp.float32(1), x, reverse=True), numbers(3, 2)),
        (lambda x: lax.scan(lambda s, y: (s * y, (s, y[0])), x[0], x), numbers(3, 2)),
    ],
    "branches": [
        (lambda x, i: lax.switch(i, [lambda: x, lambda: 2 * x, lambda: x - x.sum()]), numbers(3), positions(high=5)),
        (lambda x: lax.cond(x > 0, jnp.sqrt, jnp.abs, x), numbers()),
        (lambda x, i: lax.cond(i > 2, lambda x: x.at[1].set(9), lambda x: x.at[0].add(1), 2 * x), numbers(3),
         positions()),
    ],
}  # fmt: skip
forms = pytest.mark.parametrize("largest", FORMS.values(), ids=FORMS)


@forms
@pytest.mark.parametrize("name", CASES)
def test_every_bit_is_the_same(largest, name):
    for number, (ours, wanted) in enumerate(both(largest, *CASES[name])):
        jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y, err_msg=f"case {number}"), ours, wanted)  # noqa: B023


def draw_value(seed, depth, shape, *known):
    """An integer, or an array of three: the sum of what is computed from `known` by statements that a seed draws."""
    rng, values = np.random.default_rng(seed), list(known)

    def with_shape(x, shape):
        return x if x.shape == shape else x.max() if x.shape else jnp.broadcast_to(x, shape)

    def draw_statement():
        shape = [(), (3,)][rng.integers(2)]
        test, a, b, c = (with_shape(values[rng.integers(len(values))], to) for to in [(), shape, shape, shape])
        one, two = (partial(draw_value, each, depth - 1, shape, *values) for each in rng.integers(2**31, size=2))
        statements = [
            lambda: a + b,
            lambda: a * b,
            lambda: jnp.maximum(a, -b),
            lambda: jnp.where(a > b, b, c),
            lambda: lax.cond(test > 0, one, two),
            lambda: lax.switch(test % 4, [one, lambda: a - b, two]),
            lambda: lax.fori_loop(0, 5, lambda _, x: one(x) - x, a),
        ]
        return statements[rng.integers(7 if depth else 4)]()

    for _ in range(4):
        values.append(draw_statement())
    return sum(with_shape(x, shape) for x in values[len(known) :])


@forms
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_in_the_order_of_need(seed, largest, monkeypatch):
    monkeypatch.setattr(schedule, "few_alive", schedule._by_need)  # also where it spares nothing
    [found] = both(largest, (partial(draw_value, seed, 2, (3,)), positions(), positions(3, seed=2)))
    np.testing.assert_array_equal(*found)


@forms
def test_products_of_matrices(largest):
    def products(x):
        return x @ x.T, jnp.einsum("ij,ij->i", x, x), jnp.einsum("ij,kj->ik", x, x[:2])

    [found] = both(largest, (products, numbers(3, 4)))
    for ours, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_numbers(dtype):
    """Of another library than XLA's, and therefore rounded in another way in the last bits."""

    def functions(x):
        y = jnp.abs(x) + 0.01
        return (
            jnp.exp(x), jnp.expm1(x), jnp.log(y), jnp.log1p(y), jnp.sin(x), jnp.cos(x), jnp.tanh(x), y**1.7,
            lax.erf(x), lax.erfc(x), lax.erf_inv(0.9 * jnp.tanh(x)), jnp.sqrt(y), lax.rsqrt(y), jnp.cbrt(x),
            jax.nn.sigmoid(x), jnp.arctan2(x, y), lax.rem(x, y), jnp.nextafter(x, y), lax.exp2(x),
        )  # fmt: skip

    with jax.enable_x64(dtype == "float64"):
        x = (3 * numbers(40)).astype(dtype)
        [found] = both(LARGEST, (functions, x))
        for k, (ours, wanted) in enumerate(zip(*found, strict=True)):
            assert ours.dtype == dtype
            np.testing.assert_allclose(ours, wanted, rtol=30 * np.finfo(dtype).eps, atol=1e-30, err_msg=str(k))


def test_an_array_is_written_over_where_nothing_else_reads_it():
    """A loop that changes one number of a large array copies it before and after, and not in between."""

    def marked(x):
        return lax.fori_loop(0, 9, lambda k, x: x.at[k].add(1), x)

    x = np.zeros(500, np.float32)
    assert kernel_of(marked, x).source.text.count("< 500") == 2
    assert kernel_of(lambda x: (x, marked(x)), x).source.text.count("< 500") == 3


def test_what_the_next_loop_reads_at_the_same_place_is_in_no_memory():
    def chain(x, y):
        for _ in range(4):
            x, y = x * y, x - y
        return (x * y).sum()

    census = kernel_of(chain, *np.ones((2, 500), np.float32)).census
    assert census.loops == 1 and census.memory == 1  # the sum


def test_what_is_known_costs_nothing_and_what_has_no_rule_is_named():
    found = kernel_of(lambda x: x[jnp.arange(4)[2]] * jnp.float32(3).astype(jnp.int32), np.ones(4, np.int32))
    assert found.census.operations == 2  # one number is read, and multiplied
    with pytest.raises(Unsupported, match="eigh"):
        kernel_of(jnp.linalg.eigh, np.eye(3, dtype=np.float32))
