"""Where the favourable case ends."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits.algorithms.contextual.bandit_combiner import combiner_constants
from jaxbandits.formatting import brackets
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, DELTA, DIM, HORIZON, NUM_ARMS
from jaxbandits.papers.robust_linear.instance import unit
from jaxbandits.papers.shared import Curve, draw_curves, exponent, ratio_interval, series, times
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, crossing, swept
from jaxbandits.papers.watched import played
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

OGD = partial(a.online_ucb, learner="ogd", calibration="paper", delta=DELTA)
PLAYED = {
    "OnlineUCB, ε = 10": partial(played, base=partial(OGD, epsilon=10.0)),
    "OnlineUCB, ε = 1": partial(played, base=partial(OGD, epsilon=1.0)),
    "OnlineUCB, reward only, ε = 1": partial(played, base=partial(OGD, epsilon=1.0, private_features=False)),
    "uniform play": partial(played, base=a.uniform),
}
BEST, UNIFORM = "the best arm", "uniform play"
SPREADS = {True: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0], False: [0.1, 0.5, 1.0]}  # full size?
LAWS = {"unit": "features of norm 1", "gaussian": "Gaussian features"}
ALIKE = 0.1  # the spread of the favourable case; there lambda_min = 0.119 is above T^(-1/4) from 5,000 plays on
TOLD = {"alike": (ALIKE, 0.119), "paper": (1.0, 0.00043)}  # spread, and lambda_min that Algorithm 1 is told
CASES = {"alike": f"spread {ALIKE:g}", "paper": "the paper's experiment"}
EPSILONS = [1.0, 10.0]
ONE, SEVEN = "Algorithm 1", "Algorithm 7"
GROWTH = 6  # 2^6 = 64
LARGEST = 1 / (2 * (DIM - 1))  # lambda_min of features of this law, at most


def sweeps(full: bool) -> dict[str, Sweep]:
    """What is played, along the spread and for both laws of features; regret along horizons in both cases."""
    horizon, seeds = (HORIZON, 16) if full else (511, 4)
    ends, fewer = ([5120, 20_480, 81_920, 512_000], 8) if full else ([64, 128, 256], 4)
    declared = {"spread": swept(PLAYED, CONTEXTUAL, horizon, seeds, grid={"environment.spread": SPREADS[full]})}
    declared["gaussian"] = swept(PLAYED, partial(CONTEXTUAL, features="gaussian"), horizon, seeds)
    for case, (spread, value) in TOLD.items():
        known, environment = partial(OGD, min_eigenvalue=value), partial(CONTEXTUAL, spread=spread)
        declared[case] = swept({ONE: known}, environment, ends, fewer, grid={"epsilon": EPSILONS})
        again = {SEVEN: partial(a.doubling, base=known, power=0.25)}  # knows no T: one run shows it at every T
        more: dict[str, Any] = {"grid": {"base.epsilon": EPSILONS}, "checkpoints": ends}
        declared[f"{case}-doubling"] = swept(again, environment, ends[-1], fewer, **more)
    return declared


def compute_lambda_min(full: bool) -> dict[str, Any]:
    """lambda_min of the best arm's features, by spread and for Gaussian arms."""
    plays, rng = (20_000 if full else 2000), np.random.default_rng(0)
    best: dict[Any, float] = {spread: best_arm(rng, plays, spread) for spread in SPREADS[full]}
    return {"best": best | {"gaussian": best_arm(rng, plays, None)}}


