"""Arrays of a program of one lane, in two forms, and how operations on them are written in each.

*Apart*: a NumPy array of objects, one number of the program each. Shapes cost nothing then.
*Looped*: too large for that; what its element is at an index, which loops run over. An index is a list of numbers of
the host and of expressions in C. Such an array lies in memory, or is computed where it is read.

`rules` say each operation once, element by element, in one of two layouts: `Unrolled` writes every element out, for
arrays that are held apart. `Loops` writes one element, in loops over the thread's memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from math import inf, prod
from typing import Any, TypeAlias

import numpy as np

from jaxbandits.kernels.scalars import ALWAYS, Scalars
from jaxbandits.kernels.text import Assign, Entry, Let, Name, Number, Part, c_type, host_number, is_known, text_of
from jaxbandits.typing import DType, Numeric

Index: TypeAlias = Sequence[Any]
Element: TypeAlias = Callable[[Any], Number]  # at an index
LARGEST = 256  # elements of an array that is held apart


class Apart(np.ndarray[Any, np.dtype[np.object_]]):
    """An array that is held apart."""

    def at(self, index: Index) -> Number:
        """The element at an index."""
        return self[tuple(index)]


class Looped:
    """An array that is too large to be held apart.

    cheap: whether reading an element costs no more than a place in memory. memory: where it lies, if it may be written
    over, as nothing else reads it. sources: the arrays in memory that it is computed from.
    """

    def __init__(
        self, shape: Iterable[int], dtype: DType, at: Element, *, cheap: bool = True, memory: Name | None = None,
        sources: Iterable[Name] = (),
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.at = tuple(shape), np.dtype(dtype), at
        self.size, self.ndim = prod(self.shape), len(self.shape)
        self.cheap, self.memory = cheap, memory
        self.sources = frozenset(sources if memory is None else (memory,))

    def share(self) -> "Looped":
        """The same array, which somebody else reads too."""
        return Looped(self.shape, self.dtype, self.at, cheap=self.cheap, sources=self.sources)


Array: TypeAlias = Apart | Looped


def hold_apart(elements: Iterable[Number], shape: Sequence[int]) -> Apart:
    """An array held apart with the given elements."""
    array = np.empty(prod(shape), object)
    array[:] = list(elements)
    return array.reshape(shape).view(Apart)


def fill_apart(shape: Sequence[int], element: Element) -> Apart:
    """An array held apart whose element at an index is given by a function."""
    return hold_apart(map(element, np.ndindex(*shape)), shape)


def single(x: Number) -> Apart:
    """An array of shape ()."""
    return hold_apart([x], ())


def constant(array: Numeric, variable: Any) -> Apart:
    """A host array as known numbers of a variable's type."""
    array = np.asarray(array).astype(variable.aval.dtype)
    return hold_apart(array.reshape(-1), array.shape)


# ---- indices


