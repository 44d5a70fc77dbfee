"""gradient_bandit: literal paths with and without an optimizer, its rules for odd rewards, and its bits."""

import functools

import jax
import numpy as np
import optax
import pytest
import settings
from against_reference import exact_draw, on_tape
from dealt import dealt
from planting import errors, planted
from plays import watched
from reference import optimizers, stochastic
from uncompiled import uncompiled

from jaxbandits.algorithms import gradient_bandit
from jaxbandits.contract import operations
from jaxbandits.environments import bernoulli_arms, gaussian_arms
from jaxbandits.random import Draws

K, T = 3, 400
STILL = gaussian_arms(means=[0.31, 0.62, 0.57], scale=0.0)  # the same reward at every pull
ARMS = bernoulli_arms(means=[0.2, 0.5, 0.8])
WORLDS = {"still": STILL, "noisy": gaussian_arms(means=[0.2, 0.5, 0.8], scale=0.5)}  # one kind: one program
ADAM, MOMENTUM = optax.adam(0.1), optax.sgd(0.2, momentum=0.9)
# what the algorithm is given, and what the literal loop is
CASES = {
    "plain": ({"learning_rate": 0.4}, lambda m: {"learning_rate": 0.4}),
    "default": ({}, lambda m: {}),
    "no baseline": ({"learning_rate": 0.4, "baseline": False}, lambda m: {"learning_rate": 0.4, "baseline": False}),
    "sgd": ({"optimizer": optax.sgd(0.4)}, lambda m: {"learning_rate": 0.4}),
    "adam": ({"optimizer": ADAM}, lambda m: {"step": m.adam(0.1)}),
    "momentum": ({"optimizer": MOMENTUM}, lambda m: {"step": m.momentum(0.2, 0.9)}),
}


@functools.cache
def fast(name, world, seed):
    return watched(gradient_bandit(num_arms=K, horizon=T, **CASES[name][0]), WORLDS[world], seed).history


def literal(name, history, seed, loop=stochastic, steps=optimizers):
    """The literal path on the draws of a run. A path that leaves the run's is not paid from there on."""
    pay = lambda t, arm: float(history.reward[t - 1]) if history.action[t - 1] == arm else 0.0
    uniforms = exact_draw(seed, "alg/act", "uniform", np.arange(1, T + 1))
    return loop.gradient_bandit(pay, K, T, uniforms, **CASES[name][1](steps))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", CASES)
def test_paths_are_the_literal_ones(name, world):
    for seed in range(3):
        history = fast(name, world, seed)
        np.testing.assert_array_equal(history.action, literal(name, history, seed))
    assert len(np.unique(history.action)) > 1


PLANTED = [
    ("plain", stochastic, "-learning_rate * ascent", "-2 * learning_rate * ascent"),  # a doubled step
    ("plain", stochastic, "total / (t - 1)", "(total + reward) / t"),  # the mean is one play ahead
    ("plain", stochastic, "if t > 1 else reward", "if t > 1 else 0.0"),
    ("plain", stochastic, "(1.0 if a == arm else 0.0) - policy[a]", "(1.0 if a == arm else 0.0)"),
    ("no baseline", stochastic, "if baseline else 0.0", "if True else 0.0"),
    ("adam", optimizers, "rate * first", "2 * rate * first"),
    ("adam", stochastic, "step(-ascent, t)", "step(-ascent, t + 1)"),
    ("momentum", optimizers, "decay * memory[0] + g", "memory[0] + g"),
]


@pytest.mark.parametrize(("name", "error"), errors(PLANTED))
def test_planted_errors_fork_the_path(name, error):
    wrong = {"loop" if error.oracle is stochastic else "steps": planted(*error)}
    assert any(
        not np.array_equal(history.action, literal(name, history, seed, **wrong))
        for seed, history in ((seed, fast(name, "noisy", seed)) for seed in range(12))
    )


def preferences(rewards, **options):
    """Preferences after every play on given rewards of all arms."""
    algorithm = gradient_bandit(num_arms=K, horizon=len(rewards), **options)
    state = on_tape(algorithm, np.zeros((len(rewards), 1)), rewards)[2]
    return state.preferences, state.mean


def test_the_first_reward_teaches_nothing_with_a_baseline():
    for baseline, moved in ((True, False), (False, True)):
        found, _ = preferences([[0.31, 0.62, 0.57]], baseline=baseline)
        assert bool(np.any(found != 0)) == moved
        np.testing.assert_allclose(np.sum(found), 0, atol=1e-7)


