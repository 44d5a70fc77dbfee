"""Sums, orders and products over an axis, written out element by element from left to right."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.elements import Elements, apply, as_number, both, call, either, filled, known, select, single

Operands = list[Elements]
LONGEST_SORT = 40  # a network of n (n - 1) / 2 exchanges


class Extreme(NamedTuple):
    """What the largest or smallest of some elements was made of."""

    element: Any  # kept too, so that no other gets its id
    ordered: Any  # the answer where none is NaN
    # docs/decisions.md#nan-as-in-jax
    nan: Any  # whether one of the elements is NaN, beside the odd one
    odd: tuple[Any, ...]  # at most one element that has not been asked: hardware asks two at once


def largest(run: Any, a: Any, b: Any) -> Any:
    """The larger of two elements; NaN where either is, which hardware does not promise."""
    return _extreme(run, lax.max, lax.ge, a, b)


def smallest(run: Any, a: Any, b: Any) -> Any:
    """The smaller of two elements; NaN where either is."""
    return _extreme(run, lax.min, lax.le, a, b)


def _extreme(run: Any, best: Callable[..., Any], reaches: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return call(best, a, b)
    a, b = (a, b) if known(b) else (b, a)
    if known(b) and b == b and (best, id(a)) not in run.extremes:  # where it fails, a is NaN or the answer
        return call(lambda a, b: lax.select(reaches(b, a), b, a), a, b)
    first, second = (run.extremes.get((best, id(x))) or Extreme(x, x, np.bool_(False), (x,)) for x in (a, b))
    ordered, nan, odd = call(best, first.ordered, second.ordered), either(first.nan, second.nan), first.odd + second.odd
    if len(odd) == 2:
        nan, odd = either(nan, either(*map(_is_nan, odd))), ()
    # of an extreme that becomes part of another one this is not read
    element = select(reduce(either, map(_is_nan, odd), nan), as_number(np.nan, a.dtype), ordered)
    if not known(element):
        run.extremes[best, id(element)] = Extreme(element, ordered, nan, odd)
    return element


def _is_nan(x: Any) -> Any:
    return call(lambda x: x != x, x)


def _position(loses: Callable[[Any, Any], Any], run: Any, operands: Operands, eqn: Any) -> Operands:
    """argmax and argmin: the first of equals, and the first NaN before all numbers.

    loses: whether an element does not come before an earlier one. It is False where either is NaN.
    """
    [axis], out = eqn.params["axes"], eqn.outvars[0].aval
    rows = np.moveaxis(operands[0], axis, -1)
    if run.runs_along(eqn.invars[0].aval.shape, axis):
        how = "max" if loses is lax.le else "min"
        return [filled(rows.shape[:-1], lambda index: _place(run, how, rows[index][0], out.dtype))]

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


def _place(run: Any, how: str, x: Any, dtype: Any) -> Any:
    """The place of the largest or smallest number along the axis that is not held apart."""
    best, places = run.long.across(run, how, x), run.long.places(run)
    # the best is NaN where one is: the first of those
    here = call(lambda x, best: (x == best) | (x != x), x, best)
    nowhere = as_number(run.long.length - 1, np.int32)
    return run.long.across(run, "min", select(here, places, nowhere)).astype(dtype)


def _along(run: Any, how: str, x: Elements, eqn: Any) -> tuple[Elements, list[int]]:
    """An array folded along the axis that is not held apart, if it is one of those, and its other axes to fold."""
    axes = list(eqn.params["axes"])
    for axis in axes:
        if run.runs_along(eqn.invars[0].aval.shape, axis):
            folded = filled(x.shape, lambda index: run.long.across(run, how, x[index]))
            return np.squeeze(folded, axis), [d - (d > axis) for d in axes if d != axis]
    return x, axes


def _rows(x: Elements, axes: Any) -> Elements:
    """An array whose last axis runs over the given axes."""
    kept = [d for d in range(x.ndim) if d not in axes]
    return np.transpose(x, [*kept, *axes]).reshape([*(x.shape[d] for d in kept), -1])


def _folded(
    combine: Callable[[Any, Any, Any], Any], empty: Any, how: str, run: Any, operands: Operands, eqn: Any
) -> Operands:
    x, axes = _along(run, how, operands[0], eqn)
    rows, dtype = _rows(x, axes), eqn.outvars[0].aval.dtype

    def total(index: Any) -> Any:
        return reduce(partial(combine, run), rows[index]) if rows.shape[-1] else as_number(empty, dtype)

    return [filled(rows.shape[:-1], total)]


def _cumulative(combine: Callable[[Any, Any, Any], Any], run: Any, operands: Operands, eqn: Any) -> Operands:
    if run.runs_along(eqn.invars[0].aval.shape, eqn.params["axis"]):
        if combine is not _sum or eqn.params["reverse"]:
            raise run.unsupported(f"{eqn.primitive.name} along an axis of {run.long.length}")
        return [filled(operands[0].shape, lambda index: run.long.sums(run, operands[0][index]))]
    rows = np.moveaxis(operands[0], eqn.params["axis"], -1).copy()
    order = range(rows.shape[-1])[::-1] if eqn.params["reverse"] else range(rows.shape[-1])
    for index in np.ndindex(rows.shape[:-1]):
        last: Any = None
        for k in order:
            last = rows[(*index, k)] if last is None else combine(run, last, rows[(*index, k)])
            rows[(*index, k)] = last
    return [np.moveaxis(rows, -1, eqn.params["axis"])]


class Named(NamedTuple):
    """How a traced function with a name is taken along the axis that is not held apart."""

    along: Callable[[Any, Elements], Elements]
    keeps: bool  # whether its result has the axis, which is the last one

    def fits(self, run: Any, eqn: Any) -> bool:
        """Whether it is taken along that axis. `vmap` moves axes and leaves the name."""
        shape = eqn.invars[0].aval.shape
        wanted = shape if self.keeps else shape[:-1]
        return run.runs_along(shape, -1) and [x.aval.shape for x in eqn.outvars] == [wanted]


def _sum_along(run: Any, x: Elements) -> Elements:
    return filled(x.shape[:-1], lambda index: run.long.across(run, "sum", x[index][0]))


def _sums_along(run: Any, x: Elements) -> Elements:
    return filled(x.shape, lambda index: run.long.sums(run, x[index]))


def _reduce(run: Any, operands: Operands, eqn: Any) -> Operands:
    """A reduction by a function of its own, such as the one that materializes."""
    half = len(operands) // 2
    if any(run.runs_along(eqn.invars[0].aval.shape, axis) for axis in eqn.params["dimensions"]):
        raise run.unsupported(f"a reduction of its own along an axis of {run.long.length}")
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
    if any(run.runs_along(eqn.invars[0].aval.shape, axis) for axis in left_summed):
        raise run.unsupported(f"products summed along an axis of {run.long.length}")

    def rows(x: Elements, batch: Any, summed: Any) -> Elements:
        free = [d for d in range(x.ndim) if d not in (*batch, *summed)]
        shape = [*(x.shape[d] for d in (*batch, *free)), -1]
        return np.transpose(x, [*batch, *free, *summed]).reshape(shape)

    left, right = rows(operands[0], left_batch, left_summed), rows(operands[1], right_batch, right_summed)
    batch, free = len(left_batch), left.ndim - 1 - len(left_batch)

    def product(index: Any) -> Any:
        a, b = left[index[: batch + free]], right[(*index[:batch], *index[batch + free :])]
        return reduce(partial(_sum, run), [apply(lax.mul_p, pair) for pair in zip(a, b, strict=True)])

    return [filled(run.held(eqn.outvars[0].aval.shape), product)]


def _sort(run: Any, operands: Operands, eqn: Any) -> Operands:
    """A network of exchanges between neighbours, which keeps the order of equals. NaN comes last."""
    axis, length = eqn.params["dimension"], eqn.invars[0].aval.shape[eqn.params["dimension"]]
    if eqn.params["num_keys"] != 1 or length > LONGEST_SORT or run.runs_along(eqn.invars[0].aval.shape, axis):
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


def _sum(run: Any, a: Any, b: Any) -> Any:
    return apply(lax.add_p, [a, b])


def _product(run: Any, a: Any, b: Any) -> Any:
    return apply(lax.mul_p, [a, b])


def _and(run: Any, a: Any, b: Any) -> Any:
    return both(a, b)


def _or(run: Any, a: Any, b: Any) -> Any:
    return either(a, b)


def _pairwise(combine: Callable[[Any, Any, Any], Any], run: Any, operands: Operands, eqn: Any) -> Operands:
    a, b = np.broadcast_arrays(*operands)
    return [filled(a.shape, lambda index: combine(run, a[index], b[index]))]


# Sums of `numerics.sums` in a fixed order; threads add up in an order of their own.
BY_NAME = {
    "jaxbandits_halved_sum": Named(_sum_along, keeps=False),
    "jaxbandits_doubled_cumsum": Named(_sums_along, keeps=True),
}

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
    "reduce_and": partial(_folded, _and, True, "min"),
    "reduce_max": partial(_folded, largest, None, "max"),
    "reduce_min": partial(_folded, smallest, None, "min"),
    "reduce_or": partial(_folded, _or, False, "max"),
    "reduce_prod": partial(_folded, _product, 1, "product"),
    "reduce_sum": partial(_folded, _sum, 0, "sum"),
    "sort": _sort,
}
