"""Derivatives of estimators that are found by iterations: against central differences, and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from uncompiled import uncompiled

from jaxbandits import estimators as est

SAMPLE = np.array([0.3, -1.2, 0.9, 2.5, -0.1, 40.0, 0.7, -6.0, 1.6, 0.2, 1.1])
CROSS = np.array([[-1.0, 0.0], [3.0, 0.0], [0.0, -2.0], [0.0, 5.0]])


def median(points, weights=None):
    return est.geometric_median(points, weights=weights, iterations=200)


def value_and_objective(points, weights):
    return jnp.append(*median(points, weights)[:2])


def scattered(number, dim):
    rng = np.random.default_rng(number)
    return rng.normal(size=(number, dim)) * np.linspace(1, 4, dim), rng.uniform(1, 3, number)


def differences(function, x, step=1e-5):
    """Central differences of a function of one array, all in one call: [out, *x.shape]."""
    moves = step * np.eye(x.size).reshape(x.size, *x.shape)
    out = uncompiled(jax.vmap(function))(np.concatenate([x + moves, x - moves]))
    above, below = np.reshape(out, (2, x.size, -1))
    return ((above - below) / (2 * step)).T.reshape(-1, *x.shape)


CASES = {
    "median of more points than dimensions": (value_and_objective, scattered(7, 3)),
    "median of fewer": (value_and_objective, scattered(4, 6)),
    "median at a data point": (value_and_objective, (CROSS[1:], np.array([1.0, 9.0, 2.0]))),
    "median of means": (lambda x: est.median_of_means(x, np.arange(9) % 4, 5), (scattered(9, 2)[0],)),
    "Catoni": (est.catoni_mean, (SAMPLE, np.array(1.7), np.array(0.15))),
    "Huber": (est.huber_location, (SAMPLE, np.array(0.85))),
    "Huber, nothing within": (est.huber_location, (np.array([0.0, 30.0, 4.0, 11.0]), np.array(2.0))),
}


@pytest.mark.parametrize("name", CASES)
def test_both_modes_are_central_differences(name):
    function, given = CASES[name]
    arguments = tuple(range(len(given)))
    with jax.enable_x64(True):
        backward, forward = (uncompiled(mode(function, arguments))(*given) for mode in (jax.jacrev, jax.jacfwd))
        for i, x in enumerate(given):
            wanted = differences(lambda x: function(*given[:i], x, *given[i + 1 :]), x)  # noqa: B023
            assert_allclose(backward[i], wanted.reshape(np.shape(backward[i])), rtol=1e-5, atol=1e-8)
            assert_allclose(forward[i], backward[i], rtol=1e-10, atol=1e-13)


def test_the_median_of_a_cross_is_where_its_diagonals_meet():
    with jax.enable_x64(True):
        value, objective, gap = uncompiled(jax.jacrev(median, (0, 1)))(CROSS, np.ones(4))
    of_first, of_second = np.zeros((4, 2)), np.zeros((4, 2))
    of_first[2:, 0], of_second[:2, 1] = (
        [5 / 7, 2 / 7],
        [3 / 4, 1 / 4],
    )  # z lies 2 / 7 and 1 / 4 of a diagonal from an end
    assert_allclose(value[0], [of_first, of_second], atol=1e-9)
    # what a weight pulls, against 1 / d of each point on the other diagonal
    assert_allclose(value[1], [[-10 / 7, 10 / 7, 0, 0], [0, 0, -3 / 4, 3 / 4]], atol=1e-9)
    assert_allclose(objective[0], CROSS / np.array([[1], [3], [2], [5]]) / 4, atol=1e-9)
    assert_allclose(objective[1], (np.array([1, 3, 2, 5]) - 11 / 4) / 4, atol=1e-9)
    assert not np.any(gap[0]) and not np.any(gap[1])


def test_medians_without_a_derivative():
    """Copies share what moves them, by their weights; of an even split the point that was found counts, else NaN."""
    slopes = uncompiled(jax.jacrev(lambda x, w: median(x, w).value, (0, 1)))
    weights = np.float32([1, 3, 1, 1])
    of_points, of_weights = slopes(np.float32([[1, 2], [1, 2], [8, 3], [5, -2]]), weights)
    assert_allclose(of_points, np.eye(2)[:, None] * np.array([1, 3, 0, 0])[:, None] / 4, rtol=1e-6)
    assert not of_weights.any()
    line = np.float32([[0, 0], [1, 2], [3, 6], [10, 20]])
    of_points, of_weights = slopes(line, np.ones(4, np.float32))
    assert_array_equal(of_points.sum((0, 2)), [0, 2, 0, 0])
    assert not of_weights.any()

    # the iterations end at their start, which is on the line, but no median
    def early(x):
        return est.geometric_median(x, start=[9.0, 18.0], tolerance=99.0)

    assert np.isnan(uncompiled(jax.jacrev(lambda x: early(x).value))(line)).all()
    # which has some slope all the same
    assert_allclose(
        uncompiled(jax.grad(lambda x: early(x).objective))(line), np.outer([-1, -1, -1, 1], [1, 2]) / 80**0.5, rtol=1e-6
    )


def test_what_is_not_finite_moves_nothing():
    points, weights = (np.float32(x) for x in scattered(7, 3))
    slopes = uncompiled(jax.jacrev(lambda x, w: median(x, w)[:2], (0, 1)))
    alone = slopes(points[:6], weights[:6])
    lost = slopes(np.where(np.arange(7)[:, None] == 6, [np.nan, np.inf, 1.0], points).astype(np.float32), weights)
    for with_lost, without in zip(jax.tree.leaves(lost), jax.tree.leaves(alone), strict=True):
        at = without.shape.index(6)
        assert_allclose(np.take(with_lost, range(6), at), without, rtol=1e-5, atol=1e-6)
        assert not np.take(with_lost, 6, at).any()


def test_huber_by_hand():
    """Of the values within; the clip counts where more values lie on one side. At the clip itself a value is within."""
    slopes = uncompiled(jax.grad(est.huber_location, (0, 1)))
    for x, clip, of_values, of_clip in (
        ([0.5, 1.0, 2.0, 50.0, 90.0, -9.0], 2.0, [1 / 3, 1 / 3, 1 / 3, 0, 0, 0], 1 / 3),
        ([0.0, 1.0, 2.0, 1e6], 1.5, [1 / 3, 1 / 3, 1 / 3, 0], 1 / 3),
        ([7.0, 0.0, 30.0, 4.0, 30.0, 0.0, 4.0, 30.0], 1.0, [1 / 2, 0, 0, 1 / 4, 0, 0, 1 / 4, 0], 0),
    ):
        found = slopes(np.float32(x), np.float32(clip))
        assert_allclose(found[0], of_values, rtol=1e-6)
        assert_allclose(found[1], of_clip, rtol=1e-6)


def test_catoni_by_hand():
    """Weights 1 / (1 + y^2 / 2) in the middle of a symmetric sample; none where failure_prob is too small."""
    x = np.array([2.0, 2.0, 3.5, 0.5, 7.0, -3.0, 2.0, 2.0])
    with jax.enable_x64(True):
        of_values, of_variance = uncompiled(jax.grad(est.catoni_mean, (0, 1)))(x, 2.5, 0.2)
    log_term = np.log(5)
    y = np.abs(x - 2) * (2 * log_term / (8 * 2.5 * (1 + 2 * log_term / (8 - 2 * log_term)))) ** 0.5
    weights = (1 + y) / (1 + y + y**2 / 2)
    assert_allclose(of_values, weights / weights.sum(), rtol=1e-12)
    assert abs(of_variance) < 1e-12
    assert np.isnan(uncompiled(jax.grad(lambda p: est.catoni_mean(x, 1.0, p)))(np.float32(0.1)))


def test_under_jit_and_vmap_and_twice():
    points, weights = scattered(5, 2)

    def loss(points, weights):
        return median(points, weights).value @ jnp.stack([est.catoni_mean(points[:, 0], 9.0, 0.3), weights[0]])

    with jax.enable_x64(True):
        both = jax.jit(jax.vmap(lambda *given: (jax.grad(loss)(*given), jax.hessian(loss)(*given))))
        lanes = points * np.array([1.0, 1.5])[:, None, None], np.stack([weights, weights[::-1]])
        slopes, curvatures = both(*lanes)
        for x, w, slope, curvature in zip(*lanes, slopes, curvatures, strict=True):
            assert_allclose(slope, differences(lambda x: loss(x, w), x)[0], rtol=1e-6, atol=1e-8)  # noqa: B023
            wanted = differences(lambda x: jax.grad(loss)(x, w), x)  # noqa: B023
            assert_allclose(curvature.reshape(10, 5, 2), wanted, rtol=1e-5, atol=1e-7)
