"""Tsallis-INF (Zimmert and Seldin 2021), alpha = 1/2, importance-weighted losses: not private."""

from functools import cache
from typing import Annotated, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.adversarial.batch_tuning import no_tuning, tuned_in_batches
from jaxbandits.algorithms.adversarial.htinf import MIN_WEIGHT
from jaxbandits.declared import Example, Ge, Horizon, Le, NumArms, Positive, Probability, Remedy
from jaxbandits.learners import tsallis
from jaxbandits.learners.observed_loss import encode_loss
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Int, Numeric, Scalar
from jaxbandits.validation import factory


class Params(NamedTuple):
    learning_rate: Numeric
    mixing: Numeric


class State(NamedTuple):
    estimate: columns.Columns  # `columns` [K], estimated summed losses, shifted so that the smallest is 0
    updates: Int[Array, ""]


@cache
def program(num_arms: int) -> Program:
    """Tsallis-INF's functions."""

    def init(params, draws):
        return State(columns.full(num_arms, 0, draws.dtype), jnp.int32(0))

    def act(params, state, draws, t, context):
        step = materialize(params.learning_rate / jnp.sqrt((state.updates + 1).astype(draws.dtype)))
        gaps = columns.map_arms(lambda estimate: jnp.maximum(estimate * step, 0), state.estimate)
        action, weight = tsallis.draw(gaps, draws.uniform(t[0]), mixing=params.mixing)
        return jnp.full(t.shape, action), None, (action, jnp.maximum(weight, MIN_WEIGHT))

    def update(params, state, draws, t, note, message, used):
        action, weight = note
        estimate = columns.add_to_entry(state.estimate, action, materialize(message.total / weight))
        return State(columns.above_least(estimate), state.updates + 1), ()

    return Program(init, act, encode_loss, update)


@factory(
    plays_on="arms",
    example=Example(world="losses"),
    source="Zimmert and Seldin 2021, Algorithm 1; `docs/formulas/private_adversarial.md#tsallis-inf`.",
)
def tsallis_inf(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    learning_rate: Positive | None = None,
    mixing: Probability | None = None,
    feedback_scale: Annotated[Scalar, Ge(0), Le(0), Remedy("no tuning for noisy losses is known; use htinf")] = 0.0,
) -> Algorithm:
    """Follow the regularised leader with Tsallis entropy of index 1/2, for stochastic and adversarial losses alike.

    It is `htinf` with sigma = 1 and without the rule that skips large losses. Step t has size learning_rate /
    sqrt(t); the played arm's estimate grows by loss / probability, the loss being 1 - reward.

    Args:
        learning_rate: Multiplier of the step size 1 / sqrt(t). The default: 1, which is 2 / sqrt(t) in the authors'
            scaling.
        mixing: Probability with which a play draws a uniform arm. The default: 0.
        feedback_scale: Must be 0: no tuning for losses with noise is known. Use `htinf` for those.

    Note:
        Learns from `Loss` messages, so that it can be the base of `private_batched`. A non-finite reward counts as loss
        1; losses are not clipped. Losses are divided by a probability of at least 1e-12. The normaliser of the weights
        is solved by a fixed number of Newton steps (`docs/deviations.md`).

    >>> jb.algorithms.tsallis_inf(num_arms=3, horizon=100).params
    Params(learning_rate=1.0, mixing=0.0)
    """
    params = Params(1.0 if learning_rate is None else learning_rate, 0.0 if mixing is None else mixing)
    return Algorithm(program(num_arms), (Span(1, horizon),), params, rewards=Rewards(0.0, 1.0))


tuned_in_batches(tsallis_inf, no_tuning)  # no theorem says how: it plays with its own defaults
