"""Private running sums: forms against their matrices, noise against its draws, privacy, limits, bad arguments."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_draws import NumpyDraws
from uncompiled import uncompiled

from jaxbandits import mechanisms, theory
from jaxbandits.mechanisms.counters import blt, k_ary, nodes, toeplitz
from jaxbandits.random import Draws

FORMS = ("blt", "tree", "honaker", "square_root", "banded", "k_ary")
NORMAL = FORMS[:-1]
SIZES = (1, 2, 3, 5, 13, 16, 31, 40)


# ---------------------------------------------------------------- matrices: L of the noise, R of the sensitivity


def square_root_column(n):
    return np.array([math.comb(2 * k, k) / 4**k for k in range(n)])


def lower_toeplitz(column):
    n = len(column)
    return np.array([[column[t - i] if i <= t else 0.0 for i in range(n)] for t in range(n)])


def tree_matrices(n):
    """Nodes by level and place: L picks those of t's bits, R says which messages a node holds."""
    nodes = [(level, start) for level in range(n.bit_length()) for start in range(0, n - 2**level + 1, 2**level)]
    right = np.array([[float(start <= i < start + 2**level) for i in range(n)] for level, start in nodes])
    left = np.zeros((n, len(nodes)))
    for t in range(1, n + 1):
        start = 0
        for level in reversed(range(n.bit_length())):
            if t >> level & 1:
                left[t - 1, nodes.index((level, start))] = 1
                start += 2**level
    return left, right


def honaker_covariance(n):
    """Of all releases, where every node, left or right, is estimated from all noise below it."""
    levels = n.bit_length()
    whole = 2**levels
    names = {}
    for level in range(levels + 1):
        for start in range(0, whole, 2**level):
            names[level, start] = len(names)

    def raw(level, start):
        z = np.zeros(len(names))
        z[names[level, start]] = 1
        if level:
            z = z + (raw(level - 1, start) + raw(level - 1, start + 2 ** (level - 1))) / 2
        return z

    rows = []
    for t in range(1, n + 1):
        start, row = 0, np.zeros(len(names))
        for level in reversed(range(levels)):
            if t >> level & 1:
                row = row + raw(level, start) / (2 - 2.0**-level)
                start += 2**level
        rows.append(row)
    return np.array(rows) @ np.array(rows).T


def matrices(form, n, count):
    """L and R, built from what the form is."""
    A = np.tril(np.ones((n, n)))
    if form == "square_root":
        L = lower_toeplitz(square_root_column(n))
        return L, L
    if form == "banded":
        bands = min(256, n)
        R = lower_toeplitz(np.where(np.arange(n) < bands, square_root_column(n), 0))
        return A @ np.linalg.inv(R), R
    if form == "blt":
        gaps = blt.gaps_of(n, 4, "max")
        theta, zeta = 1 - gaps.theta, 1 - gaps.zeta
        others = [np.delete(theta, i) for i in range(len(theta))]
        omega = [np.prod(own - zeta) / np.prod(own - other) for own, other in zip(theta, others, strict=True)]
        R = lower_toeplitz([1.0] + [float(np.dot(omega, theta ** (k - 1))) for k in range(1, n)])
        return A @ np.linalg.inv(R), R
    if form == "tree":
        return tree_matrices(n)
    if form == "honaker":
        L = np.linalg.cholesky(honaker_covariance(n))
        return L, np.linalg.solve(L, A)
    raise AssertionError(form)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("form", NORMAL)
def test_deviations_and_the_column_norm_are_those_of_the_matrices(form, n):
    count = mechanisms.counter(form, horizon=n)
    L, R = matrices(form, n, count)
    np.testing.assert_allclose(L @ R, np.tril(np.ones((n, n))), atol=1e-9)
    np.testing.assert_allclose(count.deviation(np.arange(1, n + 1)), np.linalg.norm(L, axis=1), rtol=1e-8)
    assert count.column_norm == pytest.approx(np.linalg.norm(R, axis=0).max(), rel=1e-8)