def best_arm(rng: np.random.Generator, plays: int, spread: float | None) -> float:
    """lambda_min of E[x x'] where the best arm is always played; no spread: Gaussian arms."""
    moment = np.zeros((DIM, DIM))
    for size in [1000] * (plays // 1000):
        z = rng.normal(size=(size, NUM_ARMS, DIM - 1))
        if spread is None:
            z /= 2 * math.sqrt(DIM - 1)
            z /= np.maximum(1, np.linalg.norm(z, axis=-1, keepdims=True))
        else:
            common = unit(rng.normal(size=(size, 1, DIM - 1)))
            z = unit(spread * unit(z) + (1 - spread) * common)
        best = z[np.arange(size), z[..., 0].argmax(1)]  # theta is the first axis: the law has no direction
        x = np.concatenate([best, np.ones((size, 1))], 1) / math.sqrt(2)
        moment += x.T @ x
    return float(np.linalg.eigvalsh(moment / plays)[0])


def epochs_of(ds: xr.Dataset) -> range:
    """The complete epochs of a run from the fourth on: earlier ones have hardly more plays than dimensions."""
    return range(4, (int(ds.t[-1]) + 1).bit_length() - 1)


def last_epoch(ds: xr.Dataset) -> xr.DataArray:
    return ds[f"lambda_min_{epochs_of(ds)[-1]}"]


WORDS = {
    "spread": "spread of a play's arms (0: alike, 1: independent)", "value": "least eigenvalue λ_min",
    "plays": "plays, at the end of an epoch", "T": "plays T", "bound": "λ_min, or penalty a play",
    "horizon": "plays T", "regret": "cumulative regret",
}  # fmt: skip


def draw_spread(results: Results) -> plot.Plot:
    ds = results["spread"]
    horizon, along, first = int(ds.t[-1]), ds["environment.spread"].values, 2 ** epochs_of(ds)[-1]
    last = last_epoch(ds).transpose("algorithm", "environment.spread", "seed")
    lines: list[Curve] = [(str(label), along, last.sel(algorithm=label)) for label in ds["algorithm"].values]
    lines.append((BEST, along, [results["best"][spread] for spread in along]))
    lines.append(("T^(-1/4)", along, [horizon**-0.25] * len(along)))
    caption = f"λ_min of E[x x'] of what is played; plays {first:,} to {2 * first - 1:,} of T = {horizon:,}"
    return draw_curves("spread", "value", lines, "y", names=WORDS, caption=caption, width=6.5)


def draw_epochs(results: Results) -> plot.Plot:
    lines: list[Curve] = []
    for name, law in LAWS.items():
        ds = of_law(results, name)
        ends = [2 ** (k + 1) - 1 for k in epochs_of(ds)]
        for label in list(PLAYED)[:2]:
            values = [ds[f"lambda_min_{k}"].sel(algorithm=label).values for k in epochs_of(ds)]
            lines.append((f"{label}: {law}", ends, values))
    lines.append(("t^(-1/4)", ends, [t**-0.25 for t in ends]))
    caption = "λ_min of E[x x'] of what is played within epochs of 2^k plays; independent arms"
    return draw_curves("plays", "value", lines, names=WORDS, caption=caption, width=6.5)


def of_law(results: Results, law: str) -> xr.Dataset:
    """What is played with independent arms whose features have this law."""
    return results["spread"].sel({"environment.spread": 1.0}) if law == "unit" else results["gaussian"]


def regret_of(results: Results, case: str) -> dict[tuple[str, float], np.ndarray]:
    """Regret [horizon, seed] of both algorithms at each epsilon."""
    known, doubled = final_regret(results[case]), results[f"{case}-doubling"]["regret"]
    found = {}
    for eps in EPSILONS:
        found[ONE, eps] = known.sel(algorithm=ONE, epsilon=eps).transpose("horizon", "seed").values
        found[SEVEN, eps] = doubled.sel({"algorithm": SEVEN, "base.epsilon": eps}).transpose("t", "seed").values
    return found


def uniform_rate(results: Results, case: str) -> float:
    at = {"algorithm": UNIFORM, "environment.spread": TOLD[case][0]}
    return float(final_regret(results["spread"]).sel(at).mean()) / int(results["spread"].t[-1])


def draw_horizon(case: str, results: Results) -> plot.Plot:
    (spread, value), ends = TOLD[case], results[case]["horizon"].values
    regrets = regret_of(results, case)
    lines: list[Curve] = [(f"{label}, ε = {eps:g}", ends, regret) for (label, eps), regret in regrets.items()]
    lines.append((UNIFORM, ends, uniform_rate(results, case) * ends))
    caption = f"arms of spread {spread:g}; told that λ_min = {value:g}; OGD learns"
    return draw_curves("horizon", "regret", lines, names=WORDS, caption=caption, width=5.5)


def penalties(horizon: float, epsilon: float) -> np.ndarray:
    """R_i / T of the combiner's bases, with P = P' = p = 1."""
    bases = 1 + math.ceil(math.log2(horizon) / 8)
    return combiner_constants(bases, DIM, horizon, epsilon, 1 / horizon)[2] / horizon  # type: ignore[arg-type]


def draw_combiner(results: Results) -> plot.Plot:
    plays = [10.0**k for k in range(3, 12)]
    values = {
        "λ₂ = 2 T^(-1/8), the second base's": [2 * x**-0.125 for x in plays],
        f"1/d = {1 / DIM:g}, the most for norm 1": 1 / DIM,
        f"{LARGEST:g}, the most for these features": LARGEST,
        "the least penalty R / T, ε = 1": [penalties(x, 1.0).min() for x in plays],
        "1, the largest reward": 1.0,
    }
    rows = pd.DataFrame(values, pd.Index(plays, name="T")).rename_axis(columns="line").stack(future_stack=True)
    table = rows.rename("bound").reset_index()[["T", "bound", "line"]]
    caption = f"d = {DIM}; λ₂ is possible where it is below the most that λ_min can be"
    return plot.lines(table, "T", "bound", line="line", log="both", names=WORDS, caption=caption, width=6.5)


def claims(results: Results) -> Claims:
    for part in (eigenvalue_claims, spread_claims, regret_claims, combiner_claims):
        yield from part(results)


def eigenvalue_claims(results: Results) -> Claims:
    """lambda_min in the paper's experiment and with Gaussian arms; where the favourable case ends."""
    for name, law in LAWS.items():
        ds, best = of_law(results, name), results["best"][1.0 if name == "unit" else "gaussian"]
        limit, last = int(ds.t[-1]) ** -0.25, last_epoch(ds)
        even = float(last.sel(algorithm=UNIFORM).mean())
        for label in list(PLAYED)[:-1]:
            mean, low, high = (float(x) for x in mean_interval(last.sel(algorithm=label).values))
            measured = f"{mean:.2g} ({best:.2g} for the best arm, {even:.2g} for uniform play)"
            evidence = Interval("interval", low, high, at_least=limit) if name == "unit" else None
            paper = f"the favourable case needs more than T^(-1/4) = {limit:.3f} (Corollary 3.6)"
            begins = f"{min(10.0**99, mean**-4):.1e} plays"
            yield Claim(f"λ_min played, {law}: {label}", paper, measured, evidence)
            yield Claim(f"the favourable case begins, {law}: {label}", "", begins)
        k = epochs_of(ds)[-1]
        early = max(4, k - GROWTH)
        paper = f"does not fall with T ({'Remark 3.1' if name == 'gaussian' else 'Corollary 3.6'})"
        for label in list(PLAYED)[:2]:
            ends = (ds[f"lambda_min_{epoch}"].sel(algorithm=label).values for epoch in (k, early))
            ratio, low, high = ratio_interval(*ends)
            measured = f"{float(ratio):.2f} of λ_min is left while plays grow {2 ** (k - early)}-fold"
            measured += f"; share left {brackets(low, high)}"
            yield Claim(f"λ_min as learning goes on, {law}: {label}", paper, measured)


def spread_claims(results: Results) -> Claims:
    """The spread at which lambda_min crosses T^(-1/4)."""
    ds = results["spread"]
    limit, last = int(ds.t[-1]) ** -0.25, last_epoch(ds).mean("seed")
    along = ds["environment.spread"].values.astype(float)
    curves = {str(label): last.sel(algorithm=label).values for label in list(PLAYED)[:-1]}
    curves[BEST] = np.array([results["best"][s] for s in along])
    for label, values in curves.items():
        where = crossing(along, np.log(values) - math.log(limit))
        end = f"ends at spread {where:.2f}" if math.isfinite(where) else "is at no spread left"
        measured = f"{end}; λ_min {series(along, values, '{y:.2g} at {x:g}')}"
        yield Claim(f"the favourable case at this T: {label}", "", measured)


def regret_claims(results: Results) -> Claims:
    """Exponents of T in both cases, and Algorithm 7 beside Algorithm 1."""
    for case, eps in product(TOLD, EPSILONS):
        ds, found, where = results[case], regret_of(results, case), f"{CASES[case]}, ε = {eps:g}"
        ends = ds["horizon"].values
        shares = found[ONE, eps].mean(-1) / (uniform_rate(results, case) * ends)
        fitted, interval = exponent(ds.sel(epsilon=eps, drop=True), "horizon")
        measured = f"{fitted:.2f}; {shares[-1]:.2f} of uniform play's regret at the longest T"
        if case == "alike" and shares.max() < 0.5:  # it has learned
            measured += f"; {interval}"
        paper = f"{'√T' if case == 'alike' else 'more than √T'}, logarithms dropped (Corollary 3.6)"
        yield Claim(f"exponent of T, {where}: {ONE}", paper, measured)
        for label in (ONE, SEVEN):
            measured = series(ends, found[label, eps].mean(-1), "{y:,.0f} at {x:,}")
            yield Claim(f"regret at each T, {where}: {label}", "", measured)
        ratio = times(found[SEVEN, eps][-1], found[ONE, eps][-1])
        yield Claim(f"not knowing T, {where}: {SEVEN}", "", f"{ratio} times Algorithm 1's regret at the longest T")


def combiner_claims(results: Results) -> Claims:
    """From which T on the combiner of Theorem 4.1 can matter; no draw enters."""
    measured = f"λ₂ = {2 * HORIZON**-0.125:.2f} is above 1/d = {1 / DIM:g}, the most for features of norm 1; "
    measured += f"possible from (2d)⁸ = {(2 * DIM) ** 8:.0e} plays on"
    paper = "bases for λ_i = 2^(i-1) T^(-1/8) (Theorem 4.1); no T is stated"
    yield Claim(f"a second base of the combiner at T = {HORIZON:,}, d = {DIM}", paper, measured)
    measured = f"from {(2 / LARGEST) ** 8:.1e} plays on for these features, whose λ_min is at most {LARGEST:g}"
    yield Claim("the combiner can matter, arms alike", "", measured)
    for eps in EPSILONS:
        charged = {k: np.sort(penalties(10.0**k, eps)) for k in range(4, 61)}
        one, two = (next(k for k, sizes in charged.items() if sizes[base] < 1) for base in (0, 1))
        measured = f"from 10^{one} plays on for one base, from 10^{two} on for two (P = P' = 1)"
        yield Claim(f"penalties R_i / T are below the largest reward, ε = {eps:g}", "", measured)
    worst = float(last_epoch(of_law(results, "unit")).sel(algorithm=next(iter(PLAYED))).mean())
    measured = f"λ_min ≥ T^(-1/8) from {worst**-8:.0e} plays on"
    yield Claim("the condition of Theorem 4.1 in the paper's experiment", "", measured)


PICTURES: dict[str, Any] = {"spread": draw_spread, "epochs": draw_epochs, "horizon": partial(draw_horizon, "alike")}
PICTURES |= {"horizon-paper": partial(draw_horizon, "paper"), "combiner": draw_combiner}
STUDY = Study(__doc__, "Corollary 3.6, Remark 3.1, Theorem 4.1", sweeps, PICTURES, claims, compute_lambda_min)
