"""The order of the moment, on rare rewards: an instance of ours.

One arm pays p^(-1/k) with probability p and 0 otherwise, the others 0. Rewards are divided by p^(-1/k), which leaves
play as it is: they are 0 or 1, with p as the moment's bound. p is c K log(T) / (epsilon T), at the c that costs most.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.papers.shared import Curve, as_sweep, draw_curves, exponent, horizon_of, series
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

NUM_ARMS = 5
ORDERS = [2, 3, 4]
# rewards of 0 and 1: a batch's sum is drawn at once, so that a hundred million plays are cheap
PRM = {"PRM elimination": partial(a.prm_elimination, shortcut=True), "PRM-UCB": partial(a.prm_ucb, shortcut=True)}
# the constants c of p, at full size and at quick size
FACTORS = {True: [0.3, 1.0, 2.0, 3.0, 4.5, 6.0, 9.0, 13.0, 20.0, 30.0], False: [0.3, 3.0]}
HORIZONS = {True: 100_000_000, False: 2000}
EPSILONS = {True: [3e-5, 1e-4, 3e-4, 1e-3, 3e-3], False: [0.1, 0.3, 1.0]}


def probabilities(horizon: int, epsilon: float, multiples: list[float]) -> np.ndarray:
    """p at each c, at most 1."""
    return np.minimum(1.0, np.array(multiples) * NUM_ARMS * math.log(horizon) / (epsilon * horizon))


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = HORIZONS[full], 16 if full else 4
    declared = {}
    for order, eps in product(ORDERS, EPSILONS[full]):
        algorithms = {label: partial(make, moment_order=order, epsilon=eps) for label, make in PRM.items()}
        zeros, best = [0.0] * (NUM_ARMS - 1), probabilities(horizon, eps, FACTORS[full])
        cells = [{"environment.means": [p, *zeros], "moment_bound": p} for p in best]
        declared[f"{order}-{eps:g}"] = swept(algorithms, e.bernoulli_arms, horizon, seeds, points=cells)
    return declared


def costs(results: Results) -> xr.DataArray:
    """Regret [algorithm, order, epsilon, seed] of rewards whose k-th moment is 1, at the `factor` that costs most."""
    parts = []
    for name, ds in results.items():
        order, eps = int(name.partition("-")[0]), float(name.partition("-")[2])
        multiples = FACTORS[ds.sizes["point"] == len(FACTORS[True])]
        p = probabilities(int(ds["t"][-1]), eps, multiples)
        scaled = final_regret(ds).reset_coords(drop=True) * xr.DataArray(p ** (-1 / order), dims="point")
        worst = scaled.assign_coords(factor=("point", multiples)).isel(point=scaled.mean("seed").argmax("point"))
        parts.append(worst.drop_vars("point", errors="ignore").expand_dims(order=[order], epsilon=[eps]))
    cost: Any = xr.combine_by_coords(parts)
    return cost.transpose("algorithm", "order", "epsilon", "seed")


def draw(results: Results) -> plot.Plot:
    cost, lines, dotted = costs(results), list[Curve](), {}
    horizon, label = horizon_of(results), next(iter(PRM))
    for order in ORDERS:
        line, stated = f"{label}, k = {order}", f"√(KT) + (K/ε)^(1 - 1/{order}) T^(1/{order})"
        dotted[stated] = line
        for x in cost["epsilon"].values:
            lines.append((line, [x], cost.sel(algorithm=[label], order=order, epsilon=x)))
            lines.append((stated, [x], [order_of(order, x, horizon)]))
    caption = f"T = {horizon:,}, {NUM_ARMS} arms, rewards of moment 1, each at the worst c; "
    caption += "dotted: Theorem 4.1's order with a constant of 1"
    words = {"epsilon": "privacy level ε", "regret": "cumulative regret"}
    return draw_curves("epsilon", "regret", lines, dotted=dotted, names=words, caption=caption, width=6.5)


def order_of(order: int, epsilon: float, horizon: int) -> float:
    """Theorem 4.1's order without contamination, with a constant of 1."""
    return math.sqrt(NUM_ARMS * horizon) + (NUM_ARMS / epsilon) ** (1 - 1 / order) * horizon ** (1 / order)


def slope_of_order(order: int, epsilons: Sequence[float], horizon: int, *, upper: bool = False) -> float:
    """The slope along 1/epsilon of Theorem 4.1's order, or of Theorem 6.2's, fitted as that of a regret is."""
    if upper:
        values = [theory.prm_raw_bound(NUM_ARMS, horizon, x, moment_order=order) for x in epsilons]
    else:
        values = [order_of(order, x, horizon) for x in epsilons]
    return -float(np.polyfit(np.log(epsilons), np.log(values), 1)[0])


def claims(results: Results) -> Claims:
    cost, horizon = costs(results), horizon_of(results)
    for order, label in product(ORDERS, PRM):
        here = cost.sel(algorithm=label, order=order)
        at, means = here["factor"].values, here.mean("seed")
        fitted, interval = exponent(as_sweep(here), "epsilon", sign=-1)
        ratios = [float(y) / order_of(order, float(x), horizon) for x, y in zip(means["epsilon"], means, strict=True)]
        proved = label == next(iter(PRM))  # Theorem 6.2 is about PRM elimination
        at_epsilons = means["epsilon"].values.tolist()
        slopes = [slope_of_order(order, at_epsilons, horizon, upper=upper) for upper in (False, True)[: 1 + proved]]
        stated = " and ".join(f"{slope:.2f}" for slope in slopes)
        whose = "orders of Theorems 4.1 and 6.2" if proved else "order of Theorem 4.1"
        paper = f"{stated}: slope of the {whose}"
        measured = f"{fitted:.2f}; {min(ratios):.2f} to {max(ratios):.2f} of the order with a constant of 1; "
        measured += f"c = {at.min():g} to {at.max():g} costs most" + (f"; {interval}" if proved else "")
        yield Claim(f"exponent of 1/ε, k = {order}: {label}", paper, measured)
    for order, label in product(ORDERS, PRM):
        means = cost.sel(algorithm=label, order=order).mean("seed")
        yield Claim(f"regret by ε, k = {order}: {label}", "", series(means["epsilon"], means))


STUDY = Study(__doc__, "Theorems 4.1 and 6.2", sweeps, {"epsilon": draw}, claims)
