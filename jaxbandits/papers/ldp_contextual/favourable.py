"""Where the favourable case ends: the least eigenvalue of E[x x'] under the policy that is being learned.

Corollary 3.6 has its small regret where this eigenvalue, lambda_min, is of order 1, and a larger one where it is at
most T^(-1/4). Algorithm 1 then perturbs features beyond privacy; the paper says that it need not in its Figure 1. The
questions, fixed before the run: is lambda_min above T^(-1/4) in that experiment; how alike must the arms of a play be
for it; does it stay where it is as learning goes on (at least half of it, while plays grow 64-fold: T^(-1/4) would
leave 0.35); has regret the order of the favourable case there; and from which T on can the combiner matter?
"""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.algorithms.contextual.bandit_combiner import combiner_constants
from jaxbandits.formatting import brackets
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, DELTA, DIM, HORIZON, NUM_ARMS
from jaxbandits.papers.ldp_contextual.played import watched
from jaxbandits.papers.shared import curve, exponent, ratio_interval
from jaxbandits.papers.study import Claim, Interval, Results, Study, Sweep, crossing
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

OGD = partial(a.online_ucb, learner="ogd", calibration="paper", delta=DELTA)
PLAYED = {
    "OnlineUCB, ε = 10": partial(watched, base=partial(OGD, epsilon=10.0)),
    "OnlineUCB, ε = 1": partial(watched, base=partial(OGD, epsilon=1.0)),
    "OnlineUCB, reward only, ε = 1": partial(watched, base=partial(OGD, epsilon=1.0, private_features=False)),
    "uniform play": partial(watched, base=a.uniform),
}
BEST, UNIFORM = "the best arm", "uniform play"
SPREADS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0]
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
    spreads = SPREADS if full else [0.1, 0.5, 1.0]
    shared = {"seeds": seeds, "checkpoints": 1}
    declared = {
        "spread": Sweep(
            shared
            | {
                "algorithms": PLAYED,
                "environment": CONTEXTUAL,
                "horizon": horizon,
                "grid": {"environment.spread": spreads},
            }
        )
    }
    law = partial(CONTEXTUAL, features="gaussian")
    declared["gaussian"] = Sweep(shared | {"algorithms": PLAYED, "environment": law, "horizon": horizon})
    ends = [5120, 20_480, 81_920, 512_000] if full else [64, 128, 256]
    for case, (spread, value) in TOLD.items():
        known = partial(OGD, min_eigenvalue=value)
        environment = partial(e.contextual_linear, num_arms=NUM_ARMS, dim=DIM, spread=spread)
        settings = {"environment": environment, "seeds": 8 if full else 4}
        alone = {"algorithms": {ONE: known}, "horizon": ends, "grid": {"epsilon": EPSILONS}, "checkpoints": 1}
        declared[case] = Sweep(settings | alone)
        again = {SEVEN: partial(a.doubling, base=known, power=0.25)}  # knows no T: one run shows it at every T
        more = {"algorithms": again, "horizon": ends[-1], "grid": {"base.epsilon": EPSILONS}, "checkpoints": ends}
        declared[f"{case}-doubling"] = Sweep(settings | more)
    return declared


def computed(full: bool) -> dict[str, Any]:
    """lambda_min of the best arm's features, by spread and for Gaussian arms."""
    plays, rng = (20_000 if full else 2000), np.random.default_rng(0)
    spreads = SPREADS if full else [0.1, 0.5, 1.0]
    return {"best": {s: best_arm(rng, plays, s) for s in spreads} | {"gaussian": best_arm(rng, plays, None)}}


def best_arm(rng: np.random.Generator, plays: int, spread: float | None) -> float:
    """lambda_min of E[x x'] where the best arm is always played; no spread: Gaussian arms."""
    moment = np.zeros((DIM, DIM))
    for size in [1000] * (plays // 1000):
        z = rng.normal(size=(size, NUM_ARMS, DIM - 1))
        if spread is None:
            z /= 2 * math.sqrt(DIM - 1)
            z /= np.maximum(1, np.linalg.norm(z, axis=-1, keepdims=True))
        else:
            common = rng.normal(size=(size, 1, DIM - 1))
            z, common = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (z, common))
            z = spread * z + (1 - spread) * common
            z /= np.linalg.norm(z, axis=-1, keepdims=True)
        best = z[np.arange(size), z[..., 0].argmax(1)]  # theta is the first axis: the law has no direction
        x = np.concatenate([best, np.ones((size, 1))], 1) / math.sqrt(2)
        moment += x.T @ x
    return float(np.linalg.eigvalsh(moment / plays)[0])


