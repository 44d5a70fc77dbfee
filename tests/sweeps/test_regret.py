"""Regret from counts: compiled code has the bits of the host's loop over arms, for every shape."""

from fractions import Fraction

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.regret import gaps_of, regret_of_counts
from jaxbandits.sweeps.compilation import regret_program
from jaxbandits.sweeps.compilation.regret_program import regret_on_device

RNG = np.random.default_rng(7)
LARGEST = 2**31 - 1
MANY = regret_program.LEAST_COUNTS["cpu"]
# seeds, points, checkpoints, arms
SHAPES = [
    (8, 1, 1, 1), (8, 1, 7, 2), (9, 3, 5, 3), (16, 2, 50, 4), (24, 1, 13, 5), (31, 1, 3, 7), (40, 16, 11, 8),
    (104, 5, 6, 9), (128, 16, 50, 10), (256, 1, 1, 11), (512, 1, 33, 16), (2048, 1, 50, 10), (2048, 1, 2, 17),
    (1000, 1, 10, 24), (64, 16, 20, 31), (72, 1, 50, 33), (8, 1, 200, 48), (136, 2, 9, 60), (17, 1, 1, 64),
]  # fmt: skip


def some_counts(shape, rng=RNG):
    """Counts of all sizes, with many zeros and some that are as large as they can be."""
    counts = (2.0 ** rng.uniform(-1, 31, shape)).astype(np.int64)
    counts[rng.random(shape) < 0.1] = LARGEST
    return np.minimum(counts, LARGEST).astype(np.int32)


def literal(counts, gaps):
    """The sum over arms in their order, product and sum each rounded to float64."""
    regret = np.zeros(counts.shape[:-1])
    for arm in range(counts.shape[-1]):
        for m in range(counts.shape[1]):
            if gaps[m, arm] != 0:
                product = counts[:, m, :, arm].astype(np.float64) * gaps[m, arm]
                regret[:, m] = regret[:, m] + product
    return regret


def in_one_rounding(counts, gaps):
    """What a fused multiply-add gives, for counts [K] and gaps [K]."""
    total = 0.0
    for count, gap in zip(counts.tolist(), gaps.tolist(), strict=True):
        total = float(Fraction(count) * Fraction(gap) + Fraction(total))
    return total


def compiled(counts, gaps):
    regret = regret_on_device(jax.device_put(counts), gaps, MANY)
    assert regret is not None and regret.dtype == np.float64
    return regret


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_compiled_regret_has_the_bits_of_the_loop(shape):
    counts = some_counts(shape)
    size = shape[1], shape[3]
    for means in (RNG.random(size), RNG.normal(size=size) * 10.0 ** RNG.integers(-9, 9)):
        gaps = np.stack([gaps_of(mean) for mean in means])
        expected = literal(counts, gaps)
        assert compiled(counts, gaps).tobytes() == expected.tobytes()
        host = np.stack([regret_of_counts(counts[:, m], mean) for m, mean in enumerate(means)], axis=1)
        assert host.tobytes() == expected.tobytes()


def test_the_counts_of_these_tests_would_show_a_fused_product():
    counts, gaps = some_counts((50, 1, 1, 10)), gaps_of(RNG.random(10))
    separate = literal(counts, gaps[None])[:, 0, 0]
    fused = np.array([in_one_rounding(row, gaps) for row in counts[:, 0, 0]])
    assert 5 < np.sum(separate != fused) and np.allclose(separate, fused, rtol=1e-14)


@pytest.mark.parametrize("shape", [(16, 2, 5, 10), (2048, 1, 20, 7)], ids=str)
def test_gaps_of_any_sign_and_size(shape):
    """Negative gaps do not come from means, but the sum is right for them too, and for the smallest numbers."""
    size = (shape[1], shape[3])
    counts = some_counts(shape)
    for gaps in (
        RNG.normal(size=size),
        RNG.choice([-1, 1], size) * 10.0 ** RNG.uniform(-300, 290, size),
        RNG.uniform(1, 2, size) * 2.0**-1022 * (RNG.random(size) < 0.7),
        np.zeros(size),
    ):
        assert compiled(counts, gaps).tobytes() == literal(counts, gaps).tobytes()


def test_the_host_computes_what_compiled_code_would_not():
    """Gaps below the smallest normal number, which XLA takes for 0; many arms; few counts."""
    counts = jax.device_put(some_counts((8, 1, 2, 3)))
    gaps = np.array([[0.0, 0.5, 1.0]])
    assert regret_on_device(counts, gaps, MANY // 6 + 1) is not None
    assert regret_on_device(counts, gaps, MANY // 6) is None
    assert regret_on_device(counts, gaps * 2.0**-1023, MANY) is None
    many = jax.device_put(some_counts((8, 1, 2, regret_program.MAX_ARMS + 1)))
    assert regret_on_device(many, RNG.random((1, regret_program.MAX_ARMS + 1)), MANY) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sweeps_are_the_same_with_and_without_compiled_regret(monkeypatch, dtype):
    """Points of different means in one call, and seeds that do not fill their last call."""
    rng = np.random.default_rng(3)
    means = {f"{i}": rng.random(5).tolist() for i in range(3)}

    def run(least):
        monkeypatch.setitem(regret_program.LEAST_COUNTS, "cpu", least)
        return jb.sweep(
            {"ucb1": jb.algorithms.ucb1, "exp3": jb.algorithms.exp3},
            jb.environments.bernoulli_arms(means=[0.1, 0.2, 0.3, 0.4, 0.5]),
            horizon=90, seeds=21, checkpoints=8, dtype=dtype, grid={"environment.means": means}, progress=False,
        )  # fmt: skip

    asked = []
    original = regret_program._program
    monkeypatch.setattr(regret_program, "_program", lambda *args: asked.append(args) or original(*args))
    on_host = run(10**18)
    assert not asked
    in_code = run(0)
    assert asked
    for name in on_host.data_vars:
        assert on_host[name].values.tobytes() == in_code[name].values.tobytes()


def test_the_result_of_a_sweep_can_be_written_into(monkeypatch):
    monkeypatch.setitem(regret_program.LEAST_COUNTS, "cpu", 0)
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    ds = jb.sweep(jb.algorithms.ucb1, arms, horizon=20, seeds=8, checkpoints=3, progress=False)
    ds.regret[:] = 0
    assert not ds.regret.values.any()
