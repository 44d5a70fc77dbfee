"""Two arms whose losses never change: privacy below epsilon = 1 / sqrt(T), and the bounds with their constants."""

import math
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.formatting import brackets
from jaxbandits.papers.shared import Curve, as_sweep, draw_curves, exponent, ratio_interval, regrets, series, times
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

NUM_ARMS = NUM_EXPERTS = 2
WORLD = partial(e.fixed_gap_losses, num_arms=NUM_ARMS, best=1, base=1.0)
POWERS = [0.25, 0.5, 0.6, 0.75]  # a
GAPS = [0.1, 0.3, 1.0]
CENTRAL, LOCAL = "HTINF in batches", "HTINF, noise on every play"
ALGORITHMS = {CENTRAL: a.private_batched, LOCAL: partial(a.private_batched, window=1)}
LEARNT = 0.5  # of uniform play's regret: below it an exponent says something about the algorithm


def sweeps(full: bool) -> dict[str, Sweep]:
    horizons, seeds = ([2000, 20_000, 200_000, 2_000_000, 20_000_000], 16) if full else ([200, 800], 4)
    grids = {t: {"environment.gap": GAPS, "epsilon": [t**-power for power in POWERS]} for t in horizons}
    return {f"{horizon}": swept(ALGORITHMS, WORLD, horizon, seeds, grid=grid) for horizon, grid in grids.items()}


def shares(results: Results) -> xr.DataArray:
    """Regret [algorithm, power, horizon, seed] at the costliest gap, over what uniform play costs at a gap of 1."""
    parts = []
    for name, ds in results.items():
        uniform = int(name) * (NUM_ARMS - 1) / NUM_ARMS
        share = final_regret(ds).assign_coords(epsilon=POWERS).rename(epsilon="power") / uniform
        parts.append(share.isel({"environment.gap": share.mean("seed").argmax("environment.gap")}))
    joined = xr.concat(parts, pd.Index([int(x) for x in results], name="horizon"), coords="minimal", compat="override")
    return joined.transpose("algorithm", "power", "horizon", "seed")


def draw(results: Results) -> plot.Plot:
    share, kinds = shares(results), {CENTRAL: "batches", LOCAL: "noise on every play"}
    name = "{}, ε = T^-{:g}".format
    lines, horizons = list[Curve](), share["horizon"].values
    for power, (label, kind) in product(POWERS, kinds.items()):
        lines.append((name(kind, power), horizons, share.sel(algorithm=label, power=power)))
    dotted = {name(kinds[LOCAL], power): name(kinds[CENTRAL], power) for power in POWERS}
    caption = "HTINF, two arms; the gap of 0.1, 0.3 and 1 that costs most; dotted: noise on every play (local)"
    words = {"horizon": "plays T", "share": "regret over that of uniform play"}
    return draw_curves("horizon", "share", lines, dotted=dotted, names=words, caption=caption, width=6.5)


def claims(results: Results) -> Claims:
    share = shares(results)
    first, last = (int(share["horizon"][i]) for i in (0, -1))
    for power in POWERS:
        stated, here = (1 + power) / 2, share.sel(algorithm=CENTRAL, power=power)
        learnt = here.isel(horizon=(here.mean("seed") < LEARNT).values)
        if learnt.sizes["horizon"] < 3:
            measured = f"regret is below half of uniform play's at {learnt.sizes['horizon']} of {len(results)} horizons"
        else:
            measured = "{:.2f}; {}".format(*exponent(as_sweep(learnt * learnt["horizon"]), "horizon"))
        paper = f"at most {stated:g}: √(KT/ε) (Corollary 3.2)"
        yield Claim(f"exponent of T along ε = T^-{power:g}: {CENTRAL}", paper, measured)
    for power in POWERS:
        here = share.sel(algorithm=LOCAL, power=power)
        ratio, low, high = map(float, ratio_interval(here.sel(horizon=last).values, here.sel(horizon=first).values))
        measured = f"{ratio:.2f} of the regret a play is left when T grows {last // first:,}-fold"
        measured += f"; share left {brackets(low, high)}" if power >= 0.5 else ""
        bound = "of order T under local privacy (introduction)" if power >= 0.5 else "√(KT)/ε, below T"
        yield Claim(f"regret a play along ε = T^-{power:g}: {LOCAL}", bound, measured)
    for power, label in product(POWERS, ALGORITHMS):
        means = share.sel(algorithm=label, power=power).mean("seed")
        measured = series(means["horizon"], means, "{y:.3f} at {x:,}")
        yield Claim(f"regret over uniform play's along ε = T^-{power:g}: {label}", "", measured)
    for power in POWERS:
        ends = [np.asarray(share.sel(algorithm=label, power=power, horizon=last)) for label in (CENTRAL, LOCAL)]
        measured = f"{times(ends[0], ends[1], 3)} of the local regret at T = {last:,}, ε = {last**-power:.2g}"
        yield Claim(f"central over local along ε = T^-{power:g}", "", measured)


