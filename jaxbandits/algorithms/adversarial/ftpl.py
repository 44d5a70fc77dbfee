"""Follow the perturbed leader with geometric resampling (Neu and Bartok 2013; Asi, Raman and Talwar 2025, Algorithm 4)."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import theory
from jaxbandits.learners.perturbed import leader_probability
from jaxbandits.numerics import argmin, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.random import to_laplace
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
        action = materialize(argmin(estimate + draws.laplace(t[0], (num_arms,)) / params.learning_rate))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))

    def update(params, estimate, draws, t, action, message, used):
        p = leader_probability(params.learning_rate * estimate, action)
        inner = jnp.clip(p, 1e-12, 1 - jnp.finfo(p.dtype).epsneg)  # keeps both logarithms finite
        geometric = 1 + jnp.floor(jnp.log(draws.uniform(t)) / jnp.log1p(-inner))
        tries = jnp.where(geometric > params.tries, params.failed_tries, geometric)
        tries = jnp.where(p < 1e-12, params.failed_tries, jnp.where(p >= 1, 1, tries))
        estimate = estimate.at[action].add(materialize(message.total * tries))
        return estimate - materialize(jnp.min(estimate)), ()

    return Program(init, act, encode, update)


class Resampling(NamedTuple):
    """State of the literal form: a lane plays, or tries on while others play."""

    estimate: Any  # [K] estimated losses, the smallest 0
    action: Any  # int32: the arm whose update is pending
    loss: Any  # its loss
    tries: Any  # int32: tries made in vain, 0 where nothing is pending


@cache
def literal_program(num_arms: int) -> Program:
    """Geometric resampling as listed, `block` tries a window. A lane that is not done plays nothing in the next window and tries
    again; the others play on, so none waits for the slowest. At most K tries a play are expected.
    """
    base, block = program(num_arms), tries_at_once(num_arms)
    order = np.arange(block, dtype=np.int32)

    def init(params, draws):
        zero = jnp.int32(0)
        return Resampling(base.init(params, draws), zero, jnp.zeros((), draws.dtype), zero)

    def act(params, state, draws, t, context):
        action, _, leader = base.act(params, state.estimate, draws, t, context)
        return action, (state.tries == 0).astype(jnp.int32), leader

    def update(params, state, draws, t, action, message, used):
        begins, most = jnp.asarray(used) > 0, jnp.asarray(params.tries).astype(jnp.int32)
        action, loss = jnp.where(begins, action, state.action), jnp.where(begins, message.total, state.loss)
        made = jnp.where(begins, 0, state.tries)
        position = (made + order)[:, None] * num_arms + np.arange(num_arms, dtype=np.int32)
        noise = to_laplace(draws.child("tries").at(t, position), draws.dtype)  # [block, K]
        leads = argmin(state.estimate + noise / params.learning_rate) == action
        first = jnp.min(jnp.where(leads & (made + order < most), order, block))
        made, found = made + jnp.minimum(first + 1, block), first < block
        count = jnp.where(found, made.astype(loss.dtype), params.failed_tries)
        pending = begins | (state.tries > 0)
        done = pending & (found | (made >= most))
        added = state.estimate.at[action].add(materialize(loss * count))
        estimate = jnp.where(done, added - materialize(jnp.min(added)), state.estimate)
        return Resampling(estimate, action, loss, jnp.where(pending & ~done, made, 0)), ()

    return Program(init, act, base.encode, update)


def tries_at_once(num_arms: int) -> int:
    """Tries of one window: twice their expected number, so that few windows are left without a play."""
    return 2 * num_arms


@factory
def ftpl(
    *, num_arms, horizon, learning_rate=None, tries=None, on_fail="cap", resampling="quadrature", feedback_scale=0.0
) -> Algorithm:
    """FTPL on losses 1 - reward (a non-finite reward counts as loss 1): play argmin of Lhat + Lap(1 / learning_rate).

    An update adds loss * M to the played arm, M the number of fresh perturbations until the arm leads again: a geometric draw whose
    probability comes from a quadrature (relative error below 2e-4). learning_rate > 0, tries >= 1: None is
    `theory.ftpl_noisy_tuning` over `horizon` updates with Laplace noise of scale `feedback_scale`. on_fail: when none of `tries`
    matches, M = tries ("cap", which the analysis needs) or 0 ("zero", as listed). resampling="literal" makes the tries themselves,
    2 K a window; a lane that is not done sits out the next window.
    Source: Asi, Raman and Talwar 2025, Algorithm 4 (its argmax read as argmin).

    >>> import jaxbandits as jb
    >>> jb.algorithms.ftpl(num_arms=3, horizon=100).version
    ('ftpl', 2, (3,))
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    choice("on_fail", on_fail, ("cap", "zero"))
    literal = choice("resampling", resampling, ("quadrature", "literal")) == "literal"
    tuning = theory.ftpl_noisy_tuning(num_arms, horizon, number("feedback_scale", feedback_scale, 0.0))
    rate = (
        tuning["learning_rate"] if learning_rate is None else number("learning_rate", learning_rate, 0.0, open_low=True)
    )
    tries = tuning["tries"] if tries is None else integer("tries", tries, 1)
    params = Params(rate, float(tries), float(tries) if on_fail == "cap" else 0.0)
    if not literal:
        return Algorithm(
            program(num_arms),
            (Span(1, horizon),),
            params,
            Guarantee(),
            ("ftpl", 2, (num_arms,)),
            {},
            rewards=Rewards(0.0, 1.0),
        )
    windows = min(horizon * -(-tries // tries_at_once(num_arms)), 2**30)  # enough if every update takes every try
    version = ("ftpl", 2, (num_arms, "literal"))
    return Algorithm(
        literal_program(num_arms),
        (Span(1, windows, full=False),),
        params,
        Guarantee(),
        version,
        {},
        rewards=Rewards(0.0, 1.0),
    )
