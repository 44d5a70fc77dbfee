"""HuberUCB (Basu, Maillard and Mathieu 2022): UCB with Huber's estimate of location, for contaminated rewards.

Axes: [K] arms, [S] places for rewards.
"""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.robust.stored_rewards import CorruptionBound, StoredHorizon, row_length, tie
from jaxbandits.algorithms.stochastic.plain_reports import cut_report, encode_reward
from jaxbandits.declared import Example, NonNegative, NumArms, Positive
from jaxbandits.estimators.m_estimators import location
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    noise_scale: Numeric
    clip: Numeric  # b
    bias: Numeric  # 2 b corruption_bound / (1 - 2 corruption_bound)
    min_pulls_scale: Numeric


class State(NamedTuple):
    """Every arm's rewards."""

    rewards: Float[Array, "K S"]  # in the order in which they came
    pulls: Int[Array, " K"]
    estimate: Float[Array, " K"]


@cache
def program(num_arms: int, places: int) -> Program:
    """The program for rows of `places` rewards, which must be at least the horizon."""

    def init(params, draws):
        rewards = jnp.zeros((num_arms, places), draws.dtype)
        return State(rewards, jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms, draws.dtype))

    def act(params, state, draws, t, context):
        pulls, log_t = state.pulls.astype(draws.dtype), jnp.log(t[0].astype(draws.dtype))
        # N < ceil(y) and N < y are the same for an integer N
        few = (pulls < params.min_pulls_scale * log_t) | (pulls == 0)
        inverse = 1 / jnp.maximum(pulls, 1)
        radius = params.noise_scale * jnp.sqrt(2 * log_t * inverse) + params.clip * log_t * inverse / 3 + params.bias
        action = argmax(jnp.where(few, jnp.inf, state.estimate + radius), tie(draws.dtype))
        return jnp.full(t.shape, action), None, action

    def update(params, state, draws, t, note, message, used):
        message = cut_report(message)
        before = state.pulls[note]
        row = state.rewards[note].at[before].set(message)
        present = jnp.arange(places, dtype=jnp.int32) <= before
        start = jnp.where(before == 0, message, state.estimate[note])
        estimate = location(row, present, jnp.asarray(params.clip, row.dtype), start)
        rewards, pulls = state.rewards.at[note, before].set(message), state.pulls.at[note].add(1)
        return State(rewards, pulls, state.estimate.at[note].set(estimate)), ()

    return Program(init, act, encode_reward, update)


@factory(
    plays_on="arms",
    example=Example(
        {"noise_scale": 0.3, "min_pulls_scale": 0.5}, world=("gaussian_arms", {"means": [0.0, 0.3, 0.6], "scale": 0.3})
    ),
    source="""Basu, Maillard and Mathieu 2022, "Bandits corrupted by nature", recalled and not read again:
        `docs/formulas/private_robust_mab.md#huber-ucb`.""",
)
def huber_ucb(
    *,
    num_arms: NumArms,
    horizon: StoredHorizon,
    noise_scale: Positive = 1.0,
    corruption_bound: CorruptionBound = 0.0,
    clip: Positive | None = None,
    min_pulls_scale: NonNegative = 8.0,
) -> Algorithm:
    """UCB for contaminated rewards, with Huber's estimate of location.

    With theta the estimate from all N rewards of the arm (`estimators.huber_location`), t the index of the coming
    play, sigma = `noise_scale`, alpha = `corruption_bound` and b = `clip`, the arm of largest theta + sigma sqrt(2
    ln t / N) + b ln t / (3 N) + 2 b alpha / (1 - 2 alpha) is played.

    Args:
        noise_scale: Sub-Gaussian scale sigma of uncontaminated rewards, in units of a reward.
        clip: Distance b from the estimate at which Huber's influence is cut, in units of a reward. The default: 2
            noise_scale, this package's choice.
        min_pulls_scale: The index is plus infinity while N < ceil(min_pulls_scale ln t). The default is the
            publication's, as recalled.

    Note:
        An arm that was never played has index plus infinity. Indices within a relative 1e-6 of the largest (1e-12 in
        float64) are tied and go to the lowest arm. Rewards that are not finite count as 0, others are cut at 1e30 in
        size. The constants of the bonus are this package's: the published ones differ. Nothing is drawn at random.

    >>> jb.algorithms.huber_ucb(num_arms=3, horizon=100, noise_scale=0.5, corruption_bound=0.1).params.clip
    1.0
    """
    b = 2 * noise_scale if clip is None else clip
    bias = 2 * b * corruption_bound / (1 - 2 * corruption_bound)
    functions = program(num_arms, row_length(horizon, "huber_ucb"))
    params = Params(noise_scale, clip=b, bias=bias, min_pulls_scale=min_pulls_scale)
    return Algorithm(functions, (Span(1, horizon),), params, rewards=Rewards())