def plus(a: int | str | Part, b: int | str | Part) -> int | str | Part:
    """A sum of parts of an index."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else Part(a, "+", b)


def minus(a: int | str | Part, b: int | str | Part) -> int | str | Part:
    """A difference of parts of an index."""
    return a - b if isinstance(a, int) and isinstance(b, int) else a if b == 0 else Part(a, "-", b)


def times(a: int | str | Part, b: int) -> int | str | Part:
    """A part of an index, multiplied."""
    return a * b if isinstance(a, int) else 0 if b == 0 else a if b == 1 else Part(a, "*", b)


def linear(index: Index, shape: Sequence[int]) -> int | str:
    """The place of an element in memory, row by row."""
    place: Any = 0
    for i, n in zip(index, shape, strict=True):
        place = plus(times(place, n), i)
    return place


def weave_index(outer: Index, axes: Sequence[int], inner: Index) -> list[Any]:
    """An index with some parts at the given axes, and others at the rest."""
    left, along = iter(outer), dict(zip(axes, inner, strict=True))
    return [along[d] if d in along else next(left) for d in range(len(outer) + len(inner))]


# ---- layouts

# What sums and the like begin with.
EMPTY: dict[str, Callable[[Any], Any]] = {
    "add": lambda dtype: 0,
    "mul": lambda dtype: 1,
    "or": lambda dtype: False,
    "and": lambda dtype: dtype.kind == "b" or -1,  # all bits
    "max": lambda dtype: -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min,
    "min": lambda dtype: np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max,
}


class Loops(Scalars):
    """Writes loops over memory. largest: elements of an array that is held apart."""

    def __init__(self, largest: int = LARGEST, most: float = inf) -> None:
        super().__init__(most)
        self.run: Any = self
        self.largest, self.unrolled = largest, Unrolled(self)

    def is_large(self, x: Array) -> bool:
        """Whether an array is looped, or would be."""
        return isinstance(x, Looped) or x.size > self.largest

    def layout(self, x: Array) -> "Layout":
        """The layout in which an array is read or written."""
        return self if isinstance(x, Looped) else self.unrolled

    def view(self, place: str, shape: Iterable[int], dtype: DType) -> Looped:
        """An array in memory: its name, or in that of others the place of an element, with {} for its number."""
        shape, memory = tuple(shape), place if isinstance(place, Name) else None
        more = " != 0" if np.dtype(dtype).kind == "b" else ""  # truth values of others are bytes of any value

        def load_element(index: Index) -> Number:
            where = linear(index, shape)
            return self.let(Entry(memory, where) if memory else place.format(where) + more, dtype)

        return Looped(shape, dtype, load_element, memory=memory)

    def to_layout(self, x: Array) -> Looped:
        """An array in the form of this layout."""
        if isinstance(x, Looped):
            return x
        flat = list(x.reshape(-1))
        dtype = flat[0].dtype if flat else np.dtype(np.float32)
        if len(set(map(text_of, flat))) <= 1:
            return Looped(x.shape, dtype, lambda _: flat[0])
        if all(map(is_known, flat)):
            name = self.fresh("a", dtype)
            numbers = f"{{{', '.join(map(text_of, flat))}}}"
            self.add_statement(Assign(Entry(name, ""), numbers, f"TABLE {c_type(dtype)} "))
            memory = self.view(name, x.shape, dtype)
        else:
            memory = self.each(x.shape, dtype)
            self.unrolled.for_each_index(x.shape, lambda index: self.set(memory, index, x.at(index)))

        def load_unless_known(index: Index) -> Number:
            return x.at(index) if all(isinstance(i, int) for i in index) else memory.at(index)

        return Looped(x.shape, dtype, load_unless_known)

    def apart(self, x: Array) -> Apart:
        """An array of any form, held apart."""
        return fill_apart(x.shape, x.at) if isinstance(x, Looped) else x

    def hold_by_size(self, x: Array) -> Array:
        """A result in the form that its size asks for."""
        return self.apart(x) if isinstance(x, Looped) and x.size <= self.largest else x

    def compute_once(self, x: Array) -> Array:
        """An array whose elements are computed once, however often they are read."""
        return self.copy_array(x) if isinstance(x, Looped) and not x.cheap else x

    def copy_array(self, x: Array) -> Looped:
        """An array in memory of its own."""
        x = self.to_layout(x)
        return self.each(x.shape, x.dtype, x.at)

    def make_writable(self, x: Array) -> Looped:
        """An array in memory that may be written over: its own, where nothing else reads it."""
        if not isinstance(x, Looped) or x.memory is None:
            return self.copy_array(x)
        self.read_anew(x)
        return x

    def read_anew(self, x: Any) -> None:
        """Forget which elements of an array in memory were read."""
        self.forget(x.memory)

    def as_index(self, x: Number) -> int | str:
        """A number as part of an index."""
        return int(x) if is_known(x) else str(self.convert(x, np.int32))

    def of_index(self, i: int | str, dtype: DType) -> Number:
        """Part of an index as a number."""
        return host_number(i, dtype) if isinstance(i, int) else self.convert(Name(str(i), np.int32), dtype)

    def for_each_index(self, shape: Iterable[Any], what: Callable[[Any], None], *before: int | str) -> None:
        """Something for all indices of a shape."""
        if not (left := list(shape)):
            what(list(before))
        elif left[0] == 1:
            self.for_each_index(left[1:], what, *before, 0)
        elif 0 not in left:
            with self.loop(left[0]) as i:
                self.for_each_index(left[1:], what, *before, str(i))

    def lazy(self, shape: Sequence[int], dtype: DType, element: Element, *read: Any, cheap: bool = False) -> Array:
        """The array with such elements, out of arrays that are read where the result is."""
        sources = [name for x in read for name in x.sources]
        return Looped(shape, dtype, element, cheap=cheap and all(x.cheap for x in read), sources=sources)

    def each(self, shape: Sequence[int], dtype: DType, element: Element | None = None) -> Looped:
        """The array with such elements, computed now, or one whose elements are all set later."""
        name = self.fresh("a", dtype)
        self.add_statement(Let(name, "", changing=True, size=max(1, prod(shape))))
        found = self.view(name, shape, dtype)
        if element is not None:
            self.store(found, element)
        return found

    def store(self, to: Array, element: Element) -> None:
        """Set all elements of an array."""
        self.layout(to).for_each_index(to.shape, lambda index: self.set(to, index, element(index)))

    def give(self, place: str, x: Array, stays: bool = False) -> None:
        """Write an array into memory that others read. place: as of `view`. stays: the program may read there too."""

        def write(index: Index) -> None:
            line = Assign(place.format(linear(index, x.shape)), text_of(x.at(index)))
            self.add_statement(str(line) if stays else line)

        self.layout(x).for_each_index(x.shape, write)

    def prepare_writes(self, x: Any, *beside: Any) -> list[Array]:
        """An array that is set from now on, and others, which do not change with it."""
        beside = tuple(self.copy_array(y) if x.memory in y.sources else self.compute_once(y) for y in beside)
        return [self.make_writable(x), *beside]

    def set(self, to: Any, index: Index, value: Number, where: Number = ALWAYS) -> None:
        """Set an element of an array of `each` or `prepare_writes`, where a condition holds."""
        if not is_known(where) or where:
            test = "" if is_known(where) else f"if ({where}) "
            self.add_statement(Assign(Entry(to.memory, linear(index, to.shape)), text_of(value), test))

    def cell(self, start: Number) -> Apart:
        """An array of shape () that is set again and again."""
        return single(self.variable(start, start.dtype))

    def assign_cells(self, cells: Sequence[Any], values: Sequence[Number]) -> None:
        """Set cells at once."""
        self.assign([cell[()] for cell in cells], values)

    def fold_elements(self, how: str, shape: Iterable[int], dtype: DType, element: Element) -> Number:
        """Elements added up from the first to the last, or folded otherwise."""
        cell = self.cell(host_number(EMPTY[how](np.dtype(dtype)), dtype))
        self.for_each_index(shape, lambda index: self.assign_cells([cell], [self.op(how, cell.at(()), element(index))]))
        return cell.at(())

    def read_at(self, element: Element, starts: Sequence[Number], tops: Sequence[int]) -> Number:
        """The element at a position, moved into 0 .. top."""
        return element([self.as_index(self.clip_to_top(*pair)) for pair in zip(starts, tops, strict=True)])

    def write_places(self, starts: Sequence[Number], tops: Sequence[int], clip: bool) -> Iterator[tuple[Index, Number]]:
        """Where an element may be written, and whether it is. clip: positions are moved as in `read_at`."""
        moved = [self.clip_to_top(*pair) for pair in zip(starts, tops, strict=True)]
        here = ALWAYS if clip else self.all_of(map(partial(self.op, "eq"), starts, moved))
        yield list(map(self.as_index, moved)), here


class Unrolled:
    """Writes every element out. A position that is not known is a choice among all elements."""

    def __init__(self, run: Any) -> None:
        self.run, self.to_layout = run, run.apart

    def for_each_index(self, shape: Iterable[Any], what: Callable[[Any], None]) -> None:
        for index in np.ndindex(*shape):
            what(index)

    def each(self, shape: Any, dtype: Any, element: Any = lambda _: None, *read: Any, cheap: bool = False) -> Array:
        return fill_apart(shape, element)

    lazy = each

    def prepare_writes(self, x: Any, *beside: Any) -> list[Array]:
        return [x.copy(), *beside]

    def set(self, to: Any, index: Index, value: Number, where: Number = ALWAYS) -> None:
        if not is_known(where) or where:
            index = tuple(index)
            to[index] = self.run.select(where, value, to[index])

    cell = staticmethod(single)

    def assign_cells(self, cells: Sequence[Any], values: Sequence[Number]) -> None:
        for cell, value in zip(cells, values, strict=True):
            cell[()] = value

    def fold_elements(self, how: str, shape: Iterable[int], dtype: DType, element: Element) -> Number:
        found = [element(index) for index in np.ndindex(*shape)]
        return reduce(partial(self.run.op, how), found) if found else host_number(EMPTY[how](np.dtype(dtype)), dtype)

    def read_at(self, element: Element, starts: Sequence[Number], tops: Sequence[int]) -> Number:
        if not starts:
            return element(())
        (start, *starts), (top, *tops) = starts, tops
        positions = [min(max(int(start), 0), top)] if is_known(start) else range(top + 1)
        found, *rest = [self.read_at(lambda at, i=i: element((i, *at)), starts, tops) for i in positions]  # type: ignore[misc]
        for i, other in enumerate(rest, 1):
            found = self.run.select(self.run.op("ge", start, host_number(i, start.dtype)), other, found)
        return found

    def write_places(self, starts: Sequence[Number], tops: Sequence[int], clip: bool) -> Iterator[tuple[Index, Number]]:
        starts = list(map(self.run.clip_to_top, starts, tops)) if clip else starts
        for place in np.ndindex(*(top + 1 for top in tops)):
            pairs = zip(starts, place, strict=True)
            yield place, self.run.all_of(self.run.op("eq", start, host_number(i, start.dtype)) for start, i in pairs)


Layout: TypeAlias = Loops | Unrolled
