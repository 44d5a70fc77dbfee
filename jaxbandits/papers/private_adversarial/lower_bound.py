"""The lower bound of Lemma 5.1: two sequences, its statistics and the regret of every base."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import format_number
from jaxbandits.papers.shared import against, series
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept, worst
from jaxbandits.reports import plot
from jaxbandits.statistics import mean_interval

ALGORITHMS = {
    "HTINF": partial(a.private_batched, base=a.htinf),
    "EXP3": partial(a.private_batched, base=a.exp3),
    "FTPL": partial(a.private_batched, base=a.ftpl),
    "EXP3, rate 0.1": partial(a.private_batched, base=partial(a.exp3, learning_rate=0.1, mixing=0.02)),
    "noise on every play": a.ldp_exp3,
}
# What the lemma leaves open is searched: gamma as parts of the median share of arm 1, p as multiples of 1 / epsilon
# (below log 2, where the lemma's second term is positive), and tau_0 at every checkpoint below T / 2 and at 0.
PARTS_OF_MEDIAN = tuple(0.8**k for k in range(16))
MULTIPLES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65)
TRIPLE = ("gamma", "p", "tau_0", "window", "calm", "second", "first")
SURE = 0.95  # confidence that a probability is at least 1/2, one-sided
# Every play up to this one is a checkpoint: the lemma's conditions ask for an early change and a short window.
LAST_DENSE_CHECKPOINT = 1000
CHECKPOINT_STEP = 20  # plays between checkpoints afterwards


def sweeps(full: bool) -> dict[str, Sweep]:
    """Both sequences at every candidate tau_0; l does not depend on it."""
    horizon, seeds = (20_000, 100) if full else (2000, 20)
    epsilons = [0.01, 0.03, 0.1, 0.3, 1.0] if full else [0.05, 0.5]
    changes = (5, 20, 50, 100, 200, 500, 1000, 2000, 4000, 8000) if full else (20, 100, 800)
    dense = np.arange(1, LAST_DENSE_CHECKPOINT + 1)
    times = np.union1d(dense, np.arange(CHECKPOINT_STEP, horizon + 1, CHECKPOINT_STEP)).tolist()
    worlds = {"l": e.lemma51_losses(change=horizon)}
    worlds |= {f"l'-{n}": e.lemma51_losses(change=n, primed=True) for n in changes}
    more: dict[str, Any] = {"grid": {"epsilon": epsilons}, "checkpoints": times}
    return {name: swept(ALGORITHMS, world, horizon, seeds, **more) for name, world in worlds.items()}


def plays_of_arm_1(regret, times, change=None) -> np.ndarray:
    """Plays of arm 1 up to each time, from the regret [..., C] recorded on l, or on l' with this `change`. Exact."""
    regret, times = np.asarray(regret, np.float64), np.asarray(times, np.float64)
    if change is None:  # on l the regret is half of them
        return np.rint(2 * regret)
    # on l' the loss is the regret plus the best arm's; after the change a play of arm 0 costs 1/2, one of arm 1 nothing
    loss = regret + np.minimum(times / 2, np.minimum(times, change))
    at = np.flatnonzero(times == change)
    if not at.size:
        raise ValueError(f"change = {change} is no checkpoint: the plays before it cannot be told from those after")
    before = 2 * loss - times  # up to the change: loss = times / 2 + plays / 2
    after = before[..., at] + (times - change) - 2 * (loss - loss[..., at])
    return np.rint(np.where(times <= change, before, after))


