"""Arrays of a one-lane function with every element held apart.

An array of shape s is a NumPy array of objects of shape s. An element is one of

* a NumPy number, known while tracing: arithmetic on it is done at once and costs nothing;
* a traced number (): the same for all lanes of a block, such as a parameter or the play;
* a traced vector [B]: one number a lane.

Where one axis is too long to be held apart (`long_axis`), lanes are [B, 1], an array has one element for all of that
axis, and a fourth kind of element is a lane's numbers along the axis, [B, n], or [1, n] where lanes share them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive

Elements = np.ndarray[Any, np.dtype[np.object_]]
Index = tuple[int, ...]


def known(element: Any) -> bool:
    """Whether an element is a number while tracing."""
    return isinstance(element, np.generic)


def filled(shape: Index, element_at: Callable[[Index], Any]) -> Elements:
    """An array whose element at an index is given by a function."""
    array = np.empty(shape, object)
    for index in np.ndindex(shape):
        array[index] = element_at(index)
    return array


def single(element: Any) -> Elements:
    """An array of shape ()."""
    return filled((), lambda _: element)


def held_apart(array: Any, dtype: Any = None) -> Elements:
    """A host array as known elements."""
    array = np.asarray(array, dtype)
    return filled(array.shape, lambda index: array[index])


def listed(elements: Iterable[Any]) -> Elements:
    """An array [n] of elements."""
    elements = list(elements)
    return filled((len(elements),), lambda index: elements[index[0]])


def apply(primitive: Primitive, operands: Sequence[Any], **params: Any) -> Any:
    """An elementwise primitive on elements. Known ones are folded, and so is what does not depend on the rest."""
    if all(map(known, operands)):
        with jax.ensure_compile_time_eval():
            return np.asarray(primitive.bind(*map(jnp.asarray, operands), **params))[()]
    if primitive.name in ("and", "or") and (folded := _of_truth(primitive.name, *operands)) is not None:
        return folded
    return primitive.bind(*_of_one_shape(operands), **params)


def call(function: Callable[..., Any], *operands: Any) -> Any:
    """A function of numbers, such as `lax.add`, on elements."""
    if all(map(known, operands)):
        with jax.ensure_compile_time_eval():
            return np.asarray(function(*map(jnp.asarray, operands)))[()]
    return function(*_of_one_shape(operands))


def select(condition: Any, chosen: Any, other: Any) -> Any:
    """`chosen` where the condition holds, else `other`."""
    if known(condition):
        return chosen if condition else other
    if chosen is other or (known(chosen) and known(other) and _same_bits(chosen, other)):
        return chosen
    return call(lambda condition, chosen, other: lax.select(condition, chosen, other), condition, chosen, other)


def both(a: Any, b: Any) -> Any:
    """Whether two conditions hold."""
    return apply(lax.and_p, [a, b])


def either(a: Any, b: Any) -> Any:
    """Whether one of two conditions holds."""
    return apply(lax.or_p, [a, b])


def as_number(element: Any, dtype: Any) -> Any:
    """A number of a type, not traced."""
    return np.asarray(element, dtype)[()]


def _same_bits(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _of_truth(name: str, a: Any, b: Any) -> Any:
    """`and` and `or` of conditions of which one is known; None where none is."""
    a, b = (a, b) if known(a) else (b, a)
    if not known(a) or a.dtype != bool:
        return None
    return b if bool(a) == (name == "and") else a


def _of_one_shape(operands: Sequence[Any]) -> list[Any]:
    """Operands as traced arrays of one shape: where one is a vector, all are."""
    shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
    return [jnp.broadcast_to(x, shape) if np.shape(x) != shape else jnp.asarray(x) for x in operands]
