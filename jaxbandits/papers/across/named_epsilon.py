"""Named epsilon against spent epsilon: every mechanism of the five papers, by composition and by an audit.

Then regret at the same spent epsilon, on two problems that two papers share: arms with rewards of 0 and 1, and fixed
linear arms.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import privacy
from jaxbandits.auditing.audit import audit
from jaxbandits.papers.across.mechanisms import DELTA, GROUPS, NAMED
from jaxbandits.papers.across.shown_linear import shown_linear
from jaxbandits.papers.robust_linear.instance import batches, unit
from jaxbandits.papers.shared import ratios, regrets
from jaxbandits.papers.study import Claim, Evidence, Exact, Interval, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

AUDITED = 1.0  # the named epsilon at which each is audited
CONFIDENCE = 0.999  # of one audit: all of them are valid together with a probability of 96%
QUICKLY = ("LDP-UCB",)  # audited at quick size
ROUNDING = 1e-3  # of a composed epsilon, relative: it is rounded up, and bits flip with a multiple of 2^-23

ARMS = [0.7, 0.7, 0.75, 0.7, 0.7]
ON_ARMS = {
    "HTINF in batches": partial(a.private_batched, base=a.htinf), "PRM elimination": a.prm_elimination,
    "PRM-UCB": a.prm_ucb, "DP-SE": a.dp_se, "LDP-EXP3": a.ldp_exp3, "LDP-UCB": a.ldp_ucb,
}  # fmt: skip
NUM_ARMS, DIM = 20, 5
_RNG = np.random.default_rng(20)


def _positive(rows: int) -> np.ndarray:
    """Directions (u, 1) / √2: any two of them have an inner product in [0, 1]."""
    return np.concatenate([unit(_RNG.normal(size=(rows, DIM - 1))), np.ones((rows, 1))], 1) / math.sqrt(2)


LINEAR = partial(shown_linear, actions=_positive(NUM_ARMS), theta=_positive(1)[0])
NOISE = 0.5  # rewards of 0 and 1 are sub-Gaussian with this scale
# Their noise is for rewards in [-1, 1]. On rewards in [0, 1] it spends half of the epsilon that they are given.
WIDE = {
    "M1": partial(a.robust_elimination, model="M1", presieve=True, noise_scale=NOISE),
    "M2": partial(a.robust_elimination, model="M2", presieve=True, noise_scale=NOISE),
    "central, Laplace": partial(a.private_elimination, mechanism="laplace", noise_scale=NOISE),
}
ONLINE = "OnlineUCB, reward only"


def computed(full: bool) -> dict[str, Any]:
    """For each mechanism what it spends at each named epsilon, and what an audit proves at the middle one."""
    runs = 200_000 if full else 2000
    rows = []
    for group, mechanisms in GROUPS.items():
        for label, mechanism in mechanisms.items():
            spent = {epsilon: privacy.ledger(*mechanism.built(epsilon)) for epsilon in NAMED}
            row = {"group": group, "mechanism": label} | {epsilon: one.epsilon for epsilon, one in spent.items()}
            row["bounded"], releases = mechanism.environment is None, spent[AUDITED].events
            row["exact"] = all(x.mechanism in ("gaussian", "laplace") for x in releases)
            skipped = not full and label not in QUICKLY
            rows.append(row | {"audited": math.nan if skipped else _audited(mechanism, runs)})
    return {"mechanisms": pd.DataFrame(rows)}


def _audited(mechanism, runs: int) -> float:
    """The lower bound of an audit at the named epsilon, NaN where rewards have no bound to differ by."""
    if mechanism.environment is not None:
        return math.nan
    algorithm, environment = mechanism.built(AUDITED)
    claimed = float(algorithm.guarantee.spend(algorithm.params)[1])
    delta = claimed if claimed > 0 or math.isfinite(privacy.ledger(algorithm).epsilon) else DELTA
    return audit(algorithm, runs=runs, confidence=CONFIDENCE, delta=delta, environment=environment).epsilon_lower


def sweeps(full: bool) -> dict[str, Sweep]:
    """Arms and linear arms at each epsilon that is spent."""
    seeds, horizon = (50, 100_000) if full else (4, 1000)
    common: dict[str, Any] = {"horizon": horizon, "seeds": seeds, "checkpoints": 1}
    arms = ON_ARMS if full else dict(list(ON_ARMS.items())[:2])
    linear = {label: partial(one, num_batches=batches(horizon)) for label, one in WIDE.items()}
    linear = {ONLINE: partial(a.online_ucb, private_features=False, delta=DELTA)} | (
        linear if full else {"M1": linear["M1"]}
    )
    keys = tuple(f"{label}.epsilon" for label in linear)
    given = {f"{x:g}": (x, *(2 * x for _ in keys[1:])) for x in ([0.3, 1.0, 3.0, 10.0] if full else [0.3, 1.0])}
    plain = {"LinUCB, not private": a.linucb}
    return {
        "arms": Sweep(
            common | {
                "algorithms": arms, "environment": partial(e.bernoulli_arms, means=ARMS),
                "grid": {"epsilon": [0.1, 0.3, 1.0] if full else [0.3, 1.0]},
            }
        ),
        "linear": Sweep(common | {"algorithms": linear | plain, "environment": LINEAR, "grid": {keys: given}}),
    }  # fmt: skip


COLUMNS = {f"{x:g}": x for x in NAMED} | {f"{AUDITED:g}, audit": "audited"}
CUTS = (0.0, 0.1, 0.5, 0.9, 1.01, 1.5, 3.0, 100.0)


def table(results: Results, group: str) -> pd.DataFrame:
    """A row for each cell of the picture of a group: what is spent over what is named."""
    rows = []
    for row in results["mechanisms"].query("group == @group").to_dict("records"):
        for column, key in COLUMNS.items():
            ratio = row[key] / (AUDITED if key == "audited" else key)
            if math.isnan(ratio):  # no audit where rewards have no bound to differ by, and of most at quick size
                text = "" if row["bounded"] else "none"
            else:
                text = "∞" if math.isinf(ratio) else f"{ratio:.2f}"
            rows.append({
                "mechanism": row["mechanism"], "named": column, "ratio": ratio if math.isfinite(ratio) else math.nan,
                "text": text, "unlimited": math.isinf(ratio),
            })  # fmt: skip
    return pd.DataFrame(rows[::-1])  # the first at the top


def draw_group(group: str, results: Results) -> plot.Plot:
    """The map of one group of mechanisms."""
    frame = table(results, group)
    frame["named"] = pd.Categorical(frame["named"], list(COLUMNS))
    frame = frame.sort_values("named", kind="stable").astype({"named": object})
    caption = f"spent ε over named ε, δ = {DELTA:g} where there is one; last column: proven spent by an audit"
    return plot.heatmap(
        frame, "named", "mechanism", "ratio", text="text", hatched="unlimited", hatch="without limit", cuts=CUTS,
        names={"named": "named ε", "mechanism": ""}, caption=caption, width=6.0,
    )  # fmt: skip


def by_budget(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset of linear arms along `epsilon`, what is spent."""
    ds = ds.rename({f"{ONLINE}.epsilon": "epsilon"})
    return ds.assign_coords(epsilon=[float(x) for x in ds["epsilon"].values])


