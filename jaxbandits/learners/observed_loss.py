"""The loss that a learner reads off a reward: 1 - reward, with one rule for rewards that are not finite.

A reward that is infinite or not a number counts as loss 1, the worst loss in [0, 1]. So no estimate ever holds a NaN.
"""

import jax.numpy as jnp

from jaxbandits.protocol import Loss
from jaxbandits.typing import Array, Float


def observed_loss(reward: Float[Array, "..."]) -> Float[Array, "..."]:
    """1 - reward, of any size; a non-finite reward counts as loss 1. For algorithms without privacy."""
    return jnp.where(jnp.isfinite(reward), 1 - reward, 1)


def encode_loss(params, note, draws, t, context, action, reward, play):
    """`protocol.Encode`: the observed loss of the window's one play."""
    return Loss(observed_loss(reward[0]))


def unit_loss(reward: Float[Array, "..."]) -> Float[Array, "..."]:
    """1 - reward clipped to [0, 1]; a non-finite reward counts as loss 1. For private algorithms.

    Two rewards of any size then differ by at most 1 in their losses, which is what the privacy noise covers.
    """
    return jnp.where(jnp.isfinite(reward), jnp.clip(1 - reward, 0, 1), 1)
