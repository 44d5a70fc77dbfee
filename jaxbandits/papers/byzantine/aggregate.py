"""How far the aggregate is from the honest mean.

Lemmas 3, 11 and 13 bound the distance of the server's aggregate to the mean of the honest agents' statistics, in all
episodes of a run together, with probability at least 1 - delta / 2, and state every constant. Lemma 10, from which they
follow, has no probability in it: it is searched for a violation. The questions were fixed before the run: in what share
of the runs is a bound exceeded, and does any placement of points violate Lemma 10?
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import pandas as pd

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.auditing.confidence_bounds import clopper_pearson
from jaxbandits.numerics import count, fixed_sum, safe_norm
from jaxbandits.numerics.linear_algebra import symmetric_eigen
from jaxbandits.numerics.packed import unpack
from jaxbandits.papers import watched as w
from jaxbandits.papers.byzantine import placements
from jaxbandits.papers.byzantine.calibrations import BOUNDED
from jaxbandits.papers.shared import MESSAGE_SHARE
from jaxbandits.papers.study import Claim, Claims, Exact, Interval, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import tidy

FAILURE = 0.05  # delta: each lemma may fail with half of it
WINDOW = 10


def aggregate_error(params, before, after, note, released):
    """The larger of |E_k|_2 and |e_k|_2 over what the lemma allows, once an episode that is followed by another.

    The honest mean is that of the sums without noise, over all but the attacked agents, which have the lowest numbers;
    the server believes in as many as there are. The oracle's error epsilon is taken as 0, which allows the least.
    """
    c, root = params.inner.constants, jnp.sqrt(before.episode.astype(after.gram.dtype))  # sqrt(k - 1)
    honest = jnp.arange(after.gram.shape[0]) >= params.inner.num_attacked

    def off(points, memory):
        mean = fixed_sum(jnp.where(honest[:, None], points, 0), axis=0) / count(honest).astype(points.dtype)
        return memory.value - mean

    matrix, vector = off(after.gram, after.memory[0]), off(after.vector, after.memory[1])
    size = jnp.max(jnp.abs(symmetric_eigen(unpack(matrix))[0])) / ((c.shift + c.growth * root) / 2)
    length = safe_norm(vector) / (c.numerator * root + c.excess)
    return jnp.where(after.episode > before.episode, jnp.maximum(size, length), jnp.nan)


WATCHED = w.watching(a.byzantine_ucb, (), updated=aggregate_error)
PRINTED = partial(
    WATCHED, ridge_scale=1.0, radius_scale=1.0, failure_prob=FAILURE, window=WINDOW, noise_scale=0.3, delta=1e-3
)
PRIVATE = {"privacy": "tree", "epsilon": 4.0, "calibration": "paper"}
GROUPED = {"aggregate": "median_of_means", "constants": "median_of_means"}
MEDIANS = {"Lemma 3, median": PRINTED, "Lemma 11, private median": partial(PRINTED, **PRIVATE, constants="dp")}
MEANS = {
    "Lemma 13, median of means": partial(PRINTED, **GROUPED),
    "Lemma 13, private median of means": partial(PRINTED, **PRIVATE, **GROUPED),
}
ATTACKS = {
    "constant 1e30": partial(v.byzantine, kind="constant", scale=1e30),
    "constant of norm L": partial(v.byzantine, kind="constant", scale=0.5),  # L I / 2 and -L 1 / 2, in 4 dimensions
    "ALIE": partial(v.byzantine, kind="alie", scale=1.5),
}
QUIET = "no attack"


def sweeps(full: bool) -> dict[str, Sweep]:
    """The median of means is run up to 1/4, where its lemma ends, and not without attackers, when it has no groups."""
    horizon, seeds = (2000, 1000) if full else (100, 4)
    means = few(MEANS, full, list(MEANS)[:1])  # each is compiled apart
    declared = {QUIET: swept(MEDIANS, BOUNDED, horizon, seeds, grid={"corruption_bound": [0.0]})}
    for name, attack in few(ATTACKS, full, ["ALIE"]).items():
        attacked = partial(swept, environment=BOUNDED, horizon=horizon, seeds=seeds, message_adversary=attack)
        declared[name] = attacked(MEDIANS, grid={MESSAGE_SHARE: [0.2, 0.4]})
        declared[f"{name}, groups"] = attacked(means, grid={MESSAGE_SHARE: [0.1, 0.2]})
    return declared


def computed(full: bool) -> dict[str, Any]:
    return {"placements": placements.search(*(400, 5, 400) if full else (10, 1, 5))}


def cells(results: Results) -> pd.DataFrame:
    """In how many `runs` of each lemma, attack and share a bound is exceeded, and the largest `ratio` to a bound."""
    frames = []
    for name, ds in results.items():
        if name == "placements":
            continue
        error = ds["largest_error"].transpose("algorithm", "corruption_bound", "seed").reset_coords(drop=True)
        columns = {"runs": error.sizes["seed"], "failures": (~(error.values <= 1)).sum(-1)}
        columns |= {"ratio": error.values.max(-1).astype(float), "attack": name.removesuffix(", groups")}
        frames.append(tidy(error.isel(seed=0, drop=True), columns))
    frame = pd.concat(frames, ignore_index=True).rename(columns={"algorithm": "rule", "corruption_bound": "share"})
    low, high = clopper_pearson(frame["failures"].to_numpy(), frame["runs"].to_numpy(), 0.025)
    order = frame["rule"].map([*MEDIANS, *MEANS].index).argsort(kind="stable")
    columns = ["rule", "attack", "share", "runs", "failures", "low", "high", "ratio"]
    return frame.assign(low=low, high=high)[columns].iloc[order]


def setting(row: dict[str, Any]) -> str:
    return QUIET if row["attack"] == QUIET else f"{row['attack']}, {row['share']:.0%} attacked"


def draw(results: Results) -> plot.Plot:
    frame = cells(results)
    frame["setting"] = [setting(row) for row in frame.to_dict("records")]
    frame["rule"] = frame["rule"].str.replace(", ", ",\n")
    frame["text"] = [f"{x:.2g}" for x in frame["ratio"]]
    frame = frame.sort_values("share", kind="stable")
    return plot.heatmap(
        frame, "rule", "setting", "ratio", text="text", cuts=(0.0, 0.001, 0.002, 0.003, 0.004, 0.006, 1.0),
        names={"rule": "", "setting": ""}, width=7.0,
        caption="distance of the aggregate to the honest mean over the lemma's bound, the largest of all episodes and "
        "runs; above 1 the bound is exceeded",
    )  # fmt: skip


def claims(results: Results) -> Claims:
    for row in cells(results).to_dict("records"):
        measured = f"exceeded in {row['failures']} of {row['runs']} runs, at most {row['ratio']:.2g} of the bound"
        interval = Interval("share", row["low"], row["high"], at_most=FAILURE / 2)
        statement, paper = f"{row['rule']}: {setting(row)}", f"exceeded in at most {FAILURE / 2:g}"
        yield Claim(statement, paper, measured, interval)
    yield from search_claims(results["placements"])


def search_claims(found: pd.DataFrame) -> Claims:
    """The largest ratios of Lemma 10's search: one above 1 contradicts it; that none is found proves nothing."""
    placed, moved = f"{found['placements'].sum():,}", f"{found['moves'].sum():,}"
    ways = {
        "random": ("at random", f"{placed} placements of 5 and 10 points in 1, 2 and 4 dimensions"),
        "climbed": ("after climbing", f"{moved} moves from the worst of them, kept where the ratio grows"),
        "line": ("the worst case of the proof", "exact, half of the points at z_0 and half at the median"),
    }
    for key, (name, words) in ways.items():
        worst = float(found[key].max())
        evidence = Exact(worst, at_most=1.0) if key == "line" or worst > 1 else None
        yield Claim(f"Lemma 10, {name}", "at most 1", f"{worst:.6g} of the bound: {words}", evidence)


STUDY = Study(__doc__, "Lemmas 3, 10, 11 and 13", sweeps, {"map": draw}, claims, computed)
