"""Steps of the spectral filter for one block of lanes, whose reports are rows of memory.

Rows are read one after another; what a step sums up are numbers [lanes] in registers. Rows of blocks and arms are
their sizes, then their means, then their sums of squared deviations. Sums are taken in another order than in
`jaxbandits.estimators.spectral_filter`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.pallas import triton

from jaxbandits.numerics.packed import pairs


class Sizes(NamedTuple):
    """What is static."""

    blocks: int
    reports: int  # of a block
    arms: int
    dim: int
    history: int  # eigenvalues that are kept


class Groups(NamedTuple):
    """Blocks or arms of all lanes in memory: rows [3 n, lanes]."""

    ref: Any
    number: int
    lane: Any  # [lanes] 0, 1, ...

    def row(self, which: int, i: Any) -> Any:
        """Size (0), mean (1) or spread (2) of group i, the same or another for every lane."""
        return _at(self.ref, which * self.number + i, self.lane)

    def score(self, i: Any, along: Any, centre: Any) -> Any:
        """Sum of squared deviations of along * report from the centre over group i."""
        off = along * self.row(1, i) - centre
        return along * along * self.row(2, i) + self.row(0, i) * off * off

    def write(self, i: Any, values: tuple[Any, Any, Any], mask: Any = None) -> None:
        """Size, mean and spread of group i, in the lanes that the mask names."""
        for which, value in enumerate(values):
            row = jnp.broadcast_to(which * self.number + i, self.lane.shape)
            triton.store(self.ref.at[row, self.lane], value, mask=mask)


def _at(ref: Any, row: Any, lane: Any) -> Any:
    """A row [lanes], or for every lane its own row."""
    return ref[row, lane] if jnp.ndim(row) else ref[row, :]


def _each(number: int, function: Callable[..., Any], start: Any = ()) -> Any:
    """A loop over 0 .. number - 1 that stays a loop."""
    return lax.fori_loop(np.int32(0), np.int32(number), function, start)


class Work(NamedTuple):
    """One block of lanes: where its numbers lie, and what does not change."""

    sizes: Sizes
    values: Any  # reports in memory, block by block; NaN: missing or removed
    arm: Any  # the arm of each block, in memory
    directions: Any  # [K d] in memory
    blocks: Groups
    arms: Groups
    lane: Any

    def direction(self, a: Any) -> list[Any]:
        """The direction of arm a, the same or another for every lane."""
        d = self.sizes.dim
        return [_at(self.directions, a * d + i, self.lane) for i in range(d)]

    def zero(self, dtype: Any = None) -> Any:
        """A number a lane."""
        return jnp.zeros(self.lane.shape, self.directions.dtype if dtype is None else dtype)


def _spread_of(size: Any, mean: Any, centre: Any, spread: Any) -> Any:
    """Squared deviations of a group from a centre."""
    off = mean - centre
    return spread + size * off * off


def sum_up(work: Work) -> None:
    """Write the sums of all blocks and arms."""
    sizes, blocks, arms = work.sizes, work.blocks, work.arms

    def clear(a, _):
        arms.write(a, (work.zero(), work.zero(), work.zero()))
        return ()

    def block(b, _):
        size, mean, spread = of_reports(work, b)
        blocks.write(b, (size, mean, spread))
        a = work.arm[b, :]
        arms.write(a, (arms.row(0, a) + size, arms.row(1, a) + size * mean, work.zero()))
        return ()

    def divide(a, _):
        size = arms.row(0, a)
        arms.write(a, (size, arms.row(1, a) / jnp.maximum(size, 1), work.zero()))
        return ()

    def spread(b, _):
        a = work.arm[b, :]
        size, mean = arms.row(0, a), arms.row(1, a)
        more = _spread_of(blocks.row(0, b), blocks.row(1, b), mean, blocks.row(2, b))
        arms.write(a, (size, mean, arms.row(2, a) + more))
        return ()

    _each(sizes.arms, clear)
    _each(sizes.blocks, block)
    _each(sizes.arms, divide)
    _each(sizes.blocks, spread)


def of_reports(work: Work, b: Any) -> tuple[Any, Any, Any]:
    """Size, mean and spread of the reports that are left in block b, the same or another for every lane."""
    reports = work.sizes.reports

    def report(i):
        return _at(work.values, b * reports + i, work.lane)

    def add(i, carry):
        value = report(i)
        left = ~jnp.isnan(value)
        return carry[0] + left.astype(value.dtype), carry[1] + jnp.where(left, value, 0)

    size, total = _each(reports, add, (work.zero(), work.zero()))
    mean = total / jnp.maximum(size, 1)

    def deviate(i, spread):
        off = report(i) - mean
        return spread + jnp.where(jnp.isnan(off), 0, off * off)

    return size, mean, _each(reports, deviate, work.zero())


def moments(work: Work, number: Any) -> tuple[list[Any], list[Any]]:
    """Mean [d] and covariance, its upper triangle by rows, of all reports that are left."""
    dim, arms = work.sizes.dim, work.arms

    def add(a, carry):
        mean, second = carry
        u, centre = work.direction(a), arms.row(1, a)
        share = arms.row(0, a) / number
        weight = arms.row(2, a) / number + share * centre * centre
        mean = [x + share * centre * each for x, each in zip(mean, u, strict=True)]
        second = [x + u[i] * (weight * u[j]) for x, (i, j) in zip(second, pairs(dim), strict=True)]
        return mean, second

    start = [work.zero()] * dim, [work.zero()] * len(pairs(dim))
    mean, second = _each(work.sizes.arms, add, start)
    return mean, [x - mean[i] * mean[j] for x, (i, j) in zip(second, pairs(dim), strict=True)]


def dot(x: list[Any], y: list[Any]) -> Any:
    """The product of two vectors."""
    total = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + a * b
    return total


def first_above(number: int, score: Callable[[Any], Any], total: Any, target: Any) -> tuple[Any, Any]:
    """Lowest i with score(0) + ... + score(i) > target, and what is left of the target before it."""
    target = jnp.minimum(target, total * (1 - jnp.finfo(total.dtype).eps))  # rounding may put it at the end

    def look(i, carry):
        index, upto, before = carry
        upto = upto + score(i)
        below = upto <= target
        return index + below.astype(jnp.int32), upto, jnp.where(below, upto, before)

    start = jnp.zeros(total.shape, jnp.int32), jnp.zeros_like(total), jnp.zeros_like(total)
    index, _, before = _each(number - 1, look, start)
    return index, target - before


def remove(work: Work, v: list[Any], centre: Any, total: Any, target: Any, active: Any) -> Any:
    """Remove one report in the active lanes, and give the reports that its arm has lost [lanes]."""
    sizes, blocks, arms = work.sizes, work.blocks, work.arms

    def of_arm(a):
        return arms.score(a, dot(work.direction(a), v), centre)

    a, target = first_above(sizes.arms, of_arm, total, target)
    along = dot(work.direction(a), v)

    def of_block(b):
        return jnp.where(work.arm[b, :] == a, blocks.score(b, along, centre), 0)

    b, target = first_above(sizes.blocks, of_block, summed(sizes.blocks, of_block, total), target)

    def of_report(i):
        off = along * _at(work.values, b * sizes.reports + i, work.lane) - centre
        return jnp.where(jnp.isnan(off), 0, off * off)

    i, _ = first_above(sizes.reports, of_report, summed(sizes.reports, of_report, total), target)
    gone = jnp.full_like(target, jnp.nan)
    triton.store(work.values.at[b * sizes.reports + i, work.lane], gone, mask=active)
    blocks.write(b, of_reports(work, b), active)
    before = arms.row(0, a)
    pooled = pool(work, a)
    arms.write(a, pooled, active)
    return jnp.where(active, before - pooled[0], 0)


def summed(number: int, score: Callable[[Any], Any], like: Any) -> Any:
    """score(0) + ... + score(number - 1), shaped as `like`."""
    return _each(number, lambda i, total: total + score(i), jnp.zeros_like(like))


def pool(work: Work, a: Any) -> tuple[Any, Any, Any]:
    """Size, mean and spread of arm a, another for every lane, from its blocks."""
    blocks = work.blocks

    def add(b, carry):
        own = work.arm[b, :] == a
        size = jnp.where(own, blocks.row(0, b), 0)
        return carry[0] + size, carry[1] + size * blocks.row(1, b)

    size, total = _each(work.sizes.blocks, add, (work.zero(), work.zero()))
    mean = total / jnp.maximum(size, 1)

    def deviate(b, spread):
        more = _spread_of(blocks.row(0, b), blocks.row(1, b), mean, blocks.row(2, b))
        return spread + jnp.where(work.arm[b, :] == a, more, 0)

    return size, mean, _each(work.sizes.blocks, deviate, work.zero())
