"""A figure or table of a paper as a declaration: what to sweep, what to tune, what to draw, what the paper says.

`reproduce` runs a study. Everything simulated goes through `jb.sweep` with a store under the study's directory, so a
run that was interrupted goes on where it stopped, and a study that grew computes only what is new.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits.formatting import brackets, markdown_table
from jaxbandits.reports import plot
from jaxbandits.searching import methods, worst_case
from jaxbandits.searching.population import Problem, axis_concerns, disjoint, evaluate, over_family
from jaxbandits.searching.tune import build_problem, report_sweep
from jaxbandits.searching.tuning import Choice, at_edge, choices
from jaxbandits.selection import final_regret, grid_dims
from jaxbandits.sweeps import sweep
from jaxbandits.sweeps.arguments import seed_range
from jaxbandits.sweeps.grid import axes_of
from jaxbandits.sweeps.storage.store import Store
from jaxbandits.typing import Vector
from jaxbandits.validation import declare, path_of

Results: TypeAlias = dict[str, Any]
"""What a study computed, by name: the Dataset of a sweep, the WorstCase of a search, or a value of `computed`."""


class Tuning(NamedTuple):
    """What is tuned, and on which seeds: at every point of the grid for the lowest mean regret at the horizon."""

    # label -> {key: values}, crossed; keys as in the grid of a sweep, without the label; others keep their own values
    grids: dict[str, dict[str, Any]]
    seeds: range  # none of the reported ones
    unknown: tuple[str, ...] = ()  # keys of the grid that the tuner may not look at: its worst mean over them counts


class Sweep(NamedTuple):
    """One sweep of a study. With a tuning, the chosen values are reported on the seeds in `settings`."""

    settings: dict[str, Any]  # arguments of `jb.sweep`
    tuning: Tuning | None = None


def swept(
    algorithms: object, environment: object, horizon: object, seeds: Any, *, tuning: Tuning | None = None, **more: Any
) -> Sweep:
    """A sweep that records regret at its end, unless `more`, which is for `jb.sweep`, says otherwise."""
    settings = {"algorithms": algorithms, "environment": environment, "horizon": horizon, "seeds": seeds}
    return Sweep(settings | {"checkpoints": 1} | more, tuning)


def few(everything: Mapping[str, Any], full: bool, quick: Iterable[str]) -> dict[str, Any]:
    """Everything at full size, otherwise what stands under the labels of a quick run."""
    return {label: one for label, one in everything.items() if full or label in quick}


def nothing(full: bool) -> dict[str, Any]:
    """No sweeps, of a study in which nothing is simulated, and nothing else where a study needs no more."""
    return {}


class Search(NamedTuple):
    """One search for the worst attack. It reports on the `report_seeds` in `settings`."""

    settings: dict[str, Any]  # arguments of `jb.worst_case`


class Exact(NamedTuple):
    """A value that no draw enters, and the limits that the paper sets it."""

    value: float
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def ends(self) -> tuple[float, float]:
        return self.value, self.value


class Interval(NamedTuple):
    """The 95% interval of a mean, a difference, a ratio or a probability, and the constant that the paper states."""

    what: str  # whose interval it is, as the table shows it
    low: float
    high: float
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high


Evidence: TypeAlias = Exact | Interval

CLAIM_COLUMNS = ["", "the paper says", "we measure", "here", "the claim"]


class Claim(NamedTuple):
    """One line of the table "the paper says, we measure".

    Whether it holds is never given by hand: that follows from `evidence`, what can contradict the statement. Without
    evidence, where the evidence leaves it open, and in a quick run it is not said. Which numbered claim of the paper a
    line is about, and what became of that claim, is in verdicts.toml beside this file.
    """

    statement: str
    paper: str  # what the paper says; empty where it says nothing
    measured: str
    evidence: Evidence | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the statement holds; None: it cannot be decided here, or says nothing that could fail."""
        return None if self.evidence is None else _verdict(self.evidence)


