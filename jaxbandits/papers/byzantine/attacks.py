"""Every aggregation rule under every attack."""

from functools import partial

import numpy as np
import pandas as pd

from jaxbandits import adversaries as v
from jaxbandits.papers.byzantine.instance import FEDERATED, RULES, honest
from jaxbandits.papers.shared import MESSAGE_SHARE, in_order, picture, points, ratio_interval, regrets, short
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret, grid_dims

WINDOW, BROKEN = 10, 2.0
CUTS = (0.0, 1.1, 1.2, 1.4, 1.7, BROKEN, 3.0, 10.0, 1000.0)  # of the colours: most ratios are between 1 and 2
ATTACKS = {
    "target": partial(v.byzantine, kind="target", scale=5.0),
    "sign flip": partial(v.byzantine, kind="sign_flip", scale=5.0),
    "inner product": partial(v.byzantine, kind="inner_product", scale=1.0),
    "ALIE": partial(v.byzantine, kind="alie", scale=1.5),
    "noise": partial(v.byzantine, kind="noise", scale=10.0),
    "constant 1e30": partial(v.byzantine, kind="constant", scale=1e30),
    "matrix only": partial(v.byzantine, kind="constant", scale=10.0, part="matrix"),
    "vector only": partial(v.byzantine, kind="constant", scale=10.0, part="vector"),
    "half the time": partial(v.byzantine, kind="target", scale=5.0, prob=0.5),
    "inf and NaN": partial(v.byzantine, kind="nonfinite"),
    "zero": partial(v.byzantine, kind="zero"),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    """The median of means is run up to 1/4, where its groups hold no majority of attackers."""
    horizon, seeds = (2000, 64) if full else (200, 4)
    shares, few_shares = ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2]) if full else ([0.0, 0.2], [0.0, 0.2])
    grouped = {"median of means": RULES["median of means"]}
    rest = {label: rule for label, rule in RULES.items() if label not in grouped}
    declared = {}
    for name, attack in few(ATTACKS, full, ["target"]).items():
        under = partial(swept, environment=FEDERATED, horizon=horizon, seeds=seeds, message_adversary=attack)
        declared[name] = under(rest, grid={MESSAGE_SHARE: shares, "window": [WINDOW]})
        declared[f"{name}, median of means"] = under(grouped, grid={MESSAGE_SHARE: few_shares, "window": [WINDOW]})
    return declared


def cells(results: Results) -> pd.DataFrame:
    """Regret of an honest agent in each cell, and its `ratio` to that of the mean without an attack, paired by seed."""
    first = final_regret(next(iter(results.values()))).sel(algorithm="mean").squeeze("window", drop=True)
    attack_free = first.isel(corruption_bound=0).values / honest(0.0)
    frames = []
    for name, ds in results.items():
        frame = regrets(ds).rename(columns={"corruption_bound": "share"})
        attack = name.removesuffix(", median of means")
        agents = [honest(x, ATTACKS[attack].keywords.get("prob", 1.0)) for x in frame["share"]]
        final = final_regret(ds).transpose("algorithm", *grid_dims(ds), "seed").values.reshape(len(frame), -1)
        ratio, low, high = ratio_interval(final / np.array(agents)[:, None], attack_free)
        frames.append(frame.assign(attack=attack, mean=frame["mean"] / agents, ratio=ratio, low=low, high=high))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(broke=table["ratio"] > BROKEN, text=short(table["ratio"]))


PICTURE = picture(
    plot.heatmap, lambda results: in_order(cells(results), RULES), "share", "attack", "ratio", panel="algorithm",
    text="text", hatched="broke", names={"share": "share of attacked agents"}, cuts=CUTS,
    hatch=f"more than {BROKEN:g} times", caption="regret of an honest agent relative to the mean without an attack",
)  # fmt: skip


def claims(results: Results) -> Claims:
    frame = cells(results)
    for (attack, label), part in frame.groupby(["attack", "algorithm"], sort=False):
        ordered = part.sort_values("share")
        measured, shares = (points(ordered["share"], ordered["ratio"], form) for form in ("{y:.2f}", "{x:g}"))
        yield Claim(f"{attack}: {label} at {shares}", "", measured)
    median = frame[(frame["algorithm"] == "geometric median") & (frame["share"] <= 0.3)]
    worst = median.loc[median["ratio"].idxmax()]
    measured = f"{worst['ratio']:.2f} at worst, {worst['attack']} at {worst['share']:g}"
    paper = "Õ(T^(3/4)) for every share below 1/2 (Theorem 2), constants hidden"
    yield Claim("geometric median against the attack-free mean, up to 30%", paper, measured)
    mean = frame[(frame["algorithm"] == "mean") & (frame["share"] > 0)]
    measured = f"more than {BROKEN:g} times the attack-free regret in {int(mean['broke'].sum())} of {len(mean)} cells"
    hardest = mean.loc[mean[mean["share"] == mean["share"].min()]["ratio"].idxmax()]
    what = f"ratio under {hardest['attack']} at {hardest['share']:g}"
    evidence = Interval(what, hardest["low"], hardest["high"], at_least=BROKEN)
    yield Claim("the mean breaks", "vulnerable to attacks on even a single agent", measured, evidence)


STUDY = Study(
    __doc__, "docs/formulas/byzantine.md#attacks and docs/formulas/byzantine.md#aggregation-rules", sweeps,
    {"map": PICTURE}, claims,
)  # fmt: skip
