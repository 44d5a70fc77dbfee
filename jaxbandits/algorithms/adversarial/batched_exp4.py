"""Batched EXP4 (Asi, Raman and Talwar 2025, Algorithm 2): weights frozen for a batch, private by noise on every expert's mean."""

from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp4 import State as Weights
from jaxbandits.algorithms.adversarial.exp4 import follow, moved, start, summed_columns
from jaxbandits.algorithms.adversarial.private_batched import client_loss, slots
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_released
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.validation import factory, integer

LONGEST = 8  # most plays of one window, whose advice is [P, N, K]: 8 was fastest of 4, 8, 12, 16 and 32 at 64 experts


class Params(NamedTuple):
    learning_rate: Any
    mixing: Any
    window: Any  # plays of a batch, tau
    noise_scale: Any  # b
    delta: Any  # of the guarantee; no play reads it
    mechanism_scale: Any


class State(NamedTuple):
    experts: Weights
    total: Any  # [N] summed loss estimates of the running batch


class Estimates(NamedTuple):
    """A window's loss estimates, one play's for every expert."""

    total: Any  # [N] sum over the plays of mu_t[:, I_t] l_t(I_t) / Q_t(I_t)


def _events(num_arms, num_experts, params):
    # a play's loss moves the estimate of an expert by its advice over Q, which is at least mixing / K; it lies in one batch
    sensitivity = num_arms / (params.mixing * params.window)
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("one expert's mean loss estimate of a batch", sensitivity, scale, num_experts),)


@cache
def program(num_arms: int, num_experts: int) -> Program:
    def init(params, draws):
        return State(start(num_experts, draws.dtype), jnp.zeros(num_experts, draws.dtype))

    def act(params, state, draws, t, context):
        action, q = follow(state.experts.weights, context, params.mixing, draws.uniform(t))
        return action, None, materialize(q)

    def encode(params, note, draws, t, context, action, reward, play):
        estimate = materialize(jnp.where(play, client_loss(reward), 0) / note)
        return Estimates(summed_columns(context, action, estimate))

    def update(params, state, draws, t, note, message, used):
        window = jnp.asarray(params.window)
        total = state.total + message.total

        def end(experts, total):
            noise = params.mechanism_scale * params.noise_scale * draws.laplace(t, (num_experts,))
            released = total / window.astype(total.dtype) + noise
            return moved(experts.logs - params.learning_rate * released), jnp.zeros_like(total), released

        def go_on(experts, total):
            return experts, total, jnp.full_like(total, jnp.nan)

        # play and window are the same for all lanes of a call: a branch, so that noise is drawn at the ends of batches alone
        ends = t % window.astype(jnp.int32) == 0
        experts, total, released = lax.cond(ends, end, go_on, state.experts, total)
        return State(experts, total), released

    return Program(init, act, encode, update)


@factory
def batched_exp4(
    *,
    num_arms,
    num_experts,
    horizon,
    epsilon,
    delta,
    window=None,
    learning_rate=None,
    mixing=None,
    mixing_rule="repaired",
) -> Algorithm:
    """EXP4 whose weights P move once a batch of `window` plays, by each expert's mean loss estimate plus Lap(b).

    Every play draws its arm from Q_t = (1 - mixing) P mu_t + mixing / K, mu_t [N, K] the advice of the context [P, N, K], and adds
    mu_t[:, I_t] l_t(I_t) / Q_t(I_t) to the estimates; b = 3 K sqrt(N log(1/delta)) / (mixing window epsilon). (epsilon, delta)-private in
    the central model for loss tables that differ in one play; a play's loss is clipped to [0, 1], a non-finite reward counts
    as loss 1; the advice is public. The theorem's composition is loose: `spend` says what is truly spent at delta, a
    fraction of epsilon. A partial last batch moves no weight.
    num_arms >= 2, num_experts >= 2, epsilon > 0 (inf: no noise, all three tunings given), delta in (0, 0.4]. window in [1, T] (data:
    all lengths share one program and take the same memory), learning_rate > 0, mixing in (0, 1]: None is
    `theory.batched_exp4_tuning`, which says what mixing_rule="printed" is. Raises ValueError where the theory does not reach.
    Source: Asi, Raman and Talwar 2025, Algorithm 2, Theorem 4.5.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.batched_exp4(num_arms=3, num_experts=4, horizon=10**8, epsilon=0.1, delta=1e-3)
    >>> made.params.window, [round(x, 6) for x in made.guarantee.spend(made.params)]
    (42763, [0.012034, 0.001])
    """
    num_arms = integer("num_arms", num_arms, 2)
    num_experts = integer("num_experts", num_experts, 2)
    horizon = integer("horizon", horizon, 1)
    tuning = theory.batched_exp4_tuning(
        num_arms,
        num_experts,
        horizon,
        epsilon,
        delta,
        mixing_rule=mixing_rule,
        learning_rate=learning_rate,
        mixing=mixing,
        window=window,
    )
    window = tuning["window"]
    params = Params(tuning["learning_rate"], tuning["mixing"], window, tuning["noise_scale"], float(delta), 1.0)
    span = Span(slots(window, LONGEST), -(-horizon // window), full=True, length=window)
    events = partial(_events, num_arms, num_experts)
    claim = guarantee("central", "loss_vector", events, view_released, delta=lambda params: params.delta)
    version = ("batched_exp4", 2, (num_arms, num_experts))
    return Algorithm(
        program(num_arms, num_experts), (span,), params, claim, version, {}, rewards=Rewards(0.0, 1.0, "clip")
    )
