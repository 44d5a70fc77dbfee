"""Corruption that a learner believes in, and corruption before or after local privacy."""

from functools import partial
from typing import Any

import pandas as pd
import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import provenance
from jaxbandits.formatting import percent
from jaxbandits.papers.byzantine.instance import FEDERATED
from jaxbandits.papers.byzantine.instance import target as pointing_away
from jaxbandits.papers.private_robust_mab.experiments import PARETO, PRM
from jaxbandits.papers.robust_linear.instance import GAUSSIAN, M1, M2, target, with_batches
from jaxbandits.papers.shared import by_value, ratio_interval, ratios, regrets, series
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
BLOCKS = {label: partial(PRM[label], epsilon=EPSILON) for label in ("PRM elimination", "PRM-UCB")}


def sweeps(full: bool) -> dict[str, Sweep]:
    seeds, horizon = (64, 10_000) if full else (4, 1000)
    shares, agents = (TRUE_SHARES, AGENT_SHARES) if full else ([0.0, 0.1], [0.0, 0.2])

    def sweep_shares(algorithms, environment, horizon, shares, slot, attack) -> Sweep:
        grid = {"corruption_bound": shares, f"{slot}.corruption": shares}
        return swept(algorithms, environment, horizon, seeds, grid=grid, **{slot: attack})

    blocks, swapped = few(BLOCKS, full, ["PRM elimination"]), partial(v.huber, kind="swapped")
    attack = pointing_away(5.0)
    declared = {
        "agents": sweep_shares(BYZANTINE, FEDERATED, 2000 if full else 200, agents, "message_adversary", attack),
        "blocks": sweep_shares(blocks, PARETO, 50_000 if full else 2000, shares, "reward_adversary", swapped),
    }
    for size, labels in (LINEAR if full else {LARGE: {QUICK: M1}}).items():
        models, attack = with_batches(labels, horizon), target(size)
        declared[f"reports-{size:g}"] = sweep_shares(models, GAUSSIAN, horizon, shares, "message_adversary", attack)
    return declared


def belief_ratios(results: Results) -> pd.DataFrame:
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
    frame = belief_ratios({name: ds for name, ds in results.items() if name.startswith(kind)})
    frame["text"] = [_ratio_text(x) for x in frame["ratio"]]
    frame = frame.assign(**{key: frame[key].map(percent) for key in ("true", "believed")})
    return plot.heatmap(
        frame, "believed", "true", "ratio", panel="algorithm", text="text", hatched=hatched, cuts=CUTS,
        names={"believed": "believed share", "true": "true share"}, hatch="less, beyond chance",
        caption="regret over that of the same algorithm which believes in no corruption", width=6.0,
    )  # fmt: skip


def claims(results: Results) -> Claims:
    frame = belief_ratios(results)
    for label, part in frame.groupby("algorithm", sort=False):
        for true, row in part.groupby("true"):
            measured = series(map(percent, row["believed"]), row["mean"], "{y:,.0f} believing {x}")
            yield Claim(f"regret of {label}, {percent(true)} true", "", measured)
        told = part[(part["believed"] == part["true"]) & (part["true"] > 0)]
        ratio, low, high = (told[column].map(_ratio_text) for column in ("ratio", "low", "high"))
        measured = series(map(percent, told["true"]), ratio + " [" + low + ", " + high + "]", "{y} at {x}")
        yield Claim(f"{label}: told the truth over believing in nothing", "", measured)
        corrupted = part[(part["true"] > 0) & (part["believed"] > 0)]
        less, more = int(corrupted["helps"].sum()), int((corrupted["low"] > 1).sum())
        measured = f"less regret in {less}, more in {more} of {len(corrupted)} cells with corruption"
        yield Claim(f"{label}: a belief against none", "", measured)


PICTURES = {kind: partial(draw, kind, hatched="helps") for kind in ("agents", "blocks")}
PICTURES["reports"] = partial(draw, "reports")
BELIEVED = Study("Believed against true corruption", "the papers with corruption", sweeps, PICTURES, claims)

# ---- before or after local privacy: the setting of Zhou and Zhang (NeurIPS 2024), with algorithms of this package

SHARE = 0.05
CLEAN, BEFORE, BOTH, IN_RANGE, AFTER = "none", "before", "both", "in-range", "after"
LABELS = {
    CLEAN: "no corruption",
    BEFORE: "rewards",
    BOTH: "half rewards, half reports by outliers",
    IN_RANGE: "reports, by honest ones",
    AFTER: "reports, by outliers",
}


