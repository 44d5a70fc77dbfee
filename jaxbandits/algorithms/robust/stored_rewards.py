"""What algorithms share whose estimates need every reward again: they are kept, so the horizon is bounded."""

import jax.numpy as jnp

from jaxbandits.validation import integer

LONGEST = 2**14  # plays; each one reads an arm's rewards again, so time grows with the square


def check_horizon(horizon, name: str, remedy: str) -> int:
    """The horizon, or a ValueError that says what else to do."""
    horizon = integer("horizon", horizon, 1)
    if horizon > LONGEST:
        raise ValueError(
            f"horizon = {horizon} must be at most 2^14 = {LONGEST} for {name}, which keeps every reward and reads them again "
            f"at each play: shorten it, or use {remedy}"
        )
    return horizon


def places(horizon: int) -> int:
    """Rewards that a row holds: a power of two, so that few shapes are compiled."""
    return max(32, 1 << (horizon - 1).bit_length())


def taken(reward):
    """A reward as it is kept: 0 where it is not finite, cut at 1e30 so that no sum overflows."""
    return jnp.clip(jnp.where(jnp.isfinite(reward), reward, 0), -1e30, 1e30)


def tie(dtype) -> float:
    """Indices within this share of the largest are tied: equal rewards in another order differ by rounding."""
    return 1e-12 if dtype == jnp.float64 else 1e-6
