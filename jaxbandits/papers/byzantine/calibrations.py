"""The price of privacy by calibration and length of an episode."""

from functools import partial

import numpy as np

from jaxbandits import algorithms as a
from jaxbandits.formatting import number
from jaxbandits.papers.byzantine.instance import FEDERATED, NUM_AGENTS, an_agent
from jaxbandits.papers.shared import points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot

BOUNDED = partial(FEDERATED, reward="bounded", theta_norm=0.7, noise_scale=0.3)  # |r| <= 1, Assumption 2
DP = partial(a.byzantine_ucb, privacy="tree", constants="geometric_median", noise_scale=0.3, delta=1e-3)
CALIBRATIONS = {
    "exact": partial(DP, calibration="exact"),
    "zCDP": partial(DP, calibration="zcdp"),
    "paper": partial(DP, calibration="paper"),
    "exact, increments": partial(DP, privacy="increment", calibration="exact"),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (4000, 64) if full else (200, 4)
    epsilons = [0.5, 1.0, 2.0, 4.0, 8.0, float("inf")] if full else [4.0, float("inf")]
    grid = {"epsilon": epsilons, "window": [1, 5, 20] if full else [5, 20]}
    return {"calibrations": swept(CALIBRATIONS, BOUNDED, horizon, seeds, grid=grid)}


def draw(window, results: Results) -> plot.Plot:
    ds = an_agent(results["calibrations"], NUM_AGENTS)
    chosen = window if window in ds["window"].values else int(ds["window"].values[-1])
    caption = f"regret of an agent; no attack, |r| ≤ 1, episodes of L = {chosen}"
    return plot.against(ds, "epsilon", select={"window": chosen}, caption=caption, width=5.5)


def claims(results: Results) -> Claims:
    frame = regrets(an_agent(results["calibrations"], NUM_AGENTS))
    cells = frame.set_index(["window", "epsilon", "algorithm"])["mean"].unstack()[list(CALIBRATIONS)]
    for (window, epsilon), row in cells.iterrows():
        measured = points(row.index, map(number, row), "{x} {y}")
        yield Claim(f"regret of an agent, L = {window}, ε = {epsilon:g}", "", measured)
    private = cells[np.isfinite(cells.index.get_level_values("epsilon"))]
    fewer, ratio = private["exact"] <= private["paper"], private["exact"] / private["paper"]
    measured = f"in {int(fewer.sum())} of {len(private)} cells; on average {float(ratio.mean()):.2f} of it"
    yield Claim("exact calibration has no more regret than the reconstructed noise", "", measured)


STUDY = Study(
    __doc__, "Theorem 6; docs/reproductions/byzantine.md", sweeps,
    {"one": partial(draw, 1), "twenty": partial(draw, 20)}, claims,
)  # fmt: skip
