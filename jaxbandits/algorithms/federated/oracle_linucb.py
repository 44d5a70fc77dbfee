"""Oracle LinUCB: a server that knows who attacks and averages the others, the comparator without a price of robustness (spec
byzantine 6). "Byzantine-robust federated linear bandits" (Jadbabaie, Li, Qian and Tian).

Axes: [L] plays, [N] agents, [A] arms, [d] features.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.federated.agents import (
    FLOOR,
    Constants,
    abbasi_yadkori,
    accept,
    believed_attackers,
    bytes_of,
    choose,
    constants,
    moments,
    radius,
    ridge,
    sizes,
)  # fmt: skip
from jaxbandits.numerics import fixed_sum, matvec
from jaxbandits.numerics.linear_algebra import floored_inverse
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import choice, factory


class Params(NamedTuple):
    constants: Constants
    num_attacked: Any  # N_1: agents N_1, ..., N - 1 are averaged
    episodes: Any  # K


class State(NamedTuple):
    gram: Any  # [d, d] sums over the averaged agents' finished episodes
    vector: Any  # [d]
    theta: Any  # [d]
    inverse: Any  # [d, d] Lambda_k^-1
    episode: Any  # [] int32, k >= 1


@cache
def program(num_agents: int, dim: int, window: int) -> Program:
    def init(params, draws):
        zero, level = jnp.zeros(dim, draws.dtype), ridge(params.constants, jnp.int32(1), draws.dtype)
        eye = jnp.eye(dim, dtype=draws.dtype)
        return State(0 * eye, zero, zero, eye / level, jnp.int32(1))

    def act(params, state, draws, t, context):
        width = radius(params.constants, state.episode, draws.dtype)
        return choose(context, state.theta, state.inverse, width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return moments(context, action, reward, play)

    def update(params, state, draws, t, note, message, used):
        new, dtype = accept(message, 1e4 * window), state.theta.dtype
        known = jnp.arange(num_agents, dtype=jnp.int32) >= jnp.asarray(params.num_attacked).astype(jnp.int32)
        gram = state.gram + fixed_sum(jnp.where(known[:, None, None], new.gram, 0), axis=0)
        vector = state.vector + fixed_sum(jnp.where(known[:, None], new.vector, 0), axis=0)
        number, episode = num_agents - jnp.asarray(params.num_attacked, dtype), state.episode + 1
        level = ridge(params.constants, episode, dtype)
        inverse = floored_inverse(gram / number + level * jnp.eye(dim, dtype=dtype), FLOOR * level)
        return State(gram, vector, matvec(inverse, vector / number), inverse, episode), ()

    def diagnose(params, state):
        return {"bytes_sent": bytes_of(dim, params.episodes, state.theta.dtype)}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def oracle_linucb(
    *, num_agents, num_arms, dim, horizon, window=None, corruption_bound=0.0, feature_spread=1.0, noise_scale=0.5,
    failure_prob=0.05, ridge_scale=0.1, radius_scale=0.03, width="schedule",
) -> Algorithm:  # fmt: skip
    """A server averages the messages of the honest agents, whom it knows: all but the floor(corruption_bound N + 1/2) first.

    Otherwise `byzantine_ucb` with aggregate "mean". Set corruption_bound to the adversary's corruption; other agents' attacks
    are averaged like honest messages. width "schedule": lambda_k and beta_k of `byzantine_ucb` with its geometric-median
    constants; "abbasi_yadkori": over n averaged agents Lambda = W / n + (l / n) I, W the sum of their x x', l = ridge_scale,
    and radius_scale (R sqrt(2 log(1 / failure_prob) + d log(1 + n t / (d l))) + sqrt(l d)) / sqrt(n) after t plays, R =
    noise_scale, with the model's bound sqrt(d) for the norm of theta. Other arguments, ranges and errors: `byzantine_ucb`.
    Diagnostic: `bytes_sent` as there. Source: specification of Byzantine-robust federated bandits, sections 6 and 10.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.oracle_linucb(num_agents=10, num_arms=10, dim=4, horizon=2000, corruption_bound=0.2)
    >>> made.params.num_attacked
    2
    """
    num_agents, num_arms, dim, horizon, window = sizes(num_agents, num_arms, dim, horizon, window)
    choice("width", width, ("schedule", "abbasi_yadkori"))
    common = {
        "dim": dim, "window": window, "noise_scale": noise_scale, "failure_prob": failure_prob, "ridge_scale": ridge_scale,
        "radius_scale": radius_scale,
    }  # fmt: skip
    chosen = constants(
        "geometric_median", num_agents=num_agents, horizon=horizon, corruption_bound=corruption_bound,
        feature_spread=feature_spread, **common,
    )  # fmt: skip
    attacked = believed_attackers(corruption_bound, num_agents)
    if width == "abbasi_yadkori":
        chosen = abbasi_yadkori(num_agents - attacked, **common)
    episodes = -(-horizon // window)
    schedule = (Span(window, episodes, whole=True),)
    version = ("oracle_linucb", 2, (num_agents, num_arms, dim, window))
    return Algorithm(
        program(num_agents, dim, window),
        schedule,
        Params(chosen, attacked, episodes),
        Guarantee(),
        version,
        {},
        rewards=Rewards(),
    )
