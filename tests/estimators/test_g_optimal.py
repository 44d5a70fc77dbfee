"""Designs against known optima, the ranges of docs/formulas/robust_linear.md#design, and their behaviour under vmap."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from uncompiled import uncompiled

from jaxbandits.estimators.g_optimal import g_optimal_design, gram, span_basis


def largest_leverage(actions, weights):
    """float64, pseudo-inverse."""
    return np.einsum("kd,de,ke->k", actions, np.linalg.pinv((actions.T * weights) @ actions), actions).max()


def sphere(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("corners", [3, 5])
def test_regular_polygons(corners):
    angle = 2 * np.pi * np.arange(corners) / corners
    actions = np.stack([np.cos(angle), np.sin(angle)], -1)
    design = g_optimal_design(actions.astype(np.float32), slack=1e-3)
    assert float(design.max_leverage) <= 2 * (1 + 1e-3) * (1 + 1e-5)  # the optimum is the dimension
    assert_allclose(largest_leverage(actions, np.asarray(design.weights, float)), design.max_leverage, rtol=1e-4)


def test_ties_go_to_the_lowest_arm():
    same = np.array([[0, 1], [1, 0], [1, 0], [0, 1]], np.float32)
    assert_array_equal(g_optimal_design(same).weights, [0.5, 0.5, 0, 0])
    nearly = same * np.array([[1], [1], [1 + 3e-7], [1]], np.float32)
    assert_array_equal(g_optimal_design(nearly).weights, [0.5, 0.5, 0, 0])
    clearly = same * np.array([[1], [1], [1 + 1.5e-6], [1]], np.float32)
    assert_array_equal(g_optimal_design(clearly).weights, [0.5, 0, 0.5, 0])


@pytest.mark.parametrize("dim, num_arms, support", [(5, 20, (5, 9)), (10, 50, (10, 16)), (20, 200, (24, 34))])
def test_random_arms_at_slack_one(dim, num_arms, support):
    actions = sphere(np.random.default_rng(dim), 6, num_arms, dim)
    design = jax.jit(jax.vmap(g_optimal_design))(actions.astype(np.float32))
    for x, weights, top in zip(actions, np.asarray(design.weights, float), design.max_leverage, strict=True):
        assert weights.min() >= 0 and abs(weights.sum() - 1) < 1e-5
        assert_allclose(largest_leverage(x, weights), top, rtol=1e-4)
        assert dim * (1 - 1e-4) <= float(top) <= 2 * dim * (1 + 1e-4)
        assert support[0] <= (weights > 0).sum() <= support[1]
    one = uncompiled(g_optimal_design)(actions[3].astype(np.float32))
    assert_allclose(one.weights, design.weights[3], atol=1e-6)


def literal(actions, slack, max_steps):
    """Kumar and Yildirim's start, then steps of Wynn and Fedorov, with a pseudo-inverse at every one of them."""
    residual, picks = actions.copy(), []
    while np.linalg.norm(residual, axis=1).max() > 1e-9:
        picks.append(np.argmax(np.linalg.norm(residual, axis=1)))
        q = residual[picks[-1]] / np.linalg.norm(residual[picks[-1]])
        residual = residual - np.outer(residual @ q, q)
    rank, weights = len(picks), np.bincount(picks, minlength=len(actions)) / len(picks)
    for _ in range(max_steps):
        inverse = np.linalg.pinv((actions.T * weights) @ actions)
        leverage = np.einsum("kd,de,ke->k", actions, inverse, actions)
        if leverage.max() <= (1 + slack) * rank:
            break
        g = leverage.max()
        s = (g / rank - 1) / (g - 1)
        weights = (1 - s) * weights + s * (np.arange(len(actions)) == leverage.argmax())
    return weights, rank


@pytest.mark.parametrize("dim, inside", [(4, 4), (5, 3), (3, 1)])
def test_the_same_steps_as_the_literal_ones(dim, inside):
    """In a subspace too, and with the largest arms inactive."""
    rng = np.random.default_rng(dim)
    actions = rng.normal(size=(12, inside)) @ rng.normal(size=(inside, dim))
    active = np.arange(12) % 4 != 3
    actions[~active] *= 9
    for slack, most in ((0.0, 0), (0.0, 1), (0.0, 4), (0.02, 500), (0.4, 500)):
        weights, rank = literal(actions * active[:, None], slack, most)
        with jax.enable_x64(True):
            solve = uncompiled(lambda x, on: g_optimal_design(x, active=on, slack=slack, max_steps=most))  # noqa: B023
            found = solve(actions, active)
        assert_allclose(found.weights, weights, atol=1e-9)
        assert found.rank == rank == inside
        assert_allclose(found.max_leverage, largest_leverage(actions[active], weights[active]), rtol=1e-8)


