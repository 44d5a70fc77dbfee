"""Byzantine-UCB (Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Algorithm 1, UCB row).

This release aggregates by the mean, which one attacker breaks. Axes: [L] plays, [N] agents, [A] arms, [d] features.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms._federated import (
    FLOOR,
    Constants,
    accept,
    choose,
    floored_inverse,
    moments,
    radius,
    ridge,
    sizes,
)  # fmt: skip
from jaxbandits.algorithms._federated import constants as _constants
from jaxbandits.numerics import fixed_sum, matvec
from jaxbandits.protocol import Algorithm, Guarantee, Moments, Program, Span
from jaxbandits.validation import factory, nearest

AGGREGATES = ("mean",)


class State(NamedTuple):
    gram: Any  # [N, d, d] sums of accepted messages
    vector: Any  # [N, d]
    theta: Any  # [d]
    inverse: Any  # [d, d] Lambda_k^-1
    episode: Any  # [] int32, k >= 1


@cache
def program(num_agents: int, dim: int, window: int, aggregate: str) -> Program:
    def refresh(params: Constants, gram, vector, episode):
        level = ridge(params, episode, gram.dtype)
        mean = fixed_sum(gram, axis=0) / num_agents
        inverse = floored_inverse(mean + level * jnp.eye(dim, dtype=gram.dtype), FLOOR * level)
        theta = matvec(inverse, fixed_sum(vector, axis=0) / num_agents)
        return State(gram, vector, theta, inverse, episode)

    def init(params, draws):
        gram, vector = jnp.zeros((num_agents, dim, dim), draws.dtype), jnp.zeros((num_agents, dim), draws.dtype)
        level = ridge(params, jnp.int32(1), draws.dtype)
        return State(gram, vector, vector[0], jnp.eye(dim, dtype=draws.dtype) / level, jnp.int32(1))

    def act(params, state, draws, t, context):
        width = radius(params, state.episode, dim, draws.dtype)
        return choose(context, state.theta, state.inverse, width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return moments(context, action, reward, play)

    def update(params, state, draws, t, note, message, used):
        new = accept(Moments(message.gram, message.vector), 1e4 * window)
        return refresh(params, state.gram + new.gram, state.vector + new.vector, state.episode + 1), ()

    return Program(init, act, encode, update)


@factory
def byzantine_ucb(
    *, num_agents, num_arms, dim, horizon, window=None, aggregate="mean", constants="geometric_median", corruption_bound=0.0,
    feature_spread=1.0, noise_scale=0.5, failure_prob=0.05, ridge_scale=0.1, radius_scale=0.03,
) -> Algorithm:  # fmt: skip
    """N agents play one policy for an episode of `window` plays, then send sums of x x' and x r once; the server aggregates
    the cumulative sums and refreshes theta_k = Lambda_k^-1 b_k, Lambda_k = Agg(V) + lambda_k I.

    Agent i plays argmax <x, theta_k> + beta_k sqrt(x' Lambda_k^-1 x), ties (within 1e-5, relatively) to the lowest arm. A
    message that is not finite or not symmetric counts as zero; both parts are cut to norm 1e4 window. Eigenvalues of Lambda_k
    are raised to 0.1 lambda_k. The last episode may be shorter: its message is never used.

    window [static]: L in [1, horizon], None: max(1, round(0.25 sqrt(horizon))). aggregate [static]: "mean".
    constants: "geometric_median", "dp" (the same without privacy) or "median_of_means": lambda_k and beta_k of the paper,
    times ridge_scale > 0 and radius_scale >= 0. corruption_bound: the share of attackers the server believes in, in [0, 1/2)
    ([0, 1/4] for median_of_means). feature_spread, noise_scale >= 0: the paper's sigma and R. failure_prob in (0, 1).
    Raises ValueError outside. Source: specification of Byzantine-robust federated bandits, sections 2, 7 and 10.

    >>> import jaxbandits as jb
    >>> jb.algorithms.byzantine_ucb(num_agents=10, num_arms=10, dim=4, horizon=2000).schedule[0].slots
    11
    """
    num_agents, num_arms, dim, horizon, window = sizes(num_agents, num_arms, dim, horizon, window)
    if aggregate not in AGGREGATES:
        available = ", ".join(map(repr, AGGREGATES))
        raise ValueError(
            f"aggregate = {aggregate!r} must be one of {available} in this release{nearest(aggregate, AGGREGATES)}"
        )
    params = _constants(
        constants, num_agents=num_agents, dim=dim, horizon=horizon, window=window, corruption_bound=corruption_bound,
        feature_spread=feature_spread, noise_scale=noise_scale, failure_prob=failure_prob, ridge_scale=ridge_scale,
        radius_scale=radius_scale,
    )  # fmt: skip
    schedule = (Span(window, -(-horizon // window), whole=True),)
    version = ("byzantine_ucb", 1, (num_agents, num_arms, dim, window, aggregate))
    return Algorithm(program(num_agents, dim, window, aggregate), schedule, params, Guarantee(), version, {})
