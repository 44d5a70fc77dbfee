"""Settings of several algorithms at every point of a grid, evaluated as one sweep for each environment, and judged.

Settings are data: all of an algorithm's that share its functions are one compiled program, whatever their number.

Axes: [O] points of the grid at which a setting is chosen, [N] settings, [F] problems of the family over which a setting
must do, [S] seeds.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits.formatting import nearest, show
from jaxbandits.recipe import Recipe, recipe_of
from jaxbandits.searching.space import Dimension, dimensions_of
from jaxbandits.selection import final_regret
from jaxbandits.sweeps.arguments import PARTS, seed_range
from jaxbandits.sweeps.dataset import coordinate_values
from jaxbandits.sweeps.grid import Axis
from jaxbandits.sweeps.sweep import sweep
from jaxbandits.typing import Float, Tensor

TuneSetting: TypeAlias = dict[str, Any]
"""The values of one algorithm: {key without the label: value}."""

TuneSettings: TypeAlias = list[list[TuneSetting]]
"""The settings of one algorithm: at each of the O points, N of them."""

RESERVED = (
    "algorithm", "trial", "seed", "t", "arm", "regret", "pulls", "objective", "seeds", "environment", "interval",
    "default", "gain", "gain_interval", "undecided", "edge", "difference", "point",
)  # fmt: skip
OBJECTIVES = ("mean", "worst", "quantile")
CONFIDENCE = 0.95  # of the set of settings that could be the best


class Problem(NamedTuple):
    """What is tuned, and where."""

    algorithms: dict[str, Any]  # label -> recipe
    environments: dict[str, Any]  # name -> environment; the name is empty where there is only one
    dimensions: dict[str, tuple[Dimension, ...]]  # label -> its own part of the space, keys without the label
    tied: dict[tuple[str, str], tuple[str, ...]]  # (label, key) -> the other keys that get the same value
    known: list[Axis]  # axes of the grid along which a setting is chosen for every point
    unknown: list[Axis]  # axes along which one setting must do
    settings: dict[str, Any]  # further arguments of `sweep`
    part: str = ""  # whose arguments the space names, such as "reward_adversary"; by default the algorithms'

    @property
    def points(self) -> list[dict[str, Any]]:
        """The values {key: value} at each of the O points."""
        return cross(self.known)

    @property
    def family(self) -> list[dict[str, Any]]:
        """The values {key: value} of the unknown axes, for each environment of the family."""
        return cross(self.unknown)

    @property
    def labels(self) -> list[dict[str, Any]]:
        """The label {axis: label} of each of the O points."""
        names = [axis.name for axis in self.known]
        labels = [coordinate_values(axis.labels).tolist() for axis in self.known]  # as a sweep has them
        return [dict(zip(names, at, strict=True)) for at in itertools.product(*labels)]


def cross(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """The values {key: value} at each point of the axes."""
    keys = [key for axis in axes for key in axis.keys]
    rows = itertools.product(*(axis.values for axis in axes))
    return [dict(zip(keys, itertools.chain(*at), strict=True)) for at in rows]


def evaluate(
    problem: Problem, settings: Mapping[str, TuneSettings], seeds: range, store: Path | None, *, progress: bool = False
) -> dict[str, np.ndarray[Any, Any]]:
    """The regret at the horizon of all settings, by label: [O, N, F, S]. All labels share a sweep an environment.

    Keys of the grid that concern other algorithms are left out.
    """
    number, family = max(len(at) for of_label in settings.values() for at in of_label), problem.family
    rows = []
    for o, point in enumerate(problem.points):
        for i in range(number):
            # a label with fewer settings repeats its last one, which is computed once
            bound = sweep_keys(problem, {label: of_label[o][: i + 1][-1] for label, of_label in settings.items()})
            rows += [concerning(point | other, settings, problem.algorithms) | bound for other in family]
    shape = (len(problem.points), number, len(family), len(seeds))
    algorithms = {label: problem.algorithms[label] for label in settings}
    parts: dict[str, list[np.ndarray[Any, Any]]] = {label: [] for label in settings}
    common: dict[str, Any] = {"seeds": seeds, "checkpoints": 1, "progress": progress} | problem.settings
    if rows[0]:  # else there is nothing to set: one algorithm without a space, at one point
        common["points"] = rows
    for name, environment in problem.environments.items():
        ds = sweep(algorithms, environment, store=below(store, name), **common)
        final = final_regret(ds).transpose("algorithm", "point", "seed", missing_dims="ignore").values
        for label, values in zip(settings, final, strict=True):
            parts[label].append(values.reshape(shape))
    return {label: np.concatenate(parts[label], 2)[:, : len(at[0])] for label, at in settings.items()}


def concerning(row: dict[str, Any], labels: Iterable[str], algorithms: Mapping[str, Recipe]) -> dict[str, Any]:
    """The values that concern some of the labelled algorithms, or parts that all share."""
    return {key: value for key, value in row.items() if any(concerns(key, label, algorithms) for label in labels)}


def sweep_keys(problem: Problem, settings: Mapping[str, TuneSetting]) -> dict[str, Any]:
    """A setting of every label with the keys of a sweep, tied ones included."""
    return {
        f"{problem.part or label}.{each}": value
        for label, setting in settings.items()
        for key, value in setting.items()
        for each in (key, *problem.tied.get((label, key), ()))
    }


def below(store: Path | None, name: str) -> Path | None:
    """A directory for one environment."""
    if store is None or not name:
        return store
    name = name.replace("%", "%25").replace("/", "%2F")
    return store / (name if name.strip(".") else name.replace(".", "%2E"))


def parts_of_space(
    space: object, algorithms: Mapping[str, Recipe]
) -> tuple[dict[str, tuple[Dimension, ...]], dict[tuple[str, str], tuple[str, ...]]]:
    """Each algorithm's part of the space, with keys without its label, and its tied keys.

    ValueError where a key reaches no algorithm, or reaches one twice.
    """
    found: dict[str, list[Dimension]] = {label: [] for label in algorithms}
    tied: dict[tuple[str, str], tuple[str, ...]] = {}
    taken: dict[str, set[str]] = {label: set() for label in algorithms}
    for dimension in dimensions_of(space):
        keys = dimension.key if isinstance(dimension.key, tuple) else (dimension.key,)
        reached = defaultdict[str, list[str]](list)
        for key in keys:
            for label, inner in _find_algorithms(key, algorithms).items():
                reached[label].append(inner)
        for label, inner_keys in reached.items():
            twice = next((key for key in inner_keys if key in taken[label]), None)
            if twice is not None:
                raise ValueError(f"space reaches {twice!r} of {label!r} by two of its keys: leave one out")
            taken[label] |= set(inner_keys)
            found[label].append(dimension._replace(key=inner_keys[0]))
            if len(inner_keys) > 1:
                tied[label, inner_keys[0]] = tuple(inner_keys[1:])
    return {label: tuple(of_label) for label, of_label in found.items()}, tied


def _find_algorithms(key: object, algorithms: Mapping[str, Recipe]) -> dict[str, str]:
    """The algorithms that a key reaches, and the key inside each of them."""
    if not isinstance(key, str) or not key:
        raise ValueError(f"space key {show(key)} must be an argument's name, or a tuple of names that move together")
    owner = owner_of(key, algorithms)
    inner = key if owner is None else key[len(owner) + 1 :]
    if inner in RESERVED:
        raise ValueError(f"space key {key!r} is a name that every result has: rename the argument")
    if owner is None and key.partition(".")[0] in PARTS:
        raise ValueError(f"space key {key!r} is no algorithm's: what they are tuned for belongs in `over`")
    if inner == "horizon":
        raise ValueError("'horizon' cannot be tuned: tunings depend on it, so tune for each horizon")
    candidates = algorithms if owner is None else {owner: algorithms[owner]}
    reached = {label: inner for label, recipe in candidates.items() if recipe.takes(inner)}
    if not reached:
        bound = next((label for label, recipe in candidates.items() if _binds(recipe, inner)), None)
        if bound is not None:
            raise ValueError(f"space key {key!r} is already set in the partial of {bound!r}: leave it out there")
        known = {k: None for recipe in candidates.values() for k in recipe.known_keys()}
        names = [*known, *(f"{label}.{k}" for label, recipe in algorithms.items() for k in recipe.known_keys())]
        raise ValueError(f"space key {key!r}: no algorithm has such an argument{nearest(key, names)}")
    return reached


def owner_of(key: str, algorithms: Iterable[str]) -> str | None:
    """The label that a key of a sweep begins with, None where it begins with none."""
    return max((label for label in algorithms if key.startswith(f"{label}.")), key=len, default=None)


def _binds(recipe: Recipe, key: str) -> bool:
    head, _, rest = key.partition(".")
    if not rest:
        return head in recipe.bound
    return head == "base" and recipe.base is not None and _binds(recipe_of(recipe.base), rest)


def axis_concerns(problem: Problem, label: str, axis: Axis) -> bool:
    """Whether an axis concerns this algorithm, or a part that all share."""
    return any(concerns(key, label, problem.algorithms) for key in axis.keys)


def concerns(key: str, label: str, algorithms: Mapping[str, Recipe]) -> bool:
    """Whether a key of a grid concerns this algorithm, or a part that all share."""
    if owner := owner_of(key, algorithms):
        return owner == label
    return key.partition(".")[0] in PARTS or algorithms[label].takes(key)


def has_default(recipe: Recipe, key: str) -> bool:
    """Whether the factory can be called without the argument."""
    head, _, rest = key.partition(".")
    if rest:
        return has_default(recipe_of(recipe.base), rest)
    parameter = recipe.arguments[head]
    return parameter.default is not parameter.empty


def unfold_points(ds: xr.Dataset, axes: Sequence[Axis]) -> xr.Dataset:
    """A Dataset of points, in the order of the product of `axes`, with a dimension for each axis instead."""
    if not axes:
        return ds.isel(point=0, drop=True)
    names = [axis.name for axis in axes]
    # by their places: labels may be None, or numbers beside texts
    index = pd.MultiIndex.from_product([range(len(axis.labels)) for axis in axes], names=names)
    ds = ds.drop_vars([c for c, v in ds.coords.items() if "point" in v.dims])
    ds = ds.assign_coords(xr.Coordinates.from_pandas_multiindex(index, "point")).unstack("point")
    ds = ds.assign_coords({axis.name: coordinate_values(axis.labels) for axis in axes})
    ds = ds.assign_attrs(constant_along="{}")
    return ds.transpose("algorithm", *names, "seed", ..., missing_dims="ignore")


def disjoint(seeds: object, report_seeds: Any, what: str) -> tuple[range, range]:
    """Both as ranges: a count of report seeds begins after the seeds that are searched.

    ValueError where they meet. what: what is chosen on the first ones, such as `the attack`.
    """
    searched = seed_range(seeds)
    try:
        reported = seed_range(report_seeds)
        if np.ndim(report_seeds) == 0 and not isinstance(report_seeds, range):
            reported = seed_range(range(searched.stop, searched.stop + len(reported)))
    except ValueError as error:
        raise ValueError(str(error).replace("seeds", "report_seeds", 1)) from None
    if max(searched.start, reported.start) < min(searched.stop, reported.stop):
        remedy = f"report on others, such as range({searched.stop}, {searched.stop + len(reported)})"
        meets = f"report_seeds = {show(reported)} meets seeds = {show(searched)}"
        raise ValueError(f"{meets}, on which {what} is chosen: {remedy}")
    return searched, reported


# ---- what a setting is judged by: a number for each seed, whose mean over seeds is the objective


def over_family(regret: Tensor, objective: str, quantile: float) -> np.ndarray[Any, Any]:
    """One number a seed [..., S] from the regret [..., F, S] on every problem of a family.

    Its mean over seeds is the objective: of the F mean regrets their mean, the largest, or a quantile, interpolated
    between two of them. For the last two it is the regret on the problem of the largest mean, or the weighted regrets
    on the two problems, so that intervals take these problems as given.

    >>> over_family(np.array([[1.0, 3.0], [4.0, 4.0]]), "worst", 0.9).tolist()
    [4.0, 4.0]
    """
    regret = np.asarray(regret, np.float64)
    if regret.shape[-2] == 1:
        return regret[..., 0, :]
    if objective == "mean":
        return regret.mean(-2)
    means = np.nanmean(np.where(np.isnan(regret).all(-1, keepdims=True), np.inf, regret), -1)
    order = np.argsort(means, -1, kind="stable")
    at = (regret.shape[-2] - 1) * (1.0 if objective == "worst" else quantile)
    low = int(np.floor(at))
    high = min(low + 1, regret.shape[-2] - 1)

    def regret_at_rank(rank: int) -> np.ndarray[Any, Any]:
        return np.take_along_axis(regret, order[..., rank, None, None], -2)[..., 0, :]

    return regret_at_rank(low) if at == low else (high - at) * regret_at_rank(low) + (at - low) * regret_at_rank(high)


def means_of(values: Float[np.ndarray, "*N S"]) -> Float[np.ndarray, "*N"]:
    """The mean over the seeds that were run. Infinite where one of them is not finite, or none was run."""
    run = ~np.isnan(values)
    counts = run.sum(-1)
    mean = np.divide(np.where(run, values, 0.0).sum(-1), counts, out=np.full(counts.shape, np.inf), where=counts > 0)
    return np.where(np.isfinite(mean), mean, np.inf)


def could_be_best(values: Float[np.ndarray, "N S"]) -> np.ndarray[Any, Any]:
    """Which settings [N] could have the lowest mean: the best one is among them with a probability of at least 95%.

    A setting is left out where a paired t test finds it worse than some other one; the tests share the 5% (Bonferroni).
    Which setting came out lowest plays no part, so that it need not be corrected for. Settings that were stopped early
    have NaN from there on: pairs are compared on their common seeds at every number of seeds at which some stopped.

    >>> could_be_best(np.array([[1.0, 2.0, 3.0, 2.0], [2.0, 1.0, 2.0, 3.0], [9.0, 8.0, 9.0, 9.5]])).tolist()
    [True, True, False]
    """
    from scipy import stats

    values = np.asarray(values, np.float64)
    number_run = (~np.isnan(values)).sum(-1)
    stops = np.unique(number_run[number_run > 0])
    possible = np.ones(len(values), bool)
    tests = max(len(values) - 1, 1) * len(stops)
    for stop in stops:
        here = np.flatnonzero(number_run >= stop)
        if stop < 2 or len(here) < 2:
            continue
        limit = stats.t.ppf(1 - (1 - CONFIDENCE) / tests, stop - 1)
        shared = values[here, :stop]
        for other in shared:
            difference = shared - other
            mean, error = difference.mean(-1), difference.std(-1, ddof=1) / np.sqrt(stop)
            possible[here] &= ~((mean > 0) & (mean > limit * error))
    return possible
