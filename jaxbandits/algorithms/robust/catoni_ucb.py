"""Robust UCB with Catoni's estimator over all rewards: the program behind `robust_ucb(estimator="catoni")`.

The scale a of every arm depends on the coming play t, so every root moves at every play. All roots are sought
together, starting from the last ones; a Newton step is one pass over all rewards. There are no random draws.
Formulas: `docs/formulas/private_robust_mab.md#robust-ucb`.
Axes: [K] arms, [S] places for rewards.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.robust.stored_rewards import tie
from jaxbandits.algorithms.stochastic.plain_reports import cut_report, encode_reward
from jaxbandits.estimators.m_estimators import catoni_scale, decreasing_root, influence
from jaxbandits.numerics import argmax, fixed_sum
from jaxbandits.protocol import Program
from jaxbandits.typing import Array, Float, Int, Numeric

BLOCK_SIZE = 256  # rewards that one step of a pass reads


class Params(NamedTuple):
    moment_bound: Numeric  # u: bounds the second moment of a reward


class State(NamedTuple):
    """Every reward so far, and what is known of each arm."""

    rewards: Float[Array, " S"]  # in the order of the plays
    arms: Int[Array, " S"]  # arm of each play; -1: not played yet
    pulls: Float[Array, " K"]
    estimate: Float[Array, " K"]
    low: Float[Array, " K"]  # smallest and largest reward of each arm
    high: Float[Array, " K"]


def _enough(pulls: Float[Array, " K"], t: Int[Array, ""]) -> tuple[Float[Array, ""], Any]:
    """l = ln t^2, and for each arm whether N >= 4 l (and N > 0)."""
    log_term = 2 * jnp.log(t.astype(pulls.dtype))
    return log_term, (pulls >= 4 * log_term) & (pulls > 0)


@cache
def program(num_arms: int, places: int) -> Program:
    """The program for a row of `places` rewards, which must be at least the horizon."""
    block = min(BLOCK_SIZE, places)
    arm_index = jnp.arange(num_arms, dtype=jnp.int32)[:, None]

    def init(params, draws):
        zeros = jnp.zeros(num_arms, draws.dtype)
        rewards, arms = jnp.zeros(places, draws.dtype), jnp.full(places, -1, jnp.int32)
        low, high = zeros + jnp.inf, zeros - jnp.inf
        return State(rewards=rewards, arms=arms, pulls=zeros, estimate=zeros, low=low, high=high)

    def act(params, state, draws, t, context):
        log_term, enough = _enough(state.pulls, t[0])
        radius = 2 * jnp.sqrt(params.moment_bound * log_term / jnp.maximum(state.pulls, 1))
        action = argmax(jnp.where(enough, state.estimate + radius, jnp.inf), tie(draws.dtype))
        return jnp.full(t.shape, action), None, action

    def update(params, state, draws, t, note, message, used):
        message = cut_report(message)
        rewards, arms = state.rewards.at[t - 1].set(message), state.arms.at[t - 1].set(note)
        pulls = state.pulls.at[note].add(1)
        low, high = state.low.at[note].min(message), state.high.at[note].max(message)
        log_term, enough = _enough(pulls, t + 1)
        scale = catoni_scale(jnp.where(enough, pulls, 4 * log_term + 1), params.moment_bound, log_term)
        a = jnp.where(enough, scale, 0)

        def slack(theta):
            def add(i, sums):
                x, arm = (lax.dynamic_slice(v, (i * block,), (block,)) for v in (rewards, arms))
                value, slope = influence(a[arm] * (x - theta[arm]))
                of_arm = arm[None] == arm_index
                return sums[0] + jnp.where(of_arm, value[None], 0), sums[1] + jnp.where(of_arm, slope[None], 0)

            zeros = jnp.zeros((num_arms, block), message.dtype)
            value, slope = lax.fori_loop(0, (t + block - 1) // block, add, (zeros, zeros))
            return fixed_sum(value), a * fixed_sum(slope)

        estimate = decreasing_root(slack, state.estimate, low, high, jnp.sqrt(params.moment_bound), enough)
        return State(rewards=rewards, arms=arms, pulls=pulls, estimate=estimate, low=low, high=high), ()

    # the pass over all rewards ends at the message's t
    return Program(init, act, encode_reward, update, lockstep=True)
