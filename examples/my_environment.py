"""An environment of one's own: Bernoulli arms whose means drift from one vector to another.

jaxbandits run examples/my_algorithm.toml
"""

from functools import cache
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import Axes, Ge, Le
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.typing import Vector
from jaxbandits.validation import factory


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


Means = Annotated[Vector, Axes(1), Ge(0), Le(1)]  # of arms that pay 0 or 1


@factory
def drifting_arms(*, start: Means, end: Means, duration: Annotated[int, Ge(1)]) -> Environment:
    """Arms paying 1 with a probability that moves on a line from start [K]
    to end [K] during the first `duration` plays.

    Regret is against the arm that is best at each play.
    """
    if len(end) != len(start):
        raise ValueError(f"end has {len(end)} means: one an arm, as in start, which has {len(start)}")
    facts = {"num_arms": len(start), "reward_range": (0.0, 1.0)}
    return Environment(world(len(start)), Params(start, end, np.float64(duration)), facts)
