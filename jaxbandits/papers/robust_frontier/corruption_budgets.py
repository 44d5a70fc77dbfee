"""Told the budget of an attack, told a wrong one, told nothing: regret against what the attacker may spend."""

from functools import partial
from typing import Any

import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import by_algorithm, points, ratios
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
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
ATTACKS: dict[str, dict[str, Any]] = {
    "strong-early": {"strength": "strong", "schedule": "early"},
    "strong-burst": {"strength": "strong", "schedule": "burst"},
    "weak-early": {"strength": "weak", "schedule": "early"},
}
SPENT, BUDGET = "corruption_spent", "reward_adversary.total"


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every learner under each attack, at each budget."""
    budgets = [0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0] if full else [0.0, 100.0]
    arms = partial(e.bernoulli_arms, means=MEANS)
    horizon, seeds = (20_000, 200) if full else (1000, 4)
    learners, grid = few(LEARNERS, full, QUICK), {(BUDGET, f"{TOLD}.corruption_budget"): budgets}
    attacks = {name: partial(v.budgeted, **attack) for name, attack in ATTACKS.items()}
    return {
        name: swept(learners, arms, horizon, seeds, grid=grid, reward_adversary=attack)
        for name, attack in attacks.items()
    }


def words(name: str) -> str:
    """The strength and the schedule of an attack, for reading."""
    return name.replace("-", ", ")


def draw(name: str, results: Results) -> plot.Plot:
    """Regret against the budget of one attack."""
    return against_budget(results[name], f"Bernoulli arms {MEANS}; the attack: {words(name)}")


def against_budget(ds: xr.Dataset, caption: str) -> plot.Plot:
    """Regret against the budget, from the first that is none: the axis is logarithmic."""
    ds = ds.sel({BUDGET: ds[BUDGET] > 0})
    return plot.against(ds, BUDGET, names={BUDGET: "budget C"}, caption=caption, width=6.0)


def claims(results: Results) -> Claims:
    """Regret by budget, what was spent, and what it is worth to be told."""
    for attack, ds in results.items():
        name = words(attack)
        spent = ds[SPENT].sel({BUDGET: BELIEVED}).mean("seed")
        yield from by_algorithm(ds, BUDGET, f"{name}: regret of {{}}, by C".format)
        measured = points(ds["algorithm"], spent, "{x} {y:.0f}")
        yield Claim(f"{name}: spent of a budget of {BELIEVED:g}", "", measured)
        told = ratios(final_regret(ds), AGNOSTIC, TOLD, BUDGET)
        yield Claim(f"{name}: elimination told nothing over told C", "", told)


STUDY = Study(
    "Budgets of corruption: told, told wrongly, told nothing",
    "docs/formulas/robust_frontier.md#robust-frontier-budgets", sweeps,
    {
        "early": partial(draw, "strong-early"),
        "burst": partial(draw, "strong-burst"),
        "weak": partial(draw, "weak-early"),
    },
    claims,
)  # fmt: skip
