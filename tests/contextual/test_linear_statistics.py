"""Linear bandits over users: published scales by hand, noise laws, trees, limits, claims.

Paths: test_ldp_contextual_reference.
"""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_draws import NumpyDraws
from reference.ldp_contextual.comparators import dyadic_nodes, simplified_nodes
from uncompiled import uncompiled

from jaxbandits import sweep
from jaxbandits.algorithms import jdp_linucb, ldp_linucb, linucb, uniform
from jaxbandits.algorithms.contextual.selection import ucb_width
from jaxbandits.algorithms.contextual.statistics import TREES, clip_pair, joint, local, tree_nodes
from jaxbandits.environments import contextual_linear
from jaxbandits.mechanisms import gaussian_scale
from jaxbandits.numerics.eliminations import symmetric_inverse
from jaxbandits.numerics.least_squares import ridge_scores
from jaxbandits.numerics.packed import MAX_UNROLLED_DIM, pairs
from jaxbandits.random import Draws
from jaxbandits.theory.linear_widths import moment_sensitivity

INF = math.inf
WORLD = partial(contextual_linear, num_arms=20, dim=4)
# as published
PUBLISHED = {"num_arms": 100, "dim": 5, "horizon": 20_000, "delta": 0.1, "preset": "reference"}
make_ldp, make_jdp = partial(ldp_linucb, **PUBLISHED), partial(jdp_linucb, **PUBLISHED)


def stream(seed, path):
    return Draws(np.uint32(seed), path)


def matrix(packed, dim):
    """[..., d (d + 1) / 2] -> [..., d, d]."""
    full = np.zeros((*packed.shape[:-1], dim, dim))
    for k, (i, j) in enumerate(pairs(dim)):
        full[..., i, j] = full[..., j, i] = packed[..., k]
    return full


def inverses(a):
    """Of matrices [n, d, d], in float32."""
    dim = a.shape[-1]
    if dim > MAX_UNROLLED_DIM:
        return uncompiled(jax.vmap(lambda m: symmetric_inverse(m, dim)))(a.astype(np.float32)).astype(float)
    packed = [a[:, i, j].astype(np.float32) for i, j in pairs(dim)]
    return matrix(np.stack(uncompiled(lambda m: symmetric_inverse(m, dim))(packed), -1).astype(float), dim)


@pytest.mark.parametrize("dim", [1, 2, 5, 8, 9, 12])
def test_inverse_of_an_indefinite_matrix(dim):
    rng = np.random.default_rng(dim)
    a = rng.normal(size=(200, dim, dim))
    a = a + a.transpose(0, 2, 1)
    a = a[np.linalg.cond(a) < 30]
    assert (np.linalg.eigvalsh(a)[:, 0] < 0).any()
    error = np.abs(inverses(a) @ a - np.eye(dim)).max((1, 2))
    assert np.median(error) < 1e-4  # without a choice of pivots a small one costs digits
    definite = a @ a
    np.testing.assert_allclose(inverses(definite) @ definite, np.broadcast_to(np.eye(dim), a.shape), atol=5e-3)


@pytest.mark.parametrize("dim", [3, 9])
def test_singular_matrices_give_finite_inverses(dim):
    ones = np.ones((dim, dim))
    assert np.all(np.isfinite(inverses(np.stack([ones, 0 * ones, -ones, 1e30 * ones]))))


def test_reference_scales_and_widths_by_hand():
    p = make_ldp(epsilon=1.0, feature_norm=math.sqrt(2)).params
    s = 1.7941225779941015  # sqrt(log 25)
    gamma = s * math.sqrt(100_000)
    np.testing.assert_allclose(p.statistics[:5], (s, s / math.sqrt(2), s, 2 * gamma, 0.0))
    width = math.sqrt(gamma * 5) + 0.5 * math.sqrt(5 * math.log(20_000 * (1 + 40_000 / gamma)))
    assert width_at(p.selection, 1) == pytest.approx(width) == pytest.approx(width_at(p.selection, 20_000))
    for epsilon in (0.2, 10.0):
        assert make_ldp(epsilon=epsilon).params.statistics.vector == pytest.approx(s / epsilon)
    p = make_jdp(epsilon=1.0).params
    s = math.sqrt(math.log(20_000)) * math.log(25)
    gamma = s * math.sqrt(5 * math.log(20_000))
    np.testing.assert_allclose(p.statistics[:5], (s, s / math.sqrt(2), s, 2 * gamma, 0.0))
    width = math.sqrt(5 * gamma) + 0.5 * math.sqrt(5 * math.log(20_000 * (1 + 20_000 / gamma)))
    assert width_at(p.selection, 7) == pytest.approx(width)


