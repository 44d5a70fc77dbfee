"""An environment of one's own: Bernoulli arms whose means drift from one vector to another.

jaxbandits run examples/my_algorithm.toml
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.validation import array, factory, integer


class Params(NamedTuple):
    start: Any  # [K]
    end: Any  # [K]
    duration: Any


@cache
def world(num_arms: int) -> World:
    def means(params, t):  # [P] -> [P, K]
        start, end = jnp.asarray(params.start), jnp.asarray(params.end)
        done = jnp.minimum(t.astype(start.dtype) / params.duration, 1)[:, None]
        return (1 - done) * start[None] + done * end[None]

    def of(params, t, action):  # mean of the played arm [P]
        return jnp.take_along_axis(means(params, t), action[:, None], axis=1)[:, 0]

    def init(params, draws):
        return ()

    def observe(params, state, draws, t):
        return (), state  # no context

    def reward(params, state, draws, t, context, action):
        mean = of(params, t, action)
        return (draws.uniform(t) < mean).astype(mean.dtype)  # one uniform a play, whichever arm is played

    def score(params, state, t, context, action):
        return Score(arm=action, regret=means(params, t).max(axis=1) - of(params, t, action))

    def truth(params, state, t, context):
        return Truth(means=means(params, t))

    return World(init, observe, reward, score, truth, num_arms)


@factory
def drifting_arms(*, start, end, duration) -> Environment:
    """Arms paying 1 with a probability that moves on a line from start [K]
    to end [K] during the first `duration` plays.

    Regret is against the arm that is best at each play.
    """
    start = array("start", start, 1, 0.0, 1.0)
    end = array("end", end, 1, 0.0, 1.0, shape=start.shape, remedy="one mean an arm, as in start")
    params = Params(start, end, np.float64(integer("duration", duration, 1)))
    facts = {"num_arms": len(start), "reward_range": (0.0, 1.0)}
    return Environment(world(len(start)), params, facts, None, {})
