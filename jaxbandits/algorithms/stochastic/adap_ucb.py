"""AdaP-UCB and AdaP-KLUCB (Azize and Basu 2022): an index of noisy means, in episodes that double an arm's pulls."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.algorithms.stochastic.bernoulli_index import largest_mean
from jaxbandits.declared import Budget, Example, Horizon, NumArms, Positive
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Guarantee
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    index_scale: Numeric  # alpha
    inverse_epsilon: Any  # 1 / epsilon, 0 without noise
    mechanism_scale: Numeric


class Memory(NamedTuple):
    """What is remembered of the arms."""

    mean: Float[Array, " K"]  # noisy mean of each arm's last episode
    pulls: Int[Array, " K"]  # 0, 1, 2, 4, ...


def samples(pulls: Int[Array, " K"]) -> Int[Array, " K"]:
    """How many pulls are behind the mean: the last episode doubled the pulls, the first was a single one."""
    return jnp.maximum(pulls // 2, 1)


# params, mean [K], samples [K], log t -> the index of every arm [K]
IndexRule: TypeAlias = Callable[[Any, Any, Any, Any], Array]


def adap_index(params, mean, samples, log_t):
    """AdaP-UCB's `IndexRule`."""
    width = params.index_scale * log_t / samples
    return mean + jnp.sqrt(0.5 * width) + params.inverse_epsilon * width


def divergent(params, mean, samples, log_t):
    """AdaP-KLUCB's `IndexRule`."""
    width = params.index_scale * log_t / samples
    return largest_mean(jnp.clip(mean + params.inverse_epsilon * width, 0, 1), width)


def laplace_noise(params: Params, draws: Draws, t: Int[Array, ""]) -> Float[Array, ""]:
    """Noise for the sum of an episode that ends at play t."""
    scale = params.mechanism_scale * params.inverse_epsilon
    return scale * draws.child("mean").laplace(t)


@cache
def doubling_rules(num_arms: int, index: IndexRule, noise: Callable[[Any, Draws, Any], Array]) -> episodes.Rules:
    """Doubling episodes of the arm of largest `index`, which is given log t of the coming play t.

    Draws: `mean`, one number an episode, at its last play, from which `noise` makes that of the episode's sum.
    """

    def init(params, draws):
        memory = Memory(jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32))
        return memory, jnp.int32(0), jnp.int32(1)

    def end(params, memory, draws, t, arm, total):
        dtype = total.dtype
        length = jnp.maximum(memory.pulls[arm], 1)
        mean = materialize((total + noise(params, draws, t)) / length.astype(dtype))
        memory = Memory(memory.mean.at[arm].set(mean), memory.pulls.at[arm].add(length))
        log_t = jnp.log((t + 1).astype(dtype))
        value = index(params, memory.mean, samples(memory.pulls).astype(dtype), log_t)
        following = episodes.next_arm(value, memory.pulls == 0)
        return memory, mean, following, jnp.maximum(memory.pulls[following], 1)

    return episodes.Rules(init, episodes.clip_rewards, end)


def _events(params):
    scale = params.inverse_epsilon * params.mechanism_scale
    return (laplace_event("sum of an episode's rewards in [0, 1]", 1.0, scale),)


def doubling(
    num_arms: int, horizon: int, index: IndexRule, noise: Callable, params: Any, claim: Guarantee
) -> Algorithm:
    """An algorithm of doubling episodes for rewards in [0, 1]."""
    rules = doubling_rules(num_arms, index, noise)
    return episodes.algorithm(rules, horizon, num_arms * (horizon.bit_length() + 1), params, claim)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0}, horizon=600),
    source="Azize and Basu 2022, AdaP-UCB; `docs/formulas/private_robust_mab.md#adap-ucb`.",
)
def adap_ucb(
    *, num_arms: NumArms, horizon: Horizon, epsilon: Budget, index_scale: Positive = 3.1
) -> episodes.CentralPrivate:
    """Play the arm of largest private index until its pulls have doubled, then release one noisy mean of that episode.

    The index is mean + sqrt(index_scale ln t / (2 n)) + index_scale ln t / (epsilon n). The mean is that of the arm's
    last episode, of n pulls, plus Lap(1 / (epsilon n)); t is the index of the coming play. Each arm is played once,
    then in episodes of 1, 2, 4, ... pulls.

    Args:
        index_scale: Multiplies ln t in the index; the theorem asks for more than 3.

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index. An arm's first single pull
        enters the index with n = 1, which the publication leaves open.

    >>> jb.algorithms.adap_ucb(num_arms=3, horizon=1000, epsilon=0.5).params.inverse_epsilon
    2.0
    """
    params = Params(index_scale, 1 / epsilon, mechanism_scale=1.0)
    return doubling(num_arms, horizon, adap_index, laplace_noise, params, episodes.pure_claim(_events))


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0}, horizon=600),
    source="Azize and Basu 2022, AdaP-KLUCB; `docs/formulas/private_robust_mab.md#adap-kl-ucb`.",
)
def adap_kl_ucb(
    *, num_arms: NumArms, horizon: Horizon, epsilon: Budget, index_scale: Positive = 3.1
) -> episodes.CentralPrivate:
    """AdaP-UCB with a Kullback-Leibler index: play the arm of largest private index until its pulls have doubled.

    The index is the largest q with d(clip(mean + index_scale ln t / (epsilon n)), q) <= index_scale ln t / n, where d
    is the Kullback-Leibler divergence of Bernoulli laws and the clip is to [0, 1]. Episodes, means and noise are
    those of `adap_ucb`.

    Args:
        index_scale: Multiplies ln t in the index.

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index; at first many indices are 1.

    >>> jb.algorithms.adap_kl_ucb(num_arms=3, horizon=1000, epsilon=0.5).params.index_scale
    3.1
    """
    params = Params(index_scale, 1 / epsilon, mechanism_scale=1.0)
    return doubling(num_arms, horizon, divergent, laplace_noise, params, episodes.pure_claim(_events))
