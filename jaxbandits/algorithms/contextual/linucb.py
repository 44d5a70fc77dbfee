"""LinUCB (Abbasi-Yadkori, Pal and Szepesvari 2011, OFUL's closed form), the non-private comparator of
"Improved rate for locally differentially private linear bandits" (specification, section 7).
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import argmax, dot, materialize, materialize_all, matvec
from jaxbandits.numerics.packed import pairs, quadratic_form
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.theory.linear_widths import plain_tuning
from jaxbandits.validation import choice, factory, integer, number

TIE = 1e-5  # indices within this share of the largest are tied: unit-norm arms all tie at t = 1, up to rounding
REFRESH = 64  # plays


class Params(NamedTuple):
    """Width of play t: radius_scale (base + slope sqrt(offset + log(1 + growth t)))."""

    radius_scale: Any
    ridge: Any
    base: Any
    slope: Any
    offset: Any
    growth: Any


class State(NamedTuple):
    inverse: Any  # P = (V + ridge I)^-1, [d, d]: updated in place, scalars apart would be copied in every play
    theta: Any  # [d]
    # fixed arms only, otherwise (): <x, theta> and x' P x, [A], as of the play before the last, and what the last one added:
    score: Any
    square: Any
    last: Any  # P x of the played arm, [d]; 1 / (1 + x' P x); the error times that


def features_of(context, dim: int) -> list:
    """The features of decision sets [P, A, dim], `dim` arrays [P, A]. ValueError where contexts are something else."""
    shape: tuple = getattr(context, "shape", ())
    if len(shape) != 3 or shape[2] != dim:
        raise ValueError(
            f"contexts have shape {shape}: linear bandits over users choose from decision sets [plays, arms, dim = {dim}], "
            "as environments.contextual_linear shows them"
        )
    return [context[:, :, j] for j in range(dim)]


def refreshed(t):
    """Whether play t computes fixed arms' scores and widths anew: at first every time, since a tiny ridge leaves an error of
    1e-3 in the first ones, then now and then."""
    return (t < REFRESH) | (t % REFRESH == 0)


@cache
def program(num_arms: int, dim: int, contexts: str) -> Program:
    fixed = contexts == "fixed"

    def init(params, draws):
        one, zero = 1 / jnp.asarray(params.ridge, draws.dtype), jnp.zeros((), draws.dtype)
        arms, none = (jnp.zeros(num_arms, draws.dtype), jnp.zeros(dim, draws.dtype)) if fixed else ((), ())
        inverse, last = one * jnp.eye(dim, dtype=draws.dtype), (none, zero, zero) if fixed else ()
        return State(inverse, jnp.zeros(dim, draws.dtype), arms, arms, last)

    def computed(state, x):
        packed = [state.inverse[i, j] for i, j in pairs(dim)]
        return sum(x[j] * state.theta[j] for j in range(dim)), quadratic_form(packed, x)

    def followed(state, x):
        v, shrink, error = state.last
        z = sum(x[j] * v[j] for j in range(dim))
        return state.score + z * error, state.square - z * z * shrink

    def act(params, state, draws, t, context):
        x = [feature[0] for feature in features_of(context, dim)]
        time = t[0].astype(draws.dtype)
        width = params.radius_scale * (
            params.base + params.slope * jnp.sqrt(params.offset + jnp.log1p(params.growth * time))
        )
        if fixed:
            score, square = materialize_all(followed(state, x))
            score, square = lax.while_loop(
                lambda carry: carry[0],
                lambda carry: (jnp.zeros((), bool), *computed(state, x)),
                (refreshed(t[0]), score, square),
            )[1:]
        else:
            score, square = computed(state, x)
        index = score + width * jnp.sqrt(jnp.maximum(square, 0))
        action = materialize(argmax(index, TIE))
        return jnp.full(t.shape, action), None, (score, square) if fixed else ()

    def encode(params, note, draws, t, context, action, reward, play):
        feature = jnp.stack([context[0, :, j][action[0]] for j in range(dim)])
        return feature, jnp.where(jnp.isfinite(reward[0]), reward[0], 0)

    def update(params, state, draws, t, note, message, used):
        x, reward = message
        v = materialize(matvec(state.inverse, x))
        shrink, error = 1 / (1 + dot(x, v)), reward - dot(x, state.theta)
        shrink, error = materialize_all([shrink, error * shrink])
        inverse = state.inverse - v[:, None] * v[None, :] * shrink
        score, square = note if fixed else ((), ())
        return State(inverse, state.theta + v * error, score, square, (v, shrink, error) if fixed else ()), ()

    return Program(init, act, encode, update)


@factory
def linucb(
    *, num_arms, dim, horizon, preset="reference", radius_scale=1.0, feature_norm=1.0, contexts="redraw"
) -> Algorithm:
    """Play argmax <x, theta> + w_t sqrt(x' P x), P = (sum x x' + ridge I)^-1, theta = P sum x r.

    Ties go to the lowest arm within 1e-5 of the largest index, relatively: at t = 1 unit-norm arms differ by rounding only.
    Contexts are decision sets [A, d]. Non-finite rewards count as 0. P is updated by Sherman and Morrison.
    contexts [static]: "redraw" takes any contexts; "fixed" relies on every play of a trial showing the same arms, and keeps their
    scores and widths, which follow by rank-one updates and are computed anew in the first 63 plays and then in every 64th.
    `sweep` and `simulate` fill it in from the environment.

    num_arms >= 2, dim >= 1 [static]; radius_scale >= 0 multiplies the width; feature_norm > 0: the largest norm L of a
    feature. preset "reference": ridge 1e-4, w = sqrt(d) + R sqrt(d log(T (1 + T L^2))) for every t, as in the published code
    of Chowdhury and Zhou; "theory": ridge 1, w_t = 1 + R sqrt(d log((1 + t L^2) T)). R = 1/2. Raises ValueError outside.
    Source: specification of locally private linear bandits, section 7.

    >>> import jaxbandits as jb
    >>> alg = jb.algorithms.linucb(num_arms=100, dim=5, horizon=20_000, radius_scale=0.1)
    >>> alg.params.ridge
    0.0001
    """
    num_arms, dim = integer("num_arms", num_arms, 2), integer("dim", dim, 1)
    horizon = integer("horizon", horizon, 1)
    contexts = choice("contexts", contexts, ("redraw", "fixed"))
    preset = choice("preset", preset, ("reference", "theory"))
    scale = number("radius_scale", radius_scale, 0.0)
    norm = number("feature_norm", feature_norm, 0.0, open_low=True)
    tuning = plain_tuning(preset, horizon, dim, norm)
    width = tuning.width
    params = Params(scale, tuning.ridge, width.base, width.slope, width.offset, width.growth)
    static = (num_arms, dim, contexts)
    return Algorithm(
        program(*static), (Span(1, horizon),), params, Guarantee(), ("linucb", 2, static), {}, rewards=Rewards()
    )
