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

Apart: TypeAlias = np.ndarray[Any, np.dtype[np.object_]]
Index: TypeAlias = Sequence[Any]
LARGEST = 256  # elements of an array that is held apart


class Looped:
    """An array that is too large to be held apart."""

    def __init__(
        self, shape: Iterable[int], dtype: Any, at: Callable[[Index], Number], *, cheap: bool = True,
        memory: Name | None = None,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.at = tuple(shape), np.dtype(dtype), at
        self.size, self.ndim = prod(self.shape), len(self.shape)
        self.cheap = cheap  # whether reading an element costs no more than a place in memory
        self.memory = memory  # which may be written over, as nothing else reads it

    def shared(self) -> "Looped":
        """The same array, which somebody else reads too."""
        return Looped(self.shape, self.dtype, self.at, cheap=self.cheap)

    def moved(self, shape: Iterable[int], place: Callable[[Index], Index]) -> "Looped":
        """The array whose element at an index is this one's at `place(index)`."""
        return Looped(shape, self.dtype, lambda index: self.at(place(index)), cheap=self.cheap)


Array: TypeAlias = Any  # Apart or Looped


def filled(shape: Sequence[int], element_at: Callable[[tuple[int, ...]], Number]) -> Apart:
    """An array held apart whose element at an index is given by a function."""
    array = np.empty(shape, object)
    for index in np.ndindex(*shape):
        array[index] = element_at(index)
    return array


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


def plus(a: Any, b: Any) -> Any:
    """A sum of parts of an index."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else f"({a} + {b})"


def times(a: Any, b: int) -> Any:
    """A part of an index, multiplied."""
    return a * b if isinstance(a, int) else 0 if b == 0 else a if b == 1 else f"({a} * {b})"


def linear(index: Index, shape: Sequence[int]) -> Any:
    """The place of an element in memory, row by row."""
    place: Any = 0
    for i, n in zip(index, shape, strict=True):
        place = plus(times(place, n), i)
    return place


class Arrays(Scalars):
    """Writes operations on arrays. largest: elements of an array that is held apart."""

    def __init__(self, largest: int = LARGEST, most: int | None = None) -> None:
        super().__init__(most)
        self.largest = largest

    def is_large(self, x: Array) -> bool:
        """Whether an array is looped, or would be."""
        return isinstance(x, Looped) or x.size > self.largest

    def view(self, place: str, shape: Iterable[int], dtype: Any, memory: Name | None = None, more: str = "") -> Looped:
        """An array in memory. more: what is done with an element that is read."""
        shape = tuple(shape)
        return Looped(
            shape, dtype, lambda index: self.let(f"{place}[{linear(index, shape)}]{more}", dtype), memory=memory
        )

    def memory(self, shape: Iterable[int], dtype: Any) -> Looped:
        """A new array in the thread's own memory."""
        name = self.array(prod(shape := tuple(shape)), dtype)
        return self.view(name, shape, dtype, memory=name)

    def moved(self, x: Array, shape: tuple[int, ...], place: Callable[[Index], Index], results: int = 1) -> Array:
        """The array whose element at an index is that of x at `place(index)`. results: how often x is read so."""
        if not isinstance(x, Looped) and prod(shape) <= self.largest:
            return filled(shape, lambda index: x[tuple(place(index))])
        x = self.looped(x)
        return self.settled((self.kept(x) if results > 1 or prod(shape) > x.size else x).moved(shape, place))

    def over(self, shape: Iterable[int], what: Callable[[list[Any]], None]) -> None:
        """Loops over all indices of a shape."""

        def inside(left: list[int], index: list[Any]) -> None:
            if not left:
                what(index)
                return
            i = self.fresh("i", np.int32)
            with self.block(f"ONCE for (int {i} = 0; {i} < {left[0]}; ++{i})"):
                inside(left[1:], [*index, str(i)])

        inside(list(shape), [])

    def store(self, to: Looped, x: Looped, begin: Index = ()) -> None:
        """Write an array into memory, its first element at an index."""
        begin = begin or [0] * x.ndim

        def write(index: Index) -> None:
            place = linear([plus(i, b) for i, b in zip(index, begin, strict=True)], to.shape)
            self.say(f"{to.memory}[{place}] = {text_of(x.at(index))};")

        self.over(x.shape, write)

    def kept(self, x: Array) -> Array:
        """An array whose elements are computed once, however often they are read."""
        return self.copied(x) if isinstance(x, Looped) and not x.cheap else x

    def copied(self, x: Array) -> Looped:
        """An array in memory of its own."""
        x = self.looped(x)
        found = self.memory(x.shape, x.dtype)
        self.store(found, x)
        return found

    def owned(self, x: Looped) -> Looped:
        """An array in memory that may be written over: its own, where nothing else reads it."""
        if x.memory is None:
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
        name = self.fresh("a", dtype)
        if all(map(known, flat)):
            self.say(f"TABLE {c_type(dtype)} {name}[] = {{{', '.join(map(text_of, flat))}}};")
            return self.view(name, x.shape, dtype)
        self.say(f"{c_type(dtype)} {name}[{len(flat)}];")
        for k, element in enumerate(flat):
            self.say(f"{name}[{k}] = {text_of(element)};")
        memory = self.view(name, x.shape, dtype)

        def at(index: Index) -> Number:
            return x[tuple(index)] if all(isinstance(i, int) for i in index) else memory.at(index)

        return Looped(x.shape, dtype, at)

    def apart(self, x: Array) -> Apart:
        """An array of any form, held apart."""
        return filled(x.shape, lambda index: x.at(list(index))) if isinstance(x, Looped) else x

    def settled(self, x: Array) -> Array:
        """A result in the form that its size asks for."""
        return self.apart(x) if isinstance(x, Looped) and x.size <= self.largest else x

    def as_index(self, x: Number) -> Any:
        """A number as part of an index."""
        return int(x) if known(x) else str(self.converted(x, np.int32))

    def of_index(self, i: Any, dtype: Any) -> Number:
        """Part of an index as a number."""
        return number(i, dtype) if isinstance(i, int) else self.converted(Name(str(i), np.int32), dtype)
