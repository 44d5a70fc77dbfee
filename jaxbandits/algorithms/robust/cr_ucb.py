"""crUCB (Niss and Tewari 2020): UCB with a trimmed or shorth mean, for contaminated rewards."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.robust.stored_rewards import check_horizon, places, taken
from jaxbandits.estimators.shorth_mean import shorth
from jaxbandits.estimators.trimmed_mean import trimmed
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import choice, factory, integer, number

ESTIMATORS = {"trimmed": trimmed, "shorth": shorth}


class Params(NamedTuple):
    share: Any  # corruption_bound
    width: Any  # sigma / (1 - 2 corruption_bound)
    bias: Any  # corruption_width corruption_bound sqrt(ln T)


class State(NamedTuple):
    ordered: Any  # [K, S] rewards in rising order, then inf
    pulls: Any  # [K] int32
    estimate: Any  # [K]


@cache
def program(num_arms: int, estimator: str, places: int) -> Program:
    of_row = ESTIMATORS[estimator]

    def init(params, draws):
        ordered = jnp.full((num_arms, places), jnp.inf, draws.dtype)
        return State(ordered, jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms, draws.dtype))

    def act(params, state, draws, t, context):
        pulls = jnp.maximum(state.pulls, 1).astype(draws.dtype)
        radius = params.width * (jnp.sqrt(4 * jnp.log(t[0].astype(draws.dtype)) / pulls) + params.bias)
        action = argmax(jnp.where(state.pulls == 0, jnp.inf, state.estimate + radius))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = taken(message)  # here, where corrupted reports pass too
        row = state.ordered[note]
        # insertion: what is below x stays, x takes the first place whose entry is not, the rest moves up by one
        below = jnp.concatenate([jnp.full(1, -jnp.inf, row.dtype), row[:-1]])
        row = jnp.maximum(below, jnp.minimum(row, message))
        pulls = state.pulls.at[note].add(1)
        estimate = of_row(row, pulls[note], jnp.asarray(params.share, row.dtype))
        return State(state.ordered.at[note].set(row), pulls, state.estimate.at[note].set(estimate)), ()

    return Program(init, act, encode, update)


@factory
def cr_ucb(
    *, num_arms, horizon, estimator="trimmed", noise_scale=1.0, corruption_bound=0.0, corruption_width=1.0
) -> Algorithm:  # fmt: skip
    """Play the arm of largest estimate + sigma / (1 - 2 alpha) (sqrt(4 ln t / N) + corruption_width alpha sqrt(ln T)).

    estimator: "trimmed" drops the ceil(alpha N) smallest and largest of the arm's N rewards (the median where nothing would be
    left), "shorth" averages the shortest window of N - floor(2 alpha N): `estimators.trimmed_mean`, `shorth_mean` over all
    rewards. t is the index of the coming play, sigma = noise_scale >= 0, alpha = corruption_bound in [0, 1/2), T = horizon. An
    arm never played comes first; ties go to the lowest arm.

    num_arms >= 2 [static]; horizon <= 2^14 [static]: every reward is kept and read again; corruption_width >= 0. Non-finite rewards
    count as 0, others are cut at 1e30. Raises ValueError outside. The bonus is this package's: the published constants differ.
    Source: Niss and Tewari 2020, recalled, not re-read; specification of private and robust bandits, section 7.

    >>> import jaxbandits as jb
    >>> jb.algorithms.cr_ucb(num_arms=3, horizon=100, corruption_bound=0.25).params.width
    2.0
    """
    num_arms = integer("num_arms", num_arms, 2)
    choice("estimator", estimator, tuple(ESTIMATORS))
    horizon = check_horizon(horizon, "cr_ucb", "robust_ucb(estimator='truncated') or a private elimination")
    alpha = number("corruption_bound", corruption_bound, 0.0, 0.5, open_high=True, remedy="1/2 is the breakdown point")
    width = number("noise_scale", noise_scale, 0.0) / (1 - 2 * alpha)
    bias = number("corruption_width", corruption_width, 0.0) * alpha * math.sqrt(math.log(horizon))
    version = ("cr_ucb", 1, (num_arms, estimator, places(horizon)))
    return Algorithm(
        program(num_arms, estimator, places(horizon)), (Span(1, horizon),), Params(alpha, width, bias), Guarantee(), version, {}, rewards=Rewards()
    )  # fmt: skip
