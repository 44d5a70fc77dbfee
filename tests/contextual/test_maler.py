"""Maler against a literal float64 transcription, its promises, and the projection that its Newton experts need."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import others
from last_bits import KEPT, assert_same
from reference.ldp_contextual import maler as reference
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.learners.maler import _newton_apart, _newton_step, log_priors, num_pairs
from jaxbandits.learners.project_ellipsoid import onto_ball
from jaxbandits.numerics.packed import pairs
from jaxbandits.sweeps.compilation.compiled import WIDE_VECTORS


def literal(gradients, horizon, D, G):
    """Predictions, the experts' points after each round, and how often a Newton expert left the ball."""
    learner = reference.Maler(gradients.shape[1], horizon, theta_bound=D, gradient_bound=G)
    predictions, points = [], []
    for g in gradients.astype(float):
        predictions.append(learner.predict())
        learner.update(g)
        points.append(learner.points)
    return np.array(predictions), np.array(points), learner.outside


def stream(seed, rounds, dim, bound, drift=0.5):
    """Gradients [rounds, dim] clipped to the bound, with a drift that takes experts out of the ball."""
    rng = np.random.default_rng(seed)
    g = bound * (0.4 * rng.normal(size=(rounds, dim)) + drift * rng.normal(size=dim) / math.sqrt(dim))
    return (g * np.minimum(1, bound / np.linalg.norm(g, axis=1, keepdims=True))).astype(np.float32)


def run(learner, gradients, answer=0.0):
    """Predictions [rounds, d] and states after each round. answer: adds so many times the prediction to a gradient."""

    def play(state, g):
        point = learner.predict(state)
        new = learner.update(state, g + answer * point)
        return new, (point, new)

    return jax.lax.scan(play, learner.init(), jnp.asarray(gradients))[1]


def points(state):
    """All experts' points, [..., E, d], in units of the radius."""
    if hasattr(state, "points"):
        return state.points
    strong, newton = (np.swapaxes(points, -1, -2) for points in (state.strong, state.newton))
    return np.concatenate([state.convex[..., None, :], strong, newton], axis=-2)


@pytest.mark.parametrize("dim, horizon, bound, G", others([(1, 300, 1.0, 1.0), (9, 300, 0.5, 1e4)]))
def test_follows_the_literal_transcription(dim, horizon, bound, G):
    gradients = stream(1, 300, dim, G)
    follows(jax.jit(partial(run, jb.learners.maler(dim, horizon, bound, G)))(gradients), gradients, horizon, bound, G)


def follows(found, gradients, horizon, bound, G):
    ours, states = found
    theirs, experts, left = literal(gradients, horizon, bound, G)
    assert left > 100  # projections were needed
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * bound)
    np.testing.assert_allclose(bound * points(states), experts, atol=3e-5 * bound)


DIM, T, ROUNDS = 5, 20_000, 400
TARGETS = np.clip([0.7, -0.3, 0.2, 0.1, 0.4] + 0.3 * np.random.default_rng(5).normal(size=(ROUNDS, DIM)), -1, 1)
WIDE = 2 * (1 + math.sqrt(DIM))  # bounds the gradients of a quadratic around them
LANES = {  # gradients, the bounds D and G, and how the gradients answer
    "literal": (stream(1, ROUNDS, DIM, 50.0), 1.0, 50.0, 0.0),
    "zero": (np.zeros((ROUNDS, DIM)), 1.0, 1.0, 0.0),
    "quadratic": (-2 * TARGETS, 1.0, WIDE, 2.0),
    **{f"ball {seed}": (stream(seed, ROUNDS, DIM, 2.0, 0.0), 1.0, 2.0, 0.0) for seed in range(6)},
    **{f"drift {seed}": (stream(seed, ROUNDS, DIM, 1e3, 1.0), 3.0, 1e3, 0.0) for seed in range(6)},
    **{f"bounds {D} {G}": (G * stream(3, ROUNDS, DIM, 1.0), D, G, 0.0)
        for D, G in ((1.0, 1.0), (1.0, 10.0), (2.0, 1.0), (2.0, 100.0), (4.0, 1e6))},
}  # fmt: skip


@cache
def lanes():
    """Predictions and states of all lanes, from one program: bounds are data."""
    lane = lambda gradients, bound, G, answer: run(jb.learners.maler(DIM, T, bound, G), gradients, answer)
    given = (np.array(x, np.float32) for x in zip(*LANES.values(), strict=True))
    found = jax.tree.map(np.asarray, jax.jit(jax.vmap(lane))(*given))
    return {name: jax.tree.map(lambda x, i=i: x[i], found) for i, name in enumerate(LANES)}


def test_a_lane_follows_the_literal_transcription():
    follows(lanes()["literal"], LANES["literal"][0], T, 1.0, 50.0)


