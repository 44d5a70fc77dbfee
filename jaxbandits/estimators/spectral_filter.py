"""The spectral filter of robust linear regression, in blocks.

Formulas: `docs/formulas/robust_linear.md#filter` and `docs/formulas/robust_linear.md#block-sums`.

Reports point along K directions only. Therefore counts, means and squared deviations of each arm hold all that mean,
covariance and scores need. Between arms and reports there are blocks of reports of one arm, so that a removal costs
O(n / bs + bs) instead of O(n d^2). Sums of a touched block and arm are computed again from the reports that are left.
Subtracting would not do: a squared outlier that is taken out of a float32 sum leaves its rounding behind.

All lanes take their removals in one loop over arrays whose last axis is the lane. The loop that `vmap` would build
selects its whole carry at every step.

Axes: [L] lanes, [K] arms, [d] features, [nb] blocks, [bs] reports of a block, [n] reports.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.declared import STATIC, TRACED, Doc, Ge, Kind, NonNegative
from jaxbandits.estimators._inputs import of_axes
from jaxbandits.estimators._lanes import first_above, ladder, sum_by_halves
from jaxbandits.estimators._top_eigenvector import top_eigenvector
from jaxbandits.numerics import count, fixed_sum, floats, materialize, materialize_all, tree_where
from jaxbandits.numerics.device_forms import with_form
from jaxbandits.random import Draws, to_uniform
from jaxbandits.typing import Array, Bool, Float, Int, Matrix, Numeric, Vector
from jaxbandits.validation import declare

MIN_LANES = 8  # fewer lanes are filled up to this number, from which on bits do not depend on how many there are
MAX_REPORT = 1e6  # a report is cut at this size before it is squared


class Filtered(NamedTuple):
    """What the filter leaves."""

    mean: Float[Array, " d"]  # mean of direction * report over the reports that are left; 0 if none was finite
    keep: Bool[Array, " n"]
    eigenvalues: Float[Array, " h"]  # largest eigenvalue before each removal and at the end, then NaN
    num_removed: Int[Array, ""]
    num_dropped: Int[Array, ""]  # how many were not finite and left out from the start
    exhausted: Bool[Array, ""]  # whether `max_removals` ended the filter, not the bound


class FilteredBlocks(NamedTuple):
    """`Filtered` of reports in blocks."""

    mean: Float[Array, " d"]
    keep: Bool[Array, "nb bs"]
    eigenvalue: Float[Array, ""]  # the last eigenvalue
    eigenvalues: Float[Array, " history"]
    num_removed: Int[Array, ""]
    exhausted: Bool[Array, ""]


class _Sums(NamedTuple):
    """Of groups of reports that are left: blocks [nb, L] or arms [K, L]."""

    size: Float[Array, "groups L"]
    mean: Float[Array, "groups L"]
    spread: Float[Array, "groups L"]  # sum of squared deviations from the mean


def _pool_groups(groups: _Sums, member: Bool[Array, "groups L"]) -> _Sums:
    """One group out of those that `member` names."""
    size = jnp.where(member, groups.size, 0)
    number, sums = materialize_all([sum_by_halves(size), sum_by_halves(size * groups.mean)])
    mean = sums / jnp.maximum(number, 1)
    apart = groups.mean - mean[None]
    return _Sums(number, mean, materialize(sum_by_halves(jnp.where(member, groups.spread, 0) + size * apart * apart)))


def _of_rows(rows: Float[Array, "bs ..."]) -> _Sums:
    """Sums over the first axis; NaN stands for a missing report."""
    left = ~jnp.isnan(rows)
    size, sums = materialize_all([sum_by_halves(left.astype(rows.dtype)), sum_by_halves(jnp.where(left, rows, 0))])
    mean = sums / jnp.maximum(size, 1)
    apart = jnp.where(left, rows - mean[None], 0)
    return _Sums(size, mean, materialize(sum_by_halves(apart * apart)))


def uniform_of(stream: Draws, t: Array, step: Array) -> Float[Array, " L"]:
    """The uniform variable of one removal, for every lane."""
    if isinstance(stream, Draws):
        return to_uniform(stream.at(t, step), stream.dtype)
    return stream[:, jnp.minimum(step, stream.shape[1] - 1)]


class _Loop(NamedTuple):
    """What the loop of removals carries."""

    step: Int[Array, ""]
    todo: Bool[Array, " L"]  # not known to be done
    removed: Int[Array, " L"]
    exhausted: Bool[Array, " L"]
    values: Float[Array, "L nb bs"]  # NaN: missing or removed
    blocks: _Sums
    arms: _Sums
    mean: Float[Array, "d L"]
    eigenvalue: Float[Array, " L"]
    eigenvalues: Float[Array, "history L"]


def whole_batch(
    history: int,
    stream: Draws,
    t: Array,
    values: Float[Array, "L nb bs"],
    present: Bool[Array, "L nb bs"],
    block_arm: Int[Array, "L nb"],
    directions: Float[Array, "L K d"],
    bound: Float[Array, " L"],
    limit: Int[Array, " L"],
    *,
    tiles: bool,
) -> FilteredBlocks:
    """The filter for all lanes at once; tiles: see `top_eigenvector`."""
    lanes, num_blocks, size = values.shape
    dtype = values.dtype
    lane = jnp.arange(lanes, dtype=jnp.int32)
    values = jnp.where(present, values, jnp.nan)
    arm = block_arm.T
    u = jnp.moveaxis(directions, 0, -1)
    num_arms, dim = u.shape[:2]
    blocks = _of_rows(jnp.moveaxis(values, 0, -1).swapaxes(0, 1))
    arms = lax.map(lambda a: _pool_groups(blocks, arm == a), jnp.arange(num_arms, dtype=arm.dtype))
    threshold = 4 * bound

    def remove(at: _Loop) -> _Loop:
        number = materialize(jnp.maximum(sum_by_halves(at.arms.size), 1))
        share = at.arms.size / number[None]
        mean = materialize(sum_by_halves((share * at.arms.mean)[:, None] * u))
        weights = at.arms.spread / number[None] + share * at.arms.mean * at.arms.mean
        v = top_eigenvector(weights, u, mean, at.todo, tiles=tiles)
        along = materialize(sum_by_halves(jnp.moveaxis(u * v[None], 1, 0)))
        centre = materialize(sum_by_halves(v * mean))

        def spread_along(groups, along):
            off = along * groups.mean - centre[None]
            return materialize(along * along * groups.spread + groups.size * off * off)

        tau = ladder(spread_along(at.arms, along))
        sum_tau = materialize(sum_by_halves(tau[-1]))
        value = sum_tau / number  # v' covariance v, without a difference of squares
        eigenvalues = at.eigenvalues
        if history:
            eigenvalues = eigenvalues.at[at.step].set(jnp.where(at.todo, value, jnp.nan), mode="drop")
        above = at.todo & (value >= threshold) & (value > 0) & (number > 1)
        todo = above & (at.removed < limit)

        a, rest = first_above(tau, uniform_of(stream, t, at.step) * sum_tau)
        of_arm = jnp.arange(num_arms, dtype=jnp.int32)[:, None] == a[None]
        along = materialize(sum_by_halves(jnp.where(of_arm, along, 0)))
        own = arm == a[None]
        b, rest = first_above(ladder(jnp.where(own, spread_along(at.blocks, along[None]), 0)), rest)
        row = at.values.at[lane, b].get(mode="promise_in_bounds").T
        off = along[None] * row - centre[None]
        i, _ = first_above(ladder(materialize(jnp.where(jnp.isnan(row), 0, off * off))), rest)
        touched = _of_rows(jnp.where(jnp.arange(size, dtype=jnp.int32)[:, None] == i[None], jnp.nan, row))
        values = at.values.at[jnp.where(todo, lane, lanes), b, i].set(jnp.nan, mode="drop", unique_indices=True)
        here = (jnp.arange(num_blocks, dtype=jnp.int32)[:, None] == b[None]) & todo[None]
        blocks = tree_where(here, jax.tree.map(lambda x: x[None], touched), at.blocks)
        pooled = _pool_groups(blocks, own)
        arms = tree_where(of_arm & todo[None], jax.tree.map(lambda x: x[None], pooled), at.arms)
        return _Loop(
            step=at.step + 1,
            todo=todo,
            removed=at.removed + todo.astype(jnp.int32),
            exhausted=at.exhausted | (above & ~todo),
            values=values,
            blocks=blocks,
            arms=arms,
            mean=jnp.where(at.todo, mean, at.mean),
            eigenvalue=jnp.where(at.todo, value, at.eigenvalue),
            eigenvalues=eigenvalues,
        )

    none_removed, zero = jnp.zeros(lanes, jnp.int32), jnp.zeros(lanes, dtype)
    eigenvalues = jnp.full((history, lanes), jnp.nan, dtype)
    start = _Loop(
        step=jnp.int32(0),
        todo=none_removed == 0,
        removed=none_removed,
        exhausted=none_removed > 0,
        values=values,
        blocks=blocks,
        arms=arms,
        mean=jnp.zeros((dim, lanes), dtype),
        eigenvalue=zero,
        eigenvalues=eigenvalues,
    )
    end = lax.while_loop(lambda at: jnp.any(at.todo), remove, start)
    return FilteredBlocks(
        mean=end.mean.T,
        keep=~jnp.isnan(end.values),
        eigenvalue=end.eigenvalue,
        eigenvalues=end.eigenvalues.T,
        num_removed=end.removed,
        exhausted=end.exhausted,
    )


def as_xla(history: int, *args: Any, tiles: bool = True) -> FilteredBlocks:
    """The filter of all lanes in XLA's operations. Lanes lead; few of them are filled up. args: see `whole_batch`."""
    lanes = args[1].shape[0]
    fill = -lanes % max(MIN_LANES, 2 ** (lanes.bit_length() - 3))
    args = jax.tree.map(lambda x: jnp.concatenate([x, jnp.repeat(x[:1], fill, 0)]), args) if fill else args
    return jax.tree.map(lambda x: x[:lanes], whole_batch(history, *args, tiles=tiles))


