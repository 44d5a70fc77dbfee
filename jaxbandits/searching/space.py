"""What a search may choose from: ranges of numbers and lists of values, one for each key.

A point of the space is a dict {key: value}. A search works with its coordinates, one number a key: in [0, 1] along a
range, the position in a list of values. Axes: [D] keys.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.formatting import show
from jaxbandits.typing import Shaped
from jaxbandits.validation import choice, integer, number, same, scalar_of

RANGE_KINDS = ("linear", "log", "int")


class Dimension(NamedTuple):
    """The values of one key. Whoever searches decides what the key means."""

    key: Any
    kind: str  # "linear" | "log" | "int" for ranges, "values" for lists
    low: float = 0.0
    high: float = 1.0
    values: tuple[Any, ...] = ()
    labels: tuple[Any, ...] = ()  # the names of the values, where they have names

    @property
    def is_range(self) -> bool:
        """Whether it is a range of numbers."""
        return self.kind != "values"


def dimensions_of(space: object) -> tuple[Dimension, ...]:
    """The dimensions of a space {key: (low, high), (low, high, kind), list of values or {name: value}}.

    ValueError, with the key, the value and the remedy, for anything else.

    >>> dimensions_of({"value": (0.1, 100, "log"), "kind": ["fixed", "swapped"]})[0].kind
    'log'
    """
    if not isinstance(space, Mapping) or not space:
        form = "{key: (low, high), (low, high, 'log'), (low, high, 'int') or a list of values}"
        raise ValueError(f"space = {show(space)} must be a dict that is not empty, {form}")
    return tuple(_dimension(key, given) for key, given in space.items())


def _dimension(key: object, given: Any) -> Dimension:
    name = f"space[{key!r}]"
    if isinstance(given, Mapping):
        return _list_dimension(name, key, list(given.values()), list(given))
    is_array = isinstance(given, np.ndarray | jax.Array)
    if isinstance(given, list | range) or (is_array and given.ndim == 1):
        values = [scalar_of(name, x) for x in (given.tolist() if is_array else given)]
        return _list_dimension(name, key, values, values)
    if not isinstance(given, tuple) or len(given) not in (2, 3) or any(isinstance(end, str) for end in given[:2]):
        raise ValueError(f"{name} = {show(given)} must be (low, high), (low, high, kind) or a list of values")
    kind = "linear" if len(given) == 2 else given[2]
    if not isinstance(kind, str):
        raise ValueError(f"{name} = {show(given)} must be (low, high, kind): values to choose from are a list, [...]")
    choice(f"{name}: the kind", kind, RANGE_KINDS)
    if kind == "int":
        ends: tuple[float, float] = integer(f"{name}[0]", given[0]), integer(f"{name}[1]", given[1])
    else:
        ends = number(f"{name}[0]", given[0]), number(f"{name}[1]", given[1])
    if not ends[0] < ends[1]:
        raise ValueError(f"{name} = {show(given)} must have low < high: a single value is a list, [{given[0]!r}]")
    if kind == "log" and ends[0] <= 0:
        raise ValueError(f"{name} = {show(given)} must have low above 0 for 'log': raise low, or use 'linear'")
    return Dimension(key, kind, *ends)


def _list_dimension(name: str, key: object, values: list[Any], labels: list[Any]) -> Dimension:
    if not values:
        raise ValueError(f"{name} is empty: give at least one value")
    for label in labels:
        if isinstance(label, list | tuple | np.ndarray):
            raise ValueError(f"{name} holds arrays: name them, for example {{'easy': [...], 'hard': [...]}}")
    if any(same(x, y) for i, x in enumerate(values) for y in values[:i]):
        raise ValueError(f"{name} holds a value twice: {show(values)}")
    return Dimension(key, "values", values=tuple(values), labels=tuple(labels))


def value_at(dimension: Dimension, coordinate: float) -> Any:
    """The value at a coordinate. Those of an integer range have equal shares of [0, 1].

    >>> value_at(Dimension("n", "int", 1, 4), 0.6)
    3
    """
    low, high = dimension.low, dimension.high
    if dimension.kind == "values":
        return dimension.values[int(coordinate)]
    if dimension.kind == "int":
        return int(low + min(math.floor(coordinate * (high - low + 1)), high - low))
    if coordinate in (0.0, 1.0):  # the ends exactly
        return high if coordinate else low
    if dimension.kind == "log":
        return min(max(low * math.exp(coordinate * math.log(high / low)), low), high)
    return low + coordinate * (high - low)


def coordinate_of(dimension: Dimension, value: object) -> float:
    """The coordinate of a value. ValueError where the dimension does not hold it.

    >>> coordinate_of(Dimension("x", "log", 0.1, 10.0), 1.0)
    0.5
    """
    low, high = dimension.low, dimension.high
    if dimension.kind == "values":
        found = next((i for i, x in enumerate(dimension.values) if same(x, value)), None)
        if found is None:
            raise ValueError(f"space[{dimension.key!r}] does not hold {show(value)}")
        return float(found)
    value = number(f"space[{dimension.key!r}]: the value", value, low, high)
    if dimension.kind == "int":
        return (integer(f"space[{dimension.key!r}]: the value", value) - low + 0.5) / (high - low + 1)
    if dimension.kind == "log":
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def point_at(dimensions: Sequence[Dimension], coordinates: Shaped[np.ndarray, " D"]) -> dict[Any, Any]:
    """The point {key: value} at coordinates [D]."""
    return {d.key: value_at(d, float(x)) for d, x in zip(dimensions, coordinates, strict=True)}
