"""Fixed-order sums, ties, compensated sums, small linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import numerics

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 31, 32, 33, 64, 65, 100, 257])
def test_sums_are_right_and_do_not_depend_on_the_batch(n):
    x = RNG.normal(size=(40, n)).astype(np.float32)
    many = np.asarray(jax.jit(numerics.fixed_sum)(x))
    np.testing.assert_allclose(many, x.astype(np.float64).sum(1), atol=1e-5 * n)
    for k in (8, 16, 24):
        np.testing.assert_array_equal(np.asarray(jax.jit(numerics.fixed_sum)(x[:k])), many[:k])
    np.testing.assert_allclose(numerics.fixed_cumsum(jnp.asarray(x)), np.cumsum(x.astype(np.float64), 1), atol=1e-5 * n)


@pytest.mark.parametrize("n", [2, 10, 40])
def test_inverse_cdf_is_the_lowest_crossing(n):
    p = RNG.dirichlet(np.ones(n), 200).astype(np.float32)
    u = RNG.random(200).astype(np.float32)
    index = np.asarray(jax.vmap(numerics.inverse_cdf)(p, u))
    cumulative = np.cumsum(p.astype(np.float64), 1)
    for i, row, x in zip(index, cumulative, u, strict=True):
        assert row[i] > x - 1e-5 and (i == 0 or row[i - 1] <= x + 1e-5)
    assert int(numerics.inverse_cdf(jnp.full(n, 1 / n), jnp.float32(1 - 2**-24))) == n - 1


@pytest.mark.parametrize("n", [3, 50])
def test_argmax_takes_the_lowest_index(n):
    x = np.zeros(n, np.float32)
    x[[1, n - 1]] = 2.0
    assert int(numerics.argmax(jnp.asarray(x))) == 1
    x[n - 1] = 2.0001
    assert int(numerics.argmax(jnp.asarray(x))) == n - 1
    assert int(numerics.argmax(jnp.asarray(x), relative=1e-3)) == 1
    assert int(numerics.argmin(jnp.asarray(-x))) == n - 1


def test_settle_is_the_identity():
    for x in (
        jnp.float32(-3.5),
        jnp.arange(6, dtype=jnp.int32).reshape(2, 3),
        jnp.array([np.inf, np.nan], jnp.float32),
    ):
        np.testing.assert_array_equal(np.asarray(jax.jit(numerics.materialize)(x)), np.asarray(x))


def test_compensated_sum_keeps_what_float32_loses():
    n = 200_000
    plain, (high, low) = jax.lax.fori_loop(
        0, n,
        lambda _, s: (s[0] + jnp.float32(0.1), numerics.two_sum(*s[1], jnp.float32(0.1))),
        (jnp.float32(0), (jnp.float32(0), jnp.float32(0))),
    )  # fmt: skip
    truth = n * float(np.float32(0.1))
    assert abs(float(plain) - truth) > 1  # the test has something to find
    assert abs(float(np.float64(high) + np.float64(low)) - truth) < 1e-6 * truth / 20


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_small_linear_algebra(d):
    a = RNG.normal(size=(d, 2 * d + 1))
    matrix = (a @ a.T).astype(np.float32)
    x = RNG.normal(size=d).astype(np.float32)
    inverse, pivot = numerics.sweep_inverse(jnp.asarray(matrix))
    assert pivot > 0
    assert (
        not numerics.sweep_inverse(jnp.asarray(matrix - 1.01 * np.linalg.eigvalsh(matrix)[0] * np.eye(d, dtype="f")))[1]
        > 0
    )
    np.testing.assert_allclose(np.asarray(inverse) @ matrix, np.eye(d), atol=5e-3)
    root = np.asarray(numerics.inverse_cholesky(jnp.asarray(matrix)))
    np.testing.assert_allclose(root @ matrix @ root.T, np.eye(d), atol=5e-3)
    assert not np.triu(root, 1).any()
    np.testing.assert_allclose(numerics.quadratic(jnp.asarray(matrix), jnp.asarray(x)), x @ matrix @ x, rtol=1e-4)


def test_safe_norm_neither_overflows_nor_divides_by_zero():
    x = jnp.array([[3e30, 4e30], [0.0, 0.0], [3e-30, 4e-30]], jnp.float32)
    for norm in (numerics.safe_norm, jax.jit(numerics.safe_norm)):
        np.testing.assert_allclose(norm(x), [5e30, 0.0, 5e-30], rtol=1e-6)
        for size in (1.2e-38, 1e-37, 1.0, 1e19, 8e37, 1e38, 2.4e38):  # a reciprocal of the largest would be subnormal
            np.testing.assert_allclose(norm(jnp.full(2, size, jnp.float32)), size * np.sqrt(2), rtol=1e-6)


def test_a_tie_is_a_share_of_the_largest_whatever_its_sign():
    for top in (3.0, -3.0, 3e20, 3e-20):
        x = jnp.array([top - 2e-3 * abs(top), top - 5e-4 * abs(top), top], jnp.float32)
        assert int(numerics.argmax(x, relative=1e-3)) == 1 and int(numerics.argmax(x)) == 2
    assert int(numerics.argmax(jnp.zeros(3, jnp.float32), relative=1e-3)) == 0


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_rounded_is_the_identity(shape):
    x = RNG.normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(numerics.rounded)(x, jnp.arange(1, 5, dtype=jnp.int32)), x)
