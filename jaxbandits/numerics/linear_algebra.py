"""Small linear algebra, elementwise: the result of a lane does not depend on the others, and no library is called.

Which function inverts or factors which matrix, symmetric where nothing else is said:

| matrix | wanted | function |
|---|---|---|
| [d, d], definite | inverse, and whether it was definite | `sweep_inverse` |
| [d, d], definite | L^-1 of its Cholesky factor | `inverse_cholesky` |
| [d, d], definite | logarithm of its determinant | `log_determinant` |
| [d, d], any | inverse after raising its eigenvalues | `inverse_above_floor` |
| [d, d], any | eigenvalues and eigenvectors | `symmetric_eigen` |
| of `packed`, any | inverse | `eliminations.symmetric_inverse` |
| of `packed`, any | <x, theta> and x' P x of few vectors | `least_squares.ridge_scores` |
| of `packed`, perhaps indefinite | Cholesky factor, for products | `eliminations.cholesky` |
| d^2 entries apart, general | inverse | `eliminations.general_inverse` |
| [d, d], general | A'^-1 x of few vectors | `eliminations.solve_transposed` |
| packed lanes, definite, at most 8 features | solutions, by Cholesky factors | `eliminations.cholesky_solver` |
| [d, d], definite | projection onto a ball in the norm of the inverse | `learners.project_ellipsoid.onto_ball` |

Functions of [d, d] loop over d pivots: their compile time does not grow with d, as that of a factorisation
written out does (40 s at d = 10). Those of `packed` take a matrix in the layout of its d: written out up to
`packed.MAX_UNROLLED_DIM` features, which is faster to run there, and an array of which `eliminations.PIVOT_BLOCK`
pivots are eliminated together above. No two agree to the last bit, and none replaces another where results are pinned.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics.fusion import lanes_last
from jaxbandits.numerics.sums import fixed_sum
from jaxbandits.typing import Array, Float, Numeric


def safe_norm(x: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """Euclidean norm that neither overflows (unless the norm itself does) nor divides by zero."""
    # powers of two first, exactly: beyond 8e37 the reciprocal that a compiler makes of a division is flushed to zero
    top = jnp.max(jnp.abs(x), axis=axis, keepdims=True)
    shrink = jnp.where(top > 1, 2.0**-64, 2.0**64).astype(x.dtype)
    top = jnp.maximum(top * shrink, jnp.finfo(x.dtype).tiny)
    scaled = x * shrink / top
    return jnp.squeeze(top / shrink, axis) * jnp.sqrt(fixed_sum(scaled * scaled, axis))


@lanes_last
def sweep_inverse(matrix: Float[Array, "d d ..."]) -> tuple[Float[Array, "d d ..."], Float[Array, "..."]]:
    """Inverse of a symmetric definite [d, d] by Gauss-Jordan sweeps, and its smallest pivot: > 0 if it was definite."""

    def sweep_pivot(k, carry):
        a, smallest = carry
        pivot, column = a[k, k], a[:, k]
        row = a[k] / pivot[None]
        a = a - column[:, None] * row[None, :]
        a = a.at[k].set(row).at[:, k].set(-column / pivot[None]).at[k, k].set(1 / pivot)
        return a, jnp.minimum(smallest, pivot)  # NaN stays NaN, hence not > 0

    start = jnp.full(matrix.shape[2:], jnp.inf, matrix.dtype)
    return jax.lax.fori_loop(0, matrix.shape[0], sweep_pivot, (matrix, start))


def inverse_cholesky(matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """L^-1 of a symmetric positive definite [d, d] matrix L L': lower triangular."""
    d = matrix.shape[-1]
    below = jnp.arange(d, dtype=jnp.int32)

    def eliminate(k, carry):
        a, x = carry
        column = jnp.where(below > k, a[:, k] / a[k, k], 0)
        a, x = a - column[:, None] * a[k][None, :], x - column[:, None] * x[k][None, :]
        return a, x.at[k].set(x[k] / jnp.sqrt(a[k, k]))

    return jax.lax.fori_loop(0, d, eliminate, (matrix, jnp.eye(d, dtype=matrix.dtype)))[1]


