"""HuberUCB (Basu, Maillard and Mathieu 2022): UCB with Huber's estimate of location, for contaminated rewards.

Axes: [K] arms, [S] places for rewards.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.robust.stored_rewards import check_horizon, places, taken, tie
from jaxbandits.estimators.huber_location import location
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """Numbers of the algorithm."""

    noise_scale: Any
    # b
    clip: Any
    # 2 b corruption_bound / (1 - 2 corruption_bound)
    bias: Any
    min_pulls_scale: Any


class State(NamedTuple):
    """Every arm's rewards."""

    # in the order in which they came
    rewards: Float[Array, "K S"]
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

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = taken(message)  # at the server, since reports may be corrupted on the way
        before = state.pulls[note]
        row = state.rewards[note].at[before].set(message)
        present = jnp.arange(places, dtype=jnp.int32) <= before
        start = jnp.where(before == 0, message, state.estimate[note])
        estimate = location(row, present, jnp.asarray(params.clip, row.dtype), start)
        rewards, pulls = state.rewards.at[note, before].set(message), state.pulls.at[note].add(1)
        return State(rewards, pulls, state.estimate.at[note].set(estimate)), ()

    return Program(init, act, encode, update)


@factory
def huber_ucb(
    *,
    num_arms: int,
    horizon: int,
    noise_scale: Scalar = 1.0,
    corruption_bound: Scalar = 0.0,
    clip: Scalar | None = None,
    min_pulls_scale: Scalar = 8.0,
) -> Algorithm:
    """UCB for contaminated rewards, with Huber's estimate of location.

    With theta the estimate from all N rewards of the arm (`estimators.huber_location`), t the index of the coming
    play, sigma = `noise_scale`, alpha = `corruption_bound` and b = `clip`, the arm of largest theta + sigma sqrt(2
    ln t / N) + b ln t / (3 N) + 2 b alpha / (1 - 2 alpha) is played.

    Parameters
    ----------
    num_arms : int
        Number of arms, at least 2 [static]. `sweep` fills it in from the environment.
    horizon : int
        Number of plays, from 1 to 2^14 [static]: every reward is stored and read again at each play. `sweep` fills
        it in.
    noise_scale : float, default 1.0
        Sub-Gaussian scale sigma of uncontaminated rewards, in units of a reward, greater than 0.
    corruption_bound : float, default 0.0
        Largest share alpha of contaminated rewards that the learner believes in, in [0, 1/2).
    clip : float, optional
        Distance b from the estimate at which Huber's influence is cut, in units of a reward, greater than 0.
        Default: 2 noise_scale, this package's choice.
    min_pulls_scale : float, default 8.0
        The index is plus infinity while N < ceil(min_pulls_scale ln t), at least 0. The default is the
        publication's, as recalled.

    Returns
    -------
    Algorithm
        It claims no privacy.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    An arm that was never played has index plus infinity. Indices within a relative 1e-6 of the largest (1e-12 in
    float64) are tied and go to the lowest arm. Rewards that are not finite count as 0, others are cut at 1e30 in
    size. The constants of the bonus are this package's: the published ones differ. Nothing is drawn at random.

    References
    ----------
    Basu, Maillard and Mathieu 2022, "Bandits corrupted by nature", recalled and not read again:
    `docs/formulas/private_robust_mab.md#huber-ucb`.

    Examples
    --------
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
        program=program(num_arms, places(horizon)),
        schedule=(Span(1, horizon),),
        params=params,
        guarantee=Guarantee(),
        version=version,
        config={},
        rewards=Rewards(),
    )
