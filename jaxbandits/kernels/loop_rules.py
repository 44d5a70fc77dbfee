"""Operations on arrays that are too large to be held apart: loops over the thread's memory.

An element that is computed is computed where it is read; `Emitter.inner` keeps arrays in memory that are read more than
once.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from jax import lax

from jaxbandits.kernels.apart_rules import better
from jaxbandits.kernels.arrays import Looped, linear, plus, times
from jaxbandits.kernels.positions import filling, of_gather, of_scatter
from jaxbandits.kernels.text import Number, Unsupported, known, number, text_of

Arrays = list[Looped]

# ---- made and joined


def _iota(run: Any, eqn: Any, x: Arrays) -> Looped:
    p = eqn.params
    return Looped(p["shape"], p["dtype"], lambda i: run.of_index(i[p["dimension"]], p["dtype"]))


def _joined(run: Any, eqn: Any, x: Arrays, axis: int) -> Looped:
    """Arrays one after another along an axis, in memory."""
    out, begin = eqn.outvars[0].aval, 0
    found = run.memory(out.shape, out.dtype)
    for each in x:
        run.store(found, each, [begin if d == axis else 0 for d in range(len(out.shape))])
        begin += each.shape[axis]
    return found


def _stack(run: Any, eqn: Any, x: Arrays) -> Looped:
    axis = eqn.params["axis"]
    rows = [
        each.moved((*each.shape[:axis], 1, *each.shape[axis:]), lambda i: [*i[:axis], *i[axis + 1 :]]) for each in x
    ]
    return _joined(run, eqn, rows, axis)


def _pad(run: Any, eqn: Any, x: Arrays) -> Looped:
    out, config = eqn.outvars[0].aval, eqn.params["padding_config"]
    found, value = run.memory(out.shape, out.dtype), x[1].at([])
    run.over(out.shape, lambda i: run.say(f"{found.memory}[{linear(i, out.shape)}] = {text_of(value)};"))

    def write(i: Any) -> None:
        at = [plus(times(k, 1 + between), low) for k, (low, _, between) in zip(i, config, strict=True)]
        element = text_of(x[0].at(i))
        cut = [f"{k} >= 0 & {k} < {n}" for k, (low, high, _), n in zip(at, config, out.shape, strict=True)
               if low < 0 or high < 0]  # fmt: skip
        test = f"if ({' & '.join(cut)}) " if cut else ""
        run.say(f"{test}{found.memory}[{linear(at, out.shape)}] = {element};")

    run.over(x[0].shape, write)
    return found


# ---- folds: each element of the result by a loop

EMPTY: dict[str, Callable[[Any], Any]] = {
    "add": lambda kind: 0, "mul": lambda kind: 1, "or": lambda kind: False, "and": lambda kind: True,
    "max": lambda kind: -np.inf if kind.kind == "f" else False if kind.kind == "b" else np.iinfo(kind).min,
    "min": lambda kind: np.inf if kind.kind == "f" else True if kind.kind == "b" else np.iinfo(kind).max,
}  # fmt: skip


def _each(run: Any, eqn: Any, element: Callable[[Any], Number]) -> Looped:
    """The result, whose elements are computed one after another."""
    out = eqn.outvars[0].aval
    found = run.memory(out.shape, out.dtype)
    run.over(out.shape, lambda i: run.say(f"{found.memory}[{linear(i, out.shape)}] = {text_of(element(i))};"))
    return found


def _total(run: Any, how: str, shape: Any, element: Callable[[Any], Number], dtype: Any) -> Number:
    """Elements added up, or folded otherwise, by loops over a shape."""
    total = run.variable(number(EMPTY[how](np.dtype(dtype)), dtype), dtype)
    run.over(shape, lambda i: run.say(f"{total} = {text_of(run.op(how, total, element(i)))};"))
    return total


def _folded(how: str, run: Any, eqn: Any, x: Arrays) -> Looped:
    axes, dtype = eqn.params["axes"], eqn.outvars[0].aval.dtype

    def place(outer: Any, inner: Any) -> list[Any]:
        left, along = iter(outer), iter(inner)
        return [next(along) if d in axes else next(left) for d in range(x[0].ndim)]

    shape = [n for d, n in enumerate(x[0].shape) if d in axes]
    return _each(run, eqn, lambda i: _total(run, how, shape, lambda j: x[0].at(place(i, j)), dtype))


def _cumulative(how: str, run: Any, eqn: Any, x: Arrays) -> Looped:
    axis, reverse = eqn.params["axis"], eqn.params["reverse"]
    shape, dtype, length = list(x[0].shape), x[0].dtype, x[0].shape[axis]
    found = run.memory(shape, dtype)

    def row(i: Any) -> None:
        total = run.variable(number(EMPTY[how](dtype), dtype), dtype)

        def step(k: Any) -> None:
            at = [*i[:axis], f"({length - 1} - {k[0]})" if reverse else k[0], *i[axis:]]
            run.say(f"{total} = {text_of(run.op(how, total, x[0].at(at)))};")
            run.say(f"{found.memory}[{linear(at, shape)}] = {total};")

        run.over([length], step)

    run.over(shape[:axis] + shape[axis + 1 :], row)
    return found


def _position(loses: str, run: Any, eqn: Any, x: Arrays) -> Looped:
    [axis], dtype = eqn.params["axes"], eqn.outvars[0].aval.dtype

    def first(i: Any) -> Number:
        best = run.variable(x[0].at([*i[:axis], 0, *i[axis:]]), x[0].dtype)
        at = run.variable(number(0, dtype), dtype)

        def look(j: Any) -> None:
            new = x[0].at([*i[:axis], *j, *i[axis:]])
            with run.block(f"if ({text_of(better(run, loses, new, best))})"):
                run.say(f"{best} = {text_of(new)};")
                run.say(f"{at} = {j[0]};")

        run.over([x[0].shape[axis]], look)
        return at

    return _each(run, eqn, first)


def _dot_general(run: Any, eqn: Any, x: Arrays) -> Looped:
    (summed, with_), (batch, beside) = eqn.params["dimension_numbers"]
    left_free = [d for d in range(x[0].ndim) if d not in (*batch, *summed)]
    right_free = [d for d in range(x[1].ndim) if d not in (*beside, *with_)]
    left, right = run.kept(x[0]), run.kept(x[1])

    def product(i: Any) -> Number:
        def element(j: Any) -> Number:
            rows, columns = i[: len(batch) + len(left_free)], [*i[: len(batch)], *i[len(batch) + len(left_free) :]]
            a = dict(zip((*batch, *left_free, *summed), (*rows, *j), strict=True))
            b = dict(zip((*beside, *right_free, *with_), (*columns, *j), strict=True))
            return run.op("mul", left.at([a[d] for d in range(left.ndim)]), right.at([b[d] for d in range(right.ndim)]))

        return _total(run, "add", [x[0].shape[d] for d in summed], element, eqn.outvars[0].aval.dtype)

    return _each(run, eqn, product)


def _sort(run: Any, eqn: Any, x: Arrays) -> list[Looped]:
    """By insertion, which keeps the order of equals. NaN comes last."""
    if eqn.params["num_keys"] != 1:
        raise Unsupported("sort by several keys")
    axis, shape = eqn.params["dimension"], x[0].shape
    found = [run.copied(each) for each in x]

    def row(i: Any) -> None:
        def place(each: Looped, k: str) -> str:
            return f"{each.memory}[{linear([*i[:axis], k, *i[axis:]], shape)}]"

        def insert(k: Any) -> None:
            new = [each.at([*i[:axis], *k, *i[axis:]]) for each in found]
            j = run.variable(run.of_index(k[0], np.int32), np.int32)
            with run.block("ONCE for (;;)"):
                run.say(f"if ({j} == 0) break;")
                old = [run.let(place(each, f"({j} - 1)"), each.dtype) for each in found]
                run.say(f"if (!{run.op('before', new[0], old[0])}) break;")
                for each, x in zip(found, old, strict=True):
                    run.say(f"{place(each, j)} = {x};")
                run.say(f"{j} = {j} - 1;")
            for each, x in zip(found, new, strict=True):
                run.say(f"{place(each, j)} = {x};")

        run.over([shape[axis]], insert)

    run.over([n for d, n in enumerate(shape) if d != axis], row)
    return found


# ---- positions


def _dynamic_slice(run: Any, eqn: Any, x: Arrays) -> Looped:
    sizes = eqn.params["slice_sizes"]
    starts = [
        run.as_index(run.within(start.at([]), n - m)) for start, n, m in zip(x[1:], x[0].shape, sizes, strict=True)
    ]
    return x[0].moved(sizes, lambda i: [plus(k, start) for k, start in zip(i, starts, strict=True)])


def _dynamic_update_slice(run: Any, eqn: Any, x: Arrays) -> Looped:
    new = run.copied(x[1]) if x[0].memory is not None else x[1]  # it may be computed from what is written over
    found = run.owned(x[0])
    starts = [
        run.as_index(run.within(start.at([]), n - m)) for start, n, m in zip(x[2:], found.shape, new.shape, strict=True)
    ]
    run.store(found, new, starts)
    return found


def _place(run: Any, places: Any, offset: list[Any], starts: list[Number]) -> list[Any]:
    """An index of the array, its starts moved to where slices lie inside."""
    where = list(offset)
    for d, start, top in zip(places.dims, starts, places.tops, strict=True):
        where[d] = plus(where[d], run.as_index(run.within(start, top)))
    return where


def _gather(run: Any, eqn: Any, x: Arrays) -> Looped:
    array, index, places, out = run.kept(x[0]), run.kept(x[1]), of_gather(eqn), eqn.outvars[0].aval

    def at(i: Any) -> Number:
        offset, row = places.offset(i)
        starts = [index.at([*row, k]) for k in range(len(places.dims))]
        found = partial(array.at, _place(run, places, offset, starts))
        return filling(run, eqn, starts, places.tops, found)

    return Looped(out.shape, out.dtype, at, cheap=False)


def _scatter(how: str | None, run: Any, eqn: Any, x: Arrays) -> Looped:
    in_place = x[0].memory is not None
    index, new = (run.copied(each) if in_place else run.kept(each) for each in x[1:])
    found, places = run.owned(x[0]), of_scatter(eqn)

    def write(i: Any) -> None:
        offset, row = places.offset(i)
        starts = [index.at([*row, k]) for k in range(len(places.dims))]
        where = _place(run, places, offset, starts)
        value = new.at(i) if how is None else run.op(how, found.at(where), new.at(i))
        dropped = eqn.params["mode"] != lax.GatherScatterMode.CLIP
        moved = zip(starts, [run.within(*pair) for pair in zip(starts, places.tops, strict=True)], strict=True)
        inside = run.all_of(run.op("eq", *pair) for pair in moved) if dropped else np.bool_(True)
        test = "" if known(inside) and inside else f"if ({text_of(inside)}) "
        run.say(f"{test}{found.memory}[{linear(where, found.shape)}] = {text_of(value)};")

    run.over(new.shape, write)
    return found


RULES: dict[str, Callable[..., Any]] = {
    "argmax": partial(_position, "le"),
    "argmin": partial(_position, "ge"),
    "concatenate": lambda run, eqn, x: _joined(run, eqn, x, eqn.params["dimension"]),
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
    "reduce_and": partial(_folded, "and"),
    "reduce_max": partial(_folded, "max"),
    "reduce_min": partial(_folded, "min"),
    "reduce_or": partial(_folded, "or"),
    "reduce_prod": partial(_folded, "mul"),
    "reduce_sum": partial(_folded, "add"),
    "scatter": partial(_scatter, None),
    "scatter-add": partial(_scatter, "add"),
    "scatter-max": partial(_scatter, "max"),
    "scatter-min": partial(_scatter, "min"),
    "sort": _sort,
    "stack": _stack,
}