def epochs_of(horizon: int) -> range:
    """The complete epochs of a run from the fourth on: earlier ones have hardly more plays than dimensions."""
    return range(4, (horizon + 1).bit_length() - 1)


def horizon_of(ds) -> int:
    """The plays of a sweep."""
    return int(ds["t"][-1])


def last_epoch(ds) -> Any:
    """lambda_min of the last complete epoch, as a DataArray."""
    return ds[f"lambda_min_{epochs_of(horizon_of(ds))[-1]}"]


def draw_spread(results: Results) -> plot.Plot:
    """lambda_min of the last complete epoch against the spread of the arms."""
    ds, rows = results["spread"], []
    horizon, last = horizon_of(ds), last_epoch(ds)
    for label in ds["algorithm"].values:
        values = last.sel(algorithm=label).transpose("environment.spread", "seed").values
        rows += curve(str(label), "spread", ds["environment.spread"].values, "value", values)
    lines = {BEST: results["best"], "T^(-1/4)": {float(s): horizon**-0.25 for s in ds["environment.spread"].values}}
    for name, values in lines.items():
        rows += [
            {"spread": s, "value": y, "low": y, "high": y, "line": name} for s, y in values.items() if s != "gaussian"
        ]
    first = 2 ** epochs_of(horizon)[-1]
    caption = f"λ_min of E[x x'] of what is played; plays {first:,} to {2 * first - 1:,} of T = {horizon:,}"
    return plot.lines(
        pd.DataFrame(rows), "spread", "value", line="line", log="y", names=WORDS, caption=caption, width=6.5
    )


WORDS = {
    "spread": "spread of a play's arms (0: alike, 1: independent)", "value": "least eigenvalue λ_min",
    "plays": "plays, at the end of an epoch", "T": "plays T", "bound": "λ_min, or penalty a play",
}  # fmt: skip


def draw_epochs(results: Results) -> plot.Plot:
    """lambda_min along a run, for both laws of features."""
    rows = []
    for name, law in LAWS.items():
        ds = results["spread"].sel({"environment.spread": 1.0}) if name == "unit" else results["gaussian"]
        for label in list(PLAYED)[:2]:
            for k in epochs_of(horizon_of(ds)):
                mean, low, high = mean_interval(ds[f"lambda_min_{k}"].sel(algorithm=label).values)
                line = f"{label}: {law}"
                rows.append({"plays": 2 ** (k + 1) - 1, "value": mean, "low": low, "high": high, "line": line})
    ends = sorted({row["plays"] for row in rows})
    rows += curve("t^(-1/4)", "plays", ends, "value", [t**-0.25 for t in ends])
    caption = "λ_min of E[x x'] of what is played within epochs of 2^k plays; independent arms"
    return plot.lines(
        pd.DataFrame(rows), "plays", "value", line="line", log="both", names=WORDS, caption=caption, width=6.5
    )


def regret_of(results: Results, case: str) -> dict[tuple[str, float], np.ndarray]:
    """Regret [horizon, seed] of both algorithms at each epsilon."""
    known, doubled = final_regret(results[case]), results[f"{case}-doubling"]["regret"]
    found = {}
    for eps in EPSILONS:
        found[ONE, eps] = known.sel(algorithm=ONE, epsilon=eps).transpose("horizon", "seed").values
        found[SEVEN, eps] = doubled.sel({"algorithm": SEVEN, "base.epsilon": eps}).transpose("t", "seed").values
    return found


def uniform_rate(results: Results, case: str) -> float:
    """Regret of a play of uniform play."""
    ds = results["spread"]
    at = {"algorithm": UNIFORM, "environment.spread": TOLD[case][0]}
    return float(final_regret(ds).sel(at).mean()) / horizon_of(ds)


