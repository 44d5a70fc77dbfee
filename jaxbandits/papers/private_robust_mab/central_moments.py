"""E2: Student rewards far from zero, under Cauchy contamination.

They are known only through a bound D on the means and a central moment.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.formatting import percent
from jaxbandits.papers.private_robust_mab.raw_moments import AXES
from jaxbandits.papers.shared import REWARD_SHARE, regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot

OFFSETS = np.array([-1.0, -3.0, 1.0, -2.0, 0.0])  # of the means from D / 2
EPSILON, SHARE = 0.5, 0.05
RAW = "PRM elimination, raw moment"


def sweeps(full: bool) -> dict[str, Sweep]:
    """One sweep a bound D."""
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    epsilons, shares = ([0.1, 0.5, 1.0], [0.0, 0.02, 0.05, 0.1]) if full else ([0.5, 1.0], [0.0, 0.05])
    return {
        f"D-{bound}": _one(bound, horizon, seeds, epsilons, shares) for bound in ((10, 100, 1000) if full else (10,))
    }


def _one(bound, horizon, seeds, epsilons, shares) -> Sweep:
    means = bound / 2 + OFFSETS
    central: dict[str, Any] = {"moment": "central", "moment_bound": 1.0, "mean_bound": float(bound)}
    algorithms = {
        "PRM elimination": partial(a.prm_elimination, **central),
        "PRM-UCB": partial(a.prm_ucb, **central),
        "PRM-TS": partial(a.prm_thompson, **central),
        # all that a raw moment says of the same rewards
        RAW: partial(a.prm_elimination, moment_bound=1 + float(max(means)) ** 2),
    }
    return Sweep({
        "algorithms": algorithms, "environment": partial(e.student_arms, means=means.tolist(), df=3.0, scale=3**-0.5),
        "reward_adversary": partial(v.huber, kind="cauchy"), "horizon": horizon, "seeds": seeds,
        "grid": {"epsilon": epsilons, REWARD_SHARE: shares}, "checkpoints": 60,
    })  # fmt: skip


def bounds_of(results: Results) -> list[int]:
    """The values of D that were run."""
    return [int(name.removeprefix("D-")) for name in results]


def draw_time(results: Results) -> plot.Plot:
    """Regret against plays, one panel a share, at the middle D."""
    bounds = bounds_of(results)
    bound = bounds[len(bounds) // 2]
    caption = f"Student rewards, means near {bound / 2:g}, D = {bound}; Cauchy contamination; ε = {EPSILON}"
    return plot.regret(results[f"D-{bound}"], select={"epsilon": EPSILON}, log="both", names=AXES, caption=caption)


def draw_bound(results: Results) -> plot.Plot:
    """Final regret against D, with the upper bound's order."""
    bounds = bounds_of(results)
    joined = xr.concat(
        [results[f"D-{bound}"][["regret"]].isel(t=[-1]) for bound in bounds],
        pd.Index(np.array(bounds, float), name="mean_bound"),
    ).assign_attrs(constant_along="{}")
    horizon = int(joined.t[-1])
    top = horizon * float(OFFSETS.max() - OFFSETS.min())

    def order(xs):
        return [
            min(theory.prm_central_bound(len(OFFSETS), horizon, EPSILON, float(x), corruption_bound=SHARE), top)
            for x in xs
        ]

    caption = f"Student rewards; {percent(SHARE)} contaminated: Cauchy; ε = {EPSILON}"
    return plot.against(
        joined, "mean_bound", select={"epsilon": EPSILON, "corruption_bound": SHARE},
        reference={"upper bound (order)": order}, names={"mean_bound": "bound D on the means"}, caption=caption,
        width=5.5,
    )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """What a central moment is worth, what D costs, and the regrets at one epsilon."""
    entries, own = [], {}
    for bound in bounds_of(results):
        cells = regrets(results[f"D-{bound}"]).set_index(["epsilon", "corruption_bound", "algorithm"])
        mean, low, high = (cells[column].unstack() for column in ("mean", "low", "high"))
        own[bound] = mean["PRM elimination"]
        apart, ratio = high["PRM elimination"] < low[RAW], mean[RAW] / mean["PRM elimination"]
        measured = f"in {int(apart.sum())} of {len(mean)} cells; {ratio.min():.1f} to {ratio.max():.1f} times less"
        paper = "the upper bound adds a term in D instead of a factor D (Theorem 6.12 against 6.2)"
        entries.append(Claim(f"D = {bound}: less regret than all that a raw moment says", paper, measured))
        for share in mean.index.unique("corruption_bound"):
            measured = ", ".join(f"{label} {x:,.0f}" for label, x in mean.loc[(EPSILON, share)].items())
            attack = f"{percent(share)} Cauchy" if share else "no contamination"
            entries.append(Claim(f"regret, D = {bound}, ε = {EPSILON:g}, {attack}", "", measured))
    low, high = own[min(own)], own[max(own)]
    measured = (
        f"{(high / low).min():.2f} to {(high / low).max():.2f} times the regret of PRM elimination, over the cells"
    )
    entries.append(Claim(f"D = {max(own)} against {min(own)}", "T₀ grows with log D, the bound with D", measured))
    return entries


STUDY = Study(
    "Rewards far from zero: a bound on the means and a central moment",
    "Theorems 6.10 and 6.12; docs/reproductions/private_robust_mab.md",
    sweeps,
    {"time": draw_time, "mean-bound": draw_bound},
    claims,
)