@pytest.mark.parametrize(("n", "arity"), [(1, 3), (13, 3), (40, 3), (40, 5), (30, 7)])
def test_blocks_of_k_ary_numbers(n, arity):
    """Blocks laid out by hand: how many a sum needs, and in how many used ones a message lies."""
    h = k_ary.height(n, arity)
    count = mechanisms.counter("k_ary", horizon=n, arity=arity)
    used = {}
    for t in range(1, n + 1):
        left, place, blocks = t, 0, []
        for level in reversed(range(h)):
            size = arity**level
            digit = round(left / size) if level else left  # |what is left| <= (size - 1) / 2
            for j in range(abs(digit)):
                start = place + j * size if digit > 0 else place - (j + 1) * size
                blocks.append((level, start, math.copysign(1, digit)))
            place, left = place + digit * size, left - digit * size
        assert left == 0
        row = np.zeros(3 * arity**h)
        for level, start, sign in blocks:
            row[start + arity**h : start + arity**level + arity**h] += sign
            used[level, start] = True
        np.testing.assert_array_equal(row[arity**h :], (np.arange(2 * arity**h) < t).astype(float))
        assert count.deviation(t) == pytest.approx(math.sqrt(2 * len(blocks)))
    most = max(sum(start <= i < start + arity**level for level, start in used) for i in range(n))
    assert most <= count.column_norm == h


def run(count, n, shape=(), dtype="float64", scale=1.0, values=None, evaluated=uncompiled):
    """Releases after every message [n, *shape]."""
    values = np.zeros((n, *shape)) if values is None else values
    with jax.enable_x64(dtype == "float64"):

        def releases(scale, t, values):
            draws = Draws(jnp.uint32(0), "noise", values.dtype.type)

            def step(state, given):
                t, value = given
                state = count.add(count.params, state, value, draws, t)
                return state, count.release(count.params, state, scale)

            return jax.lax.scan(step, count.init(shape, values.dtype), (t, values))[1]

        t = np.arange(1, n + 1, dtype=np.int32)
        return np.asarray(evaluated(releases)(np.asarray(scale, dtype), t, values.astype(dtype)))


def normals(n, shape=()):
    return NumpyDraws(0, "noise").normal(np.arange(1, n + 1), shape)


@pytest.mark.parametrize("form", NORMAL)
def test_the_noise_is_made_of_the_draws_as_the_matrix_says(form):
    n, shape = 37, (2, 3)
    count = mechanisms.counter(form, horizon=n)
    z, L = normals(n, shape), matrix_of_draws(form, n)
    np.testing.assert_allclose(run(count, n, shape), np.einsum("ti,iab->tab", L, z), atol=1e-9)


def matrix_of_draws(form, n):
    if form == "tree":  # a node's draw is that of its last message
        return np.array([[float(i in _last_messages(t)) for i in range(1, n + 1)] for t in range(1, n + 1)])
    if form == "honaker":  # lower triangular, with the covariance of the full tree
        return np.linalg.cholesky(honaker_covariance(n))
    return matrices(form, n, None)[0]


def _last_messages(t):
    """The last message of every node in the sum of t."""
    found = []
    while t:
        found.append(t)
        t &= t - 1
    return found


def test_the_tree_has_the_bits_it_had():
    n, shape = 30, (4,)
    count = mechanisms.counter("tree", horizon=n)
    old = mechanisms.tree(n, shape)
    z, want, release = normals(n, shape), [], uncompiled(old.release)
    with jax.enable_x64(True):
        state = uncompiled(lambda: old.init(jnp.float64))()
        for t in range(1, n + 1):
            state, noise = release(state, np.int32(t), z[t - 1])
            want.append(noise)
    np.testing.assert_array_equal(run(count, n, shape), np.asarray(want))


def test_laplace_noise_of_k_ary_numbers_has_its_variance_and_is_shared():
    n, lanes = 40, 4000
    count = mechanisms.counter("k_ary", horizon=n, arity=5)  # digits up to 2

    def lane(seed):
        draws = Draws(seed, "noise")

        def step(state, t):
            state = count.add(count.params, state, jnp.float32(0), draws, t)
            return state, count.release(count.params, state)

        return jax.lax.scan(step, count.init((), jnp.float32), jnp.arange(1, n + 1, dtype=jnp.int32))[1]

    noise = np.asarray(jax.jit(jax.vmap(lane))(jnp.arange(lanes, dtype=jnp.uint32)))
    want = count.deviation(np.arange(1, n + 1)) ** 2
    np.testing.assert_allclose(noise.var(0), want, rtol=0.2)
    # sums of 14 and 15 share blocks of 5, and their noise
    assert np.cov(noise[:, 13], noise[:, 14])[0, 1] == pytest.approx(_shared(14, 15, 5), rel=0.25, abs=0.3)
    assert _shared(14, 15, 5) == 6