def _places(reward: float | str, report: float) -> dict[str, tuple[float, float, dict[str, Any]]]:
    """By name the corrupted shares of rewards and of reports, and by whom: one becomes the value given, or minus it."""
    rewards = lambda share: {"reward_adversary": partial(v.huber, kind="target", value=reward, corruption=share)}
    reports = lambda share: {"message_adversary": partial(v.huber, kind="target", value=report, corruption=share)}
    return {
        CLEAN: (0.0, 0.0, {}),
        BEFORE: (SHARE, 0.0, rewards(SHARE)),
        BOTH: (SHARE / 2, SHARE / 2, rewards(SHARE / 2) | reports(SHARE / 2)),
        IN_RANGE: (0.0, SHARE, {"message_adversary": partial(v.huber, kind="in_range", corruption=SHARE)}),
        AFTER: (0.0, SHARE, reports(SHARE)),
    }


LDP_UCB, NOT_TOLD, TOLD = "LDP-UCB", "elimination, told of none", "elimination, told the share"
ELIMINATION = a.local_robust_elimination
# by kind of reward: a corrupted reward, an outlying report, the environment, the algorithms
BINARY = {LDP_UCB: partial(a.ldp_ucb, mechanism="randomized_response")}
BINARY |= dict.fromkeys((NOT_TOLD, TOLD), partial(ELIMINATION, moment_order=float("inf")))
HEAVY = dict.fromkeys((NOT_TOLD, TOLD), partial(ELIMINATION, truncation="clip"))
KINDS: dict[str, tuple[Any, ...]] = {
    "binary": (1.0, 10.0, partial(e.bernoulli_arms, means=[0.9, 0.7, 0.5, 0.3, 0.1]), BINARY),
    "heavy": ("inf", 1000.0, PARETO, HEAVY),
}


def place_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds, epsilons = (100_000, 200, [0.5, 1.0, 2.0, 4.0]) if full else (2000, 4, [1.0, 4.0])
    declared = {}
    for kind, (reward, report, environment, algorithms) in KINDS.items():
        for name, (before, after, attack) in _places(reward, report).items():
            told = partial(algorithms[TOLD], corruption_before=before, corruption_after=after)
            learners, grid = algorithms | {TOLD: told}, {"epsilon": epsilons}
            declared[f"{kind}-{name}"] = swept(learners, environment, horizon, seeds, grid=grid, **attack)
    return few(declared, full, [f"{kind}-{name}" for kind in KINDS for name in (BEFORE, IN_RANGE)])


def regret_by_place(results: Results, kind: str, algorithm: str) -> xr.Dataset:
    """One algorithm's regret, with the place of corruption as the `algorithm` of a curve."""
    there = {words: results[f"{kind}-{place}"] for place, words in LABELS.items() if f"{kind}-{place}" in results}
    parts = [ds[["regret"]].sel(algorithm=[algorithm]).assign_coords(algorithm=[x]) for x, ds in there.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def draw_place(kind: str, algorithm: str, caption: str, results: Results) -> plot.Plot:
    text = f"{algorithm}; {caption}; {percent(SHARE)} corrupted"
    return plot.against(regret_by_place(results, kind, algorithm), "epsilon", caption=text, width=6.0)


def place_claims(results: Results) -> Claims:
    said = provenance.records()["local_robust_orders"].quote_claim("c^(1 - 1/k) times as much")
    for kind, label in ((kind, label) for kind, (*_, algorithms) in KINDS.items() for label in algorithms):
        ds = regret_by_place(results, kind, label)
        yield from by_value(ds, "epsilon", f"{kind}: regret of {label} at ε = {{:g}}".format, separator="; ")
        compared = ratios(final_regret(ds), LABELS[IN_RANGE], LABELS[BEFORE])
        yield Claim(f"{kind}: {label}, reports by honest ones over rewards", said, compared)


SHOWN = {"ldp-ucb": LDP_UCB, "elimination": TOLD, "elimination-not-told": NOT_TOLD}
PLACE_PICTURES = {key: partial(draw_place, "binary", label, "rewards of 0 and 1") for key, label in SHOWN.items()}
PLACE_PICTURES["heavy"] = partial(draw_place, "heavy", TOLD, "Pareto rewards")
SOURCE = "docs/formulas/private_frontier.md#local-privacy-and-corruption"
PLACES = Study("Corruption before or after local privacy", SOURCE, place_sweeps, PLACE_PICTURES, place_claims)
