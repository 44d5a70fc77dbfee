"""What a sweep will run: cells (one algorithm at one point), grouped by compiled program. Everything here is on the host.

A *cell* is computed once even where it stands several times along an axis its factories do not name. Cells of one group
share functions, schedule and shapes, so they run in one call with their numbers stacked; leaves that do not differ stay
unstacked, so that what depends on the seed alone is drawn once for the whole group.
"""

import functools
import inspect
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.protocol import Adversary, Algorithm, Case, Environment, Span
from jaxbandits.simulator import Parts, case_of, parts_of
from jaxbandits.sweeps import malformed
from jaxbandits.sweeps.grid import PARTS, Axis, axes_of, bind, route, signature_of
from jaxbandits.validation import Arguments, integer


class Cell(NamedTuple):
    """One algorithm at one point."""

    label: str
    algorithm: Algorithm
    environment: Environment
    reward_adversary: Adversary | None
    message_adversary: Adversary | None
    horizon: int
    place: tuple  # its index on every axis; None where the cell is constant along the axis


class Group(NamedTuple):
    """Cells that share a compiled program."""

    parts: Parts
    schedule: tuple[Span, ...]
    times: np.ndarray  # [C]
    cells: list[int]  # positions in Plan.cells


class Plan(NamedTuple):
    """A sweep, ready to run."""

    labels: list[str]
    axes: list[Axis]
    cells: list[Cell]
    places: dict  # (label, *axis indices) -> position in cells
    groups: list[Group]
    times: dict  # horizon -> [C]
    constant_along: dict  # label -> axis names
    seeds: range
    dtype: str


def checkpoint_times(horizon: int, checkpoints) -> np.ndarray:
    """Strictly increasing plays, the last the horizon: given, or so many log-spaced ones (topped up where rounding merges)."""
    if isinstance(checkpoints, int | float | np.number):
        number = min(integer("checkpoints", checkpoints, 1), horizon)
        target, wanted = number, number
        times = np.array([horizon])
        while True:  # ask for more points until enough survive the rounding
            times = np.unique(np.round(np.geomspace(1, horizon, target)).astype(np.int64))
            if len(times) >= wanted or target > 64 * wanted + horizon:
                break
            target = int(target * 1.3) + 1
        if len(times) < wanted:
            times = np.unique(np.concatenate([times, np.arange(1, wanted + 1)]))
        keep = (
            np.unique(np.round(np.linspace(0, len(times) - 1, wanted)).astype(int))
            if len(times) > wanted
            else slice(None)
        )
        return times[keep] if wanted > 1 else np.array([horizon])
    times = np.asarray(list(checkpoints))
    if times.ndim != 1 or times.size == 0 or not np.all(times == times.astype(np.int64)):
        raise ValueError(f"checkpoints = {checkpoints!r} must be a count or a list of play indices")
    times = times.astype(np.int64)
    if times[0] < 1 or np.any(np.diff(times) <= 0) or times[-1] > horizon:
        raise ValueError(
            f"checkpoints must increase from at least 1 to at most the horizon {horizon}, got {times.tolist()!r}"
        )
    return times if times[-1] == horizon else np.append(times, horizon)


