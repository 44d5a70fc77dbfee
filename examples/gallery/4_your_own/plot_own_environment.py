"""
An environment of your own
==========================

A world says what arms pay, and what regret is. In this one the best arm pays less and less, until another is better.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

import jaxbandits as jb
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.validation import factory


class Params(NamedTuple):
    start: Any  # [2] means at first
    end: Any  # [2] means at last
    duration: Any  # plays


@cache
def world() -> World:
    def means(params, t):  # [P] -> [P, 2]
        done = jnp.minimum(t / params.duration, 1).astype(jnp.asarray(params.start).dtype)[:, None]
        return (1 - done) * jnp.asarray(params.start)[None] + done * jnp.asarray(params.end)[None]

    def played(params, t, action):
        return jnp.take_along_axis(means(params, t), action[:, None], axis=1)[:, 0]

    def reward(params, state, draws, t, context, action):
        mean = played(params, t, action)
        return (draws.uniform(t) < mean).astype(mean.dtype)

    def score(params, state, t, context, action):
        return Score(arm=action, regret=means(params, t).max(axis=1) - played(params, t, action))

    def truth(params, state, t, context):
        return Truth(means=means(params, t))

    return World(lambda params, draws: (), lambda params, state, draws, t: ((), state), reward, score, truth, 2)


@factory
def fading_arms(*, start, end, duration) -> Environment:
    """Two arms whose means move on a line; regret is against the better one at each play."""
    facts = {"num_arms": 2, "reward_range": (0.0, 1.0)}
    return Environment(world(), Params(start, end, duration), facts, None, {})


fading = fading_arms(start=[0.8, 0.5], end=[0.1, 0.5], duration=4000.0)
learners = {"UCB1": jb.algorithms.ucb1, "Thompson sampling": jb.algorithms.thompson, "EXP3": jb.algorithms.exp3}
ds = jb.sweep(learners, fading, horizon=4000, seeds=100, progress=False)
figure, data = jb.plot.regret(ds)
