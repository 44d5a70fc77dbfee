"""The truncated mean: rewards beyond a threshold count as 0 (Wu, Zhou, Tao and Wang 2023, Algorithm 2, without its noise)."""

import jax.numpy as jnp

from jaxbandits.numerics import fixed_sum


def truncated_mean(rewards, clip):
    """(1/n) sum_i x_i 1{|x_i| <= clip}: rejected values, infinities and NaN count as 0 and stay in the divisor.

    rewards: [n], any values; clip >= 0, closed. Returns []. Changing one reward moves it by at most 2 clip / n.
    Source: Wu et al. 2023, Algorithm 2.

    >>> import jax.numpy as jnp
    >>> float(truncated_mean(jnp.array([1.0, 2.0, jnp.inf, jnp.nan]), 2.0))
    0.75
    """
    rewards = jnp.asarray(rewards)
    # a product with the indicator would turn inf into NaN
    return fixed_sum(jnp.where(jnp.abs(rewards) <= clip, rewards, 0)) / rewards.shape[-1]
