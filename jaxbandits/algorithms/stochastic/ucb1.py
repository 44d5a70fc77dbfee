"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002): play the arm of largest mean + sqrt(2 log t / N)."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import arm_means
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """The numbers of UCB1."""

    # multiplies the bonus
    bonus_scale: Any


@cache
def program(num_arms: int) -> Program:
    """UCB1's functions. The index is in `act`: mean + bonus_scale sqrt(2 ln t / N)."""

    def init(params, draws):
        return arm_means.no_plays(num_arms, draws.dtype)

    def act(params, state, draws, t, context):
        bonus = params.bonus_scale * jnp.sqrt(2 * jnp.log(t[0].astype(draws.dtype)))
        index = columns.each(lambda mean, root: mean + bonus * root, state.mean, state.inverse_root)
        action = materialize(columns.argmax(index))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        # here and not in `encode`: reports may be corrupted on their way
        message = jnp.where(jnp.isfinite(message), message, 0)
        return arm_means.with_reward(state, note, message)[0], ()

    return Program(init, act, encode, update)


@factory
def ucb1(*, num_arms: int, horizon: int, bonus_scale: Scalar = 1.0) -> Algorithm:
    """Play the arm of largest index mean + sqrt(2 ln t / N), N its pulls: an optimistic estimate of its mean.

    Every arm is played once first, in index order. t is the index of the coming play.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in from the sweep.
    bonus_scale : float
        Multiplies the bonus sqrt(2 ln t / N), at least 0; 1 is for rewards in [0, 1].

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
    Auer, Cesa-Bianchi and Fischer 2002, Figure 1; `docs/formulas/private_robust_mab.md#ucb1`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.ucb1(num_arms=3, horizon=100).version[0]
    'ucb1'
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    params = Params(number("bonus_scale", bonus_scale, 0.0))
    return Algorithm(
        program=program(num_arms),
        schedule=(Span(1, horizon),),
        params=params,
        guarantee=Guarantee(),
        version=("ucb1", 2, (num_arms,)),
        config={},
        rewards=Rewards(),
    )
