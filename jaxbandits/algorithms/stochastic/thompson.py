"""Thompson sampling (Thompson 1933; Agrawal and Goyal 2012, 2013), recalled from memory and not re-read.

Draws: `alg/act/gamma` and `alg/act/again/...` (Beta posterior), `alg/act` itself (Gaussian), `alg/encode` itself
(rounding to bits).
"""

from functools import cache
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.stochastic import arm_means
from jaxbandits.algorithms.stochastic.kl_ucb import unit_reward
from jaxbandits.algorithms.stochastic.plain_reports import finite
from jaxbandits.declared import Horizon, NonNegative, NumArms
from jaxbandits.numerics import argmax, columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.random import Draws, to_exponential, to_normal
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    noise_scale: Numeric  # standard deviation of a reward under the Gaussian posterior


def _attempt(shape, first, second):
    """One try of Marsaglia and Tsang 2000 at Gamma(shape), shape >= 1, from two words: value and whether accepted."""
    dtype = shape.dtype
    d = shape - 1 / 3
    e = to_normal(first, dtype.type) / jnp.sqrt(9 * d)
    # Accept when log U < x^2/2 + d - d v + d log v, v = (1 + e)^3. The right side equals 3 d s below. Written so,
    # nothing cancels for large shapes, where the four terms are a million times their sum.
    power = e * e * e * e
    series = power * (
        -1 / 4 + e * (1 / 5 - e * (1 / 6 - e * (1 / 7 - e * (1 / 8 - e * (1 / 9 - e * (1 / 10 - e * (1 / 11)))))))
    )
    exact = jnp.log(jnp.maximum(1 + e, 1e-30)) - e * (1 - e * (1 / 2 - e * (1 / 3)))
    s = jnp.where(jnp.abs(e) < 0.2, series, exact)
    return d * (1 + e) * (1 + e) * (1 + e), to_exponential(second, dtype.type) > -3 * d * s


def gammas(draws: Draws, t: Int[Array, ""], shapes: Float[Array, " n"]) -> Float[Array, " n"]:
    """Gamma variables of the given shapes, at least 1 each, exact in law.

    The first try is made for all at once. Those that are refused, at most 5% each, are tried again one after the
    other, so that lanes hardly wait for each other. With `lax.map` the try of one variable is a loop over the lanes
    in full vectors, not over n, which is three times as fast.
    """
    value, done = lax.map(lambda x: _attempt(*x), (shapes, *draws.child("gamma").words(t, shapes.shape)))
    again = draws.child("again")

    def retry(carry):
        value, done, tries = carry
        i = argmax(~done)
        words = (again.child(name).at(t, tries) for name in ("normal", "exponential"))
        new, accepted = _attempt(shapes[i], *words)
        return value.at[i].set(new), done.at[i].set(accepted), tries + 1

    return lax.while_loop(lambda carry: ~jnp.all(carry[1]), retry, (value, done, jnp.int32(0)))[0]


def normal_per_arm(draws: Draws, t: Int[Array, ""], num_arms: int) -> Float[Array, " K"]:
    """A standard normal variable of every arm, computed one arm after the other, as in `gammas`."""
    return lax.map(lambda word: to_normal(word, draws.dtype), draws.bits(t, (num_arms,)))


@cache
def program(num_arms: int, posterior: str) -> Program:
    """The functions of Thompson sampling."""
    beta = posterior == "beta"

    # state, beta: int32 [K, 2], failures and successes; Gaussian: `arm_means.Means`
    def init(params, draws):
        if beta:
            return jnp.zeros((num_arms, 2), jnp.int32)
        return arm_means.no_plays(num_arms, draws.dtype)

    def act(params, state, draws, t, context):
        if beta:
            failed, won = gammas(draws, t[0], 1 + state.T.reshape(-1).astype(draws.dtype)).reshape(2, num_arms)
            sample = won / (failed + won)
        else:
            mean, root = columns.together(state.mean), columns.together(state.inverse_root)
            sample = mean + params.noise_scale * root * normal_per_arm(draws, t[0], num_arms)
        action = materialize(argmax(materialize(sample)))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        if beta:  # a reward in (0, 1) counts as a success with that probability (Agrawal and Goyal 2012, Algorithm 2)
            return (draws.uniform(t[0]) < unit_reward(reward[0])).astype(jnp.int32)
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        if beta:  # a corrupted report counts as the bit that is nearer
            return state.at[note, (message.astype(draws.dtype) > 0.5).astype(jnp.int32)].add(1), ()
        return arm_means.with_reward(state, note, finite(message))[0], ()

    return Program(init, act, encode, update)


@factory(
    plays_on="arms",
    source="""Agrawal and Goyal 2012, Algorithms 1 and 2, and Agrawal and Goyal 2013, recalled from memory and not
        re-read; `docs/formulas/private_robust_mab.md#thompson-sampling`.""",
)
def thompson(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    posterior: Literal["beta", "gaussian"] = "beta",
    noise_scale: NonNegative = 1.0,
) -> Algorithm:
    """Draw a mean for every arm from its posterior and play the arm whose draw is largest.

    Args:
        posterior: The posterior of an arm's mean. "beta": Beta(1 + successes, 1 + failures), for rewards in [0, 1].
            "gaussian": N(mean, noise_scale^2 / N), N the arm's pulls, for rewards of any size up to 1e30; every arm is
            played once first, in index order.
        noise_scale: Standard deviation of the rewards, for "gaussian" only; 0 follows the arm of largest mean.

    Note:
        "beta" clips rewards to [0, 1], NaN counting as 0, and rounds a reward strictly between to 0 or 1 at random,
        with the reward as the probability of 1. Under "gaussian" a non-finite reward counts as 0. Ties go to the lowest
        index. Beta variables are ratios of gammas and exact in law (Marsaglia and Tsang 2000).

    >>> jb.algorithms.thompson(num_arms=3, horizon=100, posterior="gaussian").params
    Params(noise_scale=1.0)
    """
    rewards = Rewards(0.0, 1.0, "clip") if posterior == "beta" else Rewards()
    return Algorithm(program(num_arms, posterior), (Span(1, horizon),), Params(noise_scale), rewards=rewards)
