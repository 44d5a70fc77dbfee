"""The filter against a literal float64 one fed the same uniforms, its law on four reports, edges, and lanes."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from last_bits import assert_same
from numpy_draws import NumpyDraws
from settings import FULLY_OPTIMIZED
from uncompiled import uncompiled

from jaxbandits.estimators import _top_eigenvector, spectral_filter
from jaxbandits.estimators._top_eigenvector import MIN_DIM_OF_PRODUCT
from jaxbandits.estimators.spectral_filter import block_size, filter_blocks, layout
from jaxbandits.random import Draws, to_uniform


def literal(uniforms, reports, arms, directions, bound):
    """Dense covariance, LAPACK's eigenvectors, flat inverse distribution function over the input order."""
    x = np.asarray(directions, float)[arms] * np.nan_to_num(np.asarray(reports, float), posinf=0, neginf=0)[:, None]
    keep, values = np.isfinite(reports), []
    for u in [*uniforms, None]:
        mean = x[keep].mean(0)
        apart = x[keep] - mean
        value, vector = np.linalg.eigh(apart.T @ apart / keep.sum())
        values.append(value[-1])
        if u is None or value[-1] < 4 * bound or value[-1] <= 0 or keep.sum() <= 1:
            return mean, keep, values
        score = np.cumsum(np.where(keep, ((x - mean) @ vector[:, -1]) ** 2, 0))
        keep[np.argmax(score > u * score[-1])] = False


@uncompiled
def filtered(uniforms, reports, arms, directions, bound):
    return spectral_filter(uniforms, reports, arms, directions, bound)


def problem(n, d, num_arms, share, outlier, seed=0):
    """Sorted arms, whitened directions, reports of unit noise of which a share is `outlier`."""
    rng = np.random.default_rng(seed)
    actions = rng.normal(size=(num_arms, d))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    arms = np.sort(rng.integers(num_arms, size=n))
    whitened = np.linalg.solve(np.linalg.cholesky(actions[arms].T @ actions[arms] / n), actions.T).T
    reports = actions[arms] @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=n)
    return rng.random(n), np.where(rng.random(n) < share, outlier, reports), arms, whitened


@pytest.mark.parametrize(
    "n, d, num_arms, share, outlier", [(300, 1, 1, 0.1, 10.0), (1000, 5, 8, 0.05, 20.0), (2000, 14, 28, 0.1, 30.0)]
)
def test_removes_what_the_literal_filter_removes(n, d, num_arms, share, outlier):
    given = problem(n, d, num_arms, share, outlier)
    mean, keep, values = literal(*given, 2.0)
    with jax.enable_x64(True):
        got = filtered(*given, 2.0)
        assert 3 < (~keep).sum() == int(got.num_removed)
        np.testing.assert_array_equal(got.keep, keep)
        np.testing.assert_allclose(got.mean, mean, atol=1e-12)
        np.testing.assert_allclose(got.eigenvalues[: len(values)], values, rtol=1e-9)
        assert np.isnan(got.eigenvalues[len(values) :]).all() and not bool(got.exhausted)


@jax.jit
def compiled(uniforms, reports, arms, directions, bound):
    return spectral_filter(uniforms, reports, arms, directions, bound)


@pytest.mark.parametrize("outlier", [1e6, 1e30, np.inf, -np.inf, np.nan])
def test_outliers_leave_the_estimate_alone(outlier):
    given = problem(400, 3, 5, 0.05, outlier, seed=3)
    mean, keep, _ = literal(*given, 2.0)
    got = compiled(*(np.asarray(x, np.float32) for x in given[:2]), *given[2:], 2.0)
    assert not np.asarray(got.keep)[~(np.abs(given[1]) < 1e5)].any()
    np.testing.assert_allclose(got.mean, mean, atol=1e-6)
    assert int(got.num_dropped) == (~np.isfinite(given[1])).sum()
    assert int(got.num_removed + got.num_dropped) == (~keep).sum()


