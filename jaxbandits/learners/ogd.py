"""Projected online gradient descent over a Euclidean ball.

Zinkevich 2003; Hazan, Agarwal and Kale 2007 for strongly convex losses; Streeter and McMahan 2010 for the step that needs no
gradient bound. Written out and not by optax, which has no step by the sum of squared norms (`scale_by_rss` keeps a sum a
coordinate); `from_optax` takes the steps that it has.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.learners.learner import Learner, gradient_of, positive
from jaxbandits.numerics import fixed_sum
from jaxbandits.validation import choice, integer

STEPS = ("adanorm", "sqrt", "strong")


class State(NamedTuple):
    point: Any  # [d]
    clock: Any  # "adanorm": the sum of squared gradients; otherwise updates so far, int32


def ogd(dim, horizon, theta_bound, gradient_bound, *, step="adanorm", strong_convexity=1.0, dtype=None) -> Learner:
    """Projected gradient descent in the ball of radius D = theta_bound, from 0: x <- P(x - a_t g_t).

    step "adanorm": a_t = sqrt(2) D / sqrt(sum of |g|^2, the current one included), 0 while the sum is 0, which needs no bound;
    "sqrt": a_t = 2 D / (G sqrt(t)), G = gradient_bound; "strong": a_t = 1 / (strong_convexity t).
    dim, horizon >= 1: integers, of which the horizon is not used (learners share their arguments). theta_bound,
    gradient_bound, strong_convexity > 0: numbers, or traced scalars, which are not checked. dtype: JAX's default float.
    init() -> state; predict(state) -> [dim]; update(state, gradient [dim]) -> state, for finite gradients whose squared norms
    sum to less than float32's 3e38. jit and vmap outside. Raises ValueError outside the ranges.
    Source: specification of locally private linear bandits, section 4.

    >>> import jax.numpy as jnp, jaxbandits as jb
    >>> learner = jb.learners.ogd(2, 100, 1.0, 5.0)
    >>> state = learner.update(learner.init(), jnp.array([3.0, -4.0]))
    >>> learner.predict(state).round(3).tolist()
    [-0.6000000238418579, 0.800000011920929]
    """
    dim, _ = integer("dim", dim, 1), integer("horizon", horizon, 1)
    choice("step", step, STEPS)
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
