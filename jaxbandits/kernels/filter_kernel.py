"""The spectral filter as one kernel: a thread filters one lane.

Reports, blocks and arms are rows of memory (`filter_steps`); mean, covariance and its top eigenvector are numbers in
registers. A warp of 32 lanes goes on until none of its lanes removes anything more. The same filter in XLA's
operations, which pass over all lanes together, is `jaxbandits.estimators.spectral_filter`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.extend.core import ClosedJaxpr

from jaxbandits.estimators._top_eigenvector import of_packed
from jaxbandits.estimators.spectral_filter import FilteredBlocks, as_xla, uniform_of
from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.census import Census, counted
from jaxbandits.kernels.elements import listed, single
from jaxbandits.kernels.filter_steps import Groups, Sizes, Work, dot, moments, remove, sum_up, summed
from jaxbandits.kernels.forms import GPUS
from jaxbandits.kernels.over_lanes import MOST_IN_MEMORY, MOST_OPERATIONS, as_rows, of_lanes, read, refusal
from jaxbandits.numerics.packed import pairs
from jaxbandits.random import Draws

BLOCK = 32  # lanes of a block: one warp, which waits for its own lanes only


class Lanes(NamedTuple):
    """What the loop over removals carries, [lanes] but for the step."""

    todo: Any
    removed: Any
    exhausted: Any
    number: Any  # reports that are left
    value: Any  # the largest eigenvalue
    mean: list[Any]
    step: Any


class Rest(NamedTuple):
    """What a filter has beside its reports."""

    uniform: Callable[[Any], Any]  # of a removal, for every lane
    eigenvector: ClosedJaxpr  # of a covariance, where it is wanted
    bound: Any
    limit: Any
    eigenvalues: Any  # in memory, where a history is kept


def removals(work: Work, rest: Rest) -> Lanes:
    """Remove reports until no lane of the block has one to remove."""
    sizes = work.sizes

    def turn(at: Lanes) -> Lanes:
        number = jnp.maximum(at.number, 1)
        mean, covariance = moments(work, number)
        operands = [listed(covariance).reshape(-1, 1), listed([at.todo])]
        v = list(Apart(BLOCK).closed(rest.eigenvector, operands)[0][:, 0])
        centre = dot(v, mean)

        def score(a):
            return work.arms.score(a, dot(work.direction(a), v), centre)

        total = summed(sizes.arms, score, number)
        value = total / number
        if sizes.history:
            row = jnp.full(work.lane.shape, jnp.minimum(at.step, sizes.history - 1))
            triton.store(rest.eigenvalues.at[row, work.lane], value, mask=at.todo & (at.step < sizes.history))
        above = at.todo & (value >= 4 * rest.bound) & (value > 0) & (number > 1)
        active = above & (at.removed < rest.limit)
        lost = lax.cond(
            jnp.max(active.astype(jnp.int32)) > 0,
            lambda: remove(work, v, centre, total, rest.uniform(at.step) * total, active),
            lambda: jnp.zeros_like(total),
        )
        return Lanes(
            todo=active,
            removed=at.removed + active.astype(jnp.int32),
            exhausted=at.exhausted | (above & ~active),
            number=at.number - lost,
            value=jnp.where(at.todo, value, at.value),
            mean=[jnp.where(at.todo, new, old) for new, old in zip(mean, at.mean, strict=True)],
            step=at.step + 1,
        )

    none = work.zero(jnp.int32)
    number = summed(sizes.arms, lambda a: work.arms.row(0, a), work.zero())
    start = Lanes(none == 0, none, none > 0, number, work.zero(), [work.zero()] * sizes.dim, jnp.int32(0))
    return lax.while_loop(lambda at: jnp.max(at.todo.astype(jnp.int32)) > 0, turn, start)


@lru_cache(maxsize=64)
def _eigenvector(dim: int, dtype: Any, x64: bool) -> ClosedJaxpr:
    """`of_packed` of one lane, traced."""
    matrix, wanted = jax.ShapeDtypeStruct((len(pairs(dim)), 1), dtype), jax.ShapeDtypeStruct((1,), bool)
    return jax.make_jaxpr(partial(of_packed, dim=dim))(matrix, wanted)


class Stream(NamedTuple):
    """Where the uniforms of removals come from."""

    drawn: ClosedJaxpr | None  # of one lane, from its leaves, the play and the removal; None: they are rows of memory
    dtypes: list[Any]  # of the leaves

    def uniform(self, refs: list[Any], t: Any, step: Any) -> Any:
        """The uniform of a removal, for every lane of a block."""
        if self.drawn is None:
            return refs[0][jnp.minimum(step, refs[0].shape[0] - 1), :]
        leaves = [read(ref, (), dtype) for ref, dtype in zip(refs, self.dtypes, strict=True)]
        return Apart(BLOCK).closed(self.drawn, [*leaves, read(t, (), jnp.int32), single(step)])[0][()]


def stream_of(stream: Draws | Any) -> Stream:
    """The stream of all lanes, whose leaves are [L], or uniforms [L, m]."""
    leaves, treedef = jax.tree.flatten(stream)
    if not isinstance(stream, Draws):
        return Stream(None, [x.dtype for x in leaves])
    number = jax.ShapeDtypeStruct((), jnp.int32)
    one = [jax.ShapeDtypeStruct((), x.dtype) for x in leaves]

    def uniform(leaves, t, step):
        return uniform_of(jax.tree.unflatten(treedef, leaves), t, step)

    return Stream(jax.make_jaxpr(uniform)(one, number, number), [x.dtype for x in leaves])


def by_kernel(history: int, stream: Any, t: Any, *given: Any, interpret: bool = False) -> FilteredBlocks:
    """The filter for all lanes, which lead; arguments as those of `as_xla`."""
    values, present, block_arm, directions, bound, limit = given
    (lanes, blocks, reports), (_, num_arms, dim), dtype = values.shape, directions.shape, values.dtype
    sizes = Sizes(blocks, reports, num_arms, dim, history)
    config: Any = jax.config
    eigenvector, source = _eigenvector(sizes.dim, dtype, config.jax_enable_x64), stream_of(stream)

    def rows(x: Any) -> Any:
        return as_rows(jnp.moveaxis(x.reshape(lanes, -1), 0, -1), -lanes % BLOCK)

    inputs = [*map(rows, (block_arm, directions, bound, limit, t, *jax.tree.leaves(stream)))]
    kept = [rows(jnp.where(present, values, jnp.nan))]
    columns = kept[0].shape[1]
    if history:
        kept.append(jnp.full((history, columns), jnp.nan, dtype))
    outs = [(x.shape[0], dtype) for x in kept]
    outs += [(3 * sizes.blocks, dtype), (3 * sizes.arms, dtype), (sizes.dim + 1, dtype), (2, jnp.int32)]

    def kernel(*refs: Any) -> None:
        arm, direction, bound, limit, t, *streams = refs[: len(inputs)]
        values, *eigenvalues = refs[len(inputs) + len(kept) : -4]
        blocks, arms, numbers, counts = refs[-4:]
        lane = lax.iota(jnp.int32, BLOCK)
        groups = Groups(blocks, sizes.blocks, lane), Groups(arms, sizes.arms, lane)
        work = Work(sizes, values, arm, direction, *groups, lane)
        sum_up(work)
        uniform = partial(source.uniform, streams, t)
        rest = Rest(uniform, eigenvector, bound[0, :], limit[0, :], eigenvalues[0] if history else None)
        end = removals(work, rest)
        for i, row in enumerate([*end.mean, end.value]):
            numbers[i, :] = row
        for i, row in enumerate([end.removed, end.exhausted.astype(jnp.int32)]):
            counts[i, :] = row

    found = pl.pallas_call(
        kernel,
        grid=(columns // BLOCK,),
        in_specs=[of_lanes(x.shape[0], BLOCK) for x in (*inputs, *kept)],
        out_specs=[of_lanes(number, BLOCK) for number, _ in outs],
        out_shape=[jax.ShapeDtypeStruct((number, columns), kind) for number, kind in outs],
        input_output_aliases={len(inputs) + i: i for i in range(len(kept))},
        compiler_params=None if interpret else triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
    )(*inputs, *kept)
    left, *eigenvalues, _, _, numbers, counts = [x[:, :lanes] for x in found]
    return FilteredBlocks(
        mean=numbers[:-1].T,
        keep=~jnp.isnan(left.T.reshape(values.shape)),
        eigenvalue=numbers[-1],
        eigenvalues=eigenvalues[0].T if history else jnp.zeros((lanes, 0), dtype),
        num_removed=counts[0],
        exhausted=counts[1] > 0,
    )


# ---- asked by `numerics.device_forms`


def refused(shapes: Any) -> str:
    """Why a filter is no kernel. Empty where it is one. shapes: of the arguments of `as_xla`, after `history`."""
    values, directions = shapes[2], shapes[5]
    most = max(int(np.prod(x.shape)) for x in jax.tree.leaves(shapes))
    if most >= MOST_IN_MEMORY:
        return f"{most} numbers in an array, fewer than {MOST_IN_MEMORY}"
    dim = directions.shape[-1]
    squarings = (
        dim * dim * (dim + 1)
    )  # operations of the two in a loop: many features are not written out to be counted
    if squarings > MOST_OPERATIONS:
        return f"more than {squarings} operations, at most {MOST_OPERATIONS}"
    return refusal(census_of(dim, values.dtype))


@lru_cache(maxsize=64)
def census_of(dim: int, dtype: Any) -> Census:
    """Counts of the kernel for some number of features. Loops count once, whatever the numbers of reports and arms."""
    lanes, blocks, reports, arms = BLOCK, 4, 8, 4
    shapes = [(lanes, 1), (lanes,), (lanes, blocks, reports), (lanes, blocks, reports), (lanes, blocks)]
    shapes += [(lanes, arms, dim), (lanes,), (lanes,)]
    kinds = [dtype, jnp.int32, dtype, bool, jnp.int32, dtype, dtype, jnp.int32]
    given = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    traced = jax.make_jaxpr(partial(by_kernel, 0))(*given)
    [kernel] = [eqn.params["jaxpr"] for eqn in traced.jaxpr.eqns if eqn.primitive.name == "pallas_call"]
    return counted(kernel)


def form(about: tuple[int, Any], shapes: Sequence[Any], platform: str, kind: str) -> Callable[..., list[Any]]:
    """The kernel on a GPU, where it can be one; else XLA's operations without the tiles that a CPU's cache wants.

    about: the length of the history of eigenvalues, the structure of the arguments.
    """
    history, treedef = about
    given = jax.tree.unflatten(treedef, shapes)
    if kind == "xla" or platform not in GPUS or refused(given):
        function = partial(as_xla, history, tiles=False)
    else:
        function = partial(by_kernel, history, interpret=kind == "interpreted")

    def call(*leaves: Any) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(treedef, leaves)))

    return call
