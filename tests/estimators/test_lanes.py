"""Sums, choices and eigenvectors of many lanes, against NumPy."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from uncompiled import uncompiled

from jaxbandits.estimators._lanes import first_above, ladder, sum_by_halves
from jaxbandits.estimators._top_eigenvector import MIN_DIM_OF_PRODUCT, top_eigenvector

LENGTHS = [1, 2, 7, 8, 9, 15, 17, 37, 64, 65, 130]


def sum_in_halves(x):
    """The order of `sum_by_halves`, said another way."""
    total, aside = list(x), []
    while len(total) > 8:
        if len(total) % 2:
            aside.append(total.pop())
        half = len(total) // 2
        total = [a + b for a, b in zip(total[:half], total[half:], strict=True)]
    found = total[0]
    for each in total[1:]:
        found = found + each
    if aside:
        rest = aside[0]
        for each in aside[1:]:
            rest = rest + each
        found = found + rest
    return found


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_and_choices(length):
    rng = np.random.default_rng(length)
    x = rng.normal(size=(length, 5)).astype(np.float32)
    assert_array_equal(uncompiled(sum_by_halves)(x), sum_in_halves(x))
    # whole numbers, many of them 0: every target between 0 and the sum, and beyond it
    scores = (rng.integers(0, 4, size=(length, 1)) * (rng.random((length, 1)) < 0.7)).astype(np.float32)
    scores[rng.integers(length)] += 1
    total, sums = int(scores.sum()), np.cumsum(scores)
    targets = np.arange(0, total + 2, 0.5, dtype=np.float32)
    scores = np.repeat(scores, len(targets), 1)
    levels = uncompiled(ladder)(scores)
    sizes = [length]
    while sizes[-1] > 8:
        sizes.append(-(-sizes[-1] // 8))
    assert [len(each) for each in levels] == sizes
    index, left = uncompiled(lambda *given: first_above(list(given[1:]), given[0]))(targets, *levels)
    within = np.minimum(targets, total * (1 - 2.0**-23))
    wanted = (sums[:, None] > within).argmax(0)
    assert_array_equal(index, wanted)
    assert_allclose(left, within - np.append(0, sums)[wanted], atol=1e-5 * total)


def largest_eigenvector(weights, u, mean):
    value, vector = np.linalg.eigh(np.einsum("k,kd,ke->de", weights, u, u) - np.outer(mean, mean))
    return vector[:, -1], value


@pytest.mark.parametrize("dim", [1, 2, 5, 12, MIN_DIM_OF_PRODUCT, 17])
@pytest.mark.parametrize("lanes", [8, 24, 64])
def test_top_eigenvectors(dim, lanes):
    """With lanes of nothing, of tiny and of huge numbers, and lanes whose vector is not wanted; 17 arms."""
    rng = np.random.default_rng(dim)
    weights, u = rng.random((17, lanes)) + 0.1, rng.normal(size=(17, dim, lanes))
    mean, wanted = 0.3 * rng.normal(size=(dim, lanes)), np.arange(lanes) % 5 != 3
    weights[:, 1], mean[:, 1] = 0, 0
    weights[:, 2], mean[:, 2] = weights[:, 2] * 1e-20, mean[:, 2] * 1e-10
    weights[:, 4], mean[:, 4] = weights[:, 4] * 1e20, mean[:, 4] * 1e10
    given = *(x.astype(np.float32) for x in (weights, u, mean)), wanted
    for tiles in (True, False):
        v = uncompiled(lambda *x: top_eigenvector(*x, tiles=tiles))(*given)  # noqa: B023
        assert np.isfinite(v).all() and not v[:, 1].any()
        for lane in np.flatnonzero(wanted & (np.arange(lanes) != 1)):
            want, _ = largest_eigenvector(*(x.astype(float)[..., lane] for x in given[:3]))
            assert_allclose(v[:, lane] * np.sign(v[:, lane] @ want), want, atol=2e-3)
            assert_allclose(v[:, lane] @ v[:, lane], 1, rtol=1e-5)


def test_powers_end_after_sixteen_squarings():
    """Of two eigenvalues that differ by 1e-5: as much of the second is left as by 2^16 steps of the power method."""
    angle, share = 0.4, (1 - 1e-5) ** 2.0**16
    first, second = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    u = np.repeat(np.stack([first, second])[:, :, None], 8, 2)
    weights = np.repeat(np.array([[1.0], [1 - 1e-5]]), 8, 1)
    with jax.enable_x64(True):
        v = uncompiled(top_eigenvector)(weights, u, np.zeros((2, 8)), np.ones(8, bool))
    wanted = first[0] * first + share * second[0] * second
    assert_allclose(v, np.repeat((wanted / np.linalg.norm(wanted))[:, None], 8, 1), rtol=1e-6)
