"""Small linear algebra whose result does not depend on how many lanes run side by side."""

import jax
import jax.numpy as jnp

from jaxbandits.numerics.fusion import lanes_last
from jaxbandits.numerics.sums import fixed_sum


def safe_norm(x, axis: int = -1):
    """Euclidean norm that neither overflows (unless the norm itself does) nor divides by zero."""
    # powers of two first, exactly: beyond 8e37 the reciprocal that a compiler makes of a division is flushed to zero
    top = jnp.max(jnp.abs(x), axis=axis, keepdims=True)
    shrink = jnp.where(top > 1, 2.0**-64, 2.0**64).astype(x.dtype)
    top = jnp.maximum(top * shrink, jnp.finfo(x.dtype).tiny)
    scaled = x * shrink / top
    return jnp.squeeze(top / shrink, axis) * jnp.sqrt(fixed_sum(scaled * scaled, axis))


@lanes_last
def sweep_inverse(matrix):
    """Inverse of a symmetric positive definite [d, d] by Gauss-Jordan sweeps, and the smallest pivot (> 0: it was definite).

    A loop over d pivots: its compile time does not grow with d, as an unrolled factorisation's does (40 s at d = 10).
    """

    def sweep(k, carry):
        a, smallest = carry
        pivot, column = a[k, k], a[:, k]
        row = a[k] / pivot[None]
        a = (
            (a - column[:, None] * row[None, :])
            .at[k]
            .set(row)
            .at[:, k]
            .set(-column / pivot[None])
            .at[k, k]
            .set(1 / pivot)
        )
        return a, jnp.minimum(smallest, pivot)  # NaN stays NaN, hence not > 0

    start = jnp.full(matrix.shape[2:], jnp.inf, matrix.dtype)
    return jax.lax.fori_loop(0, matrix.shape[0], sweep, (matrix, start))


def inverse_cholesky(matrix):
    """L^-1 of a symmetric positive definite [d, d] matrix L L': lower triangular. A loop, as `sweep_inverse`."""
    d = matrix.shape[-1]
    below = jnp.arange(d, dtype=jnp.int32)

    def eliminate(k, carry):
        a, x = carry
        column = jnp.where(below > k, a[:, k] / a[k, k], 0)
        a, x = a - column[:, None] * a[k][None, :], x - column[:, None] * x[k][None, :]
        return a, x.at[k].set(x[k] / jnp.sqrt(a[k, k]))

    return jax.lax.fori_loop(0, d, eliminate, (matrix, jnp.eye(d, dtype=matrix.dtype)))[1]
