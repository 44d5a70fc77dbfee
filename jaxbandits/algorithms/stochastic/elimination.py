"""Elimination in rounds that play every active arm, single pulls or blocks, and then drop the worst arms."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic.plain_reports import encode_reward
from jaxbandits.numerics import count, materialize, materialize_all, moved_mean
from jaxbandits.protocol import UNDECIDED, Program
from jaxbandits.typing import Array, Bool, Float, Int, Numeric

DROPPED = -np.inf  # the mean of an arm that was dropped


class Rounds(NamedTuple):
    """What is remembered where a round is one pull of every active arm, and all data are kept."""

    mean: Float[Array, " K"]  # `DROPPED` once an arm is out
    rest: Float[Array, " K"]  # what rounding left out of it
    rounds: Int[Array, ""]  # rounds finished
    action: Int[Array, ""]  # the coming play's arm


@cache
def by_rounds(
    num_arms: int, usable: Callable, radius: Callable, diagnose: Callable, counts_race: bool = False
) -> Program:
    """The functions of elimination by rounds: an arm is dropped whose mean is more than 2 radii below the best.

    usable: reward -> what counts of it. radius: params, pulls of an arm, t -> the radius. counts_race: no round counts
    as finished once a single arm is left.
    """

    def init(params, draws):
        zeros = jnp.zeros(num_arms, draws.dtype)
        return Rounds(zeros, zeros, jnp.int32(0), jnp.int32(0))

    def act(params, state, draws, t, context):
        return jnp.full(t.shape, state.action), None, state.action

    def update(params, state, draws, t, note, message, used):
        arms = jnp.arange(num_arms, dtype=jnp.int32)
        pulls = (state.rounds + 1).astype(state.mean.dtype)
        # here and not in `encode`: reports may be corrupted on their way
        new, rest = materialize_all(moved_mean(state.mean[note], state.rest[note], usable(message), 1 / pulls))
        mean, rest = state.mean.at[note].set(new), state.rest.at[note].set(rest)
        # the rest of the round: active arms above the played one
        following = materialize(jnp.min(jnp.where((mean > DROPPED) & (arms > note), arms, num_arms)))
        ends = following == num_arms
        cut = materialize(jnp.where(ends, jnp.max(mean) - 2 * radius(params, pulls, t), DROPPED))
        counted = ends & (count(mean > DROPPED) > 1) if counts_race else ends
        mean = jnp.where(mean < cut, DROPPED, mean)
        first = jnp.min(jnp.where(mean > DROPPED, arms, num_arms - 1))
        action = materialize(jnp.where(ends, first, following))
        return Rounds(mean, rest, state.rounds + counted.astype(jnp.int32), action), ()

    return Program(init, act, encode_reward, update, diagnose=diagnose, lockstep=True)


def after_block(
    active: Bool[Array, " K"], estimate: Float[Array, " K"], arm: Int[Array, ""], slack: Numeric
) -> tuple[Bool[Array, " K"], Bool[Array, ""], Int[Array, ""]]:
    """Which arms are left after a block of `arm`, whether its round ended, and the arm to be played next.

    A round plays every active arm once, in index order. At its end an arm is dropped whose estimate is further than
    `slack` below the best, and the next round begins with the lowest arm left.
    """
    num_arms = active.shape[0]
    arms = np.arange(num_arms, dtype=np.int32)
    following = jnp.min(jnp.where(active & (arms > arm), arms, num_arms))
    ends = following == num_arms
    best = jnp.max(jnp.where(active, estimate, -jnp.inf))
    left = jnp.where(ends, active & (best - estimate <= slack), active)
    return left, ends, jnp.where(ends, jnp.argmax(left).astype(jnp.int32), following)


def last_arm(params: Any, memory: Any) -> Int[Array, ""]:
    """`episodes.Rules.rest`: the one active arm, which is played to the horizon."""
    return jnp.where(count(memory.active) == 1, jnp.argmax(memory.active), UNDECIDED).astype(jnp.int32)
