"""The two layouts in which an operation on arrays is written, of which `rules` say each once, element by element.

`Unrolled` writes every element out, for arrays that are held apart. `Loops` writes one element, in loops over the
thread's memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from jaxbandits.kernels.arrays import ALWAYS, Array, Element, Index, Looped, filled, single
from jaxbandits.kernels.text import Number, known, number, text_of


class Unrolled:
    """Writes every element out. A position that is not known is a choice among all elements."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def of(self, x: Array) -> Array:
        """An array in the form of this layout."""
        return self.run.apart(x)

    def kept(self, x: Array) -> Array:
        """An array whose elements are computed once, however often they are read."""
        return x

    def over(self, shape: Iterable[Any], what: Callable[[Any], None]) -> None:
        """Something for all indices of a shape."""
        for index in np.ndindex(*shape):
            what(index)

    def leave_unless(self, condition: Number) -> None:
        """Leave the innermost `over`, where that spares anything, as nothing changes any more."""

    def lazy(self, shape: Sequence[int], dtype: Any, element: Element, *read: Array, cheap: bool = False) -> Array:
        """The array with such elements, out of arrays that are read where the result is."""
        return filled(shape, element)

    def each(self, shape: Sequence[int], dtype: Any, element: Element | None = None) -> Array:
        """The array with such elements, computed now, or one whose elements are all set later."""
        return filled(shape, element or (lambda _: None))

    def taken(self, x: Array, *beside: Array) -> list[Array]:
        """An array that is set from now on, and others, which do not change with it."""
        return [x.copy(), *beside]

    def set(self, to: Array, index: Index, value: Number, where: Number = ALWAYS) -> None:
        """Set an element of an array of `each` or `taken`, where a condition holds."""
        if not known(where) or where:
            index = tuple(index)
            to[index] = self.run.select(where, value, to[index])

    def cell(self, start: Number) -> Array:
        """An array of shape () that is set again and again."""
        return single(start)

    def become(self, cells: Sequence[Array], values: Sequence[Number]) -> None:
        """Set cells at once."""
        for cell, value in zip(cells, values, strict=True):
            cell[()] = value

    def total(self, how: str, shape: Iterable[int], dtype: Any, element: Element) -> Number:
        """Elements added up from the first to the last, or folded otherwise."""
        found = [element(index) for index in np.ndindex(*shape)]
        return reduce(partial(self.run.op, how), found) if found else number(EMPTY[how](np.dtype(dtype)), dtype)

    def read(self, element: Element, starts: Sequence[Number], tops: Sequence[int]) -> Number:
        """The element at a position, moved into 0 .. top."""
        if not starts:
            return element(())
        (start, *starts), (top, *tops) = starts, tops
        positions = [min(max(int(start), 0), top)] if known(start) else range(top + 1)
        found, *rest = [self.read(partial(_behind, element, i), starts, tops) for i in positions]
        for i, other in enumerate(rest, 1):
            found = self.run.select(self.run.op("ge", start, number(i, start.dtype)), other, found)
        return found

    def places(self, starts: Sequence[Number], tops: Sequence[int], clip: bool) -> Iterator[tuple[Index, Number]]:
        """Where an element may be written, and whether it is written there. clip: positions are moved as in `read`."""
        starts = list(map(self.run.within, starts, tops)) if clip else starts
        for place in np.ndindex(*(top + 1 for top in tops)):
            pairs = zip(starts, place, strict=True)
            yield place, self.run.all_of(self.run.op("eq", start, number(i, start.dtype)) for start, i in pairs)


def _behind(element: Element, i: int, at: Any) -> Number:
    return element((i, *at))


class Loops(Unrolled):
    """Writes loops over memory."""

    def of(self, x: Array) -> Array:
        return self.run.looped(x)

    def kept(self, x: Array) -> Array:
        return self.run.kept(x)

    def over(self, shape: Iterable[Any], what: Callable[[Any], None]) -> None:
        self.run.over(shape, what)

    def leave_unless(self, condition: Number) -> None:
        self.run.say(f"if (!{text_of(condition)}) break;")

    def lazy(self, shape: Sequence[int], dtype: Any, element: Element, *read: Array, cheap: bool = False) -> Array:
        sources = [name for x in read for name in x.sources]
        return Looped(shape, dtype, element, cheap=cheap and all(x.cheap for x in read), sources=sources)

    def each(self, shape: Sequence[int], dtype: Any, element: Element | None = None) -> Array:
        found = self.run.memory(shape, dtype)
        if element is not None:
            self.over(shape, lambda index: self.set(found, index, element(index)))
        return found

    def taken(self, x: Array, *beside: Array) -> list[Array]:
        beside = tuple(self.run.copied(each) if x.memory in each.sources else self.run.kept(each) for each in beside)
        return [self.run.owned(x), *beside]

    def set(self, to: Array, index: Index, value: Number, where: Number = ALWAYS) -> None:
        if not known(where) or where:
            self.run.put(to, index, value, where)

    def cell(self, start: Number) -> Array:
        return single(self.run.variable(start, start.dtype))

    def become(self, cells: Sequence[Array], values: Sequence[Number]) -> None:
        self.run.assign([cell[()] for cell in cells], values)

    def total(self, how: str, shape: Iterable[int], dtype: Any, element: Element) -> Number:
        total = self.cell(number(EMPTY[how](np.dtype(dtype)), dtype))
        self.over(shape, lambda index: self.become([total], [self.run.op(how, total[()], element(index))]))
        return total[()]

    def read(self, element: Element, starts: Sequence[Number], tops: Sequence[int]) -> Number:
        return element([self.run.as_index(self.run.within(*pair)) for pair in zip(starts, tops, strict=True)])

    def places(self, starts: Sequence[Number], tops: Sequence[int], clip: bool) -> Iterator[tuple[Index, Number]]:
        moved = [self.run.within(*pair) for pair in zip(starts, tops, strict=True)]
        here = ALWAYS if clip else self.run.all_of(map(partial(self.run.op, "eq"), starts, moved))
        yield list(map(self.run.as_index, moved)), here


Layout: TypeAlias = Unrolled  # or Loops


def layout_of(run: Any, x: Array) -> Layout:
    """The layout in which an array is read or written."""
    return Loops(run) if isinstance(x, Looped) else Unrolled(run)


# What sums and the like begin with.
EMPTY: dict[str, Callable[[Any], Any]] = {
    "add": lambda dtype: 0, "mul": lambda dtype: 1, "or": lambda dtype: False, "and": lambda dtype: True,
    "max": lambda dtype: -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min,
    "min": lambda dtype: np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max,
}  # fmt: skip
