"""Follow the perturbed leader with geometric resampling (Neu and Bartok 2013; Asi, Raman and Talwar 2025, Algorithm 4)."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import theory
from jaxbandits.learners.perturbed import leader_probability
from jaxbandits.numerics import argmin, settle
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Span
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    learning_rate: Any
    tries: Any  # most resampling tries
    failed_tries: Any  # what counts when none of them matched


@cache
def program(num_arms: int) -> Program:
    # state [K]: estimated losses, the smallest 0
    def init(params, draws):
        return jnp.zeros(num_arms, draws.dtype)

    def act(params, estimate, draws, t, context):
        action = settle(argmin(estimate + draws.laplace(t[0], (num_arms,)) / params.learning_rate))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))

    def update(params, estimate, draws, t, action, message, used):
        p = leader_probability(params.learning_rate * estimate, action)
        inner = jnp.clip(p, 1e-12, 1 - jnp.finfo(p.dtype).epsneg)  # keeps both logarithms finite
        geometric = 1 + jnp.floor(jnp.log(draws.uniform(t)) / jnp.log1p(-inner))
        tries = jnp.where(geometric > params.tries, params.failed_tries, geometric)
        tries = jnp.where(p < 1e-12, params.failed_tries, jnp.where(p >= 1, 1, tries))
        estimate = estimate.at[action].add(settle(message.total * tries))
        return estimate - settle(jnp.min(estimate)), ()

    return Program(init, act, encode, update)


@factory
def ftpl(
    *, num_arms, horizon, learning_rate=None, tries=None, on_fail="cap", resampling="quadrature", feedback_scale=0.0
) -> Algorithm:
    """FTPL on losses 1 - reward (a non-finite reward counts as loss 1): play argmin of Lhat + Lap(1 / learning_rate).

    An update adds loss * M to the played arm, M the number of fresh perturbations until the arm leads again: a geometric draw whose
    probability comes from a quadrature (relative error below 2e-4). learning_rate > 0, tries >= 1: None is
    `theory.ftpl_noisy_tuning` over `horizon` updates with Laplace noise of scale `feedback_scale`. on_fail: when none of `tries`
    matches, M = tries ("cap", which the analysis needs) or 0 ("zero", as listed). resampling="literal" is not available.
    Source: Asi, Raman and Talwar 2025, Algorithm 4 (its argmax read as argmin).

    >>> import jaxbandits as jb
    >>> jb.algorithms.ftpl(num_arms=3, horizon=100).version
    ('ftpl', 1, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    choice("on_fail", on_fail, ("cap", "zero"))
    if choice("resampling", resampling, ("quadrature", "literal")) == "literal":
        raise ValueError(
            "resampling = 'literal' is not available in this release: use 'quadrature', the same law within 2e-4"
        )
    tuning = theory.ftpl_noisy_tuning(num_arms, horizon, number("feedback_scale", feedback_scale, 0.0))
    rate = (
        tuning["learning_rate"] if learning_rate is None else number("learning_rate", learning_rate, 0.0, open_low=True)
    )
    tries = tuning["tries"] if tries is None else integer("tries", tries, 1)
    params = Params(rate, float(tries), float(tries) if on_fail == "cap" else 0.0)
    return Algorithm(program(num_arms), (Span(1, horizon),), params, Guarantee(), ("ftpl", 1, (num_arms,)), {})