def test_reports_in_any_order():
    """Equal uniforms remove what they remove of the reports sorted by arm, stably."""
    uniforms, reports, arms, directions = problem(400, 3, 5, 0.05, 30.0, seed=3)
    order = np.random.default_rng(0).permutation(400)
    given = np.float32(uniforms), np.float32(reports[order]), arms[order], directions, 2.0
    sort = np.argsort(arms[order], kind="stable")
    got, flat = compiled(*given), compiled(given[0], given[1][sort], given[2][sort], *given[3:])
    assert int(got.num_removed) > 3
    np.testing.assert_array_equal(np.asarray(got.keep)[sort], flat.keep)
    np.testing.assert_array_equal(got.mean, flat.mean)


def test_a_rotation_of_the_directions_removes_the_same():
    uniforms, reports, arms, directions = problem(400, 3, 5, 0.05, 30.0, seed=3)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    uniforms, reports = np.float32(uniforms), np.float32(reports)
    plain = compiled(uniforms, reports, arms, directions, 2.0)
    turned = compiled(uniforms, reports, arms, directions @ rotation.T, 2.0)
    assert int(plain.num_removed) > 3
    np.testing.assert_array_equal(plain.keep, turned.keep)
    np.testing.assert_allclose(rotation @ plain.mean, turned.mean, atol=1e-5)


def test_law_of_two_removals():
    """All ordered pairs of four reports, against exact enumeration by the literal formulas."""
    reports, arms = np.array([0.5, -1.5, 2.0, 3.0]), np.array([0, 1, 1, 2])
    directions = np.array([[1.0, 0.2], [-0.3, 1.0], [0.8, 0.7]])

    def scores(keep):
        x = (directions[arms] * reports[:, None])[keep]
        apart = x - x.mean(0)
        return (apart @ np.linalg.eigh(apart.T @ apart)[1][:, -1]) ** 2

    chance = {}
    for i, j in itertools.permutations(range(4), 2):
        left = [k for k in range(4) if k != i]
        first, second = scores(list(range(4))), scores(left)
        pair = tuple(sorted((i, j)))
        chance[pair] = chance.get(pair, 0) + first[i] / first.sum() * second[left.index(j)] / second.sum()
    lanes = 20_000
    run = jax.jit(jax.vmap(lambda s: spectral_filter(Draws(s), reports, arms, directions, 1e-9, max_removals=2).keep))
    keep = np.asarray(run(np.arange(lanes, dtype=np.uint32)))
    assert (keep.sum(1) == 2).all()
    statistic = sum(((~keep[:, p]).all(1).sum() - lanes * q) ** 2 / (lanes * q) for p, q in chance.items())
    assert statistic < 20.5  # chi-squared with five degrees of freedom: 0.1%


@pytest.mark.parametrize("d, num_arms", dealt([(3, 5), (MIN_DIM_OF_PRODUCT, 20)], 3))
def test_bits_do_not_depend_on_the_batch(d, num_arms):
    """Below and above the size from which matrix products are the library's."""
    uniforms, reports, arms, directions = problem(200, d, num_arms, 0.1, 15.0)
    reports = np.random.default_rng(1).permuted(np.tile(reports, (12, 1)), axis=1).astype(np.float32)

    def one(u, r):
        return spectral_filter(u, r, arms, directions, 2.0)

    compiled = partial(jax.jit, compiler_options=FULLY_OPTIMIZED)
    nested = compiled(jax.vmap(jax.vmap(one, (None, 0)), (None, 0)))
    u = uniforms.astype(np.float32)
    many = jax.tree.map(lambda x: np.asarray(x).reshape(12, *x.shape[2:]), nested(u, reports.reshape(3, 4, 200)))
    assert len(set(many.num_removed.tolist())) > 1
    assert_same(jax.tree.map(lambda x: x[7], many), jax.tree.map(np.asarray, compiled(one)(u, reports[7])))


