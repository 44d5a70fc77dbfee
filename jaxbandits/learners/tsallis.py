"""Tsallis-entropy weights (Zimmert and Seldin 2021; Huang et al. 2022), and those of a hybrid: Newton iterations.

With q = alpha / (alpha - 1) the minimiser of <Lhat, x> - (alpha / eta) sum x^(1/alpha) over the simplex is
x_i = (g_i + v)^-q, g = (Lhat - min Lhat) eta, where v in [1, n^(1/q)] makes the weights sum to one.

The hybrid of Tsallis and negative entropy (Zimmert and Seldin 2020) [ours] is the minimiser of <L, x> -
2 A sum sqrt(x) + b sum x ln x over the simplex. With y = -ln(x) / 2 and gaps g = L - min L it solves A exp(y_i) +
2 b y_i = g_i + v, and v makes the weights exp(-2 y_i) sum to one. As functions of v the y_i are concave and
ln sum exp(-2 y_i) is convex and falls: Newton's steps from v = A, where the sum is at least one, do not overshoot.
Formulas: `docs/formulas/robust_frontier.md#robust-frontier-hybrid`.
"""

import jax.numpy as jnp

from jaxbandits.numerics import columns, fixed_sum, materialize
from jaxbandits.typing import Array, DType, Float, Int, Numeric


def iterations(n: int, dtype: DType) -> int:
    """Newton steps over n arms to a relative error of at most 2e-6 (one low arm).

    float64 takes one step more, which squares the error.
    """
    steps = 3 if n <= 10 else 4 if n <= 100 else 5 if n <= 1000 else 6
    return steps + (dtype == jnp.float64)


def normaliser(gaps: columns.Columns, tail_index: float = 2.0) -> Float[Array, ""]:
    """v from gaps g >= 0 with minimum 0; tail_index is alpha in (1, 2], a host number.

    Newton on S^(-1/q), S = sum (g + v)^-q, which is concave in v: from v = 1 monotone, never overshooting.
    """
    gaps, dtype = columns.from_array(gaps), columns.dtype(gaps)
    v = jnp.ones((), dtype)
    for _ in range(iterations(len(gaps), dtype)):
        inverse = columns.map_arms(lambda gap, v=v: 1 / (gap + v), gaps)
        powers = columns.map_arms(lambda x: _power(x, tail_index), inverse)
        total = columns.sum_entries(powers)
        slope = columns.sum_entries(columns.map_arms(lambda power, x: power * x, powers, inverse))
        root = jnp.sqrt(total) if tail_index == 2.0 else total ** ((tail_index - 1) / tail_index)
        v = v + (root - 1) * total / slope
    return materialize(v)


def weights(gaps: Float[Array, " n"], tail_index: float = 2.0) -> Float[Array, " n"]:
    """The weights x of gaps, which sum to one."""
    x = _power(1 / (gaps + normaliser(gaps, tail_index)), tail_index)
    return x / fixed_sum(x)


def draw(
    gaps: columns.Columns, uniform: Float[Array, ""], tail_index: float = 2.0, mixing: Numeric = 0.0
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """An arm drawn from (1 - mixing) x + mixing / n, and its probability. `mixing` the host number 0.0 costs nothing.

    x is not normalised again: its sum is 1 within the Newton iteration's 1e-6, and the draw is scaled by the sum.
    """
    n, gaps = len(gaps), columns.from_array(gaps)
    v = normaliser(gaps, tail_index)

    def mix_uniform(gap):
        x = _power(1 / (gap + v), tail_index)
        return x if isinstance(mixing, float) and mixing == 0.0 else (1 - mixing) * x + mixing / n

    p = columns.map_arms(mix_uniform, gaps)
    action = materialize(columns.inverse_cdf(p, uniform * columns.sum_entries(p)))
    return action, mix_uniform(columns.entry(gaps, action))


def _power(inverse, tail_index):
    return inverse * inverse if tail_index == 2.0 else inverse ** (tail_index / (tail_index - 1))


# ---- the hybrid


def hybrid_weights(gaps: columns.Columns, root: Float[Array, ""], entropy: Float[Array, ""]) -> columns.Columns:
    """The weights of gaps g >= 0 with minimum 0; root is A > 0, entropy is b >= 0. They sum to one up to rounding."""
    gaps, dtype = columns.from_array(gaps), columns.dtype(gaps)
    twice, inverse = materialize(2 * entropy), materialize(1 / root)

    # y is above its solution at v = A, where convex equations are solved from by steps that never overshoot
    def first_guess(gap):
        return materialize(jnp.minimum(jnp.log1p(gap * inverse), gap / (root + twice)))

    y, v = columns.map_arms(first_guess, gaps), root

    def nearer(y, v):
        """Of a Newton step of the y: how far it goes, its slope 1 / (A exp(y) + 2 b), and the weights after it."""
        e = columns.map_arms(lambda y: materialize(jnp.exp(y)), y)
        slope = columns.map_arms(lambda e: 1 / (root * e + twice), e)
        move = columns.map_arms(lambda y, e, s, gap: (gap + v - root * e - twice * y) * s, y, e, slope, gaps)
        # exp(-2 (y + move)) to second order: the moves soon are small
        x = columns.map_arms(lambda e, m: materialize((1 - 2 * m * (1 - m)) / (e * e)), e, move)
        return move, slope, x

    for _ in range(iterations(len(gaps), dtype) + 1):  # to the same errors
        move, slope, x = nearer(y, v)
        total = columns.sum_entries(x)
        fall = 2 * columns.sum_entries(columns.map_arms(lambda x, s: x * s, x, slope))
        step = materialize(jnp.maximum(jnp.log(total), 0) * total / fall)
        v = v + step
        y = columns.map_arms(lambda y, m, s, step=step: materialize(y + m + step * s), y, move, slope)
    return nearer(y, v)[2]


def hybrid_draw(
    gaps: columns.Columns, root: Float[Array, ""], entropy: Float[Array, ""], uniform: Float[Array, ""]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """An arm drawn from the weights, and its probability."""
    x = hybrid_weights(gaps, root, entropy)
    total = materialize(columns.sum_entries(x))
    action = materialize(columns.inverse_cdf(x, uniform * total))
    return action, columns.entry(x, action) / total