def name_of(factory) -> str:
    """A factory's own name."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    return factory.__name__


def labelled(algorithms) -> dict[str, Any]:
    """{label: factory} from a factory, a list of factories or a dict."""
    if isinstance(algorithms, dict):
        found = dict(algorithms)
    else:
        many = list(algorithms) if isinstance(algorithms, list | tuple) else [algorithms]
        names = [name_of(f) if not isinstance(f, Algorithm) else f.version[0] for f in many]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise ValueError(f"two algorithms are called {twice!r}: give labels, {{'one': ..., 'other': ...}}")
        found = dict(zip(names, many, strict=True))
    if not found:
        raise ValueError("algorithms is empty: give at least one factory")
    for label, f in found.items():
        if isinstance(f, Algorithm):
            raise ValueError(f"algorithms[{label!r}] is already built: give its factory or a functools.partial of it")
        if not isinstance(label, str) or label.split(".")[0] in (*PARTS, "base"):
            raise ValueError(f"label {label!r} must be a string that does not begin with a part's name or 'base'")
    return found


def part_factory(part, kind):
    """A factory of an environment or adversary from a factory, a partial or a called part."""
    if part is None or not isinstance(part, kind):
        return part
    changed = isinstance(part.config, Arguments) and not part.config.describes(part)
    # a user's own part has no factory, and what was changed since is not what the factory makes: both are taken as they are
    return (lambda: part) if changed or part.remake is None else part.remake


def built(factory, given: dict, facts: dict, horizon: int, label: str) -> Algorithm:
    """Call an algorithm factory: what the environment fixes is filled in where it is named and not given."""
    names, bound = signature_of(factory)
    fixed = {**facts, "horizon": horizon}
    for name in names:
        if name in bound or name in given:
            value = bound.get(name, given.get(name))
            if name in fixed and not _agrees(value, fixed[name]):
                raise ValueError(
                    f"{label}: {name} = {value!r} disagrees with the environment's {fixed[name]!r}: leave it out, "
                    f"it is filled in"
                )
        elif name in fixed:
            given = {**given, name: fixed[name]}
        elif name == "num_arms" and names[name].default is inspect.Parameter.empty:
            raise ValueError(
                f"{label} needs num_arms, and the environment's facts do not hold it: Environment.facts = {{'num_arms': ...}}"
            )
    algorithm = factory(**given)
    malformed.check_algorithm(algorithm, label, factory)
    return fitting_in(algorithm, facts, label)


def fitting_in(algorithm: Algorithm, facts: dict, label: str) -> Algorithm:
    """The algorithm, if it was built for an environment of these facts; otherwise ValueError."""
    for name in FILLED:
        value = algorithm.config.get(name)
        if value is not None and name in facts and not _agrees(value, facts[name]):
            raise ValueError(f"{label}: {name} = {value!r} disagrees with the environment's {facts[name]!r}")
        if value is not None and name in ("num_experts", "num_agents") and name not in facts:
            raise ValueError(f"{label}: {name} = {value!r}, but the environment has none: give one with {name[4:]}")
    return algorithm


def _agrees(value, fixed) -> bool:
    try:
        return bool(np.array_equal(np.asarray(value, float), np.asarray(fixed, float)))
    except (TypeError, ValueError):  # who takes contexts as redrawn is right about fixed ones, too
        return value == fixed or (value, fixed) == ("redraw", "fixed")


def filled_in(environment: Environment) -> dict:
    """What an environment fixes for the algorithms that name it."""
    arms = {"num_arms": environment.world.num_arms} if environment.world.num_arms else {}
    return arms | {k: v for k, v in environment.facts.items() if k in FILLED}


FILLED = ("num_arms", "dim", "num_agents", "num_experts", "actions", "feature_norm", "contexts")


def plan(
    algorithms, environment, *, horizon, seeds, grid, points, reward_adversary, message_adversary, checkpoints, dtype
):
    """Check everything and lay out the cells and groups of a sweep."""
    factories = labelled(algorithms)
    seeds = _seeds(seeds)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype = {dtype!r} must be 'float32' or 'float64'")
    makers = {
        "environment": part_factory(environment, Environment),
        "reward_adversary": part_factory(reward_adversary, Adversary),
        "message_adversary": part_factory(message_adversary, Adversary),
    }
    axes = axes_of(dict(grid or {}), points, horizon)
    horizons = axes[0].labels if axes and axes[0].name == "horizon" else (integer("horizon", horizon, 1, 2**31 - 2),)
    for h in horizons:
        integer("horizon", h, 1, 2**31 - 2)
    routes = route(axes, factories, makers)
    times = {h: checkpoint_times(h, checkpoints) for h in horizons}

    @functools.cache
    def part(name, index):
        maker = makers[name]
        if maker is None:
            return None
        for (i, j, key), at in zip(routes.parts[name], index, strict=True):
            maker = bind(maker, key, axes[i].values[at][j])
        made = maker()
        malformed.check_part(made, Environment if name == "environment" else Adversary, maker)
        return made

    cells: list[Cell] = []
    places: dict = {}
    constant_along = {}
    horizon_axis = bool(axes) and axes[0].name == "horizon"
    for label, factory in factories.items():
        keys = routes.algorithms[label]
        moving = {i for i, _, _ in keys} | {i for name in PARTS for i, _, _ in routes.parts[name]}
        moving |= {0} if horizon_axis else set()
        constant_along[label] = [axis.name for i, axis in enumerate(axes) if i not in moving]
        reaching = [
            *keys,
            *(key for name in PARTS for key in routes.parts[name]),
            *([(0, 0, "horizon")] if horizon_axis else []),
        ]
        first = [_first_alike(axis, [j for k, j, _ in reaching if k == i]) for i, axis in enumerate(axes)]
        made: dict = {}
        for place in itertools.product(*(range(len(axis.values)) for axis in axes)):
            index = tuple(first[i][at] if i in moving else None for i, at in enumerate(place))
            if index not in made:
                here = {name: part(name, tuple(place[i] for i, _, _ in routes.parts[name])) for name in PARTS}
                h = horizons[place[0]] if horizon_axis else horizons[0]
                maker, given = factory, {}
                for i, j, key in sorted(keys, key=lambda k: k[2].count(".")):  # a base before its own arguments
                    value = axes[i].values[place[i]][j]
                    if "." in key or key == "base":
                        maker = bind(maker, key, value)
                    else:
                        given[key] = value
                facts = filled_in(here["environment"])
                limit = here["environment"].facts.get("max_horizon")
                if limit is not None and h > limit:
                    raise ValueError(f"horizon = {h} is longer than the environment's {limit} plays: lower it")
                algorithm = built(maker, given, facts, h, label)
                made[index] = len(cells)
                attackers = here["reward_adversary"], here["message_adversary"]
                cells.append(Cell(label, algorithm, here["environment"], attackers[0], attackers[1], h, index))
            places[(label, *place)] = made[index]
    groups = grouped(cells, times, dtype)
    return Plan(list(factories), axes, cells, places, groups, times, constant_along, seeds, dtype)


def _first_alike(axis: Axis, used: list[int]) -> list[int]:
    """For each entry of an axis the first one with the same values of the keys at positions `used`: all that one algorithm sees of it."""
    seen: dict = {}
    found = []
    for i, entry in enumerate(axis.values):
        # plain values by type and value (1, 1.0 and True differ), everything else by identity
        plain = [(type(v), v) if isinstance(v, str | bool | int | float) else id(v) for v in (entry[j] for j in used)]
        found.append(seen.setdefault(tuple(plain), i))
    return found


def _seeds(seeds) -> range:
    if isinstance(seeds, range):
        if len(seeds) == 0 or seeds.step != 1 or seeds.start < 0 or seeds.stop > 2**31:
            raise ValueError(f"seeds = {seeds!r} must be a non-empty range of step 1 in [0, 2^31)")
        return seeds
    return range(integer("seeds", seeds, 1, 2**31, remedy="give the number of seeds, or a range"))


def grouped(cells: list[Cell], times: dict, dtype: str) -> list[Group]:
    """Cells that can share one call: same functions, same schedule, same shapes."""
    found: dict = {}
    for position, cell in enumerate(cells):
        parts = parts_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary, dtype)
        case = host_case(cell)
        shapes = tuple((np.shape(x), np.asarray(x).dtype.kind) for x in jax.tree.leaves(case))
        key = (parts, cell.algorithm.schedule, cell.horizon, shapes)
        if key not in found:
            found[key] = Group(parts, cell.algorithm.schedule, times[cell.horizon], [])
        found[key].cells.append(position)
    return list(found.values())


def host_case(cell: Cell) -> Case:
    """A cell's numbers, on the host."""
    return case_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary)


def cast(x, dtype: str):
    """A parameter as it is computed with: floats in the run's dtype, integers in 32 bits."""
    if isinstance(x, jax.core.Tracer):  # from a caller's vmap around `simulate`
        return x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    x = np.asarray(x)
    if x.dtype.kind in "iu" and x.size and max(abs(int(x.min())), abs(int(x.max()))) >= 2**31:
        raise ValueError(f"a parameter of {x.max()!r} does not fit 32-bit integers")
    return x.astype(dtype) if x.dtype.kind == "f" else x.astype(np.int32) if x.dtype.kind in "iu" else x


def stacked(cases: list[Case], dtype: str) -> tuple[Case, Case]:
    """Numbers of several cells with a leading axis, and the axes: None where all are equal."""

    def axis(*xs):
        return -1 if all(np.array_equal(xs[0], x, equal_nan=xs[0].dtype.kind == "f") for x in xs[1:]) else 0

    def join(*xs):
        xs = [cast(x, dtype) for x in xs]
        return xs[0] if axis(*xs) == -1 else np.stack(xs)

    return jax.tree.map(join, *cases), jax.tree.map(lambda *xs: axis(*(cast(x, dtype) for x in xs)), *cases)