def test_laplace_noise_of_k_ary_numbers_by_hand():
    """Base 3: 1, 3 - 1, 3 and 3 + 1; what is taken has noise of its own."""
    count = mechanisms.counter("k_ary", horizon=4, arity=3)

    class Told:  # 100 t + 10 level, and 1 more for a block that is taken
        def laplace(self, t, shape):
            level, side = jnp.indices(shape, jnp.int32)[:2]
            return (100 * t + 10 * level + side).astype(jnp.float32)

    @uncompiled
    def released(t):
        def step(state, t):
            state = count.add(count.params, state, jnp.float32(0), Told(), t)
            return state, count.release(count.params, state)

        return jax.lax.scan(step, count.init((), jnp.float32), t)[1]

    assert released(np.arange(1, 5, dtype=np.int32)).tolist() == [100, 210 - 101, 210, 210 + 400]


def _shared(s, t, arity, h=4):
    """Covariance of the noises of two sums: 2 for every signed block that both use."""

    def blocks(t):
        left, place, found = t, 0, {}
        for level in reversed(range(h)):
            size = arity**level
            digit = round(left / size) if level else left
            for j in range(abs(digit)):
                start = place + j * size if digit > 0 else place - (j + 1) * size
                found[level, start, digit > 0] = math.copysign(1, digit)
            place, left = place + digit * size, left - digit * size
        return found

    first, second = blocks(s), blocks(t)
    return sum(2 * sign * second[block] for block, sign in first.items() if block in second)


@pytest.mark.parametrize("form", FORMS)
def test_without_noise_the_sum_is_exact_and_beyond_the_horizon_nothing_is_added(form):
    count = mechanisms.counter(form, horizon=9)
    values = np.random.default_rng(0).normal(size=(12, 2, 2))
    found = run(count, 12, (2, 2), scale=0.0, values=values)
    np.testing.assert_allclose(found[:9], np.cumsum(values[:9], 0), rtol=1e-12)
    np.testing.assert_array_equal(found[9:], found[[8, 8, 8]])
    noisy = run(count, 12, (2, 2), scale=2.0, values=values)
    np.testing.assert_array_equal(noisy[9:], noisy[[8, 8, 8]])
    once, twice = (run(count, 9, (2, 2), scale=s, values=values[:9]) - found[:9] for s in (1.0, 2.0))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-9, atol=1e-12)  # one noise for every scale


@pytest.mark.compiles(20)  # one release, each operation by itself
def test_scales_may_differ_between_entries_and_before_the_first_message_there_is_nothing():
    count = mechanisms.counter(horizon=5)
    release = uncompiled(lambda state, scale: count.release(count.params, state, scale))
    state = uncompiled(lambda: count.init((3,), jnp.float32))()
    np.testing.assert_array_equal(release(state, np.float32(1)), 0)
    add = uncompiled(lambda state, x: count.add(count.params, state, x, Draws(jnp.uint32(1)), jnp.int32(1)))
    state = add(state, np.ones(3, np.float32))
    scaled = release(state, np.array([0.0, 1.0, 3.0], np.float32))
    unit = release(state, np.float32(1))
    np.testing.assert_allclose(scaled, [1.0, unit[1], 1 + 3 * (unit[2] - 1)], rtol=1e-6)
    with jax.debug_nans(True):  # operation by operation, so that none in between is NaN
        np.testing.assert_array_equal(count.release(count.params, jax.tree.map(jnp.asarray, state), 0.0), 1)


