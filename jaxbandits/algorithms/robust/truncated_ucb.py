"""Robust UCB with the truncated mean, exactly, in O(1) a play: the program behind `robust_ucb(estimator="truncated")`.

The i-th sample of an arm counts at play t iff |x_i| <= sqrt(u i / ln t^2), t the coming play. The threshold falls as t grows, so a
sample that counts leaves once ln t^2 exceeds its life u i / x_i^2, and none ever comes back. Samples that outlive the horizon go
into a sum; the few that will leave before are watched. No random draws. Axes: [K] arms, [W] watched samples.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.stochastic.arm_rows import counted, rows_before_play
from jaxbandits.numerics import argmax, materialize, two_sum
from jaxbandits.protocol import Program

WATCHED = 32  # samples watched an arm: 23 of size sqrt(u) are under way at most at T = 10^5


class Params(NamedTuple):
    moment_bound: Any  # u, of the second moment
    last: Any  # ln T^2


class State(NamedTuple):
    arms: Any  # [K, 5] mean (UNPLAYED before the first play), 1 / sqrt(N), N, sum of what counts (high, low)
    life: Any  # [W] of the watched samples, inf: a free place. A ring: places are taken in turn
    watched: Any  # [W, 2] reward, arm
    place: Any  # [] int32: the ring's next place
    soonest: Any  # [] the shortest life watched
    crowded: Any  # [] int32: samples that left at once because the ring was full


@cache
def program(num_arms: int) -> Program:
    room = WATCHED * num_arms
    index = jnp.arange(room, dtype=jnp.int32)

    def init(params, draws):
        arms = rows_before_play(num_arms, draws.dtype, columns=5)
        life = jnp.full(room, jnp.inf, draws.dtype)
        return State(arms, life, jnp.zeros((room, 2), draws.dtype), jnp.int32(0), life[0], jnp.int32(0))

    def act(params, state, draws, t, context):
        bonus = 4 * jnp.sqrt(2 * params.moment_bound * jnp.log(t[0].astype(draws.dtype)))
        action = argmax(state.arms[:, 0] + bonus * state.arms[:, 1])
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def add(arms, arm, value, more):
        """An arm's row with a value in its sum and `more` pulls."""
        _, _, pulls, high, low = arms[arm]
        pulls, inverse, inverse_root = counted(pulls, more)
        high, low = two_sum(high, low, value)
        row = jnp.stack([materialize((high + low) * inverse), inverse_root, pulls, high, low])
        return arms.at[arm].set(row)

    def update(params, state, draws, t, note, message, used):
        message = jnp.where(jnp.isfinite(message), message, 0)  # here, where corrupted reports pass too
        dtype = message.dtype
        now = 2 * jnp.log((t + 1).astype(dtype))
        life = materialize(params.moment_bound * (state.arms[note, 2] + 1) / (message * message))
        stays, full = life >= params.last, state.life[state.place] < jnp.inf
        keep = (life >= now) & (stays | ~full)
        watch = keep & ~stays
        arms = add(state.arms, note, materialize(jnp.where(keep, message, 0)), 1)
        place = jnp.where(watch, state.place, room)
        lives = state.life.at[place].set(life, mode="drop")
        watched = state.watched.at[place].set(jnp.stack([message, note.astype(dtype)]), mode="drop")
        soonest = materialize(jnp.minimum(state.soonest, jnp.where(watch, life, jnp.inf)))

        def leave(carry):  # what it changes is copied for every lane: hence no more than this
            arms, lives, soonest = carry
            gone = jnp.min(jnp.where(lives <= soonest, index, room - 1))
            value, arm = watched[gone]
            lives = lives.at[gone].set(jnp.inf)
            return add(arms, arm.astype(jnp.int32), -value, 0), lives, jnp.min(lives)

        arms, lives, soonest = lax.while_loop(lambda carry: carry[2] < now, leave, (arms, lives, soonest))
        place = (state.place + watch.astype(jnp.int32)) % room
        crowded = state.crowded + (full & ~stays & (life >= now)).astype(jnp.int32)
        return State(arms, lives, watched, place, soonest, crowded), ()

    def diagnose(params, state):
        return {"left_early": state.crowded}

    return Program(init, act, encode, update, diagnose=diagnose)
