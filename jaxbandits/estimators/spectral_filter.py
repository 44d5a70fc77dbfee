"""The spectral filter of robust linear regression, in blocks (spec robust_linear 5 and 6).

Reports point along K directions only, so counts, means and squared deviations per arm hold all that mean, covariance and scores
need; blocks of reports of one arm in between make a removal cost O(n / bs + bs) instead of O(n d^2). Sums of a touched block and
arm are recomputed from what is left, never down-dated: a squared outlier taken out of a float32 sum leaves its rounding behind.

All lanes take their removals in one loop over arrays whose last axis is the lane, because the loop that `vmap` would make selects
its whole carry at every step. Axes: [L] lanes, [K] arms, [d] features, [nb] blocks, [bs] reports of a block, [n] reports.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.estimators._inputs import checked
from jaxbandits.estimators._lanes import first_above, ladder, total
from jaxbandits.estimators._top_eigenvector import top_eigenvector
from jaxbandits.numerics import count, fixed_sum, materialize, materialize_all
from jaxbandits.random import Draws, to_uniform
from jaxbandits.validation import integer

LANES = 8
LARGEST = 1e6  # a report is cut here before it is squared


class Filtered(NamedTuple):
    """What the filter leaves."""

    mean: Any  # [d] mean of direction * report over the reports kept (0 if none was finite)
    keep: Any  # [n] bool
    eigenvalues: Any  # [h] largest eigenvalue before each removal and at the end, NaN after that
    num_removed: Any  # [] int32: by the filter
    num_dropped: Any  # [] int32: not finite, left out from the start
    exhausted: Any  # [] bool: `max_removals` ended the filter, not the bound


class FilteredBlocks(NamedTuple):
    """`Filtered` of reports in blocks."""

    mean: Any  # [d]
    keep: Any  # [nb, bs] bool
    eigenvalue: Any  # [] the last one
    eigenvalues: Any  # [history]
    num_removed: Any  # [] int32
    exhausted: Any  # [] bool


class _Sums(NamedTuple):
    """Of groups of reports that are left: blocks [nb, L] or arms [K, L]."""

    size: Any
    mean: Any
    spread: Any  # sum of squared deviations from the mean


def _pooled(groups: _Sums, member) -> _Sums:
    """One group out of several: member [groups, L] says which."""
    size = jnp.where(member, groups.size, 0)
    number, sums = materialize_all([total(size), total(size * groups.mean)])
    mean = sums / jnp.maximum(number, 1)
    apart = groups.mean - mean
    return _Sums(number, mean, materialize(total(jnp.where(member, groups.spread, 0) + size * apart * apart)))


def _of_rows(rows) -> _Sums:
    """Sums of rows [bs, ...] of which NaN are missing."""
    left = ~jnp.isnan(rows)
    size, sums = materialize_all([total(left.astype(rows.dtype)), total(jnp.where(left, rows, 0))])
    mean = sums / jnp.maximum(size, 1)
    apart = jnp.where(left, rows - mean, 0)
    return _Sums(size, mean, materialize(total(apart * apart)))


def _uniform(stream, t, step):
    """Uniform [L] of one removal."""
    if isinstance(stream, Draws):
        return to_uniform(stream.at(t, step), stream.dtype)
    return stream[:, jnp.minimum(step, stream.shape[1] - 1)]


class _Loop(NamedTuple):
    step: Any  # []
    todo: Any  # [L] bool: not known to be done
    removed: Any  # [L] int32
    exhausted: Any  # [L] bool
    values: Any  # [L, nb, bs], NaN: missing or removed
    blocks: Any  # _Sums
    arms: Any  # _Sums
    mean: Any  # [d, L]
    eigenvalue: Any  # [L]
    eigenvalues: Any  # [history, L]


def _whole_batch(history, stream, t, values, present, block_arm, directions, bound, limit) -> FilteredBlocks:
    """All arguments have a leading axis [L]."""
    lanes, num_blocks, size = values.shape
    dtype = values.dtype
    lane = jnp.arange(lanes, dtype=jnp.int32)
    values = jnp.where(present, values, jnp.nan)
    arm = block_arm.T
    u = jnp.moveaxis(directions, 0, -1)
    num_arms, dim = u.shape[:2]
    blocks = _of_rows(jnp.moveaxis(values, 0, -1).swapaxes(0, 1))
    arms = lax.map(lambda a: _pooled(blocks, arm == a), jnp.arange(num_arms, dtype=arm.dtype))
    threshold = 4 * bound

    def remove(at: _Loop) -> _Loop:
        number = materialize(jnp.maximum(total(at.arms.size), 1))
        share = at.arms.size / number
        mean = materialize(total((share * at.arms.mean)[:, None] * u))
        v = top_eigenvector(at.arms.spread / number + share * at.arms.mean * at.arms.mean, u, mean, at.todo)
        along, centre = materialize(total(jnp.moveaxis(u * v, 1, 0))), materialize(total(v * mean))

        def scores(groups, along):
            off = along * groups.mean - centre
            return materialize(along * along * groups.spread + groups.size * off * off)

        tau = ladder(scores(at.arms, along))
        sum_tau = materialize(total(tau[-1]))
        value = sum_tau / number  # v' covariance v, without a difference of squares
        eigenvalues = at.eigenvalues
        if history:
            eigenvalues = eigenvalues.at[at.step].set(jnp.where(at.todo, value, jnp.nan), mode="drop")
        above = at.todo & (value >= threshold) & (value > 0) & (number > 1)
        todo = above & (at.removed < limit)

        a, rest = first_above(tau, _uniform(stream, t, at.step) * sum_tau)
        mine = jnp.arange(num_arms, dtype=jnp.int32)[:, None] == a
        along = materialize(total(jnp.where(mine, along, 0)))
        own = arm == a
        b, rest = first_above(ladder(jnp.where(own, scores(at.blocks, along), 0)), rest)
        row = at.values.at[lane, b].get(mode="promise_in_bounds").T
        off = along * row - centre
        i, _ = first_above(ladder(materialize(jnp.where(jnp.isnan(row), 0, off * off))), rest)
        touched = _of_rows(jnp.where(jnp.arange(size, dtype=jnp.int32)[:, None] == i, jnp.nan, row))
        values = at.values.at[jnp.where(todo, lane, lanes), b, i].set(jnp.nan, mode="drop", unique_indices=True)
        here = (jnp.arange(num_blocks, dtype=jnp.int32)[:, None] == b) & todo
        blocks = jax.tree.map(lambda new, old: jnp.where(here, new, old), touched, at.blocks)
        pooled = _pooled(blocks, own)
        arms = jax.tree.map(lambda new, old: jnp.where(mine & todo, new, old), pooled, at.arms)
        return _Loop(
            at.step + 1, todo, at.removed + todo.astype(jnp.int32), at.exhausted | (above & ~todo), values, blocks, arms,
            jnp.where(at.todo, mean, at.mean), jnp.where(at.todo, value, at.eigenvalue), eigenvalues,
        )  # fmt: skip

    none, zero = jnp.zeros(lanes, jnp.int32), jnp.zeros(lanes, dtype)
    eigenvalues = jnp.full((history, lanes), jnp.nan, dtype)
    start = _Loop(
        jnp.int32(0), none == 0, none, none > 0, values, blocks, arms, jnp.zeros((dim, lanes), dtype), zero, eigenvalues
    )
    end = lax.while_loop(lambda at: jnp.any(at.todo), remove, start)
    return FilteredBlocks(
        end.mean.T, ~jnp.isnan(end.values), end.eigenvalue, end.eigenvalues.T, end.removed, end.exhausted
    )


def _batched(history):
    """`_whole_batch` under any nesting of vmap: nested axes become one."""

    @jax.custom_batching.custom_vmap
    def many(*args):
        # here, after every vmap: fewer than eight lanes are filled up, the least number for which bits do not depend on it
        lanes = args[1].shape[0]
        fill = -lanes % max(LANES, 2 ** (lanes.bit_length() - 3))
        args = jax.tree.map(lambda x: jnp.concatenate([x, jnp.repeat(x[:1], fill, 0)]), args) if fill else args
        return jax.tree.map(lambda x: x[:lanes], _whole_batch(history, *args))

    @many.def_vmap
    def _(axis_size, batched, *args):
        def flat(moves, x):
            x = x if moves else jnp.broadcast_to(x, (axis_size, *x.shape))
            return x.reshape(axis_size * x.shape[1], *x.shape[2:])

        found = many(*jax.tree.map(flat, tuple(batched), args))
        found = jax.tree.map(lambda x: x.reshape(axis_size, x.shape[0] // axis_size, *x.shape[1:]), found)
        return found, jax.tree.map(lambda _: True, found)

    return many


def filter_blocks(
    stream, t, values, present, block_arm, directions, bound, *, max_removals=None, history=0
) -> FilteredBlocks:
    """The filter on reports that lie in blocks of one arm each; see `spectral_filter`.

    stream: uniforms [m], used in order, or `Draws`: then removal j takes the uniform at play index t, position j. values: [nb, bs]
    finite, of a size whose square is; present: [nb, bs] bool; block_arm: [nb] int32 below K; directions: [K, d];
    max_removals: None, or an integer that may be traced. history: how many eigenvalues are returned [static].
    """
    nb, bs = values.shape
    dtype = values.dtype
    limit = jnp.int32(nb * bs) if max_removals is None else jnp.asarray(max_removals).astype(jnp.int32)
    if not isinstance(stream, Draws):
        limit = jnp.minimum(limit, stream.shape[0])
    args = stream, jnp.asarray(t).astype(jnp.int32), values, present, block_arm, directions.astype(dtype)
    args = (*args, jnp.asarray(bound).astype(dtype), limit)
    args = jax.tree.map(lambda x: jnp.asarray(x)[None], args)
    return jax.tree.map(lambda x: x[0], _batched(history)(*args))


def spectral_filter(uniforms_or_stream, reports, arms, directions, bound, *, max_removals=None) -> Filtered:
    """Mean of X_j = directions[arms_j] * reports_j after random removals along the covariance's top eigenvector.

    While the largest eigenvalue of the covariance is at least 4 bound, one report is removed, j with probability proportional
    to its squared deviation along the eigenvector.

    uniforms_or_stream: uniforms [m], m >= 1, one a removal in order (m also bounds the removals), or `jaxbandits.random.Draws` (play index 0,
    position: the removal). reports: [n], n >= 1; those that are not finite are left out from the start, others are cut at
    1e6 max(1, sqrt(bound) / largest norm of a direction). arms: [n] integers in [0, K), any order: equal uniforms remove what the flat
    inverse distribution function over a stable sort by arm removes. directions: [K, d]. bound: lambda >= 0.
    max_removals: None (no limit) or an integer >= 0 [static]; `exhausted` says when it ended the filter.
    Works under jit and vmap. Raises ValueError for wrong shapes and ranges. Source: specification of robust linear bandits,
    sections 5 and 6 (Algorithm 2 of "Robust and private stochastic linear bandits", ICML 2023).

    >>> import jax.numpy as jnp
    >>> found = spectral_filter(jnp.array([0.5]), jnp.array([1.0, 3.0, 2.0, 50.0]), jnp.zeros(4, int), jnp.ones((1, 1)), 1.0)
    >>> found.keep.tolist(), found.mean.tolist()
    ([True, True, True, False], [2.0])
    """
    reports, directions, arms = jnp.asarray(reports), jnp.asarray(directions), jnp.asarray(arms)
    dtype = reports.dtype if jnp.issubdtype(reports.dtype, jnp.floating) else jnp.float32
    if reports.ndim != 1 or reports.shape[0] == 0:
        raise ValueError(f"reports has shape {reports.shape}; it must be [n] with n >= 1: use vmap for leading axes")
    if arms.shape != reports.shape:
        raise ValueError(f"arms has shape {arms.shape}; it must be that of reports, {reports.shape}")
    if directions.ndim != 2 or 0 in directions.shape:
        raise ValueError(
            f"directions has shape {directions.shape}; it must be [K, d], K and d at least 1: use vmap for leading axes"
        )
    bound = checked("bound", bound, 0.0)
    n = reports.shape[0]
    most = n if max_removals is None else min(integer("max_removals", max_removals, 0), n)
    stream = uniforms_or_stream
    if not isinstance(stream, Draws):
        stream = jnp.asarray(stream, dtype)
        if stream.ndim != 1 or stream.shape[0] == 0:
            raise ValueError(f"uniforms has shape {stream.shape}; it must be [m] with m >= 1, one a removal")
        most = min(most, stream.shape[0])
    return _sorted(stream, reports.astype(dtype), arms, directions.astype(dtype), bound, most)


@partial(jax.jit, static_argnames="most")
def _sorted(stream, reports, arms, directions, bound, most) -> Filtered:
    n, num_arms = reports.shape[0], directions.shape[0]
    norm = jnp.sqrt(fixed_sum(directions * directions))
    finite = jnp.isfinite(reports)
    bound = jnp.asarray(bound).astype(reports.dtype)
    top = jnp.max(norm)
    largest = LARGEST * jnp.maximum(1, jnp.sqrt(jnp.where(bound > 0, bound, 0)) / jnp.where(top > 0, top, 1))
    values = jnp.where(finite, jnp.clip(reports, -largest, largest), 0)
    size = block_size(n)
    place, block_arm = layout(arms, num_arms, size)
    num_blocks = block_arm.shape[0]

    def blocked(x):
        return jnp.zeros(num_blocks * size, x.dtype).at[place].set(x).reshape(num_blocks, size)

    found = filter_blocks(
        stream, 0, blocked(values), blocked(finite), block_arm, directions, bound, max_removals=most, history=most + 1
    )
    return Filtered(
        found.mean, found.keep.reshape(-1)[place], found.eigenvalues, found.num_removed, count(~finite), found.exhausted
    )


def block_size(n: int) -> int:
    """Reports of a block, a power of two of about sqrt(n)."""
    return min(256, max(8, 2 ** round(0.5 * (n - 1).bit_length())))


def layout(arms, num_arms: int, size: int):
    """Blocks for reports of arms [n]: each one's place [n] in nb * size slots, and each block's arm [nb].

    Reports of one arm stay in order; nb = floor(n / size) + K is enough for any counts.
    """
    n = arms.shape[0]
    arms = arms.astype(jnp.int32)
    order = jnp.argsort(arms, stable=True).astype(jnp.int32)
    counts = jnp.zeros(num_arms, jnp.int32).at[arms].add(1)
    used = -(-counts // size)
    first_report, first_block = jnp.cumsum(counts) - counts, jnp.cumsum(used) - used
    rank = jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(n, dtype=jnp.int32)) - first_report[arms]
    blocks = jnp.arange(n // size + num_arms, dtype=jnp.int32)
    block_arm = jnp.clip(count(first_block <= blocks[:, None]) - 1, 0, num_arms - 1)
    return first_block[arms] * size + rank, block_arm
