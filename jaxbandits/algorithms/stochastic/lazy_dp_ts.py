"""Lazy-DP-TS (Hu and Hegde 2022): Thompson sampling on noisy means of epochs that double, with optimism for the noise.

Draws: `alg/act/gamma` and `alg/act/again/...` (Beta posterior), `alg/encode` itself (rounding to bits), and
`alg/update/mean`, one Laplace an epoch, at its last play.
"""

import math
from functools import cache
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.algorithms.stochastic.kl_ucb import unit_reward
from jaxbandits.algorithms.stochastic.thompson import gammas
from jaxbandits.declared import HOST, Doc, Epsilon, Example, Horizon, NumArms
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.numerics import argmax, materialize
from jaxbandits.protocol import Algorithm, Program, Span
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory

LOGARITHMS = {"binary": 1 / math.log(2), "natural": 1.0}


class Params(NamedTuple):
    inverse_epsilon: Numeric  # 1 / epsilon, 0 without noise
    optimism: Numeric  # 3 / (epsilon log b): optimism a unit of ln t
    mechanism_scale: Numeric


class State(NamedTuple):
    """What is kept of every arm."""

    mean: Float[Array, " K"]  # noisy mean of the last epoch
    size: Int[Array, " K"]  # how many rewards that were; 0 before the first play
    fresh_sum: Int[Array, " K"]  # sum and number of the bits since
    fresh: Int[Array, " K"]


@cache
def program(num_arms: int) -> Program:
    """The functions of Lazy-DP-TS."""

    def init(params, draws):
        none = jnp.zeros(num_arms, jnp.int32)
        return State(mean=jnp.zeros(num_arms, draws.dtype), size=none, fresh_sum=none, fresh=none)

    def act(params, state, draws, t, context):
        first = t[0] <= num_arms
        size = jnp.maximum(state.size, 1).astype(draws.dtype)
        hopeful = episodes.clip01(state.mean + params.optimism * jnp.log(t[0].astype(draws.dtype)) / size)
        drawn = gammas(draws, t[0], 1 + jnp.concatenate([hopeful * size, (1 - hopeful) * size]))
        won, failed = drawn.reshape(2, num_arms)
        chosen = argmax(materialize(won / (won + failed)))
        action = materialize(jnp.where(first, t[0] - 1, chosen).astype(jnp.int32))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return (draws.uniform(t[0]) < unit_reward(reward[0])).astype(jnp.int32)

    def update(params, state, draws, t, note, message, used):
        dtype = draws.dtype
        bit = (message.astype(dtype) > 0.5).astype(jnp.int32)  # a corrupted report counts as the bit that is nearer
        played = jnp.arange(num_arms, dtype=jnp.int32) == note
        fresh_sum = state.fresh_sum + jnp.where(played, bit, 0)
        fresh = state.fresh + played.astype(jnp.int32)
        # the first epoch is the first play, the second is of two plays
        ended = played & (fresh == jnp.maximum(2 * state.size, 1))
        noise = params.mechanism_scale * params.inverse_epsilon * draws.child("mean").laplace(t)
        mean = materialize((fresh_sum.astype(dtype) + noise) / jnp.maximum(fresh, 1).astype(dtype))
        after = State(
            mean=jnp.where(ended, mean, state.mean),
            size=jnp.where(ended, fresh, state.size),
            fresh_sum=jnp.where(ended, 0, fresh_sum),
            fresh=jnp.where(ended, 0, fresh),
        )
        return after, jnp.where(jnp.any(ended), jnp.sum(jnp.where(played, mean, 0)), jnp.nan)

    return Program(init, act, encode, update)


def _events(params):
    scale = params.inverse_epsilon * params.mechanism_scale
    return (laplace_event("sum of an epoch's fresh rewards in [0, 1]", 1.0, scale),)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0}, horizon=600),
    source="""Hu and Hegde 2022 (UAI, PMLR 180), Algorithm 2 and Theorems 3 and 4;
        `docs/formulas/private_frontier.md#lazy-dp-ts`.""",
)
def lazy_dp_ts(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    epsilon: Annotated[Epsilon, Doc("Privacy budget; at inf there is neither noise nor optimism.")],
    logarithm: Annotated[Literal["binary", "natural"], HOST] = "binary",
) -> episodes.CentralPrivate:
    """Thompson sampling on a noisy mean of every arm's last epoch, which is raised by what the noise may hide.

    Each arm is played once. Then every play draws theta_a from Beta(u n + 1, (1 - u) n + 1) and plays the largest,
    with u = clip(mean + 3 log(t) / (epsilon n)) to [0, 1]. The mean is that of the arm's last epoch, of n rewards, plus
    Lap(1 / (epsilon n)); epochs have 1, 2, 4, ... plays.

    Args:
        logarithm: The base of log(t): 2 as printed, for which the theorem is proved; e as in the publication's figures.

    Note:
        Rewards are clipped to [0, 1], NaN counting as 0, and one strictly between is rounded to 0 or 1 at random, with
        the reward as the probability of 1. Ties go to the lowest index. At epsilon = inf half of an arm's rewards are
        behind its posterior, so this is not `thompson`.

    >>> jb.algorithms.lazy_dp_ts(num_arms=3, horizon=1000, epsilon=0.5).params.inverse_epsilon
    2.0
    """
    inverse = 1 / epsilon
    params = Params(inverse_epsilon=inverse, optimism=3 * LOGARITHMS[logarithm] * inverse, mechanism_scale=1.0)
    claim = episodes.pure_claim(_events)
    return Algorithm(program(num_arms), (Span(1, horizon),), params, claim, rewards=episodes.UNIT)
