"""The spectral filter of one lane, as the loops that a thread runs: it becomes one kernel over lanes (`over_lanes`).

Reports, blocks and arms lie in the thread's memory and are read one after another; mean, covariance and its top
eigenvector are small. A lane ends by itself. The same filter in XLA's operations, which pass over all lanes together
and take sums in another order, is `jaxbandits.estimators.spectral_filter`.
Axes: [K] arms, [d] features, [nb] blocks, [bs] reports of a block.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.estimators._top_eigenvector import top_eigenvector
from jaxbandits.estimators.spectral_filter import FilteredBlocks, as_xla, uniform_of
from jaxbandits.kernels import launch, over_lanes
from jaxbandits.random import Draws


class Groups(NamedTuple):
    """Blocks or arms: of the reports that are left, how many, their mean, and their squared deviations from it."""

    size: Any
    mean: Any
    spread: Any

    def of(self, i: Any) -> "Groups":
        """One group."""
        return Groups(*(x[i] for x in self))

    def set(self, i: Any, values: "Groups") -> "Groups":
        """With another group i."""
        return Groups(*(x.at[i].set(new) for x, new in zip(self, values, strict=True)))


class Loop(NamedTuple):
    """What the loop over removals carries."""

    step: Any
    todo: Any
    removed: Any
    exhausted: Any
    values: Any  # [nb bs] reports; NaN: missing or removed
    blocks: Groups
    arms: Groups
    mean: Any
    value: Any  # the largest eigenvalue
    history: Any  # of eigenvalues


def _each(number: int, function: Callable[[Any, Any], Any], start: Any) -> Any:
    """A loop over 0 .. number - 1."""
    return lax.fori_loop(np.int32(0), np.int32(number), function, start)


def _summed(number: int, term: Callable[[Any], Any], dtype: Any) -> Any:
    return _each(number, lambda i, total: total + term(i), jnp.zeros((), dtype))


def _of_reports(values: Any, begin: Any, size: int) -> Groups:
    """Of the reports of a block that are left."""
    dtype = values.dtype

    def add(i: Any, carry: Any) -> Any:
        value = values[begin + i]
        left = ~jnp.isnan(value)
        return carry[0] + left.astype(dtype), carry[1] + jnp.where(left, value, 0)

    number, total = _each(size, add, (jnp.zeros((), dtype),) * 2)
    mean = total / jnp.maximum(number, 1)

    def deviation(i: Any) -> Any:
        off = values[begin + i] - mean
        return jnp.where(jnp.isnan(off), 0, off * off)

    return Groups(number, mean, _summed(size, deviation, dtype))


def _pooled(blocks: Groups, arm: Any, a: Any) -> Groups:
    """Arm a, from its blocks."""
    count, dtype = arm.shape[0], blocks.mean.dtype

    def add(b: Any, carry: Any) -> Any:
        size = jnp.where(arm[b] == a, blocks.size[b], 0)
        return carry[0] + size, carry[1] + size * blocks.mean[b]

    number, total = _each(count, add, (jnp.zeros((), dtype),) * 2)
    mean = total / jnp.maximum(number, 1)

    def deviation(b: Any) -> Any:
        off = blocks.mean[b] - mean
        return jnp.where(arm[b] == a, blocks.spread[b] + blocks.size[b] * off * off, 0)

    return Groups(number, mean, _summed(count, deviation, dtype))


def _score(group: Groups, along: Any, centre: Any) -> Any:
    """Sum of squared deviations of along * report from the centre over a group."""
    off = along * group.mean - centre
    return along * along * group.spread + group.size * off * off


def _first_above(number: int, score: Callable[[Any], Any], total: Any, target: Any) -> tuple[Any, Any]:
    """Lowest i with score(0) + ... + score(i) > target, and what is left of the target before it."""
    target = jnp.minimum(target, total * (1 - jnp.finfo(total.dtype).eps))  # rounding may put it at the end

    def look(i: Any, carry: Any) -> Any:
        index, upto, before = carry
        upto = upto + score(i)
        below = upto <= target
        return index + below.astype(jnp.int32), upto, jnp.where(below, upto, before)

    zero = jnp.zeros_like(total)
    index, _, before = _each(number - 1, look, (jnp.int32(0), zero, zero))
    return index, target - before


def one(
    history: int, stream: Any, t: Any, values: Any, present: Any, arm: Any, directions: Any, bound: Any, limit: Any
) -> FilteredBlocks:
    """The filter of one lane; arguments as those of `as_xla`, without the axis of lanes."""
    (num_blocks, size), (num_arms, dim), dtype = values.shape, directions.shape, values.dtype
    shape = values.shape
    values = jnp.where(present, values, jnp.nan).reshape(-1)

    def fill(b: Any, blocks: Groups) -> Groups:
        return blocks.set(b, _of_reports(values, b * size, size))

    blocks = _each(num_blocks, fill, Groups(*(jnp.zeros(num_blocks, dtype),) * 3))

    def pool(a: Any, arms: Groups) -> Groups:
        return arms.set(a, _pooled(blocks, arm, a))

    arms = _each(num_arms, pool, Groups(*(jnp.zeros(num_arms, dtype),) * 3))

    def turn(at: Loop) -> Loop:
        number = jnp.maximum(_summed(num_arms, lambda a: at.arms.size[a], dtype), 1)
        share = at.arms.size / number

        def add(a: Any, mean: Any) -> Any:
            return mean + share[a] * at.arms.mean[a] * directions[a]

        mean = _each(num_arms, add, jnp.zeros(dim, dtype))
        weights = at.arms.spread / number + share * at.arms.mean * at.arms.mean
        v = _eigenvector(weights, directions, mean, at.todo)
        along, centre = jnp.sum(directions * v[None], axis=1), jnp.sum(v * mean)

        def of_arm(a: Any) -> Any:
            return _score(at.arms.of(a), along[a], centre)

        total = _summed(num_arms, of_arm, dtype)
        value = total / number  # v' covariance v, without a difference of squares
        above = (value >= 4 * bound) & (value > 0) & (number > 1)
        todo = above & (at.removed < limit)
        a, target = _first_above(num_arms, of_arm, total, _uniform(stream, t, at.step) * total)

        def of_block(b: Any) -> Any:
            return jnp.where(arm[b] == a, _score(at.blocks.of(b), along[a], centre), 0)

        b, target = _first_above(num_blocks, of_block, _summed(num_blocks, of_block, dtype), target)

        def of_report(i: Any) -> Any:
            off = along[a] * at.values[b * size + i] - centre
            return jnp.where(jnp.isnan(off), 0, off * off)

        i, _ = _first_above(size, of_report, _summed(size, of_report, dtype), target)
        place = b * size + i
        values = at.values.at[place].set(jnp.where(todo, jnp.nan, at.values[place]))
        blocks = at.blocks.set(b, _of_reports(values, b * size, size))
        return Loop(
            at.step + 1, todo, at.removed + todo.astype(jnp.int32), above & ~todo, values, blocks,
            at.arms.set(a, _pooled(blocks, arm, a)), mean, value,
            at.history.at[at.step].set(value, mode="drop") if history else at.history,
        )  # fmt: skip

    start = Loop(
        jnp.int32(0), jnp.bool_(True), jnp.int32(0), jnp.bool_(False), values, blocks, arms, jnp.zeros(dim, dtype),
        jnp.zeros((), dtype), jnp.full(history, jnp.nan, dtype),
    )  # fmt: skip
    end = lax.while_loop(lambda at: at.todo, turn, start)
    return FilteredBlocks(
        end.mean, ~jnp.isnan(end.values).reshape(shape), end.value, end.history, end.removed, end.exhausted
    )


def _uniform(stream: Any, t: Any, step: Any) -> Any:
    return uniform_of(stream, t, step) if isinstance(stream, Draws) else stream[jnp.minimum(step, len(stream) - 1)]


def _eigenvector(weights: Any, directions: Any, mean: Any, wanted: Any) -> Any:
    """`top_eigenvector` of one lane."""
    found = top_eigenvector(weights[:, None], directions[:, :, None], mean[:, None], wanted[None], tiles=False)
    return found[:, 0]


# ---- asked by `numerics.device_forms`


@lru_cache(maxsize=64)
def _function(history: int) -> Callable[..., FilteredBlocks]:
    return partial(one, history)


def form(about: tuple[int, Any], shapes: Sequence[Any], platform: str, kind: str) -> Callable[..., list[Any]]:
    """The kernel on a GPU; elsewhere XLA's operations without the tiles that a CPU's cache wants.

    about: the length of the history of eigenvalues, the structure of the arguments. Lanes lead.
    """
    history, treedef = about
    if not launch.asked(platform, kind):
        function = partial(as_xla, history, tiles=False)
        return lambda *leaves: jax.tree.leaves(function(*jax.tree.unflatten(treedef, leaves)))
    own = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in shapes]
    lane = over_lanes.one_lane(_function(history), *jax.tree.unflatten(treedef, own))

    def call(*leaves: Any) -> list[Any]:
        found = over_lanes.by_kernel(lane, [jnp.moveaxis(x, 0, -1) for x in leaves], kind)
        return [jnp.moveaxis(x, -1, 0) for x in found]

    return call
