"""EXP3 with explicit mixing (Auer, Cesa-Bianchi, Freund and Schapire 2002; Asi, Raman and Talwar 2025, Algorithm 3)."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.batch_tuning import Batches, tuned_in_batches
from jaxbandits.declared import Example, Horizon, NonNegative, NumArms, Positive, Probability
from jaxbandits.learners.exponential import reweigh
from jaxbandits.learners.observed_loss import encode_loss
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    learning_rate: Numeric  # eta: how far a loss moves the log weight of its arm
    mixing: Any  # the probability with which a play draws a uniform arm


def _program_without_mixing(num_arms: int) -> Program:
    # state, `columns` [K]: normalised weights, one exponential a play. They are kept above 1e-37: an arm at that floor
    # is never drawn, and it comes back when the others have fallen by a factor 1e37.
    def init(params, draws):
        return columns.full(num_arms, 1 / num_arms, draws.dtype)

    def act(params, weights, draws, t, context):
        action = materialize(columns.inverse_cdf(weights, draws.uniform(t[0])))
        return jnp.full(t.shape, action), None, (action, columns.entry(weights, action))

    def update(params, weights, draws, t, note, message, used):
        action, weight = note
        return reweigh(weights, action, -params.learning_rate * message.total / weight), ()

    return Program(init, act, encode_loss, update)


def _program_with_mixing(num_arms: int) -> Program:
    # state, `columns` [K]: log weights, the largest 0. Mixing draws every arm, so a weight may sink without limit and
    # must come back.
    def init(params, draws):
        return columns.full(num_arms, 0, draws.dtype)

    def act(params, logs, draws, t, context):
        weights = columns.map_arms(lambda log: materialize(jnp.exp(log)), logs)
        total = materialize(columns.sum_entries(weights))
        floor = params.mixing / num_arms
        shares = columns.map_arms(lambda weight: (1 - params.mixing) * weight + floor * total, weights)
        action = materialize(columns.inverse_cdf(shares, draws.uniform(t[0]) * total))
        p = (1 - params.mixing) * columns.entry(weights, action) / total + floor
        return jnp.full(t.shape, action), None, (action, p)

    def update(params, logs, draws, t, note, message, used):
        action, p = note
        step = materialize(params.learning_rate * message.total / p)
        logs = columns.add_to_entry(logs, action, -step)
        top = materialize(columns.largest_entry(logs))
        return columns.map_arms(lambda log: jnp.minimum(log - top, 0), logs), ()

    return Program(init, act, encode_loss, update)


@cache
def program(num_arms: int, mixed: bool) -> Program:
    """EXP3's functions. `mixed` False: mixing is 0 and the weights stay normalised, which is nearly twice as fast."""
    return _program_with_mixing(num_arms) if mixed else _program_without_mixing(num_arms)


@factory(
    plays_on="arms",
    example=Example({"learning_rate": 0.05, "mixing": 0.1}, "losses"),
    source="""Asi, Raman and Talwar 2025, Algorithm 3 and Corollary E.1; Auer, Cesa-Bianchi, Freund and Schapire 2002.
        The tuning of noisy losses is repaired: `docs/formulas/private_adversarial.md#exp3`; without noise:
        `docs/formulas/private_adversarial.md#without-privacy`.""",
)
def exp3(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    learning_rate: Positive | None = None,
    mixing: Probability | None = None,
    feedback_scale: NonNegative = 0.0,
) -> Algorithm:
    """Exponential weights over arms, learned from the losses of the played arms and mixed with uniform exploration.

    A play draws its arm I from P = (1 - mixing) softmax(log weights) + mixing / K. Its loss, 1 - reward, then lowers
    the log weight of I by learning_rate * loss / P_I.

    Args:
        horizon: Number of plays T; inside `private_batched` the number of batches. The defaults below follow from it.
        learning_rate: Step size of the log weights. The default: sqrt(2 log K / (K T)) when `feedback_scale` is 0, else
            that of `theory.exp3_noisy_tuning`.
        mixing: Probability with which a play ignores the weights and draws a uniform arm. It keeps every arm's
            probability at least mixing / K, so that one noisy loss moves a log weight by a bounded amount. The default:
            0 when `feedback_scale` is 0. Otherwise that of `theory.exp3_noisy_tuning`: 4 eta lam K log(K T), where lam
            is `feedback_scale` and eta is the theory's learning rate, whatever rate is given. Inside `private_batched`
            that of `theory.exp3_tuning`. Zero mixing is a compiled program of its own.
        feedback_scale: Scale lam of the Laplace noise that the losses already carry. The algorithm adds no noise
            itself: this only chooses the defaults of `learning_rate` and `mixing`.

    Raises:
        ValueError: For an argument outside its range, and where the default mixing would exceed 1; the error names the
            smallest horizon that works.

    Note:
        Learns from `Loss` messages, so that it can be the base of `private_batched`. A non-finite reward counts as
        loss 1; losses are not clipped. Without mixing, weights stay above 1e-37 and one update moves a log weight by at
        most 80, the range of a float32 exponential (`docs/deviations.md`).

    >>> jb.algorithms.exp3(num_arms=3, horizon=100).params.mixing
    0.0
    >>> round(jb.algorithms.exp3(num_arms=3, horizon=10_000, feedback_scale=1.0).params.mixing, 4)
    0.0162
    """
    tuning = {}
    if feedback_scale == 0:
        tuning = {"learning_rate": math.sqrt(2 * math.log(num_arms) / (num_arms * horizon)), "mixing": 0.0}
    elif learning_rate is None or mixing is None:
        tuning = theory.exp3_noisy_tuning(num_arms, horizon, feedback_scale, mixing=mixing)
    rate = tuning["learning_rate"] if learning_rate is None else learning_rate
    params = Params(rate, tuning["mixing"] if mixing is None else mixing)
    return Algorithm(program(num_arms, params.mixing > 0), (Span(1, horizon),), params, rewards=Rewards(0.0, 1.0))


def _in_batches(batches: Batches) -> dict[str, Any]:
    """Corollary E.1 for the window that follows from epsilon; its general form for a window that the user chose."""
    bound = {key: value for key, value in batches.bound.items() if value is not None}
    if "feedback_scale" in bound or {"learning_rate", "mixing"} <= bound.keys():
        return {}
    sizes, mixing = (batches.num_arms, batches.horizon), bound.get("mixing")
    if batches.chosen:
        number, scale = batches.horizon // batches.window, batches.noise_scale
        tuning = theory.exp3_noisy_tuning(batches.num_arms, number, scale, mixing=mixing, window=batches.window)
    else:
        tuning = theory.exp3_tuning(*sizes, batches.epsilon, mixing=mixing)
    return {key: tuning[key] for key in ("learning_rate", "mixing")}


tuned_in_batches(exp3, _in_batches)
