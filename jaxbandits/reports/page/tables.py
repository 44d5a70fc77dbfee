"""The tables of a report, each from the package's own statistics."""

import inspect
import itertools
import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import statistics, theory
from jaxbandits.recipe import unwrap
from jaxbandits.reports.page.runs import ReportRun
from jaxbandits.reports.page.words import cut, key_name, key_number, number_words
from jaxbandits.selection import SPENT, grid_dims, tidy
from jaxbandits.sweeps.plan import Plan

MAX_ROWS = 400  # of a table; a page with more is slow on a phone
MAX_PAIRED = 6  # algorithms of which all pairs are compared

# columns that are put in; no key has a name with a blank
INTERVAL, QUANTILES, AGAINST = "95% interval", "5% to 95%", "fitted against"
COUNTED, SWEEP = "what is counted", "of sweep"
# columns whose heads are not their names
COLUMN_HEADS = {
    "mean": "mean regret",
    "difference": "a − b",
    "relative": "relative to b",
    "p_value": "p",
    "p_holm": "p (Holm)",
    "share_lower": "a lower in",
    "right_answers": "right answers",
    AGAINST: "against",
    COUNTED: "counted",
    SWEEP: "sweep",
    "epsilon_asked": "ε asked",
}
# two columns that stand in one, in the place of the first
SPANS = {INTERVAL: ("ci_low", "ci_high"), QUANTILES: ("q05", "q95")}
BARS = "95% interval of a − b"
OVER_SEEDS = "mean over seeds"
# what is measured
NUMBER_COLUMNS = {*COLUMN_HEADS, *SPANS, "median", "points", "slope", "theory", BARS, OVER_SEEDS}
NUMBER_COLUMNS -= {AGAINST, COUNTED, SWEEP, "epsilon_asked"}


class TableCell(NamedTuple):
    """One cell: its text, what it is sorted by, and an interval as places in [0, 200] to draw."""

    text: str
    order: float | None = None
    bar: tuple[float, float, float] | None = None


class PageTable(NamedTuple):
    """A table, sortable in the page. `note` stands below it."""

    heads: list[str]
    rows: list[list[TableCell]]
    note: str = ""

    @property
    def kinds(self) -> list[str]:
        """ "number" for columns of numbers, "words" for others."""
        orders = [[row[i].order for row in self.rows] for i in range(len(self.heads))]
        return ["number" if any(order is not None for order in column) else "words" for column in orders]


def summaries(runs: Sequence[ReportRun]) -> PageTable:
    """Final regret of every algorithm at every point."""
    note = "Regret at the end. The 95% interval is that of the mean, 5% to 95% are quantiles over seeds."
    frame = _stack_tables((run, _summary(run)) for run in runs)
    return _table(frame, f"{note} {_count_seeds(runs)}")


def _summary(run: ReportRun) -> pd.DataFrame:
    """Without what is asked for where that is the key of the grid itself, and deltas that are all zero.

    With words for an infinite epsilon where nothing is promised; uniform play reads no data.
    """
    frame, claims = statistics.summary(run.ds), json.loads(run.ds.attrs.get("guarantees", "{}"))
    names = {label: dict(part).get("name") for label, part in run.config.get("algorithms", {}).items()}
    if "epsilon_spent" in frame:
        foreign = [label for label, part in run.config.get("algorithms", {}).items() if dict(part).get("foreign")]
        stated = dict.fromkeys(foreign, "states no guarantee") | {x: 0.0 for x in names if names[x] == "uniform"}
        words = frame["algorithm"].map(lambda x: stated.get(x, "not private"))
        frame["epsilon_spent"] = frame["epsilon_spent"].where(frame["algorithm"].isin(claims), words)
    asked = frame.get("epsilon_asked")
    if asked is not None and "epsilon" in frame and (asked.isna() | (asked == frame["epsilon"])).all():
        frame = frame.drop(columns="epsilon_asked")
    return frame.drop(columns="delta_spent") if "delta_spent" in frame and (frame["delta_spent"] == 0).all() else frame


def _count_seeds(runs: Sequence[ReportRun]) -> str:
    """How many seeds there are, of each sweep where they differ."""
    counts = {run.label: f"{run.ds.sizes['seed']:,}" for run in runs}
    if len(set(counts.values())) == 1:
        return f"Seeds: {next(iter(counts.values()))}."
    return f"Seeds: {', '.join(f'{count} of {label}' for label, count in counts.items())}."


