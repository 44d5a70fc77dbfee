"""Regret of both client models against plays, privacy level and corruption.

Beside it stand the orders of the theorems, and the rivals.
"""

from functools import partial

import numpy as np

from jaxbandits import algorithms as a
from jaxbandits import statistics, theory
from jaxbandits.formatting import percent
from jaxbandits.papers.robust_linear.instance import DIM, M1, M2, PRIVATE, horizon_sweeps, joined, target, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, against, along, by_value, fitted, picture, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
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
    seeds, horizon = (200, 100_000) if full else (4, 100)  # a quick run compiles most of its time: few batches
    horizons = [1000, 10_000, 100_000, 1_000_000] if full else [50, 100]
    epsilons = {"epsilon": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, float("inf")] if full else [1.0, float("inf")]}
    shares = {MESSAGE_SHARE: [0.0, 0.01, 0.02, 0.05, 0.1, 0.2] if full else [0.0, 0.1]}
    # M2 compiles a body for each batch
    alone, robust = few(OURS, full, ["M1"]), few(OURS | ROBUST_RIVALS, full, ["M1", "no filter"])
    private = with_batches(OURS | few(PRIVATE_RIVALS, full, ["phased elimination"]), horizon)
    robust, at_end = with_batches(robust, horizon), {"epsilon": [EPSILON, float("inf")]}
    curves = partial(swept, environment=PRIVATE, horizon=horizon, seeds=seeds, checkpoints=60)
    return horizon_sweeps(alone, horizons, PRIVATE, seeds, at_end) | {
        "epsilon": curves(private, grid=epsilons),
        "share": curves(robust, grid=shares, message_adversary=target(VALUE)),
    }


def orders(at, shown=()):
    """Theorem 1.3's order for M1 and that of the proof for M2; `at(x)` is (horizon, epsilon, corruption) there."""
    first = lambda horizon, epsilon, share: theory.robust_linear_reward_bound(DIM, horizon, epsilon, corruption=share)
    second = lambda horizon, epsilon, _: theory.robust_linear_action_bound(DIM, horizon, epsilon)
    both = {"order, M1": along(first, at), "order, M2 (α = 0)": along(second, at)}
    return {order: both[order] for order in shown or both}


PRIVATELY = f"rewards of ±1, ε = {EPSILON:g}, no corruption"


def claims(results: Results) -> Claims:
    for row in statistics.slope(joined(results), over="horizon").itertuples():
        paper = "1/2 in the upper bound, logarithms dropped"
        yield Claim(f"exponent of T, {row.algorithm}, ε = {row.epsilon:g}", paper, fitted(row))
    frame = regrets(results["epsilon"])
    cells = frame[np.isfinite(frame["epsilon"])].set_index(["epsilon", "algorithm"])["mean"].unstack()
    measured = f"at {int((cells['M2'] < cells['M1']).sum())} of {len(cells)} values of ε"
    paper = "the upper bound of M2 grows more slowly as ε falls (Theorem 1.4)"
    yield Claim("private, no corruption: M2 has less regret than M1", paper, measured)
    yield from by_value(results["epsilon"], "epsilon", "regret, ε = {:g}, no corruption".format)
    statement = lambda share: f"regret, ε = ∞, {percent(share)} of ±{VALUE:g}"
    yield from by_value(results["share"], "corruption_bound", statement)


STUDY = Study(
    __doc__, "Theorems 1.3, 1.4, 3.4 and 3.9", sweeps,
    {
        "horizon": against(
            joined, "horizon", select={"epsilon": EPSILON}, reference=orders(lambda x: (x, EPSILON, 0.0)),
            caption=PRIVATELY, width=5.5,
        ),
        "time": picture(plot.regret, "epsilon", select={"epsilon": EPSILON}, log="both", caption=PRIVATELY),
        "epsilon": against(
            "epsilon", "epsilon", reference=lambda ds: orders(lambda x: (int(ds.t[-1]), x, 0.0)),
            caption="rewards of ±1, no corruption", width=5.5,
        ),
        "share": against(
            "share", "corruption_bound", names={"corruption_bound": "share of corrupted reports"}, width=5.5,
            reference=lambda ds: orders(lambda x: (int(ds.t[-1]), float("inf"), x), ["order, M1"]),
            caption=f"rewards of ±1, ε = ∞; corrupted reports: -{VALUE:g} on the best arm, {VALUE:g} elsewhere",
        ),
    },
    claims,
)  # fmt: skip
