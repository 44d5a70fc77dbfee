"""HTINF (Huang, Dai and Huang 2022, Algorithm 1): regularised leader with Tsallis entropy and a skipping rule.

For losses of either sign whose tail_index-th absolute moment is at most tail_scale^tail_index. Asi, Raman and Talwar
2025 (Corollary 3.2) take it as the base for losses with Laplace noise.
"""

import math
from functools import cache
from typing import Annotated, NamedTuple

import jax.numpy as jnp

from jaxbandits.declared import STATIC, Doc, Example, Gt, Horizon, Le, NumArms, Positive
from jaxbandits.learners import tsallis
from jaxbandits.learners.observed_loss import encode_loss
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span, Tails
from jaxbandits.typing import Array, Int, Numeric, Scalar
from jaxbandits.validation import factory

# Losses are divided by a weight of at least this: smaller than what a uniform of 32 bits can draw, and the quotient
# stays finite.
MIN_WEIGHT = 1e-12


class Params(NamedTuple):
    tail_scale: Numeric  # sigma


class State(NamedTuple):
    estimate: columns.Columns  # `columns` [K], estimated summed losses, shifted so that the smallest is 0
    updates: Int[Array, ""]
    skips: Int[Array, ""]


def skip_share(tail_index: float) -> float:
    """Theta_alpha of the skipping threshold; 1 - 2^(-1/3) at tail_index 2 (Huang et al. 2022, Algorithm 1)."""
    first = 1 - 2 ** (-(tail_index - 1) / (2 * tail_index - 1))
    second = math.exp(-0.5) if tail_index == 2.0 else (2 - 2 / tail_index) ** (1 / (2 - tail_index))
    return min(first, second)


@cache
def program(num_arms: int, tail_index: float) -> Program:
    """HTINF's functions."""
    share = skip_share(tail_index)

    def scale(params, state):
        # s_t = sigma t^(1/alpha), t the coming update: the same for the weights and the threshold
        t = (state.updates + 1).astype(columns.dtype(state.estimate))
        return params.tail_scale * (jnp.sqrt(t) if tail_index == 2.0 else t ** (1 / tail_index))

    def init(params, draws):
        return State(columns.full(num_arms, 0, draws.dtype), jnp.int32(0), jnp.int32(0))

    def act(params, state, draws, t, context):
        rate = materialize(1 / scale(params, state))
        gaps = columns.map_arms(lambda estimate: jnp.maximum(estimate * rate, 0), state.estimate)
        action, weight = tsallis.draw(gaps, draws.uniform(t[0]), tail_index)
        return jnp.full(t.shape, action), None, (action, jnp.maximum(weight, MIN_WEIGHT))

    def update(params, state, draws, t, note, message, used):
        action, weight = note
        root = jnp.sqrt(weight) if tail_index == 2.0 else weight ** (1 / tail_index)
        keep = jnp.abs(message.total) <= share * scale(params, state) * root
        added = materialize(jnp.where(keep, message.total / weight, 0))
        estimate = columns.add_to_entry(state.estimate, action, added)
        skips = state.skips + (~keep).astype(jnp.int32)
        return State(columns.above_least(estimate), state.updates + 1, skips), ()

    def diagnose(params, state):
        return {"skips": state.skips}

    return Program(init, act, encode_loss, update, diagnose=diagnose)


@factory(
    plays_on="arms",
    example=Example(world="losses"),
    source="""Huang, Dai and Huang 2022, Algorithm 1; Asi, Raman and Talwar 2025, Corollary 3.2. The time index of the
        threshold is repaired: `docs/formulas/private_adversarial.md#htinf`.""",
)
def htinf(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    tail_scale: Positive | None = None,
    tail_index: Annotated[Scalar, Gt(1), Le(2), STATIC, Doc("alpha: the order of the moment that is bounded.")] = 2.0,
) -> Algorithm:
    """Follow the regularised leader with Tsallis entropy and skip losses too large to trust: for heavy tails.

    Update t has step size 1 / s_t, s_t = sigma t^(1/alpha), and adds loss / x_I to the estimate of the played arm I,
    drawn with probability x_I; the loss is 1 - reward. Where `|loss|` exceeds Theta_alpha s_t x_I^(1/alpha) the update
    is skipped.

    Args:
        tail_scale: sigma: the losses should have E|loss|^alpha <= sigma^alpha. The default: sqrt(6), which covers a
            loss in [0, 1] plus Laplace noise of scale up to 1. For noise of a larger scale lam use sqrt(2 + 4 lam^2).

    Note:
        Learns from `Loss` messages and is the default base of `private_batched`. Diagnostic: `skips`, how many updates
        were skipped. A non-finite reward counts as loss 1; losses are not clipped. A skipped update still advances t.
        Losses are divided by a probability of at least 1e-12. The normaliser of the weights is solved by a fixed number
        of Newton steps (`docs/deviations.md`).

    >>> jb.algorithms.htinf(num_arms=3, horizon=100, tail_scale=2.0).params
    Params(tail_scale=2.0)
    """
    scale = math.sqrt(6) if tail_scale is None else tail_scale
    tails = Tails(tail_index, scale**tail_index, "1 - X", declared_by=("tail_scale", "tail_index"))
    schedule = (Span(1, horizon),)
    return Algorithm(program(num_arms, float(tail_index)), schedule, Params(scale), rewards=Rewards(), tails=tails)
