"""Follow the perturbed leader, geometric resampling (Neu and Bartok 2013; Asi, Raman and Talwar 2025, Algorithm 4)."""

from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.batch_tuning import Batches, tuned_in_batches
from jaxbandits.declared import HOST, Example, Ge, Horizon, NonNegative, NumArms, Positive
from jaxbandits.learners.observed_loss import encode_loss
from jaxbandits.learners.perturbed import leader_probability
from jaxbandits.numerics import argmin, columns, materialize, tree_where
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.random import to_laplace
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    learning_rate: Numeric
    tries: Numeric  # the most resampling tries of an update
    failed_tries: Numeric  # what multiplies the loss where none of them matched


@cache
def program(num_arms: int) -> Program:
    """FTPL's functions, the number of tries drawn from its law."""

    # state, `columns` [K]: estimated losses, the smallest 0
    def init(params, draws):
        return columns.full(num_arms, 0, draws.dtype)

    def act(params, estimate, draws, t, context):
        def perturb_loss(value, word):
            return value + to_laplace(word, draws.dtype) / params.learning_rate

        action = materialize(columns.argmin(columns.map_arms(perturb_loss, estimate, draws.columns(t[0], num_arms))))
        return jnp.full(t.shape, action), None, action

    def update(params, estimate, draws, t, action, message, used):
        gaps = columns.map_arms(lambda value: params.learning_rate * value, estimate)
        p = leader_probability(gaps, action, message.total != 0)  # a loss of 0 changes nothing, whatever the tries
        inner = jnp.clip(p, 1e-12, 1 - jnp.finfo(p.dtype).epsneg)  # keeps both logarithms finite
        geometric = 1 + jnp.floor(jnp.log(draws.uniform(t)) / log_rest(inner))
        tries = jnp.where(geometric > params.tries, params.failed_tries, geometric)
        tries = jnp.where(p < 1e-12, params.failed_tries, jnp.where(p >= 1, 1, tries))
        estimate = columns.add_to_entry(estimate, action, materialize(message.total * tries))
        return columns.above_least(estimate), ()

    # the tries are counted under the estimate of the update, which must be that of the play
    return Program(init, act, encode_loss, update, lockstep=True)


def log_rest(p: Float[Array, ""]) -> Float[Array, ""]:
    """log(1 - p) for p in (0, 1), small ones by a series: `jnp.log1p` would branch, lane by lane."""
    series = p * (1 + p * (1 / 2 + p * (1 / 3 + p * (1 / 4 + p * (1 / 5 + p * (1 / 6 + p * (1 / 7)))))))
    return jnp.where(p < 0.125, -series, jnp.log(1 - p))


class Resampling(NamedTuple):
    """State of the literal form: a lane plays, or goes on trying while others play."""

    estimate: columns.Columns  # `columns` [K], estimated summed losses, shifted so that the smallest is 0
    action: Int[Array, ""]  # the arm whose update is pending, and its loss
    loss: Float[Array, ""]
    tries: Int[Array, ""]  # how often the pending update has tried without a match; 0 where none is pending


