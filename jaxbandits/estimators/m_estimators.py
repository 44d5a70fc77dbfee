"""M-estimators of location: Catoni's of a mean, and Huber's with a given clip."""

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxbandits.declared import TRACED, Doc, Inside, Positive
from jaxbandits.estimators._inputs import Sample, sample
from jaxbandits.numerics import count, fixed_sum
from jaxbandits.typing import Array, Bool, Float, Numeric
from jaxbandits.validation import declare

Roots: TypeAlias = Float[Array, "..."]


def decreasing_root(
    function: Callable[..., Any], start: Roots, low: Roots, high: Roots, scale: Numeric, wanted: Numeric = True
) -> Roots:
    """Roots in [low, high] of decreasing functions, by Newton steps.

    Where a step would leave the bracket it is halved instead.
    `function` takes theta [...] and returns the values and the slopes of their negatives. Several roots are sought
    together; those that are not `wanted` stay at `start`. Roots are exact to four units in the last place of
    `|theta|` + scale.
    """
    eps = 4 * jnp.finfo(start.dtype).eps

    def roots_left(carry):
        return jnp.any(carry[3]) & (carry[4] < 200)

    def newton_step(carry):
        theta, low, high, todo, step = carry
        value, slope = function(theta)
        low, high = jnp.where(value > 0, theta, low), jnp.where(value < 0, theta, high)
        move = value / jnp.maximum(slope, jnp.finfo(slope.dtype).tiny)
        near = (jnp.abs(move) <= eps * (jnp.abs(theta) + scale)) | (high - low <= eps * (jnp.abs(theta) + scale))
        moved = theta + move
        inside = (moved > low) & (moved < high)
        moved = jnp.where(inside, moved, jnp.where(near, jnp.clip(moved, low, high), low / 2 + high / 2))
        return jnp.where(todo, moved, theta), low, high, todo & ~near, step + 1

    todo = jnp.broadcast_to(jnp.asarray(wanted), start.shape)
    start = jnp.where(todo, jnp.clip(start, low, high), start)
    return jax.lax.while_loop(roots_left, newton_step, (start, low, high, todo, jnp.int32(0)))[0]


# ---- Catoni 2012


