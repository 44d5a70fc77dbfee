"""Does any width make the printed algorithm keep Figure 1's orders? From none at all to a hundred times the default.

The map has three widths. Here features and reward are perturbed, as Algorithm 1 has it, with the printed noise and with
the least that delivers the claim.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxbandits import algorithms as a
from jaxbandits.papers.ldp_contextual.instance import CONTEXTUAL, DELTA, EPSILONS, HORIZON, RIVALS, of_each, order
from jaxbandits.papers.shared import REGRET, against, numbers, points
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

OGD = partial(a.online_ucb, learner="ogd", delta=DELTA)
NOISES = {"printed noise": partial(OGD, calibration="paper"), "least noise": partial(OGD, calibration="exact")}
GREEDY = {f"{label}, no width": partial(algorithm, radius_scale=0.0) for label, algorithm in NOISES.items()}
KEYS = tuple(f"{label}.radius_scale" for label in NOISES)
WIDTHS = [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]


def sweeps(full: bool) -> dict[str, Sweep]:
    """Both noises at every width and epsilon, without a width, and the rivals; contexts redrawn."""
    horizon, seeds = (HORIZON, 200) if full else (100, 4)
    widths = [(x, x) for x in (WIDTHS if full else WIDTHS[1:6:2])]
    algorithms, grid = NOISES | GREEDY | RIVALS, {KEYS: widths, "epsilon": EPSILONS}
    return {"widths": swept(algorithms, CONTEXTUAL, horizon, seeds, grid=grid)}


def by_width(results: Results):
    """The Dataset along `width`."""
    ds = results["widths"]
    return numbers(ds, next(str(dim) for dim in ds.dims if str(dim) in KEYS), "width")


def picture(epsilon: float) -> Callable[[Results], plot.Plot]:
    """Final regret against the scale of the width, at one epsilon."""
    caption = f"OnlineUCB with OGD, features and reward perturbed, ε = {epsilon:g}; contexts redrawn"
    names, select = {"width": "scale of the width"}, {"epsilon": epsilon}
    return against(by_width, "width", select=select, names=names, caption=caption, width=6.0)


def claims(results: Results) -> Claims:
    """The figure's orders at the width of least regret, which favours them, and the regrets."""
    final = final_regret(by_width(results)).transpose("algorithm", "epsilon", "width", "seed")
    for epsilon in EPSILONS:
        here = final.sel(epsilon=epsilon)
        for label in NOISES:
            at = along_width(here, label)
            best = min(at, key=lambda x: at[x].mean())
            held = order(epsilon, at[best], of_each(here.isel(width=0)))
            statement = f"{held.statement}: {label}, at the width of least regret"
            measured = f"width {best:g}: regret {at[best].mean():,.0f}; {held.measured}"
            yield held._replace(statement=statement, measured=measured)
    for epsilon in EPSILONS:
        here = final.sel(epsilon=epsilon)
        for label in NOISES:
            at = along_width(here, label)
            measured = points(at, [regret.mean() for regret in at.values()])
            yield Claim(f"regret by width, ε = {epsilon:g}: {label}", "", measured)
        others = here.isel(width=0).sel(algorithm=list(RIVALS)).mean("seed")
        yield Claim(f"rivals, ε = {epsilon:g}", "", points(RIVALS, others, REGRET))


def along_width(here, label: str) -> dict[float, Any]:
    """The regrets [seed] of one noise by width, from none on."""
    alone = here.sel(algorithm=f"{label}, no width").isel(width=0).values
    return {0.0: alone} | dict(zip(here["width"].values, here.sel(algorithm=label).values, strict=True))


STUDY = Study(
    "Figure 1's orders at every width", "Figure 1", sweeps,
    {f"epsilon-{epsilon:g}": picture(epsilon) for epsilon in EPSILONS}, claims,
)  # fmt: skip
