"""Private and robust bandits against their literal transcriptions: the same draws in, the same paths out, in float64.

Rewards of every arm at every play, contaminated as the simulator does it, and the algorithms' own draws by their addresses
are handed to the transcriptions. Windows are cut at checkpoints on the way, which must change nothing.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import private_robust_rivals as rivals

import jaxbandits as jb
from jaxbandits import algorithms, environments
from jaxbandits.protocol import Seen
from jaxbandits.random import Draws

MEANS = (0.3, 0.8, 0.1, 0.6)
K = len(MEANS)


# ---------------------------------------------------------------- the simulator's draws


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _draw(path, seed, kind, shape, t):
    return getattr(Draws(seed, path, jnp.float64), kind)(t, shape)


@functools.lru_cache(maxsize=64)
def table(seed, path, kind, horizon, shape=()):
    """Draws of plays 0 .. horizon + 1 under a path, float64 [horizon + 2, *shape]."""
    with jax.enable_x64(True):
        return np.asarray(_draw(path, jnp.uint32(seed), kind, shape, jnp.arange(horizon + 2, dtype=jnp.int32)))


@functools.lru_cache(maxsize=64)
def paid(environment, adversary, seed, horizon):
    """What each arm would pay at each play, after contamination: float64 [horizon + 2, K]."""
    environment, adversary = environment(), adversary and adversary()
    with jax.enable_x64(True):
        root, t = Draws(jnp.uint32(seed), "", jnp.float64), jnp.arange(horizon + 2, dtype=jnp.int32)
        params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), environment.params)
        world, hand = environment.world, root.child("contamination")

        def pay(draws, action):
            return world.reward(params, (), draws, t, (), action)

        def column(arm):
            action = jnp.full(t.shape, arm, jnp.int32)
            reward = pay(root.child("environment").child("reward"), action)
            if adversary is None:
                return reward
            again = lambda other: pay(hand.child("reward"), other)
            seen = Seen(t, (), action, True, world.truth(params, (), t, ()), (), (), (), again)
            numbers = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), adversary.params)
            return adversary.attack.corrupt(numbers, (), hand, t, reward, seen)[0]

        return np.asarray(jnp.stack([column(arm) for arm in range(K)], axis=-1))


# ---------------------------------------------------------------- cases


class Pair(NamedTuple):
    """A fast algorithm and the same run of the transcription."""

    algorithm: Any
    literal: Any  # (rewards(t, arm), draws(path, kind, shape) -> table, noise multiplier) -> actions [T]
    private: bool = True
    environment: Any = None
    seeds: range = range(6)


class Setting(NamedTuple):
    """Where a pair is compared."""

    environment: Any
    adversary: Any = None


def huber(**settings):
    return functools.partial(jb.adversaries.huber, **settings)


def huge():
    return jb.adversaries.huber(corruption=0.05, value=1e6)


ARMS = functools.partial(environments.gaussian_arms, means=MEANS, scale=0.4)
COINS = functools.partial(environments.bernoulli_arms, means=MEANS)
SETTINGS = {
    "coins": Setting(COINS),
    "gauss": Setting(ARMS),
    "inf": Setting(ARMS, huber(corruption=0.05, value="inf")),
    "-inf": Setting(COINS, huber(corruption=0.1, value="-inf")),
    "nan": Setting(ARMS, huber(corruption=0.1, value="nan")),
    "huge": Setting(ARMS, huber(corruption=0.05, value=1e6)),
    "cauchy": Setting(ARMS, huber(corruption=0.1, kind="cauchy")),
    "swapped": Setting(COINS, huber(corruption=0.2, kind="swapped")),
}


def released(factory, literal, horizon, **settings):
    """Episodes and epochs: one Laplace draw an estimate, at its last play."""
    algorithm = factory(num_arms=K, horizon=horizon, **settings)

    def run(rewards, draws, multiplier):
        laplace = draws("alg/update/laplace", "laplace")
        return literal(
            rewards, lambda t: laplace[t], num_arms=K, horizon=horizon, mechanism_scale=multiplier, **settings
        )[0]

    return Pair(algorithm, run)


PAIRS = {
    **{
        f"dp_se {epsilon}": released(algorithms.dp_se, rivals.dp_se, 3000, epsilon=epsilon, failure_prob=0.9)
        for epsilon in (0.3, 5.0, math.inf)
    },
    **{
        f"dprse {k}": released(
            algorithms.dprse, rivals.dprse, 3000, epsilon=0.9, failure_prob=0.9, moment_order=k, moment_bound=u)
        for k, u in ((2.0, 0.02), (3.0, 0.005))
    },
    **{
        f"{name} {epsilon}": released(getattr(algorithms, name), getattr(rivals, name), 1500, epsilon=epsilon, index_scale=scale)
        for name in ("adap_ucb", "adap_kl_ucb") for epsilon, scale in ((0.5, 3.1), (5.0, 0.5), (math.inf, 1.0))
    },
}  # fmt: skip
CASES = [
    (name, setting, noisy) for name, pair in PAIRS.items() for setting in SETTINGS for noisy in (True, False)
    if noisy or pair.private
]  # fmt: skip


@pytest.mark.parametrize(("name", "setting", "noisy"), CASES)
def test_paths_are_those_of_the_transcription(name, setting, noisy):
    pair, (environment, adversary) = PAIRS[name], SETTINGS[setting]
    algorithm = pair.algorithm
    if pair.private and not noisy:
        algorithm = algorithm._replace(params=algorithm.params._replace(mechanism_scale=0.0))
    horizon = algorithm.config["horizon"]
    for seed in pair.seeds:
        run = jb.simulate(algorithm, environment(), reward_adversary=adversary and adversary(), seed=seed, history=True,
                          checkpoints=9, dtype="float64")  # fmt: skip
        x = paid(environment, adversary, seed, horizon)
        literal = pair.literal(
            lambda t, arm, x=x: x[t, arm],
            lambda path, kind, shape=(), seed=seed: table(seed, path, kind, horizon, shape),
            float(noisy),
        )
        np.testing.assert_array_equal(run.history.action, literal)
        np.testing.assert_array_equal(run.pulls, np.bincount(literal, minlength=K))
