"""
An algorithm of your own
========================

An algorithm is a few pure functions of one run. Looping, seeds, grids and devices come from outside. This one plays the
best mean, and explores with a probability that falls with time.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp

import jaxbandits as jb
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Program, Span
from jaxbandits.validation import factory


class Params(NamedTuple):
    exploration: Any  # a number: a grid over it compiles nothing anew


@cache
def program(num_arms: int) -> Program:
    def init(params, draws):
        return jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32)  # means, pulls

    def act(params, state, draws, t, context):
        explore = draws.child("coin").uniform(t[0]) < params.exploration * num_arms / t[0].astype(draws.dtype)
        anywhere = (draws.child("arm").uniform(t[0]) * num_arms).astype(jnp.int32)
        action = jnp.where(explore, anywhere, argmax(state[0]))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]  # the client sends its reward as it is

    def update(params, state, draws, t, note, message, used):
        mean, pulls = state[0], state[1].at[note].add(1)
        step = (message - mean[note]) / pulls[note].astype(message.dtype)
        return (mean.at[note].add(step), pulls), ()

    return Program(init, act, encode, update)


@factory
def epsilon_greedy_arms(*, num_arms, horizon, exploration=1.0) -> Algorithm:
    """Play the best mean, or with probability min(1, exploration * K / t) any arm."""
    spans = (Span(1, horizon),)
    return Algorithm(program(num_arms), spans, Params(exploration))


arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
rates = {f"exploration {rate:g}": partial(epsilon_greedy_arms, exploration=rate) for rate in (0.3, 3.0, 30.0)}
ds = jb.sweep(rates, arms, horizon=2000, seeds=200, progress=False)
figure, data = jb.plot.regret(ds)
