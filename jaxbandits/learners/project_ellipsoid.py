"""Projection onto a ball in the norm of a matrix: what online Newton steps need where they leave the ball.

argmin_{|x| <= D} (x - y)' A (x - y) is y inside the ball. Outside it x solves (A + m I) x = A y, with the
one m > 0 that gives |x| = D. Newton on 1 / |x(m)| - 1 / D, which is concave, rises to that m from 0 and never passes
it (Moré and Sorensen 1983).
"""

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics import dot, fixed_sum, inverse_cholesky, materialize, materialize_all, matvec, safe_norm
from jaxbandits.numerics.eliminations import cholesky_solver
from jaxbandits.numerics.few import at_the_few
from jaxbandits.numerics.packed import pairs, symmetric_product
from jaxbandits.numerics.sums import contraction, inner_products
from jaxbandits.typing import Array, Bool, Float, Matrix, Numeric, Scalar, Tensor, Vector
from jaxbandits.validation import array, declare, number

ITERATIONS = 16  # Newton steps of the public function; 8 leave an error of 4e-6 at condition number 1e3
PRODUCTS = 1000  # of a point of an array, at most: 250 are enough at condition number 1e4
CLOSE = 0.1  # m moves where what is left of a solution is this share of what lies outside the ball


def to_unit_sphere(y: Float[Array, "d L"], inverse: Float[Array, "n L"], iterations: int = 8) -> Float[Array, "d L"]:
    """The projections of points y, every `|y|` > 1, onto the unit ball in the norm of A; lanes are the last axis.

    inverse is A^-1, packed (`numerics.packed`). For step code: eight steps leave an error of 4e-6 at condition
    numbers up to 1e3. A itself is never needed, since (I + m A^-1) x = y.
    """
    entries = [inverse[k] for k in range(len(inverse))]

    def step(_, m):
        forward, x = _solve_at(entries, y, m)
        square = _dot(x, x)
        slope = _dot(forward(x), forward(symmetric_product(entries, x)))
        return m + jnp.maximum(square / slope * (jnp.sqrt(square) - 1), 0)

    m = lax.fori_loop(0, iterations, step, jnp.zeros(y.shape[1:], y.dtype))
    x = jnp.stack(materialize_all(_solve_at(entries, y, m)[1]))
    return x / jnp.maximum(jnp.sqrt(fixed_sum(x * x, axis=0)), 1)[None]


def into_unit_ball(y: Float[Array, "d L"], inverse: Float[Array, "n L"]) -> Float[Array, "d L"]:
    """The projections of any points onto the unit ball, each lane in as many Newton steps as it needs.

    Just outside the ball two or three are enough. A lane that has arrived stays, whatever the others do.
    """
    return at_the_few(_dot(y, y) > 1, _until_there, y, inverse)


def _until_there(y: Float[Array, "d L"], inverse: Float[Array, "n L"]) -> Float[Array, "d L"]:
    entries = [inverse[k] for k in range(len(inverse))]
    enough = 16 * jnp.finfo(y.dtype).eps

    def move_multiplier(m, x, forward):
        square = _dot(x, x)
        excess = jnp.sqrt(square) - 1
        moving = excess > enough
        slope = _dot(forward(x), forward(symmetric_product(entries, x)))
        return jnp.where(moving, m + square / jnp.where(moving, slope, 1) * excess, m), moving

    def step(carry):
        steps, m, _, _ = carry
        forward, x = _solve_at(entries, y, m)
        m, moving = move_multiplier(m, x, forward)
        return steps + 1, m, jnp.stack(x), moving

    # the first step is from m = 0, where there is nothing to factor
    m, moving = move_multiplier(jnp.zeros(y.shape[1:], y.dtype), list(y), list)
    x = lax.while_loop(lambda carry: (carry[0] < ITERATIONS) & jnp.any(carry[3]), step, (jnp.int32(1), m, y, moving))[2]
    return x / jnp.maximum(jnp.sqrt(fixed_sum(x * x, axis=0)), 1)[None]


