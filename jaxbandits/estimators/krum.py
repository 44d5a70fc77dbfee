"""Krum: the point in the closest company (Blanchard, El Mhamdi, Guerraoui and Stainer 2017)."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.estimators._inputs import cloud
from jaxbandits.numerics import argmin, fixed_sum, pick
from jaxbandits.validation import integer


def krum(points, num_attacked):
    """The point with the least sum of squared distances to its max(1, N - num_attacked - 2) nearest others; lowest index on ties.

    points: [N, p], finite (non-finite entries count as 0), within 1e15 of each other in float32; a single point is returned. num_attacked: an integer in
    [0, N), believed, a host number; from (N - 2) / 2 attackers on they can be each other's nearest company and are then picked: that is
    the rule. Returns [p], one of the points. Raises ValueError otherwise.
    Source: Blanchard et al. 2017, section 4; specification of Byzantine-robust federated bandits, sections 6 and 10.

    >>> import jax.numpy as jnp
    >>> krum(jnp.array([[0.0], [0.2], [0.3], [9.0], [8.0]]), 2).tolist()
    [0.20000000298023224]
    """
    points = cloud(points)
    attacked = integer("num_attacked", num_attacked, 0, points.shape[0] - 1, remedy="one of the points must be honest")
    return _of_all(jnp.where(jnp.isfinite(points), points, 0), attacked)


@partial(jax.jit, static_argnums=1)
def _of_all(points, attacked):
    n = points.shape[0]
    if n == 1:
        return points[0]
    neighbours = min(max(1, n - attacked - 2), n - 1)

    def score(i):
        away = points - points[i]
        squares = jnp.where(jnp.arange(n) == i, jnp.inf, fixed_sum(away * away))
        return fixed_sum(jnp.sort(squares)[:neighbours])

    scores = lax.map(score, jnp.arange(n))
    return pick(points.T, jnp.broadcast_to(argmin(scores), points.shape[1]))
