"""AdaP-UCB (Azize and Basu 2022): an optimistic index of noisy means, each arm played in episodes that double its pulls."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Rewards
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    index_scale: Any  # alpha
    inverse_epsilon: Any  # 1 / epsilon, 0 without noise
    mechanism_scale: Any


class Memory(NamedTuple):
    mean: Any  # [K] noisy mean of each arm's last episode
    pulls: Any  # [K] int32: 0, 1, 2, 4, ...


def samples(pulls):
    """How many pulls are behind the mean: the last episode doubled the pulls, the first was a single one."""
    return jnp.maximum(pulls // 2, 1)


def optimistic(params, mean, samples, log_t):
    """AdaP-UCB's index [K]."""
    width = params.index_scale * log_t / samples
    return mean + jnp.sqrt(0.5 * width) + params.inverse_epsilon * width


@cache
def rules(num_arms: int, index) -> episodes.Rules:
    """Doubling episodes of the arm of largest `index(params, mean[K], samples[K], log t)`, t the coming play.

    Draws: `mean`, one Laplace an episode, at its last play.
    """

    def init(params, draws):
        memory = Memory(jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32))
        return memory, jnp.int32(0), jnp.int32(1)

    def keep(params, memory, arm, value, present):
        return memory, episodes.clip01(value), value.dtype.type(1)

    def end(params, memory, draws, t, arm, total):
        dtype = total.dtype
        length = jnp.maximum(memory.pulls[arm], 1)
        scale = params.mechanism_scale * params.inverse_epsilon
        mean = materialize((total + scale * draws.child("mean").laplace(t)) / length.astype(dtype))
        memory = Memory(memory.mean.at[arm].set(mean), memory.pulls.at[arm].add(length))
        log_t = jnp.log((t + 1).astype(dtype))
        value = index(params, memory.mean, samples(memory.pulls).astype(dtype), log_t)
        following = episodes.next_arm(value, memory.pulls == 0)
        return memory, mean, following, jnp.maximum(memory.pulls[following], 1)

    return episodes.Rules(init, keep, end)


def _events(params):
    scale = params.inverse_epsilon * params.mechanism_scale
    return (laplace_event("sum of an episode's rewards in [0, 1]", 1.0, scale),)


def made(name: str, index, num_arms, horizon, epsilon, index_scale) -> Algorithm:
    """The algorithm of an index, its arguments validated."""
    num_arms, horizon = integer("num_arms", num_arms, 2), integer("horizon", horizon, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    index_scale = number("index_scale", index_scale, 0.0, open_low=True)
    params = Params(index_scale, 0.0 if math.isinf(epsilon) else 1 / epsilon, 1.0)
    return Algorithm(
        episodes.program(rules(num_arms, index)),
        episodes.schedule(horizon, num_arms * (horizon.bit_length() + 1)),
        params,
        episodes.claim(_events),
        (name, 1, (num_arms,)),
        {},
        rewards=Rewards(0.0, 1.0, "clip"),
    )


@factory
def adap_ucb(*, num_arms, horizon, epsilon, index_scale=3.1) -> Algorithm:
    """Play the arm of largest mean + sqrt(index_scale ln t / (2 n)) + index_scale ln t / (epsilon n) until its pulls have doubled.

    Each arm is played once, then in episodes of 1, 2, 4, ... pulls; `mean` is that of the arm's last episode plus Lap(1 / (epsilon n)),
    n its pulls, t the index of the coming play; ties go to the lowest index. Rewards are clipped to [0, 1], NaN counts as 0.

    epsilon-private in the central model for rewards that differ in one play: each reward enters one release.
    num_arms >= 2 [static]; epsilon in (0, inf], inf: no noise; index_scale > 0 (the theorem asks for more than 3).
    Raises ValueError outside.
    Source: Azize and Basu 2022, AdaP-UCB; the first single pull enters with n = 1, as the publication leaves it open.

    >>> import jaxbandits as jb
    >>> jb.algorithms.adap_ucb(num_arms=3, horizon=1000, epsilon=0.5).params.inverse_epsilon
    2.0
    """
    return made("adap_ucb", optimistic, num_arms, horizon, epsilon, index_scale)
