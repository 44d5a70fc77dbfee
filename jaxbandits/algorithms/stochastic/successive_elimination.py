"""Successive elimination (Even-Dar, Mannor and Mansour 2006, in the form of spec private_robust_mab 7).

Algorithm 1 of Wu, Zhou, Tao and Wang 2023 (arXiv 2302.02526) without noise, truncation or doubling.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.numerics import count, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number

OUT = -1e30  # the mean of an eliminated arm


class Params(NamedTuple):
    noise_scale: Any
    log_term: Any  # ln(4 K / failure_prob)


class State(NamedTuple):
    mean: Any  # [K], OUT once eliminated
    rounds: Any  # [] int32: rounds finished = pulls of every active arm before this round
    action: Any  # [] int32: the coming play's arm


@cache
def program(num_arms: int) -> Program:
    def init(params, draws):
        return State(jnp.zeros(num_arms, draws.dtype), jnp.int32(0), jnp.int32(0))

    def act(params, state, draws, t, context):
        return jnp.full(t.shape, state.action), None, state.action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = jnp.where(jnp.isfinite(message), message, 0)  # here, where corrupted reports pass too
        dtype, arms = state.mean.dtype, jnp.arange(num_arms, dtype=jnp.int32)
        pulls = (state.rounds + 1).astype(dtype)
        old = state.mean[note]
        mean = state.mean.at[note].set(materialize(old + (message - old) / pulls))
        # the rest of the round: active arms above the played one
        following = materialize(jnp.min(jnp.where((mean > OUT) & (arms > note), arms, num_arms)))
        ends = following == num_arms
        radius = params.noise_scale * jnp.sqrt(2 * (params.log_term + 2 * jnp.log(t.astype(dtype))) / pulls)
        cut = materialize(jnp.where(ends, jnp.max(mean) - 2 * radius, OUT))
        mean = jnp.where(mean < cut, OUT, mean)
        first = jnp.min(jnp.where(mean > OUT, arms, num_arms - 1))
        return State(mean, state.rounds + ends.astype(jnp.int32), materialize(jnp.where(ends, first, following))), ()

    def diagnose(params, state):
        return {"active_arms": count(state.mean > OUT)}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def successive_elimination(*, num_arms, horizon, noise_scale=1.0, failure_prob=None) -> Algorithm:
    """Pull every active arm once a round, in index order; drop what is clearly worse at the round's end.

    An arm goes when the best mean exceeds its own by more than 2 noise_scale sqrt(2 ln(4 K t^2 / failure_prob) / N), t the
    plays so far and N the arm's pulls. The last arm is played to the horizon. Non-finite rewards count as 0.

    num_arms >= 2 [static]; noise_scale >= 0, the rewards' sub-Gaussian scale (0.5 suffices for rewards in [0, 1]);
    failure_prob in (0, 1), None: 1 / horizon. Raises ValueError outside. Diagnostic: `active_arms` at the horizon.
    Source: specification of private and robust bandits, section 7, row SE.

    >>> import jaxbandits as jb
    >>> jb.algorithms.successive_elimination(num_arms=3, horizon=100).schedule[0].repeats
    100
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    if failure_prob is None:
        log_term = math.log(4 * num_arms * horizon)
    else:
        failure_prob = number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True)
        log_term = math.log(4 * num_arms / failure_prob)
    params = Params(number("noise_scale", noise_scale, 0.0), log_term)
    version = ("successive_elimination", 1, (num_arms,))
    # windows of one play: with two arms left a round is two plays, so longer windows would be mostly empty
    return Algorithm(program(num_arms), (Span(1, horizon),), params, Guarantee(), version, {}, rewards=Rewards())
