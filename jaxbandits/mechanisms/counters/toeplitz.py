"""Square-root Toeplitz noise, whole and banded.

Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and Upadhyay 2023; Kalinin and Lampert 2024.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.mechanisms.counters.blt import column, column_norm
from jaxbandits.mechanisms.counters.form import Form, rows_of_zeros
from jaxbandits.numerics import fixed_sum
from jaxbandits.typing import Numeric

MOST_RELEASES = 1024  # of `square_root`, which keeps every draw


class Params(NamedTuple):
    """The coefficients of (1 - x)^(-1/2) that are needed."""

    coefficient: Numeric


def coefficients(number: int) -> np.ndarray:
    """f_0 = 1, f_k = f_(k - 1) (1 - 1 / (2 k))."""
    return np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, number)]))[:number]


@cache
def square_root_functions(releases: int) -> tuple[Any, Any, Any]:
    """begin, move and noise with every past draw."""

    def move(params, state, draws, t, shape):
        return state.at[t - 1].set(draws.normal(t, shape))

    def noise(params, state, t):
        back = t - 1 - jnp.arange(releases, dtype=jnp.int32)  # how long ago each draw was
        share = jnp.asarray(params.coefficient, state.dtype)[jnp.clip(back, 0, releases - 1)]
        return fixed_sum(column(jnp.where(back >= 0, share, 0), state) * state, axis=0)

    return rows_of_zeros(releases), move, noise


def square_root(releases: int, participations: int, separation: int) -> Form:
    """Of all Toeplitz forms that of the least largest error."""
    f = coefficients(releases)
    variance = np.cumsum(f**2)
    functions = square_root_functions(releases)
    norm = column_norm(f, min(participations, -(-releases // separation)), separation)
    return Form(Params(f), *functions, lambda t: np.sqrt(variance[np.asarray(t) - 1]), column_norm=norm, size=releases)


@cache
def band_functions(bands: int) -> tuple[Any, Any, Any]:
    """begin, move and noise: the state is the noise and the last bands - 1 terms that it adds up."""

    def move(params, state, draws, t, shape):
        fresh = draws.normal(t, shape)
        if bands > 1:
            fresh = fresh - fixed_sum(column(params.coefficient, state[1:]) * state[1:], axis=0)
        return jnp.concatenate([(state[0] + fresh)[None], fresh[None], state[1:-1]])[:bands]

    def noise(params, state, t):
        return state[0]

    return rows_of_zeros(bands), move, noise


def toeplitz_bands(releases: int, bands: int, participations: int, separation: int) -> Form:
    """The first `bands` coefficients alone: columns of one unit are orthogonal where it waits that long."""
    bands = min(bands, releases)
    f = coefficients(bands)
    inverse = np.zeros(releases)
    inverse[0] = 1
    for k in range(1, releases):
        reach = min(k, bands - 1)
        inverse[k] = -(f[1 : reach + 1] @ inverse[k - reach : k][::-1])
    variance = np.cumsum(np.cumsum(inverse) ** 2)
    padded = np.concatenate([f, np.zeros(releases - bands)])
    functions = band_functions(bands)
    norm = column_norm(padded, min(participations, -(-releases // separation)), separation)
    return Form(Params(f[1:]), *functions, lambda t: np.sqrt(variance[np.asarray(t) - 1]), column_norm=norm, size=bands)
