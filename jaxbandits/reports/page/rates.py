"""The exponents that theory offers: log-log slopes of the bounds of `jaxbandits.theory` at a sweep's own points."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandits import statistics, theory
from jaxbandits.selection import grid_dims
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.wording import name_of

Known = Mapping[str, Any]  # an algorithm's arguments and what its environment fixes
Bound = Callable[[Known], float]


def _bound(function: Callable[..., Any], part: str | None = None, **renamed: str) -> Bound:
    """A bound as a function of what is known; renamed: arguments of it that algorithms call otherwise."""

    def bound(known: Known) -> float:
        names = {name: renamed.get(name, name) for name in inspect.signature(function).parameters}
        given = {name: known[other] for name, other in names.items() if known.get(other) is not None}
        value = function(**given)
        return float(value[part] if part else value)

    return bound


CONVERSIONS: dict[str, Bound] = {
    "htinf": _bound(theory.arms_rates, "conversion"),
    "exp3": _bound(theory.exp3_corrected_bound),
    "ftpl": _bound(theory.ftpl_bound),
}
FEDERATED: dict[tuple[Any, ...], Bound] = {
    (None, "geometric_median"): _bound(theory.byzantine_ucb_bound),
    ("tree", "geometric_median"): _bound(theory.byzantine_ucb_dp_bound),
    ("tree", "median_of_means"): _bound(theory.byzantine_ucb_dp_mom_bound),
}
ELIMINATIONS: dict[tuple[Any, ...], Bound] = {
    ("M1", True): _bound(theory.robust_linear_reward_bound),
    ("M1", False): _bound(theory.robust_linear_reward_bound, corruption="corruption_bound"),
    ("M2", True): _bound(theory.robust_linear_action_bound),
}
# algorithm -> the theorem's bound; None where the theorem is about other settings
BOUNDS: dict[str, Callable[[Known], Bound | None]] = {
    "private_batched": lambda known: CONVERSIONS.get(name_of(known["base"])),
    "ldp_exp3": lambda known: _bound(theory.arms_rates, "existing"),
    "bandit_to_experts": lambda known: _bound(theory.experts_rates, "bandit_to_experts"),
    "local_exp4": lambda known: _bound(theory.experts_rates, "local_exp4"),
    "batched_exp4": lambda known: _bound(theory.experts_rates, "batched_exp4"),
    "prm_elimination": lambda known: _bound(
        theory.prm_raw_bound if known["moment"] == "raw" else theory.prm_central_bound
    ),
    "byzantine_ucb": lambda known: FEDERATED.get((known["privacy"], known["aggregate"])),
    "robust_elimination": lambda known: ELIMINATIONS.get((known["model"], known["corruption_bound"] == 0)),
    "cw_oful": lambda known: _bound(theory.cw_bound),
}


def bound(plan: Plan, place: tuple[Any, ...], horizon: int | None = None) -> float:
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
    others = [d for d in grid_dims(ds) if d != over]
    found = []
    for label in map(str, ds["algorithm"].values):
        for at in np.ndindex(*(ds.sizes[d] for d in others)):
            here = dict(zip(others, at, strict=True))
            if plan is None or label not in plan.labels:
                found.append(math.nan)
            elif over == "t":
                place = (label, *at)
                last = plan.cells[plan.places[place]].horizon
                t = ds["t"].values[ds["t"].values <= last]
                found.append(_exponent([bound(plan, place, int(x)) for x in t], t, "t"))
            else:
                where = ((label, *((here | {over: i})[d] for d in grid_dims(ds))) for i in range(ds.sizes[over]))
                found.append(_exponent([bound(plan, place) for place in where], ds[over].values, over))
    return found


def _exponent(values: Sequence[float], x: Any, over: str) -> float:
    """The slope of values against x by the fit that regret has."""
    values, x = np.array([values]), np.asarray(x, float)
    use = statistics.fitted_points(values, x, over)
    return float(statistics.log_slopes(x[use], values[:, use])[0]) if use.sum() > 1 else math.nan
