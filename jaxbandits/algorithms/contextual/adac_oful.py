"""AdaC-OFUL (Azize and Basu 2023): optimism on sums that are released, with noise, when the design has grown enough.

Axes: [A] arms shown, [d] features. Draws: `alg/update/noise`, d normals at the play of a release.
"""

import math
from functools import cache
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.contextual import linucb
from jaxbandits.algorithms.contextual.linucb import FailureProb, Ridge
from jaxbandits.algorithms.contextual.statistics import clip_pair
from jaxbandits.declared import Dim, Doc, Example, Ge, Horizon, Le, NonNegative, NumArms, Positive, Remedy, StatedDelta
from jaxbandits.mechanisms.composition import delta_of_params, gaussian_event, guarantee, view_released
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.numerics import added, dot, lanes_last, left_out, materialize, matvec, tree_where
from jaxbandits.numerics.few import at_the_few
from jaxbandits.numerics.packed import split_features, stack_features, symmetric_product
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Bool, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory


class Params(NamedTuple):
    ridge: Numeric
    growth: Numeric  # a release follows once the log-determinant has grown by more than this
    deviation: Numeric  # of the noise of one release
    radius_scale: Numeric
    noise_scale: Numeric
    shrinkage: Any  # sqrt(ridge) theta_bound
    failure_prob: Numeric  # of all confidence sets together
    delta: Numeric  # of the claim in (epsilon, delta); no play reads it
    mechanism_scale: Numeric  # multiplies the noise, not what the widths allow for


class Released(NamedTuple):
    """What actions follow from until the next release."""

    sum: Float[Array, " d"]  # the noisy sum of x r
    theta: Float[Array, " d"]
    inverse: Float[Array, "d d"]  # V^-1 of the release
    log_det: Float[Array, ""]  # ln det V - ln det(ridge I)
    width: Float[Array, ""]
    releases: Int[Array, ""]


class State(NamedTuple):
    """The exact design so far, and the sum of x r since the last release."""

    inverse: Float[Array, "d d"]
    log_det: Float[Array, ""]
    pending: Float[Array, " d"]
    released: Released
    rest: Any  # what rounding left out of the first three, in a long run; otherwise ()


def _largest_eigenvalues(_: object, entries: Float[Array, "n L"]) -> Float[Array, "1 L"]:
    """Of positive definite matrices, n = d^2, to 1e-5 d: the mean eigenvalue, weighted by its 2^16th power."""
    dim = math.isqrt(entries.shape[0])
    matrix = entries.reshape(dim, dim, -1)

    def sum_diagonal(x):
        return sum(x[i, i] for i in range(dim))

    def square(_, power):
        power = power / sum_diagonal(power)[None, None]
        return sum(power[:, k, None] * power[k, None] for k in range(dim))

    power = lax.fori_loop(0, 16, square, matrix)
    weighted = sum(matrix[i, j] * power[i, j] for i in range(dim) for j in range(dim))
    return (weighted / sum_diagonal(power))[None]


@lanes_last
def largest_eigenvalue(wanted: Bool[Array, "*L"], matrix: Float[Array, "d d *L"]) -> Float[Array, "*L"]:
    """The largest eigenvalue where it is wanted, else 1."""
    ones, entries = jnp.ones((1, wanted.size), matrix.dtype), matrix.reshape(matrix.shape[0] ** 2, -1)
    return at_the_few(wanted.reshape(-1), _largest_eigenvalues, ones, entries).reshape(wanted.shape)


def width_of(params: Params, log_det: Array, releases: Array, largest: Array, dim: int) -> Array:
    """The radius of the confidence set; `largest` is the largest eigenvalue of V^-1."""
    own = params.noise_scale * jnp.sqrt(-2 * jnp.log(params.failure_prob / 2) + log_det)
    tail = jnp.sqrt(2 * (2 * jnp.log(math.pi * jnp.maximum(releases, 1)) - jnp.log(3 * params.failure_prob)))
    private = params.deviation * jnp.sqrt(releases * largest) * (math.sqrt(dim) + tail)
    return own + params.shrinkage + private


