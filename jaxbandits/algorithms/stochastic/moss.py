"""MOSS (Audibert and Bubeck 2009), recalled from memory and not re-read: minimax optimal for a known horizon."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import arm_means
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """The numbers of MOSS."""

    # multiplies the bonus
    bonus_scale: Any
    # ln(T / K)
    log_share: Any


class State(NamedTuple):
    """What MOSS knows of the arms."""

    means: arm_means.Means
    # it changes with its own arm's plays only, so that a play computes one
    index: columns.Columns


@cache
def program(num_arms: int) -> Program:
    """MOSS's functions."""

    def init(params, draws):
        index = columns.full(num_arms, arm_means.UNPLAYED, draws.dtype)
        return State(arm_means.no_plays(num_arms, draws.dtype), index)

    def act(params, state, draws, t, context):
        action = materialize(columns.argmax(state.index))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        message = jnp.where(
            jnp.isfinite(message), message, 0
        )  # here and not in `encode`: reports may be corrupted on their way
        means, mean, root = arm_means.with_reward(state.means, note, message)
        bonus = jnp.sqrt(jnp.maximum(params.log_share + 2 * jnp.log(root), 0)) * root
        index = materialize(mean + params.bonus_scale * bonus)
        return State(means, columns.replaced(state.index, note, index)), ()

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
        version=("moss", 2, (num_arms,)),
        config={},
        rewards=Rewards(),
    )
