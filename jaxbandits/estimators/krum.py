"""Krum: the point in the closest company (Blanchard, El Mhamdi, Guerraoui and Stainer 2017)."""

from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_doc import Doc
from jax import lax

from jaxbandits.estimators._inputs import Points, cloud, finite
from jaxbandits.numerics import argmin, fixed_sum, pick
from jaxbandits.typing import Array, Bool, Float
from jaxbandits.validation import checked, integer


@checked(source="Blanchard et al. 2017, section 4; `docs/formulas/byzantine.md#aggregation-rules`.")
def krum(
    points: Points, num_attacked: int
) -> Annotated[Float[Array, " p"], Doc("One of the points; the one of lowest index on ties.")]:
    """The point whose nearest neighbours are closest to it.

    Its score is the sum of squared distances to its max(1, N - num_attacked - 2) nearest other points.

    Parameters
    ----------
    points
        Points, within 1e15 of each other in float32. Entries that are not finite count as 0. A single point is
        returned.
    num_attacked
        How many points are believed to be attacked, in [0, N). A number on the host.

    Raises
    ------
    ValueError
        If `points` has another shape or `num_attacked` is out of range.

    Notes
    -----
    From (N - 2) / 2 attackers on, attackers can be each other's nearest neighbours and are then picked. That is
    the rule.

    >>> import jax.numpy as jnp
    >>> krum(jnp.array([[0.0], [0.2], [0.3], [9.0], [8.0]]), 2).tolist()
    [0.20000000298023224]
    """
    points = cloud(points)
    attacked = integer("num_attacked", num_attacked, 0, points.shape[0] - 1, remedy="one of the points must be honest")
    return _of_all(finite(points), attacked)


def krum_scores(squares: Float[Array, "... N"], own: Bool[Array, "... N"], neighbours: Any) -> Float[Array, "..."]:
    """The sum of the `neighbours` least squared distances, a point's own left out. A lower score is better.

    neighbours: how many, as an int or as data; at most N - 1, and at most N where N is 1.
    """
    ordered = jnp.sort(jnp.where(own, jnp.inf, squares), axis=-1)
    if isinstance(neighbours, int):
        return fixed_sum(ordered[..., :neighbours])
    near = jnp.arange(ordered.shape[-1], dtype=jnp.int32) < neighbours
    return fixed_sum(jnp.where(near, ordered, 0))


@partial(jax.jit, static_argnums=1)
def _of_all(points, attacked):
    n = points.shape[0]
    if n == 1:
        return points[0]
    neighbours = min(max(1, n - attacked - 2), n - 1)

    def score(i):
        away = points - points[i][None]
        return krum_scores(fixed_sum(away * away), jnp.arange(n) == i, neighbours)

    scores = lax.map(score, jnp.arange(n))  # one point after the other: N^2 p numbers never lie side by side
    return pick(points.T, jnp.broadcast_to(argmin(scores), points.shape[1]))
