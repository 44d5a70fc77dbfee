"""Linear bandits whose rewards are attacked within a budget: weights told C, told a wrong one, told nothing."""

import math
from functools import partial
from typing import Any

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot

SHAPE: dict[str, Any] = {"num_arms": 10, "dim": 5}
NOISE = 0.5
RADIUS = 0.3  # of the printed radius: at 1 all learners explore for most of these plays
TOLD, BELIEVES, AGNOSTIC = "CW-OFUL told C", "CW-OFUL believing C = 30", "CW-OFUL told nothing"
LEARNERS = {
    "OFUL": partial(a.cw_oful, corruption_budget=0.0, radius_scale=RADIUS),
    TOLD: partial(a.cw_oful, radius_scale=RADIUS),
    BELIEVES: partial(a.cw_oful, corruption_budget=30.0, radius_scale=RADIUS),
    AGNOSTIC: partial(a.cw_oful, radius_scale=RADIUS),
}
BUDGET = "reward_adversary.total"


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every learner at each budget, spent early on the best arm of each play."""
    settings: dict[str, Any] = {
        "algorithms": LEARNERS,
        "environment": partial(e.contextual_linear, **SHAPE, reward="gaussian", noise_scale=NOISE),
        "horizon": 10_000 if full else 500, "seeds": 100 if full else 4, "checkpoints": 1,
        "grid": {(BUDGET, f"{TOLD}.corruption_budget"): [0.0, 3.0, 10.0, 30.0, 100.0, 300.0] if full else [0.0, 30.0]},
        "reward_adversary": partial(v.budgeted, low=-math.inf, high=math.inf),
    }  # fmt: skip
    return {"linear": Sweep(settings)}


def draw(results: Results) -> plot.Plot:
    """Regret against the budget."""
    caption = f"{SHAPE['num_arms']} fresh arms a play in {SHAPE['dim']} dimensions, Gaussian noise of {NOISE:g}"
    ds = results["linear"]
    ds = ds.sel({BUDGET: ds[BUDGET] > 0})  # a logarithmic axis
    return plot.against(ds, BUDGET, names={BUDGET: "budget C"}, caption=caption, width=6.0)


def claims(results: Results) -> list[Claim]:
    """Regret by budget."""
    return [
        Claim(
            f"regret of {label}, by C", "",
            ", ".join(f"{row['mean']:,.0f} at {row[BUDGET]:g}" for row in part.to_dict("records")),
        )
        for label, part in regrets(results["linear"]).groupby("algorithm", sort=False)
    ]  # fmt: skip


STUDY = Study(
    "Linear bandits under a budget of corruption",
    "docs/formulas/robust_frontier.md#cw-oful",
    sweeps,
    {"linear": draw},
    claims,
)
