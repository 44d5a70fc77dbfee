"""Elimination by blocks: after each block one arm has a new estimate, after each round the worst arms are dropped."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import count
from jaxbandits.protocol import UNDECIDED
from jaxbandits.typing import Array, Bool, Float, Int


def after_block(
    active: Bool[Array, " K"], estimate: Float[Array, " K"], arm: Int[Array, ""], slack: Any
) -> tuple[Bool[Array, " K"], Bool[Array, ""], Int[Array, ""]]:
    """Which arms are left after a block of `arm`, whether its round ended, and the arm to be played next.

    A round plays every active arm once, in index order. At its end an arm is dropped whose estimate is further than
    `slack` below the best, and the next round begins with the lowest arm left.
    """
    num_arms = active.shape[0]
    arms = np.arange(num_arms, dtype=np.int32)
    following = jnp.min(jnp.where(active & (arms > arm), arms, num_arms))
    ends = following == num_arms
    best = jnp.max(jnp.where(active, estimate, -jnp.inf))
    left = jnp.where(ends, active & (best - estimate <= slack), active)
    return left, ends, jnp.where(ends, jnp.argmax(left).astype(jnp.int32), following)


def last_arm(params: Any, memory: Any) -> Int[Array, ""]:
    """`episodes.Rules.rest`: the one active arm, which is played to the horizon."""
    return jnp.where(count(memory.active) == 1, jnp.argmax(memory.active), UNDECIDED).astype(jnp.int32)
