"""Means, medians and choices of points: by hand, against slow formulas in NumPy, and what is refused."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from uncompiled import uncompiled

from jaxbandits import estimators as est
from jaxbandits.estimators.cut_means import bin_index
from jaxbandits.estimators.m_estimators import decreasing_root, influence, location
from jaxbandits.estimators.middle_points import krum_scores, middle
from jaxbandits.estimators.trimmed_mean import middle_mean, shorth, trim_and_average

NAN, INF = np.nan, np.inf
SQUARES = np.arange(10.0) ** 2
ODD = [-7.0, 1.0, 2.0, 4.0, 9.0, 100.0, -50.0]
# Two halves, and one number that is dropped. Bins of width 0.75 from -1 on hold 1, 1 and 3 of the first half.
HALVES = [1.2, 1.1, -1.0, 0.5, -0.25, 1.5, 1.0, 1.6, NAN, -0.5, 1.0]


BY_HAND = [
    *((est.trimmed_mean, ODD, (share,), wanted) for share, wanted in (
        (0.0, 59 / 7), (0.1, 9 / 5), (1 / 7, 9 / 5), (0.2, 7 / 3), (3 / 7, 2.0), (0.49, 2.0))),
    *((est.trimmed_mean, SQUARES, (share,), wanted) for share, wanted in (
        (0.1, 25.5), (0.2, 139 / 6), (0.2 * (1 + 5e-7), 139 / 6), (0.2 * (1 + 1e-5), 25.0 - 3.5), (0.45, 20.5))),
    (est.trimmed_mean, [1.0, 2.0, 4.0, 100.0], (0.45,), 3.0), (est.trimmed_mean, [NAN, INF, 5.0], (0.0,), 5 / 3),
    # 2 share n is 2, 3 but for rounding, 3 but for 3e-7 of it, not quite 3, and 3 where one value must be left
    *((est.shorth_mean, x, (share,), wanted) for x, share, wanted in (
        ([3.0, 0.0, 2.0, 1.0], 0.25, 0.5), (SQUARES, 0.15, 13.0), (SQUARES, 0.15 * (1 - 3e-7), 13.0),
        (SQUARES, 0.15 * (1 - 1e-5), 17.5), ([7.0, 5.0, 9.0], 0.4999999, 5.0), ([7.0, 5.0, 9.0], 0.0, 7.0),
        ([-9.0, 4.0, 5.0, 7.0, -8.5], 0.2, 16 / 3), ([0.0, 5.0, 5.5, 9.0], 0.3, 5.25))),
    (est.truncated_mean, [2.0, -2.0, 2.5, -2.5, 1.0, INF, NAN], (2.0,), 1 / 7),
    # the bits of a client have size c = 2 at a budget of ln 3, and 1 without privacy
    (est.local_mean, [-9.0, 9.0, 2.5, NAN, -INF, 1.0], (1.5, np.log(3)), 0.5 / 6),
    (est.local_mean, [-9.0, 1.2, 2.5, INF], (1.5, INF), (-1.5 + 1.2 + 1.5 + 1.5) / 4),
    (est.huber_location, [0.0, 1.0, 2.0, 1e6], (1.5,), 1.5), (est.huber_location, [-5.0, 0.0, 1.0, 9.0], (3.0,), 0.5),
    (est.huber_location, [-5.0, 0.0, 1.0, 9.0], (50.0,), 1.25), (est.huber_location, [-5.0, 0.0, 4.0], (1e-3,), 0.0),
    (est.huber_location, [0.0, 30.0, 4.0, 10.0], (2.0,), 7.0), (est.huber_location, [3.0], (1.0,), 3.0),
    # the least sample of its failure probability, four values at 1 / e
    (est.catoni_mean, [8.0, 4.0, 2.0, 6.0], (1.0, math.exp(-1)), 5.0),
    (est.coordinate_median, [[1.0, 9.0], [5.0, -INF], [2.0, 4.0], [7.0, 3.0]], (), [3.5, 3.5]),
    (est.coordinate_median, [[1.0, 9.0], [5.0, -8.0], [2.0, 4.0]], (), [2.0, 4.0]),
    (est.median_of_means, [[1], [3], [9], [4], [NAN], [6]], (np.array([0, 0, 1, 3, 3, 3]), 5), [10 / 3]),
    (est.median_of_means, [[1], [3], [9], [4], [9], [6]], (np.array([0, 0, 1, 3, 3, 3]), 4), [19 / 3]),
    (est.median_of_means, [[1], [3], [9], [4]], (np.array([0, 0, 2, 2]), 3), [4.25]),
    (est.random_groups, [0.5, 0.5, 0.1, 0.5, 0.9], (3,), [1, 2, 0, 0, 1]),
    (est.random_groups, [0.5, 0.5, 0.1], (1,), [0, 0, 0]), (est.random_groups, [0.5, 0.4, 0.1], (3,), [2, 1, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("matrix", "x", "direction", "width"), [
    ([[0.0, 1.0], [2.0, 0.0]], [2.0, 6.0], [6 / 37**0.5, 1 / 37**0.5], 37**0.5),  # of the transpose, by its second row
    ([[2.0, 0.0], [0.0, 8.0]], [0.0, -1.0], [0.0, -1.0], 1 / 8),
    ([[2.0, 0.0], [0.0, 8.0]], [0.0, 0.0], [0.0, 0.0], 0.0), ([[2.0, 0.0], [0.0, 8.0]], [INF, 0.0], [0.0, 0.0], NAN),
    ([[1.0, 0.0], [0.0, 1.0]], [3e38, 3e38], [0.0, 0.0], INF),
    # a pivot of 0 counts as the smallest normal number
    ([[0.0, 0.0], [0.0, 0.0]], [1.0, 1.0], [0.5**0.5] * 2, 2**0.5 / float(np.finfo(np.float32).tiny)),
    ([[0.0, 0.0], [0.0, 1.0]], [2.0, 0.0], [1.0, 0.0], 2 / float(np.finfo(np.float32).tiny)),
])  # fmt: skip
def test_an_instrument_by_hand(matrix, x, direction, width):
    found = uncompiled(est.instrument)(np.float32(matrix), np.float32(x))
    assert_allclose(found.direction, direction, rtol=3e-6)
    assert_allclose(found.width, width, rtol=3e-6)


@pytest.mark.parametrize("function, x, given, wanted", BY_HAND)
def test_by_hand(function, x, given, wanted):
    found = uncompiled(lambda x: function(x, *given))(np.asarray(x, np.float32))
    assert_allclose(found, wanted, rtol=3e-6)
    assert np.shape(found) == np.shape(wanted)


@pytest.mark.parametrize("given, guard, wanted", [
    (HALVES, 0, (0.6, 0.5)),
    (HALVES[:10], 0, (0.6, 0.5)),
    # 1.25 is in no bin, -1 in the first; a tie goes to the lower bin, whose neighbourhood is [-2, 0]
    ([1.25, 0.5, -1.0, 5.0, 0.0, -1.5, -2.0, INF], 0, (-1.0 - 1.0 / 4 + (1 - 0.5) / 4, -1.0)),
    # with one bin more on each side they begin at -1.75 and end at 2
    ([1.9, 1.8, -1.75, 2.0, 1.5, 2.25, 0.0, NAN], 1, (1.25 + 1.25 / 4, 1.25)),
    ([-1.75, -1.2, 1.8, -1.8, 0.0, 0.0, -2.0, -1.0], 1, (-1.75 + 0.5 / 4, -1.75)),
])  # fmt: skip
def test_histogram_mean(given, guard, wanted):
    found = uncompiled(lambda x: est.histogram_mean(x, 1.0, 1.0, 0.75, guard_bins=guard))(np.float32(given))
    assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("excess, left", [(0.0, -0.35), (0.7e-12, -0.35), (1.5e-12, 1.05)])
def test_bins_cover_what_they_should_and_no_more(excess, left):
    """Three bins of 0.7 cover [-1.05, 1.05) but for rounding: 3.0000000000000004 of them. 1.2 lies in a fourth one."""
    x = np.float32([1.2, 1.2, 0.0, 0.0, 0.0, 0.0])
    found = uncompiled(lambda x: est.histogram_mean(x, 9.0, 1.05 * (1 + excess / 3), 0.7))(x)
    assert_allclose(found.left_edge, left, rtol=1e-6)
    index, inside = uncompiled(lambda x: bin_index(x, -1.0, 0.5, 3))(np.float32([-1.1, 0.4, 0.5, 0.0, -INF, NAN, -1]))
    assert index.tolist() == [0, 2, 0, 2, 0, 0, 0] and inside.tolist() == [False, True, False, True, False, False, True]


ORDERED = np.array([[-4.0, -1.0, 0.5, 3.0, 8.0, 1e9, 1e9], [0.0, 0.1, 0.2, 5.0, 5.5, -1e9, NAN]])


@pytest.mark.parametrize("row", ORDERED)
@pytest.mark.parametrize("pulls", [1, 2, 4, 5])
def test_of_a_part_of_a_row(row, pulls):
    """What lies behind the first values does not count."""
    counted = row[:pulls]
    for share in (0.0, 0.2, 0.3, 0.45):
        drop = min(int(np.ceil(share * pulls - 1e-9)), (pulls - 1) // 2)
        found = uncompiled(trim_and_average)(np.float32(row), np.int32(pulls), np.float32(share))
        assert_allclose(found, counted[drop : pulls - drop].mean(), rtol=1e-6)
        length = max(1, pulls - int(2 * share * pulls + 1e-9))
        windows = [counted[k : k + length] for k in range(pulls - length + 1)]
        found = uncompiled(shorth)(np.float32(row), np.int32(pulls), np.float32(share))
        assert_allclose(found, min(windows, key=lambda x: round(np.ptp(x), 6)).mean(), rtol=1e-6)
    for number in (pulls, np.int32(pulls)):
        known = number if isinstance(number, int) else None
        found = uncompiled(lambda x, n: middle(x, known or n))(np.float32(row), number)  # noqa: B023
        assert_allclose(found, np.median(counted), rtol=1e-6)


def test_integers_become_floats_and_floats_stay():
    with jax.enable_x64(True):
        kinds = {int: "float32", bool: "float32", np.float32: "float32", np.float64: "float64"}
        for kind, dtype in kinds.items():
            found = uncompiled(lambda x: est.trimmed_mean(x, 0.0))(np.array([3, 0, 0], kind))
            assert found.dtype == dtype
            assert_allclose(found, (1 if kind is bool else 3) / 3, rtol=1e-6)


def test_along_an_axis():
    x = np.sort(np.random.default_rng(0).normal(size=(3, 4, 5)), axis=1)
    for axis in (1, -2):
        assert_allclose(uncompiled(partial(middle_mean, axis=axis))(x, 1, 3), x[:, 1:3].mean(1), rtol=1e-5)
        assert_allclose(uncompiled(lambda x: middle(x, 4, axis))(x), np.median(x, 1), rtol=1e-5)  # noqa: B023
        assert_allclose(uncompiled(lambda x, n: middle(x, n, axis))(x, np.int32(3)), x[:, 1], rtol=1e-5)  # noqa: B023


@pytest.mark.parametrize("number", range(1, 8))
def test_krum_of_any_number_of_attackers(number):
    points = np.random.default_rng(number).normal(size=(number, 2)).astype(np.float32) ** 3
    squares = ((points[:, None].astype(float) - points) ** 2).sum(-1)
    points = np.concatenate([points, [[NAN, INF]]]).astype(np.float32)[:number]
    for attacked in range(number):
        nearest = min(max(1, number - attacked - 2), number - 1)
        scores = np.sort(squares, axis=1)[:, 1 : 1 + nearest].sum(1)
        found = uncompiled(lambda x: est.krum(x, attacked))(points)  # noqa: B023
        assert_array_equal(found, points[scores.argmin()])
        for neighbours in {nearest, np.int32(nearest)}:
            own = np.eye(number, dtype=bool)
            known = nearest if isinstance(neighbours, int) else None
            found = uncompiled(lambda x, own, n: krum_scores(x, own, known or n))(  # noqa: B023
                squares.astype(np.float32), own, neighbours
            )
            assert_allclose(found, scores, rtol=1e-5)


@pytest.mark.parametrize("number", range(4, 11))
def test_krum_picks_colluders_once_they_are_all_their_nearest(number):
    """From (N - 1) / 2 on, two at least; before, honest points are nearer to each other than to colluders far away."""
    for attacked in range(1, number):
        points = np.random.default_rng(number).uniform(0, 1, (number, 2)).astype(np.float32)
        points[:attacked] = 1000
        found = uncompiled(lambda x: est.krum(x, attacked))(points)  # noqa: B023
        assert (found[0] == 1000) == (attacked >= max(2, (number - 1) / 2))


@pytest.mark.parametrize("failure_prob, variance", [(0.2, 1.0), (0.2, 9.0), (0.06, 1.0)])
def test_catoni_is_the_root_of_its_equation(failure_prob, variance):
    x, log_term = np.array([0.0, 0.2, 0.1, 3.3, -0.1, 40.0, -7.0, 0.5, 0.4, 1.0, 1.5, 2.0]), -np.log(failure_prob)
    scale = (2 * log_term / (12 * (variance + 2 * variance * log_term / (12 - 2 * log_term)))) ** 0.5

    def psi(y):
        return np.sign(y) * np.log(1 + np.abs(y) + y * y / 2)

    wanted = brentq(lambda theta: psi(scale * (x - theta)).sum(), -7, 40, xtol=1e-12)
    assert_allclose(uncompiled(lambda x: est.catoni_mean(x, variance, failure_prob))(np.float32(x)), wanted, rtol=1e-5)


def test_catoni_needs_four_logarithms():
    x = np.linspace(0, 1, 8, dtype=np.float32)
    traced = uncompiled(lambda p: est.catoni_mean(x, 1.0, p))
    # of 8 values: exp(-8 / 4) and a little below
    assert_allclose(traced(np.float32(np.exp(-2))), 0.5, rtol=1e-5)
    assert np.isnan(traced(np.float32(np.exp(-2.001))))
    with pytest.raises(
        ValueError, match=r"^x has 8 values; failure_prob = 0.135 needs at least 9: raise failure_prob$"
    ):
        est.catoni_mean(x, 1.0, 0.135)
    assert np.isfinite(uncompiled(lambda x: est.catoni_mean(x, 1.0, 0.1354))(x))


def test_the_influence_grows_as_a_logarithm_to_a_bound():
    y = np.float32([0, 1e-6, -1, 3, -1e10, 1e17])
    size = np.abs(y.astype(float))
    value, slope = uncompiled(influence)(y)
    assert_allclose(value, np.sign(y) * np.log1p(size + size**2 / 2), rtol=1e-6)
    assert_allclose(slope, (1 + size) / (1 + size + size**2 / 2), rtol=1e-6)
    far, _ = uncompiled(influence)(np.float32([-3e38, 1e20, 1e18]))
    assert_allclose(far, np.log(5e35) * np.array([-1, 1, 1]), rtol=1e-6)
    with jax.enable_x64(True):
        far, _ = uncompiled(influence)(np.array([-1e100, 1e160]))  # ln(y^2 / 2), y cut at 1e150
    assert_allclose(far, [np.log(2) - 200 * np.log(10), 300 * np.log(10) - np.log(2)], rtol=1e-12)


def test_roots_are_as_exact_as_is_said_and_no_more():
    """Of a step, which only bisection finds; the last bracket is then the whole error."""
    wanted = np.random.default_rng(0).uniform(0.5, 6, 400).astype(np.float32)

    def step(theta):
        return jnp.sign(wanted - theta), jnp.zeros_like(theta)

    low, high, start = -np.ones_like(wanted), np.full_like(wanted, 8), np.full_like(wanted, 99)
    for scale in (0.5, 8.0):
        found = uncompiled(lambda *x: decreasing_root(step, *x, scale))(start, low, high)  # noqa: B023
        error = np.abs(found - wanted.astype(float)) / (4 * 2.0**-23 * (wanted + scale))
        assert 0.8 < error.max() <= 1


def test_roots_where_newton_would_leave():
    wanted = np.float32([-3.0, 0.0, 2.0, 500.0])

    def arc(theta):
        return -jnp.arctan(theta - wanted), 1 / (1 + (theta - wanted) ** 2)

    low, high, start = (np.full(4, x, np.float32) for x in (-1e3, 1e3, 40))
    sought = np.array([True, True, False, True])
    found = uncompiled(lambda *x: decreasing_root(arc, *x[:3], 1.0, x[3]))(start, low, high, sought)
    assert_allclose(found, np.where(sought, wanted, 40), rtol=1e-6, atol=1e-6)
    # the root lies outside of the bracket
    found = uncompiled(lambda *x: decreasing_root(arc, *x, 1.0))(start, low + 1e3 - 1, high - 1e3 + 1)
    assert_allclose(found, [-1, 0, 1, 1], atol=1e-5)


def test_the_middle_of_all_locations():
    """Every point from 6 to 8 has as many values above as below, all of them at least 2 away."""
    x, present = np.float32([0, 99, 4, 10, 30]), np.array([True, False, True, True, True])
    find = uncompiled(location)
    for start in (6.5, 7.75, 4.5, 29.0, -50.0):
        for unit in np.float32([1, 0.1, 0.3, 0.7, 1.1, 2.3, 3.7]):  # of which some round off what is at the ends
            found = find(x * unit, present, 2 * unit, np.float32(start) * unit)
            assert_allclose(found, 7 * unit, rtol=1e-5)


REFUSED = [
    (est.trimmed_mean, (np.zeros((2, 2)), 0.1), "x has shape (2, 2); it must be [n] with n >= 1: use vmap for leading "
     "axes"),
    (est.shorth_mean, (np.zeros(0), 0.1), "x has shape (0,); it must be [n] with n >= 1: use vmap for leading axes"),
    (est.krum, (np.zeros((2, 0)), 0), "points has shape (2, 0); it must be [N, p], N and p at least 1: use vmap for "
     "leading axes"),
    (est.coordinate_median, (np.zeros(3),), "points has shape (3,); it must be [N, p], N and p at least 1: use vmap "
     "for leading axes"),
    (est.local_mean, (np.zeros((1, 2)), 1.0, 1.0), "reports has shape (1, 2); it must be [n] with n >= 1: use vmap for "
     "leading axes"),
    (est.histogram_mean, (np.zeros(1), 1.0, 1.0, 0.5), "rewards has shape (1,): the two folds need at least two "
     "rewards"),
    *((est.median_of_means, (np.zeros(shape), np.zeros(groups, int), 1),
       f"points has shape {shape}, groups {groups}; they must be [N, p] and [N], N >= 1")
      for shape, groups in (((3,), (3,)), ((0, 2), (0,)), ((3, 2), (2,)), ((3, 2), (3, 1)))),
    (est.spectral_filter, (np.ones(2), np.ones(3), np.zeros(2, int), np.ones((1, 1)), 1.0),
     "arms has shape (2,); it must be that of reports, (3,)"),
    *((est.spectral_filter, (np.ones(shape), np.ones(3), np.zeros(3, int), np.ones((1, 1)), 1.0),
       f"uniforms has shape {shape}; it must be [m] with m >= 1, one a removal") for shape in ((0,), (2, 2))),
    (est.g_optimal_design, (np.ones((3, 2)),), "active has shape (2,); it must have one entry for each of 3 actions"),
    (est.geometric_median, (np.ones((3, 2)), np.zeros(3)), "weights are all 0: at least one point must have a positive "
     "weight"),
    (est.geometric_median, (np.ones((3, 2)), None, np.zeros(3)), "start has shape (3,); it must be (2,), a point"),
]  # fmt: skip
NAMES = {est.g_optimal_design: {"active": np.ones(2, bool)}}


@pytest.mark.parametrize("function, given, message", REFUSED)
def test_what_is_refused(function, given, message):
    names = dict(zip(["weights", "start"], given[1:], strict=False)) if function is est.geometric_median else {}
    given = given[:1] if names else given
    with pytest.raises(ValueError) as refused:
        function(*given, **names, **NAMES.get(function, {}))
    assert str(refused.value) == message
