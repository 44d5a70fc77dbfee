"""The multi-layer race of Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353), recalled and compared with others'.

Axes: [L] layers, [K] arms.
Draws: `act/layer`, a word a play.
"""

import math
from functools import cache
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.stochastic.plain_reports import encode_reward, finite
from jaxbandits.declared import STATIC, Example, FailureProb, Ge, Horizon, NumArms
from jaxbandits.numerics import columns, count, materialize, materialize_all, moved_mean
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory

LEAST_WIDTH_SCALE = 1e-6  # far below what is of use: its square stays a float32 number


class Params(NamedTuple):
    """The numbers of the race, so that the width of n pulls is sqrt(`square` / n) + `linear` / n."""

    square: Numeric  # width_scale^2 Lambda, Lambda = ln(4 K T L / failure_prob)
    linear: Numeric  # width_scale Lambda


class State(NamedTuple):
    """Every layer's arms, and who is out where."""

    # mean of an arm in a layer, and what rounding left out of it
    arms: Float[Array, "L K 2"]
    # of an arm in a layer
    pulls: Int[Array, "L K"]
    # `columns` [K]: the highest layer that removed an arm, 0 while none did. The arm is out of that layer and of all
    # below it.
    removed: columns.Columns


def layer_of(word: Array, layers: int) -> Int[Array, "..."]:
    """The layer 1 .. L that a uniform word draws: l with probability 2^-l, and layer 1 with the 2^-L that is left."""
    layer = lax.clz(word).astype(jnp.int32) + 1
    return jnp.where(layer > layers, 1, layer)


def race_width(params: Params, pulls: Float[Array, "..."]) -> Float[Array, "..."]:
    """How far a mean of so many pulls may be off, inf without any. No product: nothing to contract with a sum."""
    return jnp.sqrt(params.square / pulls) + params.linear / pulls


@cache
def program(num_arms: int, layers: int) -> Program:
    """The functions of the race."""

    def init(params, draws):
        arms, pulls = jnp.zeros((layers, num_arms, 2), draws.dtype), jnp.zeros((layers, num_arms), jnp.int32)
        return State(arms, pulls, columns.full(num_arms, 0, jnp.int32))

    def pulls_and_active(state, layer):
        active = columns.map_arms(lambda highest: highest < layer, state.removed)
        return columns.from_array(state.pulls[layer - 1]), active

    def any_active(state, layer):
        return columns.largest_entry(columns.map_arms(lambda highest: -highest, state.removed)) > -layer

    def act(params, state, draws, t, context):
        layer = materialize(layer_of(draws.child("layer").bits(t[0]), layers))
        pulls, active = pulls_and_active(state, layer)
        fewest_first = columns.map_arms(lambda n, here: jnp.where(here, -n, jnp.iinfo(jnp.int32).min), pulls, active)
        # the lowest layer with an active arm: those that the fewest layers have removed
        spare = columns.argmin(state.removed)
        action = materialize(jnp.where(any_active(state, layer), columns.argmax(fewest_first), spare))
        return jnp.full(t.shape, action), None, (layer, action)

    def update(params, state, draws, t, note, message, used):
        (layer, arm), message = note, finite(message)
        pulls, active = pulls_and_active(state, layer)
        learns, row = any_active(state, layer), state.arms[layer - 1]
        old, rest = row[arm]
        number = materialize(columns.entry(pulls, arm) + learns.astype(jnp.int32))
        inverse = 1 / jnp.maximum(number, 1).astype(old.dtype)
        moved = zip(moved_mean(old, rest, message, inverse), (old, rest), strict=True)
        new, rest = materialize_all([jnp.where(learns, x, y) for x, y in moved])
        mean = columns.replace_entry(columns.from_array(row[:, 0]), arm, new)
        pulls = columns.replace_entry(pulls, arm, number)
        widths = columns.map_arms(lambda n: race_width(params, n.astype(new.dtype)), pulls)
        lower = columns.map_arms(lambda here, m, w: jnp.where(here, m - w, -jnp.inf), active, mean, widths)
        largest = materialize(columns.largest_entry(lower))

        def remove(here, m, w, highest):
            return jnp.where(here & (m + w < largest), layer, highest)

        removed = columns.map_arms(remove, active, mean, widths, state.removed)
        arms = state.arms.at[layer - 1, arm].set(jnp.stack([new, rest]))
        return State(arms, state.pulls.at[layer - 1, arm].set(number), removed), ()

    def diagnose(params, state):
        removed = columns.together(state.removed)
        return {"active_arms": count(removed < layers), "empty_layers": jnp.min(removed)}

    return Program(init, act, encode_reward, update, diagnose=diagnose)


@factory(
    plays_on="arms",
    example=Example({"width_scale": 0.1}, horizon=600),
    source="""Lykouris, Mirrokni and Paes Leme 2018 (arXiv 1803.09353): the abstract was read, the race is recalled and
        agrees with an implementation of others but for its natural logarithm in the number of layers,
        `docs/formulas/robust_frontier.md#multilayer-elimination`.""",
)
def multilayer_elimination(
    *,
    num_arms: NumArms,
    horizon: Annotated[Horizon, STATIC],
    failure_prob: FailureProb | None = None,
    width_scale: Annotated[Scalar, Ge(LEAST_WIDTH_SCALE)] = 1.0,
) -> Algorithm:
    """Race the arms in log2 T layers at once, each played half as often as the one below and so half as corrupted.

    Every play draws a layer l = 1 .. L with probability 2^-l, L = ceil(log2 T), the rest going to layer 1. The layer's
    active arm with the fewest pulls in it is played, and only its mean in that layer moves. An arm with mean + width
    below the largest mean - width of the layer's active arms is removed from this layer and from all below it. A layer
    without active arms plays the arm of the lowest layer that has one, and learns nothing. The width of n pulls is
    `width_scale` (sqrt(Lambda / n) + Lambda / n), Lambda = ln(4 K T L / failure_prob). No bound on the corruption is
    asked for.

    Args:
        horizon: Number of plays T, from which the number of layers follows. Filled in from the run.
        width_scale: Multiplies all widths; 1 is the published constant. It is wide: for curves at T = 20,000 take 0.5,
            and label them so.

    Returns:
        Algorithm: Without a privacy guarantee. Diagnostics: `active_arms`, how many arms are left in layer L, and
            `empty_layers`, how many layers have none, at the horizon.

    Note:
        For rewards in [0, 1]; others are accepted, though the confidence intervals do not hold for them. A non-finite
        reward counts as 0. Ties go to the lowest index. What is claimed is for corruption that is chosen before the arm
        is known.

    >>> algorithm = jb.algorithms.multilayer_elimination(num_arms=4, horizon=20_000, failure_prob=0.05)
    >>> round(algorithm.params.linear, 6)
    18.379859
    """
    layers = max(1, (horizon - 1).bit_length())
    log_term = math.log(4 * num_arms * horizon * layers)
    log_term += math.log(horizon) if failure_prob is None else -math.log(failure_prob)
    params = Params(square=width_scale**2 * log_term, linear=width_scale * log_term)
    return Algorithm(program(num_arms, layers), (Span(1, horizon),), params, rewards=Rewards(0.0, 1.0))