def onto_ball(
    y: Float[Array, "n d"], outside: Bool[Array, " N"], inverse: Float[Array, "N d d"]
) -> Float[Array, "n d"]:
    """`into_unit_ball` for the last N of the few points of one lane, of any d: x = (I + m P)^-1 y, with P = A^-1.

    outside: which of them lie outside the ball.

    Conjugate gradients solve for x at an m, beginning with m = 0, whose x is y. Wherever what is left is small beside
    |x| - 1, m moves by what would be right if x were an eigenvector. That is never too far, since t / (1 + m t) is
    concave in t. x is then divided by its norm, from where the new m leaves little to solve: Maler's steps take two
    products with P. The points come one after the other, and each lane goes at its own pace.
    """
    number = len(inverse)
    before, enough = len(y) - number, 16 * jnp.finfo(y.dtype).eps
    place = np.arange(-before, number, dtype=np.int32)

    def after(k):
        return jnp.min(jnp.where(outside & (place[before:] > k), place[before:], number))

    def start_point(k):  # of few points; a gather of lanes would take longer to compile
        return reduce(lambda x, i: jnp.where(k == i, y[before + i], x), range(1, number), y[before])

    def step(carry):
        k, points, x, v, p, numbers = carry
        m, last, steps = numbers
        point, matrix = start_point(k), lax.dynamic_index_in_dim(inverse, k, keepdims=False)
        w = materialize(contraction(matrix, p[:, None], axis=0))
        square, along = inner_products((p, p), (p, w))
        x, v = jnp.where(steps > 0, x, 0), jnp.where(steps > 0, v, 0)  # 0 where a point begins, whatever was carried
        last = jnp.where(last > 0, last, square)
        last, rate = materialize_all([last, last / (square + m * along)])
        x, v = x + rate * p, v + rate * w
        left = point - x - m * v
        xx, xv, vv, remaining = materialize(inner_products((x, x), (x, v), (v, v), (left, left)))
        size, slope = jnp.sqrt(xx), xv / xx
        excess, growth = size - 1, 1 + m * slope
        limit = (enough * growth * size) ** 2
        # the second is what would be left at the next m
        short = (remaining > limit) | (excess**2 * (vv / slope**2 - xx) > limit)
        done = ~short | (steps == PRODUCTS)
        turn = remaining <= jnp.maximum((CLOSE * excess) ** 2, limit)
        following = [
            jnp.where(done, 0, jnp.where(turn, jnp.maximum(m + growth / slope * excess, 0), m)),
            jnp.where(done | turn, 0, remaining),
            jnp.where(done, 0, steps + 1),
            jnp.where(done | turn, 1 / size, 1),
            jnp.where(turn, 0, remaining / last),
            done.astype(m.dtype),
        ]
        numbers = materialize(jnp.stack(following))
        m, scale, turned, done = numbers[0], *numbers[3:]
        done = done > 0
        x, v = x * scale, v * scale
        points = jnp.where((place == k)[:, None] & done, x[None], points)
        k = materialize(jnp.where(done, after(k), k))
        p = jnp.where(done, start_point(k), point - x - m * v + turned * p)
        return k, points, x, v, p, numbers[:3]

    first = jnp.min(jnp.where(outside, place[before:], number))
    p = start_point(first)
    start = first, y, p, p, p, jnp.zeros(3, y.dtype)
    return lax.while_loop(lambda carry: carry[0] < number, step, start)[1]


def _solve_at(entries, y, m):
    """The function r -> L^-1 r with L L' = I + m A^-1, and (I + m A^-1)^-1 y."""
    d = y.shape[0]
    shifted = [entry * m + (1.0 if i == j else 0.0) for entry, (i, j) in zip(entries, pairs(d), strict=True)]
    forward, backward = cholesky_solver(shifted, d)
    return forward, backward(forward(list(y)))


def _dot(x, y):
    total = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + a * b
    return total


