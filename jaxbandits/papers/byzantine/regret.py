"""Regret of agents: along the share of attacked ones, the episode and the horizon, alone, and with privacy."""

from functools import partial

import numpy as np
import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.formatting import brackets, format_number, percent
from jaxbandits.papers import shared
from jaxbandits.papers.byzantine.instance import AGGREGATES, FEDERATED, NUM_AGENTS, RATE, an_agent, honest, target
from jaxbandits.papers.shared import MESSAGE_SHARE, against, by_algorithm, by_value, exponent, ratio_interval, series
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

ATTACK = target(5.0)
ATTACK_WORDS = "target attack of scale 5"
CAPTION = f"regret of an honest agent; {ATTACK_WORDS}"
PAGE = "docs/reproductions/byzantine.md"

# ---- the share of attacked agents, which the server knows

WINDOW = 10
BROKEN = 2.0  # times the regret of the mean without an attack
# the groups of the median of means need 1/4 at most
COMPARED = {label: rule for label, rule in AGGREGATES.items() if label != "median of means"}


def share_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (2000, 64) if full else (200, 4)
    shares = [0.0, 0.1, 0.2, 0.3, 0.4] if full else [0.0, 0.2]
    grid = {MESSAGE_SHARE: shares, "window": [WINDOW], "radius_scale": [RATE]}
    return {"rules": swept(COMPARED, FEDERATED, horizon, seeds, grid=grid, message_adversary=ATTACK)}


def by_share(results: Results) -> xr.Dataset:
    return an_agent(results["rules"].squeeze(["window", "radius_scale"], drop=True), honest)


def share_claims(results: Results) -> Claims:
    ds = by_share(results)
    yield from by_value(ds, "corruption_bound", lambda share: f"regret of an honest agent, {percent(share)} attacked")
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


SHARE_AXIS = {"corruption_bound": "share of attacked agents"}
SHARE_CAPTION = f"{NUM_AGENTS} agents, regret of an honest one; {ATTACK_WORDS}"
SHARE_PICTURE = against(by_share, "corruption_bound", names=SHARE_AXIS, caption=SHARE_CAPTION, width=5.5)
SHARE_PICTURES = {"share": SHARE_PICTURE}
CORRUPTION = Study(
    "Regret against the share of attacked agents", f"Theorem 2; {PAGE}", share_sweeps, SHARE_PICTURES, share_claims
)

# ---- the length of an episode: how rarely may the agents communicate?

SHARE = 0.2


def episode_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (4000, 64) if full else (200, 4)
    windows = {"window": [2, 5, 10, 20, 50, 100, 200, 500] if full else [5, 50]}
    along = partial(swept, environment=FEDERATED, horizon=horizon, seeds=seeds, grid=windows)
    median = partial(AGGREGATES["geometric median"], corruption_bound=SHARE, radius_scale=RATE)
    attack = partial(ATTACK, corruption=SHARE)
    return {
        "attacked": along({"geometric median, 20% attacked": median}, message_adversary=attack),
        "honest": along({"mean, no attack": partial(AGGREGATES["mean"], radius_scale=RATE)}),
    }


