"""Federated linear bandits: agents with decision sets of their own share one theta (Byzantine-robust federated linear
bandits, sections 1 and 10). Axes: [P] plays of a window, [N] agents, [A] arms, [d] features.
"""

import functools
import math
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.environments._sphere import direction
from jaxbandits.numerics import features, lanes_last, materialize, materialize_all, picked, played, rounded
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import to_normal, to_uniform
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    theta: Any  # [d]
    noise_scale: Any


def at_plays(draws, t):
    """`draws` and t [P, ...] for draws [P, n, ...]: the lanes come last."""
    return replace(draws, seed=jnp.asarray(draws.seed)[None, None]), t[:, None]


@cache
def directions(shape: tuple, dim: int):
    """draws, t [P] -> directions uniform on the unit sphere of R^dim, `shape` of them a play: `dim` components [P, *shape]."""
    rows = math.prod(shape)

    @lanes_last
    def drawn(draws, t):
        draws, t = at_plays(draws, t)
        position = jnp.arange(rows, dtype=jnp.uint32).reshape(1, rows, *(1,) * (t.ndim - 2))
        words = lambda k: draws.words_at(t, position + np.uint32(k * rows))
        x = materialize_all(direction(words, dim, draws.dtype))
        # reshaped here: outside it would part two transposes
        return [z.reshape(z.shape[0], *shape, *z.shape[2:]) for z in x]

    return drawn


@cache
def noises(num_agents: int, kind: str):
    """draws, t [P] -> noise of scale 1 [P, N]: the values of `draws.normal` or of 2 `draws.uniform` - 1, lanes last."""

    @lanes_last
    def drawn(draws, t):
        draws, t = at_plays(draws, t)
        half = (num_agents + 1) // 2
        position = jnp.arange(half, dtype=jnp.uint32).reshape(1, half, *(1,) * (t.ndim - 2))
        words = draws.words_at(t, position)
        if kind == "bounded":
            values = [2 * to_uniform(word, draws.dtype) - 1 for word in words]
        else:
            values = [to_normal(word, draws.dtype) for word in words]
        return jnp.concatenate(materialize_all(values), axis=1)[:, :num_agents]

    return drawn


def inner(x, theta):
    """<x, theta>, feature by feature: x a list of arrays, theta a list of numbers, lanes last in both."""
    theta = [z.reshape((1,) * (x[0].ndim - z.ndim) + z.shape) for z in theta]
    return sum(a * b for a, b in zip(x, theta, strict=True))


# once: what several read, all arms' means; an agent's own mean is read where it is made
product, product_once = lanes_last(inner), lanes_last(lambda x, theta: materialize(inner(x, theta)))


@lanes_last
def largest(means):
    """max over arms: [P, N, A] -> [P, N]."""
    return materialize(functools.reduce(jnp.maximum, [means[:, :, a] for a in range(means.shape[2])]))


@cache
def federated_world(num_agents: int, num_arms: int, dim: int, reward_kind: str) -> World:
    def init(params, draws):
        return ()

    def observe(params, state, draws, t):
        # stacked last, the lanes before: whoever reads one feature at a time with `lanes_last` reads what was drawn,
        # once
        return jnp.stack(directions((num_agents, num_arms), dim)(draws, t), -1), state

    def components(params):
        return [jnp.asarray(params.theta)[j] for j in range(dim)]

    def reward(params, state, draws, t, context, action):
        noise = noises(num_agents, reward_kind)(draws, t)
        mean = product(played(context, action), components(params))
        return rounded(mean, t) + rounded(params.noise_scale * rounded(noise, t), t)

    def score(params, state, t, context, action):
        means = product_once(features(context), components(params))
        return Score(regret=largest(means) - picked([means], action)[0])

    def truth(params, state, t, context):
        return Truth(means=product_once(features(context), components(params)), theta=params.theta)

    return World(init, observe, reward, score, truth)


@factory
def federated_linear(*, num_agents, num_arms, dim, theta_norm=1.0, reward="gaussian", noise_scale=0.5) -> Environment:
    """`num_agents` agents, each with `num_arms` fresh arms a play, uniform on the unit sphere of R^dim and independent.

    num_agents >= 1, num_arms >= 2, dim >= 1 [static]. theta = theta_norm * ones / sqrt(dim), 0 <= theta_norm <=
    sqrt(dim). reward: "gaussian": <x, theta> + noise_scale * N(0, 1); "bounded": <x, theta> + Uniform(-noise_scale,
    noise_scale), in [-1, 1] when theta_norm + noise_scale <= 1, as the private versions assume. noise_scale >= 0. The
    context is [P, N, A, d]; rewards and regrets are [P, N]. Facts: num_agents, num_arms, dim, theta_norm,
    reward_range (infinite for Gaussian noise). Source: Byzantine-robust federated linear bandits, section 2 (the
    instance is ours).

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
    facts = {
        "num_agents": num_agents,
        "num_arms": num_arms,
        "dim": dim,
        "theta_norm": norm,
        "reward_range": (-reach, reach),
    }
    return Environment(federated_world(num_agents, num_arms, dim, reward), params, facts, None, {}, version=3)
