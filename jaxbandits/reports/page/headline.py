"""The headline of a report: what the sweep answers, in a sentence or two with intervals."""

import json
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbandits import algorithms, intervals, spending, statistics
from jaxbandits.formatting import compact
from jaxbandits.regret import rival_of
from jaxbandits.reports.page.runs import ReportRun
from jaxbandits.reports.page.words import key_name, listing, number_words
from jaxbandits.selection import ANSWERS, final_regret, grid_dims, right_answers, unit_of

MODELS = ("central", "federated", "shuffle", "local")
NARROW_SHARE = 0.1  # an interval that is narrower than this share of its ratio is said with three digits


class Privates(NamedTuple):
    """The private algorithms of a sweep over epsilon, and the regrets that are compared."""

    values: np.ndarray[Any, Any]  # of epsilon
    final: xr.DataArray  # regret at the end (algorithm, epsilon, other keys..., seed), other keys as one axis
    others: list[str]  # keys that have several values beside epsilon
    models: dict[str, str]  # label -> model, of those that are asked for the axis's epsilon at every value
    spent: dict[str, np.ndarray[Any, Any]]  # label -> the largest epsilon that is spent at each value
    unit: str  # of regret, in the plural


def headline(run: ReportRun) -> str:
    """What privacy costs where a sweep says that, else which algorithm has the least regret; then what that means."""
    found = _privates(run) if run.ds.sizes["seed"] > 1 else None
    private, names, said = json.loads(run.ds.attrs.get("guarantees", "{}")), run.config.get("algorithms", {}), ""
    if found is not None:
        # an algorithm of the package that has no guarantee: of a user's own it is not known
        free = [x for x in found.spent if x not in private and dict(names.get(x, {})).get("name") in algorithms.__all__]
        said = _price(found, free) if free else _growth(found)
    return " ".join(filter(None, (said or _least(run), answers_in_words(run), like_uniform(run))))


# ---- right answers, and uniform play


def answers_in_words(run: ReportRun) -> str:
    """Of labelled rows, the share that each algorithm names right, from the least to the most over the grid."""
    if unit_of(run.ds) != ANSWERS or run.ds.sizes.get("horizon", 1) > 1:
        return ""
    best, shares = right_answers(run.ds.assign(regret=0 * run.ds["regret"])), right_answers(run.ds)
    ends = lambda x: " to ".join(dict.fromkeys(f"{float(y):.0%}" for y in (x.min(), x.max())))
    said = [f"“{x}” {ends(shares.sel(algorithm=x).mean('seed'))}" for x in shares["algorithm"].values]
    rival = rival_of(run.ds["regret"].attrs.get("long_name", ""))
    said.append(f"the {rival} {ends(best.mean([d for d in best.dims if d == 'seed']))}")
    return f"Share of right answers: {listing(said)}."


def like_uniform(run: ReportRun) -> str:
    """Which private learners do no better than uniform play, where that plays or its expected regret is known."""
    ds, names, said = run.ds, run.config.get("algorithms", {}), list[str]()
    labels, private = [str(x) for x in ds["algorithm"].values], json.loads(ds.attrs.get("guarantees", "{}"))
    varied = any(str(d) in ("horizon", "point") or str(d).startswith("environment.") for d in ds.dims)
    facts = run.plan.cells[0].environment.facts if run.plan and not varied else {}
    mean = 1 / ds.sizes["arm"] if unit_of(ds) == ANSWERS and not varied else np.mean(facts.get("means", np.nan))
    base = (ds.get("best_reward", np.nan) - mean * ds["t"]).isel(t=-1)  # NaN where it is not known
    for label in [x for x in labels if dict(names.get(x, {})).get("name") == "uniform"]:
        base = final_regret(ds).sel(algorithm=label)
    for label in [x for x in labels if x in private]:
        more = (final_regret(ds).sel(algorithm=label) - base).transpose(..., "seed").values
        _, low, high = statistics.mean_interval(more)
        alike = np.ravel(high >= 0)
        if alike.any():
            where = "" if alike.all() else f" at {alike.sum()} of {alike.size} settings"
            does = "is worse than" if (np.ravel(low)[alike] > 0).all() else "is not told apart from"
            said.append(f"“{label}” {does} uniform play{where}.")
    return " ".join(said)


# ---- privacy