@lanes_last
def log_determinant(matrix: Float[Array, "d d ..."]) -> Float[Array, "..."]:
    """Logarithm of the determinant of a symmetric positive definite [d, d]; far below 0 where it is not definite."""
    tiny = jnp.finfo(matrix.dtype).tiny

    def eliminate(k, carry):
        a, total = carry
        pivot = jnp.maximum(a[k, k], tiny)
        return a - a[:, k][:, None] * (a[k] / pivot[None])[None, :], total + jnp.log(pivot)

    return jax.lax.fori_loop(0, matrix.shape[0], eliminate, (matrix, jnp.zeros(matrix.shape[2:], matrix.dtype)))[1]


def _rounds(n: int) -> list[int]:
    """Jacobi's round robin for even n: the order of rows after each of n - 1 rounds of pairs (0, 1), (2, 3), ..."""
    top, bottom = list(range(0, n, 2)), list(range(1, n, 2))
    new_top = [top[0], bottom[0], *top[1:-1]] if n > 2 else top
    new_bottom = [*bottom[1:], top[-1]] if n > 2 else bottom
    return [x for pair in zip(new_top, new_bottom, strict=True) for x in pair]


def symmetric_eigen(matrix: Float[Array, "d d"], sweeps: int = 8) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Eigenvalues [d] and eigenvectors [d, d] (columns) of a symmetric matrix by parallel Jacobi rotations.

    Elementwise, so that no solver of the backend is called. Eight sweeps converge to float32 for d <= 20.
    """
    d = matrix.shape[-1]
    n = max(2, d + d % 2)
    matrix = jnp.pad(matrix, ((0, n - d), (0, n - d)))
    order = jnp.asarray(_rounds(n), jnp.int32)
    scale = jnp.maximum(jnp.max(jnp.abs(matrix)), jnp.finfo(matrix.dtype).tiny)
    matrix = matrix / scale

    def mix(x, c, s):
        """Rotate the pairs of rows of x [n, m], then put them in the next round's order."""
        even, odd = x[0::2], x[1::2]
        pairs = jnp.stack([c[:, None] * even - s[:, None] * odd, s[:, None] * even + c[:, None] * odd], axis=1)
        return pairs.reshape(x.shape)[order]

    def rotate(_, carry):
        a, vectors = carry  # vectors: rows
        diagonal, beside = jnp.diagonal(a), jnp.diagonal(a, 1)[0::2]
        difference = (diagonal[1::2] - diagonal[0::2]) / 2
        size = jnp.abs(difference) + jnp.sqrt(difference * difference + beside * beside)
        tangent = jnp.where(beside == 0, 0, jnp.where(difference < 0, -beside, beside) / jnp.where(size > 0, size, 1))
        c = 1 / jnp.sqrt(1 + tangent * tangent)
        s = tangent * c
        a = mix(jnp.swapaxes(mix(a, c, s), 0, 1), c, s)
        return (a + a.T) / 2, mix(vectors, c, s)

    identity = jnp.eye(n, dtype=matrix.dtype)
    a, vectors = lax.fori_loop(0, sweeps * (n - 1), rotate, (matrix, identity))
    # the padding's eigenvector is an axis of its own: drop its row by sorting it last, and its column
    rows = jnp.argsort(jnp.where(vectors[:, d:].any(axis=1), 1, 0), stable=True)[:d] if n > d else jnp.arange(d)
    return jnp.diagonal(a)[rows] * scale, vectors[rows][:, :d].T


def inverse_above_floor(matrix: Float[Array, "d d"], floor: Numeric) -> Float[Array, "d d"]:
    """Inverse of a symmetric matrix [d, d] after raising its eigenvalues to `floor`.

    Positive definite beyond the floor: a plain inverse. Otherwise (noise or attacks) an eigen-decomposition,
    inside a loop that runs only when some lane needs it.
    """
    lower = matrix - floor * jnp.eye(matrix.shape[-1], dtype=matrix.dtype)
    inverses, pivots = jax.vmap(sweep_inverse)(jnp.stack([matrix, lower]))  # in one loop
    above = pivots[1] > 0
    inverse = jnp.where(above, inverses[0], 0)

    def repair(carry):
        values, vectors = symmetric_eigen(matrix)
        weights = 1 / jnp.maximum(values, floor)
        return jnp.array(True), fixed_sum((vectors * weights[None])[:, None, :] * vectors[None, :, :])

    return lax.while_loop(lambda carry: ~carry[0], repair, (above, inverse))[1]
