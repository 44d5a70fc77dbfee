"""Which orders of Figure 1 hold where: calibration, what is noised, clip, width, contexts, features, delta."""

import math
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits.formatting import join_values
from jaxbandits.papers.ldp_contextual import instance
from jaxbandits.papers.ldp_contextual.instance import ALIKE, BELOW, EPSILONS, HORIZON, ORDERS, SDP, true_privacy
from jaxbandits.papers.shared import series
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret, tidy

OURS, MALER = "OnlineUCB", "Maler"
OGD = partial(a.online_ucb, learner="ogd")
RIVALS = {"LinUCB": a.linucb} | instance.private_rivals()  # their delta is one of the settings
OWN = ["calibration", "private_features", "gradient_bound", "radius_scale"]  # settings of OnlineUCB
SHARED = ["environment.contexts", "environment.features", "delta"]  # settings that its rivals have, too
VALUES: dict[str, list] = {
    "calibration": ["paper", "reference", "exact"],
    "private_features": [True, False],
    "gradient_bound": ["practical", "theory"],
    "radius_scale": [0.1, 0.3, 1.0],
    "environment.contexts": ["redraw", "fixed"],
    "environment.features": ["unit", "reference"],
    "delta": [0.1, 0.001],
}
QUICK = {"calibration": ["paper"], "radius_scale": [1.0], "environment.contexts": ["fixed"],
         "environment.features": ["unit"], "delta": [0.1]}  # fmt: skip
DELTAS = VALUES["delta"]
COMBINATIONS = ["O1, O2, O3", "O1, O2", "O1, O3", "O2, O3", "O1", "O2", "O3"]
NAMES = {  # of sweeps in the claims
    "map": "{held} of {cells} settings",
    "again": "again with OGD on {:,} new seeds {held} of {cells}",
    "maler": "with Maler on {:,} {held} of {cells}",
}
CLAIMED = {0.2: "below LDP, like SDP", 1.0: "below JDP, SDP, LDP", 10.0: "below JDP, SDP, LDP"}


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (HORIZON, 64) if full else (100, 4)
    values = VALUES if full else VALUES | QUICK
    grid = {f"{OURS}.{key}": values[key] for key in OWN} | {key: values[key] for key in SHARED} | {"epsilon": EPSILONS}
    return {"map": swept({OURS: OGD} | RIVALS, instance.CONTEXTUAL, horizon, seeds, grid=grid)}


def confirming_sweeps(full: bool, results) -> dict[str, Sweep]:
    """Settings where an order held at the default width, again on seeds that did not choose them."""
    table = excess_table(results["map"])
    held = table[(table["order"] == "below") & (table["radius_scale"] == 1.0)].to_dict("records")
    if not held:
        return {}
    horizon, many, some = (HORIZON, range(64, 1064), range(64, 128)) if full else (100, range(4, 12), range(4, 8))

    def sweep_held(algorithms, seeds) -> Sweep:
        own = [{f"{label}.{key}": row[key] for label in algorithms for key in OWN} for row in held]
        points = [keys | {key: row[key] for key in [*SHARED, "epsilon"]} for keys, row in zip(own, held, strict=True)]
        return swept(algorithms | RIVALS, instance.CONTEXTUAL, horizon, seeds, points=points)

    return {"again": sweep_held({OURS: OGD}, many), "maler": sweep_held({OURS: OGD, MALER: a.online_ucb}, some)}


