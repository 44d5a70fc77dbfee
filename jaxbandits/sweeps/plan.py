"""What a sweep will run: cells (one algorithm at one point), grouped by compiled program. Everything is on the host.

A cell is computed once, even where it appears several times along an axis that its factories do not name. Cells of
one group share functions, schedule and shapes, so they run in one call with their numbers stacked. Leaves that do not
differ are not stacked, so that what depends on the seed alone is drawn once for the whole group.
"""

import collections
import functools
import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import TOLD_BY
from jaxbandits.formatting import show
from jaxbandits.protocol import Adversary, Algorithm, Case, Environment, Span
from jaxbandits.recipe import Recipe
from jaxbandits.simulator import case_of, parts_of
from jaxbandits.spans import next_start
from jaxbandits.strangers import STAND_IN, learner_of
from jaxbandits.sweeps import arguments
from jaxbandits.sweeps.compilation import settings
from jaxbandits.sweeps.grid import Axis, axes_of, route
from jaxbandits.sweeps.part_checks import fields
from jaxbandits.sweeps.who_plays import judge_pair, what_is_shown
from jaxbandits.validation import integer, same
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


class Group(NamedTuple):
    """Cells that share a compiled program."""

    parts: Parts
    schedule: tuple[Span, ...]  # as `as_played` has it
    times: np.ndarray[Any, Any]  # [C]
    cells: list[int]  # positions in Plan.cells
    case: Case  # the params of the first of them, as they are computed with
    shape: Any = None  # `compiled.LaneShape`, once it is known


class Plan(NamedTuple):
    """A sweep, ready to run."""

    labels: list[str]
    axes: list[Axis]
    cells: list[Cell]
    places: dict[tuple[Any, ...], int]  # (label, *axis indices) -> position in cells
    groups: list[Group]
    times: dict[int, np.ndarray[Any, Any]]  # horizon -> [C]
    constant_along: dict[str, list[str]]  # label -> names of axes
    takers: dict[str, list[str]]  # key of an axis -> labels that it reaches
    seeds: range
    dtype: str
    given: dict[str, Any]  # the arguments of `sweep` in one form, from which the same plan is made again
    identities: tuple[str, ...] = ()  # of cells, once they are known (`selection.IDENTITY`)


def cell_words(laid_out: Plan, cell: Cell) -> str:
    """The label of a cell and its point of the grid in words, such as `local EXP3, epsilon = 0.1`."""
    at = zip(laid_out.axes, cell.place, strict=True)
    return ", ".join([cell.label, *(f"{axis.name} = {axis.labels[i]}" for axis, i in at if i is not None)])


# The arguments that are filled in from an environment's facts.
FILLED = ("num_arms", "dim", "num_agents", "num_experts", "actions", "feature_norm", "contexts", "models")


def plan(
    algorithms: Any, environment: Any, *, horizon: Any, seeds: Any, grid: Any = None, points: Any = None,
    reward_adversary: Any = None, message_adversary: Any = None, checkpoints: Any = 200, dtype: Any = "float32",
) -> Plan:  # fmt: skip
    """Check the arguments of `sweep`, build each algorithm at every point, group what runs together."""
    recipes, makers, called = arguments.label_algorithms(algorithms), dict[str, Recipe | None](), dict[str, Any]()
    for slot, part in zip(arguments.PARTS, (environment, reward_adversary, message_adversary), strict=True):
        makers[slot] = arguments.part_factory(part, slot)
        if isinstance(part, Environment | Adversary):
            called[slot] = part
    dtype, seeds = arguments.floating(dtype), arguments.seed_range(seeds, recipes)
    axes = axes_of(grid, points, horizon)
    checkpoints = list(checkpoints) if isinstance(checkpoints, Iterator) else checkpoints  # read for every horizon
    moves = bool(axes) and axes[0].name == "horizon"
    horizons = axes[0].labels if moves else (integer("horizon", horizon, 1, 2**31 - 2),)
    times = {h: arguments.checkpoint_times(h, checkpoints) for h in horizons}
    routes = route(axes, recipes, makers)
    shared = _share_environment(environment, makers["environment"], changed=bool(routes["environment"]))
    cells, places, constant_along = list[Cell](), dict[tuple[Any, ...], int](), dict[str, list[str]]()
    takers = collections.defaultdict[str, list[str]](list)
    for label, recipe in recipes.items():
        # the keys that reach the algorithm or what it meets: (axis, position among the axis's keys, key)
        keys = [(0, 0, "horizon")] if moves else []
        for target in (label, *arguments.PARTS):
            keys += routes[target]
        for i, j, _ in keys:
            if label not in takers[axes[i].keys[j]]:
                takers[axes[i].keys[j]].append(label)
        alike = {i: _first_alike(axes[i], [j for k, j, _ in keys if k == i]) for i, _, _ in keys}
        constant_along[label] = [axis.name for i, axis in enumerate(axes) if i not in alike]
        built_at: dict[tuple[int | None, ...], int] = {}
        for place in itertools.product(*(range(len(axis.values)) for axis in axes)):
            index = tuple(alike[i][at] if i in alike else None for i, at in enumerate(place))
            if index not in built_at:
                built_at[index], length = len(cells), horizons[place[0] if moves else 0]
                at = axes, place, length, shared
                world, first, second = (_part_at(slot, makers[slot], routes[slot], *at) for slot in arguments.PARTS)
                given = {key: axes[i].values[place[i]][j] for i, j, key in routes[label]}
                algorithm = build_algorithm(recipe.bind(given), world, length, label, "")
                cells.append(Cell(label, algorithm, world, first, second, length, index))
            places[(label, *place)] = built_at[index]
    asked = {
        "algorithms": recipes, "horizon": horizon, "seeds": seeds, "grid": grid, "points": points,
        "checkpoints": checkpoints, "dtype": dtype, **makers, **called,
    }  # fmt: skip
    return Plan(
        labels=list(recipes), axes=axes, cells=cells, places=places, groups=group_cells(cells, times, dtype),
        times=times, constant_along=constant_along, takers=takers, seeds=seeds, dtype=dtype, given=asked,
    )  # fmt: skip


