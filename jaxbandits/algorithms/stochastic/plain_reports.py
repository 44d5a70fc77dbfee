"""Clients that report their rewards as they are."""

import jax.numpy as jnp

from jaxbandits.typing import Array, Float


def encode_reward(params, note, draws, t, context, action, reward, play):
    """`protocol.Encode`: the reward of the window's one play."""
    return reward[0]


def finite(report: Float[Array, "..."]) -> Float[Array, "..."]:
    """A report as it counts: 0 where it is not finite.

    For `update`, not `encode`: reports may be corrupted on their way.
    """
    return jnp.where(jnp.isfinite(report), report, 0)


def cut_report(report: Float[Array, "..."]) -> Float[Array, "..."]:
    """A report as `finite` has it, cut at 1e30 in size so that no sum overflows."""
    return jnp.clip(finite(report), -1e30, 1e30)
