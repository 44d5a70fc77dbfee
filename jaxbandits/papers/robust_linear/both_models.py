"""Regret against plays, privacy level and corruption under both client models.

Beside it stand the orders of the theorems, and the rivals.
"""

from functools import partial

import numpy as np

from jaxbandits import algorithms as a
from jaxbandits import statistics, theory
from jaxbandits.formatting import percent
from jaxbandits.papers.robust_linear.instance import DIM, M1, M2, PRIVATE, horizon_sweeps, joined, target, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot

OURS = {"M1": M1, "M2": M2}
PRIVATE_RIVALS = {
    "phased elimination": a.phased_elimination,
    "central, Laplace": partial(a.private_elimination, mechanism="laplace"),
    "central, Gaussian": partial(a.private_elimination, mechanism="gaussian", delta=1e-5),
}
ROBUST_RIVALS = {
    "no filter": partial(M1, variance_bound="observed", presieve=False),
    "bucket medians": a.median_elimination,
    "trimmed means": a.trimmed_elimination,
    "Bogunovic et al., C unknown": a.bogunovic_elimination,
}
EPSILON, VALUE = 1.0, 30.0


def sweeps(full: bool) -> dict[str, Sweep]:
    """Over horizons at one epsilon, over epsilon without corruption, and over corruption without privacy noise."""
    seeds, horizon = (200, 100_000) if full else (4, 100)  # a quick run compiles most of its time: few batches
    horizons = [1000, 10_000, 100_000, 1_000_000] if full else [50, 100]
    epsilons = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, float("inf")] if full else [1.0, float("inf")]
    shares = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2] if full else [0.0, 0.1]
    common = {"environment": PRIVATE, "seeds": seeds, "horizon": horizon}
    private, robust, alone = OURS | PRIVATE_RIVALS, OURS | ROBUST_RIVALS, OURS
    if not full:  # M2 compiles a body for each batch
        private = OURS | {"phased elimination": a.phased_elimination}
        robust, alone = {label: robust[label] for label in ("M1", "no filter")}, {"M1": M1}
    return horizon_sweeps(alone, horizons, common | {"grid": {"epsilon": [EPSILON, float("inf")]}}) | {
        "epsilon": Sweep(
            common | {"algorithms": with_batches(private, horizon), "grid": {"epsilon": epsilons}, "checkpoints": 60}
        ),
        "share": Sweep(
            common
            | {
                "algorithms": with_batches(robust, horizon),
                "grid": {MESSAGE_SHARE: shares},
                "message_adversary": target(VALUE),
                "checkpoints": 60,
            }
        ),
    }


def orders(at):
    """Theorem 1.3's order for M1 and that of the proof for M2 along an axis.

    at(x): (horizon, epsilon, corruption) at the value x.
    """
    first = lambda xs: np.array(
        [theory.robust_linear_reward_bound(DIM, *at(float(x))[:2], corruption=at(float(x))[2]) for x in xs]
    )
    second = lambda xs: np.array([theory.robust_linear_action_bound(DIM, *at(float(x))[:2]) for x in xs])
    return {"order, M1": first, "order, M2 (α = 0)": second}


def draw_horizon(results: Results) -> plot.Plot:
    """Final regret against the horizon at one epsilon, with both orders."""
    reference = orders(lambda x: (x, EPSILON, 0.0))
    return plot.against(
        joined(results), "horizon", select={"epsilon": EPSILON}, reference=reference, width=5.5,
        caption=f"rewards of ±1, ε = {EPSILON:g}, no corruption",
    )  # fmt: skip


def draw_time(results: Results) -> plot.Plot:
    """Regret against plays at one epsilon."""
    caption = f"rewards of ±1, ε = {EPSILON:g}, no corruption"
    return plot.regret(results["epsilon"], select={"epsilon": EPSILON}, log="both", caption=caption)


def draw_epsilon(results: Results) -> plot.Plot:
    """Final regret against epsilon, private rivals beside."""
    horizon = int(results["epsilon"].t[-1])
    return plot.against(
        results["epsilon"], "epsilon", reference=orders(lambda x: (horizon, x, 0.0)), width=5.5,
        caption="rewards of ±1, no corruption",
    )  # fmt: skip


def draw_share(results: Results) -> plot.Plot:
    """Final regret against the share of corrupted reports, robust rivals beside."""
    horizon = int(results["share"].t[-1])
    first, _ = orders(lambda x: (horizon, float("inf"), x)).items()
    caption = f"rewards of ±1, ε = ∞; corrupted reports: -{VALUE:g} on the best arm, {VALUE:g} elsewhere"
    return plot.against(
        results["share"], "corruption_bound", names={"corruption_bound": "share of corrupted reports"},
        reference=dict([first]), width=5.5, caption=caption,
    )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """Exponents next to the theorems', M2 against M1, and everyone's regrets."""
    entries = []
    fitted = statistics.slope(joined(results), over="horizon").set_index(["algorithm", "epsilon"])
    for (label, epsilon), row in fitted.iterrows():
        measured = f"{row.slope:.2f} [{row.ci_low:.2f}, {row.ci_high:.2f}]"
        entries.append(
            Claim(f"exponent of T, {label}, ε = {epsilon:g}", "1/2 in the upper bound, logarithms dropped", measured)
        )
    frame = regrets(results["epsilon"])
    cells = frame.set_index(["epsilon", "algorithm"])["mean"].unstack()
    private = cells[np.isfinite(cells.index)]
    fewer = private["M2"] < private["M1"]
    measured = f"at {int(fewer.sum())} of {len(private)} values of ε"
    paper = "the upper bound of M2 grows more slowly as ε falls (Theorem 1.4)"
    entries.append(Claim("private, no corruption: M2 has less regret than M1", paper, measured))
    for epsilon, row in cells.iterrows():
        measured = ", ".join(f"{label} {row[label]:,.0f}" for label in OURS | PRIVATE_RIVALS if label in row)
        entries.append(Claim(f"regret, ε = {epsilon:g}, no corruption", "", measured))
    cells = regrets(results["share"]).set_index(["corruption_bound", "algorithm"])["mean"].unstack()
    for share, row in cells.iterrows():
        measured = ", ".join(f"{label} {row[label]:,.0f}" for label in OURS | ROBUST_RIVALS if label in row)
        entries.append(Claim(f"regret, ε = ∞, {percent(share)} of ±{VALUE:g}", "", measured))
    return entries


STUDY = Study(
    "Regret of both client models against plays, privacy level and corruption",
    "Theorems 1.3, 1.4, 3.4 and 3.9",
    sweeps,
    {"horizon": draw_horizon, "time": draw_time, "epsilon": draw_epsilon, "share": draw_share},
    claims,
)