@pytest.mark.planted("the MALER of this file", "a gradient bound that is 5% larger")
@pytest.mark.planted("the MALER of this file", "gradients a round late")
def test_the_transcription_tells_a_wrong_step_from_a_right_one():
    gradients = stream(1, 100, 3, 1.0)
    right, wider, late = (
        literal(given, 100, 1.0, G)[0]
        for given, G in ((gradients, 1.0), (gradients, 1.05), (np.concatenate([np.zeros((1, 3)), gradients[:-1]]), 1.0))
    )
    assert np.abs(wider - right).max() > 1e-3 and np.abs(late - right).max() > 1e-3


def prior(n, rounds):
    """Priors of n pairs for so many rounds, in float32."""
    return np.exp(uncompiled(lambda: log_priors(n, rounds, jnp.float32))().astype(float))


@pytest.mark.parametrize("rounds", [1, 2, 4, 5, 16, 17, 20_000, 10**9, 10**15])
def test_priors_sum_to_one(rounds):
    n = math.ceil(0.5 * math.log2(rounds)) if rounds > 1 else 0
    assert num_pairs(rounds) == n + 1
    priors = prior(n + 1, rounds)
    assert priors.sum() == pytest.approx(1, abs=1e-6)
    assert priors[0] == pytest.approx(1 / 3)
    assert priors[n + 1] == priors[2 * n + 2] == pytest.approx((1 + 1 / (n + 1)) / (3 * (n + 1) * (n + 2)))


@pytest.mark.parametrize("rounds", [1, 5, 64, 65, 4096])
def test_an_epoch_has_the_experts_of_its_rounds(rounds):
    """Of a program for more rounds, whose other experts have no weight."""
    found = uncompiled(lambda rounds: log_priors(num_pairs(T), rounds, jnp.float32))(np.int32(rounds)).astype(float)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-6)
    assert (found > -100).sum() == 2 * num_pairs(rounds) + 1
    np.testing.assert_allclose(np.exp(found[found > -100]), prior(num_pairs(rounds), rounds), rtol=1e-6)


@pytest.mark.dealt(8)
def test_a_short_epoch_under_the_program_of_a_long_one():
    gradients = stream(2, 60, 3, 2.0)

    @jax.jit
    def long(rounds):
        return run(jb.learners.maler(3, T, 1.0, 2.0, num_rounds=rounds), gradients)

    for rounds in (5, 65):
        short, _ = jax.jit(partial(run, jb.learners.maler(3, rounds, 1.0, 2.0)))(gradients)
        ours, states = long(np.int32(rounds))
        np.testing.assert_allclose(ours, short, atol=1e-6)
        assert all(np.isfinite(leaf).all() for leaf in states)
    assert long._cache_size() == 1


@pytest.mark.parametrize("kind", ["ball", "drift"])
def test_everything_stays_in_the_ball(kind):
    paths = [name for name in LANES if name.startswith(kind)]
    norms = np.linalg.norm(np.stack([points(lanes()[name][1]).astype(float) for name in paths]), axis=-1)
    assert norms.max() <= 1 + 3e-7 and norms.max() > 0.999
    for name in paths:
        assert np.linalg.norm(lanes()[name][0].astype(float), axis=-1).max() <= LANES[name][1] * (1 + 1e-6)


@pytest.mark.parametrize("options", others([WIDE_VECTORS, None]))
def test_one_lane_is_the_same_among_many(options):
    """With the vectors that sweeps use the last bit depends on the number of lanes, on every release of JAX."""
    gradients = np.stack([stream(seed, 60, 5, 1.0) for seed in range(300)])
    play = jax.jit(jax.vmap(partial(run, jb.learners.maler(5, 200, 1.0, 1.0))), compiler_options=options)
    whole = jax.tree.map(np.asarray, play(gradients))
    assert (np.linalg.norm(whole[1].newton[:, -1], axis=1) > 0.999).any()  # projections in blocks
    for first, last in [(0, 11), (8, 19), (150, 161)]:
        few = jax.tree.map(lambda x, first=first, last=last: x[first:last], whole)
        assert_same(play(gradients[first:last]), few, kept=KEPT and options is None)
    alone = jax.jit(partial(run, jb.learners.maler(5, 200, 1.0, 1.0)))(gradients[7])
    np.testing.assert_allclose(alone[0], whole[0][7], atol=1e-6)


def test_bounds_scale_what_goes_in_and_out_and_zero_stays_at_the_centre():
    one = lanes()["bounds 1.0 1.0"][0]
    for name in LANES:
        if name.startswith("bounds"):
            np.testing.assert_allclose(lanes()[name][0], LANES[name][1] * one, rtol=1e-5, atol=2e-6)
    ours, states = lanes()["zero"]
    assert not ours.any() and not points(states).any()
    assert np.exp(states.log_weights[-1].astype(float)).sum() == pytest.approx(1, abs=1e-5)


