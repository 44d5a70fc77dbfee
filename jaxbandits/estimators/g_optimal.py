"""G-optimal designs: the start of Kumar and Yildirim 2005, then the steps of Fedorov 1972 and Wynn 1970.

Formulas: `docs/formulas/robust_linear.md#design`. Sums run in a fixed order and small inverses are elementwise, so a
design does not depend on how many lanes run beside it.
Axes: [K] arms, [d] features.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.declared import TRACED, NonNegative
from jaxbandits.estimators._inputs import of_axes
from jaxbandits.numerics import argmax, dot, fixed_sum, floats, matvec, quadratic, sweep_inverse
from jaxbandits.typing import Array, Bool, Float, Int, Matrix, Numeric, Vector
from jaxbandits.validation import declare

# A feature whose largest entry is a smaller share of the largest feature's gets units of its own.
SMALL_FEATURE = 2.0**-8
PICK_TIE = 1e-6  # relative: arms of norm 1 tie at the first pick


class Design(NamedTuple):
    """A design over the active arms."""

    weights: Float[Array, " K"]  # non-negative, of sum 1 (all zero at rank 0)
    max_leverage: Float[Array, ""]  # largest a' M^-1 a over active arms, computed again from the weights
    rank: Int[Array, ""]  # the dimension that the active arms span


class Basis(NamedTuple):
    """Directions of the active arms, by pivoted Gram-Schmidt."""

    directions: Float[Array, "d d"]  # orthonormal rows, zero beyond the rank
    picks: Int[Array, " d"]  # the arm behind each direction
    rank: Int[Array, ""]


def lowest_largest(x: Float[Array, " K"], allowed: Bool[Array, " K"]) -> Int[Array, ""]:
    """The lowest index whose value is within a relative `PICK_TIE` of the largest allowed one. All are at least 0."""
    return argmax(jnp.where(allowed, x, -1), PICK_TIE)


def gram(actions: Float[Array, "K d"], weights: Float[Array, " K"]) -> Float[Array, "d d"]:
    """The moment sum_a weights_a a a', in blocks of 16 arms so that no array of size K d^2 is formed."""
    num_arms, d = actions.shape
    pad = -num_arms % 16
    actions = jnp.pad(actions, ((0, pad), (0, 0))).reshape(-1, 16, d)
    weights = jnp.pad(weights, (0, pad)).reshape(-1, 16)

    def add(total, block):
        x, w = block
        return total + fixed_sum(x[:, :, None] * (w[:, None] * x)[:, None, :], axis=0), None

    return lax.scan(add, jnp.zeros((d, d), actions.dtype), (actions, weights))[0]


def span_basis(actions: Float[Array, "K d"], active: Bool[Array, " K"]) -> Basis:
    """Directions of the active arms.

    Each is the largest residual, so the picks are a valid start of Kumar and Yildirim.
    """
    d = actions.shape[1]
    tolerance = 1e-5 if actions.dtype == jnp.float32 else 1e-9
    residual = jnp.where(active[:, None], actions, 0)
    largest = jnp.max(dot(residual, residual))

    def pick_direction(i, carry):
        residual, basis = carry
        squared = dot(residual, residual)
        j = lowest_largest(squared, active)
        good = (jnp.sqrt(squared[j]) > tolerance * jnp.sqrt(largest)) & (basis.rank == i)
        q = residual[j]
        # A second time, so that it is orthogonal in float32 too.
        q = q - fixed_sum(matvec(basis.directions, q)[:, None] * basis.directions, axis=0)
        q = jnp.where(good, q / jnp.sqrt(jnp.maximum(dot(q, q), jnp.finfo(q.dtype).tiny)), 0)
        residual = residual - dot(residual, q)[:, None] * q[None]
        directions, picks = basis.directions.at[i].set(q), basis.picks.at[i].set(j)
        return residual, Basis(directions, picks, basis.rank + good.astype(jnp.int32))

    start = Basis(jnp.zeros((d, d), actions.dtype), jnp.zeros(d, jnp.int32), jnp.int32(0))
    return lax.fori_loop(0, d, pick_direction, (residual, start))[1]


def regular(matrix: Float[Array, "d d"], basis: Basis) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    """The definite matrix (M + tr(M)/r (I - Q Q')) / level, and level = tr(M)/r.

    On the span of the active arms it is M / level. Its mean eigenvalue is 1, so that float32 neither overflows nor
    underflows in a factor of it.
    """
    d = matrix.shape[-1]
    rank = jnp.maximum(basis.rank, 1).astype(matrix.dtype)
    level = fixed_sum(jnp.diagonal(matrix)) / rank
    level = jnp.where(level > 0, level, 1)
    inside = fixed_sum(basis.directions[:, :, None] * basis.directions[:, None, :], axis=0)
    return matrix / level + jnp.eye(d, dtype=matrix.dtype) - inside, level


