"""The grid of a sweep: axes, keys, and which factory a key feeds."""

import collections
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.formatting import nearest, show
from jaxbandits.learners.transformations import is_transformation
from jaxbandits.recipe import Recipe
from jaxbandits.sweeps.arguments import PARTS, check_text, short_text
from jaxbandits.validation import integer, scalar_of

# names that every result has
RESERVED_NAMES = ("algorithm", "seed", "t", "arm", "arm_name", "regret", "pulls", "best_reward", "identity")
Routes = dict[str, list[tuple[int, int, str]]]  # label or part -> (axis, position in the axis, key)


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
        raise ValueError(f"grid = {show(grid)} must be a dict of lists, such as {{'epsilon': [0.1, 1.0]}}{instead}")
    if points is not None and grid:
        raise ValueError("points and grid are alternatives: give one of them")
    several = isinstance(horizon, list | tuple) or getattr(horizon, "ndim", 0) > 0
    axes = [_horizons(horizon)] if several else []
    listed = isinstance(points, list | tuple) and len(points) > 0
    if points is not None and not (listed and all(isinstance(p, dict) and p for p in points)):
        wanted = "a non-empty list of dicts of settings, such as [{'epsilon': 0.1}]"
        raise ValueError(f"points = {show(points)} must be {wanted}")
    for entry in points or [grid]:
        for tied in entry:
            _check_keys(tied if isinstance(tied, tuple) else (tied,))
    if points is not None:
        axes.append(_points(points))
    for key, values in grid.items():
        axes.append(_axis(key, values))
    names = set[str]()
    for axis in axes:
        if axis.name in names:
            raise ValueError(f"grid has two axes named {axis.name!r}")
        names.add(axis.name)
        for text in (axis.name, *axis.labels):
            if isinstance(text, str):
                check_text(f"grid[{axis.name!r}]: the label", text)
    return axes


def _check_keys(keys: tuple[Any, ...]) -> None:
    for key in keys:
        if not isinstance(key, str) or not key:
            raise ValueError(f"grid key {show(key)} must be an argument's name, or a tuple of names that move together")
        if key == "horizon":
            raise ValueError("'horizon' is not a grid key: give horizon a list of horizons")
        if key in RESERVED_NAMES:
            remedy = f"write LABEL.{key} or environment.{key}"
            raise ValueError(f"grid key {key!r} is a name that every result has: {remedy}")
        if "/" in key:
            raise ValueError(f"grid key {key!r} names a dimension of the result, which cannot hold a '/': relabel")


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
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes | Iterator)
    if not several or getattr(values, "ndim", 1) == 0:
        instead = "list(...)" if isinstance(values, Iterator) else f"[{show(values)}]"
        raise ValueError(f"grid[{key!r}] = {show(values)} must be a list of values: {instead}")
    listed = [values, values.values() if isinstance(values, dict) else values]
    labels, values = ([scalar_of(f"grid[{key!r}]", x) for x in each] for each in listed)
    if not values:
        raise ValueError(f"grid[{key!r}] is empty: give at least one value")
    if len(keys) > 1:  # tied keys share one value, or take a row with one value for each key
        # an optax transformation is a tuple and still one value
        several = [isinstance(v, list | tuple) and len(v) == len(keys) and not is_transformation(v) for v in values]
        rows = [tuple(v) if row else (v,) * len(keys) for v, row in zip(values, several, strict=True)]
        labels = [row[0] if isinstance(v, list | tuple) else v for row, v in zip(rows, labels, strict=True)]
    else:
        rows = list(zip(values, strict=True))
    if any(isinstance(v, list | tuple | np.ndarray) for v in labels):
        if len(keys) > 1 and any(np.ndim(v) == 1 and len(v) != len(keys) for v in labels):
            wanted = f"one row of {len(keys)} values for each point, in their order, not {show(labels[0])}"
            names = f"rows of arrays need names, {{'easy': ({', '.join('[...]' for _ in keys)}), ...}}"
            raise ValueError(f"grid[{key!r}] ties {len(keys)} keys: give {wanted}; {names}")
        name = keys[0] if len(keys) == 1 else key
        what, example = "arrays", "{'easy': [...], 'hard': [...]}"
        if any(map(is_transformation, labels)):
            what, example = "optimizers", "{'slow': optax.sgd(0.01), ...}"
        raise ValueError(f"grid[{key!r}] holds {what}: name them, for example {{{name!r}: {example}}}")
    plain = all(isinstance(x, int | float | np.number) for x in labels)  # otherwise the result has their texts
    if len({x if plain else short_text(x) for x in labels}) < len(labels):
        raise ValueError(f"grid[{key!r}] holds a value twice, or two of one name: {show(labels)}")
    return Axis(keys[0], keys, tuple(rows), tuple(labels))


def route(axes: list[Axis], algorithms: dict[str, Recipe], parts: dict[str, Recipe | None]) -> Routes:
    """Where all keys go: for every label and part, (axis, position in the axis, key inside the factory)."""
    routes = collections.defaultdict[str, list[tuple[int, int, str]]](list)
    for i, axis in enumerate(axes):
        for j, key in enumerate(axis.keys):
            if axis.name == "horizon" and key == "horizon":
                continue
            label = max((name for name in algorithms if key.startswith(name + ".")), key=len, default=None)
            head, _, rest = key.partition(".") if label is None else (label, ".", key[len(label) + 1 :])
            if rest and head in PARTS:
                if (part := parts[head]) is None:
                    raise ValueError(f"grid key {key!r}: this sweep has no {head}")
                # a part's own arguments may be set again, even where it was called
                targets = [head] if rest in part.arguments else []
            elif rest and head in algorithms:
                targets = [head] if algorithms[head].takes(rest) else []
            else:
                rest, targets = key, [name for name, recipe in algorithms.items() if recipe.takes(key)]
            for target in targets:
                routes[target].append((i, j, rest))
            if not targets:
                own = {slot: list(part.arguments) for slot, part in parts.items() if part is not None}
                elsewhere = [f"{slot}.{key}" for slot, names in own.items() if key in names]
                bound = next((name for name, recipe in algorithms.items() if key in recipe.bound), None)
                if bound is not None and not elsewhere:
                    raise ValueError(f"grid key {key!r} is already set in the partial of {bound!r}: leave it out there")
                known = {label: recipe.known_keys() for label, recipe in algorithms.items()}
                every = [k for keys in known.values() for k in keys]
                every += [f"{target}.{k}" for target, keys in (own | known).items() for k in keys]
                hint = f" (did you mean {elsewhere[0]!r}?)" if elsewhere else nearest(key, dict.fromkeys(every))
                raise ValueError(f"grid key {key!r}: no factory of this sweep takes it, or it is already set{hint}")
    return routes
