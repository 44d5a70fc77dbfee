"""Reading and writing at a position that is not known while tracing: a choice among all elements."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.elements import Elements, Index, apply, as_number, both, call, filled, known, select
from jaxbandits.kernels.reduction_rules import largest, smallest

Operands = list[Elements]


def _chosen(run: Any, element_at: Callable[[Index], Any], starts: Sequence[Any], tops: Sequence[int]) -> Any:
    """The element at a position, each coordinate moved into 0 .. top."""
    if not starts:
        return element_at(())
    (start, *starts), (top, *tops) = starts, tops
    if known(start):
        positions = [min(max(int(start), 0), top)]
    else:
        positions = list(range(top + 1))

    def behind(i: int) -> Any:
        return _chosen(run, lambda at: element_at((i, *at)), starts, tops)

    rest = list(map(behind, positions))
    found = rest[0]
    for i, other in zip(positions[1:], rest[1:], strict=True):
        found = select(run.compared("ge", start, i), other, found)
    return found


def _inside(run: Any, start: Any, top: int) -> Any:
    """Whether a coordinate lies in 0 .. top."""
    low = run.compared("ge", start, 0)
    return both(low, call(lax.le, start, as_number(top, start.dtype)))


def _into_range(start: Any, top: int) -> Any:
    """A coordinate moved into 0 .. top."""
    low, high = as_number(0, start.dtype), as_number(top, start.dtype)
    return call(lambda x, low, high: lax.min(lax.max(x, low), high), start, low, high)


def _picks(run: Any, shape: Any, sizes: Any, axis: int) -> bool:
    """Whether slices take one number each of the axis that is not held apart."""
    return run.runs_along(shape, axis) and sizes[axis] == 1


def _whole(run: Any, shape: Any, sizes: Any) -> None:
    """Raise where slices take a part of the axis that is not held apart, or such an axis from a longer one."""
    for n, size in zip(shape, sizes, strict=True):
        if run.long is not None and n != size and (size == run.long.length or (n == run.long.length and size != 1)):
            raise run.unsupported(f"{size} of an axis of {n}")


def _dynamic_slice(run: Any, operands: Operands, eqn: Any) -> Operands:
    x, shape, sizes = operands[0], eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    _whole(run, shape, sizes)
    starts = [start[()] for start in operands[1:]]
    tops = [0 if run.runs_along(shape, d) else n - m for d, (n, m) in enumerate(zip(shape, sizes, strict=True))]
    places = [start for d, start in enumerate(starts) if _picks(run, shape, sizes, d)]

    def element(index: Index) -> Any:
        found = _chosen(run, lambda at: x[tuple(map(sum, zip(at, index, strict=True)))], starts, tops)
        return run.long.picked(run, found, places[0]) if places else found

    return [filled(run.held(sizes), element)]


def _dynamic_update_slice(run: Any, operands: Operands, eqn: Any) -> Operands:
    x, new = operands[0].copy(), operands[1]
    _whole(run, eqn.invars[0].aval.shape, eqn.invars[1].aval.shape)
    if any(
        n != m and run.runs_along(eqn.invars[0].aval.shape, d)
        for d, (n, m) in enumerate(zip(eqn.invars[0].aval.shape, eqn.invars[1].aval.shape, strict=True))
    ):
        raise run.unsupported(f"writing a part of an axis of {run.long.length}")
    tops = [n - m for n, m in zip(x.shape, new.shape, strict=True)]
    starts = [_into_range(start[()], top) for start, top in zip(operands[2:], tops, strict=True)]
    for index in np.ndindex(x.shape):
        for offset in np.ndindex(new.shape):
            at = [i - j for i, j in zip(index, offset, strict=True)]
            if all(0 <= i <= top for i, top in zip(at, tops, strict=True)):
                hit = reduce(both, [run.compared("eq", *pair) for pair in zip(starts, at, strict=True)], np.bool_(True))
                x[index] = select(hit, new[offset], x[index])
    return [x]


def _offset(
    rank: int, at: Index, windows: list[tuple[int, int]], row: Index, batching: list[tuple[int, int]]
) -> list[int]:
    """Where an element lies beside the start of its slice, from its place in the slice and from its row of indices.

    windows, batching: axes of the slices, or of the indices, with the array's axes that they run along.
    """
    offset = [0] * rank
    for d, k in windows:
        offset[k] = at[d]
    for d, k in batching:
        offset[k] = row[d]
    return offset


def _gather(run: Any, operands: Operands, eqn: Any) -> Operands:
    x, index = operands
    numbers, sizes, out = eqn.params["dimension_numbers"], eqn.params["slice_sizes"], eqn.outvars[0].aval
    shape = eqn.invars[0].aval.shape
    _whole(run, shape, sizes)
    batch = [d for d in range(len(out.shape)) if d not in numbers.offset_dims]
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    kept = [d for d in range(x.ndim) if d not in dropped]
    dims = numbers.start_index_map
    tops = [shape[d] - sizes[d] for d in dims]
    batching = list(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    windows = list(zip(numbers.offset_dims, kept, strict=True))

    def element(at: Index) -> Any:
        row = tuple(at[d] for d in batch)
        offset = _offset(x.ndim, at, windows, row, batching)
        starts = [index[(*row, k)] for k in range(len(dims))]

        def there(position: Index) -> Any:
            where = list(offset)
            for d, i in zip(dims, position, strict=True):
                where[d] += i
            return x[tuple(where)]

        apart = [0 if run.runs_along(shape, d) else top for d, top in zip(dims, tops, strict=True)]
        found = _chosen(run, there, starts, apart)
        for d, start in zip(dims, starts, strict=True):
            if _picks(run, shape, sizes, d):
                found = run.long.picked(run, found, start)
        if eqn.params["mode"] != lax.GatherScatterMode.FILL_OR_DROP:
            return found
        inside = reduce(both, [_inside(run, *pair) for pair in zip(starts, tops, strict=True)], np.bool_(True))
        return select(inside, found, _fill(eqn.params["fill_value"], out.dtype))

    return [filled(run.held(out.shape), element)]


def _fill(value: Any, dtype: Any) -> Any:
    """What a gather gives outside of its array."""
    if value is None:
        if jnp.issubdtype(dtype, jnp.inexact):
            value = np.nan
        elif jnp.issubdtype(dtype, jnp.bool_):
            value = True
        else:
            value = jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.signedinteger) else jnp.iinfo(dtype).max
    return as_number(value, dtype)


def _scatter(combine: Callable[[Any, Any, Any], Any], run: Any, operands: Operands, eqn: Any) -> Operands:
    x, index, new = operands[0].copy(), operands[1], operands[2]
    numbers, shape = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    kept = [d for d in range(x.ndim) if d not in dropped]
    batch = [d for d in range(new.ndim) if d not in numbers.update_window_dims]
    dims = numbers.scatter_dims_to_operand_dims
    sizes = dict(zip(kept, (eqn.invars[2].aval.shape[d] for d in numbers.update_window_dims), strict=True))
    tops = {d: shape[d] - sizes.get(d, 1) for d in dims}
    _whole(run, shape, [sizes.get(d, 1) for d in range(x.ndim)])
    if any(run.runs_along(eqn.invars[2].aval.shape, d) for d in batch):
        raise run.unsupported(f"writing at {run.long.length} places")
    batching = list(zip(numbers.scatter_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    windows = list(zip(numbers.update_window_dims, kept, strict=True))
    for at in np.ndindex(new.shape):
        row = tuple(at[d] for d in batch)
        offset = _offset(x.ndim, at, windows, row, batching)
        starts = {d: index[(*row, k)] for k, d in enumerate(dims)}
        if eqn.params["mode"] == lax.GatherScatterMode.CLIP:
            starts = {d: _into_range(start, tops[d]) for d, start in starts.items()}
        for position in np.ndindex(*(1 if run.runs_along(shape, d) else tops[d] + 1 for d in dims)):
            where = list(offset)
            for d, i in zip(dims, position, strict=True):
                where[d] += i
            hits = [
                call(lax.eq, run.long.places(run), start.astype(jnp.int32))
                if run.runs_along(shape, d) and tops[d]
                else run.compared("eq", start, i)
                for (d, start), i in zip(starts.items(), position, strict=True)
            ]
            hit = reduce(both, hits, np.bool_(True))
            place = tuple(where)
            if not (known(hit) and not hit):
                x[place] = select(hit, combine(run, x[place], new[at]), x[place])
    return [x]


def _added(run: Any, a: Any, b: Any) -> Any:
    return apply(lax.add_p, [a, b])


RULES = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": partial(_scatter, lambda run, old, new: new),
    "scatter-add": partial(_scatter, _added),
    "scatter-max": partial(_scatter, largest),
    "scatter-min": partial(_scatter, smallest),
}
