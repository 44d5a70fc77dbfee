"""An algorithm of one's own: epsilon-greedy for arms.

jaxbandits run examples/my_algorithm.toml
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.declared import Horizon, NonNegative, NumArms
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Program, Span
from jaxbandits.validation import factory


class Params(NamedTuple):  # numbers: a grid over them compiles nothing anew
    exploration: Any


class State(NamedTuple):  # what persists from play to play
    mean: Any  # [K]
    pulls: Any  # [K] int32


@cache
def program(num_arms: int) -> Program:
    def init(params, draws):
        return State(jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32))

    def act(params, state, draws, t, context):
        chance = jnp.minimum(1, params.exploration * num_arms / t[0].astype(draws.dtype))
        explore = draws.child("coin").uniform(t[0]) < chance  # two draws, two children
        anywhere = (draws.child("arm").uniform(t[0]) * num_arms).astype(jnp.int32)
        action = jnp.where(explore, anywhere, argmax(state.mean))
        return jnp.full(t.shape, action), None, action  # every play of the window; the note is for update

    def encode(params, note, draws, t, context, action, reward, play):
        return jnp.where(jnp.isfinite(reward[0]), reward[0], 0)

    def update(params, state, draws, t, note, message, used):
        pulls = state.pulls.at[note].add(1)
        step = (message - state.mean[note]) / pulls[note].astype(message.dtype)
        return State(state.mean.at[note].add(step), pulls), ()

    return Program(init, act, encode, update)


@factory
def epsilon_greedy_arms(*, num_arms: NumArms, horizon: Horizon, exploration: NonNegative = 5.0) -> Algorithm:
    """Play the best mean, or with probability min(1, exploration * K / t) any arm."""
    return Algorithm(program(num_arms), (Span(1, horizon),), Params(exploration))
