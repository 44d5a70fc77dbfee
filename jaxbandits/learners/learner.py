"""The interface of online learners, and the checks of what they are given."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.validation import number


class Learner(NamedTuple):
    """An online learner: functions, for one lane. Gradients are the caller's, clipped by it."""

    init: Callable  # () -> state
    predict: Callable  # state -> [d]
    update: Callable  # state, gradient [d] -> state


def positive(name, value):
    """A number > 0, checked where it can be seen: a traced scalar passes."""
    if isinstance(value, jax.core.Tracer):
        return value
    scalar = isinstance(value, np.ndarray | jax.Array) and value.ndim == 0
    return number(name, value.item() if scalar else value, 0.0, open_low=True)


def gradient_of(gradient, like):
    """A gradient as an array of the predictions' shape [d] and dtype. ValueError for another shape, which would broadcast."""
    gradient = jnp.asarray(gradient, like.dtype)
    if gradient.shape != like.shape:
        raise ValueError(f"gradient has shape {gradient.shape}; it must be {like.shape}, one lane's: vmap for many")
    return gradient