def differences(runs: Sequence[ReportRun]) -> PageTable:
    """Paired differences between algorithms, with their intervals drawn to one scale."""
    found, all_pairs = [], True
    for run in runs:
        labels = [str(label) for label in run.ds["algorithm"].values]
        few = len(labels) <= MAX_PAIRED
        all_pairs &= few
        pairs = list(itertools.combinations(labels, 2)) if few else [(x, labels[0]) for x in labels[1:]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the note below says it
            parts = [statistics.compare(run.ds, a, b) for a, b in pairs]
        found.append((run, pd.concat(parts) if parts else pd.DataFrame()))
    frame = _stack_tables(found, "seeds")
    if frame.empty:
        return PageTable([], [], "One algorithm: there is nothing to compare it with.")
    doubtful = int((frame.pop("seeds_needed") > frame.pop("seeds")).sum())
    frame["p_holm"] = statistics.holm(frame["p_value"].to_numpy())
    frame.insert(frame.columns.get_loc("difference"), BARS, _bars(frame))
    frame = frame.drop(columns=["relative"] if frame["relative"].isna().all() else [])
    note = f"{_count_seeds(runs)} Mean regret of a less that of b over the same seeds: below zero, left of the line, "
    note += (
        "a is better. p: of a paired t test. Holm's: corrected for all rows of this table; up to 0.05, a and b differ."
    )
    if doubtful:
        note += f" {doubtful:,} of {len(frame):,} rows have too few seeds, or too few for skewed differences: "
        note += "their intervals may miss the mean in more than 5 of 100 cases, and their p be too small."
    if not all_pairs:
        note += f" Above {MAX_PAIRED} algorithms each is compared with the first one only."
    return _table(frame, note)


def _bars(frame: pd.DataFrame) -> list[Any]:
    """Low, mean and high of each row as places in [0, 200], with zero at 100."""
    ends = frame[["ci_low", "difference", "ci_high"]].to_numpy(float)
    reach = np.abs(ends[np.isfinite(ends)]).max(initial=0.0) or 1.0
    return [tuple(row) if np.isfinite(row).all() else None for row in (100 + 96 * ends / reach).round(2).tolist()]


def slopes(runs: Sequence[ReportRun]) -> PageTable:
    """Log-log slopes of regret against plays and against every numeric key, beside those of the bounds."""
    found, doubts = [], list[str]()
    for run in runs:
        keys = [d for d in grid_dims(run.ds) if run.ds[d].dtype.kind in "iuf" and run.ds.sizes[d] > 1 and d != "point"]
        for over in ["t", *keys]:
            for frame in _fit_slopes(run, over, doubts):
                frame.insert(1, AGAINST, "plays t" if over == "t" else key_name(over))
                # one table for all keys: a key that is fitted over has no value in its rows
                found.append((run, frame.drop(columns=[over], errors="ignore")))
    left_out = "Left out, for regret that is below zero or positive at fewer than two points: "
    doubt = f" {left_out}{', '.join(doubts)}." if doubts else ""
    if not found:
        return PageTable([], [], f"No slope can be fitted.{doubt}")
    note = (
        "Slope of the logarithm of mean regret against that of the column “against” (plays: the last decade of "
        "checkpoints), with a 95% bootstrap interval over seeds. Theory: the slope of the algorithm's regret bound in "
        "jaxbandits.theory at the same points, with the tuning of its theorem; a dash where there is none for it. "
        "A bound is above the regret, so that a lower slope does not contradict it, and it is about the horizon: a run "
        "that is tuned for one horizon may grow otherwise on the way."
    )
    return _table(_stack_tables(found), f"{note}{doubt}")


def _fit_slopes(run: ReportRun, over: str, doubts: list[str]) -> list[pd.DataFrame]:
    """The slopes of every algorithm that depends on `over`; the doubts get whose cannot be fitted."""
    constant = json.loads(run.ds.attrs.get("constant_along", "{}"))
    frames = []
    for i, label in enumerate(map(str, run.ds["algorithm"].values)):
        idle = constant.get(label, ())
        if over in idle:
            continue
        one = run.ds.isel(algorithm=[i]).isel({d: [0] for d in idle if d in run.ds.dims})
        try:
            frame = statistics.slope(one, over)
        except ValueError:
            doubts.append(f"“{label}” against {'plays t' if over == 't' else key_name(over)}")
            continue
        frames.append(_readable(frame.assign(theory=exponents(one, run.plan, over)), one))
    return frames


def judgements(runs: Sequence[ReportRun]) -> PageTable:
    """What policies would have earned on a log."""
    rows = list[list[TableCell]]()
    for run in runs:
        for row in () if run.offline is None else run.offline.to_dict("records"):
            cells = [TableCell(run.label)] if len(runs) > 1 else []
            for name, low, high in (("value", "low", "high"), ("difference", "difference_low", "difference_high")):
                ends = "–" if math.isnan(row[low]) else f"{number_words(row[low])} to {number_words(row[high])}"
                cells += [table_cell(row[name]), TableCell(ends, _order(row[low]))]
            cells.insert(-4, table_cell(row["policy"]))
            rows.append([*cells, *(table_cell(row[name]) for name in ("effective_size", "n", "estimator"))])
    heads = ["policy", "mean reward", "interval", "more than the first", "interval of that", "effective rows", "rows"]
    heads += ["estimator"]
    note = "What a policy would have earned a row, estimated on rows of the log that it was not trained on; the first "
    note += "row is what logged. Intervals are of the policies as they were trained, and not of luck in training. "
    note += "Policies were trained in a world whose model saw rows of the log in the clear: an epsilon is of a play "
    note += "there, and protects nobody in the log. A regret is of that world, which is only as good as its model."
    return PageTable(["sweep"] * (len(runs) > 1) + heads, rows, note if rows else "")


def diagnostics(runs: Sequence[ReportRun]) -> PageTable:
    """What algorithms and adversaries count, as means over seeds."""
    found = []
    for run in runs:
        names = [name for name, v in run.ds.data_vars.items() if set(v.dims) == {*run.ds["regret"].dims} - {"t"}]
        for name in names:
            array = run.ds[name].transpose(*run.ds["regret"].dims[:-1])
            mean, low, high = statistics.mean_interval(array.values)
            frame = tidy(array.isel(seed=0, drop=True), {OVER_SEEDS: mean, "ci_low": low, "ci_high": high})
            frame.insert(1, COUNTED, str(name).replace("_", " "))
            found.append((run, frame[~np.isnan(mean.ravel())]))
    if not (found := [(run, frame) for run, frame in found if len(frame)]):
        return PageTable([], [])
    note = "Counted by algorithms and adversaries in each run: mean and 95% interval over seeds."
    return _table(_stack_tables(found), note)


def _readable(frame: pd.DataFrame, ds: xr.Dataset) -> pd.DataFrame:
    """Without columns of keys that have one value."""
    return frame.drop(columns=[d for d in grid_dims(ds) if ds.sizes[d] == 1 and d in frame.columns])


def _stack_tables(found: Iterable[tuple[ReportRun, pd.DataFrame]], *kept: str) -> pd.DataFrame:
    """The tables of several runs below one another, with the name of each run where there are several.

    Without `seeds`, unless they are `kept`.
    """
    found = list(found)
    several = len({run.label for run, _ in found}) > 1
    frames = []
    for run, frame in found:
        frame = _readable(frame, run.ds).drop(columns={"seeds"} - {*kept}, errors="ignore")
        if several:
            frame.insert(0, SWEEP, run.label)
        frames += [frame] if len(frame) else []
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _table(frame: pd.DataFrame, note: str) -> PageTable:
    """A frame as cells; the keys of all sweeps stand before what is measured."""
    for name, (low, high) in SPANS.items():
        if low in frame:
            at = frame.columns.get_loc(low)
            frame.insert(at, name, list(zip(frame.pop(low), frame.pop(high), strict=True)))
    columns = sorted(map(str, frame.columns), key=NUMBER_COLUMNS.__contains__)
    makers = [_maker(column) for column in columns]
    shown = frame[columns][:MAX_ROWS].itertuples(index=False)
    rows = [[make(x) for make, x in zip(makers, row, strict=True)] for row in shown]
    if len(frame) > MAX_ROWS:
        note += f" The first {MAX_ROWS} of {len(frame):,} rows; `jb.summary` and its neighbours return all of them."
    return PageTable([COLUMN_HEADS.get(column, key_name(column)) for column in columns], rows, note)


def _maker(column: str) -> Callable[[Any], TableCell]:
    if column == SWEEP:
        return TableCell
    if column == BARS:
        return lambda x: TableCell("", None if x is None else x[1], x)
    if column in SPANS:
        span = lambda low, high: "–" if math.isnan(low) else f"{number_words(low)} to {number_words(high)}"
        return lambda x: TableCell(span(*x), _order(x[0]))
    if column in ("p_value", "p_holm"):
        return lambda x: TableCell("–" if math.isnan(x) else f"{x:.2g}" if x >= 1e-4 else "< 0.0001", _order(x))
    if column in ("relative", "share_lower", "right_answers"):
        return lambda x: TableCell("–" if math.isnan(x) else f"{number_words(float(f'{100 * x:.3g}'))}%", _order(x))
    measured = column in (*NUMBER_COLUMNS, *SPENT)
    return table_cell if measured else lambda x: table_cell(x, key_number)


def table_cell(x: object, text: Callable[[Any], str] = number_words) -> TableCell:
    """A number or a text as a cell."""
    if isinstance(x, bool | np.bool_):
        return TableCell("yes" if x else "no", float(x))
    if isinstance(x, int | float | np.number):
        return TableCell(text(x), _order(x))
    return TableCell(cut(" ".join(str(x).split())))


def _order(x: float | np.number[Any]) -> float | None:
    x = float(x)
    return None if math.isnan(x) else max(min(x, 1e300), -1e300)


# ---- what theory offers: log-log slopes of the bounds of `jaxbandits.theory` at a sweep's own points

Known = Mapping[str, Any]  # an algorithm's arguments and what its environment fixes
BoundFunction = Callable[[Known], float]


def _bound_function(function: Callable[..., Any], part: str | None = None, **renamed: str) -> BoundFunction:
    """A bound as a function of what is known; renamed: arguments of it that algorithms call otherwise."""

    def evaluate_bound(known: Known) -> float:
        names = {name: renamed.get(name, name) for name in inspect.signature(function).parameters}
        given = {name: known[other] for name, other in names.items() if known.get(other) is not None}
        value = function(**given)
        return float(value[part] if part else value)

    return evaluate_bound


CONVERSIONS: dict[str, BoundFunction] = {
    "htinf": _bound_function(theory.arms_rates, "conversion"),
    "exp3": _bound_function(theory.exp3_corrected_bound),
    "ftpl": _bound_function(theory.ftpl_bound),
}
FEDERATED: dict[tuple[Any, ...], BoundFunction] = {
    (None, "geometric_median"): _bound_function(theory.byzantine_ucb_bound),
    ("tree", "geometric_median"): _bound_function(theory.byzantine_ucb_dp_bound),
    ("tree", "median_of_means"): _bound_function(theory.byzantine_ucb_dp_mom_bound),
}
ELIMINATIONS: dict[tuple[Any, ...], BoundFunction] = {
    ("M1", True): _bound_function(theory.robust_linear_reward_bound),
    ("M1", False): _bound_function(theory.robust_linear_reward_bound, corruption="corruption_bound"),
    ("M2", True): _bound_function(theory.robust_linear_action_bound),
}
PRM_BOUNDS: dict[str, Callable[..., Any]] = {"raw": theory.prm_raw_bound, "central": theory.prm_central_bound}
# algorithm -> the theorem's bound; None where the theorem is about other settings
BOUNDS: dict[str, Callable[[Known], BoundFunction | None]] = {
    "private_batched": lambda known: CONVERSIONS.get(unwrap(known["base"]).name),
    "ldp_exp3": lambda known: _bound_function(theory.arms_rates, "existing"),
    "bandit_to_experts": lambda known: _bound_function(theory.experts_rates, "bandit_to_experts"),
    "local_exp4": lambda known: _bound_function(theory.experts_rates, "local_exp4"),
    "batched_exp4": lambda known: _bound_function(theory.experts_rates, "batched_exp4"),
    "prm_elimination": lambda known: _bound_function(PRM_BOUNDS[known["moment"]]),
    "byzantine_ucb": lambda known: FEDERATED.get((known["privacy"], known["aggregate"])),
    "robust_elimination": lambda known: ELIMINATIONS.get((known["model"], known["corruption_bound"] == 0)),
    "cw_oful": lambda known: _bound_function(theory.cw_bound),
}


def bound_at(plan: Plan, place: tuple[Any, ...], horizon: int | None = None) -> float:
    """The bound on regret that theory has for an algorithm at a place `(label, *indices)`; NaN where it has none."""
    cell = plan.cells[plan.places[place]]
    known: dict[str, Any] = {**cell.environment.facts, **cell.algorithm.config, "horizon": horizon or cell.horizon}
    try:
        function = BOUNDS.get(str(known.get("name")), lambda known: None)(known)
        return math.nan if function is None else function(known)
    except (KeyError, TypeError, ValueError, ArithmeticError):  # outside the theorem's range, or a user's wrapper
        return math.nan


def exponents(ds: xr.Dataset, plan: Plan | None, over: str) -> list[float]:
    """What `statistics.slope(ds, over)` finds for the bounds instead of the regret, row by row; NaN without theory."""
    dims = grid_dims(ds)
    others = [d for d in dims if d != over]
    found = []
    for label, *at in itertools.product(map(str, ds["algorithm"].values), *(range(ds.sizes[d]) for d in others)):
        here, x = dict(zip(others, at, strict=True)), ds[over].values.astype(float)
        if plan is None or label not in plan.labels:
            found.append(math.nan)
            continue
        if over == "t":
            x = x[x <= plan.cells[plan.places[label, *at]].horizon]
            bounds = [bound_at(plan, (label, *at), int(t)) for t in x]
        else:
            bounds = [bound_at(plan, (label, *((here | {over: i})[d] for d in dims))) for i in range(len(x))]
        values = np.array([bounds])
        use = statistics.points_to_fit(values, x, over)
        found.append(float(statistics.log_slopes(x[use], values[:, use])[0]) if use.sum() > 1 else math.nan)
    return found
