"""Linear bandits with one model an arm: ridge regressions of their own, and the rules of `selection` on their scores.

A play shows one row of features for all arms, [P, d], or a decision set, [P, K, d], of which arm k reads its own
vector. Private statistics are those of `statistics` with a block of every arm.

Axes: [P] plays of a window, here one, [K] arms, [d] features.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.contextual import selection
from jaxbandits.algorithms.contextual.selection import TIE, Plays, Scores, UcbParams, ucb_width
from jaxbandits.algorithms.contextual.statistics import Statistics
from jaxbandits.numerics import added, argmax, left_out, materialize
from jaxbandits.numerics.least_squares import ridge_scores
from jaxbandits.numerics.packed import block_products, inners, split_features
from jaxbandits.protocol import Program
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float


class ArmModels(NamedTuple):
    """The ridge regressions without noise."""

    inverse: Float[Array, "K d d"]  # P_a = (V_a + ridge I)^-1
    theta: Float[Array, "K d"]  # P_a u_a
    rest: Any  # what rounding left out of both, in a long run; otherwise ()


@cache
def plain_arms(num_arms: int, dim: int) -> Statistics:
    """No privacy: P_a of the played arm by Sherman and Morrison; params `NoParams`. Non-finite rewards count as 0."""

    def init(params, draws):
        one = 1 / jnp.asarray(params.ridge, draws.dtype)
        inverse = jnp.broadcast_to(one * jnp.eye(dim, dtype=draws.dtype), (num_arms, dim, dim))
        both = inverse, jnp.zeros((num_arms, dim), draws.dtype)
        return ArmModels(*both, left_out(both, draws.long))

    def encode(params, scale, draws, t, feature, reward, play):
        return feature, jnp.where(jnp.isfinite(reward[0]), reward[0], 0)

    def update(params, scale, state, draws, t, message, used):
        (x, arm), reward = message
        own = jax.tree.map(lambda models: models[arm], state)
        v = block_products(own.inverse[None], x)[0]
        score, square = inners((x[0], own.theta), (x[0], v))
        shrink = 1 / (1 + square)
        step = -(v[:, None] * v[None, :] * shrink), v * ((reward - score) * shrink)
        (inverse, theta), rest = added(own[:2], own.rest, step)
        new = ArmModels(inverse, theta, rest)
        return jax.tree.map(lambda models, one: models.at[arm].set(one), state, new), ()

    return Statistics(init, encode, update, lambda params, scale, state, t: state)


def scores_of_arms(estimate: Any, x: Float[Array, "... d"]) -> tuple[Array, Array]:
    """<x, theta_a> and x' P_a x of every arm, [K], of `ArmModels` or a `Regression` of blocks; x: [K, d] or for all."""
    if isinstance(estimate, ArmModels):
        x = lax.broadcast_to_rank(x, 2)
        score, square = inners((x, estimate.theta), (x, block_products(estimate.inverse, x)))
        return score, square
    gram, vector, ridge = estimate
    if isinstance(vector, tuple):
        return ridge_scores(gram, vector, ridge, split_features(x))
    apart = jax.vmap(lambda gram, vector, x: ridge_scores(gram, vector, ridge, x[None]))
    scores, squares = apart(gram, vector, jnp.broadcast_to(x, vector.shape))
    return scores[:, 0], squares[:, 0]


def arms_of_drawn_models(params: UcbParams, draws: Draws, t: Plays, score: Scores, square: Scores) -> Plays:
    """argmax <x, theta_a> + w_t sqrt(max(x' P_a x, 0)) z_a, z [K] normal: draws act/posterior.

    The law is that of theta~_a drawn from N(theta_a, w_t^2 P_a), independent over arms: <x, theta~_a> is normal.
    """
    deviation = ucb_width(params, t.astype(draws.dtype))[:, None] * jnp.sqrt(jnp.maximum(square, 0))
    return argmax(score + deviation * draws.child("posterior").normal(t, score.shape[1:]), TIE)


# What a rule plays by <x, theta_a> and x' P_a x: params, draws, t, score, square -> arms
RULES_OF_SCORES: dict[Callable[..., Plays], Callable[..., Plays]] = {
    selection.ucb: selection.most_optimistic_arms,
    selection.thompson: arms_of_drawn_models,
    selection.greedy: selection.best_or_random_arms,
}


@cache
def arms_bandit(statistics: Statistics, select: Callable[..., Plays], num_arms: int, dim: int) -> Program:
    """Statistics and a rule of `selection` as a program with its `Params`; those of `thompson` are `UcbParams`."""
    rule = RULES_OF_SCORES[select]

    def check_shape(context: Array) -> Array:
        shape: tuple = getattr(context, "shape", ())
        if shape[1:] not in ((dim,), (num_arms, dim)):
            raise ValueError(
                f"contexts have shape {shape}: with models='per_arm' a play shows a row of features, [plays, dim = "
                f"{dim}], as environments.classification does, or a decision set, [plays, arms = {num_arms}, {dim}]"
            )
        return context

    def init(params, draws):
        return statistics.init(params.statistics, draws)

    def act(params, state, draws, t, context):
        x = materialize(check_shape(context)[0])
        estimate = statistics.estimate(params.statistics, params.mechanism_scale, state, t[0])
        scores = (score[None] for score in scores_of_arms(estimate, x))
        return materialize(rule(params.selection, draws, t, *scores)), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        feature = context if context.ndim == 2 else context[:, action[0]], action[0]
        return statistics.encode(params.statistics, params.mechanism_scale, draws, t, feature, reward, play)

    def update(params, state, draws, t, note, message, used):
        return statistics.update(params.statistics, params.mechanism_scale, state, draws, t, message, used)

    return Program(init, act, encode, update, lockstep=statistics.lockstep)