@pytest.mark.parametrize("t", [1, 100, 20_000])
def test_theory_scales_and_widths_by_hand(t):
    p = make_ldp(epsilon=0.5, preset="theory").params
    s = 4 * math.sqrt(2 * math.log(12.5)) / 0.5
    upsilon = s * math.sqrt(t) * (4 * math.sqrt(5) + 2 * math.log(400_000))
    np.testing.assert_allclose(p.statistics[:3], (s, s, s))
    assert p.statistics.ridge + p.statistics.ridge_root * math.sqrt(t) == pytest.approx(2 * upsilon)
    log = math.log(20_000)
    width = 2 * s * math.sqrt(5 * log) + (math.sqrt(3 * upsilon) + s * math.sqrt(5 * t / upsilon)) * 5 * log
    assert width_at(p.selection, t) == pytest.approx(width)

    p = make_jdp(epsilon=1.0, preset="theory").params
    assert p.statistics.ridge == pytest.approx(46_399, abs=0.5)  # docs/formulas/ldp_contextual.md#joint-privacy
    s, shift = 16 * 2 * math.log(40), p.statistics.ridge / 2  # sqrt(16 m) (L^2 + 1) log(4 / delta), m = 16
    np.testing.assert_allclose(p.statistics[:3], (math.sqrt(2) * s, s, s))
    tail = math.sqrt(5) + math.sqrt(2 * math.log(400_000))
    growth = 2 * math.log(20) + 5 * math.log(3 + t / (5 * shift))
    width = math.sqrt(3 * shift) + s * math.sqrt(16 / shift) * tail + 0.5 * math.sqrt(growth)
    assert width_at(p.selection, t) == pytest.approx(width)


width_of = uncompiled(ucb_width)


def width_at(selection, t):
    return float(width_of(jax.tree.map(np.float32, selection), np.float32(t)))


@pytest.mark.parametrize("preset, off", [("exact", math.sqrt(0.5)), ("reference", math.sqrt(0.5)), ("theory", 1.0)])
def test_what_a_user_reports(preset, off):
    """x x' and x y in the mean; Gaussian of the claimed covariance around it."""
    made = ldp_linucb(num_arms=5, dim=3, horizon=100, epsilon=1.0, preset=preset)
    x, p, plays = [0.6, 0.0, -0.8], made.params.statistics, 40_000
    feature = [np.full(plays, value, np.float32) for value in x]
    t, paid, draws = np.arange(1, plays + 1, dtype=np.int32), np.full(plays, 0.5, np.float32), stream(3, "alg/encode")
    encode = uncompiled(lambda p, t, feature, paid: local(3).encode(p, 1.0, draws, t, feature, paid, None))
    sums = encode(jax.tree.map(np.float32, p), t, feature, paid)
    sent = np.stack([*sums.gram, *sums.vector], -1)
    want = np.array([x[i] * x[j] for i, j in pairs(3)] + [0.5 * value for value in x])
    scale = np.array([1.0 if i == j else off for i, j in pairs(3)] + [1.0] * 3) * p.vector
    assert np.all(np.abs(sent.mean(0) - want) < 5 * scale / math.sqrt(plays))
    assert np.all(np.abs((np.cov(sent.T) / np.outer(scale, scale)) - np.eye(9)) < 5 * math.sqrt(2 / plays))


def test_clients_bound_what_they_report():
    feature = np.array([[3.0, 0.1, 0.0, np.nan, 1e30], [4.0, 0.1, 0.0, 0.5, np.inf]], np.float32)
    x, y = uncompiled(lambda x, y: clip_pair(list(x), y, 0.5))(feature, np.float32([2.0, 0.3, -1.0, np.nan, np.inf]))
    np.testing.assert_allclose(np.stack(x, -1), [[0.3, 0.4], [0.1, 0.1], [0, 0], [0, 0.5], [0.5, 0]], rtol=1e-6)
    np.testing.assert_allclose(y, [1.0, 0.3, 0.0, 0.0, 0.0], rtol=1e-6)


