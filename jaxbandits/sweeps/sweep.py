"""`jb.sweep`: check everything, then compute what is missing and return a Dataset."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import jax
import numpy as np

from jaxbandits.formatting import show
from jaxbandits.protocol import Adversary, Environment
from jaxbandits.sweeps import assumptions, estimate
from jaxbandits.sweeps.arguments import PARTS, jsonable
from jaxbandits.sweeps.compilation.settings import check_flags
from jaxbandits.sweeps.engines.local import Local
from jaxbandits.sweeps.engines.strangers import refuse_what_is_played
from jaxbandits.sweeps.execution import OnChunk, Prepared, SweepRun, check_sweep
from jaxbandits.sweeps.plan import plan
from jaxbandits.sweeps.until import Until
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, DType, EnvironmentFactory, Vector
from jaxbandits.validation import Arguments, choice, declare, path_of, scalar_of

if TYPE_CHECKING:
    import xarray as xr


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


Algorithms: TypeAlias = (
    "str | AlgorithmFactory | Sequence[str | AlgorithmFactory] | Mapping[str, str | AlgorithmFactory]"
)
Seeds: TypeAlias = int | range | Sequence[int] | np.ndarray[Any, Any]


@declare(check=False)
def sweep(
    algorithms: Algorithms,
    environment: "Environment | EnvironmentFactory | str",
    *,
    horizon: int | Sequence[int],
    seeds: Seeds | Until,
    grid: Mapping[Any, Any] | None = None,
    points: Sequence[Mapping[Any, Any]] | None = None,
    reward_adversary: "Adversary | AdversaryFactory | str | None" = None,
    message_adversary: "Adversary | AdversaryFactory | str | None" = None,
    checkpoints: int | Vector = 200,
    dtype: DType = "float32",
    memory: float | str | None = None,
    store: str | os.PathLike[str] | None = None,
    engine: Literal["local", "ray"] = "local",
    devices: int | Sequence[jax.Device] | None = None,
    progress: bool = True,
    on_chunk: OnChunk | None = None,
) -> "xr.Dataset":
    """Run algorithms on an environment for many seeds and settings, in batches, and return their regrets.

    Args:
        algorithms (factory, str, list or dict): The algorithms: a factory of `jaxbandits.algorithms`, its name, a
            `functools.partial` of it, a list of these, or ``{label: factory}``. What they need of the environment, such
            as `num_arms`, is filled in, and so is the horizon.
        environment (Environment, factory or str): Where they play: a called environment, a factory of
            `jaxbandits.environments`, a partial of it, or its name.
        horizon (int or list of int): Plays of a run, at least 1. A list adds an axis `horizon`; each algorithm is tuned
            for its own.
        seeds (int, range or sequence of int): The runs of each setting: how many, counted from 0, or consecutive
            integers in [0, 2^31). A run depends on its seed alone: run 7 has the same numbers whatever else is computed
            beside it. `jb.until` adds seeds until comparisons of algorithms are decided.
        grid (dict, optional): ``{key: values}``; all combinations are run, and each key becomes an axis. A bare key is
            given to every algorithm that has an argument of that name. `environment.x`, `reward_adversary.x`,
            `message_adversary.x`, `base.x` and `LABEL.x` address one part. Arrays are named: ``{"environment.means":
            {"easy": [0.1, 0.9]}}``. The keys of a tuple share one axis: its values are given to all of them, or rows
            hold one value for each. The default: one setting.
        points (list of dict, optional): Settings ``{key: value}`` to run instead of a grid. They become the axis
            `point`.
        reward_adversary, message_adversary (Adversary, factory or str, optional): Who corrupts the rewards of
            `environment`, and what clients send, from `jaxbandits.adversaries`. The default: nobody.
        checkpoints (int or sequence of int): When regret is recorded: how many times, spaced evenly in the logarithm
            with the horizon as the last, or the times themselves, in plays, to which the horizon is added. The default:
            200.
        dtype (str or dtype): The floating-point type of a run: "float32", which is the default, or "float64", also as a
            type of NumPy or JAX.
        memory (float or str, optional): Bytes, or text such as "200KB" or "2GB", that the calls in flight may use; with
            Ray, what each of them may use. The default: 1 GiB on a CPU, a quarter of an accelerator's memory.
        store (str or path, optional): A directory where finished chunks are kept as the sweep goes. A sweep that was
            interrupted, however hard, goes on where it stopped. More seeds, grid values or algorithms compute only what
            is new. The result is its `results.nc`. The default: everything stays in memory.
        engine ({"local", "ray"}): "local" computes on this machine, which is the default; "ray" on a cluster, and needs
            the extra `ray`.
        devices (int or list of jax.Device, optional): How many of JAX's devices to use, or which. The default: all of
            the default backend; on a CPU, all cores (see `jaxbandits.cores`).
        progress (bool): Print an estimate of time and memory, then a bar. The default: True.
        on_chunk (callable, optional): ``on_chunk(dataset, lanes_done, seconds)`` is called in this thread whenever
            runs are finished: with a Dataset of these, such as this function returns (NaN where an axis holds others,
            too), how many runs were computed so far, and the seconds since the beginning. An exception of it is warned
            of, and loses nothing. What a store has already is not shown. The default: nobody is told.

    Returns:
        xarray.Dataset: `regret (algorithm, <grid...>, seed, t)`, float64: cumulative expected regret; for loss
            sequences, that against the arm or expert that is best over plays 1..t. `pulls (..., seed, arm)`, where arms
            are finite: how often each was played up to the horizon. Diagnostics of the algorithms and adversaries under
            their own names.

    Raises:
        ValueError or TypeError: Before anything runs, where an argument is wrong. The text names the argument, the
            value and the remedy.
        OSError: The store cannot be written to the end.
        SweepError: With a store: an algorithm failed in Python. It is raised after all other chunks are finished.
        ContractError: In some run actions left the arms, the pulls are not the plays, or regret is not finite. Nothing
            of that label is stored. It is raised after the other labels are finished.

    Warns:
        UserWarning: Before anything runs, once a label: the environment's rewards or their moments exceed what the
            algorithm declares.

    Note:
        The result does not depend, bit for bit, on memory, devices, cores, engine or interruption.

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
    if on_chunk is not None and not callable(on_chunk):
        raise ValueError(f"on_chunk = {show(on_chunk)} must be a function of (dataset, lanes_done, seconds)")
    checked = prepare_sweep(
        algorithms, environment, settings, store=store, engine=engine, devices=devices, memory=memory, progress=progress
    )
    run = SweepRun(checked, on_chunk)
    ds = run.dataset()
    if checked.progress and run.replaced:
        estimate.print_progress(run.replaced)
    return ds


