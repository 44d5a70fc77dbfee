"""Figure 1 with Algorithm 1 wholly as printed.

With the perturbation that it adds to features, and the derived bound G. lambda_min of what is played in Figure 1's
experiment is far below T^(-1/4) (the study `favourable`), so that Algorithm 1 perturbs features beyond privacy. The
study `figure-1` leaves that out and clips to a smaller G, which favours the algorithm: that is the most favourable
reading. Here is the printed form, at the paper's 50 trials, and what either of the two departures is worth.
"""

from functools import partial

from jaxbandits.papers.ldp_contextual.favourable import TOLD
from jaxbandits.papers.ldp_contextual.figure_1 import PAPER_TRIALS, PRINTED, of, orders, privacy_of
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, EPSILONS, HORIZON, RIVALS
from jaxbandits.papers.shared import by_algorithm, ratios
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

PERTURBED = partial(PRINTED, min_eigenvalue=TOLD["paper"][1])
FORMS = {
    "as printed, Maler": partial(PERTURBED, gradient_bound="theory"),
    "as printed, OGD": partial(PERTURBED, gradient_bound="theory", learner="ogd"),
}
FAVOURABLE = "most favourable, OGD"
DEPARTURES = {
    "perturbation alone, OGD": partial(PERTURBED, learner="ogd"),
    "derived G alone, OGD": partial(PRINTED, gradient_bound="theory", learner="ogd"),
    FAVOURABLE: partial(PRINTED, learner="ogd"),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (HORIZON, PAPER_TRIALS) if full else (200, 4)
    algorithms, grid = RIVALS | FORMS | DEPARTURES, {"epsilon": EPSILONS}
    return {"curves": swept(algorithms, CONTEXTUAL, horizon, seeds, grid=grid, checkpoints=60)}


def draw(results: Results) -> plot.Plot:
    """The figure's three panels."""
    ds = results["curves"].sel(algorithm=[*RIVALS, *FORMS])
    return plot.regret(ds.isel(t=ds["t"] >= ds["t"][-1] / 50), log="y", caption="as printed; contexts redrawn")


def claims(results: Results) -> Claims:
    final = final_regret(results["curves"])
    for label in FORMS:
        yield from of(label, orders(final, label))
    own = results["curves"].sel(algorithm=[*FORMS, *DEPARTURES])
    yield from by_algorithm(own, "epsilon", "regret: {}".format, "{y:,.0f} at ε = {x:g}")
    for label in ["as printed, OGD", *list(DEPARTURES)[:2]]:
        measured = ratios(final, label, FAVOURABLE, form="{y} at ε = {x:g}")
        yield Claim(f"regret over that of the most favourable reading: {label}", "", measured)
    yield privacy_of("as printed", FORMS["as printed, OGD"])


STUDY = Study(__doc__, "Figure 1, Algorithm 1", sweeps, {"curves": draw}, claims)