def excess_table(ds, label=OURS) -> pd.DataFrame:
    """A row a setting and epsilon: the `excess` over the rivals that the figure puts above, the `order` that follows,
    and `sdp`, the mean over that of SDP's nearer protocol.
    """
    final = final_regret(ds).transpose("algorithm", ..., "seed")
    flat = final.values.reshape(final.sizes["algorithm"], -1, final.sizes["seed"])
    regret = dict(zip(final.algorithm.values, flat, strict=True))
    table = tidy(final.isel(algorithm=0, seed=0, drop=True), {}).rename(columns={f"{label}.{key}": key for key in OWN})
    table["private_features"] = table["private_features"].astype(str) == "True"  # coordinates are names
    rows = []
    for i, at in enumerate(table[[*OWN, *SHARED, "epsilon"]].to_dict("records")):
        ours = regret[label][i]
        mean, low, high, rival = instance.excess(ours, {name: regret[name][i] for name in BELOW[at["epsilon"]]})
        sdp = [ours.mean() / regret[name][i].mean() for name in SDP]
        rows.append(at | {
            "mean": ours.mean(), "median": np.median(ours), "difference": mean, "low": low, "high": high,
            "rival": rival, "order": "below" if high < 0 else "above" if low > 0 else "open",
            "sdp": min(sdp, key=lambda r: abs(r - 1)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def settings_of(table) -> pd.DataFrame:
    """A row a setting: the `orders` that hold in it, as "O2, O3", or "none"; for each its cell, and what is spent."""
    rows = []
    for at, group in table.groupby([*OWN, *SHARED], sort=False):
        setting, group = dict(zip([*OWN, *SHARED], at, strict=True)), group.set_index("epsilon")
        held = [ORDERS[epsilon] for epsilon in EPSILONS if holds(epsilon, group.loc[epsilon])]
        row = setting | {"orders": ", ".join(held) or "none"}
        for epsilon in EPSILONS:
            facts = {key: group.loc[epsilon][key] for key in ("rival", "difference", "low", "high", "sdp")}
            facts["spends"] = spends(setting, epsilon)
            row |= {f"{ORDERS[epsilon]} {key}": value for key, value in facts.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def spends(setting, epsilon) -> float:
    """The epsilon truly spent on a user at the setting's delta."""
    norm = 1.0 if setting["environment.features"] == "unit" else math.sqrt(2)
    noise = {key: setting[key] for key in ("calibration", "private_features", "delta")}
    return true_privacy(OGD, epsilon=epsilon, feature_norm=norm, **noise)[0]


def holds(epsilon, row) -> bool:
    """Whether the order claimed at this privacy level holds; at the lowest, no worse than SDP is asked for, too."""
    return row["order"] == "below" and (epsilon != EPSILONS[0] or row["sdp"] <= 1 + ALIKE)


def draw(clip, results: Results) -> plot.Plot:
    """The orders that hold with one gradient bound: a cell a setting, a panel for contexts and features."""
    table = settings_of(excess_table(results["map"]))
    table = table[table["gradient_bound"] == clip]
    noised = table["private_features"].map({True: "pair", False: "reward"})
    where = table["environment.contexts"].map({"redraw": "contexts redrawn", "fixed": "contexts fixed"})
    held = table["orders"].where(table["orders"] != "none")  # left white
    table = table.assign(
        row=table["calibration"] + ", " + noised,
        column=[f"{w:g}\n{d:g}" for w, d in zip(table["radius_scale"], table["delta"], strict=True)],
        panel=where + ", features " + table["environment.features"],
        held=pd.Categorical(held, COMBINATIONS),  # the same colours in both figures
    ).sort_values(["panel", "row", "column"])
    names = {"row": "", "column": "width scale (above), δ (below)"}
    caption = f"orders of Figure 1 that hold (95%, paired, OGD, {results['map'].sizes['seed']} seeds), "
    caption += f"white: none; rows: calibration, what is noised; {clip} gradient bound"
    return plot.heatmap(table, "column", "row", "held", panel="panel", names=names, caption=caption, width=8.5)


def claims(results: Results) -> Claims:
    """No verdicts: the paper states the orders of its Figure 1, not in how many of our settings they should hold."""
    labels = {"map": OURS, "again": OURS, "maler": MALER}
    tables = {name: excess_table(results[name], label) for name, label in labels.items() if name in results}
    for calibration, noised, epsilon in product(VALUES["calibration"], VALUES["private_features"], EPSILONS):
        parts = []
        for name, table in tables.items():
            here = table.query("calibration == @calibration and private_features == @noised and epsilon == @epsilon")
            if len(here):
                held = here.apply(lambda row: holds(row["epsilon"], row), axis=1)
                seeds = results[name].sizes["seed"]
                parts.append(NAMES[name].format(seeds, held=int(held.sum()), cells=len(here)))
            elif name == "map":
                break
        if not parts:
            continue
        noise = {"calibration": calibration, "private_features": noised, "epsilon": epsilon}
        spent = [true_privacy(OGD, **noise, delta=d)[0] for d in DELTAS]
        parts.append(f"spends {series(DELTAS, spent, '{y:.3g} at δ = {x:g}')}")
        what = "pair noised" if noised else "reward alone noised"
        statement = f"{ORDERS[epsilon]} ({CLAIMED[epsilon]}), ε = {epsilon:g}: {calibration}, {what}"
        yield Claim(statement, "", "; ".join(parts))
    if "maler" in results:  # not where no order holds
        yield alike(results["maler"])
    yield rivals(results["map"])


def alike(ds) -> Claim:
    """O4 wherever Maler was run: its mean regret over OGD's."""
    mean = final_regret(ds).mean("seed")
    ratio = (mean.sel(algorithm=OURS) / mean.sel(algorithm=MALER)).values
    few = f"{int((abs(ratio - 1) <= ALIKE).sum())} of {ratio.size} settings"
    measured = f"within {100 * ALIKE:g}% in {few}; {ratio.min():.2f} to {ratio.max():.2f} times"
    return Claim("O4 (OGD matches Maler) in settings where an order holds", "", measured)


def rivals(ds) -> Claim:
    """O5 in every setting that the rivals have."""
    mean = final_regret(ds).isel({f"{OURS}.{key}": 0 for key in OWN}, drop=True).mean("seed")
    mean = mean.stack(at=[*SHARED, "epsilon"])
    value = {name: mean.sel(algorithm=name).values for name in RIVALS}
    shuffled = np.stack([value[name] for name in SDP])
    held = (value["LinUCB"] < value["JDP"]) & (value["JDP"] < shuffled.min(0)) & (shuffled.max(0) < value["LDP"])
    measured = f"{int(held.sum())} of {held.size} settings"
    if not held.all():
        measured += f"; not at {'; '.join(join_values(at) for at in mean['at'].values[~held][:8])}"
    return Claim("O5 (LinUCB < JDP < SDP < LDP) at every ε", "", measured)


SOURCE = "Figure 1 and what it leaves open; docs/formulas/ldp_contextual.md#figure-1"
PICTURES = {"orders": partial(draw, "practical"), "orders-theory-clip": partial(draw, "theory")}
STUDY = Study(__doc__, SOURCE, sweeps, PICTURES, claims, following=confirming_sweeps)
