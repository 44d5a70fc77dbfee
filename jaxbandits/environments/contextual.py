"""Contextual linear bandits with mean 1/2 + cos/2 (improved rate for locally private linear bandits, sections 1 and 8).

Axes: [P] plays of a window, [A] arms, [d] features.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import dot, fixed_sum, pick, rounded, settle
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import to_normal
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    noise_scale: Any


class State(NamedTuple):
    """Fixed for a trial."""

    theta: Any  # [d]
    arms: Any  # [A, d], () where contexts are redrawn


def unit_vectors(draws, t, rows: int, dim: int) -> list:
    """`rows` directions uniform on the unit sphere of R^dim at each play: `dim` components, each [..., rows].

    Both words of a counter block give a normal: ceil(dim / 2) blocks a direction. Components are kept apart, and the
    normalisation is elementwise, so that draws, features and whatever reads them fuse into one loop over the arms.
    """
    normals: list = []
    for pair in range((dim + 1) // 2):
        # settled: otherwise every reader of the features draws the bits again (1.7x for one parameter point, 1.5x for eight)
        words = settle(jnp.stack(draws.words(t, (rows,), first=pair * rows)))
        normals += [to_normal(word, draws.dtype) for word in words]
    normals = normals[:dim]
    if dim == 1:
        return [jnp.sign(normals[0])]  # a normal is never 0
    inverse = jax.lax.rsqrt(fixed_sum(jnp.stack([z * z for z in normals], -1)))
    return [z * inverse for z in normals]


@cache
def contextual_world(num_arms: int, dim: int, reward_kind: str, contexts: str, features: str) -> World:
    first, last = (math.sqrt(0.5), math.sqrt(0.5)) if features == "unit" else (1.0, 1.0)

    def decision_set(draws, t):
        x = [first * u for u in unit_vectors(draws, t, num_arms, dim - 1)]
        x.append(jnp.full(x[0].shape, last, draws.dtype))
        x = jnp.stack(x, -1)
        if features == "reference":  # the published code's first d arms: e_i + e_d for i < d, then e_d
            basis = np.eye(dim)
            basis[:-1, -1] = 1
            head = jnp.broadcast_to(jnp.asarray(basis, draws.dtype), (*x.shape[:-2], dim, dim))
            x = jnp.concatenate([head, x[..., dim:, :]], axis=-2)
        return x

    def init(params, draws):
        u = jnp.stack(unit_vectors(draws.child("theta"), jnp.int32(0), 1, dim - 1), -1)[0]
        scale, constant = (math.sqrt(0.5), math.sqrt(0.5)) if features == "unit" else (0.5, 0.5)
        theta = jnp.concatenate([scale * u, jnp.full(1, constant, draws.dtype)])
        return State(theta, decision_set(draws.child("arms"), jnp.int32(0)) if contexts == "fixed" else ())

    def observe(params, state, draws, t):
        if contexts == "fixed":
            return jnp.broadcast_to(state.arms, (*t.shape, num_arms, dim)), state
        return decision_set(draws, t), state

    def reward(params, state, draws, t, context, action):
        x = jnp.take_along_axis(context, action[:, None, None], axis=1)[:, 0]
        mean = rounded(dot(x, state.theta), t)
        if reward_kind == "bernoulli":  # one uniform a play for every arm: counterfactual rewards are defined
            return (draws.uniform(t) < mean).astype(mean.dtype)
        return mean + rounded(params.noise_scale * rounded(draws.normal(t), t), t)

    def score(params, state, t, context, action):
        means = dot(context, state.theta)
        return Score(regret=jnp.max(means, axis=-1) - pick(means, action))

    def truth(params, state, t, context):
        return Truth(means=dot(context, state.theta), theta=state.theta)

    return World(init, observe, reward, score, truth)


@factory
def contextual_linear(
    *, num_arms, dim, reward="bernoulli", contexts="redraw", features="unit", noise_scale=0.5
) -> Environment:
    """`num_arms` feature vectors a play, reward mean <x, theta> in [0, 1]; theta is drawn once per trial.

    num_arms >= 2, dim >= 2 [static]. u below is uniform on the unit sphere of R^(dim - 1), the constant comes last.
    reward: "bernoulli", or "gaussian" with standard deviation noise_scale >= 0.
    contexts: "redraw": fresh arms at every play; "fixed": drawn once per trial.
    features: "unit": arms and theta are (u, 1) / sqrt 2 (norm 1); "reference": arms (u, 1), of which the first dim are
    e_i + e_dim (i < dim) and e_dim, and theta = (u, 1) / 2 (norms sqrt 2 and 1 / sqrt 2; num_arms >= dim).
    The context is [P, num_arms, dim]. Facts: num_arms, dim, feature_norm (the largest norm L).
    Source: improved rate for locally differentially private linear bandits, Figure 1's setting and the published code's.

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
            f"num_arms = {num_arms} must be at least dim = {dim} with features='reference': its first dim arms are fixed"
        )
    params = Params(number("noise_scale", noise_scale, 0.0))
    facts = {"num_arms": num_arms, "dim": dim, "feature_norm": 1.0 if features == "unit" else math.sqrt(2)}
    return Environment(contextual_world(num_arms, dim, reward, contexts, features), params, facts, None, {})
