"""Thompson sampling (Thompson 1933; Agrawal and Goyal 2012, 2013), recalled from memory and not re-read.

Draws: `alg/act/gamma` and `alg/act/again/...` (Beta posterior), `alg/act` itself (Gaussian), `alg/encode` itself (rounding to bits).
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.stochastic.arm_rows import rows_before_play, with_reward
from jaxbandits.algorithms.stochastic.kl_ucb import unit_reward
from jaxbandits.numerics import argmax, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.random import to_exponential, to_normal
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    noise_scale: Any  # of the Gaussian posterior


def _attempt(shape, first, second):
    """One try of Marsaglia and Tsang 2000 at Gamma(shape), shape >= 1, from two words: (value, accepted), any equal shapes."""
    dtype = shape.dtype
    d = shape - 1 / 3
    e = to_normal(first, dtype.type) / jnp.sqrt(9 * d)
    # accept when log U < x^2/2 + d - d v + d log v, v = (1 + e)^3: equal to 3 d s below. So written, nothing cancels for large
    # shapes, where the four terms are a million times their sum
    series = e * e * e * e * (
        -1 / 4 + e * (1 / 5 - e * (1 / 6 - e * (1 / 7 - e * (1 / 8 - e * (1 / 9 - e * (1 / 10 - e * (1 / 11)))))))
    )  # fmt: skip
    exact = jnp.log(jnp.maximum(1 + e, 1e-30)) - e * (1 - e * (1 / 2 - e * (1 / 3)))
    s = jnp.where(jnp.abs(e) < 0.2, series, exact)
    return d * (1 + e) * (1 + e) * (1 + e), to_exponential(second, dtype.type) > -3 * d * s


def gammas(draws, t, shapes):
    """Gamma variables of the given shapes [n], each >= 1, exact in law: the first try for all at once, then the few that were
    refused (at most 5% each) one after the other, so that lanes hardly wait for each other.

    `lax.map`: the try of one variable is then a loop over the lanes in full vectors, not over n (measured: three times as fast).
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


@cache
def program(num_arms: int, posterior: str) -> Program:
    beta = posterior == "beta"

    # state, beta: int32 [K, 2], failures and successes; Gaussian: [K, 3], the rows of `arm_rows`
    def init(params, draws):
        if beta:
            return jnp.zeros((num_arms, 2), jnp.int32)
        return rows_before_play(num_arms, draws.dtype)

    def act(params, state, draws, t, context):
        if beta:
            failed, won = gammas(draws, t[0], 1 + state.T.reshape(-1).astype(draws.dtype)).reshape(2, num_arms)
            sample = won / (failed + won)
        else:
            noise = lax.map(lambda word: to_normal(word, draws.dtype), draws.bits(t[0], (num_arms,)))  # as above
            sample = state[:, 0] + params.noise_scale * state[:, 1] * noise
        action = materialize(argmax(materialize(sample)))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        if beta:  # a reward in (0, 1) counts as a success with that probability (Agrawal and Goyal 2012, Algorithm 2)
            return (draws.uniform(t[0]) < unit_reward(reward[0])).astype(jnp.int32)
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        if beta:  # a corrupted report counts as the bit that is nearer
            return state.at[note, (message.astype(draws.dtype) > 0.5).astype(jnp.int32)].add(1), ()
        message = jnp.where(jnp.isfinite(message), message, 0)
        return with_reward(state, note, message), ()

    return Program(init, act, encode, update)


@factory
def thompson(*, num_arms, horizon, posterior="beta", noise_scale=1.0) -> Algorithm:
    """Play the arm whose mean, drawn from its posterior, is largest; ties go to the lowest index.

    posterior [static] "beta": Beta(1 + successes, 1 + failures), for rewards in [0, 1]. They are clipped (NaN counts as 0), and
    one strictly between is first rounded to 0 or 1 by a draw of that probability. "gaussian": N(mean, noise_scale^2 / N), for rewards of
    any size; every arm is played once first, in index order; non-finite rewards count as 0. noise_scale >= 0: the rewards'
    standard deviation, unused by "beta" (0 is follow the leader). num_arms >= 2 [static]. Raises ValueError outside.
    Source: Agrawal and Goyal 2012, Algorithms 1 and 2, and 2013, as named in the specification of private and robust bandits,
    section 12; recalled from memory, not re-read. Beta variables are ratios of gammas, exact in law (Marsaglia and Tsang 2000).

    >>> import jaxbandits as jb
    >>> jb.algorithms.thompson(num_arms=3, horizon=100).version
    ('thompson', 1, (3, 'beta'))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    posterior = choice("posterior", posterior, ("beta", "gaussian"))
    params = Params(number("noise_scale", noise_scale, 0.0))
    version = ("thompson", 1, (num_arms, posterior))
    return Algorithm(
        program(num_arms, posterior),
        (Span(1, horizon),),
        params,
        Guarantee(),
        version,
        {},
        rewards=Rewards(0.0, 1.0, "clip") if posterior == "beta" else Rewards(),
    )
