"""Federated linear bandits: agents with decision sets of their own share one theta.

The model: `docs/formulas/byzantine.md#model`. Axes: [P] plays of a window, [N] agents, [A] arms, [d] features.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import LATER, Dim, Doc, Ge, NonNegative, NumAgents, NumArms
from jaxbandits.environments._sphere import direction
from jaxbandits.environments.arms import no_state
from jaxbandits.numerics import features, lanes_last, materialize, materialize_all, picked, played, rounded
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import Draws, to_normal, to_uniform
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory, number


class Params(NamedTuple):
    theta: Numeric  # [d]
    noise_scale: Numeric


def at_plays(draws: Draws, t: Int[Array, "P ..."]) -> tuple[Draws, Int[Array, "P 1 ..."]]:
    """`draws` and t [P, ...] for draws [P, n, ...]: the lanes come last."""
    return replace(draws, seed=jnp.asarray(draws.seed)[None, None]), t[:, None]


@cache
def directions(shape: tuple[int, ...], dim: int) -> Callable[..., list[Array]]:
    """A function of draws, t [P]: the `dim` components [P, *shape] of directions uniform on the unit sphere."""
    rows = math.prod(shape)

    @lanes_last
    def draw_directions(draws, t):
        draws, t = at_plays(draws, t)
        position = jnp.arange(rows, dtype=jnp.uint32).reshape(1, rows, *(1,) * (t.ndim - 2))
        words = lambda k: draws.words_at(t, position + np.uint32(k * rows))
        x = materialize_all(direction(words, dim, draws.dtype))
        # reshaped here: outside, it would stand between two transposes and keep them from cancelling
        return [z.reshape(z.shape[0], *shape, *z.shape[2:]) for z in x]

    return draw_directions


@cache
def noises(num_agents: int, kind: str) -> Callable[..., Array]:
    """A function of draws, t [P]: noise of scale 1 [P, N], values of `draws.normal` or of 2 `draws.uniform` - 1."""

    @lanes_last
    def draw_noises(draws, t):
        draws, t = at_plays(draws, t)
        half = (num_agents + 1) // 2
        position = jnp.arange(half, dtype=jnp.uint32).reshape(1, half, *(1,) * (t.ndim - 2))
        words = draws.words_at(t, position)
        if kind == "bounded":
            values = [2 * to_uniform(word, draws.dtype) - 1 for word in words]
        else:
            values = [to_normal(word, draws.dtype) for word in words]
        return jnp.concatenate(materialize_all(values), axis=1)[:, :num_agents]

    return draw_noises


def product_by_feature(x: Sequence[Array], theta: Sequence[Array]) -> Array:
    """<x, theta>, summed feature by feature: x are d arrays, theta d numbers, the lanes last in both."""
    theta = [z.reshape((1,) * (x[0].ndim - z.ndim) + z.shape) for z in theta]
    product: Any = sum(a * b for a, b in zip(x, theta, strict=True))
    return product


# `product_once` is for all arms' means, which several functions read: they are computed once. An agent's own mean is
# read only where it is computed.
product: Callable[..., Array] = lanes_last(product_by_feature)
product_once: Callable[..., Array] = lanes_last(lambda x, theta: materialize(product_by_feature(x, theta)))


@lanes_last
def largest_over_arms(means: Float[Array, "P N A ..."]) -> Float[Array, "P N ..."]:
    """The largest mean over the arms."""
    return materialize(functools.reduce(jnp.maximum, [means[:, :, a] for a in range(means.shape[2])]))


@cache
def federated_world(num_agents: int, num_arms: int, dim: int, reward_kind: str) -> World:
    """The world of federated linear bandits."""

    def observe(params, state, draws, t):
        # Features are stacked last, behind the lanes: a reader of one feature under `lanes_last` reads what was
        # drawn, once.
        return jnp.stack(directions((num_agents, num_arms), dim)(draws, t), -1), state

    def components(params):
        return [jnp.asarray(params.theta)[j] for j in range(dim)]

    def reward(params, state, draws, t, context, action):
        noise = noises(num_agents, reward_kind)(draws, t)
        mean = product(played(context, action), components(params))
        return rounded(mean, t) + rounded(params.noise_scale * rounded(noise, t), t)

    def score(params, state, t, context, action):
        means = product_once(features(context), components(params))
        return Score(regret=largest_over_arms(means) - picked([means], action)[0])

    def truth(params, state, t, context):
        return Truth(means=product_once(features(context), components(params)), theta=params.theta)

    return World(no_state, observe, reward, score, truth)


@factory(
    source='Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits"; the instance is ours: '
    "`docs/formulas/byzantine.md#model`."
)
def federated_linear(
    *,
    num_agents: Annotated[NumAgents, Doc("Number of agents N.")],
    num_arms: Annotated[NumArms, Doc("Number of arms that an agent sees at a play.")],
    dim: Annotated[Dim, Doc("Number of features d.")],
    theta_norm: Annotated[Scalar, Ge(0), LATER, Doc("Norm of theta, at most sqrt(dim).")] = 1.0,
    reward: Literal["gaussian", "bounded"] = "gaussian",
    noise_scale: Annotated[NonNegative, Doc("Scale of the noise.")] = 0.5,
) -> Environment:
    """Agents that each see fresh random arms at every play and share one unknown theta.

    Every arm is uniform on the unit sphere of R^dim, independent over arms, agents and plays. Its mean reward is <x,
    theta> with theta = theta_norm * ones / sqrt(dim).

    Args:
        reward: The noise of a reward: noise_scale N(0, 1), or uniform on (-noise_scale, noise_scale). Private
            algorithms assume rewards in [-1, 1]: "bounded" with theta_norm + noise_scale <= 1.

    Returns:
        Environment: The context of a play is [N, num_arms, dim]; rewards and regrets are [N]. Facts: `num_agents`,
            `num_arms`, `dim`, `theta_norm` and `reward_range`, which Gaussian noise makes infinite.

    >>> jb.environments.federated_linear(num_agents=10, num_arms=5, dim=4).facts["num_agents"]
    10
    """
    norm = number("theta_norm", theta_norm, 0.0, math.sqrt(dim) * (1 + 1e-9), remedy="the model bounds it by sqrt(dim)")
    params = Params(np.full(dim, norm / math.sqrt(dim)), noise_scale)
    reach = math.inf if reward == "gaussian" and noise_scale > 0 else norm + noise_scale
    facts: dict[str, Any] = {"num_agents": num_agents, "num_arms": num_arms, "dim": dim, "theta_norm": norm}
    facts |= {"reward_range": (-reach, reach), "shows": "agents"}
    return Environment(federated_world(num_agents, num_arms, dim, reward), params, facts, None, {}, version=3)
