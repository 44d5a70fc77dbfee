"""Where each estimator breaks: corruption against the size of what is reported.

As the paper prints it and as repaired.
"""

from functools import partial

import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits.formatting import compact
from jaxbandits.papers.robust_linear.instance import ACTIONS, GAUSSIAN, M1, M2, target, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, in_order, points, regrets, short
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot

PLAIN = partial(M1, presieve=False)
FIRST = {
    "as printed": partial(PLAIN, variance_bound="observed", radius="paper"),
    "no filter": partial(PLAIN, variance_bound="observed"),
    "clean bound": partial(PLAIN, variance_bound="clean"),
    "tight bound": partial(PLAIN, variance_bound="tight"),
    "tight, presieve": M1,
    "trimmed means": a.trimmed_elimination,
}
SECOND = {
    "bucket medians": a.median_elimination,
    "tight, presieve, refit": partial(M1, refit=True),
    "M2, no filter": partial(M2, presieve=False, variance_bound="observed"),
    "M2, tight": partial(M2, presieve=False),
    "M2, presieve": M2,
    "M2, presieve, refit": partial(M2, refit=True),
}
QUICK = ("as printed", "tight, presieve", "trimmed means", "M2, presieve")
BROKEN = 2.0  # times the regret of the same algorithm without corruption


def sweeps(full: bool) -> dict[str, Sweep]:
    """A sweep a size of the corrupted reports, over shares, of which the first is none."""
    horizon, seeds = (100_000, 100) if full else (1000, 8)
    values = [1.0, 3.0, 10.0, 30.0, 100.0, 1e6] if full else [3.0, 1e6]
    shares = {MESSAGE_SHARE: [0.0, 0.01, 0.02, 0.05, 0.1, 0.2] if full else [0.0, 0.1]}
    algorithms = with_batches(few(FIRST | SECOND, full, QUICK), horizon)
    attacked = partial(swept, algorithms, GAUSSIAN, horizon, seeds, grid=shares)
    return {f"{value:g}": attacked(message_adversary=target(value)) for value in values}


def cells(results: Results) -> pd.DataFrame:
    """Regret in each cell, and its `ratio` to that of the same algorithm without corruption."""
    rows = []
    for value, ds in results.items():
        frame = regrets(ds).rename(columns={"corruption_bound": "share"})
        ratio = frame["mean"] / frame["algorithm"].map(clean(ds)).to_numpy()
        rows.append(frame.assign(size=float(value), ratio=ratio)[frame["share"] > 0])
    table = pd.concat(rows, ignore_index=True)
    table = table.assign(name=[compact(size) for size in table["size"]])
    return table.assign(broke=table["ratio"] > BROKEN, text=short(table["ratio"]))


def clean(ds) -> pd.Series:
    """The mean regret of every algorithm without corruption."""
    frame = regrets(ds)
    return frame[frame["corruption_bound"] == 0].set_index("algorithm")["mean"]


def draw(group, results: Results) -> plot.Plot:
    return plot.heatmap(
        in_order(cells(results), group), "share", "name", "ratio", panel="algorithm", text="text", hatched="broke",
        names={"share": "share of corrupted reports", "name": "their size"}, hatch=f"more than {BROKEN:g} times",
        caption="regret, relative to the same algorithm without corruption",
    )  # fmt: skip


def claims(results: Results) -> Claims:
    frame = cells(results)
    alone = clean(next(iter(results.values())))
    for label, part in frame.groupby("algorithm", sort=False):
        worst = part.loc[part["ratio"].idxmax()]
        measured = f"breaks in {int(part['broke'].sum())} of {len(part)} cells; "
        measured += f"worst {worst['ratio']:.1f} at share {worst['share']:g}, size {worst['size']:g}"
        yield Claim(f"{label}: regret {alone[label]:,.0f} without corruption", "", measured)
    removed = max(float(ds["removals"].sel(algorithm="as printed").max()) for ds in results.values())
    measured = f"at most {removed:g} removals in any run"
    evidence = Exact(removed, at_least=1)  # none whatever the data: docs/deviations/robust_linear.md#threshold
    yield Claim("the printed variance bound lets the filter remove something", "a filter", measured, evidence)
    size = min(results, key=float)
    left = results[size]["active_arms"].sel(algorithm="as printed").isel(corruption_bound=slice(1, None)).min()
    measured = f"at least {float(left):g} of {len(ACTIONS)} arms are left in every run with reports of size {size}"
    yield Claim("arms that the printed radius leaves under corruption", "constants hidden", measured)
    worst = frame[frame["algorithm"] == "tight, presieve"].groupby("size")["ratio"].max()
    yield Claim("tight bound and presieve, by size", "", points(worst.index, worst, "size {x:g}: up to {y:.1f}", "; "))


STUDY = Study(
    __doc__, "Algorithms 1 and 2; docs/formulas/robust_linear.md#filter", sweeps,
    {"first": partial(draw, FIRST), "second": partial(draw, SECOND)}, claims,
)  # fmt: skip
