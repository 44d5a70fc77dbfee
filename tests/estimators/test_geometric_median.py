"""The geometric median and its company: against slow references, laws, certificates, and the step's own kernel."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt, others
from last_bits import assert_same
from numpy.testing import assert_allclose
from settings import FULLY_OPTIMIZED
from uncompiled import uncompiled

from jaxbandits import estimators as est
from jaxbandits.estimators.geometric_median import (
    _reach,
    certificate,
    geometric_median,
    middle_by_weights,
    middle_distance,
    plain_median,
    warm_median,
    warm_start,
)


def optimum(x, w):
    """Minimiser of sum w |z - x_i| to about 1e-15: a data point by optimality, else Weiszfeld to the end."""
    x, w = np.asarray(x, float), np.asarray(w, float) / np.sum(w)
    for j in range(len(x)):
        away = x[j] - x
        size = np.hypot.reduce(away, axis=1)
        same = size == 0
        if np.hypot.reduce((w[~same, None] * away[~same] / size[~same, None]).sum(0)) <= w[same].sum():
            return x[j]
    z = np.median(x, axis=0) + 1e-3 * np.median(np.abs(x - np.median(x, axis=0)))
    for _ in range(20_000):
        pull = w / np.hypot.reduce(x - z, axis=1)
        moved = pull @ x / pull.sum()
        if np.abs(moved - z).max() <= 1e-15 * np.abs(z).max():
            break
        z = moved
    return z


def excess(x, w, value):
    """g(value) - min g, the difference of distances taken without cancellation."""
    x, w, value = (np.asarray(a, float) for a in (x, w, value))
    best = optimum(x, w)
    total = np.hypot.reduce(x - value, axis=1) + np.hypot.reduce(x - best, axis=1)
    gain = ((value - best) * ((value - x) + (best - x))).sum(1)
    return (w / w.sum()) @ np.where(total > 0, gain / np.where(total > 0, total, 1), 0)


def problems(dtype):
    """400 problems: names, points [n, N, p], weights [n, N]; scales 1e-3 to 1e3, outliers to 1e29, any weights."""
    rng = np.random.default_rng(1)
    for kind in ("plain", "outliers", "weights", "few"):
        for n, p in [(2, 3), (5, 2), (7, 3), (20, 20)]:
            x = rng.normal(size=(25, n, p)) * 10.0 ** rng.integers(-3, 4, (25, 1, 1)) + rng.normal(size=(25, 1, p))
            w = np.ones((25, n))
            if kind == "outliers":
                x[:, : max(1, (n - 1) // 2)] *= 10.0 ** rng.integers(3, 30, (25, 1, 1))
            elif kind == "weights":
                w = rng.exponential(size=(25, n)) * (rng.random((25, n)) < 0.8) + 1e-9
            yield kind, x.astype(dtype), w.astype(dtype)


@functools.cache
def solver(few):
    def one(x, w):
        return geometric_median(x, weights=w, iterations=4 if few else 64)

    return uncompiled(jax.vmap(one)) if few else jax.jit(jax.vmap(one))  # the bound is for a device's rounding


@pytest.mark.parametrize("dtype", ["float32", *others(["float64"])])
def test_certificates_are_above_the_truth_and_near_it(dtype):
    with jax.enable_x64(dtype == "float64"):
        found = {}
        for kind, x, w in problems(dtype):
            solve = solver(kind == "few")
            for xs, ws, value, gap in zip(x, w, *(np.asarray(v) for v in solve(x, w)[::2]), strict=True):
                bulk = np.median(np.hypot.reduce(xs.astype(float) - value, axis=1))
                found.setdefault(kind, []).append((excess(xs, ws, value) / bulk, gap / bulk))
    assert sum(map(len, found.values())) == 400
    for kind, pairs in found.items():
        true, gap = np.array(pairs).T
        assert (true <= gap).all(), kind
        assert true.max() < (2e-4 if kind != "few" else 0.1), kind
        if kind != "few":
            assert np.median(gap) < (4e-6 if dtype == "float32" else 1e-13) and gap.max() < 6e-3, kind


def test_medians_of_float64_are_exact_to_twelve_digits():
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        x = rng.normal(size=(20, 15, 6))
        value = uncompiled(jax.vmap(partial(geometric_median, iterations=200)))(x).value
        wanted = np.array([optimum(one, np.ones(15)) for one in x])
    assert_allclose(value, wanted, rtol=0, atol=1e-12)


def test_certificates_of_the_two_hard_cases():
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        equal, bound = np.full(7, 1 / 7), uncompiled(lambda x, w, z: certificate(x, w, z, 1e-4))
        ratios = []
        for _ in range(200):  # a median at a data point, ten iterations: Weiszfeld is slow there
            x = rng.normal(size=(7, 3))
            best = optimum(x, np.ones(7))
            z = np.median(x, axis=0)
            if not (x == best).all(1).any():
                continue
            for _ in range(10):
                pull = 1 / np.maximum(1e-4, np.hypot.reduce(x - z, axis=1))
                z = pull @ x / pull.sum()
            ratios.append(float(bound(x, equal, z)) / excess(x, equal, z))
        assert len(ratios) >= 5 and min(ratios) >= 1 and np.median(ratios) < 3
    far = np.concatenate([rng.normal(size=(7, 3)), 1e30 * rng.normal(size=(3, 3))]).astype(np.float32)
    with jax.enable_x64(True):
        result = uncompiled(geometric_median)(far.astype(float))
        assert excess(far, np.ones(10), result.value) <= float(result.gap) < 1e-4
    assert float(uncompiled(geometric_median)(far).gap) < 1e-4


def lengths(x):
    return np.hypot.reduce(x, axis=-1)


def literal_certificates(x, w, z, smoothing, eps=8 * 2.0**-52):
    """(B17), (B18) and (B19) of docs/formulas/byzantine.md#certificates, each with what is added for rounding."""
    away, d = z - x, lengths(z - x)
    j = np.argmin(np.where(w > 0, d, np.inf))
    others, unit = np.arange(len(x)) != j, away / np.maximum(smoothing, d)[:, None]

    def cancel(rest):  # the direction of the nearest point, in the unit ball
        return -rest / max(w[j], lengths(rest), 1e-300)

    unit[j] = cancel(w[others] @ unit[others])
    unit = unit - w @ unit
    unit /= max(1, lengths(unit[w > 0]).max())
    first = max(0, w @ (d - (unit * away).sum(1)) + eps * w @ d)
    sets = [d <= edge for edge in d]
    reach = min(2 * w[s] @ d[s] / (2 * w[s].sum() - 1) for s in sets if w[s].sum() > 0.5 + 1e-12)
    there, exact = d == 0, away / np.where(d > 0, d, 1)[:, None]
    second = reach * (max(0, lengths(w[~there] @ exact[~there]) - w[there].sum()) + eps)
    rest = w[others] @ exact[others]
    cost = w[j] * (d[j] * (1 + eps) - cancel(rest) @ away[j])
    return first, second, reach * (max(0, lengths(rest) - w[j]) + eps) + cost


