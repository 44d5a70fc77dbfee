"""Addressed draws: Threefry against two references, laws with power, no address used twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from jaxbandits.random import Draws, threefry2x32, to_exponential, to_laplace, to_normal, to_uniform

N = 40_000

# Random123's known-answer vectors for threefry2x32, 20 rounds: counter, key, output
VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("counter, key, output", VECTORS)
def test_published_vectors(counter, key, output):
    words = threefry2x32(tuple(jnp.uint32(k) for k in key), tuple(jnp.uint32(c) for c in counter))
    assert tuple(int(w) for w in words) == output


def test_equals_jax():
    rng = np.random.default_rng(0)
    key = rng.integers(0, 2**32, 2, dtype=np.uint32)
    counters = rng.integers(0, 2**32, (2, 500), dtype=np.uint32)
    ours = threefry2x32((key[0], key[1]), (jnp.asarray(counters[0]), jnp.asarray(counters[1])))
    theirs = threefry_2x32(jnp.asarray(key), jnp.asarray(counters.ravel()))
    np.testing.assert_array_equal(np.concatenate(ours), theirs)


def sample(method, seed=1, path="law", dtype=jnp.float32):
    draws = Draws(jnp.uint32(seed), path, dtype)
    return np.asarray(getattr(draws, method)(jnp.arange(1, N + 1, dtype=jnp.int32)))


LAWS = {"uniform": stats.uniform(), "normal": stats.norm(), "exponential": stats.expon(), "laplace": stats.laplace()}


@pytest.mark.parametrize("method", LAWS)
@pytest.mark.parametrize("scale, accepted", [(1.0, True), (2 / 3, False), (3 / 2, False)])
def test_laws(method, scale, accepted):
    """The law is accepted at its scale, and two thirds and three halves of it are rejected."""
    p = stats.kstest(scale * sample(method), LAWS[method].cdf).pvalue
    assert (p > 1e-4) == accepted


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_are_finite_and_inside(dtype):
    with jax.enable_x64(True):
        bits = jnp.array([0, 1, 2, 3, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1], dtype=jnp.uint32)
        kind = jnp.dtype(dtype).type
        uniform = np.asarray(to_uniform(bits, kind))
        assert uniform.dtype == dtype and np.all((uniform > 0) & (uniform < 1))
        exponential = np.asarray(to_exponential(bits, kind))
        assert np.all((exponential > 0) & (exponential < 22.2))
        assert np.all(np.isfinite(to_normal(bits, kind))) and np.all(np.abs(to_normal(bits, kind)) < 6.4)
        laplace = np.asarray(to_laplace(bits, kind))
        assert np.all(laplace != 0) and np.all(np.abs(laplace) < 22.2)


def test_float64_draws_follow_float32():
    with jax.enable_x64(True):
        for method in LAWS:
            low, high = sample(method), sample(method, dtype=jnp.float64)
            assert low.dtype == np.float32 and high.dtype == np.float64
            close = np.abs(low - high) <= 1e-3 * np.maximum(np.abs(high), 1e-2)
            assert close.mean() > 0.999, method


def test_categorical_and_bernoulli():
    draws, t = Draws(jnp.uint32(3), "c"), jnp.arange(1, N + 1, dtype=jnp.int32)
    p = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    counts = np.bincount(np.asarray(draws.categorical(t, jnp.asarray(p))), minlength=4)
    assert stats.chisquare(counts, N * p / p.sum()).pvalue > 1e-4
    assert stats.chisquare(counts, N * np.roll(p, 1) / p.sum()).pvalue < 1e-10
    hits = int(np.asarray(draws.bernoulli(t, 0.25)).sum())
    assert abs(hits - N / 4) < 5 * np.sqrt(N * 3 / 16)


def test_shapes_positions_and_paths_are_distinct():
    draws, t = Draws(jnp.uint32(3), "a"), jnp.arange(1, 101, dtype=jnp.int32)
    words = [draws.bits(t, (5,)), draws.child("b").bits(t, (5,)), Draws(jnp.uint32(4), "a").bits(t, (5,))]
    assert [w.shape for w in words] == [(100, 5)] * 3
    everything = np.concatenate([np.asarray(w).ravel() for w in words])
    assert len(np.unique(everything)) == everything.size  # 1,500 of 2^32: one collision has probability 3e-4
    low, high = draws.words(t, (5,))
    assert not np.any(np.asarray(low) == np.asarray(high))
    np.testing.assert_array_equal(np.asarray(draws.at(t, jnp.int32(2))), np.asarray(low)[:, 2])


def test_a_draw_depends_only_on_its_address():
    draws = Draws(jnp.uint32(9), "p")
    many = np.asarray(draws.normal(jnp.arange(1, 65, dtype=jnp.int32)))
    alone = np.array([draws.normal(jnp.int32(t)) for t in (1, 17, 64)])
    np.testing.assert_array_equal(many[[0, 16, 63]], alone)
    seeds = jnp.arange(20, dtype=jnp.uint32)
    batched = jax.vmap(lambda seed: Draws(seed, "p").normal(jnp.int32(5)))(seeds)
    assert float(batched[9]) == float(draws.normal(jnp.int32(5)))


def test_jax_key_is_addressed():
    draws = Draws(jnp.uint32(9), "p")
    x = jax.random.normal(draws.key(jnp.int32(4)))
    assert float(x) == float(jax.random.normal(draws.key(jnp.int32(4))))
    assert float(x) != float(jax.random.normal(draws.key(jnp.int32(5))))