def test_odd_rewards():
    """A reward that is not finite counts as 0; one that would move a preference out of the floats moves nothing."""
    rewards = np.random.default_rng(0).integers(0, 2, (30, K)).astype(float)
    bad, zero = rewards.copy(), rewards.copy()
    bad[::3], bad[1::6], zero[::3], zero[1::6] = np.nan, np.inf, 0.0, 0.0
    np.testing.assert_array_equal(preferences(bad)[0], preferences(zero)[0])
    rewards[::2] = 1e30
    assert all(np.all(np.isfinite(x)) for x in preferences(rewards, learning_rate=1e30))


def test_shares_are_those_of_a_softmax():
    algorithm = gradient_bandit(num_arms=K, horizon=10)
    preferences = np.array([0.0, 1.0, -2.0], np.float32)
    n = 20_000
    init = uncompiled(lambda: algorithm.program.init(None, Draws(np.uint32(0), "alg/init")))
    state = init()._replace(preferences=preferences)

    @uncompiled
    @jax.vmap
    def play(t):
        return algorithm.program.act(None, state, Draws(np.uint32(9), "alg/act"), t[None], ())[0][0]

    shares = np.bincount(play(np.arange(1, n + 1, dtype=np.int32)), minlength=K) / n
    want = np.exp(preferences) / np.exp(preferences).sum()
    assert np.all(np.abs(shares - want) < 4 * np.sqrt(want * (1 - want) / n))


CLIPPED = optax.chain(optax.clip_by_global_norm(0.1), optax.adagrad(0.3))
STEPS = {"plain": None, "momentum": MOMENTUM, "adam": ADAM, "adagrad": optax.adagrad(0.3), "clipped": CLIPPED}


def of_lanes(algorithm, lanes, horizon=200):
    """Preferences of lanes at the horizon, played side by side by a program that is optimized as a user's."""
    program, means = algorithm.program, np.linspace(0.2, 0.8, algorithm.config["num_arms"]).astype(np.float32)
    params = jax.tree.map(np.float32, algorithm.params)

    def one(seed):
        root = Draws(seed, "alg")

        def step(state, t):
            action, _, note = program.act(params, state, root.child("act"), t[None], ())
            won = (root.child("reward").uniform(t[None]) < jax.numpy.asarray(means)[action]).astype(np.float32)
            args = root.child("encode"), t[None], (), action, won, np.ones(1, bool)
            message = program.encode(params, note, *args)
            return program.update(params, state, root.child("update"), t, note, message, 1)[0], None

        plays = jax.numpy.arange(1, horizon + 1, dtype=np.int32)
        return jax.lax.scan(step, program.init(params, root.child("init")), plays)[0].preferences

    play = jax.jit(jax.vmap(one), compiler_options=settings.FULLY_OPTIMIZED)
    return np.asarray(play(np.arange(lanes, dtype=np.uint32)))


@pytest.mark.parametrize("name", STEPS)
def test_no_sum_over_arms_is_left_to_xla(name):
    """Its order could follow the number of lanes. optax's norm is such a sum, as the control shows."""
    algorithm, zeros = gradient_bandit(num_arms=40, horizon=9, optimizer=STEPS[name]), np.zeros(40, np.float32)
    program, params, draws = algorithm.program, jax.tree.map(np.float32, algorithm.params), Draws(np.uint32(0), "alg")

    def update(policy, reward):
        state = program.init(params, draws)
        return program.update(params, state, draws, np.int32(2), (np.int32(0), policy), reward, 1)

    def names(program):
        return {equation.primitive.name for equation in operations(program.eqns)}

    assert not {"reduce_sum", "dot_general"} & names(jax.make_jaxpr(update)(zeros, np.float32(1)))
    assert "reduce_sum" in names(jax.make_jaxpr(optax.global_norm)(zeros))


@pytest.mark.parametrize("name", dealt(STEPS, 6))
def test_lanes_beside_it_change_no_bit(name):
    """With many arms, where a norm over them that is left to XLA would follow the number of lanes."""
    arms = 40 if name == "clipped" else 8
    algorithm = gradient_bandit(num_arms=arms, horizon=200, optimizer=STEPS[name])
    few, many = (of_lanes(algorithm, lanes) for lanes in (8, 48))
    assert few.tobytes() == many[:8].tobytes() and np.ptp(few) > 0.1
