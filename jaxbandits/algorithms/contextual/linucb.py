"""LinUCB, the comparator without privacy of "Improved rate for locally differentially private linear bandits"."""

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import declared
from jaxbandits.algorithms.contextual.arguments import ArmRidge, LinearSetting, check_models, none_part, ucb_algorithm
from jaxbandits.algorithms.contextual.selection import TIE, features_of_sets
from jaxbandits.declared import HOST, Dim, Doc, Example, FeatureNorm, Horizon, Inside, NonNegative, NumArms, Positive
from jaxbandits.numerics import argmax, left_out, materialize, materialize_all, pick
from jaxbandits.numerics.least_squares import weighted_rank_one
from jaxbandits.numerics.packed import Vector, inner, quadratic_form, stack_features
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.theory.linear_widths import plain_tuning
from jaxbandits.typing import Array, Bool, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory

REFRESH = 64  # plays between two computations anew of the scores of fixed arms


class Params(NamedTuple):
    """Width of play t: radius_scale (base + slope sqrt(offset + log(1 + growth t)))."""

    radius_scale: Any
    ridge: Numeric
    base: Numeric
    slope: Numeric
    offset: Numeric
    growth: Numeric


class State(NamedTuple):
    """The ridge regression of the rewards on the features, and what is known of the scores of fixed arms."""

    # P = (V + ridge I)^-1: updated in place, where scalars apart would be copied in every play
    inverse: Float[Array, "d d"]
    theta: Float[Array, " d"]
    # Fixed arms only, otherwise (): <x, theta> and x' P x of every arm, [A], as of the play before the last ...
    score: Array | tuple[()]
    square: Array | tuple[()]
    # ... and what the last play added: P x of the played arm, [d]; w / (1 + w x' P x); the error times that
    last: Any
    # what rounding left out of inverse and theta, in a long run; otherwise ()
    rest: Any


def features_of_first_set(context: Array, dim: int) -> Vector:
    """Of a window's decision sets the features of the first: [A] for each feature."""
    return jax.tree.map(lambda x: x[0], features_of_sets(context, dim))


