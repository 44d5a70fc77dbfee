"""What trusting nobody costs, and the rate of √T."""

from collections.abc import Callable
from functools import partial
from itertools import groupby, product
from typing import Any

import numpy as np

from jaxbandits import algorithms as a
from jaxbandits import statistics, theory
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, of_each
from jaxbandits.papers.shared import series, slope_text, times
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, over_horizons, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

DELTA, THICK, OURS, UNIFORM, THICKNESS = 1e-3, 0.5**0.5, "instruments", "uniform play", "environment.thickness"
WORLD = partial(CONTEXTUAL, num_arms=10)
LOCAL: dict[str, Any] = {OURS: a.ldp_instrument_ucb, "LDP": a.ldp_linucb}
LOCAL["OnlineUCB"] = partial(a.online_ucb, learner="ogd")
PRIVATE = LOCAL | {"JDP": a.jdp_linucb, "SDP-Vec": a.shuffle_linucb}
PLAYED = {label: partial(learner, delta=DELTA) for label, learner in PRIVATE.items()} | {UNIFORM: a.uniform}
WORLDS = {"ε = 10, thin": 10.0, "ε = 1, thin": 1.0, "ε = 1, thick": 1.0, "ε = 0.2, thick": 0.2}
NOISE = {x: theory.exact_tuning("local", 1, 1, x, DELTA)["diagonal"] for x in WORLDS.values()}  # LDP's, on a square
OVER_H, EPSILON = "thickness", 10.0  # the sweep over h, the norm of what differs between arms, and its ε
SIZES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7]


def sweeps(full: bool) -> dict[str, Sweep]:
    """One for each dimension and horizon, where thin features have the size that should cost LDP most; one over h."""
    horizons, seeds = ([10_000, 20_000, 100_000, 1_000_000], 48) if full else ([50, 60, 100, 200], 4)
    declared, played = dict[str, Sweep](), few(PLAYED, full, [OURS, "SDP-Vec", UNIFORM])
    for dim, T in product([2, 5] if full else [2], horizons):
        thin = {x: (x, min(THICK, (noise**2 * dim / T) ** 0.25)) for x, noise in NOISE.items()}
        points = {world: (x, THICK) if "thick" in world else thin[x] for world, x in WORLDS.items()}
        declared[f"{dim}-{T}"] = swept(played, partial(WORLD, dim=dim), T, seeds, grid={("epsilon", THICKNESS): points})
    grid = {"epsilon": [EPSILON], THICKNESS: SIZES if full else SIZES[4::5]}
    return declared | {OVER_H: swept(played, partial(WORLD, dim=2), 100_000 if full else 100, seeds, grid=grid)}


def by_dim(results: Results) -> dict[int, Any]:
    groups = groupby((name for name in results if name != OVER_H), key=lambda name: int(name.split("-")[0]))
    return {dim: over_horizons([results[name] for name in names]) for dim, names in groups}


def mean_and_median(regret: Any) -> str:
    return f"{regret.mean():,.0f} (median {np.median(regret):,.0f})"


def claims(results: Results) -> Claims:
    for dim, ds in by_dim(results).items():
        final, (_, short, *_, end) = final_regret(ds), ds["horizon"].values
        for row in statistics.slope(ds.drop_sel(algorithm=UNIFORM, horizon=short), over="horizon").itertuples():
            regret = final.sel(algorithm=row.algorithm, epsilon=row.epsilon).transpose("horizon", "seed").values
            both = series(ds["horizon"], map(mean_and_median, regret), "{y} at {x:,}")
            measured = f"{slope_text(row)}; regret {both}"
            paper = "is 1/2 possible? (Section 6, open question)" if row.algorithm in LOCAL else ""
            yield Claim(f"exponent of T, d = {dim}, {row.epsilon}: {row.algorithm}", paper, measured)
        for world, (base, T) in product(WORLDS, ((OURS, end), (UNIFORM, short))):
            found = of_each(final.sel(epsilon=world, horizon=T))
            ratios = [f"{label} {times(x, found[base])}" for label, x in found.items() if label != base]
            yield Claim(f"regret over that of {base}, d = {dim}, {world}, T = {T:,}", "", ", ".join(ratios))
    final = final_regret(results[OVER_H]).sel(epsilon=EPSILON).transpose("algorithm", THICKNESS, "seed")
    for label, regret in zip(final["algorithm"].values, final.values, strict=True):
        measured = series(final[THICKNESS], map(mean_and_median, regret), "{y} at {x:g}")
        yield Claim(f"regret by h, d = 2, ε = {EPSILON:g}: {label}", "", measured)


def draw(place: int, world: str, results: Results) -> plot.Plot:
    dim, ds = list(by_dim(results).items())[place]
    orders = {"10 √T": lambda x: 10 * x**0.5, "T^(3/4)": lambda x: x**0.75}
    return plot.against(ds, "horizon", select={"epsilon": world}, reference=orders, caption=f"{world}, d = {dim}")


def draw_sizes(results: Results) -> plot.Plot:
    names = {THICKNESS: "h, norm of what differs between arms"}
    return plot.against(results[OVER_H], THICKNESS, select={"epsilon": EPSILON}, names=names, caption="d = 2, ε = 10")


BY_TIME = {"thin": partial(draw, 0, "ε = 10, thin"), "thick": partial(draw, -1, "ε = 1, thick")}
PICTURES: dict[str, Callable[[Results], plot.Plot]] = BY_TIME | {"sizes": draw_sizes}
STUDY = Study(__doc__, "Section 6, open question; docs/formulas/ldp_contextual.md#instrument", sweeps, PICTURES, claims)
