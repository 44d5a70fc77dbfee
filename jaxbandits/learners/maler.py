"""Maler (Wang, Lu and Zhang 2019), the learner of OnlineUCB.

The paper is "Adaptivity and optimality: a universal algorithm for online convex optimization". Maler is
Algorithm 3 of "Improved rate for locally differentially private linear bandits", whose print leaves it to the
citation: constants are recalled, see docs/formulas/ldp_contextual.md#maler.

Experts with step sizes on a grid, for convex, strongly convex (sc) and exp-concave (ec, online Newton) losses,
and exponential weights tilted by the step sizes. Only gradients at the prediction are needed.

Everything is kept in the unit ball, with gradients divided by their bound G: the bounds then scale what goes in
and out, and no constant of the algorithm depends on them. In these units the step sizes are a_i = 2^-i / 10 and
a_c = 1 / (4 sqrt T), and the diameter is 2.

Axes: [d] features, [N] pairs of sc and ec experts, N = ceil(log2(T) / 2) + 1, [E] all 2 N + 1: convex, sc, ec.
"""

import math
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge

from jaxbandits.learners.learner import Dim, Dtype, GradientBound, Learner, OneLane, Radius, gradient_of, positive
from jaxbandits.learners.perturbed import array_of_literals
from jaxbandits.learners.project_ellipsoid import onto_ball, to_unit_sphere
from jaxbandits.numerics import count, dot, fixed_sum, materialize, materialize_all
from jaxbandits.numerics.device_forms import lane_kernel
from jaxbandits.numerics.few import at_the_few
from jaxbandits.numerics.packed import MAX_UNROLLED_DIM, pairs, triangle
from jaxbandits.numerics.sums import contraction
from jaxbandits.typing import Array, DType, Float, Int, Numeric
from jaxbandits.validation import declare, integer

CURVATURE = 25 / 56  # b = min(1 / (4 G_l diam), 1) / 2 with G_l = 7 / (25 diam)
LOG_ZERO = -1e30  # log prior of an expert that an epoch does not have


class State(NamedTuple):
    """Up to `MAX_UNROLLED_DIM` features: points in the unit ball, the feature axis first."""

    prediction: Float[Array, " d"]
    convex: Float[Array, " d"]
    strong: Float[Array, "d N"]
    newton: Float[Array, "d N"]
    inverse: Float[Array, "n N"]  # A^-1 of the Newton experts, the upper triangles by rows (`numerics.packed`)
    log_weights: Float[Array, " E"]  # of normalised weights
    tilt: Float[Array, ""]  # a_c
    t: Int[Array, ""]  # plays so far


class ArrayState(NamedTuple):
    """`State` of more features: the feature axis last."""

    prediction: Float[Array, " d"]
    points: Float[Array, "E d"]
    inverse: Float[Array, "N d d"]
    log_weights: Float[Array, " E"]
    tilts: Float[Array, " E"]  # the step sizes of all experts
    t: Int[Array, ""]


def num_pairs(horizon: int) -> int:
    """N: how many step sizes a_0, a_1, ... Maler takes for T rounds."""
    return 1 + ((horizon - 1).bit_length() + 1) // 2


def steps(n: int) -> np.ndarray[Any, Any]:
    """The step sizes a_i of n pairs."""
    return 0.1 * 2.0 ** -np.arange(n)


