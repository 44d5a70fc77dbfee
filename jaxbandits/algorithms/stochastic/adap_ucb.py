"""AdaP-UCB (Azize and Basu 2022): an optimistic index of noisy means, in episodes that double an arm's pulls."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Guarantee, Rewards
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """The numbers of AdaP-UCB."""

    # alpha
    index_scale: Any
    # 1 / epsilon, 0 without noise
    inverse_epsilon: Any
    # multiplies all privacy noise
    mechanism_scale: Any


class Memory(NamedTuple):
    """What is remembered of the arms."""

    # noisy mean of each arm's last episode
    mean: Float[Array, " K"]
    # 0, 1, 2, 4, ...
    pulls: Int[Array, " K"]


def samples(pulls: Int[Array, " K"]) -> Int[Array, " K"]:
    """How many pulls are behind the mean: the last episode doubled the pulls, the first was a single one."""
    return jnp.maximum(pulls // 2, 1)


def optimistic(
    params: Params, mean: Float[Array, " K"], samples: Float[Array, " K"], log_t: Float[Array, ""]
) -> Float[Array, " K"]:
    """AdaP-UCB's index [K]."""
    width = params.index_scale * log_t / samples
    return mean + jnp.sqrt(0.5 * width) + params.inverse_epsilon * width


def laplace_noise(params: Params, draws: Draws, t: Int[Array, ""]) -> Float[Array, ""]:
    """Noise for the sum of an episode that ends at play t."""
    scale = params.mechanism_scale * params.inverse_epsilon
    return scale * draws.child("mean").laplace(t)


# params, mean [K], samples [K], log t -> the index of every arm [K]
Index: TypeAlias = Callable[[Any, Any, Any, Any], Array]


@cache
def rules(num_arms: int, index: Index, noise: Callable[[Any, Draws, Any], Array]) -> episodes.Rules:
    """Doubling episodes of the arm of largest `index`, which is given log t of the coming play t.

    Draws: `mean`, one number an episode, at its last play, from which `noise` makes that of the episode's sum.
    """

    def init(params, draws):
        memory = Memory(jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32))
        return memory, jnp.int32(0), jnp.int32(1)

    def keep(params, memory, arm, value, present):
        return memory, episodes.clip01(value), value.dtype.type(1)

    def end(params, memory, draws, t, arm, total):
        dtype = total.dtype
        length = jnp.maximum(memory.pulls[arm], 1)
        mean = materialize((total + noise(params, draws, t)) / length.astype(dtype))
        memory = Memory(memory.mean.at[arm].set(mean), memory.pulls.at[arm].add(length))
        log_t = jnp.log((t + 1).astype(dtype))
        value = index(params, memory.mean, samples(memory.pulls).astype(dtype), log_t)
        following = episodes.next_arm(value, memory.pulls == 0)
        return memory, mean, following, jnp.maximum(memory.pulls[following], 1)

    return episodes.Rules(init, keep, end)


def _events(params):
    scale = params.inverse_epsilon * params.mechanism_scale
    return (laplace_event("sum of an episode's rewards in [0, 1]", 1.0, scale),)


def algorithm_of_rules(
    name: str, played: episodes.Rules, num_arms: int, horizon: int, params: Any, claim: Guarantee, version: int = 1
) -> Algorithm:
    """An algorithm of doubling episodes for rewards in [0, 1]."""
    return Algorithm(
        program=episodes.program(played),
        schedule=episodes.schedule(horizon, num_arms * (horizon.bit_length() + 1)),
        params=params,
        guarantee=claim,
        version=(name, version, (num_arms,)),
        config={},
        rewards=Rewards(0.0, 1.0, "clip"),
    )


def algorithm_of_index(
    name: str, index: Index, num_arms: int, horizon: int, epsilon: Scalar, index_scale: Scalar, version: int = 1
) -> Algorithm:
    """The algorithm that plays the arm of largest index in doubling episodes, its arguments validated."""
    num_arms, horizon = integer("num_arms", num_arms, 2), integer("horizon", horizon, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    index_scale = number("index_scale", index_scale, 0.0, open_low=True)
    params = Params(index_scale, 0.0 if math.isinf(epsilon) else 1 / epsilon, 1.0)
    played = rules(num_arms, index, laplace_noise)
    return algorithm_of_rules(name, played, num_arms, horizon, params, episodes.claim(_events), version)


@factory
def adap_ucb(*, num_arms: int, horizon: int, epsilon: Scalar, index_scale: Scalar = 3.1) -> Algorithm:
    """Play the arm of largest private index until its pulls have doubled, then release one noisy mean of that episode.

    The index is mean + sqrt(index_scale ln t / (2 n)) + index_scale ln t / (epsilon n). The mean is that of the arm's
    last episode, of n pulls, plus Lap(1 / (epsilon n)); t is the index of the coming play. Each arm is played once,
    then in episodes of 1, 2, 4, ... pulls.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in from the sweep.
    epsilon : float
        Privacy budget, in (0, inf]; at inf there is no noise.
    index_scale : float
        Multiplies ln t in the index, above 0; the theorem asks for more than 3.

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
    Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index. An arm's first single pull enters the
    index with n = 1, which the publication leaves open.

    References
    ----------
    Azize and Basu 2022, AdaP-UCB; `docs/formulas/private_robust_mab.md#adap-ucb`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.adap_ucb(num_arms=3, horizon=1000, epsilon=0.5).params.inverse_epsilon
    2.0
    """
    return algorithm_of_index("adap_ucb", optimistic, num_arms, horizon, epsilon, index_scale)
