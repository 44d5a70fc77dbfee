"""What a sweep will run: cells (one algorithm at one point), grouped by compiled program. Everything is on the host.

A cell is computed once, even where it appears several times along an axis that its factories do not name. Cells of
one group share functions, schedule and shapes, so they run in one call with their numbers stacked. Leaves that do not
differ are not stacked, so that what depends on the seed alone is drawn once for the whole group.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.protocol import Adversary, Algorithm, Case, Environment, Span
from jaxbandits.simulator import case_of, parts_of
from jaxbandits.sweeps.arguments import (
    PARTS,
    call,
    floating,
    labelled,
    name_of,
    part_factory,
    readable,
    seed_range,
    signature_of,
)
from jaxbandits.sweeps.checkpoints import checkpoint_times
from jaxbandits.sweeps.compilation import settings
from jaxbandits.sweeps.grid import Axis, axes_of, bind, route
from jaxbandits.validation import integer, same, shown
from jaxbandits.window import Parts


class Cell(NamedTuple):
    """One algorithm at one point."""

    label: str
    algorithm: Algorithm
    environment: Environment
    reward_adversary: Adversary | None
    message_adversary: Adversary | None
    horizon: int
    place: tuple[int | None, ...]  # its index on every axis; None where the cell is constant along the axis

    @property
    def players(self) -> tuple[Algorithm, Environment, Adversary | None, Adversary | None]:
        return self.algorithm, self.environment, self.reward_adversary, self.message_adversary


class Group(NamedTuple):
    """Cells that share a compiled program."""

    parts: Parts
    schedule: tuple[Span, ...]
    times: np.ndarray[Any, Any]  # [C]
    cells: list[int]  # positions in Plan.cells


class Plan(NamedTuple):
    """A sweep, ready to run."""

    labels: list[str]
    axes: list[Axis]
    cells: list[Cell]
    places: dict[tuple[Any, ...], int]  # (label, *axis indices) -> position in cells
    groups: list[Group]
    times: dict[int, np.ndarray[Any, Any]]  # horizon -> [C]
    constant_along: dict[str, list[str]]  # label -> names of axes
    seeds: range
    dtype: str


def built(
    factory: Callable[..., Any],
    given: dict[str, Any],
    facts: Mapping[str, Any],
    horizon: int,
    label: str,
    prefix: str | None = None,
) -> Algorithm:
    """Call an algorithm factory. Arguments that the environment fixes are filled in where they are not given.

    prefix: how grid keys that could give a missing argument begin; None without a grid.
    """
    names, bound = signature_of(factory)
    fixed = {**facts, "horizon": horizon}
    for name in names:
        if name in bound or name in given:
            if name in fixed:
                whose = "the sweep's horizon" if name == "horizon" else "the environment's"
                _agreed(label, name, bound.get(name, given.get(name)), fixed[name], whose)
        elif name in fixed:
            given = {**given, name: fixed[name]}
        elif name == "num_arms" and names[name].default is names[name].empty:
            raise ValueError(
                f"{label} needs num_arms, and the environment's facts do not hold it: "
                "Environment.facts = {'num_arms': ...}"
            )
    for name, needed in NEEDED.items():
        if name in names and name not in bound and name not in given and names[name].default is names[name].empty:
            raise TypeError(f"{label}: {name_of(factory)} needs {name}, and this environment has none: {needed}")
    return fitting_in(call(factory, "algorithm", prefix, **given), facts, label)


def with_horizon(factory: Any, horizon: int, slot: str) -> Any:
    """The factory of an adversary with the run's horizon bound, where it has such an argument.

    ValueError where another one is bound. None counts as not given.
    """
    names, bound = signature_of(factory)
    if "horizon" not in names:
        return factory
    if bound.get("horizon") is not None:
        _agreed(slot, "horizon", bound["horizon"], horizon, "the run's horizon")
    return functools.partial(factory, horizon=horizon)


def fitting_in(algorithm: Algorithm, facts: Mapping[str, Any], label: str) -> Algorithm:
    """The algorithm, if it was built for an environment of these facts; otherwise ValueError."""
    for name in FILLED:
        value = algorithm.config.get(name)
        if value is not None and name in facts:
            _agreed(label, name, value, facts[name], "the environment's")
        elif value is not None and name in ("num_experts", "num_agents"):
            raise ValueError(f"{label}: {name} = {shown(value)}, but this environment has none: {NEEDED[name]}")
    return algorithm


def _agreed(label: str, name: str, value: Any, fixed: Any, whose: str) -> None:
    """ValueError where a given argument is another one than what fixes it."""
    try:
        agrees = bool(np.array_equal(np.asarray(value, float), np.asarray(fixed, float)))
    except (TypeError, ValueError):  # an algorithm for contexts that are redrawn is right for fixed ones too
        agrees = value == fixed or (value, fixed) == ("redraw", "fixed")
    if not agrees:
        raise ValueError(
            f"{label}: {name} = {shown(value)} disagrees with {whose} {shown(fixed)}: leave it out, it is filled in"
        )


def filled_in(environment: Environment) -> dict[str, Any]:
    """The arguments that an environment fixes for algorithms that have them."""
    arms = {"num_arms": environment.world.num_arms} if environment.world.num_arms else {}
    return arms | {k: v for k, v in environment.facts.items() if k in FILLED}


# The arguments that are filled in from an environment's facts.
FILLED = ("num_arms", "dim", "num_agents", "num_experts", "actions", "feature_norm", "contexts")
# What only some environments have, and which do.
NEEDED = {
    "num_agents": "federated_linear has agents",
    "num_experts": "rotating_experts has experts",
    "actions": "linear_arms has actions",
    "dim": "its arms have no features; contextual_linear shows contexts, linear_arms has fixed actions",
}


def plan(
    algorithms: Any,
    environment: Any,
    *,
    horizon: Any,
    seeds: Any,
    grid: Any,
    points: Any,
    reward_adversary: Any,
    message_adversary: Any,
    checkpoints: Any,
    dtype: Any,
) -> Plan:
    """Check the arguments of `sweep` and lay out its cells and groups."""
    factories = labelled(algorithms)
    seeds, dtype = seed_range(seeds), floating(dtype)
    given = {"environment": environment, "reward_adversary": reward_adversary, "message_adversary": message_adversary}
    makers = {slot: part_factory(part, slot) for slot, part in given.items()}
    axes = axes_of(grid, points, horizon)
    for axis in axes:
        for text in (axis.name, *(x for x in axis.labels if isinstance(x, str))):
            readable(f"grid[{axis.name!r}]: the label", text)
    horizons = _horizons(axes, horizon)
    times = {h: checkpoint_times(h, checkpoints) for h in horizons}
    layout = _Layout(axes, route(axes, factories, makers), makers, horizons)
    constant_along = {label: layout.add(label, factory) for label, factory in factories.items()}
    groups = grouped(layout.cells, times, dtype)
    return Plan(
        list(factories), axes, layout.cells, layout.places, groups, times, constant_along, seeds=seeds, dtype=dtype
    )


def _horizons(axes: list[Axis], horizon: Any) -> tuple[int, ...]:
    """The horizons of a sweep: those of its axis where there is one, which comes first."""
    return axes[0].labels if _has_horizons(axes) else (integer("horizon", horizon, 1, 2**31 - 2),)


def _has_horizons(axes: list[Axis]) -> bool:
    return bool(axes) and axes[0].name == "horizon"


class _Layout:
    """Cells at the places of a grid. A cell is built once, at the first of its places."""

    def __init__(self, axes: list[Axis], routes: Any, makers: dict[str, Any], horizons: tuple[int, ...]) -> None:
        self.axes, self.routes, self.makers, self.horizons = axes, routes, makers, horizons
        self.cells: list[Cell] = []
        self.places: dict[tuple[Any, ...], int] = {}  # (label, *axis indices) -> position in cells
        self._parts: dict[tuple[Any, ...], Any] = {}

    def add(self, label: str, factory: Any) -> list[str]:
        """Lay out an algorithm. Returns the names of the axes along which nothing about it changes."""
        keys = self._keys(label)
        moving = {i for i, _, _ in keys}
        first = [_first_alike(axis, [j for k, j, _ in keys if k == i]) for i, axis in enumerate(self.axes)]
        built_at: dict[tuple[int | None, ...], int] = {}
        for place in itertools.product(*(range(len(axis.values)) for axis in self.axes)):
            index = tuple(first[i][at] if i in moving else None for i, at in enumerate(place))
            if index not in built_at:
                built_at[index] = len(self.cells)
                self.cells.append(self._cell(label, factory, place, index))
            self.places[(label, *place)] = built_at[index]
        return [axis.name for i, axis in enumerate(self.axes) if i not in moving]

    def _keys(self, label: str) -> list[tuple[int, int, str]]:
        """The keys that reach an algorithm or what it meets: (axis, position among the axis's keys, key)."""
        others = [key for name in PARTS for key in self.routes.parts[name]]
        return [*self.routes.algorithms[label], *others, *([(0, 0, "horizon")] if _has_horizons(self.axes) else [])]

    def _cell(self, label: str, factory: Any, place: tuple[int, ...], index: tuple[int | None, ...]) -> Cell:
        horizon = self.horizons[place[0]] if _has_horizons(self.axes) else self.horizons[0]
        environment, first, second = (self._part(name, place, horizon) for name in PARTS)
        limit = environment.facts.get("max_horizon")
        if limit is not None and horizon > limit:
            raise ValueError(f"horizon = {horizon} is longer than the environment's {limit} plays: lower it")
        arguments: dict[str, Any] = {}
        for i, j, key in sorted(self.routes.algorithms[label], key=lambda k: k[2].count(".")):  # a base before its own
            value = self.axes[i].values[place[i]][j]
            if "." in key or key == "base":
                factory = bind(factory, key, value)
            else:
                arguments[key] = value
        algorithm = built(factory, arguments, filled_in(environment), horizon, label, "")
        return Cell(label, algorithm, environment, first, second, horizon, index)

    def _part(self, name: str, place: tuple[int, ...], horizon: int) -> Any:
        """The environment or an adversary at a place, called once for every setting of its own keys and horizon."""
        maker, keys = self.makers[name], self.routes.parts[name]
        if maker is None:
            return None
        filled = name != "environment" and "horizon" in signature_of(maker)[0]
        setting = (name, *(place[i] for i, _, _ in keys), horizon if filled else None)
        if setting not in self._parts:
            for i, j, key in keys:
                maker = bind(maker, key, self.axes[i].values[place[i]][j])
            if filled:
                maker = with_horizon(maker, horizon, name)
            self._parts[setting] = call(maker, name, f"{name}.")
        return self._parts[setting]


def _first_alike(axis: Axis, used: list[int]) -> list[int]:
    """For each entry of an axis, the first one that is the same to an algorithm.

    used: positions of the axis's keys that reach the algorithm; entries with equal values of these are the same to it.
    """
    seen: dict[tuple[Any, ...], int] = {}
    firsts = []
    for i, entry in enumerate(axis.values):
        # plain values by type and value (1, 1.0 and True differ), everything else by identity
        plain = [(type(v), v) if isinstance(v, str | bool | int | float) else id(v) for v in (entry[j] for j in used)]
        firsts.append(seen.setdefault(tuple(plain), i))
    return firsts


def grouped(cells: Sequence[Cell], times: Mapping[int, np.ndarray[Any, Any]], dtype: str) -> list[Group]:
    """Groups of cells that can share one call: of equal functions, schedules and shapes."""
    groups: dict[Any, Group] = {}
    fits: dict[int, bool] = {}
    here = settings.in_force()
    for position, cell in enumerate(cells):
        parts = parts_in(cell, dtype)._replace(settings=here)
        case = host_case(cell)
        check_range(cell.label, case, dtype, fits)
        shapes = tuple((np.shape(x), np.asarray(x).dtype.kind) for x in jax.tree.leaves(case))
        key = (parts, cell.algorithm.schedule, cell.horizon, shapes)
        if key not in groups:
            groups[key] = Group(parts, cell.algorithm.schedule, times[cell.horizon], [])
        groups[key].cells.append(position)
    return list(groups.values())


def check_range(label: str, case: Case, dtype: str, fits: dict[int, bool]) -> None:
    """Raise ValueError naming the first number that is finite on the host and infinite in the run's dtype.

    fits: whether arrays fit, by their ids, for those that were checked before.
    """
    limit = float(np.finfo(dtype).max)

    def inside(x: Any) -> bool:
        if isinstance(x, float):
            return not limit < abs(x) < np.inf
        if id(x) not in fits:
            array = np.asarray(x)
            size = np.abs(array.astype(np.float64)) if array.dtype.kind in "fiu" else np.zeros(1)
            largest = limit if array.dtype.kind == "f" else 2.0**31 - 1
            fits[id(x)] = not np.any((size > largest) & (size < np.inf))
        return fits[id(x)]

    if all(map(inside, jax.tree.leaves(case))):
        return
    path, x = next((path, x) for path, x in jax.tree_util.tree_flatten_with_path(case)[0] if not inside(x))
    name, size = jax.tree_util.keystr(path).lstrip("."), np.abs(np.asarray(x, np.float64))
    what = f"is infinite in {dtype}" if np.asarray(x).dtype.kind == "f" else "does not fit 32-bit integers"
    larger = " or dtype='float64'" if dtype == "float32" and np.asarray(x).dtype.kind == "f" else ""
    raise ValueError(f"{label}: {name} = {size[size < np.inf].max():.4g} {what}: give smaller numbers{larger}")


def host_case(cell: Cell) -> Case:
    """A cell's params, on the host."""
    return case_of(*cell.players)


def parts_in(cell: Cell, dtype: str) -> Parts:
    """A cell's functions in a dtype."""
    return parts_of(*cell.players, dtype)


def cast(x: Any, dtype: str) -> Any:
    """A parameter as it is computed with: floats in the run's dtype, integers in 32 bits."""
    if isinstance(x, jax.core.Tracer):  # from a caller's vmap around `simulate`
        return x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    x = np.asarray(x)
    if x.dtype.kind in "iu" and x.size and max(abs(int(x.min())), abs(int(x.max()))) >= 2**31:
        raise ValueError(f"a parameter of {x.max()!r} does not fit 32-bit integers")
    return x.astype(dtype) if x.dtype.kind == "f" else x.astype(np.int32) if x.dtype.kind in "iu" else x


def stacked(cases: Sequence[Case], dtype: str) -> tuple[Case, Case]:
    """The params of several cells stacked along a first axis, and marks: 0 where stacked, -1 where all are equal."""

    def axis(*xs):
        return -1 if all(same(xs[0], x) for x in xs[1:]) else 0

    def join(*xs):
        xs = [cast(x, dtype) for x in xs]
        return xs[0] if axis(*xs) == -1 else np.stack(xs)

    return jax.tree.map(join, *cases), jax.tree.map(lambda *xs: axis(*(cast(x, dtype) for x in xs)), *cases)