def test_large_horizons():
    gradients = stream(4, 60, 2, 1.0)
    learner = jb.learners.maler(2, 10**12, 1.0, 1.0)
    ours, states = uncompiled(partial(run, learner))(gradients)
    assert states.strong.shape == (60, 2, 21)
    np.testing.assert_allclose(ours, literal(gradients, 10**12, 1.0, 1.0)[0], atol=1e-5)
    update, last = uncompiled(learner.update), jax.tree.map(lambda x: x[-1], states)
    for _ in range(3):  # the counter does not wrap
        last = update(last._replace(t=np.int32(2**31 - 2)), np.ones(2, np.float32) / 2)
        assert last.t > 0
        assert all(np.isfinite(leaf).all() for leaf in last)


def test_learns_a_strongly_convex_stream():
    """Regret against the best fixed point grows like log T; uniform weights on nothing would grow like T."""
    x, best = lanes()["quadratic"][0].astype(float), TARGETS.mean(0)
    regret = np.cumsum(((x - TARGETS) ** 2).sum(1) - ((best - TARGETS) ** 2).sum(1))
    assert regret[-1] < 0.03 * ((TARGETS**2).sum(1) - ((best - TARGETS) ** 2).sum(1)).sum()
    assert regret[-1] < 2 * regret[ROUNDS // 4]


@pytest.mark.parametrize("make", [jb.learners.maler, jb.learners.ogd])
def test_a_gradient_of_another_shape_does_not_broadcast(make):
    learner = make(3, 100, 1.0, 1.0)
    for wrong in (jnp.ones(1), jnp.ones((2, 3)), 1.0):
        with pytest.raises(ValueError, match=r"gradient has shape .* must be \(3,\)"):
            jax.eval_shape(lambda: learner.update(learner.init(), wrong))  # noqa: B023
    after = lambda gradient: uncompiled(lambda: learner.predict(learner.update(learner.init(), gradient)))()
    np.testing.assert_array_equal(after([0.5, 0.0, 0.1]), after(jnp.array([0.5, 0.0, 0.1])))


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


project_all = jax.jit(jax.vmap(jb.learners.project_ellipsoid, (0, 0, None)))


def exact_projections(y, A):
    pairs = zip(y.astype(float), A.astype(float), strict=True)
    return np.array([reference.project_ellipsoid(*pair, 1.0) for pair in pairs])


@pytest.mark.parametrize("condition, tolerance", [(1.0, 2e-6), (30.0, 2e-6), (1e3, 3e-5)])
def test_projection_is_the_exact_one(condition, tolerance):
    y, A = ellipsoids(condition)
    ours = np.asarray(project_all(y, A, 1.0), float)
    exact = exact_projections(y, A)
    assert np.abs(ours - exact).max() < tolerance
    assert np.linalg.norm(ours, axis=1).max() <= 1 + 3e-7


projected_by_xla = jax.jit(onto_ball)


@pytest.mark.parametrize("condition, tolerance", [(1.0, 2e-6), (30.0, 3e-6), (1e3, 1e-4)])
def test_projection_of_arrays_is_the_exact_one(condition, tolerance):
    """And which points of a lane are projected, and which of them first, changes nothing for the others."""
    y, A = ellipsoids(condition, count=40, dim=12)
    y[::4] *= 0.1  # inside
    A /= np.linalg.norm(A, 2, axis=(1, 2))[:, None, None]
    inverse = np.float32(np.linalg.inv(A.astype(float)))
    few_steps = condition == 1.0
    project_last = uncompiled(onto_ball) if few_steps else projected_by_xla

    def project(y, inverse, last=40):
        return np.asarray(project_last(y, (y[-last:] ** 2).sum(1) > 1, inverse[-last:]))

    ours, exact = project(y, inverse), exact_projections(y, A)
    assert np.abs(ours - exact).max() < tolerance and np.linalg.norm(ours, axis=1).max() <= 1 + 3e-7
    np.testing.assert_array_equal(ours[::4], y[::4])
    if few_steps:
        np.testing.assert_array_equal(project(y[::-1], inverse[::-1])[::-1], ours)
        np.testing.assert_array_equal(project(y, inverse, 5), np.concatenate([y[:-5], ours[-5:]]))


def test_projection_of_arrays_at_the_edges():
    project_all = uncompiled(onto_ball)

    def project(y, inverse):
        return project_all(y[None], (y * y).sum(keepdims=True) > 1, inverse[None])[0]

    eye = np.eye(9, dtype=np.float32)
    y = np.zeros(9, np.float32)
    np.testing.assert_array_equal(project(y, eye), y)
    y[4] = 3  # an eigenvector
    np.testing.assert_allclose(project(y, np.diag(np.arange(1, 10)).astype(np.float32)), y / 3, atol=1e-6)
    y[:] = 1e3
    np.testing.assert_allclose(project(y, eye), y / np.linalg.norm(y), atol=1e-6)
    with jax.enable_x64(True):
        inverse = np.diag(np.geomspace(1, 1e-6, 9))
        exact = reference.project_ellipsoid(np.ones(9), np.linalg.inv(inverse), 1.0)
        np.testing.assert_allclose(project(np.ones(9), inverse), exact, atol=1e-10)


@pytest.mark.parametrize("dim", [1, 4, 8, 12])
def test_the_two_layouts_take_the_same_newton_step(dim):
    rng, n = np.random.default_rng(dim), 5
    root = rng.normal(size=(n, dim, 2 * dim)) / np.sqrt(2 * dim)
    inverse = np.linalg.inv(np.eye(dim) + root @ root.transpose(0, 2, 1))
    newton, g, step = rng.normal(size=(n, dim)), rng.normal(size=dim), rng.uniform(-0.3, 0.3, n)
    newton /= np.linalg.norm(newton, axis=1, keepdims=True)
    packed = np.stack([inverse[:, i, j] for i, j in pairs(dim)])
    with jax.enable_x64(True):
        apart, its_inverse = uncompiled(_newton_apart)(newton.T, packed, g, step)
        arrays, full = uncompiled(_newton_step)(newton, inverse, g, step)
        arrays = uncompiled(onto_ball)(arrays, (arrays**2).sum(1) > 1, full)
    assert (np.linalg.norm(arrays, axis=1) > 1 - 1e-9).any() or dim == 1
    np.testing.assert_allclose(arrays.T, apart, atol=1e-9)
    np.testing.assert_allclose(np.stack([full[:, i, j] for i, j in pairs(dim)]), its_inverse, atol=1e-12)


def test_projection_satisfies_kkt():
    """A (x - y) + m x = 0 with m >= 0, and |x| = D outside the ball."""
    y, A = ellipsoids(1e3, seed=1)
    radius = 0.7
    x = np.asarray(project_all(y, A, radius), float)
    force = np.einsum("nij,nj->ni", A.astype(float), y - x)
    m = (force * x).sum(1) / (x * x).sum(1)
    assert (m >= 0).all()
    top = np.linalg.norm(A.astype(float), 2, axis=(1, 2))
    assert (np.abs(force - m[:, None] * x).max(1) / (top * np.linalg.norm(y, axis=1))).max() < 1e-5
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), radius, rtol=1e-6)


