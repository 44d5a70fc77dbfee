"""LinUCB on plain sums, what the comparators of Byzantine-robust federated linear bandits share.

`docs/formulas/byzantine.md#linucb-comparators`. Axes: [L] plays, [N] agents, [A] arms, [d] features.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.federated.agents import EpisodeConstants, ridge
from jaxbandits.numerics import added, fixed_sum, left_out, matvec
from jaxbandits.numerics.linear_algebra import inverse_above_floor
from jaxbandits.protocol import Moments, Program
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar


class Params(NamedTuple):
    """Numbers of LinUCB for the mean over the agents N_1, ..., N - 1."""

    constants: EpisodeConstants
    num_attacked: Numeric  # N_1
    episodes: Numeric  # K


class Message(NamedTuple):
    """What an attacker sees and may replace, and what the agent keeps: updates read only the latter."""

    gram: Float[Array, "N d d"]
    vector: Float[Array, "N d"]
    kept: Moments


class State(NamedTuple):
    """Of every agent with a leading [N], or of the averaged agents together."""

    sums: Moments  # sums of finished episodes, and what rounding left out of them in a long run, otherwise ()
    rest: Any
    theta: Float[Array, "... d"]
    inverse: Float[Array, "... d d"]  # Lambda_k^-1
    episode: Int[Array, ""]  # k >= 1


@cache
def program(num_agents: int, dim: int, window: int, averaged: bool) -> Program:
    """LinUCB of every agent for itself, of params `Constants`, or with `averaged` of a server, of params `Params`."""
    own = () if averaged else (num_agents,)
    invert = inverse_above_floor if averaged else jax.vmap(inverse_above_floor, (0, None))

    def constants_of(params):
        return params.constants if averaged else params

    def init(params, draws):
        zero = Moments(jnp.zeros((*own, dim, dim), draws.dtype), jnp.zeros((*own, dim), draws.dtype))
        start = jnp.eye(dim, dtype=draws.dtype) / ridge(constants_of(params), jnp.int32(1), draws.dtype)
        inverse = jnp.broadcast_to(start, zero.gram.shape)
        return State(zero, left_out(zero, draws.long), zero.vector, inverse, jnp.int32(1))

    def act(params, state, draws, t, context):
        width = agents.episode_radius(constants_of(params), state.episode, draws.dtype)
        return agents.choose(context, state.theta, state.inverse, width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        sent = agents.moments(context, action, reward, play)
        return sent if averaged else Message(sent.gram, sent.vector, sent)

    def update(params, state, draws, t, note, message, used):
        # of what an agent keeps, only a reward that is not finite can be refused
        gram, vector, _ = agents.accept(message if averaged else message.kept, 1e4 * window)
        if averaged:
            known = jnp.arange(num_agents, dtype=jnp.int32) >= jnp.asarray(params.num_attacked).astype(jnp.int32)
            gram = fixed_sum(jnp.where(known[:, None, None], gram, 0), axis=0)
            vector = fixed_sum(jnp.where(known[:, None], vector, 0), axis=0)
        (sums, rest), episode = added(state.sums, state.rest, Moments(gram, vector)), state.episode + 1
        (gram, vector), dtype = sums, vector.dtype
        if averaged:
            number = num_agents - jnp.asarray(params.num_attacked, dtype)
            gram, vector = gram / number, vector / number
        level = ridge(constants_of(params), episode, dtype)
        ridged = gram + level * jnp.broadcast_to(jnp.eye(dim, dtype=dtype), gram.shape)
        inverse = invert(ridged, agents.EIGENVALUE_FLOOR * level)
        return State(sums, rest, matvec(inverse, vector), inverse, episode), ()

    def diagnose(params, state):
        dtype = state.theta.dtype
        return {"bytes_sent": agents.bytes_of(dim, params.episodes, dtype) if averaged else jnp.zeros((), dtype)}

    return Program(init, act, encode, update, diagnose=diagnose)


def abbasi_yadkori(
    averaged: int,
    *,
    dim: int,
    window: int,
    noise_scale: Scalar,
    failure_prob: Scalar,
    ridge_scale: Scalar,
    radius_scale: Scalar,
    **_: object,
) -> EpisodeConstants:
    """The width of Abbasi-Yadkori et al. 2011 for the mean over `averaged` agents, after t = L (k - 1) plays.

    Lambda = W / n + (l / n) I, beta = (R sqrt(2 log(1 / delta) + d log(1 + n t / (d l))) + sqrt(l) sqrt(d)) /
    sqrt(n). The ridge l is `ridge_scale` itself, and ||theta|| is replaced by its bound sqrt(d) in the model.
    `radius_scale` multiplies beta.
    """
    return EpisodeConstants(
        ridge_scale,
        radius_scale,
        shift=1 / averaged,
        tail=math.sqrt(ridge_scale * dim / averaged),
        slope=noise_scale / math.sqrt(averaged),
        offset=2 * math.log(1 / failure_prob),
        dim=float(dim),
        rate=averaged * window / (dim * ridge_scale),
    )