def log_priors(n: int, num_rounds: Numeric, dtype: DType) -> Float[Array, " E"]:
    """Log priors of the experts of n pairs, for T = num_rounds, a number or an integer array.

    The convex expert has 1/3, every other one c / (3 (i + 1) (i + 2)) with c = 1 + 1 / (n_T + 1). Pair i is
    there while i <= n_T = ceil(log2(T) / 2), that is 4^(i - 1) < T; the others have no weight. The weights sum
    to one.
    """
    edges = [4**i // 4 for i in range(n)]
    if isinstance(num_rounds, jax.Array):
        largest = int(jnp.iinfo(num_rounds.dtype).max)
        used = jnp.array([min(edge, largest) for edge in edges], num_rounds.dtype) < num_rounds
    else:
        used = jnp.array([edge < num_rounds for edge in edges])
    i = np.arange(n)
    prior = jnp.asarray(1 / (3 * (i + 1) * (i + 2)), dtype) * (1 + 1 / count(used).astype(dtype))
    pair = jnp.where(used, jnp.log(prior), jnp.asarray(LOG_ZERO, dtype))
    return jnp.concatenate([jnp.full(1, -math.log(3), dtype), pair, pair])


@cache
def _kernel(dim: int, n: int):
    """(state, gradient [d] over its bound) -> state.

    Written out, lanes are last, [...] any number of them. Of arrays this is one lane.
    """
    return lane_kernel(partial(_update_apart, n)) if dim <= MAX_UNROLLED_DIM else partial(_update, n)


def _update_apart(n: int, state: State, g: Float[Array, "d ..."]) -> State:
    """The step written out, lanes last. Kept as it is, to the bit, beside `_update`."""
    dtype = g.dtype
    a = array_of_literals(steps(n), dtype).reshape(n, *(1,) * (g.ndim - 1))
    t = (state.t + 1).astype(dtype)
    log_weights = state.log_weights

    def clip_to_unit_ball(x):
        norm = jnp.sqrt(_square_norm(x))[None]
        return x / jnp.maximum(norm, 1)

    # surrogates at the experts' points before they move
    regret = fixed_sum((state.prediction - state.convex) * g, axis=0)
    convex_loss = (2 * state.tilt) ** 2 - state.tilt * regret
    away = state.prediction[:, None] - state.strong
    strong_loss = a * (a * _square_norm(away) - fixed_sum(away * g[:, None], axis=0))
    regret = fixed_sum((state.prediction[:, None] - state.newton) * g[:, None], axis=0)
    newton_loss = a * regret * (a * regret - 1)
    losses = jnp.concatenate([convex_loss[None], strong_loss, newton_loss])
    log_weights = materialize(log_weights - losses)

    convex = clip_to_unit_ball(state.convex - (2 / jnp.sqrt(t))[None] * g)
    strong = clip_to_unit_ball(state.strong + (away - g[:, None] / (2 * a)[None]) / t[None, None])

    # online Newton: A + h h', h = step g, by Sherman and Morrison
    newton, inverse = _newton_apart(state.newton, state.inverse, g, a * (1 - 2 * a * regret))

    # predict: weights times tilts; log weights are of normalised weights, so that nothing overflows
    weights = materialize(jnp.exp(log_weights))
    log_weights = log_weights - jnp.log(fixed_sum(weights, axis=0))[None]
    first = weights[0] * state.tilt
    pair = a * weights[1 : n + 1], a * weights[n + 1 :]
    total = first + fixed_sum(pair[0] + pair[1], axis=0)
    prediction = first[None] * convex + fixed_sum(pair[0][None] * strong + pair[1][None] * newton, axis=1)
    prediction = prediction / total[None]
    return State(prediction, convex, strong, newton, inverse, log_weights, state.tilt, _next(state.t))


def _square_norm(x: Float[Array, "d ..."]) -> Float[Array, "..."]:
    return fixed_sum(x * x, axis=0)


def _next(t: Int[Array, "..."]) -> Int[Array, "..."]:
    return jnp.minimum(t, 2**31 - 3) + 1  # does not wrap


def _update(n: int, state: ArrayState, g: Float[Array, " d"]) -> ArrayState:
    """`_update_apart` of arrays. What all experts do is one operation, since every kernel takes time to compile."""
    tilts, a, g = state.tilts, array_of_literals(steps(n), g.dtype), materialize(g)
    away = state.prediction[None] - state.points
    regrets, squares = dot(away, g[None]), dot(away[1 : n + 1], away[1 : n + 1])
    sums = materialize(jnp.concatenate([regrets, squares]))
    regrets, squares = sums[: 2 * n + 1], sums[2 * n + 1 :]
    # surrogates a (a s - r) at the points before they move: s is 4, the squared distance, or the squared regret r
    squares = jnp.concatenate([jnp.full(1, 4, g.dtype), squares, regrets[n + 1 :] ** 2])
    log_weights = materialize(state.log_weights - tilts * (tilts * squares - regrets))

    # how far the points of the convex and the strongly convex experts move to the prediction, and against the gradient
    t = (state.t + 1).astype(g.dtype)
    share, rate = jnp.where(np.arange(n + 1) > 0, 1 / t, 0), jnp.concatenate([(2 / jnp.sqrt(t))[None], 1 / (2 * t * a)])
    share, rate = materialize_all([share, rate])
    moved = state.points[: n + 1] + share[:, None] * away[: n + 1] - rate[:, None] * g[None]
    newton, inverse = _newton_step(state.points[n + 1 :], state.inverse, g, a * (1 - 2 * a * regrets[n + 1 :]))
    moved = materialize(jnp.concatenate([moved, newton]))
    square = materialize(dot(moved, moved))
    scaled = jnp.where(np.arange(2 * n + 1) <= n, jnp.maximum(jnp.sqrt(square), 1), 1)
    points = onto_ball(materialize(moved / scaled[:, None]), square[n + 1 :] > 1, inverse)

    weights = materialize(jnp.exp(log_weights))
    tilted = weights * tilts
    size, total = materialize_all([jnp.log(fixed_sum(weights)), fixed_sum(tilted)])
    prediction = fixed_sum(tilted[:, None] * points, axis=0) / total
    return ArrayState(prediction, points, inverse, log_weights - size, tilts, _next(state.t))


def _newton_apart(newton, inverse, g, step):
    """The Newton experts after h = step g, and A^-1, by its entries; lanes last."""
    dim = len(g)
    at = triangle(dim)
    v = [step * fixed_sum(jnp.stack([inverse[at[i, j]] * g[j][None] for j in range(dim)]), axis=0) for i in range(dim)]
    along = step * fixed_sum(jnp.stack([v[j] * g[j][None] for j in range(dim)]), axis=0)
    *v, shrink = materialize_all([*v, 1 / (1 + along)])
    inverse = jnp.stack([inverse[k] - v[i] * v[j] * shrink for (i, j), k in at.items() if i <= j])
    y = materialize(newton - jnp.stack(v) * (shrink / CURVATURE)[None])
    outside = fixed_sum(y * y, axis=0) > 1
    flat = at_the_few(outside.reshape(-1), to_unit_sphere, y.reshape(dim, -1), inverse.reshape(len(inverse), -1))
    return flat.reshape(y.shape), inverse


def _newton_step(newton, inverse, g, step):
    """`_newton_apart` of arrays [N, d, d], for one lane; its points may lie outside the ball."""
    v = materialize(step[:, None] * contraction(inverse, g[None, :, None], axis=1))
    shrink = materialize(1 / (1 + step * dot(v, g[None])))
    return newton - v * (shrink / CURVATURE)[:, None], inverse - v[:, :, None] * v[:, None, :] * shrink[:, None, None]


@declare(
    source='Wang, Lu and Zhang, UAI 2019, as Algorithm 3 of "Improved rate for locally differentially private '
    'linear bandits" uses it. Constants are recalled: docs/formulas/ldp_contextual.md#maler'
)
def maler(
    dim: Dim,
    horizon: Annotated[int, Ge(1)],
    theta_bound: Radius,
    gradient_bound: GradientBound,
    *,
    num_rounds: int | Int[Array, ""] | None = None,
    dtype: Dtype | None = None,
) -> OneLane:
    """Maler: one learner for convex, strongly convex and exp-concave losses on a ball around 0.

    Args:
        horizon: Number of rounds T. It fixes shapes: there are N = ceil(log2(horizon) / 2) + 1 step sizes, and 2 N + 1
            experts. Rounds beyond it are allowed and have no guarantee.
        num_rounds (int or jax.Array, optional): T where that is shorter than `horizon`, a number or a traced int32, so
            that epochs of different lengths share one program: experts that T rounds do not have get no weight. The
            default: `horizon`.

    Note:
        Gradients have norm at most G and are finite: the caller clips, and keeps NaN out. The first prediction is 0.
        Every prediction and every expert stays in the ball, up to rounding.

        Only the experts that leave the ball are projected. Up to 8 features lanes go last under vmap, and a projection
        is 8 Newton steps, which leave an error of 4e-6 at condition number 1e3. Above, matrices are arrays, and an
        expert takes as many steps as it needs.

    >>> import jax, jax.numpy as jnp
    >>> import jaxbandits as jb
    >>> learner = jb.learners.maler(dim=2, horizon=1000, theta_bound=1.0, gradient_bound=4.0)
    >>> target = jnp.array([0.5, -0.25])
    >>> def play(state, _):
    ...     return learner.update(state, 2 * (learner.predict(state) - target)), None
    >>> state, _ = jax.lax.scan(play, learner.init(), length=1000)
    >>> bool(jnp.abs(learner.predict(state) - target).max() < 0.01)
    True
    """
    theta_bound, gradient_bound = positive("theta_bound", theta_bound), positive("gradient_bound", gradient_bound)
    if num_rounds is None:
        num_rounds = horizon
    elif not isinstance(num_rounds, jax.Array):
        num_rounds = integer("num_rounds", num_rounds, 1, horizon, remedy="horizon is that of the longest epoch")
    dtype = jnp.zeros((), dtype).dtype
    n = num_pairs(horizon)
    radius, scale = jnp.asarray(theta_bound, dtype), 1 / jnp.asarray(gradient_bound, dtype)

    def init():
        inverse = (2 * CURVATURE) ** 2 * np.broadcast_to(np.eye(dim), (n, dim, dim))
        if dim <= MAX_UNROLLED_DIM:
            inverse = np.stack([inverse[:, i, j] for i, j in pairs(dim)])
        rounds = num_rounds.astype(dtype) if isinstance(num_rounds, jax.Array) else float(num_rounds)
        tilt = jnp.asarray(0.25 / jnp.sqrt(rounds), dtype)
        inverse, log_weights, t = jnp.asarray(inverse, dtype), log_priors(n, num_rounds, dtype), jnp.int32(0)
        if dim > MAX_UNROLLED_DIM:
            tilts = jnp.concatenate([tilt[None], *[array_of_literals(steps(n), dtype)] * 2])
            points = jnp.zeros((2 * n + 1, dim), dtype)
            return ArrayState(jnp.zeros(dim, dtype), points, inverse, log_weights, tilts, t)
        zeros = jnp.zeros((dim, n), dtype)
        return State(zeros[:, 0], zeros[:, 0], zeros, zeros, inverse, log_weights, tilt, t)

    def predict(state):
        return radius * state.prediction

    def update(state, gradient):
        return _kernel(dim, n)(state, scale * gradient_of(gradient, state.prediction))

    return Learner(init, predict, update)