def triples(plays, times, epsilon, sure=False) -> pd.DataFrame:
    """The triples (gamma, p, tau_0) that satisfy the lemma (A47), from plays of arm 1 under l, [S, C] at `times` [C].

    The last time is T. Probabilities are shares of seeds; `sure`: the seeds must show them at 95%. The window of E_p
    ends at a checkpoint, rounded up, which only makes E_p rarer. `calm` is the share of seeds in E_p; the worst-case
    regret is at least the larger of `first` (gamma T / 4, about l) and `second` (about l').
    """
    times, horizon, seeds = np.asarray(times), int(times[-1]), len(plays)
    needed = seeds / 2
    if sure:
        counts = np.arange(seeds + 1)
        needed = counts[stats.binom.sf(counts - 1, seeds, 0.5) <= 1 - SURE].min(initial=seeds + 1)
    median, found = float(np.median(plays[:, -1])) / horizon, []
    starts = np.concatenate([[0], times[times < horizon / 2]])
    before = np.concatenate([np.zeros((seeds, 1)), plays[:, : len(starts) - 1]], axis=1)
    for gamma, multiple in product([median * part for part in PARTS_OF_MEDIAN], MULTIPLES):
        p = multiple / epsilon
        if not 0 < gamma <= 0.5 or (plays[:, -1] >= gamma * horizon).sum() < needed:
            continue
        fits = (2 * gamma * starts <= p) & (p <= gamma * (horizon - starts))
        tau_0 = starts[fits]
        stop = np.searchsorted(times, tau_0 + math.floor(p / gamma))
        calm = (plays[:, stop] - before[:, fits] <= p).sum(axis=0)
        second = (1 - math.exp(multiple) / 2) * (p / gamma - p) / 2 - tau_0 / 2
        columns = {"tau_0": tau_0, "window": times[stop] - tau_0, "calm": calm / seeds, "second": second}
        rows = pd.DataFrame({"gamma": gamma, "p": p, **columns, "first": gamma * horizon / 4})
        found.append(rows[calm >= needed])
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame({key: [] for key in TRIPLE})


