"""Which settings a search tries, and on how many seeds: a grid, quasi-random points, successive halving, generations.

Axes: [O] points of the grid at which a setting is chosen, [N] settings of an algorithm, [F] problems of the family,
[S] seeds, [D] keys of the space, [M] points of a generation. Values of seeds on which a setting was not run are NaN.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.searching.population import TuneSetting, TuneSettings, means_of
from jaxbandits.searching.space import Dimension, point_at, value_at
from jaxbandits.typing import Float

METHODS = ("grid", "random", "halving", "optuna")
TRIALS = 64  # of a search that is told no number
STEPS = 9  # values of a range in a grid that is told no number of trials
MIN_SEEDS = 8  # of the first stage of halving: fewer say too little
GENERATIONS = 8  # of a search by optuna: its sampler learns between them, and each is one sweep
POPULATION = 16  # points of a generation of the cross-entropy method, or an eighth of the trials where that is more
ELITE = 0.25  # the share of such a generation that the next one is drawn like
ELITE_WEIGHT = 0.7  # weight of the elite against the distribution before
LEAST_SPREAD = 0.02  # of a unit coordinate, and the least share of a listed value, so that none is given up

Evaluate: TypeAlias = Callable[[Mapping[str, TuneSettings], range], dict[str, np.ndarray[Any, Any]]]
"""(settings by label, seeds) -> regret [O, N, F, S] by label."""


class Tried(NamedTuple):
    """What a search tried, by label."""

    settings: dict[str, TuneSettings]  # at each of the O points, N of them
    regret: dict[str, np.ndarray[Any, Any]]  # [O, N, F, S]


class SearchPlan(NamedTuple):
    """What a search will run."""

    first: dict[str, list[TuneSetting]]  # the settings it begins with
    stages: dict[str, list[tuple[int, int]]]  # which of the seeds are new in each of its stages: from, to
    lanes: int  # how many it needs for one point and problem


def plan_trials(
    method: str, dimensions: Mapping[str, Sequence[Dimension]], trials: int | None, seeds: int, seed: int
) -> SearchPlan:
    """The settings that are tried first (of optuna, which says none before: the ends of the space), and the budget."""
    if method == "optuna":
        first = {label: [_end(of_label, 0), _end(of_label, 1)] for label, of_label in dimensions.items()}
        settings = sum((trials or TRIALS) if of_label else 1 for of_label in dimensions.values())
        return SearchPlan(first, {}, settings * seeds)
    listed = trials is None and not any(d.is_range for of_label in dimensions.values() for d in of_label)
    if method == "grid" or (method == "halving" and listed):
        first = {label: grid(of_label, trials) for label, of_label in dimensions.items()}
    else:
        first = {label: random(of_label, trials or TRIALS, seed) for label, of_label in dimensions.items()}
    stages = {label: _stages(len(at), seeds) if method == "halving" else [(0, seeds)] for label, at in first.items()}
    lanes = 0
    for label, blocks in stages.items():
        lanes += sum(math.ceil(len(first[label]) / 2**r) * (stop - start) for r, (start, stop) in enumerate(blocks))
    return SearchPlan(first, stages, lanes)


def grid(dimensions: Sequence[Dimension], trials: int | None) -> list[TuneSetting]:
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


def random(dimensions: Sequence[Dimension], trials: int, seed: int) -> list[TuneSetting]:
    """Quasi-random settings: a scrambled Sobol sequence, so that they cover the space evenly.

    Each is uniform on the space. Where the space has no more than `trials` settings, all of them are taken.
    """
    if not dimensions:
        return [{}]
    sizes = [d.high - d.low + 1 if d.kind == "int" else math.inf if d.is_range else len(d.values) for d in dimensions]
    if math.prod(sizes) <= trials:
        values = [tuple(range(int(d.low), int(d.high) + 1)) if d.is_range else d.values for d in dimensions]
        return grid([Dimension(d.key, "values", values=x) for d, x in zip(dimensions, values, strict=True)], None)
    from scipy.stats import qmc

    sequence = qmc.Sobol(len(dimensions), scramble=True, rng=np.random.default_rng(seed))
    points = sequence.random_base2(max(1, math.ceil(math.log2(trials))))
    scales = [1 if d.is_range else len(d.values) for d in dimensions]
    return [point_at(dimensions, x) for x in scales * points[:trials]]


def _end(dimensions: Sequence[Dimension], last: int) -> TuneSetting:
    """The first or last value of every key."""
    return point_at(dimensions, np.array([last if d.is_range else last * (len(d.values) - 1) for d in dimensions]))


def _stages(settings: int, seeds: int) -> list[tuple[int, int]]:
    """The new seeds of every stage of halving: from, to."""
    number = 1 + max(0, min(int(math.log2(max(settings, 1))), int(math.log2(max(seeds / MIN_SEEDS, 1)))))
    return list(itertools.pairwise([0, *(math.ceil(seeds / 2 ** (number - 1 - r)) for r in range(number))]))


def halving(plan: SearchPlan, evaluate: Evaluate, points: int, seeds: range, judge: Callable[[Any], Any]) -> Tried:
    """Successive halving over seeds: the better half of the settings goes on to twice as many seeds.

    Each algorithm halves at each point for itself; one stage is all settings on all seeds. The horizon is never
    shortened: a shorter run is tuned otherwise. judge: regret [..., F, S] -> values [..., S].
    """
    first, stages, _ = plan
    alive = {label: [np.arange(len(at)) for _ in range(points)] for label, at in first.items()}
    regret: dict[str, np.ndarray[Any, Any]] = {}
    for stage in range(max(map(len, stages.values()))):
        new = {label: blocks[stage] for label, blocks in stages.items() if stage < len(blocks)}
        for start, stop in sorted(set(new.values())):  # labels of equal seeds together
            together = [label for label in new if new[label] == (start, stop)]
            settings = {x: [[first[x][i] for i in at] for at in alive[x]] for x in together}
            for label, found in evaluate(settings, seeds[start:stop]).items():
                shape = (points, len(first[label]), found.shape[2], len(seeds))
                regret.setdefault(label, np.full(shape, np.nan))
                for o, at in enumerate(alive[label]):
                    regret[label][o, at, :, start:stop] = found[o]
                    if stage + 1 < len(stages[label]):
                        means = means_of(judge(regret[label][o, at][..., :stop]))
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
    settings: dict[str, TuneSettings] = {label: [[] for _ in of_label] for label, of_label in proposers.items()}
    parts: dict[str, list[np.ndarray[Any, Any]]] = {label: [] for label in proposers}
    for start in range(0, trials, size):
        number = min(size, trials - start)
        now = {label: [proposer.ask(number) for proposer in of_label] for label, of_label in proposers.items()}
        for label, found in evaluate(now, seeds).items():
            parts[label].append(found)
            beside = (proposers[label], settings[label], now[label], cost(found))
            for proposer, tried, asked, costs in zip(*beside, strict=True):
                tried += asked
                proposer.tell(costs)
    return Tried(settings, {label: np.concatenate(found, 1) for label, found in parts.items()})


class Distribution(NamedTuple):
    """What points are drawn from: independent along the keys."""

    mean: Float[np.ndarray, " D"]  # of unit coordinates; unused for lists
    spread: Float[np.ndarray, " D"]  # standard deviation of unit coordinates; unused for lists
    shares: tuple[np.ndarray[Any, Any], ...]  # for each key: the probability of each listed value; empty for ranges


class CrossEntropy:
    """The cross-entropy method of `docs/formulas/robust_frontier.md#robust-frontier-worst-case`.

    `ask` draws points, `tell` gives what they cost, of which the least is sought; the same costs give the same points.
    The first point is `start`, coordinates [D], where it is given.
    """

    def __init__(
        self, dimensions: Sequence[Dimension], trials: int, start: Sequence[float] | None, seed: int = 0
    ) -> None:
        self.dimensions, self.start, self.rng = dimensions, start, np.random.default_rng(seed)
        self.size = max(POPULATION, math.ceil(trials / 8))  # points of a generation
        self.distribution: Distribution | None = None

    def ask(self, number: int) -> list[dict[Any, Any]]:
        """The next generation, or its first `number` points."""
        if self.distribution is None:
            drawn = first_generation(self.dimensions, self.size, self.start, self.rng)
        else:
            drawn = next_generation(self.distribution, self.size, self.rng)
        self.coordinates = drawn[:number]
        return [point_at(self.dimensions, x) for x in self.coordinates]

    def tell(self, costs: Float[np.ndarray, " M"]) -> None:
        """What the points cost that were asked for last. NaN is above all others."""
        order = np.argsort(np.where(np.isnan(costs), np.inf, costs), kind="stable")
        best = order[: max(2, math.ceil(ELITE * self.size))]
        self.distribution = fit_distribution(self.dimensions, self.coordinates[best], self.distribution)


def first_generation(
    dimensions: Sequence[Dimension], size: int, start: Sequence[float] | None, rng: np.random.Generator
) -> Float[np.ndarray, "M D"]:
    """The first generation: the start, corners, then uniform points, with each listed value about equally often."""
    coordinates = rng.random((size, len(dimensions)))
    for i, dimension in enumerate(dimensions):
        if not dimension.is_range:
            coordinates[:, i] = rng.permutation(np.arange(size) % len(dimension.values))
    filled = 0
    if start is not None:
        coordinates[0], filled = start, 1
    ranges = [i for i, dimension in enumerate(dimensions) if dimension.is_range]
    for columns in ([*range(len(dimensions))], ranges):
        ends = [(0.0, 1.0) if dimensions[i].is_range else range(len(dimensions[i].values)) for i in columns]
        if columns and math.prod(map(len, ends)) <= size // 2:
            corners = np.array(list(itertools.product(*ends)))
            coordinates[filled : filled + len(corners), columns] = corners
            break
    return coordinates


def next_generation(distribution: Distribution, size: int, rng: np.random.Generator) -> Float[np.ndarray, "M D"]:
    """A generation of points.

    Each listed value is drawn as often as its share says, up to one, so that few numbers of points have it: where it
    chooses a program, each number of points is a program of its own.
    """
    normal = rng.normal(size=(size, len(distribution.mean)))
    coordinates = np.clip(distribution.mean + distribution.spread * normal, 0.0, 1.0)
    for i, shares in enumerate(distribution.shares):
        if len(shares):
            at = (rng.random() + np.arange(size)) / size
            coordinates[:, i] = rng.permutation(np.searchsorted(np.cumsum(shares)[:-1], at, side="right"))
    return coordinates


def fit_distribution(
    dimensions: Sequence[Dimension], elite: Float[np.ndarray, "E D"], old: Distribution | None
) -> Distribution:
    """The distribution that the elite [E, D] comes from, after the first generation mixed with the old one."""
    mean, spread = elite.mean(0), elite.std(0)
    if old is not None:
        mean = ELITE_WEIGHT * mean + (1 - ELITE_WEIGHT) * old.mean
        spread = ELITE_WEIGHT * spread + (1 - ELITE_WEIGHT) * old.spread
    shares = []
    for i, dimension in enumerate(dimensions):
        number = len(dimension.values)
        counts = np.bincount(elite[:, i].astype(int), minlength=number) if number else np.zeros(0)
        before = np.full(number, 1 / max(number, 1)) if old is None else old.shares[i]
        mixed = np.maximum(ELITE_WEIGHT * counts / len(elite) + (1 - ELITE_WEIGHT) * before, LEAST_SPREAD)
        shares.append(mixed / mixed.sum() if number else mixed)
    return Distribution(mean, np.maximum(spread, LEAST_SPREAD), tuple(shares))


class _Optuna(NamedTuple):
    """A study of optuna that proposes settings as `CrossEntropy` does."""

    study: Any
    dimensions: Sequence[Dimension]
    laws: dict[Any, Any]
    asked: list[Any]  # trials of the last generation

    def ask(self, number: int, /) -> list[TuneSetting]:
        self.asked[:] = [self.study.ask(self.laws) for _ in range(number)]
        value = lambda d, params: params[d.key] if d.is_range else d.values[params[d.key]]
        return [{d.key: value(d, trial.params) for d in self.dimensions} for trial in self.asked]

    def tell(self, costs: np.ndarray[Any, Any], /) -> None:
        for trial, value in zip(self.asked, costs, strict=True):
            self.study.tell(trial, min(float(value), np.finfo(float).max))


def by_optuna(
    dimensions: Mapping[str, Sequence[Dimension]], evaluate: Evaluate, points: int, seeds: range,
    judge: Callable[[Any], Any], trials: int | None, seed: int, sampler: Any = None,
) -> Tried:  # fmt: skip
    """Settings that optuna proposes in generations, for each algorithm at each point by a study of its own."""
    optuna = import_optuna()
    trials = trials or TRIALS
    size = math.ceil(trials / GENERATIONS)
    usual: dict[str, Any] = {"multivariate": True, "constant_liar": True, "n_startup_trials": size}
    make = sampler or (lambda seed: optuna.samplers.TPESampler(seed=seed, **usual))
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        proposers = {
            label: [
                _Optuna(optuna.create_study(sampler=make(seed + o)), ds, {d.key: _law(optuna, d) for d in ds}, [])
                for o in range(points)
            ]
            for label, ds in dimensions.items()
            if ds
        }
        cost = lambda regret: means_of(judge(regret))
        found = by_generations(proposers, evaluate, seeds, cost, trials, size)
    finally:
        optuna.logging.set_verbosity(before)
    fixed: dict[str, TuneSettings] = {label: [[{}]] * points for label in dimensions if label not in proposers}
    settings, regret = found.settings | fixed, found.regret | (evaluate(fixed, seeds) if fixed else {})
    return Tried({label: settings[label] for label in dimensions}, {label: regret[label] for label in dimensions})


def import_optuna() -> ModuleType:
    """The package optuna, which is not always installed."""
    try:
        import optuna
    except ModuleNotFoundError:
        remedy = "pip install 'jaxbandits[tune]', or use 'random' or 'halving'"
        raise ValueError(f"method = 'optuna' needs the package optuna: {remedy}") from None
    return optuna


def _law(optuna: ModuleType, d: Dimension) -> Any:
    """What optuna draws from. A list of increasing numbers is drawn by position, so that neighbours are alike."""
    kinds = optuna.distributions
    if d.kind == "int":
        return kinds.IntDistribution(int(d.low), int(d.high))
    if d.is_range:
        return kinds.FloatDistribution(d.low, d.high, log=d.kind == "log")
    numbers = all(isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in d.values)
    if numbers and list(d.values) == sorted(d.values):
        return kinds.IntDistribution(0, len(d.values) - 1)
    return kinds.CategoricalDistribution(range(len(d.values)))
