"""Sums, orders and products over an axis, written out element by element from left to right."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.elements import Elements, apply, as_number, both, call, either, filled, known, select, single

Operands = list[Elements]
LONGEST_SORT = 40  # a network of n (n - 1) / 2 exchanges


def largest(a: Any, b: Any) -> Any:
    """The larger of two elements; NaN where either is, which hardware does not promise."""
    return _extreme(lax.gt, lax.ge, a, b)


def smallest(a: Any, b: Any) -> Any:
    """The smaller of two elements; NaN where either is."""
    return _extreme(lax.lt, lax.le, a, b)


def _extreme(beats: Callable[[Any, Any], Any], reaches: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return call(lambda a, b: lax.select(beats(a, b), a, b), a, b)
    a, b = (a, b) if known(b) else (b, a)
    if known(b) and b == b:  # one comparison: where it fails, a is NaN or the answer
        return call(lambda a, b: lax.select(reaches(b, a), b, a), a, b)
    return call(lambda a, b: lax.select(beats(a, b) | (a != a), a, b), a, b)


def _position(loses: Callable[[Any, Any], Any], run: Any, operands: Operands, eqn: Any) -> Operands:
    """argmax and argmin: the first of equals, and the first NaN before all numbers.

    loses: whether an element does not come before an earlier one. It is False where either is NaN.
    """
    [axis], out = eqn.params["axes"], eqn.outvars[0].aval
    rows = np.moveaxis(operands[0], axis, -1)

    def better(new: Any, best: Any) -> Any:
        if not jnp.issubdtype(new.dtype, jnp.inexact):
            return call(lambda new, best: ~loses(new, best), new, best)
        return call(lambda new, best: ~loses(new, best) & (best == best), new, best)

    def first(index: Any) -> Any:
        best, at = rows[index][0], as_number(0, out.dtype)
        for k, new in enumerate(rows[index][1:], 1):
            wins = better(new, best)
            best, at = select(wins, new, best), select(wins, as_number(k, out.dtype), at)
        return at

    return [filled(rows.shape[:-1], first)]


def _rows(x: Elements, axes: Any) -> Elements:
    """An array whose last axis runs over the given axes."""
    kept = [d for d in range(x.ndim) if d not in axes]
    return np.transpose(x, [*kept, *axes]).reshape([*(x.shape[d] for d in kept), -1])


def _folded(combine: Callable[[Any, Any], Any], empty: Any, run: Any, operands: Operands, eqn: Any) -> Operands:
    rows, dtype = _rows(operands[0], eqn.params["axes"]), eqn.outvars[0].aval.dtype

    def total(index: Any) -> Any:
        return reduce(combine, rows[index]) if rows.shape[-1] else as_number(empty, dtype)

    return [filled(rows.shape[:-1], total)]


def _cumulative(combine: Callable[[Any, Any], Any], run: Any, operands: Operands, eqn: Any) -> Operands:
    rows = np.moveaxis(operands[0], eqn.params["axis"], -1).copy()
    order = range(rows.shape[-1])[::-1] if eqn.params["reverse"] else range(rows.shape[-1])
    for index in np.ndindex(rows.shape[:-1]):
        last: Any = None
        for k in order:
            last = rows[(*index, k)] if last is None else combine(last, rows[(*index, k)])
            rows[(*index, k)] = last
    return [np.moveaxis(rows, -1, eqn.params["axis"])]


def _reduce(run: Any, operands: Operands, eqn: Any) -> Operands:
    """A reduction by a function of its own, such as the one that materializes."""
    half = len(operands) // 2
    arrays, starts = [_rows(x, eqn.params["dimensions"]) for x in operands[:half]], operands[half:]
    function = eqn.params["jaxpr"]
    outs = [np.empty(arrays[0].shape[:-1], object) for _ in arrays]
    for index in np.ndindex(outs[0].shape):
        total = [start[()] for start in starts]
        for k in range(arrays[0].shape[-1]):
            new = [rows[(*index, k)] for rows in arrays]
            total = [x[()] for x in run.inner(function, eqn.params.get("consts", ()), map(single, (*total, *new)))]
        for out, x in zip(outs, total, strict=True):
            out[index] = x
    return outs


def _dot_general(run: Any, operands: Operands, eqn: Any) -> Operands:
    (left_summed, right_summed), (left_batch, right_batch) = eqn.params["dimension_numbers"]

    def rows(x: Elements, batch: Any, summed: Any) -> Elements:
        free = [d for d in range(x.ndim) if d not in (*batch, *summed)]
        shape = [*(x.shape[d] for d in (*batch, *free)), -1]
        return np.transpose(x, [*batch, *free, *summed]).reshape(shape)

    left, right = rows(operands[0], left_batch, left_summed), rows(operands[1], right_batch, right_summed)
    batch, free = len(left_batch), left.ndim - 1 - len(left_batch)

    def product(index: Any) -> Any:
        a, b = left[index[: batch + free]], right[(*index[:batch], *index[batch + free :])]
        return reduce(_sum, [apply(lax.mul_p, pair) for pair in zip(a, b, strict=True)])

    return [filled(eqn.outvars[0].aval.shape, product)]


def _sort(run: Any, operands: Operands, eqn: Any) -> Operands:
    """A network of exchanges between neighbours, which keeps the order of equals. NaN comes last."""
    axis, length = eqn.params["dimension"], operands[0].shape[eqn.params["dimension"]]
    if eqn.params["num_keys"] != 1 or length > LONGEST_SORT:
        raise run.unsupported(f"sort of {length} elements by {eqn.params['num_keys']} keys")
    arrays = [np.moveaxis(x, axis, -1).copy() for x in operands]

    def behind(left: Any, right: Any) -> Any:
        if not jnp.issubdtype(left.dtype, jnp.inexact):
            return call(lax.lt, right, left)
        return call(lambda left, right: (right < left) | ((left != left) & (right == right)), left, right)

    for index in np.ndindex(arrays[0].shape[:-1]):
        for turn in range(length):
            for k in range(turn % 2, length - 1, 2):
                here, there = (*index, k), (*index, k + 1)
                swap = behind(arrays[0][here], arrays[0][there])
                for x in arrays:
                    x[here], x[there] = select(swap, x[there], x[here]), select(swap, x[here], x[there])
    return [np.moveaxis(x, -1, axis) for x in arrays]


def _sum(a: Any, b: Any) -> Any:
    return apply(lax.add_p, [a, b])


def _product(a: Any, b: Any) -> Any:
    return apply(lax.mul_p, [a, b])


def _pairwise(combine: Callable[[Any, Any], Any], run: Any, operands: Operands, eqn: Any) -> Operands:
    a, b = np.broadcast_arrays(*operands)
    return [filled(eqn.outvars[0].aval.shape, lambda index: combine(a[index], b[index]))]


RULES = {
    "argmax": partial(_position, lax.le),
    "argmin": partial(_position, lax.ge),
    "cummax": partial(_cumulative, largest),
    "cumprod": partial(_cumulative, _product),
    "cumsum": partial(_cumulative, _sum),
    "dot_general": _dot_general,
    "max": partial(_pairwise, largest),
    "min": partial(_pairwise, smallest),
    "reduce": _reduce,
    "reduce_and": partial(_folded, both, True),
    "reduce_max": partial(_folded, largest, None),
    "reduce_min": partial(_folded, smallest, None),
    "reduce_or": partial(_folded, either, False),
    "reduce_prod": partial(_folded, _product, 1),
    "reduce_sum": partial(_folded, _sum, 0),
    "sort": _sort,
}
