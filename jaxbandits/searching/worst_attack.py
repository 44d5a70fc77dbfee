"""`jb.worst_case`: the attack of a family that costs an algorithm most, and what it costs on fresh seeds."""

import functools
import inspect
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from annotated_doc import Doc

from jaxbandits.forks import refuse_fork
from jaxbandits.formatting import brackets, nearest, show
from jaxbandits.learners.transformations import is_transformation
from jaxbandits.protocol import Adversary, Environment
from jaxbandits.recipe import Recipe, unwrap
from jaxbandits.searching import methods
from jaxbandits.searching.population import Problem, TuneSettings, disjoint, evaluate
from jaxbandits.searching.space import Dimension, coordinate_of, dimensions_of
from jaxbandits.searching.tuning import label_of, seed_span
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval
from jaxbandits.sweeps import estimate
from jaxbandits.sweeps.arguments import call_factory, label_algorithms, part_factory, public_name, short_text
from jaxbandits.sweeps.sweep import Seeds, sweep
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import Arguments, choice, declare, integer, path_of

SLOTS = ("reward", "message")
TAKEN = ("trial", "seed", "report_seed", "generation", "search_value", "regret", "report_regret")
MAX_WRITTEN_NUMBERS = 100  # of an array that is written out


class WorstCase(NamedTuple):
    """The attack found, and its regret on seeds that the search did not see. Printed, it says how to run it again."""

    params: dict[str, Any]  # of the attack found: one value for each key of the space
    regret: float  # its mean regret over the report seeds
    interval: tuple[float, float]  # at 95%
    trials: xr.Dataset  # every trial of the search, and the regret of each report seed

    def __repr__(self) -> str:
        trials, about = self.trials, self.trials.attrs
        values, (low, high) = trials["search_value"].values, self.interval
        if len(values) > 1:
            name, kind = "search value (biased upwards)", f"the largest of {len(values)} trials"
        else:
            name, kind = "search value", "of the only trial"
        chosen = ", ".join(f"{key} = {show(value)}" for key, value in self.params.items())
        who, where = f"{about['algorithm']} under {about['adversary']}", f"{about['slot']}s, horizon {about['horizon']}"
        searched, reported = (seed_span(trials[key].values) for key in ("seed", "report_seed"))
        interval = f"95% interval {brackets(low, high, '{:.6g}'.format)}, on report seeds {reported}"
        search = f"{values.max():.6g}, {kind} on seeds {searched}"
        return "\n".join(
            [
                f"WorstCase: {who} on {where}",
                f"  attack found: {chosen}",
                f"  regret: {self.regret:.6g}, {interval}; that of the worst attack is no less",
                f"  {name}: {search}; trial 1, the adversary's own values: {values[0]:.6g}",
                f"  again: {about['command']}",
            ]
        )


