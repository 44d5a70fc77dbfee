"""What operations give: each is said once, element by element, in the layout that its arrays ask for.

Sums, orders and products run from left to right.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn

from jaxbandits.kernels import arrays
from jaxbandits.kernels.arrays import ALWAYS, Array, Index, Layout, Loops, minus, plus, single, times, weave_index
from jaxbandits.kernels.scalars import ELEMENTWISE
from jaxbandits.kernels.text import Number, Part, Unsupported, host_number, text_of

Rule = Callable[..., Any]  # of a layout, an equation, and arrays; gives an array or several
# of an equation, the number of its result or operand, an index: where its element lies in the one operand or result
Place = Callable[[Any, int, Index], Index]


def _out(eqn: JaxprEqn) -> Any:
    """The shape and type of the first result."""
    return eqn.outvars[0].aval


def _elementwise(function: Callable[..., Number], lay: Layout, eqn: JaxprEqn, *x: Array) -> Array:
    out = _out(eqn)

    def element(i: Index) -> Number:
        # operands of fewer elements are read again and again
        places = [[k if n > 1 else 0 for k, n in zip(i, each.shape, strict=False)] for each in x]
        return function(lay.run, eqn, *(each.at(place) for each, place in zip(x, places, strict=True)))

    return lay.lazy(out.shape, out.dtype, element, *x)


# ---- operations that only move elements


def _move_elements(place: Place, lay: Layout, eqn: Any, x: Array) -> list[Array]:
    """Results whose elements lie somewhere in the operand."""
    outs = [v.aval for v in eqn.outvars]
    x = lay.run.compute_once(x) if len(outs) > 1 or outs[0].size > x.size else x

    def move_part(k: int, out: Any) -> Array:
        return lay.lazy(out.shape, out.dtype, lambda i: x.at(place(eqn, k, i)), x, cheap=True)

    return list(map(move_part, range(len(outs)), outs))


def _join_operands(place: Place, lay: Layout, eqn: JaxprEqn, *x: Array) -> Array:
    """A result in which the elements of operands lie somewhere."""
    found = lay.each(_out(eqn).shape, _out(eqn).dtype)
    for k, each in enumerate(x):
        lay.for_each_index(each.shape, lambda i: lay.set(found, place(eqn, k, i), each.at(i)))  # noqa: B023
    return found


def _broadcast(eqn: Any, k: int, i: Index) -> Index:
    kept, sizes = eqn.params["broadcast_dimensions"], eqn.invars[0].aval.shape
    return [i[d] if n > 1 else 0 for d, n in zip(kept, sizes, strict=True)]


def _reshape(eqn: Any, k: int, i: Index) -> Index:
    new, old = _out(eqn).shape, eqn.invars[0].aval.shape
    if [n for n in new if n > 1] == [n for n in old if n > 1]:
        left = iter([k for k, n in zip(i, new, strict=True) if n > 1])
        return [next(left) if n > 1 else 0 for n in old]
    place, index = arrays.linear(i, new), []
    for n in reversed(old):
        index.append(place % n if isinstance(place, int) else Part(place, "%", n))
        place = place // n if isinstance(place, int) else Part(place, "/", n)
    return index[::-1]


def _reverse(eqn: Any, k: int, i: Index) -> Index:
    turned, shape = eqn.params["dimensions"], eqn.invars[0].aval.shape
    return [minus(n - 1, j) if d in turned else j for d, (j, n) in enumerate(zip(i, shape, strict=True))]


def _slice(eqn: JaxprEqn, k: int, i: Index) -> Index:
    starts, steps = eqn.params["start_indices"], eqn.params["strides"] or [1] * len(i)
    return [plus(times(j, step), b) for j, step, b in zip(i, steps, starts, strict=True)]


def _of_part(axis: int, sizes: Sequence[int], k: int, i: Index) -> Index:
    """A place in the k-th of some parts that lie one after the other along an axis."""
    return [plus(j, int(sum(sizes[:k]))) if d == axis else j for d, j in enumerate(i)]


def _concatenate(eqn: Any, k: int, i: Index) -> Index:
    axis = eqn.params["dimension"]
    return _of_part(axis, [v.aval.shape[axis] for v in eqn.invars], k, i)


MOVED: dict[str, Place] = {
    "broadcast_in_dim": _broadcast, "expand_dims": _reshape, "reshape": _reshape, "squeeze": _reshape,
    "rev": _reverse, "slice": _slice,
    "split": lambda eqn, k, i: _of_part(eqn.params["axis"], eqn.params["sizes"], k, i),
    "transpose": lambda eqn, k, i: [i[eqn.params["permutation"].index(d)] for d in range(len(i))],
    "unstack": lambda eqn, k, i: weave_index(i, [eqn.params["axis"]], [k]),
}  # fmt: skip
JOINED = {"concatenate": _concatenate, "stack": MOVED["unstack"]}


# ---- others


def _iota(lay: Layout, eqn: JaxprEqn) -> Array:
    p = eqn.params
    return lay.lazy(p["shape"], p["dtype"], lambda i: lay.run.of_index(i[p["dimension"]], p["dtype"]), cheap=True)


def _pad(lay: Layout, eqn: JaxprEqn, x: Array, value: Array) -> Array:
    run, out, config = lay.run, _out(eqn), [tuple(map(int, each)) for each in eqn.params["padding_config"]]
    found = lay.each(out.shape, out.dtype, lambda _: value.at(()))

    def write_inside(i: Index) -> None:
        at = [plus(times(k, 1 + between), low) for k, (low, _, between) in zip(i, config, strict=True)]
        cut = [(k, n - 1) for k, (low, high, _), n in zip(at, config, out.shape, strict=True) if low < 0 or high < 0]
        lay.set(found, at, x.at(i), run.all_of(_inside(run, run.of_index(k, np.int32), top) for k, top in cut))

    lay.for_each_index(x.shape, write_inside)
    return found


# ---- folds


def _fold_axes(how: str, lay: Layout, eqn: JaxprEqn, x: Array) -> Array:
    axes, out = eqn.params["axes"], _out(eqn)
    shape = [x.shape[d] for d in axes]

    def fold_at(i: Index) -> Number:
        return lay.fold_elements(how, shape, out.dtype, lambda j: x.at(weave_index(i, axes, j)))

    return lay.each(out.shape, out.dtype, fold_at)


def _reduce(lay: Layout, eqn: Any, *x: Array) -> list[Array]:
    """A reduction by a function of its own, such as the one that materializes."""
    half, axes, outs = len(x) // 2, eqn.params["dimensions"], [v.aval for v in eqn.outvars]
    starts, found = x[half:], [lay.each(out.shape, out.dtype) for out in outs]

    def reduce_at(i: Index) -> None:
        totals = [lay.cell(start.at(())) for start in starts]

        def add(j: Index) -> None:
            new = [single(each.at(weave_index(i, axes, j))) for each in x[:half]]
            before = [single(total.at(())) for total in totals]
            after = lay.run.write_jaxpr(eqn.params["jaxpr"], eqn.params.get("consts", ()), [*before, *new])
            lay.assign_cells(totals, [each.at(()) for each in after])

        lay.for_each_index([x[0].shape[d] for d in axes], add)
        for to, total in zip(found, totals, strict=True):
            lay.set(to, i, total.at(()))

    lay.for_each_index(outs[0].shape, reduce_at)
    return found


def _cumulative(how: str, lay: Layout, eqn: JaxprEqn, x: Array) -> Array:
    axis, length, out = [eqn.params["axis"]], x.shape[eqn.params["axis"]], _out(eqn)
    found = lay.each(out.shape, out.dtype)

    def accumulate_row(i: Index) -> None:
        def place_along(k: Any) -> Index:
            return weave_index(i, axis, [minus(length - 1, k) if eqn.params["reverse"] else k])

        def accumulate_next(k: Any) -> None:
            here = place_along(plus(k[0], 1))
            lay.set(found, here, lay.run.op(how, found.at(place_along(k[0])), x.at(here)))

        lay.set(found, place_along(0), x.at(place_along(0)))
        lay.for_each_index([length - 1], accumulate_next)

    if out.size:
        lay.for_each_index(np.delete(x.shape, axis), accumulate_row)
    return found


def _position(loses: str, lay: Layout, eqn: JaxprEqn, x: Array) -> Array:
    """Where the largest or smallest element is: the first of equals, and the first NaN before all numbers."""
    run, axes, out = lay.run, eqn.params["axes"], _out(eqn)

    def first_extreme(i: Index) -> Number:
        best, place = lay.cell(x.at(weave_index(i, axes, [0]))), lay.cell(host_number(0, out.dtype))

        def compare_next(k: Index) -> None:
            here = plus(k[0], 1)
            new, old = x.at(weave_index(i, axes, [here])), best.at(())
            wins = run.op("not", run.op(loses, new, old))
            wins = run.op("and", wins, run.op("eq", old, old)) if old.dtype.kind == "f" else wins
            after = run.select(wins, run.of_index(here, out.dtype), place.at(()))
            lay.assign_cells([best, place], [run.select(wins, new, old), after])

        lay.for_each_index([x.shape[axes[0]] - 1], compare_next)
        return place.at(())

    return lay.each(out.shape, out.dtype, first_extreme)


def _dot_general(lay: Layout, eqn: JaxprEqn, x: Array, y: Array) -> Array:
    (summed, with_), (batch, beside) = eqn.params["dimension_numbers"]
    x, y, out, free = lay.run.compute_once(x), lay.run.compute_once(y), _out(eqn), x.ndim - len(summed)
    shape = [x.shape[d] for d in summed]

    def dot_at(i: Index) -> Number:
        def multiply_at(j: Index) -> Number:
            fixed = *i[: len(batch)], *j
            left = x.at(weave_index(i[len(batch) : free], (*batch, *summed), fixed))
            return lay.run.op("mul", left, y.at(weave_index(i[free:], (*beside, *with_), fixed)))

        return lay.fold_elements("add", shape, out.dtype, multiply_at)

    return lay.each(out.shape, out.dtype, dot_at)


def _sort(lay: Layout, eqn: Any, *x: Array) -> list[Array]:
    """By insertion, which keeps the order of equals. NaN comes last."""
    if eqn.params["num_keys"] != 1:
        raise Unsupported("sort by several keys")
    run, axis, shape = lay.run, [eqn.params["dimension"]], x[0].shape
    found = [lay.each(shape, v.aval.dtype, each.at) for v, each in zip(eqn.outvars, x, strict=True)]

    def sort_row(i: Index) -> None:
        def insert(k: Index) -> None:
            def exchange(j: Index) -> None:
                before = minus(k[0], j[0])
                here, there = weave_index(i, axis, [before]), weave_index(i, axis, [plus(before, 1)])
                pairs = [(each.at(here), each.at(there)) for each in found]
                swap = run.op("before", *pairs[0][::-1])
                if lay is not run.unrolled and shape[axis[0]] > 2:  # in a loop, when nothing changes any more
                    run.add_statement(f"if (!{text_of(swap)}) break;")
                for each, (a, b) in zip(found, pairs, strict=True):
                    lay.set(each, here, run.select(swap, b, a))
                    lay.set(each, there, run.select(swap, a, b))

            lay.for_each_index([plus(k[0], 1)], exchange)

        lay.for_each_index([shape[axis[0]] - 1], insert)

    lay.for_each_index(np.delete(shape, axis), sort_row)
    return found


# ---- slices whose start is only known to the program


class Slices:
    """Where the slices of an array lie that are read or written, as the dimension numbers of a gather or scatter say.

    numbers: in the order that both have. None: one slice, whose start is given for every axis, each apart.
    """

    def __init__(self, shape: Sequence[int], slices: Sequence[int], numbers: Sequence[Any] | None = None) -> None:
        axes = range(len(shape))
        self.dims: Sequence[int]
        windows, dropped, self.dims, batching, of_index = numbers or (axes, (), axes, (), ())
        kept = [d for d in axes if d not in (*dropped, *batching)]
        self.windows = list(zip(windows, kept, strict=True))  # axes of the slices that run along axes of the array
        self.batching = list(zip(of_index, batching, strict=True))  # axes of the index that do
        self.batch = [d for d in range(len(slices)) if d not in windows]  # axes of the slices that run over its rows
        sizes = {k: slices[d] for d, k in self.windows}
        self.tops = [shape[d] - sizes.get(d, 1) for d in self.dims]  # the largest start of each axis that has one
        self.ndim, self.apart = len(shape), numbers is None

    def start_of(self, i: Index, *index: Array) -> list[Number]:
        """The start of the slice that has an element."""
        row = [i[d] for d in self.batch]
        return [x.at(()) for x in index] if self.apart else [index[0].at([*row, k]) for k in range(len(self.dims))]

    def place(self, i: Index, start: Index) -> Index:
        """Where an element of the slices lies, from its start."""
        place: list[Any] = [0] * self.ndim
        for d, k in self.windows:
            place[k] = i[d]
        for d, k in self.batching:
            place[k] = i[self.batch[d]]
        for k, begin in zip(self.dims, start, strict=True):
            place[k] = plus(place[k], begin)
        return place


def _inside(run: Loops, start: Number, top: int) -> Number:
    """Whether a start lies in 0 .. top."""
    low = run.op("ge", start, host_number(0, start.dtype))
    return run.op("and", low, run.op("le", start, host_number(top, start.dtype)))


def _dynamic_slice(lay: Layout, eqn: JaxprEqn, x: Array, *starts: Array) -> Array:
    out, slices = _out(eqn), Slices(x.shape, _out(eqn).shape)

    def slice_element(i: Index) -> Number:
        return lay.read_at(lambda start: x.at(slices.place(i, start)), slices.start_of(i, *starts), slices.tops)

    return lay.lazy(out.shape, out.dtype, slice_element, x, cheap=True)


def _gather(lay: Layout, eqn: JaxprEqn, x: Array, index: Array) -> Array:
    run, out, x, index = lay.run, _out(eqn), lay.run.compute_once(x), lay.run.compute_once(index)
    slices, outside = Slices(x.shape, out.shape, eqn.params["dimension_numbers"]), eqn.params["fill_value"]
    if outside is None:  # NaN, the lowest integer, or the highest one without a sign
        lowest_or_highest = arrays.EMPTY["max" if out.dtype.kind == "i" else "min"]
        outside = np.nan if out.dtype.kind == "f" else lowest_or_highest(out.dtype)

    def gather_element(i: Index) -> Number:
        starts, inside = slices.start_of(i, index), ALWAYS
        if eqn.params["mode"] == lax.GatherScatterMode.FILL_OR_DROP:
            inside = run.all_of(_inside(run, *pair) for pair in zip(starts, slices.tops, strict=True))
        found = lay.read_at(lambda start: x.at(slices.place(i, start)), starts, slices.tops)
        return run.select(inside, found, host_number(outside, out.dtype))

    return lay.lazy(out.shape, out.dtype, gather_element, x, index)


def _scatter(how: str | None, lay: Layout, eqn: JaxprEqn, x: Array, index: Array, new: Array) -> Array:
    slices = Slices(x.shape, new.shape, eqn.params["dimension_numbers"])
    return _write_slices(lay, how, slices, eqn.params["mode"] == lax.GatherScatterMode.CLIP, x, new, index)


def _write_slices(lay: Layout, how: str | None, slices: Slices, clip: bool, *operands: Array) -> Array:
    """An array with slices of another written into it, or added to it, or the like.

    clip: whether starts are moved inside; else what lies outside is dropped. operands: both, and those of starts.
    """
    array, new, *index = lay.prepare_writes(*operands)

    def write_element(i: Index) -> None:
        for start, here in lay.write_places(slices.start_of(i, *index), slices.tops, clip):
            place = slices.place(i, start)
            value = new.at(i) if how is None else lay.run.op(how, array.at(place), new.at(i))
            lay.set(array, place, value, here)

    lay.for_each_index(new.shape, write_element)
    if isinstance(lay, Loops):
        lay.read_anew(array)  # an element may have been read before it was written over
    return array


FOLDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "and", "or": "or"}
C_RULES: dict[str, Rule] = {
    **{name: partial(_elementwise, function) for name, function in ELEMENTWISE.items()},
    **{name: partial(_move_elements, place) for name, place in MOVED.items()},
    **{name: partial(_join_operands, place) for name, place in JOINED.items()},
    **{f"reduce_{name}": partial(_fold_axes, how) for how, name in FOLDS.items()},
    **{f"cum{FOLDS[how]}": partial(_cumulative, how) for how in ("add", "mul", "max", "min")},
    **{f"scatter-{how}": partial(_scatter, how) for how in ("add", "max", "min")},
    "argmax": partial(_position, "le"), "argmin": partial(_position, "ge"),
    "dot_general": _dot_general, "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": lambda lay, eqn, x, new, *starts: _write_slices(
        lay, None, Slices(x.shape, new.shape), True, x, new, *starts
    ),
    "gather": _gather, "iota": _iota, "pad": _pad, "reduce": _reduce, "scatter": partial(_scatter, None), "sort": _sort,
}  # fmt: skip
