"""What `jb.tune` returns: tables of what was chosen, Datasets of what was tried and reported, and ways into a sweep.

Axes: [O] points of the grid at which a setting is chosen, [N] settings, [F] problems of the family, [S] seeds.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits.contract import is_number
from jaxbandits.formatting import brackets, format_value
from jaxbandits.searching import population
from jaxbandits.searching.methods import Tried
from jaxbandits.searching.population import Problem, TuneSetting, TuneSettings, means_of
from jaxbandits.searching.space import Dimension, coordinate_of
from jaxbandits.statistics import mean_interval
from jaxbandits.sweeps.dataset import coordinate_values
from jaxbandits.sweeps.grid import Axis
from jaxbandits.validation import same

NEAR_END = 0.05  # of a range: a value that close to an end says to widen it

Values: TypeAlias = Mapping[str, np.ndarray[Any, Any]]


class Tuning(NamedTuple):
    """The best settings, all that were tried, and what the best ones cost on seeds that the search did not see."""

    # a row for each algorithm at each point of `over`: algorithm, over..., chosen..., regret, interval, default, gain,
    # gain_interval, undecided, edge
    best: pd.DataFrame
    # regret (algorithm, over..., trial, environment, seed) of every setting, its objective, and its values
    trials: xr.Dataset
    # what a sweep of the chosen settings returns, and of the default ones under the label "LABEL (default)"
    report: xr.Dataset
    # a row for each setting that may be as good as the chosen one: algorithm, over..., trial, values..., regret,
    # difference
    undecided: pd.DataFrame

    def points(self) -> list[dict[str, Any]]:
        """The chosen settings as `points` of a sweep: one for each point of `over`, for all algorithms together."""
        return [dict(point) for point in self.best.attrs["points"]]

    def grid(self) -> dict[Any, Any]:
        """The chosen settings as `grid` of a sweep: one axis, named after the key of `over`, along which they are tied.

        ValueError where `over` has several keys: a sweep then takes `points=tuning.points()`.
        """
        over, points = self.best.attrs["over"], self.points()
        if len(over) > 1:
            raise ValueError(f"over has {len(over)} keys, {', '.join(over)}: give the sweep points=tuning.points()")
        keys = tuple(points[0])
        labels = next(iter(over.values())) if over else ["chosen"]
        rows = [tuple(point[key] for key in keys) for point in points]
        plain = all(isinstance(x, str | bool | int | float) for row in rows for x in row)
        if len(keys) == 1:
            (key,), values = keys, [row[0] for row in rows]
            return {key: values if plain else dict(zip(labels, values, strict=True))}
        return {keys: [list(row) for row in rows] if plain else dict(zip(labels, rows, strict=True))}

    def toml(self) -> str:
        """The chosen settings as a table of a TOML file: `[grid]` or `[[tied]]`, or `[[points]]` for several keys.

        ValueError for values that TOML cannot write.
        """
        from jaxbandits.sweeps import toml_file

        if len(self.best.attrs["over"]) > 1:
            table: dict[str, Any] = {"points": self.points()}
        else:
            ((keys, values),) = self.grid().items()
            rows = list(values.values()) if isinstance(values, dict) else values
            tied = isinstance(keys, tuple)
            table = {"tied": [{"keys": keys, "values": rows}]} if tied else {"grid": {keys: values}}
        try:
            return toml_file.format_toml(table)
        except ValueError as error:
            remedy = "give the sweep grid=tuning.grid() in Python"
            raise ValueError(f"a value has no form in TOML ({error}): {remedy}") from error

    def __repr__(self) -> str:
        about = self.trials.attrs
        over, chosen = list(self.best.attrs["over"]), list(self.best.attrs["chosen"])
        searched, reported = (seed_span(ds["seed"].values) for ds in (self.trials, self.report))
        head = f"Tuning: {about['method']}, {about['objective']} regret at horizon {about['horizon']}"
        lines = [f"{head}; chosen on seeds {searched}, reported on seeds {reported}"]
        for row in self.best.to_dict("records"):
            where = ", ".join([row["algorithm"], *(f"{key} = {format_value(row[key])}" for key in over)])
            values = ", ".join(f"{key} = {format_value(row[key])}" for key in chosen if not pd.isna(row[key]))
            lines.append(f"  {where}: {values or 'nothing to choose'}: regret {_with(row['regret'], row['interval'])}")
            if not values:
                continue
            default = "no default to compare with"
            if not pd.isna(row["default"]):
                default = f"default {row['default']:.6g}, gain {_with(row['gain'], row['gain_interval'])}"
            others = {0: "told apart from all others", 1: "1 other cannot be told apart"}
            apart = others.get(row["undecided"], f"{row['undecided']} others cannot be told apart")
            lines.append(f"    {default}; {apart}" + ("; AT AN EDGE of the space: widen it" if row["edge"] else ""))
        return "\n".join(lines)


def seed_span(seeds: np.ndarray[Any, Any]) -> str:
    """The first and the last of some seeds."""
    return f"{seeds[0]} to {seeds[-1]}"


def _with(mean: float, interval: tuple[float, float]) -> str:
    return f"{mean:.6g} {brackets(*interval, '{:.6g}'.format)}"


class Choice(NamedTuple):
    """What was chosen for one algorithm at one point."""

    trial: int
    setting: TuneSetting
    objective: float  # on the seeds of the search
    possible: np.ndarray[Any, Any]  # [N] whether each setting could be the best


def choices(tried: Tried, judge: Callable[[Any], Any]) -> dict[str, list[Choice]]:
    """For every label the best setting at each of the O points: the first of lowest objective among those run on all
    seeds.
    """
    found: dict[str, list[Choice]] = {}
    for label, regret in tried.regret.items():
        found[label] = []
        for o, settings in enumerate(tried.settings[label]):
            values = judge(regret[o])
            means = means_of(values)
            finished = (~np.isnan(values)).all(-1)
            best = int(np.argmin(np.where(finished, means, np.inf))) if finished.any() else int(np.argmin(means))
            found[label].append(Choice(best, settings[best], float(means[best]), population.could_be_best(values)))
    return found


def at_edge(dimension: Dimension, value: object) -> bool:
    """Whether a value lies at an end of its range, or is the smallest or largest number of its list."""
    if dimension.kind == "int" and value in (dimension.low, dimension.high):
        return True
    if dimension.is_range:
        return not NEAR_END < coordinate_of(dimension, value) < 1 - NEAR_END
    numbers = [x for x in dimension.values if is_number(x)]
    return len(numbers) > 1 and is_number(value) and value in (min(numbers), max(numbers))


def label_of(dimensions: Sequence[Dimension], key: str, value: object) -> object:
    """A value as tables show it: itself, or its name where the space names it."""
    dimension = next(d for d in dimensions if d.key == key)
    if dimension.is_range:
        return value
    name = dimension.labels[int(coordinate_of(dimension, value))]
    return name if isinstance(name, str | bool | int | float | np.number) else str(name)


def keys_of(problem: Problem) -> list[str]:
    """The keys of the space, without labels."""
    return list(dict.fromkeys(d.key for of_label in problem.dimensions.values() for d in of_label))


def _row(problem: Problem, label: str, o: int, setting: TuneSetting) -> dict[str, Any]:
    """The beginning of a row of a table: where it is, and the values of every key of the space."""
    values = {key: label_of(problem.dimensions[label], key, value) for key, value in setting.items()}
    return {"algorithm": label, **problem.labels[o], **dict.fromkeys(keys_of(problem), np.nan)} | values


def best_table(problem: Problem, chosen: Mapping[str, list[Choice]], regret: Values, defaults: Values) -> pd.DataFrame:
    """The table `best`, from the values [O, S] on the report seeds of the chosen and of the default settings."""
    keys, rows = keys_of(problem), []
    for label, of_label in chosen.items():
        mean, low, high = mean_interval(regret[label])
        for o, one in enumerate(of_label):
            row = _row(problem, label, o, one.setting)
            row |= {"regret": float(mean[o]), "interval": (float(low[o]), float(high[o]))}
            row |= {"default": np.nan, "gain": np.nan, "gain_interval": (np.nan, np.nan)}
            if label in defaults:
                gain = [float(x) for x in mean_interval(defaults[label][o] - regret[label][o])]
                row |= {"default": float(defaults[label][o].mean()), "gain": gain[0], "gain_interval": tuple(gain[1:])}
            others = int(one.possible.sum()) - int(one.possible[one.trial])
            edge = any(at_edge(d, one.setting[d.key]) for d in problem.dimensions[label])
            rows.append(row | {"undecided": others, "edge": edge})
    table = pd.DataFrame(rows)
    points = [
        point | population.sweep_keys(problem, {label: of_label[o].setting for label, of_label in chosen.items()})
        for o, point in enumerate(problem.points)
    ]
    table.attrs = {"over": {axis.name: list(axis.labels) for axis in problem.known}, "chosen": keys, "points": points}
    return table


def table_of_undecided(
    problem: Problem, tried: Tried, chosen: Mapping[str, list[Choice]], judge: Callable[[Any], Any]
) -> pd.DataFrame:
    """The table `undecided`: the other settings that could be the best, with their regret on the seeds of the search.

    `difference` is the mean over the seeds that a setting and the chosen one share.
    """
    rows = []
    for label, of_label in chosen.items():
        for o, one in enumerate(of_label):
            values = judge(tried.regret[label][o])
            for i in np.setdiff1d(np.flatnonzero(one.possible), one.trial):
                means = float(np.nanmean(values[i])), float(np.nanmean(values[i] - values[one.trial]))
                row = _row(problem, label, o, tried.settings[label][o][i])
                rows.append(row | {"trial": int(i) + 1, "regret": means[0], "difference": means[1]})
    names = [axis.name for axis in problem.known]
    return pd.DataFrame(rows, columns=["algorithm", *names, "trial", *keys_of(problem), "regret", "difference"])


def trials_dataset(
    problem: Problem, tried: Tried, judge: Callable[[Any], Any], seeds: range, attrs: Mapping[str, Any]
) -> xr.Dataset:
    """Everything that was tried. A label with fewer settings than another has NaN for the rest."""
    labels = list(tried.regret)
    number = max(regret.shape[1] for regret in tried.regret.values())
    known, unknown = [axis.name for axis in problem.known], [axis.name for axis in problem.unknown]
    sizes = [len(axis.values) for axis in problem.known]
    family = {"environment": list(problem.environments)} if list(problem.environments) != [""] else {}

    def pad_with_nan(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        width = [(0, number - x.shape[1] if axis == 1 else 0) for axis in range(x.ndim)]
        return np.pad(np.asarray(x, np.float64), width, constant_values=np.nan)

    regret = np.stack([pad_with_nan(x) for x in tried.regret.values()])
    objective = np.stack([pad_with_nan(means_of(judge(x))) for x in tried.regret.values()])
    problems = [*([len(problem.environments)] if family else []), *(len(axis.values) for axis in problem.unknown)]
    dims, shape = ("algorithm", *known, "trial"), (len(labels), *sizes, number)
    variables = {
        "regret": ((*dims, *family, *unknown, "seed"), regret.reshape(*shape, *problems, len(seeds))),
        "objective": (dims, objective.reshape(shape)),
        "seeds": (dims, (~np.isnan(regret)).any(3).sum(-1).reshape(shape)),
    }
    coordinates = {"algorithm": labels, "trial": np.arange(1, number + 1), "seed": np.asarray(seeds)}
    coordinates |= {axis.name: coordinate_values(axis.labels) for axis in [*problem.known, *problem.unknown]}
    ds = xr.Dataset(variables, coordinates | family, dict(attrs))
    for key in keys_of(problem):
        column = _along(problem, key, tried.settings, number)
        constant = all(same(column[:, o], column[:, 0]) for o in range(column.shape[1]))
        values = (("algorithm", "trial"), column[:, 0]) if constant else (dims, column.reshape(shape))
        ds = ds.assign_coords({key: values})
    return ds


def _along(problem: Problem, key: str, settings: Mapping[str, TuneSettings], number: int) -> np.ndarray[Any, Any]:
    """The values of a key [labels, O, number] as a coordinate has them."""
    values = []
    for label, of_label in settings.items():
        for at, i in itertools.product(of_label, range(number)):
            there = i < len(at) and key in at[i]
            values.append(label_of(problem.dimensions[label], key, at[i][key]) if there else None)
    return _column(values).reshape(len(settings), -1, number)


def _column(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Numbers as numbers, with NaN for what is missing; anything else as text."""
    if all(x is None or is_number(x) for x in values):
        if all(isinstance(x, int | np.integer) for x in values):
            return np.asarray(values, np.int64)
        return np.array([np.nan if x is None else x for x in values], np.float64)
    return np.array(["" if x is None else x if isinstance(x, str) else format_value(x) for x in values])


def with_chosen(
    ds: xr.Dataset, problem: Problem, chosen: Mapping[str, list[Choice]], own: Mapping[str, str]
) -> xr.Dataset:
    """The report with the chosen values as coordinates, and its constant axes. own: label of the report -> label."""
    known, sizes = [axis.name for axis in problem.known], [len(axis.values) for axis in problem.known]
    labels = [str(label) for label in ds["algorithm"].values]
    settings: dict[str, TuneSettings] = {label: [[{}]] * len(problem.points) for label in labels}
    settings |= {label: [[one.setting] for one in of_label] for label, of_label in chosen.items()}
    for key in keys_of(problem):
        column = _along(problem, key, settings, 1).reshape(len(labels), *sizes)
        ds = ds.assign_coords({key: (("algorithm", *known), column)})
    axes: list[Axis] = [*problem.known, *problem.unknown]
    constant = {
        label: [axis.name for axis in axes if not population.axis_concerns(problem, own[label], axis)]
        for label in labels
    }
    return ds.assign_attrs(constant_along=json.dumps(constant))
