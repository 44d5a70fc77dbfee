"""How far the aggregate is from the honest mean."""

from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.auditing.confidence_bounds import clopper_pearson
from jaxbandits.estimators import geometric_median
from jaxbandits.numerics import count, fixed_sum, safe_norm
from jaxbandits.numerics.linear_algebra import symmetric_eigen
from jaxbandits.numerics.packed import unpack
from jaxbandits.papers import watched as w
from jaxbandits.papers.byzantine.regret import BOUNDED
from jaxbandits.papers.shared import MESSAGE_SHARE
from jaxbandits.papers.study import Claim, Claims, Exact, Interval, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import tidy
from jaxbandits.typing import Matrix, Vector

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


def compute_placements(full: bool) -> dict[str, Any]:
    return {"placements": search(*(400, 5, 400) if full else (10, 1, 5))}


def lemma_failures(results: Results) -> pd.DataFrame:
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
    frame = lemma_failures(results)
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
    for row in lemma_failures(results).to_dict("records"):
        measured = f"exceeded in {row['failures']} of {row['runs']} runs, at most {row['ratio']:.2g} of the bound"
        interval = Interval("share", row["low"], row["high"], at_most=FAILURE / 2)
        statement, paper = f"{row['rule']}: {setting(row)}", f"exceeded in at most {FAILURE / 2:g}"
        yield Claim(statement, paper, measured, interval)
    yield from search_claims(results["placements"])


# ---- Lemma 10 searched for a violation: how far an attacked minority moves a geometric median, over what the lemma
# allows. A placement is N points, of which the first m are attacked, and a point z_0. The lemma allows the median a
# distance of C_alpha (the honest points' mean distance to z_0 + epsilon) from z_0, where epsilon is what the median
# lacks.

AGENTS, DIMS = (5, 10), (1, 2, 4)


def lemma_ratio(points: Matrix, attacked: int, origin: Vector) -> float:
    """The distance of the package's median to `origin` over what the lemma allows; epsilon is the certified gap."""
    found, points = geometric_median(points), np.asarray(points, np.float64)
    distance = np.linalg.norm(np.asarray(found.value, np.float64) - origin)
    spread = np.linalg.norm(points[attacked:] - origin, axis=1).mean() + float(found.gap)
    return float(distance / (constant(attacked, len(points)) * spread))


def constant(attacked: int, agents: int) -> Fraction:
    """C_alpha for alpha = attacked / agents."""
    alpha = Fraction(attacked, agents)
    return (2 - 2 * alpha) / (1 - 2 * alpha)


def on_a_line(attacked: int, agents: int) -> Fraction:
    """The largest ratio, exactly, of points at 0 and 1 with all attacked ones at 1, the median at 1 and z_0 at 0.

    With a honest points at 1 the median at 1 has epsilon = (N - 2 m - 2 a) / N, or 0 where that is negative.
    """
    honest = agents - attacked
    gap = lambda there: max(Fraction(agents - 2 * attacked - 2 * there, agents), Fraction(0))
    least = min(Fraction(there, honest) + gap(there) for there in range(honest + 1))
    return 1 / (constant(attacked, agents) * least)


def random_placement(rng: np.random.Generator, attacked: int, agents: int, dim: int) -> tuple[Matrix, Vector]:
    """Honest points from a normal law; attacked ones together or apart, near or far; z_0: their mean or a point."""
    points = rng.normal(size=(agents, dim))
    away = rng.normal(size=dim) * 10 ** rng.uniform(-1, 3)
    points[:attacked] = points[:attacked] * rng.integers(2) + away
    return points, points[attacked:].mean(0) if rng.integers(2) else points[-1].copy()


def climb(rng: np.random.Generator, points: Matrix, attacked: int, origin: Vector, steps: int) -> tuple[float, Matrix]:
    """The largest ratio that random moves of all points reach, each kept if the ratio grows, and where."""
    best = lemma_ratio(points, attacked, origin)
    for _ in range(steps):
        moves = rng.normal(size=np.shape(points)) * (rng.random((len(points), 1)) < 0.3) * 10 ** rng.uniform(-3, 0)
        ratio = lemma_ratio(points + moves, attacked, origin)
        if ratio > best:
            best, points = ratio, points + moves
    return best, points


def search(placements: int, starts: int, steps: int, seed: int = 0) -> pd.DataFrame:
    """A row for every number of agents, attacked agents and dimension.

    Columns: `random`, the largest ratio of random placements, whose number is `placements`; `climbed`, the largest
    after `steps` moves from each of the `starts` worst of them, in all `moves`; `line`, that of `on_a_line`.
    """
    rng, rows = np.random.default_rng(seed), []
    for agents, dim in product(AGENTS, DIMS):
        for attacked in range(1, (agents + 1) // 2):
            drawn: list[Any] = [random_placement(rng, attacked, agents, dim) for _ in range(placements)]
            ratios = np.array([lemma_ratio(points, attacked, origin) for points, origin in drawn])
            worst = [drawn[i] for i in np.argsort(-ratios)[:starts]]
            after = [climb(rng, points, attacked, origin, steps)[0] for points, origin in worst]
            rows.append({
                "agents": agents, "attacked": attacked, "dim": dim, "random": ratios.max(), "climbed": max(after),
                "line": float(on_a_line(attacked, agents)), "placements": placements, "moves": starts * steps,
            })  # fmt: skip
    return pd.DataFrame(rows)


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


STUDY = Study(__doc__, "Lemmas 3, 10, 11 and 13", sweeps, {"map": draw}, claims, compute_placements)
