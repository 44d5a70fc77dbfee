"""Which expert algorithm is best where."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.papers.shared import horizon_of, picture, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, Tuning, swept
from jaxbandits.reports import plot

NUM_ARMS, DELTA = 3, 1e-5
BOUNDS_HORIZONS = {"1e5": 10**5, "1e8": 10**8, "1e12": 10**12}
WORDS = {"bandit_to_experts": "experts as arms", "local_exp4": "local EXP4", "batched_exp4": "batched EXP4"}
NAMES = {"num_experts": "experts N"}
SEEDS, TUNED_SEEDS = 100, 10_000
TRIED: dict[str, dict] = {
    "experts as arms": {"base.base.tail_scale": [0.15, 0.4, 1.0, 2.5], "base.window": [1, 10, 50, 250, 1000]},
    "local EXP4": {"learning_rate": [0.00006, 0.00025, 0.001, 0.004, 0.016, 0.064, 0.25], "mixing": [0.02, 0.1, 0.3]},
    "batched EXP4": {
        "learning_rate": [0.06, 0.25, 1.0, 4.0, 16.0],
        "mixing": [0.1, 0.3, 0.7],
        "window": [200, 1000, 5000],
    },
}


def sweeps(full: bool) -> dict[str, Sweep]:
    """Learning rate, mixing and window are chosen at every number of experts and epsilon, on other seeds."""
    horizon, sizes = (100_000, (4, 8, 16, 64)) if full else (1000, (4, 16))
    epsilons = [0.01, 0.03, 0.1, 0.3, 1.0] if full else [0.1, 1.0]
    seeds, tuned = (SEEDS, 20) if full else (10, 2)
    algorithms = {
        "experts as arms": partial(a.bandit_to_experts, base=partial(a.private_batched, base=a.htinf)),
        "local EXP4": a.local_exp4,
        "batched EXP4": partial(a.batched_exp4, delta=DELTA),
    }
    grids = TRIED
    if not full:
        grids = {label: {key: values[1:3] for key, values in keys.items()} for label, keys in TRIED.items()}
        grids["batched EXP4"]["window"] = [10, 100]
    tuning = Tuning(grids, range(TUNED_SEEDS, TUNED_SEEDS + tuned))
    grid = {("epsilon", "experts as arms.base.epsilon"): epsilons}
    losses = e.fixed_gap_losses(num_arms=NUM_ARMS, best=NUM_ARMS - 1, gap=0.4)
    worlds = {f"experts-{n}": e.rotating_experts(losses=losses, num_experts=n) for n in sizes}
    return {name: swept(algorithms, world, horizon, seeds, grid=grid, tuning=tuning) for name, world in worlds.items()}


def compute_bounds_map(full: bool) -> dict[str, Any]:
    """The smallest rate and the smallest bound with constants at every (N, epsilon), by `theory` alone."""
    many, parts = 40 if full else 12, dict[str, list[Any]](rates=[], bounds=[])
    experts = np.unique(np.round(np.geomspace(2, 1e10, many)).astype(int))
    for word, horizon in BOUNDS_HORIZONS.items():
        for n, epsilon in product(experts.tolist(), np.geomspace(1e-7, 1, many).tolist()):
            if epsilon * horizon < 1:  # where the theory does not reach
                continue
            at = (NUM_ARMS, n, horizon, epsilon)
            for kind, value_of in (("rates", theory.experts_rates(*at)), ("bounds", theory.experts_bounds(*at, DELTA))):
                best = min(value_of, key=value_of.__getitem__)
                parts[kind].append({
                    "num_experts": n, "epsilon": epsilon, "panel": f"{kind}, T = {word}",
                    "smallest": WORDS[best] if value_of[best] < horizon else None, "value": value_of[best],
                    "least": WORDS[best], "region": n >= NUM_ARMS and epsilon <= horizon**-0.5,
                })  # fmt: skip
    return {"bounds": pd.DataFrame(parts["rates"] + parts["bounds"])}


def regret_cells(results: Results) -> pd.DataFrame:
    """Mean final regret with its interval for each algorithm and cell, and whether the theory has a tuning there."""
    parts = []
    for key in [key for key in results if key.startswith("experts-")]:
        frame, n = regrets(results[key]).rename(columns={"mean": "regret"}), int(key.partition("-")[2])
        at = zip(frame["algorithm"], frame["epsilon"], strict=True)
        parts.append(frame.assign(num_experts=n, valid=[valid(label, n, horizon_of(results), x) for label, x in at]))
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[["num_experts", "epsilon", "algorithm", "regret", "low", "high", "valid"]]
    return frame.assign(text=frame["regret"].map("{:,.0f}".format), no_tuning=~frame["valid"])


def valid(label, num_experts, horizon, epsilon) -> bool:
    """Whether the theory has a tuning for these sizes; HTINF's always has one."""
    try:
        if label == "local EXP4":
            theory.local_exp4_tuning(NUM_ARMS, num_experts, horizon, epsilon)
        if label == "batched EXP4":
            theory.batched_exp4_tuning(NUM_ARMS, num_experts, horizon, epsilon, DELTA)
    except ValueError:
        return False
    return True


