"""What the algorithms share whose estimates read every reward again.

They store all rewards, so their horizon is bounded.
"""

from typing import Annotated

import jax.numpy as jnp

from jaxbandits.declared import STATIC, Doc, Horizon, Remedy, Share
from jaxbandits.typing import Array, DType, Float

MAX_HORIZON = 2**14  # every play reads an arm's rewards again, so time grows with the square of the horizon


StoredHorizon = Annotated[
    Horizon,
    STATIC,
    Doc("Number of plays T, at most 2^14: every reward is stored and read again at each play. Filled in from the run."),
]
CorruptionBound = Annotated[
    Share,
    Remedy("1/2 is the breakdown point"),
    Doc("Largest share alpha of contaminated rewards that the learner believes in."),
]


def row_length(
    horizon: int, name: str, remedy: str = "robust_ucb(estimator='truncated') or a private elimination"
) -> int:
    """How many rewards a row holds: a power of two, so that few shapes are compiled.

    ValueError of a long horizon, which says what else to do.
    """
    if horizon > MAX_HORIZON:
        raise ValueError(
            f"horizon = {horizon} must be at most 2^14 = {MAX_HORIZON} for {name}, which keeps every reward and reads "
            f"them again at each play: shorten it, or use {remedy}"
        )
    return max(32, 1 << (horizon - 1).bit_length())


def insert_in_order(row: Float[Array, " S"], value: Float[Array, ""]) -> Float[Array, " S"]:
    """A row in rising order, its free places infinite, with one value more.

    Smaller values stay where they are, the new one comes behind them, the larger ones move up by one.
    """
    below = jnp.concatenate([jnp.full(1, -jnp.inf, row.dtype), row[:-1]])
    return jnp.maximum(below, jnp.minimum(row, value))


def tie(dtype: DType) -> float:
    """Indices within this share of the largest are tied.

    Sums of the same rewards in another order differ by rounding.
    """
    return 1e-12 if dtype == jnp.float64 else 1e-6