@declare(source="Moré and Sorensen 1983 (the iteration); docs/formulas/ldp_contextual.md#projection")
def project_ellipsoid(y: Vector, A: Matrix, radius: Scalar | jax.Array) -> Float[Array, " d"]:
    """Project a point onto a ball in the norm of a matrix: argmin over `|x|` <= radius of (x - y)' A (x - y).

    Args:
        y (array of shape [d]): The point. It is returned unchanged where it lies in the ball.
        A (array of shape [d, d]): A symmetric positive definite matrix.
        radius (float or jax.Array): The radius of the ball around 0, > 0.

    Returns:
        Array of shape [d]: The projection, for one problem; vmap and jit outside.

    Raises:
        ValueError: For other shapes, entries that are not finite, an A that is not symmetric or not positive definite,
            and radius <= 0, all where values can be seen on the host.

    Note:
        16 Newton steps on (A + m I) x = A y, with A divided by a bound on its largest eigenvalue, by Cholesky
        factors; then x is scaled to `|x|` = radius, which is exact up to rounding.

        In float32 `|x - exact|` stays below (3e-7 + 6e-8 times the condition number) times the radius, measured up to
        condition number 1e3 and `|y|` = 1e3 radius. Rounding A's entries already costs as much, and refinement did
        not help.

    >>> import jax.numpy as jnp
    >>> x = project_ellipsoid(jnp.array([2.0, 1.0]), jnp.array([[4.0, 0.0], [0.0, 1.0]]), 1.0)
    >>> [round(float(v), 3) for v in x]
    [0.981, 0.194]
    """
    y, A, radius = _check_arguments(y, A, radius)
    d = y.shape[0]
    # a bound on the largest eigenvalue: the largest absolute row sum
    A = A / jnp.max(fixed_sum(jnp.abs(A)))
    norm = safe_norm(y)
    inside = norm <= radius
    # nothing to solve inside: x = 0; from far enough away only the direction of y matters, and its squared norm
    # would overflow
    reach = jnp.maximum(radius, norm * jnp.finfo(y.dtype).eps ** 2)
    unit = jnp.where(inside, jnp.zeros_like(y), y / reach)
    right, eye = matvec(A, unit), jnp.eye(d, dtype=y.dtype)

    def solve_at(m):
        half = inverse_cholesky(A + m * eye)
        return half, matvec(half.T, matvec(half, right))

    def step(_, m):
        half, x = solve_at(m)
        square, w = dot(x, x), matvec(half, x)
        rise = square / jnp.where(inside, 1, dot(w, w)) * (jnp.sqrt(square) - 1)
        return jnp.where(inside, m, m + jnp.maximum(rise, 0))

    x = solve_at(lax.fori_loop(0, ITERATIONS, step, jnp.zeros((), y.dtype)))[1]
    x = x * (radius / jnp.where(inside, 1, safe_norm(x)))
    return jnp.where(inside, y, x)


def _check_arguments(y: Tensor, A: Tensor, radius: Numeric) -> tuple[Array, Array, Array]:
    """The arguments as arrays of one float type, checked where their values can be seen."""
    traced = [isinstance(a, jax.core.Tracer) for a in (y, A, radius)]
    if not traced[0]:
        array("y", y, 1)
    if not traced[1]:
        matrix = array("A", A, 2)
        d = matrix.shape[0]
        if matrix.shape != (d, d) or abs(matrix - matrix.T).max() > 1e-5 * abs(matrix).max():
            raise ValueError(f"A with shape {matrix.shape} is not symmetric: give (A + A.T) / 2")
        if not np.linalg.eigvalsh(matrix)[0] > 0:
            raise ValueError("A is not positive definite: add a multiple of the identity")
    if not traced[2]:
        number("radius", radius, 0.0, open_low=True)
    y = jnp.asarray(y)
    dtype = y.dtype if jnp.issubdtype(y.dtype, jnp.floating) else jnp.zeros(()).dtype
    y, A, radius = y.astype(dtype), jnp.asarray(A, dtype), jnp.asarray(radius, dtype)
    if y.ndim != 1 or A.shape != (y.shape[0],) * 2 or radius.ndim:
        raise ValueError(f"y has shape {y.shape}, A {A.shape}, radius {radius.shape}; they must be [d], [d, d] and []")
    return y, A, radius
