"""The price of privacy: regret against epsilon and the horizon, with the bounds of Table 1."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.papers.shared import exponent, picture, series
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, Tuning, crossing, over_horizons, swept, worst
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval
from jaxbandits.typing import AlgorithmFactory

NUM_ARMS, NUM_EXPERTS, DELTA = 8, 16, 1e-5
GAP, SPREAD = 0.4, 0.2  # of the experts' instance
TUNED_SEEDS = 10_000  # the first seed of tuning
TRIED = {
    "HTINF": {"base.tail_scale": [0.2, 0.4, 0.8, 1.6, 3.2]},
    "EXP3": {"base.learning_rate": [0.003, 0.01, 0.03, 0.1, 0.3]},
    "FTPL": {"base.learning_rate": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]},
    "noise on every play": {"learning_rate": [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1]},
    "experts as arms": {"base.base.tail_scale": [0.2, 0.4, 0.8, 1.6, 3.2]},
    "local EXP4": {"learning_rate": [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3]},
    "batched EXP4": {"learning_rate": [0.1, 0.3, 1.0, 3.0, 10.0], "mixing": [0.1, 0.3, 0.6, 0.9]},
}
BASES: dict[str, AlgorithmFactory] = {"HTINF": a.htinf, "EXP3": a.exp3, "FTPL": a.ftpl}
LOCAL = "noise on every play"
EXPONENTS = {LOCAL: (0.5, 1.0)} | dict.fromkeys(BASES, (0.5, 0.5))  # in T, in 1 / epsilon
EXPERTS = {"experts as arms": (0.5, 0.5), "local EXP4": (0.5, 1.0), "batched EXP4": (2 / 3, 1 / 3)}
EPSILON = 0.1  # of the regrets against T


def _arms(horizon, epsilons, gaps, seeds, tuned, leave_out=()) -> Sweep:
    alone = {"epsilon": epsilons[0]} if len(epsilons) == 1 else {}
    batched, local = partial(a.private_batched, **alone), partial(a.ldp_exp3, **alone)
    algorithms: dict[str, AlgorithmFactory] = {
        "HTINF": partial(batched, base=a.htinf),
        "EXP3": partial(batched, base=partial(a.exp3, mixing=0.05)),
        "FTPL": partial(batched, base=a.ftpl),
        LOCAL: partial(local, mixing=0.05),
        **{f"{name} (theory)": partial(batched, base=base) for name, base in BASES.items()},
        f"{LOCAL} (theory)": local,
        "no privacy": a.tsallis_inf,
    }
    grid = {"environment.gap": gaps} | ({} if alone else {"epsilon": epsilons})
    environment = partial(e.fixed_gap_losses, num_arms=NUM_ARMS, best=NUM_ARMS - 1)
    return _tuning_sweep(algorithms, environment, horizon, seeds, grid, tuned, leave_out, TRIED, ("environment.gap",))


def _tuning_sweep(algorithms, environment, horizon, seeds, grid, tuned, leave_out, tried, unknown=()) -> Sweep:
    algorithms = {label: one for label, one in algorithms.items() if label not in leave_out}
    grids = {label: keys for label, keys in tried.items() if label in algorithms}
    tuning = Tuning(grids, range(TUNED_SEEDS, TUNED_SEEDS + tuned), unknown)
    return swept(algorithms, environment, horizon, seeds, grid=grid, tuning=tuning)


def _experts(horizon, epsilons, seeds, tuned, leave_out=()) -> Sweep:
    alone = {"epsilon": epsilons[0]} if len(epsilons) == 1 else {}
    as_arms = partial(a.bandit_to_experts, base=partial(a.private_batched, base=a.htinf, **alone))
    algorithms = {
        "experts as arms": as_arms,
        "local EXP4": partial(a.local_exp4, mixing=0.05, **alone),
        "batched EXP4": partial(a.batched_exp4, delta=DELTA, **alone),
        "experts as arms (theory)": as_arms,
        "local EXP4 (theory)": partial(a.local_exp4, **alone),
    }
    # inside `bandit_to_experts` the privacy level is the base's
    inside = [f"{label}.base.epsilon" for label, algorithm in algorithms.items() if algorithm is as_arms]
    grid = {} if alone else {("epsilon", *inside): epsilons}
    windows = {"window": [horizon // 100, horizon // 25, horizon // 10]}
    tried = TRIED | {"batched EXP4": TRIED["batched EXP4"] | windows}
    losses = e.fixed_gap_losses(num_arms=3, best=2, gap=GAP)
    environment = e.rotating_experts(losses=losses, num_experts=NUM_EXPERTS, spread=SPREAD)
    return _tuning_sweep(algorithms, environment, horizon, seeds, grid, tuned, leave_out, tried)


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, horizons = (50_000, [2000, 6000, 20_000, 60_000, 200_000]) if full else (300, [300, 1000])
    epsilons, gaps = ([0.01, 0.03, 0.1, 0.3, 1.0], [0.03, 0.06, 0.12, 0.24, 0.48]) if full else ([0.1, 1.0], [0.1, 0.4])
    seeds, tuned = (200, 20) if full else (8, 2)
    # what a quick run would spend its time on, compiling
    slow: tuple[str, ...] = () if full else ("FTPL", "FTPL (theory)")
    slower = () if full else (*slow, "EXP3", "EXP3 (theory)", "batched EXP4", "experts as arms (theory)")
    declared = {"arms": _arms(horizon, epsilons, gaps, seeds, tuned, slow)}
    declared |= {f"arms-{t}": _arms(t, [EPSILON], gaps, seeds, tuned, slower) for t in horizons}
    declared |= {"experts": _experts(horizon, epsilons, seeds, tuned)}
    return declared | {f"experts-{t}": _experts(t, [EPSILON], seeds, tuned, slower) for t in horizons}


def sweep_along(results: Results, kind: str, key: str) -> xr.Dataset:
    """The sweeps of arms, at the gap that costs each algorithm most, or of experts, along epsilon or the horizon."""
    ends = (ds for name, ds in results.items() if name.startswith(f"{kind}-"))
    ds = results[kind] if key == "epsilon" else over_horizons(list(ends))
    return worst(ds, "environment.gap") if kind == "arms" else ds


def rates_and_bounds(kind: str, horizon: int, epsilon: float) -> dict[str, float]:
    """The lines of Table 1 at a point."""
    if kind == "arms":
        of_arms = theory.arms_rates(NUM_ARMS, horizon, epsilon)
        rates = {"√(KT/ε)": of_arms["conversion"], "√(KT log KT)/ε": of_arms["existing"]}
        bounds = {name: _regret_bound(name, horizon, epsilon) for name in (*BASES, LOCAL)}
    else:
        keys, at = ("bandit_to_experts", "local_exp4", "batched_exp4"), (3, NUM_EXPERTS, horizon, epsilon)
        rates = {f"rate of {name}": theory.experts_rates(*at)[key] for name, key in zip(EXPERTS, keys, strict=True)}
        bounds = {name: theory.experts_bounds(*at, DELTA)[key] for name, key in zip(EXPERTS, keys, strict=True)}
    return rates | {f"bound of {name}": bound for name, bound in bounds.items()}


def figure(kind, key, results: Results) -> plot.Plot:
    ds = sweep_along(results, kind, key)
    ends, horizon = ds[key].values[[0, -1]], int(ds.t[-1])
    of = (lambda x: (horizon, float(x))) if key == "epsilon" else (lambda x: (max(round(x), 1), EPSILON))
    given = "the gap worst for each" if kind == "arms" else f"{NUM_EXPERTS} experts, 3 arms"
    given += "" if key == "epsilon" else f"; ε = {EPSILON}"
    shown = [rates_and_bounds(kind, *of(x)) for x in ends]
    reference = {
        name: lambda xs, name=name: np.array([min(rates_and_bounds(kind, *of(x))[name], of(x)[0]) for x in xs])
        for name in shown[0]
        if name[:6] != "bound " or any(lines[name] < of(x)[0] for lines, x in zip(shown, ends, strict=True))
    }
    dotted = {x: x.removesuffix(" (theory)") for x in ds["algorithm"].values if x.endswith(" (theory)")}
    given += "; tuned on other seeds, theory tunings dotted; rates and bounds are min(·, T), a bound that is T "
    caption = given + "throughout is not drawn"
    return plot.against(ds, key, dotted=dotted, reference=reference, caption=caption, width=5.5)


def slopes(results: Results, kind: str, key: str) -> Claims:
    """The fitted slope of each algorithm with its interval next to the exponent of its rate, an upper bound.

    Fitted where the mean regret is below half of what playing at random costs on the largest gap: above it the
    adversary has run out of gaps, and regret grows with T as any would.
    """
    ds, exponents = sweep_along(results, kind, key), EXPONENTS if kind == "arms" else EXPERTS
    largest = float(results["arms"]["environment.gap"].max())
    uniform = largest * (NUM_ARMS - 1) / NUM_ARMS if kind == "arms" else GAP * (1 - SPREAD) * 2 / 3  # a play
    what, column, sign = ("T", 0, 1) if key == "horizon" else ("1/ε", 1, -1)
    mean = final_regret(ds).mean("seed")
    half = uniform * (ds["horizon"] if key == "horizon" else int(ds.t[-1])) / 2
    for label in [x for x in ds["algorithm"].values if x in exponents]:
        learnt = ds[key].values[(mean.sel(algorithm=label) < half).values]
        if len(learnt) < 3:
            measured = f"regret is below half of random play's at {len(learnt)} of {ds.sizes[key]} points only"
        else:
            slope, interval = exponent(ds.sel({"algorithm": [label], key: learnt}), key, sign=sign)
            measured = f"{slope:.2f} over {len(learnt)} points; {interval}"
        yield Claim(f"exponent of {what}, {label}", f"at most {exponents[label][column]:.2f}", measured)


def claims(results: Results) -> Claims:
    """Exponents, and where the conversion overtakes noise on every play."""
    for kind, key in product(("arms", "experts"), ("horizon", "epsilon")):
        yield from slopes(results, kind, key)
    arms = sweep_along(results, "arms", "epsilon")
    final, horizon = final_regret(arms).transpose("algorithm", "epsilon", "seed"), int(arms.t[-1])
    epsilons, many = final["epsilon"].values, np.geomspace(10 / horizon, 1, 200)
    cheaper = 1 / (math.log(NUM_ARMS) * math.log(NUM_ARMS * horizon))
    slow = f"√(KT log K) log(KT)/√ε < √(KT log KT)/ε below ε = 1/(log K log KT) = {cheaper:.2g}"
    for name in [name for name in BASES if name in arms["algorithm"]]:
        # lane by lane: same seeds
        difference, low, high = mean_interval((final.sel(algorithm=name) - final.sel(algorithm=LOCAL)).values)
        bounds = np.array([(_regret_bound(name, horizon, x), _regret_bound(LOCAL, horizon, x)) for x in many])
        rates = "√(KT/ε) < √(KT log KT)/ε for every ε ≤ 1" if name == "HTINF" else slow
        below = f"one of them is below T at {(bounds.min(axis=1) < horizon).sum()} of {len(many)} such ε"
        with_constants = f"{_where(many, bounds[:, 0] - bounds[:, 1])}, but {below}"
        paper = f"upper bounds: {rates}; by the bounds with constants {with_constants}"
        clear = ", ".join(f"{x:g}" for x, a, b in zip(epsilons, low, high, strict=True) if a <= 0 <= b)
        where_less = _where(epsilons, difference) + (f"; within noise at {clear}" if clear else "")
        # The paper compares upper bounds: whose regret is smaller on one instance cannot contradict it.
        yield Claim(f"{name} in batches has less regret than {LOCAL}", paper, where_less)
    mean = final.mean("seed")
    price = mean.sel(algorithm="HTINF") / mean.sel(algorithm="no privacy")
    statement = "price of privacy: regret of HTINF in batches over that of Tsallis-INF without privacy"
    yield Claim(statement, "", series(epsilons, price, "{y:.1f} at ε = {x:g}"))


def _regret_bound(name, horizon, epsilon) -> float:
    if name != LOCAL:
        return theory.arms_bounds(NUM_ARMS, horizon, epsilon)[name.lower()]
    rate = theory.exp3_noisy_tuning(NUM_ARMS, horizon, 1 / epsilon)["learning_rate"]
    return theory.exp3_base_bound(NUM_ARMS, horizon, 1 / epsilon, rate)


def _where(epsilons, difference) -> str:
    """Where along epsilon a difference in regret is negative."""
    negative = np.asarray(difference) < 0
    at = crossing(epsilons, difference)
    if math.isnan(at):
        return f"at every ε tried in [{epsilons[0]:g}, {epsilons[-1]:g}]" if negative[0] else "at none of these ε"
    elsewhere = "" if np.abs(np.diff(negative)).sum() == 1 else " and elsewhere again not"
    return f"{'below' if negative[0] else 'above'} ε = {at:.2g}{elsewhere}"


def compute_bounds(full: bool) -> dict[str, Any]:
    """Every bound with constants over T, at one epsilon: where they begin to say something."""
    rows = []
    for horizon in np.round(np.geomspace(1e3, 1e12, 37 if full else 10)).astype(np.int64).tolist():
        named = {f"{name} in batches": name for name in BASES} | {LOCAL: LOCAL}
        bounds = {label: _regret_bound(name, horizon, EPSILON) for label, name in named.items()}
        experts = zip(EXPERTS, theory.experts_bounds(3, NUM_EXPERTS, horizon, EPSILON, DELTA).values(), strict=True)
        bounds |= {f"{name}, {NUM_EXPERTS} experts": value for name, value in experts}
        shares = {name: min(value / horizon, 1.0) for name, value in bounds.items()}
        rows += [{"horizon": horizon, "share": share, "bound": name} for name, share in shares.items()]
    return {"bounds": pd.DataFrame(rows)}


BOUNDS = picture(
    plot.lines, "bounds", "horizon", "share", line="bound", log="both", width=5.5,
    names={"horizon": "horizon T", "share": "bound / T"},
    caption=f"bounds with constants by theory alone, ε = {EPSILON}: 8 arms, or 3 arms and {NUM_EXPERTS} experts; "
    "at 1 they say nothing",
)  # fmt: skip


SOURCE = "Table 1; Corollaries 3.2, E.1, E.3 and 4.3, Theorems 4.4 and 4.5"
SHOWN = list(product(("arms", "experts"), ("epsilon", "horizon")))
PICTURES = {f"{kind}_{key}": partial(figure, kind, key) for kind, key in SHOWN} | {"bounds": BOUNDS}
STUDY = Study(__doc__, SOURCE, sweeps, PICTURES, claims, compute_bounds)
