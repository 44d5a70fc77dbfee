"""Robust UCB with the median of means over all rewards: the program behind `robust_ucb(estimator="median_of_means")`.

An arm's rewards form h = max(1, floor(min(8 ln(e^(1/8) t^2), N / 2))) blocks of m = floor(N / h) consecutive ones,
t being the coming play; the newest N - h m rewards are in none. The estimate changes only with h or m, and is
computed again only then. There are no random draws.
Formulas: `docs/formulas/private_robust_mab.md#robust-ucb`.
Axes: [K] arms, [S] places for rewards, [H] blocks.
"""

import math
from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.stochastic.plain_reports import cut_report, encode_reward
from jaxbandits.estimators.middle_points import middle
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Program
from jaxbandits.typing import Array, Float, Int, Numeric


class Params(NamedTuple):
    moment_bound: Numeric  # u: bounds the second moment of a reward


class State(NamedTuple):
    """Every arm's rewards, and the blocks behind its estimate."""

    rewards: Float[Array, "K S"]  # in the order in which they came
    pulls: Int[Array, " K"]
    estimate: Float[Array, " K"]
    blocks: Int[Array, " K"]  # h behind the estimate
    size: Int[Array, " K"]  # m behind the estimate


@cache
def program(num_arms: int, places: int) -> Program:
    """The program for rows of `places` rewards, which must be at least the horizon."""
    max_blocks = min(places // 2, math.floor(1 + 16 * math.log(places))) + 1

    def init(params, draws):
        zeros = jnp.zeros(num_arms, jnp.int32)
        return State(jnp.zeros((num_arms, places), draws.dtype), zeros, jnp.zeros(num_arms, draws.dtype), zeros, zeros)

    def act(params, state, draws, t, context):
        pulls = state.pulls.astype(draws.dtype)
        radius = jnp.sqrt(12 * 64 * params.moment_bound * jnp.log(t[0].astype(draws.dtype)) / jnp.maximum(pulls, 1))
        action = argmax(jnp.where(state.pulls == 0, jnp.inf, state.estimate + radius))
        return jnp.full(t.shape, action), None, action

    def median(row, h, m):
        """Median of the means of h blocks of m rewards."""
        block = jnp.arange(max_blocks, dtype=jnp.int32)

        def add(i, sums):
            return sums + row[jnp.minimum(block * m + i, places - 1)]

        sums = lax.fori_loop(0, m, add, jnp.zeros(max_blocks, row.dtype))
        return middle(jnp.sort(jnp.where(block < h, sums, jnp.inf)), h) / m.astype(row.dtype)

    def update(params, state, draws, t, note, message, used):
        message = cut_report(message)
        pulls = state.pulls.at[note].add(1)
        rewards = state.rewards.at[note, pulls[note] - 1].set(message)
        wanted_blocks = jnp.floor(1 + 16 * jnp.log((t + 1).astype(message.dtype))).astype(jnp.int32)
        blocks = jnp.maximum(jnp.minimum(wanted_blocks, pulls // 2), 1)
        size = pulls // blocks

        def due(carry):
            return (carry[1] != blocks) | (carry[2] != size)

        def renew(carry):
            estimate, h, m = carry
            arm = jnp.argmax(due(carry))
            fresh = median(rewards[arm], blocks[arm], size[arm])
            return estimate.at[arm].set(fresh), h.at[arm].set(blocks[arm]), m.at[arm].set(size[arm])

        before = (state.estimate, jnp.where(pulls == 0, blocks, state.blocks), jnp.where(pulls == 0, size, state.size))
        estimate, blocks, size = lax.while_loop(lambda carry: jnp.any(due(carry)), renew, before)
        return State(rewards, pulls, estimate, blocks, size), ()

    return Program(init, act, encode_reward, update)
