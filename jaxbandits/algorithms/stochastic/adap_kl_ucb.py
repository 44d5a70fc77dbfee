"""AdaP-KLUCB (Azize and Basu 2022): AdaP-UCB with the Bernoulli Kullback-Leibler index."""

import jax.numpy as jnp
from jax.scipy.special import xlog1py, xlogy

from jaxbandits.algorithms.stochastic.adap_ucb import made
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory

STEPS = 6  # of Newton


def largest_mean(p, level):
    """-log(1 - q) for the largest q in [p, 1] with d(p, q) <= level, d the Bernoulli divergence: p in [0, 1], level >= 0.

    On this scale indices close to 1 stay apart in float32. d is convex in it and, far out, linear: Newton's steps from above go
    down to the root without crossing it. Two bounds give the start: d >= 2 (q - p)^2 and d >= -(1 - p) log(1 - q) - entropy(p).
    """
    dtype = p.dtype
    least = jnp.finfo(dtype).tiny
    lowest = -jnp.log1p(-jnp.minimum(p, 1 - jnp.finfo(dtype).epsneg))  # y at q = p
    entropy = (1 - p) * lowest - xlogy(p, p)
    beyond = 1 - p - jnp.sqrt(0.5 * level)  # what Pinsker's bound leaves of 1 - q
    y = (level + entropy) / jnp.maximum(1 - p, least)
    y = jnp.where(beyond > 0, jnp.minimum(y, -jnp.log(jnp.maximum(beyond, least))), y)
    for _ in range(STEPS):
        q = jnp.maximum(-jnp.expm1(-y), p)
        # d(p, q) by differences from p: its terms nearly cancel where the level is small
        excess = (1 - p) * (y - lowest) - xlog1py(p, (q - p) / jnp.where(p > 0, p, 1)) - level
        slope = (q - p) / jnp.maximum(q, least)
        y = jnp.where(slope > 0, y - jnp.maximum(excess, 0) / jnp.maximum(slope, least), y)
    return jnp.where(p < 1, y, jnp.inf)


def divergent(params, mean, samples, log_t):
    """AdaP-KLUCB's index [K]."""
    width = params.index_scale * log_t / samples
    return largest_mean(jnp.clip(mean + params.inverse_epsilon * width, 0, 1), width)


@factory
def adap_kl_ucb(*, num_arms, horizon, epsilon, index_scale=3.1) -> Algorithm:
    """Play the arm of largest q with d(clip(mean + index_scale ln t / (epsilon n)), q) <= index_scale ln t / n until its pulls have doubled.

    d(p, q) is the Kullback-Leibler divergence of Bernoulli laws, the clip is to [0, 1]; episodes, means, noise and privacy are those
    of `adap_ucb`. Many indices are 1 at first: ties go to the lowest index.

    num_arms >= 2 [static]; epsilon in (0, inf], inf: no noise; index_scale > 0. Raises ValueError outside.
    Source: Azize and Basu 2022, AdaP-KLUCB, in the form of the specification of private and robust bandits, section 12.

    >>> import jaxbandits as jb
    >>> jb.algorithms.adap_kl_ucb(num_arms=3, horizon=1000, epsilon=0.5).version
    ('adap_kl_ucb', 1, (3,))
    """
    return made("adap_kl_ucb", divergent, num_arms, horizon, epsilon, index_scale)
