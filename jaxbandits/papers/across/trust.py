"""Whom to trust: elimination of arms with a trusted server, with secure aggregation, and with nobody, at the same
spent epsilon.
"""

import math
from functools import partial
from typing import Any

from scipy.optimize import brentq

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.across.atlas import INSTANCES
from jaxbandits.papers.shared import ratios, regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.theory import skellam_epsilon

MEANS = INSTANCES["easy"]
SERVER, LAPLACE, SKELLAM = "server, DP-SE", "aggregation, Laplace", "aggregation, Skellam"
BITS, LDP_UCB, NOBODY = "nobody, elimination on bits", "nobody, LDP-UCB", "without privacy"
PRECISION, DELTA = 10.0, 1e-5  # of Skellam noise, which alone has a delta
TRUSTED = {
    NOBODY: partial(a.successive_elimination, noise_scale=0.5),
    SERVER: a.dp_se,
    LAPLACE: a.dist_elimination,
    SKELLAM: partial(a.dist_elimination, noise="skellam", precision_scale=PRECISION, delta=DELTA),
    BITS: partial(a.local_robust_elimination, moment_order=math.inf),
    LDP_UCB: partial(a.ldp_ucb, mechanism="randomized_response"),
}
QUICK = (NOBODY, LAPLACE, BITS)


def nominal(spent: float) -> float:
    """The epsilon that Skellam noise is to be given to spend this one at DELTA."""
    return float(brentq(lambda x: skellam_epsilon(x, PRECISION, DELTA) - spent, spent / 50, spent))


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every model of trust at each epsilon."""
    spent = [0.1, 0.2, 0.5, 1.0, 2.0] if full else [0.5, 2.0]
    algorithms = {label: one for label, one in TRUSTED.items() if full or label in QUICK}
    values: dict[str, Any] = {f"{x:g}": x for x in spent}
    grid: dict[Any, Any] = {"epsilon": values}
    if full:
        grid = {("epsilon", f"{SKELLAM}.epsilon"): {label: (x, nominal(x)) for label, x in values.items()}}
    settings = {
        "algorithms": algorithms, "environment": partial(e.bernoulli_arms, means=MEANS), "grid": grid,
        "horizon": 200_000 if full else 2000, "seeds": 200 if full else 4, "checkpoints": 1,
    }  # fmt: skip
    return {"models": Sweep(settings)}


def by_budget(results: Results):
    """The Dataset along `epsilon`, what is spent, as numbers."""
    ds = results["models"]
    return ds.assign_coords(epsilon=[float(x) for x in ds["epsilon"].values])


def draw(results: Results) -> plot.Plot:
    """Regret against what is spent."""
    caption = f"Bernoulli arms {MEANS}; at the same spent ε, Skellam noise at δ = {DELTA:g}"
    return plot.against(by_budget(results), "epsilon", names={"epsilon": "spent ε"}, caption=caption, width=6.0)


def claims(results: Results) -> list[Claim]:
    """Regret of every model, and of the models without a server over secure aggregation."""
    ds, entries = by_budget(results), []
    for epsilon, part in regrets(ds).groupby("epsilon"):
        measured = ", ".join(f"{row.algorithm} {row.mean:,.0f}" for row in part.itertuples())
        entries.append(Claim(f"regret at ε = {epsilon:g} spent", "", measured))
    final = final_regret(ds)
    for label in (SERVER, BITS):
        if label in final["algorithm"].values:
            entries.append(Claim(f"{label} over {LAPLACE}", "", ratios(final, label, LAPLACE)))
    return entries


STUDY = Study(
    "Whom to trust: server, secure aggregation, nobody",
    "docs/formulas/private_frontier.md#secure-aggregation",
    sweeps,
    {"models": draw},
    claims,
)
