"""Exponential weights with one exponential a play: what EXP3 without mixing and EXP3-IX share."""

import jax.numpy as jnp

from jaxbandits.numerics import fixed_sum, materialize, one_hot
from jaxbandits.typing import Array, Float, Int

FLOOR = 1e-37  # smallest stored weight: an arm that fell further recovers from here
LARGEST_STEP = 80.0  # the most that a log weight moves in one update: exp(80) is finite in float32


def reweigh(
    weights: Float[Array, " n"], action: Int[Array, ""], weight: Float[Array, ""], step: Float[Array, ""]
) -> Float[Array, " n"]:
    """Normalised weights after the log weight of `action`, whose weight is `weight`, moved by `step`.

    The sum is taken anew each time: assuming it to be 1 is unstable, an error in it grows like exp(total loss *
    rate).
    """
    factor = jnp.exp(jnp.clip(step, -LARGEST_STEP, LARGEST_STEP))
    scale = materialize(1 / (fixed_sum(weights) + weight * (factor - 1)))
    moved = weights * jnp.where(one_hot(action, weights.shape[-1]), factor * scale, scale)
    return jnp.maximum(moved, FLOOR)
