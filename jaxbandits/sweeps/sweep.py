"""`jb.sweep`: check everything, then compute what is missing and return a Dataset."""

import json
import os
import re
from typing import TYPE_CHECKING, Any

from jaxbandits.protocol import Adversary, Environment
from jaxbandits.sweeps import assumptions, jax_flags
from jaxbandits.sweeps.arguments import PARTS, floating, labelled, name_of, part_factory, signature_of
from jaxbandits.sweeps.dataset import jsonable
from jaxbandits.sweeps.engines.local import Local
from jaxbandits.sweeps.execution import Job
from jaxbandits.sweeps.plan import plan
from jaxbandits.validation import Arguments, choice, shown

if TYPE_CHECKING:
    import xarray as xr


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def sweep(
    algorithms,
    environment,
    *,
    horizon,
    seeds,
    grid=None,
    points=None,
    reward_adversary=None,
    message_adversary=None,
    checkpoints=200,
    dtype="float32",
    memory=None,
    store=None,
    engine="local",
    devices=None,
    progress=True,
) -> "xr.Dataset":
    """Run algorithms on an environment for many seeds and settings, in batches, and return regrets with named dimensions.

    algorithms: a factory, its name or a `functools.partial` of it, a list of them, or {label: factory}.
    environment, reward_adversary, message_adversary: factories, names, partials or called parts.
    horizon: plays, or a list of horizons (each algorithm tuned for its own).
    seeds: a count, or a `range` or consecutive integers in [0, 2^31): lane 7 is lane 7 whatever else runs.
    grid: {key: values}, crossed. A bare key feeds every algorithm that names it; `environment.x`, `reward_adversary.x`,
        `message_adversary.x`, `base.x` and `LABEL.x` address one part. Arrays are named: {"environment.means": {"easy": [...]}}.
        A tuple of keys moves together on one axis, by one value or by rows of one value a key. points: a list of dicts run instead of a grid.
    checkpoints: how many log-spaced times to record (the last is the horizon), or the times.
    dtype: "float32" or "float64", or the types of NumPy and JAX. memory: bytes, or text such as "200KB", for the calls in flight (with Ray: of each).
    devices: how many, or which, JAX devices to use; on a CPU all cores are used (see `jaxbandits.cores`).
    store: a directory. Finished chunks are kept there as the sweep goes: a call that was interrupted, however hard, goes on
        where it stopped; more seeds, grid values or algorithms compute only what is new. The result is its `results.nc`.
    engine: "local", or "ray" for a cluster (extra `ray`). progress: print an estimate of time and memory, then a bar.

    Returns a Dataset: `regret (algorithm, <grid...>, seed, t)` float64, cumulative expected regret (for loss sequences
    against the arm or expert best over plays 1..t); `pulls (..., seed, arm)` at the horizon where arms are finite;
    diagnostics under their own names. The result does not depend, bit for bit, on memory, devices, cores, engine or interruption.
    Warns, once a label and before anything runs, where the environment's rewards or their moments exceed what an algorithm declares.
    Raises ValueError or TypeError naming argument, value and remedy before anything runs; OSError where the store cannot be
    written to the end; with a store, SweepError after all other chunks are finished where an algorithm failed in Python;
    ContractError, after the other labels are finished, where a lane's actions left the arms, its pulls are not its plays or its regret is
    not finite: nothing of it is stored.

    >>> import jaxbandits as jb
    >>> ds = jb.sweep(jb.algorithms.ucb1, jb.environments.bernoulli_arms(means=[0.2, 0.8]),
    ...               horizon=100, seeds=8, checkpoints=5, progress=False)
    >>> dict(ds.sizes)
    {'algorithm': 1, 'seed': 8, 't': 5, 'arm': 2}
    """
    settings = {
        "horizon": horizon, "seeds": seeds, "grid": grid, "points": points, "dtype": dtype,
        "reward_adversary": reward_adversary, "message_adversary": message_adversary, "checkpoints": checkpoints,
    }  # fmt: skip
    return prepared(
        algorithms, environment, settings, store=store, engine=engine, devices=devices, memory=memory, progress=progress
    ).dataset()