def is_refresh(t: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether play t computes the scores and widths of fixed arms anew.

    At first every play does, since a tiny ridge leaves an error of 1e-3 in the first ones; then now and then.
    """
    return (t < REFRESH) | (t % REFRESH == 0)


def scores_and_squares(state: Any, x: Vector) -> tuple[Array, Array]:
    """<x, theta> and x' P x of every arm, from a state that has `theta` and `inverse`: each [A]."""
    return inner(x, state.theta), quadratic_form(state.inverse, x)


def most_optimistic_arm(score: Array, square: Array, width: Array) -> Int[Array, ""]:
    """The arm of the largest score + width sqrt(square), the lowest of those within `TIE`."""
    return materialize(argmax(score + width * jnp.sqrt(jnp.maximum(square, 0)), TIE))


def feature_of_play(dim: int, context: Array, action: Int[Array, " P"]) -> Float[Array, " d"]:
    """The feature of the arm played in a window of one play."""
    return stack_features(jax.tree.map(lambda x: x[action[0]], features_of_first_set(context, dim)))


def plain_width(params: Params, time: Array) -> Array:
    """The width of play `time`."""
    growing = params.slope * jnp.sqrt(params.offset + jnp.log1p(params.growth * time))
    return params.radius_scale * (params.base + growing)


@cache
def program(
    num_arms: int, dim: int, contexts: str, width_of: Callable = plain_width, weight_of: Callable | None = None
) -> Program:
    """The functions of optimism on a ridge regression.

    width_of: params and the play -> the width. weight_of: params and x' P x of the played arm, both before the play ->
    the weight of the play in the regression; None: 1.
    """
    fixed = contexts == "fixed"

    def init(params, draws):
        one, zero = 1 / jnp.asarray(params.ridge, draws.dtype), jnp.zeros((), draws.dtype)
        arms, none = (jnp.zeros(num_arms, draws.dtype), jnp.zeros(dim, draws.dtype)) if fixed else ((), ())
        inverse, last = one * jnp.eye(dim, dtype=draws.dtype), (none, zero, zero) if fixed else ()
        theta = jnp.zeros(dim, draws.dtype)
        return State(inverse, theta, arms, arms, last, left_out((inverse, theta), draws.long))

    def follow_scores(state, x):
        v, shrink, error = state.last
        z = inner(x, v)
        return state.score + z * error, state.square - z * z * shrink

    def act(params, state, draws, t, context):
        x = features_of_first_set(context, dim)
        width = width_of(params, t[0].astype(draws.dtype))
        if fixed:
            score, square = materialize_all(follow_scores(state, x))
            score, square = lax.while_loop(
                lambda carry: carry[0],
                lambda carry: (jnp.zeros((), bool), *scores_and_squares(state, x)),
                (is_refresh(t[0]), score, square),
            )[1:]
        else:
            score, square = scores_and_squares(state, x)
        action = most_optimistic_arm(score, square, width)
        # the weight is that of the decision: under delays P has moved when the reward arrives
        weight = () if weight_of is None else weight_of(params, pick(square, action))
        return jnp.full(t.shape, action), None, (weight, (score, square) if fixed else ())

    def encode(params, note, draws, t, context, action, reward, play):
        return feature_of_play(dim, context, action), jnp.where(jnp.isfinite(reward[0]), reward[0], 0)

    def update(params, state, draws, t, note, message, used):
        x, reward = message
        weight, followed_scores = note
        inverse, theta, rest, last = weighted_rank_one(state.inverse, state.theta, state.rest, x, reward, weight)
        score, square = followed_scores if fixed else ((), ())
        return State(inverse, theta, score, square, last if fixed else (), rest), ()

    # the scores of fixed arms go through the note
    return Program(init, act, encode, update, lockstep=fixed)


Ridge = Annotated[Scalar, declared.Ge(1e-6), declared.Le(1e6), Doc("Of the regression.")]
ThetaNorm = Annotated[Positive, Doc("Bound B on the norm of the unknown theta.")]
FailureProb = Annotated[
    Inside | None, Doc("Of all confidence sets together. The default: 1 / horizon, and 1/2 at horizon 1.")
]
Contexts = Annotated[
    Literal["redraw", "fixed"],
    Doc("""Which contexts to expect. "redraw" takes any. "fixed" relies on every play of a trial showing the same arms,
        and keeps their scores and widths: they follow by rank-one updates, and are computed anew in the first 63 plays
        and then in every 64th. Filled in from the environment."""),
]


@factory(
    plays_on="decision set",
    example=Example({"preset": "theory", "radius_scale": 0.2}),
    source="""Abbasi-Yadkori, Pál and Szepesvári 2011; docs/formulas/ldp_contextual.md#linucb and
        docs/formulas/ldp_contextual.md#reference-presets""",
)
def linucb(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Horizon,
    preset: Annotated[Literal["reference", "theory", "disjoint"] | None, HOST] = None,
    radius_scale: Annotated[NonNegative, Doc("Multiplies the width w. The default: 1.")] | None = None,
    feature_norm: FeatureNorm = 1.0,
    contexts: Contexts = "redraw",
    models: declared.Models = "shared",
    ridge: ArmRidge | None = None,
) -> Algorithm:
    """LinUCB: play the arm of the largest <x, theta> + w_t sqrt(x' P x), with theta and P of a ridge regression.

    P = (sum x x' + ridge I)^-1 and theta = P sum x r, over the features x and rewards r of the plays so far; with
    `models="per_arm"` over those of the arm.

    Args:
        preset: Ridge and width. "reference", the default: ridge 1e-4 and w = sqrt(d) + R sqrt(d log(T (1 + T L^2))) at
            every play, as in the published code of Chowdhury and Zhou. "theory": ridge 1 and w_t = 1 + R sqrt(d log((1
            + t L^2) T)). R = 1/2 is the scale of the rewards' noise.

            With `models="per_arm"`: "disjoint", the default, has w = 1, so that radius_scale is the alpha of the
            literature, of which 0.05 to 2 are worth a search. "theory": w_t = sqrt(ridge) + R sqrt(2 log(K T) + d log(1
            + t L^2 / (d ridge))).

    Returns:
        For environments whose contexts are decision sets [K, d], such as `environments.contextual_linear`, or with
            `models="per_arm"` rows [d], such as `environments.classification`.

    Note:
        Ties go to the lowest arm within 1e-5 of the largest index, relatively: at t = 1 arms of norm 1 differ by
        rounding only. Non-finite rewards count as 0. P is updated by the formula of Sherman and Morrison. Departures
        from the paper: docs/deviations.md.

    >>> algorithm = jb.algorithms.linucb(num_arms=100, dim=5, horizon=20_000, radius_scale=0.1)
    >>> algorithm.params.ridge
    0.0001
    """
    check_models(models, preset, ridge, private=False)
    if models == "per_arm":
        ridge, preset = 1.0 if ridge is None else ridge, preset or "disjoint"
        s = LinearSetting(num_arms, dim, horizon, inf, 0.5, preset, float(feature_norm), 1.0, ridge)
        return ucb_algorithm(none_part(s), s, radius_scale, default=1.0)
    tuning = plain_tuning(preset or "reference", horizon, dim, float(feature_norm))
    width = tuning.width
    params = Params(
        radius_scale=1.0 if radius_scale is None else radius_scale,
        ridge=tuning.ridge,
        base=width.base,
        slope=width.slope,
        offset=width.offset,
        growth=width.growth,
    )
    return Algorithm(program(num_arms, dim, contexts), (Span(1, horizon),), params, rewards=Rewards())
