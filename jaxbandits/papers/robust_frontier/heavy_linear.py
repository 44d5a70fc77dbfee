"""Linear bandits with heavy-tailed noise.

Clipped residuals against least squares, without an attack and with one that spends its budget early on the best arm.
"""

import math
from functools import partial
from typing import Any

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import BUDGET as TOTAL
from jaxbandits.papers.shared import points
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

SHAPE: dict[str, Any] = {"num_arms": 10, "dim": 5}
NOISE = 0.5
ORDER = 1.5  # of the moment that the learners are told: the Student and Pareto laws have no variance
OFUL_SCALE, HEAVY_SCALE = 0.3, 1e-4  # of the radii: the printed ones of Hvt-UCB play uniformly at these horizons
BUDGET = 50.0
UNBOUNDED = partial(v.budgeted, low=-math.inf, high=math.inf)  # linear rewards have no range
LAWS: dict[str, dict[str, Any]] = {
    "gaussian": {}, "student": {"df": 1.8}, "pareto": {"shape": 1.8}, "lognormal": {"sigma": 2.0},
}  # fmt: skip
QUICK_LAWS, QUICK = ("student",), ("OFUL", "CW-OFUL", "Hvt-LinUCB")


def environment(law: Any) -> Any:
    """Linear arms, fresh at each play, with noise of this law."""
    return e.contextual_linear(**SHAPE, reward=law, noise_scale=NOISE, **LAWS[law])


def learners(law: str) -> dict[str, Any]:
    """Least squares, with weights and without, and clipped residuals, told the moment of the law."""
    scale = environment(law).facts["noise_moment"](ORDER) ** (1 / ORDER)
    told = {"moment_order": ORDER, "moment_scale": scale, "radius_scale": HEAVY_SCALE}
    return {
        "OFUL": partial(a.cw_oful, corruption_budget=0.0, radius_scale=OFUL_SCALE),
        "CW-OFUL": partial(a.cw_oful, corruption_budget=BUDGET, radius_scale=OFUL_SCALE),
        "Hvt-LinUCB": partial(a.hvt_linucb, **told),
        "robust OFUL": partial(a.robust_oful, corruption_budget=BUDGET, **told),
    }


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (10_000, 100) if full else (300, 4)
    grid = {TOTAL: [0.0, BUDGET] if full else [0.0]}
    # curves need more checkpoints than the last
    more: dict[str, Any] = {"grid": grid, "reward_adversary": UNBOUNDED, "checkpoints": 200}
    return {
        law: swept(few(learners(law), full, QUICK), environment(law), horizon, seeds, **more)
        for law in (LAWS if full else QUICK_LAWS)
    }


def draw(law: str, results: Results) -> plot.Plot:
    """Regret curves without an attack."""
    shown = law if law in results else QUICK_LAWS[0]
    caption = f"{SHAPE['num_arms']} fresh arms a play in {SHAPE['dim']} dimensions, {shown} noise, no attack"
    return plot.regret(results[shown].sel({TOTAL: 0.0}), log="none", caption=caption, width=6.0)


def claims(results: Results) -> Claims:
    for law, ds in results.items():
        final = final_regret(ds).transpose("algorithm", TOTAL, "seed")
        for label in ds["algorithm"].values:
            one = final.sel(algorithm=label)
            both = [f"{row.mean():,.0f} (largest {row.max():,.0f})" for row in one.values]
            measured = points(one[TOTAL], both, "{y} at {x:g}")
            yield Claim(f"{law}: regret of {label}, by C", "", measured)


PICTURES = {law: partial(draw, law) for law in ("gaussian", "student", "pareto")}
STUDY = Study(__doc__, "docs/formulas/robust_frontier.md#robust-frontier-hvt-ucb", sweeps, PICTURES, claims)
