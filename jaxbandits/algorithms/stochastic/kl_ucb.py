"""KL-UCB (Garivier and Cappe 2011; Cappe, Garivier, Maillard, Munos and Stoltz 2013): play the arm that could be best.

Recalled from memory and not re-read. An arm's index is the largest q with N d(mean, q) <= ln t, d the Bernoulli
divergence, t the index of the coming play.
"""

from functools import cache

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import argmin, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Array, Float
from jaxbandits.validation import factory, integer

# Steps of Halley's method. One leaves an error of 3e-5, two of 4e-15 in exact arithmetic, at every mean and level.
HALLEY_STEPS = 2


def room_above(mean: Float[Array, "..."], level: Float[Array, "..."]) -> Float[Array, "..."]:
    """1 - q for the largest q in [mean, 1] with d(mean, q) <= level: mean in [0, 1] and level >= 0, any equal shapes.

    The equation is solved in w = -ln((1 - q) / (1 - mean)). In w the divergence d is convex, quadratic at 0 and
    linear far out, and the start is right to third order at 0. d is a difference of nearly equal terms, so small
    arguments of exp and log take their series. `jnp.log1p` and `jnp.expm1` would not do: their last bit may depend on
    how many values are computed at once.
    """
    rest, p = 1 - mean, jnp.maximum(mean, 1e-15)
    bent = (4 - 2 * mean) / 3 * level
    w = (bent + jnp.sqrt(bent * bent + 8 * rest * mean * level)) / jnp.maximum(2 * rest, 1e-30)
    for _ in range(HALLEY_STEPS):
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
    """KL-UCB's functions."""

    # state [K, 2]: mean reward, pulls
    def init(params, draws):
        return jnp.zeros((num_arms, 2), draws.dtype)

    def act(params, state, draws, t, context):
        mean, pulls = state[:, 0], state[:, 1]
        level = jnp.log(t[0].astype(draws.dtype)) / jnp.maximum(pulls, 1)
        # Arm by arm: each step is then a loop over the lanes in full vectors, not over K (twice as fast at K = 10).
        room = lax.map(lambda arm: room_above(*arm), (mean, level))
        action = argmin(jnp.where(pulls > 0, room, -1))  # an unplayed arm first, in index order
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return unit_reward(reward[0])

    def update(params, state, draws, t, note, message, used):
        message = unit_reward(message)  # again here: reports may be corrupted on their way
        mean, pulls = state[note]
        pulls = materialize(pulls + 1)
        mean = jnp.clip(mean + (message - mean) / pulls, 0, 1)
        return state.at[note].set(jnp.stack([materialize(mean), pulls])), ()

    return Program(init, act, encode, update)


def unit_reward(reward: Float[Array, "..."]) -> Float[Array, "..."]:
    """A reward clipped to [0, 1]; NaN is 0."""
    return jnp.where(jnp.isnan(reward), 0, jnp.clip(reward, 0, 1))


@factory
def kl_ucb(*, num_arms: int, horizon: int) -> Algorithm:
    """Play the arm of largest q with N d(mean, q) <= ln t, d the Kullback-Leibler divergence of Bernoulli laws.

    N is the arm's number of pulls, t the index of the coming play. Every arm is played once first, in index order.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in from the sweep.

    Returns
    -------
    Algorithm
        Without a privacy guarantee.

    Raises
    ------
    ValueError
        For an argument outside its range.

    Notes
    -----
    Rewards are clipped to [0, 1]; NaN counts as 0, +inf as 1 and -inf as 0. Ties go to the lowest index. The index is
    computed to float32 precision by two Halley steps.

    References
    ----------
    Garivier and Cappe 2011, Algorithm 1 with c = 0, recalled from memory and not re-read;
    `docs/formulas/private_robust_mab.md#kl-ucb`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.kl_ucb(num_arms=3, horizon=100).version
    ('kl_ucb', 1, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    return Algorithm(
        program=program(num_arms),
        schedule=(Span(1, horizon),),
        params=(),
        guarantee=Guarantee(),
        version=("kl_ucb", 1, (num_arms,)),
        config={},
        rewards=Rewards(0.0, 1.0, "clip"),
    )
