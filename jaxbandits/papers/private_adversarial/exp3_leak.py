"""What plain EXP3 gives away."""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.auditing.confidence_bounds import clopper_pearson
from jaxbandits.papers.shared import picture, series
from jaxbandits.papers.study import Claim, Claims, Exact, Interval, Results, Study, Sweep, swept
from jaxbandits.reports import plot

RATE = 1e-4  # learning rate and mixing of the paper's appendix G.1; T = 100 / RATE
FIXED_RATE = 0.03
CONFIDENCE = 0.95
TABLES = ("arm 1 loses the first play", "no losses")
FIXED, TUNED, PRIVATE = f"EXP3, learning rate {FIXED_RATE}", "EXP3, rate √(log 2 / T)", "EXP3 in batches, ε = 1"


def probability_of_arm_1(plays, rate=RATE, primed=False) -> np.ndarray:
    """Probability of arm 1 at each play [plays], float64: the paper's listing, on d = log w_1 - log w_0.

    The paper's actions 1 and 2 are arms 0 and 1. Even plays (from 0) are forced onto arm 1, odd ones onto arm 0, all
    losses are 1; without `primed` the first is 0.
    """
    out, d = np.empty(plays), 0.0
    for t in range(plays):
        p = (1 - rate) / (1 + math.exp(min(-d, 700.0))) + rate / 2
        out[t] = p
        if t % 2:
            d += rate / (1 - p)
        elif t or primed:
            d -= rate / p
    return out


def compute_curves(full: bool) -> dict[str, Any]:
    """The two curves of the paper's appendix G.1, at full length always: it takes a second or two."""
    plays = round(100 / RATE)
    return {"forced": np.stack([probability_of_arm_1(plays), probability_of_arm_1(plays, primed=True)])}


def sweeps(full: bool) -> dict[str, Sweep]:
    horizons, seeds = ([100, 300, 1000, 3000, 10_000], 10_000) if full else ([100, 1000], 1000)
    private = partial(a.private_batched, base=partial(a.exp3, learning_rate=FIXED_RATE, mixing=0.01), epsilon=1.0)
    declared = {}
    for horizon in horizons:
        none, lost = np.zeros((horizon, 2)), np.zeros((horizon, 2))
        lost[0, 1] = 1.0
        grid = {"environment.losses": dict(zip(TABLES, (lost, none), strict=True))}
        algorithms = {label: partial(a.exp3, learning_rate=x, mixing=0.0) for label, x in rates(horizon).items()}
        algorithms[PRIVATE], table = private, partial(e.loss_table, losses=none)
        declared[f"free-{horizon}"] = swept(algorithms, table, horizon, seeds, grid=grid)
    return declared


def rates(horizon: int) -> dict[str, float]:
    """The learning rates of plain EXP3 at a horizon."""
    return {FIXED: FIXED_RATE, TUNED: math.sqrt(math.log(2) / horizon)}


def epsilon_lower(a_counts, b_counts, confidence=CONFIDENCE) -> float:
    """A lower confidence bound on epsilon from counts of plays [S] on two neighbouring tables.

    The event "at most c" or "at least c" that separates best on the first half of the seeds is tested on the second
    half: log of a lower over an upper Clopper-Pearson limit, both together at `confidence`. 0 where nothing
    separates.
    """
    counts = np.stack([np.asarray(a_counts), np.asarray(b_counts)])
    half = counts.shape[1] // 2

    def bounds(x, thresholds):
        """The lower bound by each event [2 directions, 2 orders, thresholds] from counts [2, S]."""
        n = x.shape[1]
        most = np.stack([np.searchsorted(np.sort(row), thresholds, side="right") for row in x])  # at most c
        least = n - np.stack([np.searchsorted(np.sort(row), thresholds, side="left") for row in x])  # at least c
        hits = np.stack([most, least])
        low, high = clopper_pearson(hits, n, (1 - confidence) / 2)
        with np.errstate(divide="ignore"):
            return np.log(low) - np.log(high[:, ::-1])

    thresholds = np.unique(counts[:, :half])
    chosen = np.unravel_index(np.argmax(trained := bounds(counts[:, :half], thresholds)), trained.shape)
    return max(0.0, float(bounds(counts[:, half:], thresholds)[chosen]))


