"""The pair of loss sequences of Lemma 5.1, the lemma's statistics, and the regret of every base on both.

Two arms. l costs (1/2, 1) always; l' the same up to play tau_0 and (1/2, 0) after it. An algorithm that rarely plays
arm 1 under l cannot notice the change soon, if it is private. The theorem is about algorithms that satisfy the
lemma's conditions: they are checked.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.study import Claim, Results, Study, Sweep, worst
from jaxbandits.reports import plot

ALGORITHMS = {
    "HTINF": partial(a.private_batched, base=a.htinf),
    "EXP3": partial(a.private_batched, base=a.exp3),
    "FTPL": partial(a.private_batched, base=a.ftpl),
    "EXP3, rate 0.1": partial(a.private_batched, base=partial(a.exp3, learning_rate=0.1, mixing=0.02)),
    "noise on every play": a.ldp_exp3,
}
CONDITIONS = {"rare": "γ ≤ 1/2", "early": "2γτ₀ ≤ p", "room": "p ≤ γ(T - τ₀)"}
# Every play up to this one is a checkpoint: the lemma's conditions ask for an early change and a short window.
LAST_DENSE_CHECKPOINT = 1000
CHECKPOINT_STEP = 20  # plays between checkpoints afterwards


def sweeps(full: bool) -> dict[str, Sweep]:
    """Both sequences at every candidate tau_0; l does not depend on it."""
    horizon, seeds = (20_000, 100) if full else (2000, 20)
    epsilons = [0.01, 0.03, 0.1, 0.3, 1.0] if full else [0.05, 0.5]
    changes = (5, 20, 50, 100, 200, 500, 1000, 2000, 4000, 8000) if full else (20, 100, 800)
    times = np.union1d(
        np.arange(1, LAST_DENSE_CHECKPOINT + 1), np.arange(CHECKPOINT_STEP, horizon + 1, CHECKPOINT_STEP)
    )
    common = {
        "algorithms": ALGORITHMS,
        "horizon": horizon,
        "seeds": seeds,
        "checkpoints": times.tolist(),
        "grid": {"epsilon": epsilons},
    }
    declared = {"l": Sweep(common | {"environment": e.lemma51_losses(change=horizon)})}
    return declared | {
        f"l'-{n}": Sweep(common | {"environment": e.lemma51_losses(change=n, primed=True)}) for n in changes
    }


def plays_of_arm_1(regret, times, change=None) -> np.ndarray:
    """Plays of arm 1 up to each time, from the regret [..., C] recorded on l, or on l' with this `change`. Exact.

    On l the regret is half of them. On l' the loss is the regret plus the best arm's, and after the change a play of
    arm 0 costs 1/2, one of arm 1 nothing.
    """
    regret, times = np.asarray(regret, np.float64), np.asarray(times, np.float64)
    if change is None:
        return np.rint(2 * regret)
    best = np.minimum(times / 2, np.minimum(times, change))
    loss = regret + best
    at = np.flatnonzero(times == change)
    if not at.size:
        raise ValueError(f"change = {change} is no checkpoint: the plays before it cannot be told from those after")
    before = 2 * loss - times  # up to the change: loss = times / 2 + plays / 2
    after = before[..., at] + (times - change) - 2 * (loss - loss[..., at])
    return np.rint(np.where(times <= change, before, after))


def lemma(plays, times, change, epsilon, primed=None) -> dict[str, Any]:
    """The lemma's statistics for one algorithm from plays of arm 1 under l, [S, C] at `times` [C] (the last is T).

    gamma: median share of arm 1, so that E_gamma has probability 1/2 at least; p = 1 / (2 epsilon); `window`: floor(p
    / gamma) plays after `change` (its end rounded up to a checkpoint, T at the latest); `calm`: the share of seeds
    with at most p plays of arm 1 in it (E_p), `calm_primed` under l'. Conditions: `rare` gamma <= 1/2, `early` tau_0
    < T/2 and 2 gamma tau_0 <= p, `room` p <= gamma (T - tau_0); `applies`: all of them, and E_p has probability 1/2.
    `second`: what the lemma then says beside gamma T / 4, which the regret on l reaches under E_gamma alone.
    """
    times, horizon = np.asarray(times), int(times[-1])
    gamma, p = float(np.median(plays[:, -1])) / horizon, 1 / (2 * epsilon)
    end = min(change + math.floor(p / gamma), horizon) if gamma > 0 else horizon
    stop = int(np.searchsorted(times, end))

    def calm(counts):
        before = counts[:, np.searchsorted(times, change)] if change else 0
        return float((counts[:, stop] - before <= p).mean())

    fits = {
        "rare": gamma <= 0.5,
        "early": change < horizon / 2 and 2 * gamma * change <= p,
        "room": p <= gamma * (horizon - change),
    }
    applies = bool(all(fits.values()) and calm(plays) >= 0.5)
    second = (1 - math.exp(epsilon * p) / 2) * (p / gamma - p) / 2 - change / 2 if applies else -math.inf
    return fits | {
        "gamma": gamma, "p": p, "tau_0": change, "window": float(times[stop]) - change, "calm": calm(plays),
        "calm_primed": math.nan if primed is None else calm(primed), "applies": applies,
        "second": second, "bound": max(gamma * horizon / 4, second),
    }  # fmt: skip


def statistics_frame(results: Results) -> pd.DataFrame:
    """For each algorithm and epsilon the lemma's statistics and the regrets on l and l'.

    The row is of the earliest tau_0 played at which the lemma applies, else at which P(E_p) >= 1/2, else of the
    calmest. E_p and the conditions are about l alone, so that every checkpoint below T/2, and 0, can be tau_0 without
    its l' being played: `applying` counts those at which the lemma applies, `first_calm` is the earliest with P(E_p)
    >= 1/2.
    """
    changes = sorted(int(key.removeprefix("l'-")) for key in results if key.startswith("l'-"))
    plain, times = results["l"], results["l"]["t"].values
    rows = []
    for label in plain["algorithm"].values:
        for epsilon in plain["epsilon"].values:
            at = {"algorithm": label, "epsilon": epsilon}
            plays = plays_of_arm_1(plain["regret"].sel(at).values, times)
            every = [lemma(plays, times, change, epsilon) for change in changes]
            good = [row for row in every if row["applies"]] or [row for row in every if row["calm"] >= 0.5]
            change = (good or [max(every, key=lambda row: row["calm"])])[0]["tau_0"]
            regret = results[f"l'-{change}"]["regret"].sel(at).values
            row = lemma(plays, times, change, epsilon, plays_of_arm_1(regret, times, change))
            ends = (plain["regret"].sel(at).values[:, -1], regret[:, -1])
            row["regret_l"], row["regret_primed"] = (float(x.mean()) for x in ends)
            row["rate"] = math.sqrt(times[-1] / epsilon)
            fine = [lemma(plays, times, int(n), epsilon) for n in (0, *times[times < times[-1] / 2])]
            row["applying"] = sum(x["applies"] for x in fine)
            row["first_calm"] = next((x["tau_0"] for x in fine if x["calm"] >= 0.5), math.nan)
            rows.append({"algorithm": label, "epsilon": float(epsilon), **row})
    return pd.DataFrame(rows)


def worse(results: Results) -> xr.Dataset:
    """Each algorithm's regret on the sequence, l or one of the l', that costs it most."""
    keys = [key for key in results if key.startswith("l")]
    joined = xr.concat([results[key][["regret"]].isel(t=[-1]) for key in keys], pd.Index(keys, name="sequence"))
    return worst(joined.assign_attrs(constant_along="{}"), "sequence")


def draw(results: Results) -> plot.Plot:
    """Draw the worst of the measured regrets beside the rate sqrt(T / epsilon)."""
    ds = worse(results)
    horizon = int(ds.t[-1])
    reference = {"√(T/ε)": lambda xs: np.sqrt(horizon / xs)}
    caption = "regret on the worst of l and the l'; theory tunings, and EXP3 with a larger rate"
    return plot.against(ds, "epsilon", reference=reference, caption=caption, width=5.0)


def draw_bound(results: Results) -> plot.Plot:
    """The worse of the two regrets and what is proved about it, both as ratios to sqrt(T / epsilon)."""
    frame = statistics_frame(results)
    values = {"regret": frame[["regret_l", "regret_primed"]].max(axis=1), "bound": frame["bound"]}
    parts = [
        frame.assign(ratio=value / frame["rate"], line=frame["algorithm"] + f": {name}")
        for name, value in values.items()
    ]
    words = {"ratio": "divided by √(T/ε)"}
    caption = (
        "the worse of the regrets on l and l', and the lemma's bound "
        f"where it applies ({int(frame['applies'].sum())} of {len(frame)}"
    )
    caption += " points), else γT/4"
    table = pd.concat(parts, ignore_index=True)
    dotted = {f"{label}: bound": f"{label}: regret" for label in dict.fromkeys(frame["algorithm"])}
    return plot.lines(
        table, "epsilon", "ratio", line="line", log="both", dotted=dotted, names=words, caption=caption, width=5.5
    )


def claims(results: Results) -> list[Claim]:
    """Where the lemma applies, what it says there, and the regrets."""
    frame, entries = statistics_frame(results), []
    for row in frame.to_dict("records"):
        measured = (
            f"γ = {row['gamma']:.3g}; P(E_p) first 1/2 at τ₀ = {row['first_calm']:,.0f}; "
            f"at τ₀ = {row['tau_0']:,}: {row['calm']:.2f} on l, "
        )
        measured += f"{row['calm_primed']:.2f} on l'; regrets {row['regret_l']:,.0f} and {row['regret_primed']:,.0f}"
        measured = measured.replace("first 1/2 at τ₀ = nan", "below 1/2 at every τ₀")
        failing = [name for name in CONDITIONS if not row[name]] + ([] if row["calm"] >= 0.5 else ["P(E_p) ≥ 1/2"])
        paper = f"applies at {row['applying']:,} τ₀; " if row["applying"] else "applies at no τ₀; "
        paper += (
            f"at this one: {row['bound']:,.1f}"
            if row["applies"]
            else f"here {', '.join(CONDITIONS.get(x, x) for x in failing)} fails"
        )
        regret = max(row["regret_l"], row["regret_primed"])
        # gamma T / 4 is half the median of what the regret on l is half the mean of: only the second term could fail
        holds = bool(regret >= row["second"]) if row["applies"] and row["second"] > 0 else None
        entries.append(Claim(f"{row['algorithm']}, ε = {row['epsilon']:g}", paper, measured, holds))
    measured = f"at {int((frame['applying'] > 0).sum())} of {len(frame)} points; its second term exceeds γT/4 at "
    measured += f"{int((frame['second'] > frame['gamma'] * int(results['l'].t[-1]) / 4).sum())} of them"
    entries.append(Claim("the lemma's conditions hold for some τ₀", "asked of every private algorithm", measured))
    ratio = worse(results)["regret"].isel(t=-1).mean("seed") / np.sqrt(
        int(results["l"].t[-1]) / results["l"]["epsilon"]
    )
    measured = f"between {float(ratio.min()):.2f} and {float(ratio.max()):.2f}"
    return [*entries, Claim("worst regret over √(T/ε)", "at least a constant where the lemma applies", measured)]


STUDY = Study(
    "The lower bound of Lemma 5.1: two sequences, its statistics and the regret of every base",
    "Lemma 5.1",
    sweeps,
    {"regret": draw, "bound": draw_bound},
    claims,
)
