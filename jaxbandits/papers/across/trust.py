"""Whom to trust: server, secure aggregation, nobody.

Elimination of arms in the three models of trust, at the same spent epsilon.
"""

import math
from functools import partial
from typing import Any

from scipy.optimize import brentq

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.across.atlas import INSTANCES
from jaxbandits.papers.shared import against, by_value, numbers, ratios
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.selection import final_regret
from jaxbandits.theory import skellam_epsilon

MEANS = INSTANCES["easy"]
SERVER, LAPLACE, SKELLAM = "server, DP-SE", "aggregation, Laplace", "aggregation, Skellam"
BITS, LDP_UCB, NOBODY = "nobody, elimination on bits", "nobody, LDP-UCB", "without privacy"
PRECISION, DELTA = 10.0, 1e-5  # of Skellam noise, which alone has a delta
TRUSTED = {
    NOBODY: partial(a.successive_elimination, noise_scale=0.5),
    SERVER: a.dp_se,
    LAPLACE: a.dist_elimination,
    SKELLAM: partial(a.dist_elimination, noise="skellam", precision_scale=PRECISION, delta=DELTA),
    BITS: partial(a.local_robust_elimination, moment_order=math.inf),
    LDP_UCB: partial(a.ldp_ucb, mechanism="randomized_response"),
}
QUICK = (NOBODY, LAPLACE, BITS)


def nominal(spent: float) -> float:
    """The epsilon that Skellam noise is to be given to spend this one at DELTA."""
    return float(brentq(lambda x: skellam_epsilon(x, PRECISION, DELTA) - spent, spent / 50, spent))


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (200_000, 200) if full else (2000, 4)
    values: dict[str, Any] = {f"{x:g}": x for x in ([0.1, 0.2, 0.5, 1.0, 2.0] if full else [0.5, 2.0])}
    grid: dict[Any, Any] = {"epsilon": values}
    if full:
        grid = {("epsilon", f"{SKELLAM}.epsilon"): {label: (x, nominal(x)) for label, x in values.items()}}
    arms = partial(e.bernoulli_arms, means=MEANS)
    return {"models": swept(few(TRUSTED, full, QUICK), arms, horizon, seeds, grid=grid)}


def by_budget(results: Results):
    """The Dataset along `epsilon`, what is spent."""
    return numbers(results["models"], "epsilon")


PICTURE = against(
    by_budget, "epsilon", names={"epsilon": "spent ε"}, width=6.0,
    caption=f"Bernoulli arms {MEANS}; at the same spent ε, Skellam noise at δ = {DELTA:g}",
)  # fmt: skip


def claims(results: Results) -> Claims:
    ds = by_budget(results)
    final = final_regret(ds)
    yield from by_value(ds, "epsilon", "regret at ε = {:g} spent".format)
    there = [label for label in (SERVER, BITS) if label in final["algorithm"].values]
    yield from [Claim(f"{label} over {LAPLACE}", "", ratios(final, label, LAPLACE)) for label in there]


STUDY = Study(
    __doc__, "docs/formulas/private_frontier.md#secure-aggregation", sweeps, {"models": PICTURE}, claims
)  # fmt: skip