def _first_alike(axis: Axis, used: list[int]) -> list[int]:
    """For each entry of an axis, the first with equal values of the keys, `used`, that reach an algorithm."""
    # by type and value, as 1, 1.0 and True differ; everything else by identity
    plain, seen, first = (str, bool, int, float), dict[tuple[Any, ...], int](), list[int]()
    for i, entry in enumerate(axis.values):
        known_by = [(type(entry[j]), entry[j] if isinstance(entry[j], plain) else id(entry[j])) for j in used]
        first.append(seen.setdefault(tuple(known_by), i))
    return first


def _share_environment(environment: object, maker: Recipe | None, changed: bool) -> dict[tuple[Any, ...], Environment]:
    """A called environment as it is, unless keys change it: its factory would look at the data again."""
    if changed or maker is None or not isinstance(environment, Environment) or maker.factory is not environment.remake:
        return {}
    fields.check_part(environment, Environment, maker.function, maker.name)
    return {("environment", None): environment}


def _part_at(
    slot: str, maker: Any, keys: Any, axes: list[Axis], place: tuple[int, ...], horizon: int, shared: dict[Any, Any]
) -> Any:
    """The environment or an adversary at a place, called once for every setting of its own keys and the horizon."""
    if maker is None:
        return None
    filled = slot != "environment" and "horizon" in maker.arguments
    setting = (slot, *(place[i] for i, _, _ in keys), horizon if filled else None)
    if setting not in shared:
        for i, j, key in keys:
            maker = maker.bind({key: axes[i].values[place[i]][j]})
        maker = with_horizon(maker, horizon, slot) if filled else maker
        shared[setting] = arguments.call_factory(maker, slot, f"{slot}.", slot)
    limit = shared[setting].facts.get("max_horizon") if slot == "environment" else None
    if limit is not None and horizon > limit:
        raise ValueError(f"horizon = {horizon} is longer than the environment's {limit} plays: lower it")
    return shared[setting]


def with_horizon(recipe: Recipe, horizon: int, slot: str) -> Recipe:
    """The recipe with the run's horizon bound, where it takes one; ValueError where another is bound."""
    if "horizon" not in recipe.arguments:
        return recipe
    if recipe.bound.get("horizon") is not None:
        _check_agreement(slot, "horizon", recipe.bound["horizon"], horizon, "the run's horizon")
    return recipe.bind({"horizon": horizon})


def build_algorithm(
    recipe: Recipe, environment: Environment, horizon: int, label: str, prefix: str | None = None
) -> Algorithm:
    """Call an algorithm's factory. Arguments that the environment fixes are filled in where they are not bound.

    prefix: how grid keys that could give a missing argument begin; None without a grid.
    """
    check_pair(recipe, environment, label)
    bound, filled = recipe.bound, dict[str, Any]()
    arms, facts = environment.world.num_arms, environment.facts
    fixed: dict[str, Any] = {"num_arms": arms} if arms else {}
    fixed |= {"models": "per_arm"} if what_is_shown(environment) == "row" else {}
    fixed |= {name: facts[name] for name in FILLED if name in facts} | {"horizon": horizon}
    for name in recipe.arguments:
        if name in bound:
            if name in fixed:
                whose = "the sweep's horizon" if name == "horizon" else "the environment's"
                _check_agreement(label, name, bound[name], fixed[name], whose)
        elif name in fixed:
            filled[name] = fixed[name]
    return fitting_in(arguments.call_factory(recipe.bind(filled), "algorithm", prefix, label), fixed, label)