@pytest.mark.parametrize("dtype, guard", [("float32", 1e-6), ("float64", 1e-9)])
def test_steps_end_at_the_goal_and_directions_at_the_tolerance(dtype, guard):
    """Rounding is allowed for by 1e-6 or 1e-9 of the goal; a residual of 1e-5 or 1e-9 of the largest is nothing."""
    with jax.enable_x64(dtype == "float64"):
        actions = sphere(np.random.default_rng(0), 20, 3).astype(dtype)
        solve = uncompiled(lambda x, slack, most: g_optimal_design(x, slack=slack, max_steps=most))
        start, one = (solve(actions, np.asarray(0, dtype), most) for most in (0, 1))
        for share, stays in ((0.4, True), (3.0, False)):
            slack = np.asarray(float(start.max_leverage) * (1 - share * guard) / 3 - 1, dtype)
            assert_array_equal(solve(actions, slack, 1).weights, (start if stays else one).weights)
        tolerance = 1e-5 if dtype == "float32" else 1e-9
        for size, rank in ((0.5, 1), (2.0, 2)):
            rows = 7 * np.array([[1, 0, 0], [1, size * tolerance, 0]], dtype)
            basis = uncompiled(span_basis)(rows, np.ones(2, bool))
            assert basis.rank == rank and (np.abs(basis.directions).sum(1) > 0).tolist() == [True, rank == 2, False]
            assert_allclose(basis.directions[:rank], np.eye(3)[:rank], atol=1e-12)


def test_a_small_slack_takes_steps_and_is_kept():
    actions = sphere(np.random.default_rng(0), 50, 5).astype(np.float32)
    tops = [float(g_optimal_design(actions, slack=s).max_leverage) for s in (1.0, 0.1, 0.01)]
    assert tops[0] > 5.6 and 5 < tops[1] <= 5.5001 and 5 < tops[2] <= 5.0501
    stopped = g_optimal_design(actions, slack=0.01, max_steps=1)
    assert float(stopped.max_leverage) > 5.1  # and says so


def test_inactive_arms_rank_one_and_rank_zero():
    actions = np.array([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0], [0, 0, 0]], np.float32)
    plane = g_optimal_design(actions)
    assert int(plane.rank) == 2 and float(plane.weights[3]) == 0
    line = g_optimal_design(actions, active=np.array([False, False, True, True]))
    assert_array_equal(line.weights, [0, 0, 1, 0])
    assert_allclose(line.max_leverage, 1, rtol=1e-6)
    nothing = g_optimal_design(actions, active=np.array([False, False, False, True]))
    assert int(nothing.rank) == 0 and not np.asarray(nothing.weights).any() and float(nothing.max_leverage) == 0


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_scale_does_not_matter(scale):
    """That of the active arms."""
    actions, active = sphere(np.random.default_rng(1), 20, 5), np.arange(20) % 5 != 2
    want = g_optimal_design(actions.astype(np.float32), active=active)
    got = g_optimal_design((actions * np.where(active, scale, 1)[:, None]).astype(np.float32), active=active)
    assert_allclose(got.weights, want.weights, atol=1e-5)


@pytest.mark.parametrize("units", [[1, 1e-6, 1, 1e6, 1], [1e-3, 1e-12, 1e9, 1, 1e-6]])
def test_units_of_a_feature_do_not_matter(units):
    """Nothing is dropped because it is measured in large units, and the design is as good as without."""
    actions = sphere(np.random.default_rng(1), 20, 5) * units
    found = g_optimal_design(actions.astype(np.float32), slack=0.05)
    assert found.rank == 5
    moment = np.linalg.inv((actions.T * np.float64(found.weights)) @ actions)
    assert np.einsum("ki,ij,kj->k", actions, moment, actions).max() <= 1.051 * 5


def test_gram_and_basis():
    rng = np.random.default_rng(2)
    actions, weights = rng.normal(size=(37, 6)), rng.random(37)
    found = uncompiled(gram)(np.float32(actions), np.float32(weights))
    assert_allclose(found, (actions.T * weights) @ actions, rtol=1e-4)
    basis = uncompiled(span_basis)(np.float32(actions), np.ones(37, bool))
    assert_allclose(basis.directions @ basis.directions.T, np.eye(6), atol=1e-5)
    assert basis.picks[0] == np.argmax(np.linalg.norm(actions, axis=1))
