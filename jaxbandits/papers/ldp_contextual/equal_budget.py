"""Regret at equal true budget.

Everyone truly spends the same (epsilon, delta) on a user, whatever its formulas claim.
"""

import math
from functools import cache, partial

from jaxbandits import algorithms as a
from jaxbandits.formatting import brackets
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, HORIZON, delivered, of_each
from jaxbandits.papers.shared import REGRET, against, numbers, points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

DELTA = 1e-3
TRUE = [0.5, 1.0, 2.0, 5.0, 10.0]
SPENDING = {
    "OnlineUCB, pair": partial(a.online_ucb, delta=DELTA),
    "OnlineUCB, reward only": partial(a.online_ucb, delta=DELTA, private_features=False),
    "LDP": partial(a.ldp_linucb, preset="reference", delta=DELTA),
    "SDP-Amp": partial(a.shuffle_linucb, preset="reference", delta=DELTA, protocol="amplified"),
    "SDP-Vec": partial(a.shuffle_linucb, preset="reference", delta=DELTA, protocol="vector"),
    "JDP, binary tree": partial(a.jdp_linucb, preset="reference", delta=DELTA, tree="binary"),
}


@cache
def claimed(label: str, epsilon: float) -> float:
    """The epsilon to give an algorithm so that it truly spends `epsilon` at DELTA, or up to a thousandth less."""
    low, high = 1e-4, 1e4
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delivered(SPENDING[label], epsilon=middle)[0] <= epsilon else (low, middle)
    return low


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (HORIZON, 200) if full else (200, 4)
    given = {f"{x:g}": tuple(claimed(label, x) for label in SPENDING) for x in (TRUE if full else TRUE[1:4:2])}
    grid = {tuple(f"{label}.epsilon" for label in SPENDING): given}
    return {"budgets": swept(SPENDING | {"LinUCB": a.linucb}, CONTEXTUAL, horizon, seeds, grid=grid)}


def by_truth(results):
    return numbers(results["budgets"], f"{next(iter(SPENDING))}.epsilon", "epsilon")


CAPTION = f"ε truly spent on a user at δ = {DELTA:g}; contexts redrawn"
PICTURE = against(by_truth, "epsilon", caption=CAPTION, width=6.0)


def claims(results: Results) -> Claims:
    ds = by_truth(results)
    table = regrets(ds).set_index(["epsilon", "algorithm"])["mean"].unstack()[ds["algorithm"].values]
    for epsilon, row in table.iterrows():
        yield Claim(f"regret at ε = {epsilon:g} truly spent", "", points(row.index, row, REGRET))
        given = points(SPENDING, [claimed(label, float(epsilon)) for label in SPENDING], "{x} {y:.3g}")
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