@declare(check=False)
def worst_case(
    algorithm: "str | AlgorithmFactory | Mapping[str, str | AlgorithmFactory]",
    environment: "Environment | EnvironmentFactory | str",
    adversary: "Adversary | AdversaryFactory | str",
    *,
    slot: Annotated[Literal["reward", "message"], Doc("Whether it corrupts rewards, or what clients send.")] = "reward",
    space: Mapping[str, Any],
    horizon: Annotated[int, Doc("Plays of a run, at least 1.")],
    seeds: Seeds,
    trials: int,
    report_seeds: Seeds,
    store: str | os.PathLike[str] | None = None,
    progress: Annotated[bool, Doc("Print a line for each generation.")] = True,
) -> WorstCase:
    """Search the parameters of an adversary for the attack that costs an algorithm most.

    Args:
        algorithm (factory, str or dict): Who is attacked, as in `sweep`: one algorithm, or ``{label: factory}`` of one.
        environment (Environment, factory or str): Where it plays, as in `sweep`.
        adversary (Adversary, factory or str): Who attacks: a factory of `jaxbandits.adversaries`, a partial of it, its
            name, or a called adversary. What it is given, and the defaults of the rest, are where the search starts.
        space (dict): ``{key: values}`` for arguments of the adversary: a range ``(low, high)``, ``(low, high, "log")``
            or ``(low, high, "int")``, ends included, or a list of values; a dict names them. It must hold the
            adversary's own value of each key. Up to about six keys.
        seeds (int, range or sequence of int): The runs of each trial, as in `sweep`. All trials have the same.
        trials: How many attacks are tried, at least 1. The first is the adversary with its own values; 1 evaluates that
            one.
        report_seeds (int, range or sequence of int): The runs that `regret` and `interval` come from. None of them may
            be among `seeds`; a count begins after them.
        store (str or path, optional): A directory where each generation of trials is kept as a sweep. A search that was
            interrupted goes on where it stopped. The default: everything stays in memory.

    Returns:
        `params`, the attack of the largest mean regret over `seeds`; `regret`, its mean regret over `report_seeds`;
        `interval`, the 95% Student interval of that mean; `trials`, a Dataset with `search_value (trial)`, `generation
        (trial)`, every key of the space along `trial`, `regret (trial, seed)` and `report_regret (report_seed)`. It
        prints as a report with the expression that runs the attack again.

    Raises:
        ValueError or TypeError: Before anything runs, where an argument is wrong. The text names the argument, the
            value and the remedy.
        OSError, SweepError or ContractError: As `sweep` raises them.

    Note:
        The regret is that of one attack, chosen before the report seeds were looked at: without bias, and its lower
        limit bounds the worst case of the space from below. It is not the worst case. The search value is the largest
        of many noisy means, so it is biased upwards; `theory.expected_max` says by how much at most.

        The search is the cross-entropy method in generations of 16 trials, or of an eighth of all where that is
        more. The first holds the adversary's own values and, where half of a generation is enough for them, the
        corners of the ranges. A generation is one sweep in which the trials are an axis. Each value of a static
        argument, such as `kind` of `huber`, is a program of its own, and so is each number of trials that have
        it: some trials are played more than once to make that a power of two. The same arguments give the same
        result.

    References:
        `docs/formulas/robust_frontier.md#robust-frontier-worst-case`

    >>> arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    >>> found = jb.worst_case("ucb1", arms, "huber", space={"value": (-10.0, 10.0)}, horizon=100, seeds=16, trials=16,
    ...                       report_seeds=range(100, 116), progress=False)
    >>> float(found.trials.search_value.max()) >= float(found.trials.search_value[0])
    True
    """
    refuse_fork()
    part = f"{choice('slot', slot, SLOTS)}_adversary"
    label, *others = algorithms = label_algorithms(algorithm)
    if others:
        names = f"{len(algorithms)} algorithms, {', '.join(algorithms)}"
        raise ValueError(f"algorithm names {names}: call worst_case for each of them")
    if (recipe := part_factory(adversary, part)) is None:
        raise TypeError("adversary = None attacks nobody: give a factory of jb.adversaries, or its name")
    dimensions, start = _space_dimensions(space, recipe, part, integer("horizon", horizon, 1, 2**31 - 2))
    trials = integer("trials", trials, 1)
    searched, reported = disjoint(seeds, report_seeds, "the attack")
    home = None if store is None else path_of(store, "store")
    problem = Problem(
        algorithms=algorithms, environments={"": environment}, dimensions={label: dimensions}, tied={}, known=[],
        unknown=[], settings={"horizon": horizon, part: recipe}, part=part,
    )  # fmt: skip
    proposer = methods.CrossEntropy(dimensions, trials, start)
    means = list[float]()

    def regrets(settings: Mapping[str, TuneSettings], seeds: range) -> dict[str, np.ndarray[Any, Any]]:
        number = 1 + len(means) // proposer.size
        found = _in_few_sizes(problem, settings, seeds, home and home / f"generation-{number:03d}")
        means.extend(found[label][0, :, 0].mean(-1))
        if progress:
            done = f"{len(means)} of {trials} trials"
            estimate.print_progress(f"generation {number}: {done}, largest regret {np.max(means):.6g}")
        return found

    cost = lambda regret: -regret[:, :, 0].mean(-1)
    tried = methods.by_generations({label: [proposer]}, regrets, searched, cost, trials, proposer.size)
    best = int(np.argmax(np.where(np.isnan(means), -np.inf, means)))  # the first among equal ones
    chosen = tried.settings[label][0][best]
    attack = recipe.bind(chosen)
    settings: Any = {"horizon": horizon, "checkpoints": 1, "progress": False, part: attack}
    ds = sweep(problem.algorithms, environment, seeds=reported, store=home and home / "report", **settings)
    report = final_regret(ds).isel(algorithm=0).transpose("seed").values
    mean, low, high = (float(x) for x in mean_interval(report))
    command = _command(algorithms, environment, attack, part, int(horizon), reported)
    about = {"algorithm": label, "adversary": recipe.name, "slot": slot, "horizon": int(horizon), "command": command}
    kept = _dataset(dimensions, tried, proposer.size, report, searched, reported).assign_attrs(about)
    return WorstCase(chosen, mean, (low, high), kept)


