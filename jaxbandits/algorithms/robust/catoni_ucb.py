"""Robust UCB with Catoni's estimator over all rewards: the program behind `robust_ucb(estimator="catoni")`.

The scale a of every arm depends on the coming play t, so every root moves at every play: they are sought together, from the
last ones, in one pass over all rewards a Newton step. No random draws. Axes: [K] arms, [S] places for rewards.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.robust.stored_rewards import taken, tie
from jaxbandits.estimators._inputs import decreasing_root
from jaxbandits.estimators.catoni_mean import influence, width
from jaxbandits.numerics import argmax, fixed_sum
from jaxbandits.protocol import Program

BLOCK = 256  # rewards of one step of a pass


class Params(NamedTuple):
    moment_bound: Any  # v


class State(NamedTuple):
    rewards: Any  # [S] by play
    arms: Any  # [S] int32, -1: not played yet
    pulls: Any  # [K]
    estimate: Any  # [K]
    low: Any  # [K] smallest and largest reward
    high: Any  # [K]


def _enough(pulls, t):
    """l = ln t^2, and whether N >= 4 l (and N > 0)."""
    log_term = 2 * jnp.log(t.astype(pulls.dtype))
    return log_term, (pulls >= 4 * log_term) & (pulls > 0)


@cache
def program(num_arms: int, places: int) -> Program:
    block = min(BLOCK, places)
    each = jnp.arange(num_arms, dtype=jnp.int32)[:, None]

    def init(params, draws):
        zeros = jnp.zeros(num_arms, draws.dtype)
        rewards = jnp.zeros(places, draws.dtype)
        return State(rewards, jnp.full(places, -1, jnp.int32), zeros, zeros, zeros + jnp.inf, zeros - jnp.inf)

    def act(params, state, draws, t, context):
        log_term, enough = _enough(state.pulls, t[0])
        radius = 2 * jnp.sqrt(params.moment_bound * log_term / jnp.maximum(state.pulls, 1))
        action = argmax(jnp.where(enough, state.estimate + radius, jnp.inf), tie(draws.dtype))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = taken(message)  # here, where corrupted reports pass too
        rewards, arms = state.rewards.at[t - 1].set(message), state.arms.at[t - 1].set(note)
        pulls = state.pulls.at[note].add(1)
        low, high = state.low.at[note].min(message), state.high.at[note].max(message)
        log_term, enough = _enough(pulls, t + 1)
        a = jnp.where(enough, width(jnp.where(enough, pulls, 4 * log_term + 1), params.moment_bound, log_term), 0)

        def slack(theta):
            def add(i, sums):
                x, arm = (lax.dynamic_slice(v, (i * block,), (block,)) for v in (rewards, arms))
                value, slope = influence(a[arm] * (x - theta[arm]))
                mine = arm == each
                return sums[0] + jnp.where(mine, value, 0), sums[1] + jnp.where(mine, slope, 0)

            zeros = jnp.zeros((num_arms, block), message.dtype)
            value, slope = lax.fori_loop(0, (t + block - 1) // block, add, (zeros, zeros))
            return fixed_sum(value), a * fixed_sum(slope)

        estimate = decreasing_root(slack, state.estimate, low, high, jnp.sqrt(params.moment_bound), enough)
        return State(rewards, arms, pulls, estimate, low, high), ()

    return Program(init, act, encode, update)
