"""E1: heavy-tailed rewards with a bounded raw moment, against private and robust rivals.

There are three kinds of contamination.
"""

from functools import partial

import numpy as np
import pandas as pd

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.formatting import percent
from jaxbandits.papers.shared import REWARD_SHARE, regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot

MEANS = [0.5, 0.1, 0.9, 0.3, 0.7]  # best in the middle: some rivals play arm by arm, and barely finish one
PARETO = partial(e.pareto_arms, means=MEANS, shape=3.5)  # E X^2 <= 0.97
PRM = {"PRM elimination": a.prm_elimination, "PRM-UCB": a.prm_ucb, "PRM-TS": a.prm_thompson}
RIVALS = {
    "DPRSE": partial(a.dprse, moment_order=2.0, moment_bound=1.0),
    "DP-SE": a.dp_se,
    "robust UCB": partial(a.robust_ucb, moment_order=2.0, moment_bound=1.0),
}
ATTACKS = {
    "swapped": partial(v.huber, kind="swapped"),
    "replaced by 50": partial(v.huber, kind="fixed", value=50.0),
    "replaced by inf": partial(v.huber, kind="fixed", value="inf"),
}
QUICK = "replaced by inf"
ASKED_OF = {
    "DP-SE": "private, not robust",
    "robust UCB": "robust, not private",
    "DPRSE": "private, for heavy tails",
    "PRM elimination": "the paper's",
}
EPSILON, SHARE = 0.5, 0.05  # of the figures that vary something else
AXES = {"corruption_bound": "share of contaminated rewards"}


def sweeps(full: bool) -> dict[str, Sweep]:
    """One sweep an attack: every epsilon with every share of contaminated rewards, which the learner knows."""
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    epsilons, shares = ([0.1, 0.5, 1.0], [0.0, 0.02, 0.05, 0.1]) if full else ([0.5, 1.0], [0.0, 0.05])
    settings = {
        "algorithms": PRM | RIVALS, "environment": PARETO, "horizon": horizon, "seeds": seeds,
        "grid": {"epsilon": epsilons, REWARD_SHARE: shares}, "checkpoints": 60,
    }  # fmt: skip
    attacks = ATTACKS if full else {QUICK: ATTACKS[QUICK]}
    return {name: Sweep(settings | {"reward_adversary": attack}) for name, attack in attacks.items()}


def first(results):
    """The attack that is drawn: the hardest that there is."""
    return next(name for name in ATTACKS if name in results)


def orders(ds, key):
    """The theorems' upper and lower bounds along an axis, without their constants."""
    return order_lines(int(ds.t[-1]), (lambda x: (x, SHARE)) if key == "epsilon" else (lambda x: (EPSILON, x)))


def order_lines(horizon, at):
    """Both bounds as functions of the values on an axis: `at(x)` is (epsilon, share) there."""
    sizes, gap = (len(MEANS), horizon), max(MEANS) - min(MEANS)

    def upper(x):
        epsilon, share = at(float(x))
        return theory.prm_raw_bound(*sizes, epsilon, corruption_bound=share, max_gap=gap)

    def lower(x):
        epsilon, share = at(float(x))
        return theory.private_robust_lower_bound(*sizes, epsilon, corruption=share, max_gap=gap)

    along = lambda bound: lambda xs: np.array([bound(x) for x in xs])
    return {"upper bound (order)": along(upper), "lower bound (order, times 1/27)": along(lower)}


def draw_time(results: Results) -> plot.Plot:
    """Regret against plays, one panel a share."""
    name = first(results)
    caption = f"Pareto rewards; contamination: {name}; ε = {EPSILON}"
    return plot.regret(results[name], select={"epsilon": EPSILON}, log="both", names=AXES, caption=caption)


def draw_epsilon(results: Results) -> plot.Plot:
    """Final regret against epsilon, with the bounds' orders."""
    name = first(results)
    ds = results[name]
    caption = f"Pareto rewards; {SHARE:.0%} contaminated: {name}"
    return plot.against(
        ds, "epsilon", select={"corruption_bound": SHARE}, reference=orders(ds, "epsilon"), caption=caption, width=5.5
    )


def draw_share(results: Results) -> plot.Plot:
    """Final regret against the share of contaminated rewards, with the bounds' orders."""
    name = first(results)
    ds = results[name]
    caption = f"Pareto rewards; contamination: {name}; ε = {EPSILON}"
    return plot.against(
        ds, "corruption_bound", select={"epsilon": EPSILON}, reference=orders(ds, "corruption_bound"), names=AXES,
        caption=caption, width=5.5,
    )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """PRM-UCB against each rival over all cells, and the regrets of everyone at one epsilon."""
    frames = [regrets(ds).assign(attack=name) for name, ds in results.items()]
    frame = pd.concat(frames, ignore_index=True)
    frame = frame[(frame["corruption_bound"] > 0) | (frame["attack"] == first(results))]  # without contamination once
    cells = frame.set_index(["attack", "epsilon", "corruption_bound", "algorithm"])
    mean, low, high = (cells[column].unstack() for column in ("mean", "low", "high"))
    entries = []
    for rival, what in ASKED_OF.items():
        fewer = mean["PRM-UCB"] < mean[rival]
        apart = (high["PRM-UCB"] < low[rival]) | (high[rival] < low["PRM-UCB"])
        measured = f"in {int(fewer.sum())} of {len(mean)} cells; intervals overlap in {int((~apart).sum())}"
        entries.append(Claim(f"PRM-UCB has less regret than {rival}, {what}", "", measured))
    sizes = [(len(MEANS), int(next(iter(results.values())).t[-1]), epsilon, share) for _, epsilon, share in mean.index]
    upper = np.array([theory.prm_raw_bound(k, t, epsilon, corruption_bound=share) for k, t, epsilon, share in sizes])
    ratio = mean["PRM elimination"].to_numpy() / upper
    measured = (
        f"{ratio.min():.2f} to {ratio.max():.2f} of it; at most 1 in {int((ratio <= 1).sum())} of {len(ratio)} cells"
    )
    entries.append(
        Claim("PRM elimination against the order of Theorem 6.2", "at most the order, constants hidden", measured)
    )
    for (name, epsilon, share), row in mean.iterrows():
        if epsilon == EPSILON:
            attack = f"{percent(share)} {name}" if share else "no contamination"
            measured = ", ".join(f"{label} {row[label]:,.0f}" for label in PRM | RIVALS)
            entries.append(Claim(f"regret, ε = {epsilon:g}, {attack}", "", measured))
    return entries


STUDY = Study(
    "Heavy tails, contamination and privacy at once: rewards with a bounded raw moment",
    "Theorem 6.2; docs/reproductions/private_robust_mab.md",
    sweeps,
    {"time": draw_time, "epsilon": draw_epsilon, "share": draw_share},
    claims,
)
