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
from jaxbandits.numerics import count, fixed_sum
from jaxbandits.random import Draws, to_uniform
from jaxbandits.validation import integer

LANES = 8
LARGEST = 1e6  # a report is cut here before it is squared
SQUARINGS = 16  # at most: 2^16 steps of the power method
PAIR = 1e-6  # squaring stops once the other eigenvalues hold this share of the power's trace


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


def _total(x):
    """Sum over the first axis in a fixed order: halves down to eight terms."""
    while x.shape[0] > 8:
        half = x.shape[0] // 2
        x = jnp.concatenate([x[:half] + x[half : 2 * half], x[2 * half :]]) if x.shape[0] % 2 else x[:half] + x[half:]
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total


def _pooled(groups: _Sums, member) -> _Sums:
    """One group out of several: member [groups, L] says which."""
    size = jnp.where(member, groups.size, 0)
    total = _total(size)
    mean = _total(size * groups.mean) / jnp.maximum(total, 1)
    apart = groups.mean - mean
    return _Sums(total, mean, _total(jnp.where(member, groups.spread, 0) + size * apart * apart))


def _of_rows(rows) -> _Sums:
    """Sums of rows [bs, ...] of which NaN are missing."""
    left = ~jnp.isnan(rows)
    size = _total(left.astype(rows.dtype))
    mean = _total(jnp.where(left, rows, 0)) / jnp.maximum(size, 1)
    apart = jnp.where(left, rows - mean, 0)
    return _Sums(size, mean, _total(apart * apart))


def _first_above(scores, target):
    """Lowest i with scores_0 + ... + scores_i > target, and what of target is left before it: scores [m, L], target [L]."""
    total, stride = scores, 1
    while stride < scores.shape[0]:
        total = jnp.concatenate([total[:stride], total[stride:] + total[:-stride]])
        stride *= 2
    # rounding may put the target at the end or beyond it
    target = jnp.minimum(target, total[-1] * (1 - jnp.finfo(scores.dtype).eps))
    below = total <= target
    index = jnp.minimum(count(below, axis=0), scores.shape[0] - 1)
    return index, jnp.maximum(target - jnp.max(jnp.where(below, total, 0), axis=0), 0)


def _moments(arms: _Sums, directions):
    """Number [L], mean [d, L] and trace of the covariance [L] of what is left."""
    number = jnp.maximum(_total(arms.size), 1)
    mean = _weighted(arms.size * arms.mean / number, directions)
    squares = (arms.spread + arms.size * arms.mean * arms.mean) / number
    norm = _total(jnp.moveaxis(directions * directions, 1, 0))
    return number, mean, squares, _total(squares * norm) - _total(mean * mean)


def _weighted(weights, directions):
    """sum_a weights_a u_a: [K, L], [K, d, L] -> [d, L]."""
    return _total(weights[:, None] * directions)


