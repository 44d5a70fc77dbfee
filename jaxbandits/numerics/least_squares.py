"""Least squares in the layouts of `packed`: P = (V + ridge I)^-1 and theta = P u of V = sum x x' and u = sum x y."""

from typing import Any

import jax.numpy as jnp

from jaxbandits.numerics import packed
from jaxbandits.numerics.eliminations import eliminate_symmetric, off_zero, pivot_floor, symmetric_inverse
from jaxbandits.numerics.fusion import lanes_first, materialize, materialize_all
from jaxbandits.numerics.packed import Symmetric, Vector, identity_times, inner, pairs, symmetric_product
from jaxbandits.numerics.sums import added, contraction, dot
from jaxbandits.typing import Array, Float


def rank_one(inverse: Any, theta: Any, rest: Any, x: Vector, y: Array) -> tuple[Any, Any, Any]:
    """(P, theta) of least squares after one more play (x, y), and what rounding left out of both.

    By Sherman and Morrison. rest: () where what rounding leaves out is not kept (`numerics.left_out`).
    """
    if not isinstance(x, list | tuple):
        return weighted_rank_one(inverse, theta, rest, x, y)[:3]
    v = symmetric_product(inverse, x)
    shrink = materialize(1 / (1 + inner(x, v)))
    error = (y - inner(x, theta)) * shrink
    new = tuple(-(v[i] * v[j] * shrink) for i, j in pairs(len(x))), tuple(step * error for step in v)
    (inverse, theta), rest = added((inverse, theta), rest, new)
    return inverse, theta, rest


def weighted_rank_one(
    inverse: Float[Array, "d d"], theta: Float[Array, " d"], rest: Any, x: Float[Array, " d"], y: Array, w: Any = ()
) -> tuple[Any, Any, Any, Any]:
    """`rank_one` of arrays, of a play that has a weight w; (): 1.

    Last come P x before the play, w / (1 + w x' P x), and the play's error times that.
    """
    v = symmetric_product(inverse, x)
    shrink = 1 / (1 + dot(x, v)) if isinstance(w, tuple) else w / (1 + w * dot(x, v))
    error = y - dot(x, theta)
    shrink, error = materialize_all([shrink, error * shrink])
    (inverse, theta), rest = added((inverse, theta), rest, (-(v[:, None] * v[None, :] * shrink), v * error))
    return inverse, theta, rest, (v, shrink, error)


def ridge_estimate(gram: Any, vector: Vector, ridge: Any) -> tuple[Symmetric, Vector]:
    """(P, theta) from V and u: P = (V + ridge I)^-1, theta = P u."""
    dim = len(vector)
    if not isinstance(vector, list | tuple):
        inverse = materialize(symmetric_inverse(gram + identity_times(dim, ridge), dim))
        return inverse, materialize(symmetric_product(inverse, vector))
    shifted = [v + ridge if i == j else v for v, (i, j) in zip(gram, pairs(dim), strict=True)]
    inverse = symmetric_inverse(shifted, dim)
    # materialized together: one by one each of the scalars would compute the whole inverse again
    stored = materialize_all([*inverse, *symmetric_product(inverse, vector)])
    return tuple(stored[:-dim]), tuple(stored[-dim:])


def ridge_scores(gram: Any, vector: Vector, ridge: Any, x: Any) -> tuple[Any, Any]:
    """<x, theta> and x' P x of `ridge_estimate`, of vectors x: of few in an array without an inverse."""
    if isinstance(vector, list | tuple):
        inverse, theta = ridge_estimate(gram, vector, ridge)
        return inner(x, theta), packed.quadratic_form(inverse, x)
    flat = x.reshape(-1, x.shape[-1])
    found = _scores_by_blocks(gram + identity_times(len(vector), ridge), vector, flat)
    return found[0].reshape(x.shape[:-1]), found[1].reshape(x.shape[:-1])


@lanes_first
def _scores_by_blocks(
    matrix: Float[Array, "... d d"], vector: Float[Array, "... d"], x: Float[Array, "... m d"]
) -> tuple[Float[Array, "... m"], Float[Array, "... m"]]:
    """u' A^-1 x and x' A^-1 x, from L^-1 u and L^-1 x, where A = L D L'. Pivots as in `symmetric_inverse`."""
    arms = x.shape[-2]
    floor = pivot_floor(jnp.max(jnp.abs(jnp.diagonal(matrix, axis1=-2, axis2=-1)), axis=-1, keepdims=True))
    beside = jnp.swapaxes(jnp.concatenate([vector[..., None, :], x], axis=-2), -1, -2)
    strips, reciprocals = eliminate_symmetric(matrix, beside, lambda pivot: 1 / off_zero(pivot, floor), 4)
    halves = jnp.concatenate([strip[..., -arms - 1 :] for strip in strips], axis=-2)
    scaled = halves * materialize(jnp.concatenate(reciprocals, axis=-1))[..., None]
    scores, squares = contraction(scaled, halves[..., :1], axis=-2), contraction(scaled, halves, axis=-2)
    return scores[..., 1:], squares[..., 1:]
