"""From finished chunks to an `xarray.Dataset` with named dimensions."""

import collections
import itertools
import json
import platform
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jaxlib
import numpy as np

from jaxbandits.garbage import pause_collection
from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.protocol import Environment
from jaxbandits.regret import best_reward, has_best, regret_words
from jaxbandits.selection import IDENTITY, TAKERS
from jaxbandits.spending import COORDINATES
from jaxbandits.sweeps.arguments import short_text
from jaxbandits.sweeps.assumptions import overspent, plays_of_a_row, privacy_spent
from jaxbandits.sweeps.engines.calls import Interval, without
from jaxbandits.sweeps.grid import RESERVED_NAMES, Axis
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.storage.dataset_file import SCHEMA_VERSION, NetcdfFile
from jaxbandits.validation import same
from jaxbandits.version import __version__

if TYPE_CHECKING:
    import xarray as xr


class Variable(NamedTuple):
    """One array of the result."""

    dims: tuple[str, ...]
    attrs: dict[str, Any]
    dtype: str = "float64"
    fill: float = np.nan
    whole: bool = False  # runs bring every entry of theirs: nothing is filled in before


def plan_of_runs(plan: Plan, cells: Sequence[int], seeds: range) -> tuple[Plan, list[int]]:
    """A plan of some cells, with what lies between them on the axes, and their seeds; which cells of `plan` it has."""
    own = [place for place, c in plan.places.items() if c in cells]
    labels = [label for label in plan.labels if any(place[0] == label for place in own)]
    entries = [sorted({place[1 + i] for place in own}) for i in range(len(plan.axes))]
    axes = [
        axis._replace(values=tuple(axis.values[i] for i in at), labels=tuple(axis.labels[i] for i in at))
        for axis, at in zip(plan.axes, entries, strict=True)
    ]
    found, places = list[int](), dict[tuple[Any, ...], int]()
    for label, index in itertools.product(labels, itertools.product(*map(range, map(len, entries)))):
        c = plan.places[(label, *(at[i] for at, i in zip(entries, index, strict=True)))]
        found += [] if c in found else [c]
        places[(label, *index)] = found.index(c)
    groups = [group._replace(cells=[found.index(c) for c in group.cells if c in found]) for group in plan.groups]
    part = plan._replace(labels=labels, axes=axes, cells=[plan.cells[c] for c in found], places=places, seeds=seeds)
    part = part._replace(groups=[group for group in groups if group.cells])
    part = part._replace(times={cell.horizon: plan.times[cell.horizon] for cell in part.cells})
    part = part._replace(constant_along={label: plan.constant_along[label] for label in labels})
    part = part._replace(takers={key: [x for x in who if x in labels] for key, who in plan.takers.items()})
    return part._replace(identities=tuple(plan.identities[c] for c in found if plan.identities)), found


def arrays_of(plan: Plan) -> list[dict[str, tuple[int, ...]]]:
    """What a chunk of every cell holds: names, and shapes after the axis of seeds."""
    found: list[dict[str, tuple[int, ...]]] = [{} for _ in plan.cells]
    for group in plan.groups:
        arms = group.shape.arms
        counts: dict[str, tuple[int, ...]] = {} if arms is None else {"pulls": (arms,)}
        diagnostics: dict[str, tuple[int, ...]] = {f"diagnostic.{name}": () for name in group.shape.diagnostics}
        for c in group.cells:
            found[c] = {"regret": (len(group.times),)} | counts | diagnostics
    return found