def exact_epsilon(rate, horizon) -> float:
    """The largest log ratio of the events "arm 1 played at most c times" and "at least c", where later losses are 0.

    Events of probability below 1% on the likelier table are left out: a few thousand seeds hardly see them.
    """
    # after arm 1 lost the first play, and was played there with probability 1/2
    c, rest, p = np.arange(horizon + 1), horizon - 1, 1 / (1 + math.exp(2 * rate))
    half, best = math.log(0.5), 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        for log_of, shift in ((stats.binom.logcdf, 0), (stats.binom.logsf, 1)):  # at most c; more than c - 1
            first = half + np.logaddexp(log_of(c - 1 - shift, rest, p), log_of(c - shift, rest, 0.5))
            second = log_of(c - shift, horizon, 0.5)
            use = np.maximum(first, second) > math.log(0.01)
            best = max(best, float(np.nanmax(np.abs(first - second)[use])))
    return best


def leak_frame(results: Results) -> pd.DataFrame:
    rows: list[tuple[str, int, float, bool]] = []
    for ds in (ds for key, ds in results.items() if key.startswith("free-")):
        horizon = int(ds.t[-1])
        for label in ds["algorithm"].values:
            counts = ds["pulls"].sel(algorithm=label, arm=1)
            bound = epsilon_lower(*(counts.isel({"environment.losses": i}).values for i in (0, 1)))
            rows.append((f"{label}: measured", horizon, bound, True))
        rows += [(f"{label}: exact", horizon, exact_epsilon(x, horizon), False) for label, x in rates(horizon).items()]
    return pd.DataFrame(rows, columns=["algorithm", "horizon", "epsilon", "markers"])


def probability_frame(results: Results) -> pd.DataFrame:
    p = pd.DataFrame(results["forced"].T, columns=["on l", "on l', the neighbour"])[::500]
    frame = p.rename_axis("t").reset_index().melt("t", var_name="data", value_name="probability")
    return frame[["t", "probability", "data"]]


PICTURES = {
    "forced": picture(
        plot.lines, probability_frame, "t", "probability", line="data", width=4.5,
        names={"t": "play t", "probability": "probability of arm 1"},
        caption="EXP3 on two tables that differ in the first play, actions forced to alternate; learning rate = "
        "mixing = 0.0001; arm 1 is the paper's action 2",
    ),
    "empirical": picture(
        plot.lines, leak_frame, "horizon", "epsilon", line="algorithm", log="x", width=5.5,
        dotted={f"{label}: exact": f"{label}: measured" for label in (FIXED, TUNED)},
        names={"horizon": "horizon T", "epsilon": "ε, lower bound"},
        caption="an attacker sees how often arm 1 was played; 95% lower confidence bounds; dotted: exact, over events "
        "of probability 1% at least",
    ),
}  # fmt: skip


def claims(results: Results) -> Claims:
    p = results["forced"]
    gap = p[0] - p[1]
    half, most = (f"{int(np.argmax(gap > share)):,}" for share in (0.5, 0.9))
    ratio = max(np.log(p[0] / p[1]).max(), np.log((1 - p[1]) / (1 - p[0])).max())
    ends = {"end value on l": ("1 - γ/2 = 0.99995", 1 - RATE / 2), "end value on l'": ("γ/2 = 0.00005", RATE / 2)}
    for value, (statement, (paper, stated)) in zip(p[:, -1], ends.items(), strict=True):
        evidence = Exact(float(value), stated - 5e-7, stated + 5e-7)  # to six decimals, as it is printed
        yield Claim(statement, paper, f"{value:.6f}", evidence)
    yield Claim("plays until the gap exceeds 0.5 and 0.9", "", f"{half} and {most}")
    yield Claim("privacy loss of one play, largest log ratio", "grows with t (no figure)", f"{ratio:.2f}")
    frame = leak_frame(results).set_index(["algorithm", "horizon"])["epsilon"]
    for label in (FIXED, TUNED, PRIVATE):
        bounds = frame[f"{label}: measured"]
        measured = series(bounds.index, bounds, "{y:.2f} at T = {x:,}")
        if label != PRIVATE:
            measured += "; exactly " + ", ".join(f"{x:.2f}" for x in frame[f"{label}: exact"])
        paper, evidence = "", None
        if label == PRIVATE:  # lower bounds: above 1 they would contradict it, below they confirm nothing
            paper = "epsilon = 1 at every T"
            evidence = Interval("ε at the T of the largest bound", float(bounds.max()), math.inf, at_most=1.0)
        elif label == FIXED:
            first, last = bounds.index[0], bounds.index[-1]
            paper = "the loss of plain EXP3 grows with t (no figure)"
            least = float(frame[f"{label}: exact", first])
            evidence = Interval(f"ε at T = {last:,}", float(bounds[last]), math.inf, at_least=least)
        yield Claim(f"ε, 95% lower bound, {label}", paper, measured, evidence)


STUDY = Study(__doc__, "Appendix G.1 and its figure", sweeps, PICTURES, claims, compute_curves)
