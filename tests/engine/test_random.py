"""Addressed draws: Threefry against two references, laws with power, no address used twice."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpy_draws
import pytest
from jax.extend.random import threefry_2x32
from numpy_draws import NumpyDraws
from scipy import stats
from uncompiled import uncompiled

from jaxbandits.random import Draws, bits_of_streams, threefry2x32, to_exponential, to_laplace, to_normal, to_uniform

N = 40_000
LAWS = {"uniform": stats.uniform(), "normal": stats.norm(), "exponential": stats.expon(), "laplace": stats.laplace()}
DTYPES = (np.float32, np.float64)
SHAPES = (), (1,), (3,), (2, 2), (5,), (0,)
SEED = 2**32 - 3

# Random123's known-answer vectors for threefry2x32, 20 rounds: counter, key, output
VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def test_published_vectors_and_those_of_jax():
    """By the simulator's generator, compiled and not, and by the one of the tests' oracles."""
    counter, key, output = np.array(VECTORS, np.uint32).transpose(1, 2, 0)
    for generator in (jax.jit(threefry2x32), uncompiled(threefry2x32), numpy_draws.threefry2x32):
        np.testing.assert_array_equal(generator(tuple(key), tuple(counter)), output)
    rng = np.random.default_rng(0)
    key = rng.integers(0, 2**32, 2, dtype=np.uint32)
    counters = rng.integers(0, 2**32, (2, 500), dtype=np.uint32)
    theirs = jax.jit(threefry_2x32)(key, counters.ravel())
    for generator in (jax.jit(threefry2x32), numpy_draws.threefry2x32):
        np.testing.assert_array_equal(np.concatenate(generator(tuple(key), tuple(counters))), theirs)


def every_draw(draws, t, positions):
    """What oracles and simulator both can draw, at plays t and positions of t's shape."""
    children = draws, draws.child("b"), draws.child("b").child("c/d")
    shapes = {f"{kind} {shape}": getattr(draws, kind)(t, shape) for kind in ("bits", *LAWS) for shape in SHAPES}
    return shapes | {
        "at": tuple(child.at(t, positions) for child in children),
        "at one": draws.at(t, 3),
        "words of a table": draws.at(t[:, None], np.arange(4, dtype=np.int32)),
        "children": tuple(child.uniform(t) for child in children),
    }


def test_oracles_draw_what_the_simulator_draws():
    """In one program: every kind of draw, in both dtypes, in odd shapes, at plays up to the largest."""
    t = np.array([0, 1, 2, 17, 512, 10**6, 2**31 - 1], np.int32)
    positions = np.array([0, 1, 2, 3, 5, 8, 2**31 - 1], np.int32)

    def simulated(seed, t, positions):
        return tuple(every_draw(Draws(seed, "a/b", dtype), t, positions) for dtype in DTYPES)

    with jax.enable_x64(True):
        compiled = jax.jit(simulated)(np.uint32(SEED), t, positions)
        evaluated = uncompiled(simulated)(np.uint32(SEED), t, positions)
    for dtype, *found in zip(DTYPES, compiled, evaluated, strict=True):
        wanted = every_draw(NumpyDraws(SEED, "a/b", dtype), t, positions)
        for name, draw in wanted.items():
            for given in found:
                assert jax.tree.map(jnp.shape, given[name]) == jax.tree.map(jnp.shape, draw), name
                assert {x.dtype for x in jax.tree.leaves(given[name])} == {x.dtype for x in jax.tree.leaves(draw)}, name
                for x, y in zip(jax.tree.leaves(given[name]), jax.tree.leaves(draw), strict=True):
                    exact = name.split()[0] not in ("normal", "exponential", "laplace")
                    np.testing.assert_allclose(x, y, rtol=0 if exact else 30 * np.finfo(dtype).eps, err_msg=name)


def test_bits_of_several_streams_are_theirs():
    draws, numbers = Draws(np.uint32(SEED), "a").shifted(np.int32(5)), {"b": 7, "c": 1, "d": 4}

    def both(t):
        streams = [(draws.child(name), number) for name, number in numbers.items()]
        return bits_of_streams(*streams, t=t), jnp.concatenate([stream.bits(t, (n,)) for stream, n in streams])

    np.testing.assert_array_equal(*jax.jit(both)(np.int32(17)))