def _in_few_sizes(
    problem: Problem, settings: Mapping[str, TuneSettings], seeds: range, store: Path | None
) -> dict[str, np.ndarray[Any, Any]]:
    """The regret of one algorithm's settings, of which as many as a power of two have each combination of names and
    flags.

    These may be static, so that every combination is a program, and every number of points that share it another one.
    The first point of a combination is played more than once where there are too few: that costs less than to compile.
    """
    ((label, (points,)),) = settings.items()
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, point in enumerate(points):
        groups.setdefault(tuple(x for x in point.values() if x is None or isinstance(x, str | bool)), []).append(i)
    order = list[int]()
    for group in groups.values():
        order += group + [group[0]] * ((1 << (len(group) - 1).bit_length()) - len(group))
    found = evaluate(problem, {label: [[points[i] for i in order]]}, seeds, store)[label]
    return {label: found[:, [order.index(i) for i in range(len(points))]]}


def _space_dimensions(
    space: Any, recipe: Recipe, part: str, horizon: int
) -> tuple[tuple[Dimension, ...], tuple[float, ...]]:
    """The dimensions of the space, and the coordinates of the adversary's own values.

    Every end of a range and every listed value is built once, beside the adversary's own values of the other keys.
    """
    dimensions, names, bound, name = dimensions_of(space), recipe.arguments, recipe.bound, recipe.name
    for key in space:
        if key not in names:
            takes = ", ".join(names) or "none, as it is no longer what a factory built"
            bare = str(key).rpartition(".")[2]
            hint = f" (did you mean {bare!r}?)" if bare in names else nearest(key, names)
            raise ValueError(f"space key {key!r}: {name} has no such argument{hint}; it takes {takes}")
        if key in TAKEN:
            raise ValueError(f"space key {key!r} is a name that every result has: rename the argument of {name}")
    if "horizon" in names and "horizon" not in bound:  # a sweep fills it in
        recipe = recipe.bind({"horizon": horizon})
    empty = inspect.Parameter.empty
    missing = [key for key in space if key not in bound and names[key].default is empty]
    if missing:
        given = ", ".join(f"{key}=..." for key in missing)
        remedy = f"give functools.partial(..., {given})"
        raise ValueError(f"{name} has no default of {missing[0]!r}, where the search would start: {remedy}")
    built = call_factory(recipe, part)
    start = tuple(_own_coordinate(d, bound.get(d.key, names[d.key].default), built, name) for d in dimensions)
    for dimension in dimensions:
        for value in (dimension.low, dimension.high) if dimension.is_range else dimension.values:
            value = int(value) if dimension.kind == "int" else value
            try:
                call_factory(recipe.bind({dimension.key: value}), part)
            except ValueError as error:
                raise ValueError(f"space[{dimension.key!r}]: {name} refuses {show(value)}: {error}") from error
    return dimensions, start


