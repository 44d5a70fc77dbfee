"""The multi-layer race of Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353), recalled and compared with others'.

Formulas: `docs/formulas/robust_frontier.md#multilayer-elimination`. Axes: [L] layers, [K] arms.
Draws: `act/layer`, a word a play.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import argmin, count, materialize
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """The numbers of the race."""

    # multiplies every width
    width_scale: Any
    # Lambda = ln(4 K T L / failure_prob)
    log_term: Any


class State(NamedTuple):
    """Every layer's arms, and who is out where."""

    # mean, width, pulls of an arm in a layer; the width is inf before its first pull
    arms: Float[Array, "L K 3"]
    # The highest layer that removed an arm, 0 while none did: the arm is out of that layer and of all below it.
    removed: Int[Array, " K"]


def layer_of(word: Array, layers: int) -> Int[Array, "..."]:
    """The layer 1 .. L that a uniform word draws: l with probability 2^-l, and layer 1 with the 2^-L that is left."""
    layer = lax.clz(word).astype(jnp.int32) + 1
    return jnp.where(layer > layers, 1, layer)


@cache
def program(num_arms: int, layers: int) -> Program:
    """The functions of the race."""

    def init(params, draws):
        arms = jnp.zeros((layers, num_arms, 3), draws.dtype).at[:, :, 1].set(jnp.inf)
        return State(arms, jnp.zeros(num_arms, jnp.int32))

    def act(params, state, draws, t, context):
        layer = materialize(layer_of(draws.child("layer").bits(t[0]), layers))
        pulls = state.arms[layer - 1, :, 2]
        active = state.removed < layer
        least_pulled = argmin(jnp.where(active, pulls, jnp.inf))
        # the lowest layer with an active arm: those that the fewest layers have removed
        action = materialize(jnp.where(jnp.any(active), least_pulled, argmin(state.removed)))
        return jnp.full(t.shape, action), None, (layer, action)

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        # here and not in `encode`: reports may be corrupted on their way
        message = jnp.where(jnp.isfinite(message), message, 0)
        layer, arm = note
        rows, active = state.arms[layer - 1], state.removed < layer
        mean, _, pulls = rows[arm]
        pulls = materialize(pulls + 1)
        inverse = materialize(1 / pulls)
        mean = materialize(mean + (message - mean) * inverse)
        share = materialize(params.log_term * inverse)
        width = materialize(params.width_scale * (jnp.sqrt(share) + share))
        # in a layer without active arms nothing is learnt
        row = jnp.where(jnp.any(active), jnp.stack([mean, width, pulls]), rows[arm])
        rows = rows.at[arm].set(row)
        lowest = materialize(jnp.max(jnp.where(active, rows[:, 0] - rows[:, 1], -jnp.inf)))
        out = active & (rows[:, 0] + rows[:, 1] < lowest)
        return State(state.arms.at[layer - 1, arm].set(row), jnp.where(out, layer, state.removed)), ()

    def diagnose(params, state):
        return {"active_arms": count(state.removed < layers), "empty_layers": jnp.min(state.removed)}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def multilayer_elimination(
    *, num_arms: int, horizon: int, failure_prob: Scalar | None = None, width_scale: Scalar = 1.0
) -> Algorithm:
    """Race the arms in log2 T layers at once, each layer half as often played as the one below and so half as corrupted.

    Every play draws a layer l = 1 .. L with probability 2^-l, L = ceil(log2 T), the rest going to layer 1. The layer's
    active arm with the fewest pulls in it is played, and only its mean in that layer moves. An arm with mean + width
    below the largest mean - width of the layer's active arms is removed from this layer and from all below it. A layer
    without active arms plays the arm of the lowest layer that has one, and learns nothing. The width of n pulls is
    `width_scale` (sqrt(Lambda / n) + Lambda / n), Lambda = ln(4 K T L / failure_prob). No bound on the corruption is
    asked for.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. The number of layers follows from it [static]. Filled in from the sweep.
    failure_prob : float, optional
        Probability, in (0, 1), with which the confidence intervals may fail. Default: 1 / T.
    width_scale : float
        Multiplies all widths, at least 0; 1 is the published constant. Widths of 1 are wide: at T = 20,000 they cost
        18 times the regret of UCB1. In simulations 0.5 ended on no wrong arm, 0.25 on one in 11% of the attacked runs.

    Returns
    -------
    Algorithm
        Without a privacy guarantee. Diagnostics: `active_arms`, how many arms are left in layer L, and `empty_layers`,
        how many layers have none, at the horizon.

    Raises
    ------
    ValueError
        For an argument outside its range.

    Notes
    -----
    For rewards in [0, 1]; others are accepted, though the confidence intervals do not hold for them. A non-finite reward
    counts as 0. Ties go to the lowest index. What is claimed is for corruption that is chosen before the arm is known.

    References
    ----------
    Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353): the abstract was read, the race is recalled and agrees
    with an implementation of others but for its natural logarithm in the number of layers,
    `docs/formulas/robust_frontier.md#multilayer-elimination`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.multilayer_elimination(num_arms=4, horizon=20_000, failure_prob=0.05)
    >>> algorithm.version[2], round(algorithm.params.log_term, 6)
    ((4, 15), 18.37986)
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    layers = max(1, (horizon - 1).bit_length())
    log_term = math.log(4 * num_arms * horizon * layers)
    if failure_prob is None:
        log_term += math.log(horizon)
    else:
        log_term -= math.log(number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True))
    params = Params(number("width_scale", width_scale, 0.0), log_term)
    return Algorithm(
        program=program(num_arms, layers),
        schedule=(Span(1, horizon),),
        params=params,
        guarantee=Guarantee(),
        version=("multilayer_elimination", 1, (num_arms, layers)),
        config={},
        rewards=Rewards(0.0, 1.0),
    )
