"""Where slices lie whose start is only known to the program: what gather and scatter say, for both forms of arrays."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.text import Number, number


class Places(NamedTuple):
    """The slices of a gather or scatter."""

    shape: tuple[int, ...]  # of the array
    dims: tuple[int, ...]  # its axes that have a start
    tops: list[int]  # the largest start of each
    batch: list[int]  # axes of the slices that run over rows of the index
    windows: list[tuple[int, int]]  # axes of the slices that run along axes of the array
    batching: list[tuple[int, int]]  # axes of the index that run along axes of the array

    def offset(self, at: Any) -> tuple[list[Any], list[Any]]:
        """Where an element of the slices lies beside its start, and the row of the index that has the start."""
        row, offset = [at[d] for d in self.batch], [0] * len(self.shape)
        for d, k in self.windows:
            offset[k] = at[d]
        for d, k in self.batching:
            offset[k] = row[d]
        return offset, row


def of_gather(eqn: Any) -> Places:
    """What a gather reads."""
    numbers, sizes, shape = eqn.params["dimension_numbers"], eqn.params["slice_sizes"], eqn.invars[0].aval.shape
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    kept = [d for d in range(len(shape)) if d not in dropped]
    dims, rank = numbers.start_index_map, len(eqn.outvars[0].aval.shape)
    return Places(
        shape, dims, [shape[d] - sizes[d] for d in dims], [d for d in range(rank) if d not in numbers.offset_dims],
        list(zip(numbers.offset_dims, kept, strict=True)),
        list(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True)),
    )  # fmt: skip


def of_scatter(eqn: Any) -> Places:
    """What a scatter writes."""
    numbers, shape, new = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    kept = [d for d in range(len(shape)) if d not in dropped]
    windows = list(zip(numbers.update_window_dims, kept, strict=True))
    sizes, dims = {k: new[d] for d, k in windows}, numbers.scatter_dims_to_operand_dims
    return Places(
        shape, dims, [shape[d] - sizes.get(d, 1) for d in dims],
        [d for d in range(len(new)) if d not in numbers.update_window_dims], windows,
        list(zip(numbers.scatter_indices_batching_dims, numbers.operand_batching_dims, strict=True)),
    )  # fmt: skip


def inside(run: Any, start: Number, top: int) -> Number:
    """Whether a start lies in 0 .. top."""
    low = run.op("ge", start, number(0, start.dtype))
    return run.op("and", low, run.op("le", start, number(top, start.dtype)))


def filling(run: Any, eqn: Any, starts: list[Number], tops: list[int], found: Callable[[], Number]) -> Number:
    """What a gather finds, or what it gives outside of its array."""
    if eqn.params["mode"] != lax.GatherScatterMode.FILL_OR_DROP:
        return found()
    within = run.all_of(inside(run, *pair) for pair in zip(starts, tops, strict=True))
    return run.select(within, found(), outside(eqn.params["fill_value"], eqn.outvars[0].aval.dtype))


def outside(value: Any, dtype: Any) -> Any:
    """What a gather gives outside of its array."""
    if value is None:
        if jnp.issubdtype(dtype, jnp.inexact):
            value = np.nan
        elif np.dtype(dtype).kind == "b":
            value = True
        else:
            value = jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.signedinteger) else jnp.iinfo(dtype).max
    return number(value, dtype)