def by_episode(results: Results) -> xr.Dataset:
    agents = {"attacked": honest(SHARE), "honest": honest(0.0)}
    parts = [an_agent(ds[["regret", "bytes_sent"]], agents[name]) for name, ds in results.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def episode_claims(results: Results) -> Claims:
    ds = by_episode(results)
    horizon, mean = int(ds.t[-1]), final_regret(ds).mean("seed")
    sent = ds["bytes_sent"].isel(algorithm=0).mean("seed")
    for window in ds["window"].values:
        measured = series(mean["algorithm"], mean.sel(window=window), "{x} {y:,.0f}")
        measured += f"; {float(sent.sel(window=window)):,.0f} bytes sent an agent"
        yield Claim(f"regret of an honest agent, L = {window}, K = {-(-horizon // int(window))} episodes", "", measured)
    flat = mean.isel(algorithm=0)[horizon / mean["window"].values >= horizon**0.5]
    measured = f"within a factor of {float(flat.max() / flat.min()):.2f}"
    paper = "the order does not change while K is at least √T (Theorem 2), constants hidden"
    yield Claim("regret while K is at least √T", paper, measured)


EPISODE_AXIS = {"window": "plays L of an episode"}
EPISODE_PICTURE = against(by_episode, "window", names=EPISODE_AXIS, caption=CAPTION, width=5.5)
EPISODE_PICTURES = {"window": EPISODE_PICTURE}
EPISODES = Study(
    "How rarely the agents may communicate", f"Theorem 2; {PAGE}", episode_sweeps, EPISODE_PICTURES, episode_claims
)

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
    declared = {}
    for label, (algorithm, corruption, _) in SETTINGS.items():
        attack = partial(ATTACK, corruption=corruption)
        declared[label] = swept({label: algorithm}, FEDERATED, horizons, seeds, message_adversary=attack)
    return declared


def by_horizon(results: Results) -> xr.Dataset:
    parts = [an_agent(ds[["regret"]], honest(SETTINGS[label][1])) for label, ds in results.items()]
    return xr.concat(parts, "algorithm", combine_attrs="override")


def horizon_claims(results: Results) -> Claims:
    for label, (_, _, stated) in SETTINGS.items():
        fitted, interval = exponent(results[label], "horizon")
        yield Claim(f"exponent of T, {label}", f"at most {stated:g}", f"{fitted:.2f}; {interval}")
        alone = by_horizon({label: results[label]})
        yield from by_algorithm(alone, "horizon", "regret of an honest agent, {}".format, "T = {x:,}: {y:,.1f}")


SCALES = f"scales of ridge and radius: {RATE:g} for the medians, 1 for the mean, whose episodes have one play"
GROWTH_PICTURES = {"horizon": against(by_horizon, "horizon", caption=f"{CAPTION}; {SCALES}", width=5.5)}
GROWTH_SOURCE = f"Theorems 2 and 7; {PAGE}"
GROWTH = Study(
    "The growth of robust regret with the horizon", GROWTH_SOURCE, horizon_sweeps, GROWTH_PICTURES, horizon_claims
)

# ---- Proposition 1: without communication the regret grows as alpha N T; with it, it does not. A share of the agents
# has half of its rewards drawn from the instance -theta, so that the rewards of such an agent say nothing about theta.
# Regret counts the plays that were not attacked.

PROB = 0.5  # of an attacked agent's plays
ALONE, TOGETHER = "isolated agents", "Byzantine-UCB"


def alone_sweeps(full: bool) -> dict[str, Sweep]:
    horizons, seeds = ([512, 2048, 8192, 32_768], 64) if full else ([64, 256], 4)
    algorithms = {ALONE: a.isolated_linucb, TOGETHER: partial(a.byzantine_ucb, corruption_bound=SHARE)}
    attack = partial(v.poison, corruption=SHARE, prob=PROB)
    return {"poisoned": swept(algorithms, FEDERATED, horizons, seeds, reward_adversary=attack)}


ALONE_CAPTION = f"regret summed over {NUM_AGENTS} agents and the plays that were not attacked; "
ALONE_CAPTION += f"{SHARE:.0%} of the agents have half of their rewards from -θ"
ALONE_LINE = {"α N T / 20": lambda xs: SHARE * NUM_AGENTS * np.asarray(xs) / 20}
ALONE_PICTURE = against("poisoned", "horizon", reference=ALONE_LINE, caption=ALONE_CAPTION, width=5.5)


def alone_claims(results: Results) -> Claims:
    ds = results["poisoned"]
    final = final_regret(ds)
    first, last = (int(ds["horizon"].values[i]) for i in (0, -1))
    linear, sublinear = "at least c α N T for a constant c (Proposition 1)", "Õ(T^(3/4)) (Theorem 2), constants hidden"
    for label, paper in ((ALONE, linear), (TOGETHER, sublinear)):
        here = final.sel(algorithm=label)
        ratio, low, high = ratio_interval(here.sel(horizon=last).values / last, here.sel(horizon=first).values / first)
        measured = f"{float(ratio):.3g} of the regret a play is left when T grows {last // first}-fold"
        measured += f"; share left {brackets(low, high)}" if label == ALONE else ""
        yield Claim(f"{label}: regret", paper, measured)
    yield from by_algorithm(ds, "horizon", "{}: regret at each T".format, "{y:,.1f} at {x:,}")
    end = float(final.sel(algorithm=ALONE, horizon=last).mean() / (SHARE * NUM_AGENTS * last))
    yield Claim("isolated agents: regret over α N T at the longest horizon", "", f"{end:.3f}")


ALONE_PICTURES = {"horizon": ALONE_PICTURE}
ISOLATED = Study(
    "Without communication the regret is linear", "Proposition 1; Theorem 2", alone_sweeps, ALONE_PICTURES, alone_claims
)

# ---- the price of privacy, for bounded rewards

BOUNDED = partial(FEDERATED, reward="bounded", theta_norm=0.7, noise_scale=0.3)  # |r| <= 1, Assumption 2
DP = partial(a.byzantine_ucb, privacy="tree", constants="geometric_median", noise_scale=0.3, delta=1e-3)
CALIBRATIONS = {label: partial(DP, calibration=label.lower()) for label in ("exact", "zCDP", "paper")}
CALIBRATIONS |= {"exact, increments": partial(DP, privacy="increment", calibration="exact")}


def private_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (4000, 64) if full else (200, 4)
    epsilons = [0.5, 1.0, 2.0, 4.0, 8.0, float("inf")] if full else [4.0, float("inf")]
    grid = {"epsilon": epsilons, "window": [1, 5, 20] if full else [5, 20]}
    return {"calibrations": swept(CALIBRATIONS, BOUNDED, horizon, seeds, grid=grid)}


def draw_private(window, results: Results) -> plot.Plot:
    ds = an_agent(results["calibrations"], NUM_AGENTS)
    chosen = window if window in ds["window"].values else int(ds["window"].values[-1])
    caption = f"regret of an agent; no attack, |r| ≤ 1, episodes of L = {chosen}"
    return plot.against(ds, "epsilon", select={"window": chosen}, caption=caption, width=5.5)


def private_claims(results: Results) -> Claims:
    frame = shared.regrets(an_agent(results["calibrations"], NUM_AGENTS))
    cells = frame.set_index(["window", "epsilon", "algorithm"])["mean"].unstack()[list(CALIBRATIONS)]
    for (window, epsilon), row in cells.iterrows():
        measured = series(row.index, map(format_number, row), "{x} {y}")
        yield Claim(f"regret of an agent, L = {window}, ε = {epsilon:g}", "", measured)
    private = cells[np.isfinite(cells.index.get_level_values("epsilon"))]
    fewer, ratio = private["exact"] <= private["paper"], private["exact"] / private["paper"]
    measured = f"in {int(fewer.sum())} of {len(private)} cells; on average {float(ratio.mean()):.2f} of it"
    yield Claim("exact calibration has no more regret than the reconstructed noise", "", measured)


PRIVATE_TITLE = "The price of privacy by calibration and length of an episode"
PRIVATE_PICTURES = {"one": partial(draw_private, 1), "twenty": partial(draw_private, 20)}
PRIVACY = Study(PRIVATE_TITLE, f"Theorem 6; {PAGE}", private_sweeps, PRIVATE_PICTURES, private_claims)
