"""The dimension: what d costs under both client models, and beside Bogunovic et al. with a known budget C.

Without corruption the orders are sqrt(d T) for M1 and d sqrt(T) for M2. Under corruption of a share alpha M1 has
T max(sqrt(alpha d), alpha d), Bogunovic et al. d^(3/2) C with C = alpha T times the size of a corruption: a factor of
sqrt(d) from alpha = 1 / d on, and of d sqrt(alpha) below it, times the size. The questions, fixed before the run: how
does regret grow with d at T = 100,000, and by which factor is that of Bogunovic et al., who are told C, above M1's? No
privacy; rewards are Gaussian; 4 d random unit arms.
"""

import math
from functools import partial

import numpy as np
import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import percent
from jaxbandits.papers.robust_linear.instance import M1, M2, target, unit, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, curve, ratio_interval
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

VALUE = 30.0  # of a corrupted report; a mean is at most 1
KNOWN, UNIFORM = "Bogunovic et al., C known", "uniform play"


def world(dim: int):
    """4 d random unit arms and a random unit theta, the same in every run."""
    rng = np.random.default_rng(dim)
    actions, theta = unit(rng.normal(size=(4 * dim, dim))), unit(rng.normal(size=dim))
    return partial(e.linear_arms, actions=actions, theta=theta)


def sweeps(full: bool) -> dict[str, Sweep]:
    """A sweep a dimension, along the share of corrupted reports, which everybody is told."""
    horizon, seeds = (100_000, 16) if full else (100, 4)
    shares = [0.0, 0.001, 0.01] if full else [0.0, 0.01]
    declared = {}
    for dim in [5, 20, 50] if full else [3, 4]:
        models = {"M1": partial(M1, refit=True)}
        if full:  # M2 would double the seconds of compiling, and its rows are those of M1
            models["M2"] = partial(M2, refit=True, weight_floor=1 / dim)
        algorithms = models | {KNOWN: a.bogunovic_elimination}
        told = [(share, share, share * horizon * (VALUE + 1)) for share in shares]
        settings = {
            "algorithms": with_batches(algorithms, horizon), "environment": world(dim), "horizon": horizon,
            "seeds": seeds, "checkpoints": 1, "message_adversary": target(VALUE),
            "grid": {(*MESSAGE_SHARE, f"{KNOWN}.corruption_budget"): told},
        }  # fmt: skip
        declared[f"{dim}"] = Sweep(settings)
    return declared


def along(results: Results) -> tuple[np.ndarray, list[float], list[int]]:
    """Final regret [dim, algorithm, share, seed], the shares and the dimensions."""
    finals = [final_regret(ds).transpose("algorithm", ..., "seed") for ds in results.values()]
    shares = [float(str(x).strip("(").split(",")[0]) for x in finals[0][finals[0].dims[1]].values]
    return np.stack([final.values for final in finals]), shares, [int(name) for name in results]


def horizon_of(results: Results) -> int:
    """The plays of a run."""
    return int(next(iter(results.values()))["t"][-1])


def labels_of(results: Results) -> list[str]:
    """The algorithms, in order."""
    return [str(x) for x in next(iter(results.values()))["algorithm"].values]


def draw(results: Results) -> plot.Plot:
    """Regret against the dimension, without corruption and at the largest share."""
    regret, shares, dims = along(results)
    rows, dotted = [], {}
    for place in (len(shares) - 1, 0):
        for row, label in enumerate(labels_of(results)):
            words = "no corruption" if place == 0 else f"{percent(shares[place])} corrupted"
            line = f"{label}, {words}"
            if place == 0:
                dotted[line] = f"{label}, {percent(shares[-1])} corrupted"
            rows += curve(line, "dim", dims, "regret", regret[:, row, place])
    horizon = horizon_of(results)
    rows += curve(UNIFORM, "dim", dims, "regret", [horizon * gaps(dim).mean() for dim in dims])
    caption = f"T = {horizon:,}; reports of ∓{VALUE:g}, everybody told the share; dotted: no corruption"
    names = {"dim": "dimension d", "regret": "cumulative regret"}
    return plot.lines(
        pd.DataFrame(rows), "dim", "regret", line="line", log="both", dotted=dotted, names=names, caption=caption,
        width=6.5,
    )  # fmt: skip


def useful_share(dim: int, gap: float) -> float:
    """The share above which the radius of Bogunovic et al. drops no arm of this gap, whatever the horizon.

    Its part about C in the last batch, which has at most T / 2 plays, is above half the gap.
    """
    first = 4 * dim * (math.log(math.log(max(dim, 2))) + 18)
    # the slack of a batch of m plays, 2 C / (m v) sqrt(4 d (1 + v m_0)) at v = 1 / m_0, is compared with gaps
    return gap / (2 * 2 * (VALUE + 1) * first * math.sqrt(8 * dim))


def gaps(dim: int) -> np.ndarray:
    """Of all arms of a dimension; uniform play costs their mean a play."""
    bound = world(dim).keywords
    means = bound["actions"] @ bound["theta"]
    return means.max() - means


def claims(results: Results) -> list[Claim]:
    """Growth with d, the factor to the rival, and the regrets."""
    regret, shares, dims = along(results)
    labels, entries = labels_of(results), []
    stated = {
        "M1": ("1/2: √(dT) (Theorem 1.3)", "1/2: T√(αd), as αd < 1 (Theorem 1.3)"),
        "M2": ("1: d√T (Theorem 1.4)", "a term d^(3/2) in α (Theorem 1.4, garbled in our copy)"),
    }
    for row, label in enumerate(labels[:-1]):
        for place, share in ((0, 0.0), (len(shares) - 1, shares[-1])):
            means = regret[:, row, place].mean(-1)
            slope = np.polyfit(np.log(dims), np.log(means), 1)[0]
            over = means / [horizon_of(results) * gaps(dim).mean() for dim in dims]
            measured = f"{slope:.2f}; {', '.join(f'{y:.3f}' for y in over)} of uniform play's regret"
            paper = stated[label][0 if place == 0 else 1]
            words = "no corruption" if place == 0 else f"share {percent(share)}"
            entries.append(Claim(f"exponent of d, {label}, {words}", paper, measured))
    for dim, values in zip(dims, regret, strict=True):
        ratio, low, high = (float(x) for x in ratio_interval(values[labels.index(KNOWN), -1], values[0, -1]))
        measured = f"{ratio:.1f} [{low:.1f}, {high:.1f}] times M1's regret"
        paper = f"d√α = {dim * math.sqrt(shares[-1]):.1f} times the size, in orders (αd < 1)"
        entries.append(Claim(f"{KNOWN}, d = {dim}, share {percent(shares[-1])}", paper, measured))
    for dim in dims:
        share = useful_share(dim, gaps(dim).max())
        measured = f"no arm is dropped above a share of {share:.1e}, at any T"
        entries.append(Claim(f"the radius of {KNOWN}, d = {dim}", "", measured))
    for dim, values in zip(dims, regret, strict=True):
        for place, share in enumerate(shares):
            points = ", ".join(f"{label} {y:,.0f}" for label, y in zip(labels, values[:, place].mean(-1), strict=True))
            entries.append(Claim(f"regret, d = {dim}, share {percent(share)}", "", points))
    return entries


STUDY = Study(
    "What the dimension costs",
    "Theorems 1.3 and 1.4",
    sweeps,
    {"dim": draw},
    claims,
)