def certificate_cases():
    """Points, weights and a guess: near the median or not, at and beside data points, with far points and copies."""
    rng = np.random.default_rng(9)
    for n, p in ((2, 1), (5, 2), (9, 3)):
        for k in range(14):
            x, w = rng.normal(size=(n, p)), rng.exponential(size=n) * (rng.random(n) < 0.8) + 1e-3
            if k % 2:
                x[: (n - 1) // 2] *= 1e3
            if k % 3 == 0:
                x[-1] = x[-2]
            z = optimum(x, w) + 10.0 ** -(k // 2) * rng.normal(size=p) * (k < 12)
            yield x, w / w.sum(), x[-1] if k in (3, 10) else z


def test_each_certificate_is_what_its_formula_says():
    """Above the truth everywhere, and within five times of it in half of the cases."""
    bound, least, ratios = uncompiled(certificate), [], []
    with jax.enable_x64(True):
        for x, w, z in certificate_cases():
            wanted = literal_certificates(x, w, z, 1e-4)
            found = float(bound(x, w, z, 1e-4))
            assert_allclose(found, min(wanted), rtol=1e-9, atol=1e-14)
            least.append(int(np.argmin(wanted)))
            true = excess(x, w, z)
            assert true <= found
            ratios.append(found / true if true > 1e-14 else 1)
        assert set(least) == {0, 1, 2} and np.median(ratios) < 5
        # at the median itself, only what is added for rounding is left: eight units times g, or times the reach
        cross, eps = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]), 2.0**-52
        assert_allclose(bound(cross, np.full(4, 0.25), np.zeros(2), 1e-4), 8 * eps, rtol=1e-6)
        far = np.concatenate([cross, [[1e6, 0], [-1e6, 0]]])
        weights = np.array([0.2] * 4 + [0.1] * 2)
        assert_allclose(bound(far, weights, np.zeros(2), 1e-4), 8 * eps * 2 * 0.8 / 0.6, rtol=1e-6)
    d, w = np.float32([2, 100, 1, 0.5]), np.float32([0.35, 0.25, 0.4, 0])
    assert_allclose(uncompiled(_reach)(d, w), 2 * (0.4 + 0.7) / (2 * 0.75 - 1), rtol=1e-6)
    assert_allclose(uncompiled(_reach)(d[:1], np.float32([1])), 4)