def _privates(run: ReportRun) -> Privates | None:
    """What a grid over epsilon is about; None where there is none, or the Dataset does not say what is private."""
    ds = run.ds
    keys = [d for d in grid_dims(ds) if d.rpartition(".")[2] == "epsilon" and ds.sizes[d] > 1]
    if len(keys) != 1 or ds[keys[0]].dtype.kind not in "iuf" or not spending.has_spending(ds):
        return None
    (key,) = keys
    claims, values = json.loads(ds.attrs.get("guarantees", "{}")), ds[key].values.astype(float)
    dims = ("algorithm", *grid_dims(ds))
    at = [d for d in dims if d not in ("algorithm", key)]
    shape = (ds.sizes["algorithm"], len(values), -1)
    arrays = (spending.coordinate_array(ds, name) for name in (spending.ASKED, spending.EPSILON))
    asked, spent = (np.moveaxis(x, dims.index(key), 1).reshape(shape) for x in arrays)
    labels = [str(label) for label in ds["algorithm"].values]
    as_asked = (asked == values[:, None]).all((1, 2))
    private = [label for label, same in zip(labels, as_asked, strict=True) if same and label in claims]
    models = {label: claims[label]["model"] for label in private}
    final = final_regret(ds).rename({key: "value"})
    final = final.stack(other=at) if at else final.expand_dims("other")
    final, others = final.transpose("algorithm", "value", "other", "seed"), [d for d in at if ds.sizes[d] > 1]
    return Privates(values, final, others, models, dict(zip(labels, spent.max(-1), strict=True)), unit_of(ds))


def _price(found: Privates, free: list[str]) -> str:
    """How many times the regret without privacy the best private algorithm of each model has.

    Said at epsilon = 1, or what is nearest to it, and at the smallest epsilon. free: the algorithms without privacy.
    """
    finite = [i for i, x in enumerate(found.values) if 0 < x < np.inf]
    if not finite:
        return ""
    shown = min(finite, key=lambda i: (abs(np.log(found.values[i])), i))
    least = min(finite, key=found.values.__getitem__)
    base = _best(found, free, shown)
    whose = f" the regret without privacy (“{base}”{f', the best of {len(free)}' if len(free) > 1 else ''})"
    sentences, doubtful = [], False
    for i in dict.fromkeys((shown, least)):
        said: list[str] = []
        for model in MODELS:
            if own := _of_model(found, model, i):
                label = _best(found, own, i)
                amount, doubt = _compare_regrets(found, (label, i), (base, i))
                doubtful |= doubt
                than = (" than" if amount.endswith("more") else "") + whose if not said else ""
                if i == shown:
                    best = f", the best of {len(own)}" if len(own) > 1 else ""
                    said.append(f"{amount}{than} in the {model} model (“{label}”{best}{_spends(found, label, i)})")
                else:
                    said.append(f"{amount} with “{label}”{_spends(found, label, i)}")
        at = f"ε = {number_words(found.values[i])}"
        if said:
            sentences.append(f"{f'{at} costs' if i == shown else f'At {at}:'} {listing(said)}.")
        elif i == shown:
            return ""
    return " ".join(sentences) + _closing(found, doubtful)


def _growth(found: Privates) -> str:
    """How much regret grows from the largest epsilon to the smallest, where nothing may be without privacy."""
    low, high = int(np.argmin(found.values)), int(np.argmax(found.values))
    said, doubtful = list[str](), False
    for model in MODELS:
        if own := _of_model(found, model, low, high):
            label = _best(found, own, low)
            amount, doubt = _compare_regrets(found, (label, low), (label, high))
            doubtful |= doubt
            than = " than" if amount.endswith("more") else ""
            of = f"{than} the regret of ε = {number_words(found.values[high])}" if not said else ""
            said.append(f"{amount}{of} for “{label}”")
    if not said:
        return ""
    costs = f"ε = {number_words(found.values[low])} costs {listing(said)}."
    none = "No algorithm here is known to be without privacy, so that this does not say what privacy costs."
    return f"{costs} {none}{_closing(found, doubtful)}"


