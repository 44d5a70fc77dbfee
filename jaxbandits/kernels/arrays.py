"""Arrays of a program of one lane, in two forms.

*Apart*: a NumPy array of objects, one number of the program each. Shapes cost nothing then.
*Looped*: too large for that; what its element is at an index, which loops run over. An index is a list of numbers of
the host and of expressions in C. Such an array lies in memory, or is computed where it is read.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from jaxbandits.kernels.scalars import Scalars
from jaxbandits.kernels.text import Name, Number, c_type, known, number, text_of

Index: TypeAlias = Sequence[Any]
Element: TypeAlias = Callable[[Any], Number]  # at an index
LARGEST = 256  # elements of an array that is held apart
ALWAYS = np.bool_(True)


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
        self, shape: Iterable[int], dtype: Any, at: Element, *, cheap: bool = True, memory: Name | None = None,
        sources: Iterable[Name] = (),
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.at = tuple(shape), np.dtype(dtype), at
        self.size, self.ndim = prod(self.shape), len(self.shape)
        self.cheap, self.memory = cheap, memory
        self.sources = frozenset(sources if memory is None else (memory,))

    def shared(self) -> "Looped":
        """The same array, which somebody else reads too."""
        return Looped(self.shape, self.dtype, self.at, cheap=self.cheap, sources=self.sources)


Array: TypeAlias = Any  # Apart or Looped


def filled(shape: Sequence[int], element: Element) -> Apart:
    """An array held apart whose element at an index is given by a function."""
    array = np.empty(shape, object)
    for index in np.ndindex(*shape):
        array[index] = element(index)
    return array.view(Apart)


def single(x: Number) -> Apart:
    """An array of shape ()."""
    return filled((), lambda _: x)


def listed(elements: Iterable[Number], shape: Sequence[int]) -> Apart:
    """An array of a shape with the given elements."""
    left = iter(elements)
    return filled(shape, lambda _: next(left))


def constant(array: Any, dtype: Any) -> Apart:
    """A host array as known numbers."""
    array = np.asarray(array).astype(dtype)
    return filled(array.shape, lambda index: array[index])


# ---- indices


def plus(a: Any, b: Any) -> Any:
    """A sum of parts of an index."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else f"({a} + {b})"


def minus(a: Any, b: Any) -> Any:
    """A difference of parts of an index."""
    return a - b if isinstance(a, int) and isinstance(b, int) else a if b == 0 else f"({a} - {b})"


def times(a: Any, b: int) -> Any:
    """A part of an index, multiplied."""
    return a * b if isinstance(a, int) else 0 if b == 0 else a if b == 1 else f"({a} * {b})"


def linear(index: Index, shape: Sequence[int]) -> Any:
    """The place of an element in memory, row by row."""
    place: Any = 0
    for i, n in zip(index, shape, strict=True):
        place = plus(times(place, n), i)
    return place


def woven(outer: Index, axes: Sequence[int], inner: Index) -> list[Any]:
    """An index with some parts at the given axes, and others at the rest."""
    left, along = iter(outer), dict(zip(axes, inner, strict=True))
    return [along[d] if d in along else next(left) for d in range(len(outer) + len(inner))]


class Arrays(Scalars):
    """Writes arrays. largest: elements of an array that is held apart."""

    def __init__(self, largest: int = LARGEST, most: int | None = None) -> None:
        super().__init__(most)
        self.largest = largest

    def is_large(self, x: Array) -> bool:
        """Whether an array is looped, or would be."""
        return isinstance(x, Looped) or x.size > self.largest

    def view(self, place: str, shape: Iterable[int], dtype: Any, memory: Name | None = None) -> Looped:
        """An array in memory. Truth values lie in bytes of any value."""
        shape, more = tuple(shape), " != 0" if np.dtype(dtype).kind == "b" and memory is None else ""

        def at(index: Index) -> Number:
            return self.let(f"{place}[{linear(index, shape)}]{more}", dtype)

        return Looped(shape, dtype, at, memory=memory)

    def memory(self, shape: Iterable[int], dtype: Any) -> Looped:
        """A new array in the thread's own memory."""
        name = self.array(prod(shape := tuple(shape)), dtype)
        return self.view(name, shape, dtype, memory=name)

    def over(self, shape: Iterable[Any], what: Callable[[list[Any]], None]) -> None:
        """Loops over all indices of a shape."""

        def inside(left: list[Any], index: list[Any]) -> None:
            if not left:
                what(index)
                return
            i = self.fresh("i", np.int32)
            with self.block(f"ONCE for (int {i} = 0; {i} < {left[0]}; ++{i})"):
                inside(left[1:], [*index, str(i)])

        inside(list(shape), [])

    def put(self, to: Looped, index: Index, value: Number, where: Number = ALWAYS) -> None:
        """Write an element into memory, where a condition holds."""
        test = "" if known(where) and where else f"if ({text_of(where)}) "
        self.say(f"{test}{to.memory}[{linear(index, to.shape)}] = {text_of(value)};")

    def store(self, to: Looped, x: Array, begin: Index = ()) -> None:
        """Write an array into memory, its first element at an index."""
        begin, x = begin or [0] * x.ndim, self.looped(x)
        self.over(x.shape, lambda i: self.put(to, list(map(plus, i, begin)), x.at(i)))

    def kept(self, x: Array) -> Array:
        """An array whose elements are computed once, however often they are read."""
        return self.copied(x) if isinstance(x, Looped) and not x.cheap else x

    def copied(self, x: Array) -> Looped:
        """An array in memory of its own."""
        x = self.looped(x)
        found = self.memory(x.shape, x.dtype)
        self.store(found, x)
        return found

    def owned(self, x: Array) -> Looped:
        """An array in memory that may be written over: its own, where nothing else reads it."""
        if not isinstance(x, Looped) or x.memory is None:
            return self.copied(x)
        self.forget(x.memory)
        return x

    def looped(self, x: Array) -> Looped:
        """An array of any form as a looped one."""
        if isinstance(x, Looped):
            return x
        flat = list(x.reshape(-1))
        dtype = flat[0].dtype if flat else np.dtype(np.float32)
        if len(set(map(text_of, flat))) <= 1:
            return Looped(x.shape, dtype, lambda _: flat[0])
        if all(map(known, flat)):
            name = self.fresh("a", dtype)
            self.say(f"TABLE {c_type(dtype)} {name}[] = {{{', '.join(map(text_of, flat))}}};")
        else:
            name = self.array(len(flat), dtype)
            for k, element in enumerate(flat):
                self.say(f"{name}[{k}] = {text_of(element)};")
        memory = self.view(name, x.shape, dtype, memory=name)

        def at(index: Index) -> Number:
            return x.at(index) if all(isinstance(i, int) for i in index) else memory.at(index)

        return Looped(x.shape, dtype, at)

    def apart(self, x: Array) -> Apart:
        """An array of any form, held apart."""
        return filled(x.shape, x.at) if isinstance(x, Looped) else x

    def settled(self, x: Array) -> Array:
        """A result in the form that its size asks for."""
        return self.apart(x) if isinstance(x, Looped) and x.size <= self.largest else x

    def as_index(self, x: Number) -> Any:
        """A number as part of an index."""
        return int(x) if known(x) else str(self.converted(x, np.int32))

    def of_index(self, i: Any, dtype: Any) -> Number:
        """Part of an index as a number."""
        return number(i, dtype) if isinstance(i, int) else self.converted(Name(str(i), np.int32), dtype)
