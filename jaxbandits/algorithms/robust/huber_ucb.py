"""HuberUCB (Basu, Maillard and Mathieu 2022): UCB with Huber's estimate of location, for contaminated rewards."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.robust.stored_rewards import check_horizon, places, taken, tie
from jaxbandits.estimators.huber_location import location
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    noise_scale: Any
    clip: Any  # b
    bias: Any  # 2 b corruption_bound / (1 - 2 corruption_bound)
    min_pulls_scale: Any


class State(NamedTuple):
    rewards: Any  # [K, S] in the order they came
    pulls: Any  # [K] int32
    estimate: Any  # [K]


@cache
def program(num_arms: int, places: int) -> Program:
    def init(params, draws):
        rewards = jnp.zeros((num_arms, places), draws.dtype)
        return State(rewards, jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms, draws.dtype))

    def act(params, state, draws, t, context):
        pulls, log_t = state.pulls.astype(draws.dtype), jnp.log(t[0].astype(draws.dtype))
        few = (pulls < params.min_pulls_scale * log_t) | (
            pulls == 0
        )  # N < ceil(y) and N < y are the same for integer N
        inverse = 1 / jnp.maximum(pulls, 1)
        radius = params.noise_scale * jnp.sqrt(2 * log_t * inverse) + params.clip * log_t * inverse / 3 + params.bias
        action = argmax(jnp.where(few, jnp.inf, state.estimate + radius), tie(draws.dtype))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = taken(message)  # here, where corrupted reports pass too
        before = state.pulls[note]
        row = state.rewards[note].at[before].set(message)
        present = jnp.arange(places, dtype=jnp.int32) <= before
        start = jnp.where(before == 0, message, state.estimate[note])
        estimate = location(row, present, jnp.asarray(params.clip, row.dtype), start)
        return State(
            state.rewards.at[note, before].set(message), state.pulls.at[note].add(1), state.estimate.at[note].set(estimate)
        ), ()  # fmt: skip

    return Program(init, act, encode, update)


@factory
def huber_ucb(
    *, num_arms, horizon, noise_scale=1.0, corruption_bound=0.0, clip=None, min_pulls_scale=8.0
) -> Algorithm:  # fmt: skip
    """Play the arm of largest theta + sigma sqrt(2 ln t / N) + b ln t / (3 N) + 2 b alpha / (1 - 2 alpha).

    theta is `estimators.huber_location` of all of the arm's rewards, t the index of the coming play, N the arm's pulls,
    sigma = noise_scale > 0, alpha = corruption_bound in [0, 1/2), b = clip > 0 (None: 2 noise_scale). The index is plus infinity
    while N < ceil(min_pulls_scale ln t) or N = 0; indices within a relative 1e-6 go to the lowest arm.

    num_arms >= 2 [static]; horizon <= 2^14 [static]: every reward is kept and read again; min_pulls_scale >= 0. Non-finite rewards
    count as 0, others are cut at 1e30. Raises ValueError outside. The bonus is this package's: the published constants differ.
    Source: Basu, Maillard and Mathieu 2022, recalled, not re-read; specification of private and robust bandits, section 7.

    >>> import jaxbandits as jb
    >>> jb.algorithms.huber_ucb(num_arms=3, horizon=100, noise_scale=0.5, corruption_bound=0.1).params.clip
    1.0
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = check_horizon(horizon, "huber_ucb", "robust_ucb(estimator='truncated') or a private elimination")
    noise_scale = number("noise_scale", noise_scale, 0.0, open_low=True)
    alpha = number("corruption_bound", corruption_bound, 0.0, 0.5, open_high=True, remedy="1/2 is the breakdown point")
    clip = 2 * noise_scale if clip is None else number("clip", clip, 0.0, open_low=True)
    params = Params(
        noise_scale, clip, 2 * clip * alpha / (1 - 2 * alpha), number("min_pulls_scale", min_pulls_scale, 0.0)
    )
    version = ("huber_ucb", 1, (num_arms, places(horizon)))
    return Algorithm(
        program(num_arms, places(horizon)), (Span(1, horizon),), params, Guarantee(), version, {}, rewards=Rewards()
    )
