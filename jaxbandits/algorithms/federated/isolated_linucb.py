"""Isolated LinUCB: agents that never communicate, the comparator without federation.

A comparator of "Byzantine-robust federated linear bandits" (Jadbabaie, Li, Qian and Tian);
`docs/formulas/byzantine.md#linucb-comparators`.

Axes: [L] plays, [N] agents, [A] arms, [d] features.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.algorithms.federated.agents import (
    FLOOR,
    Constants,
    Width,
    abbasi_yadkori,
    accept,
    choose,
    constants,
    moments,
    radius,
    ridge,
    sizes,
)  # fmt: skip
from jaxbandits.numerics import added, left_out, matvec
from jaxbandits.numerics.linear_algebra import floored_inverse
from jaxbandits.protocol import Algorithm, Guarantee, Moments, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import choice, factory


class Message(NamedTuple):
    """What an attacker sees and may replace, and what the agent keeps: updates read only the latter."""

    gram: Float[Array, "N d d"]
    vector: Float[Array, "N d"]
    kept: Moments


class State(NamedTuple):
    # sums of the agent's finished episodes, and what rounding left out of them in a long run, otherwise ()
    own: Moments
    rest: Any
    theta: Float[Array, "N d"]
    inverse: Float[Array, "N d d"]
    # k >= 1
    episode: Int[Array, ""]


@cache
def program(num_agents: int, dim: int, window: int) -> Program:
    def init(params: Constants, draws):
        own = Moments(jnp.zeros((num_agents, dim, dim), draws.dtype), jnp.zeros((num_agents, dim), draws.dtype))
        start = jnp.eye(dim, dtype=draws.dtype) / ridge(params, jnp.int32(1), draws.dtype)
        inverse = jnp.broadcast_to(start, own.gram.shape)
        return State(own, left_out(own, draws.long), own.vector, inverse, jnp.int32(1))

    def act(params, state, draws, t, context):
        width = radius(params, state.episode, draws.dtype)
        return choose(context, state.theta[:, None], state.inverse[:, None], width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        own = moments(context, action, reward, play)
        return Message(own.gram, own.vector, own)

    def update(params, state, draws, t, note, message, used):
        new = accept(message.kept, 1e4 * window)  # only a reward that is not finite can be refused here
        (own, rest), episode = added(state.own, state.rest, Moments(new.gram, new.vector)), state.episode + 1
        level = ridge(params, episode, own.gram.dtype)
        ridged = own.gram + level * jnp.eye(dim, dtype=own.gram.dtype)[None]
        inverse = jax.vmap(floored_inverse, (0, None))(ridged, FLOOR * level)
        return State(own, rest, matvec(inverse, own.vector), inverse, episode), ()

    def diagnose(params, state):
        return {"bytes_sent": jnp.zeros((), state.theta.dtype)}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def isolated_linucb(
    *,
    num_agents: int,
    num_arms: int,
    dim: int,
    horizon: int,
    window: int | None = None,
    corruption_bound: Scalar = 0.0,
    feature_spread: Scalar = 1.0,
    noise_scale: Scalar = 0.5,
    failure_prob: Scalar = 0.05,
    ridge_scale: Scalar = 0.1,
    radius_scale: Scalar = 0.03,
    width: Width = "schedule",
) -> Algorithm:
    """Every agent runs LinUCB on its own plays and refreshes its estimate once an episode.

    Attacks on messages change nothing.

    Parameters
    ----------
    num_agents : int
        N, at least 1 [static]. Filled in from the environment.
    num_arms : int
        Arms of every decision set, at least 2 [static]. Filled in from the environment.
    dim : int
        Features d, at least 1 [static]. Filled in from the environment.
    horizon : int
        Total plays T of every agent. Filled in from the run.
    window : int, optional
        Plays L of an episode, in [1, horizon] [static]. None: max(1, round(0.25 sqrt(horizon))).
    corruption_bound : float
        The share of attackers that the schedule allows for, in [0, 1/2). Used by width "schedule" only.
    feature_spread : float
        The paper's sigma, >= 0. Used by width "schedule" only.
    noise_scale : float
        The rewards' noise R, >= 0.
    failure_prob : float
        In (0, 1).
    ridge_scale : float
        > 0. Multiplies lambda_k; the ridge itself with width "abbasi_yadkori".
    radius_scale : float
        >= 0. Multiplies beta_k.
    width : {"schedule", "abbasi_yadkori"}
        "schedule": lambda_k and beta_k of `byzantine_ucb` with its geometric-median constants.
        "abbasi_yadkori": ridge l = ridge_scale and radius_scale (R sqrt(2 log(1 / failure_prob) + d log(1 + t /
        (d l))) + sqrt(l d)) after t plays, with the model's bound sqrt(d) for the norm of theta.

    Returns
    -------
    Algorithm
        Diagnostic: `bytes_sent`, 0.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    An episode of an agent whose sums are not finite counts as zero. Ties (within 1e-5, relatively) go to the
    lowest arm. There is no privacy.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits"; Abbasi-Yadkori et al. 2011;
    `docs/formulas/byzantine.md#linucb-comparators`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.isolated_linucb(num_agents=10, num_arms=10, dim=4, horizon=2000, window=20).schedule[0].repeats
    100
    """
    num_agents, num_arms, dim, horizon, window = sizes(num_agents, num_arms, dim, horizon, window)
    choice("width", width, ("schedule", "abbasi_yadkori"))
    common: dict[str, Any] = {
        "dim": dim,
        "window": window,
        "noise_scale": noise_scale,
        "failure_prob": failure_prob,
        "ridge_scale": ridge_scale,
        "radius_scale": radius_scale,
    }
    params = constants(
        "geometric_median",
        num_agents=num_agents,
        horizon=horizon,
        corruption_bound=corruption_bound,
        feature_spread=feature_spread,
        **common,
    )
    if width == "abbasi_yadkori":
        params = abbasi_yadkori(1, **common)
    return Algorithm(
        program=program(num_agents, dim, window),
        schedule=(Span(window, -(-horizon // window), whole=True),),
        params=params,
        guarantee=Guarantee(),
        version=("isolated_linucb", 3, (num_agents, num_arms, dim, window)),
        config={},
        rewards=Rewards(),
    )
