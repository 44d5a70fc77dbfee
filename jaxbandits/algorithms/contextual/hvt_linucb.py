"""Hvt-UCB (Wang, Zhang, Zhao and Zhou 2025): linear bandits with heavy-tailed noise, one mirror step a play.

Axes: [A] arms shown, [d] features.
"""

import math
from functools import cache
from typing import Annotated, Any, NamedTuple, Required, TypedDict, Unpack

import jax.numpy as jnp

from jaxbandits.algorithms.contextual import linucb
from jaxbandits.algorithms.contextual.linucb import FailureProb, Ridge
from jaxbandits.declared import Default, Dim, Example, FeatureNorm, Gt, Horizon, Le, NonNegative, NumArms, Positive
from jaxbandits.learners.project_ellipsoid import into_unit_ball, onto_ball
from jaxbandits.numerics import added, dot, lanes_last, left_out, materialize, materialize_all, pick
from jaxbandits.numerics.packed import MAX_UNROLLED_DIM, pairs, symmetric_product
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Numeric, Scalar
from jaxbandits.validation import factory


class Params(NamedTuple):
    radius_scale: Numeric  # beta_t = offset + slope t^power, times radius_scale
    offset: Numeric
    slope: Numeric
    power: Numeric
    ridge: Numeric
    least_scale: Numeric  # the noise's scale, or the least one where that is larger
    corruption: Numeric  # C / sqrt(kappa), and 0 without corruption
    growth: Numeric
    tau_0: Numeric
    theta_norm: Numeric


class State(NamedTuple):
    """V^-1, and the estimate, of norm at most `theta_norm`."""

    inverse: Float[Array, "d d"]
    theta: Float[Array, " d"]
    rest: Any  # what rounding left out of both, in a long run; otherwise ()


def nearest(theta: Float[Array, " d"], inverse: Float[Array, "d d"]) -> Float[Array, " d"]:
    """The point of the unit ball nearest to theta in the norm of V."""
    if len(theta) <= MAX_UNROLLED_DIM:
        return nearest_apart(theta, inverse)
    return onto_ball(theta[None], materialize(dot(theta, theta))[None] > 1, inverse[None])[0]


@lanes_last
def nearest_apart(theta: Float[Array, "d ..."], inverse: Float[Array, "d d ..."]) -> Float[Array, "d ..."]:
    packed = jnp.stack([inverse[pair] for pair in pairs(len(theta))])
    return into_unit_ball(theta.reshape(len(theta), -1), packed.reshape(len(packed), -1)).reshape(theta.shape)


@cache
def program(num_arms: int, dim: int) -> Program:
    """The functions of Hvt-UCB and of robust OFUL."""

    def growth_at(params, t):
        return jnp.maximum(t, 1).astype(params.power.dtype) ** params.power

    def width_of(params, t):
        """beta of the play before t: the width of play t."""
        return params.radius_scale * (params.offset + params.slope * growth_at(params, t - 1))

    def init(params, draws):
        one = 1 / jnp.asarray(params.ridge, draws.dtype)
        both = one * jnp.eye(dim, dtype=draws.dtype), jnp.zeros(dim, draws.dtype)
        return State(*both, left_out(both, draws.long))

    def act(params, state, draws, t, context):
        score, square = linucb.scores_and_squares(state, linucb.features_of_first_set(context, dim))
        action = linucb.most_optimistic_arm(score, square, width_of(params, t[0]))
        return jnp.full(t.shape, action), None, materialize(jnp.maximum(pick(square, action), 0))

    def encode(params, note, draws, t, context, action, reward, play):
        return linucb.feature_of_play(dim, context, action), reward[0]

    def update(params, state, draws, t, note, message, used):
        square, (x, reward) = note, message
        tiny = jnp.finfo(square.dtype).tiny
        q, grown = jnp.sqrt(square), growth_at(params, t)
        floor = q * jnp.sqrt(2 * width_of(params, t) / (params.tau_0 * jnp.sqrt(params.growth) * grown))
        scale = jnp.maximum(jnp.maximum(params.least_scale, floor), jnp.sqrt(params.corruption * q))
        weight = 1 / (params.growth * scale * scale)
        # sqrt(1 + w^2) / w, finite at x = 0, where the step is 0 in any case
        clip = params.tau_0 * grown * jnp.sqrt(1 + 1 / jnp.maximum(square * weight, tiny))
        residual = (reward - dot(x, state.theta)) / scale
        residual = jnp.where(jnp.isnan(residual), 0, jnp.clip(residual, -clip, clip))
        v = materialize(symmetric_product(state.inverse, x))
        reach = 1 + weight * dot(x, v)
        shrink, step = materialize_all([weight / reach, residual / (scale * reach)])
        new = -(v[:, None] * v[None, :] * shrink), v * step
        (inverse, theta), rest = added((state.inverse, state.theta), state.rest, new)
        scaled = materialize(theta / params.theta_norm)
        inside = nearest(scaled, inverse)
        if state.rest:
            moves = jnp.any(inside != scaled)
            theta, rest = jnp.where(moves, params.theta_norm * inside, theta), (rest[0], jnp.where(moves, 0, rest[1]))
        else:
            theta = params.theta_norm * inside
        return State(inverse, theta, rest), ()

    return Program(init, act, encode, update)


