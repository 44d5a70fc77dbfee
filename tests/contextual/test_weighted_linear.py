"""CW-OFUL, Hvt-UCB and robust OFUL: paths, weights, numbers, limits and refusals."""

import functools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import exact_world, planted
from on_tape import on_tape
from reference import weighted_linear as literal

import jaxbandits as jb
from jaxbandits.algorithms import cw_oful, linucb

T, D = 300, 3
users = functools.partial(jb.environments.contextual_linear, num_arms=6, dim=D)
fixed = functools.partial(users, contexts="fixed")
NAMES = {"budget": "corruption_budget", "failure": "failure_prob"}


@pytest.fixture(autouse=True)
def _quick(quickly_compiled):
    """Nothing here is about the last bits of a user's own options."""


def given(numbers):
    return {NAMES.get(name, name): value for name, value in numbers.items()}


def made(numbers, factory=cw_oful, **more):
    return factory(**{"num_arms": 6, "dim": D, "horizon": T} | given(numbers) | more)


def simulated(algorithm, environment, seed):
    return jb.simulate(algorithm, environment(), seed=seed, history=True, checkpoints=1, dtype="float64")


# CW-OFUL

CASES = {
    "defaults": {},
    "clean": {"budget": 0.0, "radius_scale": 0.3},
    "corrupted": {"budget": 40.0, "ridge": 0.5, "noise_scale": 0.3, "theta_norm": 0.8}
    | {"failure": 0.05, "radius_scale": 0.2},
}


@pytest.mark.parametrize("environment", [users, fixed], ids=["redrawn", "fixed"])
@pytest.mark.parametrize("case", CASES)
def test_cw_paths_are_the_literal_ones(case, environment):
    algorithm = made(CASES[case], contexts="fixed" if environment is fixed else "redraw")
    for seed in range(3):
        contexts, rewards, _ = exact_world(environment, seed, T)
        actions, weights = literal.cw_oful(contexts, rewards, **CASES[case])
        np.testing.assert_array_equal(simulated(algorithm, environment, seed).history.action, actions)
        assert (weights.min() < 0.9) == (case != "clean")


@pytest.mark.parametrize(("old", "new"), [
    ("width = radius_scale * beta", "width = 2 * radius_scale * beta"),
    ("x, inverse = contexts[t - 1]", "x, inverse = contexts[t - 2]"),
    ("b = b + weight * x[arm]", "b = b + x[arm]"), ("sigma + weight * np", "sigma + np"),
    ("alpha / norms[arm])", "alpha / norms[arm] ** 2)"),
])  # fmt: skip
def test_planted_errors_fork_cw_paths(old, new):
    wrong = planted(literal, old, new)

    def differs(seed):
        contexts, rewards, _ = exact_world(users, seed, T)
        run = simulated(made(CASES["corrupted"]), users, seed)
        return (run.history.action != wrong.cw_oful(contexts, rewards, **CASES["corrupted"])[0]).any()

    assert any(differs(seed) for seed in range(3))


def test_the_numbers_of_cw():
    for budget, beta, alpha in ((0, 4.360064268, math.inf), (50, 6.360064268, 0.04)):
        params = cw_oful(num_arms=2, dim=4, horizon=4000, corruption_budget=budget, failure_prob=0.05).params
        assert params.radius == pytest.approx(beta, rel=1e-9) and params.threshold == pytest.approx(alpha, rel=1e-12)
    numbers = CASES["corrupted"] | {"feature_norm": 2.0}
    want = {k: v for k, v in numbers.items() if k != "radius_scale"}
    assert made(numbers).params[2:] == pytest.approx(literal.cw_numbers(D, T, **want))


def test_without_corruption_it_is_oful():
    """That is linucb with the same width, bit for bit."""
    ours = made(CASES["clean"])
    plain = linucb(num_arms=6, dim=D, horizon=T, radius_scale=0.3)
    plain = plain._replace(params=plain.params._replace(ridge=1.0, base=ours.params.radius, slope=0.0))
    runs = [jb.simulate(a, users(), seed=2, history=True, checkpoints=1) for a in (ours, plain)]
    np.testing.assert_array_equal(*(run.history.action for run in runs))
    assert runs[0].regret[-1] == runs[1].regret[-1]


def test_an_unknown_budget_is_the_root_of_the_horizon():
    assert made({}).params == made({"budget": math.sqrt(T)}).params
    assert made({}).program is made({"budget": 0}).program


def test_the_weight_is_that_of_the_decision():
    """The note carries it: a late update takes it whatever V has become, and features of 0 weigh 1."""
    algorithm = made({"budget": 30.0})
    context = np.zeros((1, 6, D))
    context[0, 2] = [0.6, 0.0, 0.8]
    program, x = algorithm.program, jnp.asarray(context, jnp.float32)
    params = algorithm.params._replace(**{k: jnp.float32(v) for k, v in algorithm.params._asdict().items()})
    draws = jb.random.Draws(jnp.uint32(0), "alg")
    state, t = program.init(params, draws), jnp.ones(1, jnp.int32)
    action, _, note = program.act(params, state, draws, t, x)
    message = program.encode(params, note, draws, t, x, action, jnp.ones(1), jnp.ones(1, bool))
    late = state._replace(inverse=state.inverse / 4)
    weight = params.threshold
    assert action.tolist() == [2]
    for moved, square in ((state, 1.0), (late, 0.25)):
        after = program.update(params, moved, draws, t[0], note, message, 1)[0]
        want = weight / (1 + weight * square) * moved.inverse @ message[0]
        np.testing.assert_allclose(after.theta, want, rtol=1e-6)
    nothing = program.act(params, state, draws, t, jnp.zeros_like(x))[2]
    assert float(nothing[0]) == 1.0


def test_rewards_that_are_not_finite_count_as_nothing():
    context = np.random.default_rng(0).normal(size=(30, 6, D))
    rewards = np.ones((30, 6))
    rewards[3], rewards[5], rewards[7] = np.nan, np.inf, -np.inf
    _, (_, reward), states = on_tape(made({}), context, rewards)
    assert [int(t) for t in np.flatnonzero(reward == 0)] == [3, 5, 7] and np.isfinite(states.theta).all()


def test_cw_bound_holds_and_needs_a_ridge():
    bound = functools.partial(jb.theory.cw_bound, D, 2000, failure_prob=0.05)
    algorithm = functools.partial(cw_oful, failure_prob=0.05)
    run = jb.sweep(algorithm, users(), horizon=2000, seeds=200, grid={"corruption_budget": [0.0, 50.0]}, progress=False)
    regret = run.regret.values[0, :, :, -1]
    assert regret[0].max() < bound(0.0) < bound(50.0) and regret[1].max() < bound(50.0)
    assert bound(50.0, max_gap=1.0) == 2000 < bound(50.0)
    with pytest.raises(ValueError, match=r"ridge = 0.5 .*feature_norm squared"):
        bound(ridge=0.5)


@pytest.mark.parametrize(("arguments", "name"), [
    ({"corruption_budget": -1.0}, "corruption_budget"), ({"ridge": 0.0}, "ridge"),
    ({"noise_scale": -1.0}, "noise_scale"), ({"theta_norm": 0.0}, "theta_norm"),
    ({"feature_norm": 0.0}, "feature_norm"), ({"num_arms": 1}, "num_arms"),
    ({"failure_prob": 1.0}, "failure_prob"), ({"radius_scale": -1.0}, "radius_scale"),
    ({"contexts": "moving"}, "contexts"),
])  # fmt: skip
def test_wrong_arguments_of_cw_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"{name} = .* must be"):
        made({}, **arguments)
