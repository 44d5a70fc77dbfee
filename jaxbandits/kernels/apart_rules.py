"""Operations on arrays that are held apart.

Sums, orders and products are written out from left to right. A position that is not
known is a choice among all elements.
"""

from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from jax import lax

from jaxbandits.kernels.arrays import Apart, filled, single
from jaxbandits.kernels.positions import filling, of_gather, of_scatter
from jaxbandits.kernels.text import Number, Unsupported, known, number

Arrays = list[Apart]

# ---- made and joined


def _iota(run: Any, eqn: Any, x: Arrays) -> Arrays:
    shape, along = eqn.params["shape"], eqn.params["dimension"]
    return [filled(shape, lambda index: number(index[along], eqn.params["dtype"]))]


def _pad(run: Any, eqn: Any, x: Arrays) -> Arrays:
    padded = filled(eqn.outvars[0].aval.shape, lambda _: x[1][()])
    for index in np.ndindex(x[0].shape):
        config = eqn.params["padding_config"]
        at = tuple(low + i * (1 + between) for i, (low, _, between) in zip(index, config, strict=True))
        if all(0 <= i < n for i, n in zip(at, padded.shape, strict=True)):
            padded[at] = x[0][index]
    return [padded]


# ---- folds


def rows_of(x: Apart, axes: Any) -> Apart:
    """An array whose last axis runs over the given axes."""
    kept = [d for d in range(x.ndim) if d not in axes]
    return np.transpose(x, [*kept, *axes]).reshape([*(x.shape[d] for d in kept), -1])


def _folded(how: str, empty: Any, run: Any, eqn: Any, x: Arrays) -> Arrays:
    rows, dtype = rows_of(x[0], eqn.params["axes"]), eqn.outvars[0].aval.dtype

    def total(index: Any) -> Number:
        return reduce(partial(run.op, how), rows[index]) if rows.shape[-1] else number(empty, dtype)

    return [filled(rows.shape[:-1], total)]


def _cumulative(how: str, run: Any, eqn: Any, x: Arrays) -> Arrays:
    rows = np.moveaxis(x[0], eqn.params["axis"], -1).copy()
    order = range(rows.shape[-1])[:: -1 if eqn.params["reverse"] else 1]
    for index in np.ndindex(rows.shape[:-1]):
        for before, k in pairwise(order):
            rows[(*index, k)] = run.op(how, rows[(*index, before)], rows[(*index, k)])
    return [np.moveaxis(rows, -1, eqn.params["axis"])]


def better(run: Any, how: str, new: Number, best: Number) -> Number:
    """Whether an element comes before an earlier one: the first of equals, and the first NaN before all numbers."""
    wins = run.op("not", run.op(how, new, best))
    return run.op("and", wins, run.op("eq", best, best)) if best.dtype.kind == "f" else wins


def _position(loses: str, run: Any, eqn: Any, x: Arrays) -> Arrays:
    [axis], dtype = eqn.params["axes"], eqn.outvars[0].aval.dtype
    rows = np.moveaxis(x[0], axis, -1)

    def first(index: Any) -> Number:
        best, at = rows[index][0], number(0, dtype)
        for k, new in enumerate(rows[index][1:], 1):
            wins = better(run, loses, new, best)
            best, at = run.select(wins, new, best), run.select(wins, number(k, dtype), at)
        return at

    return [filled(rows.shape[:-1], first)]


def _reduce(run: Any, eqn: Any, x: Arrays) -> Arrays:
    """A reduction by a function of its own, such as the one that materializes."""
    half, function = len(x) // 2, eqn.params["jaxpr"]
    arrays, starts = [rows_of(each, eqn.params["dimensions"]) for each in x[:half]], x[half:]
    outs = [np.empty(arrays[0].shape[:-1], object) for _ in arrays]
    for index in np.ndindex(outs[0].shape):
        total = [start[()] for start in starts]
        for k in range(arrays[0].shape[-1]):
            new = [rows[(*index, k)] for rows in arrays]
            total = [y[()] for y in run.inner(function, eqn.params.get("consts", ()), map(single, (*total, *new)))]
        for out, y in zip(outs, total, strict=True):
            out[index] = y
    return outs


def _dot_general(run: Any, eqn: Any, x: Arrays) -> Arrays:
    (left_summed, right_summed), (left_batch, right_batch) = eqn.params["dimension_numbers"]

    def rows(each: Apart, batch: Any, summed: Any) -> Apart:
        free = [d for d in range(each.ndim) if d not in (*batch, *summed)]
        return np.transpose(each, [*batch, *free, *summed]).reshape([*(each.shape[d] for d in (*batch, *free)), -1])

    left, right = rows(x[0], left_batch, left_summed), rows(x[1], right_batch, right_summed)
    batch, free = len(left_batch), left.ndim - 1 - len(left_batch)

    def product(index: Any) -> Number:
        a, b = left[index[: batch + free]], right[(*index[:batch], *index[batch + free :])]
        return reduce(partial(run.op, "add"), [run.op("mul", *pair) for pair in zip(a, b, strict=True)])

    return [filled(eqn.outvars[0].aval.shape, product)]