def _own_coordinate(dimension: Dimension, value: object, built: Adversary, name: str) -> float:
    """Where the adversary's own value lies. A None that stands for a number is the number it was built with."""
    key = dimension.key
    if value is None and (dimension.is_range or None not in dimension.values):
        value = getattr(built.params, key, None)
        value = value.item() if isinstance(value, np.generic) else value
    try:
        return coordinate_of(dimension, value)
    except ValueError:
        if dimension.is_range:
            inside = f"[{dimension.low:g}, {dimension.high:g}]"
        else:
            inside = ", ".join(map(show, dimension.labels))
        lacks = f"space[{key!r}] does not hold {name}'s own {key} = {show(value)}, where the search starts"
        remedy = f"widen it, or give functools.partial(..., {key}=...)"
        raise ValueError(f"{lacks}: it has {inside}; {remedy}") from None


def _command(
    algorithms: dict[str, Recipe], environment: Any, attack: Recipe, part: str, horizon: int, reported: Sequence[int]
) -> str:
    """The expression that runs an attack on the report seeds again."""
    ((label, algorithm),) = algorithms.items()
    who, where, by = (python_text(x) for x in (algorithm.factory, environment, attack.factory))
    who = who if algorithm.name == label else f"{{{label!r}: {who}}}"
    return f"jb.sweep({who}, {where}, horizon={horizon}, seeds={reported!r}, checkpoints=1, {part}={by})"


def _dataset(
    dimensions: Sequence[Dimension], tried: methods.Tried, size: int, report: Any, searched: range, reported: range
) -> xr.Dataset:
    """Every trial, in generations of `size`, and the regret of each report seed."""
    ((settings,),), ((regrets,),) = tried.settings.values(), tried.regret.values()
    keys = {}
    for key in settings[0]:
        labels = [label_of(dimensions, key, setting[key]) for setting in settings]
        keys[key] = ("trial", np.asarray(labels if len(set(map(type, labels))) == 1 else list(map(str, labels))))
    variables: dict[str, Any] = {"search_value": ("trial", regrets[:, 0].mean(-1))}
    variables |= {"regret": (("trial", "seed"), regrets[:, 0]), "report_regret": ("report_seed", report)}
    trials = np.arange(len(settings))
    coordinates: dict[str, Any] = {"trial": 1 + trials, "generation": ("trial", 1 + trials // size), **keys}
    coordinates |= {"seed": np.asarray(searched), "report_seed": np.asarray(reported)}
    return xr.Dataset(variables, coordinates)


def python_text(x: Any) -> str:
    """An argument as Python.

    What has no expression is written as its name or its shape: a user's own function, an optimizer, a large array.

    >>> import jaxbandits as jb
    >>> python_text(functools.partial(jb.adversaries.huber, corruption=0.1, value=math.inf))
    "functools.partial(jb.adversaries.huber, corruption=0.1, value=float('inf'))"
    """
    if is_transformation(x):
        return short_text(x)
    if hasattr(x, "config"):  # a called part
        again = isinstance(x.config, Arguments) and x.config.describes(x)
        maker = getattr(x, "remake", None) if again else None
        if maker is None:
            return (x.config or {}).get("name", "own")
        return f"{public_name(maker)}({_arguments_text(maker)})"
    if callable(x):
        name, bound = public_name(x), _arguments_text(x)
        return f"functools.partial({name}, {bound})" if bound else name
    if hasattr(x, "__array__") and np.ndim(x):
        shape = np.shape(x)
        return python_text(np.asarray(x).tolist()) if np.size(x) <= MAX_WRITTEN_NUMBERS else f"<array of shape {shape}>"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key!r}: {python_text(value)}" for key, value in x.items()) + "}"
    if isinstance(x, list):
        return f"[{', '.join(map(python_text, x))}]"
    if isinstance(x, tuple):
        return f"({', '.join(map(python_text, x))}{',' if len(x) == 1 else ''})"
    x = x.item() if isinstance(x, np.generic) else x
    return f"float('{x}')" if isinstance(x, float) and not math.isfinite(x) else repr(x)


def _arguments_text(factory: functools.partial[Any]) -> str:
    return ", ".join(f"{key}={python_text(value)}" for key, value in unwrap(factory).bound.items())