def _of_model(found: Privates, model: str, *at: int) -> list[str]:
    """The algorithms of a model that spend no more than they are asked for at some values of epsilon."""

    def spends_as_asked(label: str) -> bool:
        spent, asked = found.spent[label][[*at]], found.values[[*at]]
        return not (spending.spends_differently(asked, spent) & (spent > asked)).any()

    return [label for label, its in found.models.items() if its == model and spends_as_asked(label)]


def _best(found: Privates, labels: list[str], i: int) -> str:
    """The label of least mean regret at an epsilon, over all other settings."""
    means = found.final.isel(value=i).sel(algorithm=labels).mean(("other", "seed")).values
    return labels[int(np.argmin(np.where(np.isnan(means), np.inf, means)))]


def _compare_regrets(found: Privates, a: tuple[str, int], b: tuple[str, int]) -> tuple[str, bool]:
    """How many times the regret of b that of a is, or how much more, where b may have none; whether seeds are few."""
    left, right = (found.final.sel(algorithm=label).isel(value=i).values for label, i in (a, b))
    ratio, low, high = intervals.of_ratio(left, right)
    if np.isnan(ratio).any():
        mean, low, high = statistics.mean_interval(left - right)
        needed = intervals.seeds_needed(left - right)
        ends = dict.fromkeys((int(np.argmin(mean)), int(np.argmax(mean))))
        rows = [[number_words(x[k]) for x in (mean, low, high)] for k in ends]
        words = ["{0} {3} ({1} to {2}) more".format(*row, found.unit) for row in rows]
    else:
        needed = intervals.seeds_needed(left - ratio[:, None] * right)
        ends = dict.fromkeys((int(np.argmin(ratio)), int(np.argmax(ratio))))
        words = [_times(ratio[k], low[k], high[k]) for k in ends]
    finite = needed[np.isfinite(needed)]
    return " to ".join(words), bool((finite > left.shape[-1]).any())


def _times(ratio: float, low: float, high: float) -> str:
    digits = 3 if high - low < NARROW_SHARE * ratio else 2
    ratio_text, low_text, high_text = (compact(float(f"{x:.{digits}g}")) for x in (ratio, low, high))
    return f"{ratio_text} times ({low_text} to {high_text})"


def _spends(found: Privates, label: str, i: int) -> str:
    spent = found.spent[label][i]
    return f", which spends ε = {number_words(spent)}" if spending.spends_differently(found.values[i], spent) else ""


def _closing(found: Privates, doubtful: bool) -> str:
    """What a price is over, and whether its intervals are to be doubted."""
    said = ""
    if found.others:
        said = f" From the least to the most over the settings of {listing([key_name(key) for key in found.others])}."
    if doubtful:
        seeds = found.final.sizes["seed"]
        said += f" {seeds} seeds are few: these intervals may miss more often than in 5 of 100 cases."
    return said


# ---- any sweep


def _least(run: ReportRun) -> str:
    """Which algorithm has the least mean regret, and how much the next one has; over a grid at how many points."""
    frame = statistics.summary(run.ds)
    keys = [d for d in grid_dims(run.ds) if run.ds.sizes[d] > 1]
    frame = frame[np.isfinite(frame["mean"])]
    if frame.empty or len(set(frame["algorithm"])) < 2:
        return ""
    if not keys:
        first, second = frame.sort_values("mean", kind="stable").to_dict("records")[:2]
        half = first["ci_high"] - first["mean"]
        said = f"Least mean regret at the end: “{first['algorithm']}”, {number_words(first['mean'])}"
        said += (f" ± {number_words(half)}" if half == half else "") + f" {unit_of(run.ds)}"
        said += ", which is better than the best fixed choice" if first["mean"] < 0 else ""
        final = final_regret(run.ds)
        sides = (final.sel(algorithm=row["algorithm"]).values.ravel() for row in (second, first))
        ratio: Any = intervals.of_ratio(*sides)
        more = f"; “{second['algorithm']}”, which is next, has {_times(*map(float, ratio))} as much"
        return f"{said}{'' if np.isnan(ratio).any() else more}."
    best = frame.loc[frame.groupby(keys)["mean"].idxmin()]
    counts = best["algorithm"].value_counts(sort=False)
    parts = [f"“{label}” at {count}" for label, count in counts.items()]
    where = f"“{counts.index[0]}” at all {len(best)}" if len(counts) == 1 else f"{listing(parts)} of {len(best)}"
    return f"Least mean regret at the end: {where} points of the grid."
