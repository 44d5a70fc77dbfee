"""UCB on locally private rewards: every client adds Laplace noise, or answers by randomised response.

Specification of private and robust bandits, section 12; our own comparator, not a published listing.
Draws: `alg/encode` itself (one Laplace variable, or one uniform, a play).
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.arm_rows import rows_before_play, with_reward
from jaxbandits.algorithms.stochastic.kl_ucb import unit_reward
from jaxbandits.mechanisms.composition import guarantee, laplace_event, response_event, view_message
from jaxbandits.mechanisms.laplace import laplace_scale
from jaxbandits.mechanisms.randomized_response import randomized_response
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.validation import choice, factory, integer

UNREADY = 1e30  # the index of an arm without enough pulls: the lowest such index is played


class Params(NamedTuple):
    noise_scale: Any  # 1 / epsilon: the Laplace scale, and what the flips follow from
    radius_scale: Any  # radius = radius_scale sqrt(ln t / N)
    min_pulls: Any  # an arm is ready once N >= min_pulls ln t and N >= 1
    mechanism_scale: Any


def _events(mechanism, params):
    scale = params.noise_scale * params.mechanism_scale
    if mechanism == "laplace":
        return (laplace_event("reward in [0, 1] of one play", 1.0, scale),)
    return (response_event("bit of one play's reward", scale, bits=23),)


@cache
def program(num_arms: int, mechanism: str) -> Program:
    # state [K, 3]: the rows of `arm_rows`, with reports for rewards
    def init(params, draws):
        return rows_before_play(num_arms, draws.dtype, mean=0.0)

    def act(params, state, draws, t, context):
        log = jnp.log(t[0].astype(draws.dtype))
        radius = params.radius_scale * jnp.sqrt(log)
        enough = jnp.maximum(params.min_pulls * log, 1)
        index = jnp.where(state[:, 2] >= enough, state[:, 0] + radius * state[:, 1], UNREADY)
        action = argmax(index)
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        reward, noise = unit_reward(reward[0]), params.mechanism_scale * params.noise_scale
        if mechanism == "laplace":
            return reward + noise * draws.laplace(t[0])
        return randomized_response(draws.uniform(t[0]), reward, noise)

    def update(params, state, draws, t, note, message, used):
        message = jnp.where(jnp.isfinite(message), message, 0)  # a report may be attacked on its way
        return with_reward(state, note, message, from_zero=True), ()

    return Program(init, act, encode, update)


@factory
def ldp_ucb(*, num_arms, horizon, epsilon, mechanism="laplace") -> Algorithm:
    """UCB1 on reports that are epsilon-private one by one: rewards are clipped to [0, 1] (NaN counts as 0) and randomised at the
    client; the learner sees the reports only. Ties go to the lowest index; t is the index of the coming play.

    mechanism "laplace": r + Lap(1 / epsilon), index mean + sqrt(8 (1/4 + 2 / epsilon^2) ln t / N) once N >= 4 ln t, infinite
    before. The radius is sqrt(8 variance ln t / N): by Chernoff's bound with the exact Laplace transform each index is below
    the true mean with probability at most t^-3 wherever N >= 4 ln t, and t^-4 as N / ln t grows (`docs/deviations.md`).
    mechanism "randomized_response": a Bernoulli(r) bit, flipped with probability 1 / (1 + e^epsilon) and debiased, index
    mean + (e^epsilon + 1) / (e^epsilon - 1) sqrt(2 ln t / N), t^-4 by Hoeffding's inequality for reports of that range.
    epsilon in (0, inf]; inf: no noise (rewards are still rounded to bits by randomized_response; laplace still waits for 4 ln t
    pulls). num_arms >= 2 [static]. Raises ValueError outside. A report made non-finite by an attack counts as 0.
    Source: specification of private and robust bandits, section 12.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.ldp_ucb(num_arms=3, horizon=100, epsilon=1.0)
    >>> made.guarantee.spend(made.params), round(made.params.radius_scale, 4)
    ((1.0, 0.0), 4.2426)
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    choice("mechanism", mechanism, ("laplace", "randomized_response"))
    if mechanism == "randomized_response" and math.isfinite(float(epsilon)) and not 1e-4 <= epsilon <= 15:
        raise ValueError(
            f"epsilon = {epsilon!r} must be in [0.0001, 15], or inf, for randomized response: its uniforms have 23 bits, and rarer flips "
            "would never come; use mechanism='laplace'"
        )
    scale = laplace_scale(1.0, epsilon)
    if mechanism == "laplace":
        radius_scale, min_pulls = math.sqrt(8 * (0.25 + 2 * scale**2)), 4.0
    else:
        radius_scale, min_pulls = math.sqrt(2) / (math.tanh(1 / (2 * scale)) if scale > 0 else 1.0), 0.0
    params = Params(scale, radius_scale, min_pulls, 1.0)
    claim = guarantee("local", "reward", partial(_events, mechanism), view_message)
    version = ("ldp_ucb", 1, (num_arms, mechanism))
    return Algorithm(
        program(num_arms, mechanism), (Span(1, horizon),), params, claim, version, {}, rewards=Rewards(0.0, 1.0, "clip")
    )