def draw_horizon(case: str, results: Results) -> plot.Plot:
    """Regret against the horizon in a case."""
    (spread, value), ends, rows = TOLD[case], results[case]["horizon"].values, []
    for (label, eps), regret in regret_of(results, case).items():
        rows += curve(f"{label}, ε = {eps:g}", "horizon", ends, "regret", regret)
    rows += curve(UNIFORM, "horizon", ends, "regret", uniform_rate(results, case) * ends)
    caption = f"arms of spread {spread:g}; told that λ_min = {value:g}; OGD learns"
    words = {"horizon": "plays T", "regret": "cumulative regret"}
    table = pd.DataFrame(rows)
    return plot.lines(table, "horizon", "regret", line="line", log="both", names=words, caption=caption, width=5.5)


def penalties(horizon: float, epsilon: float) -> np.ndarray:
    """R_i / T of the combiner's bases, with P = P' = p = 1."""
    bases = 1 + math.ceil(math.log2(horizon) / 8)
    return combiner_constants(bases, DIM, horizon, epsilon, 1 / horizon)[2] / horizon  # type: ignore[arg-type]


def first_power(holds) -> int:
    """The least power of ten from which `holds(plays)` is true, at most 10^60."""
    return next(k for k in range(4, 61) if holds(10.0**k))


def draw_combiner(results: Results) -> plot.Plot:
    """What the combiner's bases assume, what is possible and what they are charged, against T."""
    rows = []
    for k in range(3, 12):
        plays = 10.0**k
        values = {
            "λ₂ = 2 T^(-1/8), the second base's": 2 * plays**-0.125,
            f"1/d = {1 / DIM:g}, the most for norm 1": 1 / DIM,
            f"{LARGEST:g}, the most for these features": LARGEST,
            "the least penalty R / T, ε = 1": penalties(plays, 1.0).min(),
            "1, the largest reward": 1.0,
        }
        rows += [{"T": plays, "bound": y, "line": name} for name, y in values.items()]
    caption = f"d = {DIM}; λ₂ is possible where it is below the most that λ_min can be"
    return plot.lines(
        pd.DataFrame(rows), "T", "bound", line="line", log="both", names=WORDS, caption=caption, width=6.5
    )


def eigenvalue_claims(results: Results) -> list[Claim]:
    """lambda_min in the paper's experiment and with Gaussian arms; where the favourable case ends."""
    entries = []
    for name, law in LAWS.items():
        ds = results["spread"].sel({"environment.spread": 1.0}) if name == "unit" else results["gaussian"]
        limit, last, best = horizon_of(ds) ** -0.25, last_epoch(ds), results["best"]
        best = best[1.0 if name == "unit" else "gaussian"]
        even = float(last.sel(algorithm=UNIFORM).mean())
        for label in list(PLAYED)[:-1]:
            values = last.sel(algorithm=label).values
            mean, low, high = (float(x) for x in mean_interval(values))
            measured = f"{mean:.2g} ({best:.2g} for the best arm, {even:.2g} for uniform play)"
            evidence = Interval("interval", low, high, at_least=limit) if name == "unit" else None
            paper = f"the favourable case needs more than T^(-1/4) = {limit:.3f} (Corollary 3.6)"
            entries.append(Claim(f"λ_min played, {law}: {label}", paper, measured, evidence))
            measured = f"{min(10.0**99, mean**-4):.1e} plays"
            entries.append(Claim(f"the favourable case begins, {law}: {label}", "", measured))
        k = epochs_of(horizon_of(ds))[-1]
        for label in list(PLAYED)[:2]:
            early = ds[f"lambda_min_{max(4, k - GROWTH)}"].sel(algorithm=label).values
            ratio, low, high = ratio_interval(last.sel(algorithm=label).values, early)
            measured = f"{float(ratio):.2f} of λ_min is left while plays grow {2 ** (k - max(4, k - GROWTH))}-fold"
            measured += f"; share left {brackets(low, high)}"
            paper = f"does not fall with T ({'Remark 3.1' if name == 'gaussian' else 'Corollary 3.6'})"
            entries.append(Claim(f"λ_min as learning goes on, {law}: {label}", paper, measured))
    return entries


def spread_claims(results: Results) -> list[Claim]:
    """The spread at which lambda_min crosses T^(-1/4)."""
    ds, entries = results["spread"], []
    limit, last = horizon_of(ds) ** -0.25, last_epoch(ds).mean("seed")
    spreads = ds["environment.spread"].values.astype(float)
    curves = {str(label): last.sel(algorithm=label).values for label in list(PLAYED)[:-1]}
    curves[BEST] = np.array([results["best"][s] for s in spreads])
    for label, values in curves.items():
        where = crossing(spreads, np.log(values) - math.log(limit))
        points = ", ".join(f"{y:.2g} at {s:g}" for s, y in zip(spreads, values, strict=True))
        end = f"ends at spread {where:.2f}" if math.isfinite(where) else "is at no spread left"
        entries.append(Claim(f"the favourable case at this T: {label}", "", f"{end}; λ_min {points}"))
    return entries