TITLE = "Central against local privacy below epsilon = 1 / sqrt(T)"
STUDY = Study(TITLE, "Corollary 3.2 and the introduction", sweeps, {"share": draw}, claims)

# ---- the bounds with their constants, where they are below what uniform play costs. Theorem D.1 is about HTINF on
# losses with Laplace noise of scale 1: the conversion at epsilon = 1, with batches of one play. Lemma E.4 is about FTPL
# with noise of scale lambda: that with batches of one play at epsilon = 1 / lambda.

DELTA = 1e-5  # of batched EXP4, whose bound is not used
ARMS = {
    "HTINF in batches": (partial(a.private_batched, base=a.htinf), "htinf", "Corollary 3.2"),
    "EXP3 in batches": (partial(a.private_batched, base=a.exp3), "exp3", "Corollary E.1"),
    "FTPL in batches": (partial(a.private_batched, base=a.ftpl), "ftpl", "Corollary E.3 with Lemma E.4's constants"),
}
_EXPERTS_AS_ARMS = partial(a.bandit_to_experts, base=partial(a.private_batched, base=a.htinf))
EXPERTS = {
    "experts as arms": (_EXPERTS_AS_ARMS, "bandit_to_experts", "Corollary 4.3"),
    "local EXP4": (a.local_exp4, "local_exp4", "Theorem 4.4"),
}
UNIFORM, ORDER = "uniform play", "printed bound"
EPSILONS = [0.1, 0.3, 1.0]
NOISY = "FTPL, noise of scale λ"  # without batches: a message a play
SCALES = [1.0, 0.1, 0.01, 0.001]  # lambda; the conversion's is at least 1/2


def constant_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (1_000_000, 20) if full else (2000, 4)
    gaps = [0.01, 0.1, 1.0] if full else [0.1, 1.0]
    arms = {label: algorithm for label, (algorithm, _, _) in ARMS.items()} | {UNIFORM: a.uniform}
    experts = {label: algorithm for label, (algorithm, _, _) in EXPERTS.items()}
    plain = {NOISY: partial(a.private_batched, base=a.ftpl, window=1)}
    grid = {"environment.gap": gaps, "epsilon": EPSILONS}
    noisy = grid | {"epsilon": [1 / scale for scale in SCALES]}
    declared = {"arms": swept(arms, WORLD, horizon, seeds, grid=grid)}
    declared["noisy"] = swept(plain, WORLD, horizon, seeds, grid=noisy)
    for gap in gaps:
        environment = e.rotating_experts(losses=WORLD(gap=gap), num_experts=NUM_EXPERTS, spread=0.0)
        inside = {("epsilon", "experts as arms.base.epsilon"): EPSILONS}
        declared[f"experts-{gap:g}"] = swept(experts, environment, horizon, seeds, grid=inside)
    return declared


def paper_bound(label: str, horizon: int, epsilon: float) -> float:
    """The printed bound of an algorithm, constants included.

    FTPL's is what Theorem 3.1 makes of Lemma E.4: 2/epsilon (R + 1) with R for epsilon T updates and lambda = 1.
    """
    if label == "FTPL in batches":
        return 2 / epsilon * (lemma_e4(epsilon * horizon, 1.0) + 1)
    if label in ARMS:
        return theory.arms_bounds(NUM_ARMS, horizon, epsilon, corrected=False)[ARMS[label][1]]
    sizes = (NUM_ARMS, NUM_EXPERTS)
    return theory.experts_bounds(*sizes, horizon, epsilon, DELTA)[EXPERTS[label][1]]


