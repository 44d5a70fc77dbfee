"""Rewards far from zero: a bound on the means and a central moment."""

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
from jaxbandits.papers.private_robust_mab.raw_moments import AXES, PRM, along_both
from jaxbandits.papers.shared import REGRET, along, points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep
from jaxbandits.reports import plot

OFFSETS = np.array([-1.0, -3.0, 1.0, -2.0, 0.0])  # of the means from D / 2
EPSILON, SHARE = 0.5, 0.05
RAW = "PRM elimination, raw moment"


def sweeps(full: bool) -> dict[str, Sweep]:
    declared = {}
    for bound in (10, 100, 1000) if full else (10,):
        means = bound / 2 + OFFSETS
        central: dict[str, Any] = {"moment": "central", "moment_bound": 1.0, "mean_bound": float(bound)}
        algorithms = {label: partial(algorithm, **central) for label, algorithm in PRM.items()}
        # all that a raw moment says of the same rewards
        algorithms[RAW] = partial(a.prm_elimination, moment_bound=1 + float(max(means)) ** 2)
        environment = partial(e.student_arms, means=means.tolist(), df=3.0, scale=3**-0.5)
        declared[f"D-{bound}"] = along_both(algorithms, environment, partial(v.huber, kind="cauchy"), full)
    return declared


def bounds_of(results: Results) -> list[int]:
    """The values of D that were run."""
    return [int(name.removeprefix("D-")) for name in results]


def draw_time(results: Results) -> plot.Plot:
    bounds = bounds_of(results)
    bound = bounds[len(bounds) // 2]
    caption = f"Student rewards, means near {bound / 2:g}, D = {bound}; Cauchy contamination; ε = {EPSILON}"
    return plot.regret(results[f"D-{bound}"], select={"epsilon": EPSILON}, log="both", names=AXES, caption=caption)


def draw_bound(results: Results) -> plot.Plot:
    bounds = pd.Index(np.array(bounds_of(results), float), name="mean_bound")
    joined = xr.concat([ds[["regret"]].isel(t=[-1]) for ds in results.values()], bounds)
    sizes = len(OFFSETS), int(joined.t[-1])
    top = sizes[1] * float(OFFSETS.max() - OFFSETS.min())
    order = lambda x: min(theory.prm_central_bound(*sizes, EPSILON, x, corruption_bound=SHARE), top)
    reference = {"upper bound (order)": along(order, lambda x: (x,))}
    return plot.against(
        joined.assign_attrs(constant_along="{}"), "mean_bound", reference=reference, width=5.5,
        select={"epsilon": EPSILON, "corruption_bound": SHARE}, names={"mean_bound": "bound D on the means"},
        caption=f"Student rewards; {percent(SHARE)} contaminated: Cauchy; ε = {EPSILON}",
    )  # fmt: skip


def claims(results: Results) -> Claims:
    own = {}
    for bound in bounds_of(results):
        cells = regrets(results[f"D-{bound}"]).set_index(["epsilon", "corruption_bound", "algorithm"])
        mean, low, high = (cells[column].unstack() for column in ("mean", "low", "high"))
        own[bound] = mean["PRM elimination"]
        apart, ratio = high["PRM elimination"] < low[RAW], mean[RAW] / mean["PRM elimination"]
        measured = f"in {int(apart.sum())} of {len(mean)} cells; {ratio.min():.1f} to {ratio.max():.1f} times less"
        paper = "the upper bound adds a term in D instead of a factor D (Theorem 6.12 against 6.2)"
        yield Claim(f"D = {bound}: less regret than all that a raw moment says", paper, measured)
        for share, row in mean.loc[EPSILON].iterrows():
            attack = f"{percent(share)} Cauchy" if share else "no contamination"
            yield Claim(f"regret, D = {bound}, ε = {EPSILON:g}, {attack}", "", points(row.index, row, REGRET))
    ratio = own[max(own)] / own[min(own)]
    measured = f"{ratio.min():.2f} to {ratio.max():.2f} times the regret of PRM elimination, over the cells"
    yield Claim(f"D = {max(own)} against {min(own)}", "T₀ grows with log D, the bound with D", measured)


SOURCE = "Theorems 6.10 and 6.12; docs/reproductions/private_robust_mab.md"
STUDY = Study(__doc__, SOURCE, sweeps, {"time": draw_time, "mean-bound": draw_bound}, claims)
