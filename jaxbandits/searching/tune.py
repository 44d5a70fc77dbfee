"""`jb.tune`: the best settings of algorithms, chosen on some seeds and reported on others."""

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from annotated_doc import Doc

from jaxbandits.declared import Kind
from jaxbandits.forks import refuse_fork
from jaxbandits.formatting import show
from jaxbandits.protocol import Adversary, Environment
from jaxbandits.searching import methods, population, tuning
from jaxbandits.selection import final_regret
from jaxbandits.sweeps import estimate
from jaxbandits.sweeps.arguments import checkpoint_times, label_algorithms, part_factory
from jaxbandits.sweeps.grid import axes_of
from jaxbandits.sweeps.plan import plan as laid_out
from jaxbandits.sweeps.sweep import Algorithms, Seeds, sweep
from jaxbandits.typing import AdversaryFactory, EnvironmentFactory, Vector
from jaxbandits.validation import choice, declare, integer, number, path_of

DEFAULT = " (default)"  # what the label of an algorithm with its own values ends with


@declare(check=False)
def tune(
    algorithms: Algorithms,
    environment: "Environment | EnvironmentFactory | str | Mapping[str, Environment | EnvironmentFactory | str]",
    *,
    space: Mapping[Any, Any],
    horizon: Annotated[int, Doc("Plays of a run, at least 1.")],
    seeds: Seeds = range(10_000, 10_100),
    report_seeds: Seeds = 1000,
    over: Mapping[Any, Any] | None = None,
    unknown: Sequence[str] = (),
    method: Literal["grid", "random", "halving", "optuna"] = "grid",
    trials: int | None = None,
    objective: Literal["mean", "worst", "quantile"] = "mean",
    quantile: Annotated[float, Doc("Which quantile, in [0, 1].")] = 0.9,
    reward_adversary: "Adversary | AdversaryFactory | str | None" = None,
    message_adversary: "Adversary | AdversaryFactory | str | None" = None,
    checkpoints: int | Vector = 200,
    dtype: Annotated[Any, Kind("str or dtype"), Doc('"float32" or "float64".')] = "float32",
    memory: Annotated[float | str | None, Doc("As in `sweep`.")] = None,
    sampler: Callable[[int], Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    seed: Annotated[int, Doc("Of the search's own draws.")] = 0,
    progress: Annotated[bool, Doc("Print the budget, then the progress of every sweep.")] = True,
) -> tuning.Tuning:
    """Choose the settings of algorithms that have the lowest mean regret at the horizon, and report them on new seeds.

    Args:
        algorithms (factory, str, list or dict): What is tuned, as in `sweep`. An algorithm that no key of the space
            reaches is reported as it is.
        environment (Environment, factory, str or dict): Where they play, as in `sweep`; or ``{name: environment}``, a
            family on all of which one setting must do.
        space (dict): ``{key: values}`` for arguments of the algorithms, with the keys of `sweep`: a bare key is chosen
            for every algorithm that names it, each for itself; ``LABEL.x`` and ``base.x`` address one; the keys of a
            tuple get the same value. Values are a list, a dict that names them, or a range ``(low, high)``, ``(low,
            high, "log")`` or ``(low, high, "int")``, ends included.
        seeds (int, range or sequence of int, default range(10000, 10100)): The runs on which settings are chosen, as in
            `sweep`. The default: seeds 10,000 to 10,099.
        report_seeds (int, range or sequence of int, default 1000): The runs that the result reports. None of them may
            be among `seeds`; a count begins after them. The default: 1,000, after the default of `seeds` 10,100 to
            11,099.
        over (dict, optional): A grid as in `sweep`; a setting is chosen for each of its points, such as the best rate
            for every epsilon.
        unknown (sequence of str, default ()): Names of axes of `over` that the tuner may not look at: one setting must
            do for all of their values, as for a family of environments.
        method: "grid": all combinations; a range has nine evenly spaced values, or as many as `trials` allows.
            "random": quasi-random settings. "halving": successive halving, the better half goes on to twice as many
            seeds; it starts with the grid where the space has no ranges and `trials` is not given, else with
            quasi-random settings. "optuna": settings that optuna proposes in at most eight generations; it needs the
            extra `tune`.
        trials: How many settings of each algorithm are tried at each point, at least 1. The default: 64; the whole
            grid.
        objective: Across a family: the mean of the mean regrets, the largest, or their quantile.
        reward_adversary, message_adversary (Adversary, factory or str, optional): Who corrupts rewards, and what
            clients send, as in `sweep`.
        checkpoints (int or sequence of int, default 200): When the regret of the report is recorded, as in `sweep`.
        sampler (callable, optional): ``seed -> sampler`` of optuna for method "optuna". The default: a tree-structured
            Parzen estimator. ``lambda seed: optuna.samplers.CmaEsSampler(seed=seed)`` is an evolutionary one.
        store (str or path, optional): A directory where finished chunks are kept. A search that was interrupted,
            however hard, goes on where it stopped, and a larger one computes only what is new. The default: everything
            stays in memory.

    Returns:
        Tuning: `best`, a DataFrame with a row for each algorithm at each point of `over`: `algorithm`, the keys of
            `over`, the chosen values under their keys without a label, and from the report seeds `regret` with its 95%
            `interval`, `default`, the regret with the algorithm's own values, and the `gain` over it with its 95%
            `gain_interval` (paired); `undecided`, how many other settings may be as good; `edge`, whether a chosen
            number lies at an end of its list, or within 5% of one of its range. `trials`, a Dataset of every setting
            with `regret`, `objective` and `seeds`, how many it was run on. `report`, the Dataset of a sweep of the
            chosen settings, with their values as coordinates, and of the algorithms' own values under ``"LABEL
            (default)"``. `undecided`, a DataFrame of the settings that cannot be told apart from the chosen one.
            `Tuning.grid()` and `Tuning.points()` go into `sweep`, `Tuning.toml()` into a file.

    Raises:
        ValueError or TypeError: Before anything runs, where an argument is wrong. The text names the argument, the
            value and the remedy.
        OSError, SweepError or ContractError: As `sweep` raises them.

    Note:
        The regret on the seeds of the search is the lowest of many noisy means, so it is biased downwards; that on
        the report seeds is without bias. Of several settings of equal objective the first is chosen.

        `undecided` holds the settings that no paired t test finds worse than any other one; the tests share the 5%.
        With normal regrets and objective "mean" the best setting is the chosen one or among them with a probability of
        at least 95%; objectives "worst" and "quantile" take the problems that decide them as given.

        All settings of an algorithm that share its functions are one compiled program. A static argument is one for
        each value. The horizon is never shortened: tunings depend on it, so that a short run is no beginning of a
        longer one. The same arguments give the same result.

    References:
        Karnin, Koren and Somekh 2013, "Almost optimal exploration in multi-armed bandits" (sequential halving,
        recalled); Gupta 1965, "On some multiple decision (selection and ranking) rules" (sets that hold the best,
        recalled).

    >>> losses = jb.environments.bernoulli_losses(means=[0.2, 0.8])
    >>> tuning = jb.tune("exp3", losses, space={"learning_rate": [0.01, 0.3]}, horizon=100,
    ...                  seeds=range(1000, 1016), report_seeds=16, progress=False)
    >>> tuning.best[["algorithm", "learning_rate"]].values.tolist()
    [['exp3', 0.3]]
    """
    refuse_fork()
    settings: dict[str, Any] = {"horizon": integer("horizon", horizon, 1, 2**31 - 2), "dtype": dtype, "memory": memory}
    settings |= {"reward_adversary": reward_adversary, "message_adversary": message_adversary}
    checkpoints = list(checkpoints) if isinstance(checkpoints, Iterator) else checkpoints
    checkpoint_times(settings["horizon"], checkpoints)  # now, since the search does not need them
    problem = build_problem(algorithms, environment, space, over, unknown, settings)
    method = choice("method", method, methods.METHODS)
    trials = None if trials is None else integer("trials", trials, 1)
    if method == "optuna":
        methods.import_optuna()
    elif sampler is not None:
        raise ValueError(f"sampler = {show(sampler)} is for method = 'optuna', which proposes by it: leave it out")
    choice("objective", objective, population.OBJECTIVES)
    quantile = number("quantile", quantile, 0.0, 1.0)
    points, family = len(problem.points), len(problem.environments) * len(problem.family)
    if objective != "mean" and family == 1:
        remedy = "give environment = {name: environment, ...}, or name keys of over in unknown"
        raise ValueError(f"objective = {objective!r} is over a family: {remedy}")
    seed = integer("seed", seed, 0, 2**32 - 1)
    searched, reported = population.disjoint(seeds, report_seeds, "the setting")
    home = None if store is None else path_of(store, "store")
    plan = methods.plan_trials(method, problem.dimensions, trials, len(searched), seed)
    defaults = _check_built(problem, plan, reported)
    judge = functools.partial(population.over_family, objective=objective, quantile=quantile)
    if progress:
        chosen_lanes, report_lanes = plan.lanes * points * family, len(reported) * points * family
        report_lanes *= len(problem.algorithms) + len(defaults)
        plays = float(horizon) * (chosen_lanes + report_lanes)
        lanes = f"{chosen_lanes:,} runs to choose and {report_lanes:,} to report"
        estimate.print_progress(f"tune: at most {lanes}, {plays:.2g} plays")
    run = functools.partial(population.evaluate, problem, store=home and home / "trials", progress=progress)
    if method == "optuna":
        tried = methods.by_optuna(problem.dimensions, run, points, searched, judge, trials, seed, sampler)
    else:
        tried = methods.halving(plan, run, points, searched, judge)
    chosen = tuning.choices(tried, judge)
    reports, own = report_sweep(problem, chosen, defaults, reported, checkpoints, home and home / "report", progress)
    values = {str(label): judge(_family_last(final_regret(reports).sel(algorithm=label), problem)) for label in own}
    default_values = {label: values[label + DEFAULT] for label in defaults}
    default_values |= {label: values[label] for label in chosen if not problem.dimensions[label]}
    words = {"mean": "mean", "worst": "worst mean", "quantile": f"{quantile:g} quantile of mean"}
    about = {
        "method": method, "horizon": int(horizon), "objective": words[objective], "quantile": quantile,
        "seed": seed, "chosen_trials": json.dumps([one.trial + 1 for at in chosen.values() for one in at]),
    }  # fmt: skip
    best = tuning.best_table(problem, chosen, values, default_values)
    everything = tuning.trials_dataset(problem, tried, judge, searched, about)
    report = tuning.with_chosen(reports, problem, chosen, own)
    return tuning.Tuning(best, everything, report, tuning.table_of_undecided(problem, tried, chosen, judge))


def build_problem(
    algorithms: object, environment: object, space: object, over: object, unknown: Any, settings: dict[str, Any]
) -> population.Problem:
    """What is tuned, with the errors of its arguments."""
    factories = label_algorithms(algorithms)
    clash = next((label for label in factories if label + DEFAULT in factories), None)
    if clash is not None:
        raise ValueError(f"label {clash + DEFAULT!r} is what {clash!r} with its own values is called: rename it")
    environments = dict(environment) if isinstance(environment, Mapping) else {"": environment}
    if not environments:
        raise ValueError("environment is empty: give an environment, or {name: environment}")
    for name in environments if isinstance(environment, Mapping) else ():
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise ValueError(f"environment: the name {show(name)} must be a string that is not blank")
    for given in environments.values():
        part_factory(given, "environment")
    dimensions, tied = population.parts_of_space(space, factories)
    try:
        axes = axes_of(over, None, 1)
    except ValueError as error:
        raise ValueError(str(error).replace("grid", "over", 1)) from None
    names = [axis.name for axis in axes]
    unknown = [unknown] if isinstance(unknown, str) else list(unknown)
    for name in unknown:
        if name not in names:
            raise ValueError(f"unknown names {name!r}, which is no axis of over ({', '.join(names) or 'it has none'})")
    problem = population.Problem(
        algorithms=factories, environments=environments, dimensions=dimensions, tied=tied,
        known=[axis for axis in axes if axis.name not in unknown],
        unknown=[axis for axis in axes if axis.name in unknown], settings=settings,
    )  # fmt: skip
    nothing = {label: {d.key: None for d in of_label} for label, of_label in dimensions.items()}
    taken = population.sweep_keys(problem, nothing)
    for key in (key for axis in axes for key in axis.keys):
        if any(name in taken for name in (key, *(f"{label}.{key}" for label in dimensions))):
            raise ValueError(f"{key!r} is in over and in space: choose it, or choose for it")
    return problem


def _check_built(problem: population.Problem, plan: methods.SearchPlan, reported: range) -> list[str]:
    """Build the first and last settings at every point, and return the labels whose own values can be built, too."""
    common = {key: problem.settings[key] for key in ("horizon", "dtype", "reward_adversary", "message_adversary")}
    common |= {"seeds": reported, "checkpoints": 1}
    defaults, everywhere = [], [point | other for point in problem.points for other in problem.family]
    for environment in problem.environments.values():
        for end in (0, -1):
            bound = population.sweep_keys(problem, {label: settings[end] for label, settings in plan.first.items()})
            laid_out(problem.algorithms, environment, points=[row | bound for row in everywhere], **common)
    for label, of_label in problem.dimensions.items():
        if of_label and all(population.has_default(problem.algorithms[label], d.key) for d in of_label):
            concerned = [population.concerning(row, [label], problem.algorithms) for row in everywhere]
            rows, alone = [row for row in concerned if row], {label: problem.algorithms[label]}
            try:
                for environment in problem.environments.values():
                    laid_out(alone, environment, **common, **({"points": rows} if rows else {}))
            except (ValueError, TypeError) as error:
                estimate.print_progress(f"tune: {label} has no default to compare with here ({error})")
            else:
                defaults.append(label)
    return defaults


def report_sweep(
    problem: population.Problem, chosen: Mapping[str, list[tuning.Choice]], defaults: Sequence[str], seeds: range,
    checkpoints: Any, store: Path | None, progress: bool,
) -> tuple[xr.Dataset, dict[str, str]]:  # fmt: skip
    """The sweep of the chosen and the default settings, and whose each label of it is."""
    own = dict[str, str]()
    for label in problem.algorithms:
        own |= dict.fromkeys([label, label + DEFAULT] if label in defaults else [label], label)
    algorithms = {name: problem.algorithms[label] for name, label in own.items()}
    rows = []
    for o, point in enumerate(problem.points):
        for other in problem.family:
            row = point | other
            owners = {key: population.owner_of(key, problem.algorithms) for key in row}
            for key, owner in owners.items():
                if owner is not None and owner in defaults:
                    row[f"{owner}{DEFAULT}{key.removeprefix(owner)}"] = row[key]
            settings = {label: of_label[o].setting for label, of_label in chosen.items()}
            rows.append(row | population.sweep_keys(problem, settings))
    common = {"seeds": seeds, "checkpoints": checkpoints, "progress": progress} | problem.settings
    parts = []
    axes = [*problem.known, *problem.unknown]
    for name, environment in problem.environments.items():
        ds = sweep(algorithms, environment, points=rows, store=population.below(store, name), **common)
        parts.append(population.unfold_points(ds, axes))
    if list(problem.environments) == [""]:
        return parts[0], own
    joined = xr.concat(
        [ds[["regret"]] for ds in parts], pd.Index(list(problem.environments), name="environment"), coords="minimal",
        join="outer", compat="override", combine_attrs="override",
    )  # fmt: skip
    order = [*(axis.name for axis in problem.known), "environment", *(axis.name for axis in problem.unknown)]
    return joined.transpose("algorithm", *order, "seed", "t"), own


def _family_last(regret: xr.DataArray, problem: population.Problem) -> np.ndarray[Any, Any]:
    """Regret at the horizon as [O, F, S]."""
    known = [axis.name for axis in problem.known]
    family = [d for d in regret.dims if d not in known and d != "seed"]
    values = regret.transpose(*known, *family, "seed").values
    return values.reshape(len(problem.points), -1, values.shape[-1])
