"""What better counting buys."""

from collections.abc import Iterator
from functools import partial

import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import format_number
from jaxbandits.papers.byzantine.regret import BOUNDED, DP
from jaxbandits.papers.shared import against, ratio_interval, series, times
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.selection import final_regret, grid_dims

TREE, BEST = "binary tree", "BLT, root mean square"
DELTA = 1e-3
COUNTED = partial(DP, privacy="counter", delta=DELTA)
AGENTS = {
    TREE: partial(DP, delta=DELTA),
    "Honaker": partial(COUNTED, counter="honaker"),
    "BLT, largest": partial(COUNTED, counter="blt", counter_error="max"),
    BEST: partial(COUNTED, counter="blt", counter_error="mean"),
}
# these keep many past draws, and are run where there are at most 1,024 episodes
KEPT = {"banded": partial(COUNTED, counter="banded"), "square root": partial(COUNTED, counter="square_root")}
JOINT = partial(a.jdp_linucb, preset="reference", delta=DELTA)
USERS = {
    TREE: partial(JOINT, tree="binary"),
    "Honaker": partial(JOINT, tree="honaker"),
    "banded": partial(JOINT, tree="banded"),
    "BLT, largest": partial(JOINT, tree="blt"),
}
LINEAR = partial(e.contextual_linear, num_arms=20, dim=5)
HORIZON = 5000  # of the picture of users by epsilon


def sweeps(full: bool) -> dict[str, Sweep]:
    seeds, epsilon = (200, [0.5, 1.0, 2.0, 4.0]) if full else (4, [1.0, 4.0])
    agents = few(AGENTS, full, [TREE, BEST])
    together = partial(swept, environment=BOUNDED, horizon=4000 if full else 64, seeds=seeds)
    windows = [4, 20, 80] if full else [4]
    horizons = [1000, HORIZON, 20_000] if full else [200, 250]
    users = few(USERS, full, [TREE, "BLT, largest"])
    return {
        "every-play": together(agents, grid={"epsilon": epsilon, "window": [1]}),
        "episodes": together(agents | few(KEPT, full, []), grid={"epsilon": epsilon, "window": windows}),
        "users": swept(users, LINEAR, horizons, seeds, grid={"epsilon": epsilon}),
    }


JOINTLY, QUIET = "jointly private LinUCB, 20 arms, d = 5", "Byzantine-UCB, ten agents, no attack"
picture = partial(against, width=6.0)
every_play = lambda results: results["every-play"].squeeze("window", drop=True)
at_horizon = lambda ds: {"horizon": min(HORIZON, int(ds["horizon"].values[-1]))}
EPISODES = {"select": {"epsilon": 1.0}, "names": {"window": "plays L of an episode"}}
PICTURES = {
    "agents": picture(every_play, "epsilon", caption=f"{QUIET}; a message after every play"),
    "episodes": picture("episodes", "window", caption=f"{QUIET}; ε = 1", **EPISODES),
    "users": picture("users", "epsilon", select=at_horizon, caption=JOINTLY),
    "horizons": picture("users", "horizon", select={"epsilon": 1.0}, caption=f"{JOINTLY}; ε = 1"),
}


def regret_by_cell(ds: xr.Dataset) -> Iterator[tuple[str, xr.DataArray]]:
    """The final regrets [algorithm, seed] of every cell of a sweep, by what the cell is."""
    letters = {"window": "L", "horizon": "T", "epsilon": "ε"}
    final = final_regret(ds).stack(cell=grid_dims(ds))
    for cell in final["cell"].values:
        values = dict(zip(grid_dims(ds), cell, strict=True))
        yield ", ".join(f"{letters[key]} = {x:,g}" for key, x in values.items()), final.sel(cell=cell)


def claims(results: Results) -> Claims:
    for name, ds in results.items():
        who, best = ("users", "BLT, largest") if name == "users" else ("agents", BEST)
        beyond = []
        for where, regret in regret_by_cell(ds):
            mean = regret.mean("seed")
            pair = regret.sel(algorithm=best).values, regret.sel(algorithm=TREE).values
            measured = series(mean["algorithm"], map(format_number, mean.values), "{x} {y}")
            yield Claim(f"regret of {who}, {where}", "", f"{measured}; {best} over {TREE}: {times(*pair)}")
            beyond.append(ratio_interval(*pair)[2] < 1)
        what = {"every-play": ", a message after every play", "episodes": ", in episodes"}.get(name, "")
        measured = f"beyond chance in {sum(beyond)} of {len(beyond)} cells"
        yield Claim(f"{who}: {best} has less regret than the tree{what}", "", measured)


STUDY = Study(__doc__, "docs/formulas/counting.md", sweeps, PICTURES, claims)