def _sort(run: Any, eqn: Any, x: Arrays) -> Arrays:
    """A network of exchanges between neighbours, which keeps the order of equals. NaN comes last."""
    if eqn.params["num_keys"] != 1:
        raise Unsupported("sort by several keys")
    arrays = [np.moveaxis(each, eqn.params["dimension"], -1).copy() for each in x]
    length = arrays[0].shape[-1]
    for index in np.ndindex(arrays[0].shape[:-1]):
        for turn in range(length):
            for k in range(turn % 2, length - 1, 2):
                here, there = (*index, k), (*index, k + 1)
                swap = run.op("before", arrays[0][there], arrays[0][here])
                for each in arrays:
                    a, b = each[here], each[there]
                    each[here], each[there] = run.select(swap, b, a), run.select(swap, a, b)
    return [np.moveaxis(each, -1, eqn.params["dimension"]) for each in arrays]


# ---- positions


def _chosen(run: Any, element_at: Callable[[Any], Number], starts: list[Number], tops: list[int]) -> Number:
    """The element at a position, each coordinate moved into 0 .. top."""
    if not starts:
        return element_at(())
    (start, *starts), (top, *tops) = starts, tops
    positions = [min(max(int(start), 0), top)] if known(start) else list(range(top + 1))
    rest = [_chosen(run, partial(_behind, element_at, i), starts, tops) for i in positions]
    found = rest[0]
    for i, other in zip(positions[1:], rest[1:], strict=True):
        found = run.select(run.op("ge", start, number(i, start.dtype)), other, found)
    return found


def _behind(element_at: Callable[[Any], Number], i: int, at: Any) -> Number:
    return element_at((i, *at))


def _dynamic_slice(run: Any, eqn: Any, x: Arrays) -> Arrays:
    sizes = eqn.params["slice_sizes"]
    tops, starts = [n - m for n, m in zip(x[0].shape, sizes, strict=True)], [start[()] for start in x[1:]]

    def element(index: Any) -> Number:
        return _chosen(run, lambda at: x[0][tuple(map(sum, zip(at, index, strict=True)))], starts, tops)

    return [filled(sizes, element)]


def _dynamic_update_slice(run: Any, eqn: Any, x: Arrays) -> Arrays:
    array, new = x[0].copy(), x[1]
    tops = [n - m for n, m in zip(array.shape, new.shape, strict=True)]
    starts = [run.within(start[()], top) for start, top in zip(x[2:], tops, strict=True)]
    for index in np.ndindex(array.shape):
        for offset in np.ndindex(new.shape):
            at = [i - j for i, j in zip(index, offset, strict=True)]
            if all(0 <= i <= top for i, top in zip(at, tops, strict=True)):
                pairs = zip(starts, at, strict=True)
                hit = run.all_of(run.op("eq", start, number(i, start.dtype)) for start, i in pairs)
                array[index] = run.select(hit, new[offset], array[index])
    return [array]


def _moved(offset: list[int], dims: Any, position: Any) -> tuple[int, ...]:
    where = list(offset)
    for d, i in zip(dims, position, strict=True):
        where[d] += i
    return tuple(where)


def _gather(run: Any, eqn: Any, x: Arrays) -> Arrays:
    places = of_gather(eqn)

    def element(at: Any) -> Number:
        offset, row = places.offset(at)
        starts = [x[1][(*row, k)] for k in range(len(places.dims))]
        return filling(
            run, eqn, starts, places.tops,
            lambda: _chosen(run, lambda i: x[0][_moved(offset, places.dims, i)], starts, places.tops),
        )  # fmt: skip

    return [filled(eqn.outvars[0].aval.shape, element)]


def _scatter(how: str | None, run: Any, eqn: Any, x: Arrays) -> Arrays:
    array, index, new = x[0].copy(), x[1], x[2]
    places = of_scatter(eqn)
    for at in np.ndindex(new.shape):
        offset, row = places.offset(at)
        starts = [index[(*row, k)] for k in range(len(places.dims))]
        if eqn.params["mode"] == lax.GatherScatterMode.CLIP:
            starts = [run.within(start, top) for start, top in zip(starts, places.tops, strict=True)]
        for position in np.ndindex(*(top + 1 for top in places.tops)):
            pairs = zip(starts, position, strict=True)
            hit = run.all_of(run.op("eq", start, number(i, start.dtype)) for start, i in pairs)
            if not (known(hit) and not hit):
                place = _moved(offset, places.dims, position)
                after = new[at] if how is None else run.op(how, array[place], new[at])
                array[place] = run.select(hit, after, array[place])
    return [array]


RULES: dict[str, Callable[..., Arrays]] = {
    "argmax": partial(_position, "le"),
    "argmin": partial(_position, "ge"),
    "concatenate": lambda run, eqn, x: [np.concatenate(x, eqn.params["dimension"])],
    "cummax": partial(_cumulative, "max"),
    "cummin": partial(_cumulative, "min"),
    "cumprod": partial(_cumulative, "mul"),
    "cumsum": partial(_cumulative, "add"),
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "iota": _iota,
    "pad": _pad,
    "reduce": _reduce,
    "reduce_and": partial(_folded, "and", True),
    "reduce_max": partial(_folded, "max", None),
    "reduce_min": partial(_folded, "min", None),
    "reduce_or": partial(_folded, "or", False),
    "reduce_prod": partial(_folded, "mul", 1),
    "reduce_sum": partial(_folded, "add", 0),
    "scatter": partial(_scatter, None),
    "scatter-add": partial(_scatter, "add"),
    "scatter-max": partial(_scatter, "max"),
    "scatter-min": partial(_scatter, "min"),
    "sort": _sort,
    "stack": lambda run, eqn, x: [np.stack(x, eqn.params["axis"])],
}
