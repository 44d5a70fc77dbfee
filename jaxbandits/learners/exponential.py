"""Exponential weights with one exponential a play: what EXP3 without mixing and EXP3-IX share."""

import jax.numpy as jnp

from jaxbandits.numerics import columns, materialize
from jaxbandits.typing import Array, Float, Int

LEAST_WEIGHT = 1e-37  # smallest stored weight: an arm that fell further recovers from here
LARGEST_STEP = 80.0  # the most that a log weight moves in one update: exp(80) is finite in float32


def reweigh(weights: columns.Columns, action: Int[Array, ""], step: Float[Array, ""]) -> columns.Columns:
    """Normalised weights after the log weight of `action` moved by `step`.

    The sum is taken anew each time: assuming it to be 1 is unstable, an error in it grows like exp(total loss *
    rate).
    """
    factor = jnp.exp(jnp.clip(step, -LARGEST_STEP, LARGEST_STEP))
    marks = columns.marks(weights, action)
    weight = columns.entry_at_marks(weights, action, marks)
    scale = materialize(1 / (columns.sum_entries(weights) + weight * (factor - 1)))
    own = factor * scale
    return columns.map_arms(lambda w, here: jnp.maximum(w * jnp.where(here, own, scale), LEAST_WEIGHT), weights, marks)
