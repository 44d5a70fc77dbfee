"""Batched EXP4 (Asi, Raman and Talwar 2025, Algorithm 2): weights frozen for a batch, noise on every expert's mean."""

import math
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp4 import State as Weights
from jaxbandits.algorithms.adversarial.exp4 import centre_logs, equal_weights, follow, sum_of_columns
from jaxbandits.declared import HOST, LATER, Example, Ge, Gt, Horizon, Le, NumArms, NumExperts, Positive, Remedy
from jaxbandits.learners.observed_loss import unit_loss
from jaxbandits.mechanisms.composition import delta_of_params, guarantee, laplace_event, view_released
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Numeric, Scalar
from jaxbandits.validation import factory

# The most plays of one window, whose advice is [P, N, K]: 8 was fastest of 4, 8, 12, 16 and 32 at 64 experts.
MAX_WINDOW_PLAYS = 8


class Params(NamedTuple):
    learning_rate: Numeric
    mixing: Numeric
    window: Any  # tau: plays of a batch
    noise_scale: Numeric  # b: scale of the Laplace noise on an expert's mean
    delta: Numeric  # of the guarantee; no play reads it
    mechanism_scale: Numeric


class State(NamedTuple):
    """The experts' weights, and what the running batch has seen."""

    experts: Weights
    total: Float[Array, " N"]  # summed loss estimates of the running batch


class Estimates(NamedTuple):
    """A window's message: the loss estimate of every expert."""

    total: Float[Array, " N"]  # the sum over the plays of mu_t[:, I_t] l_t(I_t) / Q_t(I_t)


def _events(num_arms, num_experts, params):
    # A play's loss moves the estimate of an expert by its advice over Q, which is at least mixing / K. It lies in one
    # batch.
    sensitivity = num_arms / (params.mixing * params.window)
    scale = params.noise_scale * params.mechanism_scale
    event = laplace_event("one expert's mean loss estimate of a batch", sensitivity, scale, num_experts)
    return (event._replace(running=None),)  # estimates are weighted by what was released before


@cache
def program(num_arms: int, num_experts: int) -> Program:
    """Batched EXP4's functions."""

    def init(params, draws):
        return State(equal_weights(num_experts, draws.dtype), jnp.zeros(num_experts, draws.dtype))

    def act(params, state, draws, t, context):
        action, q = follow(state.experts.weights, context, params.mixing, draws.uniform(t))
        return action, None, materialize(q)

    def encode(params, note, draws, t, context, action, reward, play):
        estimate = materialize(jnp.where(play, unit_loss(reward), 0) / note)
        return Estimates(sum_of_columns(context, action, estimate))

    def update(params, state, draws, t, note, message, used):
        window = jnp.asarray(params.window)
        total = state.total + message.total

        def end(experts, total):
            noise = params.mechanism_scale * params.noise_scale * draws.laplace(t, (num_experts,))
            released = total / window.astype(total.dtype) + noise
            return centre_logs(experts.logs - params.learning_rate * released), jnp.zeros_like(total), released

        def go_on(experts, total):
            return experts, total, jnp.full_like(total, jnp.nan)

        # Play and window are the same for all lanes of a call. So this is a branch, and noise is drawn at the ends of
        # batches only.
        ends = t % window.astype(jnp.int32) == 0
        experts, total, released = lax.cond(ends, end, go_on, state.experts, total)
        return State(experts, total), released

    return Program(init, act, encode, update)


@factory(
    plays_on="advice",
    example=Example({"epsilon": 4.0, "delta": 0.01, "window": 12, "learning_rate": 0.2, "mixing": 0.5}),
    source="""Asi, Raman and Talwar 2025, Algorithm 2, Theorem 4.5. Noise and mixing are repaired:
        `docs/formulas/private_adversarial.md#batched-exp4`.""",
)
def batched_exp4(
    *,
    num_arms: NumArms,
    num_experts: NumExperts,
    horizon: Horizon,
    epsilon: Annotated[Scalar, Gt(0), Le(math.inf)],
    delta: Annotated[Scalar, Gt(0), Le(0.4), Remedy("a larger delta would leave too little noise")],
    window: Annotated[int, Ge(1), LATER] | None = None,
    learning_rate: Positive | None = None,
    mixing: Annotated[Scalar, Gt(0), Le(1)] | None = None,
    mixing_rule: Annotated[Literal["repaired", "printed"], HOST] = "repaired",
) -> Algorithm:
    """EXP4 whose weights move once a batch, by each expert's noisy mean loss: private in the central model.

    The weights P are frozen for `window` plays. Every play draws its arm I from Q = (1 - mixing) P mu + mixing / K,
    mu [N, K] the advice, and adds mu_j(I) * loss / Q(I) to the estimate of each expert j. At the end of a batch each
    mean estimate gets Lap(b) with b = 3 K sqrt(N log(1/delta)) / (mixing window epsilon), and moves the log weight of
    its expert.

    Args:
        epsilon: Privacy budget. At inf there is no noise, and `window`, `learning_rate` and `mixing` must all be given.
        delta: Probability with which the guarantee of `epsilon` may fail.
        window: Plays of a batch, at most T. It is data: all lengths share one compiled program and take the same
            memory. The default: that of `theory.batched_exp4_tuning`.
        learning_rate: Step size of the log weights. The default: that of `theory.batched_exp4_tuning`.
        mixing: Probability with which a play draws a uniform arm. The noise is inversely proportional to it. The
            default: that of `theory.batched_exp4_tuning`.
        mixing_rule: Which form of the default mixing: with N log(1/delta) in its first branch, which the theorem's rate
            needs, or with N, as the paper prints it.

    Returns:
        (epsilon, delta)-private in the central model for loss tables that differ in one play, where log(1 / delta) is
        at least 0.91 epsilon: the theory's tuning asks for that, three given numbers do not. The context of a play is
        the advice [N, K], which is public.

    Raises:
        ValueError: For an argument outside its range, and where the theory's defaults do not exist; the error names the
            smallest horizon that works.

    Note:
        A play's loss is clipped to [0, 1]; a non-finite reward counts as loss 1. A partial last batch moves no weight.
        Under that condition a run spends less than epsilon, a fraction of it, since the theorem's composition is loose:
        `guarantee.spend` says what is truly spent at delta, with the condition or without.

    >>> algorithm = jb.algorithms.batched_exp4(num_arms=3, num_experts=4, horizon=10**8, epsilon=0.1, delta=1e-3)
    >>> algorithm.params.window, [round(x, 6) for x in algorithm.guarantee.spend(algorithm.params)]
    (42763, [0.012034, 0.001])
    """
    numbers = num_arms, num_experts, horizon, epsilon, delta
    tuning = theory.batched_exp4_tuning(
        *numbers, mixing_rule=mixing_rule, learning_rate=learning_rate, mixing=mixing, window=window
    )
    params = Params(**tuning, delta=delta, mechanism_scale=1.0)
    slots = -(-params.window // -(-params.window // MAX_WINDOW_PLAYS))  # batches are split evenly
    events = partial(_events, num_arms, num_experts)
    schedule = (Span(slots, -(-horizon // params.window), full=True, length=params.window),)
    claim = guarantee("central", "loss_vector", events, view_released, delta=delta_of_params)
    return Algorithm(program(num_arms, num_experts), schedule, params, claim, rewards=Rewards(0.0, 1.0, "clip"))
