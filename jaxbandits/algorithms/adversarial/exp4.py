"""EXP4 (Auer, Cesa-Bianchi, Freund and Schapire 2002, in losses): exponential weights over experts, public advice."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import theory
from jaxbandits.declared import Horizon, NumArms, NumExperts, Positive, Probability
from jaxbandits.learners.exponential import LARGEST_STEP
from jaxbandits.learners.observed_loss import encode_loss
from jaxbandits.numerics import combine, fixed_sum, inverse_cdf, materialize, pick
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, DType, Float, Int, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    learning_rate: Numeric
    mixing: Numeric


class State(NamedTuple):
    """The experts' weights."""

    logs: Float[Array, " N"]  # log weights, the largest 0
    weights: Float[Array, " N"]  # their exponentials, stored so that a play need not compute them again


def equal_weights(num_experts: int, dtype: DType) -> State:
    """Equal weights."""
    return State(jnp.zeros(num_experts, dtype), jnp.ones(num_experts, dtype))


def centre_logs(logs: Float[Array, " N"]) -> State:
    """Log weights [N] centred, and their exponentials."""
    logs = logs - materialize(jnp.max(logs))
    return State(logs, jnp.exp(logs))


def follow(
    weights: Float[Array, " N"], advice: Float[Array, "P N K"], mixing: Any, uniform: Float[Array, " P"]
) -> tuple[Int[Array, " P"], Float[Array, " P"]]:
    """Arms drawn from Q = (1 - mixing) weights mu + mixing / K, mu the advice, and the probabilities of these arms."""
    plays, num_experts, num_arms = advice.shape
    share = materialize((1 - mixing) / fixed_sum(weights))
    # the transposed advice is laid out once for all lanes
    by_arm = materialize(jnp.swapaxes(advice, 1, 2).reshape(plays * num_arms, num_experts))
    mixture = materialize(combine(by_arm, weights)).reshape(plays, num_arms)
    q = mixture * share + mixing / num_arms
    action = materialize(inverse_cdf(q, uniform))
    return action, jnp.maximum(pick(q, action), jnp.finfo(q.dtype).tiny)


def sum_of_columns(
    advice: Float[Array, "P N K"], action: Int[Array, " P"], factors: Float[Array, " P"]
) -> Float[Array, " N"]:
    """The sum over plays p of factors[p] mu_p[:, action[p]], mu the advice.

    The column of one play is added at a time, as a row of the transposed advice: a batched gather took ten times as
    long.
    """
    by_arm = jnp.swapaxes(advice, 1, 2)
    total = by_arm[0, action[0]] * factors[0]
    for p in range(1, advice.shape[0]):
        total = total + by_arm[p, action[p]] * factors[p]
    return total


@cache
def program(num_arms: int, num_experts: int) -> Program:
    """EXP4's functions."""

    def init(params, draws):
        return equal_weights(num_experts, draws.dtype)

    def act(params, state, draws, t, context):
        action, q = follow(state.weights, context, params.mixing, draws.uniform(t))
        return action, None, (context[0].T[action[0]], q[0])

    def update(params, state, draws, t, note, message, used):
        column, q = note
        # Without mixing q may round to almost 0, and an infinite step times advice of 0 would be NaN. With mixing
        # nothing is cut.
        largest = jnp.where(params.mixing > 0, jnp.inf, LARGEST_STEP).astype(q.dtype)
        step = jnp.clip(params.learning_rate * message.total / q, -largest, largest)
        return centre_logs(state.logs - column * materialize(step)), ()

    return Program(init, act, encode_loss, update)


@factory(
    plays_on="advice",
    source="""Auer, Cesa-Bianchi, Freund and Schapire 2002, section 7;
        `docs/formulas/private_adversarial.md#without-privacy`.""",
)
def exp4(
    *,
    num_arms: NumArms,
    num_experts: NumExperts,
    horizon: Horizon,
    learning_rate: Positive | None = None,
    mixing: Probability | None = None,
) -> Algorithm:
    """Exponential weights over experts whose advice is public, learned from the losses of the played arms.

    A play draws its arm I from Q = (1 - mixing) P mu + mixing / K, where P are the normalised weights of the experts
    and mu [N, K] is their advice. Its loss, 1 - reward, lowers the log weight of expert j by learning_rate * mu_j(I)
    * loss / Q(I).

    Args:
        learning_rate: Step size of the log weights. The default: that of `theory.exp4_tuning`, sqrt(2 log N / (K T)).
        mixing: Probability with which a play draws a uniform arm. The default: 0.

    Note:
        The context of a play is the advice [N, K]. A non-finite reward counts as loss 1; losses are not clipped.
        Without mixing one update moves a log weight by at most 80 times the advice, the range of a float32 exponential
        (`docs/deviations.md`).

    >>> jb.algorithms.exp4(num_arms=3, num_experts=5, horizon=100, learning_rate=0.5).params
    Params(learning_rate=0.5, mixing=0.0)
    """
    tuning = theory.exp4_tuning(num_arms, num_experts, horizon)
    rate = tuning["learning_rate"] if learning_rate is None else learning_rate
    params = Params(rate, tuning["mixing"] if mixing is None else mixing)
    return Algorithm(program(num_arms, num_experts), (Span(1, horizon),), params, rewards=Rewards(0.0, 1.0))
