"""Which settings a search tries, and on how many seeds: a grid, quasi-random points, successive halving, generations.

Axes: [O] points of the grid at which a setting is chosen, [N] settings of an algorithm, [F] problems of the family,
[S] seeds. Values of seeds on which a setting was not run are NaN.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.searching import objective as judging
from jaxbandits.searching.cross_entropy import CrossEntropy
from jaxbandits.searching.population import Setting, Settings
from jaxbandits.searching.space import Dimension, point_at, value_at
from jaxbandits.validation import shown

METHODS = ("grid", "random", "halving", "optuna")
TRIALS = 64  # of a search that is told no number
STEPS = 9  # values of a range in a grid that is told no number of trials
MIN_SEEDS = 8  # of the first stage of halving: fewer say too little
GENERATIONS = 8  # of a search by optuna: its sampler learns between them, and each is one sweep

Evaluate: TypeAlias = Callable[[Mapping[str, Settings], range], dict[str, np.ndarray[Any, Any]]]
"""(settings by label, seeds) -> regret [O, N, F, S] by label."""


class Tried(NamedTuple):
    """What a search tried, by label."""

    settings: dict[str, Settings]  # at each of the O points, N of them
    regret: dict[str, np.ndarray[Any, Any]]  # [O, N, F, S]


class Plan(NamedTuple):
    """What a search will run: the settings it begins with, and how many lanes it needs for one point and problem."""

    first: dict[str, list[Setting]]
    lanes: int


def planned(
    method: str, dimensions: Mapping[str, Sequence[Dimension]], trials: int | None, seeds: int, seed: int
) -> Plan:
    """The settings that are tried first (of optuna, which says none before: the ends of the space), and the budget."""
    if method == "grid":
        first = {label: grid(of_label, trials) for label, of_label in dimensions.items()}
    elif method == "halving" and trials is None and not any(d.is_range for ds in dimensions.values() for d in ds):
        first = {label: grid(of_label, None) for label, of_label in dimensions.items()}
    elif method == "optuna":
        first = {label: [_end(of_label, 0), _end(of_label, 1)] for label, of_label in dimensions.items()}
    else:
        first = {label: random(of_label, trials or TRIALS, seed) for label, of_label in dimensions.items()}
    if method == "halving":
        lanes = sum(
            math.ceil(len(at) / 2**r) * more for at in first.values() for r, more in enumerate(_new(len(at), seeds))
        )
    elif method == "optuna":
        lanes = sum((trials or TRIALS) if of_label else 1 for of_label in dimensions.values()) * seeds
    else:
        lanes = sum(map(len, first.values())) * seeds
    return Plan(first, lanes)


def search(
    method: str, plan: Plan, dimensions: Mapping[str, Sequence[Dimension]], evaluate: Evaluate, points: int,
    seeds: range, judge: Callable[[Any], Any], trials: int | None, seed: int, sampler: Any = None,
) -> Tried:  # fmt: skip
    """Run a search. judge: regret [..., F, S] -> values [..., S]."""
    if method == "halving":
        return halving(plan.first, evaluate, points, seeds, judge)
    if method == "optuna":
        return by_optuna(dimensions, evaluate, points, seeds, judge, trials or TRIALS, seed, sampler)
    settings = {label: [at] * points for label, at in plan.first.items()}
    return Tried(settings, evaluate(settings, seeds))


def grid(dimensions: Sequence[Dimension], trials: int | None) -> list[Setting]:
    """All combinations of the listed values and of evenly spaced values of the ranges, both ends included.

    A range has as many values as let the whole grid have at most `trials` settings, nine by default.

    >>> grid([Dimension("x", "linear", 0.0, 1.0), Dimension("kind", "values", values=("a", "b"))], 6)[2:4]
    [{'x': 0.5, 'kind': 'a'}, {'x': 0.5, 'kind': 'b'}]
    """
    ranges = [d for d in dimensions if d.is_range]
    listed = math.prod(len(d.values) for d in dimensions if not d.is_range)
    steps = STEPS
    if trials is not None:
        steps = int((trials / listed) ** (1 / len(ranges)) + 1e-9) if ranges else 1
        if steps < (2 if ranges else 1) or (not ranges and listed > trials):
            least = listed * 2 ** len(ranges)
            raise ValueError(f"trials = {trials} is too few for a grid of {least} settings: give more, or 'random'")
    apart = np.linspace(0.0, 1.0, steps).tolist()
    values = [dict.fromkeys(value_at(d, x) for x in apart) if d.is_range else d.values for d in dimensions]
    return [dict(zip((d.key for d in dimensions), row, strict=True)) for row in itertools.product(*values)]


def random(dimensions: Sequence[Dimension], trials: int, seed: int) -> list[Setting]:
    """Quasi-random settings: a scrambled Sobol sequence, so that they cover the space evenly.

    Each is uniform on the space. Where the space has no more than `trials` settings, all of them are taken.
    """
    if not dimensions:
        return [{}]
    sizes = [d.high - d.low + 1 if d.kind == "int" else math.inf if d.is_range else len(d.values) for d in dimensions]
    if math.prod(sizes) <= trials:
        return grid([_as_list(d) for d in dimensions], None)
    from scipy.stats import qmc

    points = qmc.Sobol(len(dimensions), scramble=True, rng=np.random.default_rng(seed)).random_base2(
        max(1, math.ceil(math.log2(trials)))
    )
    scales = [1 if d.is_range else len(d.values) for d in dimensions]
    return [point_at(dimensions, x) for x in scales * points[:trials]]


def _as_list(d: Dimension) -> Dimension:
    return Dimension(d.key, "values", values=tuple(range(int(d.low), int(d.high) + 1))) if d.is_range else d


def _end(dimensions: Sequence[Dimension], last: int) -> Setting:
    """The first or last value of every key."""
    return point_at(dimensions, np.array([last if d.is_range else last * (len(d.values) - 1) for d in dimensions]))


def _new(settings: int, seeds: int) -> list[int]:
    """The new seeds of every stage of halving."""
    stages = 1 + max(0, min(int(math.log2(max(settings, 1))), int(math.log2(max(seeds / MIN_SEEDS, 1)))))
    ends = [math.ceil(seeds / 2 ** (stages - 1 - r)) for r in range(stages)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def halving(
    first: Mapping[str, list[Setting]], evaluate: Evaluate, points: int, seeds: range, judge: Callable[[Any], Any]
) -> Tried:
    """Successive halving over seeds: the better half of the settings goes on to twice as many seeds.

    Each algorithm halves at each point for itself. The horizon is never shortened: a shorter run is tuned otherwise.
    """
    stages = {label: _new(len(at), len(seeds)) for label, at in first.items()}
    alive = {label: [np.arange(len(at)) for _ in range(points)] for label, at in first.items()}
    regret: dict[str, np.ndarray[Any, Any]] = {}
    done = dict.fromkeys(first, 0)
    for stage in range(max(map(len, stages.values()))):
        here = [label for label in first if stage < len(stages[label])]
        for more in sorted({(done[label], stages[label][stage]) for label in here}):  # labels of equal seeds together
            together = [label for label in here if (done[label], stages[label][stage]) == more]
            block = range(seeds.start + more[0], seeds.start + more[0] + more[1])
            found = evaluate({x: [[first[x][i] for i in at] for at in alive[x]] for x in together}, block)
            for label in together:
                if label not in regret:
                    shape = (points, len(first[label]), found[label].shape[2], len(seeds))
                    regret[label] = np.full(shape, np.nan)
                for o, at in enumerate(alive[label]):
                    regret[label][o, at, :, done[label] : done[label] + more[1]] = found[label][o]
                done[label] += more[1]
                if stage + 1 < len(stages[label]):
                    for o, at in enumerate(alive[label]):
                        means = judging.means_of(judge(regret[label][o, at][..., : done[label]]))
                        alive[label][o] = np.sort(at[np.argsort(means, kind="stable")[: math.ceil(len(at) / 2)]])
    return Tried({label: [list(at)] * points for label, at in first.items()}, regret)


def by_generations(
    proposers: "Mapping[str, Sequence[CrossEntropy | _Optuna]]", evaluate: Evaluate, seeds: range,
    cost: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], trials: int, size: int,
) -> Tried:  # fmt: skip
    """Settings that proposers name in generations of `size`, one for each algorithm and point.

    cost: regret [O, N, F, S] -> [O, N]. The same arguments give the same proposals, so that a search that was
    interrupted repeats them from its store.
    """
    settings: dict[str, Settings] = {label: [[] for _ in of_label] for label, of_label in proposers.items()}
    parts: dict[str, list[np.ndarray[Any, Any]]] = {label: [] for label in proposers}
    for start in range(0, trials, size):
        number = min(size, trials - start)
        now = {label: [proposer.ask(number) for proposer in of_label] for label, of_label in proposers.items()}
        for label, found in evaluate(now, seeds).items():
            parts[label].append(found)
            for proposer, tried, asked, costs in zip(
                proposers[label], settings[label], now[label], cost(found), strict=True
            ):
                tried += asked
                proposer.tell(costs)
    return Tried(settings, {label: np.concatenate(found, 1) for label, found in parts.items()})


class _Optuna(NamedTuple):
    """A study of optuna that proposes settings as `CrossEntropy` does."""

    study: Any
    dimensions: Sequence[Dimension]
    laws: dict[Any, Any]
    asked: list[Any]  # trials of the last generation

    def ask(self, number: int, /) -> list[Setting]:
        self.asked[:] = [self.study.ask(self.laws) for _ in range(number)]
        return [
            {d.key: trial.params[d.key] if d.is_range else d.values[trial.params[d.key]] for d in self.dimensions}
            for trial in self.asked
        ]

    def tell(self, costs: np.ndarray[Any, Any], /) -> None:
        for trial, value in zip(self.asked, costs, strict=True):
            self.study.tell(trial, min(float(value), np.finfo(float).max))


def by_optuna(
    dimensions: Mapping[str, Sequence[Dimension]], evaluate: Evaluate, points: int, seeds: range,
    judge: Callable[[Any], Any], trials: int, seed: int, sampler: Any = None,
) -> Tried:  # fmt: skip
    """Settings that optuna proposes in generations, for each algorithm at each point by a study of its own."""
    optuna = _optuna()
    size = math.ceil(trials / GENERATIONS)
    make = sampler or (
        lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True, n_startup_trials=size)
    )
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        proposers = {
            label: [
                _Optuna(optuna.create_study(sampler=make(seed + o)), ds, {d.key: _law(optuna, d) for d in ds}, [])
                for o in range(points)
            ]
            for label, ds in dimensions.items() if ds
        }  # fmt: skip
        cost = lambda regret: judging.means_of(judge(regret))
        found = by_generations(proposers, evaluate, seeds, cost, trials, size)
    finally:
        optuna.logging.set_verbosity(before)
    fixed: dict[str, Settings] = {label: [[{}]] * points for label in dimensions if label not in proposers}
    settings, regret = found.settings | fixed, found.regret | (evaluate(fixed, seeds) if fixed else {})
    return Tried({label: settings[label] for label in dimensions}, {label: regret[label] for label in dimensions})


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError:
        raise ValueError(
            "method = 'optuna' needs the package optuna: pip install 'jaxbandits[tune]', or use 'random' or 'halving'"
        ) from None
    return optuna


def _law(optuna: Any, d: Dimension) -> Any:
    """What optuna draws from. A list of increasing numbers is drawn by position, so that neighbours are alike."""
    kinds = optuna.distributions
    if d.kind == "int":
        return kinds.IntDistribution(int(d.low), int(d.high))
    if d.is_range:
        return kinds.FloatDistribution(d.low, d.high, log=d.kind == "log")
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in d.values)
    if numbers and list(d.values) == sorted(d.values):
        return kinds.IntDistribution(0, len(d.values) - 1)
    return kinds.CategoricalDistribution(range(len(d.values)))


def check_method(method: str, sampler: Any) -> None:
    """ValueError where the arguments of a method do not fit, or optuna is missing."""
    if sampler is not None and method != "optuna":
        raise ValueError(f"sampler = {shown(sampler)} is for method = 'optuna', which proposes by it: leave it out")
    if method == "optuna":
        _optuna()
