"""Figure 1's orders at every width.

Does any width make the printed algorithm keep them, from none at all to a hundred times the default? The map has three
widths. Here features and reward are perturbed, as Algorithm 1 has it, with the printed noise and with the least that
delivers the claim.
"""

from functools import partial
from typing import Any

from jaxbandits import algorithms as a
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, DELTA, EPSILONS, HORIZON, RIVALS, of_each, order
from jaxbandits.papers.shared import REGRET, against, numbers, points
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.selection import final_regret

OGD = partial(a.online_ucb, learner="ogd", delta=DELTA)
NOISES = {"printed noise": partial(OGD, calibration="paper"), "least noise": partial(OGD, calibration="exact")}
GREEDY = {f"{label}, no width": partial(algorithm, radius_scale=0.0) for label, algorithm in NOISES.items()}
KEYS = tuple(f"{label}.radius_scale" for label in NOISES)
WIDTHS = [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (HORIZON, 200) if full else (100, 4)
    widths = [(x, x) for x in (WIDTHS if full else WIDTHS[1:6:2])]
    algorithms, grid = NOISES | GREEDY | RIVALS, {KEYS: widths, "epsilon": EPSILONS}
    return {"widths": swept(algorithms, CONTEXTUAL, horizon, seeds, grid=grid)}


def by_width(results: Results):
    """The Dataset along `width`."""
    ds = results["widths"]
    return numbers(ds, next(str(dim) for dim in ds.dims if str(dim) in KEYS), "width")


def claims(results: Results) -> Claims:
    """The figure's orders at the width of least regret, which favours them, and the regrets."""
    final = final_regret(by_width(results)).transpose("algorithm", "epsilon", "width", "seed")
    at = {(eps, label): along_width(final.sel(epsilon=eps), label) for eps in EPSILONS for label in NOISES}
    for (epsilon, label), regret in at.items():
        best = min(regret, key=lambda x: regret[x].mean())
        held = order(epsilon, regret[best], of_each(final.sel(epsilon=epsilon).isel(width=0)))
        statement = f"{held.statement}: {label}, at the width of least regret"
        measured = f"width {best:g}: regret {regret[best].mean():,.0f}; {held.measured}"
        yield held._replace(statement=statement, measured=measured)
    for epsilon in EPSILONS:
        for label in NOISES:
            regret = at[epsilon, label]
            measured = points(regret, [x.mean() for x in regret.values()])
            yield Claim(f"regret by width, ε = {epsilon:g}: {label}", "", measured)
        others = final.sel(epsilon=epsilon, algorithm=list(RIVALS)).isel(width=0).mean("seed")
        yield Claim(f"rivals, ε = {epsilon:g}", "", points(RIVALS, others, REGRET))


def along_width(here, label: str) -> dict[float, Any]:
    """The regrets [seed] of one noise by width, from none on."""
    alone = here.sel(algorithm=f"{label}, no width").isel(width=0).values
    return {0.0: alone} | dict(zip(here["width"].values, here.sel(algorithm=label).values, strict=True))


PICTURES = {
    f"epsilon-{epsilon:g}": against(
        by_width, "width", select={"epsilon": epsilon}, names={"width": "scale of the width"}, width=6.0,
        caption=f"OnlineUCB with OGD, features and reward perturbed, ε = {epsilon:g}; contexts redrawn",
    )
    for epsilon in EPSILONS
}  # fmt: skip
STUDY = Study(__doc__, "Figure 1", sweeps, PICTURES, claims)