def statistics_frame(results: Results) -> pd.DataFrame:
    """For each algorithm and epsilon what the lemma yields, and the regrets on l and on the worst of the l'.

    `satisfying` and `sure` count the triples that satisfy the lemma, by the share of seeds and at 95%. The triple of
    the largest bound is shown; `second` is the largest second term of all of them. Both are NaN where no triple does.
    """
    plain, times = results["l"], results["l"]["t"].values
    changes = sorted(int(key.removeprefix("l'-")) for key in results if key.startswith("l'-"))
    rows = []
    for label, epsilon in product(plain["algorithm"].values, plain["epsilon"].values):
        at = {"algorithm": label, "epsilon": epsilon}
        regret = plain["regret"].sel(at).values
        plays = plays_of_arm_1(regret, times)
        found = triples(plays, times, epsilon)
        bound = found[["first", "second"]].max(axis=1)
        best = found.loc[bound.idxmax()].to_dict() if len(found) else dict.fromkeys(TRIPLE, math.nan)
        primed = {change: results[f"l'-{change}"]["regret"].sel(at).values for change in changes}
        worst = max(primed, key=lambda change: primed[change][:, -1].mean())
        regrets = max(regret[:, -1], primed[worst][:, -1], key=np.mean)
        mean, low, _ = mean_interval(regrets)
        rows.append(
            {"algorithm": label, "epsilon": float(epsilon), "median_share": np.median(plays[:, -1]) / times[-1]}
            | {key: best[key] for key in ("gamma", "p", "tau_0", "window", "calm")}
            | _calm_shares(found[found["tau_0"].isin(changes)], primed, times)
            | {
                "satisfying": len(found), "sure": len(triples(plays, times, epsilon, sure=True)),
                "latest": found["tau_0"].max(), "bound": bound.max(), "second": found["second"].max(),
                "regret_l": regret[:, -1].mean(), "regret_primed": primed[worst][:, -1].mean(), "worst": mean,
                "worst_low": low, "rate": math.sqrt(times[-1] / epsilon),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _calm_shares(found, primed, times):
    """P(E_p) on l and l' for the triple of the largest bound among those whose l' was played."""
    if not len(found):
        return {"calm_played": math.nan, "calm_primed": math.nan}
    best = found.loc[found[["first", "second"]].max(axis=1).idxmax()]
    change = int(best["tau_0"])
    plays = plays_of_arm_1(primed[change], times, change)
    start, stop = np.searchsorted(times, [change, change + best["window"]])
    calm = float((plays[:, stop] - plays[:, start] <= best["p"]).mean())
    return {"calm_played": best["calm"], "calm_primed": calm}


def worse(results: Results) -> xr.Dataset:
    """Each algorithm's regret on the sequence, l or one of the l', that costs it most."""
    keys = [key for key in results if key.startswith("l")]
    joined = xr.concat([results[key][["regret"]].isel(t=[-1]) for key in keys], pd.Index(keys, name="sequence"))
    return worst(joined.assign_attrs(constant_along="{}"), "sequence")


CAPTION = "regret on the worst of l and the l'; theory tunings, and EXP3 with a larger rate"
RATE = lambda ds: {"√(T/ε)": lambda xs: np.sqrt(int(ds.t[-1]) / xs)}
PICTURE = against(worse, "epsilon", reference=RATE, caption=CAPTION, width=5.0)


def draw_bound(results: Results) -> plot.Plot:
    """The worse of the two regrets and the best bound of the lemma, both as ratios to sqrt(T / epsilon).

    A bound is marked where the lemma is satisfied, and drawn nowhere else.
    """
    frame = statistics_frame(results)
    parts = [
        frame.assign(ratio=frame[column] / frame["rate"], line=frame["algorithm"] + f": {name}", markers=marked)
        for name, column, marked in (("regret", "worst", False), ("bound", "bound", True))
    ]
    table = pd.concat(parts, ignore_index=True).dropna(subset="ratio")
    bounds = [line for line in dict.fromkeys(table["line"]) if line.endswith(": bound")]
    caption = "lines: the worse of the regrets on l and l'; marks: the largest bound of Lemma 5.1 over its γ, p "
    caption += f"and τ₀, where some satisfy it ({int((frame['satisfying'] > 0).sum())} of {len(frame)} points)"
    return plot.lines(
        table, "epsilon", "ratio", line="line", log="both", width=5.5, names={"ratio": "divided by √(T/ε)"},
        dotted={line: line.replace(": bound", ": regret") for line in bounds}, caption=caption,
    )  # fmt: skip


def claims(results: Results) -> Claims:
    frame = statistics_frame(results)
    for row in frame.to_dict("records"):
        measured = f"regrets {row['regret_l']:,.0f} on l, {row['regret_primed']:,.0f} on the worst l'"
        statement = f"{row['algorithm']}, ε = {row['epsilon']:g}"
        if not row["satisfying"]:
            yield Claim(statement, "satisfied by no triple: says nothing", measured)
            continue
        ratio = row["bound"] / row["rate"]
        paper = f"{row['satisfying']:,} triples; regret at least {row['bound']:,.0f} = {ratio:.2f} √(T/ε)"
        best = f"γ = {row['gamma']:.3g}, p = {row['p']:.3g}, τ₀ = {row['tau_0']:,.0f}: P(E_p) = {row['calm']:.2f}"
        measured = f"{best}; largest τ₀ {row['latest']:,.0f}; {row['sure']:,} triples at 95%; {measured}"
        if row["second"] > 0:
            # No verdict: gamma T / 4 is half a median of what the regret on l is half the mean of, and the second term
            # is far below every regret, so that neither could fail.
            measured += f"; largest second term {row['second']:,.0f}, worst regret {row['worst']:,.0f} "
            measured += f"[{format_number(row['worst_low'])}, ∞]"
        yield Claim(statement, paper, measured)
    applies = frame["satisfying"] > 0
    yield Claim("some γ, p and τ₀ satisfy the lemma", "", f"at {int(applies.sum())} of {len(frame)} points")
    early = bool((frame["latest"][applies] < np.ceil(1 / frame["epsilon"][applies])).all())
    measured = f"{'in all' if early else 'not in all'} of these triples"
    yield Claim("τ₀ lies within the first batch of ⌈1/ε⌉ plays", "", measured)
    share = frame["second"] / frame["rate"]
    above = int((frame["second"] >= frame["bound"]).sum())
    measured = f"at most {share.max():.3f} √(T/ε); above γT/4 at {above} points"
    yield Claim("the lemma's second term, the one about privacy", "", measured)
    for label, part in frame.groupby("algorithm", sort=False):
        counts = series(part["epsilon"], part["satisfying"], "{y:,} at ε = {x:g}")
        yield Claim(f"triples that satisfy the lemma, {label}", "", counts)
    ratio = frame["worst"] / frame["rate"]
    measured = f"between {ratio.min():.2f} and {ratio.max():.2f}"
    yield Claim("worst regret over √(T/ε)", "at least a constant where the lemma applies", measured)


STUDY = Study(__doc__, "Lemma 5.1", sweeps, {"regret": PICTURE, "bound": draw_bound}, claims)
