"""Section 5: the pair of loss sequences of Lemma 5.1, the lemma's statistics, and the regret of every base on both.

Two arms. l costs (1/2, 1) always; l' the same up to play tau_0 and (1/2, 0) after it. An algorithm that rarely plays arm 1 under l
cannot notice the change soon, if it is private. The theorem is about algorithms that satisfy the lemma's conditions: they are checked.
"""

import math
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.study import Claim, Study, Sweep, worst
from jaxbandits.reports import plot

ALGORITHMS = {
    "HTINF": partial(a.private_batched, base=a.htinf),
    "EXP3": partial(a.private_batched, base=a.exp3),
    "FTPL": partial(a.private_batched, base=a.ftpl),
    "EXP3, rate 0.1": partial(a.private_batched, base=partial(a.exp3, learning_rate=0.1, mixing=0.02)),
    "noise on every play": a.ldp_exp3,
}
STEPS = 200  # checkpoints, evenly spaced


def sweeps(full: bool) -> dict[str, Sweep]:
    """Both sequences at every candidate tau_0; l does not depend on it."""
    horizon, seeds = (20_000, 100) if full else (2000, 20)
    epsilons = [0.01, 0.03, 0.1, 0.3, 1.0] if full else [0.05, 0.5]
    shares = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4) if full else (0.05, 0.2, 0.4)
    times = np.arange(1, STEPS + 1) * (horizon // STEPS)
    common = {
        "algorithms": ALGORITHMS, "horizon": horizon, "seeds": seeds, "checkpoints": times.tolist(), "grid": {"epsilon": epsilons},
    }  # fmt: skip
    plain = e.lemma51_losses(change=horizon)
    made = {"l": Sweep(common | {"environment": plain})}
    for share in shares:
        changed = e.lemma51_losses(change=round(share * horizon), primed=True)
        made[f"l'-{round(share * horizon)}"] = Sweep(common | {"environment": changed})
    return made


def plays_of_arm_1(regret, times, change=None) -> np.ndarray:
    """Plays of arm 1 up to each time, from the regret [..., C] recorded on l, or on l' with this `change`. Exact.

    On l the regret is half of them. On l' the loss is the regret plus the best arm's, and after the change a play of arm 0 costs 1/2,
    one of arm 1 nothing.
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


def lemma(plays, times, change, epsilon, primed=None) -> dict:
    """The lemma's statistics for one algorithm from plays of arm 1 under l, [S, C] at `times` [C] (evenly spaced, the last is T).

    gamma: median share of arm 1, so that E_gamma has probability 1/2 at least; p = 1 / (2 epsilon); `window`: p / gamma plays after
    `change`, its end rounded up to a checkpoint; `calm`: the share of seeds with at most p plays of arm 1 in it (E_p), `calm_primed` under
    l'; `applies`: E_p has probability 1/2 and the conditions hold, gamma <= 1/2, tau_0 < T/2 and 2 gamma tau_0 <= p <= gamma (T - tau_0); `bound`: what the lemma then
    says the worse of the two regrets is at least; otherwise gamma T / 4, which the regret on l reaches under E_gamma alone. The window
    ends at T at the latest.
    """
    times, horizon = np.asarray(times), int(times[-1])
    gamma, p = float(np.median(plays[:, -1])) / horizon, 1 / (2 * epsilon)
    end = change + (p / gamma if gamma > 0 else math.inf)
    start, stop = int(np.searchsorted(times, change)), min(int(np.searchsorted(times, end)), len(times) - 1)
    calm = lambda counts: float((counts[:, stop] - counts[:, start] <= p).mean())
    fits = gamma <= 0.5 and change < horizon / 2 and 2 * gamma * change <= p <= gamma * (horizon - change)
    applies = bool(fits and calm(plays) >= 0.5)
    second = (1 - math.exp(epsilon * p) / 2) * (p / gamma - p) / 2 - change / 2 if applies else -math.inf
    return {
        "gamma": gamma, "p": p, "tau_0": change, "window": float(times[stop]) - change, "calm": calm(plays),
        "calm_primed": math.nan if primed is None else calm(primed), "applies": applies, "bound": max(gamma * horizon / 4, second),
    }  # fmt: skip


def statistics_frame(results) -> pd.DataFrame:
    """For each algorithm and epsilon the lemma's statistics at the smallest candidate tau_0 with P(E_p) >= 1/2, and the regrets."""
    changes = sorted(int(key.removeprefix("l'-")) for key in results if key.startswith("l'-"))
    plain, times = results["l"], results["l"]["t"].values
    rows = []
    for label in plain["algorithm"].values:
        for epsilon in plain["epsilon"].values:
            at = {"algorithm": label, "epsilon": epsilon}
            plays = plays_of_arm_1(plain["regret"].sel(at).values, times)
            every = [lemma(plays, times, change, epsilon) for change in changes]
            good = [row for row in every if row["applies"]] or [row for row in every if row["calm"] >= 0.5] or every
            change = good[0]["tau_0"]
            regret = results[f"l'-{change}"]["regret"].sel(at).values
            row = lemma(plays, times, change, epsilon, plays_of_arm_1(regret, times, change))
            row["regret_l"], row["regret_primed"] = (
                float(plain["regret"].sel(at).values[:, -1].mean()),
                float(regret[:, -1].mean()),
            )
            row["rate"] = math.sqrt(times[-1] / epsilon)
            rows.append({"algorithm": label, "epsilon": float(epsilon), **row})
    return pd.DataFrame(rows)


def worse(results) -> xr.Dataset:
    """Each algorithm's regret on the sequence, l or one of the l', that costs it most."""
    keys = [key for key in results if key.startswith("l")]
    joined = xr.concat([results[key][["regret"]].isel(t=[-1]) for key in keys], pd.Index(keys, name="sequence"))
    return worst(joined.assign_attrs(constant_along="{}"), "sequence")


def draw(results):
    """The worst of the measured regrets, the rate sqrt(T / epsilon), and the lemma's bound where its conditions hold."""
    ds = worse(results)
    horizon = int(ds.t[-1])
    reference = {"√(T/ε)": lambda xs: np.sqrt(horizon / xs)}
    caption = "regret on the worst of l and the l'; theory tunings, and EXP3 with a larger rate"
    return plot.against(ds, "epsilon", reference=reference, caption=caption, width=5.0)


def draw_bound(results):
    """The worse of the two regrets and what is proved about it, both as ratios to sqrt(T / epsilon)."""
    frame = statistics_frame(results)
    values = {"regret": frame[["regret_l", "regret_primed"]].max(axis=1), "bound": frame["bound"]}
    parts = [
        frame.assign(ratio=value / frame["rate"], line=frame["algorithm"] + f": {name}")
        for name, value in values.items()
    ]
    words = {"ratio": "divided by √(T/ε)"}
    caption = f"the worse of the regrets on l and l', and the lemma's bound where it applies ({int(frame['applies'].sum())} of {len(frame)}"
    caption += " points), else γT/4"
    table = pd.concat(parts, ignore_index=True)
    dotted = {f"{label}: bound": f"{label}: regret" for label in dict.fromkeys(frame["algorithm"])}
    return plot.lines(
        table, "epsilon", "ratio", line="line", log="both", dotted=dotted, names=words, caption=caption, width=5.5
    )


def claims(results) -> list[Claim]:
    """The bound holds for every algorithm that satisfies the lemma's conditions; the rate is approached."""
    frame = statistics_frame(results)
    made = []
    for row in frame.to_dict("records"):
        said = f"γ = {row['gamma']:.3g}, τ₀ = {row['tau_0']:,}, P(E_p) = {row['calm']:.2f} on l, {row['calm_primed']:.2f} on l'; "
        said += f"regrets {row['regret_l']:,.0f} and {row['regret_primed']:,.0f}"
        regret = max(row["regret_l"], row["regret_primed"])
        paper = f"{'the lemma applies' if row['applies'] else 'its conditions fail; γT/4 stays'}: at least {row['bound']:,.0f}"
        made.append(Claim(f"{row['algorithm']}, ε = {row['epsilon']:g}", paper, said, bool(regret >= row["bound"])))
    ratio = worse(results)["regret"].isel(t=-1).mean("seed") / np.sqrt(
        int(results["l"].t[-1]) / results["l"]["epsilon"]
    )
    said = f"between {float(ratio.min()):.2f} and {float(ratio.max()):.2f}"
    return [*made, Claim("worst regret over √(T/ε)", "at least a constant where the lemma applies", said)]


STUDY = Study(
    "The lower bound of Lemma 5.1: two sequences, its statistics and the regret of every base",
    "Section 5, Lemma 5.1",
    sweeps,
    {"regret": draw, "bound": draw_bound},
    claims,
)
