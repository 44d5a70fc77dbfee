"""The interface of online learners, and the checks of what they are given."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from annotated_doc import Doc
from annotated_types import Ge
from jax.typing import DTypeLike

from jaxbandits.declared import LATER, Kind
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import declare, number


@declare(check=False)
class Learner(NamedTuple):
    """An online learner of points in a ball: three functions, for one lane.

    Args:
        init (callable): () -> the state before the first round.
        predict (callable): state -> the point [d] that the learner plays now.
        update (callable): state, gradient [d] of the loss at that point -> the state after the round. The caller clips
            gradients.
    """

    init: Callable[[], Any]
    predict: Callable[[Any], Float[Array, " d"]]
    update: Callable[[Any, Float[Array, " d"]], Any]


Dim = Annotated[int, Ge(1), Doc("Entries d of a point.")]
Radius = Annotated[
    Scalar | jax.Array, LATER, Doc("The radius D > 0 of the ball: a number, or a traced scalar, which is not checked.")
]
GradientBound = Annotated[
    Scalar | jax.Array, LATER, Doc("A bound G > 0 on the norm of gradients: a number, or a traced scalar.")
]
Dtype = Annotated[DTypeLike, Kind("dtype"), Doc("Of points and gradients. The default: JAX's default float.")]
OneLane = Annotated[
    Learner,
    Doc("""``init() -> state``, ``predict(state) -> [dim]``, ``update(state, gradient [dim]) -> state``, for one lane;
        jit and vmap outside. `update` takes the gradient of the loss at ``predict(state)``, or raises ValueError where
        it has another shape."""),
]


def positive(name: str, value: Any) -> Any:
    """A number > 0, checked where it can be seen: a traced scalar passes."""
    if isinstance(value, jax.core.Tracer):
        return value
    scalar = isinstance(value, np.ndarray | jax.Array) and value.ndim == 0
    return number(name, value.item() if scalar else value, 0.0, open_low=True)


def gradient_of(gradient: Any, like: Float[Array, " d"]) -> Float[Array, " d"]:
    """A gradient as an array of the predictions' dtype; ValueError for another shape, which would broadcast."""
    gradient = jnp.asarray(gradient, like.dtype)
    if gradient.shape != like.shape:
        raise ValueError(f"gradient has shape {gradient.shape}; it must be {like.shape}, one lane's: vmap for many")
    return gradient
