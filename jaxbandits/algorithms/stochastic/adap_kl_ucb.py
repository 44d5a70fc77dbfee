"""AdaP-KLUCB (Azize and Basu 2022): AdaP-UCB with the Bernoulli Kullback-Leibler index."""

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.adap_ucb import Params, algorithm_of_index
from jaxbandits.algorithms.stochastic.bernoulli_index import largest_mean
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import factory


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
    ('adap_kl_ucb', 2, (3,))
    """
    return algorithm_of_index("adap_kl_ucb", divergent, num_arms, horizon, epsilon, index_scale, version=2)
