"""Contextual linear bandits with mean 1/2 + cos/2: the setting of the paper on locally private OnlineUCB.

The model: `docs/formulas/ldp_contextual.md#model`; the setting: `docs/formulas/ldp_contextual.md#figure-1`.
Axes: [P] plays of a window, [A] arms, [d] features.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.environments._sphere import direction
from jaxbandits.numerics import materialize, materialize_all, pick, rounded
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    """The numbers of the rewards."""

    # standard deviation of Gaussian rewards
    noise_scale: Any


class State(NamedTuple):
    """What is fixed for a trial."""

    # d numbers
    theta: Any
    # d features [A], stored apart so that a reader of one reads a contiguous array; () where contexts are redrawn
    arms: Any
    # [A]; () where contexts are redrawn
    means: Any
    # the largest of the means; () where contexts are redrawn
    best: Any


def unit_vectors(draws: Draws, t: Int[Array, "..."], rows: int, dim: int) -> list[Float[Array, "... rows"]]:
    """The `dim` components of `rows` directions, uniform on the unit sphere of R^dim, at each play t.

    The components are separate arrays, computed in one loop, so that a reader of one feature reads a contiguous array.
    """
    t, position = jnp.asarray(t)[..., None], jnp.arange(rows, dtype=jnp.uint32)
    return materialize_all(direction(lambda k: draws.words_at(t, position + np.uint32(k * rows)), dim, draws.dtype))


def inner(x: Sequence[Array], theta: Any) -> Array:
    """<x, theta>, summed feature by feature: x has d arrays, theta d numbers."""
    product: Any = sum(x[j] * theta[j] for j in range(len(x)))
    return product


@cache
def contextual_world(num_arms: int, dim: int, reward_kind: str, contexts: str, features: str) -> World:
    """The world of contextual linear bandits."""
    first, last = (math.sqrt(0.5), math.sqrt(0.5)) if features == "unit" else (1.0, 1.0)

    def arms_at(draws, t):
        """The d features of a decision set, each [..., A]."""
        x = [first * u for u in unit_vectors(draws, t, num_arms, dim - 1)]
        x.append(jnp.full(x[0].shape, last, draws.dtype))
        if features == "reference":  # the published code's first d arms: e_i + e_d for i < d, then e_d
            arm = np.arange(num_arms)
            for j in range(dim):
                head = jnp.asarray((arm == j) | (j == dim - 1), draws.dtype)
                x[j] = jnp.where(arm < dim, head, x[j])
        return x

    def init(params, draws):
        u = [z[0] for z in unit_vectors(draws.child("theta"), jnp.int32(0), 1, dim - 1)]
        scale, constant = (math.sqrt(0.5), math.sqrt(0.5)) if features == "unit" else (0.5, 0.5)
        theta = [*(scale * z for z in u), jnp.asarray(constant, draws.dtype)]
        if contexts == "redraw":
            return State(theta, (), (), ())
        arms = materialize_all(arms_at(draws.child("arms"), jnp.int32(0)))
        means = materialize(inner(arms, theta))
        return State(theta, arms, means, jnp.max(means))

    def observe(params, state, draws, t):
        if contexts == "redraw":
            return jnp.stack(arms_at(draws, t), -1), state
        return jnp.stack([jnp.broadcast_to(x, (*t.shape, num_arms)) for x in state.arms], -1), state

    def means_of(state, context):
        if contexts == "fixed":
            return jnp.broadcast_to(state.means, (len(context), num_arms))
        return inner([context[..., j] for j in range(dim)], state.theta)

    def reward(params, state, draws, t, context, action):
        if contexts == "fixed":
            mean = pick(means_of(state, context), action)
        else:  # `score` computes the means of all arms; here the played arm's is enough
            mean = inner([pick(context[..., j], action) for j in range(dim)], state.theta)
        mean = rounded(mean, t)
        if reward_kind == "bernoulli":  # one uniform a play for every arm: counterfactual rewards are defined
            return (draws.uniform(t) < mean).astype(mean.dtype)
        return mean + rounded(params.noise_scale * rounded(draws.normal(t), t), t)

    def score(params, state, t, context, action):
        means = materialize(means_of(state, context))
        best = state.best if contexts == "fixed" else jnp.max(means, axis=-1)
        return Score(regret=best - pick(means, action))

    def truth(params, state, t, context):
        return Truth(means=materialize(means_of(state, context)), theta=jnp.stack(state.theta))

    return World(init, observe, reward, score, truth)


@factory
def contextual_linear(
    *,
    num_arms: int,
    dim: int,
    reward: Literal["bernoulli", "gaussian"] = "bernoulli",
    contexts: Literal["redraw", "fixed"] = "redraw",
    features: Literal["unit", "reference"] = "unit",
    noise_scale: Scalar = 0.5,
) -> Environment:
    """Every play shows a feature vector for each arm; mean rewards are inner products with an unknown theta.

    Mean rewards lie in [0, 1] and theta is drawn once per trial. Below, u is uniform on the unit sphere of R^(dim -
    1) and the constant feature comes last.

    Parameters
    ----------
    num_arms : int
        Number of arms, at least 2 [static].
    dim : int
        Number of features, at least 2 [static].
    reward : {"bernoulli", "gaussian"}
        The law of a reward [static]: 0 or 1, or the mean plus Gaussian noise.
    contexts : {"redraw", "fixed"}
        Whether arms are fresh at every play or drawn once per trial [static].
    features : {"unit", "reference"}
        How arms and theta are drawn [static]. "unit": both are (u, 1) / sqrt 2, of norm 1. "reference", as in the
        published code: arms (u, 1), of which the first dim are e_i + e_dim (i < dim) and e_dim, and theta = (u, 1) /
        2; their norms are sqrt 2 and 1 / sqrt 2, and num_arms must be at least dim.
    noise_scale : float
        Standard deviation of "gaussian" rewards, at least 0.

    Returns
    -------
    Environment
        The context of a play is [num_arms, dim]. Facts: `num_arms`, `dim`, `feature_norm` (the largest norm),
        `contexts` and `reward_range`.

    Raises
    ------
    ValueError
        For an argument outside its range.

    References
    ----------
    `docs/formulas/ldp_contextual.md#figure-1`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.environments.contextual_linear(num_arms=100, dim=5).facts["feature_norm"]
    1.0
    """
    num_arms, dim = integer("num_arms", num_arms, 2), integer("dim", dim, 2)
    choice("reward", reward, ("bernoulli", "gaussian"))
    choice("contexts", contexts, ("redraw", "fixed"))
    choice("features", features, ("unit", "reference"))
    if features == "reference" and num_arms < dim:
        raise ValueError(
            f"num_arms = {num_arms} must be at least dim = {dim} with features='reference': "
            "its first dim arms are fixed"
        )
    params = Params(number("noise_scale", noise_scale, 0.0))
    noisy = reward == "gaussian" and params.noise_scale > 0
    facts = {
        "num_arms": num_arms,
        "dim": dim,
        "feature_norm": 1.0 if features == "unit" else math.sqrt(2),
        "contexts": contexts,
        "reward_range": (-math.inf, math.inf) if noisy else (0.0, 1.0),
    }
    return Environment(contextual_world(num_arms, dim, reward, contexts, features), params, facts, None, {}, version=2)
