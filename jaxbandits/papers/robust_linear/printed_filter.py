"""The printed filter and its repair: the error of one batch's estimate against reports, corruption and dimension.

The printed threshold is mu times the mean square of the observed reports. The top eigenvalue of the filter's covariance
is at most its trace, the trace is at most that threshold, and removal begins at four times the threshold.
"""

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.estimators import spectral_filter
from jaxbandits.papers.robust_linear.instance import unit
from jaxbandits.papers.shared import curve, drawn, ratio_interval
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, nothing
from jaxbandits.reports import plot

VALUE = 30.0  # of a corrupted report: minus it on the best arm, plus it on every other
NOISE = 1.0
PRINTED, CLEAN, TIGHT, KNOWN = "as printed", "clean bound", "tight bound", "told which are corrupted"
SQUARE = 1 + NOISE**2  # the largest mean square of a clean report


def computed(full: bool) -> dict[str, Any]:
    """Errors of the estimates at every size, [seeds] each, and what was removed."""
    seeds, sizes, dims = (100, [200, 1000, 5000], [5, 20]) if full else (4, [40, 80], [5])
    shares = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2] if full else [0.0, 0.1]
    cells = product(dims, sizes, shares)
    return {"errors": [{"dim": d, "reports": n, "share": x} | one(d, n, x, seeds) for d, n, x in cells]}


def one(dim: int, size: int, share: float, seeds: int) -> dict[str, Any]:
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
        result = _filtered(rng.random((seeds, size)), seen, arms, directions, bound)
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
def _filter(uniforms, seen, arms, directions, bound):
    each = lambda uniforms, seen, bound: spectral_filter(uniforms, seen, arms, directions, bound)
    return jax.vmap(each)(uniforms, seen, bound)


def _filtered(uniforms, seen, arms, directions, bound):
    numbers = (jnp.asarray(x, jnp.float32) for x in (uniforms, seen))
    return _filter(*numbers, jnp.asarray(arms), jnp.asarray(directions, jnp.float32), jnp.asarray(bound, jnp.float32))


ESTIMATES = (PRINTED, CLEAN, TIGHT, KNOWN)


def table(rows, key, **fixed) -> list[dict[str, Any]]:
    """Rows of mean errors along a key, with the others fixed."""
    here = [row for row in rows if all(row[name] == value for name, value in fixed.items())]
    return [
        point for row in here for label in ESTIMATES for point in curve(label, key, [row[key]], "error", [row[label]])
    ]


def _ends(results: Results) -> tuple[int, int, float]:
    """The dimension, the reports and the share that pictures fix: first, last and last but one."""
    rows = results["errors"]
    shares = sorted({row["share"] for row in rows})
    return rows[0]["dim"], max(row["reports"] for row in rows), shares[len(shares) // 2]


WORDS = {"error": "largest error of an arm's mean", "share": "share of corrupted reports", "reports": "reports n"}


def draw_share(results: Results) -> plot.Plot:
    """Errors against the share of corrupted reports."""
    dim, size, _ = _ends(results)
    caption = f"d = {dim}, {size:,} reports of one batch; corrupted reports ∓{VALUE:g}"
    rows = table(results["errors"], "share", dim=dim, reports=size)
    return drawn(rows, "share", "error", "y", names=WORDS, caption=caption, width=5.5)


def draw_reports(results: Results) -> plot.Plot:
    """Errors against the number of reports."""
    dim, _, share = _ends(results)
    caption = f"d = {dim}, {share:.0%} of the reports corrupted: ∓{VALUE:g}"
    rows = table(results["errors"], "reports", dim=dim, share=share)
    return drawn(rows, "reports", "error", names=WORDS, caption=caption, width=5.5)


def claims(results: Results) -> Claims:
    """What the printed threshold removes, what the repair costs and gains, and Proposition 2.1's order."""
    rows = results["errors"]
    removed = max(int(row[f"removed, {PRINTED}"].max()) for row in rows)
    ratio = max(float(row["eigenvalue over the limit"].max()) for row in rows)
    measured = f"at most {removed} in any of {len(rows) * len(rows[0][PRINTED]):,} batches; largest eigenvalue at "
    measured += f"most {ratio:.2f} of the limit"
    statement = "reports that the printed threshold removes"
    yield Claim(statement, "a filter", measured, Exact(removed, at_least=1))
    clean = [row for row in rows if row["share"] == 0]
    pairs = [ratio_interval(row[TIGHT], row[KNOWN]) for row in clean]
    ends = min(float(x[0]) for x in pairs), max(float(x[0]) for x in pairs)
    measured = f"{ends[0]:.3f} to {ends[1]:.3f} times the error of least squares"
    yield Claim("the cost of the tight bound without corruption", "", measured)
    corrupted = [row for row in rows if row["share"] > 0]
    orders = [row[TIGHT].mean() / (2 * row["dim"] * np.sqrt(row["share"])) for row in corrupted]
    measured = f"{min(orders):.2f} to {max(orders):.2f} of 2d√α"
    paper = "a term of order 2d√α among others (Proposition 2.1), constants hidden"
    yield Claim("error with the tight bound", paper, measured)
    for row in rows:
        statement = f"error, d = {row['dim']}, n = {row['reports']:,}, α = {row['share']:g}"
        yield Claim(statement, "", ", ".join(f"{label} {row[label].mean():.3g}" for label in ESTIMATES))


STUDY = Study(
    "The printed filter, and its repair", "Algorithm 2; Proposition 2.1", nothing,
    {"share": draw_share, "reports": draw_reports}, claims, computed,
)  # fmt: skip