def _second(squares, directions):
    """sum_a squares_a u_a u_a' [d, d, L], eight arms at a time so that nothing of size K d^2 is made."""
    num_arms, d, lanes = directions.shape
    blocks = -(-num_arms // 8)
    pad = blocks * 8 - num_arms
    u = jnp.pad(directions, ((0, pad), (0, 0), (0, 0))).reshape(blocks, 8, d, lanes)
    w = jnp.pad(squares, ((0, pad), (0, 0))).reshape(blocks, 8, lanes)

    def add(b, total):
        x, y = u[b], w[b][:, None] * u[b]
        for a in range(8):
            total = total + x[a][:, None] * y[a][None]
        return total

    return lax.fori_loop(0, blocks, add, jnp.zeros((d, d, lanes), u.dtype))


def top_eigenpair(matrix):
    """Largest eigenvalue [L] and its vector [d, L] of positive semi-definite matrices [d, d, L], by repeated squaring."""
    d = matrix.shape[0]

    def trace(x):
        return _total(jnp.stack([x[i, i] for i in range(d)]))

    def scaled(x):
        return x / jnp.maximum(trace(x), jnp.finfo(x.dtype).tiny)

    def square(carry):
        step, power, done = carry

        product = sum((power[:, k, None] * power[k, None, :] for k in range(1, d)), power[:, 0, None] * power[0, None])
        size = trace(product)
        new = product / jnp.maximum(size, jnp.finfo(size.dtype).tiny)
        return step + 1, jnp.where(done, power, new), done | (size >= 1 - PAIR)

    def pending(carry):
        return (carry[0] < SQUARINGS) & ~jnp.all(carry[2])

    power = lax.while_loop(pending, square, (jnp.int32(0), scaled(matrix), trace(matrix) <= 0))[1]
    diagonal = jnp.stack([power[i, i] for i in range(d)])
    column = jnp.argmax(diagonal, axis=0)
    v = _total(jnp.where(jnp.arange(d)[:, None, None] == column, power, 0))
    v = v / jnp.sqrt(jnp.maximum(_total(v * v), jnp.finfo(v.dtype).tiny))
    return _total(v * _total(v[:, None] * matrix)), v


def _uniform(stream, t, step):
    """Uniform [L] of one removal."""
    if isinstance(stream, Draws):
        return to_uniform(stream.at(t, step), stream.dtype)
    return stream[:, jnp.minimum(step, stream.shape[1] - 1)]


def _whole_batch(history, stream, t, values, present, block_arm, directions, bound, limit) -> FilteredBlocks:
    """All arguments have a leading axis [L]."""
    lanes, num_blocks, size = values.shape
    dtype = values.dtype
    lane = jnp.arange(lanes)
    values = jnp.where(present, values, jnp.nan)
    arm = block_arm.T
    u = jnp.moveaxis(directions, 0, -1)
    num_arms = u.shape[0]
    blocks = _of_rows(jnp.moveaxis(values, 0, -1).swapaxes(0, 1))
    arms = jax.vmap(lambda a: _pooled(blocks, arm == a))(jnp.arange(num_arms, dtype=arm.dtype))
    threshold = 4 * bound

    def undecided(arms):
        """The trace bounds the eigenvalue: below the threshold no solve is needed."""
        trace = _moments(arms, u)[3]
        return (trace >= threshold) & (trace > 0) & (_total(arms.size) > 1)

    def solve(arms):
        _, mean, squares, _ = _moments(arms, u)
        value, vector = top_eigenpair(_second(squares, u) - mean[:, None] * mean[None, :])
        return value, vector, mean

    def remove(carry):
        step, todo, removed, values, blocks, arms, eigenvalues = carry
        value, v, mean = solve(arms)
        if history:
            eigenvalues = eigenvalues.at[step].set(jnp.where(todo, value, jnp.nan), mode="drop")
        todo = todo & (value >= threshold) & (value > 0)
        along, centre = _total(jnp.moveaxis(u * v, 1, 0)), _total(v * mean)

        def scores(groups, along):
            off = along * groups.mean - centre
            return along * along * groups.spread + groups.size * off * off

        tau = scores(arms, along)
        a, rest = _first_above(tau, _uniform(stream, t, step) * _total(tau))
        mine = jnp.arange(num_arms, dtype=a.dtype)[:, None] == a
        along = _total(jnp.where(mine, along, 0))
        own = arm == a
        b, rest = _first_above(jnp.where(own, scores(blocks, along), 0), rest)
        row = values[lane, b].T
        off = along * row - centre
        i, _ = _first_above(jnp.where(jnp.isnan(row), 0, off * off), rest)
        touched = _of_rows(jnp.where(jnp.arange(size, dtype=i.dtype)[:, None] == i, jnp.nan, row))
        values = values.at[jnp.where(todo, lane, lanes), b, i].set(jnp.nan, mode="drop", unique_indices=True)
        here = (jnp.arange(num_blocks, dtype=b.dtype)[:, None] == b) & todo
        blocks = jax.tree.map(lambda new, old: jnp.where(here, new, old), touched, blocks)
        pooled = _pooled(blocks, own)
        arms = jax.tree.map(lambda new, old: jnp.where(mine & todo, new, old), pooled, arms)
        removed = removed + todo.astype(jnp.int32)
        todo = todo & undecided(arms) & (step + 1 < limit)
        return step + 1, todo, removed, values, blocks, arms, eigenvalues

    eigenvalues = jnp.full((history, lanes), jnp.nan, dtype)
    todo = undecided(arms) & (limit > 0)
    start = (jnp.int32(0), todo, jnp.zeros(lanes, jnp.int32), values, blocks, arms, eigenvalues)
    _, _, removed, values, _, arms, eigenvalues = lax.while_loop(lambda carry: jnp.any(carry[1]), remove, start)
    value, _, mean = solve(arms)
    if history:
        eigenvalues = eigenvalues.at[removed, lane].set(value, mode="drop")
    exhausted = (removed >= limit) & (value >= threshold) & (value > 0) & (_total(arms.size) > 1)
    return FilteredBlocks(mean.T, ~jnp.isnan(values), value, eigenvalues.T, removed, exhausted)


def _batched(history):
    """`_whole_batch` under any nesting of vmap: nested axes become one."""

    @jax.custom_batching.custom_vmap
    def many(*args):
        # here, after every vmap: fewer than eight lanes are filled up, the least number for which bits do not depend on it
        lanes = args[1].shape[0]
        fill = max(0, LANES - lanes)
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