def prepare_sweep(
    algorithms: Algorithms, environment: "Environment | EnvironmentFactory | str", settings: dict[str, Any], *,
    store: str | os.PathLike[str] | None = None, engine: str = "local", memory: float | str | None = None,
    devices: int | Sequence[jax.Device] | None = None, progress: bool = True, fresh: bool = False,
) -> Prepared:  # fmt: skip
    """A checked sweep; nothing is written yet. settings: `sweep`'s other arguments. fresh: compute everything anew."""
    engine, budget = choice("engine", engine, ("local", "ray")), parse_memory(memory)
    check_flags()
    laid_out = plan(algorithms, environment, **settings)
    refuse_what_is_played(laid_out, engine)
    assumptions.warn(laid_out.cells, laid_out.dtype, stacklevel=3)
    directory = None if store is None else path_of(store, "store")
    config, common = config_of(laid_out.given), {} if directory is None else config_of(laid_out.given, brief=True)
    rule = settings["seeds"]
    if isinstance(rule, Until):
        config["until"] = rule._asdict()
    config, common = json.loads(json.dumps([config, common]))
    if engine == "ray":
        from jaxbandits.sweeps.engines.ray_cluster import Ray

        runner: Local | Ray = Ray(laid_out.given, devices, budget)
    else:
        runner = Local(devices, budget)
    return check_sweep(laid_out, config, common, runner, directory, progress=progress, fresh=fresh)


def config_of(given: dict[str, Any], *, brief: bool = False) -> dict[str, Any]:
    """The arguments of a sweep (`Plan.given`) as JSON.

    brief: leave out arguments of the environment and the adversaries that have their default values, so that a
    release that adds arguments writes the same for the same run.
    """
    rest = dict(given)
    grid, seeds = rest.pop("grid") or {}, rest.get("seeds")
    if isinstance(seeds, range):
        rest["seeds"] = [seeds.start, seeds.stop]
    written = {key: _part_as_json(x, brief) if key in PARTS else jsonable(x) for key, x in rest.items()}
    return written | {"grid": {"+".join(k) if isinstance(k, tuple) else str(k): jsonable(v) for k, v in grid.items()}}


def _part_as_json(part: Any, brief: bool) -> dict[str, Any] | None:
    """An environment or an adversary, called or a recipe, as JSON."""
    if part is None:
        return None
    changed = False
    if isinstance(part, Environment | Adversary):
        config, defaults = part.config or {"name": "own"}, getattr(part.config, "defaults", {})
        changed = isinstance(config, Arguments) and not config.describes(part)
    else:
        defaults = {name: p.default for name, p in part.arguments.items() if p.default is not p.empty}
        config = {"name": part.name, **defaults, **{k: part.bound[k] for k in part.arguments if k in part.bound}}
    written: dict[str, Any] = jsonable(config)
    if brief:
        written = {k: v for k, v in written.items() if k == "name" or k not in defaults or v != jsonable(defaults[k])}
    # changed by `_replace`: no arguments say how
    return written | ({"changed": True} if changed else {})


def parse_memory(memory: object) -> int | None:
    """Bytes from a number or text such as "200KB" or "2GB"."""
    if memory is None:
        return None
    memory = scalar_of("memory", memory)
    if isinstance(memory, int | float | np.number) and not isinstance(memory, bool) and 1 <= memory < float("inf"):
        return int(memory)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory) if isinstance(memory, str) else None
    size = float(match[1]) * _UNITS.get(match[2].upper(), 0) if match else 0
    if size < 1:
        raise ValueError(f"memory = {show(memory)} must be a number of bytes or text such as '200KB' or '2GB'")
    return int(size)
