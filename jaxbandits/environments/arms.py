"""Stochastic arms with fixed means: the reward of a play depends on the played arm alone."""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.environments import moments
from jaxbandits.numerics import rounded
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.validation import array, factory, number


class ArmsParams(NamedTuple):
    means: Any  # [K]
    scale: Any  # what else the law needs: a noise scale, or a tuple of numbers; unused by Bernoulli arms


@cache
def arms_world(num_arms: int, sample, law=None) -> World:
    """A world of arms; `sample(params, draws, t[P], action[P]) -> reward[P]` is a module-level function, `law` as in World."""

    def init(params, draws):
        return ()

    def observe(params, state, draws, t):
        return (), state

    def reward(params, state, draws, t, context, action):
        return sample(params, draws, t, action)

    def score(params, state, t, context, action):
        return Score(arm=action)

    def truth(params, state, t, context):
        return Truth(means=params.means)

    return World(init, observe, reward, score, truth, num_arms, law=law)


def make_arms(means, sample, moment, reward_range, scale=1.0, law=None) -> Environment:
    """An environment of arms from validated means [K]. reward_range: (low, high) of what the arms pay.

    `facts["moment"](order, central=False)` is E|X|^order, or E|X - mean|^order, of each arm's law: [K] float64, inf where it
    does not exist. A partial of a module-level function, so that an environment can be sent to another process.
    """
    if len(means) < 2:
        raise ValueError(f"means = {means.tolist()!r} must name at least two arms")
    facts = {"num_arms": len(means), "means": means, "moment": moment, "reward_range": reward_range}
    return Environment(arms_world(len(means), sample, law), ArmsParams(means, scale), facts, None, {})


def noisy_range(means, scale) -> tuple[float, float]:
    """(low, high) of rewards with these means and noise of this scale that nothing bounds."""
    return (-math.inf, math.inf) if scale > 0 else (float(means.min()), float(means.max()))


def _bernoulli(params, draws, t, action):
    # one uniform a play for every arm: the counterfactual reward of another arm is defined
    return (draws.uniform(t) < params.means[action]).astype(params.means.dtype)


def _bernoulli_law(params, state):
    means = params.means
    return jnp.arange(2).astype(means.dtype), jnp.stack([1 - means, means], axis=-1)


def _gaussian(params, draws, t, action):
    return params.means[action] + rounded(params.scale * rounded(draws.normal(t), t), t)


@factory
def bernoulli_arms(*, means) -> Environment:
    """Arms paying 1 with probability `means[a]`, else 0.

    means: [K] in [0, 1], K >= 2. Raises ValueError outside. facts["moment"](order, central=False): [K] exact moments.

    >>> import jaxbandits as jb
    >>> jb.environments.bernoulli_arms(means=[0.2, 0.8]).facts["num_arms"]
    2
    """
    means = array("means", means, 1, 0.0, 1.0)
    return make_arms(means, _bernoulli, partial(moments.bernoulli, means), (0.0, 1.0), law=_bernoulli_law)


@factory
def gaussian_arms(*, means, scale=1.0) -> Environment:
    """Arms paying N(means[a], scale^2). means: [K], K >= 2; scale >= 0. Raises ValueError outside.

    facts["moment"](order, central=False): [K] exact moments.

    >>> import jaxbandits as jb
    >>> jb.environments.gaussian_arms(means=[0.0, 1.0], scale=2.0).facts["moment"](2).round(6).tolist()
    [4.0, 5.0]
    """
    means, scale = array("means", means, 1), number("scale", scale, 0.0)
    return make_arms(means, _gaussian, partial(moments.gaussian, means, scale), noisy_range(means, scale), scale)
