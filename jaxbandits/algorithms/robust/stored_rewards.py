"""What the algorithms share whose estimates read every reward again.

They store all rewards, so their horizon is bounded.
"""

from typing import Any

import jax.numpy as jnp

from jaxbandits.typing import Array, Float
from jaxbandits.validation import integer

MAX_HORIZON = 2**14  # every play reads an arm's rewards again, so time grows with the square of the horizon


def check_horizon(horizon: int, name: str, remedy: str) -> int:
    """The horizon, or a ValueError that says what else to do."""
    horizon = integer("horizon", horizon, 1)
    if horizon > MAX_HORIZON:
        raise ValueError(
            f"horizon = {horizon} must be at most 2^14 = {MAX_HORIZON} for {name}, which keeps every reward and reads "
            f"them again at each play: shorten it, or use {remedy}"
        )
    return horizon


def places(horizon: int) -> int:
    """How many rewards a row holds: a power of two, so that few shapes are compiled."""
    return max(32, 1 << (horizon - 1).bit_length())


def taken(reward: Float[Array, "..."]) -> Float[Array, "..."]:
    """A reward as it is stored: 0 where it is not finite, cut at 1e30 so that no sum overflows."""
    return jnp.clip(jnp.where(jnp.isfinite(reward), reward, 0), -1e30, 1e30)


def tie(dtype: Any) -> float:
    """Indices within this share of the largest are tied.

    Sums of the same rewards in another order differ by rounding.
    """
    return 1e-12 if dtype == jnp.float64 else 1e-6