Claims: TypeAlias = Iterable[Claim]


class Study(NamedTuple):
    """A figure or table of a paper. The functions of `figures` and `claims` take the results."""

    title: str  # or a docstring, whose first line `known` makes it
    source: str  # paper, section, figure or table
    sweeps: Callable[[bool], dict[str, Sweep]]  # full? -> the sweeps: about 20 s in all unless full
    figures: Mapping[str, Callable[[dict], plot.Plot]]
    claims: Callable[[dict], Claims]
    computed: Callable[[bool], dict[str, Any]] = nothing  # what is no sweep: plain NumPy on the host
    # full?, results -> sweeps that the first ones' results ask for
    following: Callable[[bool, dict], dict[str, Sweep]] = lambda full, results: {}
    searches: Callable[[bool], dict[str, Search]] = nothing  # full? -> the searches for worst attacks


class Reproduction(NamedTuple):
    """What a study gave: results, figures and claims, and the files written."""

    results: dict[str, Any]
    figures: dict[str, plot.Plot]
    claims: list[Claim]
    paths: list[Path]
    seconds: float  # of all runs together for its sweeps, compilation included, and of this one for what is no sweep


@declare(check=False)
def reproduce(
    study: Study, directory: str | Path, *, full: bool = False, formats: Sequence[str] = ("png",), progress: bool = True
) -> Reproduction:
    """Run a study into DIR/quick or DIR/full: its sweeps, figures with their data, and the table of claims.

    Args:
        study (Study): What is run.
        directory (str or Path): DIR. Written are `<figure>.<format>` and `<figure>.csv`, `<sweep>_tuning.csv` (the
            values chosen), `claims.csv` and `claims.md`, a store per sweep under `sweeps/`, and one per search under
            `searches/`.
        full (bool): Whether it runs at full size; by default at a size of about 20 seconds.
        formats (sequence of str): Of the figures: png, pdf or svg.
        progress (bool): Whether sweeps show their progress.

    Returns:
        Reproduction: Results, figures and claims, the files written, and the seconds that it took.

    Raises:
        ValueError: What `jb.sweep` raises; for a claim whose evidence cannot decide anything. A verdict given by hand
            is a TypeError.
    """
    home = path_of(directory, "directory") / ("full" if full else "quick")
    began = time.perf_counter()
    results, paths = dict(study.computed(full)), []
    seconds = round(time.perf_counter() - began, 1)
    for declared in (study.sweeps, lambda full: study.following(full, results)):
        for name, one in declared(full).items():
            store = home / "sweeps" / name
            results[name], chosen = run_sweep(one, store, progress=progress)
            # the paper's word on the axes of pictures: the page says what regret is against
            results[name]["regret"].attrs["long_name"] = "cumulative regret"
            seconds += sum(Store(chunks.parent).seconds for chunks in store.rglob("chunks"))
            if chosen is not None:
                paths.append(home / f"{name}_tuning.csv")
                chosen.to_csv(paths[-1], index=False)
    for name, search in study.searches(full).items():
        store = home / "searches" / name
        results[name] = worst_case(**search.settings, store=store, progress=progress)
        seconds += sum(Store(chunks.parent).seconds for chunks in store.rglob("chunks"))
    home.mkdir(parents=True, exist_ok=True)
    figures = {name: draw(results) for name, draw in study.figures.items()}
    paths += write_figures(figures, home, formats)
    claims = [judge_claim(claim, full) for claim in study.claims(results)]
    paths += [home / "claims.csv", home / "claims.md"]
    rows = [(claim.statement, claim.paper, claim.measured, claim.holds) for claim in claims]
    pd.DataFrame(rows, columns=["statement", "paper", "measured", "holds"]).to_csv(paths[-2], index=False)
    paths[-1].write_text(f"{claims_table(claims)}\n", encoding="utf-8")
    return Reproduction(results, figures, claims, paths, seconds)