def test_rounds_may_be_a_number_of_the_host():
    make = partial(jb.learners.maler, dim=3, theta_bound=1.0, gradient_bound=2.0)
    state = uncompiled(make(horizon=20_000, num_rounds=64).init)()
    assert state.tilt == 0.25 / 8 and (state.log_weights > -100).sum() == 2 * 4 + 1  # ceil(log2(64) / 2) + 1 pairs
    long, short = (
        uncompiled(partial(run, learner))(stream(2, 20, 3, 2.0))[0]
        for learner in (make(horizon=20_000, num_rounds=64), make(horizon=64))
    )
    np.testing.assert_allclose(long, short, atol=1e-6)


def test_projection_at_the_edges():
    project_one, A, inside = uncompiled(jb.learners.project_ellipsoid), np.diag([4.0, 1.0]), np.float32([0.3, -0.9])

    def project(y, A, radius, dtype=np.float32):
        return project_one(np.asarray(y, dtype), np.asarray(A, dtype), dtype(radius))

    np.testing.assert_array_equal(project(inside, A, 1.0), inside)
    np.testing.assert_array_equal(project(np.zeros(2), A, 1.0), 0)
    np.testing.assert_allclose(project([3.0, 0.0], A, 2.0), [2.0, 0.0], atol=1e-6)
    y = np.array([3.0, 4.0])
    np.testing.assert_allclose(project(y, np.eye(2), 1.0), y / 5, atol=1e-6)  # radial for a multiple of the identity
    assert project([5.0], [[1e-20]], 1.0) == 1.0
    for far in (1e17, 1e30):  # where a square would overflow: the direction of A y is left
        np.testing.assert_allclose(project([far, far], A, 2.0), np.array([8, 2]) / 17**0.5, atol=1e-6)
    whole = project_one(np.array([2, 1], np.int32), np.diag([4, 1]).astype(np.int32), np.int32(1))
    np.testing.assert_allclose(whole, reference.project_ellipsoid(np.array([2.0, 1.0]), A, 1.0), atol=1e-6)
    with jax.enable_x64(True):
        exact = reference.project_ellipsoid(np.array([2.0, 1.0]), A, 1.0)
        np.testing.assert_allclose(project([2.0, 1.0], A, 1.0, np.float64), exact, atol=1e-12)
