"""Maler against a literal float64 transcription of its formulas, its promises,
and the projection that its Newton experts need.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import others
from last_bits import KEPT, assert_same

import jaxbandits as jb
from jaxbandits.learners.maler import log_priors, num_pairs
from jaxbandits.sweeps.compilation.compiled import WIDE_VECTORS


def literal_projection(y, A, radius):
    """docs/formulas/ldp_contextual.md#projection: the root m by bisection, in the eigenbasis of A."""
    if np.linalg.norm(y) <= radius:
        return y
    values, basis = np.linalg.eigh(A)
    z = basis.T @ y
    low, high = 0.0, values[-1] * (np.linalg.norm(y) / radius - 1)
    for _ in range(200):
        m = (low + high) / 2
        low, high = (m, high) if np.sum((values * z / (values + m)) ** 2) > radius**2 else (low, m)
    return basis @ (values * z / (values + (low + high) / 2))


def literal_maler(gradients, horizon, D, G):
    """Predictions, the experts' points after each round, and how often a Newton expert left the ball."""
    d, diam, n = gradients.shape[1], 2 * D, math.ceil(0.5 * math.log2(horizon))
    eta, eta_c = 2.0 ** -np.arange(n + 1) / (5 * diam * G), 1 / (2 * G * diam * math.sqrt(horizon))
    i = np.arange(n + 1)
    prior = (1 + 1 / (n + 1)) / (3 * (i + 1) * (i + 2))
    log_pi, rho = np.log(np.concatenate([[1 / 3], prior, prior])), np.concatenate([[eta_c], eta, eta])
    b = min(1 / (4 * 7 / (25 * diam) * diam), 1) / 2
    x, A = np.zeros((2 * n + 3, d)), np.array([np.eye(d) / (b * diam) ** 2] * (n + 1))
    predictions, points, left = [], [], 0

    def radial(x):
        return x * min(1, D / max(np.linalg.norm(x), 1e-300))

    for t, g in enumerate(gradients, start=1):
        weights = np.exp(log_pi) * rho
        x_t = weights @ x / weights.sum()
        r = (x_t - x) @ g
        sc, ec = slice(1, n + 2), slice(n + 2, None)
        log_pi[0] -= -eta_c * r[0] + (eta_c * G * diam) ** 2
        log_pi[sc] -= -eta * r[sc] + eta**2 * G**2 * ((x_t - x[sc]) ** 2).sum(1)
        log_pi[ec] -= -eta * r[ec] + eta**2 * r[ec] ** 2
        log_pi -= log_pi.max() + np.log(np.exp(log_pi - log_pi.max()).sum())
        x[0] = radial(x[0] - diam / (G * math.sqrt(t)) * g)
        for k in range(n + 1):
            s, e = 1 + k, n + 2 + k
            slope = eta[k] * g + 2 * eta[k] ** 2 * G**2 * (x[s] - x_t)
            x[s] = radial(x[s] - slope / (2 * eta[k] ** 2 * G**2 * t))
            slope = eta[k] * g + 2 * eta[k] ** 2 * g * (g @ (x[e] - x_t))
            A[k] += np.outer(slope, slope)
            y = x[e] - np.linalg.solve(A[k], slope) / b
            left += np.linalg.norm(y) > D
            x[e] = literal_projection(y, A[k], D)
        predictions.append(x_t)
        points.append(x.copy())
    return np.array(predictions), np.array(points), left


def stream(seed, rounds, dim, bound, drift=0.5):
    """Gradients [rounds, dim] clipped to the bound, with a drift that takes experts out of the ball."""
    rng = np.random.default_rng(seed)
    g = bound * (0.4 * rng.normal(size=(rounds, dim)) + drift * rng.normal(size=dim) / math.sqrt(dim))
    return (g * np.minimum(1, bound / np.linalg.norm(g, axis=1, keepdims=True))).astype(np.float32)


def run(learner, gradients):
    """Predictions [rounds, d] and states after each round."""

    def play(state, g):
        new = learner.update(state, g)
        return new, (learner.predict(state), new)

    return jax.lax.scan(play, learner.init(), jnp.asarray(gradients))[1]


