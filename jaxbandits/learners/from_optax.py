"""An optax transformation as an online learner over a ball: its step, then the projection."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike

from jaxbandits.learners.learner import Dim, Learner, OneLane, Radius, gradient_of, positive
from jaxbandits.learners.transformations import begin, check_transformation, step
from jaxbandits.numerics import safe_norm, tree_where
from jaxbandits.typing import Array
from jaxbandits.validation import declare

if TYPE_CHECKING:
    import optax


class State(NamedTuple):
    """What the learner carries from round to round."""

    point: Array  # [d] in the ball
    inner: Any  # the transformation's own


@declare
def from_optax(
    transformation: "optax.GradientTransformation", dim: Dim, theta_bound: Radius, *, dtype: DTypeLike | None = None
) -> OneLane:
    """Descend by an optax transformation in the ball of radius D = theta_bound, from 0: x <- P(x + T(g)).

    Args:
        transformation (optax.GradientTransformation): T, such as ``optax.sgd(0.1, momentum=0.9)`` or
            ``optax.adam(0.05)``. It minimises, and needs the gradient and the point only. Its learning rate and other
            numbers are part of the compiled program: make one object and use it for the whole of a sweep, since two
            equal calls of optax are unequal objects, and expect one compiled program for every value in a grid over
            them.
        dtype (dtype, optional): Of the point. The default: JAX's default float. The transformation chooses the types of
            its state.

    Raises:
        ValueError: Where `transformation` is none, needs the value of the loss or functions that evaluate it (lbfgs and
            other line searches, polyak_sgd, momo, reduce_on_plateau), or draws random numbers from a seed of its own
            (noisy_sgd), which would be the same in every lane; where `dim` or `theta_bound` is out of range; in
            `update`, for a gradient of another shape.

    Note:
        *Rounding.* The result of a lane does not depend, bit for bit, on how many lanes run beside it.
        Transformations that work entry by entry (sgd, momentum, adam, adamw, adagrad, yogi, rmsprop) have no sums;
        sums over the entries in the others (clip_by_global_norm, lamb, lars, adafactor, dog) and the norm of the
        projection are taken in the fixed order of ``numerics.fixed_sum``. Sums inside a loop of the
        transformation's own (``lax.scan``, ``lax.while_loop``) are left as they are and make no such promise.

        *Non-finite values.* Gradients are the caller's to keep finite. A step that would make an entry of the point
        infinite or NaN is not taken: point and state stay as they were.

        The transformation's state is not changed by the projection: momentum goes on pointing outside of the ball.

    >>> import optax, jaxbandits as jb
    >>> import jax.numpy as jnp
    >>> learner = jb.learners.from_optax(optax.sgd(0.5), 2, 1.0)
    >>> state = learner.update(learner.init(), jnp.array([3.0, -4.0]))
    >>> learner.predict(state).round(3).tolist()
    [-0.6000000238418579, 0.800000011920929]
    """
    bound = positive("theta_bound", theta_bound)
    transformation = check_transformation("transformation", transformation, dim)

    def init():
        point = jnp.zeros(dim, dtype)
        return State(point, begin(transformation, point))

    def predict(state):
        return state.point

    def update(state, gradient):
        gradient = gradient_of(gradient, state.point)
        point, inner = step(transformation, gradient, state.inner, state.point)
        size = jnp.maximum(safe_norm(point), jnp.finfo(point.dtype).tiny)
        shrink = jnp.minimum(1, bound / size).astype(point.dtype)
        point = point * shrink
        finite = jnp.all(jnp.isfinite(point))
        return tree_where(finite, State(point, inner), state)

    return Learner(init, predict, update)
