"""Where each estimator breaks: corruption against the size of what is reported."""

from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits.estimators import spectral_filter
from jaxbandits.formatting import compact
from jaxbandits.papers.robust_linear.instance import ACTIONS, GAUSSIAN, M1, M2, target, unit, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, Curve, draw_curves, in_order, ratio_interval, regrets, series, short
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, Sweep, few, nothing, swept
from jaxbandits.reports import plot

PLAIN = partial(M1, presieve=False)
FIRST = {
    "as printed": partial(PLAIN, variance_bound="observed", radius="paper"),
    "no filter": partial(PLAIN, variance_bound="observed"),
    "clean bound": partial(PLAIN, variance_bound="clean"),
    "tight bound": partial(PLAIN, variance_bound="tight"),
    "tight, presieve": M1,
    "trimmed means": a.trimmed_elimination,
}
SECOND = {
    "bucket medians": a.median_elimination,
    "tight, presieve, refit": partial(M1, refit=True),
    "M2, no filter": partial(M2, presieve=False, variance_bound="observed"),
    "M2, tight": partial(M2, presieve=False),
    "M2, presieve": M2,
    "M2, presieve, refit": partial(M2, refit=True),
}
QUICK = ("as printed", "tight, presieve", "trimmed means", "M2, presieve")
BROKEN = 2.0  # times the regret of the same algorithm without corruption


def sweeps(full: bool) -> dict[str, Sweep]:
    """A sweep a size of the corrupted reports, over shares, of which the first is none."""
    horizon, seeds = (100_000, 100) if full else (1000, 8)
    values = [1.0, 3.0, 10.0, 30.0, 100.0, 1e6] if full else [3.0, 1e6]
    shares = {MESSAGE_SHARE: [0.0, 0.01, 0.02, 0.05, 0.1, 0.2] if full else [0.0, 0.1]}
    algorithms = with_batches(few(FIRST | SECOND, full, QUICK), horizon)
    attacked = partial(swept, algorithms, GAUSSIAN, horizon, seeds, grid=shares)
    return {f"{value:g}": attacked(message_adversary=target(value)) for value in values}


def breakdown_ratios(results: Results) -> pd.DataFrame:
    """Regret in each cell, and its `ratio` to that of the same algorithm without corruption."""
    rows = []
    for value, ds in results.items():
        frame = regrets(ds).rename(columns={"corruption_bound": "share"})
        ratio = frame["mean"] / frame["algorithm"].map(clean(ds)).to_numpy()
        rows.append(frame.assign(size=float(value), ratio=ratio)[frame["share"] > 0])
    table = pd.concat(rows, ignore_index=True)
    table = table.assign(name=[compact(size) for size in table["size"]])
    return table.assign(broke=table["ratio"] > BROKEN, text=short(table["ratio"]))


def clean(ds) -> pd.Series:
    """The mean regret of every algorithm without corruption."""
    frame = regrets(ds)
    return frame[frame["corruption_bound"] == 0].set_index("algorithm")["mean"]


def draw(group, results: Results) -> plot.Plot:
    return plot.heatmap(
        in_order(breakdown_ratios(results), group), "share", "name", "ratio", panel="algorithm", text="text",
        hatched="broke", names={"share": "share of corrupted reports", "name": "their size"},
        hatch=f"more than {BROKEN:g} times", caption="regret, relative to the same algorithm without corruption",
    )  # fmt: skip


def claims(results: Results) -> Claims:
    frame = breakdown_ratios(results)
    alone = clean(next(iter(results.values())))
    for label, part in frame.groupby("algorithm", sort=False):
        worst = part.loc[part["ratio"].idxmax()]
        measured = f"breaks in {int(part['broke'].sum())} of {len(part)} cells; "
        measured += f"worst {worst['ratio']:.1f} at share {worst['share']:g}, size {worst['size']:g}"
        yield Claim(f"{label}: regret {alone[label]:,.0f} without corruption", "", measured)
    removed = max(float(ds["removals"].sel(algorithm="as printed").max()) for ds in results.values())
    measured = f"at most {removed:g} removals in any run"
    evidence = Exact(removed, at_least=1)  # none whatever the data: docs/deviations/robust_linear.md#threshold
    yield Claim("the printed variance bound lets the filter remove something", "a filter", measured, evidence)
    size = min(results, key=float)
    left = results[size]["active_arms"].sel(algorithm="as printed").isel(corruption_bound=slice(1, None)).min()
    measured = f"at least {float(left):g} of {len(ACTIONS)} arms are left in every run with reports of size {size}"
    yield Claim("arms that the printed radius leaves under corruption", "constants hidden", measured)
    worst = frame[frame["algorithm"] == "tight, presieve"].groupby("size")["ratio"].max()
    yield Claim("tight bound and presieve, by size", "", series(worst.index, worst, "size {x:g}: up to {y:.1f}", "; "))


SOURCE = "Algorithms 1 and 2; docs/formulas/robust_linear.md#filter"
STUDY = Study(__doc__, SOURCE, sweeps, {"first": partial(draw, FIRST), "second": partial(draw, SECOND)}, claims)

# ---- the filter alone: the error of one batch's estimate against reports, corruption and dimension

VALUE = 30.0  # of a corrupted report: minus it on the best arm, plus it on every other
NOISE = 1.0
PRINTED, CLEAN, TIGHT, KNOWN = "as printed", "clean bound", "tight bound", "told which are corrupted"
SQUARE = 1 + NOISE**2  # the largest mean square of a clean report


def compute_filter_errors(full: bool) -> dict[str, Any]:
    """Errors of the estimates at every size, [seeds] each, and what was removed."""
    seeds, sizes, dims = (100, [200, 1000, 5000], [5, 20]) if full else (4, [40, 80], [5])
    shares = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2] if full else [0.0, 0.1]
    cells = product(dims, sizes, shares)
    return {"errors": [{"dim": d, "reports": n, "share": x} | filter_errors(d, n, x, seeds) for d, n, x in cells]}