@functools.cache
def samples():
    """Draws of every law at N plays, by law and dtype, in one program."""
    t = np.arange(1, N + 1, dtype=np.int32)

    def drawn(seed, t):
        return {(law, dtype.__name__): getattr(Draws(seed, "law", dtype), law)(t) for law in LAWS for dtype in DTYPES}

    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(drawn)(np.uint32(1), t))


@pytest.mark.parametrize("method", LAWS)
@pytest.mark.parametrize("scale, accepted", [(1.0, True), (2 / 3, False), (3 / 2, False)])
def test_laws(method, scale, accepted):
    """The law is accepted at its scale, and two thirds and three halves of it are rejected."""
    p = stats.kstest(scale * samples()[method, "float32"], LAWS[method].cdf).pvalue
    assert (p > 1e-4) == accepted


def test_extremes_are_finite_and_inside():
    bits = np.array([0, 1, 2, 3, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1], np.uint32)

    def converted(bits):
        return [[to(bits, dtype) for to in (to_uniform, to_normal, to_exponential, to_laplace)] for dtype in DTYPES]

    with jax.enable_x64(True):
        found = jax.jit(converted)(bits)
    for dtype, (uniform, normal, exponential, laplace) in zip(DTYPES, jax.tree.map(np.asarray, found), strict=True):
        assert uniform.dtype == dtype and np.all((uniform > 0) & (uniform < 1))
        assert np.all((exponential > 0) & (exponential < 22.2))
        assert exponential[-1] == pytest.approx(2.0**-31 if dtype == np.float64 else 2.0**-24)  # -log of the largest
        assert np.all(np.isfinite(normal)) and np.all(np.abs(normal) < 6.4)
        assert np.all(laplace != 0) and np.all(np.abs(laplace) < 22.2)


def test_float64_draws_follow_float32():
    for law in LAWS:
        low, high = samples()[law, "float32"], samples()[law, "float64"]
        assert low.dtype == np.float32 and high.dtype == np.float64
        close = np.abs(low - high) <= 1e-3 * np.maximum(np.abs(high), 1e-2)
        assert close.mean() > 0.999, law


def test_categorical_and_bernoulli():
    t, p = np.arange(1, N + 1, dtype=np.int32), np.array([0.1, 0.2, 0.3, 0.4], np.float32)

    @jax.jit
    def drawn(t, p):
        draws = Draws(np.uint32(3), "c")
        return draws.categorical(t, p), draws.bernoulli(t, 0.25).sum()

    outcomes, hits = drawn(t, p)
    counts = np.bincount(np.asarray(outcomes), minlength=4)
    assert stats.chisquare(counts, N * p / p.sum()).pvalue > 1e-4
    assert stats.chisquare(counts, N * np.roll(p, 1) / p.sum()).pvalue < 1e-10
    assert abs(int(hits) - N / 4) < 5 * np.sqrt(N * 3 / 16)


def test_shapes_positions_and_paths_are_distinct():
    t = np.arange(1, 101, dtype=np.int32)

    @jax.jit
    def drawn(t):
        draws = Draws(np.uint32(3), "a")
        words = [draws.bits(t, (5,)), draws.child("b").bits(t, (5,)), Draws(np.uint32(4), "a").bits(t, (5,))]
        return words, draws.words(t, (5,)), draws.at(t, jnp.int32(2))

    words, (low, high), third = jax.tree.map(np.asarray, drawn(t))
    assert [w.shape for w in words] == [(100, 5)] * 3
    everything = np.concatenate([w.ravel() for w in words])
    assert len(np.unique(everything)) == everything.size  # 1,500 of 2^32: one collision has probability 3e-4
    assert not np.any(low == high)
    np.testing.assert_array_equal(third, low[:, 2])


def test_a_draw_depends_only_on_its_address():
    drawn = jax.jit(lambda seed, t: Draws(seed, "p").normal(t))
    many = np.asarray(drawn(np.uint32(9), np.arange(1, 65, dtype=np.int32)))
    alone = [drawn(np.uint32(9), np.int32(t)) for t in (1, 17, 64)]
    np.testing.assert_array_equal(many[[0, 16, 63]], alone)
    batched = jax.jit(jax.vmap(drawn, (0, None)))(np.arange(20, dtype=np.uint32), np.int32(5))
    assert float(batched[9]) == many[4]


def test_jax_key_is_addressed():
    drawn = jax.jit(lambda t: jax.random.normal(Draws(np.uint32(9), "p").key(t)))
    x = float(drawn(np.int32(4)))
    assert x == float(drawn(np.int32(4))) and x != float(drawn(np.int32(5)))