@cache
def program(num_arms: int, dim: int) -> Program:
    """The functions of AdaC-OFUL."""

    def init(params, draws):
        dtype = draws.dtype
        zero, none = jnp.zeros((), dtype), jnp.zeros(dim, dtype)
        inverse = jnp.eye(dim, dtype=dtype) / jnp.asarray(params.ridge, dtype)
        width = width_of(params, zero, zero, zero, dim).astype(dtype)
        released = Released(none, none, inverse, zero, width, jnp.int32(0))
        return State(inverse, zero, none, released, left_out((inverse, zero, none), draws.long))

    def act(params, state, draws, t, context):
        now = state.released
        score, square = linucb.scores_and_squares(now, linucb.features_of_first_set(context, dim))
        action = linucb.most_optimistic_arm(score, square, params.radius_scale * now.width)
        return jnp.full(t.shape, action), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        x, y = clip_pair(split_features(context[0, action[0]]), reward[0], 1.0)
        return stack_features(x), y

    def update(params, state, draws, t, note, message, used):
        x, y = message
        v = materialize(symmetric_product(state.inverse, x))
        square = materialize(dot(x, v))
        new = -(v[:, None] * v[None, :] / (1 + square)), jnp.log1p(square), x * y
        (inverse, log_det, pending), rest = added(state[:3], state.rest, new)
        before = state.released
        due = log_det - before.log_det > params.growth
        noise = jnp.stack(draws.child("noise").normals(t, dim))
        total = before.sum + pending + params.mechanism_scale * params.deviation * noise
        releases = before.releases + 1
        largest = largest_eigenvalue(due, inverse)
        width = width_of(params, log_det, releases.astype(y.dtype), largest, dim)
        theta = matvec(inverse, total)
        now = tree_where(due, Released(total, theta, inverse, log_det, width, releases), before)
        shown = jnp.where(due, total, jnp.nan)
        pending, *begun = (jnp.where(due, 0, x) for x in (pending, *rest[2:]))
        return State(inverse, log_det, pending, now, (*rest[:2], *begun)), shown

    def diagnose(params, state):
        return {"releases": state.released.releases}

    return Program(init, act, encode, update, diagnose=diagnose)


def _events(params):
    scale = params.deviation * params.mechanism_scale
    return (gaussian_event("sum of a phase's x r, r in [0, 1]", 1.0, scale, running=True),)


@factory(
    plays_on="decision set",
    example=Example({"rho": 2.0, "delta": 0.01, "radius_scale": 0.2}),
    source="""Azize and Basu 2023 (arXiv 2309.00557), whose constants were not readable; widths are this package's:
        `docs/formulas/private_frontier.md#adac-oful`.""",
)
def adac_oful(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Horizon,
    rho: Annotated[Scalar, Ge(1e-24), Le(math.inf), Remedy("use float('inf') for no noise")],
    growth: Annotated[Positive, Doc("By which share det V grows between releases.")] = 1.0,
    ridge: Ridge = 1.0,
    noise_scale: Annotated[NonNegative, Doc("The rewards' sub-Gaussian scale; 1/2 holds for rewards in [0, 1].")] = 0.5,
    theta_bound: Annotated[NonNegative, Doc("Largest norm of theta that the widths allow for.")] = 1.0,
    radius_scale: Annotated[NonNegative, Doc("Multiplies the width.")] = 1.0,
    failure_prob: FailureProb = None,
    delta: StatedDelta | None = None,
) -> Algorithm:
    """OFUL on rarely released sums: contexts are public, rewards are protected by Gaussian noise.

    V = ridge I + sum x x' is exact. Once ln det V exceeds its value at the last release by more than ln(1 + growth),
    the sum of x r since then is added to the released one with N(0, I / (2 rho)). With theta = V0^-1 times that, V0 the
    V of the release, the arm of largest <x, theta> + radius_scale width sqrt(x' V0^-1 x) is played; before the first
    release theta = 0 and V0 = ridge I.

    Args:
        rho: Budget of zero-concentrated privacy; inf: no noise.

    Returns:
        rho-zCDP in the central model, exactly sqrt(2 rho)-GDP; the unit of privacy is the reward of one play, contexts
        are public. Diagnostic: ``releases`` made by the horizon.

    Note:
        After m releases width = noise_scale sqrt(2 ln(2 / p) + ln(det V0 / det(ridge I))) + sqrt(ridge) theta_bound +
        sqrt(m e / (2 rho)) (sqrt(d) + sqrt(2 ln(pi^2 m^2 / (3 p)))), p = failure_prob and e the largest eigenvalue of
        V0^-1. Features of norm above 1 are scaled down to 1, rewards are clipped to [0, 1], and NaN counts as 0. Ties
        within 1e-5 go to the lowest arm. Every reward enters one release; there are at most d ln(1 + T / (d ridge)) /
        ln(1 + growth).

    >>> algorithm = jb.algorithms.adac_oful(num_arms=20, dim=5, horizon=5000, rho=0.5)
    >>> algorithm.params.deviation, round(jb.mechanisms.gdp(algorithm.guarantee.events(algorithm.params)), 6)
    (1.0, 1.0)
    """
    params = Params(
        ridge=ridge,
        growth=math.log1p(growth),
        deviation=1 / math.sqrt(2 * rho),
        radius_scale=radius_scale,
        noise_scale=noise_scale,
        shrinkage=math.sqrt(ridge) * theta_bound,
        failure_prob=1 / max(horizon, 2) if failure_prob is None else failure_prob,
        delta=default_delta(delta, horizon, 1e-5),
        mechanism_scale=1.0,
    )
    claim = guarantee("central", "reward", _events, view_released, delta=delta_of_params)
    claim = claim._replace(claimed=claim.spend(params)[0])
    return Algorithm(program(num_arms, dim), (Span(1, horizon),), params, claim, rewards=Rewards(0.0, 1.0, "clip"))
