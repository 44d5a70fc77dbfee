"""What operations give: each is said once, element by element, in a layout (`layouts`) that its arrays ask for.

Sums, orders and products run from left to right.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.arrays import ALWAYS, Array, Index, linear, minus, plus, single, times, woven
from jaxbandits.kernels.layouts import Layout
from jaxbandits.kernels.scalars import ELEMENTWISE
from jaxbandits.kernels.text import Number, Unsupported, number

Rule = Callable[..., Any]  # of a layout, an equation, and arrays; gives an array or several


def _out(eqn: Any) -> Any:
    """The shape and type of the first result."""
    return eqn.outvars[0].aval


def _elementwise(function: Callable[..., Number], lay: Layout, eqn: Any, *x: Array) -> Array:
    out = _out(eqn)

    def element(i: Index) -> Number:
        # operands of fewer elements are read again and again
        places = [[k if n > 1 else 0 for k, n in zip(i, each.shape, strict=False)] for each in x]
        return function(lay.run, eqn, *(each.at(place) for each, place in zip(x, places, strict=True)))

    return lay.lazy(out.shape, out.dtype, element, *x)


def _beside(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """A shape without some axes."""
    return [n for d, n in enumerate(shape) if d not in axes]


# ---- operations that only move elements

Place = Callable[[Index], Index]  # where in the operand the element of the result at an index lies


def _moved(places: Callable[[Any], list[Place]], lay: Layout, eqn: Any, x: Array) -> list[Array]:
    outs = [v.aval for v in eqn.outvars]
    x = lay.kept(x) if len(outs) > 1 or outs[0].size > x.size else x
    return [
        lay.lazy(out.shape, out.dtype, partial(_from, x, place), x, cheap=True)
        for out, place in zip(outs, places(eqn), strict=True)
    ]


def _from(x: Array, place: Place, i: Index) -> Number:
    return x.at(place(i))


def _broadcast_in_dim(eqn: Any) -> list[Place]:
    kept, sizes = eqn.params["broadcast_dimensions"], eqn.invars[0].aval.shape
    return [lambda i: [i[d] if n > 1 else 0 for d, n in zip(kept, sizes, strict=True)]]


def _reshape(eqn: Any) -> list[Place]:
    new, old = _out(eqn).shape, eqn.invars[0].aval.shape

    def same_order(i: Index) -> Index:
        left = iter([k for k, n in zip(i, new, strict=True) if n > 1])
        return [next(left) if n > 1 else 0 for n in old]

    def divided(i: Index) -> Index:
        place, index = linear(i, new), []
        for n in reversed(old):
            index.append(place % n if isinstance(place, int) else f"({place} % {n})")
            place = place // n if isinstance(place, int) else f"({place} / {n})"
        return index[::-1]

    return [same_order if [n for n in new if n > 1] == [n for n in old if n > 1] else divided]


def _transpose(eqn: Any) -> list[Place]:
    order = eqn.params["permutation"]
    return [lambda i: [i[order.index(d)] for d in range(len(order))]]


def _rev(eqn: Any) -> list[Place]:
    turned, shape = eqn.params["dimensions"], eqn.invars[0].aval.shape
    return [lambda i: [minus(n - 1, k) if d in turned else k for d, (k, n) in enumerate(zip(i, shape, strict=True))]]


def _slice(eqn: Any) -> list[Place]:
    starts, steps = eqn.params["start_indices"], eqn.params["strides"]
    steps = steps or [1] * len(starts)
    return [lambda i: [plus(times(k, step), b) for k, step, b in zip(i, steps, starts, strict=True)]]


def _split(eqn: Any) -> list[Place]:
    axis, sizes = eqn.params["axis"], eqn.params["sizes"]

    def part(begin: int) -> Place:
        return lambda i: [plus(k, begin) if d == axis else k for d, k in enumerate(i)]

    return [part(int(begin)) for begin in (0, *np.cumsum(sizes)[:-1])]


def _unstack(eqn: Any) -> list[Place]:
    axis = eqn.params["axis"]
    return [lambda i, k=k: woven(i, [axis], [k]) for k in range(len(eqn.outvars))]  # type: ignore[misc]


# ---- made and joined


def _iota(lay: Layout, eqn: Any) -> Array:
    p = eqn.params
    return lay.lazy(p["shape"], p["dtype"], lambda i: lay.run.of_index(i[p["dimension"]], p["dtype"]), cheap=True)


def _concatenate(lay: Layout, eqn: Any, *x: Array) -> Array:
    axis, out, begin = eqn.params["dimension"], _out(eqn), 0
    found = lay.each(out.shape, out.dtype)
    for each in x:
        behind = [begin if d == axis else 0 for d in range(len(out.shape))]
        lay.over(each.shape, lambda i: lay.set(found, list(map(plus, i, behind)), each.at(i)))  # noqa: B023
        begin += each.shape[axis]
    return found


def _stack(lay: Layout, eqn: Any, *x: Array) -> Array:
    axis, out = eqn.params["axis"], _out(eqn)
    found = lay.each(out.shape, out.dtype)
    for k, each in enumerate(x):
        lay.over(each.shape, lambda i: lay.set(found, woven(i, [axis], [k]), each.at(i)))  # noqa: B023
    return found


def _pad(lay: Layout, eqn: Any, x: Array, value: Array) -> Array:
    run, out, config = lay.run, _out(eqn), [tuple(map(int, each)) for each in eqn.params["padding_config"]]
    found = lay.each(out.shape, out.dtype, lambda _: value.at(()))

    def write(i: Index) -> None:
        at = [plus(times(k, 1 + between), low) for k, (low, _, between) in zip(i, config, strict=True)]
        cut = [(k, n - 1) for k, (low, high, _), n in zip(at, config, out.shape, strict=True) if low < 0 or high < 0]
        lay.set(found, at, x.at(i), run.all_of(_inside(run, run.of_index(k, np.int32), top) for k, top in cut))

    lay.over(x.shape, write)
    return found


# ---- folds


def _folded(how: str, lay: Layout, eqn: Any, x: Array) -> Array:
    axes, out = eqn.params["axes"], _out(eqn)
    shape = [x.shape[d] for d in axes]

    def element(i: Index) -> Number:
        return lay.total(how, shape, out.dtype, lambda j: x.at(woven(i, axes, j)))

    return lay.each(out.shape, out.dtype, element)


def _reduce(lay: Layout, eqn: Any, *x: Array) -> list[Array]:
    """A reduction by a function of its own, such as the one that materializes."""
    half, axes, outs = len(x) // 2, eqn.params["dimensions"], [v.aval for v in eqn.outvars]
    arrays, starts, found = x[:half], x[half:], [lay.each(out.shape, out.dtype) for out in outs]

    def element(i: Index) -> None:
        totals = [lay.cell(start.at(())) for start in starts]

        def add(j: Index) -> None:
            new = [single(each.at(woven(i, axes, j))) for each in arrays]
            before = [single(total[()]) for total in totals]
            after = lay.run.inner(eqn.params["jaxpr"], eqn.params.get("consts", ()), [*before, *new])
            lay.become(totals, [each[()] for each in after])

        lay.over([arrays[0].shape[d] for d in axes], add)
        for to, total in zip(found, totals, strict=True):
            lay.set(to, i, total[()])

    lay.over(outs[0].shape, element)
    return found


def _cumulative(how: str, lay: Layout, eqn: Any, x: Array) -> Array:
    axis, length, out = [eqn.params["axis"]], x.shape[eqn.params["axis"]], _out(eqn)
    found = lay.each(out.shape, out.dtype)

    def row(i: Index) -> None:
        def at(k: Any) -> Index:
            return woven(i, axis, [minus(length - 1, k) if eqn.params["reverse"] else k])

        def step(k: Any) -> None:
            here = at(plus(k[0], 1))
            lay.set(found, here, lay.run.op(how, found.at(at(k[0])), x.at(here)))

        lay.set(found, at(0), x.at(at(0)))
        lay.over([length - 1], step)

    if out.size:
        lay.over(_beside(x.shape, axis), row)
    return found


def _position(loses: str, lay: Layout, eqn: Any, x: Array) -> Array:
    """Where the largest or smallest element is: the first of equals, and the first NaN before all numbers."""
    run, axes, out = lay.run, eqn.params["axes"], _out(eqn)

    def first(i: Index) -> Number:
        best, place = lay.cell(x.at(woven(i, axes, [0]))), lay.cell(number(0, out.dtype))

        def look(k: Index) -> None:
            here = plus(k[0], 1)
            new, old = x.at(woven(i, axes, [here])), best[()]
            wins = run.op("not", run.op(loses, new, old))
            wins = run.op("and", wins, run.op("eq", old, old)) if old.dtype.kind == "f" else wins
            after = run.select(wins, run.of_index(here, out.dtype), place[()])
            lay.become([best, place], [run.select(wins, new, old), after])

        lay.over([x.shape[axes[0]] - 1], look)
        return place[()]

    return lay.each(out.shape, out.dtype, first)


def _dot_general(lay: Layout, eqn: Any, x: Array, y: Array) -> Array:
    (summed, with_), (batch, beside) = eqn.params["dimension_numbers"]
    x, y, out, free = lay.kept(x), lay.kept(y), _out(eqn), x.ndim - len(summed)
    shape = [x.shape[d] for d in summed]

    def place(axes: Sequence[int], batch: Sequence[int], i: Index, free: Index, j: Index) -> Index:
        return woven(free, (*batch, *axes), (*i[: len(batch)], *j))

    def element(i: Index) -> Number:
        def product(j: Index) -> Number:
            left = x.at(place(summed, batch, i, i[len(batch) : free], j))
            return lay.run.op("mul", left, y.at(place(with_, beside, i, i[free:], j)))

        return lay.total("add", shape, out.dtype, product)

    return lay.each(out.shape, out.dtype, element)


def _sort(lay: Layout, eqn: Any, *x: Array) -> list[Array]:
    """By insertion, which keeps the order of equals. NaN comes last."""
    if eqn.params["num_keys"] != 1:
        raise Unsupported("sort by several keys")
    run, axis, shape = lay.run, [eqn.params["dimension"]], x[0].shape
    found = [lay.each(shape, v.aval.dtype, each.at) for v, each in zip(eqn.outvars, x, strict=True)]

    def row(i: Index) -> None:
        def insert(k: Index) -> None:
            def exchange(j: Index) -> None:
                before = minus(k[0], j[0])
                here, there = woven(i, axis, [before]), woven(i, axis, [plus(before, 1)])
                pairs = [(each.at(here), each.at(there)) for each in found]
                swap = run.op("before", *pairs[0][::-1])
                lay.leave_unless(swap)
                for each, (a, b) in zip(found, pairs, strict=True):
                    lay.set(each, here, run.select(swap, b, a))
                    lay.set(each, there, run.select(swap, a, b))

            lay.over([plus(k[0], 1)], exchange)

        lay.over([shape[axis[0]] - 1], insert)

    lay.over(_beside(shape, axis), row)
    return found


# ---- slices whose start is only known to the program


class Slices(NamedTuple):
    """Where the slices of an array lie that are read or written."""

    ndim: int  # of the array
    dims: Sequence[int]  # its axes that have a start
    tops: list[int]  # the largest start of each
    batch: list[int]  # axes of the slices that run over rows of the index
    windows: list[tuple[int, int]]  # axes of the slices that run along axes of the array
    batching: list[tuple[int, int]]  # axes of the index that run along axes of the array

    def row(self, i: Index) -> Index:
        """The row of the index that has the start of an element of the slices."""
        return [i[d] for d in self.batch]

    def place(self, i: Index, start: Index) -> Index:
        """Where an element of the slices lies, from its start."""
        row, place = self.row(i), [0] * self.ndim
        for d, k in self.windows:
            place[k] = i[d]
        for d, k in self.batching:
            place[k] = row[d]
        for k, begin in zip(self.dims, start, strict=True):
            place[k] = plus(place[k], begin)
        return place


def _slice_of(shape: Sequence[int], sizes: Sequence[int]) -> Slices:
    """One slice, whose start is given for every axis."""
    axes = range(len(shape))
    return Slices(len(shape), axes, list(map(minus, shape, sizes)), [], list(zip(axes, axes, strict=True)), [])


def _slices_of(shape: Sequence[int], slices: Sequence[int], numbers: Sequence[Any]) -> Slices:
    """The slices of a gather or scatter. numbers: its dimension numbers, which both order alike."""
    windows, dropped, dims, batching, of_index = numbers
    kept = [d for d in range(len(shape)) if d not in (*dropped, *batching)]
    along = list(zip(windows, kept, strict=True))
    sizes = {k: slices[d] for d, k in along}
    return Slices(
        len(shape), dims, [shape[d] - sizes.get(d, 1) for d in dims],
        [d for d in range(len(slices)) if d not in windows], along, list(zip(of_index, batching, strict=True)),
    )  # fmt: skip


def _inside(run: Any, start: Number, top: int) -> Number:
    """Whether a start lies in 0 .. top."""
    low = run.op("ge", start, number(0, start.dtype))
    return run.op("and", low, run.op("le", start, number(top, start.dtype)))


def _outside(value: Any, dtype: Any) -> Any:
    """What a gather gives outside of its array."""
    if value is None:
        if jnp.issubdtype(dtype, jnp.inexact):
            value = np.nan
        elif np.dtype(dtype).kind == "b":
            value = True
        else:
            value = jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.signedinteger) else jnp.iinfo(dtype).max
    return number(value, dtype)


def _of_row(slices: Slices, row: Index, index: Array) -> list[Number]:
    """The start in a row of an index."""
    return [index.at([*row, k]) for k in range(len(slices.dims))]


def _of_axes(row: Index, *starts: Array) -> list[Number]:
    """A start given for every axis."""
    return [start.at(()) for start in starts]


def _dynamic_slice(lay: Layout, eqn: Any, x: Array, *starts: Array) -> Array:
    out, slices = _out(eqn), _slice_of(x.shape, _out(eqn).shape)

    def element(i: Index) -> Number:
        return lay.read(lambda start: x.at(slices.place(i, start)), _of_axes((), *starts), slices.tops)

    return lay.lazy(out.shape, out.dtype, element, x, cheap=True)


def _gather(lay: Layout, eqn: Any, x: Array, index: Array) -> Array:
    run, out, x, index = lay.run, _out(eqn), lay.kept(x), lay.kept(index)
    slices, mode = _slices_of(x.shape, out.shape, eqn.params["dimension_numbers"]), eqn.params["mode"]

    def element(i: Index) -> Number:
        starts, inside = _of_row(slices, slices.row(i), index), ALWAYS
        if mode == lax.GatherScatterMode.FILL_OR_DROP:
            inside = run.all_of(_inside(run, *pair) for pair in zip(starts, slices.tops, strict=True))
        found = lay.read(lambda start: x.at(slices.place(i, start)), starts, slices.tops)
        return run.select(inside, found, _outside(eqn.params["fill_value"], out.dtype))

    return lay.lazy(out.shape, out.dtype, element, x, index)


def _written(
    lay: Layout, how: str | None, slices: Slices, clip: bool, starts: Callable[..., list[Number]], x: Array,
    new: Array, *index: Array,
) -> Array:  # fmt: skip
    """An array with slices of `new` written into it, or added to it, or the like.

    clip: whether starts are moved inside; else what lies outside is dropped. starts: of a row, out of `index`.
    """
    array, new, *index = lay.taken(x, new, *index)

    def write(i: Index) -> None:
        for start, here in lay.places(starts(slices.row(i), *index), slices.tops, clip):
            place = slices.place(i, start)
            value = new.at(i) if how is None else lay.run.op(how, array.at(place), new.at(i))
            lay.set(array, place, value, here)

    lay.over(new.shape, write)
    return array


def _dynamic_update_slice(lay: Layout, eqn: Any, x: Array, new: Array, *starts: Array) -> Array:
    return _written(lay, None, _slice_of(x.shape, new.shape), True, _of_axes, x, new, *starts)


def _scatter(how: str | None, lay: Layout, eqn: Any, x: Array, index: Array, new: Array) -> Array:
    slices = _slices_of(x.shape, new.shape, eqn.params["dimension_numbers"])
    clip = eqn.params["mode"] == lax.GatherScatterMode.CLIP
    return _written(lay, how, slices, clip, partial(_of_row, slices), x, new, index)


RULES: dict[str, Rule] = {
    **{name: partial(_elementwise, function) for name, function in ELEMENTWISE.items()},
    **{
        name: partial(_moved, places)
        for name, places in {
            "broadcast_in_dim": _broadcast_in_dim, "expand_dims": _reshape, "reshape": _reshape, "rev": _rev,
            "slice": _slice, "split": _split, "squeeze": _reshape, "transpose": _transpose, "unstack": _unstack,
        }.items()
    },
    "argmax": partial(_position, "le"), "argmin": partial(_position, "ge"),
    "concatenate": _concatenate, "dot_general": _dot_general,
    "cummax": partial(_cumulative, "max"), "cummin": partial(_cumulative, "min"),
    "cumprod": partial(_cumulative, "mul"), "cumsum": partial(_cumulative, "add"),
    "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update_slice, "gather": _gather,
    "iota": _iota, "pad": _pad, "reduce": _reduce,
    "reduce_and": partial(_folded, "and"), "reduce_max": partial(_folded, "max"),
    "reduce_min": partial(_folded, "min"), "reduce_or": partial(_folded, "or"),
    "reduce_prod": partial(_folded, "mul"), "reduce_sum": partial(_folded, "add"),
    "scatter": partial(_scatter, None), "scatter-add": partial(_scatter, "add"),
    "scatter-max": partial(_scatter, "max"), "scatter-min": partial(_scatter, "min"),
    "sort": _sort, "stack": _stack,
}  # fmt: skip