def regret_claims(results: Results) -> list[Claim]:
    """Exponents of T in both cases, and Algorithm 7 beside Algorithm 1."""
    entries = []
    for case in TOLD:
        ds, found, rate = results[case], regret_of(results, case), uniform_rate(results, case)
        ends = ds["horizon"].values
        for eps in EPSILONS:
            shares = found[ONE, eps].mean(-1) / (rate * ends)
            fitted, interval = exponent(ds.sel(epsilon=eps, drop=True), "horizon")
            measured = f"{fitted:.2f}; {shares[-1]:.2f} of uniform play's regret at the longest T"
            if case == "alike" and shares.max() < 0.5:  # it has learned
                measured += f"; {interval}"
            order = "√T" if case == "alike" else "more than √T"
            paper = f"{order}, logarithms dropped (Corollary 3.6)"
            statement = f"exponent of T, {CASES[case]}, ε = {eps:g}: {ONE}"
            entries.append(Claim(statement, paper, measured))
            for label in (ONE, SEVEN):
                points = ", ".join(f"{y:,.0f} at {t:,}" for t, y in zip(ends, found[label, eps].mean(-1), strict=True))
                entries.append(Claim(f"regret at each T, {CASES[case]}, ε = {eps:g}: {label}", "", points))
            ratio, low, high = (float(x) for x in ratio_interval(found[SEVEN, eps][-1], found[ONE, eps][-1]))
            measured = f"{ratio:.2f} [{low:.2f}, {high:.2f}] times Algorithm 1's regret at the longest T"
            entries.append(Claim(f"not knowing T, {CASES[case]}, ε = {eps:g}: {SEVEN}", "", measured))
    return entries


def combiner_claims(results: Results) -> list[Claim]:
    """From which T on the combiner of Theorem 4.1 can matter; no draw enters."""
    possible = (2 * DIM) ** 8
    entries = [
        Claim(
            f"a second base of the combiner at T = {HORIZON:,}, d = {DIM}",
            "bases for λ_i = 2^(i-1) T^(-1/8) (Theorem 4.1); no T is stated",
            f"λ₂ = {2 * HORIZON**-0.125:.2f} is above 1/d = {1 / DIM:g}, the most for features of norm 1; possible "
            f"from (2d)⁸ = {possible:.0e} plays on",
        )
    ]
    measured = f"from {(2 / LARGEST) ** 8:.1e} plays on for these features, whose λ_min is at most {LARGEST:g}"
    entries.append(Claim("the combiner can matter, arms alike", "", measured))
    for eps in EPSILONS:
        power = first_power(lambda plays, eps=eps: penalties(plays, eps).min() < 1)
        both = first_power(lambda plays, eps=eps: np.sort(penalties(plays, eps))[1] < 1)
        measured = f"from 10^{power} plays on for one base, from 10^{both} on for two (P = P' = 1)"
        entries.append(Claim(f"penalties R_i / T are below the largest reward, ε = {eps:g}", "", measured))
    worst = float(
        last_epoch(results["spread"]).sel({"algorithm": next(iter(PLAYED)), "environment.spread": 1.0}).mean()
    )
    measured = f"λ_min ≥ T^(-1/8) from {worst**-8:.0e} plays on"
    return [*entries, Claim("the condition of Theorem 4.1 in the paper's experiment", "", measured)]


def claims(results: Results) -> list[Claim]:
    """Eigenvalues, the spread where the favourable case ends, regret in both cases, and the combiner."""
    return [
        *eigenvalue_claims(results),
        *spread_claims(results),
        *regret_claims(results),
        *combiner_claims(results),
    ]


STUDY = Study(
    "Where the favourable case ends",
    "Corollary 3.6, Remark 3.1, Theorem 4.1",
    sweeps,
    {
        "spread": draw_spread,
        "epochs": draw_epochs,
        "horizon": partial(draw_horizon, "alike"),
        "horizon-paper": partial(draw_horizon, "paper"),
        "combiner": draw_combiner,
    },
    claims,
    computed,
)
