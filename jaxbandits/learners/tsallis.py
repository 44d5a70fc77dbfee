"""Tsallis-entropy weights (Zimmert and Seldin 2021; Huang et al. 2022): the normaliser by a Newton iteration.

With q = alpha / (alpha - 1) the minimiser of <Lhat, x> - (alpha / eta) sum x^(1/alpha) over the simplex is
x_i = (g_i + v)^-q, g = (Lhat - min Lhat) eta, where v in [1, n^(1/q)] makes the weights sum to one.
"""

from typing import Any

import jax.numpy as jnp

from jaxbandits.numerics import columns, fixed_sum, materialize
from jaxbandits.typing import Array, Float, Int


def iterations(n: int, dtype: Any) -> int:
    """Newton steps over n arms to a relative error of at most 2e-6 (one low arm).

    float64 takes one step more, which squares the error.
    """
    steps = 3 if n <= 10 else 4 if n <= 100 else 5 if n <= 1000 else 6
    return steps + (dtype == jnp.float64)


def normaliser(gaps: columns.Columns, tail_index: float = 2.0) -> Float[Array, ""]:
    """v from gaps g >= 0 with minimum 0; tail_index is alpha in (1, 2], a host number.

    Newton on S^(-1/q), S = sum (g + v)^-q, which is concave in v: from v = 1 monotone, never overshooting.
    """
    gaps, dtype = columns.apart(gaps), columns.dtype(gaps)
    v = jnp.ones((), dtype)
    for _ in range(iterations(len(gaps), dtype)):
        inverse = columns.each(lambda gap, v=v: 1 / (gap + v), gaps)
        powers = columns.each(lambda x: _power(x, tail_index), inverse)
        total = columns.total(powers)
        slope = columns.total(columns.each(lambda power, x: power * x, powers, inverse))
        root = jnp.sqrt(total) if tail_index == 2.0 else total ** ((tail_index - 1) / tail_index)
        v = v + (root - 1) * total / slope
    return materialize(v)


def weights(gaps: Float[Array, " n"], tail_index: float = 2.0) -> Float[Array, " n"]:
    """The weights x of gaps, which sum to one."""
    x = _power(1 / (gaps + normaliser(gaps, tail_index)), tail_index)
    return x / fixed_sum(x)


def draw(
    gaps: columns.Columns, uniform: Float[Array, ""], tail_index: float = 2.0, mixing: Any = 0.0
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """An arm drawn from (1 - mixing) x + mixing / n, and its probability. `mixing` the host number 0.0 costs nothing.

    x is not normalised again: its sum is 1 within the Newton iteration's 1e-6, and the draw is scaled by the sum.
    """
    n, gaps = len(gaps), columns.apart(gaps)
    v = normaliser(gaps, tail_index)

    def mixed(gap):
        x = _power(1 / (gap + v), tail_index)
        return x if isinstance(mixing, float) and mixing == 0.0 else (1 - mixing) * x + mixing / n

    p = columns.each(mixed, gaps)
    action = materialize(columns.inverse_cdf(p, uniform * columns.total(p)))
    return action, mixed(columns.entry(gaps, action))


def _power(inverse, tail_index):
    return inverse * inverse if tail_index == 2.0 else inverse ** (tail_index / (tail_index - 1))
