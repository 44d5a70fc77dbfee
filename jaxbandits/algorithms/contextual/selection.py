"""Rules that choose an arm from an estimate (P, theta), and the linear bandit they make with `_linear_statistics`.

A rule is `select(params, draws, t, estimate, features) -> action`: its own numbers, streams under `act`, t [P] the plays of a window,
an `Estimate` of scalars, the decision sets as a list of d arrays [P, A]; action int32 [P]. Axes: [P] plays, [A] arms, [d] features.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.linucb import TIE, features_of
from jaxbandits.algorithms.contextual.statistics import Statistics
from jaxbandits.numerics import argmax, materialize, materialize_all
from jaxbandits.numerics.packed import cholesky, lower_product, quadratic_form
from jaxbandits.protocol import Program


class Params(NamedTuple):
    """A linear bandit's numbers."""

    statistics: Any
    selection: Any
    mechanism_scale: Any  # multiplies all privacy noise: 1.0


class UcbParams(NamedTuple):
    """Width of play t: radius_scale (base + quartic t^(1/4) + slope sqrt(offset + log(1 + growth t)))."""

    radius_scale: Any
    base: Any
    quartic: Any
    slope: Any
    offset: Any
    growth: Any


def width(params: UcbParams, time):
    """w_t, t a float."""
    wide = params.base + params.quartic * jnp.sqrt(jnp.sqrt(time))
    return params.radius_scale * (wide + params.slope * jnp.sqrt(params.offset + jnp.log(1 + params.growth * time)))


def ucb(params: UcbParams, draws, t, estimate, features):
    """argmax <x, theta> + w_t sqrt(max(x' P x, 0)), ties within 1e-5 to the lowest arm: an indefinite P counts as no width."""
    score = sum(x * theta for x, theta in zip(features, estimate.theta, strict=True))
    wide = width(params, t.astype(draws.dtype))[:, None]
    return argmax(score + wide * jnp.sqrt(jnp.maximum(quadratic_form(estimate.inverse, features), 0)), TIE)


class ThompsonParams(NamedTuple):
    posterior: Any  # v: theta is drawn from N(theta, v^2 P)


def thompson(params: ThompsonParams, draws, t, estimate, features):
    """argmax <x, theta + v C z>, C C' = P, z [d] normal at every play: draws act/posterior. Pivots of P below 0 count as 0."""
    dim = len(features)
    factor = cholesky(estimate.inverse, dim)
    noise = draws.child("posterior").normal(t, (dim,))
    moved = lower_product(factor, [noise[:, j] for j in range(dim)])
    sample = materialize_all([estimate.theta[j] + params.posterior * moved[j] for j in range(dim)])
    return argmax(sum(x * theta[:, None] for x, theta in zip(features, sample, strict=True)), TIE)


class GreedyParams(NamedTuple):
    rate: Any  # c K: a play explores with probability min(1, rate / t)


def greedy(params: GreedyParams, draws, t, estimate, features):
    """argmax <x, theta>, but an arm at random with probability min(1, rate / t): draws act/explore and act/arm."""
    best = argmax(sum(x * theta for x, theta in zip(features, estimate.theta, strict=True)), TIE)
    num_arms = features[0].shape[-1]
    arm = jnp.minimum((draws.child("arm").uniform(t) * num_arms).astype(jnp.int32), num_arms - 1)
    explores = draws.child("explore").uniform(t) * t.astype(draws.dtype) < params.rate
    return jnp.where(explores, arm, best)


@cache
def linear_bandit(statistics: Statistics, select, dim: int) -> Program:
    """A statistics module and a selection rule as a program with `Params`; contexts are decision sets [P, A, d].

    The policy is frozen over a window, whatever its length P. `statistics` and `select` are cached or module-level functions.
    """

    def init(params, draws):
        return statistics.init(params.statistics, draws)

    def act(params, state, draws, t, context):
        # contiguous arrays of the features, made once a seed and shared by all parameter points, as in linucb
        features = materialize_all(features_of(context, dim))
        estimate = statistics.estimate(params.statistics, params.mechanism_scale, state, t[0])
        return materialize(select(params.selection, draws, t, estimate, features)), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        if len(t) == 1:
            played = context[0, action[0]][None]
        else:
            played = jnp.take_along_axis(context, action[:, None, None], axis=1)[:, 0]
        feature = [played[:, j] for j in range(dim)]
        return statistics.encode(params.statistics, params.mechanism_scale, draws, t, feature, reward, play)

    def relay(params, draws, t, message, play):
        return statistics.relay(params.statistics, params.mechanism_scale, draws, t, message, play)

    def update(params, state, draws, t, note, message, used):
        return statistics.update(params.statistics, params.mechanism_scale, state, draws, t, message, used)

    return Program(init, act, encode, update, relay)
