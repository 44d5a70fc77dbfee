"""The order k of the moment, on an instance of ours that has Theorem 4.1's privacy term: is it 1 - 1/k in 1/epsilon?

One arm pays p^(-1/k) with probability p and 0 otherwise, so that its k-th raw moment is 1 and its mean p^(1 - 1/k); the
others pay 0. Privacy hides the arm while p is of order K log(T) / (epsilon T), and then it costs
(K / epsilon)^(1 - 1/k) T^(1/k): the theorem's order. Here rewards are divided by p^(-1/k), which leaves play as it is:
they are 0 or 1, with p as the moment's bound. p is c K log(T) / (epsilon T), at the c of the grid that costs most.
The question, fixed before the run: is the exponent of 1/epsilon over two decades within 0.1 of 1 - 1/k?
"""

import math
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import exponent
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

NUM_ARMS = 5
ORDERS = [2, 3, 4]
PRM = {  # rewards of 0 and 1: a batch's sum is drawn at once, so that a hundred million plays are cheap
    "PRM elimination": partial(a.prm_elimination, shortcut=True),
    "PRM-UCB": partial(a.prm_ucb, shortcut=True),
}


def epsilons(full: bool) -> list[float]:
    """Privacy levels, over two decades at full size."""
    return [3e-5, 1e-4, 3e-4, 1e-3, 3e-3] if full else [0.1, 0.3, 1.0]


def factors(full: bool) -> list[float]:
    """The constants c of p."""
    return [0.3, 1.0, 2.0, 3.0, 4.5, 6.0, 9.0, 13.0, 20.0, 30.0] if full else [0.3, 3.0]


def probabilities(horizon: int, epsilon: float, multiples: list[float]) -> np.ndarray:
    """p at each c, at most 1."""
    return np.minimum(1.0, np.array(multiples) * NUM_ARMS * math.log(horizon) / (epsilon * horizon))


def sweeps(full: bool) -> dict[str, Sweep]:
    """A sweep for every order and epsilon, along c."""
    horizon, seeds = (100_000_000, 16) if full else (2000, 4)
    declared = {}
    for order in ORDERS:
        for eps in epsilons(full):
            points = [
                {"environment.means": [p] + [0.0] * (NUM_ARMS - 1), "moment_bound": p}
                for p in probabilities(horizon, eps, factors(full))
            ]
            settings = {
                "algorithms": {label: partial(make, moment_order=order, epsilon=eps) for label, make in PRM.items()},
                "environment": e.bernoulli_arms, "horizon": horizon, "seeds": seeds, "checkpoints": 1,
                "points": points,
            }  # fmt: skip
            declared[f"{order}-{eps:g}"] = Sweep(settings)
    return declared


def costs(results: Results) -> xr.DataArray:
    """Regret of rewards whose k-th moment is 1, at the c that costs most, which is the coordinate `factor`.

    Dimensions: algorithm, order, epsilon, seed.
    """
    found: dict[int, list] = {order: [] for order in ORDERS}
    chosen: dict[int, list] = {order: [] for order in ORDERS}
    levels: list[float] = []
    for name, ds in results.items():
        order, eps = int(name.partition("-")[0]), float(name.partition("-")[2])
        levels += [eps] if eps not in levels else []
        horizon = int(ds["t"][-1])
        regret = final_regret(ds).transpose("algorithm", "point", "seed").values
        multiples = factors(regret.shape[1] == len(factors(True)))
        p = probabilities(horizon, eps, multiples)
        scaled = regret * p[:, None] ** (-1 / order)
        worst = scaled.mean(-1).argmax(1)
        found[order].append(scaled[np.arange(len(scaled)), worst])
        chosen[order].append(np.array(multiples)[worst])
    values = np.array([found[order] for order in ORDERS]).transpose(2, 0, 1, 3)
    coordinates = {"algorithm": list(PRM), "order": ORDERS, "epsilon": levels, "seed": range(values.shape[-1])}
    cost = xr.DataArray(values, coordinates, ("algorithm", "order", "epsilon", "seed"))
    factor = np.array([chosen[order] for order in ORDERS]).transpose(2, 0, 1)
    return cost.assign_coords(factor=(("algorithm", "order", "epsilon"), factor))


def draw(results: Results) -> plot.Plot:
    """Regret against epsilon for every order, with lines of the stated order and a constant of 1."""
    cost, rows, dotted = costs(results), [], {}
    horizon = int(next(iter(results.values()))["t"][-1])
    label = next(iter(PRM))
    for order in ORDERS:
        line, stated = f"{label}, k = {order}", f"(K/ε)^(1 - 1/{order}) T^(1/{order})"
        for eps in cost["epsilon"].values:
            mean, low, high = mean_interval(cost.sel(algorithm=label, order=order, epsilon=eps).values)
            rows.append({"epsilon": eps, "regret": mean, "low": low, "high": high, "line": line})
            y = (NUM_ARMS / eps) ** (1 - 1 / order) * horizon ** (1 / order)
            rows.append({"epsilon": eps, "regret": y, "low": y, "high": y, "line": stated})
        dotted[stated] = line
    caption = f"T = {horizon:,}, {NUM_ARMS} arms, rewards of moment 1; dotted: Theorem 4.1's order with a constant of 1"
    words = {"epsilon": "privacy level ε", "regret": "cumulative regret"}
    return plot.lines(
        pd.DataFrame(rows), "epsilon", "regret", line="line", log="both", dotted=dotted, names=words, caption=caption,
        width=6.5,
    )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """Exponents of 1/epsilon beside 1 - 1/k, and regret over the order."""
    cost, entries = costs(results), []
    horizon = int(next(iter(results.values()))["t"][-1])
    for order in ORDERS:
        stated = 1 - 1 / order
        for label in PRM:
            at = cost["factor"].sel(algorithm=label, order=order).values
            here = (
                cost.drop_vars("factor")
                .sel(algorithm=[label], order=order, drop=True)
                .expand_dims("t", -1)
                .assign_coords(t=[horizon])
            )
            ds = here.to_dataset(name="regret").assign_attrs(constant_along="{}")
            fitted, interval = exponent(ds, "epsilon", sign=-1)
            means = here.isel(algorithm=0, t=0).mean("seed")
            ratios = [
                float(y) / ((NUM_ARMS / float(x)) ** stated * horizon ** (1 / order))
                for x, y in zip(means["epsilon"], means, strict=True)
            ]
            proved = label == next(iter(PRM))  # Theorem 6.2 is about PRM elimination
            paper = f"1 - 1/k = {stated:.2f} (Theorem{'s 4.1 and 6.2' if proved else ' 4.1'})"
            measured = f"{fitted:.2f}; {min(ratios):.2f} to {max(ratios):.2f} of the order with a constant of 1; "
            measured += f"c = {at.min():g} to {at.max():g} costs most" + (f"; {interval}" if proved else "")
            entries.append(Claim(f"exponent of 1/ε, k = {order}: {label}", paper, measured))
    for order in ORDERS:
        for label in PRM:
            means = cost.sel(algorithm=label, order=order).mean("seed")
            points = ", ".join(f"{float(y):,.0f} at {float(x):g}" for x, y in zip(means["epsilon"], means, strict=True))
            entries.append(Claim(f"regret by ε, k = {order}: {label}", "", points))
    return entries


STUDY = Study(
    "The order of the moment, on the lower bound's own instance",
    "Theorems 4.1 and 6.2",
    sweeps,
    {"epsilon": draw},
    claims,
)
