"""Regret of an honest agent under a target attack: along the share of attacked agents, the episode and the horizon."""

from functools import partial

import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits.formatting import percent
from jaxbandits.papers.byzantine.instance import FEDERATED, NUM_AGENTS, RATE, RULES, an_agent, honest, target
from jaxbandits.papers.shared import MESSAGE_SHARE, REGRET, against, by_value, exponent, points, ratio_interval, regrets
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, swept
from jaxbandits.selection import final_regret

ATTACK = target(5.0)
CAPTION = "target attack of scale 5"

# ---- the share of attacked agents, which the server knows

WINDOW = 10
BROKEN = 2.0  # times the regret of the mean without an attack
COMPARED = {label: rule for label, rule in RULES.items() if label != "median of means"}  # its groups need 1/4 at most


def share_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (2000, 64) if full else (200, 4)
    shares = [0.0, 0.1, 0.2, 0.3, 0.4] if full else [0.0, 0.2]
    grid = {MESSAGE_SHARE: shares, "window": [WINDOW], "radius_scale": [RATE]}
    return {"rules": swept(COMPARED, FEDERATED, horizon, seeds, grid=grid, message_adversary=ATTACK)}


def by_share(results: Results) -> xr.Dataset:
    return an_agent(results["rules"].squeeze(["window", "radius_scale"], drop=True), honest)


def share_claims(results: Results) -> Claims:
    ds = by_share(results)
    statement = lambda share: f"regret of an honest agent, {percent(share)} attacked"
    yield from by_value(ds, ["corruption_bound"], statement)
    final = final_regret(ds).transpose("algorithm", "corruption_bound", "seed").reset_coords(drop=True)
    mean, shares = final.sel(algorithm="mean"), final["corruption_bound"].values
    median = final.sel(algorithm="geometric median").mean("seed")
    ratio = float((median[shares <= 0.3] / mean[0].mean()).max())
    measured = f"{ratio:.2f} times the attack-free mean at worst"
    paper = "Õ(T^(3/4)) for every share below 1/2 (Theorem 2), constants hidden"
    yield Claim("geometric median up to 30% attacked", paper, measured)
    ratio, low, high = (float(x) for x in ratio_interval(mean.values[1], mean.values[0]))  # the smallest share attacked
    paper, measured = "vulnerable to attacks on even a single agent", f"{ratio:.1f} times the attack-free mean"
    evidence = Interval("interval", low, high, at_least=BROKEN)
    yield Claim(f"mean at {percent(shares[1])} attacked", paper, measured, evidence)


SHARE_PICTURE = against(
    by_share, "corruption_bound", names={"corruption_bound": "share of attacked agents"}, width=5.5,
    caption=f"{NUM_AGENTS} agents, regret of an honest one; {CAPTION}",
)  # fmt: skip
CORRUPTION = Study(
    "Regret against the share of attacked agents", "Theorem 2; docs/reproductions/byzantine.md", share_sweeps,
    {"share": SHARE_PICTURE}, share_claims,
)  # fmt: skip

# ---- the length of an episode: how rarely may the agents communicate?

SHARE = 0.2


def episode_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (4000, 64) if full else (200, 4)
    windows = {"window": [2, 5, 10, 20, 50, 100, 200, 500] if full else [5, 50]}
    along = partial(swept, environment=FEDERATED, horizon=horizon, seeds=seeds, grid=windows)
    median = partial(RULES["geometric median"], corruption_bound=SHARE, radius_scale=RATE)
    attack = partial(ATTACK, corruption=SHARE)
    return {
        "attacked": along({"geometric median, 20% attacked": median}, message_adversary=attack),
        "honest": along({"mean, no attack": partial(RULES["mean"], radius_scale=RATE)}),
    }


def by_episode(results: Results) -> xr.Dataset:
    shares = {"attacked": SHARE, "honest": 0.0}
    parts = [an_agent(ds[["regret", "bytes_sent"]], honest(shares[name])) for name, ds in results.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def episode_claims(results: Results) -> Claims:
    ds = by_episode(results)
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


EPISODE_PICTURE = against(
    by_episode, "window", names={"window": "plays L of an episode"}, width=5.5,
    caption=f"regret of an honest agent; {CAPTION}",
)  # fmt: skip
EPISODES = Study(
    "How rarely the agents may communicate", "Theorem 2; docs/reproductions/byzantine.md", episode_sweeps,
    {"window": EPISODE_PICTURE}, episode_claims,
)  # fmt: skip

# ---- the horizon. The three algorithms differ in their constants, too: ridge and radius are a tenth of the theorems'
# for the medians and the theorems' for the mean, whose episodes have one play.

RATES = partial(a.byzantine_ucb, radius_scale=RATE)  # a radius large enough for the bonus to set the rate
GROUPED = {"aggregate": "median_of_means", "constants": "median_of_means", "corruption_bound": 0.1}
PRINTED = {"constants": "median_of_means", "ridge_scale": 1.0, "radius_scale": 1.0, "window": 1}
SETTINGS = {  # the algorithm, the share of attacked agents, and the stated exponent
    "geometric median, α = 0.2": (partial(RATES, aggregate="geometric_median", corruption_bound=0.2), 0.2, 3 / 4),
    "median of means, α = 0.1": (partial(RATES, **GROUPED), 0.1, 3 / 4),
    "mean, α = 0": (partial(RATES, aggregate="mean", **PRINTED), 0.0, 1 / 2),
}


def horizon_sweeps(full: bool) -> dict[str, Sweep]:
    horizons, seeds = ([512, 2048, 8192, 32_768], 64) if full else ([64, 128, 256], 4)
    attacked = partial(swept, environment=FEDERATED, horizon=horizons, seeds=seeds)
    return {
        label: attacked({label: algorithm}, message_adversary=partial(ATTACK, corruption=corruption))
        for label, (algorithm, corruption, _) in SETTINGS.items()
    }


def by_horizon(results: Results) -> xr.Dataset:
    parts = [an_agent(ds[["regret"]], honest(SETTINGS[label][1])) for label, ds in results.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def horizon_claims(results: Results) -> Claims:
    for label, (_, _, stated) in SETTINGS.items():
        fitted, interval = exponent(results[label], "horizon")
        yield Claim(f"exponent of T, {label}", f"at most {stated:g}", f"{fitted:.2f}; {interval}")
        frame = regrets(by_horizon({label: results[label]}))
        measured = points(frame["horizon"], frame["mean"], "T = {x:,}: {y:,.1f}")
        yield Claim(f"regret of an honest agent, {label}", "", measured)


HORIZON_PICTURE = against(
    by_horizon, "horizon", width=5.5,
    caption=f"regret of an honest agent; {CAPTION}; scales of ridge and radius: {RATE:g} for the medians, 1 for the "
    "mean, whose episodes have one play",
)  # fmt: skip
GROWTH = Study(
    "The growth of robust regret with the horizon", "Theorems 2 and 7; docs/reproductions/byzantine.md",
    horizon_sweeps, {"horizon": HORIZON_PICTURE}, horizon_claims,
)  # fmt: skip