def weighted_middle(x, w):
    order = np.argsort(x, kind="stable")
    x, upto = x[order][w[order] > 0], np.cumsum(w[order][w[order] > 0])
    if not len(x):
        return 0.0
    k = int(np.argmax(upto >= upto[-1] / 2))
    above = x[x > x[k]]
    return (x[k] + above[0]) / 2 if upto[x <= x[k]][-1] == upto[-1] / 2 and len(above) else x[k]


def weiszfeld(x, w, steps, start=None):
    """Steps about the coordinatewise median in units of the median distance from it, and the snap at the end."""
    w = w / w.sum()
    centre = np.array([weighted_middle(column, w) for column in x.T])
    unit = weighted_middle(lengths(x - centre), w) or lengths(x - centre)[w > 0].max() or 1.0
    x = (x - centre) / unit

    def step(z, smoothing):
        pull = w / np.maximum(smoothing, lengths(x - z))
        return pull @ x / pull.sum()

    z = step(np.zeros(x.shape[1]), 1.0) if start is None else (start - centre) / unit
    for _ in range(steps):
        z = step(z, 1e-4)
    near = x[np.argmin(np.where(w > 0, lengths(x - z), np.inf))]
    d = lengths(near - x)
    pull = w[d > 0] @ ((near - x)[d > 0] / d[d > 0][:, None])
    snapped = lengths(pull) <= w[d == 0].sum()
    return (near if snapped else z) * unit + centre, unit, (x, w, near if snapped else z), snapped


def test_the_first_steps_are_the_literal_ones():
    """Before they converge, with weights of which some are 0, from a start of their own or a given one."""
    rng, ended = np.random.default_rng(3), []
    with jax.enable_x64(True):
        for k in range(6):
            x, w = 3 * rng.normal(size=(6, 2)) + 10, rng.integers(0, 4, 6) + np.arange(6.0) // 5
            x[0] = 1e4 if k % 2 else x[1]
            if k == 5:  # half of the weight and more at one place
                x[:], x[0], w = x[1], [1.0, 30.0], np.ones(6)
            for steps, start in ((1, None), (2, np.array([9.0, 14.0])), (5, None)):
                given = dict(weights=w, iterations=steps, start=start)
                found = uncompiled(lambda x: geometric_median(x, **given))(x)  # noqa: B023
                value, unit, at, snapped = weiszfeld(x, w, steps, start)
                ended.append(snapped)
                assert_allclose(found.value, value, rtol=1e-11)
                assert_allclose(found.objective, w @ lengths(x - value) / w.sum(), rtol=1e-11)
                assert_allclose(
                    found.gap, min(literal_certificates(*at[:2], at[2], 1e-4)) * unit, rtol=1e-6, atol=1e-13
                )
        assert {*ended} == {True, False}
        x, w = 50 * rng.normal(size=(7, 3)), np.ones(7)
        for tolerance in (5.0, 0.3, 0.01):
            found = uncompiled(lambda x: geometric_median(x, tolerance=tolerance, iterations=7))(x)  # noqa: B023
            units = weiszfeld(x, w, 0)[1]
            gaps = [min(literal_certificates(*weiszfeld(x, w, k)[2], 1e-4)) * units for k in range(7)]
            steps = next((k for k in range(7) if gaps[k] <= tolerance), 7)
            assert_allclose(found.value, weiszfeld(x, w, steps)[0], rtol=1e-11)


