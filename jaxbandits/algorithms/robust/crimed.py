"""CRIMED (Agrawal, Mathieu, Basu and Maillard 2023): minimum empirical divergence of contaminated normal arms.

Axes: [K] arms, [S] places for rewards, [G] gaps.
"""

from functools import cache, lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.robust.stored_rewards import CorruptionBound, StoredHorizon, insert_in_order, row_length
from jaxbandits.algorithms.stochastic.plain_reports import encode_reward
from jaxbandits.declared import Example, NumArms, Positive
from jaxbandits.numerics import argmin
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.theory import contaminated_divergence
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory

# The largest gap that is told apart, in standard deviations, and entries of the table for a gap of 1.
FARTHEST = 40
FINENESS = 100


class Params(NamedTuple):
    divergence: Numeric  # [G] d_eps at the gaps 0, 0.01, ..., 40
    noise_scale: Numeric


class State(NamedTuple):
    """Every arm's rewards in order of size."""

    ordered: Float[Array, "K S"]  # rewards in rising order, then inf
    pulls: Int[Array, " K"]
    median: Float[Array, " K"]  # lower median; 0 before the first play


def between(table: Float[Array, " G"], gap: Float[Array, " K"]) -> Float[Array, " K"]:
    """The table's value at each gap, by a straight line between two entries; gaps are cut at the last one."""
    place = jnp.clip(gap * FINENESS, 0, len(table) - 1)
    low = jnp.minimum(place.astype(jnp.int32), len(table) - 2)
    return table[low] + (place - low.astype(place.dtype)) * (table[low + 1] - table[low])


@cache
def program(num_arms: int, places: int) -> Program:
    """The program for rows of `places` rewards, which must be at least the horizon."""

    def init(params, draws):
        ordered = jnp.full((num_arms, places), jnp.inf, draws.dtype)
        return State(ordered, jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms, draws.dtype))

    def act(params, state, draws, t, context):
        best = jnp.max(state.median)
        # equal infinities have distance 0
        gap = jnp.where(state.median == best, 0, best - state.median) / params.noise_scale
        pulls = jnp.maximum(state.pulls, 1).astype(draws.dtype)
        index = pulls * between(jnp.asarray(params.divergence, draws.dtype), gap) + jnp.log(pulls)
        action = argmin(jnp.where(state.pulls == 0, -jnp.inf, index))
        return jnp.full(t.shape, action), None, action

    def update(params, state, draws, t, note, message, used):
        # at the server, since reports may be corrupted on the way
        message = jnp.where(jnp.isnan(message), jnp.inf, message)
        row = insert_in_order(state.ordered[note], message)
        pulls = state.pulls.at[note].add(1)
        median = state.median.at[note].set(row[(pulls[note] - 1) // 2])
        return State(state.ordered.at[note].set(row), pulls, median), ()

    return Program(init, act, encode_reward, update)


@lru_cache(maxsize=64)
def divergence_table(corruption_bound: float) -> np.ndarray:
    """d_eps at the gaps 0, 0.01, ..., 40."""
    return contaminated_divergence(np.linspace(0, FARTHEST, FARTHEST * FINENESS + 1), corruption_bound)


@factory(
    plays_on="arms",
    example=Example(
        {"noise_scale": 0.3},
        world=("gaussian_arms", {"means": [0.0, 0.3, 0.6], "scale": 0.3}),
        reward_adversary={"name": "huber", "corruption": 0.05, "value": "inf"},
    ),
    source="""Agrawal, Mathieu, Basu and Maillard 2023 (arXiv 2309.16563): the abstract alone was read, and the paper's
        theorem is not claimed. The index is ours: `docs/formulas/robust_frontier.md#crimed`.""",
)
def crimed(
    *, num_arms: NumArms, horizon: StoredHorizon, corruption_bound: CorruptionBound = 0.05, noise_scale: Positive = 1.0
) -> Algorithm:
    """Play the normal arm whose contaminated rewards speak least against it.

    Every arm is played once, in index order. With N the arm's pulls, m the lower median of its rewards, m* the largest
    m and d_eps the divergence of two contaminated normal laws (`theory.contaminated_divergence`), the arm of least N
    d_eps((m* - m) / noise_scale) + ln N is played.

    Args:
        corruption_bound: Largest share eps of contaminated rewards that the learner believes in.
        noise_scale: Standard deviation of uncontaminated rewards, in units of a reward. It is known.

    Warning:
        An arm that is less than 2 b noise_scale worse, b = `theory.median_shift(corruption_bound)`, is explored for
        ever: regret is then linear. If every arm may be contaminated, arms closer than 4 b noise_scale cannot be told
        apart by any learner.

    Note:
        Rewards may be of any size: a contaminated one may as well be infinite. NaN is stored as plus infinity, and two
        equal medians have distance 0. d_eps is read from a table in steps of 0.01 by straight lines, constant beyond
        40. Ties go to the lowest index. The lower median of N rewards is the one of rank floor((N + 1) / 2). Nothing is
        drawn at random.

    >>> algorithm = jb.algorithms.crimed(num_arms=3, horizon=100, corruption_bound=0.1)
    >>> algorithm.params.divergence[[0, 20, 100]].round(4)
    array([0.    , 0.    , 0.1404])
    """
    params = Params(divergence_table(corruption_bound), noise_scale)
    return Algorithm(program(num_arms, row_length(horizon, "crimed")), (Span(1, horizon),), params, rewards=Rewards())