def points(state):
    """All experts' points, [..., E, d], in units of the radius."""
    return np.concatenate(
        [state.convex[..., None, :], np.swapaxes(state.strong, -1, -2), np.swapaxes(state.newton, -1, -2)], axis=-2
    )


@pytest.mark.parametrize(
    "dim, horizon, bound, G",
    [(5, 20_000, 1.0, 50.0), (3, 300, 2.0, 3.0), *others([(1, 300, 1.0, 1.0), (9, 300, 0.5, 1e4)])],
)
def test_follows_the_literal_transcription(dim, horizon, bound, G):
    gradients = stream(1, 300, dim, G)
    learner = jb.learners.maler(dim=dim, horizon=horizon, theta_bound=bound, gradient_bound=G)
    ours, states = jax.jit(partial(run, learner))(gradients)
    theirs, experts, left = literal_maler(gradients.astype(float), horizon, bound, G)
    assert left > 100  # projections were needed
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * bound)
    np.testing.assert_allclose(bound * points(states), experts, atol=3e-5 * bound)


def test_the_transcription_tells_a_wrong_step_from_a_right_one():
    gradients = stream(1, 100, 3, 1.0)
    right, _, _ = literal_maler(gradients.astype(float), 100, 1.0, 1.0)
    ours, _ = run(jb.learners.maler(3, 100, 1.0, 1.05), gradients)
    assert np.abs(ours - right).max() > 1e-3
    late, _, _ = literal_maler(np.concatenate([np.zeros((1, 3)), gradients[:-1]]), 100, 1.0, 1.0)
    assert np.abs(late - right).max() > 1e-3


@pytest.mark.parametrize("T", [1, 2, 4, 5, 16, 17, 20_000, 10**9, 10**15])
def test_priors_sum_to_one(T):
    n = math.ceil(0.5 * math.log2(T)) if T > 1 else 0
    assert num_pairs(T) == n + 1
    priors = np.exp(np.asarray(log_priors(n + 1, T, jnp.float32), float))
    assert priors.sum() == pytest.approx(1, abs=1e-6)
    assert priors[0] == pytest.approx(1 / 3)
    assert priors[n + 1] == priors[2 * n + 2] == pytest.approx((1 + 1 / (n + 1)) / (3 * (n + 1) * (n + 2)))


@pytest.mark.exhaustive
def test_a_short_epoch_under_the_program_of_a_long_one():
    gradients = stream(2, 60, 3, 2.0)

    @jax.jit
    def long(rounds):
        return run(jb.learners.maler(3, 20_000, 1.0, 2.0, num_rounds=rounds), gradients)

    for T in (1, 5, 64, 65, 4096):
        short, _ = jax.jit(partial(run, jb.learners.maler(3, T, 1.0, 2.0)))(gradients)
        ours, states = long(jnp.int32(T))
        np.testing.assert_allclose(ours, short, atol=1e-6)
        assert all(np.isfinite(leaf).all() for leaf in states)
        log_weights = np.asarray(log_priors(num_pairs(20_000), jnp.int32(T), jnp.float32), float)
        assert np.exp(log_weights).sum() == pytest.approx(1, abs=1e-6)
        assert (log_weights > -100).sum() == 2 * num_pairs(T) + 1
    assert long._cache_size() == 1


def test_everything_stays_in_the_ball():
    for bound, G, drift in [(1.0, 2.0, 0.0), (3.0, 1e3, 1.0)]:
        ours, states = jax.vmap(partial(run, jb.learners.maler(4, 500, bound, G)))(
            np.stack([stream(seed, 500, 4, G, drift) for seed in range(8)])
        )
        norms = np.linalg.norm(points(states).astype(float), axis=-1)
        assert norms.max() <= 1 + 3e-7
        assert norms.max() > 0.999
        assert np.linalg.norm(np.asarray(ours, float), axis=-1).max() <= bound * (1 + 1e-6)


