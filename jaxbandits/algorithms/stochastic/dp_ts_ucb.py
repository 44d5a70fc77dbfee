"""DP-TS-UCB (Hu et al. 2025): a bounded number of Thompson draws of an epoch's mean, then their largest.

Draws: `alg/act` itself, a normal variable of every arm at every play.
"""

import math
from functools import cache
from typing import Annotated, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.episodes import clip01, gaussian_claim
from jaxbandits.algorithms.stochastic.plain_reports import encode_reward
from jaxbandits.algorithms.stochastic.thompson import normal_per_arm
from jaxbandits.declared import ClaimedDelta, Example, Ge, Horizon, NumArms, Positive, Probability, Remedy
from jaxbandits.mechanisms.composition import gaussian_event
from jaxbandits.mechanisms.gaussian import default_delta, gaussian_scale
from jaxbandits.numerics import argmax, materialize, two_sum
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory

C0 = 2 * math.sqrt(2 * math.pi * math.e)


class Params(NamedTuple):
    deviation: Numeric  # sqrt(v): standard deviation of a draw from the mean of one reward
    budget: Numeric  # phi: draws of an epoch's mean
    mechanism_scale: Numeric
    delta: Numeric


class State(NamedTuple):
    """What is kept of every arm."""

    mean: Float[Array, " K"]  # mean of the last epoch's rewards
    size: Int[Array, " K"]  # how many those were; 0 before the first play
    left: Int[Array, " K"]  # draws that are left of it
    top: Float[Array, " K"]  # the largest draw so far
    fresh_sum: Float[Array, " K"]  # sum of the rewards since, a compensated one, and their number
    fresh_rest: Float[Array, " K"]
    fresh: Int[Array, " K"]


def draws_of_an_epoch(horizon: int, tradeoff: Scalar) -> int:
    """phi = ceil(c0 T^((1 - a) / 2) log(T)^((3 - a) / 2)), after which all draws lie too low with probability 1/T."""
    log = math.log(horizon)
    return math.ceil(C0 * horizon ** ((1 - tradeoff) / 2) * log ** ((3 - tradeoff) / 2))


@cache
def program(num_arms: int) -> Program:
    """The functions of DP-TS-UCB."""

    def init(params, draws):
        zero, none = jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32)
        return State(mean=zero, size=none, left=none, top=zero, fresh_sum=zero, fresh_rest=zero, fresh=none)

    def act(params, state, draws, t, context):
        first = t[0] <= num_arms
        scale = params.mechanism_scale * params.deviation
        size = jnp.maximum(state.size, 1).astype(draws.dtype)
        sample = materialize(state.mean + scale / jnp.sqrt(size) * normal_per_arm(draws, t[0], num_arms))
        drawn = (state.left > 0) & ~first
        chosen = argmax(materialize(jnp.where(drawn, sample, state.top)))
        action = materialize(jnp.where(first, t[0] - 1, chosen).astype(jnp.int32))
        return jnp.full(t.shape, action), None, (action, jnp.where(drawn, sample, jnp.nan))

    def update(params, state, draws, t, note, message, used):
        action, sample = note
        drawn = ~jnp.isnan(sample)
        played = jnp.arange(num_arms, dtype=jnp.int32) == action
        fresh_sum, fresh_rest = two_sum(state.fresh_sum, state.fresh_rest, jnp.where(played, clip01(message), 0))
        fresh = state.fresh + played.astype(jnp.int32)
        # the first epoch is the first play, the second is of two plays
        ended = played & (fresh == jnp.maximum(2 * state.size, 1))
        mean = materialize(fresh_sum / jnp.maximum(fresh, 1).astype(fresh_sum.dtype))
        top = jnp.where(drawn, jnp.maximum(state.top, sample), state.top)
        after = State(
            mean=jnp.where(ended, mean, state.mean),
            size=jnp.where(ended, fresh, state.size),
            left=jnp.where(ended, params.budget, state.left - drawn.astype(jnp.int32)).astype(jnp.int32),
            top=jnp.where(ended, -jnp.inf, top),
            fresh_sum=jnp.where(ended, 0, fresh_sum),
            fresh_rest=jnp.where(ended, 0, fresh_rest),
            fresh=jnp.where(ended, 0, fresh),
        )
        return after, sample

    # draws from an epoch's mean are counted when their plays' messages come: later ones would overdraw the budget
    return Program(init, act, encode_reward, update, lockstep=True)


def _events(params):
    scale = float(params.mechanism_scale) * float(params.deviation)
    return (gaussian_event("model drawn from an epoch's mean", 1.0, scale, times=int(params.budget)),)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 4.0, "budget": 8, "delta": 0.01}, horizon=600),
    source="""Hu et al., ICML 2025 (arXiv 2505.02383), through a detailed summary; c0, which was not readable there, is
        derived: `docs/formulas/private_frontier.md#dp-ts-ucb`.""",
)
def dp_ts_ucb(
    *,
    num_arms: NumArms,
    horizon: Annotated[Horizon, Ge(3)],
    tradeoff: Probability = 1.0,
    budget: Annotated[int, Ge(1)] | None = None,
    epsilon: Annotated[Positive, Remedy("for no privacy use `thompson`")] | None = None,
    delta: Annotated[ClaimedDelta, Remedy("give delta > 0")] | None = None,
) -> Algorithm:
    """Draw from the mean of an arm's last epoch a bounded number of times, then keep the largest of these draws.

    Each arm is played once. Then every play has a number theta_a for every arm and plays the largest: a fresh draw
    from N(mean, v / n) while fewer than phi were made since the arm's mean changed, the largest of them afterwards. The
    mean is that of the arm's last epoch of n plays, and epochs have 1, 2, 4, ... plays; v = log(T)^tradeoff.

    Args:
        tradeoff: a: 0 draws often with little variance, 1 seldom with more.
        budget: phi. The default: ceil(c0 T^((1 - a) / 2) log(T)^((3 - a) / 2)), c0 = 2 sqrt(2 pi e).
        epsilon: Privacy budget, for which v is multiplied as far as needed. Where it is larger than what v as above
            spends, a run spends less: 15.8 at T = 20,000. The default: v as above.

    Returns:
        sqrt(phi / v)-GDP in the central model for rewards that differ in one play; `guarantee.spend` states it as
        (epsilon, delta), `jb.privacy.ledger` as g.

    Warning:
        In (epsilon, delta) the claim is weak: at T = 1e5 and tradeoff 1 it is epsilon = 15.9 at delta = 1e-5, and
        with tradeoff 0 the draws of an epoch outnumber the plays. The regret theorem is about epsilon=None.

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index. The privacy that is claimed is
        derived here, from phi draws of one mean; the publication's figure is sqrt(2) larger.

    >>> algorithm = jb.algorithms.dp_ts_ucb(num_arms=5, horizon=100_000)
    >>> algorithm.params.budget, round(jb.privacy.ledger(algorithm).g, 3)
    (96, 2.888)
    """
    delta = default_delta(delta, horizon, 1e-5)
    times = draws_of_an_epoch(horizon, tradeoff) if budget is None else budget
    variance = math.log(horizon) ** tradeoff
    if epsilon is not None:
        variance = max(variance, times * gaussian_scale(1.0, epsilon, delta, "analytic") ** 2)
    params = Params(deviation=math.sqrt(variance), budget=times, mechanism_scale=1.0, delta=delta)
    claim, rewards = gaussian_claim(_events, params), Rewards(0.0, 1.0, "clip")
    return Algorithm(program(num_arms), (Span(1, horizon),), params, claim, rewards=rewards)
