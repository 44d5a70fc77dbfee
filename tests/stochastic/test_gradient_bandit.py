"""gradient_bandit: literal paths with and without an optimizer, its law, its rules for odd rewards, and its bits."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from against_reference import apart, exact_draw, fast_runs, planted
from reference import optimizers, stochastic

import jaxbandits as jb
from jaxbandits.adversaries import huber
from jaxbandits.algorithms import gradient_bandit
from jaxbandits.environments import bernoulli_arms, gaussian_arms
from jaxbandits.random import Draws

K, T = 3, 400
STILL = gaussian_arms(means=[0.31, 0.62, 0.57], scale=0.0)  # the same reward at every pull
ARMS = bernoulli_arms(means=[0.2, 0.5, 0.8])
WORLDS = {"still": STILL, "bernoulli": ARMS}
ADAM, MOMENTUM = optax.adam(0.1), optax.sgd(0.2, momentum=0.9)
# what the algorithm is given, and what the literal loop is
CASES = {
    "plain": ({"learning_rate": 0.4}, lambda m: {"learning_rate": 0.4}),
    "default": ({}, lambda m: {}),
    "no baseline": (
        {"learning_rate": 0.4, "baseline": False},
        lambda m: {"learning_rate": 0.4, "baseline": False},
    ),
    "sgd": ({"optimizer": optax.sgd(0.4)}, lambda m: {"learning_rate": 0.4}),
    "adam": ({"optimizer": ADAM}, lambda m: {"step": m.adam(0.1)}),
    "momentum": ({"optimizer": MOMENTUM}, lambda m: {"step": m.momentum(0.2, 0.9)}),
}


@functools.cache
def fast(name, world, seed):
    algorithm = gradient_bandit(num_arms=K, horizon=T, **CASES[name][0])
    return jb.simulate(algorithm, WORLDS[world], seed=seed, history=True, checkpoints=1, dtype="float64").history


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
    ("plain", "loop", "-learning_rate * ascent", "-2 * learning_rate * ascent"),  # a doubled step
    ("plain", "loop", "total / (t - 1)", "(total + reward) / t"),  # the mean is one play ahead
    ("plain", "loop", "if t > 1 else reward", "if t > 1 else 0.0"),
    ("plain", "loop", "(1.0 if a == arm else 0.0) - policy[a]", "(1.0 if a == arm else 0.0)"),
    ("no baseline", "loop", "if baseline else 0.0", "if True else 0.0"),
    ("adam", "steps", "rate * first", "2 * rate * first"),
    ("adam", "loop", "step(-ascent, t)", "step(-ascent, t + 1)"),
    ("momentum", "steps", "decay * memory[0] + g", "memory[0] + g"),
]


@pytest.mark.parametrize(("name", "where", "old", "new"), PLANTED)
def test_planted_errors_fork_the_path(name, where, old, new):
    wrong = {where: planted({"loop": stochastic, "steps": optimizers}[where], old, new)}
    assert any(
        not np.array_equal(history.action, literal(name, history, seed, **wrong))
        for seed, history in ((seed, fast(name, "bernoulli", seed)) for seed in range(12))
    )


def test_pulls_have_the_law_of_the_literal_loop():
    """Plays of the best arm, over 256 runs of its own draws; those of a doubled step are told apart."""
    runs, horizon, rng = 256, 150, np.random.default_rng(3)
    means = ARMS.facts["means"]

    def plays(loop):
        found = []
        for _ in range(runs):
            rewards = (rng.uniform(size=(horizon, K)) < means).astype(float)
            path = loop.gradient_bandit(lambda t, arm, r=rewards: r[t - 1, arm], K, horizon, rng.uniform(size=horizon))
            found.append(np.count_nonzero(path == 2))
        return np.array(found)

    ds = jb.sweep(gradient_bandit, ARMS, horizon=horizon, seeds=runs, checkpoints=1, progress=False)
    ours = ds.pulls.values[0, :, 2]
    assert apart(ours, plays(stochastic)) < 4
    assert apart(ours, plays(planted(stochastic, "-learning_rate * ascent", "-2 * learning_rate * ascent"))) > 4


def test_the_first_reward_teaches_nothing_with_a_baseline():
    for baseline, moved in ((True, False), (False, True)):
        algorithm = gradient_bandit(num_arms=K, horizon=1, baseline=baseline)
        state = jb.simulate(algorithm, STILL).state
        assert bool(np.any(state.preferences != 0)) == moved
        np.testing.assert_allclose(np.sum(state.preferences), 0, atol=1e-7)


def test_odd_rewards():
    """A reward that is not finite counts as 0; one that would move a preference out of the floats moves nothing."""
    run = partial(jb.simulate, gradient_bandit(num_arms=K, horizon=50), ARMS)
    nan, zero = (run(reward_adversary=huber(corruption=1.0, value=value)).state for value in ("nan", 0.0))
    np.testing.assert_array_equal(nan.preferences, zero.preferences)
    far = gradient_bandit(num_arms=K, horizon=50, learning_rate=1e30)
    state = jb.simulate(far, ARMS, reward_adversary=huber(corruption=0.5, value=1e30)).state
    assert np.all(np.isfinite(state.preferences)) and np.isfinite(state.mean)


def test_an_optimizer_of_plain_steps_is_plain_ascent():
    seeds = range(4)
    plain, _ = fast_runs(gradient_bandit(num_arms=K, horizon=T, learning_rate=0.4), ARMS, seeds)
    sgd, _ = fast_runs(gradient_bandit(num_arms=K, horizon=T, optimizer=optax.sgd(0.4)), ARMS, seeds)
    np.testing.assert_array_equal(plain, sgd)


CLIPPED = optax.chain(optax.clip_by_global_norm(0.1), optax.adagrad(0.3))
STEPS = {"plain": None, "momentum": MOMENTUM, "adam": ADAM, "adagrad": optax.adagrad(0.3), "clipped": CLIPPED}


@pytest.mark.parametrize("name", STEPS)
def test_lanes_beside_it_change_no_bit(name):
    """With many arms, where a norm over them that is left to XLA would follow the number of lanes."""
    arms = bernoulli_arms(means=np.linspace(0.2, 0.8, 40 if name == "clipped" else 8))
    algorithm = partial(gradient_bandit, optimizer=STEPS[name])
    few, many = (
        jb.sweep(algorithm, arms, horizon=200, seeds=seeds, checkpoints=3, progress=False) for seeds in (8, 48)
    )
    for variable in ("regret", "pulls"):
        assert few[variable].values.tobytes() == many[variable].values[:, :8].copy().tobytes()


def test_shares_are_those_of_a_softmax():
    algorithm = gradient_bandit(num_arms=K, horizon=10)
    preferences = jnp.array([0.0, 1.0, -2.0])
    n = 20_000
    state = algorithm.program.init(None, Draws(np.uint32(0), "alg/init"))._replace(preferences=preferences)
    t = jnp.arange(1, n + 1, dtype=jnp.int32)
    play = jax.vmap(lambda t: algorithm.program.act(None, state, Draws(np.uint32(9), "alg/act"), t[None], ())[0][0])
    shares = np.bincount(jax.jit(play)(t), minlength=K) / n
    want = np.exp(preferences) / np.exp(preferences).sum()
    assert np.all(np.abs(shares - want) < 4 * np.sqrt(want * (1 - want) / n))


def test_an_optimizer_that_reads_more_than_the_gradient_is_named():
    with pytest.raises(ValueError, match=r"optimizer = GradientTransformationExtraArgs made by optax.*value_fn"):
        gradient_bandit(num_arms=3, horizon=10, optimizer=optax.lbfgs())
