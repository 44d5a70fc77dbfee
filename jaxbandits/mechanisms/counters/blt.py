"""Buffered linear Toeplitz noise: Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (arXiv 2404.16706).

The noise of t messages is a weighted sum of d + 1 sums of the same draws, each with its own decay; one does not decay.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.mechanisms.counters import blt_parameters as parameters
from jaxbandits.mechanisms.counters.form import Form, rows_of_zeros


class Params(NamedTuple):
    """One row for each decaying sum."""

    gap: Any  # 1 - decay [d + 1]; the first is 0
    weight: Any  # [d + 1]


def column(values: Any, like: Any) -> Any:
    """Numbers [n] as an array [n, 1, ...] beside `like` [n, ...], of its type."""
    return jnp.asarray(values, like.dtype).reshape((-1,) + (1,) * (like.ndim - 1))


def added_up(rows: Any) -> Any:
    """The sum over the first axis, in its order."""
    total = rows[0]
    for i in range(1, rows.shape[0]):
        total = total + rows[i]
    return total


@cache
def functions(buffers: int) -> tuple[Any, Any, Any]:
    """begin, move and noise of so many decaying sums."""

    def move(params, state, draws, t, shape):
        return state - column(params.gap, state) * state + draws.normal(t, shape)[None]

    def noise(params, state, t):
        return added_up(column(params.weight, state) * state)

    return rows_of_zeros(buffers + 1), move, noise


def blt(releases: int, error: str, buffers: int, participations: int, separation: int) -> Form:
    """The form with parameters for a known number of releases."""
    gaps = parameters.gaps_of(releases, buffers, error, participations, separation)
    used = min(participations, -(-releases // separation))
    if used == 1:
        norm = math.sqrt(parameters.squared_column(gaps, releases))
    else:
        norm = parameters.column_norm(parameters.coefficients(gaps, releases), used, separation)
    return Form(
        Params(gap=np.concatenate([[0.0], gaps.zeta]), weight=parameters.weights(gaps)),
        *functions(len(gaps.zeta)),
        deviation=lambda t: np.sqrt(parameters.squared_deviation(gaps, t)),
        column_norm=norm,
        size=len(gaps.zeta) + 1,
    )