@dataclass(eq=False)
class Results:
    """The arrays of a sweep, filled chunk by chunk in any order: every value has one place.

    They are in memory, or in a netCDF file where `path` is given: then no more than one chunk is held at a time.
    """

    plan: Plan
    config: dict[str, Any]
    notes: dict[str, str]
    path: Path | None = None

    def __post_init__(self) -> None:
        plan, path = self.plan, self.path
        self.t = np.unique(np.concatenate(list(plan.times.values())))
        self.grid = {axis.name: len(axis.values) for axis in plan.axes}
        self.sizes = {"algorithm": len(plan.labels), **self.grid, "seed": len(plan.seeds), "t": len(self.t)}
        self.places: dict[int, list[tuple[int, ...]]] = {}
        self.environments: dict[tuple[int, ...], Environment] = {}  # at each place of the grid
        for (label, *place), c in plan.places.items():
            self.places.setdefault(c, []).append((plan.labels.index(label), *place))
            self.environments[tuple(place)] = plan.cells[c].environment
        self.variables = self._variables()
        self.content: Any = None
        self.file: Any = None
        self.arrays: dict[str, Any] = {}
        self.seeds_put = collections.defaultdict[int, list[Interval]](list)  # of every cell
        if path is None:
            for name, v in self.variables.items():
                shape = [self.sizes[dim] for dim in v.dims]  # the two large ones are written once, as runs arrive
                self.arrays[name] = np.empty(shape, v.dtype) if v.whole else np.full(shape, v.fill, v.dtype)
            return
        import h5netcdf  # only where a file is written: a sweep in memory runs where it is not installed
        import h5py
        import xarray as xr

        self.content = NetcdfFile(path, "x+")
        with h5netcdf.File(self.content, "w") as file:
            xr.Dataset(coords=self._coords(), attrs=self._attrs()).dump_to_store(xr.backends.H5NetCDFStore(file))
            for name, v in self.variables.items():
                for dim in v.dims:
                    if dim not in file.dimensions:  # a dimension whose coordinate is scalar text has none yet
                        file.dimensions[dim] = self.sizes[dim]
                fill = v.fill if v.dtype == "float64" else None
                file.create_variable(name, v.dims, v.dtype, fillvalue=fill).attrs.update(v.attrs)
        self.file = h5py.File(self.content, "r+")  # h5py keeps open datasets; h5netcdf would look them up every time
        self.arrays = {name: self.file[name] for name in self.variables}

    def _variables(self) -> dict[str, Variable]:
        lane, environments = ("algorithm", *self.grid, "seed"), self.environments
        facts = [x.facts for x in environments.values() if x.world.baseline is not None]
        words = regret_words(facts) if facts else "cumulative regret"
        variables = {"regret": Variable((*lane, "t"), {"units": "reward", "long_name": words}, whole=True)}
        arms, diagnostics = list[int | None](), set[str]()
        for group in self.plan.groups:
            arms.append(group.shape.arms)
            diagnostics.update(group.shape.diagnostics)
        if None not in arms:
            self.sizes["arm"] = max(filter(None, arms))
            variables["pulls"] = Variable((*lane, "arm"), {}, "int32", 0, whole=True)
        for name in sorted(diagnostics):
            variables[name] = Variable(lane, {})
        if all(map(has_best, environments.values())):
            words = "expected reward over plays 1..t of what regret is measured against"
            dims = []  # the axes along which the environment changes, perhaps the seeds, and t
            for i, name in enumerate(self.grid):
                if any(x is not environments[(*at[:i], 0, *at[i + 1 :])] for at, x in environments.items()):
                    dims.append(name)
            if any(environment.world.seeded for environment in environments.values()):
                dims.append("seed")
            variables["best_reward"] = Variable((*dims, "t"), {"units": "reward", "long_name": words})
        return variables

    def put(self, cell: int, first: int, arrays: dict[str, Any]) -> None:
        """Put the arrays of a cell's seeds from `first` on in their places; seeds outside the sweep are left out."""
        seeds = self.plan.seeds
        cut = slice(max(seeds.start - first, 0), max(seeds.stop - first, 0))
        times, low = self.plan.times[self.plan.cells[cell].horizon], max(first, seeds.start) - seeds.start
        for name, x in arrays.items():
            name, x = name.removeprefix("diagnostic."), np.asarray(x)[cut]
            if name not in self.arrays:
                continue
            v = self.variables[name]
            if v.whole and x.shape[1] < (width := self.sizes[v.dims[-1]]):  # others have more checkpoints, or arms
                wide = np.full((len(x), width), v.fill, v.dtype)
                wide[:, np.searchsorted(self.t, times) if name == "regret" else slice(x.shape[1])] = x
                x = wide
            for place in self.places[cell]:
                self.arrays[name][(*place, slice(low, low + len(x)))] = x
        self.seeds_put[cell].append((low, low + len(x)))

    def put_best(self) -> None:
        """Put the rewards that regret is measured against in their places: once, when everything else is there."""
        if "best_reward" not in self.variables:
            return
        dims, done = self.variables["best_reward"].dims, dict[int, Any]()
        for place, environment in self.environments.items():
            if id(environment) not in done:
                done[id(environment)] = best_reward(environment, self.plan.seeds, self.t)
            at = tuple(itertools.compress(place, map(dims.__contains__, self.grid)))
            self.arrays["best_reward"][at] = done[id(environment)]

    def as_dataset(self) -> "xr.Dataset":
        """The filled arrays, where they are in memory."""
        with pause_collection():
            import xarray as xr

        self.put_best()
        for cell, places in self.places.items():  # fill in for runs of which nothing was kept
            for low, high in without([(0, len(self.plan.seeds))], self.seeds_put[cell]):
                for place, (name, v) in itertools.product(places, self.variables.items()):
                    if v.whole:
                        self.arrays[name][(*place, slice(low, high))] = v.fill
        data = {name: (v.dims, self.arrays[name], v.attrs) for name, v in self.variables.items()}
        return xr.Dataset(data, self._coords(), self._attrs())

    def _coords(self) -> dict[str, Any]:
        plan = self.plan
        seeds = np.arange(plan.seeds.start, plan.seeds.stop, dtype=np.int64)
        coords: dict[str, Any] = {"algorithm": plan.labels, "seed": seeds, "t": self.t.astype(np.int64)}
        for axis in plan.axes:
            coords[axis.name] = coordinate_values(axis.labels)
        for axis in plan.axes:
            coords |= _riders(axis, coords, plan)
        # what every algorithm asks for and spends at every point
        points = np.full((len(plan.labels), *self.grid.values(), len(COORDINATES)), np.nan)
        for c, places in self.places.items():
            numbers = privacy_spent(*plan.cells[c][1:4])
            for place in places:
                points[place] = numbers
        for name, values in zip(COORDINATES, np.moveaxis(points, -1, 0).copy(), strict=True):
            coords[name] = ("algorithm", *self.grid), values
        if plan.identities:
            told = np.empty(points.shape[:-1], f"<U{max(map(len, plan.identities))}")
            for c, places in self.places.items():
                for place in places:
                    told[place] = plan.identities[c]
            coords[IDENTITY] = ("algorithm", *self.grid), told
        if "arm" in self.sizes:
            coords["arm"] = np.arange(self.sizes["arm"], dtype=np.int64)
            names = {tuple(environment.facts.get("arm_names", ())) for environment in self.environments.values()}
            if len(names) == 1 and len(known := names.pop()) == len(coords["arm"]):
                coords["arm_name"] = ("arm", np.array([str(name).replace("\0", " ") for name in known]))
        return coords

    def _attrs(self) -> dict[str, Any]:
        guarantees: dict[str, dict[str, str]] = {}
        for cell in self.plan.cells:
            claim = cell.algorithm.guarantee
            if claim.model != "none":
                stated = guarantees.setdefault(cell.label, {"model": claim.model, "unit": claim.unit})
                if cell.environment.facts.get("num_rows"):
                    plays = plays_of_a_row(cell.environment, cell.horizon)
                    stated["plays"] = str(max(int(stated.get("plays", 1)), plays))
                if overspent(cell.algorithm, cell.environment, cell.reward_adversary):
                    stated["epsilon"] = f"infinite: rewards leave [-{claim.bound:g}, {claim.bound:g}]"
        versions = {"jaxbandits": __version__, "jax": jax.__version__, "jaxlib": jaxlib.__version__}
        versions |= {"numpy": np.__version__, "python": platform.python_version(), "platform": jax.default_backend()}
        attrs = {"schema_version": SCHEMA_VERSION, "config": json.dumps(self.config, sort_keys=True)}
        attrs |= {"constant_along": json.dumps(self.plan.constant_along), "guarantees": json.dumps(guarantees)}
        attrs |= {"privacy": SIMULATED} if guarantees else {}
        return attrs | {"versions": json.dumps(versions), **self.notes}