DEFAULTS = {
    "grid": None, "points": None, "dtype": "float32", "reward_adversary": None, "message_adversary": None, "checkpoints": 200,
}  # fmt: skip


def prepared(
    algorithms, environment, settings: dict, *, store=None, engine="local", devices=None, memory=None, progress=True, fresh=False
) -> Job:  # fmt: skip
    """Everything checked and nothing written: `.dataset()` computes what is missing, `.compute(shard)` a shard of it."""
    settings = DEFAULTS | settings
    engine, budget = choice("engine", engine, ("local", "ray")), parse_memory(memory)
    jax_flags.check()
    algorithms = labelled(algorithms)
    parts = {slot: settings.get(slot) for slot in PARTS} | {"environment": environment}
    parts = {slot: x if isinstance(x, Environment | Adversary) else part_factory(x, slot) for slot, x in parts.items()}
    environment = parts.pop("environment")
    settings |= parts | {"dtype": floating(settings["dtype"])}
    laid_out = plan(algorithms, environment, **settings)
    assumptions.warn([(c.label, c.algorithm, c.environment) for c in laid_out.cells], stacklevel=3)
    if store is not None and (not isinstance(store, os.PathLike | str) or str(store) == "" or "\0" in str(store)):
        raise ValueError(f"store = {shown(store)} must be a directory's name")
    settings_run = {**settings, "seeds": laid_out.seeds}
    config, common = (config_of(algorithms, environment, brief=brief, **settings_run) for brief in (False, True))
    runner: Any
    if engine == "ray":
        from jaxbandits.sweeps.engines.ray_cluster import Ray

        runner = Ray(algorithms, environment, settings, devices, budget)
    else:
        runner = Local(devices, budget)
    config, common = json.loads(json.dumps([config, common]))
    return Job(laid_out, config, common, runner, store, progress=progress, fresh=fresh)


def config_of(algorithms, environment, *, brief: bool, **settings) -> dict:
    """The arguments of a sweep as JSON. brief: without those of the environment and the adversaries that are at their defaults,
    so that runs of a release that knows more arguments say the same."""

    def part(x):
        if x is None:
            return None
        changed = False
        if isinstance(x, Environment | Adversary):
            config, defaults = x.config or {"name": "own"}, getattr(x.config, "defaults", {})
            changed = isinstance(config, Arguments) and not config.describes(x)
        else:
            names, bound = signature_of(x)
            defaults = {name: p.default for name, p in names.items() if p.default is not p.empty}
            config = {"name": name_of(x), **defaults, **{name: bound[name] for name in names if name in bound}}
        said = jsonable(config)
        if brief:
            said = {k: v for k, v in said.items() if k == "name" or k not in defaults or v != jsonable(defaults[k])}
        return said | ({"changed": True} if changed else {})  # by `_replace`: no arguments say how

    settings = {
        key: part(value) if key.endswith("adversary") else _named_keys(value) if key == "grid" else jsonable(value)
        for key, value in settings.items()
    }
    return {
        "algorithms": {label: jsonable(f) for label, f in labelled(algorithms).items()},
        "environment": part(environment),
        **settings,
    }


def _named_keys(grid):
    return {"+".join(k) if isinstance(k, tuple) else str(k): jsonable(v) for k, v in (grid or {}).items()}


def parse_memory(memory) -> int | None:
    """Bytes from a number or text such as "200KB" or "2GB"."""
    if memory is None:
        return None
    if isinstance(memory, int | float) and not isinstance(memory, bool) and 1 <= memory < float("inf"):
        return int(memory)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory) if isinstance(memory, str) else None
    if not match or match[2].upper() not in _UNITS or float(match[1]) * _UNITS[match[2].upper()] < 1:
        raise ValueError(f"memory = {shown(memory)} must be a number of bytes or text such as '200KB' or '2GB'")
    return int(float(match[1]) * _UNITS[match[2].upper()])
