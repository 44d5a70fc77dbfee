"""EXP4 (Auer, Cesa-Bianchi, Freund and Schapire 2002, in losses): exponential weights over experts whose advice is public."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import theory
from jaxbandits.learners.exponential import LARGEST_STEP
from jaxbandits.numerics import combine, fixed_sum, inverse_cdf, materialize, pick
from jaxbandits.protocol import Algorithm, Guarantee, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    learning_rate: Any
    mixing: Any


class State(NamedTuple):
    logs: Any  # [N] log weights, the largest 0
    weights: Any  # [N] their exponentials: kept, so that a play reads them and does not compute them again


def start(num_experts: int, dtype) -> State:
    """Equal weights."""
    return State(jnp.zeros(num_experts, dtype), jnp.ones(num_experts, dtype))


def moved(logs) -> State:
    """Log weights [N] centred, and their exponentials."""
    logs = logs - materialize(jnp.max(logs))
    return State(logs, jnp.exp(logs))


def follow(weights, advice, mixing, uniform):
    """Arms [P] drawn from Q = (1 - mixing) weights mu + mixing / K and their probabilities [P]: advice mu [P, N, K], uniform [P]."""
    plays, num_experts, num_arms = advice.shape
    share = materialize((1 - mixing) / fixed_sum(weights))
    by_arm = materialize(
        jnp.swapaxes(advice, 1, 2).reshape(plays * num_arms, num_experts)
    )  # laid out once for all lanes
    mixture = materialize(combine(by_arm, weights)).reshape(plays, num_arms)
    q = mixture * share + mixing / num_arms
    action = materialize(inverse_cdf(q, uniform))
    return action, jnp.maximum(pick(q, action), jnp.finfo(q.dtype).tiny)


def summed_columns(advice, action, factors):
    """sum_p factors[p] mu_p[:, action[p]]: advice mu [P, N, K], action [P], factors [P] -> [N].

    One play's column at a time, a row of the transposed advice: a batched gather took ten times as long.
    """
    by_arm = jnp.swapaxes(advice, 1, 2)
    total = by_arm[0, action[0]] * factors[0]
    for p in range(1, advice.shape[0]):
        total = total + by_arm[p, action[p]] * factors[p]
    return total


@cache
def program(num_arms: int, num_experts: int) -> Program:
    def init(params, draws):
        return start(num_experts, draws.dtype)

    def act(params, state, draws, t, context):
        action, q = follow(state.weights, context, params.mixing, draws.uniform(t))
        return action, None, (context[0].T[action[0]], q[0])

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(jnp.where(jnp.isfinite(reward[0]), 1 - reward[0], 1))

    def update(params, state, draws, t, note, message, used):
        column, q = note
        # without mixing q may round to almost 0: an infinite step times advice of 0 would be NaN. With it nothing is cut
        largest = jnp.where(params.mixing > 0, jnp.inf, LARGEST_STEP).astype(q.dtype)
        step = jnp.clip(params.learning_rate * message.total / q, -largest, largest)
        return moved(state.logs - column * materialize(step)), ()

    return Program(init, act, encode, update)


@factory
def exp4(*, num_arms, num_experts, horizon, learning_rate=None, mixing=None) -> Algorithm:
    """EXP4 on losses 1 - reward (a non-finite reward counts as loss 1), without privacy.

    The context is the advice [1, N, K]; every play draws its arm from Q = (1 - mixing) P mu + mixing / K, P the weights of the experts.
    num_arms >= 2, num_experts >= 2. learning_rate > 0, mixing in [0, 1]: None is `theory.exp4_tuning`, sqrt(2 log N / (K T)) and 0.

    >>> import jaxbandits as jb
    >>> jb.algorithms.exp4(num_arms=3, num_experts=5, horizon=100).version
    ('exp4', 2, (3, 5))
    """
    num_arms = integer("num_arms", num_arms, 2)
    num_experts = integer("num_experts", num_experts, 2)
    horizon = integer("horizon", horizon, 1)
    tuning = theory.exp4_tuning(num_arms, num_experts, horizon)
    if learning_rate is not None:
        tuning["learning_rate"] = number("learning_rate", learning_rate, 0.0, open_low=True)
    if mixing is not None:
        tuning["mixing"] = number("mixing", mixing, 0.0, 1.0)
    params = Params(**tuning)
    version = ("exp4", 2, (num_arms, num_experts))
    return Algorithm(
        program(num_arms, num_experts), (Span(1, horizon),), params, Guarantee(), version, {}, rewards=Rewards(0.0, 1.0)
    )