def _riders(axis: Axis, taken: Container[str], plan: Plan) -> dict[str, Any]:
    """The keys of each point, and the keys that are tied to an axis, as coordinates along it.

    One that only some algorithms take names them in its attribute `algorithms`. A tied key with the values of the axis
    itself says nothing new. netCDF has no coordinates with a space in their name: an underscore stands for it, and one
    at the end for another key of that name.
    """
    found: dict[str, Any] = {}
    keys = {key for other in plan.axes for key in other.keys}
    for j, key in enumerate(axis.keys):
        name = key.replace(" ", "_")
        if key == axis.name or key in taken:
            continue
        while name != key and (name in keys or name in taken or name in found or name in RESERVED_NAMES):
            name += "_"
        values = [row[j] for row in axis.values]
        arrays = any(isinstance(value, list | tuple | np.ndarray) for value in values)
        if axis.name == "point" or not (arrays or all(map(same, values, axis.labels))):
            takers = plan.takers[key]
            some = {} if len(takers) == len(plan.labels) else {TAKERS: json.dumps(takers)}
            found[name] = (axis.name, coordinate_values(values), some)
    return found


def coordinate_values(labels: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Numbers stay numbers (int64 or float64), anything else is its text."""
    if all(isinstance(x, int | float | np.number) for x in labels) and not all(isinstance(x, bool) for x in labels):
        whole = all(isinstance(x, int | np.integer) and abs(int(x)) < 2**63 for x in labels)
        return np.array(labels, dtype=np.int64 if whole else np.float64)
    return np.array([x if isinstance(x, str) else short_text(x) for x in labels])
