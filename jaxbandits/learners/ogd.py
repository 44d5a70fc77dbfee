"""Projected online gradient descent over a Euclidean ball.

Zinkevich 2003; Hazan, Agarwal and Kale 2007 for strongly convex losses; Streeter and McMahan 2010 for the step
that needs no gradient bound. Written out and not by optax, which has no step by the sum of squared norms
(`scale_by_rss` keeps a sum a coordinate); `from_optax` takes the steps that it has.
"""

from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
from annotated_types import Ge

from jaxbandits.learners.learner import Dim, Dtype, GradientBound, Learner, OneLane, Radius, gradient_of, positive
from jaxbandits.numerics import fixed_sum
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import declare


class State(NamedTuple):
    """What gradient descent keeps from round to round."""

    point: Float[Array, " d"]
    clock: Array  # step "adanorm": the sum of squared gradients; otherwise how many updates there were, int32


@declare(
    source='Zinkevich 2003 ("sqrt"); Hazan, Agarwal and Kale 2007 ("strong"); Streeter and McMahan 2010 '
    '("adanorm"); docs/formulas/ldp_contextual.md#gradient-descent'
)
def ogd(
    dim: Dim,
    horizon: Annotated[int, Ge(1)],
    theta_bound: Radius,
    gradient_bound: GradientBound,
    *,
    step: Literal["adanorm", "sqrt", "strong"] = "adanorm",
    strong_convexity: Scalar | jax.Array = 1.0,
    dtype: Dtype | None = None,
) -> OneLane:
    """Projected gradient descent in a ball around 0: x <- P(x - a_t g_t), starting at 0.

    Args:
        horizon: Number of rounds. It is checked and not used: all learners share their arguments.
        gradient_bound: A bound G > 0 on the norm of gradients, read by `step="sqrt"` only. A number, or a traced
            scalar.
        step: The step size a_t. "adanorm": sqrt(2) D / sqrt(sum of `|g|^2`, the current one included), which needs no
            bound, and 0 while the sum is 0. "sqrt": 2 D / (G sqrt(t)). "strong": 1 / (strong_convexity t).
        strong_convexity: The losses' constant of strong convexity mu > 0, read by `step="strong"` only. A number, or a
            traced scalar.

    Note:
        Gradients have to be finite, and under "adanorm" their squared norms have to sum to less than float32's 3e38.
        `update` does not clip them.

    >>> import jax.numpy as jnp, jaxbandits as jb
    >>> learner = jb.learners.ogd(2, 100, 1.0, 5.0)
    >>> state = learner.update(learner.init(), jnp.array([3.0, -4.0]))
    >>> learner.predict(state).round(3).tolist()
    [-0.6000000238418579, 0.800000011920929]
    """
    bound, largest = positive("theta_bound", theta_bound), positive("gradient_bound", gradient_bound)
    curvature = positive("strong_convexity", strong_convexity)

    def init():
        point = jnp.zeros(dim, dtype)
        return State(point, jnp.zeros((), point.dtype) if step == "adanorm" else jnp.int32(0))

    def predict(state):
        return state.point

    def update(state, gradient):
        point, gradient = state.point, gradient_of(gradient, state.point)
        if step == "adanorm":
            clock = state.clock + fixed_sum(gradient * gradient)
            moved = clock > 0  # twice: neither the value nor a derivative may divide by zero
            rate = jnp.where(moved, 2**0.5 * bound / jnp.sqrt(jnp.where(moved, clock, 1)), 0)
        else:
            clock = state.clock + 1
            t = clock.astype(point.dtype)
            rate = 2 * bound / (largest * jnp.sqrt(t)) if step == "sqrt" else 1 / (curvature * t)
        point = point - rate.astype(point.dtype) * gradient
        size = jnp.sqrt(fixed_sum(point * point))
        shrink = jnp.minimum(1, bound / jnp.maximum(size, jnp.finfo(point.dtype).tiny))
        return State(point * shrink.astype(point.dtype), clock)

    return Learner(init, predict, update)
