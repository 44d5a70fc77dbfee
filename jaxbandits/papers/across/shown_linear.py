"""Fixed linear arms whose features every play shows: elimination and bandits with contexts play the same problem."""

import jax.numpy as jnp

from jaxbandits.environments.linear import Params as LinearParams
from jaxbandits.environments.linear import in_unit_ball, linear_world
from jaxbandits.protocol import Environment, World
from jaxbandits.typing import Matrix, Vector
from jaxbandits.validation import array, factory


def shown_world(actions: tuple[tuple[float, ...], ...]) -> World:
    """The world of linear arms with rewards of 0 and 1, whose context is the features of all arms."""
    plain = linear_world(len(actions), "gaussian")

    def observe(params, state, draws, t):
        features = jnp.asarray(actions, draws.dtype)
        return jnp.broadcast_to(features, (*t.shape, *features.shape)), state

    def reward(params, state, draws, t, context, action):
        mean = params.means[action]
        return (draws.uniform(t) < mean).astype(mean.dtype)

    return plain._replace(observe=observe, reward=reward)


@factory
def shown_linear(*, actions: Matrix, theta: Vector) -> Environment:
    """Rewards are 1 with probability <a, theta>, else 0; every play shows `actions` [K, d]."""
    actions = in_unit_ball("actions", array("actions", actions, 2))
    theta = in_unit_ball("theta", array("theta", theta, 1, shape=(actions.shape[1],))[None])[0]
    means = actions @ theta
    if means.min() < 0 or means.max() > 1:
        raise ValueError(f"actions @ theta lies in [{means.min():g}, {means.max():g}]: give probabilities")
    world = shown_world(tuple(map(tuple, actions.tolist())))
    facts = {
        "num_arms": len(actions), "dim": actions.shape[1], "actions": actions, "means": means, "feature_norm": 1.0,
        "contexts": "fixed", "reward_range": (0.0, 1.0),
    }  # fmt: skip
    return Environment(world, LinearParams(means, theta, 0.0), facts, None, {})
