"""E1: heavy-tailed rewards with a bounded raw moment, against private and robust rivals.

There are three kinds of contamination.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.formatting import percent
from jaxbandits.papers.shared import REGRET, REWARD_SHARE, points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
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
    attacks = few(ATTACKS, full, [QUICK])
    return {name: along_both(PRM | RIVALS, PARETO, attack, full) for name, attack in attacks.items()}


def along_both(algorithms: Any, environment: Any, attack: Any, full: bool) -> Sweep:
    """Every epsilon with every share of contaminated rewards."""
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    epsilons, shares = ([0.1, 0.5, 1.0], [0.0, 0.02, 0.05, 0.1]) if full else ([0.5, 1.0], [0.0, 0.05])
    more: dict[str, Any] = {"grid": {"epsilon": epsilons, REWARD_SHARE: shares}, "checkpoints": 60}
    return swept(algorithms, environment, horizon, seeds, **more, reward_adversary=attack)


def first(results):
    """The attack that is drawn: the hardest that there is."""
    return next(name for name in ATTACKS if name in results)


def order_lines(horizon, at):
    """Both bounds, without their constants, as functions of an axis: `at(x)` is (epsilon, share) there."""
    sizes, gap = (len(MEANS), horizon), max(MEANS) - min(MEANS)

    def along(bound, share_name):
        def line(xs):
            places = [at(float(x)) for x in xs]
            return np.array([bound(*sizes, epsilon, **{share_name: share}, max_gap=gap) for epsilon, share in places])

        return line

    return {
        "upper bound (order)": along(theory.prm_raw_bound, "corruption_bound"),
        "lower bound (order, times 1/27)": along(theory.private_robust_lower_bound, "corruption"),
    }


def draw_time(results: Results) -> plot.Plot:
    """Regret against plays, one panel a share."""
    name = first(results)
    caption = f"Pareto rewards; contamination: {name}; ε = {EPSILON}"
    return plot.regret(results[name], select={"epsilon": EPSILON}, log="both", names=AXES, caption=caption)


def _against(results: Results, key: str, select: Any, at: Any, caption: str) -> plot.Plot:
    ds = results[first(results)]
    reference = order_lines(int(ds.t[-1]), at)
    return plot.against(ds, key, select=select, reference=reference, names=AXES, caption=caption, width=5.5)


def draw_epsilon(results: Results) -> plot.Plot:
    """Final regret against epsilon, with the bounds' orders."""
    caption = f"Pareto rewards; {SHARE:.0%} contaminated: {first(results)}"
    return _against(results, "epsilon", {"corruption_bound": SHARE}, lambda x: (x, SHARE), caption)


def draw_share(results: Results) -> plot.Plot:
    """Final regret against the share of contaminated rewards, with the bounds' orders."""
    caption = f"Pareto rewards; contamination: {first(results)}; ε = {EPSILON}"
    return _against(results, "corruption_bound", {"epsilon": EPSILON}, lambda x: (EPSILON, x), caption)


def claims(results: Results) -> Claims:
    """PRM-UCB against each rival over all cells, and the regrets of everyone at one epsilon."""
    frame = pd.concat([regrets(ds).assign(attack=name) for name, ds in results.items()], ignore_index=True)
    frame = frame[(frame["corruption_bound"] > 0) | (frame["attack"] == first(results))]  # without contamination once
    cells = frame.set_index(["attack", "epsilon", "corruption_bound", "algorithm"])
    mean, low, high = (cells[column].unstack() for column in ("mean", "low", "high"))
    for rival, what in ASKED_OF.items():
        fewer = mean["PRM-UCB"] < mean[rival]
        apart = (high["PRM-UCB"] < low[rival]) | (high[rival] < low["PRM-UCB"])
        measured = f"in {int(fewer.sum())} of {len(mean)} cells; intervals overlap in {int((~apart).sum())}"
        yield Claim(f"PRM-UCB has less regret than {rival}, {what}", "", measured)
    sizes = len(MEANS), int(next(iter(results.values())).t[-1])
    upper = [theory.prm_raw_bound(*sizes, epsilon, corruption_bound=share) for _, epsilon, share in mean.index]
    ratio = mean["PRM elimination"].to_numpy() / np.array(upper)
    measured = (
        f"{ratio.min():.2f} to {ratio.max():.2f} of it; at most 1 in {int((ratio <= 1).sum())} of {len(ratio)} cells"
    )
    statement = "PRM elimination against the order of Theorem 6.2"
    yield Claim(statement, "at most the order, constants hidden", measured)
    for (name, epsilon, share), row in mean.iterrows():
        if epsilon == EPSILON:
            attack = f"{percent(share)} {name}" if share else "no contamination"
            everyone = list(PRM | RIVALS)
            yield Claim(f"regret, ε = {epsilon:g}, {attack}", "", points(everyone, row[everyone], REGRET))


STUDY = Study(
    "Heavy tails, contamination and privacy at once: rewards with a bounded raw moment",
    "Theorem 6.2; docs/reproductions/private_robust_mab.md", sweeps,
    {"time": draw_time, "epsilon": draw_epsilon, "share": draw_share}, claims,
)  # fmt: skip
