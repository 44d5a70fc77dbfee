"""From finished chunks to an `xarray.Dataset` with named dimensions."""

import json
import platform
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.protocol import Environment
from jaxbandits.regret import best_reward, has_best
from jaxbandits.spending import NAMES
from jaxbandits.sweeps.compilation.compiled import LaneShape
from jaxbandits.sweeps.configurations import text
from jaxbandits.sweeps.grid import RESERVED_NAMES, Axis
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.spent import overspent, spent
from jaxbandits.sweeps.storage.dataset_file import SCHEMA_VERSION
from jaxbandits.validation import same

if TYPE_CHECKING:
    import xarray as xr


class Variable(NamedTuple):
    """One array of the result."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    fill: float
    attrs: dict[str, Any]


def arrays_of(plan: Plan, shapes: list[LaneShape]) -> list[dict[str, tuple[int, ...]]]:
    """What a chunk of every cell holds: names, and shapes after the axis of seeds."""
    found: list[dict[str, tuple[int, ...]]] = [{} for _ in plan.cells]
    for group, shape in zip(plan.groups, shapes, strict=True):
        counts: dict[str, tuple[int, ...]] = {} if shape.arms is None else {"pulls": (shape.arms,)}
        diagnostics: dict[str, tuple[int, ...]] = {f"diagnostic.{name}": () for name in shape.diagnostics}
        for c in group.cells:
            found[c] = {"regret": (len(group.times),)} | counts | diagnostics
    return found


class Results:
    """The arrays of a sweep, filled chunk by chunk in any order: every value has one place.

    They are in memory, or in a netCDF file where `path` is given: then no more than one chunk is held at a time.
    """

    def __init__(
        self,
        plan: Plan,
        shapes: list[LaneShape],
        config: dict[str, Any],
        notes: dict[str, str],
        path: Path | None = None,
    ) -> None:
        import h5netcdf
        import h5py
        import xarray as xr

        self.plan, self.config, self.notes = plan, config, notes
        self.t = np.unique(np.concatenate([plan.times[h] for h in plan.times]))
        self.places: dict[int, list[tuple[int, ...]]] = {}
        for (label, *place), c in plan.places.items():
            self.places.setdefault(c, []).append((plan.labels.index(label), *place))
        self.variables = self._variables(shapes)
        self.file: Any = None
        if path is None:
            self.arrays: dict[str, Any] = {
                name: np.full(v.shape, v.fill, v.dtype) for name, v in self.variables.items()
            }
        else:
            xr.Dataset(coords=self._coords(), attrs=self._attrs()).to_netcdf(path, engine="h5netcdf")
            with h5netcdf.File(path, "a") as file:
                for name, v in self.variables.items():
                    _create(file, name, v)
            self.file = h5py.File(path, "r+")  # h5py keeps open datasets; h5netcdf would look them up every time
            self.arrays = {name: self.file[name] for name in self.variables}

    def put(self, cell: int, first: int, arrays: dict[str, Any]) -> None:
        """Put the arrays of a cell's seeds from `first` on in their places; seeds outside the sweep are left out."""
        seeds = self.plan.seeds
        cut = slice(max(seeds.start - first, 0), max(seeds.stop - first, 0))
        times = self.plan.times[self.plan.cells[cell].horizon]
        for name, x in arrays.items():
            name, x = name.removeprefix("diagnostic."), np.asarray(x)[cut]
            if name == "regret" and len(times) < len(self.t):
                wide = np.full((len(x), len(self.t)), np.nan)
                wide[:, np.searchsorted(self.t, times)] = x
                x = wide
            if name == "pulls" and x.shape[1] < self.variables[name].shape[-1]:
                x = np.pad(x, ((0, 0), (0, self.variables[name].shape[-1] - x.shape[1])))
            low = max(first, seeds.start) - seeds.start
            for place in self.places[cell] if name in self.arrays else ():
                self.arrays[name][(*place, slice(low, low + len(x)))] = x

    def put_best(self) -> None:
        """Put the rewards that regret is measured against in their places: once, when everything else is there."""
        if "best_reward" not in self.variables:
            return
        dims, done = self.variables["best_reward"].dims, dict[int, Any]()
        for place, environment in self._environments().items():
            if id(environment) not in done:
                done[id(environment)] = best_reward(environment, self.plan.seeds, self.t)
            at = tuple(i for axis, i in zip(self.plan.axes, place, strict=True) if axis.name in dims)
            self.arrays["best_reward"][at] = done[id(environment)]

    def _environments(self) -> dict[tuple[int, ...], Environment]:
        """The environment at each place of the grid."""
        cells, first = self.plan.cells, self.plan.labels[0]
        return {tuple(at): cells[c].environment for (label, *at), c in self.plan.places.items() if label == first}

    def dataset(self) -> "xr.Dataset":
        """The filled arrays, where they are in memory."""
        import xarray as xr

        data = {name: (v.dims, self.arrays[name], v.attrs) for name, v in self.variables.items()}
        return xr.Dataset(data, self._coords(), self._attrs())

    def close(self) -> None:
        """Finish the file."""
        if self.file is not None:
            self.file.close()

    def _variables(self, shapes: list[LaneShape]) -> dict[str, Variable]:
        plan = self.plan
        dims = ("algorithm", *(axis.name for axis in plan.axes), "seed")
        shape = (len(plan.labels), *(len(axis.values) for axis in plan.axes), len(plan.seeds))
        about = {"units": "reward", "long_name": self._words()}
        variables = {"regret": Variable((*dims, "t"), (*shape, len(self.t)), "float64", np.nan, about)}
        if all(s.arms is not None for s in shapes):
            arms = max(s.arms or 0 for s in shapes)
            variables["pulls"] = Variable((*dims, "arm"), (*shape, arms), "int32", 0, {})
        for name in sorted({name for s in shapes for name in s.diagnostics}):
            variables[name] = Variable(dims, shape, "float64", np.nan, {})
        if all(map(has_best, self._environments().values())):
            words = "expected reward over plays 1..t of what regret is measured against"
            about = {"units": "reward", "long_name": words}
            variables["best_reward"] = Variable(*self._shape_of_best(), "float64", np.nan, about)
        return variables

    def _words(self) -> str:
        """What regret is, for an axis: it may be negative where one arm is best and a learner can do better."""
        facts = [c.environment.facts for c in self.plan.cells if c.environment.world.baseline is not None]
        if not facts:
            return "cumulative regret"
        return f"regret against the best fixed {'expert' if all('num_experts' in f for f in facts) else 'arm'}"

    def _shape_of_best(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Dimensions of `best_reward`: the axes along which the environment changes, perhaps the seeds, and t."""
        plan, environments = self.plan, self._environments()
        dims = []
        for i, axis in enumerate(plan.axes):
            starts = {place: place[:i] + (0,) + place[i + 1 :] for place in environments}
            if any(environments[place] is not environments[start] for place, start in starts.items()):
                dims.append((axis.name, len(axis.values)))
        if any(environment.world.seeded for environment in environments.values()):
            dims.append(("seed", len(plan.seeds)))
        dims.append(("t", len(self.t)))
        return tuple(name for name, _ in dims), tuple(size for _, size in dims)

    def _coords(self) -> dict[str, Any]:
        plan = self.plan
        seeds = np.arange(plan.seeds.start, plan.seeds.stop, dtype=np.int64)
        coords: dict[str, Any] = {"algorithm": plan.labels, "seed": seeds, "t": self.t.astype(np.int64)}
        coords |= {axis.name: coordinate_values(axis.labels) for axis in plan.axes}
        for axis in plan.axes:
            coords |= _riders(axis, coords)
        coords |= self._spent()
        if "pulls" in self.variables:
            coords["arm"] = np.arange(self.variables["pulls"].shape[-1], dtype=np.int64)
            names = {tuple(cell.environment.facts.get("arm_names", ())) for cell in plan.cells}
            if len(names) == 1 and len(known := names.pop()) == len(coords["arm"]):
                coords["arm_name"] = ("arm", np.array([str(name).replace("\0", " ") for name in known]))
        return coords

    def _spent(self) -> dict[str, Any]:
        """What every algorithm asks for and spends at every point, where one of them promises something."""
        plan, dims = self.plan, ("algorithm", *(axis.name for axis in self.plan.axes))
        numbers = np.full((len(NAMES), len(plan.labels), *(len(axis.values) for axis in plan.axes)), np.nan)
        for c, places in self.places.items():
            found = spent(plan.cells[c].algorithm, plan.cells[c].environment)
            for place in places:
                at: tuple[Any, ...] = (slice(None), *place)
                numbers[at] = found
        return {name: (dims, numbers[i]) for i, name in enumerate(NAMES)}

    def _attrs(self) -> dict[str, Any]:
        guarantees: dict[str, dict[str, str]] = {}
        for cell in self.plan.cells:
            claim = cell.algorithm.guarantee
            if claim.model != "none":
                stated = guarantees.setdefault(cell.label, {"model": claim.model, "unit": claim.unit})
                if overspent(cell.algorithm, cell.environment):
                    stated["epsilon"] = f"infinite: rewards leave [-{claim.bound:g}, {claim.bound:g}]"
        return {
            "schema_version": SCHEMA_VERSION,
            "config": json.dumps(self.config, sort_keys=True),
            "constant_along": json.dumps(self.plan.constant_along),
            "guarantees": json.dumps(guarantees),
            **({"privacy": SIMULATED} if guarantees else {}),
            "versions": json.dumps(versions()),
            **self.notes,
        }


def _create(file: Any, name: str, v: Variable) -> None:
    for dim, size in zip(v.dims, v.shape, strict=True):
        if dim not in file.dimensions:  # a dimension whose coordinate is scalar text has none yet
            file.dimensions[dim] = size
    variable = file.create_variable(name, v.dims, v.dtype, fillvalue=v.fill if v.dtype == "float64" else None)
    variable.attrs.update(v.attrs)


def _riders(axis: Axis, taken: Container[str]) -> dict[str, Any]:
    """The keys of each point, and the keys that are tied to an axis, as coordinates along it.

    A tied key with the values of the axis itself says nothing new. netCDF has no coordinates with a space in their
    name, so that an underscore stands for it.
    """
    found: dict[str, Any] = {}
    for j, key in enumerate(axis.keys):
        values, name = [row[j] for row in axis.values], key.replace(" ", "_")
        arrays = any(isinstance(value, list | tuple | np.ndarray) for value in values)
        new = axis.name == "point" or (key != axis.name and not arrays and not all(map(same, values, axis.labels)))
        if new and name not in taken and name not in RESERVED_NAMES:
            found[name] = (axis.name, coordinate_values(values))
    return found


def coordinate_values(labels: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Numbers stay numbers (int64 or float64), anything else is its text."""
    if all(isinstance(x, bool) or not isinstance(x, int | float | np.number) for x in labels):
        return np.array([x if isinstance(x, str) else text(x) for x in labels])
    if all(isinstance(x, int | np.integer) and abs(int(x)) < 2**63 for x in labels):
        return np.array(labels, dtype=np.int64)
    if all(isinstance(x, int | float | np.number) for x in labels):
        return np.array(labels, dtype=np.float64)
    return np.array([text(x) for x in labels])


def versions() -> dict[str, str]:
    """The versions of what computed a result."""
    import jaxlib

    from jaxbandits.version import __version__

    libraries = {library.__name__: library.__version__ for library in (jax, jaxlib, np)}
    here = {"python": platform.python_version(), "platform": jax.default_backend()}
    return {"jaxbandits": __version__, **libraries, **here}