@cache
def literal_program(num_arms: int) -> Program:
    """Geometric resampling as listed, `block` tries a window.

    A lane whose update has not matched yet plays nothing in the next window and tries again. The others play on, so
    that none waits for the slowest. At most K tries a play are expected.
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
        begins, max_tries = jnp.asarray(used) > 0, jnp.asarray(params.tries).astype(jnp.int32)
        action, loss = jnp.where(begins, action, state.action), jnp.where(begins, message.total, state.loss)
        tried = jnp.where(begins, 0, state.tries)
        position = (tried + order)[:, None] * num_arms + np.arange(num_arms, dtype=np.int32)[None]
        noise = to_laplace(draws.child("tries").at(t, position), draws.dtype)  # [block, K]
        leads = argmin(columns.together(state.estimate)[None] + noise / params.learning_rate) == action
        first = jnp.min(jnp.where(leads & (tried + order < max_tries), order, block))
        tried, matched = tried + jnp.minimum(first + 1, block), first < block
        count = jnp.where(matched, tried.astype(loss.dtype), params.failed_tries)
        pending = begins | (state.tries > 0)
        done = pending & (matched | (tried >= max_tries))
        added = columns.above_least(columns.add_to_entry(state.estimate, action, materialize(loss * count)))
        estimate = tree_where(done, added, state.estimate)
        return Resampling(estimate, action, loss, jnp.where(pending & ~done, tried, 0)), ()

    return Program(init, act, base.encode, update, lockstep=True)


def tries_at_once(num_arms: int) -> int:
    """Tries of one window: twice their expected number, so that few windows are left without a play."""
    return 2 * num_arms


@factory(
    plays_on="arms",
    example=Example(world="losses"),
    source="""Asi, Raman and Talwar 2025, Algorithm 4, Lemma E.4; Neu and Bartok 2013. The argmax in line 10 of the
        listing is read as argmin: `docs/formulas/private_adversarial.md#ftpl`.""",
)
def ftpl(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    learning_rate: Positive | None = None,
    tries: Annotated[int, Ge(1)] | None = None,
    on_fail: Annotated[Literal["cap", "zero"], HOST] = "cap",
    resampling: Literal["quadrature", "literal"] = "quadrature",
    feedback_scale: NonNegative = 0.0,
) -> Algorithm:
    """Follow the perturbed leader: play the arm of least estimated loss after adding Laplace noise to the estimates.

    A play is argmin of Lhat + Lap(1 / learning_rate), one variable for each arm. Its loss, 1 - reward, times M is
    added to the arm's estimate, where M is the number of fresh perturbations until the same arm leads again: 1 /
    probability on average.

    Args:
        learning_rate: One over the scale of the perturbations. The default: that of `theory.ftpl_noisy_tuning`.
        tries: The most perturbations of one update. The default: that of `theory.ftpl_noisy_tuning`, ceil(sqrt(K T)).
        on_fail: What M is when none of the tries matches: `tries`, which the analysis needs, or 0, as the listing has
            it.
        resampling: How M is found. "quadrature" draws it as a geometric variable whose probability is integrated
            numerically (relative error below 2e-4). "literal" makes the tries, 2 K in a window; a lane that is not done
            sits out the next one.
        feedback_scale: Scale of the Laplace noise that the losses already carry. It only chooses the defaults of
            `learning_rate` and `tries`.

    Note:
        Learns from `Loss` messages, so that it can be the base of `private_batched`. A non-finite reward counts as
        loss 1; losses are not clipped. Ties go to the lowest index.

    >>> jb.algorithms.ftpl(num_arms=3, horizon=100).params.tries
    18.0
    """
    tuning = theory.ftpl_noisy_tuning(num_arms, horizon, feedback_scale)
    rate = tuning["learning_rate"] if learning_rate is None else learning_rate
    tries = tuning["tries"] if tries is None else tries
    params = Params(rate, float(tries), float(tries) if on_fail == "cap" else 0.0)
    functions, span = program(num_arms), Span(1, horizon)
    if resampling == "literal":  # enough windows even if every update takes every try
        windows = min(horizon * -(-tries // tries_at_once(num_arms)), 2**30)
        functions, span = literal_program(num_arms), Span(1, windows, full=False)
    return Algorithm(functions, (span,), params, rewards=Rewards(0.0, 1.0))


def _in_batches(batches: Batches) -> dict[str, Any]:
    """Corollary E.3 for the window that follows from epsilon; its general form for a window that the user chose."""
    if batches.bound.get("feedback_scale") is not None:
        return {}
    if batches.chosen:
        return {"feedback_scale": batches.noise_scale}
    tuning = theory.ftpl_tuning(batches.num_arms, batches.horizon, batches.epsilon)
    return {key: tuning[key] for key in ("learning_rate", "tries")}


tuned_in_batches(ftpl, _in_batches)