def write_figures(figures: Mapping[str, plot.Plot], home: Path, formats: Iterable[str]) -> list[Path]:
    """Write pictures and their tables; the paths."""
    paths = list[Path]()
    for name, figure in figures.items():
        paths += [home / f"{name}.csv", *(home / f"{name}.{suffix}" for suffix in formats)]
        figure.data.to_csv(home / f"{name}.csv", index=False)
        for suffix in formats:
            plot.save(figure, home / f"{name}.{suffix}")
    return paths


def run_sweep(one: Sweep, store: str | Path, *, progress: bool = True) -> tuple[xr.Dataset, pd.DataFrame | None]:
    """A sweep's Dataset, and the values that its tuning chose (None without one)."""
    if one.tuning is None:
        return sweep(**one.settings, store=store, progress=progress), None
    given, tuning = dict(one.settings), one.tuning
    if np.ndim(given["horizon"]):
        raise ValueError("a tuned sweep has one horizon: declare a sweep for each and join them with `over_horizons`")
    searched, reported = disjoint(tuning.seeds, seed_range(given.pop("seeds")), "the setting")
    space = {f"{label}.{key}": list(tried) for label, keys in tuning.grids.items() for key, tried in keys.items()}
    grid, checkpoints = given.pop("grid", None), given.pop("checkpoints", 200)
    problem = build_problem(given.pop("algorithms"), given.pop("environment"), space, grid, tuning.unknown, given)
    tries = {label: [methods.grid(problem.dimensions[label], None)] * len(problem.points) for label in tuning.grids}
    tried = methods.Tried(tries, evaluate(problem, tries, searched, path_of(store) / "tuning", progress=progress))
    chosen = choices(tried, partial(over_family, objective="worst", quantile=1.0))
    ds, _ = report_sweep(problem, chosen, (), reported, checkpoints, path_of(store) / "reported", progress)
    axes = [axis.name for axis in axes_of(grid, None, given["horizon"])]
    return ds.transpose("algorithm", *axes, "seed", ..., missing_dims="ignore"), _table(problem, chosen)


def _table(problem: Problem, chosen: dict[str, list[Choice]]) -> pd.DataFrame:
    """The values chosen for each tuned algorithm at each point that it depends on; `edge`: whether one is at an end."""
    rows = []
    for label, of_label in chosen.items():
        own = [axis.name for axis in problem.known if axis_concerns(problem, label, axis)]
        for labels, one in zip(problem.labels, of_label, strict=True):
            edge = any(at_edge(d, one.setting[d.key]) for d in problem.dimensions[label])
            point = {name: labels[name] for name in own}
            rows.append({"algorithm": label} | point | one.setting | {"mean": one.objective, "edge": edge})
    return pd.DataFrame(rows).drop_duplicates(ignore_index=True)


def over_horizons(parts: list[xr.Dataset]) -> xr.Dataset:
    """Datasets of one horizon each, tuned for it, as a sweep over horizons gives them."""
    ends = [int(ds.t[-1]) for ds in parts]
    along, regrets = pd.Index(ends, name="horizon"), [ds[["regret"]] for ds in parts]
    # what is spent becomes a coordinate along the horizon where it depends on it
    joined = xr.concat(regrets, along, join="outer", coords="different", compat="equals")
    return joined.transpose("algorithm", "horizon", ..., "seed", "t").assign_attrs(constant_along="{}")


def worst(ds: xr.Dataset, key: str) -> xr.Dataset:
    """Each algorithm at the value of `key` where its mean regret is highest, chosen anew at every point of the grid."""
    at_worst = ds[["regret"]].isel({key: final_regret(ds).mean("seed").argmax(key)}).drop_vars(key)
    rest = [d for d in grid_dims(ds) if d != key]
    return at_worst.transpose("algorithm", *rest, "seed", "t")


