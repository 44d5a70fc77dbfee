"""Rules that choose an arm from an estimate (P, theta), and the linear bandit they make with `statistics`.

A rule is `select(params, draws, t, estimate, features) -> action`. It gets its own numbers, the streams under
`act`, the plays t of a window, an `Estimate` or a `Regression` that is one once solved, and the features of the
decision sets, in the layout of `numerics.packed` for their d.

Axes: [P] plays of a window, [A] arms, [d] features.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.statistics import Estimate, Regression, Statistics, normals_in_layout
from jaxbandits.numerics import argmax, materialize
from jaxbandits.numerics.eliminations import cholesky
from jaxbandits.numerics.packed import Vector, inner, lower_product, map_features, materialize_vector, split_features
from jaxbandits.protocol import Program
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Numeric

Plays = Int[Array, " P"]  # the numbers of a window's plays, or the arms that they play
Scores = Float[Array, "P A"]
Fit = Estimate | Regression
TIE = 1e-5  # indices within this share of the largest are tied: unit-norm arms all tie at t = 1, up to rounding


def features_of_sets(context: Array, dim: int) -> Vector:
    """The features of decision sets [P, A, dim], in their layout; ValueError where contexts are something else."""
    shape: tuple = getattr(context, "shape", ())
    if len(shape) != 3 or shape[2] != dim:
        raise ValueError(
            f"contexts have shape {shape}: linear bandits over users choose from decision sets "
            f"[plays, arms, dim = {dim}], as environments.contextual_linear shows them"
        )
    return split_features(context)


class Params(NamedTuple):
    """A linear bandit's numbers."""

    statistics: Any
    selection: Any
    mechanism_scale: Numeric


class UcbParams(NamedTuple):
    """Width of play t: radius_scale (base + quartic t^(1/4) + slope sqrt(offset + log(1 + growth t)))."""

    radius_scale: Any
    base: Numeric
    quartic: Numeric
    slope: Numeric
    offset: Numeric
    growth: Numeric


def ucb_width(params: UcbParams, time: Float[Array, "..."]) -> Float[Array, "..."]:
    """The width w_t of play t, a float."""
    wide = params.base + params.quartic * jnp.sqrt(jnp.sqrt(time))
    return params.radius_scale * (wide + params.slope * jnp.sqrt(params.offset + jnp.log(1 + params.growth * time)))


def ucb(params: UcbParams, draws: Draws, t: Plays, estimate: Fit, features: Vector) -> Plays:
    """argmax <x, theta> + w_t sqrt(max(x' P x, 0)): an indefinite P counts as no width. Ties go to the lowest arm."""
    return most_optimistic_arms(params, draws, t, *estimate.score_arms(features))


def most_optimistic_arms(params: UcbParams, draws: Draws, t: Plays, score: Scores, square: Scores) -> Plays:
    """`ucb` of known <x, theta> and x' P x."""
    wide = ucb_width(params, t.astype(draws.dtype))[:, None]
    return argmax(score + wide * jnp.sqrt(jnp.maximum(square, 0)), TIE)


class ThompsonParams(NamedTuple):
    posterior: Numeric  # v: theta is drawn from N(theta, v^2 P)


def thompson(
    params: ThompsonParams, draws: Draws, t: Plays, estimate: Estimate | Regression, features: Vector
) -> Plays:
    """argmax <x, theta + v C z> with C C' = P and z [d] normal: draws act/posterior. Pivots of P below 0 count as 0."""
    estimate = estimate.to_estimate()
    dim = len(estimate.theta)
    factor = cholesky(estimate.inverse, dim)
    moved = lower_product(factor, normals_in_layout(draws.child("posterior"), t, dim, dim))
    sample = map_features(lambda theta, move: theta + params.posterior * move, estimate.theta, moved)
    sample = materialize_vector(sample)
    return argmax(inner(features, map_features(lambda theta: theta[:, None], sample)), TIE)


class GreedyParams(NamedTuple):
    rate: Numeric  # c K: a play explores with probability min(1, rate / t)


def greedy(params: GreedyParams, draws: Draws, t: Plays, estimate: Fit, features: Vector) -> Plays:
    """argmax <x, theta>, but an arm at random with probability min(1, rate / t): draws act/explore and act/arm."""
    return best_or_random_arms(params, draws, t, inner(features, estimate.to_estimate().theta))


def best_or_random_arms(params: GreedyParams, draws: Draws, t: Plays, score: Scores, square: object = None) -> Plays:
    """`greedy` of known <x, theta>."""
    best, num_arms = argmax(score, TIE), score.shape[-1]
    arm = jnp.minimum((draws.child("arm").uniform(t) * num_arms).astype(jnp.int32), num_arms - 1)
    explores = draws.child("explore").uniform(t) * t.astype(draws.dtype) < params.rate
    return jnp.where(explores, arm, best)


@cache
def linear_bandit(statistics: Statistics, select: Callable[..., Plays], dim: int) -> Program:
    """Statistics and a selection rule as a program with `Params`; contexts are decision sets [P, A, d].

    The policy is frozen over a window, whatever its length P. `statistics` and `select` are cached or
    module-level functions.
    """

    def init(params, draws):
        return statistics.init(params.statistics, draws)

    def act(params, state, draws, t, context):
        # contiguous arrays of the features, made once a seed and shared by all parameter points, as in linucb
        features = materialize_vector(features_of_sets(context, dim))
        estimate = statistics.estimate(params.statistics, params.mechanism_scale, state, t[0])
        return materialize(select(params.selection, draws, t, estimate, features)), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        if len(t) == 1:
            played = context[0, action[0]][None]
        else:
            played = jnp.take_along_axis(context, action[:, None, None], axis=1)[:, 0]
        x = split_features(played)
        return statistics.encode(params.statistics, params.mechanism_scale, draws, t, x, reward, play)

    def relay(params, draws, t, message, play):
        return statistics.relay(params.statistics, params.mechanism_scale, draws, t, message, play)

    def update(params, state, draws, t, note, message, used):
        return statistics.update(params.statistics, params.mechanism_scale, state, draws, t, message, used)

    return Program(init, act, encode, update, relay, lockstep=statistics.lockstep)