def test_sums_of_decays_by_their_matrices():
    """Two buffers, in closed form and from R = 1 + sum_i omega_i theta_i^(k - 1) and L = A R^-1."""
    q = np.array([0.0, math.log(0.3), -1e-9, math.log(0.9)])
    for number in (1, 2, 7):
        np.testing.assert_allclose(blt.powers_summed(q, number), sum(np.exp(q) ** k for k in range(number)), rtol=1e-9)
    gaps = blt.Gaps(np.array([0.05, 0.4]), np.array([0.2, 0.7]))
    omega = [(0.2 - 0.05) * (0.7 - 0.05) / (0.4 - 0.05), (0.2 - 0.4) * (0.7 - 0.4) / (0.05 - 0.4)]
    np.testing.assert_allclose(blt.strengths(gaps), omega)
    for n in (1, 2, 3, 12):
        column = np.array([1.0] + [omega[0] * 0.95**k + omega[1] * 0.6**k for k in range(n - 1)])
        np.testing.assert_allclose(blt.coefficients(gaps, n), column)
        R, A = lower_toeplitz(column), np.tril(np.ones((n, n)))
        variance = np.sum((A @ np.linalg.inv(R)) ** 2, axis=1)
        np.testing.assert_allclose(blt.release_variance(gaps, np.arange(1, n + 1)), variance)
        assert blt.mean_squared_deviation(gaps, n) == pytest.approx(variance.mean())
        assert blt.column_norm_squared(gaps, n) == pytest.approx(column @ column)
        for k, b in ((1, 1), (2, 1), (3, 2), (9, 4)):
            joint = R[:, : k * b : b].sum(1)
            assert blt.column_norm(column, k, b) == pytest.approx(np.linalg.norm(joint))
            for error, squared in (("max", variance[-1]), ("mean", variance.mean())):
                assert blt.loss(gaps, n, error, k, b) == pytest.approx(np.linalg.norm(joint) * math.sqrt(squared))
    none = blt.Gaps(np.zeros(0), np.zeros(0))  # fresh noise for every message
    assert blt.coefficients(none, 3).tolist() == [1, 0, 0] and blt.column_norm_squared(none, 9) == 1
    assert blt.weights(blt.Gaps(np.array([0.0, 0.4]), np.array([0.2, 0.7])))[0] == 0  # a sum that does not decay


@pytest.mark.parametrize("given", [(20, 2, "max"), (20, 2, "mean"), (300, 3, "mean", 1, 7)])
def test_optimised_gaps_are_a_minimum(given):
    gaps = blt.gaps_of(*given)
    least = blt.loss(gaps, given[0], *given[2:])
    assert len(gaps.theta) == len(gaps.zeta) == given[1] and (np.diff(np.stack(gaps).T.ravel()) > 0).all()
    for side, i, factor in itertools.product((0, 1), range(given[1]), (0.97, 1.03)):
        moved = [np.array(x) for x in gaps]
        moved[side][i] *= factor
        more = blt.loss(blt.Gaps(*moved), given[0], *given[2:]) / least - 1
        assert 1e-9 < more < 1e-2


def test_which_gaps_are_used():
    for error in ("max", "mean"):
        table = blt.TABLES[error]
        first, last = min(table), max(table)
        for k in (first, first + 3, last):
            np.testing.assert_allclose(np.concatenate(blt.interpolate_gaps(2.0**k, error)), table[k])
        middle = np.sqrt(np.array(table[first + 3]) * np.array(table[first + 4]))
        np.testing.assert_allclose(np.concatenate(blt.interpolate_gaps(2 ** (first + 3.5), error)), middle)
        beyond = np.array(table[last]) ** 2 / np.array(table[last - 1])
        np.testing.assert_allclose(np.concatenate(blt.interpolate_gaps(2.0 ** (last + 1), error)), beyond)
        np.testing.assert_array_equal(blt.interpolate_gaps(5, error), blt.interpolate_gaps(2.0**first, error))
    tabled = lambda *given: np.array_equal(blt.gaps_of(*given), blt.interpolate_gaps(given[0], given[2]))
    assert tabled(5, 4, "max") and tabled(900, 4, "max") and tabled(512, 4, "mean")
    assert tabled(40, 4, "max", 3, 40) and not tabled(40, 4, "max", 3, 39) and not tabled(511, 4, "mean")
    assert [len(blt.gaps_of(n, 3, "max").theta) for n in (1, 2, 3, 4, 5)] == [0, 1, 2, 3, 3]
    np.testing.assert_array_equal(blt.gaps_of(20, 2, "max", 3, 20), blt.gaps_of(20, 2, "max"))  # it sends one message


