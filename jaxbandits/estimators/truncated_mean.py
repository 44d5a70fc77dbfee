"""The truncated mean: rewards beyond a threshold count as 0 (Wu et al. 2023, Algorithm 2, without its noise)."""

import jax.numpy as jnp

from jaxbandits.numerics import fixed_sum
from jaxbandits.typing import Array, Float, Scalar, Vector
from jaxbandits.validation import checked


@checked(source="Wu, Zhou, Tao and Wang 2023, Algorithm 2: `docs/formulas/private_robust_mab.md#truncated-mean`.")
def truncated_mean(rewards: Vector, clip: Scalar | Array) -> Float[Array, ""]:
    """The mean of the rewards of size at most `clip`, the others counting as 0.

    Parameters
    ----------
    rewards : array of shape [n]
        Any values, at least one.
    clip : float
        Largest size of a reward that counts, itself included, in units of a reward, at least 0. It may be traced.

    Returns
    -------
    float array of shape []
        (1/n) sum_i x_i 1{`|x_i|` <= clip}. Changing one reward moves it by at most 2 clip / n.

    Notes
    -----
    Rejected values, infinities and NaN count as 0 and stay in the divisor. No noise is added.

    >>> import jax.numpy as jnp
    >>> float(truncated_mean(jnp.array([1.0, 2.0, jnp.inf, jnp.nan]), 2.0))
    0.75
    """
    rewards = jnp.asarray(rewards)
    # A product with the indicator would turn infinities into NaN.
    return fixed_sum(jnp.where(jnp.abs(rewards) <= clip, rewards, 0)) / rewards.shape[-1]