def fitting_in(algorithm: Algorithm, facts: Mapping[str, Any], label: str) -> Algorithm:
    """The algorithm, if it was built for an environment of these facts; otherwise ValueError."""
    for name in FILLED:
        value = algorithm.config.get(name)
        if value is not None and name in facts and value is not facts[name]:
            _check_agreement(label, name, value, facts[name], "the environment's")
    return algorithm


def check_pair(given: Recipe | Algorithm, environment: Environment, label: str) -> None:
    """An error where the algorithm does not play in the environment: TypeError where it then lacks an argument."""
    found = judge_pair(given, environment)
    if not found.ok:
        needed = given.needed if isinstance(given, Recipe) else ()
        kind = TypeError if any(name in TOLD_BY and name not in environment.facts for name in needed) else ValueError
        raise kind(found.reason if found.reason.startswith(label) else f"{label}: {found.reason}")


def _check_agreement(label: str, name: str, value: Any, fixed: Any, whose: str) -> None:
    """ValueError where a given argument is another one than what fixes it."""
    try:
        agrees = bool(np.array_equal(np.asarray(value, float), np.asarray(fixed, float)))
    except (TypeError, ValueError):  # an algorithm for contexts that are redrawn is right for fixed ones too
        agrees = value == fixed or (value, fixed) == ("redraw", "fixed")
    if not agrees:
        remedy = "leave it out, it is filled in"
        raise ValueError(f"{label}: {name} = {show(value)} disagrees with {whose} {show(fixed)}: {remedy}")


def group_cells(cells: Sequence[Cell], times: Mapping[int, np.ndarray[Any, Any]], dtype: str) -> list[Group]:
    """Groups of cells that can share one call: of equal functions, schedules and shapes."""
    groups: dict[Any, Group] = {}
    fits: dict[int, bool] = {}
    here = settings.in_force()
    for position, cell in enumerate(cells):
        parts, learner = parts_in(cell, dtype)._replace(settings=here), learner_of(cell.algorithm.program)
        if learner is not None:  # a group for each label, whose numbers have names of their own
            parts = parts._replace(program=STAND_IN)
        case = host_case(cell)
        check_range(cell.label, case, dtype, fits)
        shapes = tuple(
            ((), "f") if type(x) is float else (np.shape(x), np.asarray(x).dtype.kind) for x in jax.tree.leaves(case)
        )
        schedule = as_played(cell.algorithm.schedule, cell.horizon)
        key = (parts, schedule, cell.horizon, shapes, learner and cell.label)
        if key not in groups:
            numbers = jax.tree.map(functools.partial(cast, dtype=dtype), case)
            groups[key] = Group(parts, schedule, times[cell.horizon], [], numbers)
        groups[key].cells.append(position)
    return list(groups.values())


def as_played(schedule: tuple[Span, ...], horizon: int) -> tuple[Span, ...]:
    """A schedule without what the engine does not read: how single plays are divided into batches."""
    spans, start = list[Span](), 0
    for span in schedule:
        after = next_start(span, start, horizon)
        spans.append(span._replace(repeats=after - start, length=0) if span.full and span.slots == 1 else span)
        start = after
    return tuple(spans)


def check_range(label: str, case: Case, dtype: str, fits: dict[int, bool]) -> None:
    """ValueError naming the first number that the run's dtype makes infinite. fits: of arrays by their ids."""
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
    return case_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary)


def parts_in(cell: Cell, dtype: str) -> Parts:
    """A cell's functions in a dtype."""
    return parts_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary, dtype)


def cast(x: Any, dtype: str) -> Any:
    """A parameter as it is computed with: floats in the run's dtype, integers in 32 bits."""
    if isinstance(x, jax.core.Tracer):  # from a caller's vmap around `simulate`
        return x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    x = np.asarray(x)
    if x.dtype.kind in "iu" and x.size and max(abs(int(x.min())), abs(int(x.max()))) >= 2**31:
        raise ValueError(f"a parameter of {x.max()!r} does not fit 32-bit integers")
    with np.errstate(under="ignore"):  # what float32 cannot tell from 0 is 0
        return x.astype(dtype) if x.dtype.kind == "f" else x.astype(np.int32) if x.dtype.kind in "iu" else x


def stack_cases(cases: Sequence[Any], dtype: str) -> tuple[Any, Any]:
    """The params of several cells stacked along a first axis, and marks: 0 where stacked, -1 where all are equal."""
    structure: Any = jax.tree.structure(cases[0])
    values, marks = [], []
    for column in zip(*map(structure.flatten_up_to, cases), strict=True):
        number, moves = cast(column[0], dtype), any(map(functools.partial(operator.is_not, column[0]), column))
        if moves:
            numbers = np.stack([cast(x, dtype) for x in column])
            moves = not same(numbers, np.broadcast_to(number, numbers.shape))
        values.append(numbers if moves else number)
        marks.append(0 if moves else -1)
    return jax.tree.unflatten(structure, values), jax.tree.unflatten(structure, marks)
