"""Federated linear bandits: agents with decision sets of their own share one theta (Byzantine-robust federated linear
bandits, sections 1 and 10). Axes: [P] plays of a window, [N] agents, [A] arms, [d] features.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import dot, pick, rounded, settle, settle_all
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import to_uniform
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    theta: Any  # [d]
    noise_scale: Any


def sine_cosine(v):
    """sin and cos of pi v, v in [-1, 1]: in float32 by Taylor series at the half angle, within 8e-7 and without branches."""
    if v.dtype == jnp.float64:
        return jnp.sin(math.pi * v), jnp.cos(math.pi * v)

    def series(x, factorials):
        total = jnp.full_like(x, 1 / factorials[-1])
        for f in factorials[-2::-1]:
            total = total * x + 1 / f
        return total

    half = v * (math.pi / 2)
    sine = half * series(-half * half, [math.factorial(n) for n in range(1, 13, 2)])
    cosine = series(-half * half, [math.factorial(n) for n in range(0, 14, 2)])
    return 2 * sine * cosine, 1 - 2 * sine * sine


def directions(draws, t, rows: int, dim: int) -> list:
    """`rows` directions uniform on the unit sphere of R^dim at each play: `dim` components, each [..., rows].

    Both words of a counter block give two coordinates of a Gaussian vector by Box and Muller: an exponential for their squared
    length, an angle. An inverse error function for each would be most of the cost of a federated step.
    """
    x: list = []
    squares = 0.0  # from the exponentials, within 1e-6: from the coordinates it takes half as long again
    for pair in range((dim + 1) // 2):
        length, angle = draws.words(t, (rows,), first=pair * rows)
        square = -jnp.log(to_uniform(length, draws.dtype))
        sine, cosine = sine_cosine(angle.astype(jnp.int32).astype(draws.dtype) * draws.dtype(2.0**-31))
        radius = jnp.sqrt(square)
        both = 2 * pair + 1 < dim
        x += [radius * cosine, radius * sine] if both else [radius * cosine]
        squares = squares + (square if both else square * cosine * cosine)
    if dim == 1:
        return [jnp.where(x[0] < 0, -1, 1).astype(draws.dtype)]
    inverse = jax.lax.rsqrt(squares)
    return settle_all([z * inverse for z in x])


@cache
def federated_world(num_agents: int, num_arms: int, dim: int, reward_kind: str) -> World:
    def init(params, draws):
        return ()

    def observe(params, state, draws, t):
        # stacked last: whoever reads one feature at a time reads a contiguous array, drawn once (a context read as a whole
        # [P, N, A, d] runs at a quarter of the rate)
        x = [u.reshape(*t.shape, num_agents, num_arms) for u in directions(draws, t, num_agents * num_arms, dim)]
        return jnp.stack(x, -1), state

    def values(params, context):
        """<x, theta> of every arm, [P, N, A], feature by feature."""
        total = context[..., 0] * params.theta[0]
        for j in range(1, dim):
            total = total + context[..., j] * params.theta[j]
        return total

    def reward(params, state, draws, t, context, action):
        x = jnp.stack([pick(context[..., j], action) for j in range(dim)], -1)
        if reward_kind == "bounded":
            noise = 2 * draws.uniform(t, (num_agents,)) - 1
        else:
            noise = draws.normal(t, (num_agents,))
        return rounded(dot(x, params.theta), t) + rounded(params.noise_scale * rounded(noise, t), t)

    def score(params, state, t, context, action):
        means = settle(values(params, context))
        return Score(regret=jnp.max(means, axis=-1) - pick(means, action))

    def truth(params, state, t, context):
        return Truth(means=values(params, context), theta=params.theta)

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
    return Environment(federated_world(num_agents, num_arms, dim, reward), params, facts, None, {}, version=2)
