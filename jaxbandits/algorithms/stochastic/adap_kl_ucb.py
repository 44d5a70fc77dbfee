"""AdaP-KLUCB (Azize and Basu 2022): AdaP-UCB with the Bernoulli Kullback-Leibler index."""

import jax.numpy as jnp
from jax.scipy.special import xlog1py, xlogy

from jaxbandits.algorithms.stochastic.adap_ucb import Params, algorithm_of_index
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import factory

NEWTON_STEPS = 6


def largest_mean(p: Float[Array, "..."], level: Float[Array, "..."]) -> Float[Array, "..."]:
    """-log(1 - q) for the largest q in [p, 1] with d(p, q) <= level, d the Bernoulli divergence; p in [0, 1].

    On this scale indices close to 1 stay apart in float32. d is convex in it and, far out, linear, so Newton's steps
    from above go down to the root and never cross it. Two bounds give the start: d >= 2 (q - p)^2 and d >= -(1 - p)
    log(1 - q) - entropy(p).
    """
    dtype = p.dtype
    least = jnp.finfo(dtype).tiny
    lowest = -jnp.log1p(-jnp.minimum(p, 1 - jnp.finfo(dtype).epsneg))  # y at q = p
    entropy = (1 - p) * lowest - xlogy(p, p)
    beyond = 1 - p - jnp.sqrt(0.5 * level)  # what Pinsker's bound leaves of 1 - q
    y = (level + entropy) / jnp.maximum(1 - p, least)
    y = jnp.where(beyond > 0, jnp.minimum(y, -jnp.log(jnp.maximum(beyond, least))), y)
    for _ in range(NEWTON_STEPS):
        q = jnp.maximum(-jnp.expm1(-y), p)
        # d(p, q) by differences from p: its terms nearly cancel where the level is small
        excess = (1 - p) * (y - lowest) - xlog1py(p, (q - p) / jnp.where(p > 0, p, 1)) - level
        slope = (q - p) / jnp.maximum(q, least)
        y = jnp.where(slope > 0, y - jnp.maximum(excess, 0) / jnp.maximum(slope, least), y)
    return jnp.where(p < 1, y, jnp.inf)


def divergent(
    params: Params, mean: Float[Array, " K"], samples: Float[Array, " K"], log_t: Float[Array, ""]
) -> Float[Array, " K"]:
    """AdaP-KLUCB's index [K]."""
    width = params.index_scale * log_t / samples
    return largest_mean(jnp.clip(mean + params.inverse_epsilon * width, 0, 1), width)


@factory
def adap_kl_ucb(*, num_arms: int, horizon: int, epsilon: Scalar, index_scale: Scalar = 3.1) -> Algorithm:
    """AdaP-UCB with a Kullback-Leibler index: play the arm of largest private index until its pulls have doubled.

    The index is the largest q with d(clip(mean + index_scale ln t / (epsilon n)), q) <= index_scale ln t / n, where d
    is the Kullback-Leibler divergence of Bernoulli laws and the clip is to [0, 1]. Episodes, means and noise are
    those of `adap_ucb`.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in from the sweep.
    epsilon : float
        Privacy budget, in (0, inf]; at inf there is no noise.
    index_scale : float
        Multiplies ln t in the index, above 0.

    Returns
    -------
    Algorithm
        epsilon-private in the central model for rewards that differ in one play: each reward enters one release.

    Raises
    ------
    ValueError
        For an argument outside its range.

    Notes
    -----
    Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index; at first many indices are 1.

    References
    ----------
    Azize and Basu 2022, AdaP-KLUCB; `docs/formulas/private_robust_mab.md#adap-kl-ucb`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.adap_kl_ucb(num_arms=3, horizon=1000, epsilon=0.5).version
    ('adap_kl_ucb', 1, (3,))
    """
    return algorithm_of_index("adap_kl_ucb", divergent, num_arms, horizon, epsilon, index_scale)
