"""A share of corrupted rewards: CRIMED, whose index knows the share, against other robust indices."""

from functools import partial
from typing import Any

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import percent
from jaxbandits.papers.shared import regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

MEANS = [1.0, 0.0, 0.0, -1.0]
LEARNERS = {
    "CRIMED": a.crimed,
    "CR-UCB, trimmed": a.cr_ucb,
    "CR-UCB, shorth": partial(a.cr_ucb, estimator="shorth"),
    "Huber-UCB": a.huber_ucb,
    "UCB1": a.ucb1,
}
QUICK = ("CRIMED", "CR-UCB, trimmed", "UCB1")
SIZE = 10.0
SHARE = "reward_adversary.corruption"


def sweeps(full: bool) -> dict[str, Sweep]:
    """Each learner, told the true share."""
    shares = [0.0, 0.02, 0.05, 0.1] if full else [0.0, 0.05]
    settings: dict[str, Any] = {
        "algorithms": {label: one for label, one in LEARNERS.items() if full or label in QUICK},
        "environment": partial(e.gaussian_arms, means=MEANS), "horizon": 3000 if full else 300,
        "seeds": 200 if full else 4, "checkpoints": 1, "grid": {(SHARE, "corruption_bound"): shares},
        "reward_adversary": partial(v.huber, kind="target", value=SIZE),
    }  # fmt: skip
    return {"shares": Sweep(settings)}


def draw(results: Results) -> plot.Plot:
    """Regret against the share."""
    caption = f"Gaussian arms {MEANS}; a corrupted reward is {-SIZE:g} on the best arm and {SIZE:g} on others"
    names = {SHARE: "share of corrupted rewards"}
    return plot.against(results["shares"], SHARE, names=names, caption=caption, width=6.0)


def claims(results: Results) -> list[Claim]:
    """Mean and median regret by share: a few runs may be bad."""
    ds, entries = results["shares"], []
    medians = final_regret(ds).median("seed")
    for label, part in regrets(ds).groupby("algorithm", sort=False):
        points = ", ".join(
            f"{row['mean']:,.0f} (median {float(medians.sel({'algorithm': label, SHARE: row[SHARE]})):,.0f}) "
            f"at {percent(row[SHARE])}"
            for row in part.to_dict("records")
        )
        entries.append(Claim(f"regret of {label}, by share", "", points))
    return entries


STUDY = Study(
    "A share of corrupted rewards",
    "docs/formulas/robust_frontier.md#crimed",
    sweeps,
    {"shares": draw},
    claims,
)
