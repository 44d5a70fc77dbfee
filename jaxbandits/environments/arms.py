"""Stochastic arms with fixed means: the reward of a play depends on the played arm alone."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import Axes, Doc, Ge, Le, NonNegative
from jaxbandits.environments import moments
from jaxbandits.numerics import rounded
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.typing import Array, Numeric, Scalar, Vector
from jaxbandits.validation import factory

Means = Annotated[Vector, Axes(1, "array_like of shape (K,)"), Doc("Each arm's mean reward; at least two arms.")]
ArmsEnvironment = Annotated[
    Environment, Doc("""``facts["moment"](order, central=False)`` gives the exact moments of all arms [K].""")
]


class ArmsParams(NamedTuple):
    means: Numeric  # [K]
    # what else the law needs: a noise scale, or a tuple of numbers; Bernoulli arms do not use it
    scale: Numeric | tuple[Numeric, ...]


def no_state(params, draws):
    """`World.init` where nothing is kept."""
    return ()


def no_context(params, state, draws, t):
    """`World.observe` where nothing is shown."""
    return (), state


@cache
def arms_world(num_arms: int, sample: Callable[..., Array], law: Callable[..., Any] | None = None) -> World:
    """A world of arms; `law` as in World.

    sample: a function of params, draws, t [P] and action [P] that returns the rewards [P], the same one at every call.
    """

    def reward(params, state, draws, t, context, action):
        return sample(params, draws, t, action)

    def score(params, state, t, context, action):
        return Score(arm=action)

    def truth(params, state, t, context):
        return Truth(means=params.means, theta=getattr(params, "theta", None))  # of linear arms

    return World(init=no_state, observe=no_context, reward=reward, score=score, truth=truth, num_arms=num_arms, law=law)


def make_arms(
    means: np.ndarray, sample: Callable[..., Array], moment: Callable[..., np.ndarray],
    reward_range: tuple[float, float], scale: Any = 1.0, law: Callable[..., Any] | None = None,
) -> Environment:  # fmt: skip
    """An environment of arms from validated means [K]. reward_range: (low, high) of what the arms pay.

    `facts["moment"](order, central=False)` is E|X|^order, or E|X - mean|^order, of each arm's law: [K] float64, inf
    where it does not exist. A partial of a module-level function, so that an environment can be sent to another
    process.
    """
    if len(means) < 2:
        raise ValueError(f"means = {means.tolist()!r} must name at least two arms")
    facts = {"num_arms": len(means), "means": means, "moment": moment, "reward_range": reward_range, "shows": "nothing"}
    return Environment(arms_world(len(means), sample, law), ArmsParams(means, scale), facts, None, {})


def noisy_range(means: np.ndarray, scale: Scalar) -> tuple[float, float]:
    """(low, high) of rewards with these means and noise of this scale that nothing bounds."""
    return (-math.inf, math.inf) if scale > 0 else (float(means.min()), float(means.max()))


def _bernoulli(params, draws, t, action):
    # One uniform a play serves every arm, so what another arm would have paid is defined.
    return (draws.uniform(t) < params.means[action]).astype(params.means.dtype)


def _bernoulli_law(params, state):
    means = params.means
    return jnp.arange(2).astype(means.dtype), jnp.stack([1 - means, means], axis=-1)


def _gaussian(params, draws, t, action):
    return params.means[action] + rounded(params.scale * rounded(draws.normal(t), t), t)


@factory(source="`docs/formulas/private_robust_mab.md#reward-laws` (moments).")
def bernoulli_arms(
    *, means: Annotated[Means, Ge(0), Le(1), Doc("Each arm's probability of paying 1; at least two arms.")]
) -> ArmsEnvironment:
    """Arms that pay 1 with a fixed probability and 0 otherwise.

    >>> jb.environments.bernoulli_arms(means=[0.2, 0.8]).facts["num_arms"]
    2
    """
    means = np.asarray(means)
    made = make_arms(means, _bernoulli, partial(moments.bernoulli, means), (0.0, 1.0), law=_bernoulli_law)
    return made._replace(facts=made.facts | {"coins": means})


@factory
def gaussian_arms(
    *, means: Means, scale: Annotated[NonNegative, Doc("Standard deviation of a reward, the same for all arms.")] = 1.0
) -> ArmsEnvironment:
    """Arms that pay a normal variable around a fixed mean.

    >>> jb.environments.gaussian_arms(means=[0.0, 1.0], scale=2.0).facts["moment"](2).round(6).tolist()
    [4.0, 5.0]
    """
    means = np.asarray(means)
    return make_arms(means, _gaussian, partial(moments.gaussian, means, scale), noisy_range(means, scale), scale)
