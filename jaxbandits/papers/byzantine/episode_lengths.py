"""Regret against the length of an episode: how rarely may the agents communicate?"""

from functools import partial

import xarray as xr

from jaxbandits.papers.byzantine.instance import FEDERATED, RATE, RULES, honest, target
from jaxbandits.papers.shared import regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot

SCALE, SHARE = 5.0, 0.2


def sweeps(full: bool) -> dict[str, Sweep]:
    """Geometric median and, without an attack, the mean, over episode lengths."""
    seeds, horizon = (64, 4000) if full else (4, 200)
    windows = [2, 5, 10, 20, 50, 100, 200, 500] if full else [5, 50]
    settings = {
        "environment": FEDERATED,
        "horizon": horizon,
        "seeds": seeds,
        "grid": {"window": windows},
        "checkpoints": 1,
    }
    median = {
        "geometric median, 20% attacked": partial(RULES["geometric median"], corruption_bound=SHARE, radius_scale=RATE)
    }
    return {
        "attacked": Sweep(
            settings | {"algorithms": median, "message_adversary": partial(target(SCALE), corruption=SHARE)}
        ),
        "honest": Sweep(settings | {"algorithms": {"mean, no attack": partial(RULES["mean"], radius_scale=RATE)}}),
    }


def together(results):
    """Both algorithms in one Dataset, regret an honest agent."""
    agents = {"attacked": honest(SHARE), "honest": honest(0.0)}
    parts = [ds[["regret", "bytes_sent"]].assign(regret=ds["regret"] / agents[name]) for name, ds in results.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def draw(results: Results) -> plot.Plot:
    """Final regret against the plays of an episode."""
    return plot.against(
        together(results), "window", names={"window": "plays L of an episode"}, width=5.5,
        caption=f"regret of an honest agent; target attack of scale {SCALE:g}",
    )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """Regret and bytes of every episode length."""
    ds = together(results)
    horizon, entries = int(ds.t[-1]), []
    cells = regrets(ds).set_index(["window", "algorithm"])["mean"].unstack()
    sent = ds["bytes_sent"].isel(algorithm=0).mean("seed")
    for window, row in cells.iterrows():
        measured = ", ".join(f"{label} {x:,.0f}" for label, x in row.items())
        measured += f"; {float(sent.sel(window=window)):,.0f} bytes sent an agent"
        entries.append(
            Claim(f"regret of an honest agent, L = {window}, K = {-(-horizon // int(window))} episodes", "", measured)
        )
    first = cells.iloc[:, 0]
    flat = first[[horizon / window >= horizon**0.5 for window in first.index]]
    spread = float(flat.max() / flat.min())
    paper = "the order does not change while K is at least √T (Theorem 2), constants hidden"
    return [*entries, Claim("regret while K is at least √T", paper, f"within a factor of {spread:.2f}")]


STUDY = Study(
    "How rarely the agents may communicate",
    "Theorem 2; docs/reproductions/byzantine.md",
    sweeps,
    {"window": draw},
    claims,
)
