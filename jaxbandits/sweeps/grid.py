"""The grid of a sweep: axes, keys, and which factory a key feeds."""

import functools
import inspect
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.learners.transformations import is_transformation
from jaxbandits.sweeps.arguments import PARTS, signature_of
from jaxbandits.validation import integer, nearest, shown

# names that every result has
RESERVED_NAMES = ("algorithm", "seed", "t", "arm", "arm_name", "regret", "pulls", "best_reward")


class Axis(NamedTuple):
    """One dimension of the result: its keys move together."""

    name: str
    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]  # for every entry, a value for each key
    labels: tuple[Any, ...]  # the coordinate


def axes_of(grid: Any, points: Any, horizon: Any) -> list[Axis]:
    """Axes in the order of the result's dimensions."""
    grid = {} if grid is None else grid
    if not isinstance(grid, dict):
        instead = ": points=[...] runs a list of settings" if isinstance(grid, list | tuple) else ""
        raise ValueError(f"grid = {shown(grid)} must be a dict of lists, such as {{'epsilon': [0.1, 1.0]}}{instead}")
    if points is not None and grid:
        raise ValueError("points and grid are alternatives: give one of them")
    axes = [] if not isinstance(horizon, list | tuple | np.ndarray) else [_horizons(horizon)]
    listed = isinstance(points, list | tuple) and len(points) > 0
    if points is not None and not (listed and all(isinstance(p, dict) and p for p in points)):
        raise ValueError(
            f"points = {shown(points)} must be a non-empty list of dicts of settings, such as [{{'epsilon': 0.1}}]"
        )
    for key in [
        k for entry in (points or [grid]) for tied in entry for k in (tied if isinstance(tied, tuple) else (tied,))
    ]:
        if not isinstance(key, str) or not key:
            raise ValueError(
                f"grid key {shown(key)} must be an argument's name, or a tuple of names that move together"
            )
        if key == "horizon":
            raise ValueError("'horizon' is not a grid key: give horizon a list of horizons")
        if key in RESERVED_NAMES:
            raise ValueError(
                f"grid key {key!r} is a name that every result has: write LABEL.{key} or environment.{key}"
            )
        if "/" in key:
            raise ValueError(f"grid key {key!r} names a dimension of the result, which cannot hold a '/': relabel")
    if points is not None:
        return [*axes, _points(points)]
    axes += [_axis(key, values) for key, values in grid.items()]
    names = [axis.name for axis in axes]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise ValueError(f"grid has two axes named {twice!r}")
    return axes


def _points(points: Any) -> Axis:
    keys = tuple(dict.fromkeys(key for p in points for key in p))
    missing = [(i, key) for i, p in enumerate(points) for key in keys if key not in p]
    if missing:
        i, key = missing[0]
        raise ValueError(f"points[{i}] has no {key!r}: every point names the same keys ({', '.join(keys)})")
    return Axis("point", keys, tuple(tuple(p[key] for key in keys) for p in points), tuple(range(len(points))))


def _horizons(horizon: Any) -> Axis:
    values = tuple(integer("horizon", h, 1, 2**31 - 2) for h in horizon)
    if not values or len(set(values)) < len(values):
        raise ValueError(f"horizon = {list(horizon)!r} must be a list of different horizons")
    return Axis("horizon", ("horizon",), tuple((h,) for h in values), values)


def _axis(key: Any, values: Any) -> Axis:
    keys = key if isinstance(key, tuple) else (key,)
    if not keys:
        raise ValueError("grid key () names no argument: give a tuple of names that move together")
    if not _listable(values):
        instead = "list(...)" if isinstance(values, Iterator) else f"[{shown(values)}]"
        raise ValueError(f"grid[{key!r}] = {shown(values)} must be a list of values: {instead}")
    labels, values = list(values), list(values.values() if isinstance(values, dict) else values)
    if not values:
        raise ValueError(f"grid[{key!r}] is empty: give at least one value")
    if len(keys) > 1:  # tied keys share one value, or take a row with one value for each key
        # an optax transformation is a tuple and still one value
        rows = [
            tuple(v)
            if isinstance(v, list | tuple) and len(v) == len(keys) and not is_transformation(v)
            else (v,) * len(keys)
            for v in values
        ]
        labels = [row[0] if isinstance(v, list | tuple) else v for row, v in zip(rows, labels, strict=True)]
    else:
        rows = [(v,) for v in values]
    if any(isinstance(v, list | tuple | np.ndarray) for v in labels):
        if len(keys) > 1 and any(np.ndim(v) == 1 and len(v) != len(keys) for v in labels):
            raise ValueError(
                f"grid[{key!r}] ties {len(keys)} keys: give one row of {len(keys)} values for each point, in their "
                f"order, not {shown(labels[0])}; rows of arrays need names, "
                f"{{'easy': ({', '.join('[...]' for _ in keys)}), ...}}"
            )
        name = keys[0] if len(keys) == 1 else key
        what, example = "arrays", "{'easy': [...], 'hard': [...]}"
        if any(map(is_transformation, labels)):
            what, example = "optimizers", "{'slow': optax.sgd(0.01), ...}"
        raise ValueError(f"grid[{key!r}] holds {what}: name them, for example {{{name!r}: {example}}}")
    if len({x if isinstance(x, int | float | np.number) else repr(x) for x in labels}) < len(labels):
        raise ValueError(f"grid[{key!r}] holds a value twice: {shown(labels)}")
    return Axis(keys[0], keys, tuple(rows), tuple(labels))


