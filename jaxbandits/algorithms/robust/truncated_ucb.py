"""Robust UCB with the truncated mean, in constant time a play: the program of `robust_ucb(estimator="truncated")`.

The i-th sample of an arm counts at play t if |x_i| <= sqrt(u i / ln t^2), t being the coming play. The threshold
falls as t grows, so a sample that counts leaves once ln t^2 exceeds its life u i / x_i^2, and none ever comes back.
Samples that outlive the horizon go into a sum; the few that will leave before are watched. There are no random
draws.
Formulas: `docs/formulas/private_robust_mab.md#robust-ucb`.
Axes: [K] arms, [W] watched samples.
"""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.stochastic.arm_means import UNPLAYED
from jaxbandits.algorithms.stochastic.plain_reports import encode_reward, finite
from jaxbandits.numerics import argmax, materialize, two_sum
from jaxbandits.protocol import Program
from jaxbandits.typing import Array, Float, Int, Numeric

WATCHED_PER_ARM = 32  # at T = 10^5 at most 23 samples of size sqrt(u) will leave before the horizon


class Params(NamedTuple):
    moment_bound: Numeric  # u: bounds the second moment of a reward
    last: Numeric  # ln T^2


class State(NamedTuple):
    """Sums of each arm, and the samples that will leave before the horizon."""

    # mean (UNPLAYED before the first play), 1 / sqrt(N), and the sum of what counts as two numbers, high and low
    arms: Float[Array, "K 4"]
    # N
    pulls: Int[Array, " K"]
    # lives of the watched samples; inf: a free place. The places are a ring: they are taken in turn
    life: Float[Array, " W"]
    # reward and arm
    watched: Float[Array, "W 2"]
    # the ring's next place
    place: Int[Array, ""]
    # the shortest life watched
    soonest: Float[Array, ""]
    # samples that left at once because the ring was full
    crowded: Int[Array, ""]


@cache
def program(num_arms: int) -> Program:
    """The program, which works for any horizon."""
    room = WATCHED_PER_ARM * num_arms
    index = jnp.arange(room, dtype=jnp.int32)

    def init(params, draws):
        arms = jnp.zeros((num_arms, 4), draws.dtype).at[:, 0].set(UNPLAYED)
        pulls = jnp.zeros(num_arms, jnp.int32)
        life = jnp.full(room, jnp.inf, draws.dtype)
        watched = jnp.zeros((room, 2), draws.dtype)
        zero = jnp.int32(0)
        return State(arms=arms, pulls=pulls, life=life, watched=watched, place=zero, soonest=life[0], crowded=zero)

    def act(params, state, draws, t, context):
        bonus = 4 * jnp.sqrt(2 * params.moment_bound * jnp.log(t[0].astype(draws.dtype)))
        action = argmax(state.arms[:, 0] + bonus * state.arms[:, 1])
        return jnp.full(t.shape, action), None, action

    def add(arms, arm, value, pulls):
        """The table of arms after a value was added to an arm's sum; pulls: of that arm."""
        _, _, high, low = arms[arm]
        inverse = materialize(1 / pulls.astype(arms.dtype))
        high, low = two_sum(high, low, value)
        row = jnp.stack([materialize((high + low) * inverse), materialize(jnp.sqrt(inverse)), high, low])
        return arms.at[arm].set(row)

    def update(params, state, draws, t, note, message, used):
        message = finite(message)
        dtype = message.dtype
        now = 2 * jnp.log((t + 1).astype(dtype))
        number = materialize(state.pulls[note] + 1)
        pulls = state.pulls.at[note].set(number)
        life = materialize(params.moment_bound * number.astype(dtype) / (message * message))
        stays, full = life >= params.last, state.life[state.place] < jnp.inf
        keep = (life >= now) & (stays | ~full)
        watch = keep & ~stays
        arms = add(state.arms, note, materialize(jnp.where(keep, message, 0)), number)
        place = jnp.where(watch, state.place, room)
        lives = state.life.at[place].set(life, mode="drop")
        watched = state.watched.at[place].set(jnp.stack([message, note.astype(dtype)]), mode="drop")
        soonest = materialize(jnp.minimum(state.soonest, jnp.where(watch, life, jnp.inf)))

        def drop_sample(carry):
            # The carry is as small as can be: the loop copies it for every lane.
            arms, lives, soonest = carry
            gone = jnp.min(jnp.where(lives <= soonest, index, room - 1))
            value, arm = watched[gone]
            arm, lives = arm.astype(jnp.int32), lives.at[gone].set(jnp.inf)
            return add(arms, arm, -value, pulls[arm]), lives, jnp.min(lives)

        arms, lives, soonest = lax.while_loop(lambda carry: carry[2] < now, drop_sample, (arms, lives, soonest))
        place = (state.place + watch.astype(jnp.int32)) % room
        crowded = state.crowded + (full & ~stays & (life >= now)).astype(jnp.int32)
        return State(arms, pulls, lives, watched, place, soonest, crowded), ()

    def diagnose(params, state):
        return {"left_early": state.crowded}

    return Program(init, act, encode_reward, update, diagnose=diagnose)