@pytest.mark.parametrize("options", [WIDE_VECTORS, *others([None])])
def test_one_lane_is_the_same_among_many(options):
    """With the vectors that sweeps use the last bit depends on the number of lanes, on every release of JAX."""
    gradients = np.stack([stream(seed, 60, 5, 1.0) for seed in range(300)])
    lanes = jax.jit(jax.vmap(partial(run, jb.learners.maler(5, 200, 1.0, 1.0))), compiler_options=options)
    whole = lanes(gradients)
    assert (np.linalg.norm(whole[1].newton[:, -1], axis=1) > 0.999).any()  # projections in blocks
    for first, last in [(0, 8), (8, 19), (150, 300)]:
        few = jax.tree.map(lambda x, first=first, last=last: x[first:last], whole)
        assert_same(lanes(gradients[first:last]), few, kept=KEPT and options is None)
    alone = jax.jit(partial(run, jb.learners.maler(5, 200, 1.0, 1.0)))(gradients[7])
    np.testing.assert_allclose(alone[0], whole[0][7], atol=1e-6)


def test_bounds_are_data():
    gradients = stream(3, 50, 3, 1.0)
    traces = []

    @jax.jit
    def play(bound, G):
        traces.append(1)
        return run(jb.learners.maler(3, 100, bound, G), G * gradients)[0]

    one = play(1.0, 1.0)
    np.testing.assert_allclose(play(4.0, 1e6), 4 * one, rtol=1e-5, atol=1e-6)
    assert len(traces) == 1
    grid = jax.vmap(jax.vmap(play, (None, 0)), (0, None))(jnp.array([1.0, 2.0]), jnp.array([1.0, 10.0, 100.0]))
    assert grid.shape == (2, 3, 50, 3)
    np.testing.assert_allclose(grid[1, 2], 2 * one, rtol=1e-5, atol=1e-6)


def test_zero_gradients_leave_it_at_the_centre():
    ours, states = run(jb.learners.maler(3, 100, 1.0, 1.0), np.zeros((100, 3), np.float32))
    assert not np.asarray(ours).any()
    assert not points(states).any()
    assert np.exp(np.asarray(states.log_weights[-1], float)).sum() == pytest.approx(1, abs=1e-5)


def test_large_horizons():
    gradients = stream(4, 100, 2, 1.0)
    learner = jb.learners.maler(2, 10**12, 1.0, 1.0)
    ours, states = run(learner, gradients)
    assert states.strong.shape == (100, 2, 21)
    np.testing.assert_allclose(ours, literal_maler(gradients.astype(float), 10**12, 1.0, 1.0)[0], atol=1e-5)
    last = jax.tree.map(lambda x: x[-1], states)
    for _ in range(3):  # the counter does not wrap
        last = learner.update(last._replace(t=jnp.int32(2**31 - 2)), jnp.ones(2) / 2)
        assert last.t > 0
        assert all(np.isfinite(leaf).all() for leaf in last)


