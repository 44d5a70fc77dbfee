"""Believed against true corruption: what does a learner gain that is told the share, and what if it is told wrongly?

Every regret is divided by that of the same algorithm which believes in no corruption, at the same true share.
"""

from functools import partial
from typing import Any

import pandas as pd
import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.formatting import percent
from jaxbandits.papers.byzantine.instance import FEDERATED
from jaxbandits.papers.byzantine.instance import target as pointing_away
from jaxbandits.papers.private_robust_mab.raw_moments import PARETO
from jaxbandits.papers.robust_linear.instance import GAUSSIAN, M1, M2, target, with_batches
from jaxbandits.papers.shared import ratio_interval, regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

EPSILON = 0.5  # of PRM
TRUE_SHARES, AGENT_SHARES = [0.0, 0.02, 0.05, 0.1, 0.2], [0.0, 0.1, 0.2, 0.3, 0.4]
SMALL, LARGE = 3.0, 30.0  # corrupted reports of linear arms: one that looks like noise, and one that does not
BYZANTINE = {  # the belief sets the constants of both, and how many values the trimmed mean cuts off
    "geometric median": partial(a.byzantine_ucb, window=10),
    "trimmed mean": partial(a.byzantine_ucb, window=10, aggregate="trimmed_mean"),
}
QUICK = "M1, reports of 30"
LINEAR = {LARGE: {QUICK: M1, "M2, reports of 30": M2}, SMALL: {"M1, reports of 3": M1}}
BLOCKS = {
    "PRM elimination": partial(a.prm_elimination, epsilon=EPSILON),
    "PRM-UCB": partial(a.prm_ucb, epsilon=EPSILON),
}


def _grid(slot: str, shares: list[float]) -> dict[str, list[float]]:
    return {"corruption_bound": shares, f"{slot}.corruption": shares}


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every belief with every truth."""
    common: dict[str, Any] = {"seeds": 64 if full else 4, "checkpoints": 1}
    few, agents = ([0.0, 0.1], [0.0, 0.2]) if not full else (TRUE_SHARES, AGENT_SHARES)
    declared = {
        "agents": Sweep(
            common | {
                "algorithms": BYZANTINE, "environment": FEDERATED, "horizon": 2000 if full else 200,
                "grid": _grid("message_adversary", agents), "message_adversary": pointing_away(5.0),
            }
        ),
        "blocks": Sweep(
            common | {
                "algorithms": BLOCKS if full else {"PRM elimination": BLOCKS["PRM elimination"]},
                "environment": PARETO, "horizon": 50_000 if full else 2000,
                "grid": _grid("reward_adversary", few), "reward_adversary": partial(v.huber, kind="swapped"),
            }
        ),
    }  # fmt: skip
    horizon = 10_000 if full else 1000
    for size, labels in (LINEAR if full else {LARGE: {QUICK: M1}}).items():
        declared[f"reports-{size:g}"] = Sweep(
            common | {
                "algorithms": with_batches(labels, horizon), "environment": GAUSSIAN, "horizon": horizon,
                "grid": _grid("message_adversary", few), "message_adversary": target(size),
            }
        )  # fmt: skip
    return declared


def ordered(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset along `believed` and `true`."""
    true = next(str(key) for key in ds["regret"].dims if str(key).endswith("_adversary.corruption"))
    return ds.rename({"corruption_bound": "believed", true: "true"})


def cells(results: Results) -> pd.DataFrame:
    """A row for each algorithm, truth and belief: `ratio` to the regret with no belief, paired, and its interval."""
    frames = []
    for ds in map(ordered, results.values()):
        final = final_regret(ds).transpose("algorithm", "true", "believed", "seed")
        frame = regrets(ds).sort_values(["algorithm", "true", "believed"], kind="stable")
        ratio, low, high = ratio_interval(final.values, final.sel(believed=[0.0]).values)
        rows = [
            {"algorithm": label, "true": true, "believed": believed} | {
                "ratio": float(ratio[i, j, k]), "low": float(low[i, j, k]), "high": float(high[i, j, k])
            }
            for i, label in enumerate(final["algorithm"].values)
            for j, true in enumerate(final["true"].values)
            for k, believed in enumerate(final["believed"].values)
        ]  # fmt: skip
        frames.append(pd.DataFrame(rows).merge(frame[["algorithm", "true", "believed", "mean"]]))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(helps=table["high"] < 1)


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


CUTS = (0.0, 0.5, 0.9, 0.99, 1.01, 1.1, 1.5, 3.0, 100.0)


def draw(kind: str, results: Results, hatched: str | None = None) -> plot.Plot:
    """The maps of one kind of problem, a panel for each algorithm."""
    frame = cells({name: ds for name, ds in results.items() if name.startswith(kind)})
    frame["text"] = [_ratio_text(x) for x in frame["ratio"]]
    frame = frame.assign(**{key: frame[key].map(percent) for key in ("true", "believed")})
    return plot.heatmap(
        frame, "believed", "true", "ratio", panel="algorithm", text="text", hatched=hatched, cuts=CUTS,
        names={"believed": "believed share", "true": "true share"}, hatch="less, beyond chance",
        caption="regret over that of the same algorithm which believes in no corruption", width=6.0,
    )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """Regret at each truth by belief, the truth's price, and in how many cells a belief helps."""
    frame, entries = cells(results), []
    for label, part in frame.groupby("algorithm", sort=False):
        for true, row in part.groupby("true"):
            points = ", ".join(
                f"{y:,.0f} believing {percent(x)}" for x, y in zip(row["believed"], row["mean"], strict=True)
            )
            entries.append(Claim(f"regret of {label}, {percent(true)} true", "", points))
        told = part[(part["believed"] == part["true"]) & (part["true"] > 0)]
        measured = ", ".join(
            f"{_ratio_text(row.ratio)} [{_ratio_text(row.low)}, {_ratio_text(row.high)}] at {percent(row.true)}"
            for row in told.itertuples()
        )
        entries.append(Claim(f"{label}: told the truth over believing in nothing", "", measured))
        corrupted = part[(part["true"] > 0) & (part["believed"] > 0)]
        less, more = int(corrupted["helps"].sum()), int((corrupted["low"] > 1).sum())
        measured = f"less regret in {less}, more in {more} of {len(corrupted)} cells with corruption"
        entries.append(Claim(f"{label}: a belief against none", "", measured))
    return entries


STUDY = Study(
    "Believed against true corruption",
    "the papers with corruption",
    sweeps,
    {
        "agents": partial(draw, "agents", hatched="helps"),
        "blocks": partial(draw, "blocks", hatched="helps"),
        "reports": partial(draw, "reports"),
    },
    claims,
)
