"""One-lane functions written as C give what they give under vmap: held apart, and as loops over memory."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from laid_out import both, kernel_of, needs_cc

from jaxbandits.kernels import schedule
from jaxbandits.kernels.arrays import LARGEST
from jaxbandits.kernels.text import Unsupported

pytestmark = needs_cc
LANES = 8
INF = np.inf
FORMS = {"apart": LARGEST, "loops": 1}  # elements of the largest array that is held apart


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=(LANES, *shape)).astype(np.float32)


def positions(*shape, low=-2, high=7, seed=1):
    return np.random.default_rng(seed).integers(low, high, size=(LANES, *shape)).astype(np.int32)


OPERATIONS = [  # whose rounding is that of one order; what else there is, is in test_rules.py
    lambda x: x.reshape(2, 6).T[::-1, 1:] * 0.3,
    lambda x: jnp.stack([x, -x * 0.3], axis=1).sum((0, 2)),
    lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0, reverse=True), jnp.cumprod(x, 1)),
    lambda x: (x.max(), jnp.argmin(x), jnp.sort(x, 1), jnp.argsort(x, 0)),
    lambda x: (jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), x * x), x**3, x**-2),
]


def read_late(x, i):
    """Arrays that are written over while others are still to be computed from what they held."""
    x = jnp.cumsum(x)
    backwards, twice = x[::-1], x * 2
    y = lax.fori_loop(0, 3, lambda k, y: y.at[k].add(backwards[0]).at[i].set(y[k]), x)
    return y.at[i].set(9) - backwards, twice.at[i].set(7), y.at[0].add(twice[1])


def moved_within_itself(x):
    """Elements that move by one place."""
    x = jnp.cumsum(x)
    return lax.dynamic_update_slice(x, x[:-1], (1,))


def as_before_the_loop(x):
    """What a loop does not carry is in every turn what it was before."""
    y = jnp.cumsum(x)
    return lax.fori_loop(0, 3, lambda k, total: total + lax.dynamic_update_slice(y, jnp.zeros(1), (k,)), x)


def read_after(x, y, i):
    """A slice, and a gather, that are read after their arrays and places were written over."""
    x, y, i = jnp.cumsum(x), jnp.cumsum(y), jnp.cumsum(i)
    window = lax.dynamic_slice(x, (i[0],), (2,))
    axes = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    found = lax.gather(y, i[:, None], axes, (1,), mode="clip")
    nine, four = jnp.full(1, 9, x.dtype), jnp.full(1, 4, i.dtype)
    x, y = (lax.dynamic_update_slice(each, nine, (1,)) for each in (x, y))
    return x, window, y, lax.dynamic_update_slice(i, four, (0,)), found


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


def read_again(x, i):
    """Elements that are read before and after others, or they themselves, are written over."""
    y = lax.fori_loop(0, 3, lambda k, y: y * x[k], x)
    first, z = y[0] + y[2], y.at[i].set(9.0)
    w = z.at[2].add(first)
    told, one = z[0] + w[2] + w[0], w[1]
    return first, told, one, lax.fori_loop(0, 3, lambda _, v: v.at[1].add(v[1]), w)


def known_next(x):
    """A loop whose next array is known, while another one reads the last."""
    three = np.float32([2, 3, 5])
    return lax.while_loop(lambda s: s[1].sum() < 29, lambda s: (three, s[1] + s[0]), (x, 0 * x))


CASES = {
    "operations": [(function, numbers(3, 4)) for function in OPERATIONS],
    "not written over while it is read": [
        (read_late, numbers(5), positions(low=0, high=5)), (read_again, numbers(5), positions(high=5)),
        (moved_within_itself, numbers(5)), (as_before_the_loop, numbers(5)),
        (read_after, numbers(5), numbers(5, seed=2), positions(3, low=0, high=2)),
    ],
    "loops one after another": [
        (one_after_another, numbers(5), numbers(5, seed=2), positions(low=0, high=5)), (until, numbers(5)),
    ],
    "loops that each lane leaves by itself, and the rows of a lane by themselves": [
        (halved, numbers(), positions(low=0, high=6)),
        (lambda x: lax.fori_loop(0, 20, lambda i, s: s * 0.5 + i, x), numbers(3)),
        (counted, numbers()),
        (lambda x, n: jax.vmap(halved)(x, n), numbers(3), positions(3, low=0, high=6)),
        (sorted_by_hand, numbers(5)),
        (lambda x: lax.while_loop(lambda s: s[0][0] < 4, lambda s: (s[1], s[0] + 1), (0 * x, 0 * x + 2)), numbers(3)),
        (known_next, numbers(3)),
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
        # in every piece of the inverse, whose polynomials begin at -log(1 - x^2) = 5, or 6.25 and 16
        ends = jnp.asarray([0.0, 0.5, -0.9967, 0.9991, -0.99997, 0.9999999, -(1 - 2.0**-24), 1.0, -1.0], x.dtype)
        return (
            jnp.exp(x), jnp.expm1(x), jnp.log(y), jnp.log1p(y), jnp.sin(x), jnp.cos(x), jnp.tanh(x), y**1.7,
            lax.erf(x), lax.erfc(x), lax.erf_inv(0.9 * jnp.tanh(x)), lax.erf_inv(ends), jnp.sqrt(y), lax.rsqrt(y),
            jnp.cbrt(x), jax.nn.sigmoid(x), jnp.arctan2(x, y), lax.rem(x, y), jnp.nextafter(x, y), lax.exp2(x),
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
    places = re.findall(r"\b(?:in|out)\d+\[(.*?)\]", kernel_of(lambda x: x + 1, np.ones(3, np.float32)).source.text)
    assert places and all(place.startswith("(size_t)") for place in places)
    with pytest.raises(Unsupported, match="eigh"):
        kernel_of(jnp.linalg.eigh, np.eye(3, dtype=np.float32))
