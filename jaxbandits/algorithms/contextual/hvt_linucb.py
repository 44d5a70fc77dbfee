"""Hvt-UCB (Wang, Zhang, Zhao and Zhou 2025): linear bandits with heavy-tailed noise, one mirror step a play.

Update and scales were read in a summary, the width's constants are recalled:
`docs/formulas/robust_frontier.md#hvt-ucb`.
Axes: [A] arms shown, [d] features.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.linucb import features_of, optimistic, played_feature, scores
from jaxbandits.learners.project_ellipsoid import into_unit_ball
from jaxbandits.numerics import added, dot, lanes_last, left_out, materialize, materialize_all, matvec, pick
from jaxbandits.numerics.packed import pairs
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.theory.linear_robust import heavy_tailed_tuning
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """Numbers of Hvt-UCB and of robust OFUL."""

    # beta_t = offset + slope t^power, times radius_scale
    radius_scale: Any
    offset: Any
    slope: Any
    power: Any
    ridge: Any
    # the noise's scale, or the least one where that is larger
    least_scale: Any
    # C / sqrt(kappa), and 0 without corruption
    corruption: Any
    growth: Any
    tau_0: Any
    theta_norm: Any


class State(NamedTuple):
    """V^-1, and the estimate, of norm at most `theta_norm`."""

    inverse: Float[Array, "d d"]
    theta: Float[Array, " d"]
    # what rounding left out of both, in a long run; otherwise ()
    rest: Any


@lanes_last
def onto_ball(theta: Float[Array, "d ..."], inverse: Float[Array, "d d ..."]) -> Float[Array, "d ..."]:
    """The point of the unit ball nearest to theta in the norm of V."""
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
        score, square = scores(state, [feature[0] for feature in features_of(context, dim)])
        action = optimistic(score, square, width_of(params, t[0]))
        return jnp.full(t.shape, action), None, materialize(jnp.maximum(pick(square, action), 0))

    def encode(params, note, draws, t, context, action, reward, play):
        return played_feature(dim, context, action), reward[0]

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
        v = materialize(matvec(state.inverse, x))
        reach = 1 + weight * dot(x, v)
        shrink, step = materialize_all([weight / reach, residual / (scale * reach)])
        new = -(v[:, None] * v[None, :] * shrink), v * step
        (inverse, theta), rest = added((state.inverse, state.theta), state.rest, new)
        scaled = materialize(theta / params.theta_norm)
        inside = onto_ball(scaled, inverse)
        if state.rest:
            moves = jnp.any(inside != scaled)
            theta, rest = jnp.where(moves, params.theta_norm * inside, theta), (rest[0], jnp.where(moves, 0, rest[1]))
        else:
            theta = params.theta_norm * inside
        return State(inverse, theta, rest), ()

    return Program(init, act, encode, update)


def algorithm_of(
    name: str,
    num_arms: int,
    dim: int,
    horizon: int,
    radius_scale: Scalar,
    corruption_budget: Scalar | None,
    **tuning: Any,
) -> Algorithm:
    """Hvt-UCB under a name; corruption_budget 0: its own, otherwise robust OFUL's."""
    static = integer("num_arms", num_arms, 2), integer("dim", dim, 1)
    horizon = integer("horizon", horizon, 1)
    scale = number("radius_scale", radius_scale, 0.0)
    numbers = heavy_tailed_tuning(static[1], horizon, corruption_budget, **tuning)
    return Algorithm(
        program=program(*static),
        schedule=(Span(1, horizon),),
        params=Params(radius_scale=scale, **numbers._asdict()),
        guarantee=Guarantee(),
        version=(name, 2, static),
        config={},
        rewards=Rewards(),
    )


@factory
def hvt_linucb(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    moment_scale: Scalar,
    moment_order: Scalar = 2.0,
    theta_norm: Scalar = 1.0,
    feature_norm: Scalar = 1.0,
    ridge: Scalar | None = None,
    least_scale: Scalar | None = None,
    growth: Scalar = 4.0,
    failure_prob: Scalar | None = None,
    radius_scale: Scalar = 1.0,
) -> Algorithm:
    """Linear bandits with heavy-tailed noise: optimism on an estimate whose residuals are clipped, one step a play.

    It plays the arm of largest <x, theta> + beta sqrt(x' V^-1 x). Then V grows by the played x x' / (alpha s^2), and
    theta moves by V^-1 x clip(z, -tau, tau) / s with z = (r - <x, theta>) / s, and is projected onto the ball of norm
    B, in the norm of V.

    Parameters
    ----------
    num_arms : int
        Arms K of a decision set, at least 2 [static]. Filled in from the environment.
    dim : int
        Features d of an arm, at least 1 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in by `sweep` and `simulate`.
    moment_scale : float
        nu, at least 0, in units of a reward: E|noise|^moment_order is at most nu^moment_order. The environments' fact
        ``noise_moment(order)`` to the power 1 / order is the least.
    moment_order : float, default 2.0
        Order 1 + e of the bounded moment, in (1, 2].
    theta_norm : float, default 1.0
        Bound B > 0 on the norm of the unknown theta; the estimate is projected onto that ball.
    feature_norm : float, default 1.0
        The largest norm L > 0 of a feature.
    ridge : float, optional
        lambda, in [1e-6, 1e6]. Default: dim.
    least_scale : float, optional
        The least scale of a residual, above 0. Default: 1 / sqrt(horizon).
    growth : float, default 4.0
        alpha > 0: V grows by x x' / (alpha s^2). Larger values take longer steps.
    failure_prob : float, optional
        In (0, 1). Default: 1 / horizon, and 1/2 at horizon 1.
    radius_scale : float, default 1.0
        Multiplies the width beta, also in the scale of a residual, at least 0. With 1 arms are played nearly uniformly
        for a long time, since beta is 4890 at T = 3000; 1e-4 is what others' code of a relative takes.

    Returns
    -------
    Algorithm
        For environments whose contexts are decision sets [K, d], such as `environments.contextual_linear`.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    With q = sqrt(x' V^-1 x) of the decision and rho = (1 - e) / (2 (1 + e)), beta_t = 107 l tau_0 t^rho + sqrt(lambda
    (2 + 4 B^2)), l = ln(2 T^2 / failure_prob); play t has width beta of play t - 1 and the scale s = max(nu,
    least_scale, q sqrt(2 beta / (tau_0 sqrt(alpha) t^rho))), and clips at tau = tau_0 t^rho sqrt(1 + w^2) / w, w = q /
    (sqrt(alpha) s). The formulas page has tau_0. Nothing of earlier plays is kept but V and theta. NaN residuals count
    as 0; infinite ones are clipped. Ties go to the lowest arm within 1e-5 of the largest index.

    References
    ----------
    Wang, Zhang, Zhao and Zhou 2025 (arXiv 2503.00419), of which the abstract was read and a summary; beta is recalled:
    `docs/formulas/robust_frontier.md#hvt-ucb`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.hvt_linucb(num_arms=20, dim=4, horizon=3000, moment_scale=1.0, radius_scale=1e-4)
    >>> algorithm.params.power, algorithm.params.ridge
    (0.0, 4.0)
    """
    return algorithm_of(
        "hvt_linucb",
        num_arms,
        dim,
        horizon,
        radius_scale,
        0.0,
        moment_scale=moment_scale,
        moment_order=moment_order,
        theta_norm=theta_norm,
        feature_norm=feature_norm,
        ridge=ridge,
        least_scale=least_scale,
        growth=growth,
        failure_prob=failure_prob,
    )
