"""Fixed-order sums, ties, compensated sums, small linear algebra."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from uncompiled import uncompiled

from jaxbandits import numerics
from jaxbandits.numerics import columns, sums

RNG = np.random.default_rng(1)
LENGTHS = [1, 2, 3, 10, 31, 32, 33, 64, 65, 100, 257]


def test_sums_are_right_and_do_not_depend_on_the_batch():
    arrays = [RNG.normal(size=(40, n)).astype(np.float32) for n in LENGTHS]
    sums = jax.jit(lambda arrays: [(numerics.fixed_sum(x), numerics.fixed_cumsum(x)) for x in arrays])
    found = {k: sums([x[:k] for x in arrays]) for k in (8, 16, 24, 40)}
    for i, (n, x) in enumerate(zip(LENGTHS, arrays, strict=True)):
        many, cumulative = map(np.asarray, found[40][i])
        assert_allclose(many, x.astype(np.float64).sum(1), atol=1e-5 * n)
        assert_allclose(cumulative, np.cumsum(x.astype(np.float64), 1), atol=1e-5 * n)
        for k in (8, 16, 24):
            assert_array_equal(np.asarray(found[k][i][0]), many[:k])


@pytest.mark.parametrize("d", [1, 32, 33, 48, 50])
def test_products_of_matrices_are_numpys(d):
    rng = np.random.default_rng(d)
    x, matrix = rng.normal(size=(3, d)), rng.normal(size=(d, 5))
    with jax.enable_x64(True):
        assert_allclose(uncompiled(sums.product)(x, matrix), x @ matrix, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [2, 10, 40])
def test_inverse_cdf_is_the_lowest_crossing(n):
    p = RNG.dirichlet(np.ones(n), 200).astype(np.float32)
    u = RNG.random(200).astype(np.float32)
    p[-1], u[-1] = 1 / n, 1 - 2**-24
    index = np.asarray(jax.jit(jax.vmap(numerics.inverse_cdf))(p, u))
    cumulative = np.cumsum(p.astype(np.float64), 1)
    for i, row, x in zip(index[:-1], cumulative, u, strict=False):
        assert row[i] > x - 1e-5 and (i == 0 or row[i - 1] <= x + 1e-5)
    assert index[-1] == n - 1


@pytest.mark.parametrize("n", [3, 50])
def test_argmax_takes_the_lowest_index(n):
    tied = np.zeros(n, np.float32)
    tied[[1, n - 1]] = 2.0
    near = tied.copy()
    near[n - 1] = 2.0001
    argmax, argmin = numerics.argmax, numerics.argmin
    found = jax.jit(lambda x, y: (argmax(x), argmax(y), argmax(y, relative=1e-3), argmin(-y)))(tied, near)
    assert list(map(int, found)) == [1, n - 1, 1, n - 1]


def test_settle_is_the_identity():
    arrays = np.float32(-3.5), np.arange(6, dtype=np.int32).reshape(2, 3), np.array([np.inf, np.nan], np.float32)
    settled = jax.jit(lambda arrays: [numerics.materialize(x) for x in arrays])(arrays)
    jax.tree.map(assert_array_equal, tuple(settled), arrays)


def test_materialize_is_the_identity_to_derivatives():
    """Beside integers too, which have none."""
    x, y, whole = np.float32([2, 5]), np.float32([3, -4]), np.int32([7, 8])

    def store(*arrays):
        return numerics.materialize_all(arrays)

    (stored, _), (move, _) = jax.jvp(store, (x, whole), (y, np.zeros(2, jax.dtypes.float0)))
    assert_array_equal([stored, move], [x, y])
    assert_array_equal(jax.linear_transpose(store, x, y)([y, x]), [y, x])
    slope = uncompiled(jax.grad(lambda x: numerics.materialize(x * x, long=True)[1] + store(x, whole)[0][1]))
    assert_array_equal(slope(x), [0, 11])


def test_compensated_sum_keeps_what_float32_loses():
    n = 200_000
    plain, (high, low) = jax.jit(lambda x: jax.lax.fori_loop(
        0, n,
        lambda _, s: (s[0] + x, numerics.two_sum(*s[1], x)),
        (jnp.float32(0), (jnp.float32(0), jnp.float32(0))),
    ))(np.float32(0.1))  # fmt: skip
    truth = n * float(np.float32(0.1))
    assert abs(float(plain) - truth) > 1  # the test has something to find
    assert abs(float(np.float64(high) + np.float64(low)) - truth) < 1e-6 * truth / 20


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_small_linear_algebra(d):
    a = RNG.normal(size=(d, 2 * d + 1))
    matrix = (a @ a.T).astype(np.float32)
    x = RNG.normal(size=d).astype(np.float32)
    indefinite = matrix - 1.01 * np.linalg.eigvalsh(matrix)[0] * np.eye(d, dtype="f")

    @jax.jit
    def computed(matrix, indefinite, x):
        return (
            numerics.sweep_inverse(matrix), numerics.sweep_inverse(indefinite)[1], numerics.inverse_cholesky(matrix),
            numerics.quadratic(matrix, x),
        )  # fmt: skip

    (inverse, pivot), refused, root, square = jax.tree.map(np.asarray, computed(matrix, indefinite, x))
    assert pivot > 0 and not refused > 0
    assert_allclose(inverse @ matrix, np.eye(d), atol=5e-3)
    assert_allclose(root @ matrix @ root.T, np.eye(d), atol=5e-3)
    assert not np.triu(root, 1).any()
    assert_allclose(square, x @ matrix @ x, rtol=1e-4)


def test_safe_norm_neither_overflows_nor_divides_by_zero():
    rows = [[3e30, 4e30], [0.0, 0.0], [3e-30, 4e-30]]
    sizes = np.array([1.2e-38, 1e-37, 1.0, 1e19, 8e37, 1e38, 2.4e38])  # a reciprocal of the largest would be subnormal
    x = np.concatenate([rows, np.repeat(sizes[:, None], 2, 1)]).astype(np.float32)
    wanted = [5e30, 0.0, 5e-30, *(sizes * np.sqrt(2))]
    for norm in (uncompiled(numerics.safe_norm), jax.jit(numerics.safe_norm)):
        assert_allclose(norm(x), wanted, rtol=1e-6)


def test_a_tie_is_a_share_of_the_largest_whatever_its_sign():
    tops = np.array([3.0, -3.0, 3e20, 3e-20])
    x = np.stack([tops - 2e-3 * abs(tops), tops - 5e-4 * abs(tops), tops], 1).astype(np.float32)
    x = np.concatenate([x, np.zeros((1, 3), np.float32)])
    near, exact = jax.jit(jax.vmap(lambda x: (numerics.argmax(x, relative=1e-3), numerics.argmax(x))))(x)
    assert near.tolist() == [1, 1, 1, 1, 0] and exact.tolist() == [2, 2, 2, 2, 0]


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_rounded_is_the_identity(shape):
    x = RNG.normal(size=shape).astype(np.float32)
    assert_array_equal(jax.jit(numerics.rounded)(x, np.arange(1, 5, dtype=np.int32)), x)


@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (-1, 1)], ids=["before", "points behind", "all behind"])
def test_numbers_kept_for_arms_are_those_of_numpy_wherever_their_lanes_lie(axes):
    seeds, points, arms = 3, 4, 5
    numbers = RNG.normal(size=(seeds, points, arms)).astype(np.float32)
    arm, value = RNG.integers(arms, size=(seeds, points)), RNG.normal(size=points).astype(np.float32)

    def one(kept, arm, value):
        kept = columns.add_to_entry(columns.replace_entry(kept, arm, value), arm, columns.entry(kept, arm))
        total = columns.sum_entries(columns.map_arms(lambda x: 2 * x, kept))
        return kept, columns.argmax(kept), total, columns.together(kept)

    inner, outer = axes
    laid = np.moveaxis(np.moveaxis(numbers, 1, inner + 1 if inner >= 0 else -1), 0, outer)
    over_points = jax.vmap(one, (inner, 0, 0), (inner, 0, 0, 0))
    many = jax.jit(jax.vmap(over_points, (outer, 0, None), (outer, 0, 0, 0)))
    kept, best, total, together = many(columns.Kept(jnp.asarray(laid)), jnp.asarray(arm), jnp.asarray(value))
    expected = numbers.copy()
    for s, p in np.ndindex(seeds, points):
        expected[s, p, arm[s, p]] = value[p] + numbers[s, p, arm[s, p]]
    assert_array_equal(np.moveaxis(np.moveaxis(kept.rows, outer, 0), inner + 1 if inner >= 0 else -1, 1), expected)
    assert_array_equal(together, expected)
    assert_array_equal(best, expected.argmax(-1))
    assert_allclose(total, 2 * expected.sum(-1), rtol=1e-5)


@pytest.mark.parametrize("number", [5, 40])
def test_one_number_an_arm_in_both_forms(number):
    """Scalars apart, and beyond 32 arms one array: whole numbers, of which the largest comes twice."""
    arm, value = number - 2, np.float32(2.5)
    x = np.random.default_rng(number).integers(-9, 9, number).astype(np.float32)
    x[[1, number - 1]] = 9

    @uncompiled
    def found(x, arm, value):
        x = columns.from_array(x)
        assert isinstance(x, tuple) == (number <= numerics.UNROLL)
        marks = columns.marks(x, arm)
        changed = columns.replace_entry(x, arm, value), columns.add_to_entry(x, arm, value), columns.above_least(x)
        return [columns.together(each) for each in (*changed, marks)] + [
            columns.entry(x, arm), columns.entry_at_marks(x, arm, marks), columns.sum_entries(x),
            columns.largest_entry(x), columns.argmax(x), columns.argmin(x), columns.every(marks),
        ]  # fmt: skip

    one = np.arange(number) == arm
    arrays = [np.where(one, value, x), x + value * one, x - x.min(), one]
    wanted = [*arrays, x[arm], x[arm], x.sum(), 9, 1, x.argmin(), False]
    for got, want in zip(found(x, np.int32(arm), value), wanted, strict=True):
        assert_array_equal(got, want)


@pytest.mark.parametrize("n", [5, 40])
def test_choices_along_another_axis(n):
    x = np.random.default_rng(n).integers(-9, 0, (2, n, 3)).astype(np.float32)  # with ties
    with jax.numpy_rank_promotion("allow"):
        best = uncompiled(partial(numerics.argmax, axis=1))(x)
        most = uncompiled(partial(numerics.pick, axis=1))(x, best)
    assert_array_equal(best, x.argmax(1))
    assert_array_equal(most, x.max(1))