def filter_errors(dim: int, size: int, share: float, seeds: int) -> dict[str, Any]:
    """One cell: `size` reports spread evenly over 4 dim arms, a share of them replaced.

    The error is the largest over the arms of |<a, estimate - theta>|, [seeds] for each estimate.
    """
    rng = np.random.default_rng(dim)
    actions, theta = unit(rng.normal(size=(4 * dim, dim))), unit(rng.normal(size=dim))
    rng = np.random.default_rng([dim, size])  # the same noise for every share
    arms = np.arange(size) % len(actions)
    means = actions @ theta
    clean = means[arms] + NOISE * rng.normal(size=(seeds, size))
    hit = rng.random((seeds, size)) < share
    seen = np.where(hit, np.where(arms == means.argmax(), -VALUE, VALUE), clean)
    moment = actions[arms].T @ actions[arms]
    root = np.linalg.cholesky(moment)
    directions = np.linalg.solve(root, actions.T).T  # M^(-1/2) a, up to a rotation
    leverage = (directions**2).sum(1).max()
    bounds = {PRINTED: leverage * (seen**2).mean(1), CLEAN: np.full(seeds, leverage * SQUARE)}
    bounds[TIGHT] = np.full(seeds, SQUARE / size)
    found: dict[str, Any] = {}
    for label, bound in bounds.items():
        numbers = (jnp.asarray(x, jnp.float32) for x in (rng.random((seeds, size)), seen, bound))
        result = _filter(*numbers, jnp.asarray(arms), jnp.asarray(directions, jnp.float32))
        estimates = size * np.linalg.solve(root.T, np.asarray(result.mean, np.float64).T).T
        found[label] = np.abs((estimates - theta) @ actions.T).max(1)
        found[f"removed, {label}"] = np.asarray(result.num_removed)
        if label == PRINTED:
            found["eigenvalue over the limit"] = np.asarray(result.eigenvalues)[:, 0] / (4 * bound)
    kept = ~hit
    weights = np.einsum("sn,ni,nj->sij", kept, actions[arms], actions[arms])
    totals = np.einsum("sn,ni->si", kept * clean, actions[arms])
    known = np.linalg.solve(weights, totals[..., None])[..., 0]
    return found | {KNOWN: np.abs((known - theta) @ actions.T).max(1)}


@jax.jit
def _filter(uniforms, seen, bound, arms, directions):
    each = lambda uniforms, seen, bound: spectral_filter(uniforms, seen, arms, directions, bound)
    return jax.vmap(each)(uniforms, seen, bound)


ESTIMATES = (PRINTED, CLEAN, TIGHT, KNOWN)
WORDS = {"error": "largest error of an arm's mean", "share": "share of corrupted reports", "reports": "reports n"}


def draw_filter(key: str, log: Any, results: Results) -> plot.Plot:
    """Mean errors against the share, at the most reports, or against the reports, at the middle share."""
    rows = results["errors"]
    shares = sorted({row["share"] for row in rows})
    dim, size, share = rows[0]["dim"], max(row["reports"] for row in rows), shares[len(shares) // 2]
    other, at, words = {
        "share": ("reports", size, f"{size:,} reports of one batch; corrupted reports ∓{VALUE:g}"),
        "reports": ("share", share, f"{share:.0%} of the reports corrupted: ∓{VALUE:g}"),
    }[key]
    here = [row for row in rows if row["dim"] == dim and row[other] == at]
    lines: list[Curve] = [(label, [row[key]], [row[label]]) for row in here for label in ESTIMATES]
    return draw_curves(key, "error", lines, log, names=WORDS, caption=f"d = {dim}, {words}", width=5.5)


def filter_claims(results: Results) -> Claims:
    rows = results["errors"]
    removed = max(int(row[f"removed, {PRINTED}"].max()) for row in rows)
    ratio = max(float(row["eigenvalue over the limit"].max()) for row in rows)
    measured = f"at most {removed} in any of {len(rows) * len(rows[0][PRINTED]):,} batches; largest eigenvalue at "
    measured += f"most {ratio:.2f} of the limit"
    yield Claim("reports that the printed threshold removes", "a filter", measured, Exact(removed, at_least=1))
    clean = [row for row in rows if row["share"] == 0]
    pairs = [ratio_interval(row[TIGHT], row[KNOWN]) for row in clean]
    times = [float(ratio) for ratio, *_ in pairs]
    measured = f"{min(times):.3f} to {max(times):.3f} times the error of least squares"
    yield Claim("the cost of the tight bound without corruption", "", measured)
    corrupted = [row for row in rows if row["share"] > 0]
    orders = [row[TIGHT].mean() / (2 * row["dim"] * np.sqrt(row["share"])) for row in corrupted]
    measured = f"{min(orders):.2f} to {max(orders):.2f} of 2d√α"
    paper = "a term of order 2d√α among others (Proposition 2.1), constants hidden"
    yield Claim("error with the tight bound", paper, measured)
    for row in rows:
        statement = f"error, d = {row['dim']}, n = {row['reports']:,}, α = {row['share']:g}"
        yield Claim(statement, "", ", ".join(f"{label} {row[label].mean():.3g}" for label in ESTIMATES))


FILTER_SOURCE = "Algorithm 2; Proposition 2.1"
PICTURES = {"share": partial(draw_filter, "share", "y"), "reports": partial(draw_filter, "reports", "both")}
FILTER = Study(
    "The printed filter, and its repair", FILTER_SOURCE, nothing, PICTURES, filter_claims, compute_filter_errors
)
