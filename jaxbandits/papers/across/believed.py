"""Believed against true corruption."""

from functools import partial

import pandas as pd

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.formatting import percent
from jaxbandits.papers.byzantine.instance import FEDERATED
from jaxbandits.papers.byzantine.instance import target as pointing_away
from jaxbandits.papers.private_robust_mab.experiments import PARETO
from jaxbandits.papers.robust_linear.instance import GAUSSIAN, M1, M2, target, with_batches
from jaxbandits.papers.shared import points, ratio_interval, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret, tidy

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


def sweeps(full: bool) -> dict[str, Sweep]:
    seeds, horizon = (64, 10_000) if full else (4, 1000)
    shares, agents = (TRUE_SHARES, AGENT_SHARES) if full else ([0.0, 0.1], [0.0, 0.2])

    def one(algorithms, environment, horizon, shares, slot, attack) -> Sweep:
        grid = {"corruption_bound": shares, f"{slot}.corruption": shares}
        return swept(algorithms, environment, horizon, seeds, grid=grid, **{slot: attack})

    blocks, swapped = few(BLOCKS, full, ["PRM elimination"]), partial(v.huber, kind="swapped")
    attack = pointing_away(5.0)
    declared = {
        "agents": one(BYZANTINE, FEDERATED, 2000 if full else 200, agents, "message_adversary", attack),
        "blocks": one(blocks, PARETO, 50_000 if full else 2000, shares, "reward_adversary", swapped),
    }
    for size, labels in (LINEAR if full else {LARGE: {QUICK: M1}}).items():
        models = with_batches(labels, horizon)
        declared[f"reports-{size:g}"] = one(models, GAUSSIAN, horizon, shares, "message_adversary", target(size))
    return declared


def cells(results: Results) -> pd.DataFrame:
    """A row for each algorithm, truth and belief: `ratio` to the regret with no belief, paired, and its interval."""
    frames = []
    for ds in results.values():
        true = next(str(key) for key in ds["regret"].dims if str(key).endswith("_adversary.corruption"))
        ds = ds.rename({"corruption_bound": "believed", true: "true"})
        final = final_regret(ds).transpose("algorithm", "true", "believed", "seed")
        frame = regrets(ds).sort_values(["algorithm", "true", "believed"], kind="stable")
        ratio, low, high = ratio_interval(final.values, final.sel(believed=[0.0]).values)
        found = tidy(final.isel(seed=0, drop=True), {"ratio": ratio, "low": low, "high": high})
        frames.append(found.merge(frame[["algorithm", "true", "believed", "mean"]]))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(helps=table["high"] < 1)


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


CUTS = (0.0, 0.5, 0.9, 0.99, 1.01, 1.1, 1.5, 3.0, 100.0)


def draw(kind: str, results: Results, hatched: str | None = None) -> plot.Plot:
    frame = cells({name: ds for name, ds in results.items() if name.startswith(kind)})
    frame["text"] = [_ratio_text(x) for x in frame["ratio"]]
    frame = frame.assign(**{key: frame[key].map(percent) for key in ("true", "believed")})
    return plot.heatmap(
        frame, "believed", "true", "ratio", panel="algorithm", text="text", hatched=hatched, cuts=CUTS,
        names={"believed": "believed share", "true": "true share"}, hatch="less, beyond chance",
        caption="regret over that of the same algorithm which believes in no corruption", width=6.0,
    )  # fmt: skip


def claims(results: Results) -> Claims:
    frame = cells(results)
    for label, part in frame.groupby("algorithm", sort=False):
        for true, row in part.groupby("true"):
            measured = points(map(percent, row["believed"]), row["mean"], "{y:,.0f} believing {x}")
            yield Claim(f"regret of {label}, {percent(true)} true", "", measured)
        told = part[(part["believed"] == part["true"]) & (part["true"] > 0)]
        ratio, low, high = (told[column].map(_ratio_text) for column in ("ratio", "low", "high"))
        measured = points(map(percent, told["true"]), ratio + " [" + low + ", " + high + "]", "{y} at {x}")
        yield Claim(f"{label}: told the truth over believing in nothing", "", measured)
        corrupted = part[(part["true"] > 0) & (part["believed"] > 0)]
        less, more = int(corrupted["helps"].sum()), int((corrupted["low"] > 1).sum())
        measured = f"less regret in {less}, more in {more} of {len(corrupted)} cells with corruption"
        yield Claim(f"{label}: a belief against none", "", measured)


PICTURES = {kind: partial(draw, kind, hatched="helps") for kind in ("agents", "blocks")}
PICTURES["reports"] = partial(draw, "reports")
STUDY = Study(__doc__, "the papers with corruption", sweeps, PICTURES, claims)
