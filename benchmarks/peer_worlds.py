"""What `peers.py` plays on our side where a public part plays something else than the peers.

Gains for EXP3, which ours learns as losses, and LinUCB with a linear model for each arm, as a LinUCB of one model whose
features are zero outside the block of their arm.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits.protocol import Algorithm, Environment, Score, Truth, World


@cache
def _gains(num_arms: int) -> World:
    world = jb.environments.bernoulli_arms(means=np.full(num_arms, 0.5)).world

    def reward(params, state, draws, t, context, action):
        return 1 + world.reward(params, state, draws, t, context, action)

    return world._replace(reward=reward, law=None)


def bernoulli_gains(means: np.ndarray) -> Environment:
    """Bernoulli arms that pay one more: the loss that a learner reads, 1 - reward, is minus the reward of the arm.

    EXP3 then multiplies the weight of the played arm by exp(learning_rate * reward / P), as in Auer et al. 2002.
    """
    arms = jb.environments.bernoulli_arms(means=means)
    facts = {name: fact for name, fact in arms.facts.items() if name != "reward_range"}
    return arms._replace(world=_gains(len(means)), facts=facts)


class LinearParams(NamedTuple):
    """The numbers of linear arms."""

    # [K, d]
    theta: Any
    # standard deviation of a reward
    noise_scale: Any
    # of a component of a context
    context_scale: Any


@cache
def _models(num_arms: int, dim: int, shared: bool) -> World:
    def contexts(params, draws, t):  # [P, K, d]
        rows = 1 if shared else num_arms
        drawn = params.context_scale * draws.normal(t, (rows, dim))
        return jnp.broadcast_to(drawn, (*t.shape, num_arms, dim))

    def init(params, draws):
        return ()

    def observe(params, state, draws, t):
        own = jnp.eye(num_arms, dtype=draws.dtype)[None, :, :, None]
        blocks = contexts(params, draws, t)[:, :, None, :] * own
        return blocks.reshape(len(t), num_arms, num_arms * dim), state

    def means(params, context):  # [P, K]
        return context @ jnp.asarray(params.theta, context.dtype).reshape(-1)

    def played(params, context, action):
        return jnp.take_along_axis(means(params, context), action[:, None], axis=1)[:, 0]

    def reward(params, state, draws, t, context, action):
        return played(params, context, action) + params.noise_scale * draws.child("noise").normal(t)

    def score(params, state, t, context, action):
        return Score(regret=means(params, context).max(axis=1) - played(params, context, action))

    def truth(params, state, t, context):
        return Truth(means=means(params, context))

    return World(init, observe, reward, score, truth)


def linear_models(theta: np.ndarray, noise_scale: float, shared: bool) -> Environment:
    """Arms with a linear model each: theta [K, d], contexts normal with variance 1 / d, one an arm or one for all."""
    num_arms, dim = theta.shape
    params = LinearParams(theta, np.float64(noise_scale), np.float64(1 / math.sqrt(dim)))
    facts = {"num_arms": num_arms, "dim": num_arms * dim}
    return Environment(_models(num_arms, dim, shared), params, facts, None, {})


def plain_linucb(*, num_arms: int, dim: int, horizon: int, width: float = 1.0, ridge: float = 1.0) -> Algorithm:
    """`linucb` with the same width in every play and a ridge of one's choice, as in the other libraries."""
    algorithm = jb.algorithms.linucb(num_arms=num_arms, dim=dim, horizon=horizon)
    return algorithm._replace(params=algorithm.params._replace(radius_scale=1.0, base=width, slope=0.0, ridge=ridge))