def crossing(x: Vector, difference: Vector) -> float:
    """Where a difference changes sign along increasing positive `x`, by log-linear interpolation; NaN if it never does.

    >>> round(crossing([0.1, 1.0, 10.0], [2.0, 1.0, -1.0]), 3)
    3.162
    """
    x, y = np.asarray(x, np.float64), np.asarray(difference, np.float64)
    for i in range(len(x) - 1):
        if y[i] == 0 or y[i] * y[i + 1] < 0:
            return float(x[i] * (x[i + 1] / x[i]) ** (y[i] / (y[i] - y[i + 1])))
    return math.nan


def judge_claim(claim: Claim, full: bool) -> Claim:
    """The claim with its interval in what is measured; that of a quick run loses its evidence.

    The rule is that of docs/reproductions.md#verdicts. ValueError or TypeError for evidence that can decide nothing.
    """
    evidence, name = claim.evidence, f"claim {claim.statement!r}"
    if evidence is None:
        return claim
    if not isinstance(evidence, Exact | Interval):
        remedy = "give Exact or Interval, or leave it out, and the table says '-'"
        raise TypeError(f"{name}: evidence = {evidence!r} is no verdict's ground: {remedy}")
    low, high = evidence.ends
    if not claim.paper:
        raise ValueError(f"{name}: paper is empty: write what it states, or leave evidence out")
    if math.isinf(evidence.at_least) and math.isinf(evidence.at_most):
        raise ValueError(f"{name}: evidence has no limit: name at_least or at_most, or leave it out")
    if not evidence.at_least <= evidence.at_most:
        both = f"at_least = {evidence.at_least} and at_most = {evidence.at_most}"
        raise ValueError(f"{name}: {both} leave no value: give a range")
    if isinstance(evidence, Exact):
        if math.isnan(low):
            raise ValueError(f"{name}: value = {low} is no value: leave evidence out")
        return claim if full else claim._replace(evidence=None)
    if not low <= high:
        remedy = "give it from several seeds, or leave evidence out"
        raise ValueError(f"{name}: low = {low} and high = {high} are no interval: {remedy}")
    parts = (claim.measured, f"{evidence.what} {brackets(low, high)}")
    return claim._replace(measured="; ".join(filter(None, parts)), evidence=evidence if full else None)


def _verdict(evidence: Evidence) -> bool | None:
    low, high = evidence.ends
    if evidence.at_least <= low and high <= evidence.at_most:
        return True
    return False if high < evidence.at_least or low > evidence.at_most else None


def decisive(intervals: Sequence[Interval]) -> Interval:
    """Of several intervals with upper limits, which must all be met, the one that decides whether they are.

    >>> decisive([Interval("a", -2, -1, at_most=0), Interval("b", -3, 1, at_most=0)]).what
    'b'
    """
    above = [x for x in intervals if _verdict(x) is False]
    return max(above or intervals, key=lambda x: (x.low if above else x.high) - x.at_most)


def claims_table(
    claims: list[Claim], about: Callable[[str], str] = lambda statement: "", *, judged: bool = True
) -> str:
    """The claims as Markdown.

    The fourth column is "-" where the paper's statement cannot be decided here, and empty where it says nothing. There
    is a fifth where `about`, a function of the statement, knows the paper's numbered claim. Without `judged`, as after
    a quick run, there is no fourth.
    """
    words = {True: "yes", False: "**no**", None: "-"}
    rows = [[c.statement, c.paper, c.measured, words[c.holds] if c.paper else "", about(c.statement)] for c in claims]
    if any(row[-1] for row in rows):
        return markdown_table([[*row[:3], *row[3 if judged else 4 :]] for row in (CLAIM_COLUMNS, *rows)])
    head = ["", "the paper says", "we measure", "holds"]
    return markdown_table([row[: 4 if judged else 3] for row in (head, *rows)])
