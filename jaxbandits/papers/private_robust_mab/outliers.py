"""Five per cent of rewards replaced: who breaks.

By inf, NaN, a million or minus a million; the robust algorithms are told to expect 5% of contamination.
"""

from functools import partial
from typing import Any

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.papers.private_robust_mab.raw_moments import PARETO
from jaxbandits.papers.shared import RATIO, points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept

BOUND = 0.05
ATTACKS = {
    "inf": partial(v.huber, value="inf"), "NaN": partial(v.huber, value="nan"), "1e6": partial(v.huber, value=1e6),
    "-1e6": partial(v.huber, value=-1e6), "swapped": partial(v.huber, kind="swapped"),
}  # fmt: skip
HEAVY: dict[str, Any] = {"moment_order": 2.0, "moment_bound": 1.0}
ALGORITHMS = {
    "PRM elimination": partial(a.prm_elimination, epsilon=1.0, corruption_bound=BOUND),
    "PRM-UCB": partial(a.prm_ucb, epsilon=1.0, corruption_bound=BOUND),
    "robust UCB, truncated mean": partial(a.robust_ucb, **HEAVY),
    "robust UCB, median of means": partial(a.robust_ucb, estimator="median_of_means", **HEAVY),
    "robust UCB, Catoni": partial(a.robust_ucb, estimator="catoni", **HEAVY),
    "Huber UCB": partial(a.huber_ucb, corruption_bound=BOUND),
    "crUCB, trimmed mean": partial(a.cr_ucb, corruption_bound=BOUND),
    "crUCB, shorth": partial(a.cr_ucb, estimator="shorth", corruption_bound=BOUND),
    "UCB1": a.ucb1,
}
OURS = ("PRM elimination",)  # the paper's
SAID = "the order does not depend on what replaces a reward (Theorem 6.2), constants hidden"
QUICK = ("PRM elimination", "PRM-UCB", "robust UCB, truncated mean", "UCB1")  # keep no rewards
RULES = {
    "PRM elimination": "left out, n stays", "PRM-UCB": "left out, n stays", "robust UCB, truncated mean": "counts as 0",
}  # fmt: skip


def sweeps(full: bool) -> dict[str, Sweep]:
    """With each attack and without; algorithms that store all rewards take time as T^2: their T is short."""
    long, short, seeds = (100_000, 4000, 100) if full else (2000, 1000, 8)
    storing = {label: algorithm for label, algorithm in ALGORITHMS.items() if label not in QUICK}
    groups = {
        "": ({label: ALGORITHMS[label] for label in QUICK}, long),
        "-kept": (few(storing, full, list(storing)[-1:]), short),
    }
    grid = {"reward_adversary.corruption": [0.0, BOUND]}
    return {
        name + group: swept(algorithms, PARETO, horizon, seeds, grid=grid, reward_adversary=attack)
        for group, (algorithms, horizon) in groups.items()
        for name, attack in few(ATTACKS, full, ("inf", "1e6")).items()
    }


def claims(results: Results) -> Claims:
    attacks = [name for name in results if not name.endswith("-kept")]
    for group in ("", "-kept"):
        first = results[attacks[0] + group]
        means = {
            name: regrets(results[name + group]).set_index(["reward_adversary.corruption", "algorithm"])["mean"]
            for name in attacks
        }
        nonfinite = first["nonfinite_rewards"].isel({"reward_adversary.corruption": -1}).mean("seed")
        for label in map(str, first["algorithm"].values):
            measured = points(attacks, [means[name][BOUND, label] / means[name][0.0, label] for name in attacks], RATIO)
            measured += f"; a non-finite reward {RULES.get(label, 'counts as 0')}, "
            measured += f"{float(nonfinite.sel(algorithm=label)):,.0f} of them a run"
            clean = means[attacks[0]][0.0, label]
            statement = f"{label}, T = {int(first.t[-1]):,}: regret {clean:,.0f} without; ratio with"
            yield Claim(statement, SAID if label in OURS else "", measured)


STUDY = Study(__doc__, "docs/formulas/private_robust_mab.md#contamination", sweeps, {}, claims)
