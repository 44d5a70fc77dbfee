"""MOSS (Audibert and Bubeck 2009), recalled from memory and not re-read: minimax optimal for a known horizon."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.arm_rows import rows_before_play
from jaxbandits.numerics import argmax, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """The numbers of MOSS."""

    # multiplies the bonus
    bonus_scale: Any
    # ln(T / K)
    log_share: Any


@cache
def program(num_arms: int) -> Program:
    """MOSS's functions."""

    # state [K, 3]: index, mean reward, pulls. An index changes with its own arm's plays only, so a play computes one
    # row.
    def init(params, draws):
        return rows_before_play(num_arms, draws.dtype)

    def act(params, state, draws, t, context):
        action = argmax(state[:, 0])
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = jnp.where(
            jnp.isfinite(message), message, 0
        )  # here and not in `encode`: reports may be corrupted on their way
        _, mean, pulls = state[note]
        pulls = materialize(pulls + 1)
        inverse = materialize(1 / pulls)
        mean = materialize(mean + (message - mean) * inverse)
        bonus = jnp.sqrt(jnp.maximum(params.log_share - jnp.log(pulls), 0) * inverse)
        return state.at[note].set(jnp.stack([materialize(mean + params.bonus_scale * bonus), mean, pulls])), ()

    return Program(init, act, encode, update)


@factory
def moss(*, num_arms: int, horizon: int, bonus_scale: Scalar = 1.0) -> Algorithm:
    """Play the arm of largest index mean + sqrt(max(ln(T / (K N)), 0) / N): optimism for a known number of plays.

    N is the arm's number of pulls. Every arm is played once first, in index order.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1; the index depends on it. Filled in from the sweep.
    bonus_scale : float
        Multiplies the square root in the index, at least 0; 1 is for rewards in [0, 1].

    Returns
    -------
    Algorithm
        Without a privacy guarantee.

    Raises
    ------
    ValueError
        For an argument outside its range.

    Notes
    -----
    Ties go to the lowest index. A non-finite reward counts as 0.

    References
    ----------
    Audibert and Bubeck 2009, section 2, recalled from memory and not re-read;
    `docs/formulas/private_robust_mab.md#moss`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> round(jb.algorithms.moss(num_arms=5, horizon=1000).params.log_share, 4)
    5.2983
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    params = Params(number("bonus_scale", bonus_scale, 0.0), math.log(horizon / num_arms))
    return Algorithm(
        program=program(num_arms),
        schedule=(Span(1, horizon),),
        params=params,
        guarantee=Guarantee(),
        version=("moss", 1, (num_arms,)),
        config={},
        rewards=Rewards(),
    )
