"""From finished chunks to an `xarray.Dataset` with named dimensions."""

import functools
import json
import platform

import jax
import numpy as np
import xarray as xr

from jaxbandits.sweeps.plan import Plan, name_of

SCHEMA_VERSION = 1


class Collector:
    """Arrays of a sweep, filled chunk by chunk: every value has one place, so the order of arrival does not matter."""

    def __init__(self, plan: Plan):
        self.plan = plan
        seeds = len(plan.seeds)
        self.regret = [np.full((seeds, len(plan.times[cell.horizon])), np.nan) for cell in plan.cells]
        self.pulls: list = [None] * len(plan.cells)
        self.diagnostics: list[dict] = [{} for _ in plan.cells]

    def __call__(self, chunk) -> None:
        at = slice(chunk.first - self.plan.seeds.start, chunk.first - self.plan.seeds.start + chunk.regret.shape[0])
        seeds = len(self.plan.seeds)
        for m, c in enumerate(chunk.cells):
            self.regret[c][at] = chunk.regret[:, m]
            if chunk.pulls is not None:
                if self.pulls[c] is None:
                    self.pulls[c] = np.zeros((seeds, chunk.pulls.shape[-1]), np.int32)
                self.pulls[c][at] = chunk.pulls[:, m]
            for name, values in chunk.diagnostics.items():
                self.diagnostics[c].setdefault(name, np.full(seeds, np.nan))[at] = values[:, m]

    def dataset(self, config: dict) -> xr.Dataset:
        """The finished sweep."""
        plan = self.plan
        grid = [axis.name for axis in plan.axes]
        shape = (len(plan.labels), *(len(axis.values) for axis in plan.axes))
        t = np.unique(np.concatenate([plan.times[h] for h in plan.times]))
        seeds = np.arange(plan.seeds.start, plan.seeds.stop, dtype=np.int64)
        coords: dict = {"algorithm": plan.labels, "seed": seeds, "t": t.astype(np.int64)}
        for axis in plan.axes:
            coords[axis.name] = _coordinate(axis.labels)
        variables: dict = {}
        regret = self._spread(shape, (len(seeds), len(t)), np.nan, self._on_times(t), np.float64)
        variables["regret"] = (
            ("algorithm", *grid, "seed", "t"),
            regret,
            {"units": "reward", "long_name": "cumulative regret"},
        )
        if all(p is not None for p in self.pulls):
            arms = max(p.shape[-1] for p in self.pulls)
            padded = [np.pad(p, ((0, 0), (0, arms - p.shape[-1]))) for p in self.pulls]
            variables["pulls"] = (
                ("algorithm", *grid, "seed", "arm"), self._spread(shape, (len(seeds), arms), 0, padded, np.int32),
            )  # fmt: skip
            coords["arm"] = np.arange(arms, dtype=np.int64)
        for name in sorted({name for d in self.diagnostics for name in d}):
            values = [d.get(name, np.full(len(seeds), np.nan)) for d in self.diagnostics]
            variables[name] = (
                ("algorithm", *grid, "seed"),
                self._spread(shape, (len(seeds),), np.nan, values, np.float64),
            )
        return xr.Dataset(variables, coords, self._attrs(config))

    def _on_times(self, t):
        found = []
        for cell, regret in zip(self.plan.cells, self.regret, strict=True):
            times = self.plan.times[cell.horizon]
            if len(times) == len(t):
                found.append(regret)
            else:
                wide = np.full((regret.shape[0], len(t)), np.nan)
                wide[:, np.searchsorted(t, times)] = regret
                found.append(wide)
        return found

    def _spread(self, shape, inner, fill, values, dtype):
        out = np.full((*shape, *inner), fill, dtype)
        for (label, *place), c in self.plan.places.items():
            out[(self.plan.labels.index(label), *place)] = values[c]
        return out

    def _attrs(self, config: dict) -> dict:
        guarantees = {}
        for cell in self.plan.cells:
            claim = cell.algorithm.guarantee
            if claim.model != "none" and cell.label not in guarantees:
                guarantees[cell.label] = {"model": claim.model, "unit": claim.unit}
        return {
            "schema_version": SCHEMA_VERSION,
            "config": json.dumps(config, sort_keys=True),
            "constant_along": json.dumps(self.plan.constant_along),
            "guarantees": json.dumps(guarantees),
            "versions": json.dumps(versions()),
        }


def _coordinate(labels) -> np.ndarray:
    """Numbers stay numbers (int64 or float64), anything else is its text."""
    if all(isinstance(x, bool) or not isinstance(x, int | float | np.number) for x in labels):
        return np.array([x if isinstance(x, str) else text(x) for x in labels])
    if all(isinstance(x, int | np.integer) for x in labels):
        return np.array(labels, dtype=np.int64)
    if all(isinstance(x, int | float | np.number) for x in labels):
        return np.array(labels, dtype=np.float64)
    return np.array([text(x) for x in labels])


def text(x) -> str:
    """A factory, array or number as short text."""
    if callable(x):
        bound: dict = {}
        while isinstance(x, functools.partial):
            bound = {**x.keywords, **bound}
            x = x.func
        inner = ", ".join(f"{k}={text(v)}" for k, v in bound.items())
        return f"{x.__name__}({inner})" if inner else x.__name__
    return str(x)


def jsonable(x):
    """Anything a config may hold, as JSON."""
    if isinstance(x, dict):
        return {str(k): jsonable(v) for k, v in x.items()}
    if isinstance(x, functools.partial) or callable(x):
        names: dict = {}
        while isinstance(x, functools.partial):
            names = {**x.keywords, **names}
            x = x.func
        return {"name": name_of(x), **{k: jsonable(v) for k, v in names.items()}}
    if isinstance(x, np.ndarray):
        return x.tolist() if x.size <= 1000 else {"shape": list(x.shape), "crc32": _crc(x)}
    if isinstance(x, range):
        return [x.start, x.stop]
    if isinstance(x, list | tuple):
        return [jsonable(v) for v in x]
    if isinstance(x, np.generic):
        return jsonable(x.item())
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)
    return x if isinstance(x, str | int | float | bool) or x is None else str(x)


def _crc(x: np.ndarray) -> int:
    import zlib

    return zlib.crc32(np.ascontiguousarray(x).tobytes())


def versions() -> dict:
    """What produced a result."""
    import jaxlib

    from jaxbandits.version import __version__

    return {
        "jaxbandits": __version__,
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": jax.default_backend(),
    }
