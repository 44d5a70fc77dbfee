"""Weights of the hybrid of Tsallis and negative entropy (Zimmert and Seldin 2020): a Newton iteration. [ours]

x is the minimiser of <L, x> - 2 A sum sqrt(x) + b sum x ln x over the simplex. With y = -ln(x) / 2 and gaps
g = L - min L it solves A exp(y_i) + 2 b y_i = g_i + v, and v makes the weights exp(-2 y_i) sum to one. As functions of
v the y_i are concave and ln sum exp(-2 y_i) is convex and falls: Newton's steps from v = A, where the sum is at least
one, do not overshoot. Formulas: `docs/formulas/robust_frontier.md#robust-frontier-hybrid`.
"""

from typing import Any

import jax.numpy as jnp

from jaxbandits.numerics import columns, materialize
from jaxbandits.typing import Array, Float, Int


def iterations(n: int, dtype: Any) -> int:
    """Newton steps over n arms to a relative error of 2e-6, or of 1e-11 in float64."""
    steps = 4 if n <= 10 else 5 if n <= 100 else 6 if n <= 1000 else 7
    return steps + (dtype == jnp.float64)


def weights(gaps: columns.Columns, root: Float[Array, ""], entropy: Float[Array, ""]) -> columns.Columns:
    """The weights of gaps g >= 0 with minimum 0; root is A > 0, entropy is b >= 0. They sum to one up to rounding."""
    gaps, dtype = columns.apart(gaps), columns.dtype(gaps)
    twice, inverse = materialize(2 * entropy), materialize(1 / root)

    # y is above its solution at v = A, where convex equations are solved from by steps that never overshoot
    def start(gap):
        return materialize(jnp.minimum(jnp.log1p(gap * inverse), gap / (root + twice)))

    y, v = columns.each(start, gaps), root

    def nearer(y, v):
        """Of a Newton step of the y: how far it goes, its slope 1 / (A exp(y) + 2 b), and the weights after it."""
        e = columns.each(lambda y: materialize(jnp.exp(y)), y)
        slope = columns.each(lambda e: 1 / (root * e + twice), e)
        move = columns.each(lambda y, e, s, gap: (gap + v - root * e - twice * y) * s, y, e, slope, gaps)
        # exp(-2 (y + move)) to second order: the moves soon are small
        x = columns.each(lambda e, m: materialize((1 - 2 * m * (1 - m)) / (e * e)), e, move)
        return move, slope, x

    for _ in range(iterations(len(gaps), dtype)):
        move, slope, x = nearer(y, v)
        total = columns.total(x)
        fall = 2 * columns.total(columns.each(lambda x, s: x * s, x, slope))
        step = materialize(jnp.maximum(jnp.log(total), 0) * total / fall)
        v = v + step
        y = columns.each(lambda y, m, s, step=step: materialize(y + m + step * s), y, move, slope)
    return nearer(y, v)[2]


def draw(
    gaps: columns.Columns, root: Float[Array, ""], entropy: Float[Array, ""], uniform: Float[Array, ""]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """An arm drawn from the weights, and its probability."""
    x = weights(gaps, root, entropy)
    total = materialize(columns.total(x))
    action = materialize(columns.inverse_cdf(x, uniform * total))
    return action, columns.entry(x, action) / total
