"""Regret against the length of an episode: how rarely may the agents communicate?"""

from functools import partial

import xarray as xr

from jaxbandits.papers.byzantine.instance import FEDERATED, RATE, RULES, an_agent, honest, target
from jaxbandits.papers.shared import REGRET, against, points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept

SCALE, SHARE = 5.0, 0.2


def sweeps(full: bool) -> dict[str, Sweep]:
    """Geometric median and, without an attack, the mean, over episode lengths."""
    horizon, seeds = (4000, 64) if full else (200, 4)
    windows = {"window": [2, 5, 10, 20, 50, 100, 200, 500] if full else [5, 50]}
    along = partial(swept, environment=FEDERATED, horizon=horizon, seeds=seeds, grid=windows)
    median = partial(RULES["geometric median"], corruption_bound=SHARE, radius_scale=RATE)
    attack = partial(target(SCALE), corruption=SHARE)
    return {
        "attacked": along({"geometric median, 20% attacked": median}, message_adversary=attack),
        "honest": along({"mean, no attack": partial(RULES["mean"], radius_scale=RATE)}),
    }


def together(results):
    """Both algorithms in one Dataset, regret an honest agent."""
    agents = {"attacked": honest(SHARE), "honest": honest(0.0)}
    parts = [an_agent(ds[["regret", "bytes_sent"]], agents[name]) for name, ds in results.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


PICTURE = against(
    together, "window", names={"window": "plays L of an episode"}, width=5.5,
    caption=f"regret of an honest agent; target attack of scale {SCALE:g}",
)  # fmt: skip


def claims(results: Results) -> Claims:
    """Regret and bytes of every episode length."""
    ds = together(results)
    horizon = int(ds.t[-1])
    cells = regrets(ds).set_index(["window", "algorithm"])["mean"].unstack()
    sent = ds["bytes_sent"].isel(algorithm=0).mean("seed")
    for window, row in cells.iterrows():
        measured = f"{points(row.index, row, REGRET)}; {float(sent.sel(window=window)):,.0f} bytes sent an agent"
        statement = f"regret of an honest agent, L = {window}, K = {-(-horizon // int(window))} episodes"
        yield Claim(statement, "", measured)
    first = cells.iloc[:, 0]
    flat = first[[horizon / window >= horizon**0.5 for window in first.index]]
    measured = f"within a factor of {float(flat.max() / flat.min()):.2f}"
    paper = "the order does not change while K is at least √T (Theorem 2), constants hidden"
    yield Claim("regret while K is at least √T", paper, measured)


STUDY = Study(
    "How rarely the agents may communicate", "Theorem 2; docs/reproductions/byzantine.md", sweeps, {"window": PICTURE},
    claims,
)  # fmt: skip
