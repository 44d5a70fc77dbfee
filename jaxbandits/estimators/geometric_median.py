"""The geometric median by smoothed Weiszfeld iterations (Pillutla, Kakade and Harchaoui 2019, RFA).

`pulls` and `step` are one iteration (`docs/formulas/byzantine.md#weiszfeld`). Three functions repeat it: `warm_median`
(federated rules, a fixed number of steps from the last median: `docs/formulas/byzantine.md#starting-point`),
`plain_median` (many points, no certificate), and `geometric_median`, with an exact snap to a data point and a bound on
what is missing.

Axes: [N] points, [p] coordinates, [...] any number of lanes, which lie in the last axes: a vector register then
holds one number of eight problems, and sums over N and p are plain elementwise additions in a fixed order.
"""

from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.declared import STATIC, TRACED, Doc, Ge, Kind, NonNegative
from jaxbandits.estimators._inputs import Points, cloud
from jaxbandits.numerics import count, dot, fixed_sum, materialize, matvec, product, safe_norm
from jaxbandits.numerics.device_forms import lane_kernel
from jaxbandits.typing import Array, Bool, DType, Float, Numeric, Vector
from jaxbandits.validation import array, declare

SMOOTHING = 1e-4  # nu_s, in units of the median distance: smaller distances count as this much


class Warm(NamedTuple):
    """A median and the weights that gave it: the two starts of the next one."""

    weights: Float[Array, " N"]  # sum 1
    value: Float[Array, " p"]


def distances(points: Float[Array, "N p ..."], z: Float[Array, "p ..."]) -> Float[Array, "N ..."]:
    """||z - z_i||."""
    away = points - z[None]
    return jnp.sqrt(fixed_sum(away * away, axis=1))


def mean_by_weights(points: Float[Array, "N p ..."], weights: Float[Array, "N ..."]) -> Float[Array, "p ..."]:
    """Sum of weights times points, for weights of sum 1."""
    return fixed_sum(points * weights[:, None], axis=0)


def pulls(
    points: Float[Array, "N p ..."], weights: Float[Array, "N ..."], z: Float[Array, "p ..."], smoothing: Any
) -> Float[Array, "N ..."]:
    """How strongly each point pulls the next iterate: its weight over its distance from z, at least `smoothing`."""
    least = smoothing[None] if jnp.ndim(smoothing) else smoothing
    return weights / jnp.maximum(least, distances(points, z))


def step(
    points: Float[Array, "N p ..."],
    weights: Float[Array, "N ..."],
    z: Float[Array, "p ..."],
    smoothing: Any,
    least_total: float = 0.0,
) -> Float[Array, "p ..."]:
    """One iteration from z.

    least_total: the sum of pulls counts as at least this, against 0 / 0 where no point has a weight.
    """
    pull = pulls(points, weights, z, smoothing)
    total = materialize(fixed_sum(pull, axis=0))
    return mean_by_weights(points, pull) / (jnp.maximum(total, least_total) if least_total else total)[None]


def plain_median(
    points: Float[Array, "N p"], present: Bool[Array, " N"], *, iterations: int = 50, smoothing: float = 1e-8
) -> Float[Array, " p"]:
    """The geometric median of the present points by plain iterations from their mean; 0 where there is none.

    O(N p) an iteration. The certificate of `geometric_median` costs O(N^2), too much for thousands of points.
    smoothing: smaller distances count as this much.
    """
    weights, least_total = present.astype(points.dtype), float(jnp.finfo(points.dtype).tiny)
    mean = mean_by_weights(points, weights) / jnp.maximum(fixed_sum(weights), least_total)
    return lax.fori_loop(0, iterations, lambda _, z: step(points, weights, z, smoothing, least_total), mean)


