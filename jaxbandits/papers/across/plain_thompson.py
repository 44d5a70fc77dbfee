"""How private is plain Thompson sampling?"""

import math
from functools import partial
from typing import Any

import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits import privacy, provenance
from jaxbandits.auditing.audit import audit
from jaxbandits.papers.shared import picture, series
from jaxbandits.papers.study import Claim, Claims, Results, Study, nothing
from jaxbandits.reports import plot

NUM_ARMS, DELTA = 5, 1e-2
FORMS = {
    "plain": partial(a.gdp_thompson, delta=DELTA),
    "50 pulls first, c = 100": partial(a.gdp_thompson, pre_pulls=50, variance_scale=100.0, delta=DELTA),
}
CLAIMED, PROVEN = "claimed", "proven by an audit"


def compute_epsilons(full: bool) -> dict[str, Any]:
    rows, audited = [], []
    for label, form in FORMS.items():
        for horizon in (300, 1000, 10_000, 100_000, 1_000_000):
            claim = privacy.ledger(form(num_arms=NUM_ARMS, horizon=horizon))
            rows.append({"form": label, "horizon": horizon, "g": claim.g, "epsilon": claim.epsilon})
    for horizon in (2, 5, 20, 100) if full else (2, 5):
        algorithm = FORMS["plain"](num_arms=NUM_ARMS, horizon=horizon)
        found = audit(algorithm, runs=400_000 if full else 4000, delta=DELTA)
        audited.append({"horizon": horizon, CLAIMED: found.claimed[0], PROVEN: found.epsilon_lower})
    return {"claims": pd.DataFrame(rows), "audits": pd.DataFrame(audited)}


def claims(results: Results) -> Claims:
    for label, part in results["claims"].groupby("form", sort=False):
        both = [f"g = {row.g:.3g}, ε = {row.epsilon:.4g}" for row in part.itertuples()]
        yield Claim(f"{label}: Gaussian privacy", "", series(part["horizon"], both, "{y} at T = {x:,}"))
    plain = results["claims"].query("form == 'plain' and horizon == 10000").iloc[0]
    said = provenance.records()["gdp_thompson"].quote_claim("of the order 1")
    yield Claim("plain: g over √T at T = 10,000", said, f"{plain['g'] / math.sqrt(10_000):.3f}")
    for row in results["audits"].to_dict("records"):
        yield Claim(f"plain: ε at T = {row['horizon']:g}", "", f"claimed {row[CLAIMED]:.3g}, proven {row[PROVEN]:.3g}")


PICTURES = {
    "g": picture(
        plot.lines, "claims", "horizon", "g", line="form", log="both", width=6.0,
        names={"horizon": "plays T", "g": "g of Gaussian privacy"},
        caption=f"{NUM_ARMS} arms; by composition over all plays",
    ),
    "audits": picture(
        plot.lines, lambda results: results["audits"].melt("horizon", var_name="bound", value_name="epsilon"),
        "horizon", "epsilon", line="bound", log="both", width=6.0,
        names={"horizon": "plays T", "epsilon": f"ε at δ = {DELTA:g}"},
    ),
}  # fmt: skip
STUDY = Study(__doc__, "docs/formulas/private_frontier.md#gdp-thompson", nothing, PICTURES, claims, compute_epsilons)