def winners(results: Results) -> pd.DataFrame:
    """The algorithm of least mean regret in each cell, how far ahead it is, and what the rates name."""
    rows = []
    for (n, epsilon), part in regret_cells(results).groupby(["num_experts", "epsilon"]):
        (_, best), (_, second) = part.sort_values("regret").iloc[:2].iterrows()
        rates = theory.experts_rates(NUM_ARMS, int(n), horizon_of(results), float(epsilon))
        rows.append({
            "num_experts": int(n), "epsilon": epsilon, "winner": best.algorithm, "regret": best.regret,
            "clear": bool(best.high < second.low), "predicted": WORDS[min(rates, key=rates.__getitem__)],
            "no_tuning": best.no_tuning, "text": best.text,
        })  # fmt: skip
    return pd.DataFrame(rows)


PICTURES = {
    "bounds": picture(
        plot.heatmap, "bounds", "num_experts", "epsilon", "smallest", panel="panel", names=NAMES,
        caption=f"the smallest of the three at K = {NUM_ARMS} and δ = 1e-5 by theory alone; rates have no constants; "
        "white: all are at least T, or ε < 1/T",
    ),
    "measured": picture(
        plot.heatmap, winners, "num_experts", "epsilon", "winner", text="text", hatched="no_tuning", names=NAMES,
        caption="least mean regret after tuning on other seeds, written in the cell", width=4.5,
        hatch="the winner has no valid theory tuning",
    ),
    "regrets": picture(
        plot.heatmap, regret_cells, "num_experts", "epsilon", "regret", panel="algorithm", text="text", names=NAMES,
        hatched="no_tuning", hatch="no valid theory tuning", caption="mean regret after tuning on other seeds",
    ),
}  # fmt: skip


def claims(results: Results) -> Claims:
    frame, every = winners(results), regret_cells(results)
    right, clear = int((frame["winner"] == frame["predicted"]).sum()), frame[frame["clear"]]
    measured = f"in {right} of {len(frame)} cells; of the {len(clear)} whose winner's interval is apart, in "
    measured += f"{int((clear.winner == clear.predicted).sum())}"
    yield Claim("the smallest rate names the algorithm of least regret", "rates only, constants dropped", measured)
    for label, part in every.groupby("algorithm", sort=False):
        won, predicted = (int((frame[column] == label).sum()) for column in ("winner", "predicted"))
        measured = f"least regret in {won} of {len(frame)} cells; theory tuning valid in {int(part.valid.sum())}"
        yield Claim(str(label), f"smallest rate in {predicted} of {len(frame)} cells", measured)
    bounds = results["bounds"]
    rates = bounds[bounds["region"] & bounds["panel"].str.startswith("rates")]
    least = rates["least"] == "batched EXP4"
    measured = f"in {int(least.sum())} of the {len(rates):,} cells of that region; "
    measured += f"in {int((least & rates['smallest'].notna()).sum())} of them below T"
    yield Claim("batched EXP4 has the smallest rate", "for N ≥ K and ε ≤ 1/√T (Table 2)", measured)
    below = bounds["smallest"].notna().groupby(bounds["panel"]).agg(["sum", "size"])
    counts = {word: below.loc[f"bounds, T = {word}"] for word in BOUNDS_HORIZONS}
    measured = ", ".join(f"{few:,} of {many:,} at T = {word}" for word, (few, many) in counts.items())
    yield Claim("cells of the theory map where some bound with constants is below T", "", measured)


SOURCE = "Tables 1 and 2; Corollary 4.3, Theorems 4.4 and 4.5"
STUDY = Study(__doc__, SOURCE, sweeps, PICTURES, claims, compute_bounds_map)
