"""What the dimension costs."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import percent
from jaxbandits.papers import shared
from jaxbandits.papers.robust_linear.instance import M1, M2, gaps, target, unit, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, REGRET, Curve, draw_curves, horizon_of, series
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret, grid_dims

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
    told = [(share, share, share * horizon * (VALUE + 1)) for share in ([0.0, 0.001, 0.01] if full else [0.0, 0.01])]
    grid = {(*MESSAGE_SHARE, f"{KNOWN}.corruption_budget"): told}
    declared = {}
    for dim in [5, 20, 50] if full else [3, 4]:
        models = {"M1": partial(M1, refit=True), "M2": partial(M2, refit=True, weight_floor=1 / dim)}
        # M2 would double the seconds of compiling, and its rows are those of M1
        algorithms = with_batches(few(models, full, ["M1"]) | {KNOWN: a.bogunovic_elimination}, horizon)
        declared[f"{dim}"] = swept(algorithms, world(dim), horizon, seeds, grid=grid, message_adversary=target(VALUE))
    return declared


def regret_by_dim(results: Results) -> xr.DataArray:
    """Final regret along `dim`, `algorithm`, `share` and `seed`."""
    parts = []
    for dim, ds in results.items():
        (key,) = grid_dims(ds)
        final = final_regret(shared.with_numeric_key(ds, key, "share"))
        parts.append(final.reset_coords(drop=True).assign_coords(dim=int(dim)))
    return xr.concat(parts, "dim").transpose("dim", "algorithm", "share", "seed")


def uniform_regret(results: Results, dims: Any) -> list[float]:
    """What uniform play costs in each dimension."""
    return [horizon_of(results) * gaps(world(dim)).mean() for dim in dims]


def draw(results: Results) -> plot.Plot:
    regret, horizon = regret_by_dim(results), horizon_of(results)
    dims, most, labels = regret["dim"].values, float(regret["share"][-1]), regret["algorithm"].values
    words = {most: f"{percent(most)} corrupted", 0.0: "no corruption"}
    lines, at = list[Curve](), product(words.items(), labels)
    lines += [(f"{label}, {said}", dims, regret.sel(algorithm=label, share=share)) for (share, said), label in at]
    dotted = {f"{label}, {words[0.0]}": f"{label}, {words[most]}" for label in labels}
    lines.append((UNIFORM, dims, uniform_regret(results, dims)))
    caption = f"T = {horizon:,}; reports of ∓{VALUE:g}, everybody told the share; dotted: no corruption"
    names = {"dim": "dimension d", "regret": "cumulative regret"}
    return draw_curves("dim", "regret", lines, dotted=dotted, names=names, caption=caption, width=6.5)


def useful_share(dim: int, gap: float) -> float:
    """The share above which the radius of Bogunovic et al. drops no arm of this gap, whatever the horizon."""
    first = 4 * dim * (math.log(math.log(max(dim, 2))) + 18)
    # Its part about C in the last batch, which has at most T / 2 plays, is above half the gap: the slack of a batch of
    # m plays, 2 C / (m v) sqrt(4 d (1 + v m_0)) at v = 1 / m_0, is compared with gaps.
    return gap / (2 * 2 * (VALUE + 1) * first * math.sqrt(8 * dim))


def claims(results: Results) -> Claims:
    regret = regret_by_dim(results)
    dims, most = regret["dim"].values, float(regret["share"][-1])
    stated = {
        "M1": ("1/2: √(dT) (Theorem 1.3)", "1/2: T√(αd), as αd < 1 (Theorem 1.3)"),
        "M2": ("1: d√T (Theorem 1.4)", "a term d^(3/2) in α (Theorem 1.4, garbled in our copy)"),
    }
    for label in regret["algorithm"].values[:-1]:
        for share, paper in zip((0.0, most), stated[label], strict=True):
            means = regret.sel(algorithm=label, share=share).mean("seed").values
            slope = np.polyfit(np.log(dims), np.log(means), 1)[0]
            over = means / uniform_regret(results, dims)
            measured = f"{slope:.2f}; {', '.join(f'{y:.3f}' for y in over)} of uniform play's regret"
            words = f"share {percent(share)}" if share else "no corruption"
            yield Claim(f"exponent of d, {label}, {words}", paper, measured)
    for dim in dims:
        known, first = (regret.sel(dim=dim, algorithm=label, share=most).values for label in (KNOWN, "M1"))
        paper = f"d√α = {dim * math.sqrt(most):.1f} times the size, in orders (αd < 1)"
        measured = f"{shared.times(known, first, 1)} times M1's regret"
        yield Claim(f"{KNOWN}, d = {dim}, share {percent(most)}", paper, measured)
    for dim in dims:
        measured = f"no arm is dropped above a share of {useful_share(dim, gaps(world(dim)).max()):.1e}, at any T"
        yield Claim(f"the radius of {KNOWN}, d = {dim}", "", measured)
    for dim, share in product(dims, regret["share"].values):
        means = regret.sel(dim=dim, share=share).mean("seed")
        yield Claim(f"regret, d = {dim}, share {percent(share)}", "", series(means["algorithm"], means, REGRET))


STUDY = Study(__doc__, "Theorems 1.3 and 1.4", sweeps, {"dim": draw}, claims)