def noises(form, seed, horizon, entries):
    """Noise [n] of the sums at a play, from addressed nodes: a function of t."""
    draws = lambda path: NumpyDraws(seed, path, np.float32)
    if form == "simplified":
        drawn = draws("alg/init/noise").normal(np.arange(20), (entries,)).astype(float)
        return lambda t: drawn[: simplified_nodes(t - 1, horizon)].sum(0)
    drawn = draws("alg/update/noise").normal(np.arange(horizon + 1), (entries,)).astype(float)
    return lambda t: sum((drawn[(i + 1) << level] for level, i in dyadic_nodes(t - 1)), np.zeros(entries))


@pytest.mark.parametrize("form", ["binary", "simplified"])
def test_noise_of_the_sums_at_every_play(form):
    horizon = 24
    statistics = joint(2, form, tree_nodes(form, horizon))
    made = jdp_linucb(num_arms=5, dim=2, horizon=horizon, epsilon=1.0, preset="reference", tree=form)
    params = jax.tree.map(np.float32, made.params.statistics)
    noise_of, (_, _, noise) = noises(form, 5, horizon, entries=5), TREES[form](tree_nodes(form, horizon), 2)

    @uncompiled
    def step(params, state, t):
        feature, one, before = [jnp.zeros(1)] * 2, jnp.ones(1), noise(params, state.source, t - 1)
        message = statistics.encode(params, 1.0, stream(5, "alg/encode"), t[None], feature, one, None)
        state, released = statistics.update(params, 1.0, state, stream(5, "alg/update"), t, message, 1)
        return before, state, released, noise(params, state.source, t)

    state = uncompiled(lambda params: statistics.init(params, stream(5, "alg/init")))(params)
    for t in range(1, horizon + 1):
        before, state, released, drawn = step(params, state, np.int32(t))
        np.testing.assert_allclose(before, noise_of(t), atol=1e-5)
        np.testing.assert_allclose(released.vector, params.vector * np.array(drawn[3:]), rtol=1e-6)


def test_nodes_of_a_horizon_and_without_privacy_it_is_linucb():
    assert [tree_nodes("binary", t) for t in (2, 3, 4, 20_000)] == [2, 2, 3, 15]
    assert [tree_nodes("simplified", t) for t in (2, 3, 20, 21, 20_000)] == [1, 2, 3, 4, 10]
    for factory, preset in itertools.product((ldp_linucb, jdp_linucb), ("reference", "theory")):
        sizes = {"num_arms": 9, "dim": 4, "horizon": 50, "preset": preset}
        made, p = factory(epsilon=INF, **sizes).params, linucb(**sizes).params
        assert made.statistics[:4] == (0.0, 0.0, 0.0, p.ridge)
        for t in (1, 50):
            width = p.base + p.slope * math.sqrt(p.offset + math.log1p(p.growth * t))
            assert width_at(made.selection, t) == pytest.approx(width)


@pytest.mark.dealt(8)
def test_regret_falls_as_epsilon_rises():
    grid = {"epsilon": [1.0, 10.0, INF]}
    found = sweep(ldp_linucb, WORLD(), horizon=400, seeds=32, progress=False, grid=grid, checkpoints=4)
    low, middle, none = found.regret.values[0, :, :, -1].mean(-1)
    assert none < middle < low


def test_presets_share_a_program():
    assert make_ldp(epsilon=1.0).program is make_ldp(epsilon=INF, preset="theory", delta=0.01, feature_norm=2.0).program
    assert make_jdp(epsilon=1.0, tree="binary").program is make_jdp(epsilon=2.0, preset="theory").program
    assert make_jdp(epsilon=1.0).program is not make_jdp(epsilon=1.0, tree="binary").program


@pytest.mark.parametrize("factory", [ldp_linucb, jdp_linucb, partial(jdp_linucb, tree="binary")])
def test_mechanism_scale_zero_is_no_noise(factory):
    made = factory(num_arms=20, dim=3, horizon=20, epsilon=0.1)
    params, program = made.params._replace(mechanism_scale=0.0), made.program

    @uncompiled
    def play(params, seed):
        draws, t, context = Draws(seed, "alg"), jnp.ones(1, jnp.int32), jnp.ones((1, 20, 3)) / math.sqrt(3)
        state, arm = program.init(params, draws.child("init")), jnp.zeros(1, jnp.int32)
        message = program.encode(params, None, draws.child("encode"), t, context, arm, jnp.ones(1), None)
        return message, program.update(params, state, draws.child("update"), t[0], None, message, 1)[1]

    for seed in (0, 1):
        message, released = play(jax.tree.map(np.float32, params), np.uint32(seed))
        np.testing.assert_allclose(np.ravel(message.gram), 1 / 3, rtol=1e-6)
        if released:
            np.testing.assert_allclose(np.ravel(released.vector), 1 / math.sqrt(3), rtol=1e-6)
    assert made.guarantee.spend(params)[0] == INF