def middle_distance(d: Float[Array, "N ..."], present: Bool[Array, "N ..."]) -> Float[Array, "..."]:
    """The median of the present distances over the first axis: of an even number the mean of the middle two."""
    n, number = d.shape[0], jnp.maximum(count(present, axis=0), 1)
    d = jnp.where(present, d, jnp.inf)
    index = jnp.arange(n).reshape(n, *(1,) * (d.ndim - 1))
    before = (d[None] < d[:, None]) | ((d[None] == d[:, None]) & (index[None] < index[:, None]))
    rank = count(before, axis=1)  # distinct: ties go by index
    low = jnp.min(jnp.where(rank == ((number - 1) // 2)[None], d, jnp.inf), axis=0)
    high = jnp.min(jnp.where(rank == (number // 2)[None], d, jnp.inf), axis=0)
    return low / 2 + high / 2


@cache
def _warm(iterations: int):
    def solve(points, present, weights, value):
        def sum_of(d):
            return fixed_sum(jnp.where(present, d, 0), axis=0)

        ahead = mean_by_weights(points, weights)
        from_weights, from_value = distances(points, ahead), distances(points, value)
        better = sum_of(from_weights) <= sum_of(from_value)
        z = jnp.where(better, ahead, value)
        smoothing = SMOOTHING * middle_distance(jnp.where(better, from_weights, from_value), present)
        smoothing = jnp.maximum(smoothing, jnp.finfo(points.dtype).tiny)

        # with weights of size `smoothing` a pull is at most 1: with 1 / tiny the sum would overflow
        equal = jnp.where(present, smoothing, 0)

        def next_pair(carry, _):
            pull = pulls(points, equal, carry[0], smoothing)
            weights = pull / fixed_sum(pull, axis=0)[None]
            return (mean_by_weights(points, weights), weights), None

        return lax.scan(next_pair, (z, weights), length=iterations)[0]

    return lane_kernel(solve)


def warm_start(num_points: int, dim: int, dtype: DType, present: Bool[Array, " N"] | None = None) -> Warm:
    """What comes before the first median: equal weights of the present points, value 0."""
    weights = jnp.ones(num_points, dtype) if present is None else present.astype(dtype)
    return Warm(weights / fixed_sum(weights), jnp.zeros(dim, dtype))


def warm_median(
    points: Float[Array, "N p"], last: Warm, iterations: int = 8, *, present: Bool[Array, " N"] | None = None
) -> Warm:
    """The geometric median from a warm start, by a fixed number of Weiszfeld iterations without sorting. For step code.

    Points are finite, of norms below 1e18 in float32 (clamp messages first). present: which of them count, at least
    one; the last weights of the others must be 0 (give `warm_start` the same `present`), and nothing reads them then.

    There are two starts: the mean of the new points by the last weights, and the last value. The one with the
    smaller sum of distances is used, the first on a tie. 1e-4 of the median distance from it smooths all
    iterations. Equal points give that point. Everything is elementwise: `vmap` and `jit` as you like.
    """
    if points.shape[0] == 1:  # nothing to iterate; a compiler that cancels a / a here would square the smallest float
        return Warm(jnp.ones(1, points.dtype), points[0])
    present = jnp.ones(points.shape[0], bool) if present is None else present
    value, weights = _warm(iterations)(points, present, last.weights, last.value)
    return Warm(weights, value)


# ---- with a certificate


class GeometricMedian(NamedTuple):
    """A geometric median and how good it is: g(z) = sum_i w_i ||z - z_i||, weights of sum 1."""

    value: Float[Array, " p"]
    objective: Float[Array, ""]  # g(value)
    gap: Float[Array, ""]  # an upper bound on g(value) - min g


def middle_by_weights(x: Float[Array, "N ..."], weights: Float[Array, "N ..."]) -> Float[Array, "..."]:
    """Median over the first axis, weights broadcast against x: the middle of all points that are one. No sorting."""
    weights = jnp.broadcast_to(weights, x.shape)
    half = fixed_sum(weights, axis=0) / 2

    def least_middle(low, point):
        value, weight = point
        upto = fixed_sum(jnp.where(x <= value[None], weights, 0), axis=0)
        return jnp.where((upto >= half) & (weight > 0), jnp.minimum(low, value), low), None

    low = lax.scan(least_middle, jnp.full(x.shape[1:], jnp.inf, x.dtype), (x, weights))[0]
    upto = fixed_sum(jnp.where(x <= low[None], weights, 0), axis=0)
    above = jnp.min(jnp.where((x > low[None]) & (weights > 0), x, jnp.inf), axis=0)
    middle = jnp.where((upto == half) & jnp.isfinite(above), low / 2 + above / 2, low)
    return materialize(jnp.where(jnp.isfinite(low), middle, 0))  # 0: no weight at all


def _nearest(d, weights):
    """One-hot over [N, ...] of the nearest point with a weight, lowest index on ties."""
    index = jnp.arange(d.shape[0], dtype=jnp.int32).reshape(-1, *(1,) * (d.ndim - 1))
    d = jnp.where(weights > 0, d, jnp.inf)
    return index == jnp.min(jnp.where(d == jnp.min(d, axis=0)[None], index, d.shape[0]), axis=0)[None]


def _norm(x, axis):
    return jnp.sqrt(fixed_sum(x * x, axis=axis))


def _reach(d, weights):
    """D >= ||z* - z||: the least of 2 (sum of the near w_i d_i) / (1 - 2 M), far points of weight M < 1/2."""

    def least_reach(best, edge):
        near = jnp.where(d <= edge[None], weights, 0)
        weight, inside = fixed_sum(near, axis=0), fixed_sum(near * d, axis=0)
        majority = 2 * weight - 1
        return jnp.where(majority > 0, jnp.minimum(best, 2 * inside / jnp.where(majority > 0, majority, 1)), best), None

    return lax.scan(least_reach, jnp.full(d.shape[1:], jnp.inf, d.dtype), d)[0]


def certificate(
    points: Float[Array, "N p ..."], weights: Float[Array, "N ..."], z: Float[Array, "p ..."], smoothing: Numeric
) -> Float[Array, "..."]:
    """A bound on g(z) - min g, for weights of sum 1 (`docs/formulas/byzantine.md#certificates`).

    It is the least of three bounds, all from directions u_i in the unit ball. First: the directions are made to
    cancel, sum w_i u_i = 0, by the choice of the nearest point's; they leave sum w_i (d_i - <u_i, z - z_i>).
    Second: the norm of a subgradient times a bound on the distance to the median, which far points do not
    spoil. Third, for medians at a data point among far points: the second bound with the nearest point's
    direction chosen as in the first, and what that choice costs. A few units in the last place are added for
    rounding.
    """
    eps = 8 * jnp.finfo(points.dtype).eps
    away = z[None] - points
    d = materialize(_norm(away, axis=1))
    near = _nearest(d, weights)
    weight = fixed_sum(jnp.where(near, weights, 0), axis=0)

    unit = away / jnp.maximum(d, smoothing)[:, None]
    rest = materialize(mean_by_weights(unit, jnp.where(near, 0, weights)))
    own = -rest / jnp.maximum(jnp.maximum(weight, _norm(rest, axis=0)), jnp.finfo(d.dtype).tiny)[None]
    unit = jnp.where(near[:, None], own[None], unit)
    unit = materialize(unit - (rest + weight[None] * own)[None])
    longest = jnp.max(jnp.where(weights > 0, _norm(unit, axis=1), 1), axis=0)
    along = fixed_sum(unit * away, axis=1) / jnp.maximum(longest, 1)[None]
    first = fixed_sum(weights * (d - along), axis=0) + eps * fixed_sum(weights * d, axis=0)

    reach = _reach(d, weights)
    exact = weights / jnp.where(d > 0, d, 1)
    pull = _norm(mean_by_weights(away, exact), axis=0)
    copies = fixed_sum(jnp.where(d > 0, 0, weights), axis=0)
    second = reach * (jnp.maximum(pull - copies, 0) + eps)

    rest = materialize(mean_by_weights(away, jnp.where(near, 0, exact)))
    pull = _norm(rest, axis=0)
    closest = fixed_sum(jnp.where(near[:, None], away, 0), axis=0)
    slope = fixed_sum(rest * closest, axis=0) / jnp.maximum(jnp.maximum(weight, pull), jnp.finfo(d.dtype).tiny)
    third = reach * (jnp.maximum(pull - weight, 0) + eps) + weight * (_norm(closest, axis=0) * (1 + eps) + slope)
    return jnp.minimum(jnp.maximum(first, 0), jnp.minimum(second, third))


def _normal_form(points, weights):
    """Points about their coordinatewise median in units of their median distance from it, far ones drawn in radially.

    No square over- or underflows then, and rounding is relative to the bulk. Returns points [N, p, ...], centre
    [p, ...] and unit [...].
    """
    far = jnp.asarray(2.0 ** (jnp.finfo(points.dtype).maxexp * 3 // 8), points.dtype)
    centre = middle_by_weights(points, weights[:, None])
    points = points - centre[None]
    size = materialize(safe_norm(points, axis=1))
    unit = middle_by_weights(size, weights)
    # unit is 0 where half the weight and more is in one place
    unit = jnp.where(unit > 0, unit, jnp.max(jnp.where(weights > 0, size, 0), axis=0))
    unit = jnp.where(unit > 0, unit, 1)
    tiny = jnp.finfo(points.dtype).tiny
    points = (points / jnp.maximum(size, tiny)[:, None]) * jnp.minimum(size / unit[None], far)[:, None]
    # materialized: a product contracted into a later difference would make equal points differ
    return materialize(points), centre, unit


def _snap_to_point(points, weights, near):
    """Whether the nearest point, one-hot `near`, is the median, and that point (`docs/formulas/byzantine.md#snap`).

    It is where the others' unit pulls do not exceed the weight of its copies.
    """
    point = materialize(fixed_sum(jnp.where(near[:, None], points, 0), axis=0))
    away = point[None] - points
    d = materialize(_norm(away, axis=1))
    pull = mean_by_weights(away, jnp.where(d > 0, weights / jnp.where(d > 0, d, 1), 0))
    return _norm(pull, axis=0) <= fixed_sum(jnp.where(d > 0, 0, weights), axis=0), point


@cache
def _solver(iterations: int, started: bool, early: bool):
    def solve(points, weights, start, tolerance):
        # `materialize`: what many loops read is computed once, not fused into each
        finite = jnp.all(jnp.isfinite(points), axis=1)
        points = materialize(jnp.where(finite[:, None], points, 0))
        weights = materialize(jnp.where(finite, weights, 0))
        # beyond 2^120 differences of points might overflow
        shrink = jnp.where(jnp.max(jnp.abs(points), axis=(0, 1)) > 2.0**120, 2.0**-8, 1.0).astype(points.dtype)
        original = points * shrink[None, None]
        points, centre, unit = _normal_form(original, weights)
        total = fixed_sum(weights, axis=0)
        weights = materialize(weights / jnp.where(total > 0, total, 1)[None])
        smoothing = jnp.asarray(SMOOTHING, points.dtype)
        z = jnp.zeros_like(centre)
        if started:
            far = jnp.asarray(2.0**40, points.dtype)
            z = jnp.clip(jnp.nan_to_num((start * shrink[None] - centre) / unit[None]), -far, far)
        else:  # off the centre, which may be a data point: Weiszfeld leaves one slowly
            z = materialize(step(points, weights, z, jnp.ones_like(smoothing)))

        if early:
            goal = tolerance * shrink / unit

            def gap_above_goal(carry):
                _, gap, steps = carry
                return (steps < iterations) & jnp.any(gap > goal)

            def weiszfeld_step(carry):
                z, gap, steps = carry
                moved = step(points, weights, z, smoothing)
                z = jnp.where((gap > goal)[None], moved, z)
                return z, certificate(points, weights, z, smoothing), steps + 1

            begun = z, certificate(points, weights, z, smoothing), jnp.int32(0)
            z = lax.while_loop(gap_above_goal, weiszfeld_step, begun)[0]
        else:
            z = lax.scan(lambda z, _: (step(points, weights, z, smoothing), None), z, length=iterations)[0]

        near = _nearest(materialize(distances(points, z)), weights)
        snapped, at = _snap_to_point(points, weights, near)
        nearest = fixed_sum(jnp.where(near[:, None], original, 0), axis=0)
        value = materialize(jnp.where(snapped[None], nearest, centre + unit[None] * z))
        # what is returned is certified, not what was computed
        at = materialize(jnp.where(snapped[None], at, (value - centre) / unit[None]))
        gap = certificate(points, weights, at, smoothing) * unit / shrink
        objective = fixed_sum(safe_norm(original - value[None], axis=1) * weights, axis=0) / shrink
        return GeometricMedian(value / shrink[None], objective, jnp.where(total > 0, gap, jnp.inf))

    return jax.jit(lane_kernel(solve))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _median(settings, points, weights, start, tolerance):
    return _solver(*settings)(points, weights, start, tolerance)


@_median.defjvp
@partial(jax.jit, static_argnums=0)
def _(settings, primals, tangents):
    """What the exact median's equation sum_i w_i u_i = 0, u_i = (z - z_i) / ||z - z_i||, says at the value found."""
    median, (points, weights, *_), (point_moves, weight_moves, *_) = _median(settings, *primals), primals, tangents
    finite = jnp.all(jnp.isfinite(points), axis=1)
    points = jnp.where(finite[:, None], points, 0)
    weights, weight_moves = jnp.where(finite, weights, 0), jnp.where(finite, weight_moves, 0)
    at_z = jnp.all(points == median.value[None], axis=1)
    away = jnp.where(at_z[:, None], 1, median.value[None] - points)  # 1 is not read: a norm of 0 has no derivative
    d = safe_norm(away)
    unit = jnp.where(at_z[:, None], 0, away / d[:, None])
    pull, copies = jnp.where(at_z, 0, weights / d), jnp.where(at_z, weights, 0)
    total, snapped = fixed_sum(pull), fixed_sum(copies) > 0
    scale = jnp.where(total > 0, total, 1)

    # (1 - sum_i s_i u_i u_i') dz = sum_i s_i (dz_i - u_i <u_i, dz_i>) - sum_i dw_i u_i / total, s_i = pull_i / total
    along = fixed_sum(unit * point_moves, axis=1)
    turns = pull[:, None] * (point_moves - unit * along[:, None]) - weight_moves[:, None] * unit
    rest, pulled = fixed_sum(turns, axis=0) / scale, unit * (pull / scale)[:, None]
    few = points.shape[0] < points.shape[1]  # then by Woodbury's identity: a matrix [N, N]
    outer = product(unit, pulled.T) if few else product(pulled.T, unit)
    # The eigenvalues of `outer` sum to 1. One of them is 1 where all points lie on a line through z.
    unique = (total > 0) & (1 - fixed_sum(fixed_sum(outer * outer.T)) > 32 * jnp.finfo(points.dtype).eps)
    matrix = jnp.eye(len(outer), dtype=points.dtype) - jnp.where(unique & ~snapped, outer, 0)
    solution = jnp.linalg.solve(matrix, matvec(unit, rest) if few else rest)
    move = rest + matvec(pulled.T, solution) if few else solution
    move = move * jnp.where(unique | snapped, 1, jnp.nan)  # a factor: reverse mode would drop a branch of NaN

    with_point = mean_by_weights(point_moves, copies / jnp.where(snapped, fixed_sum(copies), 1))
    heavier = weight_moves * (jnp.where(at_z, 0, d) - median.objective)
    change = fixed_sum(heavier + weights * (dot(unit, with_point[None]) - along))
    all_weights = fixed_sum(weights)
    return median, GeometricMedian(
        value=jnp.where(snapped, with_point, move),
        objective=change / jnp.where(all_weights > 0, all_weights, 1),
        gap=jnp.zeros_like(median.gap),
    )


@declare(
    source="Pillutla, Kakade and Harchaoui 2019 (smoothed Weiszfeld); `docs/formulas/byzantine.md#certificates` and "
    "`docs/formulas/byzantine.md#snap`."
)
def geometric_median(
    points: Annotated[Points, Doc("Points, N and p at least 1; symmetric matrices by `pack` (the Frobenius norm).")],
    *,
    weights: Annotated[Vector, Kind("array of shape [N]"), Doc("Weights >= 0, not all 0. None: equal.")] | None = None,
    start: Vector | None = None,
    iterations: Annotated[int, Ge(1), STATIC, Doc("Smoothed Weiszfeld steps at most.")] = 64,
    tolerance: Annotated[NonNegative | Array, TRACED] | None = None,
) -> Annotated[GeometricMedian, Doc("`value`, `objective` g(value) and `gap`, a bound on g(value) - min g.")]:
    """The point of least mean distance to weighted points, with a certified bound on what is missing.

    It minimises g(z) = sum_i w_i ||z - z_i||, the weights normalised to sum 1.

    Args:
        start (array of shape [p], optional): Where the iterations begin. None: a robust start of its own.
        tolerance: In units of g: the iterations stop once the certified gap is at most this. None: all iterations are
            made.

    Raises:
        ValueError: For other shapes, weights, iterations or tolerances, and for points that are not finite.

    Note:
        A median at a data point is found exactly. Under `jit`, where values cannot be seen, points that are not finite
        weigh 0. Points as far as 1e30 cost no accuracy in float32: beyond 3e14 median distances a point is drawn in
        radially, which changes directions by less than rounding. Equal points give that point and gap 0. A median need
        not be unique (collinear points, even split): compare g. Where no point has a weight the value is 0 and the gap
        inf.

        Derivatives of `value` and `objective` with respect to points and weights are those of the exact median, taken
        at `value` by implicit differentiation; `gap`, `start` and `tolerance` count as constants. A median at a data
        point moves as this point does, and as nothing else. There is no derivative where copies of it move apart (their
        mean counts), or where others pull as hard as it weighs, as in an even split (it counts alone). Where all points
        lie on a line and `value` is none of them, that of `value` is NaN.

        For many problems `jax.lax.map(geometric_median, points, batch_size=128)` keeps a batch in the cache of a
        core; use `jax.vmap` on a GPU.

    >>> import jax.numpy as jnp
    >>> points = jnp.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5], [0.0, 1e30]])
    >>> median = geometric_median(points)
    >>> median.value.tolist(), float(median.gap) < 1e-5
    ([1.0, 0.5], True)
    """
    points = cloud(points)
    number, dtype = points.shape[0], points.dtype
    if not isinstance(points, jax.core.Tracer):
        remedy = "leave out points that are not finite, or give them to a jitted call, where they weigh 0"
        array("points", points, 2, remedy=remedy)
    if weights is None:
        weights = jnp.ones(number, dtype)
    elif not isinstance(weights, jax.core.Tracer):
        weights = array("weights", weights, 1, 0.0, shape=(number,))
        if not weights.sum() > 0:
            raise ValueError("weights are all 0: at least one point must have a positive weight")
        weights = weights / weights.max()  # the sum may not overflow
    weights = jnp.asarray(weights, dtype)
    if weights.shape != (number,):
        raise ValueError(f"weights has shape {weights.shape}; it must be {(number,)}, one of each point")
    started = start is not None
    start = jnp.asarray(start, dtype) if started else jnp.zeros(points.shape[1], dtype)
    if start.shape != points.shape[1:]:
        raise ValueError(f"start has shape {start.shape}; it must be {points.shape[1:]}, a point")
    early = tolerance is not None
    tolerance = jnp.asarray(tolerance if early else 0, dtype)
    return _median((iterations, started, early), points, weights, start, tolerance)
