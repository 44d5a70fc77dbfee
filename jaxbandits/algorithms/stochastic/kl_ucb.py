"""KL-UCB (Garivier and Cappe 2011; Cappe, Garivier, Maillard, Munos and Stoltz 2013), recalled from memory and not re-read:
play the arm whose mean could be the largest, by Bernoulli deviations.

An arm's index is the largest q with N d(mean, q) <= ln t, d the Bernoulli divergence, t the index of the coming play.
"""

from functools import cache

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import argmin, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import factory, integer

STEPS = 2  # of Halley's method: one leaves 3e-5, two 4e-15 in exact arithmetic, at every mean and level


def room_above(mean, level):
    """1 - q for the largest q in [mean, 1] with d(mean, q) <= level: mean in [0, 1] and level >= 0, any equal shapes.

    Solved in w = -ln((1 - q) / (1 - mean)), in which d is convex, quadratic at 0 and linear far out: the start has the right
    third order at 0. Small arguments of exp and log take their series: d is a difference of nearly equal terms. (Not
    `jnp.log1p` and `jnp.expm1`: their last bit may depend on how many values are computed at once.)
    """
    rest, p = 1 - mean, jnp.maximum(mean, 1e-15)
    bent = (4 - 2 * mean) / 3 * level
    w = (bent + jnp.sqrt(bent * bent + 8 * rest * mean * level)) / jnp.maximum(2 * rest, 1e-30)
    for _ in range(STEPS):
        series = w * (1 - w * (1 / 2) * (1 - w * (1 / 3) * (1 - w * (1 / 4) * (1 - w * (1 / 5)))))
        share = jnp.where(w < 0.125, series, 1 - jnp.exp(-w))
        x = rest * share  # q - mean
        y = x / p
        power = y * (1 - y * (1 / 2 - y * (1 / 3 - y * (1 / 4 - y * (1 / 5 - y * (1 / 6 - y * (1 / 7)))))))
        value = rest * w - p * jnp.where(y < 0.125, power, jnp.log(1 + y)) - level
        slope = x / (p + x)
        bend = p * rest * (1 - share) / ((p + x) * (p + x))
        w = jnp.maximum(w - 2 * value * slope / jnp.maximum(2 * slope * slope - value * bend, 1e-30), 0)
    return rest * jnp.exp(-w)


@cache
def program(num_arms: int) -> Program:
    # state [K, 2]: mean reward, pulls
    def init(params, draws):
        return jnp.zeros((num_arms, 2), draws.dtype)

    def act(params, state, draws, t, context):
        mean, pulls = state[:, 0], state[:, 1]
        level = jnp.log(t[0].astype(draws.dtype)) / jnp.maximum(pulls, 1)
        # arm by arm: each step is then a loop over the lanes in full vectors, not over K (measured: twice as fast, K = 10)
        room = lax.map(lambda arm: room_above(*arm), (mean, level))
        action = argmin(jnp.where(pulls > 0, room, -1))  # an unplayed arm first, in index order
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return unit_reward(reward[0])

    def update(params, state, draws, t, note, message, used):
        message = unit_reward(message)  # a corrupted report too
        mean, pulls = state[note]
        pulls = materialize(pulls + 1)
        mean = jnp.clip(mean + (message - mean) / pulls, 0, 1)
        return state.at[note].set(jnp.stack([materialize(mean), pulls])), ()

    return Program(init, act, encode, update)


def unit_reward(reward):
    """A reward clipped to [0, 1]; NaN is 0."""
    return jnp.where(jnp.isnan(reward), 0, jnp.clip(reward, 0, 1))


@factory
def kl_ucb(*, num_arms, horizon) -> Algorithm:
    """KL-UCB for rewards in [0, 1]: largest q with N d(mean, q) <= ln t; ties go to the lowest index.

    Every arm is played once first, in index order. Rewards are clipped to [0, 1]; NaN counts as 0, +inf as 1, -inf as 0.
    num_arms >= 2 [static]. The index is found to float32 precision by two Halley steps.
    Source: Garivier and Cappe 2011, Algorithm 1 with c = 0, as named in the specification of private and robust bandits,
    section 12; recalled from memory, not re-read.

    >>> import jaxbandits as jb
    >>> jb.algorithms.kl_ucb(num_arms=3, horizon=100).version
    ('kl_ucb', 1, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    return Algorithm(
        program(num_arms),
        (Span(1, horizon),),
        (),
        Guarantee(),
        ("kl_ucb", 1, (num_arms,)),
        {},
        rewards=Rewards(0.0, 1.0, "clip"),
    )