def _listable(values: Any) -> bool:
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes | Iterator)
    return several and getattr(values, "ndim", 1) > 0


def free_names(factory: Any) -> list[str]:
    """The arguments of a factory that no partial binds."""
    names, bound = signature_of(factory)
    return [name for name in names if name not in bound]


def takes(factory: Any, key: str) -> bool:
    """Whether a (possibly dotted) key reaches an argument of this factory that is not bound yet."""
    head, _, rest = key.partition(".")
    if not rest:
        return head in free_names(factory)
    if head != "base":
        return False
    base = base_of(factory)
    return base is not None and takes(base, rest)


def base_of(factory: Any) -> Any:
    """The base factory of a conversion, or None where it has none."""
    names, bound = signature_of(factory)
    if "base" in bound:
        return bound["base"]
    if "base" not in names or names["base"].default is inspect.Parameter.empty:
        return None
    return names["base"].default


def known_keys(factory: Any) -> list[str]:
    """Every key that `takes` accepts."""
    keys = free_names(factory)
    base = base_of(factory)
    return keys + ([f"base.{k}" for k in known_keys(base)] if base is not None else [])


def bind(factory: Any, key: str, value: Any) -> functools.partial[Any]:
    """The factory with one key set, which may be dotted."""
    head, _, rest = key.partition(".")
    if not rest:
        return functools.partial(factory, **{head: value})
    return functools.partial(factory, base=bind(base_of(factory), rest, value))


class Route(NamedTuple):
    """Where the keys of all axes go: for each target, entries (axis, position in the axis, key inside the target)."""

    algorithms: dict[str, list[tuple[int, int, str]]]
    parts: dict[str, list[tuple[int, int, str]]]


def route(axes: list[Axis], algorithms: dict[str, Any], parts: dict[str, Any]) -> Route:
    """Find the factories that take each key. ValueError, with the most similar known key, where none does."""
    to_algorithms: dict[str, list[tuple[int, int, str]]] = {label: [] for label in algorithms}
    to_parts: dict[str, list[tuple[int, int, str]]] = {name: [] for name in PARTS}
    for i, axis in enumerate(axes):
        for j, key in enumerate(axis.keys):
            if axis.name == "horizon" and key == "horizon":
                continue
            label = max((name for name in algorithms if key.startswith(name + ".")), key=len, default=None)
            head, _, rest = key.partition(".") if label is None else (label, ".", key[len(label) + 1 :])
            if head in PARTS and rest:
                if parts.get(head) is None:
                    raise ValueError(f"grid key {key!r}: this sweep has no {head}")
                # a part's own arguments may be set again, even where it was called
                fed = [to_parts[head]] if rest in signature_of(parts[head])[0] else []
            elif head in algorithms and rest:
                fed = [to_algorithms[head]] if takes(algorithms[head], rest) else []
            else:
                rest, fed = key, [to_algorithms[name] for name, factory in algorithms.items() if takes(factory, key)]
            for target in fed:
                target.append((i, j, rest))
            if not fed:
                own = {name: signature_of(f)[0] for name, f in parts.items() if f is not None}
                known = [k for f in algorithms.values() for k in known_keys(f)]
                known += [f"{name}.{k}" for name, names in own.items() for k in names]
                known += [f"{label}.{k}" for label, f in algorithms.items() for k in known_keys(f)]
                elsewhere = [f"{name}.{key}" for name, names in own.items() if key in names]
                bound = next((name for name, f in algorithms.items() if key in signature_of(f)[1]), None)
                if bound is not None and not elsewhere:
                    raise ValueError(f"grid key {key!r} is already set in the partial of {bound!r}: leave it out there")
                hint = f" (did you mean {elsewhere[0]!r}?)" if elsewhere else nearest(key, dict.fromkeys(known))
                raise ValueError(f"grid key {key!r}: no factory of this sweep takes it, or it is already set{hint}")
    return Route(to_algorithms, to_parts)