def test_middles_without_sorting():
    rng = np.random.default_rng(4)
    for n in (1, 2, 5, 6, 9):
        x = rng.integers(0, 5, (n, 8)).astype(np.float32)
        w = rng.integers(0, 3, (n, 8)).astype(np.float32)
        wanted = [weighted_middle(*each) for each in zip(x.T, w.T, strict=True)]
        assert_allclose(uncompiled(middle_by_weights)(x, w), wanted)
        wanted = [np.median(each[on]) if on.any() else np.inf for each, on in zip(x.T, w.T > 0, strict=True)]
        assert_allclose(uncompiled(middle_distance)(x, w > 0), wanted)


def test_plain_medians():
    x, present = np.random.default_rng(5).normal(size=(9, 2)) + 5, np.arange(9) % 4 != 2
    x[2] = 1e6
    for steps, smoothing in ((0, 1e-8), (1, 1e-8), (3, 0.9)):
        z = x[present].mean(0)
        for _ in range(steps):
            pull = 1 / np.maximum(smoothing, lengths(x[present] - z))
            z = pull @ x[present] / pull.sum()
        with jax.enable_x64(True):
            found = uncompiled(partial(plain_median, iterations=steps, smoothing=smoothing))(x, present)
        assert_allclose(found, z, rtol=1e-12)
    assert uncompiled(plain_median)(np.float32(x), np.zeros(9, bool)).tolist() == [0, 0]
    exact = uncompiled(plain_median)(np.float32(x), present)
    assert_allclose(exact, optimum(x[present], np.ones(7)), rtol=1e-5)


def test_huge_points_are_made_smaller_and_all_results_larger_again():
    """Beyond 2^120. A power of two changes no digit."""
    x = np.random.default_rng(14).normal(size=(9, 3)).astype(np.float32)
    huge = np.float32(2.0**123)
    few = uncompiled(lambda x, start: geometric_median(x, start=start, iterations=2))
    loose = uncompiled(lambda x, tolerance: geometric_median(x, tolerance=tolerance))
    for median, given in ((few, np.float32([2, -1, 3])), (loose, np.float32(0.02))):
        for found, wanted in zip(median(huge * x, huge * given), median(x, given), strict=True):
            assert_allclose(found / huge, wanted, rtol=1e-6)


def test_by_hand():
    evaluated = uncompiled(lambda x, weights: geometric_median(x, weights=weights))

    def median(x, weights=None):
        x = np.asarray(x, np.float32)
        return evaluated(x, np.asarray(np.ones(len(x)) if weights is None else weights, np.float32))

    for point in ([3.0, -2.0], [1e30, 0.0], [0.0, 0.0]):  # all equal, and one alone
        for n in (1, 4):
            value, objective, gap = median([point] * n)
            assert value.tolist() == np.float32(point).tolist() and float(objective) == 0 == float(gap)
    x = np.array([[0.0, 0.0], [0.0, 0.0], [5.0, 1.0], [-3.0, 7.0]])  # two copies against two
    assert median(x).value.tolist() == [0.0, 0.0]
    assert median(np.array([[0.0], [1.0], [9.0]])).value.tolist() == [1.0]
    heavy = median(x, weights=[1.0, 0.0, 3.0, 1.0])
    assert heavy.value.tolist() == [5.0, 1.0] and float(heavy.objective) == pytest.approx((26**0.5 + 10) / 5)
    for size in (1e-60, 1e300):  # which only a host holds
        of_host = uncompiled(lambda x: geometric_median(x, weights=size * np.array([1.0, 0.0, 3.0, 1.0])))  # noqa: B023
        assert of_host(np.float32(x)).value.tolist() == [5.0, 1.0]
    # four of six weights in one place: neither what is far away and weighs nothing nor how small all is moves it
    most = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    for scale in (1.0, 1e-30):
        found = median([[1e30, 0.0], *scale * most[1:]], weights=[0.0, 1.0, 2.0, 2.0, 1.0])
        assert found.value.tolist() == [0.0, 0.0] and float(found.objective) == pytest.approx(scale * (5 + 2) / 6)
    line = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 6.0], [10.0, 20.0]])  # even split: g, not z
    assert float(median(line).objective) == pytest.approx(5**0.5 * (10 + 2) / 4, rel=1e-6)
    assert float(median(line).gap) < 1e-5
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert_allclose(median(square).value, [0, 0], atol=1e-6)
    assert_allclose(median(square * 1e-30).value * 1e30, [0, 0], atol=1e-6)
    assert_allclose(median(square * 1e35).objective, 2**0.5 * 1e35, rtol=1e-6)


