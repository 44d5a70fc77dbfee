"""The price of privacy by calibration and length of an episode."""

from functools import partial

import numpy as np

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import number
from jaxbandits.papers.byzantine.instance import DIM, NUM_AGENTS, NUM_ARMS
from jaxbandits.papers.shared import regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot

BOUNDED = partial(
    e.federated_linear,
    num_agents=NUM_AGENTS,
    num_arms=NUM_ARMS,
    dim=DIM,
    reward="bounded",
    theta_norm=0.7,
    noise_scale=0.3,
)  # |r| <= 1, Assumption 2
DP = partial(a.byzantine_ucb, privacy="tree", constants="geometric_median", noise_scale=0.3, delta=1e-3)
CALIBRATIONS = {
    "exact": partial(DP, calibration="exact"),
    "zCDP": partial(DP, calibration="zcdp"),
    "paper": partial(DP, calibration="paper"),
    "exact, increments": partial(DP, privacy="increment", calibration="exact"),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every epsilon with every length of an episode, no attack."""
    seeds, horizon = (64, 4000) if full else (4, 200)
    epsilons = [0.5, 1.0, 2.0, 4.0, 8.0, float("inf")] if full else [4.0, float("inf")]
    settings = {
        "algorithms": CALIBRATIONS, "environment": BOUNDED, "horizon": horizon, "seeds": seeds, "checkpoints": 1,
        "grid": {"epsilon": epsilons, "window": [1, 5, 20] if full else [5, 20]},
    }  # fmt: skip
    return {"calibrations": Sweep(settings)}


def per_agent(results):
    """The Dataset with regret an agent, all of whom are honest here."""
    ds = results["calibrations"]
    return ds.assign(regret=ds["regret"] / NUM_AGENTS)


def draw(window, results: Results) -> plot.Plot:
    """Final regret against epsilon for one length of an episode."""
    ds = per_agent(results)
    chosen = window if window in ds["window"].values else int(ds["window"].values[-1])
    caption = f"regret of an agent; no attack, |r| ≤ 1, episodes of L = {chosen}"
    return plot.against(ds, "epsilon", select={"window": chosen}, caption=caption, width=5.5)


def claims(results: Results) -> list[Claim]:
    """Regret at every epsilon and length of an episode."""
    entries = []
    cells = regrets(per_agent(results)).set_index(["window", "epsilon", "algorithm"])["mean"].unstack()
    for (window, epsilon), row in cells.iterrows():
        measured = ", ".join(f"{label} {number(row[label])}" for label in CALIBRATIONS)
        entries.append(Claim(f"regret of an agent, L = {window}, ε = {epsilon:g}", "", measured))
    private = cells[np.isfinite(cells.index.get_level_values("epsilon"))]
    fewer = private["exact"] <= private["paper"]
    measured = (
        f"in {int(fewer.sum())} of {len(private)} cells; on average "
        f"{float((private['exact'] / private['paper']).mean()):.2f} of it"
    )
    entries.append(Claim("exact calibration has no more regret than the reconstructed noise", "", measured))
    return entries


STUDY = Study(
    "The price of privacy by calibration and length of an episode",
    "Theorem 6; docs/reproductions/byzantine.md",
    sweeps,
    {"one": partial(draw, 1), "twenty": partial(draw, 20)},
    claims,
)