def test_numbers_of_other_forms_by_hand(monkeypatch):
    # messages of a unit in the nodes of each level: 1 + 1 + 1 thrice and 2 + 1; five ones twice, 2 + 2 + 1, 3 + 2, 5
    assert nodes.joint_norm(13, 3, 4) == math.sqrt(3 * 3 + 2**2 + 1)
    assert nodes.joint_norm(16, 5, 3) == math.sqrt(5 + 5 + (4 + 4 + 1) + (9 + 4) + 25)
    assert nodes.joint_norm(13, 9, 7) == math.sqrt(3 * 2 + 2**2) and nodes.joint_norm(13, 9, 13) == 2
    honaker = mechanisms.counter("honaker", horizon=13, participations=9, separation=13)
    assert honaker.column_norm == mechanisms.counter("honaker", horizon=13).column_norm < 2
    assert mechanisms.counter("honaker", horizon=13, participations=2, separation=12).column_norm == nodes.joint_norm(
        13, 2, 12
    )
    monkeypatch.setattr(nodes, "EXACT_RELEASES", 12)
    assert nodes.honaker_norm(13) == 2 and nodes.honaker_norm(12) < 1.9
    for form, reach in (("square_root", 10), ("banded", 4)):
        column = np.where(np.arange(10) < reach, square_root_column(10), 0)
        count = mechanisms.counter(form, horizon=10, participations=9, separation=4)
        assert (
            count.column_norm == pytest.approx(np.linalg.norm(lower_toeplitz(column)[:, ::4].sum(1)))
            and count.size == reach
        )
    assert toeplitz.coefficients(1).tolist() == [1.0]
    assert (
        mechanisms.counter("banded", horizon=300).size
        == 256
        == mechanisms.counter("banded", horizon=300, bands=256).size
    )
    assert mechanisms.counter("banded", horizon=9, participations=2, separation=20).size == 9
    assert mechanisms.counter("square_root", horizon=1024).size == 1024
    # base 5, digits -2 to 2: numbers up to 2, 12 and 62
    assert [k_ary.height(n, 5) for n in (1, 2, 3, 12, 13, 62, 63)] == [1, 1, 2, 2, 3, 3, 4]
    assert k_ary.digit_sum(np.array([0, 1, 2, 3, 7, 12, 13]), 5, 3).tolist() == [0, 1, 2, 3, 3, 4, 5]
    for k, b, norm in ((1, 1, 3), (2, 13, 6), (9, 13, 6), (2, 40, 3), (40, 1, 75)):
        assert mechanisms.counter("k_ary", horizon=25, arity=5, participations=k, separation=b).column_norm == norm
    assert mechanisms.counter("k_ary", horizon=25, arity=5).size == 12
    for n, error in ((6, "max"), (300, "max"), (300, "mean"), (2**21, "max"), (2**21, "mean")):
        every = {}
        for arity in range(3, 64, 2):
            h = next(h for h in itertools.count(1) if (arity**h - 1) / 2 >= n)
            if n < 2**20:
                sums = k_ary.digit_sum(np.arange(1, n + 1), arity, h)
                squared = sums.max() if error == "max" else sums.mean()
            else:  # every digit at its end, or on average over all digits
                squared = h * (arity // 2) if error == "max" else h * np.abs(np.arange(arity) - arity // 2).mean()
            every[arity] = round(h * math.sqrt(squared), 12)
        assert k_ary.best_arity(n, error) == min(every, key=every.get)


REFUSED = [
    ({"form": "k_ary", "horizon": 9, "arity": 4}, r"^arity = 4 must be odd: its digits run from -\(arity - 1\) / 2 to"),
    ({"form": "k_ary", "horizon": 2**30, "arity": 63}, r"^arity = 63, horizon = 1073741824 counts beyond 2\^31"),
    ({"form": "banded", "horizon": None}, r"^horizon = None needs form in \('blt', 'honaker', 'tree'\), and form"),
    ({"form": "tree", "horizon": None, "participations": 2}, "^participations = 2 needs a horizon: give one$"),
    ({"form": "square_root", "horizon": 1025}, r"^horizon = 1025 is too long .* give at most 1024, or form='blt'"),
    ({"horizon": -1}, "horizon = -1"), ({"horizon": 2**30 + 1}, "horizon = 1073741825"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "match"), REFUSED)
def test_what_a_form_cannot_do_is_refused(given, match):
    with pytest.raises(ValueError, match=match):
        mechanisms.counter(**given)


def test_deviations_are_those_of_messages_there_are():
    count = mechanisms.counter(horizon=7)
    assert count.deviation(7) == count.deviation(np.array([3, 7]))[1] and isinstance(count.deviation(7), float)
    for t in (0, 8, 1.0, [], [1, 8], [0, 3], True):
        with pytest.raises(ValueError, match=r"must be whole numbers in \[1, 7\]"):
            count.deviation(t)
    assert mechanisms.counter("tree", horizon=None).deviation(2**30) == pytest.approx(math.sqrt(30 / 0.5 + 30 / 0.5))
    assert (
        mechanisms.counter("blt", horizon=None, buffers=2).size == 4 and mechanisms.counter("tree", horizon=9).size == 4
    )


def test_values_of_others():
    build, every = mechanisms.counter, lambda n: np.arange(1, n + 1)
    norm = lambda *form, **given: build(*form, **given).column_norm
    assert norm("square_root", horizon=64) == pytest.approx(1.54558989, abs=1e-8)
    assert norm("square_root", horizon=1000) == pytest.approx(1.80693195, abs=1e-8)
    assert norm("honaker", horizon=1000) == pytest.approx(2.92524479, abs=1e-8)
    assert build("honaker", horizon=100).deviation(7) == pytest.approx(1.49602648, abs=1e-8)
    assert norm("tree", horizon=1000) == pytest.approx(3.16227766, abs=1e-8)
    assert norm("banded", horizon=1000, bands=16) == pytest.approx(1.39423056, abs=1e-8)
    assert build("banded", horizon=1000, bands=16).deviation(1000) == pytest.approx(7.14926156, abs=1e-8)
    assert build("tree", horizon=1000, arity=4).column_norm == norm("tree", horizon=1000)  # which reads no arity
    assert k_ary.best_arity(1000, "max") == 13 and norm("k_ary", horizon=1000) == 3
    assert k_ary.best_arity(64, "mean") == 13 and norm("k_ary", horizon=64, error="mean") == 2
    # of 30: a digit of base 61 has sqrt(15.5) = 3.937 on average, two of base 9 2 sqrt(3.9) = 3.950, at most 2 sqrt(7)
    assert (norm("k_ary", horizon=30, error="mean"), norm("k_ary", horizon=30)) == (1, 2)
    assert build("k_ary", horizon=30, error="mean").size == 60
    assert build("k_ary", horizon=40, arity=3).deviation(5) == pytest.approx(2.44948974, abs=1e-8)
    for form, ratios in (
        ("blt", (1.85, 1.81)),
        ("honaker", (1.43, 1.37)),
        ("tree", (1.34, 1.32)),
    ):  # as the docstring says
        for n, ratio in zip((1000, 20_000), ratios, strict=True):
            known, unknown = build(form, horizon=n), build(form, horizon=None)
            largest = [count.column_norm * count.deviation(every(n)).max() for count in (unknown, known)]
            assert largest[0] / largest[1] == pytest.approx(ratio, abs=0.006)
    several = norm("square_root", horizon=256, participations=4, separation=16)
    assert several == pytest.approx(5.01105059, abs=1e-8)
    for given, want in (
        ({"horizon": 256, "buffers": 3}, 2.83183401), ({"horizon": 1000}, 3.26537953),
        ({"horizon": 4096, "buffers": 2}, 3.85130118),
        ({"horizon": 1024, "participations": 4, "separation": 256}, 7.67554745),
    ):  # fmt: skip
        count = build("blt", **given)
        assert count.column_norm * count.deviation(every(given["horizon"])).max() == pytest.approx(want, rel=1e-4)


def test_errors_at_equal_privacy():
    for form, n, largest, mean in (
        ("tree", 4096, 12.490, 8.832), ("honaker", 4096, 8.711, 6.160), ("square_root", 4096, 3.714, 3.551),
        ("banded", 4096, 6.458, 4.888), ("increment", 4096, 64.0, 45.26), ("tree", 64, 6.481, 4.594),
        ("honaker", 64, 4.808, 3.407),
    ):  # fmt: skip
        assert theory.counting_error(form, n) == pytest.approx(largest, abs=6e-3)
        assert theory.counting_error(form, n, "mean") == pytest.approx(mean, abs=6e-3)


@pytest.mark.parametrize("n", [10, 64, 100, 1000, 4096, 20_000, 100_000])
def test_the_buffered_form_is_between_the_lower_bound_and_half_of_the_tree(n):
    best = theory.counting_error("square_root", n)
    assert theory.counting_lower_bound(n) < best <= theory.counting_error("blt", n) * (1 + 1e-9)
    assert theory.counting_error("blt", n) <= best * 1.007
    assert theory.counting_error("blt", n, "mean") < theory.counting_error("blt", n)
    if n >= 64:
        assert theory.counting_error("blt", n) < 0.5 * theory.counting_error("tree", n)


def test_limits_of_one_form_are_other_forms():
    t = np.arange(1, 41)
    whole, banded = mechanisms.counter("square_root", horizon=40), mechanisms.counter("banded", horizon=40, bands=99)
    np.testing.assert_allclose(banded.deviation(t), whole.deviation(t), rtol=1e-9)
    assert banded.column_norm == pytest.approx(whole.column_norm)
    single = mechanisms.counter("banded", horizon=40, bands=1)
    np.testing.assert_allclose(single.deviation(t), np.sqrt(t), rtol=1e-9)
    assert single.column_norm == 1
    for form in FORMS:
        one = mechanisms.counter(form, horizon=1)
        assert one.column_norm == 1
        assert one.deviation(1) == pytest.approx(math.sqrt(2) if form == "k_ary" else 1)
        none = mechanisms.counter(form, horizon=0)
        assert (none.column_norm, none.size) == (0.0, 0)

        @uncompiled
        def released(value, none=none):
            state = none.init((), jnp.float32)
            state = none.add(none.params, state, value, Draws(jnp.uint32(0)), jnp.int32(1))
            return none.release(none.params, state)

        assert float(released(np.float32(3))) == 0


@pytest.mark.parametrize("form", NORMAL)
def test_a_longer_horizon_and_more_messages_of_a_unit_cost_more(form):
    norm = lambda n, k=1, b=1: mechanisms.counter(form, horizon=n, participations=k, separation=b).column_norm
    lengths = [norm(n) for n in (1, 2, 3, 8, 15, 16, 40, 100)]
    assert lengths == sorted(lengths)
    if form == "blt":  # its parameters follow the unit, so the error is what can be compared
        norm = lambda n, k, b=1: blt.loss(blt.gaps_of(n, 4, "max", k, b), n, "max", k, b)
        assert norm(100, 1) <= norm(100, 2, 10) <= norm(100, 4, 10) <= norm(100, 8, 10)
        assert norm(100, 4, 40) <= norm(100, 4, 10) <= norm(100, 4, 1)
    elif form != "banded":  # its bands follow from the separation
        assert norm(100, 1) <= norm(100, 2, 10) <= norm(100, 4, 10) <= norm(100, 8, 10)
        assert norm(100, 4, 40) <= norm(100, 4, 10) <= norm(100, 4, 1)


@pytest.mark.parametrize("form", ["square_root", "banded", "blt", "tree", "honaker"])
def test_no_pattern_of_a_unit_exceeds_the_column_norm(form):
    n, k, b = 13, 3, 4
    count = mechanisms.counter(form, horizon=n, participations=k, separation=b)
    if form == "blt":
        gaps = blt.gaps_of(n, 4, "max", k, b)
        R = lower_toeplitz(blt.coefficients(gaps, n))
    elif form == "banded":
        R = lower_toeplitz(np.where(np.arange(n) < b, square_root_column(n), 0))
    else:
        R = matrices(form, n, count)[1]
    patterns = [p for p in range(2**n) if bin(p).count("1") <= k]
    places = [[i for i in range(n) if p >> i & 1] for p in patterns]
    worst = max(np.linalg.norm(R[:, at].sum(1)) for at in places if all(y - x >= b for x, y in itertools.pairwise(at)))
    assert worst <= count.column_norm * (1 + 1e-9)
    if form in ("square_root", "banded", "blt"):
        assert worst == pytest.approx(count.column_norm, rel=1e-9)


@pytest.mark.parametrize(("form", "share"), [("blt", 0.5), ("honaker", 0.2), ("tree", 0.8)])
def test_an_unknown_horizon(form, share):
    count, n = mechanisms.counter(form, horizon=None, share=share), 31
    assert count.column_norm == 1
    assert count.deviation(511) == pytest.approx(math.sqrt(9 / share), abs=1e-8)  # nine totals
    assert count.deviation(1) == pytest.approx(math.sqrt(1 / share), abs=1e-8)
    # the matrix that the code applies to unit draws, one draw at a time
    z = normals(n)
    found = run(count, n)
    L = np.linalg.lstsq(*_many_runs(count, n), rcond=None)[0].T
    np.testing.assert_allclose(L @ z, found, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(L, axis=1), count.deviation(np.arange(1, n + 1)), rtol=1e-5)
    expected = np.zeros((n, n))
    for first in (1, 2, 4, 8, 16):  # a total from the last message of an epoch on, and before that a counter
        expected[2 * first - 2 :, 2 * first - 2] = 1 / math.sqrt(share)
        if inside := first - 1:
            R = matrices(form, inside, None)[1]
            at, norm = slice(first - 1, 2 * first - 2), np.linalg.norm(R, axis=0).max()
            expected[at, at] = norm / math.sqrt(1 - share) * matrix_of_draws(form, inside)
    np.testing.assert_allclose(L, expected, atol=1e-6)
    assert np.linalg.norm(np.linalg.solve(L, np.tril(np.ones((n, n)))), axis=0).max() <= 1 + 1e-6


def _many_runs(count, n, lanes=80):
    """Draws [lanes, n] and noises [lanes, n] of independent runs."""
    with jax.enable_x64(True):

        def lane(seed):
            draws = Draws(seed, "noise", jnp.float64)

            def step(state, t):
                state = count.add(count.params, state, jnp.float64(0), draws, t)
                return state, (draws.normal(t), count.release(count.params, state))

            return jax.lax.scan(step, count.init((), jnp.float64), jnp.arange(1, n + 1, dtype=jnp.int32))[1]

        return uncompiled(jax.vmap(lane))(np.arange(1, lanes + 1, dtype=np.uint32))


def test_an_unknown_horizon_costs_what_is_said():
    t = np.arange(1, 1001)
    for form, largest, mean in (("blt", 6.04, 5.50), ("tree", 12.7, 9.0)):
        deviation = mechanisms.counter(form, horizon=None).deviation(t)
        assert deviation.max() == pytest.approx(largest, rel=5e-3)
        assert math.sqrt(np.mean(deviation**2)) == pytest.approx(mean, rel=5e-3)


def test_an_unknown_horizon_has_the_noise_of_its_error():
    i = np.arange(1, 64)  # the messages of an epoch after the 63rd: six totals, and a counter of its own
    for error in ("max", "mean"):
        own = mechanisms.counter(horizon=63, error=error, buffers=2)
        found = mechanisms.counter(horizon=None, error=error, buffers=2).deviation(63 + i)
        np.testing.assert_allclose(found, np.sqrt(6 / 0.5 + (own.column_norm * own.deviation(i)) ** 2 / 0.5))


def test_gaps_that_rounding_eats_are_not_the_best():
    """At 2^21 releases the search tries gaps of 1e-40, whose powers hardly fall from first to last."""
    near, found = (mechanisms.counter(horizon=n, error="mean", buffers=1) for n in (2**21 - 2, 2**21 - 1))
    noise = [math.sqrt(np.mean((x.column_norm * x.deviation(np.arange(1, 2**21, 1009))) ** 2)) for x in (near, found)]
    assert noise[1] == pytest.approx(noise[0], rel=1e-3)


def test_long_runs_in_single_precision_lose_nothing():
    count, n = mechanisms.counter(horizon=100_000), 100_000
    single, double = (run(count, n, dtype=dtype, evaluated=jax.jit) for dtype in ("float32", "float64"))
    # the draws themselves differ in their last bits
    assert np.abs(single - double).max() <= 1e-3 * np.abs(double).max()
    assert np.abs((single - double)[-1000:].mean()) <= 1e-4


def test_two_horizons_share_a_program_and_coefficients_are_binomial():
    for form in ("blt", "tree", "honaker"):
        first, second = (mechanisms.counter(form, horizon=n) for n in (900, 1000))
        assert first.add is second.add and first.release is second.release
        assert jax.tree.structure(first.params) == jax.tree.structure(second.params)
    np.testing.assert_allclose(toeplitz.coefficients(30), square_root_column(30), rtol=1e-12)
    assert partial(theory.counting_error, "square_root")(7) == pytest.approx(float(np.sum(square_root_column(7) ** 2)))
