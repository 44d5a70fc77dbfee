"""CW-OFUL, Hvt-UCB and robust OFUL: paths, weights, numbers, limits and refusals."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import exact_world, on_tape
from planting import errors, planted
from plays import of_cases
from reference import weighted_linear as literal
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import cw_oful, hvt_linucb, linucb, robust_oful
from jaxbandits.algorithms.contextual.hvt_linucb import nearest

T, D, SEEDS = 300, 3, range(4)
users = functools.partial(jb.environments.contextual_linear, num_arms=6, dim=D)
fixed = functools.partial(users, contexts="fixed")
NAMES = {
    "budget": "corruption_budget", "failure": "failure_prob", "scale": "moment_scale", "order": "moment_order",
    "least": "least_scale",
}  # fmt: skip


def given(numbers):
    return {NAMES.get(name, name): value for name, value in numbers.items()}


def made(numbers, factory=cw_oful, **more):
    return factory(**{"num_arms": 6, "dim": D, "horizon": T} | given(numbers) | more)


@functools.cache
def lanes(environment):
    """Of all cases of CW-OFUL, or of all heavy-tailed ones, which share a program: by case and seed."""
    if environment is heavy:
        algorithms = {case: heavy_made(case) for case in HEAVY}
    else:
        contexts = "fixed" if environment is fixed else "redraw"
        algorithms = {case: made(numbers, contexts=contexts) for case, numbers in CASES.items()}
    runs = of_cases([(algorithm, environment()) for algorithm in algorithms.values()], SEEDS)
    return dict(zip(algorithms, runs, strict=True))


CASES = {
    "defaults": {},
    "clean": {"budget": 0.0, "radius_scale": 0.3},
    "corrupted": {"budget": 40.0, "ridge": 0.5, "noise_scale": 0.3, "theta_norm": 0.8}
    | {"failure": 0.05, "radius_scale": 0.2},
}


@pytest.mark.parametrize("environment", [users, fixed], ids=["redrawn", "fixed"])
@pytest.mark.parametrize("case", CASES)
def test_cw_paths_are_the_literal_ones(case, environment):
    for seed in SEEDS:
        contexts, rewards, _ = exact_world(environment, seed, T)
        actions, weights = literal.cw_oful(contexts, rewards, **CASES[case])
        np.testing.assert_array_equal(lanes(environment)[case][seed].history.action, actions)
        assert (weights.min() < 0.9) == (case != "clean")


@pytest.mark.parametrize("error", errors([
    ("width = radius_scale * beta", "width = 2 * radius_scale * beta"),
    ("x, inverse = contexts[t - 1]", "x, inverse = contexts[t - 2]"),
    ("b = b + weight * x[arm]", "b = b + x[arm]"), ("sigma + weight * np", "sigma + np"),
    ("alpha / norms[arm])", "alpha / norms[arm] ** 2)"),
], literal))  # fmt: skip
def test_planted_errors_fork_cw_paths(error):
    wrong = planted(*error)

    def differs(seed):
        contexts, rewards, _ = exact_world(users, seed, T)
        actions = wrong.cw_oful(contexts, rewards, **CASES["corrupted"])[0]
        return (lanes(users)["corrupted"][seed].history.action != actions).any()

    assert any(differs(seed) for seed in SEEDS)


def test_the_numbers_of_cw():
    for budget, beta, alpha in ((0, 4.360064268, math.inf), (50, 6.360064268, 0.04)):
        params = cw_oful(num_arms=2, dim=4, horizon=4000, corruption_budget=budget, failure_prob=0.05).params
        assert params.radius == pytest.approx(beta, rel=1e-9) and params.threshold == pytest.approx(alpha, rel=1e-12)
    numbers = CASES["corrupted"] | {"feature_norm": 2.0}
    want = {k: v for k, v in numbers.items() if k != "radius_scale"}
    assert made(numbers).params[2:] == pytest.approx(literal.cw_numbers(D, T, **want))


def test_without_corruption_it_is_oful_and_an_unknown_budget_is_the_root_of_the_horizon():
    """That is linucb with the same width, bit for bit."""
    plain = linucb(num_arms=6, dim=D, horizon=T, radius_scale=0.3)
    width = made(CASES["clean"]).params.radius
    plain = plain._replace(params=plain.params._replace(ridge=1.0, base=width, slope=0.0))
    for ours, run in zip(lanes(users)["clean"], of_cases([(plain, users())], SEEDS)[0], strict=True):
        np.testing.assert_array_equal(ours.history.action, run.history.action)
        np.testing.assert_array_equal(ours.state.theta, run.state.theta)
    assert made({}).params == made({"budget": math.sqrt(T)}).params
    assert made({}).program is made({"budget": 0}).program


def test_the_weight_is_that_of_the_decision():
    """The note carries it: a late update takes it whatever V has become, and features of 0 weigh 1."""
    algorithm = made({"budget": 30.0})
    program, draws = algorithm.program, jb.random.Draws(np.uint32(0), "alg")
    params, context = jax.tree.map(np.float32, algorithm.params), np.zeros((1, 6, D), np.float32)
    context[0, 2] = [0.6, 0.0, 0.8]

    @uncompiled
    def play(params, x, shrink):
        """The action, its weight, the message, V^-1 when it arrives and the estimate after it."""
        state, t = program.init(params, draws), jnp.ones(1, jnp.int32)
        action, _, note = program.act(params, state, draws, t, x)
        message = program.encode(params, note, draws, t, x, action, jnp.ones(1), jnp.ones(1, bool))
        moved = state._replace(inverse=state.inverse * shrink)
        after = program.update(params, moved, draws, t[0], note, message, 1)[0]
        return action, note, message[0], moved.inverse, after.theta

    weight = params.threshold
    for shrink in (1.0, 0.25):
        action, _, feature, inverse, theta = play(params, context, np.float32(shrink))
        assert action.tolist() == [2]
        np.testing.assert_allclose(theta, weight / (1 + weight * shrink) * inverse @ feature, rtol=1e-6)
    assert float(play(params, 0 * context, np.float32(1))[1][0]) == 1.0


def test_rewards_that_are_not_finite_count_as_nothing():
    context = np.random.default_rng(0).normal(size=(30, 6, D))
    rewards = np.ones((30, 6))
    rewards[3], rewards[5], rewards[7] = np.nan, np.inf, -np.inf
    _, (_, reward), states = on_tape(made({}), context, rewards)
    assert [int(t) for t in np.flatnonzero(reward == 0)] == [3, 5, 7] and np.isfinite(states.theta).all()


@pytest.mark.dealt(8)
def test_cw_bound_holds_and_needs_a_ridge():
    bound = functools.partial(jb.theory.cw_bound, D, 2000, failure_prob=0.05)
    algorithm = functools.partial(cw_oful, failure_prob=0.05)
    run = jb.sweep(algorithm, users(), horizon=2000, seeds=200, grid={"corruption_budget": [0.0, 50.0]}, progress=False)
    regret = run.regret.values[0, :, :, -1]
    assert regret[0].max() < bound(0.0) < bound(50.0) and regret[1].max() < bound(50.0)
    assert bound(50.0, max_gap=1.0) == 2000 < bound(50.0)
    with pytest.raises(ValueError, match=r"ridge = 0.5 .*feature_norm squared"):
        bound(ridge=0.5)


heavy = functools.partial(users, reward="student", df=1.8, noise_scale=0.3)
HEAVY = {
    "hvt": {"scale": 0.4, "radius_scale": 1e-4},
    "hvt, no variance": {"scale": 0.5, "order": 1.4, "theta_norm": 0.7, "ridge": 0.5, "least": 0.2, "growth": 2.0}
    | {"failure": 0.1, "radius_scale": 3e-4},
    "robust": {"scale": 0.4, "budget": 30.0, "radius_scale": 1e-4},
    "robust, default": {"scale": 0.3, "order": 1.5, "budget": math.sqrt(T), "theta_norm": 0.5, "radius_scale": 1e-3},
}


def heavy_made(case, **more):
    numbers = {k: v for k, v in HEAVY[case].items() if (case, k) != ("robust, default", "budget")}
    return made(numbers, factory=robust_oful if "robust" in case else hvt_linucb, **more)


@pytest.mark.parametrize("case", HEAVY)
def test_heavy_tailed_paths_are_the_literal_ones(case):
    on_the_sphere = 0.0
    for seed in SEEDS:
        contexts, rewards, _ = exact_world(heavy, seed, T)
        actions, thetas = literal.hvt_linucb(contexts, rewards, **HEAVY[case])
        np.testing.assert_array_equal(lanes(heavy)[case][seed].history.action, actions)
        on_the_sphere += np.isclose(np.linalg.norm(thetas, axis=1), HEAVY[case].get("theta_norm", 1.0)).mean()
    assert on_the_sphere > 0.1  # the projection was at work


def test_estimates_are_the_literal_ones():
    contexts, rewards, _ = exact_world(heavy, 3, T)
    rewards = rewards.copy()
    rewards[[5, 50]], rewards[[9, 90]], rewards[20] = np.inf, -np.inf, np.nan
    for case in ("hvt, no variance", "robust"):
        with jax.enable_x64(True):
            actions, _, states = on_tape(heavy_made(case), contexts, rewards, dtype=jnp.float64)
        want, thetas = literal.hvt_linucb(contexts, rewards, **HEAVY[case])
        np.testing.assert_array_equal(actions, want)
        np.testing.assert_allclose(states.theta, thetas, atol=1e-9)


@pytest.mark.parametrize("error", errors([
    ("return radius_scale * (107", "return 2 * radius_scale * (107"), ("beta(max(t - 1, 1))", "beta(t + 1)"),
    ("theta = projected(theta, v, theta_norm)", "theta = theta / max(1, np.linalg.norm(theta) / theta_norm)"),
    ("growth * sigma**2)", "sigma**2)"), ("x, inverse, now = contexts[t - 1]", "x, inverse, now = contexts[t - 2]"),
], literal))  # fmt: skip
def test_planted_errors_fork_heavy_tailed_paths(error):
    wrong, case = planted(*error), "hvt, no variance"

    def differs(seed):
        contexts, rewards, _ = exact_world(heavy, seed, T)
        return (lanes(heavy)[case][seed].history.action != wrong.hvt_linucb(contexts, rewards, **HEAVY[case])[0]).any()

    assert any(differs(seed) for seed in SEEDS)


def test_the_numbers_of_hvt():
    given = {"num_arms": 2, "dim": 4, "horizon": 3000, "moment_scale": 1.0, "ridge": 1.0, "failure_prob": 0.05}
    plain, robust = hvt_linucb(**given).params, robust_oful(**given).params
    kappa = ((robust.offset - plain.offset) / 2) ** 2
    assert kappa == pytest.approx(52.96059276, rel=1e-9) and plain.tau_0 == pytest.approx(2.31867835, rel=1e-9)
    assert plain.offset + plain.slope == pytest.approx(4890.392162, rel=1e-9)
    assert robust.corruption == pytest.approx(math.sqrt(3000 / 52.96059276)) and plain.corruption == 0
    assert (plain.least_scale, plain.growth) == (1.0, 4.0) and hvt_linucb(**given | {"ridge": None}).params.ridge == 4
    far = [rule(**given | {"feature_norm": 2.0}).params.offset for rule in (robust_oful, hvt_linucb)]
    kappa = ((far[0] - far[1]) / 2) ** 2
    assert kappa == pytest.approx(4 * math.log(1 + 4 * 3000**2 / 16), rel=1e-9)
    assert hvt_linucb(**given | {"moment_scale": 0}).params.least_scale == pytest.approx(3000**-0.5)


def test_without_corruption_robust_oful_is_hvt():
    ours, plain = made({"budget": 0.0, "scale": 0.4}, robust_oful), made({"scale": 0.4}, hvt_linucb)
    assert ours.params == plain.params and ours.program is plain.program
    assert ours.program is made({"budget": 9.0, "scale": 0.4, "order": 1.3}, robust_oful).program
    unknown = made({"scale": 0.4}, robust_oful)
    assert unknown.params == made({"budget": math.sqrt(T), "scale": 0.4}, robust_oful).params


@pytest.mark.parametrize("dim", [1, 3, 10])
def test_projection_onto_the_ball(dim):
    random, project = np.random.default_rng(dim), uncompiled(nearest)
    for size in (0.5, 1.0001, 3.0, 200.0):
        root = random.normal(size=(dim, dim))
        v = root @ root.T + 0.05 * np.eye(dim)
        theta = random.normal(size=dim)
        theta *= size / np.linalg.norm(theta)
        found = project(np.float32(theta), np.float32(np.linalg.inv(v)))
        np.testing.assert_allclose(found, literal.projected(theta, v, 1.0), atol=2e-4)
        assert np.linalg.norm(found) <= 1 + 1e-6 and (size > 1 or (found == np.float32(theta)).all())
    assert (project(np.zeros(dim, np.float32), np.eye(dim, dtype=np.float32)) == 0).all()


def test_infinite_rewards_and_features_of_zero_leave_states_finite():
    context = np.random.default_rng(0).normal(size=(40, 6, D))
    context[::5] = 0
    for value in (np.inf, -np.inf, np.nan):
        actions, _, states = on_tape(heavy_made("hvt"), context, np.full((40, 6), value))
        assert np.isfinite(states.theta).all() and np.isfinite(states.inverse).all() and actions.max() < 6
        assert (np.abs(states.theta).max() > 0.1) == (not np.isnan(value))


def test_the_scale_is_that_of_the_decision():
    """A late update takes the norm that its own play saw."""
    algorithm = heavy_made("robust")
    draws, x = jb.random.Draws(np.uint32(0), "alg"), np.zeros((1, 6, D), np.float32)
    x[0, 2] = [0.6, 0.0, 0.8]

    @uncompiled
    def play(params, x, shrink):
        state = algorithm.program.init(params, draws)
        action, _, note = algorithm.program.act(params, state, draws, jnp.ones(1, jnp.int32), x)
        now, message = state._replace(inverse=state.inverse * shrink), (x[0, 2], jnp.float32(0.01))
        return action, note, now, algorithm.program.update(params, now, None, jnp.int32(1), note, message, 1)[0]

    moved = []
    for shrink in (1.0, 0.25):
        action, note, now, after = play(jax.tree.map(np.float32, algorithm.params), x, np.float32(shrink))
        assert action.tolist() == [2] and float(note) == pytest.approx(1 / D)
        moved.append(np.linalg.inv(after.inverse) - np.linalg.inv(now.inverse))
    np.testing.assert_allclose(*moved, atol=2e-3)


@pytest.mark.parametrize("long", [False, True])
def test_a_long_run_is_projected_as_a_short_one(long):
    """From (0.3, 0.4, 0) outwards, along an axis of V, and back onto the sphere of radius 1/2: the same point."""
    algorithm = hvt_linucb(num_arms=6, dim=D, horizon=T, moment_scale=1.0, theta_norm=0.5)
    draws = jb.random.Draws(np.uint32(0), "alg", np.float32, long=long)

    @uncompiled
    def after(params, x):
        state = algorithm.program.init(params, draws)._replace(theta=x / 2)
        square, message = jnp.float32(1 / D), (x, jnp.float32(50))  # V = D I
        return algorithm.program.update(params, state, None, jnp.int32(1), square, message, 1)[0]

    x = np.float32([0.6, 0.8, 0.0])
    found = after(jax.tree.map(np.float32, algorithm.params), x)
    np.testing.assert_allclose(found.theta, x / 2, atol=2e-4)
    assert bool(found.rest) == long and not (long and np.any(found.rest[1]))
