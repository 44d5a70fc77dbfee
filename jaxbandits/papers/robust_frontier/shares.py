"""A share of corrupted rewards.

CRIMED, whose index knows the share, against other robust indices, all told the true share.
"""

from functools import partial

import numpy as np

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import percent
from jaxbandits.papers.shared import against, points
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
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
    horizon, seeds = (3000, 200) if full else (300, 4)
    shares = [0.0, 0.02, 0.05, 0.1] if full else [0.0, 0.05]
    attack = partial(v.huber, kind="target", value=SIZE)
    learners, arms = few(LEARNERS, full, QUICK), partial(e.gaussian_arms, means=MEANS)
    grid = {(SHARE, "corruption_bound"): shares}
    return {"shares": swept(learners, arms, horizon, seeds, grid=grid, reward_adversary=attack)}


PICTURE = against(
    "shares", SHARE, names={SHARE: "share of corrupted rewards"}, width=6.0,
    caption=f"Gaussian arms {MEANS}; a corrupted reward is {-SIZE:g} on the best arm and {SIZE:g} on others",
)  # fmt: skip


def claims(results: Results) -> Claims:
    """Mean and median regret by share: a few runs may be bad."""
    final = final_regret(results["shares"]).transpose("algorithm", SHARE, "seed")
    for label in final["algorithm"].values:
        both = [f"{row.mean():,.0f} (median {np.median(row):,.0f})" for row in final.sel(algorithm=label).values]
        yield Claim(f"regret of {label}, by share", "", points(map(percent, final[SHARE].values), both, "{y} at {x}"))


STUDY = Study(__doc__, "docs/formulas/robust_frontier.md#crimed", sweeps, {"shares": PICTURE}, claims)