def influence(y: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """The influence psi(y) = sgn(y) ln(1 + `|y|` + y^2/2) and its derivative, elementwise."""
    size = jnp.minimum(jnp.abs(y), 1e150 if y.dtype == jnp.float64 else 1e18)  # the square stays finite
    inner = size + size * size / 2
    return jnp.sign(y) * jnp.log1p(inner), (1 + size) / (1 + inner)


def catoni_scale(pulls: Numeric, variance: Numeric, log_term: Numeric) -> Float[Array, "..."]:
    """The scale a = sqrt(2 l / (n (v + 2 v l / (n - 2 l)))) for n > 2 l pulls, l = ln(1 / failure_prob)."""
    return jnp.sqrt(2 * log_term / (pulls * variance * (1 + 2 * log_term / (pulls - 2 * log_term))))


@declare(
    source="Catoni 2012, in the form of Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 3, recalled and not read "
    "again: `docs/formulas/private_robust_mab.md#robust-ucb`."
)
def catoni_mean(
    x: Sample, variance: Annotated[Positive | Array, TRACED], failure_prob: Annotated[Inside | Array, TRACED]
) -> Annotated[Float[Array, ""], Doc("Within 2 sqrt(v l / n) of the mean with probability 1 - 2 failure_prob.")]:
    """Catoni's M-estimator of a mean, for values of which only the variance is bounded.

    It is the root theta of sum_i psi(a (x_i - theta)) with psi(y) = sgn(y) ln(1 + `|y|` + y^2/2) and, with
    l = ln(1 / failure_prob), a = sqrt(2 l / (n (v + 2 v l / (n - 2 l)))).

    Args:
        variance: A bound v on the variance, in units of a value squared.
        failure_prob: Large enough that n >= 4 l; where it is traced, a value below exp(-n / 4) gives NaN.

    Note:
        Derivatives with respect to x, `variance` and `failure_prob` are those of the root, by implicit differentiation.
        They exist everywhere.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([0.0, 0.2, 0.1, 0.3, -0.1, 0.1, 0.1, 1e6])
    >>> 0.1 < float(catoni_mean(x, 1.0, 0.2)) < 20
    True
    """
    x = sample(x)
    least = -4 * math.log(failure_prob) if isinstance(failure_prob, float) else 0.0
    if len(x) < least:
        raise ValueError(
            f"x has {len(x)} values; failure_prob = {failure_prob:g} needs at least {math.ceil(least)}: "
            "raise failure_prob"
        )
    return _root(x, jnp.asarray(variance, x.dtype), -jnp.log(jnp.asarray(failure_prob, x.dtype)))


@jax.custom_jvp
@jax.jit
def _root(x: Array, variance: Numeric, log_term: Numeric) -> Float[Array, ""]:
    enough = len(x) >= log_term * 3.9999
    a = catoni_scale(len(x), variance, jnp.where(enough, log_term, 0))

    def slack(theta):
        value, slope = influence(a * (x - theta))
        return fixed_sum(value), a * fixed_sum(slope)

    root = decreasing_root(slack, jnp.median(x), jnp.min(x), jnp.max(x), jnp.sqrt(variance))
    return jnp.where(enough, root, jnp.nan)


@_root.defjvp
@jax.jit
def _(primals, tangents):
    (x, *given), root = primals, _root(*primals)
    a, stretch = jax.jvp(partial(catoni_scale, len(x)), given, [*tangents[1:]])
    _, slope = influence(a * (x - root))
    return root, fixed_sum(slope * (tangents[0] + (x - root) * (stretch / a))) / fixed_sum(slope)


# ---- Huber 1964


def location(x: Float[Array, " n"], present: Bool[Array, " n"], clip: Numeric, start: Array) -> Float[Array, ""]:
    """The location of those values of x that are present: the middle of all minimisers, searched from `start`."""
    low = jnp.min(jnp.where(present, x, jnp.inf))
    high = jnp.max(jnp.where(present, x, -jnp.inf))

    def pull(theta):
        off = x - theta
        inside = count(present & (jnp.abs(off) <= clip)).astype(x.dtype)
        return fixed_sum(jnp.where(present, jnp.clip(off, -clip, clip), 0)), inside

    theta = decreasing_root(pull, start, low, high, clip)
    # Where no value is within the clip, as many lie above as below, and every point between them that is at least
    # `clip` away from all is a minimiser.
    off = x - theta
    flat = ~jnp.any(present & (jnp.abs(off) < clip * (1 - 1e-5)))
    left = jnp.max(jnp.where(present & (off < 0), x, -jnp.inf)) + clip
    right = jnp.min(jnp.where(present & (off > 0), x, jnp.inf)) - clip
    return jnp.where(flat & (left < right) & jnp.isfinite(left) & jnp.isfinite(right), left / 2 + right / 2, theta)


@declare(source="Huber 1964: `docs/formulas/private_robust_mab.md#huber-ucb`.")
def huber_location(
    x: Sample, clip: Annotated[Positive | Array, TRACED]
) -> Annotated[Float[Array, ""], Doc("Where the minimisers are an interval, its middle.")]:
    """Huber's estimate of location: between the median (small clip) and the mean (large clip).

    It is the theta that minimises sum_i rho(x_i - theta), rho being quadratic within `clip` and linear beyond. The
    distances x_i - theta, cut at plus and minus `clip`, then sum to 0.

    Args:
        clip: Distance at which a value's influence is cut, in units of a value.

    Note:
        Derivatives with respect to x and `clip` are those of the minimiser, by implicit differentiation: values within
        `clip` share what moves it, or, where there are none, its two neighbours. At a distance of exactly `clip` there
        is no derivative, and the value counts as within.

    >>> import jax.numpy as jnp
    >>> float(huber_location(jnp.array([0.0, 1.0, 2.0, 1e6]), 1.5))
    1.5
    """
    x = sample(x)
    return _of_all(x, jnp.asarray(clip, x.dtype))


@jax.custom_jvp
@jax.jit
def _of_all(x: Array, clip: Numeric) -> Float[Array, ""]:
    return location(x, jnp.ones(x.shape, bool), clip, jnp.median(x))


@_of_all.defjvp
@jax.jit
def _(primals, tangents):
    (x, clip), theta = primals, _of_all(*primals)
    off = x - theta
    inside = jnp.abs(off) <= clip
    below = (off < 0) & (x == jnp.max(jnp.where(off < 0, x, -jnp.inf)))
    above = (off > 0) & (x == jnp.min(jnp.where(off > 0, x, jnp.inf)))
    # where none is inside, theta is the middle between two neighbours
    inside, below, above = (each.astype(x.dtype) for each in (inside, below, above))
    inner, low, high = (each / jnp.maximum(fixed_sum(each), 1) for each in (inside, below, above))
    share = jnp.where(fixed_sum(inside) > 0, inner, low / 2 + high / 2)
    farther = fixed_sum(jnp.sign(off) * (1 - inside)) / jnp.maximum(fixed_sum(inside), 1)
    return theta, fixed_sum(share * tangents[0]) + farther * tangents[1]
