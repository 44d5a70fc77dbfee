"""Tsallis-INF between stochastic and adversarial rewards: what a budget of corruption adds to its regret."""

from functools import partial
from typing import Any

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import provenance
from jaxbandits.papers.robust_frontier.corruption_budgets import BUDGET, MEANS, against_budget
from jaxbandits.papers.shared import by_algorithm, points
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

LEARNERS = {
    "Tsallis-INF": a.tsallis_inf,
    "HTINF": a.htinf,
    "EXP3": a.exp3,
    "UCB1": a.ucb1,
    "Thompson sampling": a.thompson,
}
QUICK = ("Tsallis-INF", "UCB1")
STRENGTHS: tuple[Any, ...] = ("strong", "weak")


def sweeps(full: bool) -> dict[str, Sweep]:
    """Each learner at each budget, against an attack that sees the arm and one that does not."""
    budgets = [0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0] if full else [0.0, 100.0]
    horizon, seeds = (50_000, 200) if full else (1000, 4)
    against = partial(swept, few(LEARNERS, full, QUICK), partial(e.bernoulli_arms, means=MEANS), horizon, seeds)
    return {
        strength: against(grid={BUDGET: budgets}, reward_adversary=partial(v.budgeted, strength=strength))
        for strength in (STRENGTHS if full else ("strong",))
    }


def draw(strength: str, results: Results) -> plot.Plot:
    """Regret against the budget."""
    caption = f"Bernoulli arms {MEANS}; the budget is {strength} and spent early on the best arm"
    return against_budget(results[strength if strength in results else "strong"], caption)


def claims(results: Results) -> Claims:
    """Regret by budget, and what a unit of the budget costs."""
    for strength, ds in results.items():
        yield from by_algorithm(ds, BUDGET, f"{strength}: regret of {{}}, by C".format)
        ours = final_regret(ds).sel(algorithm="Tsallis-INF").transpose(BUDGET, "seed")
        budgets = ds[BUDGET].values[1:]
        added = mean_interval((ours.values[1:] - ours.values[0]) / budgets[:, None])
        parts = ["{:.2f} [{:.2f}, {:.2f}]".format(*row) for row in zip(*added, strict=True)]
        said = provenance.records()["tsallis_inf_corrupted"].said("of order C and √(C Σ ln T/Δ)")
        statement = f"{strength}: Tsallis-INF, regret added by a unit of C"
        yield Claim(statement, said, points(budgets, parts, "{y} at {x:g}"))


STUDY = Study(
    "Tsallis-INF between stochastic and adversarial rewards",
    "docs/formulas/robust_frontier.md#robust-frontier-budgets", sweeps,
    {"strong": partial(draw, "strong"), "weak": partial(draw, "weak")}, claims,
)  # fmt: skip