class HeavyTailed(TypedDict, total=False):
    """What Hvt-UCB and robust OFUL take.

    Args:
        moment_scale: nu, in units of a reward: E|noise|^moment_order is at most nu^moment_order. The environments' fact
            ``noise_moment(order)`` to the power 1 / order is the least.
        moment_order: Order 1 + e of the bounded moment.
        theta_norm: Bound B on the norm of the unknown theta; the estimate is projected onto that ball.
        ridge: lambda. The default: dim.
        least_scale: The least scale of a residual. The default: 1 / sqrt(horizon).
        growth: alpha: V grows by x x' / (alpha s^2). Larger values take longer steps.
        radius_scale: Multiplies the width beta, also in the scale of a residual. With 1 arms are played nearly
            uniformly for a long time, since beta is 4890 at T = 3000; 1e-4 is what others' code of a relative takes.
    """

    moment_scale: Required[NonNegative]
    moment_order: Annotated[Scalar, Gt(1), Le(2), Default(2.0)]
    theta_norm: Annotated[Positive, Default(1.0)]
    feature_norm: Annotated[FeatureNorm, Default(1.0)]
    ridge: Annotated[Ridge | None, Default(None)]
    least_scale: Annotated[Positive | None, Default(None)]
    growth: Annotated[Positive, Default(4.0)]
    failure_prob: Annotated[FailureProb, Default(None)]
    radius_scale: Annotated[NonNegative, Default(1.0)]


def heavy_tailed(num_arms: int, dim: int, horizon: int, corruption_budget: Scalar, given: HeavyTailed) -> Algorithm:
    """Hvt-UCB at corruption_budget 0, otherwise robust OFUL."""
    order, growth, failure_prob = given["moment_order"], given["growth"], given["failure_prob"]
    ridge = float(dim) if given["ridge"] is None else given["ridge"]
    least = 1 / math.sqrt(horizon) if given["least_scale"] is None else given["least_scale"]
    power = (2 - order) / (2 * order)
    kappa = dim * math.log1p(given["feature_norm"] ** 2 * horizon / (growth * ridge * least**2 * dim))
    log = math.log(2 * horizon**2 / (1 / max(horizon, 2) if failure_prob is None else failure_prob))
    tau_0 = math.sqrt(2 * kappa) * math.log(3 * horizon) ** power / log ** (1 / order)
    offset = math.sqrt(ridge * (2 + 4 * given["theta_norm"] ** 2))
    params = Params(
        radius_scale=given["radius_scale"],
        offset=offset + 2 * math.sqrt(kappa) if corruption_budget > 0 else offset,
        slope=107 * log * tau_0,
        power=power,
        ridge=ridge,
        least_scale=max(given["moment_scale"], least),
        corruption=corruption_budget / math.sqrt(kappa),
        growth=growth,
        tau_0=tau_0,
        theta_norm=given["theta_norm"],
    )
    return Algorithm(program(num_arms, dim), (Span(1, horizon),), params, rewards=Rewards())


@factory(
    plays_on="decision set",
    example=Example(
        {"moment_scale": 0.8, "moment_order": 1.5, "radius_scale": 1e-4},
        world=("contexts", {"reward": "student", "df": 1.8, "noise_scale": 0.3}),
    ),
    source="""Wang, Zhang, Zhao and Zhou 2025 (arXiv 2503.00419), of which the abstract was read and a summary; beta is
        recalled: `docs/formulas/robust_frontier.md#hvt-ucb`.""",
)
def hvt_linucb(*, num_arms: NumArms, dim: Dim, horizon: Horizon, **given: Unpack[HeavyTailed]) -> Algorithm:
    """Linear bandits with heavy-tailed noise: optimism on an estimate whose residuals are clipped, one step a play.

    It plays the arm of largest <x, theta> + beta sqrt(x' V^-1 x). Then V grows by the played x x' / (alpha s^2), and
    theta moves by V^-1 x clip(z, -tau, tau) / s with z = (r - <x, theta>) / s, and is projected onto the ball of norm
    B, in the norm of V.

    Note:
        With q = sqrt(x' V^-1 x) of the decision and rho = (1 - e) / (2 (1 + e)), beta_t = 107 l tau_0 t^rho +
        sqrt(lambda (2 + 4 B^2)), l = ln(2 T^2 / failure_prob); play t has width beta of play t - 1 and the scale s =
        max(nu, least_scale, q sqrt(2 beta / (tau_0 sqrt(alpha) t^rho))), and clips at tau = tau_0 t^rho sqrt(1 + w^2) /
        w, w = q / (sqrt(alpha) s). The formulas page has tau_0. Nothing of earlier plays is kept but V and theta. NaN
        residuals count as 0; infinite ones are clipped. Ties go to the lowest arm within 1e-5 of the largest index.

    >>> algorithm = jb.algorithms.hvt_linucb(num_arms=20, dim=4, horizon=3000, moment_scale=1.0, radius_scale=1e-4)
    >>> algorithm.params.power, algorithm.params.ridge
    (0.0, 4.0)
    """
    return heavy_tailed(num_arms, dim, horizon, 0.0, given)