def test_edges():
    one = np.ones((1, 1), np.float32)
    nothing = filtered(np.ones(3) / 2, np.array([np.nan, np.inf, -np.inf]), np.zeros(3, int), one, 1.0)
    assert float(nothing.mean[0]) == 0 and int(nothing.num_dropped) == 3 and not np.asarray(nothing.keep).any()
    four = np.ones(4) / 2, np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4, int)
    flat = filtered(*four, np.zeros((1, 2)), 0.0)
    assert int(flat.num_removed) == 0 and np.asarray(flat.mean).tolist() == [0, 0]
    plane = filtered(*four, np.array([[3.0, 4.0]]), 10.0)
    np.testing.assert_allclose(plane.mean, [7.5, 10.0], rtol=1e-6)  # rank one, eigenvalue 25 * 1.25 < 40
    given = problem(400, 3, 5, 0.05, 30.0, seed=3)
    capped = uncompiled(lambda *given: spectral_filter(*given, max_removals=4))(*given, 2.0)
    assert int(capped.num_removed) == 4 and bool(capped.exhausted) and capped.eigenvalues.shape == (5,)
    last = filtered(np.full(3, 0.5), np.array([1.0, 2.0, 4.0]), np.zeros(3, int), one, 0.0)
    assert int(last.num_removed) == 2 and int(last.keep.sum()) == 1


def test_which_report_goes_and_when():
    """Of 0, 0, 0, 4 the covariance is 3, and the squared deviations are 1, 1, 1, 9."""
    for bound, number in ((0.7499, 1), (0.75, 1), (0.7501, 0)):
        for u, gone in ((0.0, 0), (0.08, 0), (0.09, 1), (0.16, 1), (0.17, 2), (0.24, 2), (0.26, 3), (0.999, 3)):
            got = filtered(np.array([u]), np.float32([0, 0, 0, 4]), np.zeros(4, int), np.float32([[1]]), bound)
            assert got.keep.tolist() == [k != gone or not number for k in range(4)]
            assert got.num_removed == number and got.eigenvalues[0] == 3


def test_reports_are_cut_where_it_is_said():
    """At a million, or where the bound is larger than directions, at a million sqrt(bound) / (largest norm)."""
    cut = uncompiled(lambda x, u, bound: spectral_filter(Draws(1), x, np.array([0, 1]), u, bound, max_removals=0).mean)
    unit = np.float32([[0.6, 0.8], [3.0, 4.0]])
    norms_of_5 = (0.0, 1e6, unit), (4.0, 1e6, unit), (25.0, 1e6, unit), (100.0, 2e6, unit), (1e4, 2e7, unit)
    for bound, largest, directions in (*norms_of_5, (0.0, 1e6, unit / 10), (4.0, 4e6, unit / 10)):
        for sign in (1, -1):
            found = cut(np.float32([3e37 * sign, 0]), directions, bound)
            np.testing.assert_allclose(found, sign * largest * directions[0] / 2, rtol=1e-6)
            inside = np.float32([0.99 * largest * sign, 0])
            np.testing.assert_allclose(cut(inside, directions, bound), inside[0] * directions[0] / 2, rtol=1e-6)
    assert not cut(np.float32([1, 2]), np.zeros((2, 2), np.float32), 4.0).any()


def test_exhausted_says_whether_the_number_of_removals_ended_it():
    given = problem(60, 2, 3, 0.1, 30.0, seed=3)
    _, keep, values = literal(*given, 2.0)
    gone = int((~keep).sum())
    assert gone >= 3
    with jax.enable_x64(True):
        for most, uniforms in ((gone - 1, 60), (99, gone), (None, gone - 1)):
            run = uncompiled(lambda u, *rest: spectral_filter(u, *rest, max_removals=most))  # noqa: B023
            got = run(given[0][:uniforms], *given[1:], 2.0)
            least = min(uniforms, 60 if most is None else most)
            assert int(got.num_removed) == min(gone, least) and bool(got.exhausted) == (least < gone)
            assert got.eigenvalues.shape == (min(least, 60) + 1,)
            np.testing.assert_allclose(got.eigenvalues[: min(gone, least) + 1], values[: least + 1], rtol=1e-9)