def test_far_points_move_it_no_more_than_near_ones_in_the_same_direction():
    rng = np.random.default_rng(4)
    near = rng.normal(size=(9, 3)).astype(np.float32)
    directions = rng.normal(size=(3, 3)).astype(np.float32)
    median = uncompiled(geometric_median)
    values = [median(np.concatenate([near, s * directions]).astype(np.float32)).value for s in (1e6, 1e15, 1e30, 3e37)]
    for value in values[1:]:
        assert_allclose(value, values[0], atol=1e-5)
    lost = np.concatenate([near, np.full((3, 3), np.inf, np.float32)])
    with pytest.raises(ValueError, match="points"):
        geometric_median(lost)
    inside = median(lost)  # traced: nothing is refused
    assert_allclose(inside.value, median(near).value, atol=1e-5)
    nothing = median(lost[9:])
    assert nothing.value.tolist() == [0, 0, 0] and float(nothing.gap) == np.inf


def test_equivariance_weights_and_start():
    rng = np.random.default_rng(5)
    with jax.enable_x64(True):
        x, shift = rng.normal(size=(9, 4)), rng.normal(size=4)
        turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        median = uncompiled(geometric_median)
        value = median(x).value
        close = partial(assert_allclose, rtol=0, atol=1e-9)
        close(median(x + shift).value, value + shift)
        close(median(x @ turn.T).value, turn @ value)
        close(median(-1e5 * x).value, -1e5 * value, atol=1e-4)
        from_there = uncompiled(lambda x, start: geometric_median(x, start=start, iterations=150))
        close(from_there(x, x[3] + 5.0).value, value)
        repeats = rng.integers(1, 4, 9)
        weighted = uncompiled(lambda x, weights: geometric_median(x, weights=weights))
        close(weighted(x, repeats).value, median(np.repeat(x, repeats, axis=0)).value)


def test_snap_is_as_frequent_as_medians_at_data_points():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4000, 5, 2)).astype(np.float32)
    value = np.asarray(jax.jit(jax.vmap(geometric_median))(x).value)
    snapped = (value[:, None] == x).all(-1).any(1)
    away = x[:, :, None].astype(float) - x[:, None]
    size = np.sqrt((away**2).sum(-1))
    pull = (away / np.where(size > 0, size, 1)[..., None]).sum(2)
    wanted = (np.sqrt((pull**2).sum(-1)) <= 1).any(1)
    assert (snapped != wanted).mean() < 1e-3 and 0.2 < snapped.mean() < 0.3  # about 1/4


def test_tolerance_stops_early():
    x = np.random.default_rng(7).normal(size=(16, 9, 3)).astype(np.float32)
    loose, full = (uncompiled(jax.vmap(partial(geometric_median, tolerance=t)))(x) for t in (0.05, None))
    assert (loose.gap <= 0.05).all() and (loose.objective >= full.objective - 1e-6).all()
    assert np.abs(loose.value - full.value).max() > 1e-4
    alone = uncompiled(partial(geometric_median, tolerance=0.05))(x[3])
    assert_allclose(alone.value, loose.value[3], atol=1e-5)


@pytest.mark.parametrize("kernel", dealt(["geometric_median", "warm_median"], 3, always=["warm_median"]))
def test_lanes_do_not_see_each_other(kernel):
    x = np.random.default_rng(8).normal(size=(64, 10, 5)).astype(np.float32)
    start = uncompiled(lambda: warm_start(10, 5, jnp.float32))()
    function = geometric_median if kernel == "geometric_median" else lambda x: warm_median(x, start)

    def lanes(function, x):
        return jax.tree.map(np.asarray, jax.jit(function, compiler_options=FULLY_OPTIMIZED)(x))

    whole = lanes(jax.vmap(function), x)
    assert_same(lanes(jax.vmap(function), x[:9]), jax.tree.map(lambda a: a[:9], whole))
    nested = lanes(jax.vmap(jax.vmap(function)), x.reshape(4, 16, 10, 5))
    assert_same(nested[-1].ravel(), whole[-1].ravel())


