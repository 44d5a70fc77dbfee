"""Regret at equal true budget."""

import math
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from jaxbandits import algorithms as a
from jaxbandits import theory
from jaxbandits.formatting import brackets, format_number
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, HORIZON, of_each, private_rivals, true_privacy
from jaxbandits.papers.shared import REGRET, against, regrets, series, with_numeric_key
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, Sweep, nothing, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

DELTA = 1e-3
TRUE = [0.5, 1.0, 2.0, 5.0, 10.0]
_RIVALS = private_rivals(delta=DELTA)
SPENDING = {
    "OnlineUCB, pair": partial(a.online_ucb, delta=DELTA),
    "OnlineUCB, reward only": partial(a.online_ucb, delta=DELTA, private_features=False),
    **{label: _RIVALS[label] for label in ("LDP", "SDP-Amp", "SDP-Vec")},
    "JDP, binary tree": partial(_RIVALS["JDP"], tree="binary"),
}


@cache
def epsilon_to_claim(label: str, epsilon: float) -> float:
    """The epsilon to give an algorithm so that it truly spends `epsilon` at DELTA, or up to a thousandth less."""
    low, high = 1e-4, 1e4
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if true_privacy(SPENDING[label], epsilon=middle)[0] <= epsilon else (low, middle)
    return low


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (HORIZON, 200) if full else (200, 4)
    given = {f"{x:g}": tuple(epsilon_to_claim(label, x) for label in SPENDING) for x in (TRUE if full else TRUE[1:4:2])}
    grid = {tuple(f"{label}.epsilon" for label in SPENDING): given}
    return {"budgets": swept(SPENDING | {"LinUCB": a.linucb}, CONTEXTUAL, horizon, seeds, grid=grid)}


def by_truth(results):
    return with_numeric_key(results["budgets"], f"{next(iter(SPENDING))}.epsilon", "epsilon")


CAPTION = f"ε truly spent on a user at δ = {DELTA:g}; contexts redrawn"
PICTURE = against(by_truth, "epsilon", caption=CAPTION, width=6.0)


def claims(results: Results) -> Claims:
    ds = by_truth(results)
    table = regrets(ds).set_index(["epsilon", "algorithm"])["mean"].unstack()[ds["algorithm"].values]
    for epsilon, row in table.iterrows():
        yield Claim(f"regret at ε = {epsilon:g} truly spent", "", series(row.index, row, REGRET))
        given = series(SPENDING, [epsilon_to_claim(label, float(epsilon)) for label in SPENDING], "{x} {y:.3g}")
        yield Claim(f"ε to be given for it, ε = {epsilon:g}", "", given)
    most, last = table.index[-1], table.iloc[-1]
    rival = min(("LDP", "SDP-Amp"), key=lambda name: last[name])
    measured = f"{last['OnlineUCB, pair'] / last[rival]:.2f} times the better of LDP and SDP-Amp at ε = {most:g}"
    here = of_each(final_regret(ds).sel(epsilon=most))
    _, low, high = mean_interval(here["OnlineUCB, pair"] - here[rival])
    measured += f"; OnlineUCB minus {rival} {brackets(low, high)}"
    paper = "below (at the named ε, Figure 1)"  # which a comparison at the true one cannot contradict
    yield Claim("OnlineUCB with the pair private against the local comparators", paper, measured)


STUDY = Study(__doc__, "Figure 1's algorithms, at what they truly spend", sweeps, {"budget": PICTURE}, claims)

# ---- up to which epsilon the printed noise spends what it claims: what the pair of features and reward truly has is
# known exactly, so that no run is needed

RANGES = {"y public": 0.0, "y in [0, 1]": 1.0, "y in [-1, 1], as in the paper": 2.0}  # length of the rewards' range
PAPER = list(RANGES)[-1]
DELTAS = [0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8]
CLASSICAL = 1.0  # the classical formula for Gaussian noise is proved up to this epsilon
EVERY_EPSILON = 50.0  # up to where the reach is looked for: the theorem asks for all of them


def reach_computed(full: bool) -> dict[str, Any]:
    deltas = [float(f"{x:.12g}") for x in np.geomspace(DELTAS[-1], DELTAS[0], 141 if full else 29)]  # all DELTAS too
    at = product(RANGES.items(), deltas)
    rows = [(delta, theory.printed_noise_reach(delta, length), words) for (words, length), delta in at]
    return {"reach": pd.DataFrame(rows, columns=["delta", "epsilon", "rewards"])}


def draw_reach(results: Results) -> plot.Plot:
    picture = plot.lines(
        results["reach"], "delta", "epsilon", line="rewards", log="x", width=6.0,
        names={"delta": "claimed δ", "epsilon": "largest ε at which the claim is true"},
        caption="Theorem 3.2: (ε, δ) is true below a curve and false above it; shaded: the classical formula is proved",
    )  # fmt: skip
    picture.figure.axes[0].axhspan(0, CLASSICAL, color="0.85", zorder=0, linewidth=0)
    return picture


def smallest_delta(epsilon: float, length: float) -> float:
    """The smallest delta in [1e-8, 0.1] from which on the reach is at least this epsilon."""
    beyond = lambda log_delta: theory.printed_noise_reach(math.exp(log_delta), length) - epsilon
    low, high = math.log(DELTAS[-1]), math.log(DELTAS[0])
    return DELTAS[-1] if beyond(low) >= 0 else math.exp(brentq(beyond, low, high))


def reach_claims(results: Results) -> Claims:
    for words, length in RANGES.items():
        reach = [theory.printed_noise_reach(delta, length) for delta in DELTAS]
        paper, evidence = "", None
        if words == PAPER:
            paper, evidence = "(ε, δ) for every ε (Theorem 3.2)", Exact(max(reach), at_least=EVERY_EPSILON)
        measured = series(DELTAS, map(format_number, reach), "{y} at {x:g}")
        yield Claim(f"the claim is true up to ε at δ: {words}", paper, measured, evidence)
    for words, length in RANGES.items():
        delta = smallest_delta(CLASSICAL, length)
        measured = f"{delta:.3g}" + (", the smallest looked at" if delta == DELTAS[-1] else "")
        statement = f"smallest δ in [{DELTAS[-1]:g}, {DELTAS[0]:g}] with the claim true for all ε ≤ {CLASSICAL:g}"
        yield Claim(f"{statement}: {words}", "", measured)


TITLE = "The largest epsilon at which the printed noise keeps the claim of Theorem 3.2"
SOURCE = "Theorem 3.2; docs/formulas/ldp_contextual.md#calibration"
REACH = Study(TITLE, SOURCE, nothing, {"reach": draw_reach}, reach_claims, reach_computed)
