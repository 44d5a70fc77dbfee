"""The growth of an honest agent's regret with the horizon, beside the theorems' exponents.

The three algorithms differ in their constants, too: ridge and radius are a tenth of the theorems' for the medians and
the theorems' for the mean, whose episodes have one play.
"""

from functools import partial

import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits.papers.byzantine.instance import FEDERATED, RATE, an_agent, honest, target
from jaxbandits.papers.shared import against, exponent, points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept

SCALE = 5.0  # of the target attack
RATES = partial(a.byzantine_ucb, radius_scale=RATE)  # a radius large enough for the bonus to set the rate
GROUPED = {"aggregate": "median_of_means", "constants": "median_of_means", "corruption_bound": 0.1}
PRINTED = {"constants": "median_of_means", "ridge_scale": 1.0, "radius_scale": 1.0, "window": 1}
SETTINGS = {  # the algorithm, the share of attacked agents, and the stated exponent
    "geometric median, α = 0.2": (partial(RATES, aggregate="geometric_median", corruption_bound=0.2), 0.2, 3 / 4),
    "median of means, α = 0.1": (partial(RATES, **GROUPED), 0.1, 3 / 4),
    "mean, α = 0": (partial(RATES, aggregate="mean", **PRINTED), 0.0, 1 / 2),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    """A sweep an algorithm, since each has a corruption of its own."""
    horizons, seeds = ([512, 2048, 8192, 32_768], 64) if full else ([64, 128, 256], 4)
    attacked = partial(swept, environment=FEDERATED, horizon=horizons, seeds=seeds)
    return {
        label: attacked({label: algorithm}, message_adversary=partial(target(SCALE), corruption=corruption))
        for label, (algorithm, corruption, _) in SETTINGS.items()
    }


CAPTION = (
    f"regret of an honest agent; target attack of scale {SCALE:g}; scales of ridge and radius: {RATE:g} for the "
    "medians, 1 for the mean, whose episodes have one play"
)


def together(results):
    """The algorithms in one Dataset, regret an honest agent."""
    parts = [an_agent(ds[["regret"]], honest(SETTINGS[label][1])) for label, ds in results.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def claims(results: Results) -> Claims:
    """Fitted exponents next to the theorems'."""
    for label, (_, _, stated) in SETTINGS.items():
        fitted, interval = exponent(results[label], "horizon")
        yield Claim(f"exponent of T, {label}", f"at most {stated:g}", f"{fitted:.2f}; {interval}")
        frame = regrets(together({label: results[label]}))
        measured = points(frame["horizon"], frame["mean"], "T = {x:,}: {y:,.1f}")
        yield Claim(f"regret of an honest agent, {label}", "", measured)


STUDY = Study(
    "The growth of robust regret with the horizon", "Theorems 2 and 7; docs/reproductions/byzantine.md", sweeps,
    {"horizon": against(together, "horizon", caption=CAPTION, width=5.5)}, claims,
)  # fmt: skip