def draw_arms(results: Results) -> plot.Plot:
    """Regret on arms against what is spent."""
    caption = f"arms with rewards of 0 and 1, means {ARMS}; LDP: local, others central"
    return plot.against(results["arms"], "epsilon", names={"epsilon": "spent ε"}, caption=caption, width=6.0)


def draw_linear(results: Results) -> plot.Plot:
    """Regret on linear arms against what is spent."""
    caption = f"{NUM_ARMS} fixed arms, d = {DIM}, rewards of 0 and 1; central: a trusted server, M1 and OnlineUCB local"
    ds = by_budget(results["linear"])
    return plot.against(ds, "epsilon", names={"epsilon": "spent ε"}, caption=caption, width=6.0)


def claims(results: Results) -> list[Claim]:
    """Each mechanism's spending beside its name, and regret at equal budget."""
    rows = results["mechanisms"].to_dict("records")
    entries = [_spending(row) for row in rows]
    for name, ds in {"arms": results["arms"], "linear": by_budget(results["linear"])}.items():
        for epsilon, part in regrets(ds).groupby("epsilon"):
            measured = ", ".join(f"{row.algorithm} {row.mean:,.0f}" for row in part.itertuples())
            entries.append(Claim(f"regret on {name} at ε = {epsilon:g} spent", "", measured))
    first = final_regret(results["arms"])
    pairs = [("HTINF in batches", "PRM elimination"), ("LDP-EXP3", "LDP-UCB")]
    entries += [_compared("arms", first, *pair) for pair in pairs if set(pair) <= set(first.algorithm.values)]
    second = final_regret(by_budget(results["linear"]))
    known = [label for label in ("M1", "M2") if label in second.algorithm.values]
    return entries + [_compared("linear", second, label, ONLINE) for label in known]


def _spending(row: dict[Any, Any]) -> Claim:
    """What is spent beside its name: a verdict on what a paper was read to claim, at every epsilon it claims it for."""
    label, audited = row["mechanism"], row["audited"]
    source = GROUPS[row["group"]][label].source
    ratio = max((row[x] / x for x in NAMED if source.within(x)), default=math.nan)
    parts = [f"{row[x]:.3g} at {x:g}".replace("inf", "∞") for x in NAMED]
    parts += [] if math.isnan(audited) else [f"audited at least {audited:.3g} at {AUDITED:g}"]
    evidence: Evidence | None = None
    if source.read and (ratio <= 1 + ROUNDING or row["exact"]):
        evidence = Exact(ratio, at_most=1 + ROUNDING)
    elif source.read and source.within(AUDITED) and not math.isnan(audited):
        evidence = Interval("proven spent", audited, math.inf, at_most=AUDITED)
    return Claim(f"ε spent by {label}", source.said("at most what is named"), ", ".join(parts), evidence)


def _compared(problem: str, final: xr.DataArray, ours: str, theirs: str) -> Claim:
    return Claim(f"{problem}: regret of {ours} over that of {theirs}", "", ratios(final, ours, theirs))


STUDY = Study(
    "Named epsilon against spent epsilon, and regret at equal spent epsilon",
    "all five papers",
    sweeps,
    {group: partial(draw_group, group) for group in GROUPS} | {"regret-arms": draw_arms, "regret-linear": draw_linear},
    claims,
    computed,
)
