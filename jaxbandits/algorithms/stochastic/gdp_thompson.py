"""Gaussian Thompson sampling as a private algorithm: with plays in advance and a wider posterior (Ou et al. 2024).

Draws: `alg/act` itself, a normal variable of every arm at every play.
"""

import math
from functools import cache, partial
from typing import Annotated, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.arm_means import Means, with_reward
from jaxbandits.algorithms.stochastic.episodes import clip01, gaussian_claim
from jaxbandits.algorithms.stochastic.plain_reports import encode_reward
from jaxbandits.algorithms.stochastic.thompson import normal_per_arm
from jaxbandits.declared import ClaimedDelta, Example, Ge, Horizon, NumArms, Positive, Remedy
from jaxbandits.mechanisms.composition import gaussian_event
from jaxbandits.mechanisms.gaussian import default_delta, gaussian_scale
from jaxbandits.numerics import argmax, columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    pre_pulls: Numeric  # b: plays of every arm in advance
    deviation: Numeric  # sqrt(c): standard deviation of the posterior of an arm that was not played
    draws: Numeric  # draws of one arm that depend on a reward, at most
    mechanism_scale: Numeric
    delta: Numeric


@cache
def program(num_arms: int) -> Program:
    """The functions of Gaussian Thompson sampling."""

    def init(params, draws):
        full = partial(columns.full_for_single_writes, num_arms)
        return Means(full(0, draws.dtype), full(1, draws.dtype), full(1, jnp.int32))  # one reward of 0 of every arm

    def act(params, state, draws, t, context):
        scale = params.mechanism_scale * params.deviation
        mean, root = columns.together(state.mean), columns.together(state.inverse_root)
        sample = materialize(mean + scale * root * normal_per_arm(draws, t[0], num_arms))
        early = t[0] <= params.pre_pulls * num_arms
        planned = (t[0] - 1) // jnp.maximum(params.pre_pulls, 1)
        action = materialize(jnp.where(early, planned, argmax(sample)).astype(jnp.int32))
        return jnp.full(t.shape, action), None, (action, jnp.where(early, jnp.nan, sample))

    def update(params, state, draws, t, note, message, used):
        action, sample = note
        return with_reward(state, action, clip01(message))[0], sample

    # what a draw spends follows from the rewards that every arm has been paid, and seen, by then
    return Program(init, act, encode_reward, update, lockstep=True)


def _events(params):
    seen = float(max(params.pre_pulls, 1)) + 1
    scale = float(params.mechanism_scale) * float(params.deviation) / math.sqrt(seen)
    return (gaussian_event("posterior draw of a play", 1 / seen, scale, times=int(params.draws)),)


@factory(
    plays_on="arms",
    example=Example({"pre_pulls": 10, "epsilon": 4.0, "delta": 0.01}, horizon=200),
    source="""Ou, Avella Medina and Cummings 2024 (arXiv 2407.14879): the abstract was read, and the orders sqrt(T) and
        sqrt(T) / x in a summary; the claim and its constants are derived,
        `docs/formulas/private_frontier.md#gdp-thompson`.""",
)
def gdp_thompson(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    pre_pulls: Annotated[int, Ge(0)] = 0,
    variance_scale: Positive = 1.0,
    epsilon: Annotated[Positive, Remedy("for no privacy use `thompson`")] | None = None,
    delta: Annotated[ClaimedDelta, Remedy("give delta > 0")] | None = None,
) -> Algorithm:
    """Thompson sampling with a Gaussian posterior, whose own draws are the noise that makes it private.

    Every arm is played `pre_pulls` times. Then every play draws theta_a from N(S_a / (N_a + 1), c / (N_a + 1)) for
    every arm and plays the largest; S_a sums the N_a rewards of the arm, and c is `variance_scale`.

    Args:
        pre_pulls: Plays b of every arm in advance, arm after arm; 0: draws decide from the first play on.
        variance_scale: c; 1 is plain Thompson sampling. Not with `epsilon`.
        epsilon: Privacy budget, from which c follows. The default: c is `variance_scale`.

    Returns:
        g-GDP in the central model for rewards that differ in one play, with g = sqrt((T - max(K b, 1)) / (c (max(b, 1)
        + 1))); `guarantee.spend` states it as (epsilon, delta), `jb.privacy.ledger` as g.

    Raises:
        ValueError: For an argument outside its range, or `variance_scale` beside `epsilon`.

    Warning:
        Without plays in advance and a wider posterior the claim is true and says nothing: at T = 10,000 with five
        arms it is 70.7-GDP.

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index. `thompson(posterior="gaussian")`
        is another algorithm: it divides by N_a, plays each arm once first, and its rewards are unbounded.

    >>> plain = jb.algorithms.gdp_thompson(num_arms=5, horizon=10_000)
    >>> round(jb.privacy.ledger(plain).g, 2)
    70.71
    """
    delta, variance = default_delta(delta, horizon, 1e-5), variance_scale
    seen, releases = max(pre_pulls, 1) + 1, max(horizon - max(num_arms * pre_pulls, 1), 0)
    if epsilon is not None:
        if variance != 1:
            raise ValueError(f"variance_scale = {variance:g} is not used with epsilon: give one of the two")
        variance = max(releases, 1) * gaussian_scale(1.0, epsilon, delta, "analytic") ** 2 / seen
    params = Params(pre_pulls, math.sqrt(variance), draws=releases, mechanism_scale=1.0, delta=delta)
    claim, rewards = gaussian_claim(_events, params), Rewards(0.0, 1.0, "clip")
    return Algorithm(program(num_arms), (Span(1, horizon),), params, claim, rewards=rewards)
