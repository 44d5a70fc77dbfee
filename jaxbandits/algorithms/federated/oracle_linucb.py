"""Oracle LinUCB: a server that knows who attacks and averages the others, the comparator without a price of robustness.

A comparator of "Byzantine-robust federated linear bandits" (Jadbabaie, Li, Qian and Tian);
`docs/formulas/byzantine.md#linucb-comparators`.

Axes: [L] plays, [N] agents, [A] arms, [d] features.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.federated.agents import (
    FLOOR,
    Constants,
    Width,
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
from jaxbandits.numerics import added, fixed_sum, left_out, matvec
from jaxbandits.numerics.linear_algebra import floored_inverse
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import choice, factory


class Params(NamedTuple):
    constants: Constants
    # N_1: agents N_1, ..., N - 1 are averaged
    num_attacked: Any
    # K
    episodes: Any


class State(NamedTuple):
    # sums over the averaged agents' finished episodes
    gram: Float[Array, "d d"]
    vector: Float[Array, " d"]
    # what rounding left out of both, in a long run; otherwise ()
    rest: Any
    theta: Float[Array, " d"]
    # Lambda_k^-1
    inverse: Float[Array, "d d"]
    # k >= 1
    episode: Int[Array, ""]


@cache
def program(num_agents: int, dim: int, window: int) -> Program:
    def init(params, draws):
        zero, level = jnp.zeros(dim, draws.dtype), ridge(params.constants, jnp.int32(1), draws.dtype)
        eye = jnp.eye(dim, dtype=draws.dtype)
        return State(0 * eye, zero, left_out((0 * eye, zero), draws.long), zero, eye / level, jnp.int32(1))

    def act(params, state, draws, t, context):
        width = radius(params.constants, state.episode, draws.dtype)
        return choose(context, state.theta, state.inverse, width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return moments(context, action, reward, play)

    def update(params, state, draws, t, note, message, used):
        new, dtype = accept(message, 1e4 * window), state.theta.dtype
        known = jnp.arange(num_agents, dtype=jnp.int32) >= jnp.asarray(params.num_attacked).astype(jnp.int32)
        gram = fixed_sum(jnp.where(known[:, None, None], new.gram, 0), axis=0)
        vector = fixed_sum(jnp.where(known[:, None], new.vector, 0), axis=0)
        (gram, vector), rest = added((state.gram, state.vector), state.rest, (gram, vector))
        number, episode = num_agents - jnp.asarray(params.num_attacked, dtype), state.episode + 1
        level = ridge(params.constants, episode, dtype)
        inverse = floored_inverse(gram / number + level * jnp.eye(dim, dtype=dtype), FLOOR * level)
        return State(gram, vector, rest, matvec(inverse, vector / number), inverse, episode), ()

    def diagnose(params, state):
        return {"bytes_sent": bytes_of(dim, params.episodes, state.theta.dtype)}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def oracle_linucb(
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
    """A server averages the messages of the honest agents, whom it knows: all but the first N_1.

    N_1 = floor(corruption_bound N + 1/2). Otherwise this is `byzantine_ucb` with aggregate "mean".

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
        The share of agents that is left out, in [0, 1/2). Set it to the adversary's corruption.
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
        "abbasi_yadkori": over n averaged agents Lambda = W / n + (l / n) I, W being the sum of their x x' and l
        = ridge_scale, and radius_scale (R sqrt(2 log(1 / failure_prob) + d log(1 + n t / (d l))) + sqrt(l d)) /
        sqrt(n) after t plays, with the model's bound sqrt(d) for the norm of theta.

    Returns
    -------
    Algorithm
        Diagnostic: `bytes_sent` by an agent, as in `byzantine_ucb`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Attacks of agents that are not left out are averaged like honest messages. A message that is not finite or
    not symmetric counts as zero. Ties (within 1e-5, relatively) go to the lowest arm. There is no privacy.

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits"; Abbasi-Yadkori et al. 2011;
    `docs/formulas/byzantine.md#linucb-comparators`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.oracle_linucb(num_agents=10, num_arms=10, dim=4, horizon=2000, corruption_bound=0.2)
    >>> algorithm.params.num_attacked
    2
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
    chosen = constants(
        "geometric_median",
        num_agents=num_agents,
        horizon=horizon,
        corruption_bound=corruption_bound,
        feature_spread=feature_spread,
        **common,
    )
    attacked = believed_attackers(corruption_bound, num_agents)
    if width == "abbasi_yadkori":
        chosen = abbasi_yadkori(num_agents - attacked, **common)
    episodes = -(-horizon // window)
    return Algorithm(
        program=program(num_agents, dim, window),
        schedule=(Span(window, episodes, whole=True),),
        params=Params(chosen, attacked, episodes),
        guarantee=Guarantee(),
        version=("oracle_linucb", 3, (num_agents, num_arms, dim, window)),
        config={},
        rewards=Rewards(),
    )