def test_learns_a_strongly_convex_stream():
    """Regret against the best fixed point grows like log T; uniform weights on nothing would grow like T."""
    rng = np.random.default_rng(5)
    T, theta = 4096, np.array([0.4, -0.3, 0.2])
    targets = jnp.asarray(np.clip(theta + 0.3 * rng.normal(size=(T, 3)), -1, 1), jnp.float32)
    G = 2 * (1 + math.sqrt(3))
    learner = jb.learners.maler(3, T, 1.0, G)

    def play(state, target):
        x = learner.predict(state)
        return learner.update(state, 2 * (x - target)), x

    x = np.asarray(jax.lax.scan(play, learner.init(), targets)[1], float)
    targets = np.asarray(targets, float)
    best = targets.mean(0)
    regret = np.cumsum(((x - targets) ** 2).sum(1) - ((best - targets) ** 2).sum(1))
    still = ((targets**2).sum(1) - ((best - targets) ** 2).sum(1)).sum()
    assert regret[-1] < 0.05 * still
    assert regret[-1] < 1.5 * regret[T // 4] + 5


@pytest.mark.parametrize("make", [jb.learners.maler, jb.learners.ogd])
def test_a_gradient_of_another_shape_does_not_broadcast(make):
    learner = make(3, 100, 1.0, 1.0)
    for wrong in (jnp.ones(1), jnp.ones((2, 3)), 1.0):
        with pytest.raises(ValueError, match=r"gradient has shape .* must be \(3,\)"):
            learner.update(learner.init(), wrong)
    same = learner.update(learner.init(), [0.5, 0.0, 0.1])
    np.testing.assert_array_equal(
        learner.predict(same), learner.predict(learner.update(learner.init(), jnp.array([0.5, 0.0, 0.1])))
    )


def ellipsoids(condition, seed=0, count=300, dim=5):
    """y [count, d] outside the unit ball, A [count, d, d] of one condition number."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(count, dim, dim)))[0]
    values = np.exp(rng.uniform(0, math.log(condition), size=(count, dim)))
    values[:, 0], values[:, -1] = 1, condition
    scale = 10.0 ** rng.integers(-6, 7, size=(count, 1, 1))
    y = rng.normal(size=(count, dim))
    y *= rng.uniform(1, 5, size=(count, 1)) / np.linalg.norm(y, axis=1, keepdims=True)
    A = scale * np.einsum("nij,nj,nkj->nik", basis, values, basis)
    return y.astype(np.float32), ((A + np.swapaxes(A, 1, 2)) / 2).astype(np.float32)


@pytest.mark.parametrize("condition, tolerance", [(1.0, 2e-6), (30.0, 2e-6), (1e3, 3e-5)])
def test_projection_is_the_exact_one(condition, tolerance):
    y, A = ellipsoids(condition)
    ours = np.asarray(jax.vmap(jb.learners.project_ellipsoid, (0, 0, None))(y, A, 1.0), float)
    exact = np.array([literal_projection(*each, 1.0) for each in zip(y.astype(float), A.astype(float), strict=True)])
    assert np.abs(ours - exact).max() < tolerance
    assert np.linalg.norm(ours, axis=1).max() <= 1 + 3e-7


def test_projection_satisfies_kkt():
    """A (x - y) + m x = 0 with m >= 0, and |x| = D outside the ball."""
    y, A = ellipsoids(1e3, seed=1)
    radius = 0.7
    x = np.asarray(jax.vmap(jb.learners.project_ellipsoid, (0, 0, None))(y, A, radius), float)
    force = np.einsum("nij,nj->ni", A.astype(float), y - x)
    m = (force * x).sum(1) / (x * x).sum(1)
    assert (m >= 0).all()
    top = np.linalg.norm(A.astype(float), 2, axis=(1, 2))
    assert (np.abs(force - m[:, None] * x).max(1) / (top * np.linalg.norm(y, axis=1))).max() < 1e-5
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), radius, rtol=1e-6)


def test_projection_at_the_edges():
    project = jb.learners.project_ellipsoid
    A = jnp.diag(jnp.array([4.0, 1.0]))
    inside = jnp.array([0.3, -0.9])
    np.testing.assert_array_equal(project(inside, A, 1.0), inside)
    np.testing.assert_array_equal(project(jnp.zeros(2), A, 1.0), 0)
    np.testing.assert_allclose(project(jnp.array([3.0, 0.0]), A, 2.0), [2.0, 0.0], atol=1e-6)
    y = jnp.array([3.0, 4.0])
    np.testing.assert_allclose(project(y, jnp.eye(2), 1.0), y / 5, atol=1e-6)  # radial for a multiple of the identity
    assert project(jnp.array([5.0]), jnp.array([[1e-20]]), 1.0) == 1.0
    for far in (1e17, 1e30):  # where a square would overflow: the direction of A y is left
        np.testing.assert_allclose(project(jnp.array([far, far]), A, 2.0), np.array([8, 2]) / 17**0.5, atol=1e-6)
    with jax.enable_x64(True):
        exact = literal_projection(np.array([2.0, 1.0]), np.diag([4.0, 1.0]), 1.0)
        np.testing.assert_allclose(project(jnp.array([2.0, 1.0]), np.diag([4.0, 1.0]), 1.0), exact, atol=1e-12)
