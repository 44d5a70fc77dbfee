"""Isolated LinUCB: agents that never communicate, the comparator without federation (spec byzantine 6).

"Byzantine-robust federated linear bandits" (Jadbabaie, Li, Qian and Tian). Axes: [L] plays, [N] agents, [A] arms, [d] features.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.algorithms.federated.agents import (
    FLOOR,
    Constants,
    abbasi_yadkori,
    accept,
    choose,
    constants,
    moments,
    radius,
    ridge,
    sizes,
)  # fmt: skip
from jaxbandits.numerics import matvec
from jaxbandits.numerics.linear_algebra import floored_inverse
from jaxbandits.protocol import Algorithm, Guarantee, Moments, Program, Rewards, Span
from jaxbandits.validation import choice, factory


class Message(NamedTuple):
    """What an attacker sees and may replace, and what the agent keeps: updates read only the latter."""

    gram: Any  # [N, d, d]
    vector: Any  # [N, d]
    kept: Moments


class State(NamedTuple):
    own: Moments  # sums of the agent's finished episodes
    theta: Any  # [N, d]
    inverse: Any  # [N, d, d]
    episode: Any  # [] int32, k >= 1


@cache
def program(num_agents: int, dim: int, window: int) -> Program:
    def init(params: Constants, draws):
        own = Moments(jnp.zeros((num_agents, dim, dim), draws.dtype), jnp.zeros((num_agents, dim), draws.dtype))
        start = jnp.eye(dim, dtype=draws.dtype) / ridge(params, jnp.int32(1), draws.dtype)
        return State(own, own.vector, jnp.broadcast_to(start, own.gram.shape), jnp.int32(1))

    def act(params, state, draws, t, context):
        width = radius(params, state.episode, draws.dtype)
        return choose(context, state.theta[:, None], state.inverse[:, None], width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        own = moments(context, action, reward, play)
        return Message(own.gram, own.vector, own)

    def update(params, state, draws, t, note, message, used):
        new = accept(message.kept, 1e4 * window)  # only a reward that is not finite can be refused here
        own, episode = Moments(state.own.gram + new.gram, state.own.vector + new.vector), state.episode + 1
        level = ridge(params, episode, own.gram.dtype)
        ridged = own.gram + level * jnp.eye(dim, dtype=own.gram.dtype)
        inverse = jax.vmap(floored_inverse, (0, None))(ridged, FLOOR * level)
        return State(own, matvec(inverse, own.vector), inverse, episode), ()

    def diagnose(params, state):
        return {"bytes_sent": jnp.zeros((), state.theta.dtype)}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def isolated_linucb(
    *, num_agents, num_arms, dim, horizon, window=None, corruption_bound=0.0, feature_spread=1.0, noise_scale=0.5,
    failure_prob=0.05, ridge_scale=0.1, radius_scale=0.03, width="schedule",
) -> Algorithm:  # fmt: skip
    """Every agent runs LinUCB on its own plays and refreshes its estimate once an episode. Attacks on messages change nothing.

    width "schedule": lambda_k and beta_k of `byzantine_ucb` with its geometric-median constants; "abbasi_yadkori": ridge l =
    ridge_scale and radius_scale (R sqrt(2 log(1 / failure_prob) + d log(1 + t / (d l))) + sqrt(l d)) after t plays, R =
    noise_scale, with the model's bound sqrt(d) for the norm of theta; corruption_bound and feature_spread then play no part.
    An episode of an agent whose sums are not finite counts as zero. Other arguments, ranges and errors: `byzantine_ucb`.
    Diagnostic: `bytes_sent`, 0.
    Source: specification of Byzantine-robust federated bandits, sections 6 and 10.

    >>> import jaxbandits as jb
    >>> jb.algorithms.isolated_linucb(num_agents=10, num_arms=10, dim=4, horizon=2000, window=20).schedule[0].repeats
    100
    """
    num_agents, num_arms, dim, horizon, window = sizes(num_agents, num_arms, dim, horizon, window)
    choice("width", width, ("schedule", "abbasi_yadkori"))
    common = {
        "dim": dim, "window": window, "noise_scale": noise_scale, "failure_prob": failure_prob, "ridge_scale": ridge_scale,
        "radius_scale": radius_scale,
    }  # fmt: skip
    params = constants(
        "geometric_median", num_agents=num_agents, horizon=horizon, corruption_bound=corruption_bound,
        feature_spread=feature_spread, **common,
    )  # fmt: skip
    if width == "abbasi_yadkori":
        params = abbasi_yadkori(1, **common)
    schedule = (Span(window, -(-horizon // window), whole=True),)
    version = ("isolated_linucb", 2, (num_agents, num_arms, dim, window))
    return Algorithm(program(num_agents, dim, window), schedule, params, Guarantee(), version, {}, rewards=Rewards())