def test_a_stream_gives_the_uniforms_of_a_play():
    _, reports, arms, directions = problem(64, 2, 1, 0.1, 30.0, seed=3)
    blocks = reports.reshape(8, 8), np.arange(64).reshape(8, 8) % 9 != 4, np.zeros(8, np.int32)
    uniforms = uncompiled(lambda t: jnp.stack([to_uniform(Draws(7, "x").at(t, k), jnp.float64) for k in range(20)]))
    run = uncompiled(lambda t: filter_blocks(Draws(7, "x", jnp.float64), t, *blocks, directions, 0.2, history=3))
    by_given = uncompiled(lambda u: filter_blocks(u, 3, *blocks, directions, 0.2, max_removals=20))
    with jax.enable_x64(True):
        for t in (0, 5):
            got, wanted = run(t), by_given(uniforms(t))
            assert got.num_removed > 3 and got.eigenvalues.shape == (3,) and not got.keep[~blocks[1]].any()
            np.testing.assert_array_equal(got.keep, wanted.keep)
            np.testing.assert_allclose(got.eigenvalue, wanted.eigenvalue)
            left = directions[arms] * reports[:, None]
            np.testing.assert_allclose(got.mean, left[np.ravel(got.keep)].mean(0))


def test_blocks_hold_the_reports_of_one_arm_in_their_order():
    sizes = {1: 8, 2: 8, 64: 8, 65: 16, 256: 16, 1024: 32, 1025: 64, 65_536: 256, 10**6: 256}
    assert {n: block_size(n) for n in sizes} == sizes
    for arms, num_arms, size in (([2, 0, 2, 2, 4, 0, 2, 2, 2], 5, 2), ([0] * 7, 3, 3), ([1] * 6, 2, 3), ([3], 4, 8)):
        place, block_arm = uncompiled(lambda x: layout(x, num_arms, size))(np.array(arms))  # noqa: B023
        assert len(block_arm) == len(arms) // size + num_arms and len(set(place.tolist())) == len(arms)
        assert block_arm[place // size].tolist() == arms
        free = iter(place[np.argsort(arms, kind="stable")])
        for arm in sorted(set(arms)):
            own = [next(free) for _ in range(arms.count(arm))]
            assert own == [*range(own[0], own[0] + len(own))] and own[0] % size == 0


@pytest.mark.parametrize("dim", [1, 3, 14])
def test_top_eigenvector_without_tiles(dim):
    """All lanes at once give the bits of tiles, where these are elementwise too."""
    rng = np.random.default_rng(dim)
    weights, directions = rng.random((4, 64)), rng.normal(size=(4, dim, 64))
    mean, wanted = rng.normal(size=(dim, 64)), rng.random(64) < 0.9
    given = *(jnp.asarray(x, jnp.float32) for x in (weights, directions, 0.1 * mean)), jnp.asarray(wanted)
    found = [partial(_top_eigenvector.top_eigenvector, tiles=tiles) for tiles in (True, False)]
    products = ["dot_general" in str(jax.make_jaxpr(function)(*given)) for function in found]
    assert products == [dim >= MIN_DIM_OF_PRODUCT, False]  # the library's, which no kernel may call
    tiled, whole = (np.asarray(jax.jit(function)(*given)) for function in found)
    if dim < MIN_DIM_OF_PRODUCT:
        np.testing.assert_array_equal(whole, tiled)
    else:  # the library's product rounds in another way
        np.testing.assert_allclose(whole[:, wanted], tiled[:, wanted], atol=1e-5)


def test_a_stream_is_read_at_play_0():
    _, *given = problem(64, 2, 3, 0.1, 30.0, seed=3)
    uniforms = (NumpyDraws(7, "x").at(0, np.arange(64)) + 0.5) / 2**32
    _, keep, _ = literal(uniforms, *given, 0.2)
    with jax.enable_x64(True):
        got = uncompiled(lambda *x: spectral_filter(Draws(7, "x", jnp.float64), *x, 0.2))(*given)
    assert (~keep).sum() > 30
    np.testing.assert_array_equal(got.keep, keep)