def test_matrices_by_packing():
    rng = np.random.default_rng(9)
    m = rng.normal(size=(6, 3, 3))
    m = (m + np.swapaxes(m, 1, 2)).astype(np.float32)
    pack, unpack, median = uncompiled(est.pack), uncompiled(est.unpack), uncompiled(geometric_median)
    packed = pack(m)
    assert_allclose(np.linalg.norm(packed, axis=1), np.linalg.norm(m, axis=(1, 2)), rtol=1e-6)
    assert_allclose(unpack(packed), m, rtol=1e-6)
    of_integers = pack(np.array([[1, 3], [3, 2]]))
    assert_allclose(of_integers, [1, 3 * np.sqrt(2), 2], rtol=1e-6)
    assert_allclose(unpack(np.array([1, 3, 2])), [[1, 3 / np.sqrt(2)], [3 / np.sqrt(2), 2]], rtol=1e-6)
    whole = median(m.reshape(6, 9)).value.reshape(3, 3)
    assert_allclose(unpack(median(packed).value), whole, atol=2e-6)


def test_the_warm_kernel_is_the_literal_one():
    rng = np.random.default_rng(10)
    median = uncompiled(warm_median)
    masked = uncompiled(lambda x, last, present: warm_median(x, last, present=present))

    def start(n, *present):
        return uncompiled(lambda *present: warm_start(n, 4, jax.dtypes.canonicalize_dtype(float), *present))(*present)

    with jax.enable_x64(True):
        x = rng.normal(size=(10, 4)) + 3
        x[0] = 1e4
        last = start(10)
        weights, z = np.full(10, 0.1), np.zeros(4)
        for _ in range(3):  # three episodes of growing sums
            starts = (weights @ x, z)
            total = [np.linalg.norm(x - s, axis=1).sum() for s in starts]
            z = starts[int(np.argmin(total))]
            smoothing = 1e-4 * np.median(np.linalg.norm(x - z, axis=1))
            for _ in range(8):
                weights = 1 / np.maximum(smoothing, np.linalg.norm(x - z, axis=1))
                weights /= weights.sum()
                z = weights @ x
            last = median(x, last)
            assert_allclose(last.value, z, atol=1e-10)
            assert_allclose(last.weights, weights, atol=1e-12)
            x = x + rng.normal(size=(10, 4)) + 3
        present = np.arange(10) < 6
        part = masked(x, start(10, present), present)
        alone = median(x[:6], start(6))
        assert_allclose(part.value, alone.value, atol=1e-12)
        assert part.weights[6:].tolist() == [0.0] * 4
    equal = median(np.zeros((10, 4), np.float32), start(10))
    assert equal.value.tolist() == [0] * 4 and np.isfinite(equal.weights).all()


def test_random_groups_and_the_median_of_their_means():
    x = np.random.default_rng(11).normal(size=(12, 3)).astype(np.float32)
    group = np.arange(12) % 5
    means = np.array([x[group == g].mean(0) for g in range(5)])
    want = uncompiled(geometric_median)(np.float32(means)).value
    assert_allclose(
        uncompiled(lambda x: est.median_of_means(x, 2 * group, 10))(x), want, atol=1e-4
    )  # groups without points do not count
    u = np.random.default_rng(12).random((3000, 7)).astype(np.float32)
    groups = uncompiled(jax.vmap(lambda u: est.random_groups(u, 3)))(u)
    assert (np.sort([(groups == g).sum(1) for g in range(3)], axis=0).T == [2, 2, 3]).all()
    together = (groups[:, :1] == groups[:, 1:]).mean(0)  # 5 of 21 pairs share a group
    assert_allclose(together, 5 / 21, atol=4 * (5 / 21 * 16 / 21 / 3000) ** 0.5)