@pytest.mark.dealt(8)
@pytest.mark.parametrize("factory", [ldp_linucb, jdp_linucb])
def test_theory_presets_play_near_uniformly(factory):
    run = partial(sweep, environment=WORLD(), horizon=2000, seeds=8, progress=False, checkpoints=4)
    theory = run(partial(factory, preset="theory", epsilon=1.0)).regret.values[..., -1].mean()
    assert theory > 0.75 * run(uniform).regret.values[..., -1].mean()


def test_sensitivity_of_a_users_moments_by_search():
    rng = np.random.default_rng(0)
    for norm in (0.4, 1.0, math.sqrt(2)):
        for weight in (1.0, 2.0):
            x, z = norm * rng.normal(size=(2, 200_000, 2))
            x, z = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True) / norm, 1) for v in (x, z))
            y, w = rng.integers(0, 2, size=(2, 200_000, 1))
            gram = x[:, :, None] * x[:, None] - z[:, :, None] * z[:, None]
            change = np.sqrt((gram**2).sum((1, 2)) + weight * ((x * y - z * w) ** 2).sum(1)).max()
            bound = moment_sensitivity(norm, weight)
            assert 0.99 * bound < change <= bound * (1 + 1e-9)


def test_what_is_truly_spent():
    assert make_ldp(epsilon=1.0).guarantee[:2] == ("local", "user")
    for preset in ("reference", "theory"):
        made = make_ldp(epsilon=10.0, preset=preset)
        epsilon, delta = made.guarantee.spend(made.params)
        scale = gaussian_scale(math.sqrt(4.5), epsilon, delta, "analytic")
        assert made.params.statistics.vector == pytest.approx(scale)
    made = make_jdp(epsilon=10.0, preset="theory")  # 15 nodes of scale sqrt(2) s, squared sensitivity 8
    epsilon, delta = made.guarantee.spend(made.params)
    assert made.guarantee[:2] == ("central", "user") and 0 < epsilon < 1
    assert gaussian_scale(math.sqrt(4 * 15), epsilon, delta, "analytic") == pytest.approx(made.params.statistics.vector)
    made = make_jdp(epsilon=1.0, tree="binary")
    epsilon, delta = made.guarantee.spend(made.params)
    scale = gaussian_scale(math.sqrt(4.5 * 15), epsilon, delta, "analytic")
    assert made.params.statistics.vector == pytest.approx(scale)
    assert make_jdp(epsilon=1.0).guarantee.spend(make_jdp(epsilon=1.0).params)[0] == INF


def test_the_simplified_tree_tells_users_apart():
    """Two releases that share their noise: the difference is one user's report, exactly."""
    made = jdp_linucb(num_arms=5, dim=2, horizon=20, epsilon=0.1, preset="reference")
    params, statistics = jax.tree.map(np.float32, made.params.statistics), joint(2, "simplified", 3)

    @uncompiled
    def step(params, state, t):
        feature = [jnp.full(1, 0.6), jnp.full(1, 0.8)]
        message = statistics.encode(params, 1.0, None, None, feature, jnp.ones(1), None)
        return statistics.update(params, 1.0, state, None, t, message, 1)

    state, releases = uncompiled(lambda params: statistics.init(params, stream(1, "alg/init")))(params), []
    for t in (1, 2, 3, 4, 5):
        state, released = step(params, state, np.int32(t))
        releases.append(np.ravel(released.vector))
    assert np.abs(releases[1] - releases[0] - [0.6, 0.8]).max() > 0.1  # play 3 begins a level
    np.testing.assert_allclose(releases[4] - releases[3], [0.6, 0.8], atol=1e-4)  # plays 5 and 6 share one


def test_scores_where_a_pivot_vanishes():
    """Axes 0 and 1 change places, the others stay: the matrix is its own inverse. All numbers are powers of 2."""
    matrix = np.eye(9, dtype=np.float32)
    matrix[:2, :2] = [[0, 1], [1, 0]]
    x = np.eye(9, dtype=np.float32)[[0, 0]]
    x[1, 2] = 1
    found = uncompiled(ridge_scores)(matrix, np.eye(9, dtype=np.float32)[1], np.float32(0), x)
    np.testing.assert_allclose(found[0], [1, 1], atol=1e-6)
    np.testing.assert_allclose(found[1], [0, 1], atol=1e-6)
