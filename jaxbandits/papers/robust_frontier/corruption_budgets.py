"""Told the budget of an attack, told a wrong one, told nothing: regret against what the attacker may spend."""

from functools import partial
from typing import Any

import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import ratio_interval, regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

MEANS = [0.8, 0.6, 0.5, 0.3]
FAILURE: dict[str, Any] = {"failure_prob": 0.05}
BELIEVED = 100.0
TOLD, BELIEVES, AGNOSTIC = "elimination told C", "elimination believing C = 100", "elimination told nothing"
LEARNERS = {
    "UCB1": a.ucb1,
    "Tsallis-INF": a.tsallis_inf,
    TOLD: partial(a.stopping_elimination, **FAILURE),
    BELIEVES: partial(a.stopping_elimination, corruption_budget=BELIEVED, **FAILURE),
    AGNOSTIC: partial(a.stopping_elimination, **FAILURE),
    "multi-layer race of half width": partial(a.multilayer_elimination, width_scale=0.5, **FAILURE),
    "BARBAR of 1/256 length": partial(a.barbar, length_scale=1 / 256, **FAILURE),
}
QUICK = ("UCB1", TOLD, AGNOSTIC)
ATTACKS: dict[str, tuple[Any, Any]] = {  # by name: strength and schedule
    "strong-early": ("strong", "early"), "strong-burst": ("strong", "burst"), "weak-early": ("weak", "early"),
}  # fmt: skip
SPENT, BUDGET = "corruption_spent", "reward_adversary.total"


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every learner under each attack, at each budget."""
    budgets = [0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0] if full else [0.0, 100.0]
    settings: dict[str, Any] = {
        "algorithms": {label: one for label, one in LEARNERS.items() if full or label in QUICK},
        "environment": partial(e.bernoulli_arms, means=MEANS), "horizon": 20_000 if full else 1000,
        "seeds": 200 if full else 4, "checkpoints": 1, "grid": {(BUDGET, f"{TOLD}.corruption_budget"): budgets},
    }  # fmt: skip
    return {
        name: Sweep(settings | {"reward_adversary": partial(v.budgeted, strength=strength, schedule=schedule)})
        for name, (strength, schedule) in ATTACKS.items()
    }


def words(name: str) -> str:
    """The strength and the schedule of an attack, for reading."""
    return name.replace("-", ", ")


def draw(name: str, results: Results) -> plot.Plot:
    """Regret against the budget of one attack."""
    caption = f"Bernoulli arms {MEANS}; the attack: {words(name)}"
    ds = results[name]
    ds = ds.sel({BUDGET: ds[BUDGET] > 0})  # a logarithmic axis
    return plot.against(ds, BUDGET, names={BUDGET: "budget C"}, caption=caption, width=6.0)


def _spent(ds: xr.Dataset) -> str:
    """What the attack spent of `BELIEVED`, by learner."""
    spent = ds[SPENT].sel({BUDGET: BELIEVED}).mean("seed")
    return ", ".join(f"{label} {float(spent.sel(algorithm=label)):.0f}" for label in ds["algorithm"].values)


def claims(results: Results) -> list[Claim]:
    """Regret by budget, what was spent, and what it is worth to be told."""
    entries = []
    for name, ds in results.items():
        for label, part in regrets(ds).groupby("algorithm", sort=False):
            points = ", ".join(f"{row['mean']:,.0f} at {row[BUDGET]:g}" for row in part.to_dict("records"))
            entries.append(Claim(f"{words(name)}: regret of {label}, by C", "", points))
        entries.append(Claim(f"{words(name)}: spent of a budget of {BELIEVED:g}", "", _spent(ds)))
        final = final_regret(ds).transpose("algorithm", BUDGET, "seed")
        ratio, low, high = ratio_interval(final.sel(algorithm=AGNOSTIC).values, final.sel(algorithm=TOLD).values)
        rows = zip(ratio, low, high, ds[BUDGET].values, strict=True)
        measured = ", ".join(f"{x:.2f} [{y:.2f}, {z:.2f}] at {c:g}" for x, y, z, c in rows)
        entries.append(Claim(f"{words(name)}: elimination told nothing over told C", "", measured))
    return entries


STUDY = Study(
    "Budgets of corruption: told, told wrongly, told nothing",
    "docs/formulas/robust_frontier.md#robust-frontier-budgets",
    sweeps,
    {
        "early": partial(draw, "strong-early"),
        "burst": partial(draw, "strong-burst"),
        "weak": partial(draw, "weak-early"),
    },
    claims,
)
