"""Tsallis-INF between stochastic and adversarial rewards: what a budget of corruption adds to its regret."""

from functools import partial
from typing import Any

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import provenance
from jaxbandits.papers.shared import regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

MEANS = [0.8, 0.6, 0.5, 0.3]
LEARNERS = {
    "Tsallis-INF": a.tsallis_inf,
    "HTINF": a.htinf,
    "EXP3": a.exp3,
    "UCB1": a.ucb1,
    "Thompson sampling": a.thompson,
}
QUICK = ("Tsallis-INF", "UCB1")
STRENGTHS: tuple[Any, ...] = ("strong", "weak")
BUDGET = "reward_adversary.total"


def sweeps(full: bool) -> dict[str, Sweep]:
    """Each learner at each budget, against an attack that sees the arm and one that does not."""
    settings: dict[str, Any] = {
        "algorithms": {label: one for label, one in LEARNERS.items() if full or label in QUICK},
        "environment": partial(e.bernoulli_arms, means=MEANS), "horizon": 50_000 if full else 1000,
        "seeds": 200 if full else 4, "checkpoints": 1,
        "grid": {BUDGET: [0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0] if full else [0.0, 100.0]},
    }  # fmt: skip
    return {
        strength: Sweep(settings | {"reward_adversary": partial(v.budgeted, strength=strength)})
        for strength in (STRENGTHS if full else ("strong",))
    }


def draw(strength: str, results: Results) -> plot.Plot:
    """Regret against the budget."""
    caption = f"Bernoulli arms {MEANS}; the budget is {strength} and spent early on the best arm"
    ds = results[strength if strength in results else "strong"]
    ds = ds.sel({BUDGET: ds[BUDGET] > 0})  # a logarithmic axis
    return plot.against(ds, BUDGET, names={BUDGET: "budget C"}, caption=caption, width=6.0)


def claims(results: Results) -> list[Claim]:
    """Regret by budget, and what a unit of the budget costs."""
    entries = []
    for strength, ds in results.items():
        final = final_regret(ds)
        for label, part in regrets(ds).groupby("algorithm", sort=False):
            points = ", ".join(f"{row['mean']:,.0f} at {row[BUDGET]:g}" for row in part.to_dict("records"))
            entries.append(Claim(f"{strength}: regret of {label}, by C", "", points))
        ours = final.sel(algorithm="Tsallis-INF")
        parts = []
        for budget in ds[BUDGET].values[1:]:
            mean, low, high = mean_interval(((ours.sel({BUDGET: budget}) - ours.sel({BUDGET: 0.0})) / budget).values)
            parts.append(f"{mean:.2f} [{low:.2f}, {high:.2f}] at {budget:g}")
        said = provenance.records()["tsallis_inf_corrupted"].said("of order C and √(C Σ ln T/Δ)")
        entries.append(Claim(f"{strength}: Tsallis-INF, regret added by a unit of C", said, ", ".join(parts)))
    return entries


STUDY = Study(
    "Tsallis-INF between stochastic and adversarial rewards",
    "docs/formulas/robust_frontier.md#robust-frontier-budgets",
    sweeps,
    {"strong": partial(draw, "strong"), "weak": partial(draw, "weak")},
    claims,
)
