"""crUCB (Niss and Tewari 2020): UCB with a trimmed or shorth mean, for contaminated rewards.

Axes: [K] arms, [S] places for rewards.
"""

import math
from functools import cache
from typing import Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.robust.stored_rewards import CorruptionBound, StoredHorizon, insert_in_order, row_length
from jaxbandits.algorithms.stochastic.plain_reports import cut_report, encode_reward
from jaxbandits.declared import Example, NonNegative, NumArms
from jaxbandits.estimators.trimmed_mean import shorth, trim_and_average
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory

ESTIMATORS = {"trimmed": trim_and_average, "shorth": shorth}


class Params(NamedTuple):
    share: Numeric  # corruption_bound
    width: Numeric  # noise_scale / (1 - 2 corruption_bound)
    bias: Numeric  # corruption_width corruption_bound sqrt(ln T)


class State(NamedTuple):
    """Every arm's rewards in order of size."""

    ordered: Float[Array, "K S"]  # rewards in rising order, then inf
    pulls: Int[Array, " K"]
    estimate: Float[Array, " K"]


@cache
def program(num_arms: int, estimator: str, places: int) -> Program:
    """The program for rows of `places` rewards, which must be at least the horizon."""
    estimate_of = ESTIMATORS[estimator]

    def init(params, draws):
        ordered = jnp.full((num_arms, places), jnp.inf, draws.dtype)
        return State(ordered, jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms, draws.dtype))

    def act(params, state, draws, t, context):
        pulls = jnp.maximum(state.pulls, 1).astype(draws.dtype)
        radius = params.width * (jnp.sqrt(4 * jnp.log(t[0].astype(draws.dtype)) / pulls) + params.bias)
        action = argmax(jnp.where(state.pulls == 0, jnp.inf, state.estimate + radius))
        return jnp.full(t.shape, action), None, action

    def update(params, state, draws, t, note, message, used):
        message = cut_report(message)
        row = insert_in_order(state.ordered[note], message)
        pulls = state.pulls.at[note].add(1)
        estimate = estimate_of(row, pulls[note], jnp.asarray(params.share, row.dtype))
        return State(state.ordered.at[note].set(row), pulls, state.estimate.at[note].set(estimate)), ()

    return Program(init, act, encode_reward, update)


@factory(
    plays_on="arms",
    example=Example({"noise_scale": 0.3, "corruption_bound": 0.1}),
    source="""Niss and Tewari 2020, "What you see may not be what you get: UCB bandit algorithms robust to
        epsilon-contamination", recalled and not read again: `docs/formulas/private_robust_mab.md#cr-ucb`.""",
)
def cr_ucb(
    *,
    num_arms: NumArms,
    horizon: StoredHorizon,
    estimator: Literal["trimmed", "shorth"] = "trimmed",
    noise_scale: NonNegative = 1.0,
    corruption_bound: CorruptionBound = 0.0,
    corruption_width: NonNegative = 1.0,
) -> Algorithm:
    """UCB for contaminated rewards, with a trimmed or shorth mean of each arm's rewards.

    With N the arm's pulls, t the index of the coming play, T the horizon, sigma = `noise_scale` and alpha =
    `corruption_bound`, the arm of largest estimate + sigma / (1 - 2 alpha) (sqrt(4 ln t / N) + `corruption_width`
    alpha sqrt(ln T)) is played.

    Args:
        estimator: How the mean is estimated from all N rewards of an arm. ``"trimmed"`` drops the ceil(alpha N)
            smallest and as many largest, and takes the median where nothing would be left (`estimators.trimmed_mean`).
            ``"shorth"`` averages the shortest window of N - floor(2 alpha N) neighbouring values
            (`estimators.shorth_mean`).
        noise_scale: Sub-Gaussian scale sigma of uncontaminated rewards, in units of a reward. It multiplies the whole
            bonus.
        corruption_width: Multiplies the part of the bonus that pays for contamination. The default is this package's
            choice.

    Note:
        An arm that was never played comes first; ties go to the lowest arm. Rewards that are not finite count as 0,
        others are cut at 1e30 in size. The constants of the bonus are this package's: the published ones differ.
        Nothing is drawn at random.

    >>> jb.algorithms.cr_ucb(num_arms=3, horizon=100, corruption_bound=0.25).params.width
    2.0
    """
    width = noise_scale / (1 - 2 * corruption_bound)
    bias = corruption_width * corruption_bound * math.sqrt(math.log(horizon))
    functions = program(num_arms, estimator, row_length(horizon, "cr_ucb"))
    return Algorithm(functions, (Span(1, horizon),), Params(corruption_bound, width, bias), rewards=Rewards())
