"""Successive elimination (Even-Dar, Mannor and Mansour 2006).

The form is that of Algorithm 1 of Wu, Zhou, Tao and Wang 2023 (arXiv 2302.02526) without noise, truncation or doubling.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.declared import Example, FailureProb, Horizon, NonNegative, NumArms
from jaxbandits.numerics import count, materialize, materialize_all, moved_mean
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int
from jaxbandits.validation import factory

# The mean of an eliminated arm.
ELIMINATED = -1e30


class Params(NamedTuple):
    """The numbers of successive elimination."""

    noise_scale: Any
    # ln(4 K / failure_prob)
    log_term: Any


class State(NamedTuple):
    """What successive elimination remembers."""

    # ELIMINATED once an arm is out
    mean: Float[Array, " K"]
    # what rounding left out of it
    rest: Float[Array, " K"]
    # rounds finished, which is how often every active arm was pulled before this round
    rounds: Int[Array, ""]
    # the coming play's arm
    action: Int[Array, ""]


@cache
def program(num_arms: int) -> Program:
    """The functions of successive elimination."""

    def init(params, draws):
        zeros = jnp.zeros(num_arms, draws.dtype)
        return State(zeros, zeros, jnp.int32(0), jnp.int32(0))

    def act(params, state, draws, t, context):
        return jnp.full(t.shape, state.action), None, state.action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        # here and not in `encode`: reports may be corrupted on their way
        message = jnp.where(jnp.isfinite(message), message, 0)
        dtype, arms = state.mean.dtype, jnp.arange(num_arms, dtype=jnp.int32)
        pulls = (state.rounds + 1).astype(dtype)
        new, rest = materialize_all(moved_mean(state.mean[note], state.rest[note], message, 1 / pulls))
        mean, rest = state.mean.at[note].set(new), state.rest.at[note].set(rest)
        # the rest of the round: active arms above the played one
        following = materialize(jnp.min(jnp.where((mean > ELIMINATED) & (arms > note), arms, num_arms)))
        ends = following == num_arms
        radius = params.noise_scale * jnp.sqrt(2 * (params.log_term + 2 * jnp.log(t.astype(dtype))) / pulls)
        cut = materialize(jnp.where(ends, jnp.max(mean) - 2 * radius, ELIMINATED))
        mean = jnp.where(mean < cut, ELIMINATED, mean)
        first = jnp.min(jnp.where(mean > ELIMINATED, arms, num_arms - 1))
        action = materialize(jnp.where(ends, first, following))
        return State(mean, rest, state.rounds + ends.astype(jnp.int32), action), ()

    def diagnose(params, state):
        return {"active_arms": count(state.mean > ELIMINATED)}

    return Program(init, act, encode, update, diagnose=diagnose, lockstep=True)


@factory(plays_on="arms", example=Example({"noise_scale": 0.2}))
def successive_elimination(
    *, num_arms: NumArms, horizon: Horizon, noise_scale: NonNegative = 1.0, failure_prob: FailureProb | None = None
) -> Algorithm:
    """Pull every active arm once a round and drop the arms that are clearly worse at the round's end.

    Arms are pulled in index order. An arm is dropped when the best mean exceeds its own by more than 2 noise_scale
    sqrt(2 ln(4 K t^2 / failure_prob) / N), where t counts the plays so far and N the arm's pulls. The last arm is
    played to the horizon.

    Parameters
    ----------
    noise_scale
        Sub-Gaussian scale of the rewards; 0.5 suffices for rewards in [0, 1].

    Returns
    -------
    Algorithm
        Without a privacy guarantee. Diagnostic: `active_arms`, how many arms are left at the horizon.

    Notes
    -----
    A non-finite reward counts as 0.

    References
    ----------
    Even-Dar, Mannor and Mansour 2006; the margin is ours: `docs/formulas/private_robust_mab.md#successive-elimination`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.successive_elimination(num_arms=3, horizon=100).schedule[0].repeats
    100
    """
    log_term = math.log(4 * num_arms * horizon if failure_prob is None else 4 * num_arms / failure_prob)
    # Windows of one play: with two arms left a round is two plays, so longer windows would be mostly empty.
    return Algorithm(program(num_arms), (Span(1, horizon),), Params(noise_scale, log_term), rewards=Rewards())