def lemma_e4(updates: float, scale: float) -> float:
    """Lemma E.4 as read here: 11 lambda sqrt(K T log K) log(K T) + 10 for T updates."""
    size = NUM_ARMS * updates
    return 11 * scale * math.sqrt(size * math.log(NUM_ARMS)) * math.log(size) + 10


def worst_gap_regrets(results: Results) -> pd.DataFrame:
    """For each algorithm and epsilon the largest mean regret over the gaps, with its interval."""
    frames = []
    for name, ds in results.items():
        frame, (_, _, gap) = regrets(ds).rename(columns={"environment.gap": "gap"}), name.partition("-")
        frames.append(frame.assign(gap=float(gap)) if gap else frame)
    frame = pd.concat(frames, ignore_index=True)
    return frame.loc[frame.groupby(["algorithm", "epsilon"], sort=False)["mean"].idxmax()].reset_index(drop=True)


def draw_bounds(results: Results) -> plot.Plot:
    frame, horizon = worst_gap_regrets(results), int(results["arms"].t[-1])
    lines, dotted = list[Curve](), {}
    for label, part in frame[frame["algorithm"] != NOISY].groupby("algorithm", sort=False):
        epsilons, printed = part["epsilon"], f"{label}: {ORDER}"
        lines.append((label, epsilons, part["mean"], part["low"], part["high"]))
        if label in ARMS | EXPERTS:
            dotted[printed] = label
            lines.append((printed, epsilons, [paper_bound(label, horizon, x) for x in epsilons]))
    caption = f"two arms, two experts, T = {horizon:,}: the largest mean regret over the gaps; dotted: printed bounds"
    words = {"epsilon": "privacy level ε", "regret": "cumulative regret"}
    return draw_curves("epsilon", "regret", lines, dotted=dotted, names=words, caption=caption, width=5.5)


def constant_claims(results: Results) -> Claims:
    """Each algorithm's largest mean regret beside its printed bound; a verdict where the bound is below T."""
    horizon = int(results["arms"].t[-1])
    sources = {label: source for label, (_, _, source) in (ARMS | EXPERTS).items()}

    def claim_of_bound(row, statement: str, limit: float, source: str, *, decides: bool = True) -> Claim:
        evidence = Interval("interval", row.low, row.high, at_most=limit) if decides else None
        measured = f"{row.mean:,.0f} at a gap of {row.gap:g}, {row.mean / limit:.3f} of it"
        return Claim(f"{statement}: largest mean regret", f"at most {limit:,.0f} ({source})", measured, evidence)

    for row in worst_gap_regrets(results).itertuples():
        statement = f"{row.algorithm}, ε = {row.epsilon:g}"
        if row.algorithm == NOISY:
            scale = 1 / row.epsilon
            yield claim_of_bound(row, f"{NOISY} = {scale:g}", lemma_e4(horizon, scale), "Lemma E.4")
        elif row.algorithm == UNIFORM:
            yield Claim(f"{statement}: largest mean regret", "", f"{row.mean:,.0f} at a gap of {row.gap:g}")
        else:
            limit = paper_bound(row.algorithm, horizon, row.epsilon)
            yield claim_of_bound(row, statement, limit, sources[row.algorithm], decides=limit < horizon / 2)
        if row.algorithm == "HTINF in batches" and row.epsilon == 1:  # batches of one play; alpha = 2, losses in [0, 1]
            limit = 30 * math.sqrt(6 * NUM_ARMS * (horizon + 1))
            yield claim_of_bound(row, "HTINF, noise of scale 1", limit, "Theorem D.1")


BOUNDS_TITLE = "The bounds with their constants, where they are below what uniform play costs"
SOURCE = "Corollaries 3.2, 4.3, E.1 and E.3, Theorems 4.4 and D.1, Lemma E.4"
CONSTANTS = Study(BOUNDS_TITLE, SOURCE, constant_sweeps, {"epsilon": draw_bounds}, constant_claims)
