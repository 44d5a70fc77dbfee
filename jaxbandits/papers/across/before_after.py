"""Corruption before or after local privacy."""

from functools import partial
from typing import Any

import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import provenance
from jaxbandits.formatting import percent
from jaxbandits.papers.private_robust_mab.experiments import PARETO
from jaxbandits.papers.shared import by_value, ratios
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

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
KINDS: dict[str, tuple[Any, ...]] = {
    "binary": (
        1.0,
        10.0,
        partial(e.bernoulli_arms, means=[0.9, 0.7, 0.5, 0.3, 0.1]),
        {LDP_UCB: partial(a.ldp_ucb, mechanism="randomized_response")}
        | dict.fromkeys((NOT_TOLD, TOLD), partial(ELIMINATION, moment_order=float("inf"))),
    ),
    "heavy": ("inf", 1000.0, PARETO, dict.fromkeys((NOT_TOLD, TOLD), partial(ELIMINATION, truncation="clip"))),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds, epsilons = (100_000, 200, [0.5, 1.0, 2.0, 4.0]) if full else (2000, 4, [1.0, 4.0])
    declared = {}
    for kind, (reward, report, environment, algorithms) in KINDS.items():
        for name, (before, after, attack) in _places(reward, report).items():
            told = partial(algorithms[TOLD], corruption_before=before, corruption_after=after)
            learners, grid = algorithms | {TOLD: told}, {"epsilon": epsilons}
            declared[f"{kind}-{name}"] = swept(learners, environment, horizon, seeds, grid=grid, **attack)
    return few(declared, full, [f"{kind}-{name}" for kind in KINDS for name in (BEFORE, IN_RANGE)])


def placed(results: Results, kind: str, algorithm: str) -> xr.Dataset:
    """One algorithm's regret, with the place of corruption as the `algorithm` of a curve."""
    there = {words: results[f"{kind}-{place}"] for place, words in LABELS.items() if f"{kind}-{place}" in results}
    parts = [ds[["regret"]].sel(algorithm=[algorithm]).assign_coords(algorithm=[x]) for x, ds in there.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def draw(kind: str, algorithm: str, caption: str, results: Results) -> plot.Plot:
    text = f"{algorithm}; {caption}; {percent(SHARE)} corrupted"
    return plot.against(placed(results, kind, algorithm), "epsilon", caption=text, width=6.0)


def claims(results: Results) -> Claims:
    said = provenance.records()["local_robust_orders"].said("c^(1 - 1/k) times as much")
    for kind, label in ((kind, label) for kind, (*_, algorithms) in KINDS.items() for label in algorithms):
        ds = placed(results, kind, label)
        yield from by_value(ds, "epsilon", f"{kind}: regret of {label} at ε = {{:g}}".format, separator="; ")
        compared = ratios(final_regret(ds), LABELS[IN_RANGE], LABELS[BEFORE])
        yield Claim(f"{kind}: {label}, reports by honest ones over rewards", said, compared)


STUDY = Study(
    __doc__, "docs/formulas/private_frontier.md#local-privacy-and-corruption", sweeps,
    {
        "ldp-ucb": partial(draw, "binary", LDP_UCB, "rewards of 0 and 1"),
        "elimination": partial(draw, "binary", TOLD, "rewards of 0 and 1"),
        "elimination-not-told": partial(draw, "binary", NOT_TOLD, "rewards of 0 and 1"),
        "heavy": partial(draw, "heavy", TOLD, "Pareto rewards"),
    },
    claims,
)  # fmt: skip