def regular_inverse(matrix: Float[Array, "d d"], basis: Basis) -> Float[Array, "d d"]:
    """The inverse of M + tr(M)/r (I - Q Q'): on the span of the active arms it is the pseudo-inverse of M."""
    scaled, level = regular(matrix, basis)
    return sweep_inverse(scaled)[0] / level


def leverages(
    actions: Float[Array, "K d"], inverse: Float[Array, "d d"], active: Bool[Array, " K"]
) -> Float[Array, " K"]:
    """The leverages a' M^-1 a, 0 for inactive arms."""
    return jnp.where(active, quadratic(inverse, actions), 0)


def design_on(
    actions: Float[Array, "K d"], active: Bool[Array, " K"], basis: Basis, slack: Numeric, max_steps: Numeric
) -> Design:
    """The design from a basis. `slack` and `max_steps` may be traced."""
    num_arms, d = actions.shape
    dtype = actions.dtype
    rank = basis.rank.astype(dtype)
    used = (jnp.arange(d, dtype=jnp.int32) < basis.rank).astype(dtype) / jnp.maximum(rank, 1)
    weights = jnp.zeros(num_arms, dtype).at[basis.picks].add(used)
    inverse = regular_inverse(gram(actions[basis.picks], used), basis)
    goal = (1 + jnp.asarray(slack, dtype)) * rank * (1 + (1e-6 if dtype == jnp.float32 else 1e-9))
    steps = jnp.where(basis.rank > 1, max_steps, 0)

    def above_goal(carry):
        _, leverage, _, step = carry
        return (step < steps) & (jnp.max(leverage) > goal)

    def shift_weight(carry):
        weights, leverage, inverse, step = carry
        j = lowest_largest(leverage, active)
        g = leverage[j]
        s = (g / rank - 1) / (g - 1)
        h = matvec(inverse, actions[j])
        shrink = s / (1 - s + s * g)
        across = dot(actions, h)
        leverage = jnp.where(active, (leverage - shrink * across * across) / (1 - s), 0)
        inverse = (inverse - shrink * h[:, None] * h[None, :]) / (1 - s)
        return ((1 - s) * weights).at[j].add(s), leverage, inverse, step + 1

    start = (weights, leverages(actions, inverse, active), inverse, jnp.int32(0))
    weights = lax.while_loop(above_goal, shift_weight, start)[0]
    final = leverages(actions, regular_inverse(gram(actions, weights), basis), active)
    return Design(weights, jnp.where(basis.rank > 0, jnp.max(final), 0), basis.rank)


@declare(
    source="Kumar and Yildirim 2005 (start), Fedorov 1972 and Wynn 1970 (steps): "
    "`docs/formulas/robust_linear.md#design`."
)
def g_optimal_design(
    actions: Matrix,
    *,
    active: Vector | None = None,
    slack: Annotated[NonNegative | Array, TRACED] = 1.0,
    max_steps: int | Array = 10_000,
) -> Design:
    """Weights over arms that nearly minimise the largest leverage max_a a' M(weights)^-1 a.

    Args:
        actions (array of shape [K, d]): Feature vectors of the arms, finite; K and d are at least 1.
        active (bool array of shape [K], optional): The arms that the design is for. Default: all.
        slack: The steps end once the largest leverage is at most (1 + slack) rank. The default is the paper's factor 2;
            below 1e-3 the convergence is slow.
        max_steps (int, default 10000): The most steps that are taken; `max_leverage` says what was reached. It may be
            traced.

    Returns:
        `weights` [K], `max_leverage`, whose optimum is the rank, and `rank`, the dimension that the active arms span.

    Raises:
        ValueError: If a shape is wrong, or slack is negative.

    Note:
        Ties go to the lowest index within a relative 1e-6. Where the arms span a subspace only, the pseudo-inverse
        takes the place of the inverse and the rank that of d. A feature whose largest entry is below 1/256 of the
        largest of all is measured in units of its own. It works under jit and vmap; leading axes need vmap.

    >>> import jax.numpy as jnp
    >>> g_optimal_design(jnp.eye(2)).weights.tolist()
    [0.5, 0.5]
    """
    actions = floats(of_axes("actions", actions, "[K, d]", ", K and d at least 1"))
    active = jnp.ones(actions.shape[0], bool) if active is None else jnp.asarray(active).astype(bool)
    if active.shape != actions.shape[:1]:
        raise ValueError(f"active has shape {active.shape}; it must have one entry for each of {len(actions)} actions")
    return _solve(actions, active, slack, max_steps)


@jax.jit
def _solve(actions: Array, active: Array, slack: Numeric, max_steps: Numeric) -> Design:
    sizes = jnp.max(jnp.where(active[:, None], jnp.abs(actions), 0), axis=0)  # of every feature
    top = jnp.max(sizes)
    # leverages do not change with units: a feature much smaller than the largest one would be lost to rounding
    sizes = jnp.where((sizes > 0) & (sizes < SMALL_FEATURE * top), sizes, jnp.where(top > 0, top, 1))
    actions = actions / sizes[None]
    return design_on(actions, active, span_basis(actions, active), slack, max_steps)
