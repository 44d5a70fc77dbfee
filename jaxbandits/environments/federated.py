"""Federated linear bandits: agents with decision sets of their own share one theta (Byzantine-robust federated linear
bandits, sections 1 and 10). Axes: [P] plays of a window, [N] agents, [A] arms, [d] features.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.environments.contextual import unit_vectors
from jaxbandits.numerics import dot, pick, rounded
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    theta: Any  # [d]
    noise_scale: Any


@cache
def federated_world(num_agents: int, num_arms: int, dim: int, reward_kind: str) -> World:
    def init(params, draws):
        return ()

    def observe(params, state, draws, t):
        x = jnp.stack(unit_vectors(draws, t, num_agents * num_arms, dim), -1)
        return x.reshape(*t.shape, num_agents, num_arms, dim), state

    def reward(params, state, draws, t, context, action):
        x = jnp.take_along_axis(context, action[..., None, None], axis=2)[:, :, 0]
        if reward_kind == "bounded":
            noise = 2 * draws.uniform(t, (num_agents,)) - 1
        else:
            noise = draws.normal(t, (num_agents,))
        return rounded(dot(x, params.theta), t) + rounded(params.noise_scale * rounded(noise, t), t)

    def score(params, state, t, context, action):
        means = dot(context, params.theta)
        return Score(regret=jnp.max(means, axis=-1) - pick(means, action))

    def truth(params, state, t, context):
        return Truth(means=dot(context, params.theta), theta=params.theta)

    return World(init, observe, reward, score, truth)


@factory
def federated_linear(*, num_agents, num_arms, dim, theta_norm=1.0, reward="gaussian", noise_scale=0.5) -> Environment:
    """`num_agents` agents, each with `num_arms` fresh arms a play, uniform on the unit sphere of R^dim and independent.

    num_agents >= 1, num_arms >= 2, dim >= 1 [static]. theta = theta_norm * ones / sqrt(dim), 0 <= theta_norm <= sqrt(dim).
    reward: "gaussian": <x, theta> + noise_scale * N(0, 1); "bounded": <x, theta> + Uniform(-noise_scale, noise_scale), in
    [-1, 1] when theta_norm + noise_scale <= 1, as the private versions assume. noise_scale >= 0.
    The context is [P, N, A, d]; rewards and regrets are [P, N]. Facts: num_agents, num_arms, dim, theta_norm, reward_bound
    (the largest |reward|, inf for Gaussian noise).
    Source: Byzantine-robust federated linear bandits, section 2 (the instance is ours).

    >>> import jaxbandits as jb
    >>> jb.environments.federated_linear(num_agents=10, num_arms=5, dim=4).facts["num_agents"]
    10
    """
    num_agents, num_arms, dim = (
        integer("num_agents", num_agents, 1),
        integer("num_arms", num_arms, 2),
        integer("dim", dim, 1),
    )
    choice("reward", reward, ("gaussian", "bounded"))
    norm = number("theta_norm", theta_norm, 0.0, math.sqrt(dim) * (1 + 1e-9), remedy="the model bounds it by sqrt(dim)")
    noise = number("noise_scale", noise_scale, 0.0)
    params = Params(np.full(dim, norm / math.sqrt(dim)), noise)
    reach = math.inf if reward == "gaussian" and noise > 0 else norm + noise
    facts = {"num_agents": num_agents, "num_arms": num_arms, "dim": dim, "theta_norm": norm, "reward_bound": reach}
    return Environment(federated_world(num_agents, num_arms, dim, reward), params, facts, None, {})