def _filter_under_vmap(history: int) -> Callable[..., FilteredBlocks]:
    """`as_xla` under any nesting of vmap, or on a GPU its kernel: nested axes become one."""

    @jax.custom_batching.custom_vmap
    def many(*args):
        # Lanes are filled up here, after every vmap.
        about = history, jax.tree.structure(args)
        return with_form("filter_kernel", about, partial(as_xla, history), *args)

    @many.def_vmap
    def _(axis_size, batched, *args):
        def flat(moves, x):
            x = x if moves else jnp.broadcast_to(x, (axis_size, *x.shape))
            return x.reshape(axis_size * x.shape[1], *x.shape[2:])

        filtered = many(*jax.tree.map(flat, tuple(batched), args))
        filtered = jax.tree.map(lambda x: x.reshape(axis_size, x.shape[0] // axis_size, *x.shape[1:]), filtered)
        return filtered, jax.tree.map(lambda _: True, filtered)

    return many


def filter_blocks(
    stream: Draws | Float[Array, " m"],
    t: int | Array,
    values: Float[Array, "nb bs"],
    present: Bool[Array, "nb bs"],
    block_arm: Int[Array, " nb"],
    directions: Float[Array, "K d"],
    bound: Numeric,
    *,
    max_removals: Numeric | None = None,
    history: int = 0,
) -> FilteredBlocks:
    """The filter on reports that lie in blocks of one arm each; see `spectral_filter`.

    Of uniforms [m], removal j takes the j-th; of `Draws` it takes the uniform at play index t, position j. `values`
    are finite, and so are their squares. `max_removals` is None, or an integer that may be traced. `history` is how
    many eigenvalues are returned [static].
    """
    nb, bs = values.shape
    dtype = values.dtype
    limit = jnp.int32(nb * bs) if max_removals is None else jnp.asarray(max_removals).astype(jnp.int32)
    if not isinstance(stream, Draws):
        limit = jnp.minimum(limit, stream.shape[0])
    args = stream, jnp.asarray(t).astype(jnp.int32), values, present, block_arm, directions.astype(dtype)
    args = (*args, jnp.asarray(bound).astype(dtype), limit)
    args = jax.tree.map(lambda x: jnp.asarray(x)[None], args)
    return jax.tree.map(lambda x: x[0], _filter_under_vmap(history)(*args))


@declare(
    source='Charisopoulos, Esfandiari and Mirrokni 2023, "Robust and private stochastic linear bandits", Algorithm 2: '
    "`docs/formulas/robust_linear.md#filter`. Cuts: `docs/formulas/robust_linear.md#extreme-reports`."
)
def spectral_filter(
    uniforms_or_stream: Vector | Draws,
    reports: Vector,
    arms: Annotated[Vector, Kind("int array of shape [n]"), Doc("The arm of each report, in [0, K), in any order.")],
    directions: Matrix,
    bound: Annotated[NonNegative | Array, TRACED],
    *,
    max_removals: Annotated[int, Ge(0), STATIC, Doc("The most removals. Default: no limit.")] | None = None,
) -> Filtered:
    """Mean of X_j = directions[arms_j] * reports_j after random removals along the covariance's top eigenvector.

    While the largest eigenvalue of the covariance is at least 4 `bound`, one report is removed: report j with
    probability proportional to its squared deviation along the eigenvector.

    Args:
        uniforms_or_stream (array of shape [m] or Draws): Independent uniforms, at least one, of which each removal
            takes the next; m also bounds the removals. Or a `jaxbandits.random.Draws`, of which removal j takes the
            uniform at play index 0, position j.
        reports (array of shape [n]): The reports, at least one. Those that are not finite are left out from the start;
            others are cut in size at 1e6 max(1, sqrt(bound) / largest norm of a direction).
        bound: The bound lambda on the covariance of clean reports, in units of X squared.
        directions (array of shape [K, d]): The direction of each arm; K and d are at least 1.

    Returns:
        `mean` [d] and `keep` [n] of the reports that are left, the `eigenvalues` on the way, `num_removed`,
        `num_dropped` (not finite), and `exhausted`, whether the number of removals ended the filter and not the bound.

    Raises:
        ValueError: If a shape is wrong, or a number lies outside its range.

    Note:
        Equal uniforms remove what the flat inverse distribution function over a stable sort by arm removes, so the
        order of the reports of different arms does not matter. It works under jit and vmap; leading axes need vmap.

    >>> import jax.numpy as jnp
    >>> reports, one_arm = jnp.array([1.0, 3.0, 2.0, 50.0]), jnp.zeros(4, int)
    >>> filtered = spectral_filter(jnp.array([0.5]), reports, one_arm, jnp.ones((1, 1)), 1.0)
    >>> filtered.keep.tolist(), filtered.mean.tolist()
    ([True, True, True, False], [2.0])
    """
    reports, arms = floats(of_axes("reports", reports, "[n]", " with n >= 1")), jnp.asarray(arms)
    if arms.shape != reports.shape:
        raise ValueError(f"arms has shape {arms.shape}; it must be that of reports, {reports.shape}")
    directions = of_axes("directions", directions, "[K, d]", ", K and d at least 1")
    dtype, n = reports.dtype, reports.shape[0]
    most = n if max_removals is None else min(max_removals, n)
    stream = uniforms_or_stream
    if not isinstance(stream, Draws):
        stream = jnp.asarray(stream, dtype)
        if stream.ndim != 1 or stream.shape[0] == 0:
            raise ValueError(f"uniforms has shape {stream.shape}; it must be [m] with m >= 1, one a removal")
        most = min(most, stream.shape[0])
    return _filter_by_arm(stream, reports, arms, directions.astype(dtype), bound, most)


@partial(jax.jit, static_argnames="most")
def _filter_by_arm(stream: Draws, reports: Array, arms: Array, directions: Array, bound: Any, most: int) -> Filtered:
    """`spectral_filter` on checked arrays; `most` bounds the removals."""
    n, num_arms = reports.shape[0], directions.shape[0]
    norm = jnp.sqrt(fixed_sum(directions * directions))
    finite = jnp.isfinite(reports)
    bound = jnp.asarray(bound).astype(reports.dtype)
    top = jnp.max(norm)
    largest = MAX_REPORT * jnp.maximum(1, jnp.sqrt(jnp.where(bound > 0, bound, 0)) / jnp.where(top > 0, top, 1.0))
    values = jnp.where(finite, jnp.clip(reports, -largest, largest), 0)
    size = block_size(n)
    place, block_arm = layout(arms, num_arms, size)
    num_blocks = block_arm.shape[0]

    def into_blocks(x):
        return jnp.zeros(num_blocks * size, x.dtype).at[place].set(x).reshape(num_blocks, size)

    blocks = into_blocks(values), into_blocks(finite), block_arm
    filtered = filter_blocks(stream, 0, *blocks, directions, bound, max_removals=most, history=most + 1)
    return Filtered(
        mean=filtered.mean,
        keep=filtered.keep.reshape(-1)[place],
        eigenvalues=filtered.eigenvalues,
        num_removed=filtered.num_removed,
        num_dropped=count(~finite),
        exhausted=filtered.exhausted,
    )


def block_size(n: int) -> int:
    """How many reports a block holds: a power of two of about sqrt(n)."""
    return min(256, max(8, 2 ** round(0.5 * (n - 1).bit_length())))


def layout(arms: Int[Array, " n"], num_arms: int, size: int) -> tuple[Int[Array, " n"], Int[Array, " nb"]]:
    """Blocks for reports of the given arms: the place of each report among nb * size slots, and each block's arm.

    Reports of one arm stay in order. There are nb = floor(n / size) + K blocks, which is enough for any counts.
    """
    n = arms.shape[0]
    arms = arms.astype(jnp.int32)
    order = jnp.argsort(arms, stable=True).astype(jnp.int32)
    counts = jnp.zeros(num_arms, jnp.int32).at[arms].add(1)
    used = -(-counts // size)
    first_report, first_block = jnp.cumsum(counts) - counts, jnp.cumsum(used) - used
    rank = jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(n, dtype=jnp.int32)) - first_report[arms]
    blocks = jnp.arange(n // size + num_arms, dtype=jnp.int32)
    block_arm = jnp.clip(count(first_block[None] <= blocks[:, None]) - 1, 0, num_arms - 1)
    return first_block[arms] * size + rank, block_arm
